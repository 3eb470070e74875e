"""The figure of a page, drawn from its data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from verify_rates.page_data import Data
from verify_rates.theory.evidence import IDENTITY_RTOL

ROW, HEAD, LEAST_HEIGHT = 0.17, 0.85, 2.4  # inches
NARROW, WIDE = 5.4, 7.4  # inches
RANGE = (1e-3, 1e2)  # ratios beyond are drawn at the end of the axis
DPI = 130
MANY = 16  # a range with such a ratio is drawn on a logarithmic axis
LOOK: dict[str, tuple[str, str, str]] = {  # name, marker, colour of figure_plots
    "worst case": ("exact worst case", "D", "BLUE"),
    "exact": ("exact value", "s", "BLACK"),
    "moments": ("exact expectation", "P", "TEAL"),
    "computed": ("computed", "v", "CYAN"),
    "runs": ("runs", "o", "ORANGE"),
    "search": ("search", "x", "MAGENTA"),
    "played": ("played", "s", "BLACK"),
}
FOR_CURVES = {"exact expectation": "moments", "exact value": "exact"}


def draw(data: Data, path: Any) -> None:
    """Draw the figure into a PNG file; the same data give the same bytes."""
    from matplotlib.figure import Figure

    from verify_rates import figure_plots as plots

    curve, rows = data["curve"], len(data["claims"])
    height = max(LEAST_HEIGHT if curve else 0.0, HEAD + ROW * rows)
    with plots.context(plots.style("neurips")):
        figure = Figure(figsize=(WIDE if curve else NARROW, height), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1, 1.15)) if curve else (None, figure.subplots())
        if curve:
            _draw_curve(left, curve, plots)
        seen = _draw_ratios(right, data["claims"], plots)
        if seen:
            figure.legend(seen.values(), seen.keys(), loc="outside upper right", ncols=len(seen), fontsize="small", handletextpad=0.1)
        figure.savefig(path, dpi=DPI, metadata={"Software": None}, pil_kwargs={"optimize": True})


def _draw_curve(axes: Any, curve: Data, plots: Any) -> None:
    from matplotlib.ticker import NullFormatter

    colours = (plots.BLUE, plots.ORANGE, plots.TEAL, plots.MAGENTA)
    single, line_is = len(curve["lines"]) == 1, "formula" if curve.get("says") else "bound"
    for line, colour in zip(curve["lines"], colours, strict=False):
        axes.plot(line["x"], line["bound"], "-", color=plots.BLACK if single else colour, label=line_is if single else line["label"])
        for kind, values in line["measured"].items():
            label, mark, own = LOOK[FOR_CURVES.get(kind, kind)]
            y = [v if isinstance(v, float) else math.nan for v in values]
            look = {"color": getattr(plots, own), "label": label} if single else {"color": colour}
            axes.plot(line["x"], y, mark, markersize=4, **look)
    shown = [v for line in curve["lines"] for values in (line["bound"], *line["measured"].values()) for v in values if isinstance(v, float)]
    if shown and min(shown) > 0 and max(shown) > MANY * min(shown):
        axes.set_yscale("log")
    xs = [x for line in curve["lines"] for x in line["x"]]
    if min(xs) > 0 and max(xs) > MANY * min(xs):
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
    elif all(x == int(x) for x in xs):
        axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(xlabel=curve["over"], ylabel=curve["of"], title=curve["claim"])
    axes.legend(fontsize="small")


def _draw_ratios(axes: Any, claims: Mapping[str, Data], plots: Any) -> dict[str, Any]:
    """One row a claim; the marks by the names of the evidence."""
    seen: dict[str, Any] = {}
    for y, claim in enumerate(claims.values()):
        points = [p for p in claim["checks"] if p["ratio"] is not None and not _identity(p)]
        if not points:
            colour = plots.RED if claim["verdict"] == "refuted" else "#777777"
            axes.text(RANGE[0], y, f"  {_instead(claim)}", va="center", fontsize="small", color=colour)
        for p in points:
            label, mark, own = LOOK[p["by"]]
            x = min(max(float(p["ratio"]), RANGE[0]), RANGE[1])
            look = {"color": plots.RED, "zorder": 3} if p["refutes"] else {"color": getattr(plots, own)}
            (drawn,) = axes.plot(x, y, mark, markersize=3.4, markeredgewidth=0.9, alpha=0.85, clip_on=False, **look)
            if not p["refutes"]:
                seen.setdefault(label, drawn)
    axes.set(xscale="log", xlim=RANGE, ylim=(len(claims) - 0.4, -0.6), xlabel="measured / bound")
    if seen or any(p["ratio"] is not None for claim in claims.values() for p in claim["checks"]):
        axes.axvline(1.0, color=plots.BLACK, linewidth=0.8, zorder=0)
    else:
        axes.set(xticks=(), xlabel="")
        axes.minorticks_off()
    axes.set_yticks(range(len(claims)), list(claims), fontsize="small")
    axes.grid(False, axis="y")
    return seen


def _identity(p: Data) -> bool:
    return p["bound"] == IDENTITY_RTOL


def _instead(claim: Data) -> str:
    """What is said of a claim without a ratio."""
    checks, verdict = claim["checks"], claim["verdict"]
    if not checks:
        return verdict
    if any(p["refutes"] for p in checks):
        return "refuted: no violation is allowed"
    if all(_identity(p) and abs(p["measured"]) <= IDENTITY_RTOL for p in checks):
        return f"{verdict}: equal to rounding"
    cases = sum(p.get("cases", 0) for p in checks)
    return f"{verdict}: no violation in {f'{cases} cases' if cases > 1 else _many_checks(len(checks))}"


def _many_checks(count: int) -> str:
    return f"{count} check{'' if count == 1 else 's'}"
