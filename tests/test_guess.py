"""Closed forms guessed from the numbers of a solver, and what the symbolic check says of them."""

import math
from fractions import Fraction

import pytest
import sympy as sp

from verify_rates.proofs_check.checker import Refused
from verify_rates.proofs_check.guess import guess_closed_form
from verify_rates.proofs_check.of_descent import L, distance_slack, g, gamma, mu, x
from verify_rates.proofs_check.proof import Proof, ProofError
from verify_rates.solvers.method import UsageError
from verify_rates.theory.worst_case.solve import worst_case

F = Fraction
u = sp.Symbol("u", nonnegative=True)
GRID = [{"gamma": F(i, 5), "mu": F(j, 12)} for i in range(1, 6) for j in range(1, 6)]


def multipliers(points):
    """Of both inequalities between x and x*, for the distance after a step of gd with L = 1."""
    asked = {"steps": 1, "measure": "distance", "initial": "distance", "n": 1}
    return [worst_case("gd", {"gamma": p["gamma"]}, mu=p["mu"], **asked).multipliers["interpolation 0 1"] for p in points]


def contraction(lam):
    """The proof with this multiplier, at L = 1 and every step up to the optimal one."""
    p = Proof(region={mu: 1 / (1 + u), gamma: 2 / (1 + 1 / (1 + u)) / (1 + sp.Symbol("t", positive=True))})
    weight = gamma * (2 - gamma * (1 + mu)) / (1 - mu)
    p.implied("square", distance_slack((1 - gamma * mu) ** 2, lam).subs(L, 1), squares=[(weight, g - mu * x)])
    return p


def test_multipliers_of_a_solver_become_a_proof():
    lam = guess_closed_form(GRID, multipliers(GRID))
    assert sp.expand(lam - 2 * gamma * (1 - gamma * mu)) == 0
    assert contraction(lam).steps[0].ok


def test_a_guess_that_fits_its_numbers_only_is_refused_by_the_proof():
    """With mu at 1/12 alone the numbers do not say where mu stands."""
    points = [{"gamma": F(i, 16), "mu": F(1, 12)} for i in range(1, 17)]
    lam = guess_closed_form([{"gamma": p["gamma"]} for p in points], multipliers(points))
    assert sp.expand(lam - 2 * gamma * (1 - gamma / 12)) == 0
    with pytest.raises(ProofError, match="not 0"):
        contraction(lam)


def test_the_rate_of_error_feedback_is_a_root():
    """sqrt(rho) from worst cases, in s = sqrt(eps) and q = (L-mu)/(L+mu), solves the quadratic equation of the proof."""
    points = [{"s": F(i, 7), "q": F(j, 7)} for i in range(1, 6) for j in range(1, 6)]
    both = {"measure": "ef_lyapunov", "initial": "ef_lyapunov", "steps": 1, "start": "free", "n": 1}

    def rate(s, q):
        low = (1 - q) / (1 + q)
        step = {"gamma": 2 / (1 + low) * (1 - s) / (1 + s)}
        return math.sqrt(worst_case("ef_sgd", step, mu=low, compressor={"delta": 1 - s**2}, **both).upper)

    w = guess_closed_form(points, [rate(**p) for p in points])
    s, q = sp.symbols("s q", positive=True)
    assert sp.expand(w**2 - (1 - s) * q * w - s) == 0


def test_what_no_form_fits():
    with pytest.raises(Refused, match="degree 3"):
        guess_closed_form(GRID, [math.exp(3 * p["gamma"]) * math.cos(9 * p["mu"]) for p in GRID])
    values = [float(p["gamma"]) for p in GRID]
    for i in range(len(values)):  # one wrong number, wherever it is
        with pytest.raises(Refused):
            guess_closed_form(GRID, [v * (1 + 1e-3 * (i == j)) for j, v in enumerate(values)], degree=1)


@pytest.mark.parametrize(
    ("points", "values", "words"),
    [([], [], "points"), ([{"a": 1}], [1, 2], "one value"), ([{"a": 1}, {"b": 1}], [1, 2], "same"), ([{"a": 1}], [math.nan], "finite")],
)
def test_data_that_say_nothing(points, values, words):
    with pytest.raises(UsageError, match=words):
        guess_closed_form(points, values)
