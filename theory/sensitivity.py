"""How a plan changes with the network: the best choice, its time and its gain over bandwidth, latency and compute time.

The steps that a claim's bound asks for do not depend on the network, the time of a step is the largest ratio over the cycles of an event
graph, and every cycle's time is linear in the compute time, the latency and the inverse of the bandwidth.  So each cycle that was found
once bounds the pace everywhere from below, and only the choice that looks best at a point is solved there, until that one is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from verify_rates.solvers.method import UsageError
from verify_rates.theory import units
from verify_rates.theory.planner import UNREACHED, Choice, graphs_of

if TYPE_CHECKING:
    from verify_rates.theory.planner import Plan

AXES = ("compute", "latency", "bandwidth")
UNITS = {"compute": "s", "latency": "s", "bandwidth": "bit/s"}
SPAN, POINTS = 30.0, 13  # by default each of latency and bandwidth goes from a 30th to 30 times its value
MOST_TOLD = 60  # cells of a map up to which each says its value
LEAST_LATENCY = 1e-3  # about which the latency varies where the plan has none


@dataclass(frozen=True)
class Sensitivity:
    """The best choice at every point of compute time, latency and bandwidth.

    Attributes
    ----------
    axes : values in s, s and bit/s of compute, latency and bandwidth.
    best : per hyper-parameter, nested lists (compute, latency, bandwidth).
    seconds : to accuracy at the best choice there.
    limit : what limits its pace there: "compute", "link" or "feedback loop".
    regret : how much longer the plan's own optimum takes there, relative.
    gain : the time of the synchronous, uncompressed choice over that of the best; None where the plan's grid has no such point.
    """

    method: str
    claim: str
    target: float
    network: dict[str, float]
    optimum: dict[str, float]
    axes: dict[str, list[float]]
    best: dict[str, list[Any]]
    seconds: list[Any]
    limit: list[Any]
    regret: list[Any]
    gain: list[Any] | None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def to_json(self, **options: Any) -> str:
        return json.dumps(self.to_dict(), allow_nan=False, **options)

    def __str__(self) -> str:
        kinds = {k: sorted(set(np.ravel(v).tolist())) for k, v in self.best.items()}
        shown = "; ".join(f"{k} from {v[0]:g} to {v[-1]:g}" if len(v) > 1 else f"{k} = {v[0]:g} everywhere" for k, v in kinds.items())
        regret = np.array(self.regret)
        at = {k: self.axes[k][int(i)] for k, i in zip(AXES, np.unravel_index(int(regret.argmax()), regret.shape), strict=True)}
        where = ", ".join(f"{k} {v:g} {UNITS[k]}" for k, v in at.items())
        spans = ", ".join(f"{k} {v[0]:g} to {v[-1]:g} {UNITS[k]}" for k, v in self.axes.items() if len(v) > 1)
        lines = [f"{self.method}, {self.claim} at {self.target:g}, over {spans}", f"best: {shown or 'nothing to choose'}"]
        lines.append(f"the plan's own choice takes {regret.max():.2%} longer than the best at worst ({where})")
        if self.gain is not None:
            gain = np.array(self.gain)
            lines.append(f"the best is {gain.min():.4g} to {gain.max():.4g} times as fast as the synchronous, uncompressed choice")
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None) -> Any:
        """Maps of the best tau, H and delta and of the seconds over latency and bandwidth, one row per compute time; the star is the plan's
        own network.  A matplotlib Figure, also written to ``path`` if given.
        """
        from matplotlib.figure import Figure

        maps = {**{f"best {k}": np.array(v, float) for k, v in self.best.items()}, "seconds": np.array(self.seconds)}
        times = self.axes["compute"]
        figure = Figure(figsize=(3.1 * len(maps), 2.6 * len(times)), layout="constrained")
        for row, (panels, time) in enumerate(zip(figure.subplots(len(times), len(maps), squeeze=False), times, strict=True)):
            for axes, (name, cells) in zip(panels, maps.items(), strict=True):
                self._panel(axes, cells, row, linear=name == "best tau")
                axes.set_title(f"{name}, compute {time:.4g} s", fontsize=8)
        if path is not None:
            figure.savefig(path, metadata={"Title": json.dumps({"method": self.method, "claim": self.claim, **self.network})})
        return figure

    def _panel(self, axes: Any, maps: np.ndarray, row: int, linear: bool) -> None:
        """One map; rows of a figure share their colours."""
        from matplotlib.colors import LogNorm
        from matplotlib.ticker import EngFormatter

        low, high = float(maps.min()), float(maps.max())
        scale: dict[str, Any] = {"vmin": 0, "vmax": max(high, 1)} if linear else {"norm": LogNorm(low, high if high > low else 2 * low)}
        cells, short = maps[row], EngFormatter(places=1, sep="")
        drawn = axes.pcolormesh(cells, cmap="cividis", **scale)
        axes.figure.colorbar(drawn, ax=axes)
        if cells.size <= MOST_TOLD:
            for (i, j), value in np.ndenumerate(cells):
                ink = "black" if drawn.norm(value) > 0.6 else "white"
                axes.text(j + 0.5, i + 0.5, f"{value:.3g}", ha="center", va="center", fontsize=6, color=ink)
        for name, write in (("bandwidth", axes.set_xticks), ("latency", axes.set_yticks)):
            few = np.unique(np.linspace(0, len(self.axes[name]) - 1, 4).round().astype(int))
            write(few + 0.5, [short(self.axes[name][i]) for i in few], fontsize=7)
        axes.set(xlabel="bandwidth, bit/s", ylabel="latency, s")
        if self.axes["compute"][row] == self.network["compute"]:
            at = [_place(self.axes[name], self.network[name]) for name in ("bandwidth", "latency")]
            if None not in at:
                axes.plot(*at, "*", color="white", markeredgecolor="black", markersize=9)


def _place(values: Sequence[float], here: float) -> float | None:
    """Where a value lies on an axis of cells, in the logarithm; None outside of it."""
    if not values[0] <= here <= values[-1] or values[0] <= 0:
        return None
    return float(np.interp(math.log(here), np.log(values), np.arange(len(values)))) + 0.5


class _Paces:
    """Seconds per step of every choice at every network: bounds from the cycles known so far, exact where it was solved."""

    def __init__(self, plan: Plan, choices: Sequence[Choice], networks: np.ndarray) -> None:
        self.choices, self.networks = choices, networks
        line_of = graphs_of(plan.method, plan.network)
        self.lines = [line_of(c.hyper) for c in choices]
        self.alike: dict[int, list[int]] = {}
        for i, line in enumerate(self.lines):
            self.alike.setdefault(id(line), []).append(i)
        self.basis = [self._basis(i) for i in range(len(choices))]
        self.lower = np.zeros((len(choices), len(networks)))
        self.exact = np.zeros_like(self.lower, dtype=bool)
        self.limits: dict[tuple[int, int], str] = {}

    def _graph(self, i: int, compute: float, latency: float, bandwidth: float) -> Any:
        costs = self.lines[i].graph.costs
        sent = self.choices[i].bytes_share * costs.dense_bits
        given = {"compute": (compute,) * len(costs.compute), "latency": latency, "bandwidth": bandwidth, "message_bits": sent}
        return replace(self.lines[i].graph, costs=replace(costs, **given))

    def _basis(self, i: int) -> np.ndarray:
        """(4, E) per edge: its compute times, latencies, bits and tokens."""
        parts = [[e[2] for e in self._graph(i, *unit).edges()] for unit in ((1.0, 0.0, math.inf), (0.0, 1.0, math.inf), (0.0, 0.0, 1.0))]
        return np.array([*parts, [e[3] for e in self._graph(i, 1.0, 1.0, 1.0).edges()]], dtype=float)

    def solve(self, i: int, k: int) -> float:
        """The exact pace; its cycle bounds the paces of all choices with the same graph, everywhere."""
        compute, latency, inverse = self.networks[k]
        graph = self._graph(i, compute, latency, 1 / inverse)
        found = graph.pace()
        for j in self.alike[id(self.lines[i])]:
            *times, tokens = self.basis[j][:, found.edges].sum(axis=1)
            bound = self.networks @ np.array(times) / tokens / self.lines[j].steps_per_round
            self.lower[j] = np.where(self.exact[j], self.lower[j], np.maximum(self.lower[j], bound))
        self.lower[i, k], self.exact[i, k] = found.ratio / self.lines[i].steps_per_round, True
        self.limits[i, k] = graph.words(found)[0]
        return float(self.lower[i, k])

    def best(self, k: int, steps: np.ndarray) -> int:
        """The choice with the fewest seconds at a network, the first of those alike."""
        while True:
            i = int(np.argmin(steps * self.lower[:, k]))
            if self.exact[i, k]:
                return i
            self.solve(i, k)


def sensitivity(plan: Plan, *, compute: Any = None, latency: Any = None, bandwidth: Any = None) -> Sensitivity:
    """The best choice of a plan's grid (and its optimum) at other networks; the rest as in the plan.

    Guarantee: exact over the grid at every point.

    Parameters
    ----------
    compute, latency, bandwidth : values, as numbers or with units; by default latency and bandwidth go from a 30th to 30 times theirs.

    Errors: UsageError for values that are none.

    >>> from verify_rates.theory.planner import plan
    >>> made = plan(compute="200ms", latency="1s", bandwidth="100Mbit/s", d=12_500_000, target=1e-2, over={"tau": (0, 1, 2, 4)},
    ...             letters={"n": 10, "L": 1, "F0": 1, "sigma2": 0.1, "zeta2_sup": 0.1})
    >>> sensitivity(made, latency=["1ms", "10s"], bandwidth=["10Gbit/s"]).best["tau"]
    [[[0.0], [4.0]]]
    """
    given = {"compute": compute, "latency": latency, "bandwidth": bandwidth}
    axes = {name: _values(name, given[name], plan.network, all(v is None for v in given.values())) for name in AXES}
    shape = tuple(len(v) for v in axes.values())
    points = np.stack([m.ravel() for m in np.meshgrid(*axes.values(), indexing="ij")], axis=1)
    networks = np.column_stack([points[:, :2], 1 / points[:, 2]])
    choices = [plan.optimum, *(c for c in plan.table if c.steps < UNREACHED)]
    steps = np.array([c.steps for c in choices])
    paces = _Paces(plan, choices, networks)
    best = [paces.best(k, steps) for k in range(len(networks))]
    seconds = np.array([steps[i] * paces.lower[i, k] for k, i in enumerate(best)])
    plain = next((i for i, c in enumerate(choices) if c.hyper == _plain(c.hyper)), None)

    def times(i: int) -> np.ndarray:
        return np.array([steps[i] * paces.solve(i, k) for k in range(len(networks))])

    return Sensitivity(
        method=plan.method,
        claim=plan.claim,
        target=plan.target,
        network=plan.network,
        optimum=plan.optimum.hyper,
        axes={k: v.tolist() for k, v in axes.items()},
        best={k: np.reshape([float(choices[i].hyper[k]) for i in best], shape).tolist() for k in plan.grid},
        seconds=seconds.reshape(shape).tolist(),
        limit=np.reshape([paces.limits[i, k] for k, i in enumerate(best)], shape).tolist(),
        regret=(times(0) / seconds - 1).reshape(shape).tolist(),
        gain=None if plain is None else (times(plain) / seconds).reshape(shape).tolist(),
    )


def _plain(hyper: Mapping[str, float]) -> dict[str, float]:
    """Synchronous and uncompressed."""
    return {k: {"tau": 0, "H": 1, "delta": 1.0}[k] for k in hyper}


def _values(name: str, values: Any, network: Mapping[str, float], spread: bool) -> np.ndarray:
    """The values of one axis in SI units: those given, or the plan's, or a span about the plan's."""
    here = network[name]
    if values is None:
        if not spread or name == "compute":
            return np.array([here])
        middle = here or LEAST_LATENCY
        return np.geomspace(middle / SPAN, middle * SPAN, POINTS)
    read = units.bits_per_second if name == "bandwidth" else units.seconds
    listed = [values] if isinstance(values, (str, int, float)) else list(values)
    made = np.array([read(v, f"a {name}") for v in listed])
    if not len(made) or (np.diff(made) <= 0).any():
        raise UsageError(f"the values of {name} must be at least one, and increase.")
    return made
