"""Real phase retrieval: a quartic loss that is smooth on balls alone, with a planted minimiser that is exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from verify_rates.problems.base import ADDITIVE, host, number
from verify_rates.problems.local import Curvature, LocallySmooth, squares_up
from verify_rates.problems.quadratic import _on_sphere
from verify_rates.problems.rounding import U, gamma, gram_norm, up
from verify_rates.solvers.method import UsageError
from verify_rates.solvers.oracle import Constants

BITS = 6  # of the samples behind the point, and of x* below its size
LARGEST_SAMPLE = 4.0  # standard deviations; beyond, samples are cut off
LARGEST_D = 2048  # squares of products then have at most 2 (15 + log2 d) = 52 bits: they are exact


@dataclass(kw_only=True, eq=False)
class PhaseRetrieval(LocallySmooth):
    """``f_i(x) = mean over worker i's m samples of ((a'x)^2 - y)^2 / 4`` with ``y = (a'x*)^2``, plus ``jitter`` where it is given.

    The entries of ``a`` (standard normal) and of ``x*`` have few enough bits for every y to be exact, so that ``f* = 0`` and
    ``grad f_i(x*) = 0`` exactly; ``-x*`` is the other minimiser.  With jitter f* is the interval [0, best value found], x* is unknown.

    Guarantee: no global L exists, the Hessians ``mean (3 (a'x)^2 - y) a a'`` grow with x.  On ``||x|| <= R``
    (:func:`verify_rates.problems.local.on_ball`): ``L <= 3 R^2 lambda_max(mean ||a||^2 a a')``.  From below they are bounded everywhere, by
    ``mu = -lambda_max(mean y a a')``, because y >= 0.  Suprema over x of noise (batches) and heterogeneity are infinite.

    Parameters
    ----------
    n, d, m : workers, dimension (at most 2048), samples a worker.
    radius : ``||x*||``, to one part in 64.
    jitter : standard deviation of a normal error of every y, which is cut off at 0.
    batch : samples a gradient, drawn with replacement.
    seed : worker i's samples depend on (seed, i) alone.
    noise, sigma2, p : see :class:`~verify_rates.problems.base.Problem`.

    Errors: UsageError where an option is out of range.

    >>> f = PhaseRetrieval(n=2, d=3)
    >>> f.constants.L, f.constants.f_star, f.constants.zeta2_star
    (inf, (0.0, 0.0), 0.0)
    """

    name: ClassVar[str] = "phase_retrieval"
    noises: ClassVar[tuple[str, ...]] = (*ADDITIVE, "batch")
    n: int = 4
    d: int = 5
    m: int = 20
    radius: float = 1.0
    jitter: float = 0.0
    batch: int | None = None
    seed: int = 0

    def _check(self) -> None:
        self.d = number("d", self.d, 1, whole=True)
        self.m = number("m", self.m, 1, whole=True)
        self.radius = number("radius", self.radius, 0, strict=True)
        self.jitter = number("jitter", self.jitter, 0)
        self.seed = number("seed", self.seed, 0, whole=True)
        if self.d > LARGEST_D:
            raise UsageError(f"d of phase_retrieval must be at most {LARGEST_D}, not {self.d}: beyond, its targets are not exact.")
        gens = [np.random.default_rng([self.seed, 7, i]) for i in range(self.n)]
        samples = np.stack([g.standard_normal((self.m, self.d)) for g in gens])
        self.A = np.clip(np.round(samples * 2**BITS) / 2**BITS, -LARGEST_SAMPLE, LARGEST_SAMPLE)
        grid = 2.0 ** (math.frexp(self.radius)[1] - 1 - BITS)
        self._planted = np.round(_on_sphere(np.random.default_rng([self.seed, 8]), self.d, self.radius) / grid) * grid
        errors = np.stack([g.standard_normal(self.m) for g in gens])
        self.y = np.maximum((self.A @ self._planted) ** 2 + self.jitter * errors, 0.0)

    def _start(self) -> np.ndarray:
        """0 is stationary."""
        return _on_sphere(np.random.default_rng([self.seed, 18]), self.d, self.radius)

    def value(self, x: np.ndarray) -> float:
        """``f(x)``."""
        return float(np.mean(((self.A @ host(x)) ** 2 - self.y) ** 2) / 4)

    def _full(self, x: Any, xp: Any) -> Any:
        return _gradients(xp.asarray(self.A), xp.asarray(self.y), x, xp)

    def _sampled(self, x: Any, gens: list[np.random.Generator], xp: Any) -> Any:
        rows = [(gen.random(self.batch) * self.m).astype(np.int64) for gen in gens]
        A, y = (np.stack([v[i, r] for i, r in enumerate(rows)]) for v in (self.A, self.y))
        return _gradients(xp.asarray(A), xp.asarray(y), x, xp)

    def _within(self, reach: float) -> Curvature:
        every = np.full(self.m, 1.0 / self.m)
        workers = [self._bounds(A, y, every, reach) for A, y in zip(self.A, self.y, strict=True)]
        A, y = self.A.reshape(-1, self.d), self.y.ravel()
        high, low = self._bounds(A, y, np.full(len(y), 1.0 / len(y)), reach)
        return Curvature(high, max(w[0] for w in workers), low, min(w[1] for w in workers))

    def _bounds(self, A: np.ndarray, y: np.ndarray, weights: np.ndarray, reach: float) -> tuple[float, float]:
        low = -up(gram_norm(A, weights * y) * (1 + 4 * U))
        return max(up(3 * reach**2 * gram_norm(A, weights * squares_up(A)) * (1 + 8 * U)), -low), low

    def _constants(self) -> Constants:
        whole, exact = self._within(0.0), self.jitter == 0
        one = self.n == 1
        return Constants(
            L=math.inf,
            L_max=math.inf,
            mu=whole.mu,
            mu_min=whole.mu_min,
            sigma2_star=0.0 if exact or self.batch is None else None,
            sigma2_sup=0.0 if self.batch is None or self.m == 1 else math.inf,
            zeta2_star=0.0 if exact or one else None,
            zeta2_sup=0.0 if one else math.inf,
            f_star=(0.0, 0.0) if exact else (0.0, self._found()),
            x_star=self._planted.copy() if exact else None,
            convex=False,
        )

    def _found(self) -> float:
        """The best value found, rounded up: z carries d roundings, which weigh twice in ``z^2 - y``, and the mean nm + 8."""
        from scipy.optimize import minimize

        x = minimize(self.value, self._planted, jac=lambda x: self._full(x, np).mean(axis=0), method="L-BFGS-B", options={"gtol": 1e-12}).x
        size = np.mean((np.sum(np.abs(self.A * x), axis=2) ** 2 + self.y) ** 2) / 4
        return up(self.value(x) + gamma(4 * self.d + self.n * self.m + 16) * float(size))

    def _data(self) -> dict[str, np.ndarray]:
        return {"rows": self.A.reshape(-1, self.d), "y": self.y.ravel(), "offsets": self.m * np.arange(self.n + 1)}

    def _kernels(self) -> tuple[Any, Any]:
        from verify_rates.problems import nonconvex_kernels

        return nonconvex_kernels.phase, nonconvex_kernels.phase_value


def _gradients(A: Any, y: Any, x: Any, xp: Any) -> Any:
    """``mean ((a'x)^2 - y) a'x a`` for every worker; A is (n, m, d), x is (d,) or (n, d)."""
    z = xp.matmul(A, x if x.ndim == 1 else x[:, :, None])
    z = z if x.ndim == 1 else z[:, :, 0]
    return xp.matmul((((z * z - y) * z) / y.shape[1])[:, None, :], A)[:, 0, :]
