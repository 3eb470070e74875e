"""DeCo-SGD: the quoted factors, the choice of (tau, delta), and checks of the statements that are no bounds."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import sympy as sp

from verify_rates.theory.calculators.lines import function, pace_of, printed
from verify_rates.theory.calculators.streams import same_maximum
from verify_rates.theory.evidence import Found, relative, trace
from verify_rates.theory.symbols import holds, number, parse, parse_condition

PHI_A = "(1-delta)/(delta*(1-delta)**tau)"  # deco.2, as quoted
PHI_B = "(1-delta)/(delta*(1-delta/2)**tau)"  # deco.3
ADDITIVE = "tau**2 + 2*(1-delta)/delta**2"  # the square under the root of deco.5's step size
OBJECTIVES = {"phi_A": PHI_A, "phi_B": PHI_B, "additive": ADDITIVE}

STEPS = 60


def virtual_sequence(problem: str, compressor: str, tau: int, seed: int) -> Found:
    """deco.1: ``xtil_t = x_t - gamma*ebar_{t-tau} - gamma*sum_{s=t-tau}^{t-1} gbar_s`` is plain SGD, whatever is compressed."""
    gamma = 0.1
    _, states, gradients = trace("dd_ef_sgd", problem, {"gamma": gamma, "tau": tau}, STEPS, compressor=compressor, seed=seed, sigma2=0.5)
    gbar = [np.mean(g, axis=0) for (g,) in gradients]

    def virtual(t: int) -> np.ndarray:
        memory = states[max(0, t - tau)].e.mean(axis=0)
        return states[t].x - gamma * memory - gamma * sum(gbar[max(0, t - tau) : t], np.zeros_like(memory))

    off = [virtual(t + 1) - virtual(t) + gamma * gbar[t] for t in range(STEPS)]
    return Found.identity(relative(off, [virtual(t) for t in range(STEPS)]))


def _in_delta(text: str, tau: int) -> tuple[sp.Expr, sp.Symbol]:
    delta = sp.Symbol("delta", positive=True)
    return parse(text).subs({s: tau if s.name == "tau" else delta for s in parse(text).free_symbols}), delta


def phi_a_shape(tau: int) -> Found:
    """deco.2: phi_A tends to infinity as delta -> 1, and its only stationary point in (0, 1), a minimum, is 1/tau."""
    phi, delta = _in_delta(PHI_A, tau)
    stationary = [r for r in sp.solve(sp.together(sp.diff(phi, delta)), delta) if r.is_real and 0 < r < 1]
    wrong = [stationary != [sp.Rational(1, tau)], sp.limit(phi, delta, 1, "-") is not sp.oo]
    wrong.append(not sp.diff(phi, delta, 2).subs(delta, sp.Rational(1, tau)) > 0)
    return Found.count(sum(wrong), len(wrong), proves=True)


def phi_b_shape(tau: int) -> Found:
    """deco.3: phi_B tends to 0 as delta -> 1."""
    phi, delta = _in_delta(PHI_B, tau)
    return Found.count(int(sp.limit(phi, delta, 1, "-") != 0), 1, proves=True)


def phi_b_monotone(tau: int) -> Found:
    """deco.8: phi_B falls on all of (0, 1) iff tau < 3 + 2*sqrt(2), by counting the roots of its derivative's numerator."""
    phi, delta = _in_delta(PHI_B, tau)
    slope = sp.Poly(sp.numer(sp.together(sp.cancel(sp.diff(phi, delta) / phi))), delta)
    sign = sp.diff(phi, delta).subs(delta, sp.Rational(1, 1000))
    falls = bool(sign < 0) and not any(0 < r < 1 for r in sp.real_roots(slope))
    said = holds(parse_condition("tau < 3 + 2*sqrt(2)"), {"tau": tau})
    return Found.count(int(falls != said), 1, proves=True)


def delayed_stability(tau: int) -> Found:
    """deco.9: the stability limit of delayed gradient descent, from the step function's characteristic polynomial."""
    from verify_rates.theory.quadratic import quadratic

    limit = float(quadratic("dd_ef_sgd", {"tau": tau}, compressor="identity").stability_limit(1.0))
    return Found(limit, limit, number("2*sin(pi/(2*(2*tau+1)))", {"tau": tau}), "==", proves=True, message=f"stable up to {limit:.12g}")


def tuned_complexity(seed: int) -> Found:
    """deco.6: the smallest T of deco.5 with a tuned gamma against the stated order, over random parameters.

    With gamma the smallest of four values that make each term of the bound at most eps/4, T = 16*F0/(gamma*eps); the sum of the
    stated terms then covers T within the constant 128.
    """
    rng = np.random.default_rng([seed, 6])
    worst = 0.0
    for _ in range(500):
        L, F0, s2, z2, eps = 10.0 ** rng.uniform(-3, 3, 5)
        n, tau, delta = int(rng.integers(1, 1000)), int(rng.integers(0, 100)), 10.0 ** rng.uniform(-4, 0)
        root = math.sqrt(tau**2 + 2 * (1 - delta) / delta**2)
        noise = 4 * (1 - delta) * z2 / delta**2 + 2 * (1 - delta) * s2 / delta + 2 * tau * s2 / n
        gamma = min(1 / (4 * L * max(1, root)), eps * n / (8 * L * s2), math.sqrt(eps / (16 * L**2 * noise)) if noise else math.inf)
        bound_at = 4 * F0 * eps * gamma / (16 * F0 * gamma) + 2 * L * gamma * s2 / n + 4 * L**2 * gamma**2 * noise
        if bound_at > eps:
            return Found(math.inf, math.inf, 128.0, message="the tuned step misses the target")
        middle = math.sqrt((1 - delta) * z2) / delta + math.sqrt((1 - delta) * s2 / delta) + math.sqrt(tau * s2 / n)
        order = L * F0 * (s2 / (n * eps**2) + middle / eps**1.5 + (1 + tau + math.sqrt(1 - delta) / delta) / eps)
        worst = max(worst, 16 * F0 / (gamma * eps) / order)
    return Found(worst, worst, 128.0, message=f"largest constant {worst:.3g} in 500 draws")


def staleness_candidates(T_comp: Fraction, lat: Fraction, size: Fraction, bw: Fraction) -> list[tuple[int, Fraction]]:
    """deco.10: the pairs (tau, delta) among which DeCo chooses; seconds, bytes and bytes/s."""
    first = math.ceil(lat / T_comp)
    pairs = [(first, min(Fraction(1), bw * (first * T_comp - lat) / size)), (first + 1, min(Fraction(1), bw * T_comp / size))]
    return [(tau, delta) for tau, delta in pairs if delta > 0]


def two_candidates(objective: str, seed: int) -> Found:
    """deco.10 against a scan over tau, in rational arithmetic; for phi_B only instances with tau < 5.83 belong to the claim."""
    rng = np.random.default_rng([seed, 10])
    text, wrong, cases = OBJECTIVES[objective], 0, 0
    phi = sp.lambdify(sp.symbols("tau delta"), parse(text).subs({s: sp.Symbol(s.name) for s in parse(text).free_symbols}), "math")
    while cases < 200:
        T_comp, lat, size, bw = (Fraction(int(v), 64) for v in rng.integers(1, 2000, 4))
        chosen = staleness_candidates(T_comp, lat, size, bw)
        if objective == "phi_B" and chosen[-1][0] + 12 >= 5.83 and chosen[-1][0] >= 5:
            continue
        cases += 1
        last = 5 if objective == "phi_B" else chosen[-1][0] + 12
        hidden = [(tau, min(Fraction(1), bw * T_comp / size, bw * (tau * T_comp - lat) / size)) for tau in range(last + 1)]
        best = min(phi(tau, delta) for tau, delta in hidden if delta > 0)
        wrong += min(phi(tau, delta) for tau, delta in chosen) > best * (1 + 1e-12)  # phi is a double
    return Found.count(wrong, cases)


PACE = "Max(T_comp, T_tx, (T_comp + T_tx + lat)/(tau + 1))"  # deco.11, T_tx = delta*size/bw
HIDDEN = "T_tx <= T_comp and tau*T_comp >= lat + T_tx"  # deco.12 with delta*size/bw = T_tx
SYNCHRONOUS = "T_comp + T_tx + lat"  # deco.13


def recursion(tau: int, T_comp: Fraction, T_tx: Fraction, lat: Fraction, steps: int) -> list[Fraction]:
    """deco.11: the moments ``A[k]`` at which the averages arrive, exactly as the recursion is printed."""
    C, E = Fraction(0), Fraction(0)
    A: list[Fraction] = []
    for k in range(steps):
        C = max(C, A[k - tau - 1] if k > tau else Fraction(0)) + T_comp
        E = max(C, E) + T_tx
        A.append(E + lat)
    return A


def _pace(tau: int, T_comp: Fraction, T_tx: Fraction, lat: Fraction) -> Fraction:
    return function(PACE, "tau T_comp T_tx lat")(tau, T_comp, T_tx, lat)


def _times(rng: np.random.Generator) -> tuple[Fraction, Fraction, Fraction]:
    T_comp, T_tx, lat = (Fraction(int(v), 8) for v in rng.integers(0, 40, 3))
    return T_comp + Fraction(1, 8), T_tx, lat


def cycle_time(tau: int) -> Found:
    """deco.11: the formula is that of the step function's time line, and the pace of the recursion in fractions."""
    said, rng, cases = printed(PACE, tau=tau), np.random.default_rng([tau, 11]), 20
    wrong = int(not same_maximum(pace_of("dd_ef_sgd", {"tau": tau}), said))
    for _ in range(cases):
        T_comp, T_tx, lat = _times(rng)
        A = recursion(tau, T_comp, T_tx, lat, 120 * (tau + 1))
        pace = _pace(tau, T_comp, T_tx, lat)
        wrong += A[-1] - A[-1 - 12 * (tau + 1)] != 12 * (tau + 1) * pace
    return Found.count(wrong, cases + 1, proves=True)


def full_hiding(tau: int) -> Found:
    """deco.12 on all small whole times: the recursion runs at the pace of the computation exactly where the claim says so."""
    wrong = cases = 0
    for T_comp, T_tx, lat in itertools.product(range(1, 4), range(5), range(7)):
        A = recursion(tau, Fraction(T_comp), Fraction(T_tx), Fraction(lat), 80)
        hidden = A[-1] - A[-1 - 12 * (tau + 1)] == 12 * (tau + 1) * T_comp
        wrong += hidden != holds(parse_condition(HIDDEN), {"T_comp": T_comp, "T_tx": T_tx, "lat": lat, "tau": tau})
        cases += 1
    return Found.count(wrong, cases, proves=True)


def synchronous(method: str) -> Found:
    """deco.13: the time line of synchronous SGD."""
    return Found.count(int(not same_maximum(pace_of(method, {}), printed(SYNCHRONOUS))), 1, proves=True)


def time_to_accuracy(tau: int, T_comp: int, T_tx: int, lat: int, steps: int) -> Found:
    """deco.14: when the last of ``steps`` averages has arrived, by the events of the step function, beside ``steps*T_iter``."""
    from verify_rates.theory.timeline import timeline

    line = timeline("dd_ef_sgd", {"tau": tau}, compute=float(T_comp), latency=float(lat), bandwidth=8.0, size=float(T_tx), steps=steps)
    took = max(e.arrives for e in line.events)  # whole numbers: no rounding
    said = number(PACE, {"T_comp": T_comp, "T_tx": T_tx, "lat": lat, "tau": tau}) * steps
    return Found(took, took, said, "==", proves=True, message=f"{steps} steps take {took:g} s, said are {said:g} s")


def time_to_accuracy_repaired(tau: int) -> Found:
    """The time of T steps lies between T*T_iter and (T-1)*T_iter + T_comp + T_tx + lat; equal to the former where tau = 0."""
    wrong = cases = 0
    for times in itertools.product((1, 3), range(4), range(6)):
        T_comp, T_tx, lat = map(Fraction, times)
        A, pace = recursion(tau, T_comp, T_tx, lat, 20), _pace(tau, T_comp, T_tx, lat)
        wrong += sum(not k * pace <= took <= (k - 1) * pace + T_comp + T_tx + lat for k, took in enumerate(A, 1))
        cases += len(A)
    return Found.count(wrong, cases, proves=True)


def energy_growth(factor: str, tau: int, tau_max: int, n: int, d: int, k: int, steps: int, seed: int) -> Found:
    """Mean error energy at staleness tau over that at 0, beside phi(tau)/phi(0), at one gamma that is safe for tau_max."""
    from verify_rates.problems import get_problem
    from verify_rates.solvers.engine.run import simulate

    problem = get_problem("quadratic", n=n, d=d, L=1.0, mu=0.05, zeta2_star=1.0, seed=seed)
    delta = Fraction(k, d)
    gamma = number("1/(4*L*Max(1, sqrt(tau**2 + 2*(1-delta)/delta**2)))", {"L": 1, "tau": tau_max, "delta": delta})

    def energy(staleness: int) -> float:
        run = simulate(
            "dd_ef_sgd",
            problem,
            {"gamma": gamma, "tau": staleness},
            steps=steps,
            compressor=f"topk(k={k})",
            measures=("error_energy",),
            track=("mean",),
        )
        return float(run.means["error_energy"][0])

    grown = energy(tau) / energy(0)
    said = number(OBJECTIVES[factor], {"tau": tau, "delta": delta}) / number(OBJECTIVES[factor], {"tau": 0, "delta": delta})
    return Found(grown, grown, said, ">=", message=f"the energy grows by {grown:.4g}, {factor} says at least {said:.4g}")
