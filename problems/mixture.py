"""Anisotropic Gaussian mixtures: the negative log-likelihood of a sample as a function of the means."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from verify_rates.problems.base import ADDITIVE, choice, host, number
from verify_rates.problems.local import Curvature, LocallySmooth, norm_up, squares_up
from verify_rates.problems.quadratic import _rotation
from verify_rates.problems.rounding import U, down, gamma, up
from verify_rates.solvers.method import UsageError
from verify_rates.solvers.oracle import Constants

DEALT = ("homogeneous", "label")


@dataclass(kw_only=True, eq=False)
class Mixture(LocallySmooth):
    """``f_i(theta) = mean over worker i's m samples of -log sum_k |S_k|^(1/2) exp(-(y - theta_k)'S_k(y - theta_k)/2) / K``.

    The K precision matrices ``S_k = Sigma_k^-1`` are known, each with its own axes, the means are x, row by row; the constant
    ``dim/2 log 2 pi`` is left out.  ``centres`` and ``labels`` hold what was planted.

    Guarantee: the Hessian is ``E[S] - Var(S_k (y - theta_k))`` over the posterior of k, so it is nowhere above ``s = max ||S_k||``; from
    below no global bound exists.  For ``||x|| <= R`` (:func:`~verify_rates.problems.local.on_ball`) at least ``-s^2 mean (||y|| + R)^2/2``
    (a variance is at most a quarter of the squared range).  f* lies between ``-log mean |S_k|^(1/2)`` and the best value found; x* is
    unknown.

    Parameters
    ----------
    n, m : workers, samples of each.
    components, dim : K and the dimension of a sample; d = K dim.
    separation : distance of the planted centres from 0.
    aspect : standard deviations of a component lie between 1/aspect and 1, at least 1 (1: spheres).
    shards : "homogeneous", or "label": worker i's samples come from component i mod K.
    batch : samples a gradient, drawn with replacement.
    seed : worker i's samples depend on (seed, i) alone.
    noise, sigma2, p : see :class:`~verify_rates.problems.base.Problem`.

    Errors: UsageError where an option is out of range.

    >>> f = Mixture(n=2, components=2, dim=2)
    >>> f.d, f.constants.L, f.constants.f_star[0] < f.constants.f_star[1]
    (4, inf, True)
    """

    name: ClassVar[str] = "mixture"
    noises: ClassVar[tuple[str, ...]] = (*ADDITIVE, "batch")
    n: int = 4
    m: int = 25
    components: int = 3
    dim: int = 2
    separation: float = 3.0
    aspect: float = 3.0
    shards: str = "homogeneous"
    batch: int | None = None
    seed: int = 0

    def _check(self) -> None:
        self.m = number("m", self.m, 1, whole=True)
        self.components = number("components", self.components, 1, whole=True)
        self.dim = number("dim", self.dim, 1, whole=True)
        self.separation = number("separation", self.separation, 0)
        self.aspect = number("aspect", self.aspect, 1)
        self.seed = number("seed", self.seed, 0, whole=True)
        choice("shards", self.shards, DEALT)
        if self.aspect > 1e6:
            raise UsageError(f"aspect must be at most 1e6, not {self.aspect!r}: the precision matrices would be too ill-conditioned.")
        self.d = self.components * self.dim
        rng = np.random.default_rng([self.seed, 15])
        centres = rng.standard_normal((self.components, self.dim))
        self.centres = self.separation * centres / np.linalg.norm(centres, axis=1, keepdims=True)
        deviations = np.geomspace(1 / self.aspect, 1.0, self.dim)
        axes = [_rotation(rng, self.dim) for _ in range(self.components)]
        self.S = np.stack([(Q / deviations**2) @ Q.T for Q in axes])
        self.S = (self.S + self.S.transpose(0, 2, 1)) / 2
        spreads = np.stack([Q * deviations for Q in axes])
        gens = [np.random.default_rng([self.seed, 16, i]) for i in range(self.n)]
        self.labels = np.stack([self._dealt(i, g) for i, g in enumerate(gens)])
        draws = np.stack([g.standard_normal((self.m, self.dim)) for g in gens])
        self.Y = self.centres[self.labels] + np.einsum("nmab,nmb->nma", spreads[self.labels], draws)

    def _dealt(self, i: int, gen: np.random.Generator) -> np.ndarray:
        return np.full(self.m, i % self.components) if self.shards == "label" else gen.integers(self.components, size=self.m)

    @cached_property
    def _weights(self) -> np.ndarray:
        """``log(|S_k|^(1/2) / K)``; part of the definition, so its rounding is too."""
        return np.linalg.slogdet(self.S)[1] / 2 - math.log(self.components)

    def _start(self) -> np.ndarray:
        """Beside the planted centres: equal means are a saddle."""
        return (self.centres + np.random.default_rng([self.seed, 17]).standard_normal(self.centres.shape) / 2).ravel()

    def value(self, x: np.ndarray) -> float:
        """``f(x)``."""
        depth = self._depths(self.Y, host(x), np)[1]
        top = depth.max(axis=-1)
        return float(np.mean(-top - np.log(np.sum(np.exp(depth - top[..., None]), axis=-1))))

    def _depths(self, Y: Any, x: Any, xp: Any) -> tuple[Any, Any]:
        """``S_k (y - theta_k)``, (n, m, K, dim), and the logarithms of the terms, (n, m, K), at shared or per-worker means."""
        means = xp.reshape(x, (*x.shape[:-1], 1, self.components, self.dim))
        apart = Y[:, :, None, :] - means
        pulls = xp.matmul(xp.asarray(self.S), apart[..., None])[..., 0]
        return pulls, xp.asarray(self._weights) - xp.sum(apart * pulls, axis=-1) / 2

    def _gradients(self, Y: Any, x: Any, xp: Any) -> Any:
        pulls, depth = self._depths(Y, x, xp)
        share = xp.exp(depth - xp.max(depth, axis=-1, keepdims=True))
        share = share / xp.sum(share, axis=-1, keepdims=True)
        return xp.reshape(-xp.mean(share[..., None] * pulls, axis=1), (self.n, self.d))

    def _full(self, x: Any, xp: Any) -> Any:
        return self._gradients(xp.asarray(self.Y), x, xp)

    def _sampled(self, x: Any, gens: list[np.random.Generator], xp: Any) -> Any:
        rows = [(gen.random(self.batch) * self.m).astype(np.int64) for gen in gens]
        return self._gradients(xp.asarray(np.stack([self.Y[i, r] for i, r in enumerate(rows)])), x, xp)

    def _within(self, reach: float) -> Curvature:
        s = max(norm_up(S) for S in self.S)
        far = np.mean((np.sqrt(squares_up(self.Y)) + reach) ** 2, axis=1) * (1 + gamma(self.m + 8))
        low = [-up(s**2 * float(v) / 2, 4) if self.components > 1 else 0.0 for v in far]
        mean = math.fsum(low) / self.n * (1 + 2 * U)
        return Curvature(max(s, -mean), max(s, -min(low)), mean, min(low))

    def _constants(self) -> Constants:
        lone = self.components == 1
        whole = self._within(0.0)
        return Constants(
            L=whole.L if lone else math.inf,
            L_max=whole.L_max if lone else math.inf,
            mu=0.0 if lone else -math.inf,
            mu_min=0.0 if lone else -math.inf,
            sigma2_star=0.0 if self.batch is None or self.m == 1 else None,
            sigma2_sup=0.0 if self.batch is None or self.m == 1 else math.inf,
            zeta2_star=0.0 if self.n == 1 else None,
            zeta2_sup=0.0 if self.n == 1 else math.inf,
            f_star=(self._floor(), self._found()),
            x_star=None,
            convex=lone,
        )

    def _floor(self) -> float:
        top = float(self._weights.max())
        least = -top - math.log(float(np.sum(np.exp(self._weights - top))))
        return down(least - (gamma(self.components + 32) * (1 + abs(top))))

    def _found(self) -> float:
        """The best value found, rounded up: the exponents carry the roundings of ``dim^2`` products, exp and log a few more."""
        from scipy.optimize import minimize

        x = minimize(self.value, self.centres.ravel(), jac=lambda x: self._full(x, np).mean(axis=0), method="L-BFGS-B").x
        pulls, _ = self._depths(np.abs(self.Y), -np.abs(x), np)
        sizes = float(np.max(np.sum(np.abs(pulls) * (np.abs(self.Y)[:, :, None, :] + np.abs(x).max()), axis=-1)))
        sizes += float(np.abs(self.S).max()) * self.dim**2 * float(np.abs(self.Y).max() + np.abs(x).max()) ** 2
        return up(self.value(x) + gamma(self.dim**2 + self.components + self.n * self.m + 64) * (1 + abs(self.value(x)) + sizes))

    def _data(self) -> dict[str, np.ndarray]:
        return {
            "rows": self.Y.reshape(-1, self.dim),
            "tensors": self.S,
            "y": self._weights,
            "offsets": self.m * np.arange(self.n + 1),
        }

    def _kernels(self) -> tuple[Any, Any]:
        from verify_rates.problems import nonconvex_kernels

        return nonconvex_kernels.mixture, nonconvex_kernels.mixture_value
