"""Point-to-point transfers on links: who sends what to whom, after what, and when, under a named rule of the links.

Every worker has an out side and an in side per kind of link (full duplex).  A transfer holds the out side of its sender and the in
side of its receiver at the same time, and arrives a latency later.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from verify_rates.solvers.method import UsageError

RULES = {
    "fifo": "first in, first out on every side, in program order; a transfer holds both sides for bytes/bandwidth, arrives a latency later",
    "blocking": "first in, first out on every side, in program order; a transfer holds both sides for bytes/bandwidth plus latency",
    "fair": "every side shares its time equally among the transfers under way (max-min); transfers of one pair follow one another",
}
MOST_TRANSFERS = 200_000  # some seconds of work
MOST_PIECES = 5_000_000  # on all workers together; halving and doubling among 2048 stays below, which takes some seconds too
CROSS, LOCAL = 0, 1


class Move(NamedTuple):
    """Pieces ``first..last-1`` from one worker to another, added to what is there or put in its place."""

    source: int
    target: int
    first: int
    last: int
    adds: bool
    level: int = CROSS


class Transfer(NamedTuple):
    """A move of a graph; ``after`` are transfers whose arrival it waits for, ``sides`` the out side and the in side it holds."""

    source: int
    target: int
    share: Fraction  # of the size that was asked for
    round: int
    after: tuple[int, ...]
    sides: tuple[int, int]
    level: int


class Sent(NamedTuple):
    """A transfer that took place, in seconds from the start."""

    source: int
    target: int
    round: int
    bytes: float
    start: float
    end: float
    arrives: float


@dataclass
class Builder:
    """Transfers from rounds of moves; what waits for what is read off the pieces, and what every worker holds is kept book of.

    A transfer waits for the arrival of everything that its sender got of the pieces it sends in the rounds before.

    Parameters
    ----------
    held : (n, pieces) whose contributions a worker holds of a piece at the start, as bits.
    weight : the share of the size that some pieces make, from the first, the last, and how many contributions were summed.
    per_node : workers of one node, who share its two sides of the link between nodes.
    overlaps : whether a sum may hold a contribution twice (averages of averages).
    """

    held: list[list[int]]
    weight: Callable[[int, int, int], Fraction]
    per_node: int = 1
    overlaps: bool = False
    transfers: list[Transfer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.writers: list[list[list[int]]] = [[[] for _ in row] for row in self.held]
        self.rounds = 0

    def together(self, moves: Iterable[Move]) -> None:
        """One round: every move carries what its sender held before it."""
        made = [(move, self._transfer(move), self.held[move.source][move.first : move.last]) for move in moves]
        for move, transfer, values in made:
            self._receive(move, values, len(self.transfers))
            self.transfers.append(transfer)
        self.rounds += 1
        if len(self.transfers) > MOST_TRANSFERS:
            raise UsageError(f"the collective has more than {MOST_TRANSFERS} transfers; take fewer workers or chunks.")

    def _transfer(self, move: Move) -> Transfer:
        own, at = self.writers[move.source], range(move.first, move.last)
        after = sorted({t for p in at for t in own[p]})
        summed = max(self.held[move.source][p].bit_count() for p in at)
        share = self.weight(move.first, move.last, summed)
        return Transfer(move.source, move.target, share, self.rounds, tuple(after), self._sides(move), move.level)

    def _sides(self, move: Move) -> tuple[int, int]:
        nodes = len(self.held)  # sides of nodes, out and in, come after those of workers
        if move.level == CROSS and self.per_node > 1:
            return 2 * (nodes + move.source // self.per_node), 2 * (nodes + move.target // self.per_node) + 1
        return 2 * move.source, 2 * move.target + 1

    def _receive(self, move: Move, values: list[int], number: int) -> None:
        own, writers = self.held[move.target], self.writers[move.target]
        for p, value in zip(range(move.first, move.last), values, strict=True):
            if not value:
                raise ArithmeticError(f"worker {move.source} sends piece {p} before it has it")
            if not move.adds:
                own[p], writers[p] = value, [number]
                continue
            if own[p] & value and not self.overlaps:
                raise ArithmeticError(f"piece {p} on worker {move.target} would hold a contribution twice")
            own[p] |= value
            writers[p] = [*writers[p], number]


# --- first in, first out ----------------------------------------------------------------------------------------------


class Played(NamedTuple):
    """Moments of every transfer and what each start waited for last: a transfer, and whether for its arrival (else its sides)."""

    start: list[Any]
    end: list[Any]
    arrives: list[Any]
    cause: list[tuple[int, bool] | None]

    @property
    def seconds(self) -> Any:
        return max(self.arrives)


def play(
    transfers: Sequence[Transfer], tx: Sequence[Any], lat: Sequence[Any], blocking: bool, ready: Any = 0, free: dict[int, Any] | None = None
) -> Played:
    """Transfers in program order, first in, first out on both sides; ties of causes go to data before sides, and to the earliest transfer.

    Parameters
    ----------
    tx, lat : seconds of every transfer, any numbers.
    ready : when the data are there at the start: a moment, or one per worker.
    free : when every side is free; written to.

    >>> two = [Transfer(0, 1, Fraction(1), 0, (), (0, 3), 0), Transfer(1, 2, Fraction(1), 1, (0,), (2, 5), 0)]
    >>> play(two, [4, 4], [1, 1], blocking=False).arrives
    [5, 10]
    """
    free = {} if free is None else free
    holder: dict[int, int] = {}
    made = Played([], [], [], [])
    for i, t in enumerate(transfers):
        start, cause = (ready[t.source] if isinstance(ready, (list, tuple)) else ready), None
        for j in t.after:
            if made.arrives[j] > start:
                start, cause = made.arrives[j], (j, True)
        for side in t.sides:
            if side in free and free[side] > start:
                start, cause = free[side], ((holder[side], False) if side in holder else None)
        end = start + tx[i] + lat[i] if blocking else start + tx[i]
        for side in t.sides:
            free[side], holder[side] = end, i
        made.start.append(start)
        made.end.append(end)
        made.arrives.append(end if blocking else end + lat[i])
        made.cause.append(cause)
    return made


def critical(played: Played) -> list[int]:
    """Transfers from the start to the last arrival, each starting when the one before lets it."""
    at: int | None = max(range(len(played.arrives)), key=lambda i: (played.arrives[i], -i))
    path = []
    while at is not None:
        path.append(at)
        cause = played.cause[at]
        at = cause[0] if cause else None
    return path[::-1]


def latency_on(path: Sequence[int], played: Played, lat: Sequence[Any], blocking: bool) -> Any:
    """How much of the time along a critical path is latency; the rest of it is bandwidth."""
    followed = [played.cause[j] for j in path[1:]]
    return sum((lat[i] for i, cause in zip(path, [*followed, None], strict=True) if blocking or cause is None or cause[1]), 0 * lat[0])


# --- fair sharing -----------------------------------------------------------------------------------------------------


def play_fair(transfers: Sequence[Transfer], tx: Sequence[Any], lat: Sequence[Any]) -> Played:
    """Transfers that start as soon as their data are there and share the time of both their sides, max-min.

    Mathematics: a transfer under way has a share ``s <= 1`` of its sides' time and moves at ``s * bandwidth``; the shares are the max-min
    fair ones among those with a sum of at most 1 on every side.  Transfers of one directed pair follow one another.  No max-plus system:
    there is no closed form, and a longer transfer may make the whole shorter.

    >>> two = [Transfer(1, 0, Fraction(1), 0, (), (2, 1), 0), Transfer(2, 0, Fraction(1), 0, (), (4, 1), 0)]
    >>> play_fair(two, [4, 2], [1, 1]).arrives
    [7.0, 5.0]
    """
    waits = [len(t.after) for t in transfers]
    followers: dict[int, list[int]] = defaultdict(list)
    before: dict[tuple[int, int], int] = {}
    for i, t in enumerate(transfers):
        for j in t.after:
            followers[j].append(i)
        if (t.source, t.target) in before:
            waits[i] += 1
        before[t.source, t.target] = i
    return _Sharing(transfers, tx, lat, waits, followers).run()


class _Sharing:
    def __init__(
        self, transfers: Sequence[Transfer], tx: Sequence[Any], lat: Sequence[Any], waits: list[int], followers: Mapping[int, Sequence[int]]
    ) -> None:
        self.transfers, self.tx, self.lat, self.waits, self.followers = transfers, tx, lat, waits, followers
        m = len(transfers)
        self.made = Played([0.0] * m, [0.0] * m, [0.0] * m, [None] * m)
        self.next: dict[int, int] = {}
        last: dict[tuple[int, int], int] = {}
        for i, t in enumerate(transfers):
            if (t.source, t.target) in last:
                self.next[last[t.source, t.target]] = i
            last[t.source, t.target] = i

    def run(self) -> Played:
        now = 0.0
        left: dict[int, float] = {}
        coming = [(0.0, i) for i, waits in enumerate(self.waits) if not waits]
        while left or coming:
            share = self._shares(left) if left else {}
            soonest = min((now + left[i] / share[i] for i in left), default=math.inf)
            then = min(soonest, coming[0][0] if coming else math.inf)
            done = [i for i in left if now + left[i] / share[i] <= then]
            for i in left:
                left[i] = max(0.0, left[i] - (then - now) * share[i])
            now = then
            for i in done:
                del left[i]
                self._finish(i, now, coming)
            while coming and coming[0][0] <= now:
                _, i = heapq.heappop(coming)
                self.made.start[i] = now
                left[i] = float(self.tx[i])
        return self.made

    def _finish(self, i: int, now: float, coming: list[tuple[float, int]]) -> None:
        self.made.end[i], self.made.arrives[i] = now, now + float(self.lat[i])
        freed = [(j, self.made.arrives[i], True) for j in self.followers[i]]
        if i in self.next:
            freed.append((self.next[i], now, False))
        for j, moment, arrived in freed:
            self.waits[j] -= 1
            if moment > self.made.start[j] or self.made.cause[j] is None:  # until it starts, its start is what it waits for so far
                self.made.start[j], self.made.cause[j] = max(moment, self.made.start[j]), (i, arrived)
            if not self.waits[j]:
                heapq.heappush(coming, (max(self.made.start[j], now), j))

    def _shares(self, under_way: Iterable[int]) -> dict[int, float]:
        """Max-min: the tightest side first, all on it get as much as each other."""
        open_, users = set(under_way), defaultdict[int, set[int]](set)
        room: dict[int, float] = defaultdict(lambda: 1.0)
        for i in open_:
            for side in self.transfers[i].sides:
                users[side].add(i)
        share: dict[int, float] = {}
        while open_:
            tight = min((side for side in users if users[side]), key=lambda s: (room[s] / len(users[s]), s))
            fair = room[tight] / len(users[tight])
            for i in sorted(users[tight]):
                share[i] = fair
                open_.discard(i)
                for side in self.transfers[i].sides:
                    if side != tight:
                        room[side] -= fair
                        users[side].discard(i)
            users[tight] = set()
        return share


# --- closed forms -----------------------------------------------------------------------------------------------------

Form = tuple[Fraction, Fraction, Fraction, Fraction]  # latencies between and within nodes, sizes over bandwidth between and within nodes
Whole = tuple[int, int, int, int]


def forms(transfers: Sequence[Transfer], blocking: bool, copies: int = 1) -> list[list[Form]]:
    """Seconds of one, two ... ``copies`` back to back, as linear forms whose maximum they are, where links of a level are alike.

    Mathematics: in a max-plus system every moment is the maximum, over the ways that lead to it, of the sums along them; a way that
    another one covers in every cost is left out.
    """
    unit = math.lcm(*(t.share.denominator for t in transfers))  # whole numbers of parts of the size are quicker than fractions
    sides: dict[int, frozenset[Whole]] = {}
    zero = frozenset([(0, 0, 0, 0)])
    out, last = [], zero
    for _ in range(copies):
        arrives: list[frozenset[Whole]] = []
        for t in transfers:
            start = _join(zero, *(arrives[j] for j in t.after), *(sides[s] for s in t.sides if s in sides))
            parts, here = int(t.share * unit), (t.level == CROSS, t.level == LOCAL)
            sent = (0, 0, parts * here[0], parts * here[1])
            there = _later(start, (int(here[0]), int(here[1]), *sent[2:]))
            for side in t.sides:
                sides[side] = there if blocking else _later(start, sent)
            arrives.append(there)
        last = _join(last, *arrives)
        out.append([(Fraction(a), Fraction(b), Fraction(c, unit), Fraction(d, unit)) for a, b, c, d in sorted(last)])
    return out


def _later(front: frozenset[Whole], by: Whole) -> frozenset[Whole]:
    a, b, c, d = by
    return frozenset((p + a, q + b, r + c, s + d) for p, q, r, s in front)


def _join(*fronts: frozenset[Whole]) -> frozenset[Whole]:
    found = frozenset().union(*fronts)
    if len(found) == 1:
        return found
    return frozenset(f for f in found if not any(f != g and all(a <= b for a, b in zip(f, g, strict=True)) for g in found))
