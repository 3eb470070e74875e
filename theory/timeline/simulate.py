"""Event simulation: the step function itself with clocks for vectors, independent of the graph and its cycles."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from verify_rates.solvers.method import Method
from verify_rates.theory.timeline.events import EventWorld, Load, Value, period_steps

ROUNDING = 1e-13  # relative: a moment is a sum of at most some thousands of times
MOST_ROUNDS = 20_000


class Event(NamedTuple):
    """One task that ran, in seconds from the start; a result is there at ``arrives``."""

    word: str
    stream: str  # "compute" or "link"
    worker: int
    step: int
    start: float
    end: float
    arrives: float


class Cost(NamedTuple):
    """How long a task holds its stream and how much later its result is there, in seconds."""

    occupies: float
    later: float


CostOf = Callable[[str, tuple[str, int], "Load | None", int], Cost]


@dataclass
class ClockWorld(EventWorld):
    """Moments are seconds; a task starts when its inputs and its stream are ready."""

    cost: CostOf | None = None
    step: int = 0
    free: dict[tuple[str, int], float] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def join(self, moments: Iterable[float]) -> float:
        return max(moments)

    def task(self, word: str, stream: tuple[str, int], ready: Any, load: Load | None = None, copies: int = 1) -> float:
        assert self.cost is not None
        occupies, later = self.cost(word, stream, load, copies)
        start = max(ready, self.free.get(stream, 0.0))
        self.free[stream] = start + occupies
        self.events.append(Event(word, *stream, self.step, start, start + occupies, start + occupies + later))
        return start + occupies + later


def run(method: Method, hyper: Any, steps: int, cost: CostOf, neighbours: Sequence[Sequence[int]] = ((0,),), encodes: bool = False):
    """The events of the first ``steps`` steps."""
    world = ClockWorld(neighbours, encodes, cost=cost)
    s = world.start(method, hyper, 0.0)
    for t in range(steps):
        world.step = t
        s = _step(method, world, s, hyper, t)
    return world.events


def seconds_per_round(
    method: Method, hyper: Any, cost: CostOf, neighbours: Sequence[Sequence[int]] = ((0,),), encodes: bool = False
) -> float:
    """Pace in the steady state: rounds are simulated until all clocks are those of some earlier round, shifted.

    A max-plus system commutes with shifts in time, so the shift then repeats for ever: the answer is exact, not a long average.

    Errors: ArithmeticError where no shift is found in 20,000 rounds.
    """
    tau, steps = int(getattr(hyper, "tau", 0)), period_steps(method, hyper)
    world = ClockWorld(neighbours, encodes, cost=cost)
    s = world.start(method, hyper, 0.0)
    seen: deque[np.ndarray] = deque(maxlen=2 * (tau + 2) * world.n)
    for r in range(MOST_ROUNDS):
        for t in range(steps):
            s = _step(method, world, s, hyper, r * steps + t)
        world.events.clear()
        now = _clocks(world, s)
        for back, then in enumerate(reversed(seen), start=1):
            if len(then) == len(now) and np.ptp(now - then) <= ROUNDING * max(1.0, now.max()):
                return float(np.mean(now - then)) / back
        seen.append(now)
    raise ArithmeticError(f"the clocks of {method.name} did not become periodic in {MOST_ROUNDS} rounds")


def _step(method: Method, world: ClockWorld, s: Any, hyper: Any, t: int) -> Any:
    return method.state(*map(world.settle, method.step(s, world, hyper, t)))


def _clocks(world: ClockWorld, s: Any) -> np.ndarray:
    """All moments that can still matter: one before every stream is free is as good as past."""
    flat: list[float] = []
    stack = list(s)
    while stack:
        v = stack.pop()
        if isinstance(v, Value):
            flat.extend(v.ready)
        else:
            stack.extend(v)
    streams = [world.free[key] for key in sorted(world.free)]
    return np.maximum(np.array([*streams, *flat]), min(streams, default=0.0))
