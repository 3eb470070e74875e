"""LOSCAR-SGD: reductions of the step function and of the simulator, and checks that notice a broken formula."""

import numpy as np
import pytest

from verify_rates.problems import get_problem
from verify_rates.solvers.engine.run import simulate
from verify_rates.theory.calculators import loscar

ROUNDING = 1e-12  # forty contracting steps in double precision
PROBLEM = get_problem("quadratic", n=3, d=5, zeta2_star=1.0)
NOISY = get_problem("quadratic", n=3, d=5, zeta2_star=1.0, sigma2=0.5)


def final(method, problem=NOISY, compressor="identity", steps=36, **hyper):
    return simulate(method, problem, {"gamma": 0.2, **hyper}, steps=steps, compressor=compressor, engine="numpy").final["x"][0]


@pytest.mark.parametrize("H", [1, 3])
def test_without_mask_and_overlap_it_is_local_sgd(H):
    plain = final("local_sgd", H=H)
    assert np.abs(plain - final("loscar", H=H)).max() < ROUNDING < np.abs(plain - final("loscar", compressor="randk(k=2)", H=H)).max()


def test_single_steps_are_minibatch_sgd():
    assert np.abs(final("loscar", H=1).mean(axis=0) - final("gd")).max() < ROUNDING


@pytest.mark.parametrize(("H", "Q"), [(3, 0), (3, 1), (4, 3)])
def test_the_simulator_with_equal_counts_is_the_step_function(H, Q):
    *_, last = loscar.rounds(PROBLEM, (H - Q,) * 3, (Q,) * 3, 5, 0.2, 9, 0)
    assert np.abs(last.merged - final("loscar", PROBLEM, H=H, Q=Q, steps=9 * H)).max() < ROUNDING
    assert np.abs(last.merged - final("loscar", PROBLEM, H=H, Q=(Q + 1) % H, steps=9 * H)).max() > ROUNDING


def test_overlap_keeps_the_mean_and_the_naive_merge_does_not():
    for naive in (False, True):
        made = list(loscar.rounds(NOISY, (2, 1, 3), (1, 2, 0), 2, 0.2, 5, 0, naive))
        off = max(np.abs(r.merged.mean(axis=0) - r.z.mean(axis=0)).max() for r in made)
        assert (off > 1e-3) == naive and (off < ROUNDING) != naive


BROKEN = [
    ("EXPECTED", "q*a + b", loscar.disagreement, (0, 3, 4, 2)),
    ("ROUND", "T_comp + Max(T_tx + lat, b*T_comp)/H", loscar.equal, (3, 1)),
    ("merge", lambda y, z, mask, naive=False: np.where(mask, y.mean(axis=0), z), loscar.disagreement, (0, 3, 4, 2)),
    ("merge", lambda y, z, mask, naive=False: np.where(mask, y.mean(axis=0) + (z - y), z), loscar.naive_merge, (0, 3, 4, 2)),
    ("_said", lambda N, Q, c, tc: max(N) + tc, loscar.unequal, ("<=",)),
]


@pytest.mark.parametrize(("name", "wrong", "check", "values"), BROKEN)
def test_checks_notice_a_broken_formula(monkeypatch, name, wrong, check, values):
    assert check(*values).lower == 0
    monkeypatch.setattr(loscar, name, wrong)
    assert check(*values).lower > 0


def test_numbers_notice_a_broken_formula(monkeypatch):
    quick = ((2,) * 8, (1,) * 8, 2, 1.0, 10, 1.0, 0, 4)
    found = loscar.bound(*quick)
    assert 0 < found.lower < found.bound
    monkeypatch.setattr(loscar, "BOUND", f"({loscar.BOUND})/100")
    assert loscar.bound(*quick).lower > loscar.bound(*quick).bound
    given = ((2, 1) * 4, (1, 0) * 4, 2, 0)
    assert loscar.invariance(*given).lower < loscar.invariance(*given).bound
    monkeypatch.setattr(loscar, "merge", lambda y, z, mask, naive=False: np.where(mask, y.mean(axis=0), z))
    assert loscar.invariance(*given).lower > loscar.invariance(*given).bound
