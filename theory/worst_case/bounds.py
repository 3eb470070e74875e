"""From what a solver said to two numbers that hold: multipliers and primal points are repaired and then verified."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from verify_rates.theory.worst_case.assemble import Conic, smat, triangle
from verify_rates.theory.worst_case.backends import Raw, off_diagonal

# A verified inequality may be wrong by the rounding of the double-precision sums that evaluate it: some hundred terms of size
# at most 1 (normalised rows), each rounded to 1.1e-16, and an eigenvalue routine that is backward stable to about K * 1.1e-16.
ROUNDING = 1e-13
# Singular values of the equalities below this share of the largest are rounding of zero: dependent rows.
SINGULAR = 1e-10
# A sum of terms of both signs is wrong by this much of the sum of their sizes at most: some ten to hundred roundings.
ROUNDED_SUM = 1e-14
# Added to an upper end and taken from a lower one, relative to the sizes of the terms summed.
ALLOWANCE = 1e-12


@dataclass(frozen=True)
class Bound:
    """One end: its value in normalised units, and whether it was verified."""

    value: float
    verified: bool


def multipliers(conic: Conic, raw: Raw) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nonnegative multipliers that satisfy the equalities of the scalars to rounding (a weighted least change)."""
    lam, nu = np.maximum(raw.lam, 0), raw.nu
    S = _psd(raw.S)
    nz = sum(conic.sizes)
    if conic.c.size == nz:
        return lam, nu, S
    AF, EF = conic.of_scalars
    for _ in range(3):
        residual = AF.T @ lam + EF.T @ nu - conic.c[nz:]
        change = np.linalg.lstsq(AF.T @ (AF * lam[:, None]) + EF.T @ EF, residual, rcond=1e-14)[0]
        lam, nu = np.maximum(lam - lam * (AF @ change), 0), nu - EF @ change
    return lam, nu, S


def slacks(conic: Conic, lam: np.ndarray, nu: np.ndarray, S: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """The matrices that must be semidefinite, and the residual of the scalars that must vanish."""
    A, E, P = conic.small
    total = A.T @ lam + E.T @ nu - conic.c
    if conic.mixed:
        rows, columns = triangle(conic.mixed)
        total = total - P.T @ (S[rows, columns] * off_diagonal(conic.mixed, 2.0))
    nG, nD = conic.sizes
    parts = total[:nG], total[nG : nG + nD]
    matrices = [smat(part * off_diagonal(k, 0.5), k) for part, k in zip(parts, conic.orders, strict=True)]
    return matrices, total[nG + nD :]


@dataclass(frozen=True)
class Dual:
    """Repaired multipliers with their bound and the least eigenvalues of their slack matrices."""

    bound: Bound
    lam: np.ndarray
    nu: np.ndarray
    S: np.ndarray
    least: tuple[float, ...]


def upper(conic: Conic, raw: Raw) -> Dual:
    """The bound that a solver's multipliers give."""
    return _evaluated(conic, raw.z, *multipliers(conic, raw))


def _evaluated(conic: Conic, z: np.ndarray, lam: np.ndarray, nu: np.ndarray, S: np.ndarray) -> Dual:
    """Weak duality: every feasible z has ``c'z <= b'lam`` once the slack matrices are semidefinite and the scalars balance.

    What is left over (rounding of scalars that balance, if verified) is estimated at the solver's primal point and added twice.
    """
    matrices, residual = slacks(conic, lam, nu, S)
    A, E, _ = conic.small
    summed = float((abs(A).T @ np.abs(lam) + abs(E).T @ np.abs(nu) + np.abs(conic.c)).max(initial=0.0))
    rounding = max(ROUNDING, ROUNDED_SUM * summed)
    least = tuple(float(np.linalg.eigvalsh(M)[0] - max(rounding, _rounding(M))) if M.size else math.inf for M in matrices)
    verified = min(least) >= 0 and bool(np.all(np.abs(residual) <= ROUNDING * (1 + np.abs(lam).sum())))
    balance = float(np.abs(residual) @ np.abs(z[sum(conic.sizes) :]))
    estimate = sum(max(0.0, -low) * np.trace(G) for low, G in zip(least, grams(conic, z), strict=True) if G.size)
    value = conic.b @ lam + 2 * balance + (0.0 if verified else 2 * estimate) + ALLOWANCE * (np.abs(conic.b) @ lam)
    return Dual(Bound(float(value), verified), lam, nu, S, least)


def _rounding(M: np.ndarray) -> float:
    return ROUNDING * max(1.0, float(np.abs(M).max()))


def blended(conic: Conic, z: np.ndarray, sharp: Dual, safe: Dual) -> Dual:
    """Multipliers as close to the sharp ones as the eigenvalues of the safe ones allow (least eigenvalues are concave)."""
    share = max((-a / (b - a) for a, b in zip(sharp.least, safe.least, strict=True) if a < 0 < b), default=0.0)
    share = min(1.0, share * 1.01)
    return _evaluated(conic, z, *((1 - share) * p + share * q for p, q in ((sharp.lam, safe.lam), (sharp.nu, safe.nu), (sharp.S, safe.S))))


def lower(conic: Conic, raw: Raw, inside: np.ndarray) -> tuple[Bound, np.ndarray]:
    """The value at the primal point, blended with a strictly feasible one just enough that every inequality is strict."""
    z = np.concatenate([*(_psd(G)[triangle(len(G))] for G in grams(conic, raw.z)), raw.z[sum(conic.sizes) :]])
    if conic.E.shape[0] or conic.mixed:
        return _balanced(conic, z, inside)
    A, *_ = conic.small
    excess, room = A @ z - conic.b, conic.b - A @ inside
    needed = excess + 2 * ROUNDING * (1 + abs(A) @ np.abs(z))
    short = needed > 0
    share = 0.0
    if short.any():
        share = float((needed[short] / np.maximum(needed + room, 1e-300)[short]).max()) if room[short].min() > 0 else 1.0
    mixture = (1 - share) * z + share * inside
    verified = share < 1 and float((A @ mixture - conic.b).max(initial=-np.inf)) <= -ROUNDING
    z = mixture if verified else z
    return Bound(float(conic.c @ z) - ALLOWANCE * float(np.abs(conic.c) @ np.abs(z)), verified), z


SHARES = tuple(10.0**k for k in range(-11, -1))  # of the strictly feasible point in a mixture, tried in this order


def _balanced(conic: Conic, z: np.ndarray, inside: np.ndarray) -> tuple[Bound, np.ndarray]:
    """The same where equalities hold too: the mixture is projected on them, and every inequality and eigenvalue keeps more room than
    the least change that would make them exact."""
    E = conic.E.toarray()
    A, _, P = conic.small
    squares, mixed = (A * A).sum(axis=1), float(np.sqrt((P * P).sum()))
    sigma = np.linalg.svd(E, compute_uv=False) if E.size else np.ones(1)
    kept = sigma[sigma > SINGULAR * sigma[0]]
    inverse = np.linalg.pinv(E, rcond=SINGULAR)
    for share in SHARES:
        mixture = (1 - share) * z + share * inside
        for _ in range(2):
            mixture = mixture - inverse @ (E @ mixture)
        off = np.linalg.norm(E @ mixture) + ROUNDING * float(np.linalg.norm(np.abs(E) @ np.abs(mixture)))
        change = off / kept[-1]
        rows = ROUNDING * (1 + abs(A) @ np.abs(mixture)) + change * np.sqrt(squares)
        matrices = [*grams(conic, mixture), smat(P @ mixture, conic.mixed)]
        sizes = [1.0, 1.0, mixed]
        room = [np.linalg.eigvalsh(M)[0] - _rounding(M) - 2 * size * change for M, size in zip(matrices, sizes, strict=True) if M.size]
        if min(room, default=0.0) >= 0 and bool(np.all(A @ mixture - conic.b <= -rows)):
            short = ALLOWANCE * float(np.abs(conic.c) @ np.abs(mixture)) + change * float(np.linalg.norm(conic.c))
            return Bound(float(conic.c @ mixture) - short, True), mixture
    return Bound(float(conic.c @ z), False), z


def grams(conic: Conic, z: np.ndarray) -> list[np.ndarray]:
    """The two Gram matrices of a primal point."""
    nG, nD = conic.sizes
    return [smat(z[:nG], conic.orders[0]), smat(z[nG : nG + nD], conic.orders[1])]


def _psd(M: np.ndarray) -> np.ndarray:
    if not M.size:
        return M
    values, vectors = np.linalg.eigh(M)
    return M if values[0] >= 0 else (vectors * np.maximum(values, 0)) @ vectors.T
