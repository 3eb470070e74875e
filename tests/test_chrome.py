"""Time lines as Chrome traces and as pictures: the rules of the format hold, a round trip loses nothing, the marked walk is the cycle."""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner

from verify_rates.cli import main
from verify_rates.solvers.method import UsageError
from verify_rates.theory.networks import along, markov
from verify_rates.theory.timeline import chrome, gantt, timeline
from verify_rates.theory.timeline.simulate import Event

NANOSECOND = 1e-9  # what the format resolves
LINES = {
    "one worker": ("dd_ef_sgd", {"tau": 2}, {"compute": 0.05}),
    "two workers": ("ef_sgd", {}, {"compute": [0.05, 0.07], "encode": 0.01}),
    "rounds": ("local_sgd", {"H": 3}, {"compute": 0.05}),
    "gossip": ("gossip_sgd", {}, {"compute": [0.03, 0.07, 0.05], "topology": "ring"}),
    "overlap": ("acco", {}, {"compute": 0.05}),
    "link": ("dd_ef_sgd", {"tau": 4}, {"compute": 1e-3}),
}


@pytest.fixture(params=LINES, scope="module")
def line(request):
    method, hyper, costs = LINES[request.param]
    return timeline(method, hyper, latency=0.1, bandwidth=1e9, size=4e6, bytes_share=None, steps=24, **costs)


def faults(trace):
    """What breaks the rules: nesting on every thread as any reader sees it, ids, units, whole positive numbers, names."""
    found, threads, flights, named = [], defaultdict(list), {}, set()
    for e in trace["traceEvents"]:
        if not all(isinstance(e[k], int) and e[k] > 0 for k in ("pid", "tid")) or e["pid"] == e["tid"]:
            found.append(f"process or thread of {e['name']}")
        if not (isinstance(e["ts"], (int, float)) and np.isfinite(e["ts"]) and e["ts"] >= 0):
            found.append("ts")
            continue
        if e["ph"] == "M":
            named.add((e["name"], e["pid"], e["tid"] if e["name"].startswith("thread") else None))
        if e["ph"] == "X":
            for reader in (lambda us: int(us * 1000), lambda us: round(us * 1000)):  # one cuts off, one rounds
                threads[e["pid"], e["tid"], reader.__code__.co_names].append((reader(e["ts"]), reader(e["ts"]) + reader(e["dur"])))
        if e["ph"] == "b" and flights.setdefault((e["cat"], e["id"]), e) is not e:
            found.append("an id twice")
        if e["ph"] == "e":
            start = flights.get((e["cat"], e["id"]))
            if start is None or start["ts"] > e["ts"] or start["name"] != e["name"]:
                found.append("an end without its start")
        if e["ph"] in "sf":
            inside = [x for x in trace["traceEvents"] if x["ph"] == "X" and (x["pid"], x["tid"]) == (e["pid"], e["tid"])]
            if not any(x["ts"] <= e["ts"] < x["ts"] + x["dur"] for x in inside):
                found.append("an arrow that no event holds")
    ends = defaultdict(int)
    for e in trace["traceEvents"]:
        ends[e["ph"]] += 1
    if ends["b"] != ends["e"] or ends["s"] != ends["f"]:
        found.append("a pair is not complete")
    for (pid, tid, _), spans in threads.items():
        if any(a[1] > b[0] for a, b in pairwise(sorted(spans))):
            found.append("overlap")
        if ("thread_name", pid, tid) not in named or ("process_name", pid, None) not in named:
            found.append("no name")
    return found


def test_the_rules_of_the_format_hold(line):
    made = chrome.trace_of(line.events, walk=gantt.critical_walk(line))
    assert faults(made) == []
    drawn = [e for e in made["traceEvents"] if e["ph"] == "X"]
    assert len(drawn) == len(line.events) and json.loads(json.dumps(made, allow_nan=False)) == made
    longest = max(e["ts"] + e["dur"] for e in drawn)
    assert longest == pytest.approx(1e6 * max(e.end for e in line.events), abs=1e-2)  # microseconds


BROKEN = {
    "overlap": lambda es: es[0].update(dur=es[0]["dur"] + 1e6),
    "one thread for two streams": lambda es: [e.update(tid=es[0]["tid"]) for e in es],
    "seconds in place of microseconds": lambda es: [e.update(ts=e["ts"] / 1e6) for e in es],
    "process 0": lambda es: [e.update(pid=0) for e in es],
    "negative": lambda es: es[0].update(ts=-1.0),
    "text": lambda es: es[0].update(ts="0"),
    "no name": lambda es: [e.update(pid=es[0]["pid"] + 77) for e in es],
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_the_check_of_the_rules_catches_a_breach(broken):
    line = timeline("dd_ef_sgd", {"tau": 2}, compute=0.05, latency=0.1, bandwidth=1e9, size=4e6)
    made = copy.deepcopy(chrome.trace_of(line.events))
    assert faults(made) == []
    broken([e for e in made["traceEvents"] if e["ph"] == "X"])
    assert faults(made)


def test_the_check_of_the_rules_catches_ids_twice():
    line = timeline("dd_ef_sgd", {"tau": 2}, compute=0.05, latency=0.1, bandwidth=1e9, size=4e6)
    made = chrome.trace_of(line.events)
    for e in made["traceEvents"]:
        if e["ph"] in "be":
            e["id"] = "0x1"
    assert "an id twice" in faults(made)


def test_no_reader_sees_an_overlap_of_one_nanosecond():
    """Durations that no sum of floats hits: a reader that cuts off and one that rounds both see neighbours that touch."""
    rng, at, events = np.random.default_rng(0), 0.0, []
    for step in range(4000):
        end = at + float(rng.uniform(0, 3e-6))
        events.append(Event("grad", "compute", 0, step, at, end, end))
        at = end
    made = chrome.trace_of(events)
    assert faults(made) == []
    for e in made["traceEvents"]:
        if e["ph"] == "X":
            e["ts"] = float(f"{e['ts']:.3f}")  # the nearest number, which a reader may cut to the nanosecond before
    assert faults(made) == ["overlap"]


def test_a_round_trip_loses_nothing(line, tmp_path):
    for name in ("t.json", "t.json.gz"):
        line.to_chrome(tmp_path / name)
        back = chrome.read(tmp_path / name)
        ours = sorted(line.events, key=lambda e: (e.start, e.end))
        assert sorted(e[:4] for e in back) == sorted(e[:4] for e in ours)
        for stream in gantt.rows_of(ours):
            pair = [[e for e in events if (e.stream, e.worker) == stream] for events in (back, ours)]
            assert np.allclose([e[4:] for e in pair[0]], [e[4:] for e in pair[1]], rtol=0, atol=NANOSECOND)


def test_events_along_a_bandwidth_trace(tmp_path):
    events = along("dd_ef_sgd", {"tau": 2}, markov(["1Mbit/s", "9Mbit/s"], "3s", 40, latency="80ms"), steps=30, compute=0.3, size="250kB")
    chrome.write(tmp_path / "t.json", events)
    assert faults(json.loads((tmp_path / "t.json").read_text())) == [] and len(chrome.read(tmp_path / "t.json")) == len(events)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no JSON"),
        ("{", "is no JSON"),
        ("3", "no Chrome trace"),
        ("{}", "no Chrome trace"),
        ('{"traceEvents": []}', "holds no events"),
        ("[1]", "must be objects"),
        ('[{"ph": "X", "name": "k", "cat": "kernel", "ts": 0, "dur": 1}]', "read_profile"),
        ('[{"ph": "X", "name": "k", "cat": "c", "ts": NaN, "dur": 1, "args": {"worker": 0, "step": 0, "arrives_us": 0}}]', "read_profile"),
        (
            '[{"ph": "X", "name": "k", "cat": "c", "ts": 1e999, "dur": 1, "args": {"worker": 0, "step": 0, "arrives_us": 0}}]',
            "read_profile",
        ),
    ],
)
def test_files_that_are_no_time_line(tmp_path, text, words):
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(UsageError, match=words):
        chrome.read(tmp_path / "t.json")


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "t.json.gz").write_bytes(b"\x1f\x8b broken")
    for name in ("none.json", "t.json.gz"):
        with pytest.raises(UsageError, match="cannot read"):
            chrome.read(tmp_path / name)


# --- the walk that sets the pace ---------------------------------------------------------------------------------------


def test_the_walk_is_the_limiting_cycle(line):
    walk = [line.events[i] for i in gantt.critical_walk(line)]
    round_trip = len(line.cycle)
    assert len(walk) > round_trip  # at least one whole tour
    for a, b in pairwise(walk):
        assert b.start == pytest.approx(a.arrives, rel=1e-12) or (b.start == pytest.approx(a.end) and a.stream == b.stream)
    for a, b in zip(walk, walk[round_trip:], strict=False):  # one tour takes as long as the pace says
        assert a.word == b.word and b.start - a.start == pytest.approx(line.seconds_per_round * line.rounds_under_way, rel=1e-9)


def test_too_few_events_have_no_walk():
    line = timeline("dd_ef_sgd", {"tau": 9}, compute=0.05, latency=0.1, bandwidth=1e9, size=4e6, steps=1)
    assert [line.events[i].word for i in gantt.critical_walk(line)] in (["grad", "mean"], [])


def test_the_figure_marks_it_in_black_and_in_grey(line, tmp_path):
    figure = line.plot(tmp_path / "line.png")
    marked = [c for c in figure.axes[0].collections if c.get_hatch()]
    assert len(marked) == len(gantt.critical_walk(line)) and all(c.get_linewidth()[0] > 1 for c in marked)
    assert (tmp_path / "line.png").stat().st_size > 5000
    grey = sorted({np.dot([int(c[i : i + 2], 16) for i in (1, 3, 5)], (0.299, 0.587, 0.114)) for c, _ in gantt.COLOURS.values()})
    assert min(np.diff(grey)) > 40  # of 255: apart when printed without colour


def test_the_page_is_whole_and_needs_no_network(line, tmp_path):
    line.to_html(tmp_path / "t.html")
    page = (tmp_path / "t.html").read_text()
    assert not re.search(r"https?:|//[a-z]|<link|@import|src=|url\((?!#)", re.sub(r"^<!doctype.*?<body>", "", page, flags=re.S))
    drawing = ET.fromstring(re.search(r"<svg.*?</svg>", page, flags=re.S)[0])  # well formed
    bars = [g for g in drawing.iter("g") if g.get("class", "").startswith("bar")]
    assert len(bars) == len(line.events)
    assert sum(g.get("class") == "bar mark" for g in bars) == len(gantt.critical_walk(line))
    assert sorted(float(g.get("data-end")) for g in bars) == sorted(e.end for e in line.events)
    ids = set(re.findall(r"getElementById\('(\w+)'\)", page))
    assert all(f'id="{name}"' in page for name in ids) and page.count("<script>") == 1


BROWSER = """
function node(children) {
  const listeners = {};
  return {attrs: {}, style: {}, dataset: {}, listeners, children, textContent: '1',
    setAttribute(k, v) { this.attrs[k] = v; }, addEventListener(n, f) { listeners[n] = f; },
    querySelector(q) { return this.querySelectorAll(q)[0]; }, querySelectorAll(q) { return children[q] || []; },
    getBoundingClientRect() { return {left: 0}; }, setPointerCapture() {}};
}
const bar = node({rect: [node({})], '.fly': [node({})], text: [node({})], title: [node({})]});
bar.dataset = {start: '1', end: '2', arrives: '3'};
const tick = () => node({line: [node({})], text: [node({})]});
const svg = node({'.bar': [bar], '.tick': [tick(), tick()]}), told = node({});
svg.dataset = {left: '100', width: '900', total: '10'};
global.document = {querySelector: () => svg, getElementById: () => told};
(() => {%s})();
const x = () => bar.children.rect[0].attrs.x, span = () => svg.children['.tick'].map(t => t.children.text[0].textContent);
const out = [[x(), ...span()]];
svg.listeners.wheel({preventDefault() {}, clientX: 100, deltaY: -400 * Math.LN2}); out.push([x(), ...span()]);
svg.listeners.pointerdown({clientX: 500, pointerId: 1}); svg.listeners.pointermove({clientX: 320}); svg.listeners.pointerup();
out.push([x(), ...span()]);
svg.listeners.dblclick(); bar.children.title[0].textContent = 'grad'; bar.listeners.pointerenter(); out.push([x(), told.textContent]);
console.log(JSON.stringify(out));
"""


def test_the_page_zooms_moves_and_tells(tmp_path):
    """Its script in a stand-in for a browser: one bar from 1 s to 2 s of 10 s, on 900 pixels from pixel 100 on."""
    if shutil.which("node") is None:
        pytest.skip("no node to run the page's script")
    page = gantt.page([Event("grad", "compute", 0, 0, 1.0, 2.0, 3.0)], [], "", "")
    script = re.search(r"<script>(.*)</script>", page, flags=re.S)[1]
    (tmp_path / "page.js").write_text(BROWSER.replace("%s", script))
    done = subprocess.run(["node", str(tmp_path / "page.js")], capture_output=True, text=True, check=True)
    whole, zoomed, moved, reset = json.loads(done.stdout)
    assert whole == [190, "0 s", "10 s"]
    assert zoomed == [pytest.approx(280), "0 s", "5 s"]  # twice as large about the left end
    assert moved == [pytest.approx(100), "1 s", "6 s"]  # by 180 pixels of 180 a second
    assert reset == [190, "grad"]


def test_the_same_time_line_gives_the_same_bytes(line, tmp_path):
    for name in ("a.json.gz", "a.html"):
        made = []
        for _ in range(2):
            (line.to_chrome if name.endswith("gz") else line.to_html)(tmp_path / name)
            made.append((tmp_path / name).read_bytes())
        assert made[0] == made[1]


def test_names_cannot_break_the_page():
    line = timeline("gd", compute=1, latency=2, bandwidth=8, size=4)
    from dataclasses import replace

    page = gantt.page_of(replace(line, method="<script>alert(1)</script>"))
    assert "<script>alert" not in page and "&lt;script&gt;" in page


def test_the_command_writes_them(tmp_path):
    given = ["timeline", "dd_ef_sgd", "tau=2", "--compute", "50ms", "--latency", "0.1", "--bandwidth", "1Gbit/s", "--size", "4MB"]
    paths = {option: tmp_path / f"t.{kind}" for option, kind in (("--chrome", "json"), ("--html", "html"), ("--plot", "png"))}
    done = CliRunner().invoke(main, [*given, *(str(w) for pair in paths.items() for w in pair)])
    assert done.exit_code == 0 and all(p.stat().st_size > 1000 for p in paths.values())
    assert faults(json.loads(paths["--chrome"].read_text())) == []
    assert CliRunner().invoke(main, [*given, "--chrome", str(tmp_path / "no" / "t.json")]).exit_code == 2
