"""Adaptive synchronisation of local SGD (ADA-LUPA): its periods, and what they sum to."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators.lines import function
from verify_rates.theory.evidence import Found

ALPHA = "2/(R+1)*T/(R*H)"  # of the released code: H the first period, R the rounds
EXACT = "2*(T-R*H)/(H*R*(R-1))"  # the slope with which R periods from H on sum to T
SQUARES, LARGEST = "2*T**2/R", "2*T/R"


def linear(H: Any, alpha: Any, R: int, first: int = 0) -> list[Any]:
    """The periods ``(1 + alpha*i)*H``, i = first .. first+R-1.

    >>> linear(10, Fraction(1, 2), 3)
    [Fraction(10, 1), Fraction(15, 1), Fraction(20, 1)]
    """
    return [(1 + Fraction(alpha) * i) * H for i in range(first, first + R)]


def adaptive(H: int, start: float, now: float) -> int:
    """The period ``ceil((F(x_0)/F(x))^(1/3)*H)`` of ADA-LUPA (that it is rounded upwards is our reading).

    >>> adaptive(4, 8.0, 1.0), adaptive(4, 1.0, 1.0)
    (8, 4)
    """
    if not (start > 0 and now > 0):
        raise UsageError(f"the adaptive period needs positive losses, not {start!r} and {now!r}.")
    return math.ceil((start / now) ** (1 / 3) * H * (1 - 1e-12))  # a cube root of a cube is whole up to rounding


def schedule(periods: Sequence[int]) -> list[int]:
    """The hyper-parameter H of ``local_sgd``, step by step, with which it averages at the ends of these periods alone.

    A step averages where H divides t + 1: H is t + 1 there and t + 2 elsewhere (so the rounds of the history mean nothing).

    >>> schedule([2, 1])
    [2, 2, 3]
    """
    ends = set(itertools.accumulate(periods))
    return [t if t in ends else t + 1 for t in range(1, sum(periods) + 1)]


def run(problem: Any, gamma: float, H: int, R: int, seed: int = 0) -> tuple[list[int], np.ndarray]:
    """R rounds of ADA-LUPA from 0: ``(periods, models after every round)``; the losses are values of f."""
    from verify_rates.solvers.engine.run import simulate

    x, periods, models = np.zeros(problem.d), [], []
    start = problem.value(x)
    for i in range(R):
        periods.append(adaptive(H, start, problem.value(x)))
        given = {"gamma": gamma, "H": periods[-1]}
        x = simulate("local_sgd", problem, given, steps=periods[-1], seed=seed + i, x0=x, engine="numpy").final["x"][0][0]
        models.append(x)
    return periods, np.array(models)


def released(T: int, R: int, H: int, first: int) -> Found:
    """lupa.3: the sum of the released code's periods beside the steps that they have to sum to."""
    total = float(sum(linear(H, function(ALPHA, "T R H")(Fraction(T), R, H), R, first)))
    return Found(total, total, T, "==", proves=True, message=f"the periods sum to {total:.6g}, not to {T}")


def slope(T: int, R: int, H: int, printed_value: float) -> Found:
    """The printed slope 1.0927 of the experiments, from the released formula."""
    value = float(function(ALPHA, "T R H")(Fraction(T), R, H))
    return Found.count(int(round(value, 4) != printed_value), 1, proves=True)


def conditions(most: int) -> Found:
    """lupa.3 for linear periods with the exact slope, in fractions: their sum, sum of tau_i*(tau_i-1), and largest one."""
    wrong = cases = 0
    for R in range(2, 9):
        for T, H in itertools.product(range(R, most + 1), range(1, most // R + 1)):
            if R * H > T:
                continue
            periods = linear(H, function(EXACT, "T R H")(Fraction(T), R, H), R)
            squares, largest = (function(text, "T R")(Fraction(T), R) for text in (SQUARES, LARGEST))
            wrong += sum(periods) != T or sum(p * (p - 1) for p in periods) > squares or max(periods) > largest
            cases += 1
    return Found.count(wrong, cases, proves=True)
