"""Local steps: LUPA's bound for identical workers, and OLDSGD's for gossip on stale models.

Source: derived, as in the papers' files.  Names in capitals are expectations; V is the mean squared distance of the n models to their
mean, G the gradient of f at that mean, and M the mean of the workers' gradients at their own models.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from verify_rates.proofs_check.lemmas import expectation, power_mean, telescope
from verify_rates.proofs_check.proof import Proof, proof

L, mu, gamma, n, sigma2, zeta2, T, F0, H, a = sp.symbols("L mu gamma n sigma2 zeta2 T F0 H a", positive=True)
y, lam = sp.symbols("y lam", positive=True)
u, v, w, k = sp.symbols("u v w k", nonnegative=True)
G, M, f1, noise, other = sp.symbols("G M f1 noise other", real=True)
f, V, V_next = sp.symbols("f V V_next", nonnegative=True)
variance, second = sp.symbols("variance second", nonnegative=True)

LUPA_BOUND = (
    ((a - 1) / (T + a - 1)) ** 3 * F0
    + 4 * L * sigma2 * T * (T + 2 * a - 1) / (mu**2 * n * (T + a - 1) ** 3)
    + 32 * L**2 * sigma2 * (1 - 1 / n) * T * (H - 1) * ((a + H) / a) ** 2 / (mu**3 * (T + a - 1) ** 3)
)
OLDSGD_CONSENSUS = 24 * gamma**2 * (H * sigma2 + 2 * H**2 * zeta2) / (1 - lam) ** 2
OLDSGD_BOUND = 2 * F0 / (gamma * T) + L * gamma * sigma2 / n + L**2 * OLDSGD_CONSENSUS


def descent(p: Proof, step: Any) -> Any:
    """The mean of the models takes a step along the mean gradient; what is left over is nonnegative for L*step <= 1."""
    p.assume("f is L-smooth; the workers' noises are independent given the past, of mean 0 and variance at most sigma2")
    power_mean(p, "the squared mean of n gradient differences")
    moved = expectation(f - step * G * (M + noise) + L * step**2 / 2 * (M + noise) ** 2, {noise: variance}) - f1
    cost = p.constant("noise of a step", L * step**2 * sigma2 / (2 * n))
    left = f - step / 2 * G**2 + step * L**2 / 2 * V + cost - f1
    by = [(1, moved), (step / 2, L**2 * V - (G - M) ** 2), (L * step**2 / 2, sigma2 / n - variance)]
    p.implied("one step of descent", left, by=by, squares=[(step / 2 * (1 - L * step), M)])
    return left


def _identical_drift(p: Proof) -> None:
    """Between two averagings V grows by at most step^2*(1-1/n)*sigma2 a step, for a convex f that all workers share."""
    step, first, D, g, Q, S, P, P_next = sp.symbols("step first D g Q S P P_next", positive=True)
    p.region[step] = 1 / (L * (1 + u)).subs(p.region)
    closer = [(2 * step, D * g - g**2 / L), (step * (2 / L - step), g**2)]
    p.implied("a gradient step brings two points no further apart", D**2 - (D - step * g) ** 2, by=closer)
    apart = expectation((D + step * (noise - other)) ** 2, {noise: variance, other: second})
    p.implied("two noises", D**2 + 2 * step**2 * sigma2 - apart, by=[(step**2, sigma2 - variance), (step**2, sigma2 - second)])
    p.zero("V is the sum over pairs by 2*n^2", (Q - S**2 / n) / n - (2 * n * Q - 2 * S**2) / (2 * n**2))
    unit = (1 - 1 / n) * sigma2
    grown = P + n * (n - 1) * 2 * step**2 * sigma2 - P_next
    p.implied("one step of the drift", (P - P_next) / (2 * n**2) + step**2 * unit, by=[(1 / (2 * n**2), grown)])
    start, done, spare = sp.symbols("start done spare", nonnegative=True)  # of a round: its first step, how many since, how many more
    p.region[step] = first / (1 + u)
    before = done * first**2 * unit - V
    p.nonnegative("steps fall", first**2 - step**2)
    by = [(1, before), (1, V + step**2 * unit - V_next), (unit, first**2 - step**2)]
    p.implied("steps add up", (done + 1) * first**2 * unit - V_next, by=by)
    p.nonnegative("a round's first step over the present one", (a + done + spare) / a - (start + done + a) / (start + a))
    shrunk = ((a + H) / a) ** 2 * step**2 - first**2
    by = [(1, before), (first**2 * unit, H - 1 - done), ((H - 1) * unit, shrunk)]
    p.implied("a round has at most H-1 of them", ((a + H) / a) ** 2 * step**2 * (H - 1) * unit - V, by=by)


@proof("lupa.4", "LUPA: three terms for identical convex workers, with step 4/(mu*(t+a)) and a >= 4*L/mu")
def lupa(p: Proof) -> None:
    """Descent of the mean, the drift of a round, and the sum with weights (t+a-1)^3; y = t+a."""
    p.assume("f is convex with ||grad f||^2 >= 2*mu*(f - f*), shared by all workers, whose models are averaged every H steps")
    p.region |= {L: mu * (1 + k), n: 1 + w, H: 1 + v}
    p.region[y] = 4 * (1 + k) * (1 + u)
    step = p.constant("step", 4 / (mu * y))
    p.zero("the factor of a step", 1 - mu * step - (y - 4) / y)
    left = descent(p, step)
    _identical_drift(p)
    drift = ((a + H) / a) ** 2 * step**2 * (H - 1) * (1 - 1 / n) * sigma2
    key = (y - 1) ** 3 - y**2 * (y - 4)
    p.nonnegative("the key lemma (t+a)^2*(t+a-4) <= (t+a-1)^3", key)
    noisy = 8 * L * sigma2 / (mu**2 * n)
    drifted = p.constant("drift", 32 * L**2 / mu**3) * ((a + H) / a) ** 2 * (H - 1) * (1 - 1 / n) * sigma2
    p.implied(
        "one step, weighted",
        (y - 1) ** 3 * f + noisy * y + drifted - y**3 * f1,
        by=[(y**3, left), (y**3 * step / 2, G**2 - 2 * mu * f), (y**3 * step * L**2 / 2, drift - V), (f, key)],
    )
    now, then = sp.symbols("now then", nonnegative=True)
    t = sp.Symbol("t", nonnegative=True)

    def summed(t: Any) -> Any:
        return (a - 1) ** 3 * F0 + t * drifted + noisy * t * (t + 2 * a - 1) / 2

    p.zero("the sum begins with the start", summed(0) - (a - 1) ** 3 * F0)
    weighted = now + noisy * (t + a) + drifted - then
    p.implied("the sum over the steps", summed(t + 1) - then, by=[(1, summed(t) - now), (1, weighted)])
    last = summed(T) - (T + a - 1) ** 3 * f
    p.region[a] = 1 + u
    p.implied("the theorem", LUPA_BOUND - f, by=[(1 / (T + a - 1) ** 3, last)])


A, A_next, S = sp.symbols("A A_next S", nonnegative=True)  # V at the start of a round and at its end, and its sum over the round


def _within(p: Proof) -> Any:
    """How far models drift within a round: ``X - gamma*(N + D + Z)`` after t steps, each a vector less its mean over the workers.

    N sums noises, D what the gradients at a worker's model and at the mean differ by, Z what those of f_i and f at the mean differ by.
    """
    X, N, D, Z, R, own, mean = sp.symbols("X N D Z R own mean", real=True)
    t, partial, total = sp.symbols("t partial total", nonnegative=True)
    p.zero("a mean taken off: its square goes, and a term of sum 0", own**2 - mean**2 - (own - mean) ** 2 - 2 * mean * (own - mean))
    grown = expectation((R + noise) ** 2, {noise: variance}) - R**2
    p.implied("noises add their variances", sigma2 - grown, by=[(1, sigma2 - variance)])
    power_mean(p, "a squared sum over steps")
    split = 2 * N**2 + 4 * D**2 + 4 * Z**2 - (N + D + Z) ** 2
    p.implied("noise, drift and differences", split, squares=[(1, N - D - Z), (2, D - Z)])
    limits = [(4 * gamma**2, t * sigma2 - N**2), (8 * gamma**2, t * L**2 * partial - D**2), (8 * gamma**2, t**2 * zeta2 - Z**2)]
    now = 2 * A + 4 * gamma**2 * t * sigma2 + 8 * gamma**2 * t * L**2 * S + 8 * gamma**2 * t**2 * zeta2 - V
    p.implied(
        "after t steps",
        now,
        by=[(1, (X - gamma * (N + D + Z)) ** 2 - V), (2, A - X**2), (2 * gamma**2, split), *limits, (8 * gamma**2 * t * L**2, S - partial)],
        squares=[(1, X + gamma * (N + D + Z))],
    )

    def summed(t: Any) -> Any:
        return 2 * t * A + 2 * gamma**2 * t**2 * (sigma2 + 2 * L**2 * S) + sp.Rational(8, 3) * gamma**2 * t**3 * zeta2

    more = summed(t + 1) - summed(t) - (now + V)
    p.nonnegative("sums of t and of t^2", more)
    p.implied("the sum over a round", summed(t + 1) - total - V, by=[(1, summed(t) - total), (1, now), (1, more)])
    return summed(H) - S


def _between(p: Proof) -> Any:
    """How a round hands the disagreement on: ``B - gamma*U`` with ``B^2 <= lam^2*A`` and U as N + D + Z above, over H steps."""
    B, U, N, D, Z = sp.symbols("B U N D Z", real=True)
    left = lam * A + p.constant("young", 2 * gamma**2 / (1 - lam)) * (H * sigma2 + 2 * H**2 * zeta2 + 2 * H * L**2 * S) - A_next
    weight = gamma**2 / (1 - lam)
    limits = [(2 * weight, H * sigma2 - N**2), (4 * weight, H * L**2 * S - D**2), (4 * weight, H**2 * zeta2 - Z**2)]
    p.implied(
        "one round of the disagreement",
        left,
        by=[
            (1, (B - gamma * U) ** 2 - A_next),
            (1 / lam, lam**2 * A - B**2),
            (weight, 2 * N**2 + 4 * D**2 + 4 * Z**2 - U**2),
            *limits,
        ],
        squares=[((1 - lam) / lam, B + lam * gamma / (1 - lam) * U)],
    )
    return left


@proof("oldsgd.2", "OLDSGD: the mean squared gradient is bounded through the disagreement, of order gamma^2/(1-lam)^2")
def oldsgd(p: Proof) -> None:
    """Descent of the mean, a linear system for the disagreement within and between rounds, and its fixed point."""
    p.assume("every f_i is L-smooth, and mean_i ||grad f_i - grad f||^2 <= zeta2 everywhere; all models are equal at the start")
    p.assume("W is doubly stochastic, so that it leaves the mean alone, and ||W - J|| <= lam with 0 < lam < 1")
    p.region |= {lam: 1 / (1 + y), H: 1 + v, gamma: 1 / (L * (1 + u))}
    limit = (1 - lam) ** 2 - p.constant("step limit", 32) * gamma**2 * H**2 * L**2  # gamma <= (1-lam)/(4*sqrt(2)*H*L)
    room = 1 - (1 - lam) ** 2 / (32 * H**2)
    p.implied("the step condition gives gamma*L <= 1", 1 - gamma**2 * L**2, by=[(1 / (32 * H**2), limit), (room, 1)])
    descent(p, gamma)
    whole, handed = _within(p), _between(p)
    within = 4 * H * A + 4 * gamma**2 * H**2 * sigma2 + sp.Rational(16, 3) * gamma**2 * H**3 * zeta2 - S
    p.implied("the sum solved", within, by=[(2, whole), (S / 4, limit), (S * (1 - (1 - lam) ** 2 / 4), 1)])
    fixed = p.constant("fixed point", 4 * gamma**2 / (1 - lam) ** 2) * (sp.Rational(5, 4) * H * sigma2 + sp.Rational(7, 3) * H**2 * zeta2)
    young = 2 * gamma**2 / (1 - lam)
    growth = lam + 8 * young * H**2 * L**2
    spare = young * (1 - (1 - lam) ** 2) * (H * sigma2 / 4 + H**2 * zeta2 / 3)
    slope = (16 / (1 - lam) * fixed + young * (8 * H * sigma2 + sp.Rational(32, 3) * H**2 * zeta2)) / 32
    by = [(1, handed), (2 * young * H * L**2, within), (growth, fixed - A), (slope, limit), (spare, 1)]
    p.implied("the disagreement stays below its fixed point", fixed - A_next, by=by)
    consensus = p.constant("consensus", OLDSGD_CONSENSUS)
    spare = 4 * gamma**2 * (1 / (1 - lam) ** 2 - 1) * H * sigma2 + sp.Rational(16, 3) * gamma**2 * (2 / (1 - lam) ** 2 - 1) * H**2 * zeta2
    p.implied("the mean over a round", consensus - S / H, by=[(4, fixed - A), (1 / H, within), (spare, 1)])
    cost = L * gamma**2 * sigma2 / (2 * n)
    telescope(p, "the sum over the steps", gamma / 2, cost)
    total, spread = sp.symbols("total spread", nonnegative=True)
    summed = F0 + T * cost + gamma * L**2 / 2 * spread - gamma / 2 * total
    p.implied("the theorem", OLDSGD_BOUND - total / T, by=[(2 / (gamma * T), summed), (L**2 / T, T * consensus - spread)])
