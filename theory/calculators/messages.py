"""Collectives message by message, with clocks: what the closed forms of the papers are compared with.

A message of ``w`` words holds its sender's port and its receiver's port for ``alpha + w*beta`` (full duplex: a rank may send one
message and receive another one at the same time).  Numbers may be Fractions; then every moment is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from verify_rates.solvers.method import UsageError


@dataclass
class Network:
    """The clocks of ``n`` ranks.

    Attributes
    ----------
    n : ranks.
    alpha, beta : seconds a message and seconds a word.
    clock : per rank the moment at which its program stands.
    words : per rank the words it has sent.
    """

    n: int
    alpha: Any
    beta: Any
    clock: list[Any] = field(default_factory=list)
    words: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.n < 1:
            raise UsageError(f"n must be at least 1, not {self.n!r}.")
        self.clock, self.words = [0] * self.n, [0] * self.n

    @property
    def seconds(self) -> Any:
        """When the last rank is done."""
        return max(self.clock)

    def together(self, messages: Sequence[tuple[int, int, int]]) -> None:
        """Messages ``(from, to, words)`` that are under way at the same time, at most one out of and one into each rank."""
        for side in (0, 1):
            ranks = [m[side] for m in messages]
            if len(set(ranks)) < len(ranks):
                raise UsageError("a port carries one message at a time.")
        before = list(self.clock)
        for source, target, words in messages:
            end = max(before[source], before[target]) + self.alpha + words * self.beta
            self.words[source] += words
            for rank in (source, target):
                self.clock[rank] = max(self.clock[rank], end)


def ring_all_reduce(net: Network, vectors: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Sum over the ranks by reduce-scatter and all-gather on a ring; chunks differ by at most one word.

    >>> net = Network(2, alpha=1, beta=1)
    >>> ring_all_reduce(net, [[1, 2], [3, 4]]), net.seconds
    ([[4, 6], [4, 6]], 4)
    """
    n, d = net.n, len(vectors[0])
    edges = [c * d // n for c in range(n + 1)]
    own = [list(v) for v in vectors]
    for reduce in (True, False):
        for step in range(n - 1):
            chunks = [(i - step + (not reduce)) % n for i in range(n)]
            sent = [(c, own[i][edges[c] : edges[c + 1]]) for i, c in enumerate(chunks)]
            net.together([(i, (i + 1) % n, len(values)) for i, (_, values) in enumerate(sent)])
            for i, (c, values) in enumerate(sent):
                held = own[(i + 1) % n][edges[c] : edges[c + 1]]
                own[(i + 1) % n][edges[c] : edges[c + 1]] = [a + b for a, b in zip(held, values, strict=True)] if reduce else values
    return own


def all_gather(net: Network, items: Sequence[list[Any]], width: int) -> list[list[Any]]:
    """Recursive doubling: every rank ends with the items of all; ``width`` words an item.

    >>> net = Network(4, alpha=1, beta=1)
    >>> all_gather(net, [["a"], ["b"], ["c"], ["d"]], 1)[2], net.seconds
    (['a', 'b', 'c', 'd'], 5)
    """
    _power_of_two(net.n)
    held = {i: {i: list(item)} for i, item in enumerate(items)}
    step = 1
    while step < net.n:
        net.together([(i, i ^ step, width * sum(map(len, held[i].values()))) for i in range(net.n)])
        held = {i: held[i] | held[i ^ step] for i in range(net.n)}
        step *= 2
    return [[x for j in sorted(held[i]) for x in held[i][j]] for i in range(net.n)]


def tree_reduce(net: Network, items: Sequence[Any], merge: Callable[[Any, Any], Any], words: Callable[[Any], int]) -> Any:
    """Binomial tree to rank 0: in round r a rank whose number is a multiple of 2**(r+1) merges what its partner sends.

    >>> net = Network(4, alpha=1, beta=0)
    >>> tree_reduce(net, [1, 2, 3, 4], lambda a, b: a + b, lambda v: 1), net.seconds
    (10, 2)
    """
    _power_of_two(net.n)
    held, step = list(items), 1
    while step < net.n:
        pairs = [(i + step, i) for i in range(0, net.n, 2 * step)]
        net.together([(source, target, words(held[source])) for source, target in pairs])
        for source, target in pairs:
            held[target] = merge(held[target], held[source])
        step *= 2
    return held[0]


def broadcast(net: Network, words: int) -> None:
    """Binomial tree from rank 0.

    >>> net = Network(8, alpha=1, beta=1)
    >>> broadcast(net, 4), net.seconds
    (None, 15)
    """
    _power_of_two(net.n)
    step = net.n // 2
    while step:
        net.together([(i, i + step, words) for i in range(0, net.n, 2 * step)])
        step //= 2


def _power_of_two(n: int) -> None:
    if n & (n - 1):
        raise UsageError(f"the number of ranks must be a power of two here, not {n}.")
