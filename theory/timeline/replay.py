"""Many rounds of the periodic graph, task after task: compiled for speed, or in fractions.

The tasks of a round repeat, so only their moments change: ``start = max(what it waits for, its stream free)``.  The order of the
additions is that of the step function with clocks, so both give the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from verify_rates.solvers.method import Method
from verify_rates.theory.timeline.cycles import compiled
from verify_rates.theory.timeline.events import Task, period_steps, settled
from verify_rates.theory.timeline.simulate import MOST_ROUNDS, ROUNDING, UNTIED_ROUNDS, Event
from verify_rates.theory.timeline.simulate import run as steps_run

LONG = 1_000  # steps: below, the step function is as quick
COMPILED_FROM = 20_000  # tasks: below, loading Numba takes longer than the rounds


class Pattern(NamedTuple):
    """The tasks of one round as arrays; edges ``first[i]:first[i+1]`` are what task i waits for.

    ``source`` and ``ago``: which task, so many rounds before; ``end``: whether for its stream (1) or for its result (0).
    """

    occupies: np.ndarray
    later: np.ndarray
    first: np.ndarray
    source: np.ndarray
    ago: np.ndarray
    end: np.ndarray

    @property
    def memory(self) -> int:
        """Rounds that a round looks back on."""
        return max(1, int(self.ago.max(initial=1)))


def pattern(tasks: Sequence[Task], costs: Sequence[tuple[Any, Any]]) -> Pattern:
    """The tasks with what each costs, ``(occupies, later)``: floats, or fractions for exact moments."""
    kind = np.float64 if all(isinstance(c, float) for pair in costs for c in pair) else object
    edges: list[tuple[int, int, int]] = []
    first = [0]
    for task in tasks:
        edges += [(j, k, 0) for j, k in sorted(task.after)] + ([(*task.behind, 1)] if task.behind else [])
        first.append(len(edges))
    source, ago, end = np.array(edges, dtype=np.int64).reshape(-1, 3).T.copy()
    occupies, later = np.array(costs, dtype=kind).reshape(-1, 2).T.copy()
    return Pattern(occupies, later, np.array(first), source, ago, end)


def play(p: Pattern, rounds: int, before: np.ndarray | None = None) -> np.ndarray:
    """When every task starts, ``(rounds, tasks)``.

    Parameters
    ----------
    before : (at least ``p.memory``, tasks) starts of the rounds before; without them nothing is waited for and time begins at 0.

    >>> from verify_rates.theory.timeline.events import Task
    >>> one = Task("grad", ("compute", 0), 0, None, 1, frozenset({(0, 1)}), (0, 1))
    >>> play(pattern([one], [(2.0, 0.5)]), 3)[:, 0].tolist()
    [0.0, 2.5, 5.0]
    """
    memory, m = p.memory, len(p.occupies)
    starts = np.empty((memory + rounds, m), dtype=p.occupies.dtype)
    if before is None:
        starts[:memory] = -math.inf
    else:
        starts[:memory] = before[-memory:]
    exact = starts.dtype == object
    loop: Any = compiled(_rounds) if not exact and rounds * m >= COMPILED_FROM else _rounds
    loop(p.occupies, p.later, p.first, p.source, p.ago, p.end, starts, memory, 0 if exact else 0.0)
    return starts[memory:]


def _rounds(occupies, later, first, source, ago, end, starts, begin, zero):
    for r in range(begin, len(starts)):
        for i in range(len(occupies)):
            start = zero
            for e in range(first[i], first[i + 1]):
                j = source[e]
                moment = starts[r - ago[e], j] + occupies[j]
                if end[e] == 0:
                    moment = moment + later[j]
                if moment > start:
                    start = moment
            starts[r, i] = start


def pace(p: Pattern) -> Any:
    """Time of a round in the steady state: rounds are played until all tasks are those of some earlier round, shifted.

    A max-plus system commutes with shifts in time, so a common shift over as many rounds as it looks back on repeats for ever: the
    answer is exact, not a long average.  Tasks that nothing ties together have shifts of their own; there the largest one is taken
    once all have stayed the same for 500 rounds.

    Errors: ArithmeticError where no shift is found in 20,000 rounds.
    """
    longest, count = 2 * (p.memory + 2), 4 * (p.memory + 2)
    starts = play(p, count)
    while True:
        for back in range(1, longest + 1):
            found = _repeated(starts, back, p.memory)
            if found is not None:
                return found
        if len(starts) > MOST_ROUNDS:
            raise ArithmeticError(f"the tasks did not become periodic in {MOST_ROUNDS} rounds")
        starts = np.concatenate([starts, play(p, len(starts), starts)])


def run(
    method: Method, hyper: Any, steps: int, cost: Callable[..., Any], neighbours: Sequence[Sequence[int]] = ((0,),), encodes: bool = False
) -> list[Event]:
    """The events of the first ``steps`` steps: of the step function with clocks until its tasks repeat, of those tasks from there on.

    Guarantee: the same bits as the step function with clocks all the way.
    """
    if steps <= LONG:
        return steps_run(method, hyper, steps, cost, neighbours, encodes)
    tasks, since = settled(method, hyper, neighbours, encodes)
    p = pattern(tasks, [cost(t.word, t.stream, t.load, t.copies) for t in tasks])
    per_round, m = period_steps(method, hyper), len(tasks)
    head = since + p.memory
    if steps <= head * per_round:
        return steps_run(method, hyper, steps, cost, neighbours, encodes)
    events = steps_run(method, hyper, head * per_round, cost, neighbours, encodes)
    before = np.array([e.start for e in events[len(events) - p.memory * m :]]).reshape(p.memory, m)
    starts = play(p, -(-steps // per_round) - head, before)
    ends = starts + p.occupies
    there = ends + p.later
    for r, moments in enumerate(zip(starts.tolist(), ends.tolist(), there.tolist(), strict=True), start=head):
        for task, *when in zip(tasks, *moments, strict=True):
            events.append(Event(task.word, *task.stream, r * per_round + task.step, *when))
    return [e for e in events if e.step < steps]


def _repeated(starts: np.ndarray, back: int, memory: int) -> Any:
    """Time of a round, where the last rounds are those of ``back`` rounds earlier, shifted."""
    shifts = starts[back:] - starts[:-back]
    exact = starts.dtype == object
    limit = 0 if exact else ROUNDING * max(1.0, float(starts[-1].max()))
    last = shifts[-memory:]
    if len(last) == memory and last.max() - last.min() <= limit:
        return last[-1].max() / back if exact else float(last.mean()) / back
    tail = shifts[-UNTIED_ROUNDS:]
    if len(tail) == UNTIED_ROUNDS and (abs(tail - tail[-1]) <= 2 * limit).all():
        return tail[-1].max() / back if exact else float(tail[-1].max()) / back
    return None
