"""0/1 Adam: its two schedules, what it is without compression, volume counted, and the class of its released compressor."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from verify_rates.theory.calculators.collectives import pieces
from verify_rates.theory.evidence import Found, relative, trace

STEPS = 60
REFRESHES = "k*log(T/k + 1)/log(2)"  # zero_one_adam.2, k the scaler kappa
# A line between the points (2^m - 1, m) lies below log2(x + 1) by at most 1 + log2(log2(e)) - log2(e); rounding to whole steps adds 1.
CHORD = 1 + math.log2(math.log2(math.e)) - math.log2(math.e)
ALL_REDUCE = "2*(n-1)/n*d"  # zero_one_adam.4, without scales
SCALE_BITS = 32
VOLUME = "b*u + c + c*s/d"  # zero_one_adam.3: b bits of a number, u refreshes, c synchronisations, s bits of a scale


def refresh_steps(T: int, kappa: int) -> list[int]:
    """T_v below T: the gap doubles after every ``kappa`` refreshes.

    >>> refresh_steps(12, 2)
    [0, 1, 2, 4, 6, 10]
    """
    return _growing(T, lambda j: 2 ** (j // kappa))


def sync_steps(T: int, alpha: int, beta: int) -> list[int]:
    """T_u below T: the gap doubles after every ``alpha`` synchronisations, up to ``2**beta``.

    >>> sync_steps(14, 2, 1)
    [0, 1, 2, 4, 6, 8, 10, 12]
    """
    return _growing(T, lambda j: 2 ** min(j // alpha, beta))


def released_sync_steps(T: int, scaler: int, clipper: int, freeze: int) -> list[int]:
    """T_u of the released code: every step up to ``freeze``; then the gap doubles every ``scaler`` STEPS, up to ``clipper``.

    >>> released_sync_steps(14, 4, 2, 3)
    [0, 1, 2, 3, 4, 5, 6, 8, 10, 12]
    """
    steps, gap = [], 1
    for t in range(T):
        if t > freeze and (t - freeze) % scaler == 0:
            gap = min(2 * gap, clipper)
        if t < freeze or t % gap == 0:
            steps.append(t)
    return steps


def _growing(T: int, gap: Any) -> list[int]:
    steps: list[int] = []
    t = 0
    while t < T:
        steps.append(t)
        t += gap(len(steps) - 1)
    return steps


def schedule(T: int, sync: list[int], refresh: list[int]) -> dict[str, list[int]]:
    """The hyper-parameters ``sync``, ``refresh`` and ``window`` (constant step size) of a run of T steps.

    >>> schedule(4, [0, 2], [0])
    {'sync': [1, 0, 1, 0], 'refresh': [1, 0, 0, 0], 'window': [1, 1, 2, 1]}
    """
    window, last = [], -1
    for t in range(T):
        window.append(t - last)
        last = t if t in set(sync) else last
    return {"sync": [int(t in set(sync)) for t in range(T)], "refresh": [int(t in set(refresh)) for t in range(T)], "window": window}


def adam(new: int, problem: str, seed: int) -> Found:
    """Both schedules at every step and nothing compressed: Adam without bias correction, its squares one step late."""
    hyper = {"gamma": 0.05, "beta": 0.8, "theta": 0.9, "eps": 0.1}
    _, ours, _ = trace("zero_one_adam", problem, {**hyper, "new": new}, STEPS, compressor="identity", seed=seed, sigma2=0.1)
    _, adam, _ = trace("adam", problem, {**hyper, "corrected": 0, "late": 1}, STEPS, seed=seed, sigma2=0.1)
    return Found.identity(relative([s.a - r.x for s, r in zip(ours, adam, strict=True)], [r.x for r in adam]))


def never_moves(steps: int) -> Found:
    """As printed, synchronised at every step: the momentum is replaced by the average of the OLD momenta, so no gradient enters."""
    _, states, gradients = trace("zero_one_adam", "quadratic", {"gamma": 0.05, "beta": 0.8, "new": 0}, steps, compressor="identity")
    moved = max(float(np.abs(s.a).max()) for s in states)
    steepest = max(float(np.abs(g).max()) for (g,) in gradients)
    return Found(moved, moved, 0.0, "<=", proves=True, message=f"moved by {moved:g} with gradient entries up to {steepest:.3g}")


def linearity(H: int, new: int, seed: int) -> Found:
    """With frozen squares and exact exchange a synchronisation is the average of the local trajectories."""
    plan = schedule(STEPS, list(range(H - 1, STEPS, H)), [0])
    hyper: dict[str, Any] = {"gamma": 0.05, "beta": 0.8, "theta": 0.9, "new": new, **plan}
    _, states, gradients = trace("zero_one_adam", "logistic", hyper, STEPS, compressor="identity", seed=seed, sigma2=0.1)
    off = []
    for t, (g,) in enumerate(gradients):
        s = states[t]
        used = 0.8 * s.m + 0.2 * g if new else s.m
        local = s.x - 0.05 * used / (np.sqrt(s.v) + 0.1)
        if plan["sync"][t] and t > H:  # the squares are refreshed at step 0, within the first window
            off.append(states[t + 1].a - local.mean(axis=0))
    return Found.identity(relative(off, [s.a for s in states]))


def refreshes(kappa: int, T: int) -> Found:
    """zero_one_adam.2: the largest distance of the number of refreshes below any T' <= T from the formula."""
    import sympy as sp

    from verify_rates.theory.symbols import parse

    symbols = {s.name: s for s in parse(REFRESHES).free_symbols}
    formula = sp.lambdify((symbols["k"], symbols["T"]), parse(REFRESHES), "numpy")
    steps = np.arange(1, T + 1)
    counted = np.searchsorted(np.array(refresh_steps(T, kappa)), steps)
    off = float(np.max(np.abs(counted - formula(kappa, steps))))
    return Found(off, off, kappa * CHORD + 1, proves=True, message=f"largest distance {off:.3g}; {counted[-1]} refreshes below {T}")


def refresh_count(kappa: int, T: int, said: int) -> Found:
    """zero_one_adam.2: the example."""
    count = float(len(refresh_steps(T, kappa)))
    return Found(count, count, said, "==", proves=True)


def volume(T: int, kappa: int, alpha: int, beta: int, d: int) -> Found:
    """zero_one_adam.3: bits per parameter, one-bit messages counted by the engine, refreshes in full precision."""
    from verify_rates.problems import get_problem
    from verify_rates.solvers.engine.run import simulate
    from verify_rates.theory.symbols import number

    sync, refresh = sync_steps(T, alpha, beta), refresh_steps(T, kappa)
    hyper: dict[str, Any] = {"gamma": 0.01, "beta": 0.9, **schedule(T, sync, refresh)}
    run = simulate("zero_one_adam", get_problem("quadratic", n=2, d=d), hyper, steps=T, compressor="norm_sign", engine="numpy")
    sent = (float(run.bits[0, -1]) + 32 * d * len(refresh)) / d
    said = number(VOLUME, {"b": 32, "u": len(refresh), "c": len(sync), "s": SCALE_BITS, "d": d})
    return Found(sent, sent, said, "==", proves=True, message=f"{sent:.6g} bits a parameter in {T} steps")


def one_bit_all_reduce(n: int, d: int) -> Found:
    """zero_one_adam.4: all-to-all of pieces and all-gather of sums, counted; mean over the workers where n does not divide d."""
    from verify_rates.theory.symbols import number

    parts, sent = pieces(d, n), [0] * n
    for i in range(n):
        for j in range(n):
            if i != j:
                sent[i] += len(parts[j])  # worker i sends its signs of piece j to j
                sent[j] += len(parts[j])  # j sends the signs of the sum of its piece to i
    value = float(Fraction(sum(sent), n))
    return Found(value, value, number(ALL_REDUCE, {"n": n, "d": d}), "==", proves=True)


def released_scale(d: int) -> Found:
    """Of a spike the released one-bit message loses ``2*(1 - 1/sqrt(d))`` of the energy: a contraction needs at most 1."""
    from verify_rates.solvers.compressors import get_compressor

    spike = np.eye(d)[:1]
    lost = float(np.sum((get_compressor("norm_sign")(spike) - spike) ** 2))
    return Found(lost, lost, 1.0, proves=True, message=f"a spike in dimension {d} loses {lost:.4g} of its energy")
