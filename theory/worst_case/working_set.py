"""Solving with few of the inequalities, over a basis in which they are sparse; what they leave violated is added.

Multipliers of fewer inequalities are multipliers of all (the others are zero), so that an upper end loses nothing; a primal point that
satisfies the inequalities left out is optimal for all of them.  Proofs of first-order methods mostly use pairs of neighbouring points and
pairs with the minimiser, and over the positions as a basis such inequalities have few entries: the semidefinite cone splits into
small ones.  Nothing found here is believed: ends are verified on the whole problem in its own basis.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy.sparse as sp

from verify_rates.theory.worst_case.assemble import Conic, in_basis, smat, triangle
from verify_rates.theory.worst_case.backends import Raw, solve_conic

MANY = 120  # inequalities below which one solve of all is quicker
ROUNDS = 2  # solves with few before all are taken
# Rows have largest entry 1; what is violated by less is what a good solve of all would leave, and is repaired like it.
VIOLATED = 1e-9
VANISHING = 1e-12  # entries over the other basis that are rounding of zero


def solve_few(conic: Conic, margin: float) -> Raw | None:
    """As :func:`solve_conic`, through few inequalities; None where there are not many, or where few did not do."""
    known = all(k == 0 or basis is not None for k, basis in zip(conic.orders, conic.positions, strict=True))
    if len(conic.b) < MANY or conic.mixed or conic.E.shape[0] or not known:
        return None
    kept = np.array([_first(name) for name in conic.names])
    for _ in range(ROUNDS):
        raw = _over_positions(dataclasses.replace(conic, A=sp.csr_array(conic.A[kept]), b=conic.b[kept], scales=conic.scales[kept]), margin)
        if not raw.ok:
            return None
        missed = (conic.A @ raw.z - conic.b > VIOLATED * max(1.0, float(np.abs(raw.z).max()))) & ~kept
        if not missed.any():
            lam = np.zeros(len(conic.b))
            lam[kept] = raw.lam
            return dataclasses.replace(raw, lam=lam)
        kept |= missed
    return None


def _first(name: str) -> bool:
    """Whether an inequality is taken from the start."""
    words = name.split()
    if words[0] != "interpolation":
        return True
    i, j = int(words[1]), int(words[2])
    return i == 0 or j == 0 or abs(i - j) == 1


def _over_positions(conic: Conic, margin: float) -> Raw:
    """Solve over the basis of positions; the primal point is told over the old one, multipliers are the same."""
    rows, parts, start = np.vstack([conic.A.toarray(), conic.c]), [], 0
    turns = [np.eye(k) if basis is None else np.linalg.inv(basis) for k, basis in zip(conic.orders, conic.positions, strict=True)]
    for size, turn in zip(conic.sizes, turns, strict=True):
        made = in_basis(rows[:, start : start + size], turn)
        parts.append(np.where(np.abs(made) <= VANISHING, 0.0, made))
        start += size
    turned = np.hstack([*parts, rows[:, start:]])
    raw = solve_conic(dataclasses.replace(conic, A=sp.csr_array(turned[:-1]), c=turned[-1]), margin, "CLARABEL", sparse=True)
    if not raw.ok:
        return raw
    z, start = raw.z.copy(), 0
    for k, size, turn in zip(conic.orders, conic.sizes, turns, strict=True):
        z[start : start + size] = (turn @ smat(raw.z[start : start + size], k) @ turn.T)[triangle(k)]
        start += size
    return dataclasses.replace(raw, z=z)
