"""Low-rank matrix factorisation: quartic, smooth on balls alone, its minimum known from the singular values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from verify_rates.problems.base import host, number, truth
from verify_rates.problems.local import Curvature, LocallySmooth, norm_up
from verify_rates.problems.quadratic import _balanced, _rotation
from verify_rates.problems.rounding import U, down, gamma, up
from verify_rates.solvers.method import UsageError
from verify_rates.solvers.oracle import Constants


@dataclass(kw_only=True, eq=False)
class Factorisation(LocallySmooth):
    """``f_i(U) = ||U U' - M - E_i||_F^2 / 4`` or ``f_i(U, V) = ||U V' - M - E_i||_F^2 / 2``, with ``sum_i E_i = 0`` exactly.

    M has the singular values ``top decay^k``, so f* is a quarter (a half) of the sum of their squares from the rank on, plus the same share
    of ``mean ||E_i||_F^2`` (Eckart and Young 1936).  x is U, then V, row by row.

    Guarantee: f* is an interval that contains the truth.  No global L exists; on ``||x|| <= R``, with ``B = ||M||`` (and ``||E_i||`` more
    for a worker): ``L <= max(3 R^2, B)`` and ``mu >= -B`` (everywhere) for U U', ``L <= 3 R^2/2 + B`` and ``mu >= -(R^2/2 + B)`` for U V'.

    Parameters
    ----------
    n : workers.
    symmetric : U U' (M is positive semidefinite and rows x rows) or U V'.
    rows, columns : of M; columns = 0 means as many as rows, which is a must for U U'.
    rank : columns of U and V, at most those of M.
    top, decay : the singular values are ``top decay^k``, 0 <= decay <= 1.
    spread : ``sqrt(mean_i ||E_i||_F^2)``, never exceeded; more than 0 needs two workers.
    rotate : random singular vectors instead of the coordinates.
    seed : of everything random in the problem.
    noise, sigma2, p, tail, scale : see :class:`~verify_rates.problems.base.Problem`.

    Errors: UsageError where an option is out of range.

    >>> f = Factorisation(rows=3, rank=1, decay=0.5, rotate=False)
    >>> f.d, f.constants.L, f.constants.f_star[0] <= (0.25 + 0.0625) / 4 <= f.constants.f_star[1]
    (3, inf, True)
    """

    name: ClassVar[str] = "factorisation"
    n: int = 2
    symmetric: bool = True
    rows: int = 6
    columns: int = 0
    rank: int = 2
    top: float = 1.0
    decay: float = 0.5
    spread: float = 0.0
    rotate: bool = True
    seed: int = 0

    def _check(self) -> None:
        truth("symmetric", self.symmetric)
        truth("rotate", self.rotate)
        self.rows = number("rows", self.rows, 1, whole=True)
        self.columns = number("columns", self.columns, 0, whole=True)
        self.rank = number("rank", self.rank, 1, whole=True)
        self.top = number("top", self.top, 0, strict=True)
        self.decay = number("decay", self.decay, 0)
        self.spread = number("spread", self.spread, 0)
        self.seed = number("seed", self.seed, 0, whole=True)
        if self.decay > 1:
            raise UsageError(f"decay must be at most 1, not {self.decay!r}.")
        if self.symmetric and self.columns not in (0, self.rows):
            raise UsageError(f"U U' is square: leave columns out, or choose symmetric=False, instead of columns = {self.columns}.")
        if self.rank > min(self._shape):
            raise UsageError(f"rank must be at most {min(self._shape)}, as M is {self._shape[0]} x {self._shape[1]}, not {self.rank}.")
        if self.n == 1 and self.spread > 0:
            raise UsageError("one worker has no heterogeneity: choose spread = 0, or n of at least 2.")
        self.d = self.rank * (self.rows + (0 if self.symmetric else self._shape[1]))
        self._build(np.random.default_rng([self.seed, 9]))

    @property
    def _shape(self) -> tuple[int, int]:
        return self.rows, self.columns or self.rows

    def _build(self, rng: np.random.Generator) -> None:
        p, q = self._shape
        least = min(p, q)
        self._s = self.top * self.decay ** np.arange(least)
        self._P = (_rotation(rng, p) if self.rotate else np.eye(p))[:, :least]
        own = (_rotation(rng, q) if self.rotate else np.eye(q))[:, :least]
        self._Q = self._P if self.symmetric else own
        self.M = (self._P * self._s) @ self._Q.T
        errors = _balanced(rng, self.n, p * q, self.spread**2).reshape(self.n, p, q)
        if self.symmetric:
            self.M, errors = (self.M + self.M.T) / 2, (errors + errors.transpose(0, 2, 1)) / 2  # halves are exact
        self.errors = errors

    @cached_property
    def _off(self) -> float:
        """At least ``||M - P S Q'||_F`` for some orthonormal P and Q: rounding errors of the product and of the rotations."""
        if not self.rotate:
            return 0.0
        skew = max(float(np.linalg.norm(V.T @ V - np.eye(V.shape[1]))) for V in (self._P, self._Q))
        skew += gamma(max(self._shape) + 4) * min(self._shape)
        size = float(np.linalg.norm(self._s)) * (1 + 8 * U)
        return up((2 * skew + skew**2 + gamma(min(self._shape) + 4) * min(self._shape)) * size * (1 + 8 * U))

    def _start(self) -> np.ndarray:
        """0 is stationary."""
        return math.sqrt(self.top / self.d) * np.random.default_rng([self.seed, 19]).standard_normal(self.d)

    @property
    def _share(self) -> float:
        return 0.25 if self.symmetric else 0.5

    def _factors(self, x: Any, xp: Any) -> tuple[Any, Any]:
        p, q = self._shape
        U = xp.reshape(x[..., : p * self.rank], (*x.shape[:-1], p, self.rank))
        return U, U if self.symmetric else xp.reshape(x[..., p * self.rank :], (*x.shape[:-1], q, self.rank))

    def value(self, x: np.ndarray) -> float:
        """``f(x)``; the mixed terms cancel exactly in the mean."""
        A, B = self._factors(host(x), np)
        return self._share * float(np.sum((A @ B.T - self.M) ** 2) + np.sum(self.errors**2) / self.n)

    def _full(self, x: Any, xp: Any) -> Any:
        A, B = self._factors(x, xp)
        left = xp.matmul(A, xp.moveaxis(B, -1, -2)) - xp.asarray(self.M) - xp.asarray(self.errors)
        found = [xp.matmul(left, B)] if self.symmetric else [xp.matmul(left, B), xp.matmul(xp.moveaxis(left, -1, -2), A)]
        return xp.concat([xp.reshape(g, (self.n, -1)) for g in found], axis=1)

    def _within(self, reach: float) -> Curvature:
        size = up(float(self._s[0]) + self._off)
        apart = [norm_up(E) for E in self.errors]
        each = [self._bounds(reach, up(size + e), up(self._off + e)) for e in apart]
        high, low = self._bounds(reach, size, self._off)
        return Curvature(high, max(w[0] for w in each), low, min(w[1] for w in each))

    def _bounds(self, reach: float, size: float, negative: float) -> tuple[float, float]:
        """``negative`` bounds how far below 0 the spectrum of a symmetric M can reach."""
        if self.symmetric:
            return up(max(3 * reach**2 + negative, size), 4), -size
        return up(1.5 * reach**2 + size, 4), -up(reach**2 / 2 + size, 4)

    def _constants(self) -> Constants:
        k = self.rank
        tail = float(np.linalg.norm(self._s[k:]))
        apart = float(np.sum(self.errors**2)) / self.n
        slack = gamma(self.n * self.errors[0].size + 8)
        low, high = max(0.0, tail * (1 - slack) - self._off), tail * (1 + slack) + self._off
        whole = self._within(0.0)
        roots = np.sqrt(self._s[:k])
        best = [self._P[:, :k] * roots] if self.symmetric else [self._P[:, :k] * roots, self._Q[:, :k] * roots]
        return Constants(
            L=math.inf,
            L_max=math.inf,
            mu=whole.mu if self.symmetric else -math.inf,
            mu_min=whole.mu_min if self.symmetric else -math.inf,
            sigma2_star=0.0,
            sigma2_sup=0.0,
            zeta2_star=self._spread_at([host(b) for b in best]),
            zeta2_sup=0.0 if self.spread == 0 else math.inf,
            f_star=(
                max(0.0, down(self._share * (low**2 + apart * (1 - slack)), 4)),
                up(self._share * (high**2 + apart * (1 + slack)), 4) if high or apart else 0.0,
            ),
            x_star=np.concatenate([b.ravel() for b in best]),
            convex=False,
        )

    def _spread_at(self, best: list[np.ndarray]) -> float:
        """``mean_i ||E_i V||_F^2 (+ ||E_i'U||_F^2)`` at the minimiser, and the square root's change within the rounding of x*."""
        if self.spread == 0:
            return 0.0
        pulls = [np.sum((self.errors @ best[-1]) ** 2)]
        if not self.symmetric:
            pulls.append(np.sum((self.errors.transpose(0, 2, 1) @ best[0]) ** 2))
        apart, size = math.sqrt(np.sum(self.errors**2) / self.n), math.sqrt(2 * self.top * self.rank)
        moved = up(apart * size * (4 * self._off / self.top + gamma(4 * sum(self._shape))))
        return up((math.sqrt(float(sum(pulls)) / self.n) + moved) ** 2 * (1 + gamma(self.errors.size + 16)))

    def _data(self) -> dict[str, np.ndarray]:
        return {"rows": self.M, "tensors": self.errors, "params": np.array([*self._shape, self.rank, float(self.symmetric)])}

    def _kernels(self) -> tuple[Any, Any]:
        from verify_rates.problems import nonconvex_kernels

        return nonconvex_kernels.factorisation, nonconvex_kernels.factorisation_value
