"""Votes on signs: decoding errors by enumeration in fractions, their bounds, descent, and the counters of the federated defence."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from verify_rates.solvers.words import World
from verify_rates.theory.evidence import Found

FLIPPED = "p + b - 2*p*b"  # signsgd_fd.3: b is the probability of a flip
DESCENT = "gamma**2*a/2"  # signsgd_fd.4: a is the sum of the coordinates' smoothness
TUNED = "sqrt(2*F0*a/N)/(1-2*p)"  # signsgd_fd.2: p is the largest decoding error
WEIGHTED = 0.5  # signsgd_fd.5: the factor before the product
ROUNDING = 1e-12  # of products of at most 15 doubles, relative


def weighted_error(p: Sequence[Fraction]) -> Fraction:
    """Decoding error of the weighted vote with the true cross-over probabilities (ties count half), exactly.

    That vote takes the likelier sign, so its error is half the sum over all patterns of the smaller of the two likelihoods.

    >>> weighted_error([Fraction(1, 10)] * 3)
    Fraction(7, 250)
    """
    likelihoods = [(Fraction(1), Fraction(1))]
    for q in p:
        likelihoods = [pair for a, b in likelihoods for pair in ((a * q, b * (1 - q)), (a * (1 - q), b * q))]
    return sum((min(pair) for pair in likelihoods), Fraction(0)) / 2


def majority_error(p: Sequence[Fraction]) -> Fraction:
    """Decoding error of the majority vote (ties count half), exactly.

    >>> majority_error([Fraction(1, 10)] * 3)
    Fraction(7, 250)
    """
    chances = [Fraction(1)]
    for q in p:
        chances = [a * (1 - q) + b * q for a, b in zip([*chances, Fraction(0)], [Fraction(0), *chances], strict=True)]
    half = Fraction(len(p), 2)
    return sum((c if wrong > half else c / 2 for wrong, c in enumerate(chances) if wrong >= half), Fraction(0))


def _instance(seed: int, M: int) -> list[Fraction]:
    return [Fraction(int(v), 100) for v in np.random.default_rng([seed, M]).integers(1, 100, M)]


def bhattacharyya(p: Sequence[Fraction]) -> float:
    """``(1/2)*prod 2*sqrt(p*(1-p))``."""
    return WEIGHTED * math.prod(2 * math.sqrt(q * (1 - q)) for q in p)


def channel(size: int) -> Found:
    """signsgd_fd.3 on a grid of fractions: a sign is wrong after the attack if exactly one of the two errors happened."""
    from verify_rates.theory.symbols import exact, parse

    wrong = cases = 0
    for i, j in itertools.product(range(size + 1), repeat=2):
        p, r = Fraction(i, size), Fraction(j, size)
        outcomes = [(p if a else 1 - p) * (r if b else 1 - r) for a in (0, 1) for b in (0, 1) if a != b]
        cases, wrong = cases + 1, wrong + (exact(parse(FLIPPED), {"p": p, "b": r}) != sum(outcomes))
    return Found.count(wrong, cases, proves=True)


def weighted_bounds(seed: int, M: int, instances: int) -> Found:
    """signsgd_fd.5: the largest error over its bound, and that the committee's potential is the weaker bound."""
    worst = 0.0
    for i in range(instances):
        p = _instance(1000 * seed + i, M)
        first = bhattacharyya(p)
        second = math.exp(-sum((0.5 - float(q)) * math.log((1 - q) / q) for q in p) / 2)
        worst = max(worst, float(weighted_error(p)) / first, first / second)
    return Found(worst, worst, 1 + ROUNDING, proves=True, message=f"largest error/bound {worst:.4g} in {instances} instances")


def majority_bound(seed: int, M: int, instances: int, power: float = 1.0) -> Found:
    """signsgd_fd.6 where the mean cross-over is below 1/2."""
    worst = 0.0
    for i in range(instances):
        p = [q / 2 if i % 2 else q for q in _instance(1000 * seed + i, M)]
        mean = sum(p) / M
        if mean < Fraction(1, 2):
            worst = max(worst, float(majority_error(p)) / (2 * math.sqrt(mean * (1 - mean))) ** (M * power))
    return Found(worst, worst, 1 + ROUNDING, proves=True, message=f"largest error/bound {worst:.4g}")


def inversion(seed: int, M: int) -> Found:
    """signsgd_fd.7: any set of workers may invert its signs; with the probabilities known the error is the same number."""
    p, wrong = _instance(seed, M), 0
    for attack in itertools.product((False, True), repeat=M):
        wrong += weighted_error([1 - q if a else q for a, q in zip(attack, p, strict=True)]) != weighted_error(p)
    return Found.count(wrong, 2**M, proves=True)


def stochastic(seed: int, M: int, attackers: int) -> Found:
    """signsgd_fd.8: a flip with probability 1/2 leaves the honest workers' error and bound, and no other probability does worse."""
    p = _instance(seed, M)

    def attacked(r: Fraction) -> list[Fraction]:
        return [q + r - 2 * q * r if i < attackers else q for i, q in enumerate(p)]

    worst, honest = weighted_error(attacked(Fraction(1, 2))), p[attackers:]
    wrong = [worst != weighted_error(honest), float(worst) > bhattacharyya(honest) * (1 + ROUNDING)]
    wrong += [weighted_error(attacked(Fraction(r, 20))) > worst for r in range(21)]
    return Found.count(sum(wrong), len(wrong), proves=True)


def reference(L: int, rule: str, said: float) -> Found:
    """The reference table at 15 workers with p = 0.3, to its four digits."""
    p = Fraction(3, 10)
    workers = {"FD": [p] * 15, "MV": [1 - p] * L + [p] * (15 - L), "half": [p] * (15 - L)}[rule]
    error = float(majority_error(workers))  # equal probabilities: the weighted vote is the majority
    return Found(abs(error - said), abs(error - said), 5e-5, proves=True, message=f"{error:.6f}, printed {said}")


# --- descent -------------------------------------------------------------------------------------------------------------


def _smooth(seed: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """A random Hessian and coordinates' smoothness that dominate it: L_n = sum_j |H_nj|."""
    A = np.random.default_rng([seed, d]).normal(size=(d, d))
    H = A @ A.T / d
    return H, np.abs(H).sum(axis=1)


def descent(seed: int, d: int) -> Found:
    """signsgd_fd.4, first line: the exact expectation over all decodings of a quadratic, per unit of its last term."""
    from verify_rates.theory.symbols import number

    (H, L), rng, gamma = _smooth(seed, d), np.random.default_rng([seed, 4]), 0.1
    x, errors = rng.normal(size=d), rng.uniform(0, 1, d)
    g = H @ x
    expected = 0.0
    for wrong in itertools.product((0, 1), repeat=d):
        chance = math.prod(e if bad else 1 - e for e, bad in zip(errors, wrong, strict=True))
        y = x - gamma * np.sign(g) * (1 - 2 * np.array(wrong))
        expected += chance * float(y @ H @ y) / 2
    rest = float(expected - x @ H @ x / 2 + gamma * (1 - 2 * errors) @ np.abs(g))
    return Found(rest, rest, number(DESCENT, {"gamma": gamma, "a": float(L.sum())}), proves=True)


def chain(seed: int, d: int, T: int, error: float) -> Found:
    """signsgd_fd.4 and .2: the exact expected mean of ||grad||_1 over T steps with the tuned step against the bound."""
    from verify_rates.theory.symbols import number

    H, L = _smooth(seed, d)
    x0 = np.random.default_rng([seed, 2]).normal(size=d)
    start, a = float(x0 @ H @ x0) / 2, float(L.sum())
    gamma = math.sqrt(2 * start / (T * a))

    def total(x: np.ndarray, t: int) -> float:
        g = H @ x
        if t == T:
            return 0.0
        value = float(np.abs(g).sum())
        for wrong in itertools.product((0, 1), repeat=d):
            chance = math.prod(error if bad else 1 - error for bad in wrong)
            value += chance * total(x - gamma * np.sign(g) * (1 - 2 * np.array(wrong)), t + 1)
        return value

    found = total(x0, 0) / T
    return Found(found, found, number(TUNED, {"F0": start, "a": a, "N": T, "p": error}), proves=True)


# --- the counters --------------------------------------------------------------------------------------------------------


class Channel(World):
    """The words on votes: every true sign is +1, a worker's sign is wrong with its probability, the first workers flip."""

    reading = "a vote"

    def __init__(self, p: np.ndarray, d: int, seed: int) -> None:
        self.p, self.d, self.rng = p, d, np.random.default_rng(seed)

    def grad(self, x):
        return np.where(self.rng.random((len(self.p), self.d)) < self.p[:, None], -1.0, 1.0)

    def compress(self, v):
        return v

    def flip(self, v, count, p):
        turned = (self.rng.random(v.shape) < p) & (np.arange(len(v))[:, None] < count)
        return np.where(turned, -v, v)

    def mean(self, v):
        return v.mean(axis=0)

    def spread(self, v):
        return np.broadcast_to(v, (len(self.p), self.d))

    def coordinate_mean(self, v):
        return np.broadcast_to(v.mean(axis=1, keepdims=True), v.shape)

    def times(self, a, b):
        return a * b

    def divide(self, a, b):
        return a / b

    def log(self, v):
        return np.log(v)

    def sign(self, v):
        return np.sign(v)

    def clip(self, v, c):
        return np.clip(v, -c, c)


def decoded_wrong(M: int, L: int, r: float, p: float, steps: int, d: int, seed: int) -> float:
    """Share of wrong signs that the federated defence decodes, over the last half of a run of its step function on a channel."""
    from verify_rates.solvers.method import get_method

    method, world = get_method("signsgd_fd"), Channel(np.full(M, p), d, seed)
    h, s = method.hypers(gamma=1.0, attackers=L, p=r, warm=steps), method.state(x=np.zeros(d), k=np.zeros((M, d)))
    wrong = 0.0
    for t in range(steps):
        after = method.step(s, world, h, t)
        if t >= steps // 2:
            wrong += float(((1 - (s.x - after.x)) / 2).mean())  # the step is the decoded sign
        s = after
    return wrong / (steps - steps // 2)


def counters(M: int, L: int, r: float, p: float, seed: int, steps: int = 300, d: int = 200) -> Found:
    """signsgd_fd.1: below M/2 attackers the defence with counted errors decodes as with known ones, from M/2 on it fails."""
    share = decoded_wrong(M, L, r, p, steps, d, seed)
    if 2 * L >= M:
        return Found(share, share, 0.5, ">=", message=f"{L} of {M} attack: {share:.4f} of the signs are wrong")
    q = Fraction(p).limit_denominator(100)
    s = Fraction(r).limit_denominator(100)
    known = float(weighted_error([q + s - 2 * q * s] * L + [q] * (M - L)))
    draws = (steps - steps // 2) * d
    noise = 6 * math.sqrt(known * (1 - known) / draws)  # six deviations of that many coins
    return Found(share, share, known + noise, message=f"{share:.4f} of the signs are wrong, {known:.4f} with known errors")


def bits(d: int) -> Found:
    """signsgd_fd.9: bits a worker sends, counted by the engine, against 32 d of full precision."""
    from verify_rates.problems import get_problem
    from verify_rates.solvers.engine.run import simulate

    run = simulate("signsgd_fd", get_problem("quadratic", n=3, d=d), {"gamma": 0.01}, steps=4, compressor="sign", engine="numpy")
    ratio = 4 * 32 * d / float(run.bits[0, -1])
    return Found(ratio, ratio, 32.0, "==", proves=True)
