"""Event simulation: the step function itself with clocks for vectors, independent of the graph and its cycles."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from verify_rates.solvers.method import Method
from verify_rates.theory.timeline.events import EventWorld, Load, Value, longest_stay, period_steps, structure

ROUNDING = 1e-13  # relative: a moment is a sum of at most some thousands of times
MOST_ROUNDS = 20_000
UNTIED_ROUNDS = 500


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
    """Moments are seconds, as floats or fractions; a task starts when its inputs and its stream are ready."""

    cost: CostOf | None = None
    zero: Any = 0.0
    step: int = 0
    free: dict[tuple[str, int], float] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    def join(self, moments: Iterable[float]) -> float:
        return max(moments)

    def task(self, word: str, stream: tuple[str, int], ready: Any, load: Load | None = None, copies: int = 1) -> float:
        assert self.cost is not None
        occupies, later = self.cost(word, stream, load, copies)
        start = max(ready, self.free.get(stream, self.zero))
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
) -> Any:
    """Pace in the steady state: rounds are simulated until all clocks are those of some earlier round, shifted, and as much is
    still to be sent.

    A max-plus system commutes with shifts in time, so a common shift repeats for ever: the answer is exact, not a long average.
    Streams that nothing ties together (a link that falls behind for ever) have shifts of their own; there the largest one is
    taken once all have stayed the same for 500 rounds.  With costs in fractions there is no rounding, and the answer is a fraction.

    Errors: ArithmeticError where no shift is found in 20,000 rounds.
    """
    tau, steps = int(getattr(hyper, "tau", 0)), period_steps(method, hyper)
    zero = 0 * cost("grad", ("compute", 0), None, 1).occupies  # a fraction where costs are fractions
    world = ClockWorld(neighbours, encodes, cost=cost, zero=zero)
    s = world.start(method, hyper, zero)
    watch = _Watch(max(2 * (tau + 2) * world.n, longest_stay(method, tau)))
    for r in range(MOST_ROUNDS):
        for t in range(steps):
            s = _step(method, world, s, hyper, r * steps + t)
        world.events.clear()
        found = watch.see(_clocks(world, s), structure(s))
        if found is not None:
            return found
    raise ArithmeticError(f"the clocks of {method.name} did not become periodic in {MOST_ROUNDS} rounds")


class _Watch:
    """Looks for a shift between the clocks of now and of an earlier round."""

    def __init__(self, longest: int) -> None:
        self.longest = longest
        self.seen: deque[np.ndarray] = deque(maxlen=longest)
        self.kinds: deque[Any] = deque(maxlen=longest)
        self.shifts, self.steady = np.zeros((0, 0)), np.zeros(longest, dtype=int)

    def see(self, now: np.ndarray, kind: Any) -> Any:
        """Seconds per round, once known."""
        if self.seen and len(self.seen[0]) != len(now):  # a stream came into use
            self.seen.clear()
            self.kinds.clear()
            self.steady[:] = 0
        if not self.seen:
            self.shifts = np.zeros((0, len(now)))
        found = self._compare(now, kind) if self.seen else None
        self.seen.appendleft(now)
        self.kinds.appendleft(kind)
        return found

    def _compare(self, now: np.ndarray, kind: Any) -> Any:
        shifts, exact = now - np.array(self.seen), now.dtype == object
        limit = 0 if exact else ROUNDING * max(1.0, float(now.max()))
        alike = np.array([other == kind for other in self.kinds])
        moving = shifts[-1] != 0  # after so many rounds the rest stays as it is, and is past
        if len(self.seen) < self.longest or not moving.any():
            moving[:] = True
        tied = alike & (np.ptp(shifts[:, moving], axis=1) <= limit)
        if tied.any():
            back = int(np.argmax(tied))
            return (np.max(shifts[back]) if exact else float(np.mean(shifts[back, moving]))) / (back + 1)
        m = len(self.shifts)
        same = alike[:m] & (np.abs(shifts[:m] - self.shifts) <= 2 * limit).all(axis=1)
        self.steady[:m] = np.where(same, self.steady[:m] + 1, 0)
        self.shifts = shifts
        done = self.steady[: len(shifts)] >= UNTIED_ROUNDS
        back = int(np.argmax(done))
        if not done.any():
            return None
        return np.max(shifts[back]) / (back + 1) if exact else float(np.max(shifts[back])) / (back + 1)


def _step(method: Method, world: ClockWorld, s: Any, hyper: Any, t: int) -> Any:
    return method.state(*map(world.settle, method.step(s, world, hyper, t)))


def _clocks(world: ClockWorld, s: Any) -> np.ndarray:
    """All moments that can still matter: one before every stream is free is as good as past."""
    flat: list[float] = []
    stack = list(s)
    while stack:
        v = stack.pop()
        if isinstance(v, Value):
            flat.extend(v.ready + v.known)
        else:
            stack.extend(v)
    streams = [world.free[key] for key in sorted(world.free)]
    return np.maximum(np.array([*streams, *flat]), min(streams, default=world.zero))
