"""TailOPT: special cases of the step functions, and checks that notice a broken formula."""

import numpy as np
import pytest

from verify_rates.problems import get_problem
from verify_rates.solvers.engine.run import simulate
from verify_rates.theory.calculators import tailopt

ROUNDING = 1e-12  # forty contracting steps in double precision
PROBLEM = get_problem("quadratic", n=3, d=5, zeta2_star=1.0, sigma2=0.5)


def final(method, problem=PROBLEM, steps=36, **hyper):
    return simulate(method, problem, {"gamma": 0.2, **hyper}, steps=steps, engine="numpy").final


@pytest.mark.parametrize("method", ["bi2clip", "bi2clip_norm"])
@pytest.mark.parametrize("H", [1, 3])
def test_without_thresholds_it_is_local_sgd(method, H):
    plain = final("local_sgd", H=H)["x"]
    assert np.abs(plain - final(method, H=H)["x"]).max() < ROUNDING
    for threshold in ({"high": 0.1}, {"low": 2.0}, {"high_outer": 0.01}, {"low_outer": 1.0}):
        assert np.abs(plain - final(method, H=H, **threshold)["x"]).max() > ROUNDING, threshold


def test_equal_thresholds_are_a_sign():
    x = np.zeros((3, 5))
    quiet = get_problem("quadratic", n=3, d=5, zeta2_star=1.0)
    for _ in range(6):
        for _ in range(2):
            x = x - 0.01 * 0.3 * np.sign(quiet.grads(x))
        x = np.tile(x.mean(axis=0), (3, 1))
    assert np.abs(final("bi2clip", quiet, steps=12, gamma=0.01, H=2, low=0.3, high=0.3)["x"][0] - x).max() < ROUNDING


def test_norms_of_steps_lie_between_the_thresholds():
    for low, high in ((0.0, 0.1), (0.5, 1e300), (0.2, 0.2)):
        step = final("bi2clip_norm", steps=1, H=2, gamma=1.0, low=low, high=high)["x"][0]
        norms = np.linalg.norm(step, axis=1)
        assert (norms <= high + ROUNDING).all() and (norms >= low - ROUNDING).all()


def test_adagrad_and_adam_outside_by_hand():
    quiet = get_problem("quadratic", n=3, d=5, zeta2_star=1.0)
    for beta, keep, fresh in ((0.0, 1.0, 1.0), (0.9, 0.99, 0.01)):
        y, u, v = np.zeros(5), np.zeros(5), np.zeros(5)
        for _ in range(8):
            x = np.tile(y, (3, 1))
            for _ in range(2):
                g = quiet.grads(x)
                x = x - 0.1 * g * np.minimum(1, 0.5 / np.linalg.norm(g, axis=1, keepdims=True))
            D = x.mean(axis=0) - y
            u, v = beta * u + (1 - beta) * D, keep * v + fresh * D**2
            y = y + 0.1 * u / (np.sqrt(v) + 1e-3)
        made = final("tailopt", quiet, steps=16, gamma=0.1, H=2, high=0.5, beta=beta, keep=keep, fresh=fresh)["y"][0]
        assert np.abs(made - y).max() < ROUNDING


def test_unclipped_steps_have_no_second_moment():
    """With a tail below 2 the sampled second moment of one step grows with the sample; that of a clipped one does not."""
    heavy = get_problem("one_minus_cos", noise="pareto", tail=1.2, scale=1.0)

    def second(count, **hyper):
        runs = simulate("bi2clip_norm", heavy, {"gamma": 1.0, **hyper}, steps=1, seeds=count, engine="numpy").final["x"][:, 0, 0]
        return np.mean(runs**2)

    assert heavy.constants.sigma2_sup == np.inf
    assert second(600) > 20 * second(60) and second(600, high=2.0) <= 4 + ROUNDING


BROKEN = [
    ("SECOND", "u**(1-a)*q", tailopt.clip_lemma, ("pareto", 1.6, 1.5, 3.0, 5.0)),
    ("BIAS", "u**(-1-a)*q", tailopt.clip_lemma, ("pareto", 1.6, 1.1, 3.0, 5.0)),
    ("STEP", "T**(-1/2)", tailopt.exponent, ()),
    ("LOWER", "b", tailopt.lower_threshold, (4, 0.1, 2.0)),
]


@pytest.mark.parametrize(("name", "wrong", "check", "values"), BROKEN)
def test_checks_notice_a_broken_formula(monkeypatch, name, wrong, check, values):
    assert check(*values).lower <= check(*values).bound
    monkeypatch.setattr(tailopt, name, wrong)
    assert check(*values).lower > check(*values).bound


def test_the_lemma_needs_moments_up_to_two():
    assert tailopt.pointwise(2.0).lower <= 1 < tailopt.pointwise(2.5).lower
