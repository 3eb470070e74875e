"""CO2: the gap penalty it needs, and its times from the time lines of the step functions."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import lru_cache
from typing import Any

from verify_rates.theory.calculators.lines import function, pace_of, printed
from verify_rates.theory.calculators.messages import Network, ring_all_reduce
from verify_rates.theory.calculators.slowmo import points, stable
from verify_rates.theory.calculators.streams import same_maximum
from verify_rates.theory.evidence import Found

PENALTY = "alpha*theta/(1-beta)"  # co2.7, theta the paper's kappa
RING = "2*(n-1)*lat + 2*(n-1)/n*size/bw"  # co2.8
TIMES = {  # co2.9 a step, T_tx + lat the all-reduce that holds the link, T_outer = 0
    "gd": "T_comp + T_tx + lat",
    "local_sgd": "T_comp + (T_tx + lat)/H",
    "slowmo": "T_comp + (T_tx + lat)/H",
    "co2": "Max(T_comp, (T_tx + lat)/H)",
}
LEAST_H = "ceiling(T_tx/T_comp)"  # co2.10, T_tx the whole all-reduce


def penalty() -> Found:
    """co2.7 in fractions: a penalty damps the direction iff it is larger than stated (alpha = 1, kappa = c)."""
    wrong = cases = 0
    for (kappa, beta), Lambda in itertools.product(points(), (Fraction(1), Fraction(3, 2), Fraction(2), Fraction(5), Fraction(20))):
        if kappa > 0:
            needed = function(PENALTY, "alpha theta beta")(1, kappa, beta)
            wrong += stable("co2", kappa / Lambda, beta) != (Lambda > needed)
            cases += 1
    return Found.count(wrong, cases, proves=True)


def ring(n: int, d: int) -> Found:
    """co2.8: the ring all-reduce played message by message, in fractions (d is a multiple of n)."""
    lat, per_word = Fraction(3, 2), Fraction(1, 8)
    net = Network(n, lat, per_word)
    sums = ring_all_reduce(net, [[i * d + j for j in range(d)] for i in range(n)])
    said = function(RING, "n lat size bw")(n, lat, 4 * d, 4 / per_word)
    return Found.count(int(net.seconds != said) + (sums[0] != [sum(i * d + j for i in range(n)) for j in range(d)]), 2, proves=True)


def seconds(method: str, H: int) -> Found:
    """co2.9 from the step function, the all-reduce holding the link."""
    made = pace_of(method, {} if method == "gd" else {"H": H}, link="blocking")
    return Found.count(int(not same_maximum(made, printed(TIMES[method], H=H))), 1, proves=True)


def full_overlap(most: int) -> Found:
    """co2.10 on small whole times: the least H at which the time line of CO2 runs at the pace of the computation."""
    wrong = cases = 0
    for T_comp, T_ar in itertools.product(range(1, 5), range(1, most + 1)):
        said = function(LEAST_H, "T_tx T_comp")(Fraction(T_ar), Fraction(T_comp))
        hidden = [H for H in range(1, most + 2) if _pace(H)(T_comp, T_ar) == H * T_comp]
        wrong += hidden != list(range(said, most + 2))
        cases += 1
    return Found.count(wrong, cases, proves=True)


@lru_cache
def _pace(H: int) -> Any:
    """Seconds per step of CO2 as a function of T_comp and T_ar that keeps fractions."""
    import sympy as sp

    T_comp, T_tx, lat = sp.symbols("T_comp T_tx lat", nonnegative=True)
    made = pace_of("co2", {"H": H}, link="blocking").subs(lat, 0)
    compute = sp.lambdify([T_comp, T_tx], H * made, [{"Max": max}, "math"])
    return lambda a, b: compute(Fraction(a), Fraction(b))
