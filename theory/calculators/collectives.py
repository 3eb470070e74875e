"""Collectives carried out number by number: what every worker sends is counted, not quoted."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any


def pieces(d: int, n: int) -> list[range]:
    """d entries in n consecutive pieces whose lengths differ by at most one."""
    ends = [d * i // n for i in range(n + 1)]
    return [range(a, b) for a, b in itertools.pairwise(ends)]


def ring_all_reduce(vectors: list[list[Any]]) -> tuple[list[list[Any]], list[int]]:
    """Reduce-scatter and all-gather on a ring: every worker's sum, and how many numbers each worker sent.

    >>> ring_all_reduce([[1, 2], [10, 20]])
    ([[11, 22], [11, 22]], [2, 2])
    """
    n, held = len(vectors), [list(v) for v in vectors]
    parts, sent = pieces(len(held[0]), n), [0] * n
    for phase in range(2):
        for step in range(n - 1):
            moves = [(i, parts[(i + phase - step) % n]) for i in range(n)]
            carried = [[held[i][j] for j in part] for i, part in moves]
            for (i, part), values in zip(moves, carried, strict=True):
                to, sent[i] = (i + 1) % n, sent[i] + len(values)
                for j, value in zip(part, values, strict=True):
                    held[to][j] = value if phase else held[to][j] + value
    return held, sent


def ring_numbers(n: int, d: int) -> Fraction:
    """Numbers that a worker sends in a ring all-reduce of d numbers, mean over the workers, by doing it.

    >>> ring_numbers(4, 10)
    Fraction(15, 1)
    """
    vectors = [[n**i * (j + 1) for j in range(d)] for i in range(n)]
    held, sent = ring_all_reduce(vectors)
    assert all(row == [sum(column) for column in zip(*vectors, strict=True)] for row in held)
    return Fraction(sum(sent), n)
