"""Ridge regression, logistic regression and its nonconvex variant, the squared-hinge support vector machine, on data dealt to workers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from verify_rates.problems.base import host
from verify_rates.problems.data import Dataset
from verify_rates.problems.minimise import newton
from verify_rates.problems.rounding import U, down, gamma, gram, gram_norm, smallest_eigenvalue, up
from verify_rates.problems.sharded import Sharded
from verify_rates.solvers.oracle import Constants

LIBM = 8 * U  # relative error granted to exp, log1p and the few operations around them (their implementations stay below 2 u)
DENSE_HESSIAN = 2000  # columns up to which Newton factorises; beyond, conjugate gradients
DENSE_ROWS = 2**24  # entries up to which batches are taken from dense rows: SciPy takes 60 us to pick sparse ones


class Loss(NamedTuple):
    """A loss of the margin ``z = a'x`` and the target y."""

    code: float  # as in kernels.py
    curvature: float  # second derivative in z is at most this
    steepest: float  # first derivative in z is at most this (inf: unbounded)


LOGISTIC = Loss(code=0.0, curvature=0.25, steepest=1.0)
SQUARES = Loss(code=1.0, curvature=1.0, steepest=math.inf)
SQUARED_HINGE = Loss(code=2.0, curvature=1.0, steepest=math.inf)


@dataclass(kw_only=True, eq=False)
class DataProblem(Sharded):
    """``f_i(x) = mean over worker i's samples of loss(a'x, y) + regulariser(x)``, ``f = mean_i f_i`` (every worker weighs the same).

    Parameters: see :class:`~verify_rates.problems.sharded.Sharded`.
    """

    loss: ClassVar[Loss]
    bounded: ClassVar[bool] = False  # the regulariser is lam sum x^2/(1+x^2) instead of lam/2 ||x||^2

    def _targets(self, found: Dataset) -> np.ndarray:
        return found.y if self.loss is SQUARES else found.signs()

    # --- loss and regulariser -----------------------------------------------------------------------------------------

    def _losses(self, z: np.ndarray) -> np.ndarray:
        if self.loss is LOGISTIC:
            return np.logaddexp(0.0, -self.y * z)
        return (np.maximum(1 - self.y * z, 0.0) if self.loss is SQUARED_HINGE else z - self.y) ** 2 / 2

    def _slopes(self, z: Any, y: Any, xp: Any) -> Any:
        if self.loss is LOGISTIC:
            return -y / (1.0 + xp.exp(xp.clip(y * z, None, 700.0)))
        return -y * xp.clip(1 - y * z, 0.0, None) if self.loss is SQUARED_HINGE else z - y

    def _curves(self, z: np.ndarray) -> np.ndarray:
        s = self._slopes(z, self.y, np)
        if self.loss is LOGISTIC:
            return np.abs(s) * (1 - np.abs(s))
        return (s != 0).astype(float) if self.loss is SQUARED_HINGE else np.ones_like(z)

    def _penalty(self, x: np.ndarray) -> float:
        return self.lam * float(np.sum(x**2 / (1 + x**2)) if self.bounded else x @ x / 2)

    def _penalty_grad(self, x: Any) -> Any:
        return 2 * self.lam * x / (1 + x**2) ** 2 if self.bounded else self.lam * x

    def value(self, x: np.ndarray) -> float:
        """``f(x)``."""
        x = host(x)
        return float(self._weights @ self._losses(self.A @ x)) + self._penalty(x)

    # --- gradients ----------------------------------------------------------------------------------------------------

    @cached_property
    def _converted(self) -> dict[tuple[str, bool], list[tuple[Any, Any]]]:
        return {}

    def _parts(self, xp: Any, dense: bool) -> list[tuple[Any, Any]]:
        """Per worker (samples, targets) as arrays of ``xp``, made once; other libraries than NumPy get dense ones."""
        key = (xp.__name__, dense)
        if key not in self._converted:
            A = self.A.toarray() if dense and not isinstance(self.A, np.ndarray) else self.A
            own = [self._own(i) for i in range(self.n)]
            self._converted[key] = [(A[s] if xp is np else xp.asarray(A[s]), xp.asarray(self.y[s])) for s in own]
        return self._converted[key]

    def _sums(self, x: Any, parts: list[tuple[Any, Any]], xp: Any) -> Any:
        """Gradients of the mean losses alone."""

        def one(i: int, A: Any, y: Any) -> Any:
            own = x if x.ndim == 1 else x[i, :]
            return (self._slopes(A @ own, y, xp) / y.shape[0]) @ A

        return xp.stack([one(i, A, y) for i, (A, y) in enumerate(parts)])

    def _full(self, x: Any, xp: Any) -> Any:
        return self._sums(x, self._parts(xp, xp is not np), xp) + self._penalty_grad(x)

    def _sampled(self, x: Any, gens: list[np.random.Generator], xp: Any) -> Any:
        def drawn(A: Any, y: Any, gen: np.random.Generator) -> tuple[Any, Any]:
            rows = (gen.random(self.batch) * y.shape[0]).astype(np.int64)
            return (A[rows], y[rows]) if xp is np else (xp.take(A, xp.asarray(rows), axis=0), xp.take(y, xp.asarray(rows)))

        parts = self._parts(xp, xp is not np or self.A.shape[0] * self.d <= DENSE_ROWS)
        return self._sums(x, [drawn(A, y, gen) for (A, y), gen in zip(parts, gens, strict=True)], xp) + self._penalty_grad(x)

    def _data(self) -> dict[str, np.ndarray]:
        shared = {"y": self.y, "offsets": self.offsets, "params": np.array([self.loss.code, float(self.bounded), self.lam])}
        if isinstance(self.A, np.ndarray):
            return {"rows": self.A, **shared}
        columns = "cols8" if self.binary and self.d <= 256 else "cols"
        values = {} if self.binary else {"vals": self.A.data}
        return {"indptr": self.A.indptr, columns: self.A.indices, **values, **shared}

    def _kernels(self) -> tuple[Any, Any]:
        from verify_rates.problems import kernels

        if isinstance(self.A, np.ndarray):
            return kernels.glm_dense, kernels.glm_dense_value
        if self.binary and self.d <= 256:
            return kernels.glm_binary8, kernels.glm_binary8_value
        return kernels.glm_sparse, kernels.glm_sparse_value

    # --- constants ----------------------------------------------------------------------------------------------------

    def _constants(self) -> Constants:
        """Proved bounds; at the minimiser the rounding errors and the distance to it are added.

        L is ``curvature * lambda_max(sum_r w_r a_r a_r')`` plus the regulariser's (lam, or 2 lam for the bounded one, whose second
        derivative ``2 lam (1-3x^2)/(1+x^2)^3`` lies in [-lam/2, 2 lam]); mu is the regulariser's, plus for squares the smallest eigenvalue.
        """
        own = [_normalised(self.A[self._own(i)]) for i in range(self.n)]
        norms = [gram_norm(A, w) for A, w in own]
        L_max = self._smoothness(max(norms))
        constants = Constants(
            L=min(L_max, self._smoothness(gram_norm(self.A, self._weights))),
            L_max=L_max,
            mu=self._convexity(self.A, self._weights),
            mu_min=min(self._convexity(A, w) for A, w in own),
            sigma2_star=None,
            sigma2_sup=self._noise_sup(),
            zeta2_star=0.0 if self._alike else None,
            zeta2_sup=self._spread_sup(norms),
            f_star=(0.0, math.inf),
            x_star=None,
            convex=not self.bounded or self.lam == 0,
        )
        return self._at_minimum(constants)

    @property
    def _alike(self) -> bool:
        """Have all workers the same function?"""
        return self.n == 1 or self.shards == "copies"

    def _smoothness(self, norm: float) -> float:
        return up(self.loss.curvature * norm + (2 if self.bounded else 1) * self.lam) if norm or self.lam else 0.0

    def _convexity(self, A: Any, weights: np.ndarray) -> float:
        if self.bounded:
            return -self.lam / 2
        if self.loss is not SQUARES or self.d > DENSE_HESSIAN:
            return self.lam
        G, error = gram(A, weights)
        return max(self.lam, down(self.lam + max(0.0, down(smallest_eigenvalue(G) - error))))

    @cached_property
    def _row_norms2(self) -> np.ndarray:
        square = self.A**2 if isinstance(self.A, np.ndarray) else self.A.power(2)
        return np.asarray(square.sum(axis=1)).ravel() * (1 + gamma(self.d + 2))

    def _noise_sup(self) -> float:
        if np.all(self._sizes == 1) or self.batch is None:
            return 0.0
        if math.isinf(self.loss.steepest):
            return math.inf
        largest = max(float(self._row_norms2[self._own(i)].mean()) for i in range(self.n))
        return up(largest * (1 + gamma(int(self._sizes.max()) + 2)) / self.batch)

    def _spread_sup(self, norms: list[float]) -> float:
        """``mean_i ||grad f_i - grad f||^2 <= mean_i ||A_i's/m_i||^2`` with slopes s in [-1, 1].

        Each is at most ``(mean ||a||)^2``, and at most the norm of ``A_i'A_i/m_i`` because ``||s||^2 <= m_i``.
        """
        if self._alike:
            return 0.0
        if math.isinf(self.loss.steepest):
            return math.inf
        lengths = [float(np.sqrt(self._row_norms2[self._own(i)]).mean()) for i in range(self.n)]
        bounds = [min(length**2 * (1 + gamma(int(m) + 4)), norm) for length, m, norm in zip(lengths, self._sizes, norms, strict=True)]
        return up(math.fsum(bounds) / self.n * (1 + 4 * U))

    def _at_minimum(self, c: Constants) -> Constants:
        if c.mu <= 0:
            x = self._descend()
            return c._replace(f_star=(0.0, self._value_bounds(x)[1]))
        x = self._minimiser()
        low, high = self._value_bounds(x)
        error = self._grad_errors(x)
        norm = float(np.linalg.norm(self._full(x, np).mean(axis=0))) + float(error.mean()) * (1 + gamma(self.n + self.d))
        norm = up(norm * (1 + gamma(self.n + self.d + 2)))
        away = up(norm / c.mu)  # ||x - x*|| at most
        return c._replace(
            f_star=(max(0.0, down(low - up(norm * away / 2, 2))), high),
            x_star=x,
            zeta2_star=self._spread_at(x, error, away * c.L_max),
            sigma2_star=self._noise_at(x, away),
        )

    def _spread_at(self, x: np.ndarray, error: np.ndarray, drift: float) -> float:
        if self._alike:
            return 0.0
        lengths = np.linalg.norm(self._full(x, np), axis=1) * (1 + gamma(self.d + 2)) + error + drift
        return up(float(np.mean(lengths**2)) * (1 + gamma(self.n + 4)))

    def _noise_at(self, x: np.ndarray, away: float) -> float:
        """``mean_i Var_i / batch`` by enumeration.

        Its square root moves with x by at most the root mean square of the samples' own L.
        """
        if self.batch is None:
            return 0.0
        slopes2 = self._slopes(self.A @ x, self.y, np) ** 2
        pull = self._sums(x, self._parts(np, False), np)
        total = 0.0
        for i in range(self.n):
            second = float(np.mean(slopes2[self._own(i)] * self._row_norms2[self._own(i)]))
            slack = (gamma(int(self._sizes[i]) + 2 * self.d + 8) + LIBM) * 4 * second
            total += max(0.0, second - float(pull[i] @ pull[i])) + slack if self._sizes[i] > 1 else 0.0
        moves = float(self._weights @ (self.loss.curvature * self._row_norms2) ** 2)
        z_error = self._margin_errors(x)  # moves every slope a little, as x does
        drift = away * math.sqrt(moves) + math.sqrt(float(self._weights @ (self.loss.curvature * z_error) ** 2 * self._row_norms2.max()))
        return up((math.sqrt(total / self.n) + drift) ** 2 / self.batch * (1 + gamma(len(self.y) + 16)), 4)

    # --- rounding errors of the evaluations above -----------------------------------------------------------------------

    def _margin_errors(self, x: np.ndarray) -> np.ndarray:
        return gamma(self.d + 2) * (abs(self.A) @ np.abs(x)) * (1 + gamma(self.d + 2))

    def _value_bounds(self, x: np.ndarray) -> tuple[float, float]:
        """An interval that contains the exact ``f(x)``."""
        z = self.A @ x
        losses = self._losses(z)
        steep = np.minimum(self.loss.steepest, np.abs(self._slopes(z, self.y, np)) + self._margin_errors(x))
        penalty = self._penalty(x)
        value = math.fsum(self._weights * losses) + penalty
        error = (
            float(self._weights @ (steep * self._margin_errors(x) + LIBM * losses)) + (LIBM + gamma(self.d + 4)) * penalty + 4 * U * value
        )
        error = up(error * (1 + gamma(len(z) + 4)))
        return down(value - error), up(value + error)

    def _grad_errors(self, x: np.ndarray) -> np.ndarray:
        """(n,) bounds on the errors of the computed gradients of the workers."""
        z = self.A @ x
        slopes = np.abs(self._slopes(z, self.y, np))
        grown = gamma(int(self._sizes.max()) + 4) + LIBM
        rows = (self.loss.curvature * self._margin_errors(x) + grown * slopes) * np.sqrt(self._row_norms2)
        sums = np.array([rows[self._own(i)].mean() for i in range(self.n)])
        return (sums + 8 * U * float(np.linalg.norm(self._full(x, np), axis=1).max() + 2 * self.lam * np.linalg.norm(x))) * (
            1 + gamma(len(z))
        )

    # --- minimisers ---------------------------------------------------------------------------------------------------

    def _mean_grad(self, x: np.ndarray) -> np.ndarray:
        return (self._weights * self._slopes(self.A @ x, self.y, np)) @ self.A + self._penalty_grad(x)

    def _minimiser(self) -> np.ndarray:
        return newton(self.value, self._mean_grad, self._newton_step, np.zeros(self.d))

    def _newton_step(self, x: np.ndarray, g: np.ndarray) -> np.ndarray:
        weights = self._weights * self._curves(self.A @ x)
        if self.d <= DENSE_HESSIAN:
            from scipy.linalg import solve

            return solve(gram(self.A, weights)[0] + self.lam * np.eye(self.d), g, assume_a="pos")
        from scipy.sparse.linalg import LinearOperator, cg

        product = LinearOperator((self.d, self.d), lambda v: (weights * (self.A @ v)) @ self.A + self.lam * v, dtype=np.float64)
        return cg(product, g, rtol=1e-10, maxiter=5000)[0]

    def _descend(self) -> np.ndarray:
        """A good point, where no minimiser is known: it makes the upper end of f*."""
        from scipy.optimize import minimize

        return minimize(self.value, np.zeros(self.d), jac=self._mean_grad, method="L-BFGS-B", options={"maxiter": 2000, "gtol": 1e-9}).x


def _normalised(A: Any) -> tuple[Any, np.ndarray]:
    return A, np.full(A.shape[0], 1.0 / A.shape[0])


@dataclass(kw_only=True, eq=False)
class Ridge(DataProblem):
    """Ridge regression, ``mean (a'x - y)^2/2 + lam/2 ||x||^2``.

    mu is lam plus a proved lower bound on the smallest eigenvalue of the samples' second moments.  Suprema over x of noise and
    heterogeneity are infinite.  Parameters: see :class:`DataProblem`; targets are used as given.

    >>> f = Ridge(data=([[1.0], [3.0]], [1.0, 3.0]), n=2, lam=1.0)
    >>> bool(abs(f.constants.L - 6.0) < 1e-12), f.constants.zeta2_sup
    (True, inf)
    """

    name: ClassVar[str] = "ridge"
    loss: ClassVar[Loss] = SQUARES


@dataclass(kw_only=True, eq=False)
class Logistic(DataProblem):
    """Logistic regression, ``mean log(1 + exp(-y a'x)) + lam/2 ||x||^2``.

    ``L <= lambda_max/4 + lam`` proved, ``mu = lam`` exactly.  With lam = 0 a minimiser need not exist: f* is then the interval
    [0, best value found] and the constants at x* are unknown.  Parameters: see :class:`DataProblem`; labels become +-1.

    >>> f = Logistic(data="breast_cancer", n=4, lam=0.01)
    >>> f.constants.mu
    0.01
    """

    name: ClassVar[str] = "logistic"
    loss: ClassVar[Loss] = LOGISTIC


@dataclass(kw_only=True, eq=False)
class NonconvexLogistic(DataProblem):
    """Logistic regression with the bounded regulariser ``lam sum_j x_j^2/(1 + x_j^2)``.

    ``L <= lambda_max/4 + 2 lam`` and ``mu = -lam/2`` proved; f* is the interval [0, best value found], x* is unknown.
    Parameters: see :class:`DataProblem`.

    >>> NonconvexLogistic(data="breast_cancer", n=2, lam=0.1).constants.mu
    -0.05
    """

    name: ClassVar[str] = "nonconvex_logistic"
    loss: ClassVar[Loss] = LOGISTIC
    bounded: ClassVar[bool] = True


@dataclass(kw_only=True, eq=False)
class SupportVectorMachine(DataProblem):
    """The support vector machine with squared hinge loss, ``mean max(0, 1 - y a'x)^2/2 + lam/2 ||x||^2``.

    ``L <= lambda_max + lam`` proved (attained at 0, where every sample is inside the margin), ``mu = lam`` exactly.  The gradient is
    Lipschitz but has kinks.  Parameters: see :class:`DataProblem`; labels become +-1.

    >>> SupportVectorMachine(data=([[1.0], [-3.0]], [0, 1]), n=2, lam=0.5).constants.mu
    0.5
    """

    name: ClassVar[str] = "svm"
    loss: ClassVar[Loss] = SQUARED_HINGE
