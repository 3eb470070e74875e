"""Parameter points of a claim, checked before anything is computed from them: a name that nothing reads would be checked silently."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from verify_rates.solvers.method import UsageError, get_method, nearest
from verify_rates.theory import symbols
from verify_rates.theory.claims import Claim, Point

RECIPE_KEYS = ("problem", "compressor", "topology", "seeds", "x0")  # of a run: what is run


def check_points(claim: Claim) -> None:
    """UsageError where a point of the claim sets what nothing reads, what the claim defines itself, or what is no finite number."""
    for point in claim.grid:
        _checked(claim, point, "grid", ())
    for point in claim.runs:
        _checked(claim, point, "run", RECIPE_KEYS)
        problem = point.get("problem")
        if not isinstance(problem, Mapping) or not isinstance(problem.get("name"), str):
            raise UsageError(f"claim {claim.id}: a run needs problem={{'name': ..., ...}}, not {problem!r}.")
        whole(claim, point.get("seeds", 1), "seeds", 1)
        x0 = point.get("x0")
        if x0 is not None and (isinstance(x0, str) or not all(_finite(c) for c in x0)):
            raise UsageError(f"claim {claim.id}: x0 must be a point, d finite numbers, not {x0!r}.")


def _checked(claim: Claim, point: Point, where: str, further: Iterable[str]) -> None:
    known = {*symbols.SYMBOLS, *get_method(claim.method).hyper._fields, *further}
    for name, value in point.items():
        if name not in known:
            raise nearest(str(name), known, f"name in a {where} of claim {claim.id}")
        if name in claim.lets:
            raise UsageError(f"claim {claim.id}: a {where} must not set {name}, which the claim defines as {claim.lets[name]}.")
        if name in symbols.SYMBOLS and not isinstance(value, (list, tuple)) and not _finite(value):
            raise UsageError(f"claim {claim.id}: {name} in a {where} must be a finite number, not {value!r}.")


def _finite(value: Any) -> bool:
    try:
        return not isinstance(value, str) and math.isfinite(value)
    except (TypeError, OverflowError):
        return False


def whole(claim: Claim, value: Any, name: str, least: int) -> int:
    """A whole number of at least ``least``; UsageError elsewhere."""
    if value is None:
        raise UsageError(f"claim {claim.id}: give {name} at every point.")
    if not _finite(value) or value != int(value) or value < least:
        raise UsageError(f"claim {claim.id}: {name} must be a whole number of at least {least}, not {value!r}.")
    return int(value)


def steps_of(claim: Claim, values: Mapping[str, Any]) -> int:
    """The number of steps at a point."""
    return whole(claim, values.get("N"), "N", 1)
