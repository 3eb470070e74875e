"""The index over all pages: what is false, what is repaired, and every paper, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from verify_rates import page_evidence as evidence
from verify_rates.listing import _paper_methods
from verify_rates.page_text import Results, context, counts, link, origin
from verify_rates.page_words import prose
from verify_rates.theory.claims import Claim, collect
from verify_rates.verdicts import Verdict

_QUOTED = ("paper", "paper (secondary)", "code", "recalled")


def index_page(papers: Mapping[str, Any], rows: Sequence[tuple[str, str]], results: Results, folder: str, beside: Sequence[str]) -> str:
    """The index over all pages.

    Parameters
    ----------
    papers : the modules of claims by slug.
    rows : ``(row of the list, slug)`` in the order in which they are shown; a paper may have several, what is not on the list has "-".
    results : of all claims.
    folder : path from the index to the pages.
    beside : lines about further documents.
    """
    about = {slug: list(collect(module)) for slug, module in papers.items()}
    every = [c for claims in about.values() for c in claims]
    home = {c.id: f"{folder}{slug}.md" for slug, claims in about.items() for c in claims}
    listed = sum(row != "-" for row, _ in rows)
    return (
        "\n\n".join(
            [
                "# The papers, checked",
                f"{listed} rows of the list of papers, {len(papers)} pages, {len(every)} claims: {counts(every, results)}. A page says what"
                " the method is, what is claimed of it and by whom, what was found, and on what that rests. It is made from the record of"
                " claims and from the results of the checks; nothing on it is written by hand.",
                "[Published statements that are false](#published-statements-that-are-false), [repaired statements](#repaired-statements),"
                " [all papers](#all-papers)." + "".join(f" {line}" for line in beside),
                _false(every, results, home),
                _mended(every, results, home),
                _rows(papers, rows, about, results, folder),
            ]
        )
        + "\n"
    )


def _false(every: Sequence[Claim], results: Results, home: Mapping[str, str]) -> str:
    refuted = [c for c in every if results[c.id].verdict is Verdict.REFUTED]
    quoted = [c for c in refuted if c.provenance in _QUOTED]
    own = [c for c in refuted if c.provenance not in _QUOTED]
    whose = "Of papers (as printed, or as described elsewhere), of released code, or recalled:"
    lines = ["## Published statements that are false", "", whose, ""]
    known = {c.id: c for c in every}
    lines += [_headline(c, results, home, known) for c in quoted]
    lines += ["", "Readings, derivations and questions of our own that turned out false:", ""]
    return "\n".join([*lines, *(_headline(c, results, home, known) for c in own)])


def _headline(c: Claim, results: Results, home: Mapping[str, str], known: Mapping[str, Claim]) -> str:
    said = f"{prose(c.statement)}{context(c, known)}"
    return f"- {link(c, home[c.id])} ({origin(c)}): *{said}* **But:** {evidence.witness(results[c.id])}"


def _mended(every: Sequence[Claim], results: Results, home: Mapping[str, str]) -> str:
    mended = [c for c in every if c.id.endswith(".repaired")]
    lines = ["## Repaired statements", "", "Derived here and checked like any other claim:", ""]
    return "\n".join([*lines, *(f"- {link(c, home[c.id])} ({results[c.id].verdict.value}): {prose(c.statement)}" for c in mended)])


def _rows(
    papers: Mapping[str, Any], rows: Sequence[tuple[str, str]], about: Mapping[str, list[Claim]], results: Results, folder: str
) -> str:
    lines = ["## All papers", "", "| row | paper | methods | claims | verdicts |", "| --- | --- | --- | --- | --- |"]
    for row, slug in rows:
        paper = papers[slug].PAPER
        named = ", ".join(f"`{m}`" for m in _paper_methods(slug, about[slug]))
        found = counts(about[slug], results) if about[slug] else prose(f"nothing to verify: {paper.reason}")
        lines.append(f"| {row} | [{prose(paper.title)}]({folder}{slug}.md) | {named} | {len(about[slug])} | {found} |")
    return "\n".join(lines)
