"""Checks of the statements on ACCO that are no bounds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import sympy as sp

from verify_rates.theory.calculators.lines import function, pace_of, printed
from verify_rates.theory.calculators.streams import same_maximum
from verify_rates.theory.evidence import Found, relative, trace

STEPS = 100

# In the letters of the time line: a = n*T_g is the computation of one update, T_tx = T_m its communication.
UPDATE = "2*Max(a/2, T_tx)"  # acco.6
SEQUENTIAL = "a + T_tx"
SPEED_UP = "(a + T_tx)/Max(a, 2*T_tx)"  # acco.7
ADAPTIVE = "1 + T_tx/a"  # acco.8
OVERLAP = "a >= 2*T_tx"  # acco.9
MEMORY = "2 + 2 + 2 + (4 + 4 + 8 + 12)/n"  # acco.10


def mismatch_identity(problem: str, gamma: float, seed: int) -> Found:
    """acco.1: ``y_{t+1} - x_{t+1} = (gamma/2)*mean_i(g_t - gt_t)``, gt the half at the estimate, and no mismatch at the start."""
    _, states, gradients = trace("acco", problem, {"gamma": gamma}, STEPS, seed=seed, sigma2=0.5)
    mismatch = [s.y - s.x for s in states]
    said = [gamma / 2 * np.mean(g - gt, axis=0) for gt, g in gradients]
    return Found.identity(relative([mismatch[0], *(e - p for e, p in zip(mismatch[1:], said, strict=True))], [s.x for s in states]))


def noise_free_is_gd(problem: str, gamma: float) -> Found:
    """acco.4: without noise the estimate is the model, and the model is that of gradient descent."""
    _, acco, _ = trace("acco", problem, {"gamma": gamma}, STEPS)
    _, gd, _ = trace("gd", problem, {"gamma": gamma}, STEPS)
    off = [s.y - s.x for s in acco] + [s.x - r.x for s, r in zip(acco, gd, strict=True)]
    return Found.identity(relative(off, [s.x for s in gd]))


def stability(scheme: str, limit: float) -> Found:
    """acco.5: the stability limit of ``gamma*lam``, from the characteristic polynomial of the step function."""
    from verify_rates.theory.quadratic import quadratic

    reading = quadratic("acco", {}) if scheme == "acco" else quadratic("dd_ef_sgd", {"tau": 1}, compressor="identity")
    value = float(reading.stability_limit(1.0))
    return Found(value, value, limit, "==", proves=True, message=f"stable up to gamma*lam = {value:.12g}")


def _times() -> Iterator[tuple[int, int]]:
    """Small whole ``(a, T_tx)``."""
    return itertools.product(range(1, 7), range(7))


def update_time(scheme: str) -> Found:
    """acco.6: both formulas are those of the step functions' time lines (the latency is part of T_m)."""
    half = {"a": 2 * sp.Symbol("T_comp", nonnegative=True)}  # acco computes each half at a point of its own
    method, said = ("acco", printed(UPDATE, **half)) if scheme == "acco" else ("gd", printed(SEQUENTIAL, a=half["a"] / 2))
    return Found.count(int(not same_maximum(pace_of(method).subs(_lat(), 0), said)), 1, proves=True)


def _lat() -> sp.Symbol:
    return sp.Symbol("lat", nonnegative=True)


def speed_up() -> Found:
    """acco.7: the ratio of the two times; 3/2 at most, there where a = 2*T_m, and below 1 iff T_m > a."""
    q = sp.Symbol("q", positive=True)  # T_m/a
    ratio = sp.Piecewise((1 + q, q <= sp.Rational(1, 2)), ((1 + q) / (2 * q), True))
    wrong = [function(SPEED_UP, "a T_tx")(Fraction(a), Fraction(m)) != ratio.subs(q, sp.Rational(m, a)) for a, m in _times() if m]
    wrong += [sp.diff(1 + q, q) <= 0, sp.simplify(sp.diff((1 + q) / (2 * q), q)).is_negative is not True]
    wrong += [ratio.subs(q, sp.Rational(1, 2)) != sp.Rational(3, 2), sp.solve(sp.Eq((1 + q) / (2 * q), 1), q) != [1]]
    wrong += [
        function(SPEED_UP, "a T_tx")(Fraction(a), Fraction(m))
        != function(SEQUENTIAL, "a T_tx")(Fraction(a), Fraction(m)) / function(UPDATE, "a T_tx")(Fraction(a), Fraction(m))
        for a, m in _times()
    ]
    return Found.count(sum(map(bool, wrong)), len(wrong), proves=True)


def phases(T_g: Fraction, T_m: Fraction, least: int, count: int) -> tuple[Fraction, Fraction, list[int]]:
    """Two-phase accumulation: compute whole micro-batches until the communication under way ends, and ``least`` of them.

    Returns ``(seconds, idle seconds of the device, micro-batches of every phase)``.
    """
    now = idle = Fraction(0)
    sizes: list[int] = []
    arrives = Fraction(0)  # of the communication that was started when this phase began
    for _ in range(count):
        size = max(least, math.ceil((arrives - now) / T_g))
        sizes.append(size)
        end = now + size * T_g
        idle += max(Fraction(0), arrives - end)
        now = max(end, arrives)
        arrives = now + T_m
    return now, idle, sizes


def adaptive() -> Found:
    """acco.8: the device never idles, so a sample takes T_g; the batch of an update is what fits beside two communications."""
    wrong = cases = 0
    for n, g, m in itertools.product((2, 4, 6), (1, 2, 3), range(9)):
        seconds, idle, sizes = phases(Fraction(g), Fraction(m), n // 2, 12)
        per_sample = function(SEQUENTIAL, "a T_tx")(Fraction(n * g), Fraction(m)) / n / (seconds / sum(sizes))
        batch = sizes[-1] + sizes[-2]
        said = function(ADAPTIVE, "a T_tx")(Fraction(n * g), Fraction(m))
        wrong += bool(idle != 0 or per_sample != said or batch * g < max(n * g, 2 * m))
        cases += 1
    return Found.count(wrong, cases, proves=True)


def overlap() -> Found:
    """acco.9: the update costs its computation alone iff n*T_g >= 2*T_m, by the time line's formula."""
    from verify_rates.theory.symbols import holds, parse_condition

    pace = sp.lambdify(sp.symbols("T_comp T_tx lat", nonnegative=True), pace_of("acco"), [{"Max": max}, "math"])
    wrong = [(pace(Fraction(a, 2), m, 0) == a) != holds(parse_condition(OVERLAP), {"a": a, "T_tx": m}) for a, m in _times()]
    return Found.count(sum(wrong), len(wrong), proves=True)


def memory(n: int) -> Found:
    """acco.10: the buffers of one worker, allocated; the shard is the n-th part of the parameters."""
    d = 64 * n
    whole = {"parameters": 2, "gradients": 2, "communication buffer": 2}
    shard = {"parameters": 4, "gradients": 4, "two moments": 8, "trial step: parameters and two moments": 12}
    held = sum(np.zeros(d * b, np.uint8).nbytes for b in whole.values())
    held += sum(np.zeros(d // n * b, np.uint8).nbytes for b in shard.values())
    return Found(held / d, held / d, float(function(MEMORY, "n")(Fraction(n))), "==", message=f"{held / d:.6g} bytes a parameter")
