"""Decentralised federated learning with unequal local steps: the fixed point, trees and rings of energies, and the budget rule.

Workers that take different numbers of local steps are no step function of the catalogue (its steps are those of all workers), so the
loop is played here, in fractions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators.lines import function
from verify_rates.theory.evidence import Found

SHARE = "1 - (1 - a)**tau"  # adaptive_dfl.1: A_i, a = eta*h
BUDGET = "floor(Min((a/k - b)/c, (u/k - s)/q))"  # adaptive_dfl.4: E, E_agg, E_cmp; T_max, T_agg, T_cmp; k rounds
TREE_FACTOR = "2"  # adaptive_dfl.3
RING_FACTOR = "2*(n-1)/n"

Edge = tuple[int, int]


def fedavg(w: Fraction, centres: Sequence[Fraction], taus: Sequence[int], a: Fraction) -> Fraction:
    """One round: worker i takes tau_i steps of ``w - a*(w - c_i)`` from w, then the exact mean.

    >>> fedavg(Fraction(0), [Fraction(1), Fraction(3)], [1, 1], Fraction(1, 2))
    Fraction(1, 1)
    """
    ends = []
    for c, tau in zip(centres, taus, strict=True):
        x = w
        for _ in range(tau):
            x -= a * (x - c)
        ends.append(x)
    return sum(ends, Fraction(0)) / len(ends)


def fixed_point(centres: Sequence[Fraction], taus: Sequence[int], a: Fraction) -> Fraction:
    """``sum_i A_i*c_i / sum_i A_i`` with A_i of SHARE."""
    shares = [function(SHARE, "a tau")(a, tau) for tau in taus]
    return sum((A * c for A, c in zip(shares, centres, strict=True)), Fraction(0)) / sum(shares)


def fixed(seed: int) -> Found:
    """adaptive_dfl.1: the formula's point is left unchanged by a round, exactly; rounds lead to it; small steps give the weighted mean."""
    rng, wrong, cases = np.random.default_rng([seed, 1]), 0, 20
    for _ in range(cases):
        n = int(rng.integers(1, 6))
        centres = [Fraction(int(c)) for c in rng.integers(-9, 10, n)]
        taus = [int(v) for v in rng.integers(1, 9, n)]
        a = Fraction(int(rng.integers(1, 10)), 10)
        point = fixed_point(centres, taus, a)
        wrong += fedavg(point, centres, taus, a) != point
        start = point + 7
        wrong += not abs(fedavg(start, centres, taus, a) - point) < abs(start - point)
        tiny, mean = (
            fixed_point(centres, taus, Fraction(1, 10**9)),
            Fraction(sum(t * c for t, c in zip(taus, centres, strict=True)), sum(taus)),
        )
        wrong += abs(tiny - mean) > Fraction(1, 10**6)  # the distance is of order a*max(tau)*max|c|
    return Found.count(int(wrong), 3 * cases, proves=True)


def mean_only_if_equal(most: int, generic: bool) -> Found:
    """adaptive_dfl.1's remark: instances with unequal tau_i whose fixed point is the plain mean all the same.

    All workers n <= 3, taus and whole centres up to ``most``, and steps a in {1/4, 1/2, 1}.  ``generic``: the point has to be the mean
    for ALL centres (asked of the unit vectors), and a < 1.
    """
    found, cases, where = 0, 0, ""
    for n in (2, 3):
        for taus, a in itertools.product(itertools.product(range(1, most + 1), repeat=n), (Fraction(1, 4), Fraction(1, 2), Fraction(1))):
            if len(set(taus)) == 1 or (generic and a == 1):
                continue
            if generic:
                units = [[Fraction(i == j) for i in range(n)] for j in range(n)]
                centred = all(fixed_point(u, taus, a) == Fraction(1, n) for u in units)
                found, cases = found + centred, cases + 1
                continue
            for centres in itertools.product(range(most + 1), repeat=n):
                if len(set(centres)) == n:
                    same = fixed_point([Fraction(c) for c in centres], taus, a) == Fraction(sum(centres), n)
                    found, cases = found + same, cases + 1
                    where = where or (f"tau {taus}, centres {centres}, eta*h = {a}" if same else "")
    return Found(float(found), float(found), 0.0, proves=True, message=where or f"{found} of {cases} cases violate it")


def trees(n: int) -> list[list[Edge]]:
    """All spanning trees of the complete graph on n points, from their sequences of n - 2 labels."""
    made = []
    for labels in itertools.product(range(n), repeat=max(0, n - 2)):
        degree = [1 + labels.count(i) for i in range(n)]
        edges = []
        for label in labels:
            leaf = degree.index(1)
            edges.append((min(leaf, label), max(leaf, label)))
            degree[leaf] -= 1
            degree[label] -= 1
        last = [i for i in range(n) if degree[i] == 1] if n > 1 else []
        made.append([*edges, *([(last[0], last[1])] if last else [])])
    return made


def gather_and_broadcast(tree: Sequence[Edge], values: Sequence[Fraction], seconds: dict[Edge, Fraction], root: int = 0):
    """The mean at every node, transmissions per edge, and the seconds, by walking the tree (no pipelining)."""
    around: dict[int, list[int]] = {i: [] for i in range(len(values))}
    for i, j in tree:
        around[i].append(j)
        around[j].append(i)
    used = dict.fromkeys(tree, 0)

    def up(node: int, above: int) -> tuple[Fraction, Fraction, list[int]]:
        total, ready, seen = values[node], Fraction(0), [node]
        for child in around[node]:
            if child != above:
                edge = (min(node, child), max(node, child))
                part, there, below = up(child, node)
                used[edge] += 2  # the sum goes up, the mean comes down
                total, ready, seen = total + part, max(ready, there + seconds[edge]), seen + below
        return total, ready, seen

    total, gathered, seen = up(root, -1)
    return total / len(values), used, 2 * gathered, sorted(seen)


def tree_cost(n: int, seed: int) -> Found:
    """adaptive_dfl.3, tree: the mean is exact, energy and time are the formulas', and no spanning tree needs less than the MST."""
    import networkx as nx

    weights = _weights(n, seed)
    values = [Fraction(i * i) for i in range(n)]
    graph = nx.Graph([(i, j, {"weight": w}) for (i, j), w in weights.items()])
    best = [(min(e), max(e)) for e in nx.minimum_spanning_edges(graph, data=False)]
    energies = {}
    wrong = 0
    for tree in trees(n):
        mean, used, took, seen = gather_and_broadcast(tree, values, weights)
        energy = sum(weights[e] * times for e, times in used.items())
        energies[tuple(sorted(tree))] = energy
        made = nx.Graph([(i, j, {"weight": weights[i, j]}) for i, j in tree])
        deepest = max(nx.single_source_dijkstra_path_length(made, 0).values())
        factor = function(TREE_FACTOR, "n")(n)
        wrong += mean != sum(values) / n or seen != list(range(n))
        wrong += energy != factor * sum(weights[e] for e in tree) or took != factor * deepest
    wrong += min(energies.values()) != energies[tuple(sorted(best))]
    return Found.count(int(wrong), 2 * len(energies) + 1, proves=True)


def ring_cost(n: int, seed: int) -> Found:
    """adaptive_dfl.3, ring: chunk by chunk on links of different speed, for every order of the workers."""
    weights, wrong, cases = _weights(n, seed), 0, 0
    for order in itertools.permutations(range(1, n)):
        ring = [0, *order]
        links = [weights[min(a, b), max(a, b)] for a, b in zip(ring, [*ring[1:], 0], strict=True)]
        held, busy, energy = [Fraction(0)] * n, [Fraction(0)] * n, Fraction(0)
        for _ in range(2 * (n - 1)):  # rank i sends what it holds since `held[i]` over link i, free since `busy[i]`
            ends = [max(held[i], busy[i]) + links[i] / n for i in range(n)]
            energy += sum(links, Fraction(0)) / n
            busy, held = ends, [ends[i - 1] for i in range(n)]
        factor = function(RING_FACTOR, "n")(Fraction(n))
        wrong += energy != factor * sum(links) or max(busy) != factor * max(links)
        cases += 1
    return Found.count(wrong, cases, proves=True)


def _weights(n: int, seed: int) -> dict[Edge, Fraction]:
    rng = np.random.default_rng([seed, n, 3])
    return {e: Fraction(int(rng.integers(1, 30))) for e in itertools.combinations(range(n), 2)}


def budget_rule() -> Found:
    """adaptive_dfl.4: K rounds of the rule's tau stay within both budgets, and one more local step does not; where the rule gives >= 1."""
    wrong = cases = 0
    for E, E_agg, E_cmp, T, T_agg, T_cmp, K in itertools.product((6, 15, 40), (0, 2), (1, 3), (8, 21), (1, 2), (1, 2), (1, 3)):
        tau = function(BUDGET, "a b c u s q k")(*map(Fraction, (E, E_agg, E_cmp, T, T_agg, T_cmp, K)))
        fits = [K * (t * E_cmp + E_agg) <= E and K * (t * T_cmp + T_agg) <= T for t in range(50)]
        most = max((t for t, ok in enumerate(fits) if ok), default=-1)
        wrong += (max(tau, 0) != max(most, 0)) or (tau >= 1) != (most >= 1)
        cases += 1
    return Found.count(wrong, cases, proves=True)


def link(bandwidth: float, power: float, gain: float, noise: float) -> float:
    """adaptive_dfl.2: bits per second of a link (the capacity of its band).

    >>> link(1.0, 3.0, 1.0, 1.0)
    2.0
    """
    if min(bandwidth, power, gain, noise) <= 0:
        raise UsageError("bandwidth, power, gain and noise of a link must be positive.")
    return bandwidth * math.log2(1 + power * gain / (noise * bandwidth))
