"""Several momenta that are averaged at different times: MT-DAO's bound.

Source: derived, as in the paper's file.  omega are the weights of the momenta, ``spread`` their sum of omega*beta/(1-beta), psi the
factor of the disagreement; V, G, M as in ``of_local_steps``, and z is the virtual model.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from verify_rates.proofs_check.lemmas import expectation, geometric_sum, telescope, weighted_mean
from verify_rates.proofs_check.of_local_steps import F0, G, L, M, T, V, f, f1, gamma, n, noise, sigma2, u, variance, zeta2
from verify_rates.proofs_check.proof import Proof, proof

beta, omega, chance, coin, spread, psi, above = sp.symbols("beta omega chance coin spread psi above", positive=True)

MT_DAO_BOUND = (
    2 * F0 / (gamma * T)
    + gamma * L * sigma2 / n
    + 2 * L**2 * gamma**2 * spread**2 * sigma2 / n
    + 2 * L**2 * gamma**2 * psi * (sigma2 + 2 * zeta2)
)


def _virtual(p: Proof) -> None:
    """z = x - gamma*sum omega*beta/(1-beta)*u takes a plain step, for each momentum's share omega of the gradient."""
    g, old = sp.symbols("g old")
    new = beta * old + (1 - beta) * g
    moved = omega * new + omega * beta / (1 - beta) * (new - old)
    p.zero("a momentum's share of the virtual step is that of the gradient", moved - omega * g)
    weighted_mean(p, "the squared weighted sum of momenta")


def _disagreement(p: Proof) -> None:
    """Deviations from the mean over the workers: momenta, the direction, and the models, which a coin brings together."""
    U, U_next, g, X, d, X_next = sp.symbols("U U_next g X d X_next", real=True)
    convex = beta * U**2 + (1 - beta) * g**2 - (beta * U + (1 - beta) * g) ** 2
    p.implied("a momentum is a mean of the last one and the gradient", convex, squares=[(beta * (1 - beta), U - g)])
    mixed = (1 - coin) * (beta * U + (1 - beta) * g) ** 2 - U_next**2
    kept = (1 - coin) * (beta * U**2 + (1 - beta) * g**2) - U_next**2
    p.implied("one step of a momentum", kept, by=[(1, mixed), (1 - coin, convex)])
    geometric_sum(p, "momenta, the sum over the steps", (1 - coin) * beta, (1 - coin) * (1 - beta))
    young = p.constant("young", chance / (2 * (1 - chance)))
    p.zero("(1-p)*(1+c) = 1-p/2", (1 - chance) * (1 + young) - (1 - chance / 2))
    spare = 2 * (1 - chance) / chance - (1 - chance) * (1 + 1 / young)
    left = (1 - chance / 2) * X**2 + 2 * (1 - chance) / chance * gamma**2 * d**2 - X_next**2
    by = [(1, (1 - chance) * (X - gamma * d) ** 2 - X_next**2), (spare, gamma**2 * d**2)]
    p.implied("one step of the models", left, by=by, squares=[((1 - chance) * young, X + gamma * d / young)])
    geometric_sum(p, "models, the sum over the steps", 1 - chance / 2, 2 * (1 - chance) / chance * gamma**2)
    factor = 4 * (1 - chance) / chance**2 * gamma**2
    p.zero("the factor of the models", factor * (chance / 2) - 2 * (1 - chance) / chance * gamma**2)


def _spread_of_gradients(p: Proof) -> Any:
    """The sum over T steps of V, from that of the gradients' deviations: ``V <= gamma^2*psi*(T*(sigma2 + 2*zeta2) + 2*L^2*V)``."""
    own, mid = sp.symbols("own mid", real=True)
    grown = expectation((own + noise) ** 2, {noise: variance}) - own**2
    p.implied("noise of a worker", sigma2 - grown, by=[(1, sigma2 - variance)])
    p.implied("drift and difference", 2 * own**2 + 2 * mid**2 - (own + mid) ** 2, squares=[(1, own - mid)])
    total = sp.Symbol("total", nonnegative=True)  # of the squared deviations of the gradients
    limit = sp.Rational(1, 4) - gamma**2 * L**2 * psi
    solved = p.constant("disagreement", 2) * gamma**2 * psi * T * (sigma2 + 2 * zeta2) - V
    by = [
        (2, gamma**2 * psi * total - V),
        (2 * gamma**2 * psi, T * (sigma2 + 2 * zeta2) + 2 * L**2 * V - total),
        (4 * V, limit),
    ]
    p.implied("the disagreement solved", solved, by=by)
    return solved


@proof("mt_dao.7", "MT-DAO-SGDM: the mean squared gradient through the spread of the momenta and the factor psi of the disagreement")
def mt_dao(p: Proof) -> None:
    """Descent of the virtual model, its distance to the mean model, and the disagreement."""
    p.assume("every f_i is L-smooth, mean_i ||grad f_i - grad f||^2 <= zeta2; noises independent, of mean 0 and variance at most sigma2")
    p.assume("gamma <= 1/(4*L), gamma*L*spread <= 1/4, gamma^2*L^2*psi <= 1/4; momenta start at 0, models equal; coins independent")
    p.assume("psi = 4*(1-p)/p^2*(1 - sum omega + sum omega*(1-beta)*(1-q)/(1-(1-q)*beta)) for coins p of the models, q of a momentum")
    p.region |= {beta: 1 / (1 + u), chance: 1 / (1 + above), coin: 1 / (1 + above), gamma: 1 / (4 * L * (1 + u))}
    _virtual(p)
    _disagreement(p)
    solved = _spread_of_gradients(p)
    H, u0, g0 = sp.symbols("H u0 g0", real=True)  # the gradient at z; a mean momentum and the mean gradient
    distance, now = sp.symbols("distance now", nonnegative=True)
    moved = expectation(f - gamma * H * (M + noise) + L * gamma**2 / 2 * (M + noise) ** 2, {noise: variance}) - f1
    cost = p.constant("noise of a step", L * gamma**2 * sigma2 / (2 * n))
    left = f - gamma / 2 * G**2 - gamma / 8 * M**2 + gamma * L**2 * distance + gamma * L**2 / 2 * now + cost - f1
    by = [
        (1, moved),
        (gamma, L**2 * distance - (H - G) ** 2),
        (gamma / 2, L**2 * now - (G - M) ** 2),
        (L * gamma**2 / 2, sigma2 / n - variance),
    ]
    p.implied("one step of descent", left, by=by, squares=[(gamma, H - G + M / 2), (gamma / 2 * (sp.Rational(1, 4) - L * gamma), M)])
    telescope(p, "the sum over the steps", gamma / 2, cost)
    convex = beta * u0**2 + (1 - beta) * g0**2 - (beta * u0 + (1 - beta) * g0) ** 2
    p.implied("a mean momentum", convex, squares=[(beta * (1 - beta), u0 - g0)])
    geometric_sum(p, "mean momenta, the sum over the steps", beta, 1 - beta)
    # sums over T steps: A of the squared gradients, Q of the squared mean gradients, apart of the distances of z
    A, Q, apart = sp.symbols("A Q apart", nonnegative=True)
    summed = F0 - gamma / 2 * A - gamma / 8 * Q + gamma * L**2 * apart + gamma * L**2 / 2 * V + T * cost
    stale = sp.Rational(1, 16) - gamma**2 * L**2 * spread**2
    by = [
        (2 / (gamma * T), summed),
        (2 * L**2 / T, gamma**2 * spread**2 * (Q + T * sigma2 / n) - apart),
        (L**2 / T, solved),
        (2 * Q / T, stale),
        (Q / (8 * T), 1),
    ]
    p.implied("the theorem", p.constant("bound", MT_DAO_BOUND) - A / T, by=by)
