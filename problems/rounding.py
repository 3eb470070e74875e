"""Numbers rounded in the direction that keeps a bound valid.

``u`` is half the spacing of floats at 1, and ``gamma_k = k u / (1 - k u)`` bounds the relative error of k roundings in any order
(Higham, Accuracy and Stability of Numerical Algorithms, 2002, chapter 3).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

U = 2.0**-53


def gamma(k: float) -> float:
    """``k u / (1 - k u)``, rounded up: the relative error that k roundings can make."""
    return up(k * U / (1 - k * U))


def up(x: float, roundings: int = 1) -> float:
    """A float that is at least the exact value of which ``x`` is a result after so many roundings.

    >>> up(1.0) > 1.0
    True
    """
    for _ in range(roundings):
        x = math.nextafter(x, math.inf)
    return float(x)


def down(x: float, roundings: int = 1) -> float:
    """The mirror of :func:`up`."""
    return -up(-x, roundings)


def _positive(G: np.ndarray) -> bool:
    try:
        np.linalg.cholesky(G)
    except np.linalg.LinAlgError:
        return False
    return True


def smallest_eigenvalue(G: np.ndarray) -> float:
    """A proved lower bound on the smallest eigenvalue of the symmetric matrix ``G``, (d, d).

    An eigenvalue routine only suggests the shift ``s``.  The proof is a Cholesky factorisation of ``G - s I`` that runs to its
    end in floating point: then ``lambda_min(G - s I) >= -gamma_{d+1}/(1 - gamma_{d+1}) trace(G - s I)`` (Demmel 1989; Rump 2006,
    Verification of positive definiteness; no underflow), and forming ``G - s I`` costs one rounding a diagonal entry.

    >>> 0.999999 < smallest_eigenvalue(np.diag([1.0, 2.0])) <= 1.0
    True
    """
    d = len(G)
    first = np.linalg.eigvalsh(G)
    scale = max(abs(first[0]), abs(first[-1]))
    if scale == 0.0:
        return 0.0
    shift = (d + 4) * 4 * U * scale
    while True:
        s = first[0] - shift
        shifted = G - s * np.eye(d)
        if _positive(shifted):
            break
        shift *= 4
    trace = float(np.trace(shifted)) * (1 + gamma(d))
    g = gamma(d + 1)
    return down(s - (g / (1 - g) * trace + U * float(np.abs(np.diag(shifted)).max())) * (1 + 8 * U), 2)


def largest_eigenvalue(G: np.ndarray) -> float:
    """A proved upper bound on the largest eigenvalue of the symmetric matrix ``G``; see :func:`smallest_eigenvalue`."""
    return -smallest_eigenvalue(-G)


def gram(A: Any, weights: np.ndarray | None = None) -> tuple[np.ndarray, float]:
    """``(G, error)`` with ``|| G - A' diag(weights) A ||_2 <= error``, A sparse or dense, (m, d), weights >= 0.

    Each entry is a sum of m products of three factors in some order, so its error is at most ``gamma_{m+2}`` times the same sum of
    absolute values, whose matrix has a 2-norm of at most its trace.
    """
    scaled = A if weights is None else _scale_rows(A, weights)
    G = A.T @ scaled
    G = np.asarray(G.todense()) if hasattr(G, "todense") else G
    G = (G + G.T) / 2
    g = gamma(A.shape[0] + 4)
    return G, up(g / (1 - g) * float(np.trace(G)) * (1 + gamma(len(G))), 3)


def _scale_rows(A: Any, weights: np.ndarray) -> Any:
    if isinstance(A, np.ndarray):
        return weights[:, None] * A
    from scipy.sparse import diags_array

    return diags_array(weights) @ A


def gram_norm(A: Any, weights: np.ndarray, dense_up_to: int = 3000) -> float:
    """A proved upper bound on ``lambda_max(A' diag(weights) A)``, weights >= 0.

    Up to ``dense_up_to`` columns by :func:`largest_eigenvalue`.  Beyond, no dense matrix is formed: for any v > 0 the largest
    eigenvalue of the nonnegative matrix ``M = |A|' diag(weights) |A|`` is at most ``max_j (M v)_j / v_j`` (Collatz and Wielandt) and
    bounds that of the matrix itself; a power iteration chooses v.  It is tight for nonnegative data, loose for data of mixed signs.
    """
    if A.shape[1] <= dense_up_to:
        G, error = gram(A, weights)
        return up(largest_eigenvalue(G) + error)
    B = abs(A)
    v = np.ones(A.shape[1])
    best = math.inf
    for _ in range(200):
        Mv = B.T @ (weights * (B @ v))
        best = min(best, float((Mv / v).max()))
        if best == 0.0:  # no entry at all
            return 0.0
        v = np.maximum(Mv / Mv.max(), 1e-9)  # stays positive: the bound holds for every positive v
    return up(best * (1 + gamma(A.shape[0] + A.shape[1] + 4)), 2)
