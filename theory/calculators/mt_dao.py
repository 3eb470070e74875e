"""MT-DAO: consensus under coins by exact second moments, the virtual sequence, momenta and volumes."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

from verify_rates.theory.calculators.lines import function
from verify_rates.theory.evidence import Found, relative, trace
from verify_rates.theory.symbols import number, parse

# p is p_x; (q, beta, alpha) are p_1, beta_1, omega_1 and (u, theta, a) those of the second momentum.
PSI = "4*(1-p)/p**2*(alpha*(1-beta)*(1-q)/(1-(1-q)*beta) + a*(1-theta)*(1-u)/(1-(1-u)*theta))"
PSI_FULL = "4*(1-p)/p**2*((1-alpha-a) + alpha*(1-beta)*(1-q)/(1-(1-q)*beta) + a*(1-theta)*(1-u)/(1-(1-u)*theta))"
DES_LOC = "4*(1-p)/p**2*(1-beta)*(1-q)/(1-(1-q)*beta)"
LOCAL = "4*(1-p)/p**2"
VIRTUAL = "beta/(1-beta)"  # what a momentum of weight 1 is ahead
HALF_LIFE = "log(1/2)/log(beta)"
VARIANCE = "(1-beta)/(1+beta)*(1-beta**(2*k))*sigma2"
DRIFT, DRIFT_V = "2*s*(1-beta**k)", "2*s**2*(1-beta**k)"  # s the clip level
SHARE = "1/a + 1/b + 1/c + 1/q"  # mt_dao.12: the periods of the models, two momenta and squares
SECONDS = "T_comp + (1/a + 1/b + 1/c + 1/q)*T_tx"  # mt_dao.13, T_tx one all-reduce of d numbers

STEPS = 60
GAMMA = 0.3


def special_case(text: str, said: str, values: dict[str, int]) -> Found:
    """A formula with some letters fixed is another one."""
    formulas = {"PSI": PSI, "PSI_FULL": PSI_FULL, "DES_LOC": DES_LOC, "LOCAL": LOCAL, "0": "0"}
    left, right = (parse(formulas[t]) for t in (text, said))
    left = left.subs({s: values[s.name] for s in left.free_symbols if s.name in values})
    return Found.count(int(sp.simplify(left - right) != 0), 1, proves=True)


# --- consensus, exactly: the deviations on one mode, for every outcome of the coins ------------------------------------

FIELDS = ("x", "u_1", "u_2")


def _hyper(p: float, q: float, u: float, beta: float, theta: float, alpha: float, a: float) -> dict[str, float]:
    return {"gamma": GAMMA, "p_x": p, "p_1": q, "beta_1": beta, "omega_1": alpha, "p_2": u, "beta_2": theta, "omega_2": a}


def branches(hyper: dict[str, float], lam: float) -> list[tuple[float, np.ndarray, np.ndarray, np.ndarray]]:
    """``(probability, A, b, B)`` of the step function's deviations for every outcome of its three coins."""
    from verify_rates.solvers.method import get_method
    from verify_rates.theory.quadratic import OFFSET, Form, QuadraticWorld

    method, found = get_method("mt_dao_sgdm"), []

    class Scripted(QuadraticWorld):
        coins: Any
        weight: float

        def chance(self, p):
            heads = next(self.coins)
            self.weight *= p if heads else 1 - p
            return heads

    for script in itertools.product((True, False), repeat=3):
        world = Scripted(lam)
        world.coins, world.weight = iter(script), 1.0
        state = method.state(**{name: Form({name: 1}, {name: 1}) for name in FIELDS})
        new = method.step(state, world, method.hypers(**hyper), 0)
        rows = [getattr(new, name).dev for name in FIELDS]
        A = np.array([[float(row.get(name, 0)) for name in FIELDS] for row in rows])
        b, B = (np.array([float(row.get(key, 0)) for row in rows]) for key in (OFFSET, "noise[0]"))
        found.append((world.weight, A, b, B))
    return found


def consensus(lam: float, zeta2: float, sigma2: float, steps: int, text: str = "PSI_FULL", **letters: float) -> Found:
    """mt_dao.5: ``sum_t E D_t / (eta^2 sum_t E G_t)`` beside a factor, on quadratics of curvature lam, without sampling."""
    parts = branches(_hyper(**letters), lam)
    P, m = np.zeros((3, 3)), np.zeros(3)  # mean_i E z_i z_i', and E z_i over worker i's own offset
    total = dissimilar = 0.0
    for _ in range(steps):
        dissimilar += lam**2 * P[0, 0] + 2 * lam * zeta2 * m[0] + zeta2 + sigma2
        P = sum(
            w * (A @ P @ A.T + zeta2 * (np.outer(A @ m, b) + np.outer(b, A @ m) + np.outer(b, b)) + sigma2 * np.outer(B, B))
            for w, A, b, B in parts
        )
        m = sum(w * (A @ m + b) for w, A, b, _ in parts)
        total += P[0, 0]
    value, said = total / (GAMMA**2 * dissimilar), number({"PSI": PSI, "PSI_FULL": PSI_FULL}[text], letters)
    return Found(value, value, said, message=f"exactly {value:.4g}, the factor is {said:.4g}")


def recursions(seed: int, **letters: float) -> Found:
    """mt_dao.4 from random states, the expectation over all coins of one step: the larger of the two ratios."""
    rng, worst = np.random.default_rng([seed, 4]), 0.0
    lam = float(rng.uniform(0, 1))
    parts = branches(_hyper(**letters), lam)
    p, weights = letters["p"], (1 - letters["alpha"] - letters["a"], letters["alpha"], letters["a"])
    for _ in range(200):
        z, offsets = rng.standard_normal((2, 3)) * 10 ** rng.uniform(-2, 2, (1, 3)), rng.standard_normal(2)  # two workers
        z -= z.mean(axis=0)
        offsets -= offsets.mean()
        g = lam * z[:, 0] + offsets
        after = [(w, z @ A.T + np.outer(offsets, b)) for w, A, b, _ in parts]
        expected = {name: sum(w * np.mean(v[:, k] ** 2) for w, v in after) for k, name in enumerate(FIELDS)}
        for k, (beta, coin) in enumerate(((letters["beta"], letters["q"]), (letters["theta"], letters["u"])), start=1):
            said = (1 - coin) * (beta * np.mean(z[:, k] ** 2) + (1 - beta) * np.mean(g**2))
            worst = max(worst, expected[FIELDS[k]] / said if said else 0.0)
        direction = sum(w * (np.mean((weights[0] * g + weights[1] * v[:, 1] + weights[2] * v[:, 2]) ** 2)) for w, v in after)
        said = (1 - p / 2) * np.mean(z[:, 0] ** 2) + 2 * (1 - p) / p * GAMMA**2 * direction
        worst = max(worst, expected["x"] / said)
    return Found(worst, worst, 1.0, message=f"largest ratio of a side to its bound {worst:.4g}")


# --- identities --------------------------------------------------------------------------------------------------------


def virtual_sequence(problem: str, seed: int) -> Found:
    """mt_dao.6: ``z_t = xbar_t - eta*sum_j omega_j*beta_j/(1-beta_j)*ubar^j_{t-1}`` takes plain steps, whatever is averaged when."""
    hyper = _hyper(p=0.3, q=0.2, u=0.6, beta=0.9, theta=0.5, alpha=0.5, a=0.3) | {"gamma": 0.05}
    _, states, gradients = trace("mt_dao_sgdm", problem, hyper, STEPS, seed=seed, sigma2=0.5)

    def virtual(s: Any) -> np.ndarray:
        ahead = sum(hyper[f"omega_{j}"] * number(VIRTUAL, {"beta": hyper[f"beta_{j}"]}) * getattr(s, f"u_{j}").mean(axis=0) for j in (1, 2))
        return s.x.mean(axis=0) - hyper["gamma"] * ahead

    z = [virtual(s) for s in states]
    off = [b - a + hyper["gamma"] * g.mean(axis=0) for a, b, (g,) in zip(z, z[1:], gradients, strict=False)]
    return Found.identity(relative(off, z))


def half_life(beta: float, printed_value: float, digits: int) -> Found:
    """mt_dao.8: the weight of a gradient has halved after as many steps, and the printed number is that one, rounded."""
    value = number(HALF_LIFE, {"beta": Fraction(str(beta))})
    wrong = [abs(beta**value - 0.5) > 1e-12, round(value, digits) != printed_value]  # a power in double precision
    return Found.count(sum(wrong), 2)


def variance(k: int) -> Found:
    """mt_dao.9 from the recursion of the momentum, in symbols: k independent gradients of variance sigma2."""
    said = parse(VARIANCE)
    letters = {s.name: s for s in said.free_symbols}
    beta, total = letters["beta"], sp.Integer(0)
    for _ in range(k):
        total = beta**2 * total + (1 - beta) ** 2 * letters["sigma2"]
    return Found.count(int(sp.simplify(total - said.subs(letters["k"], k)) != 0), 1, proves=True)


def information(k: int, seed: int) -> Found:
    """mt_dao.10 in fractions: the determinants of Gaussian vectors ``U`` and ``beta^K U + noise`` give the stated one."""
    rng = np.random.default_rng([seed, 10])
    beta = sp.Rational(9, 10) ** k

    def covariance() -> Any:
        R = sp.Matrix(2, 2, [int(v) for v in rng.integers(-4, 5, 4)])
        return R * R.T + sp.eye(2)

    U, L = covariance(), covariance()
    V = beta**2 * U + L
    joint = sp.Matrix(sp.BlockMatrix([[U, beta * U], [beta * U, V]]))
    said = (sp.eye(2) + beta**2 * U * L.inv()).det()
    return Found.count(int(sp.simplify(U.det() * V.det() / joint.det() - said) != 0), 1, proves=True)


def drift(k: int, squares: bool) -> Found:
    """mt_dao.11 at the vertices of all clipped gradients, where a linear function is largest, in fractions."""
    beta, level = Fraction(9, 10), Fraction(2)
    ends = (Fraction(0), level**2) if squares else (-level, level)
    worst = Fraction(0)
    for start, *inputs in itertools.product(ends, repeat=k + 1):
        u = start
        for g in inputs:
            u = beta * u + (1 - beta) * g
        worst = max(worst, abs(u - start))
    said = number(DRIFT_V if squares else DRIFT, {"s": level, "beta": beta, "k": k})
    return Found(float(worst), float(worst), said, proves=True, message=f"at most {float(worst):.6g}, said are {said:.6g}")


# --- volume and time ----------------------------------------------------------------------------------------------------


def averages(K_x: int, K_1: int, K_2: int, K_v: int) -> list[int]:
    """How many vectors the step function averages in each step of a period."""
    from verify_rates.solvers.kinds import KindWorld, Token
    from verify_rates.solvers.method import get_method

    method, counts = get_method("mt_dao"), []
    h = method.hypers(gamma=0.1, K_x=K_x, K_1=K_1, K_2=K_2, K_v=K_v)
    s = method.state(**{name: Token(kind) for name, kind in method.kinds.items()})
    for t in range(int(method.rounds(h))):
        world = KindWorld()
        s = method.step(s, world, h, t)
        counts.append(world.words.count("mean"))
    return counts


def volume(K_x: int, K_1: int, K_2: int, K_v: int) -> Found:
    """mt_dao.12: averages of the step function with two momenta, beside one a step of DDP."""
    counts = averages(K_x, K_1, K_2, K_v)
    share, said = sum(counts) / len(counts), number(SHARE, {"a": K_x, "b": K_1, "c": K_2, "q": K_v})
    return Found(share, share, said, "==", proves=True, message=f"{share:.6g} of DDP")


def saving(K: int, printed_value: float, digits: int) -> Found:
    """mt_dao.12 with one momentum: the volume of the models, the momentum and the squares, and the printed saving, rounded."""
    one = sum(averages(K, K, K, K)) - 1  # the second momentum is not there
    return Found.count(int(round(K / one, digits) != printed_value), 1, proves=True)


def seconds(K_x: int, K_1: int, K_2: int, K_v: int) -> Found:
    """mt_dao.13: a period whose steps wait for every average, in whole seconds."""
    T_comp, T_ar, counts = 3, 5, averages(K_x, K_1, K_2, K_v)
    took = Fraction(sum(T_comp + count * T_ar for count in counts), len(counts))
    said = function(SECONDS, "T_comp a b c q T_tx")(T_comp, *map(Fraction, (K_x, K_1, K_2, K_v)), T_ar)
    return Found.count(int(took != said), 1, proves=True)
