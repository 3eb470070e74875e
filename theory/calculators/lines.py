"""Printed formulas beside the time line of a step function."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import sympy as sp

from verify_rates.theory.symbols import parse


def pace_of(method: str, hyper: Mapping[str, int] | None = None, **options: Any) -> sp.Expr:
    """Seconds per step of the method's time line, as a formula in T_comp, T_tx and lat.

    >>> pace_of("local_sgd", {"H": 2})
    T_comp + T_tx/2 + lat/2
    """
    from verify_rates.theory.timeline import timeline

    return timeline(method, dict(hyper or {}), compute=1.0, latency=1.0, bandwidth=8.0, size=1.0, **options).formula


def printed(text: str, **values: Any) -> sp.Expr:
    """A formula of times in the letters of :func:`pace_of`, with numbers for some of them.

    >>> printed("T_comp + lat/H", H=2)
    T_comp + lat/2
    """
    made = parse(text)
    return made.subs({s: values.get(s.name, sp.Symbol(s.name, nonnegative=True)) for s in made.free_symbols})


@lru_cache(maxsize=64)
def function(text: str, names: str) -> Callable[..., Any]:
    """A formula as a function of its letters that keeps fractions.

    >>> from fractions import Fraction
    >>> function("Max(a/2, c)", "a c")(Fraction(1, 3), Fraction(1, 8))
    Fraction(1, 6)
    """
    made = parse(text)
    known = {s.name: s for s in made.free_symbols}
    parts = {sp.Symbol(f"ratio_{i}"): r for i, r in enumerate(sorted(r for r in made.atoms(sp.Rational) if not r.is_Integer))}
    made = made.xreplace({r: symbol for symbol, r in parts.items()})  # code would say 1/2 as a float
    inner = {"Max": max, "Min": min, "ceiling": math.ceil, "floor": math.floor}
    compute = sp.lambdify([*parts, *(known.get(name, sp.Symbol(name)) for name in names.split())], made, [inner, "math"])
    return partial(compute, *(Fraction(int(r.p), int(r.q)) for r in parts.values()))
