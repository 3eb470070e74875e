"""A witness file is data: it calls nothing that no claim names, and its bound is its check's; what verdicts rest on is in the key."""

import os
import subprocess
import sys

import numpy as np
import pytest

from verify_rates.pipeline import check
from verify_rates.solvers.method import UsageError
from verify_rates.store import key
from verify_rates.theory.claims import Claim, claims
from verify_rates.userfile import local_sources
from verify_rates.witness import formula, replay, stored

BASE = {"value": 1.0, "bound": 0.5, "relation": "<="}


@pytest.mark.parametrize("path", ["os:mkdir", "verify_rates.store:write_atomically"])
def test_a_formula_that_is_no_claims_check_is_not_called(path, tmp_path):
    made = {**BASE, "kind": "formula", "check": path, "parameters": {"path": str(tmp_path / "made"), "text": ""}}
    if path == "os:mkdir":
        del made["parameters"]["text"]
    with pytest.raises(UsageError, match="no claim's"):
        replay(stored("x.1", made))
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("kind", ["run", "worst case"])
def test_a_measure_from_an_unread_module_is_not_imported(kind, tmp_path, monkeypatch):
    (tmp_path / "trap.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    recipe = {"method": "gd", "measure": "trap:measure", "initial": None}
    with pytest.raises(UsageError, match="no file read here"):
        replay(stored("x.1", {**BASE, "kind": kind, "recipe": recipe, "instance": {}}))
    assert not (tmp_path / "sprung").exists()


def test_a_formula_with_another_bound_is_not_reproduced():
    claim = claims()["matcha.1"]
    found = formula(claim.check, claim.grid[0])
    made = {"kind": "formula", "check": claim.check, "parameters": dict(claim.grid[0]), "value": found.lower, "relation": found.relation}
    assert not replay(stored("matcha.1", {**made, "bound": found.bound})).reproduced
    with pytest.raises(UsageError, match="another bound"):
        replay(stored("matcha.1", {**made, "bound": found.lower - 1.0}))


def write(path, entry):
    rows = [f"{1 if i % 2 else -1} 1:{entry} 2:0.{i}" for i in range(1, 9)]
    path.write_text("\n".join(rows) + "\n")


def test_a_data_file_named_in_a_claim_is_read_again_when_it_changes(tmp_path):
    data = tmp_path / "data.txt"
    write(data, 0.1)
    point = {"problem": {"name": "logistic", "data": str(data), "n": 1, "lam": 0.1}, "N": 3}
    claim = Claim("x.1", "x", method="gd", measure="function_gap", bound="V0", lets={"gamma": "1/L"}, runs=(point,), source="derived")

    def state():
        return key(claim, suite="quick", seed=0), check([claim], jobs=1).results[0].checks[0].lower

    before, stat = state(), data.stat()
    assert state() == before
    write(data, 0.9)
    os.utime(data, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # of the same size, and apparently of the same time
    after = state()
    assert after[0] != before[0] and after[1] != before[1]


@pytest.mark.parametrize(
    ("line", "file"),
    [("import pkg.deep.b", "pkg/deep/a.py"), ("from ..c import C", "pkg/deep/a.py"), ("from . import b", "pkg/deep/a.py")],
)
def test_neighbours_of_neighbours_are_found_however_they_are_imported(tmp_path, line, file):
    deep = tmp_path / "pkg" / "deep"
    deep.mkdir(parents=True)
    for empty in (tmp_path / "pkg" / "__init__.py", deep / "__init__.py", deep / "b.py", tmp_path / "pkg" / "c.py"):
        empty.write_text("C = 1\n")
    (tmp_path / file).write_text(line + "\n")
    (tmp_path / "theory.py").write_text("import pkg.deep.a\n")
    wanted = tmp_path / "pkg" / "c.py" if "..c" in line else deep / "b.py"
    assert wanted in local_sources(tmp_path / "theory.py")


THEORY = """
import numpy as np
from verify_rates.theory.claims import Claim
from verify_rates.solvers.words import optimum, sqnorm

WEIGHTS = {{"w": list(np.load({path!r}))}}

def mine(s, w, h):
    return float(WEIGHTS["w"][0]) * sqnorm(w, s.x - optimum(w))

CLAIMS = [Claim("x.1", "x", method="gd", measure=mine, bound="1.5*R2", source="derived", lets={{"gamma": "1/L"}},
                grid=({{"L": 1, "N": 1}},))]
"""


def test_values_that_a_measure_has_read_from_a_file_are_part_of_the_key(tmp_path):
    weights, theory = tmp_path / "w.npy", tmp_path / "theory.py"
    theory.write_text(THEORY.format(path=str(weights)))
    code = (
        f"from verify_rates.pipeline import check; r = check(['x.1'], files=[{str(theory)!r}], jobs=1).results[0]; print(r.verdict.value)"
    )

    def verdict(weight):
        np.save(weights, np.full(2, float(weight)))
        run = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "VERIFY_RATES_CACHE": str(tmp_path)}
        )
        return run.stdout.strip(), run.stderr

    assert verdict(1)[0] == "holds"
    assert verdict(100)[0] == "refuted"
