"""The vocabulary in which a method is written, and what a method is.

A method is one pure function ``step(s, w, h, t) -> State``: ``s`` holds the fields of the state, ``w`` is the world that
gives the words below their meaning, ``h`` holds the hyper-parameters and ``t`` counts the steps from 0.  The same function
is run on arrays, compiled, turned into a semidefinite program, into a transfer matrix and into a time line: every such
reading is a subclass of :class:`World`.  A word without a meaning in a reading says so by raising :class:`Unsupported`.

Shapes: a shared vector is ``(d,)``, a per-worker one ``(n, d)``.  A shared value becomes per-worker through ``spread`` alone.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Annotated, Any

NONLINEAR = "it has no quadratic or linear description"
ALONE = "there is one function (of every worker), exactly known, and no second one with a name"


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
        return self.refuse("sign", NONLINEAR)

    def clip(self, v: Any, c: Any) -> Any:
        return self.refuse("clip", NONLINEAR)

    def sqrt(self, v: Any) -> Any:
        return self.refuse("sqrt", NONLINEAR)

    def log(self, v: Any) -> Any:
        return self.refuse("log", NONLINEAR)

    def rescale(self, v: Any, low: Any, high: Any) -> Any:
        return self.refuse("rescale", NONLINEAR)

    def masked(self, v: Any) -> Any:
        return self.refuse("masked", "a random mask is known of single compressors, not of their class")

    def times(self, a: Any, b: Any) -> Any:
        return self.refuse("times", NONLINEAR)

    def divide(self, a: Any, b: Any) -> Any:
        return self.refuse("divide", NONLINEAR)

    def outside(self, m: Any, v: Any) -> Any:
        return self.refuse("outside", "which entries a message holds is known of single compressors, not of their class")

    def mean_sent(self, v: Any) -> Any:
        return self.refuse("mean_sent", "how many workers sent an entry is known of single compressors, not of their class")

    def gathered(self, v: Any) -> Any:
        return v  # the same numbers in another place

    def coordinate_mean(self, v: Any) -> Any:
        return self.refuse("coordinate_mean", "it depends on the coordinates")

    def dct(self, v: Any, chunk: Any) -> Any:
        return self.refuse("dct", "it depends on the coordinates")

    def idct(self, v: Any, chunk: Any) -> Any:
        return self.refuse("idct", "it depends on the coordinates")

    def orthogonalise(self, v: Any, rows: Any, eps: Any) -> Any:
        return self.refuse("orthogonalise", NONLINEAR)

    def prox(self, v: Any, gamma: Any) -> Any:
        return self.refuse("prox", "the functions are known through their gradients alone")

    def grad_of(self, x: Any, of: Any) -> Any:
        return self.refuse("grad_of", ALONE)

    def prox_of(self, v: Any, gamma: Any, of: Any, error: Any) -> Any:
        return self.refuse("prox_of", ALONE)

    def implicit(self, v: Any, a: Any, weights: Any) -> Any:
        return self.refuse("implicit", "the functions are known through their gradients alone")

    def line_search(self, x: Any, directions: Any) -> Any:
        return self.refuse("line_search", "the functions are known through their gradients alone")

    def gap_of(self, x: Any, of: Any) -> Any:
        return self.refuse("gap_of", ALONE)

    def flip(self, v: Any, count: Any, p: Any) -> Any:
        return self.refuse("flip", "the workers are not alike")

    def full_grad(self, x: Any) -> Any:
        return self.refuse("full_grad")

    def grad_pair(self, x: Any, y: Any) -> Any:
        return self.refuse("grad_pair")

    def each(self, p: Any, a: Any, b: Any) -> Any:
        return self.refuse("each", "every worker tosses a coin of its own")

    def optimum(self) -> Any:
        return self.refuse("optimum")

    def gap(self, x: Any) -> Any:
        return self.refuse("gap")

    def sqnorm(self, v: Any) -> Any:
        return self.refuse("sqnorm")

    def inner(self, a: Any, b: Any) -> Any:
        return (self.sqnorm(a + b) - self.sqnorm(a - b)) / 4

    def consensus(self, x: Any) -> Any:
        return self.refuse("consensus")


# --- words of a step -------------------------------------------------------------------------------------------------


def grad(w, x, of=""):
    """Every worker's (stochastic) gradient, ``(n, d)``, at a shared point or at each worker's own point.

    ``of`` names another function, which all workers share: its (sub)gradient at a shared point, ``(d,)``.
    """
    return w.grad_of(x, of) if of else w.grad(x)


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
    """First in, first out: store ``v``, return ``(queue, what was stored tau calls ago)`` (zeros in the first tau calls)."""
    return w.delay(q, v)


def chance(w, p):
    """A coin that all workers share: True with probability ``p``."""
    return w.chance(p)


def sign(w, v):
    """Entrywise sign, 0 at 0."""
    return w.sign(v)


def prox(w, v, gamma, of="", error=0.0):
    """Proximal step of the functions (resolvent of an operator): the x with ``x = v - gamma g(x)``.

    ``of`` names another function, which all workers share; ``error`` is the largest ``||x - v + gamma g(x)||`` over ``||x - v||``.
    """
    return w.prox_of(v, gamma, of, error) if of or error else w.prox(v, gamma)


def implicit(w, v, a, weights):
    """A shared x with ``a x + sum_k weights[k] g_k(x) = v``, over functions k by name: mirror, Bregman and proximal steps."""
    return w.implicit(v, a, weights)


def lmo(w, g, of):
    """Linear minimisation: a point of the set (the named indicator function) with the least ``<g, x>``."""
    return w.implicit(-1 * g, 0, {of: 1})


def line_search(w, x, *directions):
    """Exact line or subspace search: a minimiser of f over the shared point x plus all combinations of the directions.

    A direction is a shared vector, or a queue of them.
    """
    return w.line_search(x, directions)


def clip(w, v, c):
    """Entrywise projection on ``[-c, c]``."""
    return w.clip(v, c)


def sqrt(w, v):
    """Entrywise square root."""
    return w.sqrt(v)


def log(w, v):
    """Entrywise natural logarithm."""
    return w.log(v)


def rescale(w, v, low, high):
    """Every vector scaled so that its Euclidean norm lies in ``[low, high]``; 0 stays 0."""
    return w.rescale(v, low, high)


def masked(w, v):
    """``v`` on one random mask that all workers share, 0 elsewhere: where the message of the vector of ones, by shared coins, is not 0."""
    return w.masked(v)


def times(w, a, b):
    """Entrywise product of two vectors of one kind."""
    return w.times(a, b)


def divide(w, a, b):
    """Entrywise quotient of two vectors of one kind."""
    return w.divide(a, b)


def outside(w, m, v):
    """The entries of ``v`` where the message ``m`` is 0, and 0 where it is not; both of one kind."""
    return w.outside(m, v)


def mean_sent(w, v):
    """Entry by entry the average over the workers whose entry is not 0 (0 where there is none), ``(n, d) -> (d,)``."""
    return w.mean_sent(v)


def gathered(w, v):
    """All workers' messages at a server, ``(n, d)`` as it was; what is computed of them there travels no more."""
    return w.gathered(v)


def coordinate_mean(w, v):
    """Every entry replaced by the average of its vector's entries."""
    return w.coordinate_mean(v)


def dct(w, v, chunk):
    """Orthonormal DCT-II of consecutive pieces, each as long as the largest divisor of d that is at most ``chunk``."""
    return w.dct(v, chunk)


def idct(w, v, chunk):
    """The inverse of :func:`dct`."""
    return w.idct(v, chunk)


def orthogonalise(w, v, rows, eps):
    """``M (M'M + eps I)^(-1/2)`` of a shared vector as a matrix M (row by row), with the largest divisor of d up to ``rows`` as rows."""
    return w.orthogonalise(v, rows, eps)


def flip(w, v, count, p):
    """The first ``count`` workers attack: each of their entries changes its sign with probability ``p``, by coins of their own."""
    return w.flip(v, count, p)


def full_grad(w, x):
    """Every worker's exact gradient, ``(n, d)``, at a shared point or at each worker's own point."""
    return w.full_grad(x)


def grad_pair(w, x, y):
    """Every worker's stochastic gradients at two points by the same draw, as a pair of ``(n, d)``."""
    return w.grad_pair(x, y)


def each(w, p, a, b):
    """Every worker takes its row of ``a`` with probability ``p``, by a coin of its own, else its row of ``b``."""
    return w.each(p, a, b)


# --- words of a measure: ``measure(s, w, h) -> scalar``; here ``grad`` is the full gradient --------------------------


def optimum(w):
    """A minimiser ``x*`` of ``f = mean_i f_i``, shared."""
    return w.optimum()


def gap(w, x, of=""):
    """``f(x) - f*`` at a shared point, ``f = mean_i f_i`` plus what else x* minimises; ``of`` one function alone, against x*."""
    return w.gap_of(x, of) if of else w.gap(x)


def sqnorm(w, v):
    """Squared Euclidean norm of a shared vector; of a per-worker one the mean over workers of ``||v_i||^2``."""
    return w.sqnorm(v)


def inner(w, a, b):
    """Inner product of two vectors of one kind; of per-worker ones the mean over workers of ``<a_i, b_i>``."""
    return w.inner(a, b)


def consensus(w, x):
    """The mean model of per-worker models; a shared model is returned as it is."""
    return w.consensus(x)


STEP_WORDS: tuple[Callable[..., Any], ...] = (
    grad,
    full_grad,
    grad_pair,
    mean,
    mean_sent,
    gathered,
    spread,
    gossip,
    compress,
    delay,
    chance,
    each,
    flip,
)
STEP_WORDS += (prox, implicit, lmo, line_search, sign, clip, rescale, masked, sqrt, log, times, divide, outside)
STEP_WORDS += (coordinate_mean, dct, idct, orthogonalise)
OF_WORST_CASES = ("prox", "prox_of", "grad_of", "implicit", "line_search")  # no run gives them a meaning yet
MEASURE_WORDS = (optimum, gap, sqnorm, inner, consensus)
WORDS = {f.__name__: f for f in STEP_WORDS + MEASURE_WORDS}
