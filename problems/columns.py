"""Problems whose columns are dealt to machines, as CoCoA solves them: duals of ridge and support vector machines, and the lasso."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from verify_rates.solvers.method import UsageError, nearest

KINDS = ("ridge", "elastic_net", "box_lasso", "svm_dual", "squared_hinge_dual", "ridge_dual")
RANK_RTOL = 1e-12  # singular values below count as 0


@dataclass(frozen=True, eq=False)
class Columns:
    """``min_a f(A a) + sum_i g_i(a_i)``, ``f(v) = ||v - b||^2/(2 tau)``, ``g_i(z) = mu z^2/2 + l1 |z| - c_i z`` on [low, high].

    f is (1/tau)-smooth.  Ridge and support vector machines have duals of this form, the lasso is of this form itself.

    Attributes
    ----------
    A : (m, N) columns x_i; b : (m,); c : (N,) linear part of g_i.
    tau, mu, l1, low, high : see above; tau > 0, mu >= 0, l1 >= 0, low <= 0 <= high, and a bounded box where mu = 0.
    parts : the columns of every machine, a partition of 0..N-1.

    Errors: UsageError where these do not hold.

    >>> made = instance("squared_hinge_dual", K=2, per=3, m=4, seed=0)
    >>> made.gap(np.zeros(6)) > 0
    True
    """

    A: np.ndarray
    b: np.ndarray
    c: np.ndarray
    tau: float
    mu: float
    l1: float
    low: float
    high: float
    parts: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if sorted(itertools.chain(*self.parts)) != list(range(self.A.shape[1])):
            raise UsageError(f"parts must hold every column 0..{self.A.shape[1] - 1} exactly once.")
        if not (self.tau > 0 and self.mu >= 0 and self.l1 >= 0 and self.low <= 0 <= self.high):
            raise UsageError("an instance needs tau > 0, mu >= 0, l1 >= 0 and low <= 0 <= high.")
        if self.mu == 0 and not np.isfinite(self.low * self.high):
            raise UsageError("without mu > 0 the columns need a bounded box, else the gap is infinite.")

    @cached_property
    def norms2(self) -> np.ndarray:
        return np.sum(self.A**2, axis=0)

    def w(self, v: np.ndarray) -> np.ndarray:
        """grad f."""
        return (v - self.b) / self.tau

    def g(self, a: np.ndarray) -> np.ndarray:
        return self.mu * a**2 / 2 + self.l1 * np.abs(a) - self.c * a

    def primal(self, a: np.ndarray) -> float:
        """O_A(a)."""
        return float(np.sum((self.A @ a - self.b) ** 2) / (2 * self.tau) + np.sum(self.g(a)))

    def dual_point(self, w: np.ndarray) -> np.ndarray:
        """u_i, a maximiser of ``-x_i'w z - g_i(z)``: a subgradient of g_i* at -x_i'w."""
        slope = self.c - self.A.T @ w
        beyond = np.sign(slope) * np.maximum(np.abs(slope) - self.l1, 0.0)
        if self.mu > 0:
            return np.clip(beyond / self.mu, self.low, self.high)
        return np.where(beyond > 0, self.high, np.where(beyond < 0, self.low, 0.0))

    def gap(self, a: np.ndarray) -> float:
        """O_A(a) + O_B(w(a)), which is never below the suboptimality of a."""
        w = self.w(self.A @ a)
        u = self.dual_point(w)
        conjugates = float(np.sum(-(self.A.T @ w) * u - self.g(u)))
        return self.primal(a) + self.tau * float(w @ w) / 2 + float(self.b @ w) + conjugates

    def sigma(self) -> tuple[float, float]:
        """``(sigma_max, sum_k sigma_k n_k)`` from the largest singular values of the machines' columns."""
        each = [float(np.linalg.norm(self.A[:, list(p)], 2) ** 2) for p in self.parts]
        return max(each), sum(s * len(p) for s, p in zip(each, self.parts, strict=True))

    def least_sigma(self) -> float:
        """``max_a ||A a||^2 / sum_k ||A_k a_k||^2``, by orthonormal bases of the machines' column spaces."""
        bases = []
        for p in self.parts:
            U, S, _ = np.linalg.svd(self.A[:, list(p)], full_matrices=False)
            bases.append(U[:, : int(np.sum(S[0] * RANK_RTOL < S))])
        return float(np.linalg.norm(np.hstack(bases), 2) ** 2)

    def entry(self, i: int, a_i: float, slope: float, curvature: float) -> float:
        """The minimiser of ``slope z + curvature/2 (z - a_i)^2 + g_i(z)``."""
        centre = curvature * a_i - slope + self.c[i]
        beyond = math.copysign(max(abs(centre) - self.l1, 0.0), centre)
        return min(max(beyond / (curvature + self.mu), self.low), self.high)


def instance(kind: str, K: int, per: int, m: int, seed: int, mu: float = 0.3) -> Columns:
    """A small random instance: K machines of ``per`` columns in R^m; the duals are those of N = K*per samples with lam = mu.

    The primal problems of the duals are ``(1/N) sum loss(x_i'w, y_i) + lam/2 ||w||^2``, with the hinge, its square (halved) or the square
    (halved) as loss.

    Errors: UsageError for an unknown kind, with the nearest.

    >>> instance("ridge", K=2, per=3, m=4, seed=0).A.shape
    (4, 6)
    """
    if kind not in KINDS:
        raise nearest(kind, KINDS, "instance of CoCoA")
    rng, N = np.random.default_rng([seed, K, per, m]), K * per
    X, y = rng.normal(size=(m, N)), np.where(rng.random(N) < 0.5, -1.0, 1.0)
    parts = tuple(tuple(range(k * per, (k + 1) * per)) for k in range(K))
    nothing, b = np.zeros(N), rng.normal(size=m) * 2
    dual: dict[str, Any] = {"b": np.zeros(m), "tau": 1 / mu, "l1": 0.0, "parts": parts}
    if kind == "svm_dual":
        return Columns(X * y / (mu * N), c=np.full(N, 1 / N), mu=0.0, low=0.0, high=1.0, **dual)
    if kind == "squared_hinge_dual":
        return Columns(X * y / (mu * N), c=np.full(N, 1 / N), mu=1 / N, low=0.0, high=math.inf, **dual)
    if kind == "ridge_dual":
        return Columns(X / (mu * N), c=rng.normal(size=N) / N, mu=1 / N, low=-math.inf, high=math.inf, **dual)
    if kind == "box_lasso":
        return Columns(X, b, nothing, 1.0, 0.0, 0.1, -0.7, 0.7, parts)
    return Columns(X, b, nothing, 1.0, mu, 0.4 if kind == "elastic_net" else 0.0, -math.inf, math.inf, parts)
