"""The report of a run: a table for people, JSON for machines, and one exit code."""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verify_rates.solvers.method import UsageError
from verify_rates.store import versions, write_atomically
from verify_rates.verdicts import SCHEMA_VERSION, Result, Verdict, _plain

if TYPE_CHECKING:
    from rich.console import RenderableType

SYMBOLS = {
    Verdict.CERTIFIED: ("✔✔", "bold green"),
    Verdict.HOLDS: ("✔", "green"),
    Verdict.CONSISTENT: ("≈", "cyan"),
    Verdict.REFUTED: ("✘", "red"),
    Verdict.INCONCLUSIVE: ("?", "yellow"),
    Verdict.NOT_CHECKABLE: ("-", "dim"),
}
EXIT_MEANING = {
    0: "every verdict is what its claim expects",
    1: "some verdict is not what its claim expects (with --strict also: something is inconclusive, or a warning was given)",
    2: "the input is wrong; the sentence on stderr says what is allowed",
    3: "internal error; the sentence on stderr says where the traceback lies",
    4: "something is inconclusive",
    5: "nothing was selected",
    130: "interrupted; what was finished is kept and reported",
}


@dataclass(frozen=True)
class Report:
    """What a run of checks found.

    Attributes
    ----------
    results : one :class:`~verify_rates.verdicts.Result` a claim, in the order in which they are shown.
    settings : what was asked for: suite, seed, and whatever else the pipeline notes (plain values).
    interrupted : the run was stopped before every claim was checked.
    errors : internal errors, each ``{"claim": id, "message": one sentence, "traceback": text or path}``.
    warnings : sentences for the user that are no errors.
    strict : inconclusive verdicts and warnings count as failures (not-checkable claims never do).

    >>> Report([], {"suite": "quick", "seed": 0}).exit_code
    5
    """

    results: Sequence[Result]
    settings: Mapping[str, Any] = field(default_factory=dict)
    interrupted: bool = False
    errors: Sequence[Mapping[str, str]] = ()
    warnings: Sequence[str] = ()
    strict: bool = False

    @property
    def counts(self) -> dict[str, int]:
        """Claims by verdict (every verdict is named), how many are not as expected, and all of them."""
        found = Counter(r.verdict for r in self.results)
        return {v.value: found[v] for v in Verdict} | {
            "unexpected": sum(not r.as_expected for r in self.results),
            "total": len(self.results),
        }

    @property
    def exit_code(self) -> int:
        """Of what is true the first: 130 interrupted, 3 internal error, 5 nothing selected, 1 not as expected, 4 inconclusive, 0."""
        unclear = any(r.verdict is Verdict.INCONCLUSIVE for r in self.results)
        unexpected = any(not r.as_expected for r in self.results) or (self.strict and (unclear or bool(self.warnings)))
        answers = (
            (self.interrupted, 130),
            (bool(self.errors), 3),
            (not self.results, 5),
            (unexpected, 1),
            (unclear, 4),
        )
        return next((code for true, code in answers if true), 0)

    def __getitem__(self, claim_id: str) -> Result:
        """The result of the claim with this id."""
        for r in self.results:
            if r.claim.id == claim_id:
                return r
        raise KeyError(claim_id)

    def __iter__(self) -> Any:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def to_json(self) -> dict[str, Any]:
        """The report as JSON data, as :func:`schema` describes it."""
        return {
            "schema_version": SCHEMA_VERSION,
            "versions": dict(versions()),
            "suite": self.settings.get("suite", "quick"),
            "seed": self.settings.get("seed", 0),
            "settings": _plain(dict(self.settings)),
            "strict": self.strict,
            "interrupted": self.interrupted,
            "errors": [{k: str(v) for k, v in e.items()} for e in self.errors],
            "warnings": [str(w) for w in self.warnings],
            "counts": self.counts,
            "exit_code": self.exit_code,
            "claims": [r.to_json() for r in self.results],
        }

    def dumps(self) -> str:
        """The report as JSON text, on several lines, ending with a newline; the same text for the same report."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def save(self, path: str | Path) -> Path:
        """Write the JSON to a file; UsageError where the folder does not exist or cannot be written."""
        return save_text(path, self.dumps())

    def summary(self) -> str:
        """One sentence: how many claims, and what they came to."""
        counts = self.counts
        parts = [f"{counts[v.value]} {v.value}" for v in Verdict if counts[v.value]]
        text = f"{counts['total']} claim{'s' if counts['total'] != 1 else ''}: {', '.join(parts) or 'nothing was selected'}"
        settled = self.results and not (counts["unexpected"] or counts[Verdict.INCONCLUSIVE.value] or self.interrupted)
        text += "; all as expected" if settled else ""
        text += f"; {counts['unexpected']} NOT as expected" if counts["unexpected"] else ""
        return text + ("; interrupted" if self.interrupted else "") + "."

    def table(self) -> RenderableType:
        """The results as a rich table; what deserves a sentence is told by :meth:`remarks`."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for name, options in _COLUMNS.items():
            table.add_column(name, **options)
        for r in self.results:
            mark, style = SYMBOLS[r.verdict]
            wrong = "" if r.as_expected else "  NOT AS EXPECTED"
            table.add_row(Text(f"{mark} {shown(r)}{wrong}", style=style if r.as_expected else "bold red"), *map(Text, cells(r)))
        return table

    def remarks(self) -> list[str]:
        """A sentence for every claim that is not as expected or inconclusive, then the warnings and errors."""
        told = [r for r in self.results if not r.as_expected or r.verdict is Verdict.INCONCLUSIVE]
        lines = [f"{r.claim.id}: {r.verdict.value}; {r.message or r.verdict.sentence}" for r in told]
        lines += [f"warning: {w}" for w in self.warnings]
        return lines + [f"internal error in {e.get('claim', 'the run')}: {e.get('message', '')}" for e in self.errors]

    def __str__(self) -> str:
        """The table as plain text, as wide as it needs to be."""
        from rich.console import Console

        console = Console(width=160, no_color=True, highlight=False)
        with console.capture() as capture:
            console.print(self.table())
        text = "\n".join(line.rstrip() for line in capture.get().splitlines())
        return "\n".join([text, *self.remarks(), self.summary()])

    def _repr_html_(self) -> str:
        rows = []
        for r in self.results:
            mark, _ = SYMBOLS[r.verdict]
            colour = HTML_COLOURS[r.verdict] if r.as_expected else "#b00020"
            tip = html.escape(f"{r.claim.statement} {r.message}", quote=True)
            entries = "".join(f"<td style='text-align:left'>{html.escape(c)}</td>" for c in cells(r))
            wrong = "" if r.as_expected else " <b>not as expected</b>"
            rows.append(
                f"<tr title='{tip}'><td style='text-align:left;color:{colour}'>{mark} {html.escape(shown(r))}{wrong}</td>{entries}</tr>"
            )
        head = "".join(f"<th style='text-align:left'>{html.escape(name)}</th>" for name in _COLUMNS)
        notes = "".join(f"<p>{html.escape(line)}</p>" for line in (*self.remarks(), self.summary()))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{notes}"


_COLUMNS: dict[str, dict[str, Any]] = {
    "verdict": {"no_wrap": True},
    "claim": {"no_wrap": True},
    "method": {"no_wrap": True},
    "measured/bound": {"justify": "right", "no_wrap": True},
    "checked by": {},
    "source": {},
    "time": {"justify": "right", "no_wrap": True},
}
HTML_COLOURS = {
    Verdict.CERTIFIED: "#00600f",
    Verdict.HOLDS: "#2e7d32",
    Verdict.CONSISTENT: "#00838f",
    Verdict.REFUTED: "#c62828",
    Verdict.INCONCLUSIVE: "#9a6700",
    Verdict.NOT_CHECKABLE: "#666666",
}


def shown(r: Result) -> str:
    """The verdict as text; a refutation that the claim expects says so."""
    return f"{r.verdict.value} (expected)" if r.claim.expect == "fails" and r.verdict is Verdict.REFUTED else r.verdict.value


def cells(r: Result) -> list[str]:
    """The table's further columns for one result, as text."""
    return [r.claim.id, r.claim.method or "-", tightness(r), checked_by(r), source(r), "cached" if r.cached else f"{r.seconds:.1f} s"]


def tightness(r: Result) -> str:
    """Worst measured value over the bound, with a star where the claim says that its bound is exact."""
    if r.tightness is None:
        return "-"
    return f"{r.tightness:.7g}{' *' if r.claim.tight else ''}"


def checked_by(r: Result) -> str:
    """The kinds of checks with their numbers; those whose status is no evidence are counted apart."""
    good = Counter(c.kind for c in r.checks if c.status == "ok")
    idle = sum(c.status != "ok" for c in r.checks)
    parts = [f"{kind} x{count}" for kind, count in good.items()] + ([f"{idle} without evidence"] if idle else [])
    return ", ".join(parts) or "-"


def source(r: Result) -> str:
    """Where the claim stands; what was recalled or derived is never shown as the paper's theorem."""
    c = r.claim
    return c.source if c.provenance in ("paper", c.source) else f"{c.provenance}: {c.source}"


@lru_cache(maxsize=1)
def schema() -> dict[str, Any]:
    """The published JSON Schema of :meth:`Report.to_json`."""
    return json.loads(resources.files("verify_rates").joinpath("schema.json").read_text("utf-8"))


def save_text(path: str | Path, text: str) -> Path:
    """Write a file the user named; UsageError where its folder does not exist or it cannot be written."""
    path = Path(path)
    if not path.parent.is_dir():
        raise UsageError(f"cannot write {str(path)!r}: the folder {str(path.parent)!r} does not exist.")
    if path.is_dir():
        raise UsageError(f"cannot write {str(path)!r}: it is a folder; give the name of a file.")
    try:
        write_atomically(path, text)
    except OSError as e:
        raise UsageError(f"cannot write {str(path)!r}: {e.strerror or e}.") from None
    return path
