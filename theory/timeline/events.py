"""The words as events: gradients occupy a worker's compute stream, averages a link; every value knows what it waits for.

What must be sent is read off the step function as well.  A value is a sum of atoms (a gradient, a message); ``mean`` sends
the atoms that no earlier mean has sent, since the mean of a sum is the sum of the means, and is free where none is left.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from verify_rates.solvers.kinds import KindWorld, Token
from verify_rates.solvers.method import Method
from verify_rates.solvers.words import Kind, World


class Atom(NamedTuple):
    number: int
    dense: bool  # else one message of the compressor


@dataclass(frozen=True)
class Value:
    """A vector of which only its readiness is known.

    Attributes
    ----------
    ready : per worker what it waits for (one entry for a shared value): the world's own kind of moment.
    unsent, ungossiped : atoms that no mean (no gossip) has sent so far.
    known : when the parts sent before are there: their mean, then per worker their mixture.
    """

    world: EventWorld = field(repr=False, compare=False)
    ready: tuple[Any, ...]
    shared: bool = False
    unsent: frozenset[Atom] = frozenset()
    ungossiped: frozenset[Atom] = frozenset()
    known: tuple[Any, ...] = ()  # empty: nothing was sent, or all that was sent is there from the start

    def _with(self, other: Any) -> Value:
        if not isinstance(other, Value):
            return self
        unsent, ungossiped = self.unsent | other.unsent, self.ungossiped | other.ungossiped
        ready, known = self.world.meet(self.ready, other.ready), self.world.meet(self.known, other.known)
        return replace(self, ready=ready, unsent=unsent, ungossiped=ungossiped, known=known)

    __add__ = __radd__ = __sub__ = __rsub__ = _with

    def _scaled(self, factor: Any) -> Value:
        return self

    __mul__ = __rmul__ = __truediv__ = _scaled

    def __neg__(self) -> Value:
        return self


class Load(NamedTuple):
    """What a collective or an exchange carries."""

    messages: int
    dense: bool

    def bits(self, message: float, dense: float) -> float:
        """One message as it is; a sum of several messages as they are or as one dense vector, whichever is smaller."""
        if self.dense:
            return dense
        return message if self.messages == 1 else min(self.messages * message, dense)


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
    sent: dict[Atom, Any] = field(default_factory=dict)  # when its mean is there
    gossiped: dict[Atom, tuple[Any, ...]] = field(default_factory=dict)  # when its mixture is there, per worker
    uses: tuple[str, ...] = ()  # the method's words

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

    # --- words

    def grad(self, x):
        ready = x.ready * self.n if x.shared else x.ready
        return self._fresh(tuple(self.task("grad", ("compute", i), r) for i, r in enumerate(ready)))

    def mean(self, v):
        fresh = _left(v.unsent, self.sent)
        ready = self.join(v.ready)
        if fresh:
            ready = self.task("mean", ("link", 0), ready, _load(fresh))
            self.sent |= dict.fromkeys(fresh, ready)
        return Value(self, (self.join([ready, *self._known(v)[:1]]),), shared=True)

    def spread(self, v):
        return Value(self, v.ready * self.n)

    def gossip(self, v):
        fresh, ready = _left(v.ungossiped, self.gossiped), v.ready
        if fresh:
            load = _load(fresh)
            arrived = [self.task("gossip", ("link", i), r, load, len(self.neighbours[i])) for i, r in enumerate(v.ready)]
            ready = tuple(self.join([r, *(arrived[j] for j in self.neighbours[i])]) for i, r in enumerate(v.ready))
            self.gossiped |= dict.fromkeys(fresh, ready)
        known = self._known(v)
        mixture = frozenset([self._atom(True)]) if v.ungossiped or known else frozenset[Atom]()
        return replace(v, ready=self.meet(ready, known[1:]), ungossiped=mixture, known=known[:1] and known[:1] + ready)

    def compress(self, v):
        if v.shared:
            return self.refuse("compress", "a message made at a server has no broadcast of its own yet")
        ready = v.ready
        if self.encodes:
            ready = tuple(self.task("compress", ("compute", i), r) for i, r in enumerate(ready))
        return self._fresh(ready, dense=False)

    def delay(self, q, v):
        return ((*q[1:], v), q[0]) if q else (q, v)

    def chance(self, p):
        return self.refuse("chance", "which branch is taken is random, so no period repeats")

    def sign(self, v):
        return self._fresh(v.ready) if v.unsent or v.ungossiped else v

    def clip(self, v, c):
        return self.sign(v)

    def rescale(self, v, low, high):
        return self.sign(v)

    def masked(self, v):
        return v if v.shared else self._fresh(v.ready, dense=False)

    sqrt = log = coordinate_mean = sign

    def times(self, a, b):
        return self.sign(a + b)

    divide = outside = times

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
        return Value(self, arrived.ready * self.n)

    def full_grad(self, x):
        return self.grad(x)

    def grad_pair(self, x, y):
        return self.grad(x), self.grad(y)

    # --- atoms

    def _atom(self, dense: bool) -> Atom:
        self.atoms += 1
        return Atom(self.atoms, dense)

    def _fresh(self, ready: tuple[Any, ...], dense: bool = True) -> Value:
        atom, none = frozenset([self._atom(dense)]), frozenset[Atom]()
        sends = not {"mean", "mean_sent", "gathered"}.isdisjoint(self.uses)
        return Value(self, ready, unsent=atom if sends else none, ungossiped=atom if "gossip" in self.uses else none)

    def _known(self, v: Value) -> tuple[Any, ...]:
        """When the parts that were sent so far are there."""
        known = v.known
        means = [self.sent[a] for a in v.unsent if a in self.sent]
        mixtures = [self.gossiped[a] for a in v.ungossiped if a in self.gossiped]
        if means:
            known = self.meet(known, (self.join(means), *v.ready))
        for mixture in mixtures:
            known = self.meet(known, (self.join(v.ready), *mixture))
        return known

    def settle(self, v: Any) -> Any:
        """A state's field with what was sent removed; a sum with a dense atom, or of very many messages, is one dense vector."""
        if not isinstance(v, Value):
            return tuple(map(self.settle, v))
        if not v.unsent and not v.ungossiped:
            return v
        left = [self._merged(_left(v.unsent, self.sent)), self._merged(_left(v.ungossiped, self.gossiped))]
        return replace(v, unsent=left[0], ungossiped=left[1], known=self._known(v))

    def _merged(self, left: frozenset[Atom]) -> frozenset[Atom]:
        if len(left) > MOST_MESSAGES or (len(left) > 1 and any(atom.dense for atom in left)):
            return frozenset([self._atom(True)])
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


def _left(atoms: frozenset[Atom], sent: dict[Atom, Any]) -> frozenset[Atom]:
    return frozenset(atom for atom in atoms if atom not in sent)


def _load(atoms: Iterable[Atom]) -> Load:
    dense = [atom.dense for atom in atoms]
    return Load(dense.count(False), any(dense))


def period_steps(method: Method, hyper: Any) -> int:
    """Steps of one period: one communication round."""
    return max(1, round(method.rounds(hyper)))


def words_used(method: Method, hyper: Any) -> tuple[str, ...]:
    """The words of one whole period, however long."""
    world = KindWorld()
    s = method.state(**{name: Token(kind) for name, kind in method.kinds.items()})
    for t in range(period_steps(method, hyper)):
        s = method.step(s, world, hyper, t)
    return tuple(dict.fromkeys(world.words))


def structure(s: Any) -> Any:
    """What the fields of a state still have to send, in names that depend on nothing else."""
    names: dict[Atom, int] = {}

    def seen(v: Any) -> Any:
        if not isinstance(v, Value):
            return tuple(map(seen, v))
        return tuple(tuple((names.setdefault(a, len(names)), a.dense) for a in sorted(part)) for part in (v.unsent, v.ungossiped))

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


def task_names(tasks: Sequence[Task]) -> list[str]:
    """Short names, unlike one another: the word, its number where a step has several, its step, its worker."""
    several_steps, several_workers = len({t.step for t in tasks}) > 1, len({t.stream for t in tasks if t.word == "grad"}) > 1
    alike = Counter((t.word, t.stream, t.step) for t in tasks)
    so_far: Counter[Any] = Counter()
    names = []
    for task in tasks:
        key = (task.word, task.stream, task.step)
        so_far[key] += 1
        number = f" {so_far[key]}" if alike[key] > 1 else ""
        step = f" of step {task.step}" if several_steps else ""
        worker = f" on worker {task.stream[1]}" if several_workers and task.word != "mean" else ""
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

    def join(self, moments: Iterable[Clock]) -> Clock:
        out: Clock = {}
        for clock in moments:
            for stream, mark in clock.items():
                out[stream] = max(mark, out.get(stream, mark))
        return out

    def task(self, word: str, stream: tuple[str, int], ready: Any, load: Load | None = None, copies: int = 1) -> Clock:
        after = frozenset((mark.place, self.period - mark.period) for mark in ready.values())
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
            return tuple(frozenset((m.place, self.period - m.period) for m in clock.values()) for clock in v.ready + v.known)

        streams = frozenset((stream, m.place, self.period - m.period) for stream, m in self.last.items())
        return tuple(map(seen, s)), structure(s), streams


MOST_MESSAGES = 128  # unsent messages a sum keeps apart; a sum that is never sent would keep ever more of them
MOST_PERIODS = 2 * MOST_MESSAGES  # beyond the filling of the queue; state that has not settled by then never will


def periodic_tasks(method: Method, hyper: Any, neighbours: Sequence[Sequence[int]] = ((0,),), encodes: bool = False) -> list[Task]:
    """The tasks of one period (the steps of one communication round) once everything repeats.

    Errors: Unsupported for a random branch, or where the tasks never repeat.
    """
    return settled(method, hyper, neighbours, encodes)[0]


def settled(method: Method, hyper: Any, neighbours: Sequence[Sequence[int]] = ((0,),), encodes: bool = False) -> tuple[list[Task], int]:
    """The same with the number of the first period from which on all periods are so."""
    steps, tau = period_steps(method, hyper), int(getattr(hyper, "tau", 0))
    world = GraphWorld(neighbours, encodes)
    s, before = world.start(method, hyper, {}), None
    for period in range(MOST_PERIODS + 2 * tau):
        world.period, world.tasks = period, []
        for t in range(steps):
            world.step = t
            s = method.step(s, world, hyper, period * steps + t)
            s = method.state(*map(world.settle, s))
        if period < tau:  # the queue still holds what it started with
            continue
        now = world.signature(s), tuple(world.tasks)
        if now == before:
            return world.tasks, period - 1
        before = now
    return world.refuse(method.name, f"its tasks do not repeat within {MOST_PERIODS + 2 * tau} rounds")
