"""Step-ahead error feedback: the virtual iterate, its mismatch, the residual and the bits."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np

from verify_rates.solvers.words import World
from verify_rates.theory.calculators.collectives import ring_numbers
from verify_rates.theory.evidence import Found, relative

STEPS = 100
QUADRATIC: dict[str, Any] = {"name": "quadratic", "d": 12, "L": 1.0, "mu": 0.1, "sigma2": 0.5}
NONCONVEX: dict[str, Any] = {"name": "nonconvex_logistic", "data": "breast_cancer", "lam": 1e-1}
NONCONVEX_BOUND = "2*F0/(gamma*T) + gamma*L*sigma2/n"  # saef.3 without the mismatch, which is measured
RESIDUAL = "4*(1-delta)*gamma**2*G2/delta**2"  # saef.4
AVERAGING = "32*d*2*(n-1)/n/H"  # saef.7, H the averaging period


def contraction(d: int, size: int) -> Found:
    """saef.1 in fractions, on all vectors with whole entries up to ``size``: top-k with k/d, scaled sign with its own delta >= 1/d."""
    wrong = cases = 0
    for v in itertools.product(range(-size, size + 1), repeat=d):
        norm2, norm1 = sum(x * x for x in v), sum(map(abs, v))
        if norm2 == 0:
            continue
        lost = sorted(x * x for x in v)
        for k in range(1, d + 1):
            cases += 1
            wrong += sum(lost[: d - k]) > (1 - Fraction(k, d)) * norm2
        delta, scale = Fraction(norm1**2, d * norm2), Fraction(norm1, d)
        cases += 1
        wrong += sum((x - (scale if x >= 0 else -scale)) ** 2 for x in v) > (1 - delta) * norm2 or delta < Fraction(1, d)
    return Found.count(wrong, cases, proves=True)


def run(
    method: str, problem: dict[str, Any], hyper: dict[str, Any], compressor: str | None, seed: int = 0
) -> tuple[Any, dict[str, np.ndarray]]:
    """The problem, and the states 0..STEPS of one run."""
    from verify_rates.problems import get_problem
    from verify_rates.solvers.engine.run import simulate

    made = get_problem(**problem)
    options: dict[str, Any] = {"steps": STEPS, "every": 1, "keep_states": True, "compressor": compressor, "seed": seed, "engine": "numpy"}
    history = simulate(method, made, hyper, measures=(), **options)
    assert history.states is not None  # asked for
    return made, {name: v[0] for name, v in history.states.items()}


def virtual(s: dict[str, np.ndarray]) -> np.ndarray:
    """``y_t = x_t - mean e - s``, (T+1, d)."""
    return s["x"] - s["e"].mean(axis=1) - s["s"]


def virtual_iterate(method: str, problem: str, compressor: str, alpha: float, P: int, seed: int) -> Found:
    """saef.2: removing all residuals from the model leaves a step along the average gradient, exactly."""
    from verify_rates.theory.evidence import trace

    gamma = 0.1
    _, states, gradients = trace(
        method, problem, {"gamma": gamma, "alpha": alpha, "P": P}, STEPS, compressor=compressor, seed=seed, sigma2=0.5
    )
    y = virtual({name: np.array([getattr(s, name) for s in states]) for name in ("x", "e", "s")})
    off = [y[t + 1] - y[t] + gamma * g.mean(axis=0) for t, (g,) in enumerate(gradients)]
    return Found.identity(relative(off, list(y)))


def mismatch(s: dict[str, np.ndarray], alpha: float) -> np.ndarray:
    """Per step ``||mean e + s||^2`` without, ``mean ||e_i - mean e||^2 + ||s||^2`` with the step ahead."""
    mean = s["e"].mean(axis=1)
    if alpha == 0:
        return np.sum((mean + s["s"]) ** 2, axis=1)
    return np.mean(np.sum((s["e"] - mean[:, None]) ** 2, axis=2), axis=1) + np.sum(s["s"] ** 2, axis=1)


def nonconvex(problem: str, alpha: float, compressor: str, c: float) -> Found:
    """saef.3 with exact gradients; L is the smoothness of every worker's function."""
    from verify_rates.theory.symbols import number

    chosen = {**QUADRATIC, "n": 4, "sigma2": 0.0, "zeta2_star": 1.0, "common": False} if problem == "quadratic" else {**NONCONVEX, "n": 4}
    from verify_rates.problems import get_problem

    made = get_problem(**chosen)
    gamma = c / made.constants.L_max
    made, s = run("saef", chosen, {"gamma": gamma, "alpha": alpha}, compressor)
    y = virtual(s)[:-1]
    found = float(np.mean([np.sum(made.grads(v).mean(axis=0) ** 2) for v in y]))
    F0 = made.value(np.zeros(made.d)) - made.constants.f_star[0]
    values = {"F0": F0, "gamma": gamma, "T": STEPS, "L": made.constants.L_max, "sigma2": 0, "n": made.n}
    bound = number(NONCONVEX_BOUND, values) + made.constants.L_max**2 * float(mismatch(s, alpha)[:-1].mean())
    return Found(found, found, bound, message=f"measured/bound = {found / bound:.3g}")


class Enumerated(World):
    """The words on two workers with diagonal quadratics in two dimensions, their noise given, top-1 in both directions."""

    reading = "an enumeration"

    def __init__(self, curvatures: np.ndarray, centres: np.ndarray) -> None:
        self.curvatures, self.centres, self.noise = curvatures, centres, np.zeros((2, 2))

    def grad(self, x):
        return self.curvatures * (x - self.centres) + self.noise

    def mean(self, v):
        return v.mean(axis=0)

    def spread(self, v):
        return np.stack([v, v])

    def compress(self, v):
        rows = v.reshape(-1, 2)
        first = np.abs(rows[:, :1]) >= np.abs(rows[:, 1:])
        return (rows * np.hstack([first, ~first])).reshape(v.shape)


def nonconvex_noise(seed: int, alpha: float, T: int, smoothness: str = "each") -> Found:
    """saef.3 with noise: the exact expectation over all two-point noises of two workers; ``smoothness`` "average" takes L of f alone."""
    from verify_rates.solvers.method import get_method
    from verify_rates.theory.symbols import number

    rng, sigma = np.random.default_rng([seed, 3]), 0.5
    curvatures = rng.uniform(0.2, 1.0, (2, 2))
    if smoothness == "average":  # opposite curvatures: f is flat where its parts are steep
        curvatures = np.array([[1.0 + 0.05, 3.0], [0.05 - 1.0, -2.9]])
    world = Enumerated(curvatures, rng.normal(size=(2, 2)))
    mean_curvature = curvatures.mean(axis=0)
    L = float(np.abs(mean_curvature if smoothness == "average" else curvatures).max())
    method, gamma = get_method("saef_one_way"), 1 / L if smoothness == "each" else 0.5 / L
    h = method.hypers(gamma=gamma, alpha=alpha)
    centre = (curvatures * world.centres).mean(axis=0) / mean_curvature

    def both(s: Any, t: int) -> np.ndarray:
        """Expected sums over the steps from t on of the squared gradient at y and of the mismatch."""
        if t == T:
            return np.zeros(2)
        fields = {name: getattr(s, name)[None] for name in ("x", "e", "s")}
        here = np.array([np.sum((mean_curvature * (virtual(fields)[0] - centre)) ** 2), mismatch(fields, alpha)[0]])
        for signs in itertools.product((-sigma, sigma), repeat=2):
            world.noise = np.outer(signs, [1.0, 0.0])
            here = here + both(method.step(s, world, h, t), t + 1) / 4
        return here

    found, lag = both(method.state(x=np.zeros(2), e=np.zeros((2, 2)), s=np.zeros(2), m=np.zeros((2, 2))), 0) / T
    values = {"F0": float(mean_curvature @ centre**2) / 2, "gamma": gamma, "T": T, "L": L, "sigma2": sigma**2, "n": 2}
    bound = number(NONCONVEX_BOUND, values) + L**2 * float(lag)
    return Found(float(found), float(found), bound, proves=True, message=f"exact expectation/bound = {found / bound:.3g}")


def residual_limit(delta: float) -> Found:
    """saef.4: the supremum over all compressors of the class and all gradients of norm 1.

    The norm obeys ``r <- sqrt(1-delta)*(r + gamma*G)``, with equality for a compressor that shrinks along a fixed gradient.
    """
    from verify_rates.theory.symbols import number

    root = number("sqrt(1-delta)", {"delta": delta})
    value = (root / (1 - root)) ** 2
    return Found(value, value, number(RESIDUAL, {"delta": delta, "gamma": 1, "G2": 1}), proves=True)


def residual(compressor: str, alpha: float, P: int) -> Found:
    """saef.4 along runs, G2 the largest squared gradient that was met."""
    from verify_rates.solvers.compressors import get_compressor
    from verify_rates.theory.evidence import trace
    from verify_rates.theory.symbols import number

    made, states, gradients = trace("saef", "quadratic", {"gamma": 0.1, "alpha": alpha, "P": P}, STEPS, compressor=compressor, sigma2=0.5)
    G2 = max(float(np.max(np.sum(g**2, axis=1))) for (g,) in gradients)
    worst = max(float(np.max(np.sum(s.e**2, axis=1))) for s in states)
    delta = get_compressor(compressor).constants(made.d)["delta"]
    return Found(worst, worst, number(RESIDUAL, {"delta": delta, "gamma": 0.1, "G2": G2}))


def exact_case(case: str, compressor: str, seed: int) -> Found:
    """saef.5: in three cases the mismatch is 0 (i, ii) and y is plain SGD, whatever is compressed."""
    n, P = {"one worker": (1, 0), "averaging": (4, 1), "common Hessian": (4, 0)}[case]
    problem = {**QUADRATIC, "n": n, "zeta2_star": 0.0 if n == 1 else 1.0}
    hyper = {"gamma": 0.1, "P": P}
    _, s = run("saef_one_way", problem, hyper, compressor, seed)
    _, sgd = run("gd", problem, {"gamma": 0.1}, None, seed)
    off = [virtual(s) - sgd["x"]]
    if case == "one worker":
        off.append(mismatch(s, 1.0))
    return Found.identity(relative(off, [sgd["x"]]))


def bits(compressor: str, formula: str, d: int) -> Found:
    """saef.6: bits per round, counted by the engine, against the formula (k in the compressor's text)."""
    from verify_rates.problems import get_problem
    from verify_rates.solvers.compressors import get_compressor
    from verify_rates.solvers.engine.run import simulate

    history = simulate("saef", get_problem("quadratic", n=2, d=d), {"gamma": 0.1}, steps=3, every=1, compressor=compressor, engine="numpy")
    index = next(b for b in itertools.count() if 2**b >= d)
    said = {"topk": getattr(get_compressor(compressor), "k", 0) * (32 + index), "sign": d + 32}[formula]
    return Found.count(int((np.diff(history.bits[0]) != said).sum()), 3, proves=True)


def averaging_bits(n: int, d: int, P: int) -> Found:
    """saef.7 by carrying out the all-reduce; mean over the workers where n does not divide d."""
    from verify_rates.theory.symbols import number

    value = float(32 * ring_numbers(n, d) / P)
    return Found(value, value, number(AVERAGING, {"n": n, "d": d, "H": P}), "==", proves=True)
