"""``docs``: one page a paper, generated from the record and the results of its checks, with a figure and its data; and an index."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verify_rates.page_compare import difference, text_difference
from verify_rates.page_data import caption, data_of
from verify_rates.page_index import index_page
from verify_rates.page_text import paper_page
from verify_rates.solvers.method import UsageError, nearest
from verify_rates.theory.claims import collect
from verify_rates.verdicts import Result

BESIDE = {"exact_tables.md": "exact worst cases as tables", "planner.md": "the planner of staleness, local steps and compression"}


@dataclass(frozen=True)
class Page:
    """One page as it is now: its name, its text, and the data of its figure (None: it has none)."""

    name: str
    text: str
    data: dict[str, Any] | None = None


@dataclass(frozen=True)
class Written:
    """A page that was written, or compared.

    Attributes
    ----------
    name : of the page.
    files : what was written; empty after a comparison.
    difference : one sentence on how the stored page differs; "" where it does not, or was not compared.
    """

    name: str
    files: tuple[Path, ...]
    difference: str = ""


def page(slug: str, module: Any, results: Mapping[str, Result], suite: str = "quick") -> Page:
    """The page of one paper from the results of its claims; nothing is checked here, but the curve of the figure is computed."""
    about = list(collect(module))
    data = data_of(about, results, slug) if any(results[c.id].checks for c in about) else None
    return Page(slug, paper_page(slug, module, results, suite, caption(data, about) if data else None), data)


def write_pages(
    out: str | Path,
    *,
    only: str | Iterable[str] | None = None,
    index: str | Path | None = None,
    check: bool = False,
    suite: str = "quick",
    jobs: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[Written]:
    """Write a page for every paper, with its figure (PNG) and the figure's data (JSON), and the index.

    Parameters
    ----------
    out : folder of the pages; it is made where it does not exist.
    only : slugs of papers; by default all.
    index : file of the index over all pages; by default none is written.
    check : write nothing, but compare texts and data (not pixels) with those that lie there.
    suite : "quick" or "full": how much the claims are checked; kept results are taken.
    jobs : processes; by default one a processor.
    progress : called with the name of what is begun.

    Errors: UsageError for an unknown paper or suite, or a folder that cannot be written.

    >>> write_pages("nowhere", only="gtopkk")
    Traceback (most recent call last):
    verify_rates.solvers.method.UsageError: unknown paper 'gtopkk'; did you mean 'gtopk'?
    """
    from verify_rates.listing import _papers

    known = _papers()
    chosen = list(known) if only is None else [only] if isinstance(only, str) else list(only)
    for slug in chosen:
        if slug not in known:
            raise nearest(str(slug), known, "paper")
    folder = Path(out)
    if only is not None and index is not None:
        raise UsageError("the index is over all pages; leave out the choice of papers, or the index.")
    if not check:
        _folder(folder)
    results = _results([c.id for slug in chosen for c in collect(known[slug])], suite, jobs, progress)
    done = []
    for slug in chosen:
        if progress:
            progress(slug)
        made = page(slug, known[slug], results, suite)
        done.append(_compared(made, folder / f"{slug}.md") if check else _written(made, folder / f"{slug}.md"))
    if index is not None:
        at = Path(index)
        made = Page("index", index_text(known, results, folder, at))
        done.append(_compared(made, at) if check else _written(made, at))
    return done


def index_text(known: Mapping[str, Any], results: Mapping[str, Result], folder: Path, at: Path) -> str:
    """The text of an index that lies at a path, over the pages in a folder."""
    from verify_rates.listing import _row_order

    way = Path(os.path.relpath(folder, at.parent)).as_posix()
    rows = [(row, slug) for slug, module in known.items() for row in module.PAPER.rows or ("-",)]
    beside = [f"See also [{what}]({name})." for name, what in BESIDE.items() if (at.parent / name).exists()]
    return index_page(known, sorted(rows, key=lambda r: _row_order(r[0])), results, "" if way == "." else f"{way}/", beside)


def _results(ids: list[str], suite: str, jobs: int | None, progress: Callable[[str], None] | None) -> dict[str, Result]:
    """The results of these claims: kept ones from the store, the others checked now."""
    from verify_rates.pipeline import SUITES, check
    from verify_rates.store import Store, key
    from verify_rates.theory.claims import claims

    if suite not in SUITES:
        raise nearest(str(suite), SUITES, "suite")
    known, store = claims(), Store()
    kept = {i: store.get(key(known[i], suite=suite, seed=0), known[i]) for i in ids}
    found = {i: r for i, r in kept.items() if r is not None}
    if missing := [i for i in ids if i not in found]:
        if progress:
            progress(f"checking {len(missing)} claims")
        report = check(missing, suite=suite, jobs=jobs)
        if report.interrupted:
            raise KeyboardInterrupt
        if report.errors:
            raise RuntimeError(f"{report.errors[0]['claim']}: {report.errors[0]['message']}")
        found |= {r.claim.id: r for r in report.results}
    return found


def _folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {str(folder)!r}: {error.strerror or error}.") from None


def _dumps(data: Mapping[str, Any]) -> str:
    """One line a claim, one a line of the curve."""
    lines = [f"  {json.dumps(k)}: {json.dumps(v, allow_nan=False)}" for k, v in data["claims"].items()]
    return '{"claims": {\n' + ",\n".join(lines) + '\n },\n "curve": ' + json.dumps(data["curve"], allow_nan=False) + "\n}\n"


def _written(made: Page, path: Path) -> Written:
    from verify_rates.page_plots import draw

    files = [path]
    try:
        path.write_text(made.text, encoding="utf-8")
        if made.data is not None:
            files += [path.with_suffix(".json"), path.with_suffix(".png")]
            files[1].write_text(_dumps(made.data), encoding="utf-8")
            draw(made.data, files[2])
    except OSError as error:
        raise UsageError(f"cannot write {str(path)!r}: {error.strerror or error}.") from None
    return Written(made.name, tuple(files))


def _compared(made: Page, path: Path) -> Written:
    told = _text_difference(made, path) or _data_difference(made, path)
    return Written(made.name, (), told)


def _text_difference(made: Page, path: Path) -> str:
    try:
        return text_difference(made.text, path.read_text(encoding="utf-8"))
    except OSError as error:
        return f"{path.name} cannot be read ({error.strerror or error})"


def _data_difference(made: Page, path: Path) -> str:
    if made.data is None:
        return ""
    stored = path.with_suffix(".json")
    if not path.with_suffix(".png").exists():
        return f"{path.with_suffix('.png').name} is missing"
    try:
        return difference(json.loads(_dumps(made.data)), json.loads(stored.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        return f"{stored.name} cannot be read ({error})"
