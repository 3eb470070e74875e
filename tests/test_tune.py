"""Best parameters against closed forms, and what is not found is said."""

from __future__ import annotations

import json
import math

import pytest

from verify_rates.solvers.method import UsageError
from verify_rates.theory.contraction import contraction
from verify_rates.theory.tune import tune

# What callers are promised of parameters and of values, relatively; values are certain to 1e-6 and have kinks or are flat at the best.
RTOL = 1e-4
MU, EPS = 0.1, 0.25
S, Q = math.sqrt(EPS), (1 - MU) / (1 + MU)
GAMMA_EF = 2 / (1 + MU) * (1 - S) / (1 + S)
RHO_EF = (((1 - S) * Q + math.sqrt((1 - S) ** 2 * Q**2 + 4 * S)) / 2) ** 2


def assert_found(found, hyper, value):
    for name, truth in hyper.items():
        assert abs(found.hyper[name] - truth) <= RTOL * truth, str(found)
    assert value * (1 - 1e-9) <= found.value <= value * (1 + RTOL) and not found.edges, str(found)


def test_gd():
    found = tune("gd", mu=MU, n=1)  # over the whole range of steps
    assert_found(found, {"gamma": 2 / (1 + MU)}, Q**2)
    assert found.best.rigorous and found.best.upper == found.value


def test_compressed_gd():
    rate = (((1 + S) - (1 - S) * MU) / ((1 + S) + (1 - S) * MU)) ** 2
    found = tune("cgd", mu=MU, n=1, compressor={"delta": 1 - EPS}, over={"gamma": (1.1, 1.5)})
    assert_found(found, {"gamma": 2 / ((1 - S) * MU + (1 + S))}, rate)


@pytest.mark.parametrize(("name", "zeta2"), [("ef_sgd", 0.0), ("ef21", None)])
def test_error_feedback(name, zeta2):
    """The published step is the best of all steps, also when every step may use its own Lyapunov function."""
    found = tune(name, mu=MU, compressor={"delta": 1 - EPS}, zeta2_star=zeta2, over={"gamma": (0.5, 0.7)})
    assert_found(found, {"gamma": GAMMA_EF}, RHO_EF)


def test_step_in_other_units():
    found = tune("gd", L=100.0, mu=10.0, over={"gamma": (0.01, 0.025)})
    assert_found(found, {"gamma": 2 / 110}, Q**2)


def test_worst_case_of_one_and_two_steps():
    """1/(4 N gamma + 2) = (1 - gamma)^(2N)/2 at the best step."""
    one = tune("gd", by="worst_case", steps=1, n=1)
    assert_found(one, {"gamma": 1.5}, 1 / 8)
    two = tune("gd", by="worst_case", steps=2, n=1, over={"gamma": (0.5, 1.99)})
    g = two.hyper["gamma"]
    assert abs(1 / (8 * g + 2) - (1 - g) ** 4 / 2) <= 10 * RTOL * two.value


@pytest.mark.parametrize("mu", [0.3, 0.1, 0.01])
def test_heavy_ball_on_quadratics(mu):
    """Polyak 1964."""
    r = math.sqrt(mu)
    found = tune("heavy_ball", mu=mu, over=("gamma", "beta"), by="quadratic")
    assert_found(found, {"gamma": 4 / (1 + r) ** 2}, ((1 - r) / (1 + r)) ** 2)


def test_delayed_gd_on_quadratics():
    """At tau = 1 the modes z^2 - z + gamma lam are damped best where the least curvature has a double root or meets the largest."""
    found = tune("dd_ef_sgd", {"tau": 1}, mu=MU, by="quadratic")
    near = [
        tune("dd_ef_sgd", {"tau": 1}, mu=MU, by="quadratic", over={"gamma": (a, b)}).value for a, b in ((0.05, 0.3), (0.3, 1.0), (0.1, 2.0))
    ]
    assert found.value <= min(near) * (1 + RTOL)


@pytest.mark.slow
def test_triple_momentum_is_found_among_all_two_parameter_momenta():
    rho = 1 - math.sqrt(MU)
    found = tune("triple_momentum", mu=MU, n=1, over=("gamma", "beta", "eta"))
    assert_found(found, {"gamma": 1 + rho, "beta": rho**2 / (2 - rho), "eta": rho**2 / ((1 + rho) * (2 - rho))}, rho**2)


def test_a_place_is_proved_and_the_search_is_data():
    found = tune("gd", mu=MU, n=1, over={"gamma": (1.0, 1.9)})
    data = json.loads(found.to_json())
    assert data["best"]["upper"] == found.value and len(data["evaluations"]) == len(found.evaluations) > 10
    assert all(e["value"] >= found.value * (1 - RTOL) for e in data["evaluations"])
    assert "gamma" in str(found) and "<table>" in found._repr_html_()
    assert abs(contraction("gd", {"gamma": found.hyper["gamma"]}, mu=MU, n=1).upper - found.value) <= 1e-9


def test_the_end_of_a_range_is_said():
    assert tune("gd", mu=MU, n=1, over={"gamma": (0.1, 0.5)}).edges == ("gamma",)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"over": ("gama",)}, "did you mean"),
        ({"over": ()}, "at least one"),
        ({"over": {"gamma": (1.0, 0.5)}}, "low < high"),
        ({"over": {"gamma": (0.0, 0.5)}}, "0 < low"),
        ({"over": {"gamma": "wide"}}, "pair"),
        ({"over": {"gamma": (0.1, math.nan)}}, "low < high"),
        ({"by": "contractoin"}, "did you mean"),
        ({"hyper": {"gamma": 1.0}}, "both"),
        ({"method": "local_sgd", "over": ("H",)}, "whole"),
        ({"method": "nesterov"}, "beta"),
        ({"by": "quadratic", "n": 3}, "alone"),
        ({"by": "quadratic", "mu": 0.0}, "0 < mu"),
        ({"over": {"gamma": (3.0, 4.0)}, "mu": 2.0}, "exceeds"),
    ],
)
def test_bad_input(change, words):
    given = {"method": "gd", "hyper": None, "mu": MU} | change
    with pytest.raises(UsageError, match=words):
        tune(given.pop("method"), given.pop("hyper"), **given)


def test_nothing_finite():
    with pytest.raises(UsageError, match="no place"):
        tune("ef_sgd", mu=MU, compressor={"delta": 0.75}, zeta2_star=None, over={"gamma": (0.3, 0.4)})


# --- command line -----------------------------------------------------------------------------------------------------


def asked(*words):
    from click.testing import CliRunner

    from verify_rates.cli import main

    result = CliRunner().invoke(main, [str(w) for w in words])
    return result.exit_code, result.stdout, result.stderr


def test_contraction_on_the_command_line():
    code, out, _ = asked("contraction", "ef_sgd", "gamma=2/(L+mu)*(1-sqrt(eps))/(1+sqrt(eps))", "--mu", MU, "--delta", 1 - EPS, "--json")
    data = json.loads(out)
    assert code == 0 and abs(data["upper"] - RHO_EF) <= RTOL and data["lyapunov"]["mean_names"][0] == "x - x*"
    code, out, _ = asked("contraction", "ef_sgd", "gamma=0.1", "--mu", MU, "--delta", 1 - EPS, "--any-minimisers")
    assert code == 4 and "no fixed point" in out
    assert asked("contraction", "gd", "gamma=1", "--mu", 2)[0] == 2


def test_tune_on_the_command_line():
    code, out, _ = asked("tune", "gd", "--by", "worst_case", "--steps", 1, "--over", "gamma=1/L:1.9", "--json")
    assert code == 0 and abs(json.loads(out)["hyper"]["gamma"] - 1.5) <= RTOL
    for words, sentence in (
        (("gd", "--steps", 2), "no meaning"),
        (("gd", "--by", "worst_case"), "needs --steps"),
        (("gd", "--over", "gamma=1:0"), "low < high"),
        (("gd", "--over", "gamma=1"), "pair"),
        (("gd", "--over", "gama"), "did you mean"),
    ):
        code, _, err = asked("tune", *words)
        assert code == 2 and sentence in err
