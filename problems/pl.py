"""Functions that satisfy the Polyak-Lojasiewicz inequality without being strongly convex: null spaces and waves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from verify_rates.problems.base import Family, host, number, truth
from verify_rates.problems.quadratic import _balanced, _on_sphere, _rotation
from verify_rates.problems.rounding import down, gram, largest_eigenvalue, smallest_eigenvalue, up
from verify_rates.solvers.method import UsageError
from verify_rates.solvers.oracle import Constants

MOST_WAVES = 4.6  # beyond 4.6033..., where 2 r + a sin 2r gets a zero besides r = 0 (-1/min sinc), no inequality of the kind holds
NEAR, FAR = 1e-3, 1e4  # between them the constant is bounded on cells, outside by hand
CELLS, MOST_CELLS = 2**12, 2**16  # small waves are flat: there the bound stays a little below six digits
REFINED = 1e-6  # relative distance between the bounds on the constant, at most
ROUNDING = 1e-13  # of the values on cells: a few dozen roundings


@dataclass(kw_only=True, eq=False)
class PolyakLojasiewicz(Family):
    """``f_i(x) = sum_k lam_k phi(p_k'(x - c)) + u_i'(x - c)`` with ``phi(r) = r^2 + waves sin^2 r``: PL, with a null space, nonconvex.

    The rank directions ``p_k`` are orthonormal and ``sum_i u_i = 0`` exactly: the minimisers of f are ``c`` plus the null space, f* = 0.
    ``waves = 0`` is a quadratic with a null space (convex), ``waves > 1`` is not convex: ``phi'' = 2 + 2 waves cos 2r``.

    Guarantee: ``||grad f||^2 >= 2 mu_pl (f - f*)`` with ``mu_pl = kappa min lam_k``, ``kappa = min_r phi'^2/(2 phi)`` bounded from below
    to six digits (:func:`pl_of_waves`; with waves = 3, Karimi, Nutini and Schmidt 2016 have ``x^2 + 3 sin^2 x`` and 1/32, here 0.17553).
    L is attained at ``c``; mu is exact to rounding; zeta2_star is attained to 1e-9 and never exceeded.

    Parameters
    ----------
    n, d : workers and dimension.
    rank : directions in which f is not constant, 1 to d.
    L : smoothness constant.
    cond : ``max lam_k / min lam_k``, at least 1.
    waves : 0 to 4.6; beyond, f has more stationary points and satisfies no such inequality.
    zeta2_star : ``mean_i ||u_i||^2``; more than 0 needs two workers.
    rotate : random directions instead of the first coordinates.
    radius : ``||c||``.
    seed : of everything random in the problem.
    noise, sigma2, p, tail, scale : see :class:`~verify_rates.problems.base.Problem`.

    Errors: UsageError where an option is out of range.

    >>> f = PolyakLojasiewicz(n=2, d=4, rank=2, waves=3.0)
    >>> f.constants.convex, round(f.constants.mu, 9), round(f.constants.mu_pl, 5)
    (False, -0.5, 0.00219)
    """

    name: ClassVar[str] = "pl"
    n: int = 4
    d: int = 10
    rank: int = 5
    L: float = 1.0
    cond: float = 10.0
    waves: float = 0.0
    zeta2_star: float = 0.0
    rotate: bool = True
    radius: float = 1.0
    seed: int = 0

    def _check(self) -> None:
        self.d = number("d", self.d, 1, whole=True)
        self.rank = number("rank", self.rank, 1, whole=True)
        self.L = number("L", self.L, 0, strict=True)
        self.cond = number("cond", self.cond, 1)
        self.waves = number("waves", self.waves, 0)
        self.zeta2_star = number("zeta2_star", self.zeta2_star, 0)
        self.radius = number("radius", self.radius, 0)
        self.seed = number("seed", self.seed, 0, whole=True)
        truth("rotate", self.rotate)
        if self.rank > self.d:
            raise UsageError(f"rank must be at most d, but rank = {self.rank} and d = {self.d}.")
        if self.waves > MOST_WAVES:
            raise UsageError(f"waves must be at most {MOST_WAVES:g}, not {self.waves!r}: beyond, f has other stationary points.")
        if self.rank == 1 and self.cond > 1:
            raise UsageError("with rank = 1 there is one curvature: choose cond = 1, or a rank of at least 2.")
        if self.n == 1 and self.zeta2_star > 0:
            raise UsageError("one worker has no heterogeneity: choose zeta2_star = 0, or n of at least 2.")
        rng = np.random.default_rng([self.seed, 6])
        self._centre = _on_sphere(rng, self.d, self.radius)
        self._offsets = _balanced(rng, self.n, self.d, self.zeta2_star)
        self._P = (_rotation(rng, self.d) if self.rotate else np.eye(self.d))[:, : self.rank]
        top = down(self.L / (up(2 + 2 * self.waves) * self._stretch[1]), 3)
        self._lam = np.clip(np.geomspace(top / self.cond, top, self.rank), 0.0, top)

    @cached_property
    def _stretch(self) -> tuple[float, float]:
        """Bounds on the eigenvalues of ``P'P``, which is the identity up to rounding."""
        if not self.rotate:
            return 1.0, 1.0
        G, error = gram(self._P)
        return down(smallest_eigenvalue(G) - error), up(largest_eigenvalue(G) + error)

    def _constants(self) -> Constants:
        low, high = self._stretch
        least, bend = float(self._lam.min()), 2 - 2 * self.waves
        mu = down(bend * self._lam.max() * high, 4) if bend < 0 else down(bend * least * low, 4) if self.rank == self.d else 0.0
        return Constants(
            L=self.L,
            L_max=self.L,
            mu=mu,
            mu_min=mu,
            sigma2_star=0.0,
            sigma2_sup=0.0,
            zeta2_star=self.zeta2_star,
            zeta2_sup=self.zeta2_star,
            f_star=(0.0, 0.0),
            x_star=self._centre.copy(),
            convex=self.waves <= 1,
            mu_pl=down(pl_of_waves(self.waves) * least * low, 3),
        )

    def value(self, x: np.ndarray) -> float:
        """``f(x)``; the linear terms cancel exactly in the mean."""
        r = (host(x) - self._centre) @ self._P
        return float(self._lam @ (r**2 + self.waves * np.sin(r) ** 2))

    def _full(self, x: Any, xp: Any) -> Any:
        centre, P, lam, offsets = (xp.asarray(a) for a in (self._centre, self._P, self._lam, self._offsets))
        r = xp.matmul(x - centre, P)
        return xp.matmul(lam * (2 * r + self.waves * xp.sin(2 * r)), P.T) + offsets

    def _data(self) -> dict[str, np.ndarray]:
        return {
            "rows": np.vstack([self._centre, self._P.T]),
            "vectors": self._offsets,
            "y": self._lam,
            "params": np.array([self.waves]),
        }

    def _kernels(self) -> tuple[Any, Any]:
        from verify_rates.problems import nonconvex_kernels

        return nonconvex_kernels.pl, nonconvex_kernels.pl_value


@lru_cache(maxsize=64)
def pl_of_waves(a: float) -> float:
    """A proved lower bound, to six digits, on ``kappa(a) = min_{r > 0} phi'(r)^2 / (2 phi(r))``, ``phi(r) = r^2 + a sin^2 r``.

    Near 0, ``sin 2r >= 2r - (2r)^3/6`` and ``phi <= (1+a) r^2``; far away, ``phi' >= 2r - a`` and ``phi <= r^2 + a``; between, on cells of
    width w around m, ``phi' >= phi'(m) - (1+a) w`` and ``phi <= phi(m + w/2)``; cells that may hold the minimum are halved.

    >>> pl_of_waves(0.0), round(pl_of_waves(3.0), 5)
    (2.0, 0.17553)
    """
    if a == 0:
        return 2.0
    near = 2 * (1 + a * (1 - 2 * NEAR**2 / 3)) ** 2 / (1 + a)
    far = (2 * FAR - a) ** 2 / (2 * (FAR**2 + a))
    edges = np.geomspace(NEAR, FAR, CELLS + 1)
    low, high, kept = edges[:-1], edges[1:], min(near, far)
    while low.size:
        middle, width = (low + high) / 2, high - low
        slope = np.maximum(2 * middle + a * np.sin(2 * middle) - (1 + a) * width, 0.0)
        bounds = slope**2 / (2 * (high**2 + a * np.minimum((np.abs(np.sin(middle)) + width / 2), 1.0) ** 2))
        best = float(np.min((2 * middle + a * np.sin(2 * middle)) ** 2 / (2 * (middle**2 + a * np.sin(middle) ** 2))))
        best = min(best, kept)
        open_ = (bounds < best * (1 - REFINED)) & (low.size <= MOST_CELLS)
        kept = min(kept, float(np.min(bounds[~open_], initial=math.inf)))
        low, high = np.concatenate([low[open_], middle[open_]]), np.concatenate([middle[open_], high[open_]])
    return down(kept * (1 - ROUNDING))
