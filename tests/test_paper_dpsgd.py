"""DPSGD: the simulated protocol, and checks that notice a broken formula."""

import numpy as np
import pytest

from verify_rates.problems import get_problem
from verify_rates.theory.calculators import dpsgd

ROUNDING = 1e-12  # forty contracting steps in double precision
PROBLEM = get_problem("quadratic", n=3, d=4, zeta2_star=1.0)
LONE = get_problem("quadratic", n=1, d=4)


def test_staleness_is_what_the_order_says():
    run = dpsgd.asynchronous(PROBLEM, dpsgd.in_turn(3, 12), B=2, threads=1, gamma=0.1, rho=1.0)
    assert run.staleness == [0, 1] + [2] * 10 and len(run.models) == 13
    run = dpsgd.asynchronous(PROBLEM, dpsgd.together(3, 4), B=2, threads=1, gamma=0.1, rho=1 / 3)
    assert run.staleness == [0, 1, 2] * 4


def test_one_worker_in_turn_is_gradient_descent():
    run = dpsgd.asynchronous(LONE, dpsgd.in_turn(1, 10), B=3, threads=1, gamma=0.2, rho=1.0)
    x = np.zeros(4)
    for _ in range(30):
        x = x - 0.2 * LONE.grads(x)[0]
    assert np.abs(run.models[-1] - x).max() < ROUNDING


def test_threads_read_what_is_at_most_that_old():
    """Between the serial run and the one whose reads miss every update under way."""
    options = {"B": 6, "gamma": 0.2, "rho": 1.0}
    serial, racing = (dpsgd.asynchronous(LONE, dpsgd.in_turn(1, 4), threads=p, **options).models for p in (1, 4))
    assert np.abs(serial - racing).max() > ROUNDING
    slow = dpsgd.asynchronous(LONE, dpsgd.in_turn(1, 300), threads=4, **options).models[-1]
    assert np.abs(LONE.grads(slow)).max() < ROUNDING  # reads may be late, the minimiser is the same
    draws, order = np.random.default_rng(0), np.random.default_rng(0)

    class Never:
        def random(self, size):
            return np.zeros(size)  # every late update is missed

    u = dpsgd.hogwild(LONE, 0, np.zeros(4), 3, 3, 0.2, draws, Never())
    assert np.abs(u - (-0.6) * LONE.grads(np.zeros(4))[0]).max() < ROUNDING  # three gradients at the start
    assert np.abs(u - dpsgd.hogwild(LONE, 0, np.zeros(4), 3, 2, 0.2, draws, order)).max() > ROUNDING


def test_checks_notice_a_broken_formula_or_protocol(monkeypatch):
    assert dpsgd.tuned().lower == 0
    for check in (lambda: dpsgd.delayed(3, 0), lambda: dpsgd.local(3, 2, 0)):
        assert check().lower <= check().bound
    monkeypatch.setattr(dpsgd, "TUNED", "4*sqrt(F0*L*sigma2/(n*T)) + 16*L*F0*tau/T")
    assert dpsgd.tuned().lower > 0
    original = dpsgd.hogwild
    monkeypatch.setattr(dpsgd, "hogwild", lambda *a: original(*a) * (1 + 1e-6))
    for check in (lambda: dpsgd.delayed(3, 0), lambda: dpsgd.local(3, 2, 0)):
        assert check().lower > check().bound


@pytest.mark.parametrize("n", [2, 4])
def test_another_staleness_is_another_method(n, monkeypatch):
    monkeypatch.setattr(dpsgd, "in_turn", lambda n, pushes: dpsgd.together(n, pushes // n))
    assert dpsgd.delayed(n, 0).lower > dpsgd.delayed(n, 0).bound
