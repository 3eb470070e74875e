"""OLDSGD: the average model, exact stability, the fixed point, and its time from the step function."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import sympy as sp

from verify_rates.theory.calculators.lines import function, pace_of, printed
from verify_rates.theory.calculators.streams import same_maximum
from verify_rates.theory.evidence import Found, relative, trace
from verify_rates.theory.symbols import holds, parse, parse_condition

STABLE = {"oldsgd": "0 < theta and theta < 1 + lam", "ldsgd": "0 < theta and theta < 2"}  # theta is kappa, lam is lam_min(W)
ROUND = {"oldsgd": "Max(T_comp, T_tx/H)", "ldsgd": "T_comp + T_tx/H"}  # a step, T_tx the whole exchange
SPEED_UP = "(H*T_comp + T_tx)/Max(H*T_comp, T_tx)"
OVERLAP = "H >= T_tx/T_comp"
EXTRA = 2  # vectors more than local decentralised SGD keeps
STEPS = 60


def average(method: str, problem: str, H: int, seed: int) -> Found:
    """oldsgd.1: the mean model steps along the mean gradient at every step."""
    gamma = 0.05
    _, states, gradients = trace(method, problem, {"gamma": gamma, "H": H}, STEPS, topology="ring", seed=seed, sigma2=0.5)
    mean = [s.x.mean(axis=0) for s in states]
    off = [b - a + gamma * g.mean(axis=0) for a, b, (g,) in zip(mean, mean[1:], gradients, strict=False)]
    return Found.identity(relative(off, mean))


def stability(method: str, H: int) -> Found:
    """oldsgd.3: a round of the step function on one eigenvector of W, and the stated condition on spectra of W in fractions."""
    from verify_rates.theory.quadratic import LAM_W, quadratic

    z = sp.Symbol("z")
    gamma, lam = (next(iter(parse(name).free_symbols)) for name in ("gamma", "lam"))
    kappa = 1 - (1 - gamma * lam) ** H
    root = LAM_W - kappa if method == "oldsgd" else LAM_W * (1 - kappa)
    made = sp.Poly(quadratic(method, {"H": H}).characteristic("dev", z), z)
    wrong = [sp.simplify(made.as_expr() - z ** (made.degree() - 1) * (z - root)) != 0]
    for theta, low in itertools.product((Fraction(k, 4) for k in range(-2, 10)), (Fraction(k, 4) for k in range(-3, 4))):
        roots = [1 - theta, low - theta, Fraction(9, 10) - theta] if method == "oldsgd" else [1 - theta, low * (1 - theta)]
        said = holds(parse_condition(STABLE[method]), {"theta": theta, "lam": low})
        wrong.append(all(abs(r) < 1 for r in roots) != said)
    return Found.count(sum(wrong), len(wrong), proves=True)


def fixed_point(seed: int, H: int) -> Found:
    """oldsgd.4: the solution of ``(I - W + Kap) x = Kap c`` does not move in a round (workers with Hessians of their own)."""
    from verify_rates.problems import get_problem
    from verify_rates.solvers.engine.arrays import world_of
    from verify_rates.solvers.engine.run import make_plan

    gamma, problem = 0.3, get_problem("quadratic", n=4, d=3, common=False, zeta2_star=1.0, seed=seed)
    plan = make_plan("oldsgd", problem, {"gamma": gamma, "H": H}, H, topology="ring")
    n, d, W = problem.n, problem.d, plan.topology.W
    at_zero = problem.grads(np.zeros(d))
    Q = np.stack([problem.grads(e) - at_zero for e in np.eye(d)], axis=2)  # (n, d, d)
    kap = np.stack([np.eye(d) - np.linalg.matrix_power(np.eye(d) - gamma * q, H) for q in Q])
    A = np.kron(np.eye(n) - W, np.eye(d))
    for i in range(n):
        A[i * d : (i + 1) * d, i * d : (i + 1) * d] += kap[i]
    right = np.concatenate([kap[i] @ np.linalg.solve(Q[i], -at_zero[i]) for i in range(n)])
    x = np.linalg.solve(A, right).reshape(n, d)
    world, s = world_of(plan, (0, 0)), plan.method.state(x=x, b=W @ x, a=np.zeros((n, d)))
    for t in range(H):
        s = plan.method.step(s, world, plan.hyper(t), t)
    return Found.identity(relative([s.x - x], [x]))


def seconds(method: str, H: int) -> Found:
    """oldsgd.5: from the step function, the exchange with the neighbours holding its link."""
    made = pace_of(method, {"H": H}, link="blocking", n=2).subs(sp.Symbol("lat", nonnegative=True), 0)
    return Found.count(int(not same_maximum(made, printed(ROUND[method], H=H))), 1, proves=True)


def speed_up() -> Found:
    """oldsgd.5 and 6 in fractions: the ratio of the two times, at most 2, equal to 2 where they meet; hidden iff stated."""
    wrong = cases = 0
    for H, T_comp, T_tx in itertools.product(range(1, 5), range(1, 5), range(25)):
        given = (H, Fraction(T_comp), Fraction(T_tx))
        plain, over = (function(ROUND[m], "H T_comp T_tx")(*given) for m in ("ldsgd", "oldsgd"))
        ratio = function(SPEED_UP, "H T_comp T_tx")(*given)
        hidden = holds(parse_condition(OVERLAP), {"H": H, "T_comp": T_comp, "T_tx": T_tx})
        wrong += ratio != plain / over or ratio > 2 or (ratio == 2) != (T_tx == H * T_comp) or hidden != (over == T_comp)
        cases += 1
    return Found.count(wrong, cases, proves=True)


def memory() -> Found:
    """oldsgd.7: fields of the two step functions' states."""
    from verify_rates.solvers.method import get_method

    more = len(get_method("oldsgd").state._fields) - len(get_method("ldsgd").state._fields)
    return Found(more, more, EXTRA, "==", proves=True, message=f"{more} more vectors a worker")
