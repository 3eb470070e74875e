"""Absolute compression: residuals along a run, EC-LSVRG by enumeration of every outcome, and bits that depend on the data."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from verify_rates.solvers.words import World
from verify_rates.theory.evidence import Found, trace

STEPS = 120
NUMBER_BITS = 32  # absolute_compression.5: of one number
RESIDUAL = "gamma**2*d*lam**2"  # absolute_compression.1
FLOOR = "2*(2*L+mu)*gamma**2*Delta2"  # the last term of absolute_compression.4
PROGRESS = "2*V0*(1-eta)**N/gamma"  # its first term
STEP = "1/(4*L + 24*L_max/n)"  # its largest step


def residual(problem: str, lam: float, gamma: float, seed: int) -> Found:
    """absolute_compression.1: the largest ``||e_i||^2`` over workers and steps against its bound."""
    from verify_rates.theory.symbols import number

    made, states, _ = trace("ec_sgd", problem, {"gamma": gamma}, STEPS, compressor=f"hard_threshold(lam={lam})", seed=seed, sigma2=0.5)
    worst = max(float(np.max(np.sum(s.e**2, axis=1))) for s in states)
    return Found(worst, worst, number(RESIDUAL, {"gamma": gamma, "lam": lam, "d": made.d}))


# --- absolute_compression.4: every outcome of a small instance -----------------------------------------------------------


@dataclass
class Enumerated(World):
    """The words on n workers with rows A[i, l] of least squares, the outcome of every draw given."""

    A: np.ndarray  # (n, m, d)
    y: np.ndarray  # (n, m)
    lam: float
    samples: tuple[int, ...] = ()
    coins: tuple[bool, ...] = ()
    reading = "an enumeration"

    def _one(self, x: np.ndarray, i: int, rows: Any) -> np.ndarray:
        A, y = self.A[i][rows], self.y[i][rows]
        return A.T @ (A @ x - y) / len(A)

    def _own(self, x):
        return x if x.ndim == 2 else self.spread(x)

    def full_grad(self, x):
        return np.stack([self._one(row, i, slice(None)) for i, row in enumerate(self._own(x))])

    def grad_pair(self, x, y):
        return tuple(np.stack([self._one(row, i, [self.samples[i]]) for i, row in enumerate(self._own(v))]) for v in (x, y))

    def each(self, p, a, b):
        return np.where(np.array(self.coins)[:, None], a, b)

    def compress(self, v):
        return np.where(np.abs(v) < self.lam, 0.0, v)

    def mean(self, v):
        return v.mean(axis=0)

    def spread(self, v):
        return np.broadcast_to(v, (len(self.A), v.shape[0]))


def expected(world: Enumerated, hypers: list[Any], p: float, measure: Any) -> float:
    """The exact expectation of a measure after ``len(hypers)`` steps of EC-LSVRG from 0, over all samples and coins."""
    from verify_rates.solvers.method import get_method

    method, (n, m, d) = get_method("ec_lsvrg"), world.A.shape
    zero, outcomes = np.zeros((n, d)), []
    for samples in itertools.product(range(m), repeat=n):
        for coins in itertools.product((True, False), repeat=n):
            weight = float(np.prod([p if c else 1 - p for c in coins])) / m**n
            outcomes.append((weight, samples, coins))

    def total(s: Any, t: int) -> float:
        if t == len(hypers):
            return measure(s)
        value = 0.0
        for weight, samples, coins in outcomes:
            world.samples, world.coins = samples, coins
            value += weight * total(method.step(s, world, hypers[t], t), t + 1)
        return value

    return total(method.state(x=np.zeros(d), e=zero, r=zero, a=np.zeros(d)), 0)


def lsvrg(seed: int, n: int, m: int, N: int, lam: float, p: float, c: float) -> Found:
    """absolute_compression.4 on random least squares: the exact expected gap at the weighted average against the bound."""
    from verify_rates.solvers.method import get_method
    from verify_rates.theory.symbols import number

    rng = np.random.default_rng([seed, n, m])
    world = Enumerated(rng.normal(size=(n, m, 2)), 3.0 * rng.normal(size=(n, m)), lam)
    A, y = world.A.reshape(-1, 2), world.y.reshape(-1)
    spectrum = np.linalg.eigvalsh(A.T @ A / len(A))
    best = np.linalg.lstsq(A, y, rcond=None)[0]
    values: dict[str, Any] = {
        "n": n,
        "L": spectrum[-1],
        "mu": spectrum[0],
        "L_max": max(float(a @ a) for a in A),
        "Delta2": 2 * lam**2,
        "N": N,
    }
    gamma = c * number(STEP, values)
    drift = [(a @ best) * a for a in A]  # grad f_il(0) - grad f_il(x*), up to its sign
    V0 = float(best @ best) + 4 * gamma**2 / (n * p) * float(np.mean([g @ g for g in drift]))
    rate = gamma * values["mu"] / 2
    values |= {"gamma": gamma, "eta": min(rate, p / 2), "V0": V0}
    hypers = [get_method("ec_lsvrg").hypers(gamma=gamma, p=p, theta=values["eta"] / (1 - (1 - values["eta"]) ** (t + 1))) for t in range(N)]

    def gap(s: Any) -> float:
        return float(np.mean((A @ s.a - y) ** 2) - np.mean((A @ best - y) ** 2)) / 2

    found = expected(world, hypers, p, gap)
    bound = number(f"{PROGRESS} + {FLOOR}", values)
    return Found(found, found, bound, proves=True, message=f"exact expectation {found:.4g}, bound {bound:.4g}")


# --- absolute_compression.5 ----------------------------------------------------------------------------------------------


def message_bits(d: int, lam: float) -> Found:
    """The compressor's own count against the formula, on random vectors of every density."""
    from verify_rates.solvers.compressors import get_compressor

    made, rng, wrong = get_compressor(f"hard_threshold(lam={lam})"), np.random.default_rng(d), 0
    index = next(b for b in itertools.count() if 2**b >= d)  # ceil(log2 d) in whole numbers
    for scale in np.linspace(0.0, 4.0, 50):
        p = rng.normal(size=d) * scale * lam
        wrong += made.message_bits(made(p[None, :])[0]) != int((np.abs(p) >= lam).sum()) * (NUMBER_BITS + index)
    return Found.count(wrong, 50)


def constant_threshold(steps: int, d: int, levels: int) -> Found:
    """For fixed vectors of distinct sizes a constant threshold leaves the least total error under any budget: all of them, all choices."""
    wrong = cases = 0
    for values in itertools.permutations(range(levels), steps * d):
        for budget in range(steps * d + 1):
            cases += 1
            best = min(
                sum(v * v for j, v in enumerate(values) if j not in kept) for kept in itertools.combinations(range(steps * d), budget)
            )
            level = sorted(values, reverse=True)[budget - 1] if budget else levels
            wrong += sum(v * v for v in values if v < level) != best
    return Found.count(wrong, cases, proves=True)
