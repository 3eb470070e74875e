"""What a run leaves behind: histories are data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class History:
    """Measures of one method along its steps, for several seeds.

    Attributes
    ----------
    steps : (R,) recorded step numbers, ascending; step 0 is the start, the last is T.
    values : per measure name an array (seeds, R), in the measure's own unit.
    means : per measure name (seeds,), the mean of the measure over steps 0..T-1 (every step, recorded or not).
    best : per measure name (seeds,), its minimum over steps 0..T.
    at_average : per measure name (seeds,), the measure at the average iterate over steps 0..T-1 (fields averaged).
    bits : (seeds, R) bits a worker has sent through compressors up to that step (mean over the workers), index bits included.
    rounds : (R,) communication rounds up to that step.
    final : the last state of every seed: per field an array (seeds, ...).
    states : per field (seeds, R, ...) if asked for, else None.
    diverged : (seeds,) whether the state left the finite numbers; values are NaN from there on.
    settings : what was run: method, hyper, problem, compressor, topology, seeds, engine, versions.
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
