"""EF and EF21 contract their Lyapunov functions by exactly rho, for every number of workers.

Source: Berg Thomsen, Taylor, Dieuleveut (2025, Theorems 1 and 2 for one worker; 2026 for n workers).

Letters: ``s = sqrt(eps)``, ``S = L + mu``, ``q = (L - mu)/(L + mu)``, ``w = sqrt(rho)``.  The inner square root of rho is a symbol ``r``
with ``r**2 = (1-s)**2*q**2 + 4*s``, so that w solves ``w**2 = (1-s)*q*w + s``; afterwards q is written in s and w.  Range: ``0 < s < 1``
and ``0 < q < 1``, that is ``sqrt(s) < w < 1``, which positive symbols u, y parametrise.

Averages over workers split into means and deviations: ``mean_i ||v_i||^2 = ||mean v||^2 + mean_i ||v_i - mean v||^2``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import sympy as sp

from verify_rates.proofs_check.proof import Proof, proof

S, s, w, q, r, u, y = sp.symbols("S s w q r u y", positive=True)
D, e, g, v, g_next, de, dg, dv, e_next = sp.symbols("D e g v g_next de dg dv e_next", real=True)


class Constants(NamedTuple):
    """Step, rate and multiplier, with L and mu, all in S, s, w."""

    L: Any
    mu: Any
    gamma: Any
    rho: Any
    lam: Any


def _constants(p: Proof) -> Constants:
    root = ((1 - s) * q + r) / 2
    p.zero("sqrt(rho) solves w^2 = (1-s)*q*w + s", root**2 - (1 - s) * q * root - s, reduce=(r, (1 - s) ** 2 * q**2 + 4 * s))
    L, mu = S * (1 + q) / 2, S * (1 - q) / 2
    inner = (L - mu) ** 2 + 16 * L * mu * s / (1 + s) ** 2
    p.zero("the root in the multiplier is S*r/(1+s)", inner - (S * r / (1 + s)) ** 2, reduce=(r, (1 - s) ** 2 * q**2 + 4 * s))
    gamma = p.constant("gamma", 2 / S * (1 - s) / (1 + s))
    lam = gamma / S * ((1 - s) * (L - mu) + S * r)
    p.zero("the multiplier is 2*gamma*sqrt(rho)", lam - 2 * gamma * root)
    ratio = (w**2 - s) / ((1 - s) * w)
    p.zero("q in terms of w", (w**2 - (1 - s) * q * w - s).subs(q, ratio))
    h = 1 / (1 + u)
    p.region |= {s: h**2, w: (h + y) / (1 + y)}
    p.nonnegative("q lies in (0, 1)", ratio, 1 - ratio)
    return Constants(L.subs(q, ratio), mu.subs(q, ratio), gamma, p.constant("rho", w**2), p.constant("lam", 2 * gamma * w))


def _pair(c: Constants, gradient: Any, point: Any) -> Any:
    """Sum of the two interpolation inequalities between two points: nonpositive for gradient and point differences."""
    return (gradient**2 + c.mu * c.L * point**2 - (c.L + c.mu) * gradient * point) / (c.L - c.mu)


def _common_steps(p: Proof, multipliers: tuple[Any, ...]) -> None:
    """The two interpolation inequalities of a worker, their multipliers, and the split into means and deviations."""
    p.nonnegative("the multipliers are nonnegative", *multipliers)
    n, value, average = sp.symbols("n value average", positive=True)
    square = average**2 + 2 * average * (value - average) + (value - average) ** 2
    p.zero("a square splits into mean, deviation and a term of sum 0", value**2 - square)
    p.zero("||sum v_i||^2/n^2 is the squared mean", (n * average) ** 2 / n**2 - average**2)
    L, mu, f0, f1, g0, g1, x0, x1 = sp.symbols("L mu f0 f1 g0 g1 x0 x1")

    def below(fa: Any, ga: Any, xa: Any, fb: Any, gb: Any, xb: Any) -> Any:
        square = ((ga - gb) ** 2 / L + mu * (xa - xb) ** 2 - 2 * mu / L * (gb - ga) * (xb - xa)) / (2 * (1 - mu / L))
        return fb + gb * (xa - xb) + square - fa  # <= 0

    both = below(f0, g0, x0, f1, g1, x1) + below(f1, g1, x1, f0, g0, x0)
    made = ((g0 - g1) ** 2 + mu * L * (x0 - x1) ** 2 - (L + mu) * (g0 - g1) * (x0 - x1)) / (L - mu)
    p.zero("the two interpolation inequalities, summed", both - made)


@proof("error_feedback", "EF: V = (1/(n*s))*||sum e_i||^2 + sum_i ||x - x* - e_i||^2 falls by rho a step, for every n (common minimiser)")
def error_feedback(p: Proof) -> None:
    """Multipliers: lam on the two inequalities between x and x*, 1/s on the compressor; both averaged over the workers."""
    p.assume("every f_i is L-smooth and mu-strongly convex, 0 < mu < L, all minimal at x*")
    p.assume("||C(v) - v||^2 <= eps*||v||^2 with 0 < eps < 1, for each worker's vector")
    c = _constants(p)
    weight = p.constant("compressor multiplier", 1 / s)
    _common_steps(p, (c.lam, weight))
    # means: e_next = e + gamma*g - m, and x_next - x* - e_next = D - e - gamma*g
    m = e + c.gamma * g - e_next
    p.zero("means: the virtual iterate moves by the gradient", (D - m - e_next) - (D - e - c.gamma * g))
    before, after = e**2 / s + (D - e) ** 2, e_next**2 / s + (D - m - e_next) ** 2
    compressor = e_next**2 - s**2 * (e + c.gamma * g) ** 2
    slack = c.rho * before - after + c.lam * _pair(c, g, D) + weight * compressor
    square = s * (1 - w**2) ** 2 / ((1 + s) * (w**2 - s))
    form = D + (1 + s) * (w**2 - s) / (s * (1 - w**2)) * e - 2 * (1 - s) / (S * (1 - w**2)) * g
    p.implied("means: the slack is a square", slack, squares=[(square, form)])
    # deviations: x has none; those of e enter V once, those of e_next appear with 1/s - 1
    before, after = de**2, e_next**2
    compressor = e_next**2 - s**2 * (de + c.gamma * dg) ** 2
    slack = c.rho * before - after + c.lam * _pair(c, dg, 0) + weight * compressor
    form = de - 2 * s * (1 - s) / (S * (1 + s) * (w**2 - s)) * dg
    rest = 4 * w**2 * (1 - s) ** 2 / (S**2 * (1 + s) ** 2 * (w**2 - s))
    p.implied("deviations: the slack is a sum of squares", slack, squares=[(w**2 - s, form), (rest, dg), (1 / s - 1, e_next)])


@proof("ef21", "EF21: V = (s/n)*||sum g_i||^2 + sum_i ||g_i - v_i||^2 falls by rho a step, for every n (arbitrary minimisers)")
def ef21(p: Proof) -> None:
    """Multipliers: s*lam/gamma^2 on the two inequalities between x and x_next, 1 on the compressor; averaged over the workers."""
    p.assume("every f_i is L-smooth and mu-strongly convex, 0 < mu < L")
    p.assume("||C(v) - v||^2 <= eps*||v||^2 with 0 < eps < 1, for each worker's vector")
    c = _constants(p)
    weight = p.constant("compressor multiplier", 1)
    lam = c.lam * s / c.gamma**2
    _common_steps(p, (lam, weight))
    error = sp.Symbol("error", real=True)  # g_next - v_next, bounded through the compressor
    # means: x - x_next = gamma*v
    before, after = s * g**2 + (g - v) ** 2, s * g_next**2 + error**2
    compressor = error**2 - s**2 * (g_next - v) ** 2
    slack = c.rho * before - after + lam * _pair(c, g - g_next, c.gamma * v) + weight * compressor
    square = w**4 * (1 + s) / (w**2 - s)
    form = g - (w**2 - s**2) / (w**2 * (1 + s)) * v - s / w**2 * g_next
    p.implied("means: the slack is a square", slack, squares=[(square, form)])
    # deviations: all workers step alike, so x - x_next has none; a = g - v, b = g_next - g
    a, b = dg - dv, sp.Symbol("b", real=True)
    compressor = error**2 - s**2 * (a + b) ** 2
    slack = c.rho * a**2 - error**2 + lam * _pair(c, b, 0) + weight * compressor
    form = a - s**2 / (w**2 - s**2) * b
    rest = s * w**2 * (w**2 - s**3) / ((w**2 - s) * (w**2 - s**2))
    p.implied("deviations: the slack is a sum of squares", slack, squares=[(w**2 - s**2, form), (rest, b)])
