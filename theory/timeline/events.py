"""The words as events: gradients occupy a worker's compute stream, averages a link; every value knows what it waits for.

What must be sent is read off the step function as well.  A value is a weighted sum of atoms (a gradient, a message); ``mean`` sends
the atoms that no earlier mean has sent, since the mean of a sum is the sum of the means, and is free where none is left.  A sum of
several atoms that was sent is known as that sum alone: with other weights it must be sent again.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, get_type_hints

from verify_rates.solvers.kinds import KindWorld, Token
from verify_rates.solvers.method import Method, UsageError, at
from verify_rates.solvers.words import Kind, World

SOME_STEP = 0.6180339887498949  # stands for a step size that was left out or is 0, at which nothing would be sent
WEIGHTS_RTOL = 1e-9  # two sums with the same weights, up to the rounding of a few products


class Atom(NamedTuple):
    number: int
    dense: bool  # else one message of the compressor
    mask: int = 0  # of a vector that is 0 off a mask which everybody knows: which one


Parts = dict[Atom, float]  # a sum: the weight of every atom


@dataclass(frozen=True)
class Value:
    """A vector of which only its readiness is known.

    Attributes
    ----------
    ready : per worker what it waits for (one entry for a shared value): the world's own kind of moment.
    unsent, ungossiped : the sum of what no mean (no gossip) has sent so far.
    known : when the parts sent before are there: their mean, then per worker their mixture.
    averaged : the averages of the parts sent before; ``held`` : the averages in it that the server alone may know so far.
    mask : of a message: where it is not 0; ``outside`` : of which mask and of which value it is the rest.
    """

    world: EventWorld = field(repr=False, compare=False)
    ready: tuple[Any, ...]
    shared: bool = False
    unsent: Parts = field(default_factory=dict)
    ungossiped: Parts = field(default_factory=dict)
    known: tuple[Any, ...] = ()  # empty: nothing was sent, or all that was sent is there from the start
    averaged: frozenset[int] = frozenset()
    held: frozenset[int] = frozenset()
    mask: int = 0  # 0: none
    outside: tuple[int, Value] | None = None

    def _with(self, other: Any, sign: int = 1) -> Value:
        if not isinstance(other, Value):
            return self
        unsent, ungossiped = _sum(self.unsent, other.unsent, sign), _sum(self.ungossiped, other.ungossiped, sign)
        ready, known = self.world.meet(self.ready, other.ready), self.world.meet(self.known, other.known)
        averaged, held = self.averaged | other.averaged, self.held | other.held
        return Value(self.world, ready, self.shared, unsent, ungossiped, known, averaged, held)

    __add__ = __radd__ = _with

    def __sub__(self, other: Any) -> Value:
        made = self._with(other, -1)
        inside = isinstance(other, Value) and other.outside is not None and other.outside[1] is self
        return self.world.on_mask(made, other.outside[0]) if inside else made

    def __rsub__(self, other: Any) -> Value:
        return -self

    def __mul__(self, factor: Any) -> Value:
        parts = [{a: c * factor for a, c in part.items()} if factor else {} for part in (self.unsent, self.ungossiped)]
        return replace(self, unsent=parts[0], ungossiped=parts[1], mask=0, outside=None)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> Value:
        return self * (1 / divisor if divisor else 1.0)

    def __neg__(self) -> Value:
        return self * -1.0


def _sum(a: Parts, b: Parts, sign: int = 1) -> Parts:
    return a | {atom: a.get(atom, 0.0) + sign * weight for atom, weight in b.items()} if b else a


class Sent(NamedTuple):
    """A sum that was sent, when it is there, and the average that it is."""

    parts: Parts
    there: Any
    by: frozenset[int]

    def within(self, parts: Parts) -> bool:
        """Whether these parts hold this sum, in its own proportions."""
        if len(self.parts) == 1:
            return True
        if not self.parts.keys() <= parts.keys():
            return False
        lead, *rest = self.parts
        a, b = self.parts[lead], parts[lead]
        return all(math.isclose(parts[atom] * a, self.parts[atom] * b, rel_tol=WEIGHTS_RTOL) for atom in rest)


class Load(NamedTuple):
    """What a collective or an exchange carries."""

    messages: int
    dense: bool
    masked: int = 0  # messages without places, each on a mask that everybody knows

    def bits(self, message: float, dense: float, values: float | None = None) -> float:
        """One message as it is; a sum of several messages as they are or as one dense vector, whichever is smaller.

        ``values`` : bits of a message without places; by default those of a message.
        """
        if self.dense:
            return dense
        bits = self.messages * message + self.masked * (message if values is None else values)
        return bits if self.messages + self.masked == 1 else min(bits, dense)


@dataclass
class EventWorld(World):
    """Follows a method's events; a subclass says what a moment is.

    Parameters
    ----------
    neighbours : per worker the workers it exchanges with in a gossip; its length is n.
    encodes : whether compressing takes time on the compute stream.
    """

    neighbours: Sequence[Sequence[int]] = ((0,),)
    encodes: bool = False
    atoms: int = 0
    sent: dict[Atom, Sent] = field(default_factory=dict)  # the last averaged sum with that atom
    gossiped: dict[Atom, Sent] = field(default_factory=dict)  # the last mixed one; it is there at a moment per worker
    uses: tuple[str, ...] = ()  # the method's words
    coins: Sequence[bool] | None = None  # how the coins fall; None: nobody tosses any
    tossed: list[float] = field(default_factory=list)  # the probabilities of heads of those tossed so far

    reading = "the time line"

    @property
    def n(self) -> int:
        return len(self.neighbours)

    @abstractmethod
    def join(self, moments: Iterable[Any]) -> Any:
        """The moment when all have come."""

    @abstractmethod
    def task(self, word: str, stream: tuple[str, int], ready: Any, load: Load | None = None, copies: int = 1) -> Any:
        """Put a task on a stream, first in, first out; the moment when its result is there."""

    def meet(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        """Entry by entry the moment when both have come; empty is always past."""
        return tuple(self.join(pair) for pair in zip(a, b, strict=True)) if a and b else a or b

    def average(self) -> frozenset[int]:
        """The average that was just put on the link, where a world follows who knows it."""
        return frozenset()

    def fetch(self, v: Value) -> None:
        """The workers use what the server has averaged."""

    # --- words

    def grad(self, x):
        self.fetch(x)
        ready = x.ready * self.n if x.shared else x.ready
        return self._fresh(tuple(self.task("grad", ("compute", i), r) for i, r in enumerate(ready)))

    def mean(self, v):
        fresh = _left(v.unsent, self.sent)
        ready, load = self.join(v.ready), _load(fresh)
        held = self._averaged(v)
        if fresh:
            ready = self.task("mean", ("link", 0), ready, load)
            by = self.average()
            held = by if load.dense else held | by  # a whole vector is sent with all its parts
            self.sent |= dict.fromkeys(fresh, Sent(fresh, ready, by))
        return Value(self, (self.join([ready, *self._known(v)[:1]]),), shared=True, held=held)

    def spread(self, v):
        self.fetch(v)
        return Value(self, v.ready * self.n, mask=v.mask)

    def gossip(self, v):
        fresh, ready = _left(v.ungossiped, self.gossiped), v.ready
        if fresh:
            load = _load(fresh)
            arrived = [self.task("gossip", ("link", i), r, load, len(self.neighbours[i])) for i, r in enumerate(v.ready)]
            ready = tuple(self.join([r, *(arrived[j] for j in self.neighbours[i])]) for i, r in enumerate(v.ready))
            self.gossiped |= dict.fromkeys(fresh, Sent(fresh, ready, frozenset()))
        known = self._known(v)
        mixture = {self._atom(True): 1.0} if v.ungossiped or known else {}
        return replace(v, ready=self.meet(ready, known[1:]), ungossiped=mixture, known=known[:1] and known[:1] + ready)

    def compress(self, v):
        if v.shared:
            return self._broadcast(v)
        ready = v.ready
        if self.encodes:
            ready = tuple(self.task("compress", ("compute", i), r) for i, r in enumerate(ready))
        return self._fresh(ready, dense=False)

    def _broadcast(self, v: Value) -> Value:
        """A message that the server makes of what it knows, to all workers, over the link that carries the averages."""
        ready = v.ready[0]
        if self.encodes:
            ready = self.task("compress", ("server", 0), ready)
        arrives = self.task("broadcast", ("link", 0), ready, Load(1, False))
        return Value(self, (arrives,), shared=True, mask=self._atom(False).number)

    def delay(self, q, v):
        return ((*q[1:], v), q[0]) if q else (q, v)

    def chance(self, p):
        """As ``coins`` say, then heads; a coin that cannot fall otherwise is none."""
        if p <= 0 or p >= 1:
            return p >= 1
        if self.coins is None:
            return self.refuse(
                "chance", "which branch is taken is random, so no period repeats; expected_time (timeline --expected) says the mean"
            )
        self.tossed.append(p)
        return len(self.tossed) > len(self.coins) or self.coins[len(self.tossed) - 1]

    def each(self, p, a, b):
        """Every worker's coin chooses between values of which both are there."""
        if a.unsent != b.unsent or a.ungossiped != b.ungossiped:
            return self.refuse("each", "what is left to send differs from worker to worker")
        return a + b

    def sign(self, v):
        return self._fresh(v.ready) if v.unsent or v.ungossiped else v

    def clip(self, v, c):
        return self.sign(v)

    def rescale(self, v, low, high):
        return self.sign(v)

    def masked(self, v):
        return v if v.shared else self._fresh(v.ready, dense=False, mask=self._atom(False).number)

    def on_mask(self, v: Value, mask: int) -> Value:
        """What is left of a value on a mask that everybody knows."""
        return self._fresh(v.ready, dense=False, mask=mask) if v.unsent or v.ungossiped else v

    sqrt = log = coordinate_mean = sign

    def times(self, a, b):
        return self.sign(a + b)

    divide = times

    def outside(self, m, v):
        rest = self.times(m, v)
        return replace(rest, outside=(m.mask, v)) if m.mask else rest

    def flip(self, v, count, p):
        return v  # a message with other signs is as long

    def orthogonalise(self, v, rows, eps):
        return self.sign(v)

    def dct(self, v, chunk):
        return v

    idct = dct

    def mean_sent(self, v):
        return self.mean(v)

    def gathered(self, v):
        arrived = self.mean(v)
        self.fetch(arrived)
        return Value(self, arrived.ready * self.n)

    def full_grad(self, x):
        return self.grad(x)

    def grad_pair(self, x, y):
        return self.grad(x), self.grad(y)

    # --- atoms

    def _atom(self, dense: bool, mask: int = 0) -> Atom:
        self.atoms += 1
        return Atom(self.atoms, dense, mask)

    def _fresh(self, ready: tuple[Any, ...], dense: bool = True, mask: int = 0) -> Value:
        atom = {self._atom(dense, mask): 1.0}
        sends = not {"mean", "mean_sent", "gathered"}.isdisjoint(self.uses)
        return Value(self, ready, unsent=atom if sends else {}, ungossiped=atom if "gossip" in self.uses else {})

    def _known(self, v: Value) -> tuple[Any, ...]:
        """When the parts that were sent so far are there."""
        known = v.known
        means, mixtures = _before(v.unsent, self.sent), _before(v.ungossiped, self.gossiped)
        if means:
            known = self.meet(known, (self.join(sent.there for sent in means), *v.ready))
        for mixture in mixtures:
            known = self.meet(known, (self.join(v.ready), *mixture.there))
        return known

    def _averaged(self, v: Value) -> frozenset[int]:
        return v.averaged.union(*(sent.by for sent in _before(v.unsent, self.sent)))

    def settle(self, v: Any) -> Any:
        """A state's field with what was sent removed; a sum with a dense atom, or of very many messages, is one dense vector."""
        if not isinstance(v, Value):
            return tuple(map(self.settle, v))
        if not v.unsent and not v.ungossiped:
            return v if v.outside is None else replace(v, outside=None)  # long queues hold many that are settled
        v = replace(v, outside=None)
        averaged = self._averaged(v)
        left = [self._merged(_left(v.unsent, self.sent)), self._merged(_left(v.ungossiped, self.gossiped))]
        return replace(v, unsent=left[0], ungossiped=left[1], known=self._known(v), averaged=averaged)

    def _merged(self, left: Parts) -> Parts:
        if len(left) > MOST_MESSAGES or (len(left) > 1 and any(atom.dense for atom in left)):
            return {self._atom(True): 1.0}
        return left

    def start(self, method: Method, hyper: Any, moment: Any) -> Any:
        """The first state: everything is there at the first moment, and known to all."""
        self.uses = words_used(method, hyper)
        tau = int(getattr(hyper, "tau", 0))

        def value(kind: Kind) -> Any:
            if kind.is_queue:
                return (value(kind.item),) * tau
            return Value(self, (moment,) * (1 if kind is Kind.SHARED else self.n), shared=kind is Kind.SHARED)

        return method.state(*(value(kind) for kind in method.kinds.values()))


def _left(parts: Parts, sent: dict[Atom, Sent]) -> Parts:
    """What is still to be sent of a sum."""
    return {atom: weight for atom, weight in parts.items() if atom not in sent or not sent[atom].within(parts)}


def _before(parts: Parts, sent: dict[Atom, Sent]) -> list[Sent]:
    """The sums in it that were sent."""
    return [sent[atom] for atom in parts if atom in sent and sent[atom].within(parts)]


def _load(atoms: Iterable[Atom]) -> Load:
    atoms = list(atoms)
    masks = {atom.mask for atom in atoms if atom.mask}  # a sum of vectors on one mask is such a vector
    return Load(sum(not (atom.dense or atom.mask) for atom in atoms), any(atom.dense for atom in atoms), len(masks))


def constants(method: Method, hyper: Any) -> Any:
    """Hyper-parameters of a steady state: those that play no part (the step size) may be left out or be schedules.

    Errors: UsageError as of :meth:`Method.hypers`, and for a whole number that is a schedule.
    """
    given = hyper._asdict() if hasattr(hyper, "_asdict") else dict(hyper or {})
    h = method.hypers(**({"gamma": SOME_STEP} if "gamma" in method.hyper._fields else {}) | given)
    for name, kind in get_type_hints(method.hyper).items():
        if kind is int and not isinstance(getattr(h, name), (int, float)):
            raise UsageError(f"{name} must be a number here: a steady state needs constants, not a schedule.")
    now = at(h, 0)
    return now._replace(gamma=SOME_STEP) if getattr(now, "gamma", 1) == 0 else now


class _Step(int):
    """The number of a step, which notes by what it is divided: what a step does may depend on remainders alone."""

    periods: set[int]

    def _plus(self, other: int) -> _Step:
        return _numbered(int(self) + other, self.periods)

    __add__ = __radd__ = _plus

    def __sub__(self, other: int) -> _Step:
        return self._plus(-other)

    def __mod__(self, period: int) -> int:
        self.periods.add(int(period))
        return int(self) % period


def _numbered(t: int, periods: set[int]) -> _Step:
    made = _Step(t)
    made.periods = periods
    return made


def _survey(method: Method, hyper: Any) -> tuple[int, tuple[str, ...]]:
    """Steps of a period and the words used in it."""
    world, steps, periods, t = KindWorld(), max(1, round(method.rounds(hyper))), set[int](), 0
    s = method.state(**{name: Token(kind) for name, kind in method.kinds.items()})
    while t < steps:
        s = method.step(s, world, hyper, _numbered(t, periods))
        steps, t = math.lcm(steps, *periods), t + 1
    return steps, tuple(dict.fromkeys(world.words))


def period_steps(method: Method, hyper: Any) -> int:
    """Steps of one period: one communication round, or as many as it takes until everything comes again."""
    return _survey(method, hyper)[0]


def words_used(method: Method, hyper: Any) -> tuple[str, ...]:
    """The words of one whole period, however long."""
    return _survey(method, hyper)[1]


def structure(s: Any) -> Any:
    """What the fields of a state still have to send, in names that depend on nothing else."""
    names: dict[Atom, int] = {}
    masks = {0: 0}

    def seen(v: Any) -> Any:
        if not isinstance(v, Value):
            return tuple(map(seen, v))
        parts = (
            tuple((names.setdefault(a, len(names)), a.dense, masks.setdefault(a.mask, len(masks))) for a in sorted(part))
            for part in (v.unsent, v.ungossiped)
        )
        return (*parts, masks.setdefault(v.mask, len(masks)))

    return tuple(map(seen, s))


# --- the periodic graph ----------------------------------------------------------------------------------------------


class Task(NamedTuple):
    """One task of a period."""

    word: str
    stream: tuple[str, int]
    step: int  # step within the period
    load: Load | None
    copies: int  # messages of an exchange with so many neighbours
    after: frozenset[tuple[int, int]]  # (task, periods ago) whose results it needs
    behind: tuple[int, int] | None  # (task, periods ago) before it on its stream
    down: bool = True  # of an average: whether the workers get it, or the server alone


def task_names(tasks: Sequence[Task]) -> list[str]:
    """Short names, unlike one another: the word, its number where a step has several, its step, its worker."""
    several_steps, several_workers = len({t.step for t in tasks}) > 1, len({t.stream for t in tasks if t.word == "grad"}) > 1
    alone = {"mean", "broadcast"}
    alike = Counter((t.word, t.stream, t.step) for t in tasks)
    so_far: Counter[Any] = Counter()
    names = []
    for task in tasks:
        key = (task.word, task.stream, task.step)
        so_far[key] += 1
        number = f" {so_far[key]}" if alike[key] > 1 else ""
        step = f" of step {task.step}" if several_steps else ""
        worker = f" on worker {task.stream[1]}" if several_workers and task.word not in alone else ""
        names.append(task.word + number + step + worker)
    return names


class Mark(NamedTuple):
    """A task in the unrolled run."""

    period: int
    place: int


Clock = dict[tuple[str, int], Mark]  # per stream the last task that a value waits for: a stream finishes in order


@dataclass
class GraphWorld(EventWorld):
    """Records the tasks of one period after the other, with what each waits for."""

    period: int = 0
    step: int = 0
    tasks: list[Task] = field(default_factory=list)
    last: Clock = field(default_factory=dict)
    oldest: int = 0  # periods: a task that has been waited for longer is waited for by a value that stays as it is, and is past
    fetched: set[int] = field(default_factory=set)  # averages, by their places in a period, that workers have used in this one

    def average(self) -> frozenset[int]:
        return frozenset([len(self.tasks) - 1])

    def fetch(self, v: Value) -> None:
        self.fetched |= v.held

    def join(self, moments: Iterable[Clock]) -> Clock:
        out: Clock = {}
        for clock in moments:
            for stream, mark in clock.items():
                if self.period - mark.period <= self.oldest:
                    out[stream] = max(mark, out.get(stream, mark))
        return out

    def task(self, word: str, stream: tuple[str, int], ready: Any, load: Load | None = None, copies: int = 1) -> Clock:
        after = frozenset((mark.place, self.period - mark.period) for mark in self.join([ready]).values())
        ahead = self.last.get(stream)
        behind = None if ahead is None else (ahead.place, self.period - ahead.period)
        self.tasks.append(Task(word, stream, self.step, load, copies, after, behind))
        self.last[stream] = Mark(self.period, len(self.tasks) - 1)
        return {stream: self.last[stream]}

    def signature(self, s: Any) -> Any:
        """The state relative to now: equal signatures at two ends of a period mean that everything repeats."""

        def seen(v: Any) -> Any:
            if not isinstance(v, Value):
                return tuple(map(seen, v))
            clocks = [self.join([clock]) for clock in v.ready + v.known]
            return tuple(frozenset((m.place, self.period - m.period) for m in clock.values()) for clock in clocks)

        streams = frozenset((stream, m.place, self.period - m.period) for stream, m in self.join([self.last]).items())
        return tuple(map(seen, s)), structure(s), streams


MOST_MESSAGES = 128  # unsent messages a sum keeps apart; a sum that is never sent would keep ever more of them
LONGEST_QUEUE = 4096  # a queue is filled step by step: 15 seconds
MOST_PERIODS = 2 * MOST_MESSAGES  # beyond the filling of the queues; state that has not settled by then never will


def periodic_tasks(method: Method, hyper: Any, neighbours: Sequence[Sequence[int]] = ((0,),), encodes: bool = False) -> list[Task]:
    """The tasks of one period (the steps of one communication round) once everything repeats.

    Errors: Unsupported for a random branch, or where the tasks never repeat.
    """
    return settled(method, hyper, neighbours, encodes)[0]


def longest_stay(method: Method, tau: int) -> int:
    """Periods after which a value has gone through every field and its queue, or stays where it is for ever."""
    return len(method.kinds) * (tau + 1) + 1


def settled(method: Method, hyper: Any, neighbours: Sequence[Sequence[int]] = ((0,),), encodes: bool = False) -> tuple[list[Task], int]:
    """The same with the number of the first period from which on all periods are so."""
    steps, tau = period_steps(method, hyper), int(getattr(hyper, "tau", 0))
    if tau > LONGEST_QUEUE:
        raise UsageError(f"tau of a time line is at most {LONGEST_QUEUE}, not {tau}: its queue is filled step by step.")
    oldest = longest_stay(method, tau)
    world = GraphWorld(neighbours, encodes, oldest=oldest)
    s, before = world.start(method, hyper, {}), None
    most = MOST_PERIODS + 2 * oldest
    for period in range(most):
        world.period, world.tasks, world.fetched = period, [], set()
        for t in range(steps):
            world.step = t
            s = method.step(s, world, hyper, period * steps + t)
            s = method.state(*map(world.settle, s))
        if period < tau:  # the queue still holds what it started with
            continue
        now = world.signature(s), tuple(world.tasks)
        if now == before:
            down = [i in world.fetched or task.word != "mean" for i, task in enumerate(world.tasks)]
            return [task._replace(down=d) for task, d in zip(world.tasks, down, strict=True)], period - 1
        before = now
    return world.refuse(method.name, f"its tasks do not repeat within {most} rounds")
