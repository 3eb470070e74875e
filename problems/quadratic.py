"""Quadratics with chosen constants."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from verify_rates.problems.base import Family, host, number, truth
from verify_rates.problems.rounding import U, largest_eigenvalue, smallest_eigenvalue
from verify_rates.solvers.method import UsageError
from verify_rates.solvers.oracle import Constants
from verify_rates.solvers.words import Unsupported


@dataclass(kw_only=True, eq=False)
class Quadratic(Family):
    """Quadratics with chosen L, mu, heterogeneity and noise.

    ``f_i(x) = (x - c)' H_i (x - c) / 2 + u_i' (x - c)`` with ``sum_i u_i = 0`` exactly and ``mean_i ||u_i||^2 = zeta2_star``, so that ``c``
    is a minimiser of ``f``, ``f* = 0``, and ``zeta2_star = 0`` means a shared minimiser.  The mean Hessian has the eigenvalues L and mu,
    and every H_i lies between them.

    Guarantee: with ``rotate=False`` the Hessians are diagonal and the constants exact; otherwise the spectrum is moved inwards by the
    rounding errors, which the constructor checks by a proof (:func:`~verify_rates.problems.rounding.smallest_eigenvalue`), so L and mu
    are valid as declared and attained to about ``d^2 u`` (relative, ``u = 1.1e-16``).  zeta2_star is attained to 1e-9 and never exceeded.

    Parameters
    ----------
    n, d : workers and dimension.
    L, mu : largest and smallest eigenvalue, ``0 <= mu <= L``.
    zeta2_star : ``mean_i ||grad f_i(x*)||^2``; more than 0 needs two workers.
    common : one Hessian for all workers; False: they share the eigenvectors of L and mu, the rest is each worker's own.
    rotate : random eigenvectors instead of the coordinates.
    radius : ``||x*||``, so that a start at 0 has this distance.
    seed : of everything random in the problem.
    noise, sigma2, p : see :class:`~verify_rates.problems.base.Problem`.

    Errors: UsageError where an option is out of range, or ``mu < L`` in dimension 1.

    >>> f = Quadratic(n=3, d=4, L=2.0, mu=0.5, zeta2_star=1.0)
    >>> f.constants.L, f.constants.mu, f.constants.f_star
    (2.0, 0.5, (0.0, 0.0))
    """

    name: ClassVar[str] = "quadratic"
    n: int = 4
    d: int = 10
    L: float = 1.0
    mu: float = 0.1
    zeta2_star: float = 0.0
    common: bool = True
    rotate: bool = True
    radius: float = 1.0
    seed: int = 0

    def _check(self) -> None:
        self.d = number("d", self.d, 1, whole=True)
        self.L = number("L", self.L, 0, strict=True)
        self.mu = number("mu", self.mu, 0)
        self.zeta2_star = number("zeta2_star", self.zeta2_star, 0)
        self.radius = number("radius", self.radius, 0)
        self.seed = number("seed", self.seed, 0, whole=True)
        truth("common", self.common)
        truth("rotate", self.rotate)
        if self.mu > self.L:
            raise UsageError(f"mu must be at most L, but mu = {self.mu:g} and L = {self.L:g}.")
        if self.d == 1 and self.mu < self.L:
            raise UsageError("a quadratic in dimension 1 has one eigenvalue: choose mu = L, or d of at least 2.")
        if self.n == 1 and self.zeta2_star > 0:
            raise UsageError("one worker has no heterogeneity: choose zeta2_star = 0, or n of at least 2.")
        rng = np.random.default_rng([self.seed, 1])
        self._centre = _on_sphere(rng, self.d, self.radius)
        self._offsets = _balanced(rng, self.n, self.d, self.zeta2_star)
        self._H = self._hessians(rng)

    def _hessians(self, rng: np.random.Generator) -> np.ndarray:
        """(1 or n, d, d), symmetric, proved to lie between mu and L."""
        margin = 8 * (self.d + 8) ** 2 * U * self.L if self.rotate and self.mu < self.L else 0.0
        high, low = self.L - margin, self.mu + margin
        if low > high:  # nearly a multiple of the identity, where rotations change nothing
            high, low, margin = self.L, self.mu, 0.0
        Q = _rotation(rng, self.d) if margin else np.eye(self.d)
        count = 1 if self.common else self.n
        H = np.stack([self._one(rng, Q, low, high, own=count > 1, turn=margin > 0) for _ in range(count)])
        if margin:
            for h in H:
                if largest_eigenvalue(h) > self.L or smallest_eigenvalue(h) < self.mu:
                    raise UsageError(f"d = {self.d} is too large for a rotated quadratic of proved spectrum; choose rotate=False.")
        return H

    def _one(self, rng: np.random.Generator, Q: np.ndarray, low: float, high: float, own: bool, turn: bool) -> np.ndarray:
        inner = np.sort(rng.uniform(low, high, max(0, self.d - 2))) if own else _between(low, high, self.d)[1:-1]
        eigenvalues = np.array([low, *inner, high])[-self.d :]
        if not turn:
            return np.diag(eigenvalues)
        P = Q.copy()
        if own and self.d > 2:
            P[:, 1:-1] = Q[:, 1:-1] @ _rotation(rng, self.d - 2)
        H = (P * eigenvalues) @ P.T
        return (H + H.T) / 2

    def _constants(self) -> Constants:
        same = self.common or self.n == 1 or self.mu == self.L
        return Constants(
            L=self.L,
            L_max=self.L,
            mu=self.mu,
            mu_min=self.mu,
            sigma2_star=0.0,
            sigma2_sup=0.0,
            zeta2_star=self.zeta2_star,
            zeta2_sup=self.zeta2_star if same else math.inf,
            f_star=(0.0, 0.0),
            x_star=self._centre.copy(),
            convex=True,
        )

    def modes(self, x0: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Eigenvalues (d,) of the common Hessian, and x0 (d,), x* (d,) and the workers' gradients at x* (n, d) in its eigenbasis.

        Errors: Unsupported where the workers have Hessians of their own.
        """
        if len(self._H) > 1:
            raise Unsupported("the modes of a quadratic need one Hessian common to all workers: choose common=True.")
        eigenvalues, Q = np.linalg.eigh(self._H[0])
        return eigenvalues, x0 @ Q, self._centre @ Q, self._offsets @ Q

    def value(self, x: np.ndarray) -> float:
        """``f(x)``; the linear terms cancel exactly in the mean."""
        y = host(x) - self._centre
        return float(np.mean([y @ (h @ y) for h in self._H]) / 2)

    def _arrays(self, xp: Any) -> tuple[Any, Any, Any]:
        """Hessians, minimiser and offsets as arrays of ``xp``, made once (a device keeps them)."""
        if xp.__name__ not in self._moved:
            self._moved[xp.__name__] = tuple(xp.asarray(a) for a in (self._H, self._centre, self._offsets))
        return self._moved[xp.__name__]

    @cached_property
    def _moved(self) -> dict[str, tuple[Any, Any, Any]]:
        return {}

    def _full(self, x: Any, xp: Any) -> Any:
        H, centre, offsets = self._arrays(xp)
        y = x - centre
        if y.ndim == 1:
            return xp.matmul(H, y) + offsets
        if len(self._H) == 1:
            return xp.matmul(y, H[0, :, :]) + offsets
        return xp.matmul(H, y[:, :, None])[:, :, 0] + offsets

    def _data(self) -> dict[str, np.ndarray]:
        return {"tensors": self._H, "vectors": self._offsets, "rows": self._centre[None, :]}

    def _kernels(self) -> tuple[Any, Any]:
        from verify_rates.problems import kernels

        return kernels.quadratic, kernels.quadratic_value


def _between(low: float, high: float, d: int) -> np.ndarray:
    """d eigenvalues with both ends: geometric where low > 0, else evenly spaced."""
    if d == 1:
        return np.array([high])
    inside = np.geomspace(low, high, d) if low > 0 else np.linspace(low, high, d)
    return np.clip(inside, low, high)


def _rotation(rng: np.random.Generator, d: int) -> np.ndarray:
    Q, R = np.linalg.qr(rng.standard_normal((d, d)))
    return Q * np.where(np.diag(R) < 0, -1.0, 1.0)


def _on_sphere(rng: np.random.Generator, d: int, radius: float) -> np.ndarray:
    v = rng.standard_normal(d)
    return radius * v / np.linalg.norm(v)


def _balanced(rng: np.random.Generator, n: int, d: int, zeta2: float) -> np.ndarray:
    """(n, d) rows whose sum is exactly 0 and whose mean squared norm is zeta2, never more.

    The entries are multiples of one power of two with few enough bits for every partial sum to be exact.
    """
    u = rng.standard_normal((n, d))
    if zeta2 == 0.0:
        return np.zeros((n, d))
    u -= u.mean(axis=0)
    u *= math.sqrt(zeta2 / np.mean(np.sum(u**2, axis=1)))
    grid = 2.0 ** (math.frexp(np.abs(u).max())[1] - (48 - math.ceil(math.log2(n))))
    shrink = 1.0 - 2.0**-34
    while True:
        v = np.round(u * shrink / grid) * grid
        v[-1] -= v.sum(axis=0)
        if sum(Fraction(a) ** 2 for a in v.ravel()) <= Fraction(zeta2) * n:
            return v
        shrink -= 2.0**-34
