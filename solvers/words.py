"""The vocabulary in which a method is written, and what a method is.

A method is one pure function ``step(s, w, h, t) -> State``: ``s`` holds the fields of the state, ``w`` is the world that
gives the words below their meaning, ``h`` holds the hyper-parameters and ``t`` counts the steps from 0.  The same function
is run on arrays, compiled, turned into a semidefinite program, into a transfer matrix and into a time line: every such
reading is a subclass of :class:`World`.  A word without a meaning in a reading says so by raising :class:`Unsupported`.

Shapes: a shared vector is ``(d,)``, a per-worker one ``(n, d)``.  A shared value becomes per-worker through ``spread`` alone.
"""

from __future__ import annotations

import enum
from typing import Annotated, Any


class Unsupported(Exception):
    """A reading does not apply; the message is the sentence shown to the user."""


class Kind(enum.Enum):
    """What a state field is: the shape follows from it."""

    SHARED = "shared"  # (d,)
    PER_WORKER = "per worker"  # (n, d)
    SHARED_QUEUE = "queue of shared"  # (tau, d)
    PER_WORKER_QUEUE = "queue of per worker"  # (tau, n, d)

    @property
    def item(self) -> Kind:
        """The kind of one message of a queue."""
        return Kind.SHARED if self is Kind.SHARED_QUEUE else Kind.PER_WORKER

    @property
    def is_queue(self) -> bool:
        return self in (Kind.SHARED_QUEUE, Kind.PER_WORKER_QUEUE)

    def shape(self, n: int, d: int, tau: int) -> tuple[int, ...]:
        """The array shape of a field of this kind."""
        return {
            Kind.SHARED: (d,),
            Kind.PER_WORKER: (n, d),
            Kind.SHARED_QUEUE: (tau, d),
            Kind.PER_WORKER_QUEUE: (tau, n, d),
        }[self]


Shared = Annotated[Any, Kind.SHARED]
PerWorker = Annotated[Any, Kind.PER_WORKER]
SharedQueue = Annotated[Any, Kind.SHARED_QUEUE]
PerWorkerQueue = Annotated[Any, Kind.PER_WORKER_QUEUE]


class World:
    """The meaning of the words in one reading; a subclass defines the words it can read."""

    reading = "this reading"

    def refuse(self, word: str, why: str = "it has no meaning there") -> Any:
        raise Unsupported(f"{self.reading} of '{word}': {why}")

    def grad(self, x: Any) -> Any:
        return self.refuse("grad")

    def mean(self, v: Any) -> Any:
        return self.refuse("mean")

    def spread(self, v: Any) -> Any:
        return self.refuse("spread")

    def gossip(self, v: Any) -> Any:
        return self.refuse("gossip")

    def compress(self, v: Any) -> Any:
        return self.refuse("compress")

    def delay(self, q: Any, v: Any) -> Any:
        return self.refuse("delay")

    def chance(self, p: Any) -> Any:
        return self.refuse("chance")

    def sign(self, v: Any) -> Any:
        return self.refuse("sign", "it has no quadratic or linear description")

    def clip(self, v: Any, c: Any) -> Any:
        return self.refuse("clip", "it has no quadratic or linear description")

    def optimum(self) -> Any:
        return self.refuse("optimum")

    def gap(self, x: Any) -> Any:
        return self.refuse("gap")

    def sqnorm(self, v: Any) -> Any:
        return self.refuse("sqnorm")

    def consensus(self, x: Any) -> Any:
        return self.refuse("consensus")


# --- words of a step -------------------------------------------------------------------------------------------------


def grad(w, x):
    """Every worker's (stochastic) gradient, ``(n, d)``, at a shared point or at each worker's own point."""
    return w.grad(x)


def mean(w, v):
    """All-reduce: the average over the workers, ``(n, d) -> (d,)``."""
    return w.mean(v)


def spread(w, v):
    """A shared vector as every worker sees it, ``(d,) -> (n, d)``."""
    return w.spread(v)


def gossip(w, v):
    """One mixing with the topology's matrix ``W``: worker i gets ``sum_j W_ij v_j``."""
    return w.gossip(v)


def compress(w, v):
    """The compressor, on each worker's vector (or on a shared vector, at a server)."""
    return w.compress(v)


def delay(w, q, v):
    """First in, first out: store ``v``, return ``(queue, what was stored tau steps ago)`` (zeros in the first tau steps)."""
    return w.delay(q, v)


def chance(w, p):
    """A coin that all workers share: True with probability ``p``."""
    return w.chance(p)


def sign(w, v):
    """Entrywise sign, 0 at 0."""
    return w.sign(v)


def clip(w, v, c):
    """Entrywise projection on ``[-c, c]``."""
    return w.clip(v, c)


# --- words of a measure: ``measure(s, w, h) -> scalar``; here ``grad`` is the full gradient --------------------------


def optimum(w):
    """A minimiser ``x*`` of ``f = mean_i f_i``, shared."""
    return w.optimum()


def gap(w, x):
    """``f(x) - f*`` at a shared point, ``f = mean_i f_i``."""
    return w.gap(x)


def sqnorm(w, v):
    """Squared Euclidean norm of a shared vector; of a per-worker one the mean over workers of ``||v_i||^2``."""
    return w.sqnorm(v)


def consensus(w, x):
    """The mean model of per-worker models; a shared model is returned as it is."""
    return w.consensus(x)


STEP_WORDS = (grad, mean, spread, gossip, compress, delay, chance, sign, clip)
MEASURE_WORDS = (optimum, gap, sqnorm, consensus)
WORDS = {f.__name__: f for f in STEP_WORDS + MEASURE_WORDS}
