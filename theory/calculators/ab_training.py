"""AB-Training: the two halves of a factorised weight matrix, its synchronisations, the rank cut, and traffic.

A discrete protocol on matrices (groups, phases, singular values), so a simulator instead of a step function.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

from verify_rates.solvers.method import nearest
from verify_rates.theory.evidence import Found, relative

MODES = ("full", "with_stale", "only_learned")
STALE_SHARE = sp.Rational(1, 4)  # ab_training.2: of dA*dB
LEARNED = 1  # ab_training.3: the factor of the first-order terms
TRAFFIC = "p + (1-p)*rho + (m+n)*k/(c*m*n)"  # ab_training.6: p = D/P, rho = k*Max(m, n)/(m*n), c = P; the weights are m x n of rank k
REPORTED = Fraction("0.7031")  # saving
ROUNDING = 1e-12  # relative, of singular values of order 1


def synchronised(mode: str, As: Sequence[Any], Bs: Sequence[Any], half: int) -> Any:
    """The weights after a synchronisation; the first ``half`` workers trained A, the others B.

    full: mean of the products; with_stale: product of the means over all workers; only_learned: of the means over those who trained it.
    """
    if mode not in MODES:
        raise nearest(mode, MODES, "synchronisation")
    times = operator.matmul if isinstance(As[0], np.ndarray) else operator.mul
    if mode == "full":
        return sum(times(A, B) for A, B in zip(As, Bs, strict=True)) / len(As)
    learned = mode == "only_learned"
    return times(_mean(As[:half] if learned else As), _mean(Bs[half:] if learned else Bs))


def _mean(values: Sequence[Any]) -> Any:
    return sum(values) / len(values)


def train(
    mode: str,
    grads: Sequence[Callable[[np.ndarray], np.ndarray]],
    W: np.ndarray,
    eta: float,
    warm: int,
    P: int,
    D: int,
    periods: int,
    cutoff: float,
) -> tuple[np.ndarray, list[int]]:
    """The protocol with gradient steps: ``(weights, kept rank of every period)``.

    ``warm`` full steps; then periods of P steps: half of the workers train A and half B for P - D steps, averaging their gradients
    within their half, they synchronise, and D full steps follow.  The rank is cut from the second period on.

    >>> target = np.outer([1.0, 2.0, 3.0], [1.0, 1.0])
    >>> W, ranks = train("with_stale", [lambda W: W - target] * 2, np.zeros((3, 2)), 0.5, 60, 10, 2, 2, 0.1)
    >>> bool(np.abs(W - target).max() < 1e-9), ranks
    (True, [2, 1])
    """
    half, ranks = len(grads) // 2, []

    def full(W: np.ndarray, steps: int) -> np.ndarray:
        for _ in range(steps):
            W = W - eta * _mean([g(W) for g in grads])
        return W

    W = full(W, warm)
    for period in range(periods):
        A, B = _split(W)
        r = cut(np.linalg.svd(W, compute_uv=False), cutoff) if period else len(B)
        ranks.append(r)
        A, B = A[:, :r], B[:r]
        mine, theirs = A, B
        for _ in range(P - D):
            mine = mine - eta * _mean([g(mine @ B) for g in grads[:half]]) @ B.T
            theirs = theirs - eta * A.T @ _mean([g(A @ theirs) for g in grads[half:]])
        others = len(grads) - half
        W = full(synchronised(mode, [mine] * half + [A] * others, [B] * half + [theirs] * others, half), D)
    return W, ranks


def identity(mode: str, workers: int) -> Found:
    """ab_training.1 to .3 on non-commuting symbols, every worker with a change of its own."""
    half = workers // 2
    A0, B0 = sp.symbols("A0 B0", commutative=False)
    dAs = sp.symbols(f"a0:{half}", commutative=False)
    dBs = sp.symbols(f"b0:{half}", commutative=False)
    As, Bs = [A0 + a for a in dAs] + [A0] * half, [B0] * half + [B0 + b for b in dBs]
    dA, dB = sum(dAs) / half, sum(dBs) / half
    full = A0 * B0 + (dA * B0 + A0 * dB) / 2
    said = {
        "full": full,
        "with_stale": full + STALE_SHARE * dA * dB,
        "only_learned": A0 * B0 + LEARNED * (dA * B0 + A0 * dB) + dA * dB,
    }[mode]
    return Found.count(int(sp.expand(synchronised(mode, As, Bs, half) - said) != 0), 1, proves=True)


def _split(W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Balanced factors ``U S^(1/2)`` and ``S^(1/2) V'``."""
    U, s, Vt = np.linalg.svd(W, full_matrices=False)
    return U * np.sqrt(s), np.sqrt(s)[:, None] * Vt


def preconditioned(seed: int, m: int, n: int) -> Found:
    """ab_training.4: a step on A alone, its gradient by differences of the loss, changes W by ``-eta*grad_W*B'B``, B'B = V S V'."""
    rng, eta = np.random.default_rng([seed, m, n]), 0.1
    W, target = rng.normal(size=(2, m, n))
    A, B = _split(W)
    loss: Callable[[np.ndarray], float] = lambda X: float(np.sum((X - target) ** 2)) / 2  # noqa: E731
    grad_A, h = np.zeros_like(A), 1e-3
    for index in np.ndindex(A.shape):  # central differences are exact on quadratics
        E = np.zeros_like(A)
        E[index] = h
        grad_A[index] = (loss((A + E) @ B) - loss((A - E) @ B)) / (2 * h)
    _, s, Vt = np.linalg.svd(W, full_matrices=False)
    changed = (A - eta * grad_A) @ B - W
    off = relative([changed + eta * (W - target) @ Vt.T @ np.diag(s) @ Vt, B.T @ B - Vt.T @ np.diag(s) @ Vt], [W, target])
    return Found(off, off, 1e-9, message=f"relative distance {off:.2e}")  # differences of size 1e-3 lose 6 of 16 digits, and then some


def cut(s: np.ndarray, cutoff: float) -> int:
    """The rank that is kept: singular values above ``cutoff`` times the largest.

    >>> cut(np.array([4.0, 2.0, 0.5]), 0.15)
    2
    """
    return int((s > cutoff * s[0]).sum())


def truncation(seed: int, cutoff: float) -> Found:
    """ab_training.5: the largest truncation error of random spectra over its bound, and of a flat tail just at the cut."""
    rng, worst = np.random.default_rng([seed, 5]), 0.0
    spectra = [np.sort(rng.exponential(size=12))[::-1] for _ in range(200)] + [np.array([1.0, *[cutoff] * 11])]
    for s in spectra:
        r = cut(s, cutoff)
        if r < len(s):
            worst = max(worst, float(np.sqrt(np.sum(s[r:] ** 2)) / (cutoff * s[0] * np.sqrt(len(s) - r))))
    return Found(worst, worst, 1 + ROUNDING, message=f"largest error/bound {worst:.6g}")


def period_traffic(m: int, n: int, r: int, P: int, D: int) -> Fraction:
    """Numbers that a worker exchanges in a period of P steps, over those of P full gradients: D full steps, P - D on the larger factor,
    and one synchronisation of both factors.

    >>> period_traffic(4, 4, 1, 10, 2)
    Fraction(9, 20)
    """
    steps = [m * n] * D + [r * max(m, n)] * (P - D)
    return Fraction(sum(steps) + (m + n) * r, P * m * n)


def traffic(m: int, n: int, r: int, P: int, D: int) -> Found:
    """ab_training.6 in fractions."""
    from verify_rates.theory.symbols import exact, parse

    values = {"m": m, "n": n, "k": r, "c": P, "p": Fraction(D, P), "rho": Fraction(r * max(m, n), m * n)}
    return Found.count(int(exact(parse(TRAFFIC), values) != period_traffic(m, n, r, P, D)), 1, proves=True)


def implied_rank(share: str, said: str) -> Found:
    """ab_training.6: the rank ratio that the reported saving implies at D/P, the synchronisation left out."""
    p = Fraction(share)
    rho = (1 - REPORTED - p) / (1 - p)
    off = abs(rho - Fraction(said))
    return Found(float(off), float(off), 0.005, proves=True, message=f"rho = {float(rho):.4f}")


def storage(m: int, n: int, r: int) -> Found:
    """ab_training.7: entries of both factors of a matrix of that rank over its own."""
    W = np.random.default_rng(r).normal(size=(m, r)) @ np.random.default_rng(n).normal(size=(r, n))
    A, B = _split(W)
    kept = int((np.linalg.svd(W, compute_uv=False) > 1e-9).sum())  # rank, noise 1e-15
    entries = A[:, :kept].size + B[:kept].size
    off = relative([A[:, :kept] @ B[:kept] - W], [W])
    return Found.count(int(Fraction(entries, W.size) != Fraction(r * (m + n), m * n)) + int(off > ROUNDING), 2)
