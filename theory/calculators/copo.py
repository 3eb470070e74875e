"""COPO: spectral clustering with reassignment by projected covariances, and the exponents of its error.

It clusters and trains nothing, so it is no step function; the procedure is a function of the data here.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import sympy as sp

from verify_rates.solvers.method import UsageError
from verify_rates.theory.evidence import Found

SNR_COMMON = "sqrt(R2)/2"  # copo.4, R2 = ||w_a - w_b||^2 in the inverse covariance
SNR_LINE = "R/(a + b)"  # copo.5, R = |w_a - w_b|, a and b the standard deviations
PRINTED = ((8, 1.57), (16, 1.18), (24, 1.09))  # copo.5: distance at deviations 1 and 2 (SNR 2.7, 5.3, 8), ratio as printed
PRINTED_HALF_UNIT = 0.005  # two digits are printed


def embed(Y: np.ndarray, K: int) -> np.ndarray:
    """Step 1: rows of ``U*|Lam|^(1/2)`` from the Gram matrix ``(n, n)`` without its diagonal; Y is (n, p)."""
    if not 1 <= K <= len(Y):
        raise UsageError(f"K must be between 1 and the number of points {len(Y)}, not {K!r}.")
    gram = Y @ Y.T
    np.fill_diagonal(gram, 0.0)
    values, vectors = np.linalg.eigh(gram)
    top = np.argsort(values)[::-1][:K]
    return vectors[:, top] * np.sqrt(np.abs(values[top]))


def distances(u: np.ndarray, labels: np.ndarray, K: int) -> np.ndarray:
    """Step 3: ``(u_i - c_a)' S_a^{-1} (u_i - c_a)`` for every point and cluster, ``(n, K)``.

    Errors: UsageError where a cluster has too few points for an invertible covariance.
    """
    out = np.empty((len(u), K))
    for a in range(K):
        own = u[labels == a]
        if len(own) <= u.shape[1]:
            raise UsageError(f"cluster {a} has {len(own)} points, too few for a covariance in {u.shape[1]} dimensions.")
        off = u - own.mean(axis=0)
        covariance = np.cov(own, rowvar=False, bias=True).reshape(u.shape[1], -1)
        out[:, a] = np.sum(off * np.linalg.solve(covariance, off.T).T, axis=1)
    return out


def copo(Y: np.ndarray, K: int, rounds: int = 10, seed: int = 0) -> np.ndarray:
    """Labels (n,) by k-means on the embedding, then reassignment by projected covariances, without log-determinants."""
    from sklearn.cluster import KMeans

    u = embed(Y, K)
    labels = KMeans(K, n_init=10, random_state=seed).fit_predict(u)
    for _ in range(rounds):
        labels = distances(u, labels, K).argmin(axis=1)
    return labels


def invariance(K: int, seed: int) -> Found:
    """copo.1: the distances of step 3, in fractions, before and after an invertible linear map of the embedding."""
    rng = np.random.default_rng([seed, K, 1])
    count = 4 * K + 4  # two clusters of 2*K + 2 points in general position
    points = sp.Matrix(rng.integers(-9, 10, (count, K)).tolist())
    labels = [i % 2 for i in range(count)]
    while True:
        A = sp.Matrix(rng.integers(-4, 5, (K, K)).tolist())
        if A.det() != 0:
            break
    before, after = (_exact_distances(P, labels) for P in (points, points * A.T))
    return Found.count(sum(x != y for x, y in zip(before, after, strict=True)), len(before), proves=True)


def _exact_distances(P: sp.Matrix, labels: list[int]) -> list[sp.Rational]:
    found = []
    for a in set(labels):
        own = [P.row(i) for i in range(P.rows) if labels[i] == a]
        centre = sum(own, sp.zeros(1, P.cols)) / len(own)
        covariance = sum(((r - centre).T * (r - centre) for r in own), sp.zeros(P.cols, P.cols)) / len(own)
        inverse = covariance.inv()
        found += [((P.row(i) - centre) * inverse * (P.row(i) - centre).T)[0] for i in range(P.rows)]
    return found


def initialiser_is_not_invariant(seed: int) -> Found:
    """k-means is not: fraction of labels that a stretch of the embedding changes (so the whole procedure may depend on the scaling)."""
    from sklearn.cluster import KMeans

    rng = np.random.default_rng([seed, 2])
    u = rng.standard_normal((120, 2))
    u[:60, 0] += 8
    first, second = (KMeans(2, n_init=5, random_state=0).fit_predict(u * scale) for scale in ([1.0, 1.0], [1.0, 30.0]))
    same = max(np.mean(first == second), np.mean(first != second))
    return Found(1 - same, 1 - same, 0.0, message=f"{100 * (1 - same):.0f} % of the labels change")


def common_covariance() -> Found:
    """copo.4: least distance to the boundary between two centres of a common covariance, by Lagrange multipliers, d = 2."""
    x, y, lam = sp.symbols("x y lam", real=True)
    R = sp.Symbol("R", positive=True)
    # in coordinates where S is the identity and the centres are (0, 0) and (R, 0)
    value, boundary = x**2 + y**2, x**2 + y**2 - (x - R) ** 2 - y**2
    solved = sp.solve([sp.diff(value + lam * boundary, s) for s in (x, y)] + [boundary], [x, y, lam], dict=True)
    least = min(value.subs(s) for s in solved)
    said = _formula(SNR_COMMON, R2=R**2) ** 2
    wrong = [sp.simplify(least - said) != 0, sp.simplify(sp.exp(-least / 2) - sp.exp(-(R**2) / 8)) != 0]
    return Found.count(sum(map(bool, wrong)), 2, proves=True)


def _formula(text: str, **values: sp.Expr) -> sp.Expr:
    from verify_rates.theory.symbols import parse

    made = parse(text)
    return sp.simplify(made.subs({s: values[s.name] for s in made.free_symbols}))


def on_a_line(most: int) -> Found:
    """copo.5: in one dimension the boundary's nearest point is ``R/(a+b)`` deviations away, from both centres; all small deviations."""
    x = sp.Symbol("x", real=True)
    wrong = cases = 0
    for a in range(1, most + 1):
        for b in range(1, most + 1):
            R = 5
            points = sp.solve(sp.Eq(x**2 / a**2, (x - R) ** 2 / b**2), x)
            said = _formula(SNR_LINE, R=sp.Integer(R), a=sp.Integer(a), b=sp.Integer(b))
            wrong += min(abs(v) / a for v in points) != said
            wrong += min(abs(v - R) / b for v in points) != said
            cases += 2
    return Found.count(wrong, cases, proves=True)


def error_of(distance: float, a: float, b: float, cluster: int) -> float:
    """Probability that a point of that cluster is nearer to the other one (variances a^2 and b^2, no log-determinant)."""
    from scipy.stats import norm

    inner, outer = distance / (a + b), (distance / abs(a - b) if a != b else math.inf)
    wider = (b > a) == (cluster == 1)
    return float(norm.sf(inner) - norm.sf(outer)) if wider and a != b else float(norm.sf(inner) + norm.sf(outer))


def exponents() -> Found:
    """copo.5: ``-log(err)/(SNR^2/2)`` at deviations 1 and 2, for both clusters, beside the printed numbers."""
    off = 0.0
    for distance, said in PRINTED:
        snr = Fraction(distance, 3)
        off = max(off, *(abs(-math.log(error_of(distance, 1, 2, c)) / float(snr**2 / 2) - said) for c in (0, 1)))
    return Found(off, off, PRINTED_HALF_UNIT, proves=True, message=f"off by at most {off:.4f}")
