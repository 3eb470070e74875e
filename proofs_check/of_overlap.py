"""Overlapped communication: ACCO's two bounds, and when CO2 and SlowMo are stable on a quadratic.

Source: derived, as in the papers' files.  Letters as in ``of_deco``: names in capitals are expectations.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from verify_rates.proofs_check.lemmas import expectation, telescope
from verify_rates.proofs_check.proof import Proof, proof

L, gamma, s2, T, F0, u = sp.symbols("L gamma s2 T F0 u", positive=True)
f0, f1, G, Gt, a, b = sp.symbols("f0 f1 G Gt a b", real=True)
E, E_next, Va, Vb = sp.symbols("E E_next Va Vb", nonnegative=True)

ACCO_MISMATCH = sp.Rational(2, 3) * gamma**2 * s2
FULL_BATCH = 2 * F0 / (gamma * T) + L * gamma * s2 / 2
PRICE = L**2 * gamma**2 * s2 / 6

_LIMITED = [(gamma**2 / 4, s2 - Va), (gamma**2 / 4, s2 - Vb)]  # both half gradients have variance at most s2
_SMOOTH = L**2 * E - (G - Gt) ** 2  # gradients G at the model and Gt at the estimate, E the squared distance of the two


def _acco_assumptions(p: Proof) -> None:
    p.assume("f is L-smooth and gamma*L <= 1")
    p.assume("given model and estimate, the two half gradients have independent noises of mean 0 and variance at most s2")
    p.region[gamma] = 1 / (L * (1 + u))


def _acco_mismatch(p: Proof, bound: Any) -> None:
    """``E||e_t||^2 <= bound`` for all t: at t = 0 it is 0, and the bound is handed on."""
    theta, g, gt = sp.symbols("theta g gt")
    p.zero(
        "the mismatch is half a step of gradient difference", (theta - gamma * gt) - (theta - gamma / 2 * (g + gt)) - gamma / 2 * (g - gt)
    )
    grown = expectation(gamma**2 / 4 * (G + a - Gt - b) ** 2, {a: Va, b: Vb}) - E_next
    handed = gamma**2 / 4 * (L**2 * E + 2 * s2) - E_next
    p.implied("one step of the mismatch", handed, by=[(1, grown), (gamma**2 / 4, _SMOOTH), *_LIMITED])
    p.nonnegative("no mismatch at the start", bound)
    by = [(1, handed), (gamma**2 * L**2 / 4, bound - E), (gamma**2 * s2 * (1 + gamma * L) / 6, 1 - gamma * L)]
    p.implied("the bound is handed on", bound - E_next, by=by)


@proof("acco.2", "ACCO: the squared distance between model and estimate stays below (2/3)*gamma^2*s2 for gamma*L <= 1")
def acco_mismatch(p: Proof) -> None:
    """A recursion of factor at most 1/4, and its fixed point at gamma*L = 1."""
    _acco_assumptions(p)
    _acco_mismatch(p, p.constant("mismatch", ACCO_MISMATCH))


@proof("acco.3", "ACCO: the mean squared gradient is that of full-batch SGD plus L^2*gamma^2*s2/6, for gamma*L <= 1")
def acco(p: Proof) -> None:
    """One step of descent along the mean of both gradients, the mismatch put in, and the sum over the steps."""
    _acco_assumptions(p)
    _acco_mismatch(p, ACCO_MISMATCH)
    mean = (G + Gt) / 2
    moved = expectation(f0 - gamma * G * (mean + (a + b) / 2) + L * gamma**2 / 2 * (mean + (a + b) / 2) ** 2, {a: Va, b: Vb}) - f1
    noise = p.constant("noise of a step", L * gamma**2 * s2 / 4)
    bound = f0 - gamma / 2 * G**2 + gamma * L**2 / 8 * E + noise
    limited = [(L / 2 * weight, left) for weight, left in _LIMITED]
    p.implied(
        "one step of descent",
        bound - f1,
        by=[(1, moved), (gamma / 8, _SMOOTH), *limited],
        squares=[(gamma / 2 * (1 - gamma * L), mean)],
    )
    cost = noise + gamma * L**2 / 8 * ACCO_MISMATCH
    p.implied("the mismatch put in", f0 - gamma / 2 * G**2 + cost - f1, by=[(1, bound - f1), (gamma * L**2 / 8, ACCO_MISMATCH - E)])
    telescope(p, "the sum over the steps", gamma / 2, cost)
    A = sp.Symbol("A", nonnegative=True)
    claimed = FULL_BATCH + p.constant("price of overlap", PRICE)
    p.implied("the theorem", claimed - A / T, by=[(2 / (gamma * T), F0 - gamma / 2 * A + T * cost)])


z, w, c, beta, above, below = sp.symbols("z w c beta above below", positive=True)


def _positive(p: Proof, name: str, *exprs: Any) -> None:
    """Above 0, not only at least: a fraction with a denominator of positive terms is finite."""
    p.nonnegative(name, *(1 / sp.cancel(sp.together(expr.subs(p.region, simultaneous=True))) for expr in exprs))


def _jury(p: Proof, total: Any, product: Any) -> None:
    """``z^2 - total*z + product`` has both roots inside the unit circle if and only if three numbers are positive.

    The map ``z = (1+w)/(1-w)`` takes the half plane ``Re w < 0`` to the inside of the circle.
    """
    one, minus, inner = 1 - total + product, 1 + total + product, 1 - product
    x, y = sp.symbols("x y", real=True)
    mapped = ((1 + w) / (1 - w)) ** 2 - total * (1 + w) / (1 - w) + product
    p.zero("the polynomial in w", (1 - w) ** 2 * mapped - (minus * w**2 + 2 * inner * w + one))
    p.zero("|1+w|^2 - |1-w|^2 = 4*Re w", (1 + x) ** 2 + y**2 - (1 - x) ** 2 - y**2 - 4 * x)
    A, B, C, real, imaginary = sp.symbols("A B C real imaginary", positive=True)
    _positive(p, "positive coefficients: no real root w >= 0", A * real**2 + B * real + C, C)
    value = sp.expand(A * (x + sp.I * imaginary) ** 2 + B * (x + sp.I * imaginary) + C)
    p.zero("a complex root has Re w = -B/(2*A)", sp.im(value) - imaginary * (2 * A * x + B))
    _positive(p, "and that is below 0", B / (2 * A))
    # the other way: roots inside the circle
    z1, z2 = (1 - above) / (1 + above), (1 - below) / (1 + below)
    _positive(p, "real roots inside make the three numbers positive", (1 - z1) * (1 - z2), (1 + z1) * (1 + z2), 1 - z1 * z2)
    inside, part = 1 / (1 + real), (1 - above) / (1 + above)  # |z| and the real part over |z|
    square = inside**2
    _positive(p, "complex roots as well", (1 - inside * part) ** 2 + square * (1 - part**2), 1 - square)
    p.zero("the three numbers from the roots", (1 - z) * (1 - w) - (1 - (z + w) + z * w))


def _round(p: Proof, stale: bool) -> tuple[Any, Any]:
    """Sum and product of the roots of one round of slow momentum on an eigenvector, from the method's lines."""
    before, now, alpha, penalty, kappa = sp.symbols("before now alpha penalty kappa")
    momentum = (before - now) / alpha  # from now = before - alpha*m
    used = before if stale else now
    new = now - alpha * (beta * momentum + kappa * used / penalty)
    step = new.subs(kappa, c * penalty / alpha)
    total, product = (1 + beta, beta + c) if stale else (1 + beta - c, beta)
    p.zero("a round is a recursion of order 2", step - total * now + product * before)
    return total, product


def _stability(p: Proof, stale: bool, limit: Any) -> None:
    total, product = _round(p, stale)
    _jury(p, total, product)
    edge = (1 - product) if stale else (1 + total + product)
    p.zero("at the limit one of them is 0", edge.subs(c, limit))
    for name, value in (("beta = 0", sp.Integer(0)), ("0 < beta < 1", 1 / (1 + u))):
        p.region = {beta: value, c: limit.subs(beta, value) / (1 + above)}
        _positive(p, f"{name}: 0 < c < limit makes them positive", 1 - total + product, 1 + total + product, 1 - product)
    p.zero("it falls in c at a constant rate", sp.diff(edge, c) + 1)
    p.zero("c itself is one of them", 1 - total + product - c)


@proof("co2.5", "CO2: one round late, z^2-(1+beta)*z+beta+c is stable if and only if 0 < c < 1-beta")
def co2_stability(p: Proof) -> None:
    """The recursion from the method's lines, and Jury's three conditions."""
    p.assume("0 <= beta < 1, no clip, a constant penalty")
    p.assume("on one eigenvector of a quadratic, where a round of H local steps takes off kappa = 1-(1-gamma*lam)^H of the point")
    _stability(p, True, p.constant("stale limit", 1 - beta))


@proof("slowmo.6", "SlowMo, and CO2 without staleness: z^2-(1+beta-c)*z+beta is stable if and only if 0 < c < 2*(1+beta)")
def slowmo_stability(p: Proof) -> None:
    """The recursion from the method's lines, and Jury's three conditions."""
    p.assume("0 <= beta < 1")
    p.assume("on one eigenvector of a quadratic, where a round of H local steps takes off kappa = 1-(1-gamma*lam)^H of the point")
    _stability(p, False, p.constant("limit", 2 * (1 + beta)))
