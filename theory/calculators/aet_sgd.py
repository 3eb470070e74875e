"""AET-SGD: rounds of growing length, messages, and the time of a round under the lag rule.

Nodes wait for one another round by round and apply sums of messages as they come: a simulator of the schedule, no step function.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import networkx as nx

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators.lines import function
from verify_rates.theory.evidence import Found
from verify_rates.theory.symbols import number

# c is the growth of the rounds, a their lengths' time s_r*T_comp, lat the delay of a message, tau the allowed lag d_round.
STEPS = "c*R*(R+1)/2"  # aet_sgd.1: local steps in R rounds, s_r = c*r
ROUNDS = "(-1 + sqrt(1 + 8*T/c))/2"
MESSAGES = "R*m"  # aet_sgd.2, m directed edges
ROUND_TIME = "Max(a, lat)"
ROUND_TIME_REPAIRED = "Max(a, (a + lat)/(tau + 1))"


def rounds_done(steps: int, c: int) -> int:
    """Rounds that are complete after so many local steps, counted round by round.

    >>> rounds_done(119350, 10), rounds_done(119349, 10)
    (154, 153)
    """
    if c < 1 or steps < 0:
        raise UsageError("c must be at least 1 and the number of steps at least 0.")
    r = 0
    while steps >= c * (r + 1):
        r += 1
        steps -= c * r
    return r


def round_count(c: int, most: int) -> Found:
    """aet_sgd.1 for all step counts up to ``most``: R is the number of complete rounds; rounded down where a round does not end there."""
    wrong = 0
    for R in range(1, 60):
        steps = function(STEPS, "c R")(c, R)
        wrong += steps != sum(c * r for r in range(1, R + 1)) or abs(number(ROUNDS, {"T": int(steps), "c": c}) - R) > 1e-12 * R
    rounds = function(ROUNDS, "T c")
    for steps in range(1, most):
        wrong += math.floor(rounds(steps, c) + 1e-9) != rounds_done(steps, c)
    growth = [number(ROUNDS, {"T": 10**k, "c": c}) / math.sqrt(2 * 10**k / c) for k in (4, 8, 12)]
    wrong += not abs(growth[2] - 1) < abs(growth[1] - 1) < abs(growth[0] - 1) < 0.1
    return Found.count(wrong, 59 + most, proves=True)


def saving(whole: bool, against: int, said: float, digits: float) -> Found:
    """Communication of K = 120000 steps, c = 10, against one round every ``against`` steps; R rounded down to whole rounds or not."""
    R = rounds_done(120_000, 10) if whole else number(ROUNDS, {"T": 120_000, "c": 10})
    ratio = 120_000 / against / R
    off = abs(ratio - said)
    return Found(off, off, digits / 2, proves=True, message=f"the saving is {ratio:.5g}, printed is {said:g} (R = {R:.5g})")


def run(graph: nx.DiGraph, lengths: Sequence[int], T_comp: Fraction, delay: Fraction, lag: int) -> tuple[list[Fraction], int, Fraction]:
    """The schedule: ``(when the slowest node ends each round, messages, time spent waiting)``.

    After round r a node sends to its out-neighbours and waits while ``r - min_j r_j > lag``, r_j the last round received from j.
    """
    if lag < 0:
        raise UsageError(f"the lag must be at least 0, not {lag}.")
    ends: list[dict[int, Fraction]] = []
    now, messages, waited = dict.fromkeys(graph, Fraction(0)), 0, Fraction(0)
    for r, length in enumerate(lengths):
        ends.append({i: now[i] + length * T_comp for i in graph})
        messages += graph.number_of_edges()
        needed = r - lag
        now = {i: max([ends[-1][i], *(ends[needed][j] + delay for j in graph.predecessors(i) if needed >= 0)]) for i in graph}
        waited += sum((now[i] - ends[-1][i] for i in graph), Fraction(0))
    return [max(e.values()) for e in ends], messages, waited


def _ring(n: int) -> nx.DiGraph:
    return nx.cycle_graph(n).to_directed() if n > 2 else nx.path_graph(n).to_directed()


def message_count(n: int, R: int) -> Found:
    """aet_sgd.2: R broadcasts over every directed edge."""
    graph = _ring(n)
    _, sent, _ = run(graph, [10 * r for r in range(1, R + 1)], Fraction(1), Fraction(1), 5)
    said = function(MESSAGES, "R m")(R, graph.number_of_edges())
    return Found(sent, sent, float(said), "==", proves=True, message=f"{sent} messages, said are {said}")


def round_time(said: str, delay: int, lag: int, length: int = 1) -> Found:
    """aet_sgd.2: the pace of equal rounds on two nodes, beside the formula of that name."""
    R = 12 * (lag + 1)
    ends, _, _ = run(_ring(2), [length] * (2 * R), Fraction(1), Fraction(delay), lag)
    pace = (ends[-1] - ends[-1 - R]) / R
    expected = function(globals()[said], "a lat tau")(Fraction(length), Fraction(delay), lag)
    text = f"a round takes {float(pace):g} s, said are {float(expected):g} s (s_r*T_comp = {length}, delay {delay}, lag {lag})"
    return Found(float(pace), float(pace), float(expected), "==", proves=True, message=text)


def growing_rounds_hide() -> Found:
    """With s_r = c*r and a lag of at least 1 nobody waits from the round on whose computation is as long as the delay."""
    wrong = cases = 0
    for c, delay, lag, n in itertools.product((1, 3), (1, 7, 20), (1, 2, 5), (2, 4)):
        lengths = [c * r for r in range(1, 40)]
        waits = [run(_ring(n), lengths[:r], Fraction(1), Fraction(delay), lag)[2] for r in range(1, len(lengths) + 1)]
        late = next(r for r, length in enumerate(lengths) if length >= delay)
        wrong += waits[-1] != waits[max(0, late - 1)]
        cases += 1
    return Found.count(wrong, cases, proves=True)
