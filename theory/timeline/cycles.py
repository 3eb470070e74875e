"""Maximum cycle ratio of a graph whose edges carry a time and a number of tokens: the pace of a max-plus system."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from verify_rates.solvers.method import UsageError

EPS = 2.0**-52
COMPILED_FROM = 2_000  # edges: below, loading Numba takes longer than the search
MOST_ROUNDS = 10_000  # Howard needs a handful; a bound against rounding that flips for ever


class CycleRatio(NamedTuple):
    """The largest ratio of time to tokens over all cycles, with its proof.

    ``ratio`` is attained by ``edges`` (a cycle, in order), so it is a lower bound; the potentials show that no cycle exceeds
    ``upper``.  Both are fractions where the times were.
    """

    ratio: Any
    upper: Any
    nodes: list[int]
    edges: list[int]


def cycle_ratio(
    count: int,
    source: Sequence[int],
    target: Sequence[int],
    time: Sequence[float],
    tokens: Sequence[int],
    names: Sequence[str] | None = None,
    exact: bool = False,
) -> CycleRatio:
    """The maximum cycle ratio by Howard's policy iteration.

    Mathematics: ``max over cycles c of sum_{e in c} time_e / sum_{e in c} tokens_e``; a cycle without tokens is a deadlock.
    Source: Cochet-Terrasson, Cohen, Gaubert, Mc Gettrick and Quadrat 1998; Dasdan 2004 (ACM TODAES 9(4)), Howard's algorithm.

    Parameters
    ----------
    count : number of nodes.
    source, target : (E,) end points of the edges.
    time : (E,) non-negative times.
    tokens : (E,) non-negative whole numbers.
    names : (count,) for the messages.
    exact : times are whole numbers or fractions; the ratio is a fraction, proved by Bellman and Ford's algorithm (slow on large graphs).

    Errors: UsageError for a graph without a cycle, a cycle without tokens (its nodes are named), times that are not finite.

    >>> cycle_ratio(2, [0, 1, 0], [1, 0, 0], [3.0, 2.0, 4.0], [0, 2, 1]).ratio
    4.0
    >>> cycle_ratio(2, [0, 1], [1, 0], [1, Fraction(1, 3)], [1, 2], exact=True).ratio
    Fraction(4, 9)
    """
    if exact:
        return _in_fractions(count, source, target, time, tokens, names)
    u, v = np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64)
    w, k = np.asarray(time, dtype=np.float64), np.asarray(tokens, dtype=np.int64)
    if not (np.isfinite(w).all() and (k >= 0).all()):
        raise UsageError("the times of a graph must be finite and its tokens at least 0.")
    _no_deadlock(count, u[k == 0], v[k == 0], names)
    keep = _on_cycles(count, u, v)
    if not keep.any():
        raise UsageError("the graph has no cycle, so nothing sets its pace.")
    edges = np.flatnonzero(keep)
    edges = edges[np.argsort(u[edges], kind="stable")]
    return _howard(count, edges, u[edges], v[edges], w[edges], k[edges])


def _in_fractions(
    count: int, source: Sequence[int], target: Sequence[int], time: Sequence[Any], tokens: Sequence[int], names: Sequence[str] | None
) -> CycleRatio:
    """Newton's iteration from the cycle in floats: a cycle that is longer at its ratio has a larger one."""
    edges = cycle_ratio(count, source, target, [float(w) for w in time], tokens, names).edges
    while True:
        ratio = sum((Fraction(time[e]) for e in edges), Fraction(0)) / sum(tokens[e] for e in edges)
        reduced = [Fraction(w) - ratio * k for w, k in zip(time, tokens, strict=True)]
        longer = _positive_cycle(count, source, target, reduced)
        if not longer:
            return CycleRatio(ratio, ratio, [int(source[e]) for e in edges], edges)
        edges = longer


def _positive_cycle(count: int, source: Sequence[int], target: Sequence[int], length: Sequence[Fraction]) -> list[int]:
    """The edges of a cycle of positive length, by Bellman and Ford's algorithm; empty where there is none."""
    longest, via, changed = [Fraction(0)] * count, [-1] * count, -1
    for _ in range(count + 1):
        changed = -1
        for e, (u, v) in enumerate(zip(source, target, strict=True)):
            if longest[u] + length[e] > longest[v]:
                longest[v], via[v], changed = longest[u] + length[e], e, v
        if changed < 0:
            return []
    node = changed
    for _ in range(count):  # back far enough to be on the cycle
        node = source[via[node]]
    edges = [via[node]]
    while source[edges[-1]] != node:
        edges.append(via[source[edges[-1]]])
    return edges[::-1]


def _no_deadlock(count: int, u: np.ndarray, v: np.ndarray, names: Sequence[str] | None) -> None:
    bad = np.flatnonzero(_on_cycles(count, u, v))
    if not len(bad):
        return
    import networkx as nx

    cycle = [names[a] if names else str(a) for a, _ in nx.find_cycle(nx.DiGraph(zip(u[bad].tolist(), v[bad].tolist(), strict=True)))]
    raise UsageError(f"deadlock: a cycle without delay, {' -> '.join([*cycle, cycle[0]])}.")


def _on_cycles(count: int, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Edges inside a strongly connected component: those on some cycle."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(u)), (u, v)), shape=(count, count)).tocsr()
    label = connected_components(graph, connection="strong")[1]
    return label[u] == label[v]


def _howard(count: int, ids: np.ndarray, u: np.ndarray, v: np.ndarray, w: np.ndarray, k: np.ndarray) -> CycleRatio:
    first = np.flatnonzero(np.r_[True, u[1:] != u[:-1]])  # edges come sorted by source
    owner, size = u[first], np.diff(np.r_[first, len(u)])
    unit = float(np.max(np.abs(w))) or 1.0
    segment = np.repeat(np.arange(len(owner)), size)
    policy = np.full(count, -1)
    policy[owner] = _first_best(w, np.maximum.reduceat(w, first), segment)
    loops: list[Any] = [compiled(f) if len(u) >= COMPILED_FROM else f for f in (_best_policy_cycle, _potentials)]
    best_cycle, potentials = loops
    potential, ratio = np.zeros(count), -math.inf
    for _ in range(MOST_ROUNDS):
        found = best_cycle(owner, policy, v, w, k).tolist()
        new = float(np.sum(w[found])) / int(np.sum(k[found]))
        if new > ratio:  # else keep the cycle: its ratio is as good
            ratio, cycle = new, found
        potential = potentials(owner, policy, v, w - ratio * k, potential, int(u[cycle[0]]))
        gain = w - ratio * k + potential[v]
        top = np.maximum.reduceat(gain, first)
        # A policy's edge repeats the sum that made its potential; only the root's edge closes a cycle of rounded sums.
        scale = unit + abs(ratio) * int(np.max(k)) + float(np.max(np.abs(potential)))
        better = top > potential[owner] + EPS * scale * (len(cycle) + 2)
        if not better.any():
            slack = float(np.sum(np.maximum(top - potential[owner], 0.0)))  # a simple cycle passes a node once
            lead = int(np.argmin(u[cycle]))
            cycle = cycle[lead:] + cycle[:lead]
            return CycleRatio(ratio, ratio + slack, u[cycle].tolist(), ids[cycle].tolist())
        policy[owner[better]] = _first_best(gain, top, segment)[better]
        potential[owner[better]] = top[better]
    raise ArithmeticError("Howard's algorithm did not settle")


@functools.lru_cache
def compiled(function: Callable) -> Callable:
    """The same loop through Numba, from the cache on disk where it was compiled before."""
    from numba import njit

    import verify_rates.solvers.engine.signatures  # noqa: F401, sets the folder of the cache, which is keyed by the sources

    return njit(cache=True)(function)


def _first_best(gain: np.ndarray, top: np.ndarray, segment: np.ndarray) -> np.ndarray:
    """Per node the first of its edges that attains ``top``."""
    hits = np.flatnonzero(gain == top[segment])
    at = segment[hits]
    return hits[np.r_[True, at[1:] != at[:-1]]]


def _best_policy_cycle(owner, policy, v, w, k):
    """Edges of the cycle of largest ratio in the graph where every node has the one edge of the policy."""
    colour = np.full(len(policy), -1)
    best, best_ratio = -1, -np.inf
    for start in owner:
        node = start
        while colour[node] < 0:
            colour[node] = start
            node = v[policy[node]]
        if colour[node] != start:
            continue
        length, delay, at = w[policy[node]], k[policy[node]], v[policy[node]]
        while at != node:
            length, delay, at = length + w[policy[at]], delay + k[policy[at]], v[policy[at]]
        if length / delay > best_ratio:
            best, best_ratio = node, length / delay
    cycle = [policy[best]]
    while v[cycle[-1]] != best:
        cycle.append(policy[v[cycle[-1]]])
    return np.array(cycle)


def _potentials(owner, policy, v, reduced, potential, root):
    """Length of the policy's way to the root; nodes that do not reach it keep what they had."""
    out = potential.copy()
    known = np.zeros(len(policy), dtype=np.int8)  # 1: reaches the root, 2: does not
    known[root] = 1
    path = np.empty(len(policy), dtype=np.int64)
    for start in owner:
        node, steps = start, 0
        while known[node] == 0:
            known[node] = 2  # a cycle that misses the root ends here
            path[steps] = node
            steps += 1
            node = v[policy[node]]
        reaches = known[node]
        for i in range(steps - 1, -1, -1):
            node = path[i]
            known[node] = reaches
            if reaches == 1:
                out[node] = reduced[policy[node]] + out[v[policy[node]]]
    return out
