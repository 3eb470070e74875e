"""MATCHA below full communication: activation probabilities, the mixing weight, the reference table, and mixing that is sampled."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from verify_rates.solvers.method import UsageError
from verify_rates.solvers.switching import best_alpha
from verify_rates.solvers.switching import decomposed as by_matchings
from verify_rates.theory.calculators.matcha import SIZE
from verify_rates.theory.evidence import Found

SDP_ATOL = 1e-6  # of eigenvalues of order 1 from an interior-point solve that stops at 1e-8
TABLE_ATOL = 1e-4  # the reference table has five digits, p four
REFERENCE: dict[float, tuple[tuple[float, ...], float, float, float, float]] = {  # share: p, lambda_2, alpha, rho, rho of the periodic rule
    1.0: ((1, 1, 1, 1, 1), 0.67002, 0.28571, 0.65378, 0.65378),
    0.6: ((1, 0, 1, 1, 0), 0.65708, 0.36559, 0.57727, 0.79227),
    0.5: ((0.9837, 0, 0.7581, 0.7581, 0), 0.56120, 0.39643, 0.64398, 0.82689),
    0.3: ((0.5902, 0, 0.4549, 0.4549, 0), 0.33672, 0.51480, 0.77652, 0.89613),
    0.1: ((0.1968, 0, 0.1516, 0.1516, 0), 0.11224, 0.56207, 0.93679, 0.96538),
}


@lru_cache(maxsize=64)
def decomposed(graph: str) -> tuple[np.ndarray, ...]:
    """Laplacians of the graph's matchings; the authors' own for the graph of their figure."""
    return tuple(by_matchings(graph, SIZE))


def lambda_2(Ls: Sequence[np.ndarray], p: np.ndarray) -> float:
    """The second eigenvalue of the mean Laplacian."""
    return float(np.linalg.eigvalsh(sum(q * L for q, L in zip(p, Ls, strict=True)))[1])


@lru_cache(maxsize=64)
def activation(graph: str, share: float) -> np.ndarray:
    """The probabilities that maximise ``lambda_2(sum p_j L_j)`` with ``sum p_j <= share*M``, by the semidefinite program.

    Errors: UsageError for a budget outside (0, 1].

    >>> activation("path", 1.0).round(6)
    array([1., 1.])
    """
    import cvxpy as cp

    if not 0 < share <= 1:
        raise UsageError(f"a communication budget is a share in (0, 1], not {share!r}.")
    Ls = decomposed(graph)
    p, gap, beta = cp.Variable(len(Ls)), cp.Variable(), cp.Variable()
    mean, n = sum(p[j] * L for j, L in enumerate(Ls)), len(Ls[0])
    constraints = [mean - gap * np.eye(n) + beta * np.ones((n, n)) >> 0, p >= 0, p <= 1, cp.sum(p) <= share * len(Ls)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # any p that keeps to the budget is one; how good it is, matcha.activation says
        cp.Problem(cp.Maximize(gap), constraints).solve(solver=cp.CLARABEL)
    found: Any = p.value
    return np.clip(found, 0.0, 1.0)


def alpha_sdp(Ls: Sequence[np.ndarray], p: np.ndarray) -> tuple[float, float]:
    """``(alpha, rho)`` by the paper's semidefinite program: rho is minimised with beta >= alpha^2 in the place of alpha^2."""
    import cvxpy as cp

    n = len(Ls[0])
    mean = sum(q * L for q, L in zip(p, Ls, strict=True))
    spread = sum(q * (1 - q) * L for q, L in zip(p, Ls, strict=True))
    alpha, beta, rho = cp.Variable(), cp.Variable(), cp.Variable()
    left = np.eye(n) - np.ones((n, n)) / n - 2 * alpha * mean + beta * (mean @ mean + 2 * spread)
    cp.Problem(cp.Minimize(rho), [cp.square(alpha) <= beta, left << rho * np.eye(n)]).solve(solver=cp.CLARABEL)
    found: Any = (alpha.value, rho.value)
    return float(found[0]), float(found[1])


def table(share: float, column: str) -> Found:
    """A column of the reference table of the graph of the paper's figure, at a budget; for p the largest difference of an entry."""
    Ls, p = decomposed("matcha8"), activation("matcha8", share)
    said: dict[str, Any] = dict(zip(("p", "lambda_2", "alpha", "rho", "periodic"), REFERENCE[share], strict=True))
    ones = np.ones(len(Ls))
    found: Any = {
        "p": lambda: p,
        "lambda_2": lambda: lambda_2(Ls, p),
        "alpha": lambda: best_alpha(Ls, p)[0],
        "rho": lambda: best_alpha(Ls, p)[1],
        "periodic": lambda: 1 - share * (1 - best_alpha(Ls, ones)[1]),
    }[column]()
    off = float(np.max(np.abs(np.subtract(found, said[column]))))
    return Found(off, off, TABLE_ATOL, message=f"{column} = {np.round(found, 5)}, the table says {said[column]}")


def activation_by_scan(graph: str, share: float, parts: int) -> Found:
    """The semidefinite program against all probabilities in steps of 1/parts that meet the budget: none mixes better on average."""
    Ls, best = decomposed(graph), -math.inf
    for chosen in itertools.product(range(parts + 1), repeat=len(Ls)):
        if sum(chosen) <= share * len(Ls) * parts:
            best = max(best, lambda_2(Ls, np.array(chosen) / parts))
    value = lambda_2(Ls, activation(graph, share))
    return Found(best, best, value + SDP_ATOL, message=f"scan {best:.6f}, program {value:.6f}")


def alpha_two_ways(graph: str, share: float) -> Found:
    """The alpha program against the search in one dimension."""
    Ls, p = decomposed(graph), activation(graph, share)
    off = abs(alpha_sdp(Ls, p)[1] - best_alpha(Ls, p)[1])
    return Found(off, off, SDP_ATOL, message=f"rho differs by {off:.1e}")


# --- matcha.6 where matchings are sampled -------------------------------------------------------------------------------


def mixings(Ls: Sequence[np.ndarray], p: np.ndarray, alpha: float) -> list[tuple[float, np.ndarray]]:
    """All activations with their probabilities and mixing matrices."""
    found = []
    for on in itertools.product((0, 1), repeat=len(Ls)):
        weight = float(np.prod(np.where(on, p, 1 - p)))
        if weight > 0:
            found.append((weight, np.eye(len(Ls[0])) - alpha * sum(b * L for b, L in zip(on, Ls, strict=True))))
    return found


def _noisy_quadratic(seed: int) -> Any:
    from verify_rates.problems import get_problem

    return get_problem("quadratic", n=SIZE, d=2, L=1.0, mu=0.1, zeta2_star=1.0, sigma2=0.5, seed=seed)


def expected_grad_norm(problem: Any, mixed: list[tuple[float, np.ndarray]], gamma: float, steps: int) -> np.ndarray:
    """``E||grad f(mean x_k)||^2``, k = 0..steps-1, of a gradient step and a sampled mixing on a quadratic, from exact moments."""
    n, d = problem.n, problem.d
    zero = problem.grads(np.zeros((n, d))).ravel()
    H = np.stack([problem.grads(row.reshape(n, d)).ravel() - zero for row in np.eye(n * d)], axis=1)
    step, drift, noise = np.eye(n * d) - gamma * H, -gamma * zero, gamma**2 * problem.constants.sigma2_sup / d * np.eye(n * d)
    mean = np.kron(np.ones((1, n)) / n, np.eye(d))
    slope, offset = mean @ H @ np.kron(np.ones((n, 1)), np.eye(d)) @ mean, mean @ zero
    wide = [(q, np.kron(W, np.eye(d))) for q, W in mixed]
    m, S, found = np.zeros(n * d), np.zeros((n * d, n * d)), []
    for _ in range(steps):
        found.append(float(np.trace(slope @ S @ slope.T) + 2 * offset @ slope @ m + offset @ offset))
        cross = np.outer(step @ m, drift)
        S, m = step @ S @ step.T + cross + cross.T + np.outer(drift, drift) + noise, step @ m + drift
        S, m = sum(q * W @ S @ W.T for q, W in wide), sum(q * W @ m for q, W in wide)
    return np.array(found)


def sampled_bound(graph: str, share: float, c: float, N: int, seed: int) -> Found:
    """matcha.6 where matchings are sampled: the exact mean of the squared gradient norms against its bound."""
    from verify_rates.theory.papers.matcha import BOUND, LETS
    from verify_rates.theory.symbols import number

    problem, Ls, p = _noisy_quadratic(seed), decomposed(graph), activation(graph, share)
    alpha, rho = best_alpha(Ls, p)
    k = problem.constants
    values: dict[str, Any] = {"n": SIZE, "L": k.L_max, "sigma2": k.sigma2_sup, "zeta2_sup": k.zeta2_sup, "rho": rho, "c": c, "N": N}
    values["F0"] = problem.value(np.zeros(problem.d)) - k.f_star[0]
    for name, text in LETS.items():
        values[name] = number(text, values)
    if values["D"] >= 0.5:
        raise UsageError(f"matcha.6 says nothing at c = {c}: D = {values['D']:.3g}.")
    measured = float(expected_grad_norm(problem, mixings(Ls, p, alpha), values["gamma"], N).mean())
    said = number(BOUND, values)
    return Found(measured, measured, said, message=f"rho = {rho:.5f}, exact expectation {measured:.5g}, bound {said:.5g}")


def sampled_run(graph: str, share: float, gamma: float, steps: int, seed: int, trial: int) -> list[float]:
    """``||grad f(mean x_k)||^2`` of one run of ``gossip_sgd`` with a mixing matrix drawn anew in every step by the shared generator."""
    from verify_rates.solvers.engine.arrays import ArrayWorld, state_of, world_of
    from verify_rates.solvers.engine.run import make_plan

    Ls, p = decomposed(graph), activation(graph, share)
    alpha = best_alpha(Ls, p)[0]

    class Sampled(ArrayWorld):
        def gossip(self, v):
            on = self.shared.random(len(Ls)) < p
            return v - alpha * sum(b * L for b, L in zip(on, Ls, strict=True)) @ v

    problem = _noisy_quadratic(seed)
    plan = make_plan("gossip_sgd", problem, {"gamma": gamma}, steps, topology=graph)
    world, state, found = world_of(plan, (seed, trial)), state_of(plan, plan.start()), []
    world.__class__ = Sampled
    for t in range(steps):
        found.append(float(np.sum(problem.grads(state.x.mean(axis=0)).mean(axis=0) ** 2)))
        state = plan.method.step(state, world, plan.hyper(t), t)
    return found
