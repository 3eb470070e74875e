"""Quantities with units: times in seconds, rates in bits per second, sizes in bytes; bits and bytes are never mixed silently.

``B`` is a byte, ``bit`` is a bit, and a lone ``b`` is refused.  A plain number is in SI units.
"""

from __future__ import annotations

import math
import re
from typing import Any

from verify_rates.solvers.method import UsageError

_PREFIX = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_TIME = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-zµ/]*)\s*")
_DATA = re.compile(r"(Ki|Mi|Gi|Ti|k|K|M|G|T|)(B|byte|bytes|bit|bits)")
_AMBIGUOUS = re.compile(r"(Ki|Mi|Gi|Ti|k|K|M|G|T|m|g|)b")


def seconds(value: Any, name: str = "a time") -> float:
    """A time in seconds: a number, or text such as ``50ms``; UsageError unless it is finite and at least 0.

    >>> seconds("50ms"), seconds(2), seconds("1.5 min")
    (0.05, 2.0, 90.0)
    """
    number, unit = _split(value, name, "50ms or 2s")
    if unit not in ("", *_TIME):
        raise UsageError(f"{name} has the unit {unit!r}; write a time in {', '.join(_TIME)}.")
    return _checked(number * _TIME.get(unit, 1.0), value, name, zero=True)


def bits_per_second(value: Any, name: str = "a bandwidth") -> float:
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
    return _checked(number * (_bits(stem, value, name, "1Gbit/s or 1GB/s") if unit else 1.0), value, name, zero=False)


def size_bytes(value: Any, name: str = "a size") -> float:
    """A size in bytes: a number, or text such as ``400MB`` or ``1Gbit``; UsageError unless it is finite and positive.

    >>> size_bytes("400MB"), size_bytes("1 KiB"), size_bytes("8kbit")
    (400000000.0, 1024.0, 1000.0)
    """
    number, unit = _split(value, name, "400MB or 1Gbit")
    return _checked(number * (_bits(unit, value, name, "400MB or 1Gbit") / 8 if unit else 1.0), value, name, zero=False)


def _split(value: Any, name: str, example: str) -> tuple[float, str]:
    if isinstance(value, str):
        found = _NUMBER.fullmatch(value)
        if found is None:
            raise UsageError(f"{name} must be a number with its unit, such as {example}, not {value!r}.")
        return float(found[1]), found[2]
    try:
        return float(value), ""
    except (TypeError, ValueError):
        raise UsageError(f"{name} must be a number or a text such as {example}, not {value!r}.") from None


def _bits(unit: str, value: Any, name: str, example: str) -> float:
    """Bits in one unit of data."""
    found = _DATA.fullmatch(unit)
    if found is None:
        if _AMBIGUOUS.fullmatch(unit):
            raise UsageError(f"{name} {value!r} is ambiguous: write bit for bits or B for bytes, such as {example}.")
        raise UsageError(f"{name} has the unit {unit!r}; write it as {example}.")
    return _PREFIX[found[1]] * (1.0 if found[2].startswith("bit") else 8.0)


def _checked(number: float, value: Any, name: str, zero: bool) -> float:
    if not math.isfinite(number) or number < 0 or (number == 0 and not zero):
        raise UsageError(f"{name} must be finite and {'at least 0' if zero else 'positive'}, not {value!r}.")
    return number
