"""A witness file is data: it calls nothing that no claim names, and its bound is its check's; what verdicts rest on is in the key."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import verify_rates as vr
from verify_rates.pipeline import check
from verify_rates.solvers.method import UsageError
from verify_rates.store import key
from verify_rates.theory.claims import Claim, Setting, claims, product
from verify_rates.theory.worst_case.instance import Instance
from verify_rates.userfile import local_sources
from verify_rates.witness import formula, replay, stored

BASE = {"value": 1.0, "bound": 0.5, "relation": "<="}


@pytest.mark.parametrize("path", ["os:mkdir", "verify_rates.store:write_atomically"])
def test_a_formula_that_is_not_the_claims_check_is_not_called(path, tmp_path):
    made = {**BASE, "kind": "formula", "check": path, "parameters": {"path": str(tmp_path / "made"), "text": ""}}
    with pytest.raises(UsageError, match="not that of the claim"):
        replay(stored("matcha.1", made))
    assert not (tmp_path / "made").exists()


def test_the_file_that_a_witness_names_is_not_run(tmp_path):
    trap = tmp_path / "trap.py"
    trap.write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\n")
    with pytest.raises(UsageError, match=r"give its file \(.*trap.py\) by --from"):
        replay(stored("trap.1", {**BASE, "kind": "run"}, str(trap)))
    assert not (tmp_path / "sprung").exists()


def test_a_formula_with_another_bound_or_elsewhere_is_not_reproduced():
    claim = claims()["matcha.1"]
    found = formula(claim.check, claim.grid[0])
    made = {"kind": "formula", "check": claim.check, "parameters": dict(claim.grid[0]), "value": found.lower, "relation": found.relation}
    assert not replay(stored("matcha.1", {**made, "bound": found.bound})).reproduced
    with pytest.raises(UsageError, match="another bound"):
        replay(stored("matcha.1", {**made, "bound": found.lower - 1.0}))
    with pytest.raises(UsageError, match="not checked"):
        replay(stored("matcha.1", {**made, "parameters": {**made["parameters"], "seed": 10**6}, "bound": found.bound}))


# --- a witness is compared with its claim ----------------------------------------------------------------------------


def _false(**options):
    return Claim("x.1", "x", method="gd", measure="function_gap", lets={"gamma": "1/L"}, source="derived", **options)


BY_RUNS = _false(bound="L/(100*N)*V0", runs=({"problem": {"name": "huber", "c": 0.05}, "N": 9},))
BY_WORST_CASE = _false(bound="L/(4*N + 3)*V0", grid=product(L=1, N=2))
NOISY = Claim(
    "x.2",
    "x",
    method="gd",
    measure="function_gap",
    bound="gamma**2*sigma2/n/40",
    lets={"gamma": "1/L"},
    setting=Setting(noise=True),
    runs=({"problem": {"name": "quadratic", "n": 2, "sigma2": 1.0}, "N": 1},),
    source="derived",
)


def witness_of(claim):
    result = check([claim], jobs=1).results[0]
    assert result.replay().reproduced, result.message
    return json.loads(json.dumps(stored(claim.id, result.witness)))


def _within(path, value):
    def change(made):
        *parents, last = path
        place = made
        for key_ in parents:
            place = place[key_]
        place[last] = value(place[last]) if callable(value) else value

    return change


def half(v):
    return 0.5 * v


def tripled(parts):
    return [[3 * v for v in part] for part in parts]


TAMPERED = {
    "run: bound": (BY_RUNS, _within(["bound"], half), "another bound"),
    "run: bound and factor": (BY_RUNS, _within(["factor"], 0.0), "factor must be"),
    "run: steps": (BY_RUNS, _within(["point", "N"], 5), "another bound"),
    "run: another problem": (BY_RUNS, _within(["point", "problem"], {"name": "one_minus_cos"}), "lies outside of the claim"),
    "run: a letter": (BY_RUNS, _within(["point"], lambda p: p | {"L": 0.1}), "must not set L"),
    "run: noise": (BY_RUNS, _within(["point", "problem"], {"name": "quadratic", "sigma2": 1.0}), "lies outside of the claim"),
    "run: relation": (BY_RUNS, _within(["relation"], ">="), "another relation"),
    "run: trials": (NOISY, _within(["trials"], -3), "whole numbers"),
    "worst case: bound": (BY_WORST_CASE, _within(["bound"], half), "another bound"),
    "worst case: point": (BY_WORST_CASE, _within(["point", "N"], 3), "its steps is 2, not 3"),
    "worst case: step size": (BY_WORST_CASE, _within(["instance", "statement", "hyper", "gamma"], 1.9), "its hyper is"),
    "worst case: class": (BY_WORST_CASE, _within(["instance", "statement", "L"], 2.0), "its L is 2.0, not 1.0"),
    "worst case: start": (BY_WORST_CASE, _within(["instance", "statement", "start"], "free"), "its start is"),
    "worst case: first point": (
        BY_WORST_CASE,
        _within(["instance", "start", "x"], lambda x: [[3 * v for v in p] for p in x]),
        "gradient where",
    ),
}


@pytest.mark.parametrize(("claim", "change", "words"), TAMPERED.values(), ids=TAMPERED)
def test_a_witness_that_is_not_the_claims_is_refused(claim, change, words):
    made = witness_of(claim)
    change(made)
    with pytest.raises(UsageError, match=words):
        replay(made, claim)


def test_a_sample_too_small_to_refute_is_not_reproduced():
    made = witness_of(NOISY)
    few = {**made, "trials": 2}
    assert not replay({**few, "value": replay(few, NOISY).value}, NOISY).reproduced


def test_memories_of_a_standard_start_are_zero():
    found = vr.worst_case("ef_sgd", {"gamma": 0.2}, steps=1, mu=0.1, n=1, compressor={"delta": 0.5}, start="free", initial="ef_lyapunov")
    assert found.instance.replay() == pytest.approx(found.lower)
    data = found.instance.to_dict()
    with pytest.raises(UsageError, match="does not start as a run starts"):
        Instance.from_dict({**data, "statement": {**data["statement"], "start": "standard"}}).replay()


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

    assert verdict(1)[0] == "certified"
    assert verdict(100)[0] == "refuted"
