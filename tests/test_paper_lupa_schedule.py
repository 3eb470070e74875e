"""ADA-LUPA: the schedule as hyper-parameter of local SGD, its periods, and checks that notice a broken formula."""

import numpy as np
import pytest

from verify_rates.problems import get_problem
from verify_rates.solvers.engine.run import simulate
from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators import lupa_schedule

ROUNDING = 1e-12  # some dozen contracting steps in double precision
PROBLEM = get_problem("quadratic", n=3, d=5, zeta2_star=1.0)


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_the_schedule_averages_at_the_ends_of_the_periods(engine):
    periods = [1, 4, 2, 3]
    options = {"steps": 10, "every": 1, "keep_states": True, "engine": engine}
    x = simulate("local_sgd", PROBLEM, {"gamma": 0.3, "H": lupa_schedule.schedule(periods)}, **options).states["x"][0]
    together = [t for t in range(11) if np.ptp(x[t], axis=0).max() < ROUNDING]
    assert together == [0, 1, 5, 7, 10]
    even = simulate("local_sgd", PROBLEM, {"gamma": 0.3, "H": 5}, **options).final["x"]
    listed = simulate("local_sgd", PROBLEM, {"gamma": 0.3, "H": lupa_schedule.schedule([5, 5])}, **options).final["x"]
    assert np.array_equal(even, listed)


def test_adaptive_periods_grow_as_the_loss_falls():
    ridge = get_problem("ridge", data="digits", n=4, lam=0.1)
    periods, models = lupa_schedule.run(ridge, 0.02, 4, 5)
    losses = [ridge.value(np.zeros(ridge.d))] + [ridge.value(x) for x in models]
    assert losses == sorted(losses, reverse=True) and periods == sorted(periods) and periods[-1] > periods[0] == 4
    assert periods == [lupa_schedule.adaptive(4, losses[0], now) for now in losses[:-1]]
    x = simulate("local_sgd", ridge, {"gamma": 0.02, "H": lupa_schedule.schedule(periods)}, steps=sum(periods), engine="numpy").final["x"][
        0
    ][0]
    assert np.abs(x - models[-1]).max() < ROUNDING * np.abs(x).max()
    with pytest.raises(UsageError, match="positive losses"):
        lupa_schedule.adaptive(4, 1.0, 0.0)


def test_checks_notice_a_broken_formula(monkeypatch):
    assert lupa_schedule.conditions(12).lower == 0 and lupa_schedule.slope(5469, 10, 91, 1.0927).lower == 0
    for name, wrong in (("EXACT", "2*(T-R*H)/(H*R*(R+1))"), ("SQUARES", "T**2/R"), ("LARGEST", "T/R")):
        with monkeypatch.context() as patch:
            patch.setattr(lupa_schedule, name, wrong)
            assert lupa_schedule.conditions(12).lower > 0
    monkeypatch.setattr(lupa_schedule, "ALPHA", lupa_schedule.EXACT)
    repaired = lupa_schedule.released(5469, 10, 91, 0)
    assert repaired.lower == repaired.bound and lupa_schedule.slope(5469, 10, 91, 1.0927).lower > 0
