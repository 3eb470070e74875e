"""A run as a figure; the settings travel in the file's metadata."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from verify_rates.solvers.method import UsageError

FORMATS = ("png", "pdf", "svg")
_NOTE = {"png": "Description", "pdf": "Subject", "svg": "Description"}  # the field of each format that may hold a text


def check_format(path: str | Path | None) -> None:
    """UsageError unless the file's ending names a format that is written."""
    if path is not None and Path(path).suffix.lstrip(".").lower() not in FORMATS:
        raise UsageError(f"cannot draw {str(path)!r}; the name must end in {', '.join('.' + f for f in FORMATS)}.")


def history_figure(history: Any) -> Any:
    """Measures against steps: the median over the seeds as a line, their range as a band; logarithmic where all are positive."""
    import numpy as np
    from matplotlib import pyplot as plt
    from matplotlib.figure import Figure

    with plt.rc_context({"font.size": 8, "text.usetex": False}):
        figure = Figure(figsize=(3.4, 2.4), layout="constrained")
        axes = figure.subplots()
        for name, values in history.values.items():
            (line,) = axes.plot(history.steps, np.median(values, axis=0), label=name)
            if len(values) > 1:
                axes.fill_between(history.steps, values.min(axis=0), values.max(axis=0), color=line.get_color(), alpha=0.2, linewidth=0)
        if all((v[np.isfinite(v)] > 0).all() for v in history.values.values()):
            axes.set_yscale("log")
        axes.set(xlabel="step", title=history.settings["method"])
        axes.legend()
    return figure


def draw_history(history: Any, path: str | Path) -> None:
    """Write the figure; the settings of the run stand in its metadata."""
    from verify_rates.verdicts import _plain

    check_format(path)
    kind = Path(path).suffix.lstrip(".").lower()
    history_figure(history).savefig(path, dpi=200, metadata={_NOTE[kind]: json.dumps(_plain(history.settings))})
