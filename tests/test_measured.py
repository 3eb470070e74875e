"""Measured inputs: profiles, fitted links, tables of places and tensors of models load as they are, and what is wrong is one sentence."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import binom

from verify_rates.cli import main
from verify_rates.solvers.method import UsageError
from verify_rates.theory.measured import Links, Model, Profile, fit, read_links, read_model, read_profile
from verify_rates.theory.planner import plan
from verify_rates.theory.timeline import timeline

DATA = Path(__file__).parents[2] / "shared" / "data"
COSTS = {"latency": 0.1, "bandwidth": 1e9, "size": 4e6}


def shared(name):
    if not (DATA / name).exists():
        pytest.skip("the measured data are not beside this checkout")
    return DATA / name


# --- profiles ---------------------------------------------------------------------------------------------------------


def kineto(steps=3, device=True):
    """What the PyTorch profiler writes, in little: steps on the processor, launches, kernels that run later, one that communicates."""
    events = [{"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": 0, "args": {"name": "python"}} for pid in (4242, 0)]
    events.append({"ph": "M", "name": "thread_name", "pid": 0, "tid": 20, "ts": 0, "args": {"name": "stream 20 "}})
    for k in range(steps):
        at = 1000.0 * k
        step = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{k + 7}", "pid": 4242, "tid": 4242, "ts": at, "dur": 1000.0}
        events += [step, {**step, "cat": "gpu_user_annotation", "pid": 0, "tid": 7, "ts": at + 600}]
        events.append({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 4242, "tid": 4242, "ts": at + 10, "dur": 100.0 + k})
        events.append({"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 4242, "tid": 4242, "ts": at + 50, "dur": 20.0})  # inside
        events.append({"ph": "X", "cat": "cpu_op", "name": "gloo:all_reduce", "pid": 4242, "tid": 4243, "ts": at + 200, "dur": 500.0})
        if device:
            named = (("gemm", 7, 600, 300.0 + 10 * k), ("relu", 20, 700, 400.0), ("ncclDevKernel_AllReduce_Sum_f32", 13, 650, 900.0))
            for number, (name, stream, later, dur) in enumerate(named):
                launch = {"correlation": 10 * k + number}
                runtime = {
                    "ph": "X",
                    "cat": "cuda_runtime",
                    "name": "cudaLaunchKernel",
                    "pid": 4242,
                    "tid": 4242,
                    "ts": at + 990,
                    "dur": 5.0,
                }
                kernel = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": stream, "ts": at + later, "dur": dur}
                events += [{**runtime, "args": launch}, {**kernel, "args": {**launch, "stream": stream, "device": 0}}]
    return {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8}, "traceEvents": events}


def written(tmp_path, data, name="t.pt.trace.json"):
    text = data if isinstance(data, str) else json.dumps(data)
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    return tmp_path / name


@pytest.mark.parametrize("name", ["t.json", "t.pt.trace.json.gz"])
def test_steps_of_a_device(tmp_path, name):
    """Kernels of two streams overlap from 700 to 900 + 10k: the union of [600, 900 + 10k] and [700, 1100] microseconds, in every step."""
    found = read_profile(written(tmp_path, kineto(), name))
    assert list(found.durations) == [("3", "compute")] and found.values == pytest.approx([500e-6] * 3)
    later = kineto()
    for e in later["traceEvents"]:
        if e["name"] == "relu":
            e["ts"] += 1000  # it runs in the next step's window, but this step launched it
    assert read_profile(written(tmp_path, later)).values == pytest.approx([(300 + 10 * k + 400) * 1e-6 for k in range(3)])


def test_times_since_1970_lose_nothing(tmp_path):
    """Short kernels at 1.7e15 microseconds: in seconds, neighbouring floats are 0.24 microseconds apart there."""
    late = kineto()
    for e in late["traceEvents"]:
        e["ts"] += 1_700_000_000_000_000.0
        if e.get("cat") == "kernel":
            e["dur"] /= 1000
    assert read_profile(written(tmp_path, late), match="gemm").values == pytest.approx([3e-7, 3.1e-7, 3.2e-7], rel=1e-6)


def test_two_processes_of_one_name_are_two(tmp_path):
    both = kineto()
    both["traceEvents"] += [{**e, "pid": 4343} for e in both["traceEvents"] if e["pid"] == 4242]
    with pytest.raises(UsageError, match="the steps of 2 processes; give one file per worker"):
        read_profile(written(tmp_path, both))


@pytest.mark.parametrize("device", [True, False])
def test_kinds_as_older_profilers_named_them(tmp_path, device):
    old, names = kineto(device=device), {"cpu_op": "Operator", "user_annotation": "Operator", "kernel": "Kernel", "cuda_runtime": "Runtime"}
    for e in old["traceEvents"]:
        if "cat" in e:
            e["cat"] = names.get(e["cat"], e["cat"])
            e["tid"] = f"stream {e['tid']}" if e["cat"] == "Kernel" else str(e["tid"])
    new = read_profile(written(tmp_path, kineto(device=device)))
    assert read_profile(written(tmp_path, old)).values == new.values


def test_communication_is_left_out_by_its_name(tmp_path):
    other = kineto()
    for e in other["traceEvents"]:
        e["name"] = e["name"].replace("ncclDevKernel_AllReduce_Sum_f32", "gemm2")
    assert read_profile(written(tmp_path, other)).values == pytest.approx([950e-6] * 3)  # the union reaches to 1550 then


def test_steps_of_a_processor_alone(tmp_path):
    found = read_profile(written(tmp_path, kineto(device=False)), skip=1)
    assert found.values == pytest.approx([101e-6, 102e-6]) and "processor" in found.rule


def test_events_by_name(tmp_path):
    found = read_profile(written(tmp_path, kineto()), match="gemm|relu")
    assert found.durations == {("0", "7"): pytest.approx((3e-4, 3.1e-4, 3.2e-4)), ("0", "stream 20"): pytest.approx((4e-4,) * 3)}
    assert read_profile(written(tmp_path, kineto()), match="gemm|relu", stream="7").mean == pytest.approx(3.1e-4)
    with pytest.raises(UsageError, match="on 2 streams; choose one by stream="):
        _ = found.per_worker


def test_begin_and_end_nest(tmp_path):
    events = [
        {"ph": p, "name": n, "cat": "compute", "pid": 1, "tid": 1, "ts": t} for p, n, t in (("B", "a", 0), ("B", "b", 2), ("E", "b", 5))
    ]
    found = read_profile(written(tmp_path, [*events, {"ph": "E", "pid": 1, "tid": 1, "ts": "9.5"}]))
    assert sorted(found.values) == pytest.approx([3e-6, 9.5e-6])


def test_a_time_line_is_a_profile_of_itself(tmp_path):
    line = timeline("dd_ef_sgd", {"tau": 2}, compute=[0.05, 0.07], **COSTS)
    line.to_chrome(tmp_path / "t.json")
    found = read_profile(tmp_path / "t.json")
    assert found.per_worker == pytest.approx([0.05, 0.07], abs=1e-9)
    again = timeline("dd_ef_sgd", {"tau": 2}, compute=found.per_worker, **COSTS)
    assert again.seconds_per_step == pytest.approx(line.seconds_per_step, rel=1e-6)


def test_a_file_per_worker_and_a_table(tmp_path):
    files = [written(tmp_path, kineto(device=False), f"r{k}.json") for k in range(2)]
    assert list(read_profile(files).durations) == [("0", "compute"), ("1", "compute")]
    table = written(tmp_path, "worker,step,seconds\n0,0,0.05\n0,1,0.07\n1,0,0.1\n", "t.csv")
    found = read_profile(table)
    assert found.per_worker == pytest.approx([0.06, 0.1]) and found.values == [0.05, 0.07, 0.1]
    assert timeline("gd", compute=found, **COSTS).inputs["compute"] == [pytest.approx(0.22 / 3)]  # stands for its mean
    assert timeline("gd", compute=found.per_worker, **COSTS).inputs["compute"] == pytest.approx([0.06, 0.1])
    assert json.loads(json.dumps(found.to_dict()))["durations"][1]["seconds"] == [0.1] and "95 %" in str(found)


def changed(**change):
    data = kineto()
    kernel = next(e for e in data["traceEvents"] if e["name"] == "gemm")
    kernel.update(change)
    return data


BAD_PROFILES = {
    "empty": ("", {}, "is no JSON"),
    "cut off": ('{"traceEvents": [{"ph": "X"', {}, "is no JSON"),
    "no events": ({"traceEvents": []}, {}, "holds no events"),
    "no trace": ({"a": 1}, {}, "no Chrome trace"),
    "no durations": ([{"ph": "M", "name": "process_name", "pid": 1, "tid": 1}], {}, "no events with a duration"),
    "negative": (changed(dur=-1.0), {}, "'gemm' at 600.0 has a negative duration"),
    "nan": (changed(dur=math.nan), {}, "dur of 'gemm' must be finite"),
    "infinite": (changed(ts=math.inf), {}, "ts of 'gemm' must be finite"),
    "text": (changed(ts="soon"), {}, "must be a number of microseconds, not 'soon'"),
    "missing": (changed(dur=None), {}, "must be a number of microseconds"),
    "end alone": ([{"ph": "E", "name": "x", "pid": 1, "tid": 1, "ts": 3}], {}, "has no beginning"),
    "nothing matches": (kineto(), {"match": "conv"}, "matches 'conv'; name the events .* 'aten::mm'"),
    "no pattern": (kineto(), {"match": "("}, "must be a regular expression"),
    "no steps": ([{"ph": "X", "name": "k", "cat": "z", "pid": 1, "tid": 1, "ts": 0, "dur": 1}], {}, "name the events to count .* 'k'"),
    "nothing left": (kineto(), {"skip": 3}, "no durations after the first 3"),
    "no such stream": (kineto(), {"match": "gemm", "stream": "99"}, "no durations on the stream '99'"),
    "skip": (kineto(), {"skip": -1}, "skip must be"),
}


@pytest.mark.parametrize(("data", "options", "words"), BAD_PROFILES.values(), ids=BAD_PROFILES)
def test_a_broken_profile_is_one_sentence(tmp_path, data, options, words):
    with pytest.raises(UsageError, match=words) as told:
        read_profile(written(tmp_path, data), **options)
    assert "\n" not in str(told.value)


WEIRD = [None, [], {}, [1], {"a": 1}, "x", "", -1, 0, True, 1e300, -math.inf, math.nan, "\x00"]


def test_no_file_ends_in_a_traceback(tmp_path):
    """Any value of any event replaced by any other, one at a time: a profile, or one sentence."""
    text = json.dumps(kineto(steps=1))
    data, seen = json.loads(text), {"read": 0, "told": 0}
    places = [(i, key) for i, e in enumerate(data["traceEvents"]) for key in e] + [(None, key) for key in data]
    for number, (i, key) in enumerate(places):
        for value in (WEIRD[(number + k) % len(WEIRD)] for k in range(0, len(WEIRD), 3)):
            data = json.loads(text)
            (data if i is None else data["traceEvents"][i])[key] = value
            try:
                found = read_profile(written(tmp_path, data), match=None if number % 2 else "e")
                assert all(math.isfinite(v) and v >= 0 for v in found.values)
                seen["read"] += 1
            except UsageError as told:
                assert "\n" not in str(told)
                seen["told"] += 1
    assert min(seen.values()) > 20


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "needs a header with seconds"),
        ("worker,time\n0,1\n", "needs a header with seconds"),
        ("seconds\n-1\n", "line 2: seconds must be finite and at least 0"),
        ("seconds\n1\nnan\n", "line 3: seconds must be finite"),
        ("seconds\nfast\n", "line 2: seconds must be a number, not 'fast'"),
        ("worker,seconds\n0\n", "line 2: seconds must be a number, not None"),
    ],
)
def test_a_broken_table_of_durations_is_told_by_its_line(tmp_path, text, words):
    with pytest.raises(UsageError, match=words):
        read_profile(written(tmp_path, text, "t.csv"))


# --- latency and bandwidth --------------------------------------------------------------------------------------------

LAT, BW = 1e-3, 1e9
TABLES = 400
CHANCE = 1e-6  # that a right interval is failed by the number of its misses


def table(seed, noise=0.1, rows=30, bend=0.0):
    rng = np.random.default_rng(seed)
    x = np.exp(rng.uniform(np.log(1e3), np.log(1e8), rows)).round()
    y = (LAT + 8 * x / BW + bend * np.sqrt(x)) * (1 + noise * rng.standard_normal(rows))
    return np.stack([x, y], axis=1)


def test_intervals_cover_the_truth_as_often_as_they_say():
    made = [fit(table(seed)) for seed in range(TABLES)]
    least, most = binom.ppf([CHANCE, 1 - CHANCE], TABLES, 0.95)
    for truth, name in ((LAT, "latency"), (BW, "bandwidth")):
        ends = np.array([getattr(f, f"{name}_interval") for f in made])
        assert least <= np.sum((ends[:, 0] <= truth) & (truth <= ends[:, 1])) <= most
        values, errors = (np.array([getattr(f, k) for f in made]) for k in (name, f"{name}_se"))
        spread = values.std()
        assert abs(values.mean() - truth) < 5 * spread / math.sqrt(TABLES)  # no bias that 400 tables show
        assert errors.mean() == pytest.approx(spread, rel=5 / math.sqrt(2 * TABLES))  # five standard errors of a standard deviation
    assert sum(bool(f.doubts) for f in made) <= binom.ppf(1 - CHANCE, TABLES, 1e-3)


def test_intervals_of_half_the_width_would_fail():
    hits = 0
    for seed in range(TABLES):
        f = fit(table(seed))
        low, high = f.latency_interval
        hits += abs(f.latency - LAT) <= (high - low) / 4
    assert hits < binom.ppf(CHANCE, TABLES, 0.95)


def test_exact_tables_are_found_exactly():
    f = fit(table(0, noise=0.0))
    assert f.latency == pytest.approx(LAT, rel=1e-9) and f.bandwidth == pytest.approx(BW, rel=1e-9) and f.doubts == ()
    assert f.seconds(1e6) == pytest.approx(LAT + 8e6 / BW) and f.rms < 1e-12
    line = timeline("gd", compute=0.1, size=1e6, **f.link())
    assert line.seconds_per_step == pytest.approx(0.1 + LAT + 8e6 / BW)


def test_a_law_that_bends_or_scatters_is_doubted():
    bent = fit(table(1, noise=0.02, bend=2e-5))
    assert any("bend against bytes" in d for d in bent.doubts)
    uneven = table(2, noise=0.0)
    uneven[::2, 1] *= 3
    loose = fit(uneven)
    assert any("scatter by" in d and "worst row" in d for d in loose.doubts)
    assert bent.rms == pytest.approx(np.sqrt(np.sum(np.square(bent.residuals)) / 28))


def test_parameters_are_never_negative():
    below = fit([(1e6, 0.001), (2e6, 0.004), (4e6, 0.01), (8e6, 0.022)])  # a straight line would start below 0
    assert below.latency == 0 and below.latency_interval[0] == 0 and "negative latency" in below.doubts[0]
    best = min(
        np.linspace(0.5, 2, 4001) * below.bandwidth,
        key=lambda bw: abs(sum(y / (8 * x / bw) - 1 for x, y in [(1e6, 0.001), (2e6, 0.004), (4e6, 0.01), (8e6, 0.022)])),
    )
    assert below.bandwidth == pytest.approx(best, rel=1e-3)  # through the origin the relative residuals sum to 0
    falls = fit([(1e6, 0.4), (2e6, 0.2), (4e6, 0.1)])
    assert falls.bandwidth == math.inf and "fall with bytes" in falls.doubts[0]
    assert json.loads(falls.to_json())["bandwidth"] is None
    with pytest.raises(UsageError, match="say nothing about the bandwidth"):
        falls.link()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([(8, 1.0), (8, 1.1), (8, 1.2)], "every row has 8 bytes"),
        ([(8, 1.0), (9, 1.1)], "at least three rows"),
        ([(8, 1.0), (9, 1.1), (10, 0.0)], "row 2 .* seconds positive"),
        ([(8, 1.0), (-9, 1.1), (10, 2.0)], "row 1 .* at least 0"),
        ([(8, 1.0), (9, math.nan), (10, 2.0)], "row 1"),
        ([1, 2, 3], "the shape"),
        ([("a", 1), (2, 3), (4, 5)], "pairs of numbers"),
    ],
)
def test_a_table_that_says_nothing_is_refused(rows, words):
    with pytest.raises(UsageError, match=words) as told:
        fit(rows)
    assert "\n" not in str(told.value)


def test_the_command_fits_a_file(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("bytes,seconds\n" + "".join(f"{x},{y}\n" for x, y in table(3)))
    done = CliRunner().invoke(main, ["fit", str(file), "--json", "--plot", str(tmp_path / "t.png")])
    found = json.loads(done.stdout)
    assert done.exit_code == 0 and found["latency_interval"][0] < LAT < found["latency_interval"][1]
    assert (tmp_path / "t.png").stat().st_size > 1000
    assert "standard error" in CliRunner().invoke(main, ["fit", str(file)]).stdout
    file.write_text("bytes,seconds\n8,1\n8,2\n8,0\n")
    bad = CliRunner().invoke(main, ["fit", str(file)])
    assert bad.exit_code == 2 and "line 4: seconds must be finite and positive" in bad.stderr


# --- places -----------------------------------------------------------------------------------------------------------


def test_measured_places_load_as_they_are():
    clouds, cities = read_links(shared("traces/cloud_regions.csv")), read_links(shared("traces/city_pings.csv"))
    assert (len(clouds.names), len(cities.names)) == (10, 19) and not clouds.missing and not cities.missing
    assert clouds.latency[~np.eye(10, dtype=bool)].min() == 0.0055 and clouds.latency.max() == 0.1325
    assert clouds.asymmetry[0] == 0 and cities.asymmetry[0] > 0.01 and cities.bandwidth is None
    pair = clouds.slowest(["Frankfurt", "London"])
    assert pair == {"latency": 0.007, "bandwidth": 1.14e9}
    alone = timeline("gd", compute=0.1, size="1MB", **pair).seconds_per_step
    assert alone < timeline("gd", compute=0.1, size="1MB", **clouds.slowest()).seconds_per_step


def links(tmp_path, text):
    return read_links(written(tmp_path, "from,to,latency_s,bandwidth_bit_per_s\n" + text, "t.csv"))


def test_missing_pairs_are_named_and_asymmetry_is_said(tmp_path):
    found = links(tmp_path, "A,B,0.1,1e9\nB,A,0.2,2e9\nA,C,0.3,1e9\n")
    assert isinstance(found, Links) and found.missing == (("B", "C"), ("C", "A"), ("C", "B"))
    assert found.asymmetry == (0.5, ("A", "B")) and "A and B differ by 50.0%" in str(found) and "B to C" in str(found)
    assert found.slowest(["A", "B"]) == {"latency": 0.2, "bandwidth": 1e9}
    with pytest.raises(UsageError, match="nothing is known of B to C and 2 more pairs"):
        found.slowest()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A,A,0,1\n", "line 2: a link needs two unlike places"),
        ("A,,0,1\n", "line 2: a link needs two unlike places"),
        ("A,B,0,1\nA,B,0,1\n", "line 3: the link from A to B is given twice"),
        ("A,B,-1,1\n", "line 2: latency_s must be finite and at least 0"),
        ("A,B,1,0\n", "line 2: bandwidth_bit_per_s must be finite and positive"),
        ("A,B,1\n", "line 2: bandwidth_bit_per_s must be a number"),
        ("A,B,nan,1\n", "line 2: latency_s must be finite"),
        ("", "needs a header"),
    ],
)
def test_a_broken_table_of_places_is_told_by_its_line(tmp_path, text, words):
    with pytest.raises(UsageError, match=words):
        links(tmp_path, text)


def test_places_that_are_not_there(tmp_path):
    found = links(tmp_path, "Oslo,Rome,0.1,1e9\nRome,Oslo,0.2,2e9\n")
    for places, words in ((["Oslo", "Rom"], "Rome"), (["Oslo"], "two unlike"), (["Oslo", "Oslo"], "two unlike")):
        with pytest.raises(UsageError, match=words):
            found.slowest(places)


# --- models -----------------------------------------------------------------------------------------------------------

SIZES = {
    "resnet50": (161, 102_228_128, "layer4.2.conv2.weight"),
    "vgg16": (32, 553_430_176, "classifier.0.weight"),
    "bert_base": (199, 437_928_960, "word_embeddings.weight"),
    "gpt2": (148, 497_759_232, "wte.weight"),
}


@pytest.mark.parametrize("name", SIZES)
def test_models_load_as_they_are(name):
    tensors, total, largest = SIZES[name]
    model = read_model(shared(f"models/{name}.csv"))
    assert (len(model.names), model.total, 4 * model.d) == (tensors, total, total)
    assert largest in str(model) and timeline("gd", compute=0.1, latency=0, bandwidth=8, size=model).inputs["size"] == total


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,4\na,8\n", "line 3: every tensor needs a name of its own"),
        (",4\n", "line 2: every tensor needs a name"),
        ("a,0\n", "line 2: bytes must be finite and positive"),
        ("a,4.5\n", "line 2: bytes must be a whole number"),
        ("a\n", "line 2: bytes must be a number"),
        ("", "needs a header"),
    ],
)
def test_a_broken_list_of_tensors_is_told_by_its_line(tmp_path, text, words):
    with pytest.raises(UsageError, match=words):
        read_model(written(tmp_path, "name,bytes\n" + text, "t.csv"))


def test_bytes_that_are_no_floats():
    with pytest.raises(UsageError, match="no whole number of float32"):
        _ = Model(("a",), (5,)).d


# --- in the commands --------------------------------------------------------------------------------------------------


def test_files_stand_for_numbers_in_the_commands(tmp_path):
    profile = written(tmp_path, "worker,seconds\n0,0.05\n1,0.07\n", "p.csv")
    model = written(tmp_path, "name,bytes\na,4000\nb,396000\n", "m.csv")
    places = written(tmp_path, "from,to,latency_s,bandwidth_bit_per_s\nA,B,0.1,1e9\nB,A,0.2,2e9\nA,C,.3,1e8\nB,C,.3,1e8\n", "l.csv")
    args = ["--compute", f"profile:{profile}", "--size", f"model:{model}"]
    args += ["--latency", f"links:{places}:A,B", "--bandwidth", f"links:{places}:A,B", "--json"]
    done = CliRunner().invoke(main, ["timeline", "dd_ef_sgd", "tau=1", *args])
    inputs = json.loads(done.stdout)["inputs"]
    assert inputs["compute"] == [0.05, 0.07] and inputs["size"] == 400_000 and (inputs["latency"], inputs["bandwidth"]) == (0.2, 1e9)
    exact = written(tmp_path, "bytes,seconds\n" + "".join(f"{x},{y}\n" for x, y in table(0, noise=0.0)), "f.csv")
    letters = [w for k, v in {"n": 10, "L": 1, "F0": 1, "sigma2": 0.1, "zeta2_sup": 0.1}.items() for w in ("--letter", f"{k}={v}")]
    args = ["plan", "--compute", f"profile:{profile}", "--latency", f"fit:{exact}", "--bandwidth", f"fit:{exact}", "--d", f"model:{model}"]
    done = CliRunner().invoke(main, [*args, "--target", "0.05", *letters, "--json"])
    made = json.loads(done.stdout)
    assert made["network"]["bandwidth"] == pytest.approx(BW) and made["network"]["size"] == 400_000
    assert made["network"]["compute"] == pytest.approx(0.07)  # the slowest worker's mean
    by_hand = plan(
        compute=0.07, latency=LAT, bandwidth=BW, d=100_000, target=0.05, letters={"n": 10, "L": 1, "F0": 1, "sigma2": 0.1, "zeta2_sup": 0.1}
    )
    assert made["optimum"]["seconds"] == pytest.approx(by_hand.optimum.seconds)


@pytest.mark.parametrize("text", ["profile:none.csv", "model:none.csv", "profil:x", "nonsense"])
def test_a_wrong_file_for_a_number_is_one_sentence(text):
    args = ["timeline", "gd", "--compute", text, "--latency", "0.1", "--bandwidth", "1e9", "--size", "1MB"]
    done = CliRunner().invoke(main, args)
    assert done.exit_code == 2 and done.stderr.count("\n") == 1


def test_profiles_by_hand():
    assert Profile({("0", "a"): (1.0, 2.0), ("1", "a"): (3.0,)}, "r", "s").quantile(0.5) == 2.0
