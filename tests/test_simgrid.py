"""SimGrid as a witness: collectives under all rules of the links, and time lines of methods, event by event in another simulator.

SimGrid comes with Debian (``apt-get install python3-simgrid``) for Debian's own Python, so it runs in a process of its own.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from verify_rates.theory.timeline import replay, timeline
from verify_rates.theory.timeline.algorithms import ALGORITHMS
from verify_rates.theory.timeline.collectives import collective

PYTHON = "/usr/bin/python3"
WITNESS = Path(__file__).parent / "simgrid_witness.py"
RTOL = 1e-9  # what the issue asks for; SimGrid rounds sizes to bytes (1e-12 s) and solves its shares to 1e-12
PLAYED = [name for name, a in ALGORITHMS.items() if "per_node" not in a.options]  # it has no link that the workers of a node share in turns
METHODS = [("gd", {}), *(("dd_ef_sgd", {"tau": tau}) for tau in (0, 3, 12)), ("local_sgd", {"H": 4}), ("acco", {})]


@cache
def there() -> bool:
    try:
        return subprocess.run([PYTHON, "-c", "import simgrid"], capture_output=True).returncode == 0
    except OSError:
        return False


@pytest.fixture(autouse=True)
def simgrid():
    if not there() and os.environ.get("REQUIRE_ALL") != "1":
        pytest.skip("SimGrid is not installed; apt-get install python3-simgrid")


def replayed(cases):
    """Seconds of every case by SimGrid."""
    done = subprocess.run([PYTHON, WITNESS], input=json.dumps(cases), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def case_of(found):
    q = found.question
    moves = [[t.source, t.target, tx, late, t.after] for t, tx, late in zip(q.transfers, q.tx, q.late, strict=True)]
    return {"rule": q.link, "n": q.n, "transfers": moves}


def asked(name, rng, link, alike):
    workers = rng.choice([4, 8]) if name in ("doubling_all_gather", "gossip", "pairwise") else rng.choice([3, 4, 5, 7, 8])
    latency, bandwidth = rng.uniform(0, 3), rng.uniform(5, 80)
    if not alike:
        draw = np.random.default_rng(rng.randrange(10**6))
        latency, bandwidth = draw.uniform(0, 3, (workers, workers)), draw.uniform(5, 80, (workers, workers))
    options = {"chunks": 3} if "chunks" in ALGORITHMS[name].options else {}
    options |= {"topology": "hypercube"} if "matchings" in ALGORITHMS[name].options else {}
    return collective(name, n=workers, size=rng.uniform(1, 100), latency=latency, bandwidth=bandwidth, link=link, **options)


@pytest.mark.parametrize(("link", "alike"), [("fifo", True), ("blocking", True), ("fair", True), ("fifo", False), ("blocking", False)])
def test_collectives_agree(link, alike):
    rng = random.Random(f"{link} {alike}")
    found = [asked(name, rng, link, alike) for name in PLAYED for _ in range(2)]
    np.testing.assert_allclose(replayed([case_of(f) for f in found]), [f.seconds for f in found], rtol=RTOL)


def unrolled(line, rounds):
    """The tasks of a time line as transfers: every stream is a pair of its own."""
    tasks, streams, moves = line.graph.tasks, [], []
    pattern = line.graph.pattern()
    for r in range(rounds):
        for i, task in enumerate(tasks):
            if task.stream not in streams:
                streams.append(task.stream)
            at = streams.index(task.stream)
            after = [(r - ago) * len(tasks) + j for j, ago in task.after if r >= ago]
            moves.append([2 * at, 2 * at + 1, pattern.occupies[i], pattern.later[i], after])
    last = replay.play(pattern, rounds) + pattern.occupies + pattern.later
    return {"rule": "fifo", "n": 2 * len(streams), "transfers": moves}, float(last.max())


@pytest.mark.parametrize("collective", [None, "ring"])
def test_time_lines_agree(collective):
    """Pipelines and delayed updates: compute streams and links as queues."""
    rng = random.Random(9)
    cases, expected = [], []
    for method, hyper in METHODS:
        for _ in range(2):
            given = {"compute": rng.uniform(0.1, 9), "latency": rng.uniform(0, 5), "bandwidth": 8, "size": rng.uniform(0.1, 9), "n": 3}
            case, seconds = unrolled(timeline(method, hyper, collective=collective, steps=1, **given), 20)
            cases.append(case)
            expected.append(seconds)
    np.testing.assert_allclose(replayed(cases), expected, rtol=RTOL)


def test_a_time_that_is_wrong_is_seen():
    found = collective("ring", n=4, size=5, latency=0.5, bandwidth=8)
    case = case_of(found)
    case["transfers"][3][3] += 1e-6
    (seconds,) = replayed([case])
    assert abs(seconds - found.seconds) > 1e-7
