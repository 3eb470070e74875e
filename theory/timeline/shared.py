"""Time lines on links that are shared fairly: by event simulation alone, since they are no max-plus systems."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from verify_rates.solvers.kinds import check_kinds
from verify_rates.solvers.method import Method
from verify_rates.solvers.words import Unsupported
from verify_rates.theory.timeline.events import Task, period_steps, periodic_tasks
from verify_rates.theory.timeline.line import Costs, EventGraph, asked, steps_shown
from verify_rates.theory.timeline.simulate import Event
from verify_rates.theory.timeline.transfers import Transfer, play_fair

RULE = "transfers under way share the link equally; a result arrives a latency after its last byte"
REASON = "a fairly shared link is no max-plus system: it has no cycle that sets the pace and no closed form, so this is an event simulation"
ROUNDS, MOST_ROUNDS = 64, 1024  # simulated rounds
LONGEST = 32  # rounds of a pattern that is looked for
RTOL = 1e-9  # relative to the time of a round: moments are sums of at most some thousands of times


@dataclass(frozen=True)
class SharedTimeLine:
    """Pace of a method whose transfers share their link.

    Attributes
    ----------
    seconds_per_step, seconds_per_round : of the pattern of rounds that repeats; the mean over the second half of the run where none does.
    steps_per_round : steps of one communication round.
    at_fifo : seconds per step if the link served one transfer after the other.
    rounds : simulated rounds.
    repeats : rounds of the pattern that was seen to repeat, 0 for none.
    link, formula_reason : the rule of the link, and why there is no formula.
    inputs : what was asked, in SI units.
    events : the first tasks as they run (seconds).
    """

    method: str
    seconds_per_step: float
    seconds_per_round: float
    steps_per_round: int
    at_fifo: float
    rounds: int
    repeats: int
    inputs: dict[str, Any]
    events: tuple[Event, ...] = field(repr=False)
    link: str = RULE
    formula: None = None
    formula_reason: str = REASON

    def __str__(self) -> str:
        seen = (
            f"the second half repeats every {self.repeats}"
            if self.repeats
            else "no pattern repeats, so this is a mean over the second half"
        )
        return "\n".join(
            [
                f"{self.method}: {self.seconds_per_step:.6g} s per step, {self.seconds_per_round:.6g} s per round",
                f"first in, first out: {self.at_fifo:.6g} s per step",
                f"simulated: {self.rounds} rounds; {seen}",
                f"formula: {self.formula_reason}",
                f"link: {self.link}",
            ]
        )

    def to_json(self, **options: Any) -> str:
        """Everything as JSON text, events with named columns."""
        return json.dumps(asdict(self) | {"events": [e._asdict() for e in self.events]}, allow_nan=False, **options)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def to_html(self, path: str | Path) -> None:
        """Refused: the page shows the cycle that sets the pace."""
        raise Unsupported("an interactive page of a time line without a cycle; plot and to_chrome show its events")

    def to_chrome(self, path: str | Path) -> None:
        """Write the events as Chrome trace JSON; transfers that share the link lie side by side, a thread each."""
        from verify_rates.theory.timeline.chrome import write

        lanes: list[float] = []
        events = []
        for e in sorted(self.events, key=lambda e: e.start):
            if e.word not in ("mean", "gossip", "broadcast"):
                events.append(e)
                continue
            lane = next((i for i, end in enumerate(lanes) if end <= e.start), len(lanes))
            lanes[lane : lane + 1] = [e.end]
            events.append(e._replace(stream=f"{e.stream} {lane}"))
        write(path, events, about={"method": self.method, **self.inputs})

    def plot(self, path: str | Path | None = None) -> Any:
        """Gantt chart of the events, no walk marked; a matplotlib Figure, also written to ``path`` if given."""
        from verify_rates.theory.timeline.gantt import draw

        title = f"{self.method}: {self.seconds_per_step:.4g} s per step, shared link"
        return draw(self.events, (), title, path, {"method": self.method, **self.inputs})


def shared_time_line(method: str | Method, hyper: Any = None, *, steps: int | None = None, **given: Any) -> SharedTimeLine:
    """The time line of a method whose transfers under way share their link; arguments as in :func:`verify_rates.timeline`.

    Mathematics: a transfer begins when its input is ready and moves at ``bandwidth`` over the number of transfers under way on its
    link; compute streams stay first in, first out.

    Guarantee: an event simulation up to rounding; its pace is that of a pattern that repeats through the second half of the rounds, or
    else a mean over them, as it says.

    Errors: Unsupported with a collective (its transfers share their links in another way each), UsageError for bad input.

    >>> shared_time_line("gd", compute=1, latency=2, bandwidth=8, size=4).seconds_per_step
    7.0
    """
    found, h, _, neighbours, costs, inputs = asked(method, hyper, link="fifo", **given)
    if costs.exchange:
        raise Unsupported("a time line of collectives on fairly shared links; vr.collective(..., link='fair') plays one of them")
    check_kinds(found, h)
    tasks = periodic_tasks(found, h, neighbours, costs.encode > 0)
    per_round = period_steps(found, h)
    shown = steps_shown(steps, per_round, int(getattr(h, "tau", 0)))
    fifo = EventGraph(tasks, costs).pace().ratio
    rounds = ROUNDS
    while True:
        events, ends = _played(tasks, costs, rounds, per_round)
        repeats = _pattern(np.diff(ends))
        if (repeats or rounds >= MOST_ROUNDS) and len(ends) > rounds // 2:
            break
        rounds *= 2
    pace = float(ends[-1] - ends[-1 - repeats]) / repeats if repeats else _mean_gap(ends)
    inputs |= {"hyper": {k: v for k, v in h._asdict().items() if k != "gamma"}, "workers": len(neighbours), "link": "fair"}
    return SharedTimeLine(
        method=found.name,
        seconds_per_step=pace / per_round,
        seconds_per_round=pace,
        steps_per_round=per_round,
        at_fifo=float(fifo) / per_round,
        rounds=rounds,
        repeats=repeats,
        inputs=inputs,
        events=tuple(e for e in events if e.step < shown),
    )


def _played(tasks: Sequence[Task], costs: Costs, rounds: int, per_round: int) -> tuple[list[Event], np.ndarray]:
    """Events of so many rounds, and when each round has all of its results.

    Only rounds that end before the last one begins count: what ends later would have shared its link with what would have followed.
    """
    made: list[Transfer] = []
    places: dict[tuple[str, int], int] = {}
    for r in range(rounds):
        for task in tasks:
            place = places.setdefault(task.stream, len(places))
            after = tuple((r - ago) * len(tasks) + j for j, ago in sorted(task.after) if r >= ago)
            pair = (len(made), -1) if task.load else (place, place)  # compute streams are queues; every transfer is a pair of its own
            made.append(Transfer(*pair, Fraction(1), r, after, (2 * place, 2 * place + 1), 0))
    cost = [costs(t.word, t.stream, t.load, t.copies) for t in tasks] * rounds
    played = play_fair(made, [c.occupies for c in cost], [c.later for c in cost])
    steps = [r * per_round + t.step for r in range(rounds) for t in tasks]
    moments = zip(played.start, played.end, played.arrives, strict=True)
    events = [Event(t.word, *t.stream, step, *when) for t, step, when in zip([*tasks] * rounds, steps, moments, strict=True)]
    ends = np.maximum.accumulate(np.array(played.arrives).reshape(rounds, len(tasks)).max(axis=1))
    return events, ends[ends <= min(played.start[-len(tasks) :])]


def _mean_gap(ends: np.ndarray) -> float:
    """Over the second half, from many starts to as many ends, so that where a pattern begins and ends matters little."""
    tail = ends[len(ends) // 2 :]
    apart = len(tail) // 2
    return float(np.mean(tail[apart : 2 * apart] - tail[:apart])) / apart


def _pattern(gaps: np.ndarray) -> int:
    """The shortest number of rounds after which gaps repeat all through the second half, at least twice; 0 for none."""
    tail = gaps[len(gaps) // 2 :]
    limit = RTOL * float(gaps.max(initial=0.0))
    for length in range(1, min(LONGEST, len(tail) // 3) + 1):
        if (abs(tail[length:] - tail[:-length]) <= limit).all():
            return length
    return 0
