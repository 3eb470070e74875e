"""What several cost papers share: streams, ring collectives and sums of maxima; exact for Fractions, symbolic for SymPy numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from verify_rates.solvers.method import UsageError

NO_TIME = 0


class Collective(NamedTuple):
    """A collective that was played worker by worker: seconds until the last is done, and the bytes that each worker sent."""

    seconds: Any
    sent: list[Any]
    messages: list[int]


def fifo(jobs: Iterable[tuple[Any, Any]], join: Callable[..., Any] = max, start: Any = 0) -> list[Any]:
    """When each job of one stream ends, first in, first out.

    Parameters
    ----------
    jobs : pairs (ready, duration), in the same unit of time.
    join : the maximum; ``sympy.Max`` for symbols.

    >>> fifo([(0, 3), (1, 1), (9, 2)])
    [3, 4, 11]
    """
    ends, now = [], start
    for ready, duration in jobs:
        now = join(now, ready) + duration
        ends.append(now)
    return ends


def affine(base: Any, slope: Any) -> Callable[[Any], Any]:
    """The cost ``base + slope*x`` of x bytes: seconds to start up and seconds per byte.

    >>> affine(1, 2)(3)
    7
    """
    return lambda x: base + slope * x


def ring_all_reduce(n: int, size: Any, seconds_per_byte: Any, lat: Any = 0, add: Callable[[Any], Any] | None = None) -> Collective:
    """A ring all-reduce of ``size`` bytes, played message by message: n-1 steps that add, then n-1 steps that only copy.

    Parameters
    ----------
    n : workers.
    size : bytes of the vector; every message carries ``size/n``.
    seconds_per_byte : 1/bw of every link.
    lat : seconds per message.
    add : seconds to add a message of that many bytes (by default nothing).

    >>> ring_all_reduce(4, 8, 1).seconds
    12
    """
    chunk = size // n if isinstance(size, int) and size % n == 0 else size / n
    copy = lat + chunk * seconds_per_byte
    reduce = copy + (add(chunk) if add else 0)
    return _ring(n, [reduce] * (n - 1) + [copy] * (n - 1), chunk)


def ring_all_gather(n: int, size: Any, seconds_per_byte: Any, lat: Any = 0) -> Collective:
    """A ring all-gather of one message of ``size`` bytes a worker, played message by message.

    >>> ring_all_gather(4, 2, 1).seconds
    6
    """
    return _ring(n, [lat + size * seconds_per_byte] * (n - 1), size)


def _ring(n: int, steps: Sequence[Any], chunk: Any) -> Collective:
    clocks: list[Any] = [NO_TIME] * n
    for seconds in steps:  # worker i waits for its own last message and for that of its left neighbour
        clocks = [_later(clocks[i], clocks[i - 1]) + seconds for i in range(n)]
    return Collective(clocks[0] if len(set(clocks)) == 1 else max(clocks), [chunk * len(steps)] * n, [len(steps)] * n)


def _later(a: Any, b: Any) -> Any:
    return a if a == b else max(a, b)


def cuts(count: int, groups: int) -> Iterator[tuple[int, ...]]:
    """All ways to cut a row of ``count`` items into ``groups`` consecutive groups, as the positions after which it is cut.

    >>> list(cuts(3, 2))
    [(1,), (2,)]
    """
    return itertools.combinations(range(1, count), groups - 1)


def same_maximum(left: Any, right: Any) -> bool:
    """Whether two SymPy expressions of sums and maxima, in non-negative letters, are the same function.

    Guarantee: True is a proof (both have the same terms once each term that another one covers for all non-negative values of
    the letters is left out); terms that only a mixture of others covers are left out as well (linear programs).
    """
    return _reduced(left) == _reduced(right)


def _reduced(expr: Any) -> set[Any]:
    import sympy as sp

    from verify_rates.theory.timeline.formulas import undominated

    terms = sorted({sp.expand(t) for t in _terms(expr)}, key=str)
    if len(terms) == 1:
        return set(terms)
    monomials = sorted({m for t in terms for m in t.as_coefficients_dict()}, key=str)
    rows = np.array([[float(t.as_coefficients_dict().get(m, 0)) for m in monomials] for t in terms])
    return {terms[i] for i in undominated(rows)}


def _terms(expr: Any) -> list[Any]:
    """The linear forms whose maximum an expression is."""
    import sympy as sp

    if isinstance(expr, sp.Max):
        return [t for a in expr.args for t in _terms(a)]
    if isinstance(expr, sp.Add) and expr.has(sp.Max):
        return [sum(parts) for parts in itertools.product(*map(_terms, expr.args))]
    if isinstance(expr, sp.Mul) and expr.has(sp.Max):
        factor, rest = expr.as_coeff_Mul()
        if not factor.is_positive or not isinstance(rest, (sp.Max, sp.Add)):
            raise UsageError(f"{expr} is not a sum of maxima.")
        return [factor * t for t in _terms(rest)]
    return [sp.sympify(expr)]


def positive(value: Any, name: str, *, zero: bool = False) -> Any:
    """The number itself; UsageError unless it is finite and positive (or 0, where that is allowed)."""
    if isinstance(value, bool) or not hasattr(value, "__float__") or not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise UsageError(f"{name} must be {'at least 0' if zero else 'positive'} and finite, not {value!r}.")
    return value


def whole(value: Any, name: str, least: int = 1) -> int:
    """The whole number itself; UsageError unless it is at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise UsageError(f"{name} must be a whole number of at least {least}, not {value!r}.")
    return value


def choose(value: str, known: Mapping[str, Any], what: str) -> Any:
    """The entry of that name; UsageError with the nearest names."""
    from verify_rates.solvers.method import nearest

    if value not in known:
        raise nearest(str(value), known, what)
    return known[value]
