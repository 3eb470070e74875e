"""A worst-case function drawn: a curve, or level sets in the plane that shows most of the points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from verify_rates.theory.worst_case.instance import Instance

FLAT = 1e-6  # share of the largest extent below which points lie on a line
AROUND = 0.15  # margin around the points, as share of their extent
GRID, CURVE = 41, 201  # points a side of a plane, and of a curve


def picture(instance: Instance, worker: int = 0, n: int | None = None) -> Any:
    """The figure of :meth:`Instance.plot`."""
    from matplotlib.figure import Figure

    f = instance.function(worker, n)
    centre = f.x[0] if instance.optimum is not None else f.x.mean(axis=0)
    _, extents, axes = np.linalg.svd(f.x - centre, full_matrices=False)
    made = Figure(figsize=(4.5, 3.5), layout="constrained")
    axis = made.add_subplot()
    if len(extents) < 2 or extents[1] <= FLAT * max(extents[0], 1e-300):
        direction = axes[0] if extents[0] > 0 else np.eye(f.x.shape[1])[0]
        places = (f.x - centre) @ direction
        grid = _range(places, CURVE)
        axis.plot(grid, [f(centre + p * direction) for p in grid])
        axis.plot(places, f.f, "o")
        axis.set(
            xlabel="position along the line of the points, from " + ("x*" if instance.optimum is not None else "their mean"), ylabel="f"
        )
    else:
        flat = (f.x - centre) @ axes[:2].T
        across, up = _range(flat[:, 0], GRID), _range(flat[:, 1], GRID)
        heights = [[f(centre + np.array([a, b]) @ axes[:2]) for a in across] for b in up]
        made.colorbar(axis.contourf(across, up, heights, levels=20), label="f")
        axis.plot(*flat.T, "o-", color="white", markeredgecolor="black")
        shown = float(np.sum(extents[:2] ** 2) / np.sum(extents**2))
        axis.set(xlabel=f"first principal axis ({shown:.0%} of the points' extent is in this plane)", ylabel="second")
    s = instance.statement
    axis.set_title(f"{s['method']}, {s['steps']} steps, worker {worker}: worst case {instance.value:.6g}", fontsize=9)
    return made


def _range(places: np.ndarray, count: int) -> np.ndarray:
    room = AROUND * max(float(np.ptp(places)), 1e-12)
    return np.linspace(places.min() - room, places.max() + room, count)
