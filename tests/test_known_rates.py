"""Every row of the table of known rates that the words can say: tight ones reproduced, loose ones shown to be valid."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import sympy

from verify_rates.solvers.method import Method, UsageError
from verify_rates.solvers.words import (
    PerWorker,
    Shared,
    SharedQueue,
    delay,
    gap,
    grad,
    implicit,
    inner,
    line_search,
    lmo,
    mean,
    optimum,
    prox,
    spread,
    sqnorm,
)
from verify_rates.theory.contraction import contraction
from verify_rates.theory.worst_case.instance import Instance
from verify_rates.theory.worst_case.solve import Fall, worst_case

TABLE = Path(__file__).parents[2] / "shared" / "known_rates.csv"
RTOL = 1e-6  # tight rows
HALF_A_DIGIT = 5e-5  # the row that is given to four digits
ROUNDING = 1e-12  # of a formula evaluated in double precision
LEAST_LOOSE = 1e-3  # the row said to be nearly tight
MOST_LOOSE = 0.995  # a row said to be loose is at least this much above the worst case


# --- sequences of the table -------------------------------------------------------------------------------------------


def theta_ogm(N):
    values = [1.0]
    for i in range(N):
        values.append((1 + math.sqrt((8 if i == N - 1 else 4) * values[-1] ** 2 + 1)) / 2)
    return values


def lam_fista(k):
    values = [1.0]
    for _ in range(k):
        values.append((1 + math.sqrt(4 * values[-1] ** 2 + 1)) / 2)
    return values


def u_qg(N):
    values = [1.0]
    for _ in range(N):
        values.append(values[-1] / 2 + math.sqrt(values[-1] ** 2 / 4 + 2))
    return values


# --- methods that are not in the catalogue ----------------------------------------------------------------------------


class One(NamedTuple):
    x: Shared


class Two(NamedTuple):
    x: Shared
    y: Shared


class Three(NamedTuple):
    x: Shared
    y: Shared
    z: Shared


class Step(NamedTuple):
    gamma: float


class Pair(NamedTuple):
    a: float
    b: float


class Triple(NamedTuple):
    gamma: float
    a: float
    b: float


def _made(step: Any, state: Any, hyper: Any, start: tuple[str, ...] = ("x",)) -> Method:
    return Method(step.__name__.strip("_"), step, state, hyper, start)


def _proximal_point(s, w, h, t):
    return Two(x=prox(w, s.x, h.gamma), y=s.x)


def _accelerated_proximal_point(s, w, h, t):
    x = prox(w, s.y, h.gamma)
    return Three(x=x, y=x + h.a * (x - s.x) - h.a * (s.x - s.z), z=s.y)


def _halpern(s, w, h, t):
    return Two(x=h.a * s.y + h.b * (s.x - mean(w, grad(w, s.x))), y=s.y)


class Searching(NamedTuple):
    x: Shared
    d: SharedQueue


class Nothing(NamedTuple):
    pass


class Memory(NamedTuple):
    tau: int


class Inexact(NamedTuple):
    gamma: float
    sigma: float


class Drawn(NamedTuple):
    x: PerWorker  # what becomes of y when the worker's function is drawn
    y: Shared
    p: PerWorker  # every function's entry in the table
    q: PerWorker  # what a drawn entry becomes


def _line_search(s, w, h, t):
    return One(x=line_search(w, s.x, mean(w, grad(w, s.x))))


def _subspace_search(s, w, h, t):
    d, _ = delay(w, s.d, mean(w, grad(w, s.x)))
    x = line_search(w, s.x, d)
    d, _ = delay(w, d, x - s.x)
    return Searching(x=x, d=d)


def _proximal_gradient(s, w, h, t):
    return One(x=prox(w, s.x - h.gamma * mean(w, grad(w, s.x)), h.gamma, of="h"))


def _accelerated_proximal_gradient(s, w, h, t):
    x = prox(w, s.y - h.a * mean(w, grad(w, s.y)), h.a, of="h")
    return Two(x=x, y=x + h.b * (x - s.x))


def _inexact_proximal_point(s, w, h, t):
    return One(x=prox(w, s.x, h.gamma, error=h.sigma))


def _douglas_rachford(s, w, h, t):
    x = prox(w, s.x, h.gamma, of="f")
    y = prox(w, 2 * x - s.x, h.gamma, of="h")
    return Two(x=s.x + (y - x), y=y)


def _two_douglas_rachford(s, w, h, t):
    def moved(v):
        x = prox(w, v, h.gamma, of="h")
        return v + prox(w, 2 * x - v, h.gamma, of="f") - x

    return Two(x=moved(s.x), y=moved(s.y))


def _bregman_proximal_point(s, w, h, t):
    return One(x=implicit(w, grad(w, s.x, of="h"), 0, {"f": h.gamma, "h": 1}))


def _mirror_descent(s, w, h, t):
    """The kernel is (f + d)/L with convex f and d: it is convex, and so is L times it less f; gamma stands for gamma L."""
    return One(x=implicit(w, grad(w, s.x, of="d") + (1 - h.gamma) * grad(w, s.x, of="f"), 0, {"f": 1, "d": 1}))


def _nonconvex_mirror_descent(s, w, h, t):
    """f = (a - b)/2 and the kernel is (a + b)/(2 L) with convex a and b; gamma stands for gamma L."""
    v = (1 - h.gamma) * grad(w, s.x, of="a") + (1 + h.gamma) * grad(w, s.x, of="b")
    return Two(x=implicit(w, v, 0, {"a": 1, "b": 1}), y=s.x)


def _frank_wolfe(s, w, h, t):
    if t == 0:
        grad(w, s.x, of="h")  # the first point is in the set
    return One(x=(1 - h.gamma) * s.x + h.gamma * lmo(w, mean(w, grad(w, s.x)), "h"))


def _online(s, w, h, t):
    if t == 0:
        grad(w, s.x, of="h")
    return Three(x=prox(w, s.x - h.gamma * grad(w, s.x, of=f"f{t}"), h.gamma, of="h"), y=s.x, z=s.y)


def _saga(s, w, h, t):
    """The table holds points p_i; a drawn function's becomes y."""
    old = grad(w, s.p)
    return Drawn(x=spread(w, s.y) - h.gamma * (grad(w, s.y) - old + spread(w, mean(w, old))), y=s.y, p=s.p, q=spread(w, s.y))


def _point_saga(s, w, h, t):
    """The table holds gradients at points p_i; a drawn function's becomes that at the proximal point."""
    old = grad(w, s.p)
    x = prox(w, spread(w, s.y) + h.gamma * (old - spread(w, mean(w, old))), h.gamma)
    return Drawn(x=x, y=s.y, p=s.p, q=x)


def bregman(w, x, y, of):
    """D(x; y) of the named function."""
    return gap(w, x, of=of) - gap(w, y, of=of) - inner(w, grad(w, y, of=of), x - y)


def at_y(s, w, h):
    return w.gap(s.y)


def last_move(s, w, h):
    return sqnorm(w, s.x - s.y)


def last_residual(s, w, h):
    return sqnorm(w, s.x - s.z)


# --- how a row is asked for -------------------------------------------------------------------------------------------

Asked = Callable[[dict[str, float], int], Any]
MEASURES = {"f(xN)-f*": "function_gap", "||grad f(xN)||^2": "grad_norm", "||xN-x*||^2": "distance", "f(x1)-f*": "function_gap"}
INITIALS = {"||x0-x*||^2<=1": "distance", "f(x0)-f*<=1": "function_gap", "||grad f(x0)||^2<=1": "grad_norm"}


def _gd(row):
    measure, initial = MEASURES[row["criterion"]], INITIALS[row["initial_condition"]]

    def ask(p, N):
        gamma = p.get("gamma", 2 / (p["L"] + p.get("mu", 0)))
        return worst_case("gd", {"gamma": gamma}, steps=N, L=p["L"], mu=p.get("mu", 0), n=1, measure=measure, initial=initial)

    return ask


def _silver(p, N):
    rho = 1 + math.sqrt(2)
    steps = [(1 + rho ** ((i & -i).bit_length() - 2)) / p["L"] for i in range(1, N + 1)]
    return worst_case("gd", {"gamma": steps}, steps=N, L=p["L"], n=1)


def _pair(p, N):
    return worst_case("gd_pair", {"gamma": p["gamma"]}, steps=N, mu=p["mu"], measure="pair_distance", initial="pair_distance", n=1)


def _nonconvex(p, N):
    return worst_case(
        "gd", {"gamma": p["gamma"]}, steps=N, functions="smooth", measure="grad_norm", initial="gap_to_last", take="best", n=1
    )


def _qg_decreasing(p, N):
    return worst_case("gd", {"gamma": [1 / (p["L"] * u) for u in u_qg(N)[1:]]}, steps=N, functions="convex_quadratic_growth", L=p["L"], n=1)


def _qg_heavy_ball(p, N):
    hyper = {"gamma": [1 / (p["L"] * (t + 2)) for t in range(N)], "beta": [t / (t + 2) for t in range(N)]}
    return worst_case("heavy_ball", hyper, steps=N, functions="convex_quadratic_growth", L=p["L"], n=1)


def _ogm_row(p, N):
    th = theta_ogm(N)
    hyper = {"gamma": 1 / p["L"], "a": [(th[i] - 1) / th[i + 1] for i in range(N)], "b": [th[i] / th[i + 1] for i in range(N)]}
    return worst_case("ogm", hyper, steps=N, L=p["L"], n=1)


def _fgm(p, N):
    return worst_case("nesterov", {"gamma": 1 / p["L"], "beta": [i / (i + 3) for i in range(N)]}, steps=N, L=p["L"], n=1)


def _fista(p, N):
    lam = lam_fista(N)
    return worst_case("nesterov", {"gamma": 1 / p["L"], "beta": [(lam[i] - 1) / lam[i + 1] for i in range(N)]}, steps=N, L=p["L"], n=1)


def _inexact(p, N):
    gamma = 2 / ((1 + p["eps"]) * p["L"] + (1 - p["eps"]) * p["mu"])
    given = {"mu": p["mu"], "L": p["L"], "n": 1, "compressor": {"delta": 1 - p["eps"] ** 2}, "initial": "function_gap"}
    return worst_case("cgd", {"gamma": gamma}, steps=N, **given)


def _proximal(p, N):
    return worst_case(_made(_proximal_point, Two, Step, ("x", "y")), {"gamma": p["gamma"]}, steps=N, functions="convex", n=1)


def _proximal_operator(p, N):
    given = {"functions": "monotone", "n": 1, "measure": last_move}
    return worst_case(_made(_proximal_point, Two, Step, ("x", "y")), {"gamma": p["alpha"]}, steps=N, **given)


def _accelerated(p, N):
    given = {"functions": "monotone", "n": 1, "measure": last_residual}
    hyper = {"gamma": p["alpha"], "a": [t / (t + 2) for t in range(N)], "b": 0}
    return worst_case(_made(_accelerated_proximal_point, Three, Triple, ("x", "y", "z")), hyper, steps=N, **given)


def _halpern_row(p, N):
    hyper = {"a": [1 / (k + 2) for k in range(N)], "b": [(k + 1) / (k + 2) for k in range(N)]}
    given = {"functions": "nonexpansive_residual", "n": 1, "measure": "grad_norm"}
    return worst_case(_made(_halpern, Two, Pair, ("x", "y")), hyper, steps=N, **given)


def _contractive_halpern(p, N):
    phi = [sum(p["gamma"] ** (2 * i) for i in range(k + 1)) for k in range(N + 1)]
    hyper = {"a": [1 / phi[k] for k in range(1, N + 1)], "b": [1 - 1 / phi[k] for k in range(1, N + 1)]}
    given = {"functions": "nonexpansive_residual", "mu": 1 - 1 / p["gamma"], "n": 1, "measure": "grad_norm"}
    return worst_case(_made(_halpern, Two, Pair, ("x", "y")), hyper, steps=N, **given)


def _subgradient(p, N):
    gamma = 1 / (p["M"] * math.sqrt(N + 1))
    return worst_case("gd", {"gamma": gamma}, steps=N, functions="convex_lipschitz", L=p["M"], n=1, take="best")


def _rsi(p, N):
    return worst_case("gd", {"gamma": p["gamma"]}, steps=N, functions="secant_error_bound", L=p["L"], mu=p["mu"], n=1, measure="distance")


def _lojasiewicz(p, N):
    given = {"functions": "smooth_lojasiewicz", "mu": p["mu"], "n": 1, "initial": "function_gap"}
    return worst_case("gd", {"gamma": p["gamma"]}, steps=N, **given)


def _robust_momentum(p, N):
    """The table's V is one of our class; ours is at least as good, and for lam = 0 (triple momentum) the same."""
    kappa = p["L"] / p["mu"]
    rho = p["lam"] * (1 - 1 / kappa) + (1 - p["lam"]) * (1 - 1 / math.sqrt(kappa))
    gamma = kappa * (1 - rho) ** 2 * (1 + rho) / p["L"]
    beta, eta = kappa * rho**3 / (kappa - 1), rho**3 / ((kappa - 1) * (1 - rho) ** 2 * (1 + rho))
    return contraction("triple_momentum", {"gamma": gamma, "beta": beta, "eta": eta}, mu=p["mu"], L=p["L"], n=1)


def _sgd(p, N):
    """One of n functions, drawn uniformly."""
    return worst_case("gd", {"gamma": p["gamma"]}, steps=N, mu=p["mu"], sampled=1, measure="distance")


def _gradient_flow(p, N):
    """At every x with f(x) - f* = 1 the derivative is at most -||g||^2."""
    given = {"functions": "strongly_convex", "mu": p["mu"], "n": 1, "initial": lambda s, w, h: 2 - w.gap(s.x)}
    return worst_case("gd", {"gamma": 0}, steps=1, measure=lambda s, w, h: -1 * sqnorm(w, mean(w, grad(w, s.x))), **given)


def _unbiased(p, N):
    return worst_case("cgd", {"gamma": p["gamma"]}, steps=N, mu=p["mu"], n=1, compressor={"omega": p["omega"]}, measure="distance")


def _noisy(p, N):
    return worst_case("gd", {"gamma": p["gamma"]}, steps=N, mu=p["mu"], n=1, sigma2=p["sigma"] ** 2, measure="distance")


def _compressed(p, N):
    s = math.sqrt(p["eps"])
    gamma = p.get("gamma", 2 / ((1 - s) * p["mu"] + (1 + s) * p["L"]))
    return worst_case("cgd", {"gamma": gamma}, steps=N, mu=p["mu"], n=1, compressor={"delta": 1 - p["eps"]}, initial="function_gap")


def _feedback(name, lyapunov, zeta2):
    def ask(p, N):
        s = math.sqrt(p["eps"])
        gamma = 2 / (p["L"] + p["mu"]) * (1 - s) / (1 + s)
        given = {"n": int(p.get("n", 1)), "compressor": {"delta": 1 - p["eps"]}, "initial": lyapunov, "measure": lyapunov, "start": "free"}
        return worst_case(name, {"gamma": gamma}, steps=N, mu=p["mu"], zeta2_star=zeta2, **given)

    return ask


def _on_quadratics(p, N):
    return worst_case("gd", {"gamma": p["gamma"]}, steps=N, functions="quadratic", L=p["L"], mu=p["mu"], n=1)


def _exact_line_search(p, N):
    return worst_case(_made(_line_search, One, Nothing), {}, steps=N, mu=p["mu"], L=p["L"], n=1, initial="function_gap")


def _subspace(functions):
    def ask(p, N):
        method = _made(_subspace_search, Searching, Memory)
        return worst_case(method, {"tau": 2 * N}, steps=N, functions=functions, L=p["L"], n=1)

    return ask


def _polyak(p, N):
    """The step in terms of values takes gamma where ||g||^2 = 2 L (2 - L gamma) (f - f*)."""

    def said(s, w, h):
        return sqnorm(w, mean(w, grad(w, s.x))) - 2 * p["L"] * (2 - p["L"] * p["gamma"]) * w.gap(s.x)

    initial = ["function_gap", (said, "==", 0)]
    return worst_case("gd", {"gamma": p["gamma"]}, steps=N, mu=p["mu"], L=p["L"], n=1, initial=initial)


def _composite(cls):
    def ask(p, N):
        functions = {"f": (cls, p["L"], p["mu"]), "h": "convex"}
        method = _made(_proximal_gradient, One, Step)
        return worst_case(method, {"gamma": p["gamma"]}, steps=N, functions=functions, n=1, measure="distance")

    return ask


def _smooth_and_convex(p):
    return {"f": ("smooth_strongly_convex", p["L"], p.get("mu", 0)), "h": "convex"}


def _composite_fista(p, N):
    lam = lam_fista(N)
    hyper = {"a": 1 / p["L"], "b": [(lam[i] - 1) / lam[i + 1] for i in range(N)]}
    method = _made(_accelerated_proximal_gradient, Two, Pair, ("x", "y"))
    return worst_case(method, hyper, steps=N, functions=_smooth_and_convex(p), n=1)


def _relatively_inexact(p, N):
    method = _made(_inexact_proximal_point, One, Inexact)
    return worst_case(method, {"gamma": p["gamma"], "sigma": p["sigma"]}, steps=N, functions="convex", n=1)


def _splitting_contraction(p, N):
    given = {"functions": _smooth_and_convex(p), "n": 1, "measure": "pair_distance", "initial": "pair_distance", "start": "free"}
    return worst_case(_made(_two_douglas_rachford, Two, Step, ("x", "y")), {"gamma": p["alpha"]}, steps=N, **given)


def first_proximal_point(s, w, h):
    return sqnorm(w, prox(w, s.x, h.gamma, of="f") - optimum(w))


def _splitting(p, N):
    """The sequence of the table (.25, .1273, ...) belongs to the distance of the first proximal point, as PEPit has it."""
    given = {"functions": _smooth_and_convex(p), "n": 1, "measure": at_y, "initial": first_proximal_point}
    return worst_case(_made(_douglas_rachford, Two, Step), {"gamma": 1 / p["L"]}, steps=N, **given)


def _bregman_point(p, N):
    given = {"functions": {"f": "convex", "h": "convex"}, "objective": ("f",), "n": 1}
    given["initial"] = lambda s, w, h: bregman(w, optimum(w), s.x, "h")
    return worst_case(_made(_bregman_proximal_point, One, Step), {"gamma": p["gamma"]}, steps=N, **given)


def relative(p):
    """gamma L, without the rounding of another unit."""
    return round(p["gamma"] * p["L"], 12)


def _no_lips(p, N):
    def from_kernel(s, w, h):
        return (bregman(w, optimum(w), s.x, "f") + bregman(w, optimum(w), s.x, "d")) / p["L"]

    given = {"functions": {"f": "convex", "d": "convex"}, "objective": ("f",), "n": 1, "initial": from_kernel}
    return worst_case(_made(_mirror_descent, One, Step), {"gamma": relative(p)}, steps=N, **given)


def _no_lips_nonconvex(ends):
    def ask(p, N):
        def kernel(s, w, h):
            x, y = ends(s)
            return (bregman(w, x, y, "a") + bregman(w, x, y, "b")) / (2 * p["L"])

        def value(s, w, h):
            return (gap(w, s.x, of="a") - gap(w, s.x, of="b")) / 2

        given = {"functions": {"a": "convex", "b": "convex"}, "objective": (), "n": 1, "initial": Fall(value), "take": "best_after"}
        method = _made(_nonconvex_mirror_descent, Two, Step, ("x", "y"))
        return worst_case(method, {"gamma": relative(p)}, steps=N, measure=kernel, **given)

    return ask


def _conditional_gradient(p, N):
    given = {"functions": {"f": ("smooth_strongly_convex", p["L"]), "h": ("bounded_indicator", p["D"])}, "n": 1, "initial": "none"}
    hyper = {"gamma": [2 / (t + 2) for t in range(N)]}
    return worst_case(_made(_frank_wolfe, One, Step), hyper, steps=N, measure=lambda s, w, h: gap(w, s.x, of="f"), **given)


def _online_descent(p, N):
    rounds = {f"f{t}": ("convex_lipschitz", p["M"]) for t in range(N)}
    given = {"functions": rounds | {"h": ("bounded_indicator", p["D"])}, "n": 1, "initial": "none"}
    gamma = p["D"] / (p["M"] * math.sqrt(N))

    def regret(s, w, h):
        return gap(w, s.z, of="f0") + gap(w, s.y, of="f1")

    return worst_case(_made(_online, Three, Step), {"gamma": gamma}, steps=N, measure=regret, **given)


def _variance_reduced(step, start, constants, table):
    """One draw of n: the mean over workers of what each would do; an entry of the table is kept with probability 1 - 1/n."""

    def ask(p, N):
        n = p["n"]
        gamma, c, unit = constants(p)

        def before(s, w, h):
            return c * sqnorm(w, s.y - optimum(w)) + unit * table(w, s.p)

        def after(s, w, h):
            return c * sqnorm(w, s.x - spread(w, optimum(w))) + unit * ((1 - 1 / n) * table(w, s.p) + table(w, s.q) / n)

        given = {"mu": p["mu"], "L": p["L"], "n": int(n), "zeta2_star": None, "start": "free"}
        return worst_case(_made(step, Drawn, Step, start), {"gamma": gamma}, steps=N, initial=before, measure=after, **given)

    return ask


def _saga_constants(p):
    gamma = 1 / (2 * (p["mu"] * p["n"] + p["L"]))
    return gamma, 1 / (2 * gamma * (1 - p["mu"] * gamma) * p["n"]), 1


def _point_saga_constants(p):
    n, L = p["n"], p["L"]
    return math.sqrt((n - 1) ** 2 + 4 * n * L / p["mu"]) / (2 * L * n) - (1 - 1 / n) / (2 * L), 1, 1 / (p["mu"] * L)


def _points(w, at):
    star = spread(w, optimum(w))
    return w.gap(at) - inner(w, grad(w, star), at - star)


def _gradients(w, at):
    return sqnorm(w, grad(w, at) - grad(w, spread(w, optimum(w))))


SAID: dict[str, Asked] = {
    "gradient descent on quadratics": _on_quadratics,
    "gradient descent, silver steps": _silver,
    "gradient descent, two trajectories": _pair,
    "gradient descent|L-smooth nonconvex": _nonconvex,
    "gradient descent, decreasing steps 1/(L u_t)": _qg_decreasing,
    "heavy-ball (averaging form)": _qg_heavy_ball,
    "optimized gradient method (OGM)": _ogm_row,
    "fast gradient, momentum i/(i+3)": _fgm,
    "fast gradient, FISTA coefficients": _fista,
    "robust momentum, one step of its Lyapunov function": _robust_momentum,
    "relatively inexact gradient, step 2/(L_eps+mu_eps)": _inexact,
    "proximal point|convex": _proximal,
    "subgradient method, gamma=1/(M sqrt(N+1))": _subgradient,
    "subgradient method|RSI(mu) and EB(L)": _rsi,
    "gradient descent|L-smooth, quadratic Lojasiewicz mu, nonconvex": _lojasiewicz,
    "proximal point|maximally monotone": _proximal_operator,
    "accelerated proximal point": _accelerated,
    "Halpern iteration": _halpern_row,
    "optimal contractive Halpern": _contractive_halpern,
    "SGD, interpolation regime, one step": _sgd,
    "gradient flow": _gradient_flow,
    "GD with unbiased omega-compressor, one step": _unbiased,
    "SGD, additive noise variance sigma^2, one step": _noisy,
    "compressed GD, ||C(g)-g||^2<=eps||g||^2": _compressed,
    "compressed GD, optimal step 2/((1-sqrt(eps))mu+(1+sqrt(eps))L)": _compressed,
    "EF (error feedback), eta=2/(L+mu)*(1-sqrt(eps))/(1+sqrt(eps))": _feedback("ef_sgd", "ef_lyapunov", 0.0),
    "EF, original form of the rate": _feedback("ef_sgd", "ef_lyapunov", 0.0),
    "EF21, eta=2/(L+mu)*(1-sqrt(eps))/(1+sqrt(eps))": _feedback("ef21", "ef21_lyapunov", None),
    "gradient descent, exact line search": _exact_line_search,
    "conjugate gradient (subspace search)": _subspace("convex_quadratic_growth"),
    "conjugate gradient / greedy first-order": _subspace("smooth_strongly_convex"),
    "Polyak step (value form), one step": _polyak,
    "proximal gradient": _composite("smooth_strongly_convex"),
    "proximal gradient on quadratics": _composite("quadratic"),
    "FISTA": _composite_fista,
    "relatively inexact proximal point": _relatively_inexact,
    "Douglas-Rachford contraction, theta=1": _splitting_contraction,
    "Douglas-Rachford (alpha=theta=L=1), function value": _splitting,
    "Bregman proximal point": _bregman_point,
    "NoLips / mirror descent": _no_lips,
    "NoLips nonconvex I": _no_lips_nonconvex(lambda s: (s.x, s.y)),
    "NoLips nonconvex II": _no_lips_nonconvex(lambda s: (s.y, s.x)),
    "Frank-Wolfe": _conditional_gradient,
    "online gradient descent, gamma=D/(M sqrt N)": _online_descent,
    "SAGA, one step of its Lyapunov function": _variance_reduced(_saga, ("y", "p"), _saga_constants, _points),
    "Point-SAGA, one step of its Lyapunov function": _variance_reduced(_point_saga, ("y", "p"), _point_saga_constants, _gradients),
}
PLAIN = ("gradient descent", "gradient descent (long constant step)", "gradient descent, optimal step 2/(L+mu)")


def asked(row) -> Asked | None:
    """How a row is asked for, or None where the words cannot say it."""
    method, cls = row["method"], row["class"]
    if method in PLAIN and cls in ("L-smooth convex", "L-smooth mu-strongly convex"):
        return _gd(row)
    return SAID.get(f"{method}|{cls}") or SAID.get(method)


def _rows():
    if not TABLE.exists():
        return []
    with TABLE.open(newline="") as file:
        return list(enumerate(csv.DictReader(file), start=2))


ROWS = _rows()


def parameters(row):
    values = {k: float(sympy.sympify(v)) for k, v in (item.split("=") for item in row["params"].split(";") if item)}
    return values | {"N": int(row["N"])}


def formula(row, values):
    names = {k: sympy.nsimplify(v, rational=True) for k, v in values.items()}
    names |= {
        "theta_ogm": lambda n: theta_ogm(int(n))[-1],
        "lam_fista": lambda n: lam_fista(int(n))[-1],
        "u_qg": lambda n: u_qg(int(n))[-1],
    }
    return float(sympy.sympify(row["rate_formula_sympy"], locals=names))


@pytest.mark.skipif(not ROWS, reason="the table of known rates is not beside the repository")
def test_the_words_can_say_all_rows():
    assert len(ROWS) == 55 and all(asked(row) for _, row in ROWS)


REPLAYED = 1e-6  # of the lower end; a replay checks every assumption to REPLAY_RTOL on the way


def _recorded(row, monkeypatch):
    """The worst case of a row with the method that was asked about."""
    seen = []
    monkeypatch.setitem(globals(), "worst_case", lambda method, *a, **k: seen.append(method) or worst_case_of(method, *a, **k))
    values = parameters(row)
    return asked(row)(values, values["N"]), seen[0] if seen else None


def assert_replays(found, method):
    """The method's own step function reaches the lower end on the recorded functions, proximal steps, searches and compressed vectors."""
    again = Instance.from_dict(json.loads(found.instance.to_json()))
    shown = replace(again, measure=found.instance.measure, initial=found.instance.initial)
    assert abs(shown.replay(method) - found.lower) <= REPLAYED * abs(found.lower)


@pytest.mark.parametrize("row", [r for _, r in ROWS if asked(r)], ids=[f"line{i}" for i, r in ROWS if asked(r)])
def test_known_rate(row, monkeypatch):
    (found, method), truth = _recorded(row, monkeypatch), formula(row, parameters(row))
    assert getattr(found, "instance", None) or not getattr(found, "exact", False)
    if getattr(found, "instance", None):
        assert_replays(found, method)
    assert (found.status == "solved" and found.rigorous) or not getattr(found, "exact", True), str(found)
    if not getattr(found, "exact", True):  # the bound comes from the same necessary inequalities, or the lower end is not verified
        assert abs(found.upper - truth) <= RTOL * truth and found.lower == -math.inf
        return
    if "four digits" in row["tight"] or "numeric only" in row["tight"]:
        assert abs(found.upper - truth) <= HALF_A_DIGIT and found.upper - found.lower <= RTOL * truth
        return
    if row["tight"].startswith("no"):
        assert found.upper <= truth * (1 + ROUNDING), f"{found} against {truth}"
        assert found.upper < (1 - LEAST_LOOSE if "nearly" in row["tight"] else MOST_LOOSE) * truth
        return
    assert found.upper >= truth - ROUNDING * abs(truth) and found.lower <= truth + ROUNDING * abs(truth), f"{found} against {truth!r}"
    assert found.upper - truth <= RTOL * abs(truth) and truth - found.lower <= RTOL * abs(truth), f"{found} against {truth!r}"


# --- the worst cases of the table as data ------------------------------------------------------------------------------


def _spoil(name):
    def change(data):
        if name == "point of the other function":
            data["others"]["h"][-1]["g"][0] = [1.3 * v for v in data["others"]["h"][-1]["g"][0]]
        elif name == "value of the other function":
            data["others"]["h"][-1]["f"] += 0.3
        elif name == "where a step leads":
            data["found"][-1][1][0] = [1.01 * v for v in data["found"][-1][1][0]]
        elif name == "class":
            data["statement"]["functions"]["f"]["mu"] *= 1.1
        else:
            data["statement"]["functions"]["objective"] = ["f"]

    return change


@pytest.mark.parametrize("name", ["point of the other function", "value of the other function", "where a step leads", "class", "objective"])
def test_a_spoiled_record_of_two_functions_does_not_replay(name):
    method = _made(_proximal_gradient, One, Step)
    functions = {"f": ("smooth_strongly_convex", 1.0, 0.1), "h": "convex"}
    found = worst_case(method, {"gamma": 0.7}, steps=2, functions=functions, n=1)
    data = json.loads(found.instance.to_json())
    assert abs(Instance.from_dict(data).replay(method) - found.lower) <= REPLAYED * found.lower
    _spoil(name)(data)
    with pytest.raises(UsageError):
        Instance.from_dict(data).replay(method)


def test_a_spoiled_search_does_not_replay():
    found = _exact_line_search({"mu": 0.1, "L": 1.0}, 1)
    method = _made(_line_search, One, Nothing)
    assert abs(found.instance.replay(method) - found.lower) <= REPLAYED * found.lower
    data = found.instance.to_dict()
    spoiled = Instance.from_dict(data | {"found": [[start, [[0.9 * v for v in end[0]], end[1]]] for start, end in data["found"]]})
    with pytest.raises(UsageError):
        spoiled.replay(method)


@pytest.mark.parametrize("name", ["quadratic", "skew_operator", "linear_operator"])
def test_a_map_that_is_not_linear_does_not_replay(name):
    method = _made(_damped, One, Step)
    mu = 0.1 if name == "quadratic" else 0.0  # a flat one has nothing to spoil
    data = worst_case(method, {"gamma": 0.5}, steps=3, functions=name, mu=mu, n=1, measure="distance").instance.to_dict()
    data = json.loads(json.dumps(data))
    data["points"][2]["g"][0] = [1.05 * v for v in data["points"][2]["g"][0]]
    with pytest.raises(UsageError):
        Instance.from_dict(data).replay(method)


def test_functions_of_an_instance_by_name():
    method = _made(_proximal_gradient, One, Step)
    functions = {"f": ("smooth_strongly_convex", 1.0, 0.1), "h": "convex"}
    instance = worst_case(method, {"gamma": 0.7}, steps=1, functions=functions, n=1).instance
    h = instance.function(of="h")
    assert math.inf == h.L and all(abs(h(x) - f) <= REPLAYED for x, f in zip(h.x, h.f, strict=True))
    with pytest.raises(UsageError, match="unknown function"):
        instance.function(of="k")


# --- no end on the wrong side, whatever the units and the solver -------------------------------------------------------

SCALED = {"L": 1, "mu": 1, "M": 1, "gamma": -1, "alpha": -1}  # power of the unit of curvature
IN_UNITS = (_silver, _qg_decreasing, _qg_heavy_ball, _ogm_row, _fgm, _fista, _inexact, _subgradient, _rsi, _on_quadratics)
SEVERAL = (_exact_line_search, _polyak, _composite_fista, _relatively_inexact, _splitting_contraction, _bregman_point)
SEVERAL += (_no_lips, _conditional_gradient, _online_descent)
SEVERAL += tuple(ask for name, ask in SAID.items() if name.startswith(("conjugate", "proximal gradient", "NoLips", "SAGA", "Point-SAGA")))
IN_UNITS += SEVERAL
IN_ANY_UNIT = [r for _, r in ROWS if asked(r) and (asked(r) in IN_UNITS or asked(r).__qualname__.startswith("_gd."))]
SHORT = 5  # steps of the rows for the slow solver


def wrong_sides(rows, scale, capsys):
    """How many ends lie on the wrong side of the known value, over the tight rows; the count is printed."""
    ends = wrong = 0
    for row in rows:
        values = {k: v * scale ** SCALED.get(k, 0) for k, v in parameters(row).items()}
        if row["criterion"].startswith("min_i f") and scale != 1:
            continue  # the known value of the subgradient method holds at one radius for its step
        found, truth = asked(row)(values, int(row["N"])), formula(row, values)
        above = found.rigorous and found.upper < truth * (1 - ROUNDING) and not row["tight"].startswith("no")
        below = found.rigorous and found.lower > truth * (1 + ROUNDING)
        ends, wrong = ends + 2, wrong + above + below
    with capsys.disabled():
        print(f" {wrong} of {ends} ends on the wrong side at L times {scale:g};", end="")
    return wrong


@pytest.mark.skipif(not ROWS, reason="the table of known rates is not beside the repository")
@pytest.mark.parametrize("scale", [1e-6, pytest.param(1.0, marks=pytest.mark.slow), 1e6])
def test_no_end_is_on_the_wrong_side(scale, capsys):
    assert len(IN_ANY_UNIT) == 34 and wrong_sides(IN_ANY_UNIT, scale, capsys) == 0


@pytest.mark.skipif(not ROWS, reason="the table of known rates is not beside the repository")
@pytest.mark.parametrize("factor", [1 - 1e-4, 1 + 1e-4])
def test_a_wrong_bound_has_an_end_on_its_wrong_side(factor, capsys, monkeypatch):
    """Tight bounds times 1 - 1e-4 are refuted by lower ends, times 1 + 1e-4 they are above upper ends; all ends are verified."""
    honest, tight = formula, [r for r in IN_ANY_UNIT if not r["tight"].startswith("no") and "quadratics" not in r["method"]]
    monkeypatch.setitem(globals(), "formula", lambda row, values: factor * honest(row, values))
    assert wrong_sides(tight, 1.0, capsys) == len(tight)


@pytest.mark.slow
@pytest.mark.skipif(not ROWS, reason="the table of known rates is not beside the repository")
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_no_end_is_on_the_wrong_side_with_scs(scale, capsys, monkeypatch):
    pytest.importorskip("scs", reason="SCS is not installed")
    solver = {"solver": "cvxpy:SCS"}
    monkeypatch.setitem(globals(), "worst_case", lambda *a, **k: worst_case_of(*a, **{**solver, **k}))
    assert wrong_sides([r for r in IN_ANY_UNIT if int(r["N"]) <= SHORT], scale, capsys) == 0


worst_case_of = worst_case


# --- statements of public tools ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("gamma", [0.6, 0.97, 0.99])
def test_krasnoselskii_mann(n, gamma):
    """||(x_n - A x_n)/2||^2 of x+ = (1-gamma) x + gamma A x; the second branch of PEPit's docstring, (gamma-1)^(2n), is refuted."""
    first = (n / (n + 1)) ** n / (n + 1) / (4 * gamma * (1 - gamma))
    long = gamma > (1 + math.sqrt(n / (n + 1))) / 2
    truth = (2 * gamma - 1) ** (2 * n) if long else first
    given = {"functions": "nonexpansive_residual", "n": 1, "measure": lambda s, w, h: sqnorm(w, mean(w, grad(w, s.x))) / 4}
    found = worst_case("gd", {"gamma": gamma}, steps=n, **given)
    assert found.rigorous and abs(found.upper - truth) <= RTOL * truth and abs(found.lower - truth) <= RTOL * truth
    if long:
        assert found.lower > 2 * (gamma - 1) ** (2 * n)


@pytest.mark.parametrize(("N", "digits"), [*enumerate((0.25, 0.1273, 0.0838, 0.0627, 0.0501, 0.0417, 0.0357), start=1)])
def test_splitting_sequence(N, digits):
    """The values of the table's last column, to the digits given."""
    found = _splitting({"L": 1}, N)
    assert found.rigorous and abs(found.upper - digits) <= HALF_A_DIGIT and found.upper - found.lower <= RTOL * digits


@pytest.mark.parametrize("N", [1, 2])
def test_triple_momentum_in_steps(N):
    """PEPit's docstring says (1 - sqrt(mu/L))^(2 (N+1)) after N steps of V; each step contracts by (1 - sqrt(mu/L))^2, no more."""
    mu, L = 0.1, 1.0
    found = _robust_momentum({"mu": mu, "L": L, "lam": 0}, 1)
    rate = 1 - math.sqrt(mu / L)
    assert found.rigorous and abs(found.upper - rate**2) <= 2e-5 * rate**2
    assert found.lower**N > (1 + RTOL) * rate ** (2 * (N + 1))


# --- what the table does not hold -------------------------------------------------------------------------------------


def test_an_end_without_searches_is_one_sided(monkeypatch):
    """Where the moves found do not reach the bound, it is called one; and a search changed by a sign reaches nothing near."""
    from verify_rates.theory.worst_case import solve

    honest = solve._searched
    monkeypatch.setattr(solve, "_searched", lambda *a: ((honest(*a)[0][0] / 2, True), honest(*a)[1]))
    found = _exact_line_search({"mu": 0.1, "L": 1.0}, 1)
    assert not found.exact and found.lower < found.upper / 1.5 and "orthogonal" in found.why


def test_a_tilt_of_two_functions_changes_nothing():
    """Proximal gradient contracts the distance to the minimiser of the sum, which need not be that of f: at f = h = 0 it is the same."""
    functions = {"f": ("smooth_strongly_convex", 1.0, 0.1), "h": "convex"}
    method = _made(_proximal_gradient, One, Step)
    both = worst_case(method, {"gamma": 1.5}, steps=1, functions=functions, n=1, measure="distance")
    alone = worst_case("gd", {"gamma": 1.5}, steps=1, mu=0.1, n=1, measure="distance")
    assert abs(both.upper - alone.upper) <= RTOL * alone.upper
    projected = worst_case(method, {"gamma": 1.5}, steps=1, functions=functions | {"h": "indicator"}, n=1, measure="distance")
    assert abs(projected.upper - alone.upper) <= RTOL * alone.upper


def test_equalities_are_kept_by_the_lower_end():
    """A spoiled equality is noticed: the value of the Polyak step is not that of every step of its size."""
    p = {"mu": 0.1, "L": 1.0, "gamma": 1.5}
    free = worst_case("gd", {"gamma": 1.5}, steps=1, mu=0.1, n=1, initial="function_gap")
    assert _polyak(p, 1).upper < free.lower * (1 - RTOL)


def _damped(s, w, h, t):
    return One(x=s.x - h.gamma * mean(w, grad(w, s.x)))


CONTRACTIONS = [  # class, L, mu, gamma, ||x1 - x*||^2 of x - gamma g (L = 1 or 2)
    ("lipschitz_operator", 2.0, 0.0, 0.5, 4.0),  # (1 + gamma L)^2
    ("lipschitz_monotone", 1.0, 0.5, 0.5, 1 - 2 * 0.5 * 0.5 + 0.25),
    ("skew_operator", 2.0, 0.0, 0.5, 2.0),  # 1 + gamma^2 L^2
    ("linear_operator", 2.0, 0.0, 0.5, 4.0),
    ("cocoercive", 1.0, 0.0, 0.5, 1.0),
    ("quadratic", 1.0, 0.1, 1.5, 0.85**2),
    ("symmetric_operator", 2.0, 0.0, 0.5, 4.0),  # (1 + gamma L)^2
    ("cocoercive_monotone", 1.0, 0.5, 0.5, 1 - 2 * 0.5 * 0.5 + 0.25 * 0.5),  # 1 - 2 gamma mu + gamma^2 L mu below 2/L
    ("cocoercive_monotone", 1.0, 0.5, 2.5, 1.5**2),  # (gamma L - 1)^2 above
]


@pytest.mark.parametrize(("name", "L", "mu", "gamma", "truth"), CONTRACTIONS)
def test_operators(name, L, mu, gamma, truth):
    method = _made(_damped, One, Step)
    found = worst_case(method, {"gamma": gamma}, steps=1, functions=name, L=L, mu=mu, n=1, measure="distance")
    assert found.rigorous and abs(found.upper - truth) <= RTOL * truth, str(found)
    assert not found.exact or abs(found.lower - truth) <= RTOL * truth, str(found)
    if found.exact:
        assert_replays(found, method)
    assert found.exact is (name not in ("lipschitz_monotone", "cocoercive_monotone"))


def test_skew_operators_over_two_steps():
    """x - gamma S x, twice: (1 + gamma^2 L^2)^2; any linear operator reaches (1 + gamma L)^4."""
    for name, truth in (("skew_operator", 1.25**2), ("linear_operator", 1.5**4)):
        found = worst_case(_made(_damped, One, Step), {"gamma": 0.5}, steps=2, functions=name, n=1, measure="distance")
        assert found.rigorous and abs(found.upper - truth) <= RTOL * truth and truth - found.lower <= RTOL * truth, str(found)


@pytest.mark.parametrize("gamma", [1.5, 1.9, 2.5])
def test_a_proximal_step_on_a_negatively_comonotone_operator(gamma):
    """With ``<dg, dx> >= -rho ||dg||^2`` two points part by ``rho/(gamma - rho)`` below 2 rho, and never above (rho = 1/L)."""

    def pair(s, w, h, t):
        return Two(x=prox(w, s.x, h.gamma), y=prox(w, s.y, h.gamma))

    given = {"functions": "negatively_comonotone", "n": 1, "measure": "pair_distance", "initial": "pair_distance", "start": "free"}
    method, L = _made(pair, Two, Step, ("x", "y")), 4.0
    found = worst_case(method, {"gamma": gamma / L}, steps=1, L=L, **given)
    truth = max(1.0, (1 / (gamma - 1)) ** 2)
    assert found.rigorous and found.exact and abs(found.upper - truth) <= RTOL * truth and truth - found.lower <= RTOL * truth, str(found)
    assert_replays(found, method)
    assert worst_case(method, {"gamma": 0.9 / L}, steps=1, L=L, **given).status == "unbounded", "the step is below rho"


def test_quasi_strong_convexity():
    """``1 - mu/L`` at the step 1/L follows from the class's definition; the worst case of strongly convex functions is below."""
    given = {"steps": 1, "mu": 0.2, "n": 1, "measure": "distance"}
    strong = worst_case("gd", {"gamma": 1.0}, **given)
    quasi = worst_case("gd", {"gamma": 1.0}, functions="smooth_quasi_strongly_convex", **given)
    assert quasi.rigorous and not quasi.exact and quasi.lower == -math.inf
    assert strong.upper < quasi.upper and abs(quasi.upper - (1 - 0.2)) <= RTOL


def test_a_proximal_step_on_a_weakly_convex_function():
    """Two points approach or part by 1/(1 - gamma L) at most."""

    def pair(s, w, h, t):
        return Two(x=prox(w, s.x, h.gamma), y=prox(w, s.y, h.gamma))

    given = {"functions": "weakly_convex", "n": 1, "measure": "pair_distance", "initial": "pair_distance", "start": "free"}
    found = worst_case(_made(pair, Two, Step, ("x", "y")), {"gamma": 0.5}, steps=1, **given)
    assert found.rigorous and abs(found.upper - 4) <= 4 * RTOL and 4 - found.lower <= 4 * RTOL, str(found)


@pytest.mark.parametrize("mu", [0.1, 0.8])
def test_a_proximal_step_on_a_smooth_function(mu):
    """It contracts distances by 1/(1 + gamma mu), also where curvature is taken out (2 mu > L)."""
    given = {"mu": mu, "n": 1, "measure": "distance"}
    found = worst_case(_made(_proximal_point, Two, Step, ("x", "y")), {"gamma": 2.0}, steps=2, **given)
    truth = (1 / (1 + 2 * mu)) ** 4
    assert found.rigorous and abs(found.upper - truth) <= RTOL * truth and truth - found.lower <= RTOL * truth, str(found)


# --- classes ----------------------------------------------------------------------------------------------------------


def test_classes_contain_each_other():
    """A larger class is no better: on the same steps values are ordered."""
    names = ("smooth_strongly_convex", "convex_quadratic_growth")
    smooth, growth = (worst_case("gd", {"gamma": 0.5}, steps=3, functions=f, n=1).upper for f in names)
    assert smooth < growth
    contracting, nonexpansive = (
        worst_case("gd", {"gamma": 0.5}, steps=3, functions="nonexpansive_residual", mu=mu, n=1, measure="grad_norm").upper
        for mu in (0.2, 0)
    )
    assert contracting < nonexpansive
    cocoercive = worst_case("gd", {"gamma": 0.5}, steps=3, functions="cocoercive", L=2.0, n=1, measure="grad_norm")
    assert abs(cocoercive.upper - nonexpansive) <= RTOL * nonexpansive, "I - A is 1/2-cocoercive where A is nonexpansive"


def test_strong_convexity_without_smoothness():
    """A proximal step contracts distances by 1/(1 + gamma mu)."""
    given = {"functions": "strongly_convex", "mu": 0.5, "n": 1, "measure": "distance"}
    found = worst_case(_made(_proximal_point, Two, Step, ("x", "y")), {"gamma": 2.0}, steps=2, **given)
    truth = (1 / (1 + 2.0 * 0.5)) ** 4
    assert found.rigorous and abs(found.upper - truth) <= RTOL * truth and abs(found.lower - truth) <= RTOL * truth
    assert abs(found.instance.replay(_made(_proximal_point, Two, Step, ("x", "y"))) - found.lower) <= RTOL


def test_contraction_of_an_operator():
    """Strongly monotone resolvents: 1/(1 + gamma mu)^2, and gd on a cocoercive and strongly monotone... a residual of a contraction."""
    found = contraction("gd", {"gamma": 1.0}, functions="nonexpansive_residual", mu=0.3, n=1)
    assert abs(found.upper - 0.7**2) <= RTOL and found.lyapunov.gaps == {}, str(found)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"functions": "convex", "L": 2.0}, "has no L"),
        ({"functions": "convex", "mu": 0.1}, "no mu"),
        ({"functions": "monotone"}, "function values"),
        ({"functions": "convx"}, "did you mean"),
    ],
)
def test_bad_classes(given, words):
    from verify_rates.solvers.words import Unsupported

    with pytest.raises((UsageError, Unsupported), match=words):
        worst_case("gd", {"gamma": 0.5}, steps=1, n=1, **given)


def test_proximal_steps_are_refused_where_they_are_not_read():
    from verify_rates.solvers.words import Unsupported

    point = _made(_proximal_point, Two, Step, ("x", "y"))
    with pytest.raises(Unsupported, match="one worker"):
        worst_case(point, {"gamma": 1.0}, steps=1, functions="convex")
    with pytest.raises(UsageError, match="positive"):
        worst_case(point, {"gamma": 0.0}, steps=1, functions="convex", n=1)


REFUSED = [
    ({"functions": {"f": "convex", "h": "convx"}}, "did you mean"),
    ({"functions": {}}, "names no function"),
    ({"functions": {"f": ("convex", 1, 2, 3)}}, "is written"),
    ({"functions": {"f": "convex", "h": ("bounded_indicator", 0)}}, "L must be positive"),
    ({"functions": {"f": "convex", "h": "convex_quadratic_growth"}}, "single function"),
    ({"functions": {"f": "convex", "h": "convex"}, "objective": ("g",)}, "unknown function"),
    ({"functions": "smooth", "zeta2_star": 1.0, "n": "any"}, "need not have"),
    ({"initial": [("distance", "==", 1)]}, "'==', 0"),
]


@pytest.mark.parametrize(("given", "words"), REFUSED)
def test_bad_functions(given, words):
    from verify_rates.solvers.words import Unsupported

    with pytest.raises((UsageError, Unsupported), match=words):
        worst_case("gd", {"gamma": 0.5}, steps=1, **({"n": 1} | given))


def test_words_of_worst_cases_are_refused_elsewhere():
    from verify_rates.problems import get_problem
    from verify_rates.solvers.engine.run import simulate
    from verify_rates.solvers.words import Unsupported

    for step in (_proximal_gradient, _line_search, _frank_wolfe):
        for engine in ("numpy", "numba"):
            with pytest.raises(Unsupported, match="worst cases"):
                simulate(_made(step, One, Step), get_problem("quadratic"), {"gamma": 0.1}, steps=2, engine=engine)
    functions = {"f": "smooth_strongly_convex", "h": "convex"}
    with pytest.raises(UsageError, match="unknown function"):
        worst_case(_made(_proximal_gradient, One, Step), {"gamma": 1}, steps=1, functions={"f": "convex", "k": "convex"}, n=1)
    with pytest.raises(Unsupported, match="one worker"):
        worst_case(_made(_line_search, One, Step), {"gamma": 1}, steps=1)
    with pytest.raises(Unsupported, match="several functions"):
        contraction(_made(_proximal_gradient, One, Step), {"gamma": 1}, functions=functions, n=1)
    assert (
        worst_case("gd", {"gamma": 0.5}, steps=1, functions="smooth", initial="gap_to_last", measure="grad_norm").statement["zeta2_star"]
        is None
    )
