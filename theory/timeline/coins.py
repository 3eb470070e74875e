"""Methods that toss coins: what a step is to be expected to take and to send, over all the ways in which the coins may fall.

What a step does depends on the state it begins in (who waits for whom, how far apart, and what is still to be sent) and on its coins.
Counted from the moment before which nothing can start any more, only finitely many states come up in the methods at hand, most often
one (everybody waits for everybody: a renewal); they are a Markov chain, and the mean over its stationary distribution is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from verify_rates.solvers.method import Method, UsageError
from verify_rates.theory.timeline.events import Load, Value, period_steps, structure
from verify_rates.theory.timeline.simulate import ClockWorld, Cost, CostOf

MOST_STATES = 500
MOST_COINS = 10  # of one step: its branches are gone through one after the other
BATCHES = 40
T_95 = 2.0227  # Student's t for BATCHES - 1 degrees of freedom, two-sided 95 %


class Expected(NamedTuple):
    """Seconds of a step to be expected.

    ``states`` : how many the Markov chain has, where the answer is exact; 0 where it is the mean of a long simulation, of which
    ``low`` and ``high`` are the ends of a 95 % interval (batch means).
    """

    seconds_per_step: float
    low: float
    high: float
    states: int

    @property
    def exact(self) -> bool:
        return self.states > 0

    def __str__(self) -> str:
        how = f"exact, over {self.states} state(s)" if self.exact else f"simulated, 95 % interval [{self.low:.6g}, {self.high:.6g}]"
        return f"{self.seconds_per_step:.6g} s per step to be expected ({how})"


@dataclass
class CoinWorld(ClockWorld):
    """Clocks, with what was sent in this step."""

    loads: list[tuple[str, Load]] = field(default_factory=list)
    rng: np.random.Generator | None = None  # tosses the coins where they are not said

    def chance(self, p: float) -> bool:
        return super().chance(p) if self.rng is None or not 0 < p < 1 else bool(self.rng.random() < p)

    def task(self, word: str, stream: tuple[str, int], ready: Any, load: Load | None = None, copies: int = 1) -> Any:
        if load is not None:
            self.loads.append((word, load))
        arrives = super().task(word, stream, ready, load, copies)
        self.events.clear()
        return arrives


class State(NamedTuple):
    """Where a step begins: the method's state, its world and the number of the step in its period."""

    fields: Any
    world: CoinWorld
    phase: int
    period: int


class Outcome(NamedTuple):
    """One way in which the coins of a step may fall."""

    probability: Any
    state: State
    loads: list[tuple[str, Load]]


def expected_time(method: str | Method, hyper: Any = None, *, seed: int = 0, steps: int = 20_000, **given: Any) -> Expected:
    """Seconds of a step to be expected of a method that tosses coins; further arguments as in :func:`verify_rates.timeline`.

    Guarantee: exact up to rounding where finitely many states come up (at most 500); else a mean of ``steps`` simulated steps.

    Parameters
    ----------
    seed, steps : of the simulation, where one is needed.

    Errors: UsageError for bad input; Unsupported where the method has no time line.

    >>> str(expected_time("mt_dao_sgdm", {"p_x": 0.25, "p_1": 0, "p_2": 0}, compute=1, latency=2, bandwidth=8, size=4))
    '2.5 s per step to be expected (exact, over 4 state(s))'
    """
    from verify_rates.theory.timeline.line import asked

    if isinstance(steps, bool) or not isinstance(steps, int) or steps < BATCHES:
        raise UsageError(f"steps must be a whole number of at least {BATCHES}, not {steps!r}.")
    found, h, _, neighbours, costs, _ = asked(method, hyper, exact=True, **given)
    first = begin(found, h, costs, neighbours, costs.encode > 0)
    chain = explore(found, h, first)
    if chain is None:
        return _simulated(found, h, first, steps, np.random.default_rng(seed))
    mean = float(chain.mean(lambda before, outcome: base(outcome.state) - base(before)))
    return Expected(mean, mean, mean, len(chain.states))


def begin(
    method: Method, hyper: Any, cost: CostOf | None = None, neighbours: Sequence[Sequence[int]] = ((0,),), encodes: bool = False
) -> State:
    """The first state; without a cost nothing takes time."""
    world = CoinWorld(neighbours, encodes, cost=cost or (lambda *_: Cost(0, 0)), zero=Fraction(0), coins=())
    fields, period = world.start(method, hyper, Fraction(0)), period_steps(method, hyper)
    state = State(fields, world, 0, period)
    used: set[Any] = set()
    for heads in (True, False):  # the streams that any coins lead to, found by all heads and all tails
        at = state
        for _ in range(2 * period):
            at = step(method, hyper, at, [heads] * MOST_COINS).state
            used |= set(at.world.free)
    world.free = dict.fromkeys(used, world.zero)
    return state


def step(method: Method, hyper: Any, state: State, coins: Sequence[bool] = (), rng: np.random.Generator | None = None) -> Outcome:
    """One step whose first coins fall so, the others heads; or all as a generator has it."""
    old = state.world
    own: dict[str, Any] = {"free": dict(old.free), "sent": dict(old.sent), "gossiped": dict(old.gossiped)}
    world = replace(old, **own, coins=coins, tossed=[], loads=[], rng=rng)
    fields = method.step(state.fields, world, hyper, state.phase)
    fields = method.state(*map(world.settle, fields))
    left = set(_atoms(fields))
    world.sent, world.gossiped = ({a: s for a, s in known.items() if a in left} for known in (world.sent, world.gossiped))
    if len(world.tossed) > MOST_COINS:
        raise UsageError(f"a step tosses at most {MOST_COINS} coins here, not {len(world.tossed)}.")
    chances = [Fraction(p) if i >= len(coins) or coins[i] else 1 - Fraction(p) for i, p in enumerate(world.tossed)]
    return Outcome(math.prod(chances), State(fields, world, (state.phase + 1) % state.period, state.period), world.loads)


def outcomes(method: Method, hyper: Any, state: State) -> Iterator[Outcome]:
    """All ways in which the coins of a step may fall."""
    waiting: list[tuple[bool, ...]] = [()]
    while waiting:
        coins = waiting.pop()
        made = step(method, hyper, state, coins)
        yield made
        fell = coins + (True,) * (len(made.state.world.tossed) - len(coins))
        waiting += [(*fell[:i], False) for i in range(len(coins), len(fell))]


def base(state: State) -> Any:
    """A moment before which no task can start any more: all need some field, and their stream."""
    ready = [min(v.ready) for v in _values(state.fields)]
    streams = state.world.free.values()
    return max(min(ready, default=state.world.zero), min(streams, default=state.world.zero))


def key(state: State) -> Any:
    """What the future depends on."""
    now, zero = base(state), state.world.zero
    clocks = [m for v in _values(state.fields) for m in v.ready + v.known] + [state.world.free[s] for s in sorted(state.world.free)]
    return state.phase, structure(state.fields), tuple(max(m - now, zero) for m in clocks)


def _values(fields: Any) -> list[Value]:
    return [fields] if isinstance(fields, Value) else [v for part in fields for v in _values(part)]


def _atoms(fields: Any) -> Iterator[Any]:
    for v in _values(fields):
        yield from v.unsent
        yield from v.ungossiped


@dataclass(frozen=True)
class Chain:
    """The states that come up, what may follow each, and how often each comes up in the long run."""

    states: list[State]
    follow: list[list[Outcome]]
    weights: np.ndarray

    def mean(self, of: Callable[[State, Outcome], Any]) -> Any:
        """A step's expected value of a function of the state before and the outcome."""
        return sum(
            weight * float(o.probability) * float(of(state, o))
            for state, follow, weight in zip(self.states, self.follow, self.weights.tolist(), strict=True)
            for o in follow
        )


def explore(method: Method, hyper: Any, first: State) -> Chain | None:
    """The Markov chain; None where it has more than 500 states or does not come to one stationary distribution."""
    states, follow, targets, place = [first], [], [], {key(first): 0}
    for state in states:  # grows on the way
        found = list(outcomes(method, hyper, state))
        for outcome in found:
            name = key(outcome.state)
            if name not in place:
                place[name] = len(states)
                states.append(outcome.state)
        if len(states) > MOST_STATES:
            return None
        follow.append(found)
        targets.append([place[key(o.state)] for o in found])
    move = np.zeros((len(states), len(states)))
    for i, (found, to) in enumerate(zip(follow, targets, strict=True)):
        for outcome, j in zip(found, to, strict=True):
            move[i, j] += float(outcome.probability)
    last = _closed(move)
    if last is None:
        return None
    within = move[np.ix_(last, last)]
    system = np.vstack([within.T - np.eye(len(last)), np.ones(len(last))])
    weights = np.linalg.lstsq(system, np.r_[np.zeros(len(last)), 1.0])[0]
    return Chain([states[i] for i in last], [follow[i] for i in last], weights)


def _closed(move: np.ndarray) -> np.ndarray | None:
    """The one set of states that is never left again."""
    from scipy.sparse.csgraph import connected_components

    label = connected_components(move > 0, connection="strong")[1]
    closed = [c for c in range(label.max() + 1) if not (move[label == c][:, label != c] > 0).any()]
    return np.flatnonzero(label == closed[0]) if len(closed) == 1 else None


def _simulated(method: Method, hyper: Any, state: State, steps: int, rng: np.random.Generator) -> Expected:
    each, ends = steps // BATCHES, []
    for _ in range(BATCHES + 1):  # the first one is for the filling
        for _ in range(each):
            state = step(method, hyper, state, rng=rng).state
        ends.append(base(state))
    paces = np.diff([float(e) for e in ends]) / each
    half = T_95 * float(paces.std(ddof=1)) / math.sqrt(BATCHES)
    mean = float(paces.mean())
    return Expected(mean, mean - half, mean + half, 0)
