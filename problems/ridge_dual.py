"""The dual of ridge regression: one unknown a sample, the unknowns dealt to the workers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from verify_rates.problems.base import ADDITIVE, HEAVY, host
from verify_rates.problems.columns import Columns
from verify_rates.problems.data import Dataset
from verify_rates.problems.rounding import U, down, gamma, gram, gram_norm, smallest_eigenvalue, up
from verify_rates.problems.sharded import Sharded
from verify_rates.solvers.method import UsageError
from verify_rates.solvers.oracle import Constants


@dataclass(kw_only=True, eq=False)
class RidgeDual(Sharded):
    """``f_k(a) = lam/2 ||A'a/(lam N)||^2 + (n/N) sum over worker k's samples of (a_i^2/2 - a_i y_i)``, A of N rows, x = a.

    ``f = mean_k f_k`` is the negative dual of ``P(w) = (1/N) sum (a_i'w - y_i)^2/2 + lam/2 ||w||^2``: ``min f = -min P``, and
    ``P(w(a)) + f(a)`` with ``w(a) = A'a/(lam N)`` is a duality gap (:meth:`gap`).  The same samples as :class:`Ridge`, whose workers
    hold rows of the primal; here they hold columns of the dual.  The duals of support vector machines live in a box, where a step
    function does not stay: they are :func:`verify_rates.problems.columns.instance`.

    Guarantee: L, L_max, mu and mu_min are proved bounds, ``lambda/(lam N) + 1/N``, ``lambda/(lam N) + n/N``, 1/N (plus a proved smallest
    eigenvalue) and 0, with ``lambda = lambda_max(A'A/N)``; f* is an interval from the gradient at the computed minimiser.

    Parameters
    ----------
    lam : of the primal, more than 0.
    others : see :class:`~verify_rates.problems.sharded.Sharded`, without batch; targets are used as given.

    Errors: UsageError where lam is 0 or an option is out of range.

    >>> f = RidgeDual(data=([[1.0], [3.0]], [1.0, 3.0]), n=2, lam=1.0)
    >>> f.gap(f.constants.x_star) < 1e-12
    True
    """

    name: ClassVar[str] = "ridge_dual"
    noises: ClassVar[tuple[str, ...]] = (*ADDITIVE, *HEAVY)

    def _targets(self, found: Dataset) -> np.ndarray:
        return found.y

    def _prepare(self) -> None:
        if self.lam == 0:
            raise UsageError("lam of ridge_dual must be more than 0: without a regulariser the primal has no such dual.")
        if self.shards == "copies":
            raise UsageError("shards of ridge_dual must deal every sample to one worker: choose homogeneous, label or dirichlet.")
        self.A = self.A if isinstance(self.A, np.ndarray) else self.A.toarray()
        self.d = len(self.y)
        self._owned = np.zeros((self.n, self.d))
        for i in range(self.n):
            self._owned[i, self._own(i)] = self.n / self.d

    # --- primal and dual ----------------------------------------------------------------------------------------------

    def primal_point(self, a: np.ndarray) -> np.ndarray:
        """``w(a)``, (features,)."""
        return host(a) @ self.A / (self.lam * self.d)

    def gap(self, a: np.ndarray) -> float:
        """``P(w(a)) + f(a)``, which is at least ``f(a) - f*`` and 0 at the minimiser alone."""
        w = self.primal_point(a)
        return float(np.sum((self.A @ w - self.y) ** 2)) / (2 * self.d) + self.lam * float(w @ w) / 2 + self.value(a)

    def columns(self) -> Columns:
        """The same problem as CoCoA sees it: column i is a_i/(lam N), machine k holds worker k's."""
        parts = tuple(tuple(range(*self._own(i).indices(self.d))) for i in range(self.n))
        free = {"l1": 0.0, "low": -math.inf, "high": math.inf}
        A = self.A.T / (self.lam * self.d)
        return Columns(A, np.zeros(A.shape[0]), self.y / self.d, 1 / self.lam, 1 / self.d, parts=parts, **free)

    def value(self, x: np.ndarray) -> float:
        """``f(a)``."""
        a = host(x)
        w = self.primal_point(a)
        return self.lam * float(w @ w) / 2 + float(np.sum(a * (a / 2 - self.y))) / self.d

    def _full(self, x: Any, xp: Any) -> Any:
        A = xp.asarray(self.A)
        shared = xp.matmul(xp.matmul(x, A), A.T) / (self.lam * self.d**2)
        return shared + xp.asarray(self._owned) * (x - xp.asarray(self.y))

    # --- constants ----------------------------------------------------------------------------------------------------

    @cached_property
    def _low(self) -> float:
        """At most the smallest eigenvalue of ``A A'``; it is 0 where there are more samples than features."""
        if self.d > self.A.shape[1]:
            return 0.0
        G, error = gram(self.A.T)
        return max(0.0, down(smallest_eigenvalue(G) - error))

    def _constants(self) -> Constants:
        N, scale = self.d, 1 / (self.lam * self.d)
        high = gram_norm(self.A, np.full(N, 1.0 / N)) * scale
        low = self._low * scale / N
        L, mu = up(high + 1 / N, 8), down(low + 1 / N, 8)
        x = self._minimiser()
        error = self._error(x)
        norm = up((float(np.linalg.norm(self._full(x, np).mean(axis=0))) + error) * (1 + gamma(N + 4)))
        value, slack = self.value(x), self._value_error(x)
        L_max = up(high + self.n / N, 8)
        return Constants(
            L=L,
            L_max=L_max,
            mu=mu,
            mu_min=mu if self.n == 1 else max(0.0, down(low, 8)),
            sigma2_star=0.0,
            sigma2_sup=0.0,
            zeta2_star=0.0 if self.n == 1 else self._spread_at(x, error + norm / mu * L_max),
            zeta2_sup=0.0 if self.n == 1 else math.inf,
            f_star=(down(value - slack - up(norm**2 / (2 * mu), 4), 2), up(value + slack)),
            x_star=x,
            convex=True,
        )

    def _minimiser(self) -> np.ndarray:
        """``a = y - A w`` at the primal solution, refined by one Newton step."""
        from scipy.linalg import cho_factor, cho_solve

        N = self.d
        factor = cho_factor(self.A.T @ self.A / N + self.lam * np.eye(self.A.shape[1]))
        a = self.y - self.A @ cho_solve(factor, self.A.T @ self.y / N)
        g = self._full(a, np).mean(axis=0) * N  # the Hessian is (A A'/(lam N) + 1)/N; its inverse by the features' side
        return a - (g - self.A @ cho_solve(factor, self.A.T @ g) / N)

    def _error(self, x: np.ndarray) -> float:
        """Of a computed gradient, in norm."""
        sizes = np.abs(self.A) @ (np.abs(x) @ np.abs(self.A)) / (self.lam * self.d**2) + self.n / self.d * (np.abs(x) + np.abs(self.y))
        return float(np.linalg.norm(sizes)) * gamma(self.d + self.A.shape[1] + 12) * (1 + gamma(self.d + 4))

    def _value_error(self, x: np.ndarray) -> float:
        w = np.abs(x) @ np.abs(self.A) / (self.lam * self.d)
        size = self.lam * float(w @ w) / 2 + float(np.sum(np.abs(x) * (np.abs(x) / 2 + np.abs(self.y)))) / self.d
        return up(size * gamma(2 * self.d + 2 * self.A.shape[1] + 16) * (1 + 8 * U))

    def _spread_at(self, x: np.ndarray, drift: float) -> float:
        lengths = np.linalg.norm(self._full(x, np), axis=1) * (1 + gamma(self.d + 4)) + drift
        return up(float(np.mean(lengths**2)) * (1 + gamma(self.n + 4)))

    def _data(self) -> dict[str, np.ndarray]:
        return {"rows": self.A, "y": self.y, "offsets": self.offsets, "params": np.array([self.lam, float(self.n)])}

    def _kernels(self) -> tuple[Any, Any]:
        from verify_rates.problems import kernels

        return kernels.ridge_dual, kernels.ridge_dual_value
