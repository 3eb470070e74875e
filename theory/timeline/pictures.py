"""Pictures of collectives: transfers over time, and bandwidth against size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from verify_rates.theory.timeline.collectives import CollectiveTable, CollectiveTime

MOST_ROWS = 64  # senders in one picture; more would not be told apart
PLAIN, MARKED = "#9ecae1", "#5577bb"


def transfers_figure(found: CollectiveTime, path: str | Path | None = None) -> Any:
    """A row for every directed pair that is used, or for every sender where those are too many; the critical path is dark and outlined.

    A thin line is latency.
    """
    from matplotlib import pyplot as plt
    from matplotlib.figure import Figure

    pairs = sorted({(e.source, e.target) for e in found.events})
    apart = len(pairs) <= MOST_ROWS
    rows = {pair: i for i, pair in enumerate(pairs)} if apart else {pair: pair[0] for pair in pairs}
    names = [f"{a} to {b}" for a, b in pairs] if apart else [str(a) for a in range(max(rows.values()) + 1)]
    with plt.rc_context({"font.size": 8, "text.usetex": False}):
        figure = Figure(figsize=(7, 1.2 + 0.16 * min(len(names), MOST_ROWS)), layout="constrained")
        axes = figure.subplots()
        for i, e in enumerate(found.events):
            at, marked = rows[e.source, e.target], i in found.path
            edge: dict[str, Any] = {"edgecolor": "black", "linewidth": 1.2} if marked else {"edgecolor": "white", "linewidth": 0.5}
            axes.broken_barh([(e.start, e.end - e.start)], (at - 0.4, 0.8), facecolors=MARKED if marked else PLAIN, **edge)
            if e.arrives > e.end:
                axes.plot([e.end, e.arrives], [at, at], color="black" if marked else PLAIN, linewidth=1)
        if len(names) <= MOST_ROWS:
            axes.set_yticks(range(len(names)), names)
        axes.invert_yaxis()
        axes.set(xlabel="seconds (dark: critical path; a thin line is latency)", ylabel="transfer" if apart else "sender")
        axes.set_title(f"{found.kind}, n = {found.n}: {found.seconds:.4g} s, {found.latency_share:.0%} latency", fontsize=9)
    _write(figure, path, {"collective": found.kind, **found.inputs})
    return figure


def table_figure(table: CollectiveTable, path: str | Path | None = None) -> Any:
    """Bus bandwidth against bytes, both logarithmic, a line for every kind and n."""
    from matplotlib import pyplot as plt
    from matplotlib.figure import Figure

    lines: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for row in table.rows:
        if row["busbw"] is not None:
            lines.setdefault((row["kind"], row["n"]), []).append((row["bytes"], row["busbw"] / 1e9))
    with plt.rc_context({"font.size": 8, "text.usetex": False}):
        figure = Figure(figsize=(4.5, 3), layout="constrained")
        axes = figure.subplots()
        for (kind, n), points in lines.items():
            axes.loglog(*zip(*sorted(points), strict=True), marker="o", markersize=3, label=f"{kind}, n = {n}")
        axes.set(xlabel="bytes", ylabel="busbw (Gbit/s)")
        if lines:
            figure.legend(loc="outside right upper", fontsize=6, frameon=False)
    _write(figure, path, {"link": table.link, "rows": table.rows})
    return figure


def _write(figure: Any, path: str | Path | None, about: Any) -> None:
    if path is None:
        return
    note = "Subject" if Path(path).suffix.lower() == ".pdf" else "Description"
    figure.savefig(path, dpi=200, metadata={note: json.dumps(about)})
