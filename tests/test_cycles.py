"""Howard's algorithm against the enumeration of all cycles, on small random graphs, interpreted and compiled; its speed on large ones."""

import time
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

from verify_rates.solvers.method import UsageError
from verify_rates.theory.timeline import cycles
from verify_rates.theory.timeline.cycles import cycle_ratio

GRAPHS = 1_000
ROUNDING = 16 * 2.0**-52  # a cycle of at most 7 edges: 6 sums and one division, twice over
SECONDS = 0.1  # the aim for 10,000 nodes and 30,000 edges


def draw(rng):
    count = int(rng.integers(2, 8))
    pairs = [(a, b) for a in range(count) for b in range(count) if rng.random() < 0.35]
    tokens = [int(rng.integers(0, 3)) for _ in pairs]
    return count, pairs, rng.integers(0, 50, len(pairs)).tolist(), tokens


def enumerated(pairs, times, tokens):
    """The largest ratio in fractions; None without a cycle, "deadlock" with one that has no tokens."""
    time_of, token_of = dict(zip(pairs, times, strict=True)), dict(zip(pairs, tokens, strict=True))
    ratios = []
    for nodes in nx.simple_cycles(nx.DiGraph(pairs)):
        edges = list(zip(nodes, nodes[1:] + nodes[:1], strict=True))
        delay = sum(token_of[e] for e in edges)
        if delay == 0:
            return "deadlock"
        ratios.append(Fraction(sum(time_of[e] for e in edges), delay))
    return max(ratios, default=None)


@pytest.mark.parametrize("compiled_from", [0, 10**9], ids=["compiled", "interpreted"])
def test_a_thousand_graphs_against_enumeration(monkeypatch, compiled_from):
    monkeypatch.setattr(cycles, "COMPILED_FROM", compiled_from)
    rng, seen = np.random.default_rng(5), {"deadlock": 0, "none": 0, "ratio": 0}
    for _ in range(GRAPHS):
        count, pairs, times, tokens = draw(rng)
        truth = enumerated(pairs, times, tokens)
        arguments = (count, [a for a, _ in pairs], [b for _, b in pairs], times, tokens)
        if truth is None or truth == "deadlock":
            with pytest.raises(UsageError, match="deadlock" if truth else "no cycle"):
                cycle_ratio(*arguments)
            seen["deadlock" if truth else "none"] += 1
            continue
        found = cycle_ratio(*arguments)
        assert found.ratio == pytest.approx(float(truth), rel=ROUNDING, abs=0)
        on = found.edges
        assert Fraction(sum(times[e] for e in on), sum(tokens[e] for e in on)) == truth
        assert all(pairs[a][1] == pairs[b][0] for a, b in zip(on, on[1:] + on[:1], strict=True))
        seen["ratio"] += 1
    assert min(seen.values()) >= 20, seen


def test_a_cycle_without_delay_names_its_nodes():
    with pytest.raises(UsageError, match=r"^deadlock: a cycle without delay, grad -> mean -> grad\.$"):
        cycle_ratio(3, [0, 1, 2], [1, 0, 2], [1.0, 1.0, 1.0], [0, 0, 1], ["grad", "mean", "other"])


@pytest.mark.parametrize("seed", range(3))
def test_large_graphs_compiled_and_interpreted_are_the_same_bits_and_quick(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    u, v = rng.integers(0, 10_000, (2, 30_000))
    arguments = (10_000, u, v, rng.uniform(0, 1, 30_000), np.where(v > u, 0, 1))
    found = cycle_ratio(*arguments)
    took = []
    for _ in range(5):
        start = time.thread_time()
        cycle_ratio(*arguments)
        took.append(time.thread_time() - start)
    assert min(took) <= SECONDS
    monkeypatch.setattr(cycles, "COMPILED_FROM", 10**9)
    assert cycle_ratio(*arguments) == found


def test_the_enumeration_catches_a_search_that_stops_at_its_first_policy(monkeypatch):
    monkeypatch.setattr(cycles, "EPS", 1e9)
    with pytest.raises(AssertionError):
        test_a_thousand_graphs_against_enumeration(monkeypatch, 10**9)
