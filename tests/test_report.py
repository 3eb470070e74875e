"""Reports, their JSON and its schema, JUnit, and the store that makes runs resumable."""

from __future__ import annotations

import copy
import json
import math
import subprocess
import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from verify_rates import store as store_module
from verify_rates import userfile
from verify_rates.junit import to_junit
from verify_rates.report import EXIT_MEANING, Report, schema
from verify_rates.solvers.method import UsageError
from verify_rates.store import Store, cache_folder, from_json, key
from verify_rates.theory.claims import Claim
from verify_rates.verdicts import Check, Result, Verdict, judge


def claim(name="demo.1", **changes):
    given = dict(statement="the gap is small", method="gd", measure="function_gap", bound="L/(4*N*L*gamma + 2)", source="derived")
    return Claim(name, **(given | changes))


def check(lower=0.5, bound=1.0, **changes):
    given = dict(kind="worst case", parameters={"N": 3, "L": math.inf}, bound=bound, lower=lower, upper=lower, proves=True, rtol=1e-6)
    return Check(**(given | changes))


def result(c=None, *checks, **changes):
    c, checks = c or claim(), list(checks or [check()])
    return Result(c, judge(c, checks), checks, "", **changes)


def holds():
    return result()


def refuted(expect="holds"):
    return result(claim("demo.2", expect=expect), check(2.0, witness={"kind": "runs", "seed": 3}))


def inconclusive():
    return result(claim("demo.3"), check(status="solver failed"))


def not_checkable():
    c = claim("demo.4", not_checkable="an order without constants")
    return Result(c, Verdict.NOT_CHECKABLE, [], c.not_checkable)


def samples():
    runs = dict(kind="runs", upper=math.inf, proves=False, samples=[0.4, 0.6], seeds=[0, 1], evidence_against=0.0)
    return result(claim("demo.5"), check(**runs))


EVERYTHING = (holds, refuted, inconclusive, not_checkable, samples)


@pytest.mark.parametrize(
    ("results", "more", "code"),
    [
        ([], {}, 5),
        ([holds], {}, 0),
        ([holds, not_checkable], {"strict": True}, 0),
        ([lambda: refuted("fails")], {}, 0),
        ([lambda: result(claim(expect="fails"))], {}, 1),
        ([holds, inconclusive], {}, 4),
        ([holds, inconclusive], {"strict": True}, 1),
        ([holds], {"strict": True, "warnings": ["careful"]}, 1),
        ([holds], {"warnings": ["careful"]}, 0),
        ([refuted, inconclusive], {}, 1),
        ([refuted, inconclusive], {"errors": [{"claim": "a", "message": "b"}]}, 3),
        ([refuted], {"errors": [{"claim": "a", "message": "b"}], "interrupted": True}, 130),
        ([], {"interrupted": True}, 130),
    ],
)
def test_exit_codes_by_precedence(results, more, code):
    report = Report([make() for make in results], {"suite": "quick", "seed": 0}, **more)
    assert report.exit_code == code
    assert code in EXIT_MEANING
    jsonschema.validate(report.to_json(), schema())


def full_report(**more):
    return Report([make() for make in EVERYTHING], {"suite": "quick", "seed": 0, "data": None}, **more)


def test_the_json_is_what_the_schema_says():
    jsonschema.Draft202012Validator.check_schema(schema())
    data = json.loads(full_report(warnings=["w"], errors=[{"claim": "c", "message": "m", "traceback": "t"}]).dumps())
    jsonschema.validate(data, schema())
    assert [c["id"] for c in data["claims"]] == ["demo.1", "demo.2", "demo.3", "demo.4", "demo.5"]
    assert data["claims"][0]["tightness"] == 0.5
    assert data["claims"][0]["checks"][0]["parameters"]["L"] == "inf"
    assert data["counts"]["total"] == 5


def test_the_json_of_real_checks_is_what_the_schema_says(tmp_path, monkeypatch):
    """One claim of every kind: worst case, runs, a formula, an expected refutation with its witness, and nothing to check."""
    from verify_rates.pipeline import check as run_checks

    monkeypatch.setattr("verify_rates.store.cache_folder", lambda: tmp_path)
    data = json.loads(run_checks(["ef.any", "matcha.1", "acco.5", "deco.2.growth", "deco.4"], jobs=1).dumps())
    jsonschema.validate(data, schema())
    kinds = {c["kind"] for claim in data["claims"] for c in claim["checks"]}
    assert {"worst case", "runs", "identity", "iff", "property"} <= kinds
    verdicts = {c["id"]: c["verdict"] for c in data["claims"]}
    assert verdicts["ef.any"] == "certified" and verdicts["deco.2.growth"] == "refuted" and verdicts["deco.4"] == "not checkable"
    assert not any(c["cached"] for c in data["claims"])


def spoil(data, path, value):
    data = copy.deepcopy(data)
    *where, last = path
    at = data
    for step in where:
        at = at[step]
    if value is KeyError:
        del at[last]
    else:
        at[last] = value
    return data


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema_version",), 2),
        (("suite",), "medium"),
        (("counts", "holds"), -1),
        (("counts", "holds"), KeyError),
        (("extra",), 1),
        (("claims", 0, "verdict"), "true"),
        (("claims", 0, "tightness"), "big"),
        (("claims", 0, "checks", 0, "lower"), None),
        (("claims", 0, "checks", 0, "kind"), "guess"),
        (("claims", 0, "checks", 0, "new"), 1),
        (("exit_code",), 2),
    ],
)
def test_the_schema_refuses_other_data(path, value):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(spoil(full_report().to_json(), path, value), schema())


def test_the_schema_names_every_field():
    """A field added to a result or a check has to be added to the schema."""
    data = full_report().to_json()
    assert set(data) == set(schema()["properties"]) == set(schema()["required"])
    for name, entry in (("claim", data["claims"][0]), ("check", data["claims"][0]["checks"][0])):
        assert set(entry) == set(schema()["$defs"][name]["properties"]) == set(schema()["$defs"][name]["required"])


def test_the_table_shows_what_matters():
    report = Report([*full_report().results, refuted("fails")], {}, warnings=["careful"])
    text = str(report)
    for wanted in (
        "demo.1",
        "0.5",
        "worst case x1",
        "NOT AS EXPECTED",
        "refuted (expected)",
        "without evidence",
        "runs x1",
        "warning: careful",
    ):
        assert wanted in text
    assert report.summary() == ("6 claims: 1 holds, 1 consistent, 2 refuted, 1 inconclusive, 1 not checkable; 1 NOT as expected.")
    assert "cached" in str(Report([result(cached=True)], {}))


def test_recalled_claims_are_not_shown_as_the_papers():
    text = str(Report([result(claim(provenance="recalled", source="arXiv:1, Theorem 2"))], {}))
    assert "recalled: arXiv:1, Theorem 2" in text


def test_html_is_escaped():
    nasty = result(claim("<script>x", statement='a "quote" <b>', source="<i>"))
    page = Report([nasty], {})._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;x" in page
    ET.fromstring(f"<div>{page}</div>")


def test_save_refuses_a_missing_folder(tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        full_report().save(tmp_path / "no" / "a.json")
    with pytest.raises(UsageError, match="is a folder"):
        full_report().save(tmp_path)
    kept = full_report().save(tmp_path / "a.json")
    assert json.loads(kept.read_text())["counts"]["total"] == 5
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_junit_counts_and_cases():
    report = full_report(errors=[{"claim": "demo.9", "message": "boom \x00", "traceback": "Traceback"}])
    suite = ET.fromstring(to_junit(report)).find("testsuite")
    assert {k: suite.get(k) for k in ("tests", "failures", "errors", "skipped")} == {
        "tests": "6", "failures": "1", "errors": "2", "skipped": "1",
    }  # fmt: skip
    cases = {c.get("name"): c for c in suite}
    assert len(cases) == int(suite.get("tests"))
    for tag in ("failure", "error", "skipped"):
        assert sum(c.find(tag) is not None for c in suite) == int(suite.get({"failure": "failures", "error": "errors"}.get(tag, tag)))
    assert cases["demo.2"].find("failure") is not None and cases["demo.1"].find("failure") is None
    assert "0.5" in cases["demo.1"].find("system-out").text


# --- the store --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", EVERYTHING)
def test_a_stored_result_comes_back_as_it_was(make, tmp_path):
    store, r = Store(tmp_path), make()
    store.put("k" * 64, r)
    back = store.get("k" * 64, r.claim)
    assert back.cached and not r.cached
    assert back.to_json() | {"cached": False} == r.to_json()
    assert back.verdict is judge(r.claim, back.checks)
    assert back.tightness == r.tightness


def test_an_absent_entry_is_none(tmp_path):
    assert Store(tmp_path / "nothing").get("k", claim()) is None


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"id": "demo.1"}', '{"id": "other"}', "\x00\xff", "truncated", "check"])
def test_a_damaged_entry_is_ignored_with_a_warning(damage, tmp_path):
    store, r = Store(tmp_path), holds()
    store.put("k", r)
    whole = store.path("k").read_text()
    if damage == "truncated":
        damage = whole[: len(whole) // 2]
    if damage == "check":
        damage = whole.replace('"proves"', '"prooves"')
    store.path("k").write_text(damage)
    with pytest.warns(UserWarning, match="computed again"):
        assert store.get("k", r.claim) is None
    store.put("k", r)
    assert store.get("k", r.claim) is not None


def test_a_disk_that_refuses_costs_a_warning(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match="is not kept"):
        Store(tmp_path / "file").put("k", holds())


def test_a_killed_writer_leaves_no_half_entry(tmp_path):
    """A process is killed while it writes entry after entry; what is there afterwards is whole."""
    code = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_report import Store, holds
store, r = Store({str(tmp_path)!r}), holds()
print("ready", flush=True)
i = 0
while True:
    store.put(f"{{i % 5:02d}}", r); i += 1
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    for _ in range(200):
        if (tmp_path / "04" / "04.json").exists():
            break
        process.poll() is None and __import__("time").sleep(0.02)
    process.kill()
    process.wait()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(Store(tmp_path).get(f"{i:02d}", claim()) is not None for i in range(5))


def test_the_key_changes_with_everything_a_verdict_depends_on(tmp_path, monkeypatch):
    data = tmp_path / "data.txt"
    data.write_text("1 1:2\n")
    theory = tmp_path / "theory.py"
    theory.write_text("import beside_it\n")
    (tmp_path / "beside_it.py").write_text("a = 1\n")
    base = dict(suite="quick", seed=0, data=data, files=(theory,))

    def now(c=None, **changes):
        return key(c or claim(), **(base | changes))

    first = now()
    assert first == now()
    seen = {first, now(suite="full"), now(seed=1), now(data=None), now(files=()), now(claim(bound="L")), now(claim(measure=holds))}
    assert len(seen) == 7
    (tmp_path / "beside_it.py").write_text("a = 2\n")
    assert now() not in seen
    seen.add(now())
    data.write_text("1 1:22\n")
    assert now() not in seen
    seen.add(now())
    monkeypatch.setattr(store_module, "package_digest", lambda: "edited")
    assert now() not in seen
    seen.add(now())
    monkeypatch.setattr(store_module, "versions", lambda: {"numpy": "0"})
    assert now() not in seen


def test_the_key_knows_the_file_of_a_users_measure(tmp_path):
    file = tmp_path / "measure_file.py"
    file.write_text("def m(s, w, h):\n    return 1.0\n")
    first = key(claim(measure=userfile.load(file).m), suite="quick", seed=0)
    file.write_text("def m(s, w, h):\n    return 2.0\n")
    assert key(claim(measure=userfile.load(file).m), suite="quick", seed=0) != first


def test_the_package_digest_sees_every_source(monkeypatch):
    assert store_module.package_digest() == store_module.package_digest()
    seen = []
    monkeypatch.setattr(store_module, "digest", lambda files: seen.extend(files) or "x")
    store_module.package_digest.__wrapped__()
    names = {f"{p.parent.name}/{p.name}" for p in seen}
    assert {"verify_rates/store.py", "methods/gd.py", "engine/history.py", "theory/claims.py", "worst_case/__init__.py"} <= names


def test_the_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("VERIFY_RATES_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("VERIFY_RATES_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    if sys.platform.startswith("linux"):
        assert cache_folder() == tmp_path / "x" / "verify-rates"


def test_another_claims_entry_is_refused():
    with pytest.raises(ValueError, match="another claim"):
        from_json(claim("demo.9"), holds().to_json())


# --- the user's file --------------------------------------------------------------------------------------------------


def test_a_file_is_run_once_until_it_or_its_neighbour_changes(tmp_path):
    (tmp_path / "near_by.py").write_text("value = 1\n")
    file = tmp_path / "mine.py"
    file.write_text("from near_by import value\nmark = object()\n")
    first = userfile.load(file)
    assert userfile.load(str(file)) is first and sys.modules[userfile.module_name(file)] is first
    (tmp_path / "near_by.py").write_text("value = 22\n")
    again = userfile.load(file)
    assert again is not first and again.value == 22


def test_a_hidden_neighbour_is_an_error(tmp_path):
    (tmp_path / "json.py").write_text("value = 1\n")
    (tmp_path / "mine.py").write_text("import json\n")
    with pytest.raises(UsageError, match=r"another module of that name hides json\.py"):
        userfile.load(tmp_path / "mine.py")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1\ndef f(:\n", r"^line 2 of mine\.py is not valid Python"),
        ("x = 1\n\ny = 1/0\n", r"^line 3 of mine\.py failed with ZeroDivisionError"),
        ("raise SystemExit(4)\n", r"^line 1 of mine\.py failed with SystemExit"),
        ("import no_such_module_at_all\n", r"^line 1 of mine\.py failed with ModuleNotFoundError"),
        ("import verify_rates as vr\nvr.Claim('a', 'b')\n", r"^line 2 of mine\.py failed with claim a: give method"),
        ("raise ValueError('two\\nlines')\n", r"two lines\.$"),
        ("x = '\x00'\n", "is not valid Python"),
    ],
)
def test_errors_in_the_users_file_are_one_sentence(text, sentence, tmp_path):
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(UsageError, match=sentence) as caught:
        userfile.load(tmp_path / "mine.py")
    assert "\n" not in str(caught.value)
    assert userfile.module_name(tmp_path / "mine.py") not in sys.modules
