"""Signatures of the compiled kernels: one per role, so that a method is compiled once and then runs on everything.

A kernel of the package is written ``@njit(GRAD, cache=True, nogil=True)``; this module points Numba's on-disk cache at a folder
keyed by the package's sources and the versions in use, so import it before decorating.  A user's kernel is written
``@kernel(GRAD)``, which keys by the user's file as well.  All arrays are C-contiguous and writable, ``out`` arrives
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
DTYPES = {
    "rows": (np.float64, 2),
    "indptr": (np.int64, 1),
    "cols": (np.int32, 1),
    "cols8": (np.uint8, 1),
    "vals": (np.float64, 1),
    "y": (np.float64, 1),
    "offsets": (np.int64, 1),
    "tensors": (np.float64, 3),
    "vectors": (np.float64, 2),
    "params": (np.float64, 1),
}
DATA = types.NamedTuple([_array(getattr(types, dtype.__name__), ndim) for dtype, ndim in DTYPES.values()], Data)

GRAD = types.void(DATA, types.int64, VECTOR, GENERATOR, types.boolean, VECTOR)  # (data, i, x, gen, exact, out)
VALUE = types.float64(DATA, types.int64, VECTOR)  # (data, i, x) -> f_i(x)
COMPRESS = types.float64(VECTOR, VECTOR, GENERATOR, VECTOR)  # (v, params, gen, out) -> bits


def make_data(**arrays: Any) -> Data:
    """Data of a problem from the slots it uses; dtypes and memory order as the kernels ask for, the other slots empty."""

    def slot(dtype: Any, ndim: int, value: Any) -> np.ndarray:
        return np.require(np.zeros((0,) * ndim) if value is None else value, dtype, ["C", "W"])

    return Data(**{name: slot(dtype, ndim, arrays.pop(name, None)) for name, (dtype, ndim) in DTYPES.items()}, **arrays)


def kernel(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a user's kernel for one of the signatures above; the cache is keyed by its file and what that imports."""

    def compile_it(fn: Callable[..., Any]) -> Any:
        with cache.keyed(cache.function_key(fn)):
            return njit(signature, cache=True, nogil=True)(fn)

    return compile_it
