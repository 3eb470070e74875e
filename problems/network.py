"""A two-layer network for classification, its gradients by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from verify_rates.problems.base import host, number
from verify_rates.problems.data import Dataset
from verify_rates.problems.local import Curvature, LocallySmooth, squares_up
from verify_rates.problems.rounding import gamma, up
from verify_rates.problems.sharded import Sharded
from verify_rates.solvers.method import UsageError
from verify_rates.solvers.oracle import Constants

BEND = 4 / (3 * math.sqrt(3)) * (1 + 2.0**-50)  # |tanh''| is at most this
MOST_CLASSES = 100


@dataclass(kw_only=True, eq=False)
class Network(Sharded, LocallySmooth):
    """``f_i(x) = mean cross-entropy(W2 [tanh(W1 [a; 1]); 1], label) + lam/2 ||w||^2``, with the weights ``w = w_0 + x``.

    ``w_0`` is a random start, so that x = 0 is no saddle; x is W1 (hidden x features + 1), then W2 (classes x hidden + 1), row by row.

    Guarantee: no global L exists.  For ``||x|| <= r``, with ``R = r + ||w_0||`` and ``A = ||[a; 1]||``, the Hessian of a sample's loss is
    ``J'HJ + sum_k l_k Hess(o_k)`` with ``0 <= H <= 1/2``, ``||l|| <= sqrt 2``, ``||J||^2 <= R^2 A^2 + hidden + 1`` and
    ``||sum_k l_k Hess(o_k)|| <= sqrt 2 (A + c R A^2)``, ``c = 4/(3 sqrt 3) >= |tanh''|``; means over a worker's samples follow.  f* lies
    between 0 and the best value found; x* is unknown.  Suprema over x of noise (batches) and heterogeneity are infinite.

    Parameters
    ----------
    hidden : units.
    initial : deviation of ``w_0``, over the square root of a layer's inputs; at least 0 (0: a saddle at x = 0).
    others : see :class:`~verify_rates.problems.sharded.Sharded`; labels may be any values, 2 to 100 of them, and are sorted.

    Errors: UsageError where an option is out of range or the labels are too many.

    >>> f = Network(n=2, hidden=3, samples=40)
    >>> f.d, f.constants.L, f.value(f.start) > f.constants.f_star[1] > 0
    (235, inf, True)
    """

    name: ClassVar[str] = "network"
    data: Any = "digits10"
    shards: str = "label"
    hidden: int = 8
    initial: float = 1.0

    def _targets(self, found: Dataset) -> np.ndarray:
        values, places = np.unique(found.y, return_inverse=True)
        if not 2 <= len(values) <= MOST_CLASSES:
            raise UsageError(f"a network needs 2 to {MOST_CLASSES} labels, but {found.name} has {len(values)}.")
        self.classes = len(values)
        return places.astype(float)

    def _prepare(self) -> None:
        self.hidden = number("hidden", self.hidden, 1, whole=True)
        self.initial = number("initial", self.initial, 0)
        self.A = self.A if isinstance(self.A, np.ndarray) else self.A.toarray()
        self.features_in = self.A.shape[1]
        first, second = self.hidden * (self.features_in + 1), self.classes * (self.hidden + 1)
        self.d = first + second
        scales = np.repeat([1 / math.sqrt(self.features_in + 1), 1 / math.sqrt(self.hidden + 1)], [first, second])
        self._origin = self.initial * scales * np.random.default_rng([self.seed, 20]).standard_normal(self.d)

    def _layers(self, w: Any, xp: Any) -> tuple[Any, Any]:
        cut = self.hidden * (self.features_in + 1)
        return xp.reshape(w[:cut], (self.hidden, self.features_in + 1)), xp.reshape(w[cut:], (self.classes, self.hidden + 1))

    def _forward(self, A: Any, w: Any, xp: Any) -> tuple[Any, Any]:
        """Hidden units (m, hidden) and logits (m, classes)."""
        first, second = self._layers(w, xp)
        H = xp.tanh(xp.matmul(A, first[:, :-1].T) + first[:, -1])
        return H, xp.matmul(H, second[:, :-1].T) + second[:, -1]

    def value(self, x: np.ndarray) -> float:
        """``f(x)``."""
        w = self._origin + host(x)
        logits = self._forward(self.A, w, np)[1]
        top = logits.max(axis=1)
        losses = top + np.log(np.sum(np.exp(logits - top[:, None]), axis=1)) - logits[np.arange(len(top)), self.y.astype(int)]
        return float(self._weights @ losses) + self.lam * float(w @ w) / 2

    @cached_property
    def _marked(self) -> np.ndarray:
        """One-hot labels."""
        return np.eye(self.classes)[self.y.astype(int)]

    def _one(self, A: Any, marks: Any, w: Any, xp: Any) -> Any:
        """Gradient of the mean loss of these samples, by the chain rule backwards."""
        H, logits = self._forward(A, w, xp)
        shares = xp.exp(logits - xp.max(logits, axis=1, keepdims=True))
        slopes = (shares / xp.sum(shares, axis=1, keepdims=True) - marks) / A.shape[0]
        inner = xp.matmul(slopes, self._layers(w, xp)[1][:, :-1]) * (1 - H * H)
        parts = [xp.concat([xp.matmul(s.T, v), xp.sum(s, axis=0)[:, None]], axis=1) for s, v in ((inner, A), (slopes, H))]
        return xp.concat([xp.reshape(part, (-1,)) for part in parts])

    def _gradients(self, rows: list[Any], x: Any, xp: Any) -> Any:
        W = xp.asarray(self._origin) + x
        own = [W if W.ndim == 1 else W[i, :] for i in range(self.n)]
        found = [self._one(xp.asarray(self.A[r]), xp.asarray(self._marked[r]), w, xp) for r, w in zip(rows, own, strict=True)]
        return xp.stack(found) + self.lam * W

    def _full(self, x: Any, xp: Any) -> Any:
        return self._gradients([self._own(i) for i in range(self.n)], x, xp)

    def _sampled(self, x: Any, gens: list[np.random.Generator], xp: Any) -> Any:
        sizes = zip(gens, self.offsets[:-1], self._sizes, strict=True)
        return self._gradients([first + (gen.random(self.batch) * m).astype(np.int64) for gen, first, m in sizes], x, xp)

    def _within(self, reach: float) -> Curvature:
        R = up(reach + float(np.linalg.norm(self._origin)) * (1 + gamma(self.d + 4)), 2)
        A2 = squares_up(self.A) + 1.0
        bent = math.sqrt(2) * (np.sqrt(A2) + BEND * R * A2)
        high = (R**2 * A2 + self.hidden + 1) / 2 + bent
        grown = 1 + gamma(len(A2) + 32)
        uppers, lowers = ([float(v[self._own(i)].mean()) * grown for i in range(self.n)] for v in (high, bent))
        return Curvature(
            up(math.fsum(uppers) / self.n + self.lam, 4),
            up(max(uppers) + self.lam, 2),
            -up(math.fsum(lowers) / self.n - self.lam, 4),
            -up(max(lowers) - self.lam, 2),
        )

    def _constants(self) -> Constants:
        alike = self.n == 1 or self.shards == "copies"
        quiet = self.batch is None or bool(np.all(self._sizes == 1))
        return Constants(
            L=math.inf,
            L_max=math.inf,
            mu=-math.inf,
            mu_min=-math.inf,
            sigma2_star=0.0 if quiet else None,
            sigma2_sup=0.0 if quiet else math.inf,
            zeta2_star=0.0 if alike else None,
            zeta2_sup=0.0 if alike else math.inf,
            f_star=(0.0, self._found()),
            x_star=None,
            convex=False,
        )

    def _found(self) -> float:
        """The best value that some steps found, rounded up by what the layers can lose."""
        from scipy.optimize import minimize

        def gradient(x: np.ndarray) -> np.ndarray:
            w = self._origin + x
            H, logits = self._forward(self.A, w, np)
            shares = np.exp(logits - logits.max(axis=1, keepdims=True))
            slopes = (shares / shares.sum(axis=1, keepdims=True) - self._marked) * self._weights[:, None]
            inner = slopes @ self._layers(w, np)[1][:, :-1] * (1 - H * H)
            parts = [np.hstack([s.T @ v, s.sum(axis=0)[:, None]]) for s, v in ((inner, self.A), (slopes, H))]
            return np.concatenate([part.ravel() for part in parts]) + self.lam * w

        x = minimize(self.value, np.zeros(self.d), jac=gradient, method="L-BFGS-B", options={"maxiter": 200}).x
        w, value = np.abs(self._origin + x), self.value(x)
        first, second = self._layers(w, np)
        inner = np.abs(self.A) @ first[:, :-1].T + first[:, -1]  # logits move by at most this, through slopes of tanh of at most 1
        size = float(np.max((inner + 1) @ second[:, :-1].T + second[:, -1]))
        return up(value + gamma(self.features_in + self.hidden + self.classes + len(self.y) + 64) * 2 * (1 + value + 2 * size))

    def _data(self) -> dict[str, np.ndarray]:
        return {
            "rows": self.A,
            "y": self.y,
            "offsets": self.offsets,
            "vectors": self._origin[None, :],
            "params": np.array([self.lam, float(self.hidden), float(self.classes)]),
        }

    def _kernels(self) -> tuple[Any, Any]:
        from verify_rates.problems import nonconvex_kernels

        return nonconvex_kernels.network, nonconvex_kernels.network_value
