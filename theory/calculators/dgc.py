"""Deep gradient compression: the virtual sequence with and without masking, blocks, warm-up, clipping and bytes."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import sympy as sp

from verify_rates.theory.calculators.collectives import ring_numbers
from verify_rates.theory.evidence import Found, relative, trace

STEPS = 80
BOUND = "2*F0/(gamma*N) + L*gamma*G2 + 4*(1-delta)*L**2*gamma**2*G2/delta**2"  # dgc.5
LAST_AGE = 0  # dgc.4: exponents run to T - 1 - t
VALUE_BITS = 32  # dgc.6
CROSSOVER = Fraction(64, 48)  # dgc.7: N*rho at which both receive as much
PAPER_WARM_UP = (0.75, 0.9375, 0.984375, 0.996, 0.999)


def top_k(d: int, size: int) -> Found:
    """dgc.1 in whole numbers, on all vectors with entries up to ``size``; with equality where all entries are equal, and only there."""
    wrong = cases = 0
    for v in itertools.product(range(-size, size + 1), repeat=d):
        squares = sorted(x * x for x in v)
        for k in range(1, d):
            cases += 1
            lost, said = sum(squares[: d - k]) * d, (d - k) * sum(squares)
            wrong += lost > said or (lost == said) != (squares[0] == squares[-1])
    return Found.count(wrong, cases, proves=True)


def _heavy_ball_gap(method: str, problem: str, compressor: str, beta: float, seed: int) -> float:
    """How far ``x - gamma*mean v`` is from heavy ball with the same gradients, relative to the iterates."""
    gamma = 0.05
    _, states, gradients = trace(method, problem, {"gamma": gamma, "beta": beta}, STEPS, compressor=compressor, seed=seed, sigma2=0.5)
    virtual = [s.x - gamma * s.v.mean(axis=0) for s in states]
    U, off = np.zeros_like(virtual[0]), []
    for t, (g,) in enumerate(gradients):
        U = beta * U + g.mean(axis=0)
        off.append(virtual[t + 1] - virtual[t] + gamma * U)
    return relative(off, virtual)


def virtual_sequence(problem: str, compressor: str, beta: float, seed: int) -> Found:
    """dgc.2: without masking the virtual sequence is dense heavy ball."""
    return Found.identity(_heavy_ball_gap("dgc_unmasked", problem, compressor, beta, seed))


def masking(problem: str, compressor: str, beta: float, seed: int) -> Found:
    """dgc.3: with masking it is not: the step of the virtual sequence deviates by at least a hundredth of the iterates' size."""
    off = _heavy_ball_gap("dgc", problem, compressor, beta, seed)
    return Found(off, off, 0.01, ">=", message=f"largest deviation of a step {off:.3g} of the iterates")


def block_coefficients(T: int, corrected: bool) -> Found:
    """dgc.4: coefficients of the gradients in a block accumulated over T steps, by running the recursion on symbols."""
    beta, g = sp.Symbol("beta"), sp.symbols(f"g0:{T}")
    u = v = sp.Integer(0)
    for gradient in g:
        u = beta * u + gradient
        v = v + (u if corrected else gradient)
    said = [sum(beta**i for i in range(T - t + LAST_AGE)) if corrected else sp.Integer(1) for t in range(T)]
    wrong = sum(sp.expand(sp.expand(v).coeff(gradient) - s) != 0 for gradient, s in zip(g, said, strict=True))
    return Found.count(int(wrong), T, proves=True)


def ef_bound(problem: str, compressor: str, c: float) -> Found:
    """dgc.5 with momentum 0 and no masking, exact gradients; G2 is the largest squared gradient norm met on the way."""
    from verify_rates.problems import get_problem
    from verify_rates.solvers.compressors import get_compressor
    from verify_rates.theory.evidence import PROBLEMS
    from verify_rates.theory.symbols import number

    L = get_problem(**PROBLEMS[problem]).constants.L
    made, states, gradients = trace("dgc_unmasked", problem, {"gamma": c / L, "beta": 0.0}, STEPS, compressor=compressor)
    G2 = max(float(np.max(np.sum(g**2, axis=1))) for (g,) in gradients)
    found = float(np.mean([np.sum(g.mean(axis=0) ** 2) for (g,) in gradients]))
    delta = get_compressor(compressor).constants(made.d)["delta"]
    F0 = made.value(states[0].x) - made.constants.f_star[0]
    bound = number(BOUND, {"F0": F0, "gamma": c / L, "N": STEPS, "L": L, "G2": G2, "delta": delta})
    return Found(found, found, bound, message=f"measured/bound = {found / bound:.3g}")


def ratio(rho: str, bits: int, said: str) -> Found:
    """dgc.6: the ratio of dense to sent bits, counted on a vector of 10^6 entries."""
    d = 10**6
    kept = int(Fraction(rho) * d)
    found = Fraction(VALUE_BITS * d, (VALUE_BITS + bits) * kept)
    return Found(float(found), float(found), float(Fraction(said)), "==", proves=True)


def crossover(rho: str, n: int) -> Found:
    """dgc.7: the sparse all-gather receives fewer bits than the ring all-reduce iff n*rho < 64/48; both carried out as counts.

    d is a multiple of n, so that every worker receives the same.
    """
    d = 2 * n if n <= 64 else n
    ring = ring_numbers(n, d) * 32 if n <= 64 else Fraction(2 * (n - 1) * d, n) * 32
    sparse = (n - 1) * Fraction(rho) * d * 48
    return Found.count(int((sparse < ring) != (n * Fraction(rho) < CROSSOVER)), 1, proves=True)


def code_density(epoch: int, rho: float, epochs: int) -> float:
    """The released warm-up: density at an epoch, ``max(c**(e+1), rho)`` with ``c = rho**(1/(E+1))``.

    >>> [round(code_density(e, 0.001, 5), 5) for e in range(7)]
    [0.31623, 0.1, 0.03162, 0.01, 0.00316, 0.001, 0.001]
    """
    return max(rho ** ((epoch + 1) / (epochs + 1)), rho)


def paper_density(epoch: int) -> float:
    """The paper's warm-up: 25 %, 6.25 %, ..., and 0.1 % from the fifth epoch on.

    >>> [round(paper_density(e), 6) for e in (0, 1, 2, 9)]
    [0.25, 0.0625, 0.015625, 0.001]
    """
    return 1 - PAPER_WARM_UP[min(epoch, len(PAPER_WARM_UP) - 1)]


def local_clip(threshold: float, n: int) -> float:
    """The local clipping threshold ``n**(-1/2)*threshold`` of a SUM over n workers; for a mean it is larger by n.

    >>> local_clip(10.0, 4)
    5.0
    """
    return threshold / n**0.5
