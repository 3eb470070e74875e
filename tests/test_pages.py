"""Pages of the papers: complete, linked, generated from the record, and compared with what is stored."""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from verify_rates import pages
from verify_rates.cli import main
from verify_rates.listing import _papers
from verify_rates.page_compare import difference, text_difference
from verify_rates.page_curves import CURVES
from verify_rates.page_data import data_of
from verify_rates.page_text import context, paper_page, repair
from verify_rates.page_words import prose
from verify_rates.solvers.method import UsageError
from verify_rates.theory.claims import claims, collect
from verify_rates.verdicts import RTOL_RUN, Check, Result, Verdict

ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "docs" / "papers"
INDEX = ROOT / "docs" / "README.md"
PAPERS = _papers()
QUICK = ("gtopk", "mergecomp")  # papers whose claims take no time
# The mean of 10,000 exponential times deviates by a hundredth of itself; a share u/(u + 1) changes by a quarter of that; five deviations.
GOODPUT_ATOL = 5 * 0.25 * 0.01
EMPTY = ("spoken_dialogue", "capsfusion")


def unchecked(slug):
    """Results without evidence, for what does not depend on it."""
    return {c.id: Result(c, Verdict.CONSISTENT, [], "") for c in collect(PAPERS[slug])}


def anchors(text):
    return re.findall(r'<a id="([^"]+)">', text)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    pages.write_pages(folder, only=QUICK, jobs=1)
    return folder


# --- what stands on a page ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slug", PAPERS)
def test_a_page_has_every_claim_once(slug):
    text = paper_page(slug, PAPERS[slug], unchecked(slug), "quick", None)
    assert Counter(anchors(text)) == Counter(c.id for c in collect(PAPERS[slug]))
    assert PAPERS[slug].PAPER.title.split(":")[0] in text.replace("\\", "")
    assert not re.search(r"^## .*\n+(?=## |\Z)", text, re.MULTILINE), "a section is empty"
    assert not re.search(r"\d\.\d{8,}", text), "a number with more digits than anybody reads"


@pytest.mark.parametrize("slug", EMPTY)
def test_a_page_without_claims_says_why(slug):
    made = pages.page(slug, PAPERS[slug], {})
    assert made.data is None and "Nothing is checked here" in made.text and PAPERS[slug].PAPER.reason in made.text


def test_a_refuted_claim_has_its_witness_its_replay_and_its_repair(made):
    text = (made / "mergecomp.md").read_text()
    told = text.partition("### mergecomp.5\n")[2].partition("###")[0]
    assert "2 s more in total, yet 9 s, not 10 s" in told
    assert "verify-rates replay mergecomp.5.json" in told and "(#mergecomp.5.repaired), holds" in told


def test_the_replay_that_a_page_names_reproduces(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write, run = re.findall(r"`verify-rates ((?:check|replay) [^`]*gtopk\.4\.readme[^`]*)`", (made / "gtopk.md").read_text())
    assert CliRunner().invoke(main, [*write.split(), "--jobs", "1"]).exit_code == 0
    replayed = CliRunner().invoke(main, run.split())
    assert replayed.exit_code == 0 and "reproduced" in replayed.output


def test_repairs_are_found():
    known = claims()
    pairs = {
        "het.2": "het.2.repaired",
        "demo.9.numbers": "demo.9.repaired",
        "aet_sgd.2.time": "aet_sgd.2.repaired",
        "tokenring.5.free": None,
    }
    for broken, mended in pairs.items():
        found = repair(known[broken], known)
        assert (found and found.id) == mended
    mended = {m.id for c in known.values() if c.expect == "fails" and (m := repair(c, known))}
    assert {i for i in known if i.endswith(".repaired")} <= mended, "a repaired statement that repairs nothing"


def test_a_statement_that_leans_on_another_is_told_with_it():
    known = claims()
    assert "With the put-back" in context(known["gtopk.putback.four"], known)
    assert context(known["het.2"], known) == ""


def test_prose_is_no_markup():
    assert prose("a*b*c <= |x_1|, n_mu [i](j) ~x~ <b>") == "a·b·c ≤ \\|x\\_1\\|, n\\_μ \\[i\\](j) \\~x\\~ &lt;b>"


# --- the figure's data -------------------------------------------------------------------------------------------------


def test_the_data_hold_every_check_and_a_curve(made):
    data = json.loads((made / "gtopk.json").read_text())
    assert list(data["claims"]) == [c.id for c in collect(PAPERS["gtopk"])]
    assert [p["ratio"] for p in data["claims"]["gtopk.4.readme"]["checks"]] == [2.0]
    assert data["claims"]["gtopk.4.readme"]["checks"][0]["refutes"]
    (line,) = data["curve"]["lines"]
    assert line["bound"] == line["measured"]["exact value"] and len(line["x"]) == 4
    assert (made / "gtopk.png").stat().st_size < 200_000


def test_a_lower_bound_is_measured_the_other_way_round():
    claim = claims()["deepcompile.4"]
    check = Check("property", {}, 4.0, 2.0, 2.0, ">=", proves=True)
    (point,) = data_of([claim], {claim.id: Result(claim, Verdict.REFUTED, [check], "")})["claims"][claim.id]["checks"]
    assert point["ratio"] == 2.0 and point["refutes"]


def test_a_bound_of_a_method_has_a_curve_by_runs():
    claim = claims()["lupa.1"]
    data = data_of([claim], {claim.id: Result(claim, Verdict.CONSISTENT, [], "")})
    (line,) = data["curve"]["lines"]
    assert data["curve"]["over"] == "steps N" and len(line["x"]) >= 3
    assert all(m < b for m, b in zip(line["measured"]["runs"], line["bound"], strict=True))


def equal(said, played):
    return abs(said - played) <= RTOL_RUN * abs(said)


BESIDE = {  # where a formula is no equality, or the other value is no exact one
    "network_bottleneck": lambda most, simulated: 0 < simulated <= most,
    "deepcompile": lambda least, played: 0 < least <= played,
    "loscar": lambda printed, played: 0 < played <= printed,
    "decoupled_diloco": lambda mean, drawn: 0 < abs(mean - drawn) < GOODPUT_ATOL,
}


@pytest.mark.parametrize("slug", CURVES)
def test_a_curve_that_is_written_down_is_the_formula_of_its_claim(slug):
    curve = CURVES[slug]
    assert curve.claim in {c.id for c in collect(PAPERS[slug])}
    lines = curve.lines()
    assert len({line.label for line in lines}) == len(lines)
    for line in lines:
        assert len(line.x) == len(line.formula) == len(line.played) >= 5
        assert all(BESIDE.get(slug, equal)(float(said), float(played)) for said, played in zip(line.formula, line.played, strict=True))


def test_a_series_of_checks_ignores_tolerances_and_further_seeds():
    claim = claims()["cocoa.4"]
    checks = [
        Check("bound", {"n": 2, "H": H, "seed": seed}, bound, bound, bound, proves=True)
        for seed in (0, 1)
        for H, bound in ((1, 0.5), (2, 0.25), (4, 0.125))
    ]
    (line,) = data_of([claim], {claim.id: Result(claim, Verdict.HOLDS, checks, "")})["curve"]["lines"]
    assert line["x"] == [1, 2, 4] and line["bound"] == [0.5, 0.25, 0.125]
    far = [dataclasses.replace(c, lower=1e-6 * c.bound) for c in checks]
    assert data_of([claim], {claim.id: Result(claim, Verdict.HOLDS, far, "")})["curve"] is None


# --- comparing ---------------------------------------------------------------------------------------------------------


def test_what_was_just_written_does_not_differ(made):
    assert [w.difference for w in pages.write_pages(made, only=QUICK, check=True, jobs=1)] == ["", ""]


def with_changed(monkeypatch, claim_id, change):
    real = pages._results

    def results(*args):
        found = real(*args)
        return found | {claim_id: change(found[claim_id])}

    monkeypatch.setattr(pages, "_results", results)


@pytest.mark.parametrize("claim_id", ["gtopk.2", "gtopk.4.readme", "gtopk.5"])
def test_a_changed_verdict_is_seen(made, monkeypatch, claim_id):
    with_changed(monkeypatch, claim_id, lambda r: dataclasses.replace(r, verdict=Verdict.INCONCLUSIVE))
    told = {w.name: w.difference for w in pages.write_pages(made, only=QUICK, check=True, jobs=1)}
    assert told["gtopk"] and not told["mergecomp"]


def test_a_changed_value_is_seen_and_rounding_is_not(made, monkeypatch):
    def scaled(factor):
        return lambda r: dataclasses.replace(r, checks=[dataclasses.replace(c, lower=c.lower * factor) for c in r.checks])

    with monkeypatch.context() as m:
        with_changed(m, "gtopk.3", scaled(1 + 1e-12))
        assert not pages.write_pages(made, only="gtopk", check=True, jobs=1)[0].difference
    with_changed(monkeypatch, "gtopk.3", scaled(1.01))
    assert "gtopk.3" in pages.write_pages(made, only="gtopk", check=True, jobs=1)[0].difference


def test_files_that_are_missing_or_broken_are_told(made, tmp_path):
    (tmp_path / "gtopk.md").write_text((made / "gtopk.md").read_text())
    assert "gtopk.png is missing" in pages.write_pages(tmp_path, only="gtopk", check=True, jobs=1)[0].difference
    (tmp_path / "gtopk.png").touch()
    (tmp_path / "gtopk.json").write_text("{")
    assert "gtopk.json cannot be read" in pages.write_pages(tmp_path, only="gtopk", check=True, jobs=1)[0].difference


def test_texts_differ_by_more_than_the_last_digit_shown():
    assert text_difference("at 0.3333 of 12", "at 0.3334 of 12") == ""
    assert text_difference("at 0.3333", "at 0.3433") and text_difference("of 12", "of 13") and text_difference("a", "a\nb")
    assert text_difference("✔ holds: 2 runs", "✘ **refuted**: 2 runs")


def test_data_differ_in_names_lengths_and_values():
    assert difference({"a": [1.0, "x", None]}, {"a": [1.0 + 1e-9, "x", None]}) == ""
    for other in ({"b": [1.0]}, {"a": [1.0, 2.0]}, {"a": [1.1]}, {"a": ["1.0"]}, {"a": [None]}):
        assert difference({"a": [1.0]}, other)
    assert difference({"a": True}, {"a": 1.0}) == "" or difference({"a": True}, {"a": False})


# --- the command -------------------------------------------------------------------------------------------------------


def test_the_command_writes_compares_and_says_which_page_differs(tmp_path):
    def docs(*more):
        return CliRunner().invoke(main, ["docs", "--out", str(tmp_path), "--only", "gtopk", "--jobs", "1", *more])

    assert docs().exit_code == 0 and docs("--check").exit_code == 0
    page = tmp_path / "gtopk.md"
    page.write_text(page.read_text().replace("holds", "certified", 1))
    found = docs("--check")
    assert found.exit_code == 1 and "gtopk: differs" in found.output


def test_an_unknown_paper_is_told_with_the_nearest(tmp_path):
    found = CliRunner().invoke(main, ["docs", "--out", str(tmp_path / "x"), "--only", "mergcomp"])
    assert found.exit_code == 2 and "did you mean 'mergecomp'" in found.output and not (tmp_path / "x").exists()


def test_an_index_over_a_choice_is_refused(tmp_path):
    with pytest.raises(UsageError, match="index is over all pages"):
        pages.write_pages(tmp_path, only="gtopk", index=tmp_path / "README.md")


# --- the pages that are stored ------------------------------------------------------------------------------------------


def test_the_stored_pages_are_those_of_the_record():
    assert {p.stem for p in STORED.glob("*.md")} == set(PAPERS)
    for slug, module in PAPERS.items():
        ids = [c.id for c in collect(module)]
        assert anchors((STORED / f"{slug}.md").read_text()) == ids, f"{slug} is out of date: run make docs"
        if any(not c.not_checkable for c in collect(module)):
            assert list(json.loads((STORED / f"{slug}.json").read_text())["claims"]) == ids


def test_every_link_resolves():
    for file in (INDEX, *STORED.glob("*.md")):
        for target in re.findall(r"\]\(([^)\s]+)\)", file.read_text()):
            if target.startswith("https://"):
                continue
            name, _, place = target.partition("#")
            other = (file.parent / name).resolve() if name else file
            assert other.exists(), f"{file.name} links to {target}"
            if place:
                text = other.read_text()
                heads = {re.sub(r"[^\w -]", "", h).strip().lower().replace(" ", "-") for h in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}
                assert place in anchors(text) or place in heads, f"{file.name} links to {target}"


def test_the_index_has_every_row_of_the_list_and_every_refuted_claim():
    text = INDEX.read_text()
    rows = re.findall(r"^\| (\d+-\d+) \|", text, re.MULTILINE)
    assert len(rows) == len(set(rows)) == 42
    false = text.partition("## Published statements that are false")[2].partition("## Repaired")[0]
    told = re.findall(r"^- \[`([^`]+)`\]", false, re.MULTILINE)
    assert sorted(told) == sorted(c.id for c in claims().values() if c.expect == "fails")


def test_every_row_of_a_table_has_as_many_cells_as_its_head():
    for file in (INDEX, *STORED.glob("*.md")):
        width = 0
        for line in file.read_text().splitlines():
            cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
            assert not width or not cells or cells == width, f"{file.name}: {line[:80]}"
            width = cells


def test_the_stored_folder_stays_small():
    assert sum(f.stat().st_size for f in STORED.iterdir()) < 4e6
