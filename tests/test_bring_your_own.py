"""Method, measure, compressor, problem, topology and claims of one's own: usable by name everywhere, tested before they are believed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner

import verify_rates as vr
from verify_rates import runs
from verify_rates.cli import main
from verify_rates.problems.base import FAMILIES
from verify_rates.report import schema
from verify_rates.solvers.compressors import get_compressor
from verify_rates.solvers.topologies import get_topology
from verify_rates.userfile import forget, load
from verify_rates.verdicts import Verdict

FILE = Path(__file__).resolve().parents[1] / "examples" / "bring_your_own.py"
RTOL_ENGINES = 1e-12  # both engines run the same operations in double precision; of issue 2

THEORY = '''
import numpy as np
import verify_rates as vr
from share_of_mine import SHARE


def dish(x):
    """Half the squared norm."""
    return 0.5 * (x @ x)


def grad_dish(i, x):
    return 1.0 * x


ONE = {"L": 1.0, "mu": 1.0, "L_max": 1.0, "mu_min": 1.0, "f_star": 0.0, "x_star": np.zeros(4), "zeta2_star": 0.0}
vr.make_problem("dish", 2, 4, dish, grad=grad_dish, constants=ONE, check=False)


@vr.compressor(delta=0.5, bits=lambda d: 32.0 * d)
def shrink(v, gen):
    return SHARE * v


RUNS = vr.product(problem={"name": "dish"}, x0=([1.0, 1.0, 1.0, 1.0],), gamma=0.5, N=10)
SETTING = vr.Setting(compressor="contractive", shared_minimiser=True)
CLAIMS = [
    vr.Claim("t.cgd", "Nothing grows.", method="cgd", measure="distance", bound="R2", setting=SETTING, source="derived",
             runs=tuple({**r, "compressor": "shrink"} for r in RUNS)),
    vr.Claim("t.gd", "Nothing grows.", method="gd", measure="distance", bound="R2", source="derived", runs=RUNS,
             grid=vr.product(L=1, mu=0.5, gamma=0.5, N=1)),
]
'''


@pytest.fixture
def theory(tmp_path, monkeypatch):
    """``theory(old, new, ...)`` writes the file above with texts replaced and returns its path; the cache lies beside it."""
    monkeypatch.setenv("VERIFY_RATES_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "share_of_mine.py").write_text("SHARE = 0.5\n")

    written = {tmp_path / "mine.py"}

    def write(*edits, name="mine.py"):
        text = THEORY
        for old, new in zip(edits[::2], edits[1::2], strict=True):
            assert old in text
            text = text.replace(old, new)
        (tmp_path / name).write_text(text)
        written.add(tmp_path / name)
        return str(tmp_path / name)

    yield write
    for file in written:
        forget(file)


def run(*args):
    result = CliRunner().invoke(main, [str(a) for a in args])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def process(*args):
    """The command in a process of its own, without anything that this one knows."""
    command = [sys.executable, "-c", "from verify_rates.cli import main; main()", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ)


# --- the example -----------------------------------------------------------------------------------------------------


def test_it_is_short():
    assert len(FILE.read_text().splitlines()) < 90


def test_both_engines_agree_on_the_example():
    module = load(FILE)

    def simulated(engine):
        options = dict(steps=100, compressor="window(k=3)", topology="kite", measures=(module.virtual, "consensus_error"))
        return vr.simulate("ef_gossip", "bowl", {"gamma": 0.05}, engine=engine, every=1, **options)

    array, compiled = simulated("numpy"), simulated("numba")
    for name in array.values:
        assert np.abs(array.values[name] - compiled.values[name]).max() <= RTOL_ENGINES * np.abs(array.values[name]).max()
    assert array.values["virtual"][0, -1] < array.values["virtual"][0, 0] / 10


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_the_claims_of_the_example_with_each_engine(engine, theory, monkeypatch):
    monkeypatch.setattr(runs, "SMALL", 0 if engine == "numba" else 10**9)
    report = vr.check(["own.*"], files=[FILE], jobs=1)
    assert {r.claim.id: r.verdict for r in report.results} == {"own.1": Verdict.CONSISTENT, "own.2": Verdict.REFUTED}
    assert {c.solver for r in report.results for c in r.checks} == {engine}
    assert report.exit_code == 0
    assert not any(c.samples for r in report.results for c in r.checks)  # nothing there is random, so nothing is sampled


def test_the_example_in_worker_processes(theory):
    done = process("check", "own.*", "--from", FILE, "--jobs", "2", "--json", "-")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    jsonschema.validate(told, schema())
    assert {c["id"]: c["verdict"] for c in told["claims"]} == {"own.1": "consistent", "own.2": "refuted"}


def test_every_command_knows_the_names():
    given = ("--from", FILE)
    listed = run("list", "--json", *given)
    assert listed.exit_code == 0, listed.output
    names = {kind: [row["name"] for row in rows] for kind, rows in json.loads(listed.stdout).items()}
    own = {
        "methods": "ef_gossip",
        "claims": "own.1",
        "compressors": "window",
        "problems": "bowl",
        "topologies": "kite",
        "measures": "virtual",
    }
    assert all(name in names[kind] for kind, name in own.items())
    for name, said in [("bowl", "def grad_bowl"), ("window", "def window"), ("kite", "A triangle"), ("virtual", "def virtual")]:
        assert said in run("show", name, *given).stdout
    options = ("--problem", "bowl", "--compressor", "window(k=3)", "--topology", "kite", "--steps", "20", "--measure", "virtual")
    ran = run("simulate", "ef_gossip", "gamma=1/L", *options, "--engine", "numpy", "--json", *given)
    assert json.loads(ran.stdout)["settings"]["topology"].startswith("kite(mixing=metropolis)")
    solved = run("worst-case", "ef_sgd", "gamma=delta/L", "--steps", "1", "--compressor", "window(k=3)", "--d", "12", "--json", *given)
    assert json.loads(solved.stdout)["statement"]["compressor"] == {"delta": 0.25}


def test_a_witness_of_the_example_replays(theory, tmp_path):
    run("check", "own.2", "--from", FILE, "--jobs", "1", "--witness-dir", tmp_path / "kept")
    again = process("replay", tmp_path / "kept" / "own.2.json", "--from", FILE)
    assert again.returncode == 0 and "reproduced" in again.stdout, again.stderr


# --- what does not compile runs on arrays ----------------------------------------------------------------------------

STRANGE = ("return SHARE * v", "return np.array([float(f'{SHARE * a:.17g}') for a in v])")


def test_claims_fall_back_to_the_array_engine(theory, monkeypatch):
    monkeypatch.setattr(runs, "SMALL", 0)
    (result,) = vr.check(["t.cgd"], files=[theory(*STRANGE)], jobs=1).results
    assert result.verdict is Verdict.CONSISTENT and [c.solver for c in result.checks] == ["numpy"]


def test_simulate_names_the_engine_that_runs_it(theory):
    file = theory(*STRANGE)
    args = ("simulate", "cgd", "gamma=0.5", "--problem", "dish", "--compressor", "shrink", "--steps", "5", "--from", file)
    refused = run(*args)
    assert refused.exit_code == 2 and "engine='numpy' runs it as it is" in refused.stderr and refused.stderr.count("\n") == 1
    assert run(*args, "--engine", "numpy").exit_code == 0


@pytest.mark.parametrize(
    "how",
    [
        {"grad": lambda i, x: 2.0 * x - i, "sigma2": 0.5},
        {"grad": lambda i, x: 2.0 * x - i, "sigma2": 0.5, "noise": "two_point", "p": 0.2},
        {"grads": lambda X: 2.0 * X - np.arange(2.0).reshape(2, 1)},
        {"grad": lambda i, x, gen: 2.0 * x - i if gen is None else 2.0 * x - i + gen.random() - 0.5},
    ],
)
def test_functions_of_every_form_compile_with_the_same_draws(how):
    constants = {"L": 2.0, "mu": 2.0, "f_star": 0.5, "x_star": [0.25] * 3}
    constants["f_star"] = 3 * (0.25**2 - 0.5 * 0.25)
    problem = vr.make_problem("forms", 2, 3, lambda x: np.sum(x * x - 0.5 * x), constants=constants, **how)
    try:
        options = dict(steps=30, seeds=2, measures=("function_gap", "distance"), x0=[1.0, 2.0, 3.0])
        array, compiled = (vr.simulate("gd", problem, {"gamma": 0.1}, engine=e, **options) for e in ("numpy", "numba"))
        for name in array.values:
            assert np.abs(array.values[name] - compiled.values[name]).max() <= RTOL_ENGINES * np.abs(array.values[name]).max()
        assert problem.stochastic == bool(np.ptp(array.values["distance"][:, -1]))
    finally:
        del FAMILIES["forms"]


# --- no verdict rests on a lie ---------------------------------------------------------------------------------------


def verdicts(file, *ids):
    return [(r.verdict, r.message) for r in vr.check(ids or ["t.*"], files=[file], jobs=1).results]


def test_what_is_declared_truly_is_believed(theory):
    (run_only, _), (exact, _) = verdicts(theory())
    assert run_only is Verdict.CONSISTENT and exact in (Verdict.HOLDS, Verdict.CERTIFIED)


def test_a_wrong_delta_leaves_nothing_but_inconclusive(theory):
    ((verdict, message),) = verdicts(theory("delta=0.5", "delta=0.8"), "t.cgd")
    assert verdict is Verdict.INCONCLUSIVE
    assert "shrink declares delta = 0.8, but its squared error is 1.25 times (1 - delta) ||v||^2 at v = (" in message


def test_a_wrong_delta_is_no_refutation(theory):
    """The bound is false for what the compressor does, but the claim is about compressors that keep their word."""
    file = theory("delta=0.5", "delta=1.0", 'bound="R2"', 'bound="R2*0.25**N"')
    assert verdicts(file, "t.cgd")[0][0] is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (
            ('"L": 1.0, "mu": 1.0, "L_max": 1.0', '"L": 0.9, "mu": 0.9, "L_max": 0.9'),
            "L is declared as 0.9, but at least 1 was measured at x = (",
        ),
        (('"f_star": 0.0', '"f_star": 0.25'), "f_star is declared as 0.25, but at most 0 was measured at x = (0, 0, 0, 0)"),
        (("return 1.0 * x", "return 1.1 * x"), "the value's slope is"),
    ],
)
def test_a_wrong_constant_leaves_nothing_but_inconclusive(edit, said, theory):
    """Also where an exact worst case on the grid proves the claim."""
    edits = (*edit, '"mu_min": 1.0', '"mu_min": 0.9') if "0.9" in edit[1] else edit
    told = verdicts(theory(*edits))
    assert [v for v, _ in told] == [Verdict.INCONCLUSIVE] * 2
    assert all("of problem dish, " in message and said in message for _, message in told)


STEEPER = ('"L": 1.0, "mu": 1.0, "L_max": 1.0, "mu_min": 1.0', '"L": 1.2, "mu": 1.1, "L_max": 1.2, "mu_min": 1.1')


def test_a_wrong_constant_is_told_when_the_file_is_read(theory):
    done = run("list", "--kind", "measures", "--from", theory("check=False", "check=True", *STEEPER))
    assert done.exit_code == 2 and "fails a spot check: mu is declared as 1.1, but at most 1 was measured at x = (" in done.stderr


def test_each_object_is_tested_once(theory, monkeypatch):
    from verify_rates.problems import checks

    seen = []
    original = checks.check_constants
    monkeypatch.setattr(checks, "check_constants", lambda problem: seen.append(problem.name) or original(problem))
    vr.check(["t.*"], files=[theory("N=10", "N=(10, 20, 30)")], jobs=1)
    assert seen == ["dish"]


def test_a_compressor_whose_compiled_version_differs_is_named(theory, monkeypatch):
    """Whole numbers of compiled code wrap at 2^63, those of Python do not."""
    monkeypatch.setattr(runs, "SMALL", 0)
    body = "two = 2\n    return SHARE * v if two**64 > 0 else 0.4 * v"
    ((verdict, message),) = verdicts(theory("return SHARE * v", body), "t.cgd")
    assert verdict is Verdict.INCONCLUSIVE and "the compiled shrink differs from its array version" in message


# --- edit, then run again --------------------------------------------------------------------------------------------


def verdict_of(claim, file):
    done = process("check", claim, "--from", file, "--jobs", "1", "--json", "-")
    (told,) = json.loads(done.stdout)["claims"]
    return told["verdict"], told["cached"]


def test_an_edit_changes_the_verdict_in_a_new_process(theory, tmp_path):
    assert verdict_of("t.cgd", theory()) == ("consistent", False)
    assert verdict_of("t.cgd", theory()) == ("consistent", True)
    assert verdict_of("t.cgd", theory("SHARE * v", "0.1 * v")) == ("inconclusive", False)
    assert verdict_of("t.cgd", theory("return 1.0 * x", "return 0.9 * x")) == ("inconclusive", False)
    (tmp_path / "share_of_mine.py").write_text("SHARE = 0.1\n")
    assert verdict_of("t.cgd", theory()) == ("inconclusive", False)
    (tmp_path / "share_of_mine.py").write_text("SHARE = 0.5\n")
    assert verdict_of("t.cgd", theory()) == ("consistent", True)


def test_an_edit_changes_the_verdict_in_this_process(theory, tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "SMALL", 0)
    for share, verdict in ((0.5, Verdict.CONSISTENT), (0.1, Verdict.INCONCLUSIVE), (0.6, Verdict.CONSISTENT)):
        (tmp_path / "share_of_mine.py").write_text(f"SHARE = {share}\n")
        assert verdicts(theory(), "t.cgd")[0][0] is verdict
    with pytest.raises(vr.UsageError, match="unknown compressor 'shrink'"):  # renamed: the old one is gone
        verdicts(theory("def shrink", "def shorten"), "t.cgd")


def test_data_that_a_file_reads_are_part_of_the_key(theory, tmp_path):
    edits = ("from share_of_mine import SHARE", "SHARE = np.loadtxt('share.txt')")
    verdict = {}
    for share in (0.5, 0.1):
        np.savetxt(tmp_path / "share.txt", [share])
        verdict[share] = verdict_of("t.cgd", theory(*edits))
    assert verdict == {0.5: ("consistent", False), 0.1: ("inconclusive", False)}


# --- bad input -------------------------------------------------------------------------------------------------------

CGD = ("check", "t.cgd", "--jobs", "1")
GRADIENT, COMPRESSED = "return 1.0 * x", "return SHARE * v"
MEASURE = ('measure="distance", bound="R2", setting', 'measure=far, bound="R2", setting')
BAD = {
    "compressor of wrong shape": (CGD, (COMPRESSED, "return v[:-1]"), "compressor shrink must return shape (4,), not (3,)"),
    "compressor that returns NaN": (CGD, (COMPRESSED, "return v * np.nan"), "compressor shrink returns NaN at the finite vector ("),
    "compressor that returns no numbers": (CGD, (COMPRESSED, "return 'all of it'"), "must return numbers of shape (4,), not str"),
    "compressor that fails": (
        CGD,
        (COMPRESSED, "return v / (1 // 0)"),
        "compressor shrink failed in line 22 of mine.py with ZeroDivisionError",
    ),
    "compressor that draws elsewhere": (
        CGD,
        (COMPRESSED, "return np.random.rand() * v"),
        "compressor shrink gives two answers at one point",
    ),
    "compressor without a class": (CGD, ("delta=0.5, ", ""), "line 20 of mine.py failed with a compressor must declare its class"),
    "compressor without bits": (CGD, (", bits=lambda d: 32.0 * d", ""), "must say its bits"),
    "compressor of a shipped name": (CGD, ("def shrink", "def topk"), "a compressor named 'topk' exists already"),
    "delta that is no number": (CGD, ("delta=0.5", "delta=lambda d: 'half'"), "delta of shrink must be a number, not 'half'"),
    "delta out of range": (CGD, ("delta=0.5", "delta=1.5"), "delta of shrink must be in (0, 1], not 1.5"),
    "delta that fails": (CGD, ("delta=0.5", "delta=lambda d: {}['k']"), "delta of shrink failed in line 20 of mine.py with KeyError"),
    "gradient of wrong shape": (CGD, (GRADIENT, "return x[:2]"), "grad of dish must return shape (4,), not (2,)"),
    "gradient that is NaN": (CGD, (GRADIENT, "return x * np.nan"), "grad of dish returns NaN at the finite vector ("),
    "gradient that is NaN on the way": (
        CGD,
        (GRADIENT, "return x if x[0] != 0.75 else x * np.nan"),
        "grad of dish returns NaN at the finite",
    ),
    "gradient that fails": (CGD, (GRADIENT, "return x[7]"), "grad of dish failed in line 13 of mine.py with IndexError"),
    "gradient that draws elsewhere": (CGD, (GRADIENT, "return x + 1e-3 * np.random.rand(4)"), "gives two answers at one point"),
    "gradient of one parameter": (CGD, ("def grad_dish(i, x)", "def grad_dish(x)"), "grad(i, x) or grad(i, x, gen), not a function of 1"),
    "no gradient": (CGD, ("grad=grad_dish, ", ""), "give dish either grad(i, x)"),
    "gradient that is no function": (CGD, ("grad=grad_dish", "grad=3"), "grad of dish must be a function, not 3"),
    "value that is a vector": (CGD, ("return 0.5 * (x @ x)", "return x"), "value of dish must return shape (), not (4,)"),
    "value that fails": (CGD, ("return 0.5 * (x @ x)", "return y"), "value of dish failed in line 9 of mine.py with NameError"),
    "no constants": (CGD, (", constants=ONE", ""), "dish needs its constants, at least L, mu and f_star"),
    "problem of a shipped name": (CGD, ('"dish", 2', '"ridge", 2'), "a problem family named 'ridge' exists already"),
    "topology of a shipped name": (
        CGD,
        ("RUNS =", "@vr.topology\ndef ring(n):\n    return []\nRUNS ="),
        "a topology named 'ring' exists already",
    ),
    "topology without n": (CGD, ("RUNS =", "@vr.topology\ndef pair():\n    return []\nRUNS ="), "topology pair must be a function of n"),
    "claim of an unknown compressor": (
        CGD,
        ('"compressor": "shrink"', '"compressor": "shrimp"'),
        "unknown compressor 'shrimp'; did you mean 'shrink'",
    ),
    "claim of an unknown problem": (CGD, ('{"name": "dish"}', '{"name": "disk"}'), "unknown problem 'disk'; did you mean 'dish'"),
    "options of a problem that has none": (
        CGD,
        ('{"name": "dish"}', '{"name": "dish", "n": 3}'),
        "problem dish of your file takes no options (n)",
    ),
    "measure that fails": (
        CGD,
        (*MEASURE, "RUNS =", "def far(s, w, h):\n    return s.x[9]\nRUNS ="),
        "line 26 of mine.py, in far, failed with",
    ),
    "measure without a name": (CGD, (MEASURE[0], MEASURE[1].replace("far", "lambda s, w, h: 1.0")), "must be a function at the top level"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_sentence(name, theory):
    args, edits, said = BAD[name]
    done = run(*args, "--from", theory(*edits))
    assert done.exit_code == 2, done.output
    lines = [line for line in done.stderr.splitlines() if line.startswith("verify-rates: ")]
    assert len(lines) == 1 and said in lines[0] and "Traceback" not in done.stderr


def test_two_files_that_give_one_name(theory):
    other = theory("t.cgd", "u.cgd", "t.gd", "u.gd", "def shrink", "def shrink_too", 'shrink"}', 'shrink_too"}', name="other.py")
    done = run(*CGD, "--from", theory(), "--from", other)
    assert done.exit_code == 2 and "a problem named 'dish' exists already, from another file" in done.stderr


METHOD = """
from typing import NamedTuple
class State(NamedTuple):
    x: vr.Shared
class Hyper(NamedTuple):
    gamma: float
@vr.method(state=State, hyper=Hyper)
def stumble(s, w, h, t):
    FAULT
    return State(x=s.x - h.gamma * vr.mean(w, vr.grad(w, s.x)))
RUNS ="""


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("if t == 3:\n        raise ValueError('too far')", "ValueError"),
        ("h = Hyper(gamma=np.random.rand())", "x of stumble gives two answers"),
    ],
)
def test_a_step_that_fails_or_draws_elsewhere(fault, said, engine, theory):
    file = theory("RUNS =", METHOD.replace("FAULT", fault))
    start = ("--problem", "quadratic", "--steps", "5", "--engine", engine, "--from", file)
    done = run("simulate", "stumble", "gamma=0.5", *start)
    assert done.exit_code == 2 and said in done.stderr and done.stderr.count("\n") == 1, done.output


TOPOLOGIES = {
    "[(0, 1), (1, 2)]": "was asked for n = 4 workers but makes 3",
    "[(0, 1), (2, 3)]": "is not connected",
    "np.ones((n, n))": "must be doubly stochastic",
    "np.eye(n)": "does not lead to the average",
    "[(0, 1), (1, 2), (2, 3)] + [(0, 3)] * int(np.random.rand() < 0.5 + 0.5 * next(turn))": "makes another graph each time",
    "1 // 0": "failed in line",
    "7": "a topology is a name",
}


@pytest.mark.parametrize("made", TOPOLOGIES)
def test_a_topology_that_is_none(made, theory):
    code = f"turn = iter([1, -1] * 9)\n@vr.topology\ndef mine(n, p: float = 0.5):\n    return {made}\nRUNS ="
    load(theory("RUNS =", code))
    with pytest.raises(vr.UsageError, match="topology mine") as error:
        get_topology("mine(p=0.3)", 4)
    assert TOPOLOGIES[made] in str(error.value)


def test_a_topology_of_parameters_and_of_a_matrix(theory):
    code = "@vr.topology\ndef mixed(n, share: float = 0.5):\n    return (1 - share) * np.eye(n) + share * np.ones((n, n)) / n\nRUNS ="
    load(theory("RUNS =", code))
    made = get_topology("mixed(share=0.25)", 4)
    assert made.name == "mixed(share=0.25)" and made.second == pytest.approx(0.75, rel=1e-12)
    with pytest.raises(vr.UsageError, match="mixing has no effect"):
        get_topology("mixed(mixing=best)", 4)


def test_a_compressor_is_random_where_it_reads_its_generator(theory):
    load(theory("RUNS =", "@vr.compressor(delta=0.1, bits=lambda d: 1.0)\ndef thinned(v, gen):\n    return v * gen.random()\nRUNS ="))
    assert get_compressor("thinned").random and not get_compressor("shrink").random
    assert vr.check_compressor("shrink", 5) == [] and vr.check_constants("dish") == []
