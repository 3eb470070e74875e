"""Links that vary: exact integration, the time line along them, and clear errors."""

import json
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from verify_rates.cli import main
from verify_rates.solvers.method import UsageError
from verify_rates.theory.networks import (
    Trace,
    along,
    constant,
    generate,
    markov,
    measured_like,
    periodic,
    read_trace,
    resampled,
    run_along,
    write_trace,
)
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


# --- gaps -------------------------------------------------------------------------------------------------------------

HEADER = "time_s,bandwidth_bit_per_s\n"


def read(tmp_path, text, **options):
    (tmp_path / "t.csv").write_text(text)
    return read_trace(tmp_path / "t.csv", **options)


def test_a_gap_is_what_the_rule_says(tmp_path):
    text = HEADER + "0,8\n1,8\n2,4\n7,8\n"  # rows a second apart; nothing is known from 3 to 7
    held, zero = read(tmp_path, text), read(tmp_path, text, gaps="zero")
    assert (held.times, held.period) == ((0, 1, 2, 7), 8) and held.carried(7) == 8 + 8 + 5 * 4
    assert zero.times == (0, 1, 2, 3, 7) and zero.carried(7) == 8 + 8 + 4
    assert "1 intervals of more than 2 medians of 1 s, 4 s beyond what is known, are held" in held.note
    assert "taken as outages" in zero.note
    with pytest.raises(UsageError, match=r"line 4: nothing is known from 3 s to 7 s; choose gaps='hold' or gaps='zero'"):
        read(tmp_path, text, gaps="error")
    with pytest.raises(UsageError, match="did you mean 'hold'"):
        read(tmp_path, text, gaps="holt")


def test_a_file_may_say_how_long_its_rows_hold(tmp_path):
    head = "time_s,until_s,bandwidth_bit_per_s\n"
    whole = read(tmp_path, head + "0,5,8\n5,6,4\n", gaps="error")
    assert whole.note == "no gaps" and whole.period == 6
    assert read(tmp_path, head + "0,2,8\n5,6,4\n", gaps="zero").carried(6) == 16 + 4
    for text, words in (
        ("0,0,8\n", "must come after"),
        ("0,3,8\n2,4,8\n", "not after the next row"),
        ("0,nan,8\n", "line 2"),
        ("0,,8\n", "line 2"),
    ):
        with pytest.raises(UsageError, match=words):
            read(tmp_path, head + text)


@pytest.mark.parametrize("seed", range(8))
def test_a_trace_is_read_as_it_was_written(tmp_path, seed):
    rng = np.random.default_rng(seed)
    for trace in (random_trace(rng), measured_like("5Mbit/s", 0.5, "3s", 50, seed=seed), periodic(2e6, 1e6, 4, share=0.25, latency=0.1)):
        write_trace(tmp_path / "t.csv", trace)
        assert read_trace(tmp_path / "t.csv", gaps="error") == trace


# --- summary ----------------------------------------------------------------------------------------------------------

# traces/README.md: rows, end (s), mean, min and max in Mbit/s, std/mean, rows without a byte, longest interval (s), as printed there
PUBLISHED = {
    "hsdpa_bus": (250, 316.92, 1.24, 0.22, 4.63, 0.80, 0, 7.4),
    "fcc_broadband": (244, 534.30, 3.09, 0, 8.35, 0.42, 8, 10.1),
    "lte_verizon": (1400, 140.0, 5.03, 0, 20.6, 0.71, 23, 0.1),
    "5g_static": (934, 1098, 130, 0, 254, 0.65, 24, 3.0),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_summary_is_the_published_one(name):
    if not (TRACES / f"{name}.csv").exists():
        pytest.skip("the measured traces are not beside this checkout")
    s = read_trace(TRACES / f"{name}.csv").summary()
    rows, end, mean, low, high, spread, zeros, longest = PUBLISHED[name]
    assert (s["rows"], s["zero_rows"]) == (rows, zeros)
    assert s["duration"] == pytest.approx(end, abs=0.1)  # the last row holds for the median here
    digits = {"rel": 5e-3}  # three digits are printed
    assert [s[k] / 1e6 for k in ("mean_bandwidth", "bandwidth_max")] == pytest.approx([mean, high], **digits)
    assert s["bandwidth_min"] / 1e6 == pytest.approx(low, abs=5e-3)
    assert s["bandwidth_std"] / s["mean_bandwidth"] == pytest.approx(spread, abs=6e-3)  # two digits
    assert s["longest_interval"] == pytest.approx(longest, abs=0.05)


@pytest.mark.parametrize("seed", range(10))
def test_the_summary_is_that_of_a_fine_grid(seed):
    """Every whole second counted by itself: times are whole numbers here."""
    trace = random_trace(np.random.default_rng(seed))
    fine = np.array([trace.bandwidth[trace._piece(t + 0.5)[1]] for t in range(int(trace.period))])
    s = trace.summary()
    assert s["mean_bandwidth"] == pytest.approx(fine.mean()) and s["bandwidth_std"] == pytest.approx(fine.std(), abs=1e-12)
    assert s["zero_share"] == pytest.approx(np.mean(fine == 0))
    for name, value in s["bandwidth_quantiles"].items():
        q = float(name[:-1]) / 100
        assert value == np.quantile(fine, q, method="inverted_cdf")
    longest = max((len(part) for part in "".join("0" if v == 0 else " " for v in fine).split()), default=0)
    assert s["longest_outage"] == longest


# --- traces that are made ---------------------------------------------------------------------------------------------


def test_a_resampled_trace_is_like_the_measured_one():
    source = markov([0, 1e6, 9e6], 10, 400, seed=2)
    made = resampled(source, 20_000, "30s", seed=1)
    assert made.period == 20_000 and made == resampled(source, 20_000, "30s", seed=1) != resampled(source, 20_000, "30s", seed=2)
    a, b = source.summary(), made.summary()
    assert b["mean_bandwidth"] == pytest.approx(a["mean_bandwidth"], rel=0.1) and b["zero_share"] == pytest.approx(
        a["zero_share"], abs=0.05
    )
    assert set(made.bandwidth) == set(source.bandwidth)
    changes = sum(x != y for x, y in pairwise(made.bandwidth)) / made.period
    shuffled = resampled(source, 20_000, "0.5s", seed=1)  # short stretches lose the memory
    assert changes < 0.2 < sum(x != y for x, y in pairwise(shuffled.bandwidth)) / shuffled.period


def test_traces_by_a_text(tmp_path):
    assert generate("markov(levels=1Mbit/s|9Mbit/s, stay=5s, length=50, seed=3)") == markov(["1Mbit/s", "9Mbit/s"], "5s", 50, seed=3)
    assert generate("periodic(high=2Mbit/s,low=1Mbit/s,period=4s,share=0.25)") == periodic("2Mbit/s", "1Mbit/s", "4s", 0.25)
    assert generate("measured_like(mean=5Mbit/s, spread=0.5, memory=3s, length=9)") == measured_like("5Mbit/s", 0.5, "3s", 9)
    write_trace(tmp_path / "t.csv", markov([1e6, 9e6], 5, 50))
    assert generate(f"measured_like({tmp_path / 't.csv'}, length=30s, seed=4)") == resampled(markov([1e6, 9e6], 5, 50), 30, seed=4)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("markof(levels=1|2)", "did you mean 'markov'"),
        ("markov(levels=1Mbit/s|2Mbit/s)", "markov needs stay, length"),
        ("markov(level=1)", "did you mean 'levels'"),
        ("markov(5)", "not of the form key=value"),
        ("markov(levels=1|2, stay=5s, length=many)", "length must be a whole number"),
        ("markov(levels=1Mb/s|2, stay=5s, length=5)", "ambiguous"),
        ("measured_like(none.csv, length=5s)", "cannot read the trace"),
        ("periodic(high=2, low=1, period=4s, share=x)", "share must be a number"),
        ("((", "cannot read trace"),
    ],
)
def test_a_text_that_makes_no_trace(spec, words):
    with pytest.raises(UsageError, match=words) as told:
        generate(spec)
    assert "\n" not in str(told.value)


# --- what the time consists of ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["gd", "ef_sgd", "dd_ef_sgd", "local_sgd", "acco", "gossip_sgd"])
def test_the_path_that_ends_last_is_a_chain_without_gaps(method):
    hyper = {"dd_ef_sgd": {"tau": 3}, "local_sgd": {"H": 4}}.get(method, {})
    for seed in range(5):
        trace = markov([0, 2e5, 9e5], 3, 60, seed=seed, latency=0.07)
        done = run_along(
            method, hyper, trace, steps=25, compute=[0.2, 0.3, 0.25], size=4000.0, topology="ring" if method == "gossip_sgd" else None
        )
        path = [done.events[i] for i in done.walk]
        assert path[0].start == 0 and path[-1].arrives == done.seconds == max(e.arrives for e in done.events)
        for a, b in pairwise(path):  # each starts just when the one before has arrived, or has left the stream
            assert b.start == a.arrives or (b.start == a.end and (a.stream, a.worker) == (b.stream, b.worker))
        assert sum(done.shares.values()) == pytest.approx(done.seconds, rel=1e-12) and min(done.shares.values()) >= 0


def test_shares_are_how_the_time_answers():
    """On a steady link the time is linear in its parts: one percent more of one takes one percent of its share more."""
    given = {"steps": 40, "size": 4000.0}
    for compute, latency, rate in ((0.3, 0.01, 1e6), (0.01, 0.01, 1e5), (0.05, 0.4, 1e6)):
        done = run_along("dd_ef_sgd", {"tau": 2}, constant(rate, latency), compute=compute, **given)
        for name, change in (("compute", (1.01, 1, 1)), ("latency", (1, 1.01, 1)), ("transfer", (1, 1, 1 / 1.01))):
            link = constant(rate * change[2], latency * change[1])
            more = run_along("dd_ef_sgd", {"tau": 2}, link, compute=compute * change[0], **given)
            assert more.seconds - done.seconds == pytest.approx(0.01 * done.shares[name], abs=1e-9 * done.seconds)
    assert max(done.shares, key=lambda k: done.shares[k]) == "latency" and "its last result waited for: compute" in str(done)


def test_its_page_marks_the_path(tmp_path):
    done = run_along("dd_ef_sgd", {"tau": 1}, markov([1e5, 9e5], 3, 60), steps=10, compute=0.1, size=4000.0)
    done.to_html(tmp_path / "t.html")
    assert (tmp_path / "t.html").read_text().count('class="bar mark"') == len(done.walk)


# --- the command ------------------------------------------------------------------------------------------------------


def run(*args):
    return CliRunner().invoke(main, ["trace", *map(str, args)])


def test_the_command(tmp_path):
    file, method = tmp_path / "t.csv", ("--method", "dd_ef_sgd", "tau=2", "--compute", "0.3s", "--size", "250kB", "--steps", "40")
    pictures = ("--plot", tmp_path / "t.png", "--chrome", tmp_path / "c.json", "--html", tmp_path / "t.html")
    done = run(file, "--generate", "markov(levels=1Mbit/s|9Mbit/s, stay=3s, length=60, latency=80ms)", *method, *pictures, "--json")
    found = json.loads(done.stdout)
    trace = markov(["1Mbit/s", "9Mbit/s"], "3s", 60, latency="80ms")
    known = run_along("dd_ef_sgd", {"tau": 2}, trace, steps=40, compute=0.3, size=250e3)
    assert done.exit_code == 0 and read_trace(file) == trace
    assert (
        found["run"]["seconds"] == known.seconds == max(e.arrives for e in known.events) and found["mean_bandwidth"] == trace.mean_bandwidth
    )
    steady = timeline("dd_ef_sgd", {"tau": 2}, compute=0.3, size=250e3, latency=0.08, bandwidth=trace.mean_bandwidth)
    assert found["run"]["at_mean"] == pytest.approx(steady.seconds_per_step) and known.seconds_per_step > steady.seconds_per_step
    assert all((tmp_path / name).stat().st_size > 1000 for name in ("t.png", "c.json", "t.html"))
    text = run(file, *method).stdout
    assert "quantiles over time" in text and "dd_ef_sgd: 40 steps in" in text


def test_the_command_refuses_in_one_sentence(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(HEADER + "0,8\n1,8\n2,4\n7,8\n")
    for args, words in (
        ((file, "--gaps", "error"), "nothing is known from 3 s"),
        ((file, "tau=2"), "name it by --method"),
        ((file, "--method", "gd"), "needs --compute and --size"),
        ((tmp_path / "none.csv",), "cannot read"),
        ((file, "--plot", tmp_path / "t.txt"), "cannot draw"),
        ((tmp_path / "no" / "t.csv", "--generate", "markov"), "does not exist"),
    ):
        done = run(*args)
        assert done.exit_code == 2 and words in done.stderr and done.stderr.count("\n") == 1
