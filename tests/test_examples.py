"""The example of the README: a user's own method and claim, read by both engines, the worst case and the pipeline."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import numpy as np
import pytest

import verify_rates as vr
from verify_rates.pipeline import mutated
from verify_rates.userfile import load
from verify_rates.verdicts import Verdict

FILE = Path(__file__).resolve().parents[1] / "examples" / "ef_momentum.py"
RTOL_ENGINES = 1e-12  # both engines run the same operations in double precision; of issue 2
RTOL_SDP = 1e-6  # accuracy to which a worst case separates from its bound; of verdicts.py


@pytest.fixture(scope="module")
def example():
    return load(FILE)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VERIFY_RATES_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield vr.check(["ef_momentum.*"], files=[FILE], jobs=1)


def test_it_is_short():
    lines = [line for line in FILE.read_text().splitlines() if line.strip()]
    assert len(lines) <= 50


def test_both_engines_agree(example):
    def run(engine):
        options = dict(steps=100, compressor="topk(k=3)", measures=("function_gap", example.virtual), engine=engine)
        return vr.simulate("ef_momentum", "quadratic", {"gamma": 0.05, "beta": 0.9}, **options)

    array, compiled = run("numpy"), run("numba")
    for name in ("function_gap", "virtual"):
        scale = np.abs(array.values[name]).max()
        assert np.abs(array.values[name] - compiled.values[name]).max() <= RTOL_ENGINES * scale
    assert array.values["function_gap"][0, -1] < array.values["function_gap"][0, 0] / 10


def test_one_step_is_exactly_a_step_of_gradient_descent(example):
    """After one step the virtual iterate is x0 - gamma/(1-beta)*grad f(x0), whose worst case is (1 - gamma*mu/(1-beta))^2."""
    options = dict(steps=1, L=1.0, mu=0.1, compressor={"delta": 0.5}, measure=example.virtual)
    found = vr.worst_case("ef_momentum", {"gamma": 0.0625, "beta": 0.5}, **options)
    exact = (1 - 0.125 * 0.1) ** 2
    assert found.lower <= exact * (1 + RTOL_SDP) and found.upper >= exact * (1 - RTOL_SDP)
    assert found.upper - found.lower <= RTOL_SDP * exact


def test_the_claim_holds(report):
    result = report["ef_momentum.1"]
    assert result.verdict is Verdict.CERTIFIED, result.message
    assert {c.kind for c in result.checks if c.status == "ok"} == {"worst case", "runs"}
    assert report.exit_code == 0


def test_a_smaller_bound_is_refuted_and_the_witness_replays(report):
    result = mutated(report["ef_momentum.1"], 0.999)
    assert result.verdict is Verdict.REFUTED
    again = result.replay()
    assert again.reproduced and again.value == pytest.approx(again.stored, rel=RTOL_SDP) and again.factor == 0.999


# --- the README -------------------------------------------------------------------------------------------------------

README = (FILE.parents[1] / "README.md").read_text()


def test_the_readme_shows_the_example_as_it_is():
    assert FILE.read_text().strip() in README


def test_the_python_of_the_readme_runs():
    (block,) = [b for b in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "vr.check(" in b]
    space = {}
    exec(block, space)
    assert space["report"].exit_code == 0 and space["found"].exact
    assert space["history"].values["function_gap"].shape[0] == 1


COMMANDS = [line.split("#")[0].strip() for line in README.splitlines() if line.startswith("    verify-rates ")]


@pytest.mark.parametrize("line", COMMANDS)
def test_the_commands_of_the_readme_are_understood(line, tmp_path, monkeypatch):
    """Every command and option exists; those that are quick are run."""
    from click.testing import CliRunner

    from verify_rates.cli import main

    words = shlex.split(line)[1:]
    command = main.commands[words[0]]
    command.make_parser(click.Context(command)).parse_args(words[1:])
    if words[0] in ("list", "show", "worst-case", "timeline", "traffic"):
        monkeypatch.chdir(tmp_path)
        here = [str(FILE) if w == "examples/ef_momentum.py" else w for w in words]
        result = CliRunner().invoke(main, here)
        assert result.exit_code == 0 and result.stdout, result.output
