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
from verify_rates.theory.planner import OBJECTIVES, UNREACHED, Choice, plan, steps_needed
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


# --- sensitivity ------------------------------------------------------------------------------------------------------

PLACES = {"compute": [0.02, 2.0], "latency": [0.0, 0.1, 10.0], "bandwidth": [1e6, 1e8, 1e10]}


@pytest.fixture(scope="module")
def planned():
    return plan(**NETWORK, target=1e-2, letters=LETTERS | {"sigma2": 1.0}, over=SMALL)


@pytest.fixture(scope="module")
def surveyed(planned):
    return planned.sensitivity(**PLACES)


def test_the_best_choice_everywhere_is_that_of_a_plan_made_there(planned, surveyed):
    for at in np.ndindex(2, 3, 3):
        network = {name: PLACES[name][i] for name, i in zip(PLACES, at, strict=True)}
        given = {**NETWORK, **network, "target": 1e-2, "letters": LETTERS | {"sigma2": 1.0}}
        there = plan(**given, over=SMALL)
        (ours,) = plan(**given, over={k: (v,) for k, v in planned.optimum.hyper.items()}).table  # a rule's, no point of the grid
        best = min([ours, *there.table], key=lambda c: c.seconds)
        assert np.array(surveyed.seconds)[at] == pytest.approx(best.seconds, rel=1e-12)
        if sum(c.seconds <= best.seconds * (1 + 1e-12) for c in there.table) == 1:  # no tie
            assert {k: np.array(v)[at] for k, v in surveyed.best.items()} == best.hyper
        assert np.array(surveyed.regret)[at] == pytest.approx(ours.seconds / best.seconds - 1, abs=1e-12)
        plain = next(c for c in there.table if c.hyper == {"tau": 0, "delta": 1.0})
        assert np.array(surveyed.gain)[at] == pytest.approx(plain.seconds / best.seconds, rel=1e-12)
        assert np.array(surveyed.limit)[at] in ("compute", "link", "feedback loop")
    assert len({tuple(np.array(v)[at] for v in surveyed.best.values()) for at in np.ndindex(2, 3, 3)}) > 3  # the map is no single colour


def test_a_period_is_chosen_by_the_network():
    """Graphs of hundreds of tasks, whose cycles are too many to list."""
    problem = {"name": "logistic", "data": "breast_cancer", "n": 4, "lam": 0.1, "sigma2": 0.5, "shards": "copies"}
    made = plan("local_sgd", **NETWORK, target=0.05, problem=problem)
    found = made.sensitivity(latency=[0.01, 10.0], bandwidth=[1e7, 1e10])
    for i, latency in enumerate((0.01, 10.0)):
        for j, bandwidth in enumerate((1e7, 1e10)):
            there = plan("local_sgd", **{**NETWORK, "latency": latency, "bandwidth": bandwidth}, target=0.05, problem=problem)
            assert found.seconds[0][i][j] == pytest.approx(there.optimum.seconds, rel=1e-12)
    assert found.best["H"][0][1][0] > found.best["H"][0][0][1]


def test_a_survey_solves_few_graphs_and_forgets_none(planned, monkeypatch):
    from verify_rates.theory import sensitivity

    solved, solve = [], sensitivity._Paces.solve
    monkeypatch.setattr(sensitivity._Paces, "solve", lambda self, i, k: solved.append((i, k)) or solve(self, i, k))
    found = planned.sensitivity()
    cells = np.size(found.seconds)
    assert cells == 169 and len(solved) < 5 * cells < len(planned.table) * cells / 5
    monkeypatch.setattr(sensitivity._Paces, "best", lambda self, k, steps: solve(self, 0, k) and 0)  # one that stops at the first
    assert np.max(np.array(planned.sensitivity().seconds) / np.array(found.seconds)) > 2


def test_time_falls_with_the_bandwidth_and_grows_with_latency_and_compute(surveyed, planned):
    seconds, slack = np.array(surveyed.seconds), 1e-12 * np.max(surveyed.seconds)
    assert (
        (np.diff(seconds, axis=0) >= -slack).all()
        and (np.diff(seconds, axis=1) >= -slack).all()
        and (np.diff(seconds, axis=2) <= slack).all()
    )
    assert np.min(surveyed.regret) >= -1e-12 and np.min(surveyed.gain) >= 1 - 1e-12
    here = planned.sensitivity(latency=["1s"])
    assert here.seconds == [[[pytest.approx(planned.optimum.seconds)]]] and here.regret == [[[pytest.approx(0, abs=1e-12)]]]


def test_its_picture_and_its_text(surveyed, planned, tmp_path):
    figure = surveyed.plot(tmp_path / "s.png")
    titles = [a.get_title() for a in figure.axes if a.get_title()]
    assert len(titles) == 2 * 3 and titles[0] == "best tau, compute 0.02 s" and (tmp_path / "s.png").stat().st_size > 5000
    told = [t.get_text() for t in figure.axes[0].texts]
    assert told == [f"{v:.3g}" for v in np.ravel(surveyed.best["tau"][0])]
    stars = [line for a in planned.sensitivity().plot().axes for line in a.lines if line.get_marker() == "*"]
    assert len(stars) == 3 and stars[0].get_xydata().tolist() == [[6.5, 6.5]]  # in the middle of 13 cells
    assert json.loads(surveyed.to_json())["axes"] == PLACES
    assert "longer than the best at worst" in str(surveyed) and "times as fast as the synchronous" in str(surveyed)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"latency": [1, 1]}, "increase"),
        ({"latency": []}, "at least one"),
        ({"bandwidth": ["1Gb/s"]}, "ambiguous"),
        ({"bandwidth": [0]}, "positive"),
        ({"compute": [math.nan]}, "finite"),
    ],
)
def test_bad_places_are_one_sentence(planned, given, words):
    with pytest.raises(UsageError, match=words):
        planned.sensitivity(**given)


def test_the_command_surveys(tmp_path):
    given = ["plan", "gd", "--compute", "200ms", "--latency", "1s", "--bandwidth", "100Mbit/s", "--d", "100000", "--target", "0.05"]
    given += [w for k, v in {"L": 1, "mu": 0.1, "V0": 1.0, "R2": 1.0, "F0": 1.0}.items() for w in ("--letter", f"{k}={v}")]
    for name in ("s.png", "s.json"):
        done = CliRunner().invoke(main, [*given, "--sensitivity", str(tmp_path / name)])
        assert done.exit_code == 0 and "longer than the best at worst" in done.stdout
    found = json.loads((tmp_path / "s.json").read_text())
    assert np.shape(found["seconds"]) == (1, 13, 13) and (tmp_path / "s.png").stat().st_size > 5000
    assert CliRunner().invoke(main, [*given, "--sensitivity", str(tmp_path / "s.txt")]).exit_code == 2


def test_a_choice_that_never_arrives_says_so():
    """Nothing of its 1e300 steps is told as a number of steps."""
    never = Choice("a rule", {"tau": 6.0}, UNREACHED, None, 1e-25, 0.5, "compute", UNREACHED, UNREACHED)
    assert str(never) == "a rule: tau = 6; no number of steps is proved to reach the target (a step takes 0.5 s)"
