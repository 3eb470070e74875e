"""``figures``: the figures as PDF, PNG and data in a folder, each file with its parameters inside."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from verify_rates import figure_data as data
from verify_rates.figure_data import Frame
from verify_rates.solvers.method import UsageError, nearest

DPI = 200


@dataclass(frozen=True)
class Recipe:
    """One figure: ``make()`` gives its data, ``draw`` of :mod:`verify_rates.figure_plots` draws them.

    ``rtol`` is what data made elsewhere may differ by, relatively: rounding of closed forms (1e-9), the ends of a worst case
    (1e-5: they are 1e-6 apart at most, on both sides), or rounding of runs, 1e-14 of f against gaps of 1e-10 (1e-4).
    """

    make: Callable[[], Frame]
    draw: str
    wide: bool
    height: float
    rtol: float
    caption: str


FIGURES = {
    "error-feedback": Recipe(
        data.data_error_feedback,
        "fig_error_feedback",
        False,
        0.68,
        1e-5,
        "Error feedback at the step size of its bound: the published bound (line), the exact worst case for every number of workers >= 2"
        " (dots), the instance that attains it, run (rings), and runs of ten workers on logistic regression with breast_cancer (dashed:"
        " top-k; dotted: mean of rand-k over the seeds, range shaded). The workers hold the same data, since the bound assumes a common"
        " minimiser.",
    ),
    "time-per-step": Recipe(
        data.data_time_per_step,
        "fig_time_per_step",
        True,
        0.45,
        1e-9,
        "Time per step against latency and bandwidth, from the data dependencies of each step function (lines: maximum cycle ratio; dots:"
        " event simulation). Both: compressed and delayed aggregation (dd_ef_sgd).",
    ),
    "time-to-accuracy": Recipe(
        data.data_time_to_accuracy,
        "fig_time_to_accuracy",
        False,
        0.62,
        1e-6,
        "Guaranteed time to a mean squared gradient norm of eps for dd_ef_sgd, relative to its optimum (star). Steps: the derived bound"
        " deco.5, solved for T with the best step size, with the constants of logistic regression on breast_cancer, the same data at every"
        " worker. Time per step: the exact time line of a model of d float32 numbers, of which top-k sends delta*d with indices, or the"
        " whole vector where that is shorter. The model's size and the network are assumptions. Inside the white edge communication is"
        " hidden behind compute.",
    ),
    "methods": Recipe(
        data.data_methods,
        "fig_methods",
        True,
        0.42,
        1e-4,
        "Function gap on logistic regression with breast_cancer, ten workers, exact gradients, every method at the best step size of a"
        " grid with factor 2. Bits: what a worker sends, indices included. Time: the exact time line. Random compressors: median and range"
        " of the seeds.",
    ),
}


@dataclass(frozen=True)
class Made:
    """One figure as it was written, or compared.

    Attributes
    ----------
    name, caption : of the figure.
    files : what was written; empty after a comparison.
    difference : one sentence on where the data differ from the stored ones; "" where they agree, or were not compared.
    """

    name: str
    caption: str
    files: tuple[Path, ...]
    difference: str = ""

    def _repr_png_(self) -> bytes | None:
        png = next((f for f in self.files if f.suffix == ".png"), None)
        return png.read_bytes() if png else None


def figures(
    out: str | Path,
    *,
    only: str | Iterable[str] | None = None,
    venue: str = "neurips",
    check: bool = False,
    progress: Callable[[str], None] | None = None,
) -> list[Made]:
    """Write the figures as PDF and PNG, and their data as JSON, into a folder.

    The parameters stand in each file's metadata as JSON (PDF: Keywords; PNG: the text ``parameters``).  Sizes are those of the venue's
    column, or page where a figure has several panels.  LaTeX is not needed.  The same versions give the same bytes.

    Parameters
    ----------
    out : folder; it is made where it does not exist.
    only : names of figures; by default all.
    venue : as in tueplots, without the year: "neurips", "icml", "iclr", "jmlr", "aistats", ...
    check : write nothing, but compute the data and compare them with those that lie in the folder.
    progress : called with the name of the figure that is begun.

    Errors: UsageError for an unknown figure or venue, a folder that cannot be written, or data that are missing where they are compared.

    >>> sorted(FIGURES)
    ['error-feedback', 'methods', 'time-per-step', 'time-to-accuracy']
    >>> figures("nowhere", only="time-per-stp")
    Traceback (most recent call last):
    verify_rates.solvers.method.UsageError: unknown figure 'time-per-stp'; did you mean 'time-per-step'?
    """
    from verify_rates.figure_plots import style

    chosen = list(FIGURES) if only is None else [only] if isinstance(only, str) else list(only)
    for name in chosen:
        if name not in FIGURES:
            raise nearest(str(name), FIGURES, "figure")
    style(venue)  # an unknown venue is said before the work
    folder = Path(out)
    if check:
        stored = {name: _stored(folder / f"{name}.json") for name in chosen}
    else:
        _folder(folder)
    made = []
    for name in chosen:
        if progress:
            progress(name)
        frame, recipe = FIGURES[name].make(), FIGURES[name]
        if check:
            made.append(Made(name, recipe.caption, (), frame.difference(stored[name], recipe.rtol)))
        else:
            made.append(Made(name, recipe.caption, write(frame, folder, venue)))
    return made


def write(frame: Frame, folder: Path, venue: str = "neurips") -> tuple[Path, ...]:
    """Draw one frame and write PDF, PNG and JSON; the paths."""
    from verify_rates import figure_plots

    recipe = FIGURES[frame.name]
    settings = figure_plots.style(venue, recipe.wide, recipe.height)
    figure = getattr(figure_plots, recipe.draw)(frame, settings)
    version = importlib.metadata.version("verify-rates")
    about = json.dumps({"figure": frame.name, "verify-rates": version, "venue": venue, "parameters": frame.parameters}, allow_nan=False)
    paths = tuple(folder / f"{frame.name}.{kind}" for kind in ("pdf", "png", "json"))
    title = {"Title": frame.name}
    try:
        with figure_plots.context(settings):
            figure.savefig(paths[0], metadata={**title, "Subject": recipe.caption, "Keywords": about, "CreationDate": None})
            figure.savefig(paths[1], dpi=DPI, metadata={**title, "Description": recipe.caption, "parameters": about})
        paths[2].write_text(frame.to_json())
    except OSError as error:
        raise UsageError(f"cannot write into {str(folder)!r}: {error.strerror or error}.") from None
    return paths


def _folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {str(folder)!r}: {error.strerror or error}.") from None


def _stored(path: Path) -> Frame:
    try:
        return Frame.from_json(path.read_text())
    except OSError as error:
        raise UsageError(f"there are no stored data {str(path)!r} to compare with ({error.strerror}).") from None
