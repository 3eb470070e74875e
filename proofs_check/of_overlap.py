"""Overlapped communication: the bounds of ACCO and of CO2, and when CO2 and SlowMo are stable on a quadratic.

Source: derived, as in the papers' files.  Letters as in ``of_deco``: names in capitals are expectations.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from verify_rates.proofs_check.lemmas import expectation, power_mean, telescope
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


alpha, n, sigma2, zeta2, H, first = sp.symbols("alpha n sigma2 zeta2 H first", positive=True)
drift, g, total, sums = sp.symbols("drift g total sums", nonnegative=True)  # g: a squared gradient at a round's start

CO2_BOUND = (
    9 * F0 / (2 * alpha * gamma * H * T)
    + 4 * L * alpha * gamma * sigma2 / n
    + 8 * L**2 * H * alpha**2 * gamma**2 * sigma2 / n
    + 8 * L**2 * gamma**2 * H * sigma2
    + 16 * L**2 * gamma**2 * H**2 * zeta2
)


def _co2_drift(p: Proof, damped: Any) -> Any:
    """How far models drift in a round, summed over its H steps: each is at ``-gamma*(N + D)`` from the start after t steps."""
    N, D, own, mean = sp.symbols("N D own mean", real=True)  # summed noises and gradients of a worker; its gradient and their mean
    t, V, S, partial, now = sp.symbols("t V S partial now", nonnegative=True)
    p.zero("a worker's gradient: the mean, a difference, a term of sum 0", own**2 - mean**2 - (own - mean) ** 2 - 2 * mean * (own - mean))
    here, there = sp.symbols("here there", real=True)
    split = 2 * (there - here) ** 2 + 2 * here**2 - there**2
    p.implied("gradients on the way and at the start", split, squares=[(1, there - 2 * here)])
    power_mean(p, "a squared sum over steps")
    after = 2 * gamma**2 * t * sigma2 + 4 * gamma**2 * t * (L**2 * S + t * (zeta2 + g)) - V
    on_the_way = 2 * t * (L**2 * partial + t * (zeta2 + g)) - D**2
    by = [(1, gamma**2 * (N + D) ** 2 - V), (2 * gamma**2, t * sigma2 - N**2), (2 * gamma**2, on_the_way)]
    p.implied("after t steps", after, by=[*by, (4 * gamma**2 * t * L**2, S - partial)], squares=[(gamma**2, N - D)])

    def summed(t: Any) -> Any:
        return gamma**2 * t**2 * (sigma2 + 2 * L**2 * S) + sp.Rational(4, 3) * gamma**2 * t**3 * (zeta2 + g)

    more = summed(t + 1) - summed(t) - (after + V)
    p.nonnegative("sums of t and of t^2", more)
    p.implied("the sum over a round", summed(t + 1) - now - V, by=[(1, summed(t) - now), (1, after), (1, more)])
    solved = 2 * gamma**2 * H**2 * sigma2 + p.constant("drift", 4) * gamma**2 * H**3 * (zeta2 + g) - S
    spare = sp.Rational(4, 3) * gamma**2 * H**3 * (zeta2 + g) + sp.Rational(3, 4) * S
    p.implied("the sum solved", solved, by=[(2, summed(H) - S), (4 * S, damped), (spare, 1)])
    return solved.subs(S, drift)


@proof("co2.4", "CO2 with beta = 0, no penalty, no clip: a bound for rounds whose averages arrive one round late")
def co2(p: Proof) -> None:
    """One update of descent, the staleness and the drift put in, and the sum over the updates t = 1..T."""
    p.assume("every f_i is L-smooth, mean_i ||grad f_i - grad f||^2 <= zeta2; noises independent, of mean 0 and variance at most sigma2")
    p.assume("L*alpha*gamma*H <= 1/4, L*gamma*H <= 1/4, and y_1 = y_0; given y_t, the noises of round t-1 have mean 0")
    step = alpha * gamma
    p.region |= {gamma: 1 / (4 * L * H * (1 + u))}
    limit = p.constant("step limit", sp.Rational(1, 4)) - L * step * H
    damped = sp.Rational(1, 16) - L**2 * gamma**2 * H**2
    stale = sp.Rational(1, 16) - L**2 * step**2 * H**2
    p.implied("the square of the condition", stale, by=[(sp.Rational(1, 4) + L * step * H, limit)])
    drifted = _co2_drift(p, damped)
    # grad: at y_t; h: a step's mean gradient, Q: the sum of their squares over the round; U: summed noise, K: summed mean gradients
    grad, h, U, K, inner, mid = sp.symbols("grad h U K inner mid", real=True)
    Q, before, apart, error = sp.symbols("Q before apart error", nonnegative=True)
    p.zero("the inner product", -grad * h + (grad**2 + h**2 - (grad - h) ** 2) / 2)
    both = 2 * (H * Q + H * sigma2 / n) - (K + U) ** 2
    p.implied("a round's summed gradients", both, by=[(2, H * Q - K**2), (2, H * sigma2 / n - U**2)], squares=[(1, K - U)])
    p.implied("staleness and drift", 2 * (grad - mid) ** 2 + 2 * (mid - h) ** 2 - (grad - h) ** 2, squares=[(1, grad - 2 * mid + h)])
    cost = L * step**2 * H * sigma2 / n
    descent = f0 - step * inner + L * step**2 / 2 * (K + U) ** 2 - f1  # inner: grad times the summed mean gradients
    left = f0 - step * H / 2 * G**2 - step / 4 * Q + step / 2 * error + cost - f1
    split = inner - (H * G**2 + Q - error) / 2
    p.implied("one update", left, by=[(1, descent), (step, split), (L * step**2 / 2, both), (step * Q, limit)])
    stale_sum = 2 * L**2 * (H * apart + drift) - error
    distance = 2 * step**2 * (H * before + H * sigma2 / n) - apart
    noise = cost + step * L**2 * (2 * H**2 * step**2 * sigma2 / n + 2 * gamma**2 * H**2 * sigma2 + 4 * gamma**2 * H**3 * zeta2)
    kept = f0 - step * H / 2 * G**2 - step / 4 * Q + step / 8 * before + step * H / 4 * g + noise - f1
    by = [(1, left), (step / 2, stale_sum), (step * L**2 * H, distance), (step * L**2, drifted)]
    p.implied("one update, bounded", kept, by=[*by, (2 * step * before, stale), (4 * step * H * g, damped)])
    telescope(p, "updates add up", sp.Integer(1), noise)
    # over t = 1..T: `sums` adds Q, and what came before is part of it; the squared gradients at y_0..y_{T-1} are at most total + first
    whole = F0 - step * H / 2 * total - step / 4 * sums + step / 8 * before + step * H / 4 * g + T * noise
    start = 2 * L * F0 - first
    by = [
        (1, whole),
        (step / 8, sums - before),
        (step * H / 4, total + first - g),
        (step * H / 4, start),
        (F0 / 2, limit),
        (step / 8 * sums, 1),
    ]
    p.implied("the sum over the updates", sp.Rational(9, 8) * F0 - step * H / 4 * total + T * noise, by=by)
    summed = sp.Rational(9, 8) * F0 - step * H / 4 * total + T * noise
    p.implied("the theorem", p.constant("bound", CO2_BOUND) - total / T, by=[(4 / (step * H * T), summed)])


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
    before, now, penalty, kappa = sp.symbols("before now penalty kappa")
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
