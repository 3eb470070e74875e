"""The list of papers: every row is there, under its title and kind, and only rows with a reason are empty."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from verify_rates import listing
from verify_rates.listing import catalogue
from verify_rates.solvers.method import UsageError
from verify_rates.theory.claims import Paper, claims

INDEX = Path(__file__).resolve().parents[1].parent / "shared" / "papers" / "README.md"


@pytest.fixture(scope="module")
def printed():
    if not INDEX.exists():
        pytest.skip("the papers' facts are not beside this checkout")
    return {
        row: (slug, paper, kind)
        for row, slug, paper, kind in re.findall(r"\| (\d+-\d+) \| \[(\w+)\].*? \| (.*?) \| (.*?) \|", INDEX.read_text())
    }


@pytest.fixture(scope="module")
def rows():
    return catalogue("papers")


def test_rows_say_what_the_index_says(printed, rows):
    for row in rows:
        if row["row"] != "-":
            slug, paper, kind = printed[row["row"]]
            assert (row["name"], row["what"].split(" [")[0], row["kind"]) == (slug, paper, kind)


def test_every_row_of_the_index_is_listed(printed, rows):
    assert len(printed) == 42
    missing = set(printed) - {r["row"] for r in rows}
    assert not missing, {r: printed[r][0] for r in sorted(missing)}


def test_a_paper_without_claims_has_a_reason(rows):
    for row in rows:
        assert ("[nothing to verify:" in row["what"]) == (row["claims"] == 0), row["name"]
        assert row["methods"] or row["claims"] == 0


def test_a_file_without_its_paper_is_one_sentence(monkeypatch):
    monkeypatch.setattr(listing.importlib, "import_module", lambda name: SimpleNamespace(__path__=[]))
    with pytest.raises(UsageError, match="needs PAPER"):
        listing._papers()


@pytest.mark.parametrize("given", [{"title": ""}, {"kind": ""}])
def test_a_paper_needs_a_title_and_a_kind(given):
    with pytest.raises(UsageError, match="title and a kind"):
        Paper(**{"title": "x", "kind": "y", **given})


NUMBERED = re.compile(r"^\d+\. `(\w+\.\d+)` \(provenance: ((?:[^()]|\([^()]*\))*)\)", re.M)


def numbered():
    return [(slug, given) for f in sorted(INDEX.parent.glob("*.md")) for slug, given in NUMBERED.findall(f.read_text())]


def uncovered(printed, known):
    return [i for i, _ in printed if not any(k == i or k.startswith(f"{i}.") for k in known)]


@pytest.mark.skipif(not INDEX.exists(), reason="the papers' facts are not beside this checkout")
def test_every_numbered_claim_of_every_paper_is_covered():
    printed, known = numbered(), claims()
    assert len(printed) == 281
    assert not uncovered(printed, known)
    assert uncovered(printed, set(known) - {"cocoa.3"}) == ["cocoa.3"]


@pytest.mark.skipif(not INDEX.exists(), reason="the papers' facts are not beside this checkout")
def test_no_claim_is_given_a_better_provenance_than_its_file_gives():
    known = claims()
    assert not [i for i, given in numbered() if i in known and known[i].provenance not in given]
