"""What a user's function does wrong, in one sentence: where it fails, what it returns, whether it repeats itself."""

from __future__ import annotations

import dis
import inspect
import os
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from verify_rates.solvers.method import UsageError
from verify_rates.solvers.words import Unsupported

SHOWN = 8  # entries of a vector that a sentence shows
MODERATE = 1e50  # vectors up to this size have no excuse for NaN: neither squares nor fourth powers of them overflow

_WORDS = tuple(f"verify_rates.solvers.{name}" for name in ("words", "kinds", "engine.arrays"))
_LIBRARIES = tuple(os.path.realpath(sysconfig.get_paths()[name]) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def is_own(thing: Any) -> bool:
    """Whether an object is of a class of the user's, or made of a user's functions (then it says where its ``home`` is).

    >>> from verify_rates.solvers.compressors import TopK
    >>> is_own(TopK(3))
    False
    """
    return thing is not None and (hasattr(thing, "home") or not f"{type(thing).__module__}.".startswith("verify_rates."))


def shown(v: Any) -> str:
    """A vector's first entries as text.

    >>> shown(np.array([1.0, -0.5]))
    '(1, -0.5)'
    """
    entries = np.ravel(np.asarray(v, dtype=float))
    listed = ", ".join(f"{x:.6g}" for x in entries[:SHOWN])
    return f"({listed}{', ...' if len(entries) > SHOWN else ''})"


def fault(error: BaseException, owned: Callable[[str], bool] = lambda file: True) -> str | None:
    """``line 12 of mine.py failed with ...`` where the exception left a user's function; None where it is the package's own.

    ``owned`` says whether a file, neither a library's nor the package's, is the user's.

    >>> fault(ValueError("raised nowhere")) is None
    True
    """
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        file, module = frame.f_code.co_filename, frame.f_globals.get("__name__", "")
        if module in _WORDS:
            continue  # a word that was given what it cannot take
        if module == "verify_rates" or module.startswith("verify_rates."):
            return None  # the innermost frame that is no library's decides whose error it is
        if not file.startswith("<") and not os.path.realpath(file).startswith(_LIBRARIES):
            if not owned(file):
                return None
            what = f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(".: ")
            return f"line {line} of {os.path.basename(file)}, in {frame.f_code.co_name}, failed with {what}."
    return None


@contextmanager
def blamed() -> Iterator[None]:
    """Inside, an exception that leaves a user's function becomes a UsageError with its line."""
    try:
        yield
    except (UsageError, Unsupported):
        raise
    except Exception as error:
        sentence = fault(error)
        if sentence is None:
            raise
        raise UsageError(sentence) from error


def called(what: str, fn: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """``fn(*args, **named)``; an exception in it is a UsageError that names ``what``.

    >>> called("value of bowl", lambda x: 1 / x, 0)
    Traceback (most recent call last):
    verify_rates.solvers.method.UsageError: value of bowl failed with ZeroDivisionError: division by zero.
    """
    try:
        return fn(*args, **named)
    except (UsageError, Unsupported):
        raise
    except Exception as error:
        file = inspect.unwrap(fn).__code__.co_filename if hasattr(fn, "__code__") else None
        lines = [at.lineno for at in traceback.extract_tb(error.__traceback__) if at.filename == file]
        where = f" in line {lines[-1]} of {os.path.basename(str(file))}" if lines and not str(file).startswith("<") else ""
        told = f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(".: ")
        raise UsageError(f"{what} failed{where} with {told}.") from error


def vectors(what: str, given: Any, shape: tuple[int, ...], at: np.ndarray) -> np.ndarray:
    """What a user's function returned for ``at``, as floats of that shape; UsageError for another shape, or for NaN without an excuse."""
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"{what} must return numbers of shape {shape}, not {type(given).__name__}.") from None
    if found.shape != shape:
        raise UsageError(f"{what} must return shape {shape}, not {found.shape}.")
    if np.isnan(found).any() and np.abs(at).max(initial=0.0) <= MODERATE:  # a comparison with NaN is false
        raise UsageError(f"{what} returns NaN at the finite vector {shown(at)}.")
    return found


def repeats(what: str, first: Any, second: Any) -> None:
    """UsageError where two calls that must agree do not."""
    if not np.array_equal(first, second, equal_nan=True):
        raise UsageError(
            f"{what} gives two answers at one point, {shown(first)} and {shown(second)}; "
            "all its randomness has to come from the generator that it is handed."
        )


def reads(fn: Callable[..., Any], position: int) -> bool:
    """Whether a function uses its parameter at that position anywhere; True where its code cannot be seen.

    >>> reads(lambda v, gen: -v, 1), reads(lambda v, gen: gen.random() * v, 1)
    (False, True)
    """
    code = getattr(getattr(fn, "py_func", fn), "__code__", None)
    if code is None or hasattr(fn, "__wrapped__") or position >= code.co_argcount:
        return True
    name = code.co_varnames[position]
    used = (i.argval if isinstance(i.argval, tuple) else (i.argval,) for i in dis.get_instructions(code) if i.opname.startswith("LOAD"))
    return any(name in names for names in used)
