"""Error compensation with an absolute compressor: the residual, EC-SGD and EC-LSVRG.

Source: derived, as in the paper's file.  Names in capitals are expectations; ``virtual = x - ebar``, R its squared distance to x*, and
gap is ``f(x) - f*``.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from verify_rates.proofs_check.lemmas import power_mean
from verify_rates.proofs_check.proof import Proof, proof

L, mu, gamma, n, D1, Delta2, R2, u, A = sp.symbols("L mu gamma n D1 Delta2 R2 u A", positive=True)
Lmax, chance, rate = sp.symbols("Lmax chance rate", positive=True)
R, R_next, E, gap = sp.symbols("R R_next E gap", nonnegative=True)
x, e, g = sp.symbols("x e g", real=True)

FLOOR = 2 * (2 * L + mu) * gamma**2 * Delta2
LEFT = sp.Symbol("LEFT", positive=True)  # (1-gamma*mu/2)^N for EC-SGD, (1-rate)^N for EC-LSVRG
EC_SGD_BOUND = 2 * LEFT * R2 / gamma + 2 * gamma * D1 + FLOOR


def _residual(p: Proof, limit: Any) -> Any:
    """Every error is gamma times a compression error, so ``E||e_i||^2 <= limit``; so is the mean's."""
    old, gradient, sent = sp.symbols("old gradient sent")  # sent = C(old/gamma + gradient)
    left = old + gamma * gradient - gamma * sent
    p.zero("an error is gamma times what the compressor leaves", left - gamma * (old / gamma + gradient - sent))
    lost, one = sp.symbols("lost one", nonnegative=True)
    p.implied("the residual", limit - one, by=[(gamma**2, Delta2 - lost), (1, gamma**2 * lost - one)])
    power_mean(p, "the squared mean of n errors")
    return limit - E


@proof("absolute_compression.1", "EC-SGD with ||C(v) - v||^2 <= Delta2: the residual stays below gamma^2*Delta2, step by step")
def residual(p: Proof) -> None:
    """One identity: nothing accumulates."""
    p.assume("E||C(v) - v||^2 <= Delta2 for every v, and no error at the start")
    _residual(p, p.constant("residual", gamma**2 * Delta2))


def _step(p: Proof, second: Any, name: str) -> Any:
    """One step of the virtual iterate, where ``second`` bounds the squared averaged gradient; the slack is returned."""
    p.assume("f is convex and L-smooth, and g.(x - x*) >= f(x) - f* + mu/2*||x - x*||^2 at every x, g its gradient")
    p.assume("gradients are unbiased, and E||C(v) - v||^2 <= Delta2 for every v, with no error at the start")
    old, point, mean, sent = sp.symbols("old point mean sent")
    virtual = (point - sent) - (old + gamma * mean - sent)  # what is sent leaves x, the rest stays in the error
    p.zero("the virtual iterate takes a plain step", virtual - (point - old - gamma * mean))
    bound = (1 - gamma * mu / 2) * (x - e) ** 2 - gamma * gap + p.constant(name, 2 * L + mu) * gamma * e**2 + gamma**2 * second
    square = sp.Symbol("square", nonnegative=True)  # E||gbar||^2
    moved = (x - e) ** 2 - 2 * gamma * g * (x - e) + gamma**2 * square - R_next
    by = [
        (1, moved),
        (2 * gamma, g * x - gap - mu / 2 * x**2),
        (gamma / (2 * L), 2 * L * gap - g**2),
        (gamma**2, second - square),
    ]
    squares = [(gamma / (2 * L), g - 2 * L * e), (gamma * mu / 2, x + e)]
    p.implied("one step of the virtual iterate", bound - R_next, by=by, squares=squares)
    return (1 - gamma * mu / 2) * R - gamma * gap + (2 * L + mu) * gamma * E + gamma**2 * second - R_next


def _weighted(p: Proof, factor: Any, cost: Any) -> None:
    """Weights ``1/factor^(t+1)``: the sum telescopes, and its weights add up to at least ``1/factor^N``."""
    W, f, done, weights, now, then = sp.symbols("W f done weights now then", nonnegative=True)  # W: the weight of step t
    one = factor * now - gamma / 2 * f + cost - then
    before = R2 + weights * cost - W * factor * now - gamma / 2 * done
    after = R2 + (weights + W) * cost - W * then - gamma / 2 * (done + W * f)
    p.implied("the weighted sum over the steps", after, by=[(1, before), (W, one)])


def _mean(p: Proof, bound: Any, cost: Any) -> None:
    """From the weighted sum to the weighted mean of the gap, at the mean iterate by Jensen."""
    weights, done, F = sp.symbols("weights done F", positive=True)
    others = sp.Symbol("others", nonnegative=True)
    p.nonnegative("the last weight alone is 1/LEFT", LEFT - 1 / (1 / LEFT + others))
    summed = R2 + weights * cost - gamma / 2 * done
    by = [(2 / (gamma * weights), summed), (1 / weights, done - weights * F), (2 * R2 / gamma, LEFT - 1 / weights)]
    p.implied("the theorem", bound - F, by=by)


@proof("absolute_compression.2", "EC-SGD: linear progress, the noise 2*gamma*D1, and a floor of order gamma^2, whatever the heterogeneity")
def ec_sgd(p: Proof) -> None:
    """One step of the virtual iterate, and the weighted sum."""
    p.assume("E||gbar||^2 <= 2*A*(f(x) - f*) + D1, gamma <= 1/(4*A) and gamma*mu < 2")
    p.region[gamma] = 1 / (4 * A) / (1 + u)
    small = _residual(p, gamma**2 * Delta2)
    one = _step(p, 2 * A * gap + D1, "weight of the error")
    cost = gamma**2 * D1 + (2 * L + mu) * gamma**3 * Delta2
    left = (1 - gamma * mu / 2) * R - gamma / 2 * gap + cost - R_next
    half = p.constant("step limit", sp.Rational(1, 4)) - A * gamma
    p.implied("half of the gap is left", left, by=[(1, one), ((2 * L + mu) * gamma, small), (2 * gamma * gap, half)])
    _weighted(p, 1 - gamma * mu / 2, cost)
    _mean(p, 2 * LEFT * R2 / gamma + 2 * gamma * D1 + p.constant("floor", FLOOR), cost)


@proof("absolute_compression.4", "EC-LSVRG: linear progress of rate min(gamma*mu/2, p/2) and a floor of order gamma^2, without noise")
def ec_lsvrg(p: Proof) -> None:
    """EC-SGD's step with the variance of variance-reduced gradients, which a coin renews with a chance."""
    p.assume("f_i = mean_l f_il, each f_il convex and Lmax-smooth; samples and coins are independent over workers and steps")
    p.assume("gamma <= 1/(4*L + 24*Lmax/n), rate = min(gamma*mu/2, chance/2)")
    S, S_next, square, spread = sp.symbols("S S_next square spread", nonnegative=True)  # S: of the f_il at the references, against x*
    a, b = sp.symbols("a b", real=True)  # differences of sampled gradients to those at x*, at x and at the reference
    small = _residual(p, gamma**2 * Delta2)
    second = 2 * L * gap + 4 * Lmax / n * gap + 2 / n * S
    smooth = 2 * Lmax * gap - a**2
    p.implied(
        "the squared averaged gradient",
        second - square,
        by=[
            (1, g**2 + spread / n - square),
            (1, 2 * L * gap - g**2),
            (1 / n, (a - b) ** 2 - spread),
            (2 / n, smooth),
            (2 / n, S - b**2),
        ],
        squares=[(1 / n, a + b)],
    )
    renewed = (1 - chance) * S + chance * 2 * Lmax * gap - S_next
    p.implied("the coin", renewed, by=[(1, (1 - chance) * S + chance * a**2 - S_next), (chance, smooth)])
    one = _step(p, second, "weight of the error")
    weight = p.constant("weight of the references", 4 * gamma**2 / (n * chance))
    cost = (2 * L + mu) * gamma**3 * Delta2
    left = (1 - rate) * (R + weight * S) - gamma / 2 * gap + cost - (R_next + weight * S_next)
    limit = sp.Rational(1, 4) - gamma * (L + p.constant("samples", 6) * Lmax / n)
    by = [
        (1, one),
        (weight, renewed),
        ((2 * L + mu) * gamma, small),
        (2 * gamma * gap, limit),
        (R, gamma * mu / 2 - rate),
        (weight * S, chance / 2 - rate),
    ]
    p.implied("half of the gap is left", left, by=by)
    _weighted(p, 1 - rate, cost)
    _mean(p, 2 * LEFT * R2 / gamma + p.constant("floor", FLOOR), cost)
