"""CoCoA: columns of a generalised linear model on K machines, local coordinate steps on the dual, and checks of its rates.

A step function works on vectors of one length, here every machine has its own columns and one vector ``v = A a`` is shared; so CoCoA is a
simulator.  tau is the paper's letter: f is (1/tau)-smooth.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verify_rates.problems.columns import Columns, instance
from verify_rates.theory.evidence import Found

STRONG = "gamma*(1-eps)*mu*tau/(mu*tau + b*c)"  # cocoa.2, with eps for Theta, b for sigma_max and c for sigma'
ROUNDS = "1/(gamma*(1-eps))*((mu*tau + b*c)/(mu*tau))*log(F0/s)"
SWEEPS = 4000  # of coordinate steps for an exact solution, at most
STILL = 1e-15  # a sweep that moves no entry by more than this, relative to the entries, is at the solution in double precision
SHARE_RTOL = 1e-9  # of suboptimalities that are at least a thousandth of the first: 1e-15 of rounding, a million times
DECREASE = 1e-12  # of the objective: smaller decreases of a subproblem have no measurable Theta
LONGEST = 20_000  # rounds


# --- the method ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Local:
    """A machine's subproblem ``G_k(d) = w'A_k d + sigma'/(2 tau) ||A_k d||^2 + sum g_i(a_i + d_i)`` (its constant left out)."""

    made: Columns
    part: tuple[int, ...]
    a: np.ndarray
    w: np.ndarray
    sp: float

    def value(self, d: np.ndarray) -> float:
        A, columns = self.made.A[:, list(self.part)], list(self.part)
        move = A @ d
        a = self.a[columns] + d
        smooth = float(self.w @ move) + self.sp / (2 * self.made.tau) * float(move @ move)
        return smooth + float(np.sum(self.made.mu * a**2 / 2 + self.made.l1 * np.abs(a) - self.made.c[columns] * a))

    def steps(self, order: Iterator[int]) -> np.ndarray:
        """Exact coordinate steps in the given order (places in the part)."""
        d, move, scale = np.zeros(len(self.part)), np.zeros(len(self.w)), self.sp / self.made.tau
        for j in order:
            i = self.part[j]
            x = self.made.A[:, i]
            slope = float(x @ self.w) + scale * (float(x @ move) - self.made.norms2[i] * d[j])
            new = self.made.entry(i, float(self.a[i]), slope, scale * float(self.made.norms2[i])) - float(self.a[i])
            move, d[j] = move + x * (new - d[j]), new
        return d

    def solved(self) -> np.ndarray:
        """The minimiser, by sweeps until nothing moves."""
        if len(self.part) == 1:
            return self.steps(iter([0]))
        d = np.zeros(len(self.part))
        here = self
        for _ in range(SWEEPS):
            # a sweep from where the last one ended: shift a by d and keep what the shift does to the slope
            step = here.steps(iter(range(len(self.part))))
            d = d + step
            if np.max(np.abs(step)) <= STILL * (1 + np.max(np.abs(d))):
                break
            a = self.a.copy()
            a[list(self.part)] += d
            here = replace(self, a=a, w=self.w + self.sp / self.made.tau * (self.made.A[:, list(self.part)] @ d))
        return d


def rounds(made: Columns, gamma: float, sp: float, H: int = 0) -> Iterator[tuple[np.ndarray, float]]:
    """The points a_0 = 0, a_1, ... and the largest Theta among the machines in the round that led there.

    ``H`` coordinate steps a machine, in turn; 0 solves every subproblem exactly (Theta = 0).
    """
    a = np.zeros(made.A.shape[1])
    yield a, 0.0
    while True:
        w, new, worst = made.w(made.A @ a), a.copy(), 0.0
        for part in made.parts:
            local = Local(made, part, a, w, sp)
            if H:
                d, best = local.steps(j % len(part) for j in range(H)), local.solved()
                start, least = local.value(np.zeros(len(part))), local.value(best)
                if start - least > DECREASE * (1 + abs(start)):
                    worst = max(worst, (local.value(d) - least) / (start - least))
            else:
                d = local.solved()
            new[list(part)] += gamma * d
        a = new
        yield a, worst


def optimum(made: Columns) -> tuple[np.ndarray, float]:
    """A minimiser and its value, by coordinate steps on all columns at once."""
    N = made.A.shape[1]
    a = Local(made, tuple(range(N)), np.zeros(N), made.w(np.zeros(len(made.b))), 1.0).solved()
    return a, made.primal(a)


# --- the claims ---------------------------------------------------------------------------------------------------------


def _sp(made: Columns, gamma: float, safe: bool) -> float:
    return gamma * (len(made.parts) if safe else made.least_sigma())


def lemma(kind: str, K: int, per: int, gamma: float, safe: bool, H: int, seed: int, part: float = 1.0) -> Found:
    """cocoa.1: the largest excess of its right side over the decrease, over rounds and s in [0, 1], relative to the first gap.

    ``part`` scales sigma' below what is allowed (for tests).
    """
    made = instance(kind, K, per, 3, seed)
    sp = part * _sp(made, gamma, safe)
    along = list(itertools.islice(rounds(made, gamma, sp, H), 25))
    scale, worst = made.gap(along[0][0]), -math.inf
    for (a, _), (after, theta) in itertools.pairwise(along):
        u, gap = made.dual_point(made.w(made.A @ a)), made.gap(a)
        moved = sum(float(np.sum((made.A[:, list(p)] @ (u - a)[list(p)]) ** 2)) for p in made.parts)
        for s in np.linspace(0.0, 1.0, 41):
            said = s * gap + made.mu * s * (1 - s) / 2 * float(np.sum((u - a) ** 2)) - sp * s**2 / (2 * made.tau) * moved
            worst = max(worst, gamma * (1 - theta) * said - (made.primal(a) - made.primal(after)))
    return Found.identity(worst / scale, f"largest excess {worst / scale:.2e} of the first gap")


def strongly_convex(part: str, kind: str, K: int, per: int, gamma: float, safe: bool, H: int, seed: int, factor: float = 1.0) -> Found:
    """cocoa.2: "contraction", "gap" or "rounds", the largest measured share of what is allowed.

    Theta is the largest of the run.  "rounds" counts until O_A - O_A* is a thousandth of its start.
    """
    from verify_rates.theory.symbols import number

    made = instance(kind, K, per, 3, seed)
    sp = factor * _sp(made, gamma, safe)
    _, best = optimum(made)
    along, left = [], []
    for a, theta in itertools.islice(rounds(made, gamma, sp, H), LONGEST):
        along.append((a, theta))
        left.append(made.primal(a) - best)
        if left[-1] <= left[0] / 1000:
            break
    theta, h0 = max(t for _, t in along), left[0]
    # the letter tau is a count, the paper's a real number: mu*tau stands for mu
    values = {"gamma": gamma, "eps": theta, "mu": made.mu * made.tau, "tau": 1, "b": made.sigma()[0], "c": sp, "F0": h0, "s": h0 / 1000}
    if part == "rounds":
        said = math.ceil(number(ROUNDS, values))
        return Found(len(along) - 1, len(along) - 1, said, message=f"Theta = {theta:.3g}, {len(along) - 1} rounds, the bound says {said}")
    shrink = number(STRONG, values)
    points = zip(along, left, strict=True)
    shares = (
        [made.gap(a) * shrink / h for (a, _), h in points] if part == "gap" else [b / a / (1 - shrink) for a, b in itertools.pairwise(left)]
    )
    return Found(max(shares), max(shares), 1 + SHARE_RTOL, message=f"Theta = {theta:.3g}, a round may keep {1 - shrink:.6g}")


def _needed(made: Columns, gamma: float, sp: float, eps: float) -> tuple[int, int]:
    """cocoa.3: the smallest whole ``(T0, T)`` for Theta = 0."""
    from verify_rates.theory.symbols import number

    _, best = optimum(made)
    h0, largest = made.primal(np.zeros(made.A.shape[1])) - best, max(abs(made.low), abs(made.high))
    values = {"b": 4 * largest**2 * made.sigma()[1] * sp / made.tau, "c": gamma, "F0": h0, "eps": eps}
    values["a"] = number(T_START, values)
    values["u"] = math.ceil(number(T_FIRST, values))
    return int(values["u"]), math.ceil(number(T_LAST, values))


T_START = "Max(0, ceiling(log(2*F0/b)/c))"
T_FIRST = "a + 2/c*Max(0, 2*b/eps - 1)"
T_LAST = "u + Max(ceiling(1/c), b/(c*eps))"


def bounded_support(kind: str, K: int, gamma: float, safe: bool, share: float, seed: int) -> Found:
    """cocoa.3: the gap at the average of the points T0..T-1 against eps, ``share`` of the first gap; one column a machine, so Theta = 0."""
    made = instance(kind, K, 1, 2, seed)
    sp = _sp(made, gamma, safe)
    eps = share * made.gap(np.zeros(K))
    first, last = _needed(made, gamma, sp, eps)
    points = [a for a, _ in itertools.islice(rounds(made, gamma, sp), last)]
    found = made.gap(np.mean(points[first:], axis=0))
    return Found(found, found, eps, message=f"rounds {first} to {last - 1}")


def local_accuracy(n: int, H: int, seed: int) -> Found:
    """cocoa.4 on a quadratic subproblem: the smallest Theta of H uniform coordinate steps, exactly over all starts and draws.

    ``c_loc`` is the least eigenvalue of the matrix with unit diagonal over n.
    """
    X = np.random.default_rng([seed, n]).normal(size=(n + 1, n))
    Q = X.T @ X
    scale = np.sqrt(np.diag(Q))
    c_loc = float(np.linalg.eigvalsh(Q / np.outer(scale, scale))[0]) / n
    steps = [np.eye(n) - np.outer(np.eye(n)[i], Q[i] / Q[i, i]) for i in range(n)]
    M: Any = Q
    for _ in range(H):
        M = sum(P.T @ M @ P for P in steps) / n
    root = np.linalg.cholesky(Q)
    inverse = np.linalg.inv(root)
    theta, bound = float(np.linalg.eigvalsh(inverse @ M @ inverse.T)[-1]), max(0.0, 1 - c_loc) ** H
    return Found(theta, theta, bound, proves=True, message=f"Theta = {theta:.6g}, (1-c_loc)^H = {bound:.6g}")


def round_time(machines: tuple[float, ...], H: int, m: int, latency: float, bandwidth: float, R: int) -> Found:
    """cocoa.5: the time line of H local steps and one all-reduce of m numbers against ``T_local + T_ar``, and R rounds of it."""
    from verify_rates.theory.timeline import timeline

    line = timeline("local_sgd", {"H": H}, compute=list(machines), latency=latency, bandwidth=bandwidth, size=4.0 * m)
    measured = R * line.seconds_per_round
    said = R * (H * max(machines) + latency + 32.0 * m / bandwidth)
    return Found.identity(abs(measured - said) / said, f"{measured:.6g} s in {R} rounds")


def local_equality(n: int, H: int, seed: int) -> Found:
    """cocoa.4 read as an equality."""
    return replace(local_accuracy(n, H, seed), relation="==")
