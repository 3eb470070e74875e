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

from verify_rates.theory.worst_case.assemble import Conic, in_basis, triangle

# Multipliers below this share of the largest may be those of inequalities that bind nothing.
IDLE = 1e-5
# A direction is absent where the entries of all matrices along it are rounding of zero: this share of the largest, or of 1.
ABSENT = 1e-12


def relaxations(conic: Conic, lam: np.ndarray) -> Iterator[tuple[Conic, np.ndarray]]:
    """Smaller problems with a value at least as large, and which rows they keep; ``lam`` are multipliers that nearly do."""
    to_minimiser = np.array([name.startswith("interpolation 0 ") for name in conic.names])
    about_it = np.array([(name.startswith("interpolation ") and name.endswith(" 0")) or name == "heterogeneity" for name in conic.names])
    idle = lam <= IDLE * lam.max(initial=0.0)
    for dropped in (np.zeros_like(about_it), to_minimiser, to_minimiser | about_it, idle):
        smaller = _rows(conic, ~dropped)
        smaller = _freed(smaller) or smaller
        smaller = smaller if conic.mixed or conic.E.shape[0] else _reduced(smaller)
        if dropped.any() or smaller.orders != conic.orders:
            yield smaller, np.flatnonzero(~dropped)


def _rows(conic: Conic, kept: np.ndarray) -> Conic:
    names = tuple(np.array(conic.names, dtype=object)[kept])
    return dataclasses.replace(conic, A=sp.csr_array(conic.A[kept]), b=conic.b[kept], scales=conic.scales[kept], names=names)


def _freed(conic: Conic) -> Conic | None:
    """Vectors of whose squares nothing speaks may be as long as they like, so that their products with others are free numbers."""
    start, inner, free, orders = 0, [], [], []
    spoken = np.asarray(sum(abs(M).sum(axis=0) for M in (conic.A, conic.E, conic.P))).ravel() + np.abs(conic.c)
    for k, size in zip(conic.orders, conic.sizes, strict=True):
        i, j = triangle(k)
        columns = np.arange(start, start + size)
        silent = spoken[columns[i == j]] == 0
        inside = ~(silent[i] | silent[j])
        inner.append(columns[inside])
        free.append(columns[~inside & (spoken[columns] > 0)])
        orders.append(int((~silent).sum()))
        start += size
    if tuple(orders) == conic.orders:
        return None
    order = np.concatenate([*inner, *free, np.arange(start, conic.c.size)])
    A, E, P = (sp.csr_array(M[:, order]) for M in (conic.A, conic.E, conic.P))
    return dataclasses.replace(conic, c=conic.c[order], A=A, E=E, P=P, orders=(orders[0], orders[1]), positions=(None, None))


def _reduced(conic: Conic) -> Conic:
    """The same over the directions in which a slack matrix can differ from zero."""
    A = conic.A.toarray()
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
        E=sp.csr_array((0, rows.shape[1])),
        P=sp.csr_array((0, rows.shape[1])),
        orders=(orders[0], orders[1]),
        positions=(None, None),
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
    _, sizes, directions = np.linalg.svd(np.linalg.qr(M.reshape(-1, k), mode="r") if len(M) else M.reshape(-1, k))
    present = np.pad(sizes, (0, k - len(sizes))) > ABSENT * max(1.0, sizes.max(initial=0.0))
    if present.all():
        return rows, k
    basis = directions[present].T
    return in_basis(rows, basis), basis.shape[1]
