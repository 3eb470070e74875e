"""Time lines on fairly shared links: event simulation against hand-made processor sharing, and against queues."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from click.testing import CliRunner

from verify_rates.cli import main
from verify_rates.solvers.method import UsageError
from verify_rates.theory.timeline import chrome, shared, timeline
from verify_rates.theory.timeline.shared import SharedTimeLine

RTOL = 1e-9  # a pattern that repeats: sums of at most some thousands of times
RTOL_MEAN = 1e-3  # no pattern: a mean over 256 starts and ends of about 256 rounds, off by less than a gap (some rounds) over 256**2 rounds
FREE = {"latency": 0.0, "bandwidth": 8.0}


def asked(rng):
    given = {"compute": rng.uniform(0.01, 1), "latency": rng.uniform(0, 3), "bandwidth": 8, "size": rng.uniform(0.01, 1)}
    return {"tau": rng.randint(0, 4)}, given


def processor_sharing(tau, compute, tx, latency, until, step=1e-3):
    """Delayed averages on small steps of time, independent of any event list; when the transfers' last bytes leave."""
    left, arrived, ended, begun, computing, now = {}, {}, [], 0, None, 0.0
    while now < until:
        if computing is None and (begun <= tau or arrived.get(begun - 1 - tau, np.inf) <= now):
            computing, begun = now + compute, begun + 1
        if computing is not None and computing <= now + step / 2:
            left[begun - 1], computing = tx, None
            continue
        for k in list(left):
            left[k] -= step / len(left)
        now += step
        for k in [k for k, rest in left.items() if rest <= step / 2]:
            del left[k]
            arrived[k] = now + latency
            ended.append(now)
    return ended


def test_events_are_those_of_processor_sharing_on_small_steps():
    for tau, compute, tx, latency in ((2, 0.5, 1.25, 0.25), (3, 0.25, 1.0, 2.0), (1, 1.0, 0.5, 3.0)):
        line = timeline("dd_ef_sgd", {"tau": tau}, compute=compute, bandwidth=8, size=tx, latency=latency, link="fair", steps=12)
        ends = sorted(e.end for e in line.events if e.word == "mean")
        slow = processor_sharing(tau, compute, tx, latency, ends[-1] + 0.5)
        np.testing.assert_allclose(slow[:8], ends[:8], atol=0.05)  # 50 steps of time: every event is off by at most one
        sent = [e for e in line.events if e.word == "mean"]
        assert any(a.start < b.start < a.end for a in sent for b in sent) == (compute < tx)


def test_one_transfer_at_a_time_shares_nothing():
    rng = random.Random(1)
    for method, hyper in (("gd", {}), ("local_sgd", {"H": 3})):
        given = asked(rng)[1]
        fair, fifo = timeline(method, hyper, link="fair", **given), timeline(method, hyper, **given)
        assert fair.seconds_per_step == pytest.approx(fifo.seconds_per_step, rel=RTOL) == pytest.approx(fair.at_fifo, rel=RTOL)
        assert fair.repeats == 1


def test_sharing_never_gains_and_often_loses():
    """Of equal transfers, a queue ends each k-th one first; the closed form of the queue would be wrong."""
    rng = random.Random(0)
    slower = 0
    for _ in range(40):
        hyper, given = asked(rng)
        line = timeline("dd_ef_sgd", hyper, link="fair", **given)
        assert line.seconds_per_step >= line.at_fifo * (1 - (RTOL if line.repeats else RTOL_MEAN))
        slower += line.seconds_per_step > line.at_fifo * 1.01
    assert slower >= 5


def test_rounds_that_nothing_follows_do_not_count(monkeypatch):
    """Without the cut the last transfers have the link for themselves."""
    hyper, given = {"tau": 3}, {"compute": 0.2, "latency": 0.0, "bandwidth": 8, "size": 1.0}
    assert timeline("dd_ef_sgd", hyper, link="fair", **given).seconds_per_round == pytest.approx(1.0, rel=RTOL_MEAN)
    real = shared._played

    def uncut(tasks, costs, rounds, per_round):
        events, ends = real(tasks, costs, rounds, per_round)
        arrives = np.array([e.arrives for e in events]).reshape(rounds, len(tasks)).max(axis=1)
        assert len(ends) < rounds
        return events, np.maximum.accumulate(arrives)

    monkeypatch.setattr(shared, "_played", uncut)
    gaps = np.diff(uncut(*_question(hyper, given), 64, 1)[1])
    assert gaps[-1] < 0.9 * gaps[len(gaps) // 2 :].mean()


def _question(hyper, given):
    from verify_rates.theory.timeline.events import periodic_tasks
    from verify_rates.theory.timeline.line import asked as read

    method, h, _, neighbours, costs, _ = read("dd_ef_sgd", hyper, **given)
    return periodic_tasks(method, h, neighbours, False), costs


def test_a_pattern_has_to_last():
    assert shared._pattern(np.array([1.0, 2.0] * 20)) == 2
    assert shared._pattern(np.array([5.0, 1.0, 1.0, 1.0, 1.0] * 8)) == 5  # the last ones are alike by chance
    assert shared._pattern(np.random.default_rng(0).random(60)) == 0


def test_text_data_and_picture(tmp_path):
    line = timeline("dd_ef_sgd", {"tau": 2}, compute=0.3, size=1, link="fair", steps=4, **FREE)
    assert isinstance(line, SharedTimeLine) and line.formula is None and "no max-plus system" in str(line)
    assert len(json.loads(line.to_json())["events"]) == len(line.events) == 8
    line.plot(tmp_path / "a.png")
    line.to_chrome(tmp_path / "a.json")
    events = chrome.read(tmp_path / "a.json")
    assert len(events) == 8 and {e.stream for e in events} >= {"compute", "link 0", "link 1"}
    given = ["timeline", "dd_ef_sgd", "tau=2", "--compute", "0.3", "--latency", "0", "--bandwidth", "8", "--size", "1", "--link", "fair"]
    assert f"{line.seconds_per_step:.6g} s per step" in CliRunner().invoke(main, given).stdout
    told = CliRunner().invoke(main, [*given, "--html", str(tmp_path / "a.html")])
    assert told.exit_code == 2 and "without a cycle" in told.stderr
    with pytest.raises(UsageError, match="steps must be"):
        timeline("gd", compute=0.3, size=1, link="fair", steps=0, **FREE)
