"""The text of a paper's page, as Markdown."""

from __future__ import annotations

import importlib
import inspect
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from verify_rates import page_evidence as evidence
from verify_rates import page_words as words
from verify_rates.listing import _paper_methods
from verify_rates.page_methods import method_section
from verify_rates.page_words import prose
from verify_rates.report import SYMBOLS
from verify_rates.solvers.method import methods
from verify_rates.theory.claims import Claim, Paper, collect
from verify_rates.verdicts import Result, Verdict

Results = Mapping[str, Result]

_FROM = {"paper (secondary)": "paper, at second hand"}


def paper_page(slug: str, module: Any, results: Results, suite: str, picture: str | None) -> str:
    """The page of one paper.

    Parameters
    ----------
    slug, module : of the file of claims.
    results : the result of every claim in it, by id.
    suite : with which they were found.
    picture : what the figure shows; None where there is no figure.
    """
    about = list(collect(module))
    parts = [
        f"# {prose(module.PAPER.title)}",
        _head(module.PAPER, about, results, suite),
        f"![{slug}: measured values and bounds]({slug}.png)\n\n{picture} The numbers are in [{slug}.json]({slug}.json)." if picture else "",
        _letters(module),
        *_methods(slug, about),
        *_assumptions(about),
        _claims(about, results),
        _refuted(about, results),
        _bounds(about),
        _checks(about, results),
    ]
    return "\n\n".join(p.strip() for p in parts if p.strip()) + "\n"


def _head(paper: Paper, about: Sequence[Claim], results: Results, suite: str) -> str:
    rows = f"row{'s' if len(paper.rows) > 1 else ''} {' and '.join(paper.rows)} of the list of papers" if paper.rows else ""
    told = "; ".join(t for t in (cited(paper), prose(paper.kind), rows) if t)
    if paper.reason:
        return f"{told}.\n\nNothing is checked here: {prose(paper.reason)}."
    return f"{told}.\n\n**{len(about)} claims: {counts(about, results)}** (checked by the {suite} suite)."


def cited(paper: Paper) -> str:
    """Where a paper stands, as a link where that is an arXiv number."""
    found = re.fullmatch(r"arXiv (\d+\.\d+)", paper.where)
    return f"[arXiv:{found[1]}](https://arxiv.org/abs/{found[1]})" if found else prose(paper.where)


def counts(about: Iterable[Claim], results: Results) -> str:
    """How many claims have which verdict."""
    found = Counter(results[c.id].verdict for c in about)
    return ", ".join(f"{found[v]} {v.value}" for v in Verdict if found[v])


def _letters(module: Any) -> str:
    """What the claims' file says of the paper's letters, if anything."""
    doc = re.sub(r"\s+", " ", inspect.getdoc(module) or "")
    _, _, rest = doc.partition(". ") if "arXiv" in doc.split(". ")[0] or "(" in doc.split(". ")[0] else ("", "", "")
    return prose(rest.strip())


# --- methods, or why there is no step function ---------------------------------------------------------------------------


def calculators(about: Iterable[Claim]) -> dict[str, Any]:
    """The modules with the checks of these claims, by name."""
    names = sorted({c.check.partition(":")[0] for c in about if c.check})
    return {name: importlib.import_module(name) for name in names}


def _methods(slug: str, about: Sequence[Claim]) -> list[str]:
    known = methods()
    used = _paper_methods(slug, list(about))
    own = [known[name] for name in used if known[name].paper == slug]
    told = [method_section(m) for m in own]
    others = [f"`{name}` ([{known[name].paper}]({known[name].paper}.md))" for name in used if known[name].paper != slug]
    if others:
        told.append(f"The claims are{' also' if own else ''} about {', '.join(others)}, described there.")
    docs = [inspect.getdoc(module) or "" for module in calculators(about).values()]
    simulated = [d for d in docs if not used or "simulator" in d]
    if simulated:
        told.append("\n\n".join([_WITH if used else _WITHOUT, *(_model(d) for d in simulated)]))
    return [f"## {'Methods' if len(own) > 1 else 'Method'}", *told] if told else []


_WITHOUT = (
    "There is no step function here: what is described is a protocol, a schedule, a cost or a procedure, and no map from one iterate to the"
    " next. The claims are checked on models written for it:"
)
_WITH = "Part of it is no step function and is checked on a model written for it:"


def _model(doc: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in prose(re.sub(r"(?<!\n)\n(?!\n)", " ", doc)).splitlines())


# --- claims ---------------------------------------------------------------------------------------------------------------


def anchor(claim: Claim) -> str:
    """The place of a claim on its page; it stands there once."""
    return f'<a id="{claim.id}"></a>`{claim.id}`'


def link(claim: Claim, page: str = "") -> str:
    """A link to a claim's place."""
    return f"[`{claim.id}`]({page}#{claim.id})"


def verdict(result: Result) -> str:
    """The verdict with its sign; one that the record does not expect says so."""
    mark = SYMBOLS[result.verdict][0]
    name = f"**{result.verdict.value}**" if result.verdict is Verdict.REFUTED else result.verdict.value
    return f"{mark} {name}{'' if result.as_expected else ' (NOT as the record says)'}"


def origin(c: Claim) -> str:
    """Who says it: the kind of source, and the source where that says more."""
    kind = _FROM.get(c.provenance, c.provenance)
    return prose(c.source) if c.provenance in re.findall(r"\w+", c.source) else f"{kind}: {prose(c.source)}"


def _claims(about: Sequence[Claim], results: Results) -> str:
    if not about:
        return ""
    lines = ["## Claims", "", "| claim | statement | from | verdict | measured/bound |", "| --- | --- | --- | --- | --- |"]
    for c in about:
        r = results[c.id]
        why = prose(c.not_checkable) if c.not_checkable else evidence.basis(r)
        lines.append(f"| {anchor(c)} | {prose(c.statement)} | {origin(c)} | {verdict(r)}: {why} | {evidence.closeness(r)} |")
    return "\n".join([*lines, "", _LEGEND])


_LEGEND = (
    "*Certified*: proved in fractions at every checked parameter. *Holds*: the exact value stays within the bound there. *Consistent*: no"
    " run and no search beat the bound. *Refuted*: a concrete instance does. *Measured/bound* is the largest measured value over the bound"
    " (for lower bounds the bound over the smallest); it is left empty where nothing is compared with a positive bound."
)


def repair(claim: Claim, known: Mapping[str, Claim]) -> Claim | None:
    """The repaired statement of a refuted claim, where the record has one.

    That of its own id, or of the id it varies; else a derived bound on the same measure at the same steps under the same conditions.
    """
    stem = claim.id
    while "." in stem:
        found = known.get(f"{stem}.repaired")
        if found is not None and found.id != claim.id:
            return found
        stem = stem.rpartition(".")[0]
    own = [c for c in known.values() if c.provenance == "derived" and c.expect == "holds" and c.bound and claim.bound]
    return next((c for c in own if _about(c) == _about(claim)), None)


def _about(c: Claim) -> tuple[Any, ...]:
    return c.method, c.measure, c.take, dict(c.lets), c.when, c.setting


_LEANS = re.compile(r"(The same|Its|It|That|They|These|So|Those)\b")


def context(claim: Claim, known: Mapping[str, Claim]) -> str:
    """For a statement that leans on another one, that one in brackets."""
    base = known.get(claim.id.rpartition(".")[0])
    if base is None or not _LEANS.match(claim.statement):
        return ""
    return f" \\[{base.id.partition('.')[2]}: {prose(base.statement)}\\]"


def _refuted(about: Sequence[Claim], results: Results) -> str:
    known = {c.id: c for c in about}
    told = [_refutation(c, results, known) for c in about if results[c.id].verdict is Verdict.REFUTED]
    return "\n\n".join(["## Refuted", *told]) if told else ""


def _refutation(c: Claim, results: Results, known: Mapping[str, Claim]) -> str:
    lines = [
        f"### {prose(c.id)}",
        f"> {prose(c.statement)}{context(c, known)} ({origin(c)})",
        f"**What is wrong.** {evidence.witness(results[c.id])}",
    ]
    mended = repair(c, known)
    if mended is not None:
        lines.append(f"**Repaired** ({link(mended)}, {results[mended.id].verdict.value}): {prose(mended.statement)}")
    write, run = f"`verify-rates check {c.id} --witness-dir .`", f"`verify-rates replay {c.id}.json`"
    lines.append(f"**Replay.** {write} writes the witness, {run} runs it again.")
    return "\n\n".join(lines)


def _assumptions(about: Sequence[Claim]) -> list[str]:
    by_text: dict[str, list[Claim]] = {}
    for c in about:
        if c.bound:
            by_text.setdefault(evidence.assumptions(c.setting), []).append(c)
    if not by_text:
        return []
    lines = [f"- {', '.join(map(link, group))}: {text}." for text, group in by_text.items()]
    return ["## Assumptions", "\n".join(lines), *(["The other statements name their own."] if any(not c.bound for c in about) else [])]


def _bounds(about: Sequence[Claim]) -> str:
    stated = [c for c in about if c.bound]
    if not stated:
        return ""
    told = []
    for c in stated:
        under = f", where {' and '.join(prose(w) for w in c.when)}" if c.when else ""
        told.append(f"{link(c)}{under}:\n\n```math\n\\begin{{gathered}}\n{words.formula(c)}\n\\end{{gathered}}\n```")
    meanings = [f"${tex}$ {prose(meaning)}" for tex, meaning in words.letters_used(stated)]
    return "\n\n".join(["## Bounds", *told, f"Letters: {'; '.join(meanings)}."])


def _checks(about: Sequence[Claim], results: Results) -> str:
    rows = [(c, words.cell(evidence.method_of_check(c.check), capital=True)) for c in about if c.check and c.id in results]
    if not rows:
        return ""
    lines = ["## How the claims are checked", "", "| claim | what is computed |", "| --- | --- |"]
    return "\n".join([*lines, *(f"| {link(c)} | {how} |" for c, how in rows)])
