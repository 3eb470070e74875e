"""MT-DAO: reductions of the step functions, and checks that notice a broken formula or method."""

from dataclasses import replace

import numpy as np
import pytest

from verify_rates.problems import get_problem
from verify_rates.solvers import method as registry
from verify_rates.solvers.engine.run import simulate
from verify_rates.theory.calculators import mt_dao
from verify_rates.theory.papers.mt_dao import PLAIN, PSI_FULL, QUASI

ROUNDING = 1e-12  # forty contracting steps in double precision
PROBLEM = get_problem("quadratic", n=3, d=5, zeta2_star=1.0, sigma2=0.5)


def final(method, steps=36, **hyper):
    return simulate(method, PROBLEM, {"gamma": 0.2, **hyper}, steps=steps, engine="numpy").final["x"][0]


def test_everything_averaged_without_momentum_is_sgd():
    plain = final("gd")
    assert np.abs(final("mt_dao_sgdm") - plain).max() < ROUNDING
    assert np.abs(final("mt_dao_sgdm", omega_1=0.5, beta_1=0.5) - plain).max() > ROUNDING
    assert np.abs(final("mt_dao_sgdm", omega_1=0.5, beta_1=0.0) - plain).max() < ROUNDING


def test_weight_one_is_momentum_by_hand():
    """p_x = 1: synchronous quasi-hyperbolic momentum, whatever the momenta do."""
    x, u = np.zeros(5), np.zeros(5)
    quiet = get_problem("quadratic", n=3, d=5, zeta2_star=1.0)
    for _ in range(30):
        g = quiet.grads(x).mean(axis=0)
        u = 0.8 * u + 0.2 * g
        x = x - 0.2 * (0.3 * g + 0.7 * u)
    hyper = {"gamma": 0.2, "beta_1": 0.8, "omega_1": 0.7, "p_1": 0.5}
    made = simulate("mt_dao_sgdm", quiet, hyper, steps=30, engine="numpy").final["x"][0]
    assert np.abs(made - x).max() < ROUNDING


def test_a_second_momentum_like_the_first_is_no_other_method():
    one = final("mt_dao", beta_1=0.9, omega_1=0.8, K_1=2, K_x=3)
    two = final("mt_dao", beta_1=0.9, omega_1=0.5, K_1=2, beta_2=0.9, omega_2=0.3, K_2=2, K_x=3)
    assert np.abs(one - two).max() < ROUNDING < np.abs(one - final("mt_dao", beta_1=0.9, omega_1=0.8, K_1=2, K_x=4)).max()


def test_periods_average_on_time():
    made = simulate(
        "mt_dao",
        PROBLEM,
        {"gamma": 0.1, "K_x": 4, "K_1": 2},
        steps=9,
        every=1,
        keep_states=True,
        measures=("consensus_error",),
        engine="numpy",
    )
    together = [np.ptp(x, axis=0).max() < ROUNDING for x in made.states["x"][0]]
    assert [t for t, same in enumerate(together) if same] == [0, 1, 5, 9]  # after the steps 0, 4 and 8


def test_the_paper_and_its_check_use_one_formula():
    assert PSI_FULL == mt_dao.PSI_FULL


BROKEN = [
    ("PSI", mt_dao.LOCAL, mt_dao.special_case, ("PSI", "DES_LOC", {"alpha": 1, "a": 0})),
    ("VARIANCE", "(1-beta)/(1+beta)*(1-beta**k)*sigma2", mt_dao.variance, (3,)),
    ("HALF_LIFE", "log(1/2)/(beta-1)", mt_dao.half_life, (0.9, 6.58, 2)),
    ("SECONDS", "T_comp + (1/a + 1/b + 1/c)*T_tx", mt_dao.seconds, (4, 2, 3, 6)),
]


@pytest.mark.parametrize(("name", "wrong", "check", "values"), BROKEN)
def test_checks_notice_a_broken_formula(monkeypatch, name, wrong, check, values):
    assert check(*values).lower == 0
    monkeypatch.setattr(mt_dao, name, wrong)
    assert check(*values).lower > 0


def test_numbers_notice_a_broken_formula(monkeypatch):
    for name, wrong, check in (
        (
            "PSI_FULL",
            f"({mt_dao.PSI_FULL})/5",
            lambda: mt_dao.consensus(0.0, 1.0, 0.5, 300, **PLAIN),
        ),
        ("DRIFT", "s*(1-beta**k)", lambda: mt_dao.drift(3, False)),
        ("SHARE", "1/a", lambda: mt_dao.volume(4, 2, 3, 6)),
        ("VIRTUAL", "beta", lambda: mt_dao.virtual_sequence("quadratic", 0)),
    ):
        assert check().lower <= check().bound * (1 + 1e-9)
        with monkeypatch.context() as patch:
            patch.setattr(mt_dao, name, wrong)
            assert check().lower > check().bound
    assert mt_dao.information(2, 0).lower == 0 and mt_dao.saving(32, 10.67, 2).lower == 0 < mt_dao.saving(31, 10.67, 2).lower


def test_recursions_notice_a_method_that_averages_less(monkeypatch):
    assert mt_dao.recursions(0, **QUASI).lower <= 1
    method = registry.get_method("mt_dao_sgdm")

    def lazy(s, w, h, t):
        return method.step(s, w, h._replace(p_1=h.p_1 / 2, p_x=h.p_x / 2), t)

    monkeypatch.setitem(registry._REGISTRY, "mt_dao_sgdm", replace(method, step=lazy))
    assert mt_dao.recursions(0, **QUASI).lower > 1
