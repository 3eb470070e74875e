"""One step of gradient descent and of compressed gradient descent, at every step size up to the optimal one, and beyond it for gd.

Source: de Klerk, Glineur, Taylor (2017, 2020), whose relative error of the gradient is ``s = sqrt(eps)`` of a compressor.

A step size up to another, ``gamma = top/(1 + u)`` with ``u >= 0``, or between two, is written in u; ``L = mu + e``, ``s = 1/(1 + k)``.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from verify_rates.proofs_check.proof import Proof, proof

L, mu, gamma, s, e, k = sp.symbols("L mu gamma s e k", positive=True)
u = sp.Symbol("u", nonnegative=True)
x, g, m, h, f0, f1 = sp.symbols("x g m h f0 f1", real=True)


def _above(first: tuple[Any, Any, Any], second: tuple[Any, Any, Any]) -> Any:
    """The interpolation inequality of two points (value, gradient, point): nonpositive."""
    (fa, ga, xa), (fb, gb, xb) = first, second
    square = ((ga - gb) ** 2 / L + mu * (xa - xb) ** 2 - 2 * mu / L * (gb - ga) * (xb - xa)) / (2 * (1 - mu / L))
    return fb + gb * (xa - xb) + square - fa


def distance_slack(rho: Any, lam: Any) -> Any:
    """``rho*||x - x*||^2 - ||x - gamma*g - x*||^2``, up to lam on both inequalities between x and x*."""
    start, least = (f0, g, x), (0, 0, 0)
    return rho * x**2 - (x - gamma * g) ** 2 + lam * (_above(start, least) + _above(least, start))


@proof("gd", "gd: ||x - x*||^2 falls by max((1-gamma*mu)^2, (1-gamma*L)^2) a step, for every 0 < gamma < 2/L, and no less")
def gd(p: Proof) -> None:
    """Multipliers: 2*gamma*(1-gamma*mu) on both inequalities between x and x*; 2*gamma*(gamma*L-1) beyond the optimal step."""
    p.assume("f is L-smooth and mu-strongly convex, 0 < mu < L, minimal at x*")
    best = 2 / (2 * mu + e)
    for name, c, sign, span in (("short", mu, 1, best / (1 + u)), ("long", L, -1, (best + u * 2 / (mu + e)) / (1 + u))):
        p.region = {L: mu + e, gamma: span}
        rho = p.constant(f"{name}: rho", (1 - gamma * c) ** 2)
        lam = p.constant(f"{name}: lam", 2 * gamma * sign * (1 - gamma * c))
        p.nonnegative(f"{name}: the multiplier is nonnegative", lam)
        weight = sign * gamma * (2 - gamma * (L + mu)) / (L - mu)
        p.implied(f"{name}: the slack is a square", distance_slack(rho, lam), squares=[(weight, g - c * x)])
        p.zero(f"{name}: a quadratic of curvature {c} attains it", (x - gamma * c * x) ** 2 - rho * x**2)


@proof("cgd", "cgd: f - f* falls by (1-gamma*mu*(1-s))^2 a step, s = sqrt(eps), for 0 < gamma <= 2/((1-s)*mu+(1+s)*L), and no less")
def cgd(p: Proof) -> None:
    """Multipliers: w on (x, x+), w*(1-w) on (x*, x), 1-w on (x*, x+) with ``w**2`` the rate; gamma*w/(2*s) on the compressor."""
    p.assume("f is L-smooth and mu-strongly convex, 0 < mu < L, minimal at x*")
    p.assume("||C(g) - g||^2 <= eps*||g||^2 with 0 < eps < 1, s = sqrt(eps)")
    p.region = {L: mu + e, s: 1 / (1 + k)}
    short = (1 - s) * mu + (1 + s) * L  # twice the inverse of the optimal step
    p.region[gamma] = 2 / short.subs(p.region, simultaneous=True) / (1 + u)
    w = 1 - gamma * mu * (1 - s)
    rho = p.constant("cgd rho", w**2)
    descent, weight = p.constant("descent multiplier", w), p.constant("cgd compressor multiplier", gamma * w / (2 * s))
    p.nonnegative("the multipliers are nonnegative", descent, 1 - w, weight)
    now, then, least = (f0, g, x), (f1, h, x - gamma * m), (0, 0, 0)
    slack = rho * f0 - f1 + weight * ((g - m) ** 2 - s**2 * g**2)
    slack += descent * _above(now, then) + w * (1 - w) * _above(least, now) + (1 - w) * _above(least, then)
    rest = 2 - gamma * (1 - s) * (L + mu)
    squares = [
        (1 / (2 * (L - mu)), h - w * g + gamma * L * m - gamma * mu * L * (1 - s) * x),
        (gamma * mu**2 * L * (1 - s) * rest / (2 * (L - mu)), x - 2 * w / (mu * rest) * g + gamma * (L - mu) / (mu * rest) * m),
        (gamma * (1 - s) ** 2 * w * (2 - gamma * short) / (2 * s * rest), g - m / (1 - s)),
    ]
    p.implied("the slack is a sum of squares", slack, squares=squares)
    p.zero("a quadratic of curvature mu and m = (1-s)*g attain it", (x - gamma * (1 - s) * mu * x) ** 2 - rho * x**2)
