"""What a run leaves behind: histories are data."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, repr=False)
class History:
    """Measures of one method along its steps, for several seeds.

    Attributes
    ----------
    steps : (R,) recorded step numbers, ascending; step 0 is the start, the last is T.
    values : per measure name an array (seeds, R), in the measure's own unit.
    means : per measure name (seeds,), the mean of the measure over steps 0..T-1.
    best : per measure name (seeds,), its minimum over steps 0..T.
    at_average : per measure name (seeds,), the measure at the average iterate over steps 0..T-1 (fields averaged).
    bits : (seeds, R) bits a worker has sent through compressors up to that step (mean over the workers), index bits included; what a
        server sends back is not counted.
    rounds : (R,) communication rounds finished up to that step.
    final : the last state of every seed: per field an array (seeds, ...).
    states : per field (seeds, R, ...) if asked for, else None.
    diverged : (seeds,) whether the state left the finite numbers; values are NaN from there on, and means and at_average are NaN.
    settings : what was run: method, hyper, problem, compressor, topology, seeds, engine, versions, seconds, whether the compiled code
        came from the cache, and ``track``: which of mean, best and average saw every step; the others saw the recorded steps alone.
    """

    steps: np.ndarray
    values: dict[str, np.ndarray]
    means: dict[str, np.ndarray]
    best: dict[str, np.ndarray]
    at_average: dict[str, np.ndarray]
    bits: np.ndarray
    rounds: np.ndarray
    final: dict[str, np.ndarray]
    states: dict[str, np.ndarray] | None = None
    diverged: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))
    settings: dict[str, Any] = field(default_factory=dict)

    def to_frame(self) -> np.ndarray:
        """One row per trial and recorded step, as a structured array (``pandas.DataFrame(h.to_frame())`` makes a frame of it).

        Columns: ``trial``, ``step``, ``round``, ``bits``, then one per measure.
        """
        seeds, R = self.bits.shape
        columns = {
            "trial": np.repeat(self.settings.get("trials", np.arange(seeds)), R),
            "step": np.tile(self.steps, seeds),
            "round": np.tile(self.rounds, seeds),
            "bits": self.bits.ravel(),
            **{name: v.ravel() for name, v in self.values.items()},
        }
        return np.rec.fromarrays(list(columns.values()), names=list(columns))  # type: ignore[call-overload]  # the stubs know no lists

    def plot(self, ax: Any = None) -> Any:
        """Every measure against the steps: the median of the trials, and the range of all; returns the axes."""
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(layout="constrained")
        for name, v in self.values.items():
            [line] = ax.plot(self.steps, np.median(v, axis=0), label=name)
            ax.fill_between(self.steps, v.min(axis=0), v.max(axis=0), color=line.get_color(), alpha=0.2, linewidth=0)
        ax.set(xlabel="step", yscale="log", title=self._title())
        ax.legend()
        return ax

    def _title(self) -> str:
        parts = [self.settings.get(key) for key in ("problem", "compressor", "topology")]
        return " on ".join(filter(None, [self.settings.get("method", "run"), ", ".join(filter(None, parts))]))

    def _rows(self) -> list[tuple[str, str, str]]:
        return [(name, f"{np.median(v[:, 0]):.4g}", f"{np.median(v[:, -1]):.4g}") for name, v in self.values.items()]

    def __repr__(self) -> str:
        seeds, R = self.bits.shape
        changes = "; ".join(f"{name} {first} to {last}" for name, first, last in self._rows())
        bad = f", {int(self.diverged.sum())} diverged" if self.diverged.any() else ""
        return f"<History {self._title()}: {self.steps[-1]} steps, {seeds} seeds{bad}, {R} records; median {changes}>"

    def _repr_html_(self) -> str:
        cells = "".join(f"<tr><td>{html.escape(name)}</td><td>{a}</td><td>{b}</td></tr>" for name, a, b in self._rows())
        head = f"<tr><th>median of {len(self.bits)} seeds</th><th>step 0</th><th>step {self.steps[-1]}</th></tr>"
        return f"<table><caption>{html.escape(self._title())}</caption>{head}{cells}</table>"
