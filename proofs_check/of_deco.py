"""The theorem deco.5 on error feedback with delayed aggregation, step by step.

    avg E||grad f(theta)||^2 <= 4*F0/(gamma*T) + 2*L*gamma*sigma2/n
                                + 4*L^2*gamma^2*(4*(1-delta)*zeta2/delta^2 + 2*(1-delta)*sigma2/delta + 2*tau*sigma2/n)
    for gamma <= 1/(4*L*Max(1, K)), K^2 = tau^2 + 2*(1-delta)/delta^2

Source: derived, steps (a) to (d) as in the paper's file, and the sum that combines them.

Expectations are linear: a polynomial in one step's noise keeps its constant term, and the noise squared becomes its variance, which
is at most the stated one.  Names in capitals are those expectations.  ``delta = 1/(1+u)`` with u > 0 (at delta = 1 no error arises).
"""

from __future__ import annotations

import sympy as sp

from verify_rates.proofs_check.lemmas import expectation, power_mean
from verify_rates.proofs_check.proof import Proof, proof

L, gamma, delta, n, sigma2, zeta2, tau, T, u = sp.symbols("L gamma delta n sigma2 zeta2 tau T u", positive=True)
f0, f1, H, G, X, noise, e, g, S = sp.symbols("f0 f1 H G X noise e g S", real=True)


def _virtual(p: Proof) -> None:
    """deco.1: with compression and delay taken out, one step moves by the newest averaged gradient (before tau steps: old = sent = 0)."""
    theta, error, old, new, sent, flight = sp.symbols("theta error old new sent flight")
    before = theta - gamma * error - gamma * flight
    after = (theta - gamma * sent) - gamma * (error + old - sent) - gamma * (flight - old + new)
    p.zero("the virtual iterate moves by -gamma*gbar", after - before + gamma * new)


def _descent(p: Proof) -> None:
    """(a): the virtual iterate takes a plain stochastic gradient step; H, G: gradients at it and at theta; X = ||theta - virtual||."""
    variance = sp.Symbol("variance", nonnegative=True)
    mean_gradient = G + noise
    next_value = f0 - gamma * H * mean_gradient + L * gamma**2 / 2 * mean_gradient**2
    descent = expectation(next_value, {noise: variance}) - f1
    smooth = L**2 * X**2 - (H - G) ** 2
    bound = (
        f0 - gamma / 2 * (1 - L * gamma) * G**2 + gamma * L**2 / 2 * X**2 + p.constant("noise of a step", L * gamma**2 * sigma2 / (2 * n))
    )
    p.implied(
        "(a) descent lemma at the virtual iterate",
        bound - f1,
        by=[(1, descent), (gamma / 2, smooth), (L * gamma**2 / 2, sigma2 / n - variance)],
        squares=[(gamma / 2, H)],
    )


def _distance(p: Proof) -> None:
    """(b): theta - virtual = gamma*(mean error) + gamma*(gradients under way), and the mean error is at most the errors' mean."""
    p.implied("(b) two terms", p.constant("two", 2) * (e**2 + S**2) - (e + S) ** 2, squares=[(1, e - S)])
    power_mean(p, "(b) the squared mean of n vectors")


def _error(p: Proof) -> None:
    """(c): one worker's error memory, and the geometric sum."""
    variance, E, E_next, b = sp.symbols("variance E E_next b", nonnegative=True)
    young = p.constant("young", delta / (2 * (1 - delta)))
    p.zero("(c) (1-delta)*(1+beta) = 1-delta/2", (1 - delta) * (1 + young) - (1 - delta / 2))
    p.nonnegative("(c) (1-delta)*(1+1/beta) <= 2*(1-delta)/delta", 2 * (1 - delta) / delta - (1 - delta) * (1 + 1 / young))
    contracted = expectation((1 - delta) * (e + g + noise) ** 2, {noise: variance}) - E_next
    bound = (1 - delta / 2) * e**2 + 2 * (1 - delta) / delta * g**2 + (1 - delta) * sigma2
    spare = 2 * (1 - delta) / delta - (1 - delta) * (1 + 1 / young)
    p.implied(
        "(c) one step of the error",
        bound - E_next,
        by=[(1, contracted), (1 - delta, sigma2 - variance)],
        squares=[((1 - delta) * young, e - g / young), (spare, g)],
    )
    # P_T = sum_{s<T} b_s - (delta/2)*sum_{s<T} E_s - E_T is 0 at T = 0 (no error) and never falls
    step = b - delta / 2 * E - E_next + E
    p.implied("(c) the geometric sum, by induction", step, by=[(1, (1 - delta / 2) * E + b - E_next)])
    total, gradients = sp.symbols("total gradients", nonnegative=True)
    source = 2 * (1 - delta) / delta * (gradients + zeta2 * T) + (1 - delta) * sigma2 * T
    claimed = 4 * (1 - delta) / delta**2 * (gradients + zeta2 * T) + 2 * (1 - delta) / delta * sigma2 * T
    p.implied("(c) the sum of the errors", claimed - total, by=[(2 / delta, source - delta / 2 * total)])


def _delay(p: Proof) -> None:
    """(d): tau averaged gradients under way; a: their true parts, b: their noises, uncorrelated over time."""
    a, b, N, R = sp.symbols("a b N R", real=True)
    p.implied("(d) true parts and noise", 2 * a**2 + 2 * b**2 - (a + b) ** 2, squares=[(1, a - b)])
    power_mean(p, "(d) the squared sum of tau vectors")
    variance = sp.Symbol("variance", nonnegative=True)
    grown = expectation((R + noise) ** 2, {noise: variance}) - R**2
    p.implied("(d) noises add their variances", sigma2 / n - grown, by=[(1, sigma2 / n - variance)])
    bound = 2 * tau * N + 2 * tau * sigma2 / n
    p.implied("(d) together", bound - 2 * a**2 - 2 * b**2, by=[(2, tau * N - a**2), (2, tau * sigma2 / n - b**2)])
    s, spare = sp.symbols("s spare", nonnegative=True)
    # step s is under way at t = s+1..Min(s+tau, T-1)
    last = s + tau - spare
    p.implied("(d) every step is under way at most tau times", tau - (last - s), by=[(1, spare)])


def _combination(p: Proof) -> None:
    """Sum of (a) over t, with (b), (c), (d) put in; A is the sum of E||grad f(theta)||^2."""
    A, F0, D2, errors, flight = sp.symbols("A F0 D2 errors flight", nonnegative=True)
    descent = F0 + gamma * L**2 / 2 * D2 + T * L * gamma**2 * sigma2 / (2 * n) - gamma / 2 * (1 - L * gamma) * A
    distance = 2 * gamma**2 * (errors + flight) - D2
    memory = 4 * (1 - delta) / delta**2 * (A + zeta2 * T) + 2 * (1 - delta) / delta * sigma2 * T - errors
    under_way = 2 * tau**2 * A + 2 * tau * sigma2 / n * T - flight
    K2 = tau**2 + 2 * (1 - delta) / delta**2
    limit = p.constant("step limit", sp.Rational(1, 4))
    small, damped = limit - L * gamma, limit**2 - L**2 * gamma**2 * K2
    theta, above, K = sp.symbols("theta above K", nonnegative=True)  # gamma = limit/(L*(1+theta)*M), where M = Max(1, K)
    p.nonnegative("the step condition gives L*gamma <= 1/4", small.subs(gamma, limit / (L * (1 + theta) * (1 + above))))
    below = (limit**2 - L**2 * gamma**2 * K**2).subs(gamma, limit / (L * (1 + theta) * (K + above)))
    p.nonnegative("the step condition gives L*gamma*K <= 1/4", below)
    p.implied(
        "half of the descent is left",
        (1 - L * gamma - 4 * L**2 * gamma**2 * K2) - sp.Rational(1, 2),
        by=[(1, small), (4, damped)],
    )
    spread = 4 * (1 - delta) * zeta2 / delta**2 + 2 * (1 - delta) * sigma2 / delta + 2 * tau * sigma2 / n
    bound = 4 * F0 / (gamma * T) + 2 * L * gamma * sigma2 / n + p.constant("noise factor", 4) * L**2 * gamma**2 * spread
    left = 1 - L * gamma - 4 * L**2 * gamma**2 * K2 - sp.Rational(1, 2)
    p.implied(
        "the theorem",
        bound - A / T,
        by=[
            (4 / (gamma * T), descent),
            (2 * L**2 / T, distance),
            (4 * gamma**2 * L**2 / T, memory),
            (4 * gamma**2 * L**2 / T, under_way),
            (2 * A / T, left),
        ],
    )


@proof("deco.5", "DD-EF-SGD: the average squared gradient norm is bounded with staleness and compression as separate terms")
def deco(p: Proof) -> None:
    """Steps (a) to (d) of the theorem, and their combination."""
    p.assume("f is L-smooth and bounded below; F0 = f(theta_0) - inf f")
    p.assume("workers' noises are independent over workers and steps given the past, of mean 0 and variance at most sigma2")
    p.assume("mean_i ||grad f_i||^2 <= zeta2 + ||grad f||^2, and E||C(v) - v||^2 <= (1-delta)*||v||^2 with 0 < delta < 1")
    p.region[delta] = 1 / (1 + u)
    _virtual(p)
    _descent(p)
    _distance(p)
    _error(p)
    _delay(p)
    _combination(p)
