"""Links that vary: exact integration, the time line along them, and clear errors."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from verify_rates.solvers.method import UsageError
from verify_rates.theory.networks import Trace, along, constant, markov, measured_like, periodic, read_trace
from verify_rates.theory.timeline import timeline

TRACES = Path(__file__).parents[2] / "shared" / "data" / "traces"
F = Fraction


def random_trace(rng, exact=False):
    m = int(rng.integers(1, 7))
    steps = rng.integers(1, 9, m)
    times = np.concatenate([[0], np.cumsum(steps)])
    rates = rng.integers(0, 5, m)
    rates[int(rng.integers(m))] = 3
    made = (times[:-1], rates, rng.integers(0, 4, m))
    kind = F if exact else float
    return Trace(*(tuple(kind(int(v)) for v in part) for part in made), kind(int(times[-1])))


def by_hand(trace, start, bits):
    """Bit by bit over unit intervals, on which these rates are constant."""
    t, left = F(start), F(bits)
    while left > 0:
        inside = t % trace.period
        k = max(i for i, s in enumerate(trace.times) if s <= inside)
        end = trace.times[k + 1] if k + 1 < len(trace.times) else trace.period
        room = trace.bandwidth[k] * (end - inside)
        if left <= room:
            return t + left / trace.bandwidth[k]
        t, left = t + end - inside, left - room
    return t


@pytest.mark.parametrize("seed", range(60))
def test_transfers_are_exact_in_fractions(seed):
    rng = np.random.default_rng(seed)
    trace = random_trace(rng, exact=True)
    for _ in range(10):
        start, bits = F(int(rng.integers(0, 200)), 7), F(int(rng.integers(0, 3000)), 11)
        end = trace.transfer(start, bits)
        assert isinstance(end, F) and end == by_hand(trace, start, bits)
        assert trace.carried(end) - trace.carried(start) == bits
        assert trace.transfer(start, bits + 1) > end and trace.transfer(start + 1, bits) >= end


@pytest.mark.parametrize("method", ["gd", "ef_sgd", "dd_ef_sgd", "local_sgd", "acco"])
def test_a_constant_trace_is_the_time_line(method):
    hyper = {"dd_ef_sgd": {"tau": 3}, "local_sgd": {"H": 4}}.get(method, {})
    costs = {"compute": 0.3, "size": 4000.0}
    line = timeline(method, hyper, **costs, latency=0.7, bandwidth=1e5, steps=24)
    events = along(method, hyper, constant(1e5, 0.7), steps=24, **costs)
    assert [e.word for e in events] == [e.word for e in line.events]
    assert np.allclose([e[4:] for e in events], [e[4:] for e in line.events], rtol=1e-12)


def test_time_never_falls_with_bytes_or_latency():
    rng = np.random.default_rng(1)
    for _ in range(20):
        trace = random_trace(rng)
        slower = Trace(trace.times, trace.bandwidth, tuple(v + 1 for v in trace.latency), trace.period)

        def end(trace, size):
            return max(e.arrives for e in along("dd_ef_sgd", {"tau": 2}, trace, steps=12, compute=1.0, size=size))

        assert end(trace, 1.0) <= end(trace, 2.0) <= end(slower, 2.0) + 1e-9


@pytest.mark.parametrize("name", ["5g_static", "fcc_broadband", "hsdpa_bus", "lte_verizon"])
def test_measured_traces_load_as_they_are(name):
    path = TRACES / f"{name}.csv"
    if not path.exists():
        pytest.skip("the measured traces are not beside this checkout")
    trace = read_trace(path, latency="50ms")
    assert len(trace.times) > 100 and 1e5 < trace.mean_bandwidth < 1e10
    events = along("dd_ef_sgd", {"tau": 2}, trace, steps=20, compute=0.05, size="1MB")
    assert all(e.end >= e.start and e.arrives >= e.end for e in events)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "needs a header"),
        ("time_s,bandwidth_bit_per_s\n", "needs a header"),
        ("a,b\n1,2\n", "needs a header"),
        ("time_s,bandwidth_bit_per_s\n0,1\n1,x\n", "line 3: .*numbers"),
        ("time_s,bandwidth_bit_per_s\n0,1\n1\n", "line 3: .*numbers"),
        ("time_s,bandwidth_bit_per_s\n0,1\n0,2\n", "line 3: the time 0 does not come after 0"),
        ("time_s,bandwidth_bit_per_s\n0,-1\n", "line 2: .*at least 0"),
        ("time_s,bandwidth_bit_per_s\n0,nan\n", "line 2: .*finite"),
        ("time_s,bandwidth_bit_per_s\n0,0\n1,0\n", "0 throughout"),
        ("time_s,bandwidth_bit_per_s,latency_s\n0,1,-1\n", "line 2: .*at least 0"),
    ],
)
def test_a_broken_file_is_told_by_its_line(tmp_path, text, words):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(UsageError, match=words):
        read_trace(tmp_path / "t.csv")


def test_a_missing_file_and_other_bad_input(tmp_path):
    for make in (
        lambda: read_trace(tmp_path / "none.csv"),
        lambda: constant("1Gb/s"),
        lambda: periodic(2, 1, 4, share=1.0),
        lambda: markov([1], 5, 10),
        lambda: markov([1, 2], 0.5, 10),
        lambda: measured_like(1, -1, 5, 10),
        lambda: Trace((1,), (1,), (0,), 2),
        lambda: Trace((0, 2), (1, 1), (0, 0), 2),
        lambda: Trace((), (), (), 1),
        lambda: along("gd", {}, constant(1), steps=0, compute=1, size=1),
    ):
        with pytest.raises(UsageError) as told:
            make()
        assert "\n" not in str(told.value)


def test_generators_keep_their_promises():
    assert markov([1e6, 1e7], 5, 50, seed=3) == markov([1e6, 1e7], 5, 50, seed=3) != markov([1e6, 1e7], 5, 50, seed=4)
    stays = markov([1.0, 2.0, 3.0], 10, 20_000).bandwidth
    assert np.mean(np.diff(stays) != 0) == pytest.approx(0.1, abs=0.02)
    like = np.log(measured_like(1.0, 0.3, 10, 20_000).bandwidth)
    assert np.std(like) == pytest.approx(0.3, rel=0.15) and np.corrcoef(like[:-1], like[1:])[0, 1] == pytest.approx(np.exp(-0.1), abs=0.02)
