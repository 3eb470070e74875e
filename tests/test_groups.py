"""EF21 over groups of workers: the equal case in closed form, unequal ones between two independent ends, any number of workers."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from verify_rates.solvers.method import UsageError
from verify_rates.theory import groups
from verify_rates.theory.contraction import contraction
from verify_rates.theory.groups import ef21_cubic, ef21_groups

RTOL = 1e-6  # of the lower end
APART = 1.1e-5  # the third of the steps in which the upper end is looked for
UNEQUAL = [((1.0, 0.1), (1.0, 0.5), 0.25), ((1.0, 0.2), (4.0, 0.2), 0.04), ((1.0, 0.1), (2.0, 0.5), 0.25)]


def rho(L, mu, eps):
    s, q = math.sqrt(eps), (L - mu) / (L + mu)
    return (((1 - s) * q + math.sqrt((1 - s) ** 2 * q**2 + 4 * s)) / 2) ** 2


def step(L, mu, eps):
    return 2 / (L + mu) * (1 - math.sqrt(eps)) / (1 + math.sqrt(eps))


def of(*kinds, n=1):
    return [{"n": n, "L": L, "mu": mu} for L, mu in kinds]


@pytest.mark.parametrize("kinds", [of((1.0, 0.1)), of((1.0, 0.1), n=5), of((1.0, 0.1), (1.0, 0.1))])
def test_equal_workers(kinds):
    """Berg Thomsen, Taylor, Dieuleveut: the rate of EF21 at the best step, for every number of workers."""
    found = ef21_groups(kinds, step(1.0, 0.1, 0.25), 0.75)
    truth = rho(1.0, 0.1, 0.25)
    assert abs(found.upper / truth - 1) <= APART and abs(found.lower / truth - 1) <= RTOL


@pytest.mark.parametrize(("a", "b", "eps"), UNEQUAL)
def test_unequal_workers_are_worse_than_their_average(a, b, eps):
    """At the step that is best for workers with the average constants the ends meet strictly above the equal workers' rate there."""
    L, mu = (a[0] + b[0]) / 2, (a[1] + b[1]) / 2
    found = ef21_groups(of(a, b), step(L, mu, eps), 1 - eps)
    assert found.upper >= found.lower * (1 - RTOL) and found.upper <= found.lower * (1 + APART), str(found)
    assert found.lower > rho(L, mu, eps) * (1 + 5e-4)


@pytest.mark.parametrize(("a", "b", "eps"), UNEQUAL)
def test_the_text_says_these_numbers(a, b, eps):
    text = (Path(__file__).parents[1] / "docs" / "exact_tables.md").read_text()
    L, mu = (a[0] + b[0]) / 2, (a[1] + b[1]) / 2
    numbers = groups._lower([(1, *a), (1, *b)], step(L, mu, eps), eps), rho(L, mu, eps)
    row = f"| ({a[0]:g}, {a[1]:g}), ({b[0]:g}, {b[1]:g}) | {1 - eps:g} | {numbers[0]:.6f} | {numbers[1]:.6f} |"
    assert row in text, row


@pytest.mark.parametrize(("a", "b", "eps"), UNEQUAL)
def test_short_steps_see_the_average_alone(a, b, eps):
    """Derived: at short steps sqrt(rho) is the largest root of z^2 - (1 - s - gamma (1+s) mean mu) z - s."""
    L, mu, s = (a[0] + b[0]) / 2, (a[1] + b[1]) / 2, math.sqrt(eps)
    gamma = 0.6 * step(L, mu, eps)
    found = ef21_groups(of(a, b), gamma, 1 - eps)
    z = max(np.roots([1, -(1 - s - gamma * (1 + s) * mu), -s]))
    assert abs(found.upper / z**2 - 1) <= APART and abs(found.lower / z**2 - 1) <= RTOL


def test_numbers_of_workers_enter_as_shares():
    few = ef21_groups([{"n": 3, "L": 1, "mu": 0.1}, {"n": 5, "L": 10, "mu": 1}], 0.05, 0.75)
    many = ef21_groups([{"n": 3000, "L": 1, "mu": 0.1}, {"n": 5000, "L": 10, "mu": 1}], 0.05, 0.75)
    assert abs(few.upper / many.upper - 1) <= APART and few.lower * (1 - RTOL) <= few.upper <= few.lower * (1 + APART)


def test_a_rate_below_the_truth_is_not_verified():
    kinds = [(1, 1.0, 0.1), (1, 1.0, 0.5)]
    truth = groups._lower(kinds, 0.4, 0.25)
    assert groups._proved(kinds, 0.4, 0.25, truth * (1 + APART))
    assert not groups._proved(kinds, 0.4, 0.25, truth * (1 - RTOL))
    step = groups._Step(kinds, 0.4, 0.25)
    assert not groups._verified(step, truth, np.eye(3), np.ones(2), np.zeros(2), np.zeros(2))


@pytest.mark.parametrize(
    ("kinds", "gamma", "delta"),
    [
        ([], 0.1, 0.5),
        ([{"n": 1, "L": 1}], 0.1, 0.5),
        ([{"n": 0, "L": 1, "mu": 0.1}], 0.1, 0.5),
        ([{"n": 1, "L": 1, "mu": 2}], 0.1, 0.5),
        ([{"n": 1, "L": 1, "mu": float("nan")}], 0.1, 0.5),
        ([{"n": 1, "L": 1, "mu": 0.1}], 0.1, 1.5),
        ([{"n": 1, "L": 1, "mu": 0.1}], math.inf, 0.5),
    ],
)
def test_bad_input(kinds, gamma, delta):
    with pytest.raises(UsageError):
        ef21_groups(kinds, gamma, delta)


def test_results_are_data():
    """Sentence, JSON and HTML of one shared base."""
    import html
    import json

    found = ef21_groups(of((1.0, 0.1)), 0.4, 0.75)
    plain = json.loads(found.to_json())
    assert plain["upper"] == found.upper and plain["statement"]["groups"] == [{"n": 1, "L": 1.0, "mu": 0.1}]
    assert html.escape(str(found)) in found._repr_html_() and "<th>gamma</th><td>0.4</td>" in found._repr_html_()
    assert json.loads(groups.Groups(0.5, math.inf, 0.0, {}).to_json())["upper"] is None


# --- compressors that differ ------------------------------------------------------------------------------------------

KINK = {(0.75, 0.96): 0.7989409, (0.75, 0.5): 0.4077107}  # the best step of the cubic at L = 1, mu = 0.1


def proved(gamma, deltas, mu=0.1):
    return contraction("ef21", {"gamma": gamma}, groups=[{"n": 1, "L": 1, "mu": mu, "delta": d} for d in deltas]).upper


@pytest.mark.parametrize("deltas", KINK)
def test_the_cubic_of_two_unlike_compressors_is_proved_away_from_the_best_step(deltas):
    best = KINK[deltas]
    values = {f: ef21_cubic(f * best, 1.0, 0.1, deltas) for f in (0.5, 0.95, 0.999, 1.0, 1.001, 1.05)}
    assert values[1.0] < min(values[0.999], values[1.001])
    for f in (0.5, 0.95, 1.05):
        assert 0 <= proved(f * best, deltas) / values[f] - 1 <= RTOL
    assert 1e-4 < proved(best, deltas) / values[1.0] - 1 < 3e-3  # there other instances are worse


@pytest.mark.parametrize("mu", [0.1, 0.4])
@pytest.mark.parametrize("deltas", [(0.75, 0.96), (0.5, 0.9), (1.0, 0.5)])
def test_the_cubic_is_reached_by_runs_of_the_method_in_one_dimension(deltas, mu):
    """Both workers' compressors overshoot or fall short by sqrt(1-delta): the eigenvalues of one step written in plain numbers."""
    gamma, reached = 0.4, []
    for lam, sign in ((mu, 1.0), (1.0, 1.0), (mu, -1.0), (1.0, -1.0)):
        M = []
        for x, *e in np.eye(3):
            new = x - gamma * (lam * x - sum(e) / 2)
            M.append([new, *(-sign * math.sqrt(1 - d) * (lam * (new - x) + c) for d, c in zip(deltas, e, strict=True))])
        reached.append(np.abs(np.linalg.eigvals(np.array(M))).max() ** 2)
    assert abs(max(reached) / ef21_cubic(gamma, 1.0, mu, deltas) - 1) < 1e-12


def test_equal_compressors_give_the_known_rate_and_bad_input_one_sentence():
    assert abs(ef21_cubic(step(1.0, 0.1, 0.25), 1.0, 0.1, (0.75, 0.75)) / rho(1.0, 0.1, 0.25) - 1) < 1e-12
    for bad in ((0.0, 1.0, 0.1, (0.5, 0.5)), (0.1, 1.0, 2.0, (0.5, 0.5)), (0.1, 1.0, 0.1, (0.5, 1.5)), (0.1, 1.0, 0.1, (math.nan, 0.5))):
        with pytest.raises(UsageError, match="ef21_cubic takes"):
            ef21_cubic(*bad)
