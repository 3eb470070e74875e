"""Vectors in pieces of equal length, and the orthonormal DCT-II on a piece."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np


def largest_divisor(d: int, most: int) -> int:
    """The largest divisor of d that is at most ``most``.

    >>> [largest_divisor(d, 64) for d in (64, 96, 128, 127)]
    [64, 48, 64, 1]
    """
    s = min(d, most)
    while d % s:
        s -= 1
    return s


@lru_cache(maxsize=32)
def dct_basis(s: int) -> np.ndarray:
    """The orthonormal DCT-II as a matrix, (s, s): row k is the k-th cosine.

    >>> B = dct_basis(5)
    >>> bool(np.abs(B @ B.T - np.eye(5)).max() < 1e-15)
    True
    """
    k, j = np.arange(s)[:, None], np.arange(s)[None, :]
    basis = np.sqrt(2 / s) * np.cos(np.pi * (j + 0.5) * k / s)
    basis[0] = np.sqrt(1 / s)
    basis.flags.writeable = False
    return basis


def in_chunks(v: Any, M: np.ndarray, xp: Any) -> Any:
    """Every piece p of v, as long as M, replaced by ``p M``; v is (..., d)."""
    pieces = xp.reshape(v, (*v.shape[:-1], v.shape[-1] // len(M), len(M)))
    return xp.reshape(pieces @ xp.asarray(np.array(M)), v.shape)
