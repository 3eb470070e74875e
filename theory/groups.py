"""EF21 with groups of workers of different smoothness: :func:`ef21_groups`.

Worker i's function has curvatures between mu_j and L_j, j its group, and any minimiser; every worker compresses with the same delta.  One
step speaks of ``g_i = grad f_i(x)``, the estimates ``d_i``, and both after the step; ``x+ - x = -gamma mean d``.  Inside a group vectors
are mean plus deviation, the step moves no deviation, so that the program has three mean vectors and three deviations a group, however many
workers there are.  ``V`` is a quadratic form of the mean gradient and the groups' mean errors ``g - d``, plus a multiple of the deviations.

Upper end: V with multipliers of the interpolation and compressor inequalities, verified.  Lower end: linear instances in the plane, where
worker i's gradient turns and scales displacements by a number lambda_i of the disc with diameter [mu_j, L_j] and its compressor by a number
c_i with ``|1 - c_i|^2 = 1 - delta``: they satisfy the inequalities of every step, and the largest squared spectral radius bounds every V.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verify_rates.solvers.method import UsageError
from verify_rates.theory.told import Told
from verify_rates.theory.worst_case.bounds import ROUNDING

# The upper end is looked for this much above the lower one, relatively; the first that a verified V proves.
ABOVE = (1e-6, 3e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)
OPTIONS = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
STARTS = 10  # of the search for the worst angles
KEYS = ("L", "mu", "n")


@dataclass(frozen=True)
class Groups(Told):
    """The contraction factor of EF21 per step over groups of workers.

    Attributes
    ----------
    lower, upper : ``V(after) <= upper V(before)`` for the V found, verified in double precision (inf: none found); no quadratic V proves
        less than ``lower`` from the inequalities between one point and the next, on which this V rests.
    """

    lower: float
    upper: float
    seconds: float
    statement: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain data; infinities are None."""
        ends = {k: v if math.isfinite(v) else None for k, v in (("lower", self.lower), ("upper", self.upper))}
        return {**ends, "seconds": self.seconds, "statement": self.statement}

    def __str__(self) -> str:
        return f"contraction per step in [{self.lower:.9g}, {self.upper:.9g}] (EF21, groups {self.statement['groups']})"


def ef21_groups(groups: Sequence[dict[str, Any]], gamma: float, delta: float) -> Groups:
    """The contraction of EF21 where workers differ by group; the cost does not depend on how many workers a group has.

    Parameters
    ----------
    groups : as ``[{"n": 3, "L": 1, "mu": 0.1}, {"n": 5, "L": 10, "mu": 1}]``.
    gamma : step size; delta : the compressors' contraction constant, below 1.

    Errors
    ------
    UsageError on bad input.

    Example
    -------
    >>> found = ef21_groups([{"n": 2, "L": 1, "mu": 0.1}], gamma=2 / 1.1 / 3, delta=0.75)
    >>> abs(found.upper - 0.8848082906) < 1e-6
    True
    """
    began = time.perf_counter()
    given = [_group(g) for g in groups]
    if not given or not 0 < delta < 1 or not 0 < gamma < math.inf:
        raise UsageError("EF21 over groups needs at least one group, 0 < delta < 1 and a finite step size gamma > 0.")
    lower = _lower(given, float(gamma), 1 - float(delta))
    rates = (lower * (1 + above) for above in ABOVE)
    upper = next((rho for rho in rates if _proved(given, float(gamma), 1 - float(delta), rho)), math.inf)
    statement = {"method": "ef21", "groups": [dict(zip(("n", "L", "mu"), g, strict=True)) for g in given], "gamma": gamma, "delta": delta}
    return Groups(lower, upper, time.perf_counter() - began, statement)


def ef21_cubic(gamma: float, L: float, mu: float, deltas: tuple[float, float]) -> float:
    """The contraction of EF21 on two workers whose compressors differ, by quadratics of one curvature: the root of a cubic.

    Mathematics: on ``f = lam x^2/2`` with compressors that overshoot by ``s_i = sqrt(1-delta_i)`` a step has the characteristic polynomial
    ``(z-1)(z+s_1)(z+s_2) + gamma lam ((z+s_1)(z+s_2) + (z-1)(s_1 (z+s_2) + s_2 (z+s_1))/2)``; the factor is the largest ``|z|^2`` over
    lam = mu and lam = L.  For ``s_1 = s_2`` it is the rate of Berg Thomsen, Taylor and Dieuleveut, at their step.

    Source: derived.  Guarantee: no V contracts faster, at any step size.  ``contraction`` proves it to 1e-6 except within two per cent
    of the best step, where other instances are worse by less than 0.3 % (docs/exact_tables.md).

    Errors: UsageError where not 0 < mu <= L, 0 < delta <= 1 and gamma > 0 are finite.

    >>> s, step = 0.5, 2 / 1.1 / 3
    >>> round(ef21_cubic(step, 1.0, 0.1, (0.75, 0.75)), 9)
    0.884808291
    """
    numbers = (gamma, L, mu, *deltas)
    if not (len(deltas) == 2 and all(map(math.isfinite, numbers)) and gamma > 0 and 0 < mu <= L and all(0 < d <= 1 for d in deltas)):
        raise UsageError("ef21_cubic takes finite gamma > 0, 0 < mu <= L and two deltas in (0, 1].")
    one, first, second = (np.poly1d([1.0, c]) for c in (-1.0, *(math.sqrt(1 - d) for d in deltas)))
    sent = (first(0) * second + second(0) * first) / 2
    return max(float(np.abs((one * first * second + gamma * lam * (first * second + one * sent)).roots).max() ** 2) for lam in (mu, L))


def _group(g: dict[str, Any]) -> tuple[int, float, float]:
    if set(g) != set(KEYS):
        raise UsageError(f"a group has {', '.join(KEYS)}, not {', '.join(sorted(map(str, g)))}.")
    n, L, mu = g["n"], float(g["L"]), float(g["mu"])
    if isinstance(n, bool) or not isinstance(n, int) or n < 1 or not 0 < mu < L < math.inf:
        raise UsageError(f"a group needs a whole number n >= 1 and 0 < mu < L < inf, not n = {n!r}, mu = {mu:g}, L = {L:g}.")
    return n, L, mu


def _pair(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    return (np.outer(u, v) + np.outer(v, u)) / 2


def _square(u: np.ndarray) -> np.ndarray:
    return np.outer(u, u)


class _Step:
    """One step in arrays: features before and after, the inequalities of means (>= 0), and the same of every group's deviations."""

    def __init__(self, groups: list[tuple[int, float, float]], gamma: float, eps: float) -> None:
        k, total = len(groups), sum(n for n, *_ in groups)
        mean, *rest = np.eye(3 * k + 1)  # the mean gradient; then of every group g - d, the change of g, and g - d after
        e, change, left = np.array(rest).reshape(3, k, 3 * k + 1)
        share = np.array([n / total for n, *_ in groups])
        scale = max(L for _, L, _ in groups)
        dx = -gamma * scale * (mean - share @ e)  # positions in units of 1/scale
        self.before, self.after = np.vstack([mean, e]), np.vstack([mean + share @ change, left])
        self.smooth = [_pair(change[j] - m / scale * dx, L / scale * dx - change[j]) for j, (_, L, m) in enumerate(groups)]
        self.sent = [eps * _square(e[j] + change[j]) - _square(left[j]) for j in range(k)]
        e, change, left = np.eye(3)  # deviations of g - d, of G - g, and of G - D
        self.dev_before, self.dev_after, self.dev_smooth = _square(e), _square(left), -_square(change)
        self.dev_sent = eps * _square(e + change) - _square(left)
        self.several = [j for j, (n, *_) in enumerate(groups) if n > 1]

    def slacks(self, rho: Any, P: Any, p: Any, lam: Any, nu: Any) -> list[Any]:
        """The matrices that must be semidefinite."""
        k = len(self.smooth)
        inequalities = sum(lam[j] * self.smooth[j] + nu[j] * self.sent[j] for j in range(k))
        made = [rho * (self.before.T @ P @ self.before) - self.after.T @ P @ self.after - inequalities]
        return made + [
            p[j] * (rho * self.dev_before - self.dev_after) - lam[j] * self.dev_smooth - nu[j] * self.dev_sent for j in self.several
        ]


def _proved(groups: list[tuple[int, float, float]], gamma: float, eps: float, rho: float) -> bool:
    """Whether a V contracts by rho: the one whose matrices have the largest least eigenvalue, verified afterwards."""
    import warnings

    import cvxpy as cp

    step, k = _Step(groups, gamma, eps), len(groups)
    P, p = cp.Variable((k + 1, k + 1), symmetric=True), cp.Variable(k, nonneg=True)
    lam, nu, t = cp.Variable(k, nonneg=True), cp.Variable(k, nonneg=True), cp.Variable()
    matrices = [*step.slacks(rho, P, p, lam, nu), P]
    problem = cp.Problem(
        cp.Maximize(t), [*(M - t * np.eye(M.shape[0]) >> 0 for M in matrices), p >= t, cp.trace(P) + cp.sum(p) == 2 * k + 1]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "may be inaccurate": what was reached is verified here
        try:
            problem.solve(solver="CLARABEL", **OPTIONS)
        except cp.error.SolverError:
            return False
    found = [variable.value for variable in (P, p, lam, nu)]
    return all(v is not None for v in found) and _verified(step, rho, *found)  # type: ignore[arg-type]


def _verified(step: _Step, rho: float, P: np.ndarray, p: np.ndarray, lam: np.ndarray, nu: np.ndarray) -> bool:
    """Whether these multipliers prove the rate of this V."""
    P, lam, nu = (P + P.T) / 2, np.maximum(lam, 0), np.maximum(nu, 0)
    made = [P, *step.slacks(rho, P, p, lam, nu)]
    return p.min() > 0 and all(np.linalg.eigvalsh(M)[0] > ROUNDING * max(1.0, float(np.abs(M).max())) for M in made)


def _lower(groups: list[tuple[int, float, float]], gamma: float, eps: float) -> float:
    """The largest squared spectral radius over the angles of gradients and compressors, searched."""
    from scipy.optimize import minimize

    k, total, s = len(groups), sum(n for n, *_ in groups), math.sqrt(eps)
    share = np.array([n / total for n, *_ in groups])
    middle, radius = (np.array([(L + sign * mu) / 2 for _, L, mu in groups]) for sign in (1, -1))

    def reached(angles: np.ndarray) -> float:
        lam, c = middle + radius * np.exp(1j * angles[:k]), 1 - s * np.exp(1j * angles[k:])
        row = np.concatenate([[1.0], -gamma * share])
        M = np.vstack([row, (c * lam)[:, None] * row]) + np.diag(np.concatenate([[0.0], 1 - c]))
        return -float(np.abs(np.linalg.eigvals(M)).max() ** 2)

    rng = np.random.default_rng(0)
    ends = [np.repeat(a, k) for a in ((0.0, np.pi), (np.pi, np.pi), (0.0, 0.0), (np.pi, 0.0))]
    starts = [*ends, *(rng.uniform(-np.pi, np.pi, 2 * k) for _ in range(STARTS))]
    options = {"xatol": 1e-8, "fatol": 1e-13, "maxiter": 1000 * k}
    return max(-float(minimize(reached, start, method="Nelder-Mead", options=options).fun) for start in starts)
