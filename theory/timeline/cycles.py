"""Maximum cycle ratio of a graph whose edges carry a time and a number of tokens: the pace of a max-plus system."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from verify_rates.solvers.method import UsageError

EPS = 2.0**-52
MOST_ROUNDS = 10_000  # Howard needs a handful; a bound against rounding that flips for ever


class CycleRatio(NamedTuple):
    """The largest ratio of time to tokens over all cycles, with its proof.

    ``ratio`` is attained by ``edges`` (a cycle, in order), so it is a lower bound; the potentials show that no cycle exceeds
    ``upper``.
    """

    ratio: float
    upper: float
    nodes: list[int]
    edges: list[int]


def cycle_ratio(
    count: int,
    source: Sequence[int],
    target: Sequence[int],
    time: Sequence[float],
    tokens: Sequence[int],
    names: Sequence[str] | None = None,
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

    Errors: UsageError for a graph without a cycle, a cycle without tokens (its nodes are named), times that are not finite.

    >>> cycle_ratio(2, [0, 1, 0], [1, 0, 0], [3.0, 2.0, 4.0], [0, 2, 1]).ratio
    4.0
    """
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
    potential, ratio = np.zeros(count), -math.inf
    for _ in range(MOST_ROUNDS):
        found = _best_policy_cycle(owner, policy, v, w, k)
        new = float(np.sum(w[found])) / int(np.sum(k[found]))
        if new > ratio:  # else keep the cycle: its ratio is as good
            ratio, cycle = new, found
        potential = _potentials(owner, policy, v, w - ratio * k, potential, int(u[cycle[0]]))
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


def _first_best(gain: np.ndarray, top: np.ndarray, segment: np.ndarray) -> np.ndarray:
    """Per node the first of its edges that attains ``top``."""
    hits = np.flatnonzero(gain == top[segment])
    return hits[np.unique(segment[hits], return_index=True)[1]]


def _best_policy_cycle(owner: np.ndarray, policy: np.ndarray, v: np.ndarray, w: np.ndarray, k: np.ndarray) -> list[int]:
    """Edges of the cycle of largest ratio in the graph where every node has the one edge of the policy."""
    after = np.where(policy >= 0, v[policy], -1).tolist()
    colour = [-1] * len(after)
    best: list[int] = []
    best_ratio = -math.inf
    for start in owner.tolist():
        node = start
        while colour[node] < 0:
            colour[node] = start
            node = after[node]
        if colour[node] != start:
            continue
        nodes, at = [node], after[node]
        while at != node:
            nodes.append(at)
            at = after[at]
        cycle = policy[nodes]
        ratio = float(np.sum(w[cycle])) / int(np.sum(k[cycle]))
        if ratio > best_ratio:
            best, best_ratio = cycle.tolist(), ratio
    return best


def _potentials(owner: np.ndarray, policy: np.ndarray, v: np.ndarray, reduced: np.ndarray, potential: np.ndarray, root: int) -> np.ndarray:
    """Length of the policy's way to the root; nodes that do not reach it keep what they had."""
    out = potential.tolist()
    back: dict[int, list[int]] = {}
    for node, at in zip(owner.tolist(), v[policy[owner]].tolist(), strict=True):
        back.setdefault(at, []).append(node)
    length = reduced[policy].tolist()
    queue = [root]
    while queue:
        at = queue.pop()
        for node in back.pop(at, []):
            if node != root:
                out[node] = length[node] + out[at]
                queue.append(node)
    return np.array(out)
