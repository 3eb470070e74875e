"""Quantities with units: times in seconds, rates in bits per second, sizes in bytes; bits and bytes are never mixed silently.

``B`` is a byte, ``bit`` is a bit, and a lone ``b`` is refused.  A plain number is in SI units.  Everything is read as a fraction
(a float as the binary number that it is) and rounded once; with ``exact`` the fraction itself is the answer.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

from verify_rates.solvers.method import UsageError

FLOAT_BYTES = 4  # of a number of a vector that is sent: float32
_PREFIX = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_TIME: dict[str, Any] = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": 1,
    "min": 60,
    "h": 3600,
}
_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*([A-Za-zµ/]*)\s*")
_DATA = re.compile(r"(Ki|Mi|Gi|Ti|k|K|M|G|T|)(B|byte|bytes|bit|bits)")
_AMBIGUOUS = re.compile(r"(Ki|Mi|Gi|Ti|k|K|M|G|T|m|g|)b")


def seconds(value: Any, name: str = "a time", exact: bool = False) -> Any:
    """A time in seconds: a number, or text such as ``50ms``; UsageError unless it is finite and at least 0.

    >>> seconds("50ms"), seconds(2), seconds("1.5 min")
    (0.05, 2.0, 90.0)
    >>> seconds("50ms", exact=True)
    Fraction(1, 20)
    """
    number, unit = _split(value, name, "50ms or 2s")
    if unit not in ("", *_TIME):
        raise UsageError(f"{name} has the unit {unit!r}; write a time in {', '.join(_TIME)}.")
    return _checked(number * _TIME.get(unit, 1), value, name, zero=True, exact=exact)


def bits_per_second(value: Any, name: str = "a bandwidth", exact: bool = False) -> Any:
    """A rate in bit/s: a number, or text such as ``1Gbit/s`` or ``1GB/s``; UsageError unless it is finite and positive.

    >>> bits_per_second("1Gbit/s"), bits_per_second("1GB/s"), bits_per_second(1e9)
    (1000000000.0, 8000000000.0, 1000000000.0)
    >>> bits_per_second("1Gb/s")
    Traceback (most recent call last):
    verify_rates.solvers.method.UsageError: a bandwidth '1Gb/s' is ambiguous: write bit for bits or B for bytes, such as 1Gbit/s or 1GB/s.
    """
    number, unit = _split(value, name, "1Gbit/s or 1GB/s")
    stem = unit.removesuffix("/s") if unit.endswith("/s") else unit.removesuffix("ps")
    if unit and stem == unit:
        raise UsageError(f"{name} must be a rate such as 1Gbit/s or 1GB/s, not {value!r}.")
    return _checked(number * (_bits(stem, value, name, "1Gbit/s or 1GB/s") if unit else 1), value, name, zero=False, exact=exact)


def size_bytes(value: Any, name: str = "a size", exact: bool = False) -> Any:
    """A size in bytes: a number, or text such as ``400MB`` or ``1Gbit``; UsageError unless it is finite and positive.

    >>> size_bytes("400MB"), size_bytes("1 KiB"), size_bytes("8kbit")
    (400000000.0, 1024.0, 1000.0)
    """
    number, unit = _split(value, name, "400MB or 1Gbit")
    one = Fraction(_bits(unit, value, name, "400MB or 1Gbit"), 8) if unit else 1
    return _checked(number * one, value, name, zero=False, exact=exact)


def _split(value: Any, name: str, example: str) -> tuple[Fraction, str]:
    if isinstance(value, str):
        found = _NUMBER.fullmatch(value)
        if found is None:
            raise UsageError(f"{name} must be a number with its unit, such as {example}, not {value!r}.")
        return Fraction(found[1]), found[2]
    try:
        finite = math.isfinite(value)
    except OverflowError:
        finite = False
    except (TypeError, ValueError):
        raise UsageError(f"{name} must be a number or a text such as {example}, not {value!r}.") from None
    if not finite:
        raise UsageError(f"{name} must be finite, not {value!r}.")
    return Fraction(value if isinstance(value, (int, Fraction, Decimal)) else float(value)), ""


def _bits(unit: str, value: Any, name: str, example: str) -> int:
    """Bits in one unit of data."""
    found = _DATA.fullmatch(unit)
    if found is None:
        if _AMBIGUOUS.fullmatch(unit):
            raise UsageError(f"{name} {value!r} is ambiguous: write bit for bits or B for bytes, such as {example}.")
        raise UsageError(f"{name} has the unit {unit!r}; write it as {example}.")
    return _PREFIX[found[1]] * (1 if found[2].startswith("bit") else 8)


def _checked(number: Fraction, value: Any, name: str, zero: bool, exact: bool) -> Any:
    try:
        rounded = float(number)
    except OverflowError:
        rounded = math.inf
    if not math.isfinite(rounded) or number < 0 or ((number if exact else rounded) == 0 and not zero):
        raise UsageError(f"{name} must be finite and {'at least 0' if zero else 'positive'}, not {value!r}.")
    return number if exact else rounded
