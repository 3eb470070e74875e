"""Closed forms guessed from numbers: what a solver's multipliers look like over a grid of parameters, for a symbolic check to judge.

A guess is no proof: it fits the numbers that it was given and may be wrong between and beyond them.  Put it into a step of
:class:`verify_rates.proofs_check.proof.Proof`, which accepts or refuses it for all parameters.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

from verify_rates.proofs_check.checker import Refused
from verify_rates.solvers.method import UsageError

DENOMINATOR = 64  # largest of a coefficient, where the first is 1
SPARE = 2  # points more than unknown coefficients in a fit
HELD_OUT = 4  # every fourth point is left out of the fits and only judges them


def guess_closed_form(points: Sequence[Mapping[str, Any]], values: Sequence[Any], *, degree: int = 3, tolerance: float = 1e-4) -> sp.Expr:
    """The simplest rational function, else root of a quadratic equation with polynomial coefficients, that fits the values.

    Parameters
    ----------
    points : parameter values by name, the same names at each point; the symbols of the guess are positive and have these names.
    values : a number at each point, such as a multiplier of a worst case.
    degree : largest total degree of the polynomials.
    tolerance : relative error up to which a value fits; multipliers of a solver carry up to 3e-5.

    Returns
    -------
    A SymPy expression with rational coefficients.

    Errors: Refused where nothing that simple fits; UsageError for data that say nothing.

    >>> grid = [{"a": a, "b": b} for a in range(1, 6) for b in range(1, 6)]
    >>> guess_closed_form(grid, [(p["a"] + 2) / p["b"] for p in grid])
    (a + 2)/b
    >>> guess_closed_form(grid, [p["a"] + math.sqrt(p["a"] ** 2 + p["b"]) for p in grid])
    a + sqrt(a**2 + b)
    """
    names = sorted(points[0]) if points else []
    if not names or len(points) != len(values) or any(sorted(p) != names for p in points):
        raise UsageError("a guess needs points with the same parameters, and one value for each.")
    x = np.array([[float(p[name]) for name in names] for p in points])
    v = np.array([float(value) for value in values])
    if not (np.isfinite(x).all() and np.isfinite(v).all()):
        raise UsageError("a guess needs finite parameters and values.")
    kept = np.arange(len(v)) % HELD_OUT != HELD_OUT - 1
    symbols = sp.symbols(names, positive=True)
    for degrees in _shapes(degree, len(names), int(kept.sum()) - SPARE):
        for expr in _fitted(degrees, symbols, x, v, kept):
            if _fits(expr, symbols, x, v, tolerance):
                return expr
    raise Refused(f"no rational or quadratic-irrational form of degree {degree} fits the {len(v)} values")


def _shapes(degree: int, variables: int, most: int) -> Iterator[tuple[int, ...]]:
    """Degrees of the coefficients of 1, v (and v**2) with few enough unknowns, the fewest first, rational forms before others."""
    for powers in (2, 3):
        shapes = itertools.product(range(degree + 1), repeat=powers)
        sizes = {shape: sum(math.comb(k + variables, variables) for k in shape) for shape in shapes}
        yield from sorted((shape for shape, size in sizes.items() if size <= most), key=lambda shape: (sizes[shape], shape))


def _exponents(degree: int, variables: int) -> list[tuple[int, ...]]:
    return [e for e in itertools.product(range(degree + 1), repeat=variables) if sum(e) <= degree]


def _fitted(degrees: tuple[int, ...], symbols: Sequence[Any], x: np.ndarray, v: np.ndarray, kept: np.ndarray) -> Iterator[Any]:
    """The forms of ``sum_k p_k(x)*v**k = 0`` with the p_k of least residual, coefficients rounded to small fractions."""
    terms = [(k, e) for k, degree in enumerate(degrees) for e in _exponents(degree, len(symbols))]
    rows = np.stack([v**k * np.prod(x ** np.array(e), axis=1) for k, e in terms], axis=1)[kept]
    sizes = np.linalg.norm(rows, axis=0)
    if not sizes.all():
        return
    found = np.linalg.svd(rows / sizes)[2][-1] / sizes
    lead = found[np.abs(found).argmax()]
    exact = [Fraction(float(c / lead)).limit_denominator(DENOMINATOR) for c in found]
    made = [sp.Integer(0)] * len(degrees)
    for (k, e), c in zip(terms, exact, strict=True):
        made[k] += sp.Rational(c.numerator, c.denominator) * sp.prod(s**i for s, i in zip(symbols, e, strict=True))
    if made[-1] == 0:
        return
    if len(made) == 2:
        yield sp.factor(-made[0] / made[1])
        return
    root = sp.sqrt(sp.factor(made[1] ** 2 - 4 * made[0] * made[2]))
    for sign in (1, -1):
        yield sp.expand((sign * root - made[1]) / (2 * made[2]))


def _fits(expr: Any, symbols: Sequence[Any], x: np.ndarray, v: np.ndarray, tolerance: float) -> bool:
    with np.errstate(all="ignore"):
        seen = np.broadcast_to(sp.lambdify(symbols, expr, "numpy")(*x.T), v.shape)
    return bool(np.all(np.abs(seen - v) <= tolerance * np.abs(v)))
