"""Edge learning over a shared band: the flexible and the rigid split of one upload round.

Client k is ready at ``a_k`` and has ``q_k`` to send (bits over spectral efficiency); the band is ``B``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import sympy as sp

from verify_rates.solvers.method import UsageError
from verify_rates.theory.evidence import Found

BISECTIONS = 60
Rule = Callable[[list[int], list[Fraction], Sequence[Fraction]], dict[int, Fraction]]


def flexible(ready: Sequence[Fraction], loads: Sequence[Fraction], band: Fraction) -> Fraction:
    """edge_learning.1: ``max_j (a_j + (1/B)*sum of q_k with a_k >= a_j)``.

    >>> flexible([Fraction(0), Fraction(1)], [Fraction(4), Fraction(1)], Fraction(2))
    Fraction(5, 2)
    """
    _checked(ready, loads, band)
    return max(a + sum((q for b, q in zip(ready, loads, strict=True) if b >= a), Fraction(0)) / band for a in ready)


def rigid(ready: Sequence[Fraction], loads: Sequence[Fraction], band: Fraction) -> tuple[Fraction, Fraction]:
    """edge_learning.2: the root T of ``sum q_k/(T - a_k) = B``, enclosed in an interval of fractions by bisection."""
    _checked(ready, loads, band)
    low = max(ready)
    high = low + sum(loads, Fraction(0)) / band
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        over = sum(q / (middle - a) for a, q in zip(ready, loads, strict=True)) > band
        low, high = (middle, high) if over else (low, middle)
    return low, high


def _checked(ready: Sequence[Fraction], loads: Sequence[Fraction], band: Fraction) -> None:
    if not ready or len(ready) != len(loads) or min(loads) <= 0 or band <= 0 or min(ready) < 0:
        raise UsageError("every client needs a ready time of at least 0 and a positive load, and the band must be positive.")


def served(ready: Sequence[Fraction], loads: Sequence[Fraction], band: Fraction, rule: Rule) -> Fraction:
    """When all is sent, by events, if the band is divided by ``rule`` among the clients that are ready and not done."""
    left, now = list(loads), min(ready)
    while any(left):
        there = [k for k, q in enumerate(left) if q and ready[k] <= now]
        later = [a for a, q in zip(ready, left, strict=True) if q and a > now]
        if not there:
            now = min(later)
            continue
        rates = {k: r for k, r in rule(there, left, ready).items() if r}
        end = min([now + left[k] / (r * band) for k, r in rates.items()] + later)
        for k, r in rates.items():
            left[k] -= r * band * (end - now)
        now = end
    return now


RULES: dict[str, Rule] = {
    "first come": lambda there, left, ready: {min(there, key=lambda k: (ready[k], k)): Fraction(1)},
    "last come": lambda there, left, ready: {max(there, key=lambda k: (ready[k], k)): Fraction(1)},
    "equal shares": lambda there, left, ready: dict.fromkeys(there, Fraction(1, len(there))),
    "by what is left": lambda there, left, ready: {k: left[k] / sum(left[j] for j in there) for k in there},
}


def _instances(clients: int, most: int) -> list[tuple[list[Fraction], list[Fraction]]]:
    values = itertools.product(itertools.product(range(most), repeat=clients), itertools.product(range(1, most), repeat=clients))
    return [([Fraction(v) for v in a], [Fraction(v) for v in q]) for a, q in values]


def flexible_makespan(clients: int, most: int, idle: bool = False) -> Found:
    """edge_learning.1: every work-conserving rule ends at the formula's time, on all small whole instances.

    ``idle`` puts a rule that leaves half of the band unused in their place (it has to be late).
    """
    rules = {"half": lambda there, left, ready: {there[0]: Fraction(1, 2)}} if idle else RULES
    wrong = cases = 0
    for a, q in _instances(clients, most):
        said = flexible(a, q, Fraction(2))
        wrong += sum(served(a, q, Fraction(2), rule) != said for rule in rules.values())
        cases += len(rules)
    return Found.count(wrong, cases, proves=True)


def flexible_is_least(clients: int, most: int) -> Found:
    """edge_learning.1: no schedule ends earlier: what is ready from ``a_j`` on cannot be sent before the formula's time.

    The lower bound is tested with slotted schedules, all of them: whole loads, one unit a slot.
    """
    wrong = cases = 0
    for a, q in _instances(clients, most):
        best = _best_slotted(tuple(int(v) for v in a), tuple(int(v) for v in q))
        wrong += best != flexible(a, q, Fraction(1))
        cases += 1
    return Found.count(wrong, cases, proves=True)


def _best_slotted(ready: tuple[int, ...], loads: tuple[int, ...]) -> int:
    """The earliest end over all ways to serve one unit of one client, or of none, in every slot (breadth first over slots)."""
    states, now = {loads}, 0
    while (0,) * len(loads) not in states:
        following = set(states)
        for left in states:
            for k, q in enumerate(left):
                if q and ready[k] <= now:
                    following.add((*left[:k], q - 1, *left[k + 1 :]))
        states, now = following, now + 1
    return now


def rigid_split(clients: int, seed: int) -> Found:
    """edge_learning.2: the split ``q_k/(T - a_k)`` ends at T, and no other constant split ends earlier (random and neighbouring ones)."""
    rng, wrong, cases = np.random.default_rng([seed, clients, 2]), 0, 0
    for _ in range(10):
        a = [Fraction(int(v)) for v in rng.integers(0, 9, clients)]
        q = [Fraction(int(v)) for v in rng.integers(1, 9, clients)]
        band = Fraction(3)
        low, high = rigid(a, q, band)
        shares = [v / (high - b) for b, v in zip(a, q, strict=True)]
        wrong += sum(shares) > band or max(b + v / r for b, v, r in zip(a, q, shares, strict=True)) > high
        for _ in range(20):
            near = [float(r) * np.exp(0.1 * rng.standard_normal()) for r in shares]
            other = [band * Fraction(r) / sum(map(Fraction, near)) for r in near]
            wrong += max(b + v / r for b, v, r in zip(a, q, other, strict=True)) < low
            cases += 1
        cases += 1
    return Found.count(int(wrong), cases)


def ordering(clients: int, most: int) -> Found:
    """edge_learning.3: the flexible round is never longer than the rigid one, on all small whole instances."""
    wrong = cases = 0
    for a, q in _instances(clients, most):
        wrong += rigid(a, q, Fraction(2))[1] < flexible(a, q, Fraction(2))
        cases += 1
    return Found.count(wrong, cases, proves=True)


def convex_in_inverse_speed() -> Found:
    """edge_learning.4: with x_k = 1/f_k the energy is convex and the round's time, for a fixed upload order, a maximum of linear forms."""
    x, kap, C = sp.symbols("x kap C", positive=True)
    wrong = [sp.diff(kap * C / x**2, x, 2).is_positive is not True]
    for a, b in itertools.product(itertools.product(range(1, 4), repeat=3), repeat=2):
        middle = [Fraction(u + v, 2) for u, v in zip(a, b, strict=True)]
        ends = [_ordered_time([Fraction(v) for v in side], (0, 1, 2)) for side in (a, b)]
        wrong.append(_ordered_time(middle, (0, 1, 2)) > sum(ends) / 2)
    return Found.count(sum(map(bool, wrong)), len(wrong), proves=True)


def convex_without_order() -> Found:
    """The same for the best order (edge_learning.1's formula): the smallest pair of ready times whose middle is later than the mean."""
    loads, worst, where = [Fraction(1), Fraction(2)], Fraction(0), ""
    for a, b in itertools.product(itertools.product(range(4), repeat=2), repeat=2):
        sides = [flexible([Fraction(v) for v in side], loads, Fraction(1)) for side in (a, b)]
        excess = flexible([Fraction(u + v, 2) for u, v in zip(a, b, strict=True)], loads, Fraction(1)) - sum(sides, Fraction(0)) / 2
        if excess > worst:
            worst, where = excess, where or f"ready times {a} and {b}: the middle takes {excess} longer than the mean"
    return Found(float(worst), float(worst), 0.0, proves=True, message=where or "convex on all cases")


def _ordered_time(ready: Sequence[Fraction], order: Sequence[int]) -> Fraction:
    """The round's end when the uploads go one after the other in that order (loads 1, 2, 3; band 1)."""
    now = Fraction(0)
    for k in order:
        now = max(now, ready[k]) + k + 1
    return now
