"""Function classes: each is an interpolation inequality between two evaluated points, with its source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from verify_rates.solvers.method import nearest

Products = list[tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class FunctionClass:
    """A class of functions known through an inequality on pairs of points.

    Attributes
    ----------
    name : as in ``worst_case(functions=name)``.
    minimiser : whether every function of the class is taken to have a minimiser ``x*``.
    takes_mu : whether ``mu`` is a parameter.
    products : ``(x, g, i, kappa) -> [(u, v), ...]``: for the point i and every point j, in units where L = 1 and with kappa = mu/L, the
        inequality ``f_j - f_i + sum <u_j, v_j> <= 0``; x, g, u, v have one row a point.
    source : theorem that makes the inequalities necessary and sufficient.
    """

    name: str
    minimiser: bool
    takes_mu: bool
    products: Callable[[np.ndarray, np.ndarray, int, float], Products]
    source: str


def _between(x: np.ndarray, g: np.ndarray, i: int, kappa: float) -> Products:
    """``f_i >= f_j + <g_j, dx> + (||dg||^2 + kappa ||dx||^2 - 2 kappa <dg, dx>) / (2 (1 - kappa))``, dx = x_i - x_j, dg = g_i - g_j."""
    dx, dg, c = x[i] - x, g[i] - g, 1 / (2 * (1 - kappa))
    return [(c * dg, dg), (g + c * kappa * dx - 2 * c * kappa * dg, dx)]


def _nonconvex(x: np.ndarray, g: np.ndarray, i: int, kappa: float) -> Products:
    """The same with curvature between -1 and 1."""
    return _between(x, g, i, -1.0)


_CLASSES = {
    c.name: c
    for c in (
        FunctionClass(
            "smooth_strongly_convex",
            minimiser=True,
            takes_mu=True,
            products=_between,
            source="Taylor, Hendrickx, Glineur 2017, Theorem 4",
        ),
        FunctionClass(
            "smooth",
            minimiser=False,
            takes_mu=False,
            products=_nonconvex,
            source="Taylor, Hendrickx, Glineur 2017 (composite convex optimization), Theorem 3.10; with a lower bound: Drori, Shamir 2020",
        ),
    )
}


def get_class(name: str) -> FunctionClass:
    """The class of that name; UsageError with the nearest match when there is none."""
    if name not in _CLASSES:
        raise nearest(str(name), _CLASSES, "function class")
    return _CLASSES[name]
