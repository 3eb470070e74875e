"""LASGD: what its background average preserves, how far models drift, and its time."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from verify_rates.theory.calculators.lines import function, pace_of, printed
from verify_rates.theory.calculators.messages import Network, ring_all_reduce
from verify_rates.theory.calculators.streams import same_maximum
from verify_rates.theory.evidence import Found, relative, trace

STEPS = 60

HIDDEN = "Max(T_comp, (T_tx + lat)/H)"  # lasgd.2, T_allreduce = T_tx + lat
BLOCKING = "T_comp + (T_tx + lat)/H"
ALL_REDUCE = "2*(n-1)*a + 2*(n-1)/n*d*b"
MEAN = "(a + b)/2"  # two workers that compute for a and b
HARMONIC = "2/(1/a + 1/b)"


def mean_preserved(problem: str, H: int, seed: int) -> Found:
    """lasgd.1: the mean model is plain SGD on the mean of the workers' gradients, whatever is under way."""
    gamma = 0.05
    _, states, gradients = trace("lasgd", problem, {"gamma": gamma, "H": H}, STEPS, seed=seed, sigma2=0.5)
    means = [s.x.mean(axis=0) for s in states]
    off = [after - before + gamma * g.mean(axis=0) for before, after, (g,) in zip(means, means[1:], gradients, strict=False)]
    return Found.identity(relative(off, means))


def drift_of_two_rounds(problem: str, H: int, seed: int) -> Found:
    """lasgd.1: a model's distance to the mean comes from the steps since the last snapshot that was averaged, fewer than 2*H."""
    gamma = 0.05
    _, states, gradients = trace("lasgd", problem, {"gamma": gamma, "H": H}, STEPS, seed=seed, sigma2=0.5)
    off = []
    for t, s in enumerate(states):
        first = max(0, H * (t // H - 1))
        if t - first >= 2 * H:
            return Found.count(1, 1)
        g = sum((g for (g,) in gradients[first:t]), np.zeros_like(s.x))
        off.append((s.x - s.x.mean(axis=0)) + gamma * (g - g.mean(axis=0)))
    return Found.identity(relative(off, [s.x for s in states]))


def pace(method: str, H: int) -> Found:
    """lasgd.2: seconds per step from the step functions' time lines, hidden and blocking."""
    said = printed(HIDDEN if method == "lasgd" else BLOCKING, H=H)
    return Found.count(int(not same_maximum(pace_of(method, {"H": H}), said)), 1, proves=True)


def all_reduce(n: int) -> Found:
    """lasgd.2: the ring, message by message."""
    d, a, b = 4 * n, Fraction(3), Fraction(1, 4)
    net = Network(n, a, b)
    ring_all_reduce(net, [[1] * d] * n)
    took, said = float(net.seconds), float(function(ALL_REDUCE, "n d a b")(n, d, a, b))
    return Found(took, took, said, "==", proves=True)


def stragglers(said: str, slow: int, fast: int) -> Found:
    """lasgd.2: two workers of different speed; seconds per step when each does as many steps as it can, counted over a common period.

    In step the pair takes the slower one's time, which is what the time line gives.
    """
    from verify_rates.theory.timeline import timeline

    together = timeline("gd", compute=[float(slow), float(fast)], latency=0.0, bandwidth=8e12, size=1e-9).seconds_per_step
    if abs(together - max(slow, fast)) > 1e-9 * together:
        return Found.count(1, 1)
    period = slow * fast
    steps = sum(1 for now in range(1, period + 1) for worker in (slow, fast) if now % worker == 0)
    apart, expected = float(Fraction(2 * period, steps)), float(function(globals()[said], "a b")(Fraction(slow), Fraction(fast)))
    return Found(
        apart, apart, expected, "==", proves=True, message=f"{apart:g} s a step and worker, said are {expected:g} s, in step {together:g} s"
    )
