"""Whether a stored page is what comes out now: texts and data, not pixels."""

from __future__ import annotations

import math
import re
from typing import Any

RTOL = 1e-4  # of stored data against data made elsewhere: rounding of runs and the ends of worst cases
ATOL = 1e-10  # residuals of identities are rounding, below 1e-11 of their terms
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.]*\d)")
RTOL_SHOWN = 2e-3  # numbers on a page have four digits, of which the last may be rounded otherwise


def difference(now: Any, then: Any, where: str = "") -> str:
    """The first difference between two data in one sentence; "" where there is none."""
    if isinstance(now, dict) and isinstance(then, dict):
        if gone := sorted(now.keys() ^ then.keys()):
            return f"{gone[0]} stands on one side alone"
        return next((d for k in now if (d := difference(now[k], then[k], f"{where} {k}".strip()))), "")
    if isinstance(now, list) and isinstance(then, list):
        if len(now) != len(then):
            return f"{where} has {len(now)} entries, stored are {len(then)}"
        return next((d for a, b in zip(now, then, strict=True) if (d := difference(a, b, where))), "")
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (now, then))
    same = math.isclose(now, then, rel_tol=RTOL, abs_tol=ATOL) if numbers else now == then
    return "" if same else f"{where} is {now!r}, stored is {then!r}"


def text_difference(now: str, then: str) -> str:
    """The first line in which two texts differ beyond the rounding of the numbers shown; "" where there is none."""
    ours, theirs = now.splitlines(), then.splitlines()
    for k, (a, b) in enumerate(zip(ours, theirs, strict=False), start=1):
        if a != b and not _alike(a, b):
            return f"line {k} is now {a[:120]!r}"
    return "" if len(ours) == len(theirs) else f"it has {len(ours)} lines, stored are {len(theirs)}"


def _alike(a: str, b: str) -> bool:
    """The same words, and numbers that differ by rounding; whole numbers have to agree."""
    if _NUMBER.split(a) != _NUMBER.split(b):
        return False
    pairs = zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=True)
    return all(x == y or (not (x + y).isdigit() and math.isclose(float(x), float(y), rel_tol=RTOL_SHOWN)) for x, y in pairs)
