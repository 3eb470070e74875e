"""Worst cases against theorems, against each other, and against their own replays."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import sympy

from verify_rates.solvers.measures import get_measure
from verify_rates.solvers.method import Method, UsageError, get_method
from verify_rates.solvers.words import Kind, Shared, Unsupported, World, chance, compress, grad, mean, sign
from verify_rates.theory.worst_case.algebra import Vec, exact
from verify_rates.theory.worst_case.assemble import Conic
from verify_rates.theory.worst_case.instance import Instance
from verify_rates.theory.worst_case.replay import simplex
from verify_rates.theory.worst_case.solve import worst_case
from verify_rates.theory.worst_case.world import PepWorld, run

# What callers are promised: ends closer to the truth than this, relatively.
RTOL = 1e-6
# An end may pass a formula evaluated in double precision by its rounding: some hundred operations of 1.1e-16, and room.
ROUNDING = 1e-12
# A replay computes in double precision what the Gram matrices say; see REPLAY_RTOL of the instance.
REPLAYED = 1e-6
KNOWN_RATES = Path(__file__).parents[2] / "shared" / "known_rates.csv"

L, MU, EPS = 1.0, 0.1, 0.25
S = math.sqrt(EPS)
Q = (L - MU) / (L + MU)
GAMMA_EF = 2 / (L + MU) * (1 - S) / (1 + S)
RHO_EF = (((1 - S) * Q + math.sqrt((1 - S) ** 2 * Q**2 + 4 * S)) / 2) ** 2
EF = {"steps": 1, "mu": MU, "compressor": {"delta": 1 - EPS}, "initial": "ef_lyapunov", "measure": "ef_lyapunov", "start": "free"}
EF21 = EF | {"initial": "ef21_lyapunov", "measure": "ef21_lyapunov", "zeta2_star": None}


def assert_tight(found, truth):
    """Both ends verified, on their sides of the truth, and close to it; the instance reaches the lower one."""
    assert found.status == "solved" and found.rigorous and found.exact, str(found)
    assert found.lower <= truth * (1 + ROUNDING), f"lower {found.lower!r} above {truth!r}"
    assert found.upper >= truth * (1 - ROUNDING), f"upper {found.upper!r} below {truth!r}"
    assert found.upper - found.lower <= RTOL * truth * 2
    assert abs(found.upper - truth) <= RTOL * truth and abs(found.lower - truth) <= RTOL * truth
    assert_replays(found)


def assert_replays(found, n=None):
    reached = found.instance.replay(n=n)
    assert abs(reached - found.lower) <= REPLAYED * abs(found.lower)


# --- known rates -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("N", [1, 4, 12])
def test_gd_convex(N):
    """L/(4 N L gamma + 2) at gamma <= 1/L (Drori, Teboulle 2014)."""
    assert_tight(worst_case("gd", {"gamma": Fraction(1, 3)}, steps=N, L=3, n=1), 3 / (4 * N + 2))


@pytest.mark.parametrize("gamma", [0.4, 1.6, 1.7, 1.95])
def test_gd_convex_long_steps(gamma):
    truth = max(1 / (4 * 3 * gamma + 2), (1 - gamma) ** 6 / 2)
    assert_tight(worst_case("gd", {"gamma": gamma}, steps=3), truth)


def test_gd_convex_gradient_from_gap():
    truth = max(2 / (2 * 3 * 1.5 + 1), 2 * 0.5**6)
    assert_tight(worst_case("gd", {"gamma": 1.5}, steps=3, measure="grad_norm", initial="function_gap"), truth)


@pytest.mark.parametrize("measure", ["distance", "function_gap", "grad_norm"])
@pytest.mark.parametrize(("gamma", "N"), [(1.0, 4), (1.9, 2), (2 / 1.1, 10)])
def test_gd_strongly_convex(measure, gamma, N):
    truth = max((1 - gamma) ** 2, (1 - gamma * MU) ** 2) ** N
    assert_tight(worst_case("gd", {"gamma": gamma}, steps=N, mu=MU, measure=measure, initial=measure), truth)


def test_gd_pair():
    truth = max((1 - 1.3) ** 2, (1 - 1.3 * MU) ** 2)
    found = worst_case("gd_pair", {"gamma": 1.3}, steps=1, mu=MU, measure="pair_distance", initial="pair_distance")
    assert_tight(found, truth)


def test_gd_nonconvex_best_gradient():
    found = worst_case("gd", {"gamma": 1}, steps=5, functions="smooth", measure="grad_norm", initial="gap_to_last", take="best")
    assert_tight(found, 4 / 15)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_silver_steps(k):
    """A schedule; exact L/(4 rho^k - 2), the published bound is loose."""
    rho, N = 1 + math.sqrt(2), 2**k - 1
    steps = [(1 + rho ** ((i & -i).bit_length() - 2)) / 10 for i in range(1, N + 1)]
    found = worst_case("gd", {"gamma": steps}, steps=N, L=10, n=1)
    assert_tight(found, 10 / (4 * rho**k - 2))
    assert found.upper < 10 / (1 + math.sqrt(4 * rho ** (2 * k) - 3))


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2 / ((1 - S) * MU + (1 + S) * L)])
def test_compressed_gd(gamma):
    truth = max((1 - gamma * MU * (1 - S)) ** 2, (1 - gamma * L * (1 + S)) ** 2)
    found = worst_case("cgd", {"gamma": gamma}, steps=1, n=1, mu=MU, compressor={"delta": 0.75}, initial="function_gap")
    assert_tight(found, truth)


def test_compressed_gd_of_separate_workers_is_worse():
    """The one-worker rate is false when several workers compress."""
    common = {"steps": 1, "mu": MU, "compressor": {"delta": 0.75}, "initial": "function_gap", "zeta2_star": None}
    one, many = (worst_case("cgd", {"gamma": 1.0}, n=n, **common) for n in (1, "any"))
    assert many.status == "unbounded" or many.lower > one.upper * (1 + RTOL)


@pytest.mark.parametrize("n", [1, 2, "any", 1000])
def test_error_feedback(n):
    """The same contraction of both Lyapunov functions for every number of workers (Berg Thomsen, Taylor, Dieuleveut)."""
    assert_tight(worst_case("ef_sgd", {"gamma": GAMMA_EF}, n=n, **EF), RHO_EF)
    assert_tight(worst_case("ef21", {"gamma": GAMMA_EF}, n=n, **EF21), RHO_EF)


def _formula(text, values):
    names = {str(k): sympy.nsimplify(v, rational=True) for k, v in values.items()}
    return float(sympy.sympify(text, locals=names))


def _rows():
    if not KNOWN_RATES.exists():
        return []
    with KNOWN_RATES.open(newline="") as file:
        return [(i, row) for i, row in enumerate(csv.DictReader(file), start=2) if _problem(row)]


def _problem(row):
    """How a row of the table is asked for, or None where its method or class is not ours."""
    kinds = {"L-smooth convex": 0, "L-smooth mu-strongly convex": 1}
    name, cls = row["method"].split(",")[0].split(" (")[0], row["class"]
    measures = {"f(xN)-f*": "function_gap", "||grad f(xN)||^2": "grad_norm", "||xN-x*||^2": "distance", "f(x1)-f*": "function_gap"}
    starts = {"||x0-x*||^2<=1": "distance", "f(x0)-f*<=1": "function_gap", "||grad f(x0)||^2<=1": "grad_norm"}
    common = {"measure": measures.get(row["criterion"]), "initial": starts.get(row["initial_condition"]), "n": 1}
    if name == "gradient descent" and cls in kinds and "two traj" not in row["method"] and "silver" not in row["method"]:
        return {"method": "gd", **common} if common["measure"] else None
    if name == "compressed GD":
        return {"method": "cgd", **common}
    if name in ("EF", "EF21"):
        return {"method": {"EF": "ef_sgd", "EF21": "ef21"}[name], **(EF if name == "EF" else EF21)}
    return None


ROWS = _rows()


@pytest.mark.skipif(not ROWS, reason="the table of known rates is not beside the repository")
def test_rows_are_found():
    assert len(ROWS) == 15


@pytest.mark.parametrize("row", [r for _, r in ROWS], ids=[f"line{i}" for i, _ in ROWS])
def test_known_rates(row):
    values = {k: float(sympy.sympify(v)) for k, v in (item.split("=") for item in row["params"].split(";"))}
    values["N"] = int(row["N"])
    problem = _problem(row)
    Lv, mu = values["L"], values.get("mu", 0.0)
    s = math.sqrt(values.get("eps", 0.0))
    optimal = {"gd": 2 / (Lv + mu), "cgd": 2 / ((1 - s) * mu + (1 + s) * Lv)}.get(problem["method"], 2 / (Lv + mu) * (1 - s) / (1 + s))
    gamma = values.setdefault("gamma", optimal)
    extra = {"compressor": {"delta": 1 - values["eps"]}} if "eps" in values else {}
    problem |= {"steps": values["N"], "L": Lv, "mu": mu, "n": int(values.get("n", 1)), **extra}
    assert_tight(worst_case(problem.pop("method"), {"gamma": gamma}, **problem), _formula(row["rate_formula_sympy"], values))


# --- scale -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("radius2", [1e-8, 1.0, 1e8])
def test_units_do_not_matter(scale, radius2):
    gd = worst_case("gd", {"gamma": 1 / scale}, steps=5, L=scale, initial_value=radius2)
    assert_tight(gd, scale * radius2 / 22)
    assert_tight(
        worst_case("ef_sgd", {"gamma": GAMMA_EF / scale}, L=scale, initial_value=radius2, **EF | {"mu": MU * scale}), RHO_EF * radius2
    )


@pytest.mark.parametrize("kappa", [0.6, 0.999999, Fraction(1)])
def test_mu_close_to_and_equal_to_L(kappa):
    truth = float(max((1 - Fraction(1, 2)) ** 2, (1 - Fraction(1, 2) * Fraction(kappa)) ** 2)) ** 3
    assert_tight(worst_case("gd", {"gamma": Fraction(1, 2)}, steps=3, mu=kappa, measure="distance"), truth)


def test_numbers_of_every_kind_are_exact():
    third = Fraction(1, 3)
    values = {worst_case("gd", {"gamma": g}, steps=2, L=3).upper for g in (third, sympy.Rational(1, 3))}
    assert len(values) == 1
    for g in (np.float32(0.25), np.float64(0.25), sympy.Float(0.25), sympy.Rational(1, 4), 0.25):
        assert exact(g) == Fraction(1, 4)
    assert_tight(worst_case("gd", {"gamma": np.float32(0.25)}, steps=np.int64(2), L=np.float32(3)), 3 / (4 * 2 * 3 * 0.25 + 2))


def test_scaling_from_the_left_by_numpy_and_sympy():
    v = Vec({0: Fraction(2)})
    for half in (np.float64(0.5), np.float32(0.5), sympy.Rational(1, 2), 0.5):
        assert (half * v).key == (v * half).key == (v / 2).key


# --- reductions ------------------------------------------------------------------------------------------------------


def test_reductions_give_the_same_ends():
    """Methods that coincide in a special case have the same worst case there, as problems and as numbers."""
    truth = 1 / (4 * 3 * 0.3 + 2)
    for name, hyper, extra in (
        ("gd", {"gamma": 0.3}, {}),
        ("local_sgd", {"gamma": 0.3, "H": 1}, {}),
        ("acco", {"gamma": 0.3}, {}),
        ("ef_sgd", {"gamma": 0.3}, {"compressor": {"delta": 1}}),
        ("dd_ef_sgd", {"gamma": 0.3}, {"compressor": {"Delta2": 0}}),
        ("cgd", {"gamma": 0.3}, {"compressor": {"delta": 1}}),
        ("gossip_sgd", {"gamma": 0.3}, {"mixing": 0}),
    ):
        assert_tight(worst_case(name, hyper, steps=3, **extra), truth)


@pytest.mark.parametrize("n", [1, "any"])
def test_dd_ef_sgd_without_delay_is_ef_sgd(n):
    """Only the units of the memory differ."""
    problem = {"steps": 3, "n": n, "compressor": {"delta": 0.6}, "mu": 0.05}
    a = worst_case("ef_sgd", {"gamma": 0.3}, **problem)
    b = worst_case("dd_ef_sgd", {"gamma": 0.3, "tau": 0}, **problem)
    assert a.rigorous and b.rigorous and abs(a.upper - b.upper) <= RTOL * a.upper
    assert_replays(a)
    assert_replays(b)


def test_one_worker_is_never_worse_than_many():
    problem = {"steps": 3, "compressor": {"delta": 0.6}}
    one, many = (worst_case("ef_sgd", {"gamma": 0.3}, n=n, **problem) for n in (1, "any"))
    assert one.lower <= many.upper


def test_n_changes_neither_value_nor_size():
    a, b = (worst_case("ef_sgd", {"gamma": 0.3}, n=n, steps=2, compressor={"delta": 0.6}) for n in (2, 10**6))
    assert a.size == b.size and a.upper == b.upper


def test_delayed_gd_at_its_stability_border():
    """On quadratics delayed gd is stable up to 2 sin(pi/(2 (2 tau + 1)))/L: the worst case over the class is at least that of x^2/2."""
    tau = 1
    border = 2 * math.sin(math.pi / (2 * (2 * tau + 1)))
    for gamma in (0.5 * border, border, 1.1 * border):
        x = [1.0, 1.0]
        for _ in range(6):
            x.append(x[-1] - gamma * x[-1 - tau])
        hyper, problem = {"gamma": gamma, "tau": tau}, {"compressor": {"delta": 1}, "n": 1, "measure": "distance"}
        found = worst_case("dd_ef_sgd", hyper, steps=7, **problem)
        assert found.rigorous and found.upper >= x[-1] ** 2
        assert_replays(found)


def test_heterogeneity_matters_to_local_steps_only():
    """zeta2_star enters local_sgd with H = 2, continuously and increasing; with H = 1 it does not enter."""
    values = [worst_case("local_sgd", {"gamma": 0.3, "H": 2}, steps=4, zeta2_star=z) for z in (0, 1e-4, 1.0)]
    assert all(v.rigorous and v.exact for v in values)
    assert values[0].upper <= values[1].upper * (1 + RTOL) and values[1].upper < values[2].lower
    assert values[1].upper < values[0].upper * 1.05
    for v in values:
        assert_replays(v)
        assert_replays(v, n=5)
    assert_tight(worst_case("local_sgd", {"gamma": 0.3, "H": 1}, steps=3, zeta2_star=1.0), 1 / (4 * 3 * 0.3 + 2))


def test_absolute_compressor():
    """One compressed step from a known gradient: x1 is off by gamma * noise, ||noise||^2 <= Delta2."""
    gamma, Delta2 = 0.5, 0.04
    found = worst_case("cgd", {"gamma": gamma}, steps=1, n=1, mu=MU, compressor={"Delta2": Delta2}, measure="distance")
    assert_tight(found, (max(abs(1 - gamma * L), abs(1 - gamma * MU)) + gamma * math.sqrt(Delta2)) ** 2)


@pytest.mark.parametrize("take", ["best", "mean", "average_iterate"])
def test_takes_are_ordered(take):
    last, other = (worst_case("gd", {"gamma": 0.5}, steps=3, take=t) for t in ("last", take))
    assert other.rigorous
    assert_replays(other)
    if take == "best":
        assert abs(other.upper - last.upper) <= RTOL * last.upper  # gd descends
    else:
        assert other.lower > last.upper


# --- gossip ----------------------------------------------------------------------------------------------------------


def test_gossip_bound_is_called_a_bound():
    found = worst_case("gossip_sgd", {"gamma": 0.3}, steps=3, mixing=0.5, zeta2_star=1)
    assert not found.exact and found.lower == -math.inf and found.rigorous and found.instance is None
    assert "spectrum" in found.why and json.loads(found.to_json())["lower"] is None


def test_gossip_with_one_eigenvalue_is_exact_and_below_the_bound():
    point, interval = (worst_case("gossip_sgd", {"gamma": 0.3}, steps=3, mixing=m, zeta2_star=1) for m in ((0.5, 0.5), (-0.5, 0.5)))
    assert point.exact and point.upper <= interval.upper * (1 + RTOL)
    assert_replays(point)


def test_gossip_wider_spectrum_is_worse():
    values = [worst_case("gossip_sgd", {"gamma": 0.5}, steps=4, mixing=lam, zeta2_star=10).upper for lam in (0.1, 0.5, 0.9)]
    assert values == sorted(values) and values[2] > values[0] * (1 + RTOL)


def test_gossip_two_solvers_agree():
    a, b = (worst_case("gossip_sgd", {"gamma": 0.5}, steps=3, mixing=0.8, zeta2_star=1, solver=s) for s in ("CLARABEL", "cvxpy:CLARABEL"))
    assert a.rigorous and b.rigorous and abs(a.upper - b.upper) <= RTOL * a.upper


def test_gossip_on_a_topology():
    """Two workers have one eigenvalue, which is exact; a ring of six has an interval, which is a bound."""
    from verify_rates.solvers.topologies import get_topology

    problem = {"steps": 2, "zeta2_star": 1.0}
    two = worst_case("gossip_sgd", {"gamma": 0.3}, mixing=get_topology("complete", 2), **problem)
    six = worst_case("gossip_sgd", {"gamma": 0.3}, mixing="ring", n=6, **problem)
    assert two.exact and two.statement["n"] == 2 and not six.exact and six.statement["n"] == 6
    assert two.upper <= six.upper * (1 + RTOL)
    with pytest.raises(UsageError, match="do not fit"):
        worst_case("gossip_sgd", {"gamma": 0.3}, mixing=get_topology("ring", 6), n=5, **problem)


def test_a_compressor_enters_through_its_class():
    from verify_rates.solvers.compressors import get_compressor

    common = {"steps": 2, "n": "any"}
    a = worst_case("ef_sgd", {"gamma": 0.3}, compressor="topk(k=2)", d=8, **common)
    b = worst_case("ef_sgd", {"gamma": 0.3}, compressor={"delta": 0.25}, **common)
    assert a.upper == b.upper
    with pytest.raises(UsageError, match="give d"):
        worst_case("ef_sgd", {"gamma": 0.3}, compressor=get_compressor("topk(k=2)"), **common)
    with pytest.raises(Unsupported, match="omega"):
        worst_case("ef_sgd", {"gamma": 0.3}, compressor="randk(k=2, scaled=True)", d=8, **common)


@pytest.mark.parametrize(("zeta2", "radius2"), [(1e6, 1.0), (1.0, 1e-6), (1e-6, 1.0)])
def test_constants_of_different_sizes(zeta2, radius2):
    """Multiplying all squares by one number multiplies the value by it."""
    problem = {"steps": 2, "measure": "function_gap"}
    a = worst_case("local_sgd", {"gamma": 0.3, "H": 2}, zeta2_star=zeta2, initial_value=radius2, **problem)
    b = worst_case("local_sgd", {"gamma": 0.3, "H": 2}, zeta2_star=zeta2 * 1e4, initial_value=radius2 * 1e4, **problem)
    assert a.rigorous and b.rigorous and abs(b.upper / a.upper / 1e4 - 1) <= RTOL
    assert_replays(a)


def test_a_minimiser_that_nothing_speaks_of_is_left_out():
    kept, left = (worst_case("ef21", {"gamma": GAMMA_EF}, **EF21 | {"zeta2_star": z}) for z in (1.0, None))
    assert kept.size["points"] == left.size["points"] + 1 and left.instance.optimum is None
    assert kept.lower <= left.upper


# --- coins -----------------------------------------------------------------------------------------------------------


class State(NamedTuple):
    x: Shared


class Hyper(NamedTuple):
    gamma: float
    p: float = 0.5


def _method(step, name="trial"):
    return Method(name, step, State, Hyper)


def _lazy(s, w, h, t):
    """A gradient step with probability p."""
    return State(x=s.x - h.gamma * mean(w, grad(w, s.x)) if chance(w, h.p) else s.x)


@pytest.mark.parametrize("p", [0.0, 0.25, 1.0])
def test_coins_are_averaged(p):
    found = worst_case(_method(_lazy), {"gamma": 1.0, "p": p}, steps=1, mu=MU, measure="distance")
    truth = p * (1 - MU) ** 2 + 1 - p
    assert found.rigorous and abs(found.upper - truth) <= RTOL
    assert abs(found.instance.replay(_method(_lazy)) - found.lower) <= REPLAYED


def test_coins_for_one_step_only():
    with pytest.raises(Unsupported, match="one step"):
        worst_case(_method(_lazy), {"gamma": 1.0}, steps=2)


# --- few inequalities first -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "hyper", "problem"),
    [
        ("gd", {"gamma": 1.0}, {"steps": 20}),
        ("gd", {"gamma": 1.7}, {"steps": 16}),
        ("gd", {"gamma": 1.5}, {"steps": 16, "mu": 0.1, "measure": "distance"}),
        ("nesterov", {"gamma": 1.0, "beta": [i / (i + 3) for i in range(16)]}, {"steps": 16}),
        ("local_sgd", {"gamma": 0.3, "H": 2}, {"steps": 14, "zeta2_star": 0.1}),
    ],
)
def test_few_inequalities_give_what_all_give(name, hyper, problem, monkeypatch):
    """The short cut over neighbouring points changes time, not ends."""
    n = "any" if name == "local_sgd" else 1
    short = worst_case(name, hyper, n=n, **problem)
    monkeypatch.setattr("verify_rates.theory.worst_case.refine.solve_few", lambda conic, margin: None)
    full = worst_case(name, hyper, n=n, **problem)
    assert short.rigorous and full.rigorous
    assert abs(short.upper - full.upper) <= RTOL * full.upper and abs(short.lower - full.lower) <= RTOL * full.upper
    assert_replays(short)


@pytest.mark.parametrize("N", [40, 60])
def test_long_runs(N):
    """Ends on their sides of L/(4 N + 2), in well under the time of one solve over the whole matrix."""
    found = worst_case("gd", {"gamma": 1.0}, steps=N, n=1)
    truth = 1 / (4 * N + 2)
    assert found.rigorous and found.lower <= truth * (1 + ROUNDING) and found.upper >= truth * (1 - ROUNDING)
    assert found.upper - found.lower <= 1e-5 * truth


def test_few_inequalities_are_not_believed(conic, monkeypatch):
    """Were the others simply forgotten, the primal point would be no instance; it is noticed."""
    from verify_rates.theory.worst_case import working_set

    problem = {"steps": 16, "n": 1, "take": "average_iterate"}
    honest = worst_case("gd", {"gamma": 1.0}, **problem)
    monkeypatch.setattr(working_set, "VIOLATED", math.inf)
    forgetful = worst_case("gd", {"gamma": 1.0}, **problem)
    assert forgetful.rigorous and forgetful.lower <= honest.upper and forgetful.upper >= honest.lower


# --- sampling cannot beat an upper end -------------------------------------------------------------------------------


class Quadratics(World):
    """n quadratics in dimension d with minimiser 0, top-1 as compressor, averaging with eigenvalue lam as gossip."""

    def __init__(self, rng, n, d, mu, lam):
        turns = [np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(n)]
        self.A = np.array([Q @ np.diag(rng.choice([mu, 1.0, rng.uniform(mu, 1)], d)) @ Q.T for Q in turns])
        self.lam, self.delta = lam, 1 / d

    def grad(self, x):
        return np.einsum("nij,nj->ni", self.A, np.broadcast_to(x, self.A.shape[:2]))

    def mean(self, v):
        return v.mean(axis=0)

    def spread(self, v):
        return np.tile(v, (len(self.A), 1))

    def compress(self, v):
        return np.where(np.abs(v) == np.abs(v).max(axis=-1, keepdims=True), v, 0)

    def gossip(self, v):
        return v.mean(axis=0) + self.lam * (v - v.mean(axis=0))

    def delay(self, q, v):
        return (q, v) if not q else ((*q[1:], v), q[0])

    def consensus(self, x):
        return x if x.ndim == 1 else x.mean(axis=0)

    def optimum(self):
        return 0.0

    def gap(self, x):
        return float(np.mean(np.einsum("i,nij,j->n", x, self.A, x))) / 2

    def sqnorm(self, v):
        return float(np.sum(v**2) / (1 if v.ndim == 1 else len(v)))


@pytest.mark.parametrize(
    ("name", "hyper"),
    [
        ("gd", {"gamma": 1.6}),
        ("cgd", {"gamma": 0.5}),
        ("ef_sgd", {"gamma": 0.4}),
        ("dd_ef_sgd", {"gamma": 0.3, "tau": 1}),
        ("ef21", {"gamma": 0.2}),
        ("local_sgd", {"gamma": 1.2, "H": 2}),
        ("acco", {"gamma": 1.2}),
        ("gossip_sgd", {"gamma": 1.5}),
    ],
)
@pytest.mark.parametrize("measure", ["distance", "function_gap", "grad_norm"])
def test_random_instances_stay_below(name, hyper, measure):
    method, n, d, mu, lam, steps = get_method(name), 3, 3, 0.1, 0.6, 4
    found = worst_case(name, hyper, steps=steps, mu=mu, n=n, compressor={"delta": 1 / d}, mixing=(lam, lam), measure=measure)
    assert found.rigorous
    rng, worst, h = np.random.default_rng(7), 0.0, method.hypers(**hyper)
    for _ in range(200):
        world, x0 = Quadratics(rng, n, d, mu, lam), rng.standard_normal(d)
        zero = {Kind.SHARED: np.zeros(d), Kind.PER_WORKER: np.zeros((n, d)), Kind.SHARED_QUEUE: (np.zeros(d),) * hyper.get("tau", 0)}
        s = method.initial(world, x0 / np.linalg.norm(x0), zero.get)
        worst = max(worst, get_measure(measure)(run(method, h, world, s, steps)[-1], world, h))
    assert 0.05 * found.upper < worst <= found.upper


# --- mutations: what must change the value, does ---------------------------------------------------------------------


def test_a_dropped_compressor_constraint_is_noticed(monkeypatch):
    """Without its inequality the compressor may do anything: no finite worst case."""
    honest = PepWorld.compress

    def dropped(self, v):
        m = honest(self, v)
        self.constraints = [c for c in self.constraints if not c[0].startswith("compressor")]
        return m

    monkeypatch.setattr(PepWorld, "compress", dropped)
    assert worst_case("ef_sgd", {"gamma": GAMMA_EF}, **EF).status == "unbounded"


@pytest.mark.parametrize("factor", [0.999, 1.001])
def test_a_changed_delta_is_noticed(factor):
    changed = EF | {"compressor": {"delta": (1 - EPS) * factor}}
    found = worst_case("ef_sgd", {"gamma": GAMMA_EF}, **changed)
    assert found.upper < RHO_EF * (1 - RTOL) or found.lower > RHO_EF * (1 + RTOL)


def test_a_changed_step_function_is_noticed():
    def sloppy(s, w, h, t):
        return State(x=s.x - 0.999 * h.gamma * mean(w, grad(w, s.x)))

    found = worst_case(_method(sloppy), {"gamma": 1.0}, steps=4)
    assert found.lower > (1 / 18) * (1 + RTOL)


def test_a_missing_interpolation_row_is_noticed(monkeypatch):
    from verify_rates.theory.worst_case.assemble import Assembler

    honest = Assembler.interpolation

    def dropped(self):
        rows, names, units = honest(self)
        kept = [i for i, name in enumerate(names) if name != "interpolation 0 3"]
        return rows[kept], [names[i] for i in kept], [units[i] for i in kept]

    monkeypatch.setattr(Assembler, "interpolation", dropped)
    found = worst_case("gd", {"gamma": 1.0}, steps=2, n=1)
    assert found.status == "unbounded" or found.upper > 0.1 * (1 + RTOL)


def _solved(conic):
    from verify_rates.theory.worst_case import backends, bounds

    raw = backends.solve_conic(conic, 1e-11, "CLARABEL")
    return raw, bounds


@pytest.fixture
def conic(monkeypatch) -> Conic:
    from verify_rates.theory.worst_case import refine

    seen = []
    honest = refine.solve_conic
    monkeypatch.setattr(refine, "solve_conic", lambda c, m, **more: seen.append(c) or honest(c, m, **more))
    worst_case("gd", {"gamma": 1.0}, steps=3, n=1)
    return seen[0]


def test_spoiled_multipliers_are_not_called_verified(conic):
    raw, bounds = _solved(conic)
    import dataclasses

    assert bounds.upper(conic, raw).bound.verified
    smaller = dataclasses.replace(raw, lam=raw.lam * 0.99)
    spoiled = bounds._evaluated(conic, raw.z, smaller.lam, raw.nu, raw.S)
    assert not spoiled.bound.verified
    assert spoiled.bound.value >= conic.c @ raw.z * (1 - RTOL), "the estimate of what is left over is added"


def test_a_spoiled_primal_point_is_repaired_downwards(conic):
    import dataclasses

    raw, bounds = _solved(conic)
    inside = np.zeros(conic.c.size)  # feasible, but not strictly: no help
    assert not bounds.lower(conic, dataclasses.replace(raw, z=raw.z * 1.01), inside)[0].verified


def test_a_spoiled_record_does_not_replay():
    found = worst_case("ef_sgd", {"gamma": 0.3}, steps=2, compressor={"delta": 0.75})
    data = found.instance.to_dict()

    def broken(change):
        copy = json.loads(json.dumps(data))
        change(copy)
        return Instance.from_dict(copy)

    def longer(copy):
        copy["points"][2]["g"][0] = [1.5 * v for v in copy["points"][2]["g"][0]]

    def louder(copy):
        copy["answers"][0]["m"][0] = [3 * v for v in copy["answers"][0]["m"][0]]

    def further(copy):
        copy["start"]["x"][0] = [2 * v for v in copy["start"]["x"][0]]

    def other(copy):
        copy["statement"]["hyper"]["gamma"] = 0.31

    for change in (longer, louder, further, other):
        with pytest.raises(UsageError):
            broken(change).replay()
    with pytest.raises(UsageError, match="another method"):
        found.instance.replay("dd_ef_sgd")
    assert Instance.from_dict(json.loads(found.instance.to_json())).replay() == found.instance.replay()


# --- results ---------------------------------------------------------------------------------------------------------


def test_a_result_is_not_a_number():
    found = worst_case("gd", {"gamma": 1.0}, steps=2)
    with pytest.raises(TypeError, match="upper"):
        float(found)
    assert "exact worst case" in str(found) and "<table>" in found._repr_html_()
    data = json.loads(found.to_json())
    assert data["status"] == "solved" and data["statement"]["method"] == "gd" and data["solver_version"]
    assert found.gap >= 0 and set(found.multipliers) >= {"initial 0", "interpolation 0 1"}


def test_multipliers_are_in_own_units():
    """The value is the initial condition's multiplier times its limit, whatever the units (weak duality, one constant)."""
    for scale in (1.0, 1e-3, 1e4):
        found = worst_case("gd", {"gamma": 1 / scale}, steps=3, L=scale, initial_value=5)
        assert abs(found.multipliers["initial 0"] * 5 - found.upper) <= RTOL * found.upper


def test_different_outcomes_read_differently():
    unbounded = worst_case("gd", {"gamma": 0.5}, steps=2, initial="function_gap", measure="distance")
    assert unbounded.status == "unbounded" and unbounded.upper == math.inf and not unbounded.rigorous
    assert "does not control" in str(unbounded) and json.loads(unbounded.to_json())["upper"] is None
    below = lambda s, w, h: -1 * w.gap(s.x)  # noqa: E731
    infeasible = worst_case("gd", {"gamma": 0.5}, steps=1, initial=["distance", (lambda s, w, h: below(s, w, h) + 9, 1.0)])
    assert infeasible.status == "infeasible" and "no instance" in str(infeasible)


def test_problems_are_independent():
    from concurrent.futures import ThreadPoolExecutor

    alone = [worst_case("gd", {"gamma": 1.0}, steps=k).upper for k in (1, 2, 3, 4)]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda k: worst_case("gd", {"gamma": 1.0}, steps=k).upper, (1, 2, 3, 4)))
    assert alone == together


@pytest.mark.parametrize("solver", ["cvxpy:CLARABEL", "cvxpy:SCS"])
def test_reference_path_agrees(solver):
    found = worst_case("gd", {"gamma": 1.0}, steps=3, solver=solver, n=1)
    assert_tight(found, 1 / 14)
    ef = worst_case("ef_sgd", {"gamma": GAMMA_EF}, solver=solver, **EF)
    assert ef.lower <= RHO_EF * (1 + ROUNDING) and (not ef.rigorous or ef.upper >= RHO_EF * (1 - ROUNDING))
    assert abs(ef.upper - RHO_EF) <= 10 * RTOL * RHO_EF


def test_workers_of_an_instance_are_exchangeable():
    for n in (2, 3, 7):
        u = simplex(n)
        gram = np.full((n, n), -1 / (n - 1)) + np.eye(n) * (1 + 1 / (n - 1))
        assert np.allclose(u @ u.T, gram, atol=1e-14 * n) and np.allclose(u.sum(axis=0), 0, atol=1e-14 * n)
    found = worst_case("ef_sgd", {"gamma": GAMMA_EF}, **EF)
    for n in (2, 3, 10):
        assert_replays(found, n)


# --- refusals --------------------------------------------------------------------------------------------------------


def _signed(s, w, h, t):
    return State(x=s.x - h.gamma * sign(w, mean(w, grad(w, s.x))))


def _compressed(s, w, h, t):
    return State(x=s.x - h.gamma * compress(w, mean(w, grad(w, s.x))))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"L": 0}, "positive"),
        ({"L": math.nan}, "finite"),
        ({"L": "one"}, "L must be"),
        ({"mu": 2.0}, "exceeds"),
        ({"mu": -0.1}, "at least 0"),
        ({"functions": "smooth", "mu": 0.1}, "no mu"),
        ({"functions": "smoth"}, "did you mean"),
        ({"n": 0}, "at least 1"),
        ({"n": 2.5}, "whole"),
        ({"n": "all"}, "number"),
        ({"steps": 0}, "at least 1"),
        ({"steps": 1.5}, "whole"),
        ({"compressor": {"delta": 0}}, r"\(0, 1\]"),
        ({"compressor": {"delta": 1.5}}, r"\(0, 1\]"),
        ({"compressor": {"Delta2": -1}}, "at least 0"),
        ({"compressor": {"dleta": 0.5}}, "did you mean"),
        ({"compressor": {}}, "empty class"),
        ({"mixing": 2}, r"\[-1, 1\]"),
        ({"mixing": (0.5, 0.1)}, "smaller first"),
        ({"zeta2_star": -1}, "at least 0"),
        ({"initial": "distnace"}, "did you mean"),
        ({"initial": []}, "empty list"),
        ({"initial_value": 0}, "positive"),
        ({"initial_value": math.inf}, "finite"),
        ({"measure": "functiongap"}, "did you mean"),
        ({"measure": lambda s, w, h: 3.0}, "made of gap"),
        ({"measure": "ef_lyapunov"}, "no field 'e'"),
        ({"take": "lst"}, "did you mean"),
        ({"start": "fre"}, "did you mean"),
        ({"solver": "CLARABELL"}, "did you mean"),
    ],
)
def test_bad_input_is_one_sentence(change, words):
    with pytest.raises(UsageError, match=words) as caught:
        worst_case("gd", {"gamma": 0.5}, **{"steps": 2, **change})
    assert "\n" not in str(caught.value)


def test_missing_parts_are_named():
    with pytest.raises(UsageError, match="divides by zero"):
        worst_case("ef_sgd", {"gamma": 0.5}, **EF | {"compressor": {"delta": 1}})
    with pytest.raises(UsageError, match="needs the compressor's delta"):
        worst_case("ef_sgd", {"gamma": 0.5}, **EF | {"compressor": {"Delta2": 1}})
    with pytest.raises(UsageError, match="compresses"):
        worst_case("cgd", {"gamma": 0.5}, steps=1)
    with pytest.raises(UsageError, match="mixing"):
        worst_case("gossip_sgd", {"gamma": 0.5}, steps=1)


def test_what_has_no_quadratic_description_is_refused():
    with pytest.raises(Unsupported, match="sign"):
        worst_case(_method(_signed), {"gamma": 0.5}, steps=1)
    with pytest.raises(Unsupported, match="minimiser"):
        worst_case("gd", {"gamma": 0.5}, steps=1, functions="smooth", measure="grad_norm", initial="distance")
    with pytest.raises(Unsupported, match="linear"):
        worst_case("gd", {"gamma": 0.5}, steps=1, measure=lambda s, w, h: w.gap(s.x) ** 0.5)
    with pytest.raises(Unsupported, match="linear"):
        worst_case("gd", {"gamma": 0.5}, steps=1, measure=lambda s, w, h: max(w.gap(s.x), 0))


def test_a_server_side_compressor():
    """On the average the one-worker rate of compressed gd holds for any number of workers."""
    truth = max((1 - MU * (1 - S)) ** 2, (1 - 1 * (1 + S)) ** 2)
    problem = {"steps": 1, "mu": MU, "compressor": {"delta": 0.75}, "initial": "function_gap", "zeta2_star": None}
    found = worst_case(_method(_compressed), {"gamma": 1.0}, **problem)
    assert found.rigorous and abs(found.upper - truth) <= RTOL


def test_every_word_has_a_meaning_or_a_reason():
    for word in ("sign", "clip"):
        assert getattr(PepWorld, word) is getattr(World, word)


def test_a_step_may_use_numpy_on_its_hyper_parameters():
    """Floats stay floats, as in a run; fractions stay fractions."""

    def rooted(s, w, h, t):
        return State(x=s.x - np.sqrt(h.gamma) * mean(w, grad(w, s.x)))

    found = worst_case(_method(rooted), {"gamma": 0.25}, steps=2)
    assert abs(found.upper - 1 / (4 * 2 * 0.5 + 2)) <= RTOL


# --- witnesses from PEPit --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_error_feedback_with_ten_declared_functions():
    """PEPit with ten explicit workers finds the value that ours has for any number."""
    pepit = pytest.importorskip("PEPit", reason="PEPit is not installed")
    from PEPit.functions import SmoothStronglyConvexFunction

    n, problem = 10, pepit.PEP()
    functions = [problem.declare_function(SmoothStronglyConvexFunction, L=L, mu=MU) for _ in range(n)]
    x, errors = problem.set_initial_point(), [problem.set_initial_point() for _ in range(n)]
    optimum = functions[0].stationary_point()
    for f in functions[1:]:
        f.add_point((optimum, pepit.null_point, pepit.Expression()))

    def lyapunov(y, e):
        return sum((y - optimum - v) ** 2 for v in e) + sum(e[1:], e[0]) ** 2 / (n * S)

    problem.set_initial_condition(lyapunov(x, errors) <= 1)
    sent = [pepit.Point() for _ in range(n)]
    wanted = [e + GAMMA_EF * f.gradient(x) for e, f in zip(errors, functions, strict=True)]
    for m, p in zip(sent, wanted, strict=True):
        problem.add_constraint((m - p) ** 2 <= EPS * p**2)
    after = x - sum(sent[1:], sent[0]) / n
    problem.set_performance_metric(lyapunov(after, [p - m for m, p in zip(sent, wanted, strict=True)]))
    theirs = problem.solve(wrapper="cvxpy", solver="CLARABEL", verbose=0)
    ours = worst_case("ef_sgd", {"gamma": GAMMA_EF}, n=n, **EF)
    assert abs(theirs - ours.upper) <= 1e-5 * RHO_EF  # PEPit stops at Clarabel's 1e-8 on a program of order 32, unrepaired


@pytest.mark.slow
@pytest.mark.parametrize("zeta2", [0.0, 1.0])
def test_local_sgd_with_two_declared_functions(zeta2):
    """Two explicit workers, two local steps: the deviations of the reduction are exact."""
    pepit = pytest.importorskip("PEPit", reason="PEPit is not installed")
    from PEPit.functions import SmoothStronglyConvexFunction

    gamma, H, problem = 0.3, 2, pepit.PEP()
    functions = [problem.declare_function(SmoothStronglyConvexFunction, L=1.0, mu=0.0) for _ in range(2)]
    average = (functions[0] + functions[1]) / 2
    optimum = average.stationary_point()
    problem.add_constraint(sum(f.gradient(optimum) ** 2 for f in functions) / 2 <= zeta2)
    x = problem.set_initial_point()
    problem.set_initial_condition((x - optimum) ** 2 <= 1)
    for _ in range(2):
        local = [x, x]
        for _ in range(H):
            local = [y - gamma * f.gradient(y) for y, f in zip(local, functions, strict=True)]
        x = (local[0] + local[1]) / 2
    problem.set_performance_metric(average(x) - average(optimum))
    theirs = problem.solve(wrapper="cvxpy", solver="CLARABEL", verbose=0)
    ours = worst_case("local_sgd", {"gamma": gamma, "H": H}, steps=4, zeta2_star=zeta2)
    assert abs(theirs - ours.upper) <= 1e-5 * ours.upper


@pytest.mark.slow
def test_faster_than_pepit_with_the_same_solver():
    pytest.importorskip("PEPit", reason="PEPit is not installed")
    import runpy

    benchmark = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "worst_case.py"))
    (row,) = benchmark["measure"]([20], 2)
    assert row["ratio"] >= benchmark["TARGET_AT_20"]
    assert -RTOL <= row["lower"] <= 0 <= row["upper"] <= RTOL


# --- what once read wrongly ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gamma", "N"), [(100.0, 3), (30.0, 5), (2.5, 6)])
def test_large_is_not_unbounded(gamma, N):
    """Steps far beyond 2/L: (gamma L - 1)^(2N) is finite, and both ends say so; an uncontrolled measure stays unbounded."""
    found = worst_case("gd", {"gamma": gamma}, steps=N, n=1, measure="distance")
    truth = (gamma - 1) ** (2 * N)
    assert found.ok and found.lower <= truth * (1 + 1e-12) and truth * (1 - 1e-12) <= found.upper <= truth * (1 + 1e-5), str(found)
    assert worst_case("gd", {"gamma": 1.0}, steps=N, n=1, measure="distance", initial="grad_norm").status == "unbounded"
    assert worst_case("gd", {"gamma": gamma}, steps=N, n=1, measure="distance", initial="grad_norm").status in ("unbounded", "uncontrolled")


def test_scalars_that_nearly_balance_count(conic):
    """What function values leave over, within rounding of large multipliers, is added to the upper end."""
    from verify_rates.theory.worst_case import backends, bounds

    raw = backends.solve_conic(conic, 1e-9, "CLARABEL")
    dual = bounds.upper(conic, raw)
    rest = conic.A[:, sum(conic.sizes) :]
    shifted = replace(raw, z=raw.z * 1e6)  # scalars as large as those of a problem in bad units
    _, residual = bounds.slacks(conic, dual.lam, dual.nu, dual.S)
    more = bounds.upper(conic, shifted).bound.value - dual.bound.value
    assert rest.shape[1] and more == pytest.approx(2 * (1e6 - 1) * np.abs(residual) @ np.abs(raw.z[sum(conic.sizes) :]), abs=1e-15)


def test_a_small_direction_is_not_absent():
    """Entries of 1e-9 are small, not zero: leaving their direction out would lose what a slack matrix has there."""
    from verify_rates.theory.worst_case import facial

    rows = np.array([[1.0, 0.0, 0.0], [0.0, 1e-9, 0.0]])  # triangles of 2 x 2 matrices
    assert facial._compressed(rows, rows, 2)[1] == 2
    assert facial._compressed(rows, rows * [1.0, 1e-8, 1.0], 2)[1] == 1


def test_free_products_are_scalars():
    """A vector of whose square nothing speaks is left out of the Gram matrix, and its products stay."""
    import scipy.sparse as sp

    from verify_rates.theory.worst_case import assemble, facial

    A = sp.csr_array(np.array([[1.0, 1.0, 0.0]]))
    none = sp.csr_array((0, 3))
    whole = assemble.Conic(np.zeros(3), A, np.ones(1), none, none, (2, 0), 0, 1.0, 0.0, 1.0, ("a",), (None, None), np.ones(1))
    freed = facial._freed(whole)
    assert freed is not None and freed.orders == (1, 0) and freed.A.toarray().tolist() == [[1.0, 1.0]]
    assert facial._freed(replace(whole, c=np.array([0.0, 0.0, 1.0]))) is None


def test_claims_know_every_class():
    from verify_rates.theory.claims import FUNCTIONS
    from verify_rates.theory.worst_case.classes import class_names

    assert set(FUNCTIONS) == set(class_names())


def test_the_table_of_the_docs_meets_its_targets():
    """The tables that the benchmark wrote: ratios at least as asked, our ends around the truth, and feedback of ten workers."""
    import runpy

    benchmark = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "worst_case.py"))
    text = (Path(__file__).parents[1] / "docs" / "benchmarks.md").read_text()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|") and line[2].isdigit()
    ]
    assert {int(row[0]): float(row[3]) >= benchmark["TARGETS"][int(row[0])] for row in rows} == dict.fromkeys(benchmark["TARGETS"], True)
    assert all(-RTOL <= float(row[4]) <= 0 <= float(row[5]) <= RTOL for row in rows)
    low, high = benchmark["our_feedback"](benchmark["EF_WORKERS"])
    assert low <= benchmark["feedback_truth"]() <= high and f"{benchmark['feedback_truth']():.12f}" in text


# --- worst cases in few dimensions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "hyper", "given", "dimension"),
    [
        ("gd", {"gamma": 1.0}, {"steps": 1, "n": 1}, (1, 0)),
        ("gd", {"gamma": 1.0}, {"steps": 8, "n": 1}, (1, 0)),
        ("gd", {"gamma": 1.7}, {"steps": 3, "n": 1}, (1, 0)),
        ("gd", {"gamma": 1.0}, {"steps": 3, "n": 1, "mu": MU}, (1, 0)),
        ("gd", {"gamma": 1.0}, {"steps": 4, "n": 1, "functions": "smooth", "measure": "grad_norm", "initial": "gap_to_last"}, (1, 0)),
        ("nesterov", {"gamma": 1.0, "beta": [0.0, 0.25, 0.4]}, {"steps": 3, "n": 1}, (1, 0)),
        ("ef_sgd", {"gamma": GAMMA_EF}, EF, (1, 0)),
        ("local_sgd", {"gamma": 0.3, "H": 2}, {"steps": 2, "zeta2_star": 0.5}, (1, 1)),
    ],
)
def test_low_rank_worst_cases(name, hyper, given, dimension):
    """Functions of one variable (and of one more for the deviations) that reach the lower end, as the same run without asking has it."""
    full, thin = (worst_case(name, hyper, low_rank=low, **given) for low in (False, True))
    assert thin.instance.dimension == dimension and sum(full.instance.dimension) > sum(dimension)
    assert thin.rigorous and thin.upper == full.upper and full.lower * (1 - RTOL) <= thin.lower <= thin.upper
    assert_replays(thin)


def test_subgradients_need_many_dimensions():
    """Nemirovski and Yudin's bad functions have one more dimension a step: no instance in few is claimed."""
    given = {"steps": 3, "n": 1, "functions": "convex_lipschitz", "take": "best"}
    thin = worst_case("gd", {"gamma": 0.5}, low_rank=True, **given)
    assert thin.instance.dimension[0] == 4 and thin.rigorous
    assert_replays(thin)


def test_a_thin_instance_is_a_huber_function():
    """gd at step 1/L: quadratic near x*, then of constant slope 1/(2 N + 1), at distance 1."""
    N = 4
    made = worst_case("gd", {"gamma": 1.0}, steps=N, n=1, low_rank=True).instance.function()
    x0 = made.x[1, 0] - made.x[0, 0]
    slope = 1 / (2 * N + 1)
    for share in (0.05, 0.5, 0.9):
        x = made.x[0] + share * x0
        huber = share**2 / 2 if share <= slope else slope * share - slope**2 / 2
        assert abs(made(x) - made.f[0] - huber) <= 1e-4, "the largest interpolant of the points; between them it may be a little above"


def test_a_thin_point_that_violates_is_not_taken(monkeypatch):
    """Without slack the last changes leave violations: nothing is claimed of them."""
    from verify_rates.theory.worst_case import low_rank

    monkeypatch.setattr(low_rank, "SLACK", -1e-6)
    plain, thin = (worst_case("gd", {"gamma": 1.0}, steps=3, n=1, low_rank=low) for low in (False, True))
    assert thin.lower == plain.lower and thin.instance.dimension == plain.instance.dimension


@pytest.mark.parametrize(("measure", "n", "N"), [("distance", 1, 1), ("function_gap", "any", 3)])
def test_where_every_instance_ends_at_the_minimiser_the_worst_case_is_0(measure, n, N):
    """mu = L and gamma = 1/L; a claim whose grid contains that point is judged there as elsewhere."""
    found = worst_case("gd", {"gamma": 0.5}, steps=N, L=2, mu=2, n=n, measure=measure)
    assert (found.lower, found.upper, found.exact, found.rigorous, found.status) == (0, 0, True, True, "solved")
    near = worst_case("gd", {"gamma": 0.5}, steps=N, L=2, mu=1.9, n=n, measure=measure)
    assert near.lower > 0


@pytest.mark.parametrize("L", [1e300, 1e-300, 10**400])
def test_units_far_outside_double_precision_are_refused(L):
    with pytest.raises(UsageError, match="other units"):
        worst_case("gd", {"gamma": 1 / 2}, steps=1, L=L)
