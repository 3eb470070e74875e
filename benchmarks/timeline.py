"""Speed of time lines: tasks a second of the compiled event simulation, and the maximum cycle ratio of a large graph, against peers.

    python benchmarks/timeline.py [--rounds 200000] [--repeats 5]

The tasks are those of gossip SGD among 8 unequal workers on a ring.  Peers in the same run: a plain Python loop over the same tasks, the
step function with clocks for vectors, and, for the cycle ratio, one single test of a bisection (is there a cycle above this ratio?) by
networkx, of which a bisection to double precision makes about 50.  All sides must agree.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from verify_rates.solvers.method import get_method
from verify_rates.theory.timeline import replay, timeline
from verify_rates.theory.timeline.cycles import cycle_ratio
from verify_rates.theory.timeline.events import constants
from verify_rates.theory.timeline.simulate import run

TASKS_PER_SECOND, SECONDS = 2e6, 0.1  # the aims
NODES, EDGES = 10_000, 30_000
PEER_ROUNDS = 2_000
RTOL = 1e-9


def best(call: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    """The answer and the least CPU seconds of several calls."""
    took, answer = [], None
    for _ in range(repeats):
        began = time.process_time()
        answer = call()
        took.append(time.process_time() - began)
    return answer, min(took)


def plain_loop(tasks: list[Any], costs: list[tuple[float, float]], rounds: int) -> list[list[float]]:
    """What a script does: lists of floats, the tasks of a round one after the other."""
    starts: list[list[float]] = []
    waits = [(sorted(t.after), t.behind) for t in tasks]
    for r in range(rounds):
        now: list[float] = []
        starts.append(now)
        for after, behind in waits:
            start = 0.0
            for j, k in after:
                if r >= k:
                    start = max(start, starts[r - k][j] + costs[j][0] + costs[j][1])
            if behind is not None and r >= behind[1]:
                start = max(start, starts[r - behind[1]][behind[0]] + costs[behind[0]][0])
            now.append(start)
    return starts


def simulation(rounds: int, repeats: int) -> None:
    compute = np.random.default_rng(0).uniform(1, 2, 8).tolist()
    given = {"latency": 0.5, "bandwidth": 32.0, "size": 4.0, "topology": "ring"}
    line = timeline("gossip_sgd", compute=compute, **given, steps=1)
    tasks, p = list(line.graph.tasks), line.graph.pattern()
    costs = list(zip(p.occupies.tolist(), p.later.tolist(), strict=True))
    replay.play(p, rounds)  # compiled, or read from the cache
    starts, took = best(lambda: replay.play(p, rounds), repeats)
    loop, loop_took = best(lambda: plain_loop(tasks, costs, PEER_ROUNDS), repeats)
    neighbours = [[(i - 1) % 8, (i + 1) % 8] for i in range(8)]
    method = get_method("gossip_sgd")
    events, clock_took = best(lambda: run(method, constants(method, {}), PEER_ROUNDS, line.graph.costs, neighbours), 1)
    if not (np.array_equal(starts[:PEER_ROUNDS], loop) and [e.start for e in events[-len(tasks) :]] == loop[-1]):
        raise RuntimeError("the simulations disagree")
    if abs((starts[-1] - starts[-1001]).max() / 1000 - line.seconds_per_round) > RTOL * line.seconds_per_round:
        raise RuntimeError("the simulation and the cycle ratio disagree")
    fast, slow, clocks = rounds * len(tasks) / took, PEER_ROUNDS * len(tasks) / loop_took, PEER_ROUNDS * len(tasks) / clock_took
    print(f"compiled simulation:      {fast:12.3g} tasks/s (aim {TASKS_PER_SECOND:.0g})")
    print(f"plain Python loop:        {slow:12.3g} tasks/s, ratio {fast / slow:.0f}")
    print(f"step function on clocks:  {clocks:12.3g} tasks/s, ratio {fast / clocks:.0f}")


def ratio(repeats: int) -> None:
    import networkx as nx

    rng = np.random.default_rng(0)
    u, v = rng.integers(0, NODES, (2, EDGES))
    w, k = rng.uniform(0, 1, EDGES), np.where(v > u, 0, 1)
    arguments = (NODES, u, v, w, k)
    cycle_ratio(*arguments)
    found, took = best(lambda: cycle_ratio(*arguments), repeats)
    graph = nx.DiGraph()
    for a, b, length in zip(u.tolist(), v.tolist(), (found.upper * (1 + RTOL) * k - w).tolist(), strict=True):
        if length < graph.get_edge_data(a, b, {"weight": np.inf})["weight"]:
            graph.add_edge(a, b, weight=length)
    above, peer = best(lambda: nx.negative_edge_cycle(graph), 1)
    if above:
        raise RuntimeError("networkx finds a cycle above the maximum ratio")
    print(f"maximum cycle ratio:      {took:12.3g} s for {NODES:,} nodes and {EDGES:,} edges (aim {SECONDS:g} s)")
    print(f"one test by networkx:     {peer:12.3g} s, ratio {peer / took:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    simulation(given.rounds, given.repeats)
    ratio(given.repeats)


if __name__ == "__main__":
    main()
