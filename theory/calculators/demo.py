"""DeMo: contraction in the cosine basis, the leak of the residual, limits, bytes and flops."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import sympy as sp

from verify_rates.theory.calculators.collectives import ring_numbers
from verify_rates.theory.evidence import Found, relative, trace

STEPS = 80
SHARE = "k/s"  # demo.2: delta, s the number of coefficients of a piece
RESIDUAL = "(1-delta)*(1-beta)*G2/(1-(1-delta)*beta)"  # demo.5
TIGHT = "(1-delta)*(1-beta)**2*G2/(1-sqrt(1-delta)*beta)**2"  # the supremum itself
ROUNDING = 1e-14  # products of orthonormal matrices and sums of 64 squares of order 1
LEAK = 1.0  # demo.4: the share of (1-beta)*e that leaks
BYTES = 12  # demo.7: int64 index and float32 value
TABLE_RTOL = 0.005  # the paper rounds to two or three digits and its parameter counts to four
DENSE_BYTES = 2  # demo.9: bf16
LIMIT_RTOL = 10 * STEPS  # demo.3: every step loses a share 1-beta of a residual some times larger than the iterates


def orthonormal(s: int) -> Found:
    """demo.2: the cosine basis of the engine is orthonormal, in exact numbers."""
    from verify_rates.solvers.chunks import dct_basis

    basis = sp.Matrix(s, s, lambda k, j: sp.sqrt(sp.Rational(2 if k else 1, s)) * sp.cos(sp.pi * (2 * j + 1) * k / (2 * s)))
    wrong = sum(abs(float(v) - u) > ROUNDING for v, u in zip(basis, dct_basis(s).ravel(), strict=True))
    gram = (basis * basis.T - sp.eye(s)).applyfunc(lambda v: sp.simplify(sp.expand(v.rewrite(sp.exp)) if v.has(sp.cos) else v))
    return Found.count(wrong + sum(v.equals(0) is not True for v in gram), 2 * s * s, proves=True)


def contraction(s: int, k: int, two: bool) -> Found:
    """demo.2: the largest share of the energy that a decoded top-k loses, by random vectors and one of flat spectrum, against 1 - delta."""
    from verify_rates.solvers.chunks import dct_basis
    from verify_rates.theory.symbols import number

    basis, rng = dct_basis(s), np.random.default_rng(s)
    transform = np.kron(basis, basis) if two else basis
    count, worst = len(transform), 0.0
    for v in (*rng.normal(size=(50, count)), *rng.standard_cauchy((50, count)), transform.T @ np.ones(count)):
        coded = transform @ v
        coded[np.argsort(-np.abs(coded), kind="stable")[:k]] = 0.0
        worst = max(worst, float(np.sum((transform.T @ coded) ** 2) / np.sum(v**2)))
    said = 1 - number(SHARE, {"k": k, "s": count})
    return Found(worst, worst, said + ROUNDING, message=f"largest share lost {worst:.12g}")


def ef_limit(compressor: str, gap: float) -> Found:
    """demo.3: alpha = 1, beta = 1 - gap and gamma scaled by 1/gap tends to error feedback."""
    gamma = 0.1
    _, states, _ = trace("demo", "quadratic", {"gamma": gamma / gap, "beta": 1 - gap}, STEPS, compressor=compressor, sigma2=0.5)
    _, limit, _ = trace("dd_ef_sgd", "quadratic", {"gamma": gamma}, STEPS, compressor=compressor, sigma2=0.5)
    off = relative([a.x - b.x for a, b in zip(states, limit, strict=True)], [b.x for b in limit])
    return Found(off, off, LIMIT_RTOL * gap, message=f"largest relative distance {off:.2e} at 1 - beta = {gap:g}")


def leak(problem: str, compressor: str, beta: float, seed: int) -> Found:
    """demo.4: ``xt = x - gamma*mean e`` moves by ``-gamma*(1-beta)*(G - e)``: a share of the residual never arrives."""
    gamma = 0.3
    _, states, gradients = trace("demo", problem, {"gamma": gamma, "beta": beta}, STEPS, compressor=compressor, seed=seed, sigma2=0.5)
    virtual = [s.x - gamma * s.m.mean(axis=0) for s in states]
    off = [virtual[t + 1] - virtual[t] + gamma * (1 - beta) * (g - LEAK * states[t].m).mean(axis=0) for t, (g,) in enumerate(gradients)]
    return Found.identity(relative(off, virtual))


def residual_limit(delta: str, beta: str, formula: str = "RESIDUAL") -> Found:
    """demo.5: the supremum over all compressors of the class and gradients of norm 1: the norm obeys ``r <- s*(beta*r + 1 - beta)``."""
    from verify_rates.theory.symbols import number

    d, b = Fraction(delta), Fraction(beta)
    root = sp.sqrt(sp.Rational(1 - d))
    value = float((root * sp.Rational(1 - b) / (1 - root * sp.Rational(b))) ** 2)
    said = number(globals()[formula], {"delta": d, "beta": b, "G2": 1})
    return Found(value, value, said, "<=" if formula == "RESIDUAL" else "==", proves=True, message=f"||e||/G at most {value**0.5:.4g}")


def residual_example(said: float) -> Found:
    """demo.5: k = 32 of 64*64 coefficients and beta = 0.999, to the three printed digits."""
    from verify_rates.theory.symbols import number

    value = number(RESIDUAL, {"delta": Fraction(32, 64**2), "beta": Fraction(999, 1000), "G2": 1}) ** 0.5
    return Found(abs(value - said), abs(value - said), 0.0005, proves=True, message=f"sqrt(bound) = {value:.6g}")


def limits(case: str) -> Found:
    """demo.6: everything sent leaves no momentum; alpha = 0 leaves the momentum untouched by what is sent."""
    gamma, beta = 0.2, 0.6
    if case == "feedback off":
        _, states, gradients = trace(
            "demo", "quadratic", {"gamma": gamma, "beta": beta, "alpha": 0.0}, STEPS, compressor="topk(k=2)", sigma2=0.5
        )
        off = [states[t + 1].m - beta * states[t].m - (1 - beta) * g for t, (g,) in enumerate(gradients)]
        return Found.identity(relative(off, [s.m for s in states]))
    name, base = {"sgd": ("demo", "gd"), "sign": ("demo_sign", "")}[case]
    _, states, gradients = trace(name, "quadratic", {"gamma": gamma, "beta": beta}, STEPS, compressor="identity", sigma2=0.5)
    if base:
        off = [states[t + 1].x - states[t].x + gamma * (1 - beta) * g.mean(axis=0) for t, (g,) in enumerate(gradients)]
    else:
        off = [states[t + 1].x - states[t].x + gamma * np.sign(g.mean(axis=0)) for t, (g,) in enumerate(gradients)]
    return Found.identity(relative(off + [s.m for s in states], [s.x for s in states]))


def bytes_sent(parameters: float, k: int, s: int = 64) -> float:
    """demo.7: bytes that a worker sends a step.

    >>> round(bytes_sent(1175.9e6, 16) / 1e6, 2)
    55.12
    """
    return parameters / s**2 * k * BYTES


def table(parameters: float, k: int, megabytes: float) -> Found:
    """demo.7: relative distance from the paper's table."""
    off = abs(bytes_sent(parameters, k) / 1e6 / megabytes - 1)
    return Found(off, off, TABLE_RTOL, proves=True, message=f"{bytes_sent(parameters, k) / 1e6:.4g} MB, the paper prints {megabytes}")


def savings(dense: float, sent: float, said: float) -> Found:
    """demo.7: the printed ratio against the printed megabytes, to half a unit of its last digit."""
    return Found(abs(dense / sent - said), abs(dense / sent - said), 0.5, proves=True, message=f"{dense / sent:.4g}")


class _Counted:
    """A number that counts its products."""

    products = 0

    def __mul__(self, other):
        _Counted.products += 1
        return self

    __add__ = __radd__ = lambda self, other: self


def projection(N: int, C: int) -> Found:
    """demo.8: products of a one-sided projection of an N x N matrix in C*C chunks, counted, against N^3/C; and the basis's entries."""
    side, number = N // C, _Counted()
    chunk = np.full((side, side), number, dtype=object)
    _Counted.products = 0
    for _ in range(C * C):
        chunk @ chunk
    return Found.count(int(_Counted.products != N**3 // C) + int(chunk.size != N**2 // C**2), 2, proves=True)


def crossover(k: int, s: int, n: int) -> Found:
    """demo.9: DeMo's all-gather receives more than a ring all-reduce in bf16 iff n*12*k/s^2 > 4."""
    d = s * s * (2 if n <= 8 else 1)
    sparse = (n - 1) * Fraction(d, s * s) * k * BYTES
    ring = (ring_numbers(n, d) if n * d <= 4096 else Fraction(2 * (n - 1) * d, n)) * DENSE_BYTES
    return Found.count(int((sparse > ring) != (n * Fraction(BYTES * k, s * s) > 4)), 1, proves=True)


def first_crossing(k: int, more_than: int) -> Found:
    """demo.9: the smallest n whose all-gather receives more, beside what "n > ..." says."""
    n = next(n for n in range(2, 10_000) if n * Fraction(BYTES * k, 64**2) > 4)
    return Found(float(n), float(n), float(more_than + 1), "==", proves=True, message=f"from n = {n} on")
