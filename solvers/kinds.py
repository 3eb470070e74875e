"""Shared or per-worker: a method is read once on kinds alone, so that a silent broadcast is an error with a sentence."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from verify_rates.solvers.method import Method, UsageError, at
from verify_rates.solvers.words import Kind, World


@dataclass(frozen=True, eq=False)
class Token:
    """A value of which only the kind is known; arithmetic as on vectors."""

    kind: Kind

    def _with(self, other: Any) -> Token:
        if isinstance(other, Token) and other.kind is not self.kind:
            raise UsageError(
                f"a {self.kind.value} value meets a {other.kind.value} one; say with spread(w, v) or mean(w, v) what is meant."
            )
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = _with

    def _scaled(self, factor: Any) -> Token:
        if isinstance(factor, Token):
            raise UsageError("a product of two vectors has no meaning in every reading; scale vectors by numbers only.")
        return self

    __mul__ = __rmul__ = __truediv__ = _scaled

    def __neg__(self) -> Token:
        return self

    def _asked(self, *_: Any) -> Any:
        raise UsageError("a step branches on a vector of the state; only numbers (hyper-parameters, t, chance) may decide what it does.")

    __bool__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _asked
    __hash__ = object.__hash__


@dataclass
class KindWorld(World):
    """Follows kinds through a step and notes which words were used."""

    words: list[str] = field(default_factory=list)
    reading = "the kind check"

    def _note(self, word: str, v: Token, takes: Kind | None, gives: Kind | None) -> Token:
        self.words.append(word)
        if not isinstance(v, Token):
            raise UsageError(f"{word}(w, ...) needs a vector of the state, not {type(v).__name__}.")
        if takes is not None and v.kind is not takes:
            raise UsageError(f"{word}(w, v) takes a {takes.value} value, not a {v.kind.value} one.")
        return Token(gives or v.kind)

    def grad(self, x):
        return self._note("grad", x, None, Kind.PER_WORKER)

    def mean(self, v):
        return self._note("mean", v, Kind.PER_WORKER, Kind.SHARED)

    def spread(self, v):
        return self._note("spread", v, Kind.SHARED, Kind.PER_WORKER)

    def gossip(self, v):
        return self._note("gossip", v, Kind.PER_WORKER, None)

    def compress(self, v):
        return self._note("compress", v, None, None)

    def delay(self, q, v):
        if not (isinstance(q, Token) and q.kind.is_queue and q.kind.item is v.kind):
            raise UsageError("delay(w, q, v) takes a queue field of the state and a value of the queue's kind.")
        self.words.append("delay")
        return q, v

    def chance(self, p):
        self.words.append("chance")
        _probability("chance", p)
        return True

    def sign(self, v):
        return self._note("sign", v, None, None)

    def prox(self, v, gamma):
        return self._note("prox", v, None, None)

    def grad_of(self, x, of):
        return self._note("grad_of", x, Kind.SHARED, None)

    def prox_of(self, v, gamma, of, error):
        return self._note("prox_of", v, None if not of else Kind.SHARED, None)

    def implicit(self, v, a, weights):
        return self._note("implicit", v, Kind.SHARED, None)

    def line_search(self, x, directions):
        for v in directions:
            if not (isinstance(v, Token) and v.kind in (Kind.SHARED, Kind.SHARED_QUEUE)):
                raise UsageError("line_search(w, x, ...) takes shared vectors, or queues of them, as directions.")
        return self._note("line_search", x, Kind.SHARED, None)

    def clip(self, v, c):
        return self._note("clip", v, None, None)

    def sqrt(self, v):
        return self._note("sqrt", v, None, None)

    def log(self, v):
        return self._note("log", v, None, None)

    def rescale(self, v, low, high):
        return self._note("rescale", v, None, None)

    def masked(self, v):
        return self._note("masked", v, None, None)

    def _both(self, word: str, a: Any, b: Any) -> Token:
        """Two vectors of one kind."""
        self._note(word, a, None, None)
        return self._note(word, b, None, None) + a

    def times(self, a, b):
        return self._both("times", a, b)

    def divide(self, a, b):
        return self._both("divide", a, b)

    def outside(self, m, v):
        return self._both("outside", m, v)

    def mean_sent(self, v):
        return self._note("mean_sent", v, Kind.PER_WORKER, Kind.SHARED)

    def gathered(self, v):
        return self._note("gathered", v, Kind.PER_WORKER, None)

    def coordinate_mean(self, v):
        return self._note("coordinate_mean", v, None, None)

    def dct(self, v, chunk):
        return self._note("dct", v, None, None)

    def idct(self, v, chunk):
        return self._note("idct", v, None, None)

    def orthogonalise(self, v, rows, eps):
        return self._note("orthogonalise", v, Kind.SHARED, None)

    def flip(self, v, count, p):
        _probability("flip", p)
        return self._note("flip", v, Kind.PER_WORKER, None)

    def full_grad(self, x):
        return self._note("full_grad", x, None, Kind.PER_WORKER)

    def grad_pair(self, x, y):
        return self._note("grad_pair", x, None, Kind.PER_WORKER), self._note("grad_pair", y, None, Kind.PER_WORKER)

    def each(self, p, a, b):
        _probability("each", p)
        self._note("each", a, Kind.PER_WORKER, None)
        return self._note("each", b, Kind.PER_WORKER, None)


def _probability(word: str, p: Any) -> None:
    if not 0 <= p <= 1:
        raise UsageError(f"{word} takes a probability, a number in [0, 1], not {p!r}.")


# Steps of one round that are read: all of a short one; of a long one the first and the last, where communication happens.
SHORT, ENDS = 4096, 64


@lru_cache(maxsize=256)
def _words_used(method: Method, steps: int, hyper: Any) -> tuple[str, ...]:
    world = KindWorld()
    s = method.state(**{name: Token(kind) for name, kind in method.kinds.items()})
    for t in range(steps) if steps <= SHORT else (*range(ENDS), *range(steps - ENDS, steps)):
        s = method.step(s, world, at(hyper, t), t)
        for name, kind in method.kinds.items():
            value = getattr(s, name)
            if not isinstance(value, Token) or value.kind is not kind:
                found = value.kind.value if isinstance(value, Token) else type(value).__name__
                raise UsageError(f"{method.name} returns {name} as {found}, but its state declares it {kind.value}.")
    return tuple(dict.fromkeys(world.words))


def check_kinds(method: Method, hyper: Any, steps: int = 1) -> tuple[str, ...]:
    """The words of one communication round, and of ``steps`` steps at least; UsageError where shared and per-worker values are mixed."""
    steps = max(steps, int(method.rounds(at(hyper, 0))))
    constant = all(isinstance(v, (int, float)) for v in hyper)
    return _words_used(method, steps, hyper) if constant else _words_used.__wrapped__(method, steps, hyper)
