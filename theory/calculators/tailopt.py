"""TailOPT: the clip lemma on vectors that the step functions' words clip, exponents, thresholds and volume."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import sympy as sp

from verify_rates.theory.evidence import Found
from verify_rates.theory.symbols import number, parse

SECOND, BIAS = "u**(2-a)*q", "u**(1-a)*q"  # tailopt.1: u the threshold, q = E||g||^a
CLIP_LEVEL, STEP = "T**(1/(3*a-2))", "T**(-1/2)*u**(-(2-a)/2)"  # tailopt.3
TERMS = ("1/(gamma*T)", "u**(-2*(a-1))", "gamma*u**(2-a)")
RATE = "T**(-2*(a-1)/(3*a-2))"
LOWER = "b*sqrt(d)"  # tailopt.4: b the lower threshold

COUNT = 4000


def _world(d: int, **noise: Any) -> Any:
    """The words on arrays of any number of rows."""
    from verify_rates.problems import get_problem
    from verify_rates.solvers.engine.arrays import ArrayWorld
    from verify_rates.solvers.engine.plan import generators

    return ArrayWorld(get_problem("one_minus_cos", d=d, **noise), *generators(1, 0, 0))


def clip_lemma(noise: str, tail: float, a: float, shift: float, level: float) -> Found:
    """tailopt.1 for the distribution that a sample is: the larger ratio of a side to its bound (no sampling error enters)."""
    from verify_rates.solvers.words import rescale

    world = _world(3, noise=noise, tail=tail, scale=1.0)
    g = np.stack([world.problem._draw(world.gens[0]) for _ in range(COUNT)]) + shift
    cut = rescale(world, g, 0.0, level)
    given = {"u": level, "a": a, "q": float(np.mean(np.linalg.norm(g, axis=1) ** a))}
    second = float(np.mean(np.sum(cut**2, axis=1))) / number(SECOND, given)
    bias = float(np.linalg.norm((cut - g).mean(axis=0))) / number(BIAS, given)
    return Found(max(second, bias), max(second, bias), 1.0, message=f"second moment {second:.3g}, bias {bias:.3g} of their bounds")


def pointwise(a: float) -> Found:
    """tailopt.1 vector by vector, from which it follows: ratios over norms from a thousandth to a thousand thresholds."""
    r = np.append(np.geomspace(1e-3, 1e3, 2001), 1.0)
    worst = max(float((np.minimum(r, 1) ** 2 / r**a).max()), float((np.maximum(r - 1, 0) / r**a).max()))
    return Found(worst, worst, 1.0, message=f"largest ratio {worst:.6g}")


def exponent() -> Found:
    """tailopt.3 in symbols: with the stated threshold and step the three terms are powers of T with the stated exponent."""
    letters = {s.name: s for text in (*TERMS, CLIP_LEVEL, STEP) for s in parse(text).free_symbols}
    log_T = sp.Symbol("log_T", positive=True)

    def power(text: str) -> Any:
        made = parse(text).subs(letters["gamma"], parse(STEP)).subs(letters["u"], parse(CLIP_LEVEL)).subs(letters["T"], sp.exp(log_T))
        return sp.simplify(sp.expand_log(sp.log(made), force=True) / log_T)

    wrong = [sp.simplify(power(term) - power(RATE)) != 0 for term in TERMS]
    wrong.append(sp.simplify(power(RATE).subs(letters["a"], 2) + sp.Rational(1, 2)) != 0)
    return Found.count(sum(wrong), len(wrong), proves=True)


def lower_threshold(d: int, low: float, high: float) -> Found:
    """tailopt.4 on all vectors with entries from a few magnitudes, both by the words of the step function."""
    from verify_rates.solvers.methods.bi2clip import biclip

    entries = [0.0, 1e-9, low / 2, low, (low + high) / 2, high, 2 * high]
    v = np.array(list(itertools.product(entries, repeat=d))) * (-1.0) ** np.arange(d)
    world = _world(d)
    off = np.linalg.norm(biclip(world, v, low, high) - biclip(world, v, 0.0, high), axis=1)
    return Found(float(off.max()), float(off.max()), number(LOWER, {"b": low, "d": d}), message=f"largest distance {off.max():.6g}")


def volume(method: str, d: int, H: int) -> Found:
    """tailopt.5: bits that a worker sends in a round of H steps, beside one dense vector."""
    from verify_rates.theory.traffic import traffic

    made = traffic(method, {"H": H}, d=d, n=4)
    up = made.up_per_round if made.up_per_round is not None else math.nan
    return Found(up, up, 32.0 * d, "==", proves=True, message=f"{up:g} bits a round of {made.steps_per_round} steps")
