"""Signatures of the compiled kernels: one per role, so that a method is compiled once and then runs on everything.

A kernel of the package is written ``@njit(cache=True, nogil=True)`` and handed out by :func:`ready`; this module points Numba's
on-disk cache at a folder keyed by the package's sources and the versions in use, so import it before decorating.  A user's kernel
is written ``@kernel(GRAD)``, which keys by the user's file as well.  All arrays are C-contiguous and writable, ``out`` arrives
uninitialised (write every entry), and a kernel never changes its inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, typeof, types
from numba.core import config

from verify_rates.solvers.engine import cache
from verify_rates.solvers.oracle import Data

config.CACHE_DIR = str(cache.package_folder())


def _array(dtype: Any, ndim: int) -> Any:
    return types.Array(dtype, ndim, "C")


VECTOR = _array(types.float64, 1)
MATRIX = _array(types.float64, 2)
GENERATOR = typeof(np.random.default_rng(0))
_SLOTS = [("float64", 2), ("int64", 1), ("int32", 1), ("uint8", 1), ("float64", 1), ("float64", 1), ("int64", 1), ("float64", 3)]
_SLOTS += [("float64", 2), ("float64", 1)]  # in the order of Data's fields
DATA = types.NamedTuple([_array(getattr(types, dtype), ndim) for dtype, ndim in _SLOTS], Data)


GRAD = types.void(DATA, types.int64, VECTOR, GENERATOR, types.boolean, VECTOR)  # (data, i, x, gen, exact, out)
VALUE = types.float64(DATA, types.int64, VECTOR)  # (data, i, x) -> f_i(x)
COMPRESS = types.float64(VECTOR, VECTOR, GENERATOR, VECTOR)  # (v, params, gen, out) -> bits


def ready(fn: Any, signature: Any) -> Any:
    """A kernel of the package, written ``@njit(cache=True, nogil=True)``, compiled for its signature the first time it is needed.

    As a function that is handed to compiled code it may have this one version alone.
    """
    if tuple(signature.args) not in fn.overloads:
        if fn.overloads:  # called by hand before, on other types
            fn = njit(cache=True, nogil=True)(fn.py_func)
        fn.compile(signature)
        fn.disable_compile()
    return fn


def kernel(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a user's kernel for one of the signatures above; the cache is keyed by its file and what that imports."""

    def compile_it(fn: Any) -> Any:
        with cache.keyed(cache.function_key(fn)):
            return njit(signature, cache=True, nogil=True)(cache.renamed(fn))

    return compile_it
