"""MATCHA below full communication: the moments against runs of the step function, special cases, and checks that break."""

import numpy as np
import pytest

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators import matcha
from verify_rates.theory.calculators import matcha_budget as budget
from verify_rates.theory.symbols import number

TRIALS = 200


def test_the_exact_moments_are_the_mean_of_sampled_runs():
    gamma, steps = 0.4, 12
    Ls, p = budget.decomposed("matcha8"), budget.activation("matcha8", 0.4)
    mixed = budget.mixings(Ls, p, budget.best_alpha(Ls, p)[0])
    exact = budget.expected_grad_norm(budget._noisy_quadratic(0), mixed, gamma, steps)
    runs = np.array([budget.sampled_run("matcha8", 0.4, gamma, steps, 0, trial) for trial in range(TRIALS)])
    error = runs.std(axis=0) / np.sqrt(TRIALS)
    assert np.all(np.abs(runs.mean(axis=0) - exact) <= 5 * error + 1e-12)
    assert np.all(error[1:] < 0.1 * exact[1:])


def test_full_averaging_is_synchronous_sgd():
    """The complete graph with alpha = 1/n and p = 1: rho = 0, one matrix, and the moments of gradient descent on the mean."""
    Ls, problem, gamma = budget.decomposed("complete"), budget._noisy_quadratic(1), 0.3
    p = np.ones(len(Ls))
    assert matcha.rho_of(list(Ls), p, 1 / 8) < 1e-15 and abs(budget.best_alpha(Ls, p)[0] - 1 / 8) < 1e-6
    ((weight, W),) = budget.mixings(Ls, p, 1 / 8)
    assert weight == 1 and np.abs(W - 1 / 8).max() < 1e-15
    found, x = budget.expected_grad_norm(problem, [(1.0, W)], gamma, 10), np.zeros(2)
    H = problem.constants.L_max  # the variance that every mode of curvature lam adds is at most this one's
    plain = []
    for _ in range(10):
        g = problem.grads(x).mean(axis=0)
        plain.append(float(g @ g))
        x = x - gamma * g
    extra = found - plain
    assert abs(extra[0]) < 1e-12 and abs(extra[1] / (gamma**2 * 0.5 / 8 / 2 * (H**2 + problem.constants.mu_min**2)) - 1) < 1e-9


def test_no_budget_uses_more_than_it_has():
    for share in (0.1, 0.37, 0.8):
        assert budget.activation("star", share).sum() <= share * len(budget.decomposed("star")) * (1 + 1e-6)
    for share in (0.0, 1.5):
        with pytest.raises(UsageError, match="share in"):
            budget.activation("ring", share)


@pytest.mark.parametrize("column", ["p", "lambda_2", "alpha", "rho", "periodic"])
def test_the_table_breaks_with_another_digit(monkeypatch, column):
    assert budget.table(0.5, column).lower < 1e-4
    place = ("p", "lambda_2", "alpha", "rho", "periodic").index(column)
    row = list(budget.REFERENCE[0.5])
    row[place] = tuple(v + 2e-4 for v in row[0]) if place == 0 else row[place] + 2e-4
    monkeypatch.setitem(budget.REFERENCE, 0.5, tuple(row))
    assert budget.table(0.5, column).lower > 1e-4


def test_programs_break_with_another_solution(monkeypatch):
    assert budget.activation_by_scan("ring", 0.3, 10).lower <= budget.activation_by_scan("ring", 0.3, 10).bound
    monkeypatch.setattr(budget, "activation", lambda graph, share: np.array([0.1, 0.2]))
    found = budget.activation_by_scan("ring", 0.3, 10)
    assert found.lower > found.bound
    monkeypatch.setattr(budget, "alpha_sdp", lambda Ls, p: (0.3, matcha.rho_of(list(Ls), p, 0.3)))
    found = budget.alpha_two_ways("ring", 0.3)
    assert found.lower > found.bound


def test_the_bound_below_full_communication_breaks_when_scaled(monkeypatch):
    from verify_rates.theory.papers import matcha as paper

    assert budget.sampled_bound("ring", 0.8, 0.3, 100, 0).lower < budget.sampled_bound("ring", 0.8, 0.3, 100, 0).bound
    monkeypatch.setattr(paper, "BOUND", f"({paper.BOUND})/4")
    found = budget.sampled_bound("ring", 0.8, 0.3, 100, 0)
    assert found.lower > found.bound
    with pytest.raises(UsageError, match="says nothing"):
        budget.sampled_bound("ring", 0.8, 5.0, 10, 0)
    assert number(paper.LETS["gamma"], {"c": 1, "L": 1, "rho": 0.25}) == 0.25
