"""The collectives as rounds of moves: who sends which pieces to whom, and their laws where links and messages are alike.

A new one is a function with :func:`algorithm` over it; data movement is checked while its transfers are built, so a wrong one cannot
be timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import sympy as sp

from verify_rates.solvers.method import UsageError, nearest
from verify_rates.solvers.words import Unsupported
from verify_rates.theory.symbols import letters
from verify_rates.theory.timeline.transfers import LOCAL, MOST_PIECES, Builder, Move, Transfer

n, lat, T_tx = letters("n lat T_tx")  # T_tx: bytes of the size over bandwidth
c, g, M = sp.symbols("c g M", integer=True, positive=True)  # chunks, workers per node, matchings
lat_local, T_tx_local = sp.symbols("lat_local T_tx_local", nonnegative=True)
_log = sp.log(n, 2)
_nodes, _x, _y = n / g, T_tx / n, T_tx_local / g  # hierarchical: nodes, one piece on the link between nodes, one block within a node
_steps = 2 * (_nodes - 1)

Rounds = Iterator[Iterable[Move]]


@dataclass(frozen=True)
class Algorithm:
    """A collective.

    Attributes
    ----------
    operation : what every worker has in the end, a key of OPERATIONS.
    rounds : ``(n, pieces, **options)`` to the moves.
    pieces : number of pieces from n and the options.
    options : names of the options it takes, with their defaults.
    fifo, blocking : seconds, where ``when`` holds.
    when : ``(n, options)`` to whether the law holds; ``where`` says it in words.
    """

    name: str
    operation: str
    rounds: Callable[..., Rounds]
    pieces: Callable[..., int]
    options: dict[str, Any]
    fifo: sp.Expr
    blocking: sp.Expr
    when: Callable[[int, dict[str, Any]], bool]
    where: str

    def law(self, link: str) -> sp.Expr:
        """Seconds in n, lat, T_tx and the options, on alike links; Unsupported for links that are shared fairly."""
        if link == "fair":
            raise Unsupported(f"a closed form of {self.name} on fairly shared links: they are no max-plus system; use its event simulation")
        return self.blocking if link == "blocking" else self.fifo

    def at(self, link: str, workers: int, options: dict[str, Any]) -> sp.Expr:
        """The law for so many workers, in lat and T_tx; it holds where ``when`` does.

        >>> get_algorithm("ring").at("fifo", 4, {})
        3*T_tx/2 + 6*lat
        """
        values = {n: workers, c: options.get("chunks", 1), g: options.get("per_node", 1), M: len(options.get("matchings") or ())}
        return sp.expand(self.law(link).subs(values))


# name -> factor of the bus bandwidth over the bandwidth of the algorithm (nccl-tests, PERFORMANCE.md)
OPERATIONS: dict[str, Callable[[int], Fraction]] = {
    "all_reduce": lambda n: Fraction(2 * (n - 1), n),
    "all_gather": lambda n: Fraction(n - 1, n),
    "reduce_scatter": lambda n: Fraction(n - 1, n),
    "broadcast": lambda n: Fraction(1),
    "exchange": lambda n: Fraction(1),
}
ALGORITHMS: dict[str, Algorithm] = {}


def _always(n: int, options: dict[str, Any]) -> bool:
    return True


def _power_of_two(n: int, options: dict[str, Any]) -> bool:
    return n & (n - 1) == 0


def _full_tree(n: int, options: dict[str, Any]) -> bool:
    return n > 2 and n & (n + 1) == 0 and options["chunks"] == 1


def algorithm(
    operation: str,
    fifo: sp.Expr,
    blocking: sp.Expr | None = None,
    *,
    pieces: Callable[..., int] = lambda n, **options: 1,
    when: Callable[[int, dict[str, Any]], bool] = _always,
    where: str = "",
    **options: Any,
) -> Callable[[Callable[..., Rounds]], Callable[..., Rounds]]:
    """Put a collective under the name of its function; without ``blocking`` the law is the same for both rules."""

    def keep(rounds: Callable[..., Rounds]) -> Callable[..., Rounds]:
        name, law = rounds.__name__, (fifo, fifo if blocking is None else blocking)
        ALGORITHMS[name] = Algorithm(name, operation, rounds, pieces, options, *law, when, where)
        return rounds

    return keep


def get_algorithm(name: str) -> Algorithm:
    """By name; UsageError with the nearest one for others."""
    if name not in ALGORITHMS:
        raise nearest(str(name), ALGORITHMS, "collective")
    return ALGORITHMS[name]


def _workers(n: int, **options: Any) -> int:
    return n


# --- rings ------------------------------------------------------------------------------------------------------------


def _reduce_ring(n: int) -> Rounds:
    for step in range(n - 1):
        yield [Move(i, (i + 1) % n, (i - step) % n, (i - step) % n + 1, True) for i in range(n)]


def _gather_ring(n: int, ahead: int) -> Rounds:
    for step in range(n - 1):
        yield [Move(i, (i + 1) % n, (i + ahead - step) % n, (i + ahead - step) % n + 1, False) for i in range(n)]


@algorithm("all_reduce", 2 * (n - 1) * (lat + T_tx / n), pieces=_workers)
def ring(n: int) -> Rounds:
    """Reduce-scatter, then all-gather, both around a ring."""
    yield from _reduce_ring(n)
    yield from _gather_ring(n, 1)


@algorithm("reduce_scatter", (n - 1) * (lat + T_tx / n), pieces=_workers)
def ring_reduce_scatter(n: int) -> Rounds:
    """Every worker ends with the sum of one piece."""
    yield from _reduce_ring(n)


@algorithm("all_gather", (n - 1) * (lat + T_tx), pieces=_workers)
def ring_all_gather(n: int) -> Rounds:
    """Every worker's message travels once around the ring."""
    yield from _gather_ring(n, 0)


# --- trees ------------------------------------------------------------------------------------------------------------


def _chunks(n: int, chunks: int = 1) -> int:
    return chunks


def _levels(n: int) -> list[range]:
    return [range(2**k - 1, min(2 ** (k + 1) - 1, n)) for k in range(1, n.bit_length()) if 2**k - 1 < n]


@algorithm(
    "all_reduce",
    2 * (sp.log(n + 1, 2) - 1) * (lat + 2 * T_tx),
    4 * (sp.log(n + 1, 2) - 1) * (lat + T_tx),
    pieces=_chunks,
    when=_full_tree,
    where="3, 7, 15, ... workers and one chunk",
    chunks=1,
)
def tree(n: int, chunks: int) -> Rounds:
    """Balanced binary tree with its root at worker 0: reduce, then broadcast, every chunk as soon as it is there."""
    for p in range(chunks):
        for level in reversed(_levels(n)):
            yield [Move(i, (i - 1) // 2, p, p + 1, True) for i in level]
    for p in range(chunks):
        for level in _levels(n):
            yield [Move((i - 1) // 2, i, p, p + 1, False) for i in level]


def _binomial(n: int) -> list[list[tuple[int, int]]]:
    steps = [2**r for r in range((n - 1).bit_length())]
    return [[(i + step, i) for i in range(0, n, 2 * step) if i + step < n] for step in steps]


@algorithm("all_reduce", 2 * _log * (lat + T_tx), when=_power_of_two, where="powers of two")
def binomial_tree(n: int) -> Rounds:
    """Binomial tree to worker 0, and back."""
    for pairs in _binomial(n):
        yield [Move(source, target, 0, 1, True) for source, target in pairs]
    yield from broadcast(n)


@algorithm("broadcast", _log * (lat + T_tx), when=_power_of_two, where="powers of two")
def broadcast(n: int) -> Rounds:
    """Binomial tree from worker 0."""
    for pairs in reversed(_binomial(n)):
        yield [Move(target, source, 0, 1, False) for source, target in pairs]


@algorithm("broadcast", (n - 1) * lat + (n - 2 + c) / c * T_tx, (n - 2 + c) * (lat + T_tx / c), pieces=_chunks, chunks=1)
def chain_broadcast(n: int, chunks: int) -> Rounds:
    """From worker to worker, chunk after chunk (a pipeline)."""
    for p in range(chunks):
        for i in range(n - 1):
            yield [Move(i, i + 1, p, p + 1, False)]


# --- recursive --------------------------------------------------------------------------------------------------------


def _core(n: int, **options: Any) -> int:
    """The largest power of two; workers beyond it hand their vector to a partner and get the result back."""
    return 1 << (n.bit_length() - 1)


def _folded(n: int, pieces: int, inner: Iterable[Iterable[Move]]) -> Rounds:
    core = _core(n)
    extra = range(core, n)
    if extra:
        yield [Move(i, i - core, 0, pieces, True) for i in extra]
    yield from inner
    if extra:
        yield [Move(i - core, i, 0, pieces, False) for i in extra]


@algorithm("all_reduce", _log * (lat + T_tx), when=_power_of_two, where="powers of two")
def recursive_doubling(n: int) -> Rounds:
    """Whole vectors exchanged with the partner at distance 1, 2, 4, ..."""
    core = _core(n)
    inner = [[Move(i, i ^ step, 0, 1, True) for i in range(core)] for step in _powers(core)]
    yield from _folded(n, 1, inner)


@algorithm("all_reduce", 2 * _log * lat + 2 * (n - 1) / n * T_tx, pieces=_core, when=_power_of_two, where="powers of two")
def halving_doubling(n: int) -> Rounds:
    """Reduce-scatter by recursive halving, all-gather by recursive doubling (Rabenseifner)."""
    core = _core(n)
    halving = []
    for step in reversed(_powers(core)):
        blocks = [i // (2 * step) * 2 * step for i in range(core)]
        halving.append([_half(i, b + (0 if i & step else step), step, True) for i, b in enumerate(blocks)])
    doubling = [[_half(i, i // step * step, step, False) for i in range(core)] for step in _powers(core)]
    yield from _folded(n, core, [*halving, *doubling])


def _half(i: int, first: int, step: int, adds: bool) -> Move:
    return Move(i, i ^ step, first, first + step, adds)


def _powers(core: int) -> list[int]:
    return [2**r for r in range(core.bit_length() - 1)]


@algorithm("all_gather", _log * lat + (n - 1) * T_tx, pieces=_workers)
def doubling_all_gather(n: int) -> Rounds:
    """All that is held exchanged with the partner at distance 1, 2, 4, ...: messages double."""
    if not _power_of_two(n, {}):
        raise UsageError(f"doubling_all_gather needs a power of two of workers, not {n}; ring_all_gather takes any number.")
    for step in _powers(n):
        yield [_half(i, i // step * step, step, False) for i in range(n)]


# --- servers ----------------------------------------------------------------------------------------------------------


def _servers(n: int, servers: int) -> int:
    if servers > n:
        raise UsageError(f"servers must be at most n = {n}, not {servers}.")
    return servers


def _one_server(n: int, options: dict[str, Any]) -> bool:
    return options["servers"] == 1


@algorithm(
    "all_reduce",
    2 * lat + 2 * (n - 1) * T_tx,
    2 * (n - 1) * (lat + T_tx),
    pieces=_servers,
    when=_one_server,
    where="one server",
    servers=1,
)
def parameter_server(n: int, servers: int) -> Rounds:
    """The vector in ``servers`` parts, part k summed on worker k, which sends the sum back to all."""
    for step in range(1, n):
        yield [Move(i, (i + step) % n, (i + step) % n, (i + step) % n + 1, True) for i in range(n) if (i + step) % n < servers]
    for step in range(1, n):
        yield [Move(k, (k + step) % n, k, k + 1, False) for k in range(servers)]


@algorithm("all_reduce", 2 * lat + 2 * (n - 1) / n * T_tx, 2 * (n - 1) * (lat + T_tx / n), pieces=_workers)
def direct(n: int) -> Rounds:
    """Every worker is the server of one piece: all-to-all, twice."""
    yield from parameter_server(n, n)


# --- two levels -------------------------------------------------------------------------------------------------------


@algorithm(
    "all_reduce",
    2 * (g - 1) * (lat_local + _y) + (_steps - 1) * sp.Max(g * _x, lat + _x) + g * _x + lat,
    2 * (g - 1) * (lat_local + _y) + _steps * g * (lat + _x),
    pieces=_workers,
    per_node=2,
)
def hierarchical(n: int, per_node: int) -> Rounds:
    """Ring reduce-scatter within every node, ring all-reduce between nodes per part, ring all-gather within.

    The workers of a node share its one link to other nodes.
    """
    if n % per_node or n == per_node:
        raise UsageError(f"hierarchical needs a multiple of per_node = {per_node} workers on at least two nodes, not n = {n}.")
    m = n // per_node
    places = [(a, r) for a in range(m) for r in range(per_node)]

    def within(shift: int, adds: bool) -> list[Move]:
        at = [(a * per_node, r, (r + shift) % per_node * m) for a, r in places]
        return [Move(node + r, node + (r + 1) % per_node, b, b + m, adds, LOCAL) for node, r, b in at]

    def between(shift: int, adds: bool) -> list[Move]:
        at = [(a, r, (r + 1) % per_node * m + (a + shift) % m) for a, r in places]
        return [Move(a * per_node + r, (a + 1) % m * per_node + r, p, p + 1, adds) for a, r, p in at]

    for step in range(per_node - 1):
        yield within(-step, True)
    for step in range(m - 1):
        yield between(-step, True)
    for step in range(m - 1):
        yield between(1 - step, False)
    for step in range(per_node - 1):
        yield within(1 - step, False)


# --- exchange by matchings --------------------------------------------------------------------------------------------


def _perfect(n: int, options: dict[str, Any]) -> bool:
    return all(2 * len(matching) == n for matching in options["matchings"])


@algorithm("exchange", lat + M * T_tx, M * (lat + T_tx), pieces=_workers, when=_perfect, where="perfect matchings", matchings=None)
def gossip(n: int, matchings: Sequence[Sequence[tuple[int, int]]]) -> Rounds:
    """Every worker's own vector to its neighbours, one matching after the other on every side (one product with W)."""
    for matching in matchings:
        yield [Move(a, b, a, a + 1, False) for pair in matching for a, b in (pair, pair[::-1])]


@algorithm("exchange", M * (lat + T_tx), when=_perfect, where="perfect matchings", matchings=None)
def pairwise(n: int, matchings: Sequence[Sequence[tuple[int, int]]]) -> Rounds:
    """Averages of pairs, one matching after the other: what is sent is what the matching before gave."""
    for matching in matchings:
        yield [Move(a, b, 0, 1, True) for pair in matching for a, b in (pair, pair[::-1])]


# --- graphs -----------------------------------------------------------------------------------------------------------

Options = tuple[tuple[str, Any], ...]


@lru_cache(maxsize=64)
def transfers(name: str, n: int, options: Options = (), sizes: tuple[Fraction, ...] | None = None) -> tuple[Transfer, ...]:
    """The transfers of a collective in program order, after a check that they do what it says.

    Parameters
    ----------
    options : pairs of name and value, all of the algorithm's.
    sizes : shares of the size: of every worker's message (all-gather), or of a sum over 1, 2, ..., n workers (other ones).

    >>> [(t.source, t.target, t.share) for t in transfers("ring", 2)]
    [(0, 1, Fraction(1, 2)), (1, 0, Fraction(1, 2)), (0, 1, Fraction(1, 2)), (1, 0, Fraction(1, 2))]
    """
    found, chosen = get_algorithm(name), dict(options)
    pieces = found.pieces(n, **chosen) if found.operation != "exchange" else (n if name == "gossip" else 1)
    if n * pieces > MOST_PIECES:
        raise UsageError(f"{n} workers with {pieces} pieces each are more than {MOST_PIECES} pieces; take fewer workers or chunks.")
    builder = Builder(_first(found, n, pieces), _weight(found, pieces, sizes), chosen.get("per_node", 1), name == "pairwise")
    for moves in found.rounds(n, **chosen):
        builder.together(moves)
    _complete(found, n, builder.held)
    return tuple(builder.transfers)


def _own(found: Algorithm) -> bool:
    """Whether every worker starts with a piece of its own."""
    return found.operation == "all_gather" or found.name == "gossip"


def _first(found: Algorithm, n: int, pieces: int) -> list[list[int]]:
    if _own(found):
        return [[1 << i if p == i else 0 for p in range(pieces)] for i in range(n)]
    if found.operation == "broadcast":
        return [[1] * pieces if i == 0 else [0] * pieces for i in range(n)]
    return [[1 << i] * pieces for i in range(n)]


def _weight(found: Algorithm, pieces: int, sizes: tuple[Fraction, ...] | None) -> Callable[[int, int, int], Fraction]:
    if _own(found):
        return lambda first, last, summed: Fraction(last - first) if sizes is None else sum(sizes[first:last], Fraction(0))
    return lambda first, last, summed: Fraction(last - first, pieces) * (1 if sizes is None else sizes[summed - 1])


def _complete(found: Algorithm, n: int, held: list[list[int]]) -> None:
    """ArithmeticError unless every worker has what the operation promises."""
    everyone = (1 << n) - 1
    if found.operation == "all_reduce":
        done = all(mask == everyone for row in held for mask in row)
    elif found.operation == "all_gather":
        done = all(mask == 1 << p for row in held for p, mask in enumerate(row))
    elif found.operation == "reduce_scatter":
        done = all(any(row[p] == everyone for row in held) for p in range(len(held[0]))) and all(everyone in row for row in held)
    else:
        done = all(all(row) for row in held) if found.operation == "broadcast" else True
    if not done:
        raise ArithmeticError(f"{found.name} leaves a worker without its result")
