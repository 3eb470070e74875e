"""Step sizes and other parameters with the best worst case, contraction, or rate on quadratics: :func:`tune`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_type_hints

import numpy as np

from verify_rates.solvers.method import Method, UsageError, get_method, nearest
from verify_rates.theory.contraction import Contraction, contraction, quick_rate
from verify_rates.theory.told import Told
from verify_rates.theory.worst_case.result import WorstCase
from verify_rates.theory.worst_case.solve import worst_case

BY = ("contraction", "worst_case", "quadratic")
# Where parameters are looked for unless said otherwise; gamma in units of 1/L, on a logarithmic scale.
RANGES = {"gamma": (1e-4, 4.0), "beta": (0.0, 0.99), "eta": (0.0, 0.99)}
COARSE = 13  # points of the first look along one parameter
# Parameters are found to this, relative to the place (gamma) or to 1: the values are certain to 1e-6 and rates have kinks at the best.
XTOL = 1e-6
FTOL = 1e-8  # of the value, with several parameters
STARTS = 5  # places from which the cheap search on quadratics starts, with several parameters; the others start from one
MOST = 200  # evaluations of one search
SMALLEST_SIMPLEX = 1e-3  # share of the range below which starting again does not pay
BIG = 1e9  # stands for "no finite value" in the search
CURVATURES = 17  # of quadratics, between mu and L
EDGE = 1e-3  # a best value this near an end of its range, relatively, is called one at the edge


@dataclass(frozen=True)
class Tuned(Told):
    """The best parameters found, the result there, and the search as data.

    Attributes
    ----------
    hyper : all hyper-parameters of the method at the best place.
    value : the number that was minimised there: an upper end, so that it holds whether or not the search found the optimum.
    best : the :class:`Contraction` or :class:`WorstCase` there; None for ``by="quadratic"``.
    by : what was minimised.
    edges : parameters that ended at an end of their range: a wider range may do better.
    evaluations : (parameters, value) in the order of the search.
    """

    method: str
    hyper: dict[str, Any]
    value: float
    best: Contraction | WorstCase | None = field(repr=False)
    by: str
    over: dict[str, tuple[float, float]]
    edges: tuple[str, ...]
    evaluations: list[tuple[dict[str, float], float]] = field(repr=False)
    seconds: float

    def __str__(self) -> str:
        at = ", ".join(f"{k} = {v:.7g}" for k, v in self.hyper.items())
        what = {"contraction": "contraction per round", "worst_case": "worst case", "quadratic": "squared spectral radius on quadratics"}
        edge = f"; at an end of the range searched: {', '.join(self.edges)}" if self.edges else ""
        return f"{self.method} at {at}: {what[self.by]} {self.value:.9g} (best of {len(self.evaluations)} tried{edge})"

    def to_dict(self) -> dict[str, Any]:
        """Plain data; infinities are None."""
        plain = {k: getattr(self, k) for k in ("method", "hyper", "value", "by", "over", "edges", "seconds")}
        tried = [{**place, "value": value if math.isfinite(value) else None} for place, value in self.evaluations]
        return plain | {"best": self.best.to_dict() if self.best else None, "evaluations": tried}

    def _repr_html_(self) -> str:
        return super()._repr_html_() + (self.best._repr_html_() if self.best else "")


def tune(
    method: str | Method,
    hyper: Mapping[str, Any] | None = None,
    *,
    over: Mapping[str, tuple[float, float]] | Iterable[str] = ("gamma",),
    by: str = "contraction",
    **problem: Any,
) -> Tuned:
    """The parameters at which a method's guarantee is best.

    Guarantee
    ---------
    ``value`` is proved at ``hyper`` like any result of what is minimised; that no other parameters are better is searched, not proved.

    Parameters
    ----------
    hyper : parameters that stay as they are.
    over : the parameters to choose, by name or with their ranges ``{"gamma": (low, high)}``; ``gamma`` on a logarithmic scale.
    by : "contraction" (:func:`contraction`), "worst_case" (:func:`worst_case`), or "quadratic": the largest squared spectral radius on
        quadratics with curvatures from mu to L, nothing lost in compression.
    problem : L, mu, and whatever else those functions take.

    Errors
    ------
    UsageError on bad input or where no place of the range has a finite value; Unsupported as the functions do.

    Example
    -------
    >>> found = tune("gd", L=1.0, mu=0.1, n=1)
    >>> abs(found.hyper["gamma"] - 2 / 1.1) < 1e-4, abs(found.value - (0.9 / 1.1) ** 2) < 1e-6
    (True, True)
    """
    began = time.perf_counter()
    method = get_method(method)
    if by not in BY:
        raise nearest(str(by), BY, "thing to tune by")
    ranges = _ranges(method, over, float(problem.get("L", 1.0)))
    fixed = dict(hyper or {})
    if twice := sorted(set(fixed) & set(ranges)):
        raise UsageError(f"{', '.join(twice)} cannot be both given and tuned.")
    method.hypers(**fixed, **{name: high for name, (_, high) in ranges.items()})
    evaluate = _evaluator(method, fixed, by, problem)
    tried: list[tuple[dict[str, float], float]] = []

    def value(place: Iterable[float]) -> float:
        point = {name: _place(name, float(p)) for name, p in zip(ranges, place, strict=True)}
        tried.append((point, evaluate(point)))
        return tried[-1][1]

    _search(value, [_scale(name, ends) for name, ends in ranges.items()], STARTS if by == "quadratic" else 1)
    best, found = min(tried, key=lambda t: t[1])
    provers: dict[str, Callable[..., Any]] = {"contraction": contraction, "worst_case": worst_case}
    proof = provers[by](method, {**fixed, **best}, **problem) if by in provers else None
    if not math.isfinite(found):
        raise UsageError(f"no place of the range has a finite {by.replace('_', ' ')}; give another range or setting.")
    edges = tuple(n for n, (a, b) in ranges.items() if min(best[n] - a, b - best[n]) <= EDGE * (best[n] if n == "gamma" else 1.0) and a < b)
    return Tuned(
        method=method.name,
        hyper=method.hypers(**fixed, **best)._asdict(),
        value=proof.upper if proof else found,
        best=proof,
        by=by,
        over=ranges,
        edges=tuple(name for name in edges if not (name != "gamma" and best[name] <= EDGE)),
        evaluations=tried,
        seconds=time.perf_counter() - began,
    )


def _ranges(method: Method, over: Any, L: float) -> dict[str, tuple[float, float]]:
    given = dict(over) if isinstance(over, Mapping) else dict.fromkeys([over] if isinstance(over, str) else over)
    if not given:
        raise UsageError("nothing to tune; name at least one parameter.")
    hints, made = get_type_hints(method.hyper), {}
    for name, ends in given.items():
        if name not in method.hyper._fields:
            raise nearest(name, method.hyper._fields, f"hyper-parameter of {method.name}")
        if hints[name] is int:
            raise UsageError(f"{name} of {method.name} is a whole number; tune the others for each value of it.")
        if ends is None and name not in RANGES:
            raise UsageError(f"give a range for {name}, as {name}=(low, high).")
        unit = 1 / L if ends is None and name == "gamma" else 1.0
        try:
            low, high = (float(e) * unit for e in (RANGES[name] if ends is None else ends))
        except (TypeError, ValueError):
            raise UsageError(f"the range of {name} is a pair of numbers, not {ends!r}.") from None
        if not (math.isfinite(high) and 0 <= low < high) or (name == "gamma" and low == 0):
            raise UsageError(f"the range of {name} needs 0 {'<' if name == 'gamma' else '<='} low < high, not ({low:g}, {high:g}).")
        made[name] = (low, high)
    return made


def _scale(name: str, ends: tuple[float, float]) -> tuple[float, float]:
    return (math.log(ends[0]), math.log(ends[1])) if name == "gamma" else ends


def _place(name: str, position: float) -> float:
    return math.exp(position) if name == "gamma" else position


Evaluator = Callable[[dict[str, float]], float]


def _evaluator(method: Method, fixed: dict[str, Any], by: str, problem: dict[str, Any]) -> Evaluator:
    if by == "quadratic":
        return _on_quadratics(method, fixed, problem)
    if by == "contraction":
        return lambda point: quick_rate(method, {**fixed, **point}, **problem)

    def evaluate(point: dict[str, float]) -> float:
        found = worst_case(method, {**fixed, **point}, **problem)
        return found.upper if found.ok else math.inf

    return evaluate


def _on_quadratics(method: Method, fixed: dict[str, Any], problem: dict[str, Any]) -> Evaluator:
    """The squared spectral radius from the transfer matrix in symbols, over curvatures between mu and L."""
    import sympy

    from verify_rates.theory.quadratic import LAM, quadratic
    from verify_rates.theory.symbols import SYMBOLS

    for name in problem:
        if name not in ("L", "mu"):
            raise UsageError(f"the quadratic reading knows L and mu alone, not {name}.")
    L, mu = float(problem.get("L", 1.0)), float(problem.get("mu", 0.0))
    if not 0 < mu <= L < math.inf:
        raise UsageError(f"a rate on quadratics needs 0 < mu <= L, not mu = {mu:g}, L = {L:g}.")
    letters = [name for name in method.hyper._fields if name not in fixed and get_type_hints(method.hyper)[name] is not int]
    matrix = quadratic(method, fixed).transfer
    made = sympy.lambdify([LAM, *(SYMBOLS.get(name, sympy.Symbol(name, positive=True)) for name in letters)], matrix, "numpy")
    curvatures = np.geomspace(mu, L, CURVATURES)

    def evaluate(point: dict[str, float]) -> float:
        radii = [np.abs(np.linalg.eigvals(np.array(made(lam, *(point[k] for k in letters)), dtype=float))).max() for lam in curvatures]
        return float(max(radii)) ** 2

    return evaluate


def _search(value: Callable[[Iterable[float]], float], ends: list[tuple[float, float]], starts: int) -> None:
    """Minimise: a coarse look, then golden sections between the neighbours of the best; for several parameters, simplexes."""
    from scipy.optimize import minimize_scalar

    if len(ends) == 1:
        grid = np.linspace(*ends[0], COARSE)
        values = [value([x]) for x in grid]
        k = int(np.argmin(values))
        low, high = grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)]
        minimize_scalar(lambda x: min(value([x]), BIG), bounds=(low, high), method="bounded", options={"xatol": XTOL, "maxiter": MOST})
        return
    axes = [np.linspace(*e, 6)[1:-1] for e in ends]
    seen = sorted((value(x), tuple(x)) for x in np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, len(ends)))
    for _, start in seen[:starts]:
        _descend(value, ends, np.array(start))


def _descend(value: Callable[[Iterable[float]], float], ends: list[tuple[float, float]], place: np.ndarray) -> None:
    """Simplexes from one place: they may get stuck at a kink, so start again where one ended, turned, and smaller where it did not help."""
    from scipy.optimize import minimize

    reached, size, rng = math.inf, 0.1, np.random.default_rng(0)
    while size > SMALLEST_SIMPLEX:
        options = {"xatol": XTOL, "fatol": FTOL, "maxfev": MOST, "initial_simplex": _simplex(place, ends, size, rng)}
        found = minimize(lambda x: min(value(x), BIG), place, method="Nelder-Mead", bounds=ends, options=options)
        if not found.fun < reached - 10 * FTOL:
            size /= 4
        place, reached = (found.x, found.fun) if found.fun < reached else (place, reached)


def _simplex(place: np.ndarray, ends: list[tuple[float, float]], size: float, rng: np.random.Generator) -> np.ndarray:
    """Corners that share of the ranges away, in random perpendicular directions."""
    turned = np.linalg.qr(rng.standard_normal((len(ends), len(ends))))[0]
    low, high = np.array(ends).T
    return np.clip(np.vstack([place, place + size * turned * (high - low)]), low, high)
