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


ADAPTATIONS, LOWER, UPPER = 10, 0.8, 1.3  # DGC's released bounds


def sampled_selection(v: np.ndarray, k: int, share: float) -> np.ndarray:
    """Which entries of v DGC sends: those above a threshold from a strided sample, at most k, the first ones where they are more.

    Plain loops, since the compiled engine compiles this very function.

    >>> sampled_selection(np.array([4.0, 1.0, 3.0, 1.0, 2.0, 1.0, 1.0, 1.0]), 2, 0.5).nonzero()[0].tolist()
    [0, 2]
    """
    d, size = v.size, np.abs(v)
    count = max(1, int(np.ceil(share * d)))
    sample = np.sort(size[:: max(1, d // count)][:count])
    level, kept = sample[max(0, sample.size - int(np.ceil(sample.size * k / d)))], np.zeros(d, dtype=np.bool_)
    for _ in range(ADAPTATIONS):
        found = (size >= level).sum()
        if found > UPPER * k:  # exact top-k among the selected; ties to the lowest index
            level = np.sort(size)[d - k]
            kept = size > level
            break
        if found >= LOWER * k:
            break
        level *= LOWER
    left = k - kept.sum()
    for j in range(d):
        if left > 0 and not kept[j] and size[j] >= level:
            kept[j] = True
            left -= 1
    return kept
