"""LOSCAR: overlapped local steps of unequal counts, averaged on a random part of the coordinates.

Source: derived, as in the paper's file; the steps give less than the stated bound, which follows.

Of a round: E the mean squared distance of the n models to their mean at its start, A the squared gradient there, W the sum over the steps
of the workers' mean squared gradients; Hm and Hb the largest and the mean number of steps, Qb the mean number of late ones.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from verify_rates.proofs_check.lemmas import expectation, geometric_sum, power_mean, telescope
from verify_rates.proofs_check.proof import Proof, proof

L, gamma, n, sigma2, F0, R, Hm, Hb, p_mask, k = sp.symbols("L gamma n sigma2 F0 R Hm Hb p_mask k", positive=True)
Qb, A, E, W, f = sp.symbols("Qb A E W f", nonnegative=True)
f1, noise = sp.symbols("f1 noise", real=True)
variance = sp.Symbol("variance", nonnegative=True)

CQ = 4 * (1 - p_mask) / p_mask**2
THIRD = L**2 * gamma**2 * sigma2 * Hm * (2 * CQ + 4 * Qb / Hb + 1)
FIRST = F0 / (gamma * Hb * R) + L * gamma * sigma2 / n
LOSCAR_BOUND = 4 * FIRST + 16 * THIRD


def _disagreement(p: Proof) -> Any:
    """From one round to the next: ``q*||e + d||^2 + p*||late||^2``, d all of a round's increments and late those after sending."""
    e, d, E_next = sp.symbols("e d E_next", real=True)
    late = sp.Symbol("late", nonnegative=True)
    q = 1 - p_mask
    young = p.constant("young", p_mask / (2 * q))
    p.zero("q*(1+a) = 1-p/2", q * (1 + young) - (1 - p_mask / 2))
    spare = 2 * q / p_mask - q * (1 + 1 / young)
    merged = q * (e + d) ** 2 + p_mask * late - E_next
    left = (1 - p_mask / 2) * e**2 + 2 * q / p_mask * d**2 + p_mask * late - E_next
    p.implied("one round of the disagreement", left, by=[(1, merged)], squares=[(q * young, e - d / young), (spare, d)])
    geometric_sum(p, "the sum over the rounds", 1 - p_mask / 2, sp.Integer(1))
    # sums over R rounds: E of the disagreement, W of the squared gradients
    d_sum, late_sum = sp.symbols("d_sum late_sum", nonnegative=True)
    summed = 2 * q / p_mask * d_sum + p_mask * late_sum - p_mask / 2 * E
    limits = [(CQ, 2 * gamma**2 * (R * Hb * sigma2 + Hm * W) - d_sum), (2, 2 * gamma**2 * (R * Qb * sigma2 + Hm * W) - late_sum)]
    solved = 2 * gamma**2 * sigma2 * R * (CQ * Hb + 2 * Qb) + (2 * CQ + 4) * gamma**2 * Hm * W - E
    p.implied("the disagreement, bounded", solved, by=[(2 / p_mask, summed), *limits])
    return solved


def _drift(p: Proof) -> None:
    """A model is at ``e - gamma*(N + D)`` from the mean after t steps, N its noises and D its gradients, summed."""
    e, N, D, own, mean = sp.symbols("e N D own mean", real=True)
    t, V, H, each, total, partial = sp.symbols("t V H each total partial", nonnegative=True)
    p.zero("a mean taken off: its square goes, and a term of sum 0", own**2 - mean**2 - (own - mean) ** 2 - 2 * mean * (own - mean))
    grown = expectation((own + noise) ** 2, {noise: variance}) - own**2
    p.implied("noises add their variances", sigma2 - grown, by=[(1, sigma2 - variance)])
    power_mean(p, "a squared sum over steps")
    p.implied("increments", 2 * N**2 + 2 * D**2 - (N + D) ** 2, squares=[(1, N - D)])
    p.implied("of the largest number of steps", Hm * each - H * each, by=[(each, Hm - H)])
    now = 2 * e**2 + 4 * gamma**2 * t * (sigma2 + total) - V
    by = [(1, (e - gamma * (N + D)) ** 2 - V), (4 * gamma**2, t * sigma2 - N**2), (4 * gamma**2, t * partial - D**2)]
    squares = [(1, e + gamma * (N + D)), (2 * gamma**2, N - D)]
    p.implied("after t steps", now, by=[*by, (4 * gamma**2 * t, total - partial)], squares=squares)

    def summed(t: Any) -> Any:
        return 2 * t * e**2 + 2 * gamma**2 * t**2 * (sigma2 + total)

    so_far = sp.Symbol("so_far", nonnegative=True)
    rest = summed(t + 1) - summed(t) - (now + V)
    p.nonnegative("sums of t", rest)
    p.implied("the sum over a round", summed(t + 1) - so_far - V, by=[(1, summed(t) - so_far), (1, now), (1, rest)])


@proof("loscar.4", "LOSCAR: a bound for one shared function and any step counts; the disagreement enters at second order, as (1-p)/p^2")
def loscar(p: Proof) -> None:
    """Descent of the mean, the drift within a round and the disagreement between rounds, each bounded by W."""
    p.assume(
        "f is L-smooth, all workers share it; noises independent of each other and of the masks, of mean 0 and variance at most sigma2"
    )
    p.assume("models are equal at the start, 0 < p < 1, and the mean of the models takes all increments (loscar.2, loscar.3)")
    p.region |= {p_mask: 1 / (1 + k)}
    x = gamma * L * Hm
    limit = 1 - x**2 * (64 * CQ + p.constant("step limit", 150))
    small = sp.Rational(1, 144) - x**2
    p.implied(
        "the step condition", small, by=[(sp.Rational(1, 150), limit), (sp.Rational(64, 150) * CQ * x**2, 1), (sp.Rational(1, 3600), 1)]
    )
    p.implied("and its root", sp.Rational(1, 12) - x, by=[(1 / (sp.Rational(1, 12) + x), small)])
    _drift(p)
    solved = _disagreement(p)
    grad, h, K, U, inner = sp.symbols("grad h K U inner", real=True)  # inner: the gradient times K, the workers' mean summed gradient
    error, drift = sp.symbols("error drift", nonnegative=True)
    p.zero("the inner product", -grad * h + (grad**2 + h**2 - (grad - h) ** 2) / 2)
    both = 2 * (Hm * W + Hb * sigma2 / n) - (K + U) ** 2
    p.implied("a round's summed gradients", both, by=[(2, Hm * W - K**2), (2, Hb * sigma2 / n - U**2)], squares=[(1, K - U)])
    cost = p.constant("noise of a round", L * gamma**2 * Hb * sigma2 / n)
    descent = f - gamma * inner + L * gamma**2 / 2 * (K + U) ** 2 - f1
    left = f - gamma * Hb / 2 * A - gamma * (sp.Rational(1, 2) - x) * W + gamma / 2 * error + cost - f1
    p.implied("one round of descent", left, by=[(1, descent), (gamma, inner - (Hb * A + W - error) / 2), (L * gamma**2 / 2, both)])
    telescope(p, "the sum over the rounds, by induction", gamma * Hb / 2, cost)
    # sums over R rounds from here on
    whole = F0 - gamma * Hb / 2 * A - gamma * (sp.Rational(1, 2) - x) * W + gamma / 2 * error + R * cost
    drifted = 2 * Hm * E + 2 * gamma**2 * Hm * (R * Hb * sigma2 + Hm * W) - drift
    weight = 2 / (gamma * Hb * R)
    by = [
        (weight, whole),
        (weight * gamma / 2, L**2 * drift - error),
        (weight * gamma / 2 * L**2, drifted),
        (weight * gamma * L**2 * Hm, solved),
        (weight * gamma * W, sp.Rational(1, 12) - x),
        (weight * gamma * W / 30, limit),
    ]
    rest = sp.Rational(5, 12) - sp.Rational(1, 30) + x**2 * ((64 * CQ + 150) / 30 - 2 * CQ - 5)
    stronger = 2 * FIRST + 2 * THIRD
    p.implied("more than the theorem", p.constant("bound", stronger) - A / R, by=[*by, (weight * gamma * W * rest, 1)])
    p.implied("the theorem", LOSCAR_BOUND - A / R, by=[(1, stronger - A / R), (2 * FIRST + 14 * THIRD, 1)])
