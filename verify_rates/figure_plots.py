"""Figures from their data: every ``fig_*`` is a pure function of a :class:`~verify_rates.figure_data.Frame` and a venue's style."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from tueplots import bundles
from tueplots.constants.color import palettes

from verify_rates.figure_data import Frame
from verify_rates.solvers.method import nearest

# Paul Tol's vibrant colours, which people with colour vision deficiencies tell apart.
BLUE, CYAN, TEAL, ORANGE, RED, MAGENTA, GREY = (f"#{c}" for c in palettes.paultol_vibrant)
BLACK = "#222222"
LIGHT = "#dddddd"
RING: dict[str, Any] = {"marker": "o", "markersize": 6, "markeredgewidth": 0.7, "linestyle": ""}
NARROW = 4.0  # inches; a legend has fewer columns below

# What every figure shares beside the venue's sizes.  The fonts ship with matplotlib, so that a figure is the same everywhere; LaTeX is
# never run; Type 3 fonts, which venues refuse, are not written.
_HOUSE = {
    "text.usetex": False,
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "pdf.fonttype": 42,
    "svg.hashsalt": "verify-rates",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LIGHT,
    "grid.linewidth": 0.4,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
}


def venues() -> dict[str, str]:
    """Venues by name, each with the name of the latest bundle of tueplots for it.

    >>> "neurips" in venues() and "icml" in venues()
    True
    """
    found = (re.fullmatch(r"([a-z]+)(\d{4})", name) for name in sorted(dir(bundles)))
    return {m[1]: m[0] for m in found if m}


def style(venue: str = "neurips", wide: bool = False, height: float = 0.62) -> dict[str, Any]:
    """The settings of a venue's column (``wide``: of the page where the venue has two columns); ``height`` is a share of the width.

    Errors: UsageError for an unknown venue, with the nearest known one.

    >>> style("icml")["figure.figsize"][0], style("icml", wide=True)["figure.figsize"][0]
    (3.25, 6.75)
    """
    known = venues()
    if venue not in known:
        raise nearest(venue, known, "venue")
    bundle = getattr(bundles, known[venue])
    options = inspect.signature(bundle).parameters
    columns = {"column": "full" if wide else "half"} if "column" in options else {}
    settings = bundle(**columns, **({"usetex": False} if "usetex" in options else {}))
    width = settings["figure.figsize"][0]
    return {**settings, **_HOUSE, "figure.figsize": (width, width * height), "figure.constrained_layout.use": True}


def context(settings: Mapping[str, Any]) -> Any:
    """The style alone: what the user has set before plays no part, and nothing is left behind."""
    everything: dict[Any, Any] = {**mpl.rcParamsDefault, "backend": mpl.rcParams["backend"]}
    return mpl.rc_context(everything | dict(settings))


def _label_ends(axes: Any, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Names beside the last points ``(x, y, text, colour)``, pushed apart where they would overlap; the last thing to be drawn."""
    size = mpl.rcParams["legend.fontsize"]
    notes = [
        axes.annotate(text, (1.015, 0.5), xycoords="axes fraction", color=colour, fontsize=size, va="center", annotation_clip=False)
        for *_, text, colour in ends
    ]
    axes.figure.draw_without_rendering()  # settles the layout, of which the places are a part
    line = 1.2 * size / 72 * axes.figure.dpi / axes.get_window_extent().height
    places = [axes.transAxes.inverted().transform(axes.transData.transform((x, y)))[1] for x, y, *_ in ends]
    order = np.argsort(places)
    for below, above in itertools.pairwise(order):
        places[above] = max(places[above], places[below] + line)
    for note, place in zip(notes, places, strict=True):
        note.set_position((1.015, place))
        note.xy = (1.015, place)


# --- bound, worst case and runs of error feedback ---------------------------------------------------------------------


def fig_error_feedback(frame: Frame, settings: Mapping[str, Any]) -> Figure:
    """Bound (line), exact worst case (dots), worst instance run (rings) and runs on real data, against the number of steps."""
    c, p = frame.columns, frame.parameters
    with context(settings):
        figure = Figure(layout="constrained")
        axes = figure.subplots()
        axes.set_yscale("log")
        ends = []
        for k, colour in zip(range(len(p["kept"])), (BLUE, ORANGE, TEAL, MAGENTA), strict=False):
            axes.plot(c["steps"], c["bound"][k], color=colour, linewidth=1.6)
            axes.plot(c["solved"], c["upper"][k], "o", color=colour, markersize=3)
            axes.plot(c["solved"], c["replayed"][k], color=colour, markerfacecolor="none", **RING)
            axes.plot(c["steps"], c["topk"][k], "--", color=colour)
            axes.plot(c["steps"], c["randk"][k], ":", color=colour)
            axes.fill_between(c["steps"], c["randk_low"][k], c["randk_high"][k], color=colour, alpha=0.2, linewidth=0)
            number = p["kept"][k]
            named = {"bound": rf"bound, $\delta={p['letters'][k]['delta']:.2g}$", "topk": f"top-{number}", "randk": f"rand-{number}"}
            ends += [(c["steps"][-1], c[name][k][-1], text, colour) for name, text in named.items()]
        axes.set(xlabel="steps $N$", ylabel=r"Lyapunov function $V_N/V_0$", xlim=(0, c["steps"][-1]))
        axes.set_ylim(top=1.4)
        marks = [
            Line2D([], [], color=BLACK, linewidth=1.6, label="published bound"),
            Line2D([], [], color=BLACK, marker="o", markersize=3, linestyle="", label="exact worst case"),
            Line2D([], [], color=BLACK, markerfacecolor="none", label="its instance, run", **RING),
            Line2D([], [], color=BLACK, linestyle="--", label="run on real data, top-$k$"),
            Line2D([], [], color=BLACK, linestyle=":", label="run on real data, rand-$k$"),
        ]
        figure.legend(handles=marks, loc="outside upper center", ncols=2 if figure.get_size_inches()[0] < NARROW else 3)
        _label_ends(axes, ends)
    return figure


# --- time per iteration -------------------------------------------------------------------------------------------------


def fig_time_per_step(frame: Frame, settings: Mapping[str, Any]) -> Figure:
    """Seconds per step against latency (left) and bandwidth (right); dots are event simulations."""
    c, p = frame.columns, frame.parameters
    looks = ((BLACK, "-"), (CYAN, "--"), (MAGENTA, "-."), (ORANGE, "--"), (BLUE, "-"))
    titles = {"latency": f"at {_si(p['bandwidth'])}bit/s", "bandwidth": f"at a latency of {_si(p['latency'])}s"}
    with context(settings):
        figure = Figure(layout="constrained")
        for axes, (axis, unit) in zip(figure.subplots(1, 2, sharey=True), (("latency", "s"), ("bandwidth", "bit/s")), strict=True):
            for k, (entry, (colour, dash)) in enumerate(zip(p["methods"], looks, strict=True)):
                axes.plot(c[axis], c[f"by_{axis}"][k], dash, color=colour, label=entry["label"])
                axes.plot(c[f"simulated_{axis}"], c[f"simulated_by_{axis}"][k], "o", color=colour, markersize=2.2)
            axes.axhline(p["compute"], color=GREY, linewidth=0.8, zorder=0)
            axes.set(xscale="log", yscale="log", xlabel=f"{axis} ({unit})", title=titles[axis], xlim=(c[axis][0], c[axis][-1]))
            axes.annotate(
                "compute alone", (0.98, p["compute"]), xycoords=("axes fraction", "data"), xytext=(0, -2), textcoords="offset points",
                color="#777777", fontsize=mpl.rcParams["legend.fontsize"], ha="right", va="top",
            )  # fmt: skip
        figure.axes[0].set_ylabel("time per step (s)")
        figure.axes[0].set_ylim(bottom=0.35 * p["compute"])
        handles, _ = figure.axes[0].get_legend_handles_labels()
        handles.append(Line2D([], [], color=BLACK, marker="o", markersize=2.2, linestyle="", label="event simulation"))
        figure.legend(handles=handles, loc="outside upper center", ncols=3)
        figure.draw_without_rendering()  # makes the ticks, which read the settings when they are made
    return figure


def _si(value: float) -> str:
    """A number with an SI prefix, as ``100 m`` or ``1 G``."""
    for power, prefix in ((9, "G"), (6, "M"), (3, "k"), (0, ""), (-3, "m"), (-6, "\N{GREEK SMALL LETTER MU}")):
        if value >= 10.0**power:
            return f"{value / 10.0**power:g} {prefix}"
    return f"{value:g} "


# --- time to accuracy ---------------------------------------------------------------------------------------------------


def fig_time_to_accuracy(frame: Frame, settings: Mapping[str, Any]) -> Figure:
    """Seconds to accuracy in colour over delta and tau, relative to the optimum, which is marked with a star."""
    c, p = frame.columns, frame.parameters
    tau, delta, seconds = c["tau"], c["delta"], c["seconds"]
    best = np.nanmin(np.where(np.isfinite(seconds), seconds, np.nan))
    at = (c["optimum"][1], c["optimum"][0])
    small = settings["legend.fontsize"]
    with context({**settings, "axes.grid": False}):
        figure = Figure(layout="constrained")
        axes = figure.subplots()
        levels = np.array([1, 1.1, 1.25, 1.5, 2, 3, 5, 10, 30, 100, 1000])
        norm = mpl.colors.BoundaryNorm(levels, 256, extend="max")
        shown = axes.pcolormesh(delta, tau, seconds / best, norm=norm, cmap="viridis_r", shading="nearest", rasterized=True)
        hidden = c["seconds_per_step"] <= p["compute"] * (1 + 1e-9)
        _outline(axes, delta, tau, hidden)
        if hidden.any():
            axes.annotate("hidden\nbehind\ncompute", (0.025, 0.97), xycoords="axes fraction", color="white", va="top", fontsize=small)
        axes.plot(
            1.0, 0.0, marker="s", markersize=4, color="white", markeredgecolor=BLACK, markeredgewidth=0.6, clip_on=False, linestyle=""
        )
        axes.plot(*at, marker="*", markersize=9, color="white", markeredgecolor=BLACK, markeredgewidth=0.6)
        axes.set(xscale="log", xlabel=r"contraction $\delta=k/d$ of top-$k$", ylabel=r"staleness $\tau$ (steps)")
        axes.yaxis.set_major_locator(mpl.ticker.MaxNLocator(integer=True))
        bar = figure.colorbar(shown, ax=axes, ticks=levels, pad=0.02)
        bar.ax.set_yticklabels([f"{v:g}" for v in levels])
        bar.set_label("time to accuracy / optimum")
        bar.ax.minorticks_off()
        ratio = c["synchronous"][0] / best
        axes.set_title(
            rf"$\bigstar$ optimum $\tau={at[1]:g}$, $\delta={at[0]:.2g}$: {_duration(best)};"
            rf" $\blacksquare$ synchronous SGD: {ratio:.3g} times as long",
            fontsize=small,
        )
        figure.draw_without_rendering()  # makes the ticks, which read the settings when they are made
    return figure


def _outline(axes: Any, x: np.ndarray, y: np.ndarray, inside: np.ndarray) -> None:
    """The edge of the cells where ``inside`` (y, x) holds, on a grid that is even in log x and in y."""
    left = x * np.sqrt(x[0] / x[1])
    edges = np.append(left, x[-1] * np.sqrt(x[-1] / x[-2]))
    rows = np.append(y - 0.5, y[-1] + 0.5)
    for i, j in np.argwhere(inside):
        for di, dj, line in (
            (-1, 0, ([edges[j], edges[j + 1]], [rows[i]] * 2)),
            (1, 0, ([edges[j], edges[j + 1]], [rows[i + 1]] * 2)),
            (0, -1, ([edges[j]] * 2, [rows[i], rows[i + 1]])),
            (0, 1, ([edges[j + 1]] * 2, [rows[i], rows[i + 1]])),
        ):
            a, b = i + di, j + dj
            if 0 <= a < len(y) and 0 <= b < len(x) and not inside[a, b]:
                axes.plot(*line, color="white", linewidth=1.2)


def _duration(seconds: float) -> str:
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


# --- methods compared ---------------------------------------------------------------------------------------------------


def fig_methods(frame: Frame, settings: Mapping[str, Any]) -> Figure:
    """Function gap against communication rounds, bits sent by a worker, and seconds."""
    c, p = frame.columns, frame.parameters
    looks = ((BLACK, "-"), (GREY, "-"), (BLUE, "-"), (CYAN, "--"), (ORANGE, "-"), (MAGENTA, "--"), (TEAL, "-."), (RED, ":"))
    axes_of = (("rounds", "communication rounds"), ("bits", "bits sent by a worker"), ("seconds", "time (s)"))
    with context(settings):
        figure = Figure(layout="constrained")
        for axes, (axis, label) in zip(figure.subplots(1, 3, sharey=True), axes_of, strict=True):
            for k, (entry, (colour, dash)) in enumerate(zip(p["methods"], looks, strict=False)):
                axes.plot(c[axis][k], c["gap"][k], dash, color=colour, label=entry["label"])
                if np.nanmax(c["gap_high"][k] - c["gap_low"][k]) > 0:
                    axes.fill_between(c[axis][k], c["gap_low"][k], c["gap_high"][k], color=colour, alpha=0.3, linewidth=0)
            axes.set(xscale="log", yscale="log", xlabel=label)
            axes.xaxis.set_major_locator(mpl.ticker.LogLocator(numticks=7))
        figure.axes[0].set_ylabel(r"$f(x)-f^\star$")
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=4)
        figure.draw_without_rendering()  # makes the ticks, which read the settings when they are made
    return figure
