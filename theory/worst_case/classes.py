"""Function classes: each is an interpolation inequality between two evaluated points, with its source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from verify_rates.solvers.method import nearest

Products = list[tuple[np.ndarray, np.ndarray]]
Inequalities = list[tuple[int, Products]]
Rule = Callable[[np.ndarray, np.ndarray, int, float], Inequalities]


@dataclass(frozen=True)
class FunctionClass:
    """A class of functions, or of operators, known through inequalities on pairs of points.

    Attributes
    ----------
    name : as in ``worst_case(functions=name)``.
    source : theorem that makes the inequalities necessary and sufficient, or what they are.
    pairs : ``(x, g, i, kappa) -> [(values, [(u, v), ...]), ...]``: for the point i and every point j, in units where L = 1 and with
        kappa = mu/L, the inequalities ``values (f_j - f_i) + sum <u_j, v_j> <= 0``, where ``values`` is 1, -1 or 0; x, g, u, v
        have one row a point.
    at_minimiser : further inequalities of the minimiser i and every point j.
    minimiser : whether every function of the class is taken to have a minimiser ``x*`` (an operator: a zero).
    takes_L, takes_mu : whether they are parameters.
    symmetric : whether the inequality of j and i is that of i and j.
    values : whether there are function values.
    shifts : whether taking ``mu/2 ||x||^2`` out leaves the class with L - mu.
    lipschitz : whether L bounds the gradients themselves.
    linear : gradients are a linear operator of differences of points, known through one semidefinite constraint for all of them:
        "symmetric" with spectrum in [mu, L], "skew" or "any" with norm at most L; "" where they are not.
    smooth : whether gradients are L-Lipschitz (asked where a nonconvex function has an infimum).
    indicator : whether it is the indicator function of a set: all values are 0.
    bounded : whether points are at most L apart.
    bends : whether values lie below ``f(x) + <g, y - x> + L/2 ||y - x||^2``, and on it for some function along directions of its own.
    convex : whether values lie above tangents; a symmetric operator: whether its least eigenvalue is mu, not -L.
    necessary : whether the inequalities are necessary only, so that worst cases are upper bounds.
    """

    name: str
    source: str
    pairs: Rule
    at_minimiser: Rule | None = None
    minimiser: bool = True
    takes_L: bool = True
    takes_mu: bool = False
    symmetric: bool = False
    values: bool = True
    shifts: bool = False
    lipschitz: bool = False
    necessary: bool = False
    linear: str = ""
    smooth: bool = True
    indicator: bool = False
    bounded: bool = False
    bends: bool = False
    convex: bool = True


def _between(x: np.ndarray, g: np.ndarray, i: int, kappa: float) -> Inequalities:
    """``f_i >= f_j + <g_j, dx> + (||dg||^2 + kappa ||dx||^2 - 2 kappa <dg, dx>) / (2 (1 - kappa))``, dx = x_i - x_j, dg = g_i - g_j."""
    dx, dg, c = x[i] - x, g[i] - g, 1 / (2 * (1 - kappa))
    return [(1, [(c * dg, dg), (g + c * kappa * dx - 2 * c * kappa * dg, dx)])]


def _nonconvex(x: np.ndarray, g: np.ndarray, i: int, kappa: float) -> Inequalities:
    """The same with curvature between -1 and 1."""
    return _between(x, g, i, -1.0)


def _subgradient(x: np.ndarray, g: np.ndarray, i: int, kappa: float) -> Inequalities:
    """``f_i >= f_j + <g_j, dx> + kappa/2 ||dx||^2``."""
    dx = x[i] - x
    return [(1, [(g + kappa / 2 * dx, dx)])]


def _weakly(x: np.ndarray, g: np.ndarray, i: int, kappa: float) -> Inequalities:
    """``f_i >= f_j + <g_j, dx> - ||dx||^2/2``."""
    return _subgradient(x, g, i, -1.0)


def _normal(x: np.ndarray, g: np.ndarray, i: int, kappa: float) -> Inequalities:
    """``<g_j, x_i - x_j> <= 0``: g_j is in the normal cone of the set at x_j."""
    return [(0, [(g, x[i] - x)])]


def _growth(x: np.ndarray, g: np.ndarray, i: int, kappa: float) -> Inequalities:
    """``f* >= f_j + <g_j, x* - x_j> + ||g_j||^2/2``."""
    return [(1, [(g, x[i] - x), (g / 2, g)])]


def _lojasiewicz(x: np.ndarray, g: np.ndarray, i: int, kappa: float) -> Inequalities:
    """``f_j - f* <= ||g_j||^2 / (2 kappa)``."""
    return [(1, [(-g / (2 * kappa), g)])] if kappa else []


def _nothing(x: np.ndarray, g: np.ndarray, i: int, kappa: float) -> Inequalities:
    return []


def _secant_and_error(x: np.ndarray, g: np.ndarray, i: int, kappa: float) -> Inequalities:
    """``kappa ||x - x*||^2 <= <g, x - x*>`` and ``||g|| <= ||x - x*||``."""
    dx = x - x[i]
    return [(0, [(kappa * dx - g, dx)]), (0, [(g, g), (-dx, dx)])]


def _monotone(x: np.ndarray, g: np.ndarray, i: int, kappa: float) -> Inequalities:
    """``<dg, dx> >= kappa ||dx||^2``."""
    dx, dg = x[i] - x, g[i] - g
    return [(0, [(kappa * dx - dg, dx)])]


def _cocoercive(x: np.ndarray, g: np.ndarray, i: int, kappa: float) -> Inequalities:
    """``<dg, dx> >= ||dg||^2``."""
    dx, dg = x[i] - x, g[i] - g
    return [(0, [(dg, dg), (-dg, dx)])]


def _comonotone(x: np.ndarray, g: np.ndarray, i: int, kappa: float) -> Inequalities:
    """``<dg, dx> >= -||dg||^2``."""
    dx, dg = x[i] - x, g[i] - g
    return [(0, [(-dg, dg + dx)])]


def _quasi_strongly(x: np.ndarray, g: np.ndarray, i: int, kappa: float) -> Inequalities:
    """``f* >= f_j + <g_j, x* - x_j> + kappa/2 ||x* - x_j||^2``, and ``f* <= f_j - ||g_j||^2/2``: a step downhill."""
    return [*_subgradient(x, g, i, kappa), (-1, [(g / 2, g)])]


def _cocoercive_and_monotone(x: np.ndarray, g: np.ndarray, i: int, kappa: float) -> Inequalities:
    return _cocoercive(x, g, i, kappa) + _monotone(x, g, i, kappa)


def _lipschitz(x: np.ndarray, g: np.ndarray, i: int, kappa: float) -> Inequalities:
    """``||dg|| <= ||dx||``."""
    dx, dg = x[i] - x, g[i] - g
    return [(0, [(dg, dg), (-dx, dx)])]


def _lipschitz_and_monotone(x: np.ndarray, g: np.ndarray, i: int, kappa: float) -> Inequalities:
    return _lipschitz(x, g, i, kappa) + _monotone(x, g, i, kappa)


def _residual(x: np.ndarray, g: np.ndarray, i: int, kappa: float) -> Inequalities:
    """``||dx - dg|| <= (1 - kappa) ||dx||``."""
    dx, dg = x[i] - x, g[i] - g
    return [(0, [(dg, dg), (-2 * dg, dx), ((2 - kappa) * kappa * dx, dx)])]


_INDICATOR = "Taylor, Hendrickx, Glineur 2017 (composite convex optimization), Theorem 3.6"
_LINEAR = "Bousselmi, Hendrickx, Glineur 2023, Theorem 3.1"
_QG = "Goujaud, Taylor, Dieuleveut 2022, Theorem 2.6"
_CLASSES = {
    c.name: c
    for c in (
        FunctionClass(
            "smooth_strongly_convex", "Taylor, Hendrickx, Glineur 2017, Theorem 4", pairs=_between, takes_mu=True, shifts=True, bends=True
        ),
        FunctionClass(
            "quadratic",
            "Bousselmi, Hendrickx, Glineur 2023, Theorem 3.3",
            pairs=lambda x, g, i, kappa: [],
            takes_mu=True,
            linear="symmetric",
            bends=True,
        ),
        FunctionClass(
            "smooth",
            "Taylor, Hendrickx, Glineur 2017 (composite convex optimization), Theorem 3.10; with a lower bound: Drori, Shamir 2020",
            pairs=_nonconvex,
            minimiser=False,
            bends=True,
            convex=False,
        ),
        FunctionClass(
            "smooth_lojasiewicz",
            "Abbaszadehpeivasti, de Klerk, Zamani 2023, Section 3",
            pairs=_nonconvex,
            at_minimiser=_lojasiewicz,
            takes_mu=True,
            necessary=True,
            bends=True,
            convex=False,
        ),
        FunctionClass(
            "convex", "the subgradient inequality (Taylor, Hendrickx, Glineur 2017, Theorem 1)", pairs=_subgradient, takes_L=False
        ),
        FunctionClass(
            "strongly_convex",
            "Taylor, Hendrickx, Glineur 2017, Theorem 4 with L infinite",
            pairs=_subgradient,
            takes_L=False,
            takes_mu=True,
        ),
        FunctionClass(
            "convex_lipschitz",
            "Taylor, Hendrickx, Glineur 2017 (composite convex optimization), Theorem 3.5",
            pairs=_subgradient,
            lipschitz=True,
        ),
        FunctionClass("convex_quadratic_growth", _QG, pairs=_subgradient, at_minimiser=_growth),
        FunctionClass(
            "secant_error_bound",
            "Guille-Escuret, Ibrahim, Goujaud, Mitliagkas 2022 (RSI and EB speak of the minimiser alone)",
            pairs=_nothing,
            at_minimiser=_secant_and_error,
            takes_mu=True,
            values=False,
        ),
        FunctionClass(
            "monotone",
            "Ryu, Taylor, Bergeling, Giselsson 2020, Fact 1 and Proposition 1",
            pairs=_monotone,
            takes_L=False,
            takes_mu=True,
            symmetric=True,
            values=False,
        ),
        FunctionClass(
            "cocoercive", "Ryu, Taylor, Bergeling, Giselsson 2020, Proposition 2", pairs=_cocoercive, symmetric=True, values=False
        ),
        FunctionClass(
            "nonexpansive_residual",  # grad(x) = x - A x; mu = 1 - c where A is c-contractive
            "Kirszbraun's theorem (Ryu, Taylor, Bergeling, Giselsson 2020, Proposition 3)",
            pairs=_residual,
            takes_L=False,
            takes_mu=True,
            symmetric=True,
            values=False,
        ),
        FunctionClass(
            "weakly_convex",  # f + L/2 ||x||^2 is convex
            "the subgradient inequality of f + L/2 ||x||^2 (Taylor, Hendrickx, Glineur 2017, Theorem 1)",
            pairs=_weakly,
            minimiser=False,
            smooth=False,
        ),
        FunctionClass("indicator", _INDICATOR, pairs=_normal, takes_L=False, values=False, indicator=True),
        FunctionClass(
            "bounded_indicator",  # of a set of diameter L
            _INDICATOR,
            pairs=_normal,
            values=False,
            indicator=True,
            bounded=True,
        ),
        FunctionClass(
            "lipschitz_operator",
            "Kirszbraun's theorem (Ryu, Taylor, Bergeling, Giselsson 2020, Proposition 3)",
            pairs=_lipschitz,
            symmetric=True,
            values=False,
        ),
        FunctionClass(
            "lipschitz_monotone",  # strongly monotone with mu
            "Ryu, Taylor, Bergeling, Giselsson 2020, Propositions 1 and 3 together (their Section 3: not sufficient)",
            pairs=_lipschitz_and_monotone,
            takes_mu=True,
            symmetric=True,
            values=False,
            necessary=True,
        ),
        FunctionClass(
            "cocoercive_monotone",  # strongly monotone with mu
            "Ryu, Taylor, Bergeling, Giselsson 2020, Propositions 1 and 2 together (their Section 3: not sufficient)",
            pairs=_cocoercive_and_monotone,
            takes_mu=True,
            symmetric=True,
            values=False,
            necessary=True,
        ),
        FunctionClass(
            "negatively_comonotone",  # <dg, dx> >= -||dg||^2/L
            "the inverse plus 1/L is monotone (Bauschke, Moursi, Wang 2021); monotone operators: Ryu et al. 2020, Fact 1",
            pairs=_comonotone,
            symmetric=True,
            values=False,
        ),
        FunctionClass(
            "smooth_quasi_strongly_convex",  # f* >= f(x) + <g, x* - x> + mu/2 ||x - x*||^2
            "Necoara, Nesterov, Glineur 2019, Definition 1, with the inequality of smooth functions",
            pairs=_nonconvex,
            at_minimiser=_quasi_strongly,
            takes_mu=True,
            necessary=True,
            bends=True,
            convex=False,
        ),
        FunctionClass(
            "symmetric_operator", f"{_LINEAR}, with spectrum in [-L, L]", pairs=_nothing, values=False, linear="symmetric", convex=False
        ),
        FunctionClass("linear_operator", _LINEAR, pairs=_nothing, values=False, linear="any"),
        FunctionClass("skew_operator", f"{_LINEAR} and Corollary 3.2", pairs=_nothing, values=False, linear="skew"),
    )
}


def get_class(name: str) -> FunctionClass:
    """The class of that name; UsageError with the nearest match when there is none."""
    if name not in _CLASSES:
        raise nearest(str(name), _CLASSES, "function class")
    return _CLASSES[name]


def class_names() -> tuple[str, ...]:
    """All names."""
    return tuple(_CLASSES)
