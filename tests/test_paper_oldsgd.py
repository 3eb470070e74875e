"""OLDSGD: reductions of the step functions, and checks that notice a broken formula or method."""

from dataclasses import replace

import numpy as np
import pytest

from verify_rates.problems import get_problem
from verify_rates.solvers import method as registry
from verify_rates.solvers.engine.run import simulate
from verify_rates.solvers.topologies import get_topology
from verify_rates.theory.calculators import oldsgd

ROUNDING = 1e-12  # forty contracting steps in double precision
PROBLEM = get_problem("quadratic", n=4, d=5, zeta2_star=1.0)
NOISY = get_problem("quadratic", n=4, d=5, zeta2_star=1.0, sigma2=0.5)


def final(method, problem=PROBLEM, steps=40, **hyper):
    return simulate(method, problem, {"gamma": 0.2, **hyper}, steps=steps, topology="ring", engine="numpy").final["x"][0]


def by_hand(H, rounds):
    """``X <- W X - gamma sum_k G_k``, the steps taken from X."""
    W, X = get_topology("ring", 4).W, np.zeros((4, 5))
    for _ in range(rounds):
        Y, A = X, np.zeros((4, 5))
        for _ in range(H):
            g = PROBLEM.grads(Y)
            Y, A = Y - 0.2 * g, A + g
        X = W @ X - 0.2 * A
    return X


@pytest.mark.parametrize("H", [1, 2, 5])
def test_the_round_is_combine_then_adapt(H):
    X = final("oldsgd", steps=8 * H, H=H)
    assert np.abs(X - by_hand(H, 8)).max() < ROUNDING < np.abs(X - final("ldsgd", steps=8 * H, H=H)).max()


def test_single_local_steps_are_gossip_sgd():
    assert np.array_equal(final("ldsgd", NOISY, H=1), final("gossip_sgd", NOISY))
    assert not np.array_equal(final("ldsgd", NOISY, H=2), final("gossip_sgd", NOISY))


BROKEN = [
    ("STABLE", {"oldsgd": "0 < theta and theta < 2"}, oldsgd.stability, ("oldsgd", 2)),
    ("STABLE", {"ldsgd": "0 < theta and theta < 1 + lam"}, oldsgd.stability, ("ldsgd", 2)),
    ("ROUND", {"oldsgd": "Max(T_comp, T_tx)"}, oldsgd.seconds, ("oldsgd", 2)),
    ("SPEED_UP", "(H*T_comp + T_tx)/(H*T_comp)", oldsgd.speed_up, ()),
    ("OVERLAP", "H > T_tx/T_comp", oldsgd.speed_up, ()),
]


@pytest.mark.parametrize(("name", "wrong", "check", "values"), BROKEN)
def test_checks_notice_a_broken_formula(monkeypatch, name, wrong, check, values):
    assert check(*values).lower == 0
    monkeypatch.setattr(oldsgd, name, wrong)
    assert check(*values).lower > 0


def test_identities_notice_a_broken_method(monkeypatch):
    method = registry.get_method("oldsgd")

    def step(s, w, h, t):
        made = method.step(s, w, h, t)
        return made._replace(b=made.b * (1 + 1e-6))

    for check in (lambda: oldsgd.average("oldsgd", "quadratic", 3, 0), lambda: oldsgd.fixed_point(0, 2)):
        assert check().lower <= check().bound
    monkeypatch.setitem(registry._REGISTRY, "oldsgd", replace(method, step=step))
    assert oldsgd.average("oldsgd", "quadratic", 3, 0).lower > oldsgd.average("oldsgd", "quadratic", 3, 0).bound
    monkeypatch.setattr(oldsgd, "EXTRA", 3)
    assert oldsgd.memory().lower != oldsgd.memory().bound
