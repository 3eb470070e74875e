"""Gossip with random matrices: MATCHA's bound from one contraction constant rho.

Source: recalled and derived again, as in the paper's file.  Letters as in ``of_local_steps``; r is the root of rho.
"""

from __future__ import annotations

import sympy as sp

from verify_rates.proofs_check.lemmas import expectation, geometric_sum, telescope
from verify_rates.proofs_check.of_local_steps import F0, G, L, T, descent, gamma, n, noise, sigma2, u, variance, zeta2
from verify_rates.proofs_check.proof import Proof, proof

r, y = sp.symbols("r y", positive=True)

CONDITION = 6 * gamma**2 * L**2 * r**2 / (1 - r) ** 2
MATCHA_BOUND = (
    2 * F0 / (gamma * T) + gamma * L * sigma2 / n + 2 * gamma**2 * L**2 * r**2 / (1 - r) * (sigma2 / (1 + r) + 3 * zeta2 / (1 - r))
) / (1 - 2 * CONDITION)


@proof("matcha.6", "MATCHA: the mean squared gradient from rho = ||E[W'W] - J||, for D = 6*gamma^2*L^2*rho/(1-sqrt(rho))^2 < 1/2")
def matcha(p: Proof) -> None:
    """The disagreement is a noise part and a bias part; each contracts by rho a step, and descent of the mean does the rest."""
    p.assume("every f_i is L-smooth, gamma*L <= 1, D < 1/2, and mean_i ||grad f_i - grad f||^2 <= zeta2 everywhere")
    p.assume("the W's are independent, doubly stochastic, with E||(W-J)*v||^2 <= r^2*||v||^2, 0 < r < 1; all models are equal at the start")
    p.region |= {r: 1 / (1 + y), gamma: 1 / (L * (1 + u))}
    descent(p, gamma)
    B, D, own, mean, here, mid = sp.symbols("B D own mean here mid", real=True)
    N, N_next, b_next, V, A = sp.symbols("N N_next b_next V A", nonnegative=True)
    p.zero("a mean taken off: its square goes, and a term of sum 0", own**2 - mean**2 - (own - mean) ** 2 - 2 * mean * (own - mean))
    # noise: N_{t+1} = W*(N_t - gamma*noise), uncorrelated
    grown = r**2 * expectation((B + gamma * noise) ** 2, {noise: variance}) - N_next
    p.implied(
        "noise, one step",
        r**2 * (N + gamma**2 * sigma2) - N_next,
        by=[(1, grown), (r**2, N - B**2), (r**2 * gamma**2, sigma2 - variance)],
    )
    fixed = p.constant("noise part", gamma**2 * sigma2 * r**2 / (1 - r**2))
    by = [(1, r**2 * (N + gamma**2 * sigma2) - N_next), (r**2, fixed - N)]
    p.implied("noise stays below its fixed point", fixed - N_next, by=by)
    # bias: b_{t+1} = W*(b_t - gamma*D_t), D the true gradients
    bias = r * B**2 + r**2 / (1 - r) * gamma**2 * D**2 - b_next
    by = [(1, r**2 * (B - gamma * D) ** 2 - b_next)]
    p.implied("bias, one step", bias, by=by, squares=[(r * (1 - r), B + r / (1 - r) * gamma * D)])
    geometric_sum(p, "bias, the sum over the steps", r, r**2 / (1 - r) * gamma**2)
    three = 3 * (here - mid) ** 2 + 3 * (mid - G) ** 2 + 3 * G**2 - here**2
    x, v, w = here - mid, mid - G, G
    p.implied("a gradient in three parts", three, squares=[(1, x - v), (1, v - w), (1, x - w)])
    p.implied("noise and bias", 2 * B**2 + 2 * D**2 - (B + D) ** 2, squares=[(1, B - D)])
    telescope(p, "the sum over the steps", gamma / 2, L * gamma**2 * sigma2 / (2 * n))
    # sums over T steps: V of the disagreement, A of the squared gradients, b of the bias, d of the squared gradients of the workers
    b, d = sp.symbols("b d", nonnegative=True)
    parts = 2 * (T * fixed + b) - V
    summed = r**2 / (1 - r) ** 2 * gamma**2 * d - b
    gradients = 3 * (L**2 * V + T * zeta2 + A) - d
    factor = p.constant("three", 6) * gamma**2 * r**2 / (1 - r) ** 2
    spread = 2 * T * fixed + factor * (L**2 * V + T * zeta2 + A) - V
    p.implied("the disagreement", spread, by=[(1, parts), (2, summed), (2 * r**2 / (1 - r) ** 2 * gamma**2, gradients)])
    share, above = sp.symbols("share above", positive=True)  # D, below 1/2 by the condition
    p.zero("the disagreement with D", factor * L**2 - CONDITION)
    shared = 2 * T * fixed + share / L**2 * (L**2 * V + T * zeta2 + A) - V
    p.region[share] = 1 / (2 * (1 + above))
    full_batch = 2 * F0 / (gamma * T) + gamma * L * sigma2 / n
    first = full_batch - A / T + L**2 * V / T  # the summed descent, times 2/(gamma*T)
    claimed = full_batch + 2 * L**2 * fixed + share * zeta2
    by = [(1 - share, first), (L**2 / T, shared), (share * full_batch, 1)]
    p.implied("the sum over the steps, with D", claimed - (1 - 2 * share) * A / T, by=by)
    p.zero("the theorem", p.constant("bound", MATCHA_BOUND) - claimed.subs(share, CONDITION) / (1 - 2 * CONDITION))
