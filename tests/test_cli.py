"""The command line: every way to be wrong is one sentence and exit code 2; data on stdout, the rest on stderr."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest
from click.testing import CliRunner
from shipped import shipped

from verify_rates import pipeline
from verify_rates.arguments import hyper, number, split
from verify_rates.cli import main
from verify_rates.report import Report, schema
from verify_rates.solvers.method import UsageError
from verify_rates.store import StoreWarning
from verify_rates.theory.claims import Claim
from verify_rates.verdicts import Check, Result, Verdict, judge

HELP_SECONDS = 0.3  # of issue 2
THEORY = """
import verify_rates as vr

MINE = vr.Claim("mine.1", "A sum of squares.", check="theory_of_mine:square", grid=({"a": 2},), source="derived")
FALSE = vr.Claim("mine.2", "It is not.", check="theory_of_mine:wrong", grid=({"a": 2},), source="derived", expect="fails")


def square(a):
    from verify_rates.theory.evidence import Found
    return Found(a * a, a * a, 4.0, "==", proves=True)


def wrong(a):
    from verify_rates.theory.evidence import Found
    return Found(5.0, 5.0, 4.0)
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with good and bad files; the cache lies in it too."""
    monkeypatch.setenv("VERIFY_RATES_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    texts = {
        "theory_of_mine.py": THEORY,
        "syntax.py": "x = 1\ndef f(:\n",
        "raises.py": "x = 1\n\ny = 1/0\n",
        "twice.py": THEORY.replace("mine.2", "mine.1"),
        "badclaim.py": "import verify_rates as vr\nvr.Claim('a', 'b', kind='guess', source='s')\n",
        "method_taken.py": (
            "import verify_rates as vr\nfrom typing import NamedTuple\n"
            "class State(NamedTuple):\n    x: vr.Shared\nclass Hyper(NamedTuple):\n    gamma: float\n"
            "@vr.method(state=State, hyper=Hyper)\ndef gd(s, w, h, t):\n    return s\n"
        ),
        "badline.txt": "1 1:2 2:3\n-1 1:x\n",
        "empty.txt": "",
        "onelabel.txt": "1 1:2\n1 1:3\n",
        "good.txt": "1 1:2 2:1\n-1 1:1 2:-1\n1 2:2\n-1 1:-1\n",
        "bad.gz": "\x1f\x8b not gzip",
        "witness.json": "{",
        "otherjson.json": '{"a": 1}',
        "newer.json": '{"schema_version": 99, "claim": "a", "kind": "run", "value": 1, "bound": 1, "relation": "<="}',
        "unknown.json": '{"schema_version": 2, "claim": "a.9", "kind": "run", "value": 1, "bound": 1, "relation": "<="}',
        "damaged.json": '{"schema_version": 2, "claim": "rates.1", "kind": "run", "value": 1, "bound": 1, "relation": "<=", "recipe": {}}',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="latin-1")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "theory_of_mine.py").write_text(THEORY)
    return tmp_path


def run(*args):
    return CliRunner().invoke(main, list(args))


WORST = ("worst-case", "gd", "gamma=1", "--steps", "2")
RUN = ("simulate", "gd", "gamma=0.1", "--steps", "5", "--engine", "numpy")
TIME = ("timeline", "gd", "--compute", "50ms", "--latency", "100ms", "--bandwidth", "1Gbit/s")
BAD = {
    "no command of that name": (("chek",), "did you mean 'check'?"),
    "no option of that name": (("check", "--suit", "quick"), "--suite"),
    "unknown suite": (("check", "--suite", "medium"), "'quick', 'full'"),
    "jobs 0": (("check", "--jobs", "0"), "--jobs must be at least 1"),
    "jobs text": (("check", "--jobs", "many"), "--jobs cannot be read"),
    "jobs fractional": (("check", "--jobs", "1.5"), "--jobs must be a whole number"),
    "seed negative": (("check", "--seed", "-1"), "--seed must be at least 0"),
    "seed nan": (("check", "--seed", "nan"), "--seed must be a finite number"),
    "unknown claim": (("check", "deco.55"), "did you mean 'deco.5'"),
    "json into no folder": (("check", "--json", "no/where.json"), "the folder 'no' does not exist"),
    "json onto a folder": (("check", "--json", "folder"), "it is a folder"),
    "junit into no folder": (("check", "--junit", "no/where.xml"), "the folder 'no' does not exist"),
    "data missing": (("check", "matcha.1", "--data", "nothing.gz"), "nothing.gz"),
    "data empty": (("check", "matcha.1", "--data", "empty.txt"), "empty"),
    "data malformed": (("check", "matcha.1", "--data", "badline.txt"), "line 2"),
    "data a folder": (("check", "matcha.1", "--data", "folder"), "folder"),
    "data no gzip": (("check", "matcha.1", "--data", "bad.gz"), "bad.gz"),
    "data of one label": (("check", "matcha.1", "--data", "onelabel.txt"), "two labels"),
    "file missing": (("check", "--from", "no.py"), "there is no file 'no.py'"),
    "file a folder": (("check", "--from", "folder"), "folder"),
    "file with a syntax error": (("check", "--from", "syntax.py"), "line 2 of syntax.py is not valid Python"),
    "file that raises": (("check", "--from", "raises.py"), "line 3 of raises.py failed with ZeroDivisionError"),
    "file with a bad claim": (("check", "--from", "badclaim.py"), "bound, identity, iff, table, property"),
    "file with a taken method": (("check", "--from", "method_taken.py"), "a method named 'gd' exists already"),
    "two files of one name": (("check", "--from", "theory_of_mine.py", "--from", "folder/theory_of_mine.py"), "the same name"),
    "claim id twice": (("check", "--from", "twice.py"), "two claims are called 'mine.1'"),
    "witness missing": (("replay", "no.json"), "no.json"),
    "witness corrupted": (("replay", "witness.json"), "not valid JSON"),
    "witness of other content": (("replay", "otherjson.json"), "it needs the keys"),
    "witness of another version": (("replay", "newer.json"), "schema_version 99"),
    "witness of an unknown claim": (("replay", "unknown.json"), "no file read here"),
    "witness damaged": (("replay", "damaged.json"), "damaged"),
    "witness not named": (("replay",), "Missing argument"),
    "unknown kind": (("list", "--kind", "method"), "did you mean 'methods'"),
    "unknown name": (("show", "ef_sdg"), "did you mean 'ef_sgd'"),
    "no steps": (("worst-case", "gd", "gamma=1"), "Missing option '--steps'"),
    "steps 0": (("worst-case", "gd", "gamma=1", "--steps", "0"), "--steps must be at least 1"),
    "steps fractional": (("worst-case", "gd", "gamma=1", "--steps", "2.5"), "whole number"),
    "unknown method": (("worst-case", "gdd", "--steps", "2"), "did you mean 'gd'"),
    "missing hyper-parameter": (("worst-case", "gd", "--steps", "2"), "gd needs gamma"),
    "unknown hyper-parameter": (("worst-case", "gd", "gama=1", "--steps", "2"), "did you mean 'gamma'"),
    "pair without =": (("worst-case", "gd", "gamma", "--steps", "2"), "key=value"),
    "pair without a value": (("worst-case", "gd", "gamma=", "--steps", "2"), "key=value"),
    "pair without a key": (("worst-case", "gd", "=1", "--steps", "2"), "key=value"),
    "key twice": (("worst-case", "gd", "gamma=1", "gamma=2", "--steps", "2"), "gamma is given twice"),
    "gamma nan": (("worst-case", "gd", "gamma=nan", "--steps", "2"), "gamma must be a finite number"),
    "gamma inf": (("worst-case", "gd", "gamma=inf", "--steps", "2"), "gamma must be a finite number"),
    "gamma negative": (("worst-case", "gd", "gamma=-1", "--steps", "2"), "gamma of gd must be at least 0"),
    "gamma runs code": (("worst-case", "gd", "gamma=__import__('os')", "--steps", "2"), "gamma cannot be read"),
    "gamma of unknown letters": (("worst-case", "gd", "gamma=1/kappa", "--steps", "2"), "still needs a value of kappa"),
    "division by zero": (("worst-case", "gd", "gamma=1/0", "--steps", "2"), "divides by zero"),
    "L negative": ((*WORST, "--L", "-1"), "L"),
    "L zero": ((*WORST, "--L", "0"), "L"),
    "L nan": ((*WORST, "--L", "nan"), "--L must be a finite number"),
    "mu above L": ((*WORST, "--L", "1", "--mu", "2"), "mu"),
    "mu infinite": ((*WORST, "--mu", "inf"), "--mu must be a finite number"),
    "n 0": ((*WORST, "--n", "0"), "--n must be at least 1"),
    "n text": ((*WORST, "--n", "all"), "--n cannot be read"),
    "delta 0": (("worst-case", "ef_sgd", "gamma=0.1", "--steps", "2", "--delta", "0"), "delta"),
    "delta above 1": (("worst-case", "ef_sgd", "gamma=0.1", "--steps", "2", "--delta", "1.5"), "delta"),
    "compressor missing": (("worst-case", "ef_sgd", "gamma=0.1", "--steps", "2"), "compress"),
    "unknown measure": ((*WORST, "--measure", "gap"), "measure"),
    "unknown take": ((*WORST, "--take", "first"), "take"),
    "unknown class": ((*WORST, "--functions", "concave"), "function class"),
    "H 0": (("simulate", "local_sgd", "gamma=0.1", "H=0", "--steps", "4"), "H of local_sgd must be at least 1"),
    "tau negative": (
        ("simulate", "dd_ef_sgd", "gamma=0.1", "tau=-1", "--steps", "4", "--compressor", "qsgd:4"),
        "tau of dd_ef_sgd must be",
    ),
    "tau fractional": (
        ("simulate", "dd_ef_sgd", "gamma=0.1", "tau=1.5", "--steps", "4", "--compressor", "qsgd:4"),
        "tau of dd_ef_sgd must be",
    ),
    "unknown engine": ((*RUN[:-1], "nunpy"), "did you mean 'numpy'"),
    "engine not installed": ((*RUN[:-1], "cupy"), "cupy"),
    "unknown problem": ((*RUN, "--problem", "quadratik"), "did you mean 'quadratic'"),
    "unknown option of a problem": ((*RUN, "--problem", "quadratic(Lm=1)"), "option of quadratic"),
    "problem malformed": ((*RUN, "--problem", "quadratic(L=1"), "cannot read problem"),
    "problem with L nan": ((*RUN, "--problem", "quadratic(L=nan)"), "L must be finite"),
    "problem with mu above L": ((*RUN, "--problem", "quadratic(L=1,mu=2)"), "mu"),
    "workers 0": ((*RUN, "--workers", "0"), "--workers must be at least 1"),
    "workers said twice": ((*RUN, "--problem", "quadratic(n=3)", "--workers", "4"), "disagree on n"),
    "compressor not given": (("simulate", "cgd", "gamma=0.1", "--steps", "4"), "give a compressor"),
    "unknown compressor": (("simulate", "cgd", "gamma=0.1", "--steps", "4", "--compressor", "topp:3"), "did you mean 'topk'"),
    "k above d": (("simulate", "cgd", "gamma=0.1", "--steps", "4", "--compressor", "topk:300"), "k"),
    "topology not given": (("simulate", "gossip_sgd", "gamma=0.1", "--steps", "4"), "give a topology"),
    "unknown topology": (("simulate", "gossip_sgd", "gamma=0.1", "--steps", "4", "--topology", "rign"), "did you mean 'ring'"),
    "plot of unknown format": ((*RUN, "--plot", "a.bmp"), ".png, .pdf, .svg"),
    "plot into no folder": ((*RUN, "--plot", "no/a.png"), "the folder 'no' does not exist"),
    "time line without a unit that is known": ((*TIME, "--size", "4parsecs"), "parsecs"),
    "time line with negative latency": ((*TIME, "--size", "4MB", "--latency", "-1s"), "latency"),
    "time line without a bandwidth": (("timeline", "gd", "--compute", "1s", "--latency", "1s", "--size", "1MB"), "--bandwidth"),
    "bytes share 0": ((*TIME, "--size", "4MB", "--bytes-share", "0"), "bytes_share"),
    "unknown link": ((*TIME, "--size", "4MB", "--link", "fast"), "link"),
    "traffic of d = 0": (("traffic", "gd", "--d", "0", "--n", "2"), "--d must be at least 1"),
    "traffic of gossip without a topology": (("traffic", "gossip_sgd", "--d", "3", "--n", "2"), "needs a topology"),
    "measure that does not fit": ((*RUN, "--measure", "error_energy"), "error_energy"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence(name, files):
    args, wanted = BAD[name]
    result = run(*args)
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    sentence = result.stderr
    assert sentence.startswith("verify-rates: ") and sentence.endswith("\n") and sentence.count("\n") == 1
    assert wanted in sentence
    assert "Traceback" not in sentence
    assert len(sentence) < 400


def test_there_are_enough_cases():
    assert len(BAD) >= 40


# --- check ------------------------------------------------------------------------------------------------------------


def test_check_of_a_users_file(files):
    result = run("check", "mine.*", "--from", "theory_of_mine.py", "--jobs", "1", "--json", "out.json", "--junit", "out.xml")
    assert result.exit_code == 0, result.output
    assert "mine.1" in result.stdout and "2 claims" in result.stdout
    data = json.loads((files / "out.json").read_text())
    jsonschema.validate(data, schema())
    assert {c["id"]: c["verdict"] for c in data["claims"]} == {"mine.1": "holds", "mine.2": "refuted"}
    assert (files / "out.xml").read_text().count("<testcase") == 2


def test_json_on_stdout_stands_alone_and_a_second_run_is_cached(files):
    args = ("check", "mine.1", "--from", "theory_of_mine.py", "--jobs", "1", "--json", "-")
    first, second, fresh = run(*args), run(*args), run(*args, "--fresh")
    for result in (first, second, fresh):
        assert result.exit_code == 0, result.output
        jsonschema.validate(json.loads(result.stdout), schema())
    assert [json.loads(r.stdout)["claims"][0]["cached"] for r in (first, second, fresh)] == [False, True, False]


def test_an_edited_file_is_checked_anew(files):
    args = ("check", "mine.1", "--from", "theory_of_mine.py", "--jobs", "1", "--json", "-")
    assert json.loads(run(*args).stdout)["claims"][0]["verdict"] == "holds"
    file = files / "theory_of_mine.py"
    file.write_text(file.read_text().replace("Found(a * a, a * a, 4.0", "Found(a * a, a * a, 5.0"))
    result = run(*args)
    assert json.loads(result.stdout)["claims"][0]["verdict"] == "refuted"
    assert result.exit_code == 1


def test_a_refuted_claim_leaves_a_witness_that_replays(files):
    result = run("check", "mine.2", "--from", "theory_of_mine.py", "--jobs", "1", "--witness-dir", "kept")
    assert result.exit_code == 0, result.output
    assert "verify-rates replay kept/mine.2.json" in result.stderr
    again = run("replay", "kept/mine.2.json")
    assert again.exit_code == 0 and "reproduced" in again.stdout
    found = json.loads(run("replay", "kept/mine.2.json", "--json").stdout)
    assert found["reproduced"] and found["value"] == 5.0
    spoilt = json.loads((files / "kept/mine.2.json").read_text()) | {"value": 6.0}
    (files / "kept/spoilt.json").write_text(json.dumps(spoilt))
    other = run("replay", "kept/spoilt.json")
    assert other.exit_code == 1 and "NOT reproduced" in other.stdout


def fake(monkeypatch, *results, **more):
    """A pipeline that gives these results; the report, and all that the command does with it, is real."""
    asked = SimpleNamespace()

    def check(globs=(), **settings):
        asked.globs, asked.settings = globs, settings
        return Report(list(results), {"suite": settings["suite"], "seed": settings["seed"]}, **more)

    monkeypatch.setattr(pipeline, "check", check)
    return asked


def outcome(lower=0.5, expect="holds", status="ok"):
    claim = Claim("a/b.1", "s", method="gd", measure="distance", bound="1", source="derived", expect=expect)
    checks = [Check("runs", {}, 1.0, lower, lower, status=status, witness={"kind": "run", "value": lower, "bound": 1.0, "relation": "<="})]
    return Result(claim, judge(claim, checks), checks, "")


@pytest.mark.parametrize(
    ("results", "more", "args", "code"),
    [
        ([outcome()], {}, (), 0),
        ([outcome(2.0)], {}, (), 1),
        ([outcome(2.0, "fails")], {}, (), 0),
        ([outcome(status="failed")], {}, (), 4),
        ([outcome(status="failed")], {}, ("--strict",), 1),
        ([outcome()], {"errors": [{"claim": "x", "message": "boom"}]}, (), 3),
        ([outcome()], {"interrupted": True}, (), 130),
        ([], {}, (), 5),
    ],
)
def test_exit_codes(results, more, args, code, files, monkeypatch):
    fake(monkeypatch, *results, **more)
    for out in ((), ("--json", "-")):
        result = run("check", *args, *out)
        assert result.exit_code == code, result.output
        if out:
            data = json.loads(result.stdout)
            jsonschema.validate(data, schema())
            assert data["exit_code"] == code


def test_settings_reach_the_pipeline(files, monkeypatch):
    asked = fake(monkeypatch, outcome())
    run("check", "a*", "b", "--suite", "full", "--data", "good.txt", "--seed", "3", "--jobs", "2", "--fresh", "--from", "theory_of_mine.py")
    assert asked.globs == ("a*", "b")
    wanted = {"suite": "full", "data": "good.txt", "seed": 3, "jobs": 2, "fresh": True, "files": ("theory_of_mine.py",)}
    assert {k: v for k, v in asked.settings.items() if k != "progress"} == wanted


def test_a_strange_claim_id_is_a_safe_file_name(files, monkeypatch):
    fake(monkeypatch, outcome(2.0, "fails"))
    run("check", "--witness-dir", "kept")
    (name,) = [p.name for p in (files / "kept").iterdir()]
    assert name.startswith("a_b.1-") and name.endswith(".json")


def test_a_warning_of_the_store_is_told_and_strict_counts_it(files, monkeypatch):
    import warnings

    def check(globs=(), **settings):
        warnings.warn("the entry is damaged", StoreWarning, stacklevel=1)
        return Report([outcome()], {})

    monkeypatch.setattr(pipeline, "check", check)
    assert run("check").exit_code == 0 and "warning: the entry is damaged" in run("check").stderr
    assert run("check", "--strict").exit_code == 1


def test_an_internal_error_is_a_sentence_and_a_file(files, monkeypatch):
    def check(globs=(), **settings):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(pipeline, "check", check)
    result = run("check")
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.count("\n") == 1 and "RuntimeError: two lines" in result.stderr
    file = Path(result.stderr.split("the traceback is in ")[1].strip().rstrip("."))
    assert "Traceback" in file.read_text()
    file.unlink()


def test_progress_is_plain_where_there_is_no_terminal(files):
    result = run("check", "mine.*", "--from", "theory_of_mine.py", "--jobs", "1")
    assert "2 of 2 claims checked" in result.stderr and "claims checked" not in result.stdout


# --- the other commands -----------------------------------------------------------------------------------------------


def test_list_and_show(files):
    everything = json.loads(run("list", "--json").stdout)
    assert set(everything) == {"methods", "claims", "papers", "compressors", "problems", "topologies", "measures"}
    assert all(everything.values())
    assert "mine.1" in run("list", "--kind", "claims", "--from", "theory_of_mine.py").stdout
    for kind, rows in everything.items():
        listed = run("list", "--kind", kind)
        assert listed.exit_code == 0 and rows[0]["name"] in listed.stdout
        shown = run("show", rows[0]["name"])
        assert shown.exit_code == 0 and rows[0]["name"] in shown.stdout, shown.output


def test_show_says_which_readings_apply_and_why_not():
    (entry,) = json.loads(run("show", "ef_sgd", "--json").stdout)
    assert all(r["applies"] for r in entry["readings"].values()) and "compress" in entry["facts"]["words"]
    assert entry["readings"]["quadratic"]["says"] == "characteristic polynomial z*(gamma*lam + z - 1)"
    assert "def ef_sgd" in entry["source"]


def test_show_of_a_method_with_fewer_readings(files):
    (files / "signs.py").write_text(
        "import verify_rates as vr\nfrom typing import NamedTuple\n"
        "class State(NamedTuple):\n    x: vr.Shared\nclass Hyper(NamedTuple):\n    gamma: float\n"
        "@vr.method(state=State, hyper=Hyper)\ndef signs(s, w, h, t):\n"
        "    return State(x=s.x - h.gamma * vr.sign(w, vr.mean(w, vr.grad(w, s.x))))\n"
    )
    (entry,) = json.loads(run("show", "signs", "--from", "signs.py", "--json").stdout)
    applies = {name: r["applies"] for name, r in entry["readings"].items()}
    assert applies == {"run": True, "worst case": False, "contraction": False, "quadratic": False, "time line": True, "traffic": True}
    assert "sign" in entry["readings"]["worst case"]["says"]
    assert "no; " in run("show", "signs", "--from", "signs.py").stdout


def test_timeline_and_traffic(files):
    args = ("timeline", "dd_ef_sgd", "tau=2", "--compute", "50ms", "--latency", "100ms", "--bandwidth", "1Gbit/s", "--size", "400MB")
    text = run(*args, "--bytes-share", "0.01", "--plot", "t.png")
    assert text.exit_code == 0 and "0.0606667 s per step" in text.stdout and (files / "t.png").exists()
    assert json.loads(run(*args, "--json").stdout)["method"] == "dd_ef_sgd"
    assert json.loads(run("traffic", "ef_sgd", "--d", "123", "--n", "10", "--compressor", "topk:12", "--json").stdout)["up_per_step"] == 468
    assert "468" in run("traffic", "ef_sgd", "--d", "123", "--n", "10", "--compressor", "topk:12").stdout


def test_a_time_line_with_coins():
    args = ("timeline", "mt_dao_sgdm", "p_x=0.25", "p_1=0", "p_2=0", "--compute", "1s", "--latency", "2s", "--bandwidth", "8bit/s")
    found = run(*args, "--size", "4B", "--expected")
    assert "2.5 s per step to be expected (exact" in found.stdout
    assert json.loads(run(*args, "--size", "4B", "--expected", "--json").stdout)["exact"] is True
    refused = run(*args, "--size", "4B")
    assert refused.exit_code == 2 and "--expected" in refused.stderr
    assert "no events" in run(*args, "--size", "4B", "--expected", "--steps", "3").stderr


def test_worst_case_in_text_and_json():
    args = ("worst-case", "gd", "gamma=1/L", "--steps", "2", "--L", "2", "--n", "1")
    assert "exact worst case" in run(*args).stdout
    found = json.loads(run(*args, "--json").stdout)
    assert found["upper"] == pytest.approx(2 / (4 * 2 + 2), rel=1e-6)  # L/(4*N*L*gamma + 2)
    assert found["statement"]["hyper"] == {"gamma": 0.5}


def test_simulate_in_text_json_and_a_figure(files):
    args = ("simulate", "gd", "gamma=1/L", "--steps", "20", "--engine", "numpy", "--problem", "quadratic(L=4,mu=1,n=2)", "--seeds", "2")
    text = run(*args, "--plot", "a.png", "--plot", "a.png")
    assert text.exit_code == 0 and "function_gap" in text.stdout and (files / "a.png").read_bytes()[:4] == b"\x89PNG"
    data = json.loads(run(*args, "--json", "--measure", "distance").stdout)
    assert data["settings"]["hyper"] == {"gamma": 0.25} and len(data["values"]["distance"]) == 2
    assert data["values"]["distance"][0][-1] < data["values"]["distance"][0][0]


def test_simulate_warns_of_divergence():
    result = run("simulate", "gd", "gamma=1e9", "--steps", "60", "--engine", "numpy")
    assert result.exit_code == 0 and "1 of 1 runs left the finite numbers" in result.stderr


def test_doctor():
    result = run("doctor", "--json")
    found = {f["name"]: f["status"] for f in json.loads(result.stdout)}
    assert result.exit_code == 0 and found["numpy"] == found["worst-case solver"] == found["cache"] == "ok"


def test_doctor_names_what_is_missing(monkeypatch):
    from verify_rates import doctor

    monkeypatch.setattr(doctor, "_required", lambda: ["numpy", "no-such-package"])
    result = run("doctor")
    assert result.exit_code == 1 and "no-such-package" in result.stdout and "missing" in result.stdout


def test_without_a_command_the_help_is_shown():
    result = run()
    assert result.exit_code == 2 and result.stdout == "" and "Commands:" in result.stderr


@pytest.mark.parametrize("command", ["check", "list", "show", "replay", "worst-case", "simulate", "timeline", "traffic", "doctor"])
def test_every_command_has_help(command):
    result = run(command, "--help")
    assert result.exit_code == 0 and "Usage: verify-rates" in result.stdout
    if "--from" in result.stdout:
        assert "RUNS THE PYTHON CODE" in " ".join(result.stdout.split())


# --- arguments --------------------------------------------------------------------------------------------------------


def test_values_may_use_the_constants_and_the_keys_before():
    assert hyper(["gamma=2/(L+mu)", "beta=sqrt(gamma)/2"], {"L": 7.0, "mu": 1.0}) == {"gamma": 0.25, "beta": 0.25}
    assert hyper(["gamma=1/mu"], {"mu": 4, "zeta2": None}) == {"gamma": 0.25}


@pytest.mark.parametrize("text", ["nan", "-inf", "1_000", "1e999", "", "L", "os.system", "().__class__", "1;2", "9**9**9"])
def test_what_is_no_number_is_refused(text):
    with pytest.raises(UsageError):
        number(text)


@pytest.mark.parametrize("pair", ["a", "=1", "a=", "1a=2", "a b=1", " = "])
def test_malformed_pairs_are_refused(pair):
    with pytest.raises(UsageError, match="key=value"):
        split([pair])


# --- real processes ---------------------------------------------------------------------------------------------------


def process(*args, **more):
    return subprocess.run([sys.executable, "-m", "verify_rates.cli", *args], capture_output=True, text=True, timeout=120, **more)


def test_help_is_quick():
    """In processor time, which a busy machine does not stretch; on an idle one it is the time that passes."""

    def used():
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        return spent.ru_utime + spent.ru_stime

    times = []
    for _ in range(3):
        before = used()
        assert process("--help").returncode == 0
        times.append(used() - before)
    assert min(times) < HELP_SECONDS


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from verify_rates.cli import main; sys.argv=['x','--help']\ntry: main()\nexcept SystemExit: pass\nprint(*sys.modules)"
    )
    loaded = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split())
    assert not loaded & {"numpy", "scipy", "sympy", "numba", "cvxpy", "matplotlib", "sklearn", "networkx", "rich"}


def test_exit_codes_of_a_process(files):
    assert process("lst").returncode == 2
    assert process("check", "--from", "theory_of_mine.py", "mine.1", "--jobs", "1").returncode == 0


def test_a_reader_that_goes_away_is_no_traceback(files):
    command = f"{sys.executable} -m verify_rates.cli list --json | head -c 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stderr == "" and done.stdout == "{"


SLOW_THEORY = """
import time
import verify_rates as vr

CLAIMS = [vr.Claim(f"slow.{i}", "s", check="slow_theory:wait", grid=({"i": i},), source="derived") for i in range(3)]


def wait(i):
    from verify_rates.theory.evidence import Found
    if i == 2:
        open("started", "w").close()
        time.sleep(60)
    return Found(1.0, 1.0, 1.0, "==", proves=True)
"""


def _hears_interrupts():
    """What a shell starts in the background ignores SIGINT, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupt_keeps_what_is_finished(files):
    (files / "slow_theory.py").write_text(SLOW_THEORY)
    args = ["check", "slow.*", "--from", "slow_theory.py", "--jobs", "1", "--json", "out.json"]
    command = [sys.executable, "-m", "verify_rates.cli", *args]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=_hears_interrupts)
    for _ in range(600):
        if (files / "started").exists() or running.poll() is not None:
            break
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert "Traceback" not in err and "the same command goes on from there" in err
    data = json.loads((files / "out.json").read_text())
    jsonschema.validate(data, schema())
    assert data["interrupted"] and [c["id"] for c in data["claims"]] == ["slow.0", "slow.1"]
    again = json.loads(process("check", "slow.[01]", "--from", "slow_theory.py", "--jobs", "1", "--json", "-").stdout)
    assert all(c["cached"] for c in again["claims"])


def test_kill_loses_at_most_the_running_check(files):
    (files / "slow_theory.py").write_text(SLOW_THEORY)
    args = ["check", "slow.*", "--from", "slow_theory.py", "--jobs", "1"]
    running = subprocess.Popen([sys.executable, "-m", "verify_rates.cli", *args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(600):
        if (files / "started").exists() or running.poll() is not None:
            break
        time.sleep(0.05)
    running.kill()
    running.wait()
    again = json.loads(process("check", "slow.[01]", "--from", "slow_theory.py", "--jobs", "1", "--json", "-").stdout)
    assert all(c["cached"] for c in again["claims"]) and not list(Path(os.environ["VERIFY_RATES_CACHE"]).rglob(".*.json.*"))


def test_verdicts_have_symbols():
    from verify_rates.report import HTML_COLOURS, SYMBOLS

    assert set(SYMBOLS) == set(HTML_COLOURS) == set(Verdict)


def test_a_worst_case_leaves_a_certificate_that_is_checked(tmp_path):
    given = ("worst-case", "ef_sgd", "gamma=1/4", "--steps", "2", "--delta", "1/2", "--mu", "1/10")
    made = run(*given, "--certificate", str(tmp_path / "c.json"))
    assert made.exit_code == 0 and "certified: at most" in made.stderr, made.output
    checked = run("check-certificate", str(tmp_path / "c.json"))
    assert checked.exit_code == 0 and checked.stdout.startswith("accepted: function_gap <= ")
    (tmp_path / "d.json").write_text((tmp_path / "c.json").read_text().replace('"1/2"', '"1/3"', 1))
    refused = run("check-certificate", str(tmp_path / "d.json"), "--json")
    assert refused.exit_code == 1 and json.loads(refused.stdout) == {"accepted": False, "sentence": "the sha256 does not match the content"}
    assert run("check-certificate", str(tmp_path / "none.json")).exit_code == 2
    assert run(*given, "--certificate", str(tmp_path / "no" / "c.json")).exit_code == 2
    without = ("--measure", "grad_norm", "--initial", "none", "--certificate", str(tmp_path / "e.json"))
    unbounded = run("worst-case", "gd", "gamma=3", "--steps", "1", *without)
    assert unbounded.exit_code != 0 and not (tmp_path / "e.json").exists()


NARROW = """
import io, sys
from rich import console
class Terminal(io.StringIO):
    def isatty(self): return True
made = Terminal()
real = console.Console
console.Console = lambda **k: real(**k | {"file": made, "force_terminal": True, "width": 80, "no_color": True})
from verify_rates.cli import main
try:
    main(["list", "--kind", sys.argv[1]])
except SystemExit:
    print(made.getvalue())
"""


@pytest.mark.parametrize("kind", ["papers", "claims", "methods"])
def test_nothing_is_cut_on_a_terminal_of_80_columns(kind):
    from verify_rates.listing import catalogue

    done = subprocess.run([sys.executable, "-c", NARROW, kind], capture_output=True, text=True, check=True)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    assert all(len(line.rstrip()) <= 80 for line in lines.splitlines())
    plain = "".join(lines.split())
    for row in [r for r in catalogue(kind) if kind != "methods" or r["name"] in shipped()]:
        missing = [v for v in row.values() if str(v) != "-" and "".join(str(v).split()) not in plain]
        assert not missing
