"""CoCoA with bounded supports: how many rounds bring the duality gap of the averaged iterate below eps.

Source: derived, as in the paper's file.  h is the expected suboptimality of a round, G the expected gap; c = gamma*(1-Theta) and
b = 4*L^2*sigma*sigma'/tau.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from verify_rates.proofs_check.lemmas import telescope
from verify_rates.proofs_check.proof import Proof, proof

b, c, s, eps, N, k, u = sp.symbols("b c s eps N k u", positive=True)
h, h_next, G, start = sp.symbols("h h_next G start", nonnegative=True)


def _round(s: Any) -> Any:
    """What a round gains for a trade-off s in [0, 1], as a nonnegative slack."""
    return h - c * (s * G - s**2 * b / 2) - h_next


@proof(
    "cocoa.3", "CoCoA, bounded supports: t0 rounds until h <= b, then h <= b/(1+c*(t-t0)/2), then the average of b/(c*eps) rounds or more"
)
def cocoa(p: Proof) -> None:
    """Three phases, each with its trade-off s: 1, then 1/(1+c*(t-t0)/2), then 1/(c*N)."""
    p.assume("a round gives h_next <= h - c*(s*G - s^2*b/2) for every s in [0, 1], 0 < c <= 1, and h <= G; N >= 1/c rounds are averaged")
    p.assume("1 - c <= exp(-c), so that t0 >= log(2*h_0/b)/c gives (1-c)^t0*h_0 <= b/2; the gap is convex")
    p.region[c] = 1 / (1 + u)
    W = sp.Symbol("W", nonnegative=True)  # W = (1-c)^t
    first = (1 - c) * h + c * b / 2 - h_next
    p.implied("with s = 1", first, by=[(1, _round(1)), (c, G - h)])
    p.implied("the first phase, by induction", W * (1 - c) * start + b / 2 - h_next, by=[(1, first), (1 - c, W * start + b / 2 - h)])
    level = p.constant("level of the first phase", b / 2)
    p.implied("its end", b - h, by=[(1, W * start + b / 2 - h), (1, level - W * start)])
    half = p.constant("second phase", sp.Rational(1, 2))
    later = 1 / (1 / s + c * half)  # s of the next round
    p.region[s] = 1 / (1 + k)
    p.nonnegative("s stays in [0, 1]", 1 - s, 1 - later)
    kept = b * (c * s / 2) ** 2 * s / (1 + c * s / 2)
    by = [(1, _round(s)), (c * s, G - h), (1 - c * s, b * s - h), (kept, 1)]
    p.implied("the second phase, by induction", b * later - h_next, by=by)
    total, last = sp.symbols("total last", nonnegative=True)  # of the gaps over the last N rounds; h at their end
    share = 1 / (c * N)  # a trade-off, as N >= 1/c
    telescope(p, "the sum over the last rounds", c * share, c * share**2 * b / 2)
    summed = h - c * share * total + N * c * share**2 * b / 2 - last
    mean = h + b / (2 * c * N) - total / N
    p.implied("the mean gap", mean, by=[(1, summed), (last, 1)])
    t = sp.Symbol("t", nonnegative=True)
    by = [(1, b / (1 + c * t / 2) - h), (c * eps / (4 * (1 + c * t / 2)), t - 2 / c * (2 * b / eps - 1))]
    p.implied("h at the start of the last rounds", eps / 2 - h, by=by)
    p.implied("or at once, if b is small", eps / 2 - h, by=[(1, b - h), (1, eps / 2 - b)])
    by = [(1, mean), (1, eps / 2 - h), (eps / (2 * N), N - p.constant("last rounds", b / (c * eps)))]
    p.implied("the theorem", eps - total / N, by=by)
