"""Contractions against closed forms, against worst cases of the Lyapunov function found, and against runs."""

from __future__ import annotations

import dataclasses
import json
import math
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from verify_rates.problems import get_problem
from verify_rates.solvers.engine.run import simulate
from verify_rates.solvers.method import Method, UsageError
from verify_rates.solvers.words import Shared, Unsupported, grad, mean
from verify_rates.theory import contraction as contractions
from verify_rates.theory.contraction import AGREE, contraction
from verify_rates.theory.worst_case.solve import worst_case

# What callers are promised: ends closer to the truth than this, relatively.
RTOL = 1e-5
# An end may pass a formula evaluated in double precision by its rounding.
ROUNDING = 1e-12
L, MU, EPS = 1.0, 0.1, 0.25
S = math.sqrt(EPS)


def rho_ef(mu=MU, eps=EPS):
    s, q = math.sqrt(eps), (L - mu) / (L + mu)
    return (((1 - s) * q + math.sqrt((1 - s) ** 2 * q**2 + 4 * s)) / 2) ** 2


def gamma_ef(mu=MU, eps=EPS):
    return 2 / (L + mu) * (1 - math.sqrt(eps)) / (1 + math.sqrt(eps))


def triple(mu):
    """The parameters and the rate of Van Scoy, Freeman, Lynch 2018."""
    rho = 1 - math.sqrt(mu / L)
    return {"gamma": (1 + rho) / L, "beta": rho**2 / (2 - rho), "eta": rho**2 / ((1 + rho) * (2 - rho))}, rho**2


def assert_tight(found, truth, rtol=RTOL):
    assert found.ok and found.rigorous, str(found)
    assert found.lower <= truth * (1 + rtol) and found.upper >= truth * (1 - ROUNDING), str(found)
    assert found.upper - found.lower <= 2 * rtol * truth and abs(found.upper - truth) <= rtol * truth, str(found)


@cache
def ef(n="any"):
    return contraction("ef_sgd", {"gamma": gamma_ef()}, mu=MU, n=n, compressor={"delta": 1 - EPS})


# --- closed forms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, "any", 7])
@pytest.mark.parametrize("gamma", [0.5, 1.0, 1.9, 2.2])
def test_gd(n, gamma):
    """Also where it diverges."""
    assert_tight(contraction("gd", {"gamma": gamma}, mu=MU, n=n), max((1 - gamma) ** 2, (1 - gamma * MU) ** 2))


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2 / ((1 - S) * MU + (1 + S) * L)])
def test_compressed_gd(gamma):
    truth = max((1 - gamma * MU * (1 - S)) ** 2, (1 - gamma * L * (1 + S)) ** 2)
    assert_tight(contraction("cgd", {"gamma": gamma}, mu=MU, n=1, compressor={"delta": 1 - EPS}), truth)


@pytest.mark.parametrize("n", [1, 2, "any"])
@pytest.mark.parametrize(("mu", "eps"), [(0.1, 0.25), (0.1, 0.81), (0.01, 0.25), (0.5, 0.04)])
def test_error_feedback(n, mu, eps):
    """Berg Thomsen, Taylor, Dieuleveut: the rate of both methods at the best step, for every number of workers."""
    problem = {"mu": mu, "n": n, "compressor": {"delta": 1 - eps}}
    for name, zeta2 in (("ef_sgd", 0.0), ("ef21", None)):
        assert_tight(contraction(name, {"gamma": gamma_ef(mu, eps)}, zeta2_star=zeta2, **problem), rho_ef(mu, eps))


@pytest.mark.parametrize("mu", [0.3, 0.1, 0.01])
def test_triple_momentum(mu):
    hyper, truth = triple(mu)
    assert_tight(contraction("triple_momentum", hyper, mu=mu), truth)


@pytest.mark.parametrize("mu", [0.3, 0.1, 0.01])
def test_nesterov_lies_between_quadratics_and_its_theorem(mu):
    """Nesterov 2004, Theorem 2.2.3: 1 - sqrt(mu/L); on quadratics (1 - sqrt(mu/L))^2 at the least curvature."""
    root = math.sqrt(mu)
    found = contraction("nesterov", {"gamma": 1.0, "beta": (1 - root) / (1 + root)}, mu=mu)
    assert found.rigorous and (1 - root) ** 2 <= found.lower and found.upper <= 1 - root
    assert found.upper - found.lower <= AGREE * found.upper


def test_heavy_ball_is_the_same_in_both_writings():
    a = contraction("heavy_ball", {"gamma": 0.8, "beta": 0.2}, mu=MU)
    b = contraction("triple_momentum", {"gamma": 0.8, "beta": 0.2, "eta": 0.0}, mu=MU)
    assert a.rigorous and b.rigorous and abs(a.upper - b.upper) <= RTOL * a.upper
    assert a.upper < contraction("gd", {"gamma": 0.8}, mu=MU).lower


def test_heavy_ball_of_quadratics_does_not_contract_on_the_class():
    """The best parameters on quadratics cycle on some smooth strongly convex functions (Lessard, Recht, Packard 2016, L/mu = 25)."""
    root = math.sqrt(1 / 25)
    found = contraction("heavy_ball", {"gamma": 4 / (1 + root) ** 2, "beta": ((1 - root) / (1 + root)) ** 2}, mu=1 / 25)
    assert not found.ok or found.lower > 1


@pytest.mark.parametrize("H", [1, 2, 4])
def test_local_sgd_per_round(H):
    """With a common minimiser H local steps contract as H gd steps do."""
    assert_tight(contraction("local_sgd", {"gamma": 0.3, "H": H}, mu=MU), (1 - 0.3 * MU) ** (2 * H))


def test_delay_and_overlap():
    assert_tight(contraction("acco", {"gamma": 0.5}, mu=MU), (1 - 0.5 * MU) ** 2)
    z = max(np.abs(np.roots([1, -1, 0.3 * MU])))
    assert_tight(contraction("dd_ef_sgd", {"gamma": 0.3, "tau": 1}, mu=MU, compressor={"delta": 1}), z**2)


def test_gossip_has_an_upper_end_alone_unless_its_spectrum_is_one_point():
    bound = contraction("gossip_sgd", {"gamma": 0.5}, mu=MU, mixing=0.5)
    assert bound.ok and bound.lower <= (1 - 0.5 * MU) ** 2 <= bound.upper * (1 + ROUNDING)
    assert_tight(contraction("gossip_sgd", {"gamma": 0.5}, mu=MU, mixing=(0.5, 0.5)), (1 - 0.5 * MU) ** 2)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_do_not_matter(scale):
    for name, zeta2 in (("ef_sgd", 0.0), ("ef21", None)):
        problem = {"L": scale, "mu": MU * scale, "compressor": {"delta": 1 - EPS}, "zeta2_star": zeta2}
        assert_tight(contraction(name, {"gamma": gamma_ef() / scale}, **problem), rho_ef())


def test_mu_equal_to_L():
    assert_tight(contraction("gd", {"gamma": 0.5}, mu=1.0), 0.25)


# --- the Lyapunov function --------------------------------------------------------------------------------------------


def test_the_check_is_a_worst_case_that_anyone_can_repeat():
    found = ef()
    again = worst_case(
        "ef_sgd",
        {"gamma": gamma_ef()},
        steps=1,
        mu=MU,
        compressor={"delta": 1 - EPS},
        initial=found.lyapunov,
        measure=found.lyapunov,
        start="free",
    )
    assert again.rigorous and again.upper == found.upper
    assert abs(again.instance.replay() - again.lower) <= RTOL


def test_known_function_is_no_better():
    known = worst_case(
        "ef_sgd",
        {"gamma": gamma_ef()},
        steps=1,
        mu=MU,
        compressor={"delta": 1 - EPS},
        initial="ef_lyapunov",
        measure="ef_lyapunov",
        start="free",
    )
    assert ef().lower <= known.upper


def spoiled(V, seed):
    """The same features with another positive definite form."""
    rng = np.random.default_rng(seed)

    def form(P):
        R = rng.standard_normal(P.shape)
        return R @ R.T + 0.1 * np.eye(len(P))

    return dataclasses.replace(V, P_mean=form(V.P_mean), P_dev=form(V.P_dev), gaps={k: rng.uniform(0, 2) for k in V.gaps})


@pytest.mark.parametrize("seed", range(6))
def test_no_other_function_beats_the_lower_end(seed):
    V = spoiled(ef().lyapunov, seed)
    problem = {"steps": 1, "mu": MU, "compressor": {"delta": 1 - EPS}, "initial": V, "measure": V, "start": "free"}
    found = worst_case("ef_sgd", {"gamma": gamma_ef()}, **problem)
    assert found.rigorous and found.upper > ef().lower * (1 + RTOL), "a form drawn at random is far from the best"


def test_a_wrong_function_is_noticed():
    V = ef().lyapunov
    wrong = dataclasses.replace(V, P_mean=V.P_mean * np.where(np.eye(len(V.P_mean)), 1, 0.99))
    problem = {"steps": 1, "mu": MU, "compressor": {"delta": 1 - EPS}, "initial": wrong, "measure": wrong, "start": "free"}
    found = worst_case("ef_sgd", {"gamma": gamma_ef()}, **problem)
    assert not found.ok or found.lower > ef().upper * (1 + RTOL)


def test_a_lower_end_is_not_shown_above_the_rate():
    """The instance behind the lower end shows nothing at rates that are reached."""
    from verify_rates.theory import contraction as module

    seen = []
    honest = module._shows

    def recorded(posed, z, rho):
        seen.append((posed, z))
        return honest(posed, z, rho)

    module._shows, kept = recorded, module._shows
    try:
        found = contraction("gd", {"gamma": 1.0}, mu=MU, n=1)
    finally:
        module._shows = kept
    assert seen and all(not honest(posed, z, found.upper) for posed, z in seen)


@pytest.mark.parametrize("name", ["gd", "ef_sgd", "ef21"])
def test_runs_decrease_it(name):
    """V falls at least at the rate on a quadratic with top-1, step by step."""
    d = 4
    given = {"n": 3, "d": d, "L": L, "mu": MU, "common": False, "zeta2_star": 0.0}
    V = contraction(name, {"gamma": 0.2}, mu=MU, compressor={"delta": 1 / d}).lyapunov
    rate = contraction(name, {"gamma": 0.2}, mu=MU, compressor={"delta": 1 / d}).upper
    run = simulate(
        name, get_problem("quadratic", **given), {"gamma": 0.2}, steps=30, compressor="topk(k=1)", measures=[V], engine="numpy", every=1
    )
    (values,) = run.values.values()
    assert np.all(values[:, 1:] <= rate * values[:, :-1] * (1 + RTOL) + 1e-14 * values[:, :1])


# --- what does not contract -------------------------------------------------------------------------------------------


def test_nothing_contracts_without_strong_convexity():
    found = contraction("gd", {"gamma": 1.0}, mu=0.0)
    assert found.upper >= 1 - ROUNDING and found.lower < 1


@pytest.mark.parametrize(("name", "hyper"), [("ef_sgd", {"gamma": 0.2}), ("local_sgd", {"gamma": 0.3, "H": 2})])
def test_no_fixed_point_no_contraction(name, hyper):
    """With different minimisers x* is no fixed point of error feedback, nor of local steps."""
    found = contraction(name, hyper, mu=MU, compressor={"delta": 0.75}, zeta2_star=None)
    assert found.status == "no fixed point" and not found.ok and found.upper == math.inf and "nothing contracts" in str(found)
    assert json.loads(found.to_json())["upper"] is None


class Memory(NamedTuple):
    x: Shared
    m: Shared


class Step(NamedTuple):
    gamma: float


def forgetful(s, w, h, t):
    """Gradient descent beside a memory that is reset in every step."""
    return Memory(x=s.x - h.gamma * mean(w, grad(w, s.x)), m=0 * s.x)


def test_a_field_that_is_forgotten_does_not_help():
    """A V of the memory alone vanishes after one step and says nothing about x."""
    found = contraction(Method("forgetful", forgetful, Memory, Step), {"gamma": 1.0}, mu=MU)
    assert_tight(found, (1 - MU) ** 2)
    blind = dataclasses.replace(found.lyapunov, P_mean=np.diag([0.0, 1.0, 0.0]), P_dev=0 * found.lyapunov.P_dev, gaps={"x": 0.0})
    assert blind.mean_names[1] == "m"
    given = {"steps": 1, "mu": MU, "initial": blind, "measure": blind, "start": "free"}
    nothing = worst_case(Method("forgetful", forgetful, Memory, Step), {"gamma": 1.0}, **given)
    assert nothing.lower == nothing.upper == 0  # nothing of it is left after the step: true, and no contraction of the method


# --- results and refusals ---------------------------------------------------------------------------------------------


def test_a_result_is_data():
    found = ef()
    data = json.loads(found.to_json())
    names = data["lyapunov"]["mean_names"]
    assert names == ["x - x*", "e", "grad(x)"] and np.shape(data["lyapunov"]["P_mean"]) == (3, 3)
    assert data["lower"] == found.lower and data["statement"]["delta"] == 1 - EPS and data["check"]["status"] == "solved"
    assert "<table>" in found._repr_html_() and "verified" in str(found)
    with pytest.raises(TypeError, match="upper"):
        float(found)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"mu": 2.0}, UsageError, "exceeds"),
        ({"mu": math.nan}, UsageError, "finite"),
        ({"zeta2_star": 1.0}, UsageError, "scale"),
        ({"hyper": {"gamma": [0.1, 0.2]}}, UsageError, "constant"),
        ({"hyper": {"gama": 0.1}}, UsageError, "gamma"),
        ({"method": "gdd"}, UsageError, "did you mean"),
        ({"functions": "smooth", "mu": 0.0}, Unsupported, "minimiser"),
        ({"compressor": {"Delta2": 1.0}}, Unsupported, "absolute"),
    ],
)
def test_refusals(change, error, words):
    given = {"method": "gd", "hyper": {"gamma": 0.5}, "mu": MU} | change
    with pytest.raises(error, match=words):
        contraction(given.pop("method"), given.pop("hyper"), **given)


# --- outcomes that are no contraction, each by its name ----------------------------------------------------------------


def gd_at(gamma, **problem):
    return contraction("gd", {"gamma": gamma}, **{"n": 1} | problem)


def test_at_rest_after_one_round():
    """mu = L, gamma = 1/L: x* is reached at once."""
    for n in (1, "any"):
        found = gd_at(1.0, mu=1.0, n=n)
        assert found.status == "at rest" and found.ok and found.contracts and found.upper == 0, str(found)
    near = gd_at(1.0, mu=0.999)
    assert near.status == "solved" and near.upper == pytest.approx(1e-6, rel=1e-3)
    half = gd_at(0.5, mu=1.0)
    assert half.status == "solved" and half.upper == pytest.approx(0.25, rel=1e-6)


def test_a_factor_of_one_or_more_is_called_no_contraction():
    for gamma, mu, factor in ((1.0, 0.0, 1.0), (3.0, 0.1, 4.0)):
        found = gd_at(gamma, mu=mu)
        assert found.ok and not found.contracts and found.upper == pytest.approx(factor, rel=1e-5)
        assert str(found).startswith("no contraction is proved: factor per round in [")
    assert gd_at(1.0, mu=0.1).contracts and str(gd_at(1.0, mu=0.1)).startswith("contraction per round in [")


def test_outcomes_differ_by_status_and_sentence(monkeypatch):
    """No V at all, a V that controls nothing, a V that is not proved, and a solver that failed are told apart."""
    seen = {}
    moved = contraction("ef_sgd", {"gamma": 0.1}, mu=0.1, compressor={"delta": 0.75}, zeta2_star=None)
    seen[moved.status] = moved
    late = contraction("co2", {"gamma": 0.1, "H": 1, "tau": 1, "beta": 0.1}, mu=0.1)
    seen[late.status] = late
    solve = contractions._margin
    monkeypatch.setattr(contractions, "_margin", lambda *given: (None, math.nan, None, "MaxTime"))
    failed = gd_at(1.0, mu=0.1)
    seen[failed.status] = failed
    monkeypatch.setattr(contractions, "_margin", solve)
    check = contractions.worst_case
    monkeypatch.setattr(contractions, "worst_case", lambda *a, **k: dataclasses.replace(check(*a, **k), rigorous=False))
    unproved = gd_at(1.0, mu=0.1)
    seen[unproved.status] = unproved
    assert set(seen) == {"no fixed point", "no metric", "failed", "not verified"}, seen
    assert all(not found.ok and not found.contracts and found.upper == math.inf and len(found.why) > 40 for found in seen.values())
    assert len({found.why for found in seen.values()}) == len(seen)
