"""A worst case in few dimensions: of the points that reach a value, one whose Gram matrices have small rank.

The trace of the Gram matrices, and after it the logarithm of their determinant (by reweighted traces), is minimised with the value kept;
what these heuristics find is then factored, ``G = X X'`` with as few columns as seem needed, and made strictly feasible by linear
programs over X.  The result is verified like any other lower end; the rank found need not be the least there is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from verify_rates.theory.worst_case.assemble import Conic, smat, triangle
from verify_rates.theory.worst_case.backends import off_diagonal, solve_conic
from verify_rates.theory.worst_case.bounds import ALLOWANCE, ROUNDING, Bound, grams

# Given up of the value, relatively: first for the heuristics, so that something is free, and at most in all.
GIVEN, MOST = 1e-7, 1e-6
ROUNDS = 4  # traces, the first unweighted
SOFT = 1e-3  # added to Gram matrices, relatively to their largest eigenvalue, before they are inverted to weights
PRESENT = 1e-4  # eigenvalues above this share of the largest are counted at first
# Changes within a box leave its square in the inequalities, rows being of size 1; the slack is more than the last leaves, and the solver,
# whose tolerance is in units of the box, and is not seen at the accuracy that callers need.
BOX, LEAST, TRIES, SLACK = 1e-5, 1e-7, 9, 1e-11
LINEAR = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}
HEAVY = 400  # order of a Gram matrix, times its rank, up to which this is tried


def low_rank(conic: Conic, z: np.ndarray, low: Bound) -> tuple[Bound, np.ndarray, tuple[int, int]] | None:
    """A verified lower end near ``low`` at a point of small rank, with the ranks of its two Gram matrices; None where none is found."""
    if conic.E.shape[0] or conic.mixed or not low.verified or low.value <= 0:
        return None
    candidate = _thin(conic, z, low.value)
    for ranks in _ranks(conic, candidate):
        if sum(k * r for k, r in zip(conic.orders, ranks, strict=True)) > HEAVY:
            return None
        made = _factored(conic, candidate, ranks)
        value = float(conic.c @ made) - ALLOWANCE * float(np.abs(conic.c) @ np.abs(made))
        verified = bool(np.all(conic.A @ made - conic.b <= -ROUNDING * (1 + abs(conic.A) @ np.abs(made))))
        if verified and value >= low.value * (1 - MOST):
            return Bound(value, True), made, ranks
    return None


def _thin(conic: Conic, z: np.ndarray, value: float) -> np.ndarray:
    """The point that reweighted traces lead to."""
    kept = sp.csr_array(sp.vstack([conic.A, -conic.c[None] / np.abs(conic.c).max()], format="csr"))
    limits = np.append(conic.b, -(1 - GIVEN) * value / np.abs(conic.c).max())
    common = {"A": kept, "b": limits, "names": (*conic.names, "value"), "scales": np.append(conic.scales, 1.0), "positions": (None, None)}
    weights = [np.eye(k) for k in conic.orders]
    for _ in range(ROUNDS):
        cost = [M[triangle(len(M))] * off_diagonal(len(M), 2.0) / max(np.trace(M), 1.0) for M in weights]
        c = -np.concatenate([*cost, np.zeros(conic.c.size - sum(conic.sizes))])
        raw = solve_conic(dataclasses.replace(conic, c=c, **common), 0.0, "CLARABEL")
        if not raw.ok:
            break
        z = raw.z
        weights = [np.linalg.inv(G + SOFT * np.linalg.norm(G, 2) * np.eye(len(G))) if G.any() else np.eye(len(G)) for G in grams(conic, z)]
    return z


def _ranks(conic: Conic, z: np.ndarray) -> Iterator[tuple[int, int]]:
    """Ranks to try: what seems present, and one or two more."""
    sizes = [np.linalg.eigvalsh(G) if G.size else np.zeros(0) for G in grams(conic, z)]
    largest = max(float(s.max(initial=0.0)) for s in sizes)
    seen = [int((s > PRESENT * largest).sum()) for s in sizes]
    for extra in range(3):
        yield tuple(min(r + extra, k) if r else 0 for r, k in zip(seen, conic.orders, strict=True))  # type: ignore[misc]


def _factored(conic: Conic, z: np.ndarray, ranks: tuple[int, int]) -> np.ndarray:
    """A point ``G = X X'`` near the best of that rank: linear programs over small changes of X and of the scalars, in ever smaller boxes,
    strictly inside the inequalities where the last leaves no more than their slack."""
    from scipy.optimize import linprog

    A, start, matrices, factors = conic.A.toarray(), 0, [], []
    for k, r, size, G in zip(conic.orders, ranks, conic.sizes, grams(conic, z), strict=True):
        rows = np.vstack([A, conic.c])[:, start : start + size] * off_diagonal(k, 0.5)
        matrices.append(np.array([smat(row, k) for row in rows]).reshape(len(rows), k, k))
        values, vectors = np.linalg.eigh(G) if k else (np.zeros(0), np.zeros((0, 0)))
        factors.append(vectors[:, k - r :] * np.sqrt(values[k - r :].clip(0)))
        start += size
    scalars, cuts = z[start:], np.cumsum([X.size for X in factors])
    box, settled = BOX, 0
    for _ in range(TRIES):
        point = np.concatenate([*((X @ X.T)[triangle(len(X))] for X in factors), scalars])
        of_factors = [(2 * M @ X).reshape(len(M), -1) for M, X in zip(matrices, factors, strict=True)]
        slopes = np.hstack([*of_factors, np.vstack([A, conic.c])[:, start:]])
        found = linprog(-slopes[-1], slopes[:-1], (conic.b - SLACK - A @ point) / box, bounds=(-1, 1), options=LINEAR)
        if found.x is None:
            box *= 10
            continue
        *changes, more = np.split(box * found.x, cuts)
        factors = [X + dX.reshape(X.shape) for X, dX in zip(factors, changes, strict=True)]
        scalars, settled, box = scalars + more, settled + (box == LEAST), max(box / 10, LEAST)
        if settled == 2:
            break
    return np.concatenate([*((X @ X.T)[triangle(len(X))] for X in factors), scalars])
