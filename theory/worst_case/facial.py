"""Relaxations without the minimiser, for problems in which nothing bounds the distance to it.

Where the initial condition leaves a direction free, no multipliers are strictly feasible and none can be verified.  Inequalities that
bind nothing there may be dropped (which can only raise the value), and the directions in which the slack matrices of all balanced
multipliers vanish go with them: there the slack is zero identically, not to rounding, and is not asked to be positive.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from scipy.linalg import null_space

from verify_rates.theory.worst_case.assemble import Conic, triangle

# A direction is absent where the squared entries along it sum to less than this share of the largest sum: rounding of sums of squares.
ABSENT = 1e-14


def relaxations(conic: Conic) -> Iterator[tuple[Conic, np.ndarray]]:
    """Smaller problems with a value at least as large, and which rows they keep."""
    to_minimiser = np.array([name.startswith("interpolation 0 ") for name in conic.names])
    about_it = np.array([(name.startswith("interpolation ") and name.endswith(" 0")) or name == "heterogeneity" for name in conic.names])
    for dropped in (np.zeros_like(about_it), to_minimiser, to_minimiser | about_it):
        smaller = None if conic.mixed else _reduced(conic, ~dropped)
        if smaller and (dropped.any() or smaller.orders != conic.orders):
            yield smaller, np.flatnonzero(~dropped)


def _reduced(conic: Conic, kept: np.ndarray) -> Conic:
    """The rows kept, over the directions in which a slack matrix can differ from zero."""
    A = conic.A[kept].toarray()
    gram = sum(conic.sizes)
    possible = _slack_space(A[:, :gram], conic.c[:gram], A[:, gram:], conic.c[gram:])
    start, blocks, orders = 0, [], []
    for k, size in zip(conic.orders, conic.sizes, strict=True):
        part = slice(start, start + size)
        reduced, order = _compressed(np.vstack([A[:, part], conic.c[part]]), possible[:, part], k)
        blocks.append(reduced)
        orders.append(order)
        start += size
    rows = np.hstack([*blocks, np.vstack([A[:, gram:], conic.c[gram:]])])
    return dataclasses.replace(
        conic,
        c=rows[-1],
        A=sp.csr_array(rows[:-1]),
        b=conic.b[kept],
        E=sp.csr_array((0, rows.shape[1])),
        P=sp.csr_array((0, rows.shape[1])),
        orders=(orders[0], orders[1]),
        positions=(None, None),
        names=tuple(np.array(conic.names, dtype=object)[kept]),
        scales=conic.scales[kept],
    )


def _slack_space(A: np.ndarray, c: np.ndarray, AF: np.ndarray, cF: np.ndarray) -> np.ndarray:
    """Slack matrices ``A'lam - c`` of all lam that balance the scalars: one, and a basis of the differences."""
    if not AF.shape[1]:
        return np.vstack([A, -c])
    particular = np.linalg.lstsq(AF.T, cF, rcond=None)[0]
    return np.vstack([null_space(AF.T).T @ A, particular @ A - c])


def _matrices(rows: np.ndarray, k: int) -> np.ndarray:
    i, j = triangle(k)
    matrices = np.zeros((len(rows), k, k))
    matrices[:, i, j] = matrices[:, j, i] = rows * np.where(i == j, 1.0, 0.5)
    return matrices


def _compressed(rows: np.ndarray, possible: np.ndarray, k: int) -> tuple[np.ndarray, int]:
    """Coefficients over the triangle of a smaller Gram matrix: directions in which all possible matrices vanish are left out."""
    if not k:
        return rows, k
    M = _matrices(possible, k)
    weights, vectors = np.linalg.eigh(np.einsum("mij,mkj->ik", M, M, optimize=True))
    basis = vectors[:, weights > ABSENT * max(weights[-1], 1e-300)]
    if basis.shape[1] == k:
        return rows, k
    small = np.einsum("ia,mij,jb->mab", basis, _matrices(rows, k), basis, optimize=True)
    r, s = triangle(basis.shape[1])
    return small[:, r, s] * np.where(r == s, 1.0, 2.0), basis.shape[1]
