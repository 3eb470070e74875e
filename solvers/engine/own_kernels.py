"""A user's functions as kernels of the compiled engine, where Numba compiles them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

from verify_rates.solvers.engine import cache
from verify_rates.solvers.words import Unsupported

REASON = 300  # characters of Numba's reason that a sentence repeats


def compiled(fn: Any) -> Any:
    """A user's function for use inside a kernel, with the helpers that it calls; one that is compiled already stays as it is."""
    if hasattr(fn, "py_func"):
        return fn
    from verify_rates.solvers.engine.compiled import _register

    for helper in cache.helpers(fn):
        _register(helper)
    return njit(nogil=True, error_model="numpy")(cache.renamed(fn))


def fixed(signature: Any, kernel: Callable[..., Any], what: str) -> Any:
    """The kernel compiled for its signature; Unsupported, with the engine that does it, where Numba cannot.

    It is not kept on disk: what it closes over (arrays, parameters) stands in no file that a key could follow.
    """
    try:
        return njit(signature, nogil=True, error_model="numpy")(kernel)
    except Exception as error:  # lowering fails with errors of any type
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        told = [line for line in lines if not line.startswith(("Failed in", "-", "\x1b", "["))]
        why = " ".join((told or lines or [type(error).__name__])[0].split())[:REASON].rstrip(".:")
        raise Unsupported(f"compiled run of {what}: Numba cannot compile its function ({why}); engine='numpy' runs it as it is") from None
