"""Votes on signs: reductions, attackers, and checks that notice a broken formula."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from verify_rates.problems import get_problem
from verify_rates.solvers.engine.run import simulate
from verify_rates.theory.calculators import signsgd_fd as calculator

AGREE = 1e-12  # some hundred steps in double precision
ROUNDING = 1e-10  # one step of one quadratic, a difference of function values; tight in one dimension
PROBLEM = get_problem("quadratic", n=5, d=6, sigma2=0.5)


def run(method, steps=60, problem=PROBLEM, compressor="sign", **hyper):
    return simulate(method, problem, {"gamma": 0.01, **hyper}, steps=steps, compressor=compressor, engine="numpy").final


def test_one_worker_is_sign_descent():
    alone = get_problem("quadratic", n=1, d=4)
    x = np.zeros(4)
    for _ in range(60):
        x = x - 0.01 * np.sign(alone.grads(x)[0])
    for method in ("signsgd_mv", "signsgd_fd"):
        assert np.abs(run(method, problem=alone)["x"][0] - x).max() < AGREE


def test_the_first_step_of_the_defence_is_the_majority_and_attackers_change_it():
    a, b = run("signsgd_mv", steps=1), run("signsgd_fd", steps=1)
    assert np.array_equal(a["x"], b["x"])
    assert not np.array_equal(run("signsgd_mv", steps=1, attackers=3)["x"], a["x"])
    exact = get_problem("quadratic", n=5, d=6)  # no other draws than the attackers'
    assert np.array_equal(run("signsgd_mv", problem=exact, attackers=3, p=0.0)["x"], run("signsgd_mv", problem=exact)["x"])


def test_all_attackers_turn_the_majority_around():
    a, b = run("signsgd_mv", steps=1), run("signsgd_mv", steps=1, attackers=5)
    assert np.array_equal(a["x"], -b["x"])


def test_counters_forget_and_become_the_coordinates_own():
    plain = run("signsgd_fd", attackers=1)
    assert not np.array_equal(run("signsgd_fd", attackers=1, warm=5)["k"], plain["k"]) or plain["k"].std() > 0
    assert np.abs(run("signsgd_fd", attackers=1, forget=0.9)["k"]).max() <= 10 < np.abs(plain["k"]).max()


def test_the_defence_resists_where_the_majority_errs_more():
    assert (
        calculator.decoded_wrong(7, 3, 1.0, 0.2, 200, 200, 0)
        < float(calculator.majority_error([Fraction(4, 5)] * 3 + [Fraction(1, 5)] * 4)) / 3
    )


def test_exact_errors_are_those_of_the_votes_pattern_by_pattern():
    p = [Fraction(1, 10), Fraction(3, 10), Fraction(4, 10), Fraction(7, 10)]
    weighted = majority = Fraction(0)
    weights = [math.log((1 - q) / q) for q in p]
    for wrong in itertools.product((1, -1), repeat=4):
        chance = math.prod(q if w < 0 else 1 - q for q, w in zip(p, wrong, strict=True))
        weighted += chance * (np.dot(weights, wrong) < 0)
        majority += chance * (Fraction(1) if sum(wrong) < 0 else Fraction(1, 2) if sum(wrong) == 0 else Fraction(0))
    assert calculator.weighted_error(p) == weighted and calculator.majority_error(p) == majority
    assert calculator.weighted_error(p) < calculator.majority_error(p)
    equal = [Fraction(1, 3)] * 5
    assert calculator.weighted_error(equal) == calculator.majority_error(equal)


def test_a_half_is_the_worst_flip_and_no_attacker_the_best():
    errors = [
        calculator.weighted_error([Fraction(3, 10)] * 4 + [Fraction(3, 10) * (1 - 2 * r) + r]) for r in map(Fraction, (0, "1/4", "1/2"))
    ]
    assert errors[0] < errors[1] < errors[2]


@pytest.mark.parametrize(
    ("name", "value", "call"),
    [
        ("FLIPPED", "p + b - p*b", lambda: calculator.channel(4)),
        ("DESCENT", "gamma**2*a/8", lambda: calculator.descent(0, 1)),
        ("TUNED", "sqrt(2*F0*a/N)/(1-2*p)/3", lambda: calculator.chain(0, 2, 4, 0.2)),
        ("WEIGHTED", 0.4, lambda: calculator.weighted_bounds(0, 1, 10)),
    ],
)
def test_broken_formulas_are_refuted(monkeypatch, name, value, call):
    assert call().lower <= call().bound * (1 + ROUNDING)
    monkeypatch.setattr(calculator, name, value)
    assert call().lower > call().bound


def test_other_statements_break_too(monkeypatch):
    found = calculator.majority_bound(0, 7, 20, power=2.0)
    assert found.lower > found.bound
    assert calculator.reference(3, "MV", 0.1545).lower > 5e-5
    monkeypatch.setattr(calculator, "weighted_error", calculator.majority_error)
    assert calculator.inversion(0, 4).lower > 0 and calculator.stochastic(0, 7, 2).lower > 0
