"""The planner: never worse than a rule it contains, its steps exactly those of the claim, its pace that of the time line."""

import dataclasses
import json
import math

import numpy as np
import pytest
import sympy as sp
from click.testing import CliRunner

from verify_rates.cli import main
from verify_rates.solvers.method import UsageError
from verify_rates.theory import planner
from verify_rates.theory.claims import claims
from verify_rates.theory.planner import OBJECTIVES, plan, steps_needed
from verify_rates.theory.symbols import number, parse
from verify_rates.theory.timeline import timeline

LETTERS = {"n": 10, "L": 1, "F0": 1, "sigma2": 0.1, "zeta2_sup": 0.1}
NETWORK = {"compute": "200ms", "latency": "1s", "bandwidth": "100Mbit/s", "d": 12_500_000}
SMALL = {"tau": range(9), "delta": (1.0, 0.5, 0.1, 0.02)}


def test_no_rule_is_better_on_random_networks():
    rng, seen = np.random.default_rng(0), set()
    for _ in range(12):
        compute, latency, tx = 10.0 ** rng.uniform(-2, 1, 3)
        letters = LETTERS | {"sigma2": float(10 ** rng.uniform(-4, 1)), "zeta2_sup": float(10 ** rng.uniform(-4, 1))}
        d = int(rng.integers(1000, 10**7))
        made = plan(compute=compute, latency=latency, bandwidth=32 * d / tx, d=d, target=1e-2, letters=letters, over=SMALL)
        assert all(rule.regret >= 0 and rule.seconds >= made.optimum.seconds for rule in made.rules)
        assert made.optimum.seconds == min(c.seconds for c in (*made.table, *made.rules))
        seen.add(made.optimum.hyper["tau"])
    assert len(seen) > 2  # the optimum moves


def test_the_optimum_counts_what_rules_pick():
    """A rule may pick a point between those of the grid: the optimum is at least as good."""
    letters = LETTERS | {"sigma2": 1e-6, "zeta2_sup": 1e-6}
    made = plan(**NETWORK, target=1e-3, letters=letters, over={"tau": (0,), "delta": (1e-3,)})
    assert made.optimum.seconds < min(c.seconds for c in made.table)


@pytest.mark.parametrize("hyper", [{"tau": 0, "delta": 1.0}, {"tau": 4, "delta": 0.3}])
def test_steps_are_the_fewest_of_the_bound(hyper):
    claim = claims()["deco.5"]
    N, c = steps_needed(claim, LETTERS, 1e-2)(hyper)
    values = {**LETTERS, **hyper, "c": c}
    values["gamma"] = number(parse(claim.lets["gamma"]), values)
    assert number(parse(claim.bound), {**values, "N": N}) <= 1e-2 < number(parse(claim.bound), {**values, "N": N - 1})
    for other in (0.5 * c, min(1.0, 2 * c), 1.0):  # no better step size
        values["gamma"] = number(parse(claim.lets["gamma"]), {**values, "c": other})
        assert number(parse(claim.bound), {**values, "N": N - 1}) > 1e-2


def test_the_steps_are_those_of_the_best_step_size_in_closed_form():
    """At tau = 0 and delta = 1 the bound of deco.5 is a/(gamma*N) and a rest without N: the least N by a fine search in gamma."""
    claim, letters = claims()["deco.5"], {**LETTERS, "tau": 0.0, "delta": 1.0}
    gammas = np.exp(np.linspace(-12, 0, 20_001)) * number(parse(claim.lets["gamma"]), {**letters, "c": 1.0})
    bound = sp.lambdify([sp.Symbol("gamma"), sp.Symbol("N")], _plain(parse(claim.bound), letters), "numpy")
    first = (bound(gammas, 1.0) - bound(gammas, 2.0)) * 2  # a/gamma
    left = 1e-2 - (bound(gammas, 1.0) - first)
    best = np.min(first[left > 0] / left[left > 0])
    assert steps_needed(claim, LETTERS, 1e-2)({"tau": 0, "delta": 1.0})[0] == pytest.approx(best, rel=1e-6, abs=1)


def _plain(expression, letters):
    """The expression at some letters, the others as symbols without assumptions."""
    return expression.subs({s: letters.get(s.name, sp.Symbol(s.name)) for s in expression.free_symbols})


def test_arrays_are_points_one_by_one():
    needed = steps_needed(claims()["deco.5"], LETTERS, 1e-2)
    taus, deltas = np.array([[0.0], [3.0]]), np.array([[1.0, 0.3, 0.01]])
    taus, deltas = np.broadcast_arrays(taus, deltas)
    N, c = needed({"tau": taus, "delta": deltas})
    assert N.shape == c.shape == (2, 3)
    for at in np.ndindex(2, 3):
        assert (N[at], c[at]) == needed({"tau": float(taus[at]), "delta": float(deltas[at])})


def test_steps_notice_a_broken_bound():
    claim, hyper = claims()["deco.5"], {"tau": 2.0, "delta": 0.5}
    right = steps_needed(claim, LETTERS, 1e-2)(hyper)[0]
    twice = dataclasses.replace(claim, bound=claim.bound.replace("4*F0", "8*F0"))
    assert steps_needed(twice, LETTERS, 1e-2)(hyper)[0] == pytest.approx(2 * right, abs=2)


def test_an_accuracy_out_of_reach_is_infinite():
    """With the step size bounded from below by nothing every accuracy is reached; with a constant term in the bound it is not."""
    claim, hyper = claims()["deco.5"], {"tau": 2.0, "delta": 0.5}
    floor = dataclasses.replace(claim, bound=f"{claim.bound} + sigma2")
    assert steps_needed(floor, LETTERS, 1e-2)(hyper)[0] == math.inf
    assert math.isfinite(steps_needed(claim, LETTERS, 1e-2)(hyper)[0])


def test_the_pace_is_that_of_the_time_line_with_indices():
    made = plan(**NETWORK, target=1e-2, letters=LETTERS, over={"tau": (2,), "delta": (0.01,)})
    (point,) = made.table
    sent = 125_000 * (32 + 24) / (32 * 12_500_000)
    line = timeline("dd_ef_sgd", {"tau": 2}, compute=0.2, latency=1, bandwidth=1e8, size=5e7, bytes_share=sent, steps=1)
    assert point.bytes_share == pytest.approx(sent) and point.seconds_per_step == line.seconds_per_step


def test_the_reference_example_of_decos_rule():
    """papers/deco.md: T_comp = .2, latency 1.19 s, 1 Gbit/s, 50 MB: phi_A takes (6, 0.025), phi_B and the additive objective (7, 0.5)."""
    network = {"compute": 0.2, "latency": 1.19, "bandwidth": 1e9, "size": 50e6}
    picked = planner._rules({"tau": list(range(17)), "delta": [1.0]}, network)
    assert picked["DeCo by phi_A"] == {"tau": 6, "delta": pytest.approx(0.025)}
    for name in ("phi_B", "additive"):
        assert picked[f"DeCo by {name}"] == {"tau": 7, "delta": pytest.approx(0.5)}
    assert OBJECTIVES["phi_B"](3, 1.0) == 0


@pytest.mark.parametrize("method", ["gd", "local_sgd"])
def test_other_methods_and_claims(method):
    problem = {"name": "logistic", "data": "breast_cancer", "n": 4, "lam": 0.1, "sigma2": 0.5, "shards": "copies"}
    made = plan(method, **NETWORK, target=0.05, problem=problem)
    assert made.claim in claims() and made.optimum.steps >= 1
    assert method == "gd" or made.optimum.hyper["H"] > 1


BAD = {
    "target": ({"target": 0}, "positive number"),
    "nan": ({"target": math.nan}, "positive number"),
    "d": ({"d": 0}, "whole number"),
    "claim": ({"claim": "deco.55"}, "did you mean"),
    "claim of another": ({"claim": "rates.1"}, "is about gd"),
    "letters": ({"letters": {"L": 1}}, "needs"),
    "varied": ({"over": {"H": (1,)}}, "quantity to vary"),
    "delta": ({"over": {"delta": (0.0,)}}, r"\(0, 1\]"),
    "tau": ({"over": {"tau": (0.5,)}}, "whole numbers"),
    "empty": ({"over": {"tau": ()}}, "whole numbers"),
    "compressor": ({"compressor": "sign"}, "compressor"),
    "bandwidth": ({"bandwidth": "1Gb/s"}, "ambiguous"),
    "method": ({"method": "dd_ef_sg"}, "dd_ef_sgd"),
    "no claim": ({"method": "adam"}, "no claim"),
}


@pytest.mark.parametrize(("change", "words"), BAD.values(), ids=BAD)
def test_bad_input_is_one_sentence(change, words):
    with pytest.raises(UsageError, match=words):
        plan(**{**NETWORK, "target": 1e-2, "letters": LETTERS, "over": SMALL} | change)


def test_the_command(tmp_path):
    given = ["plan", "dd_ef_sgd", "--compute", "200ms", "--latency", "1s", "--bandwidth", "100Mbit/s", "--d", "100000", "--target", "0.05"]
    letters = [w for k, v in LETTERS.items() for w in ("--letter", f"{k}={v}")]
    done = CliRunner().invoke(main, [*given, *letters, "--json", "--plot", str(tmp_path / "p.png")])
    made = json.loads(done.stdout)
    assert done.exit_code == 0 and made["optimum"]["seconds"] <= min(r["seconds"] for r in made["rules"])
    assert (tmp_path / "p.png").stat().st_size > 1000
    assert CliRunner().invoke(main, [*given, "--letter", "L=1"]).exit_code == 2
