"""Heavy-tailed noise: the same draws in both engines, its tail and moments, and what is refused."""

import math

import numpy as np
import pytest
from scipy import stats

from verify_rates.problems import get_problem
from verify_rates.solvers.engine.run import simulate
from verify_rates.solvers.method import UsageError

AGREE = 1e-12  # a hundred contracting steps in double precision
KINDS = ("student", "pareto")


@pytest.mark.parametrize("noise", KINDS)
def test_both_engines_draw_the_same(noise):
    problem = get_problem("quadratic", n=3, d=4, noise=noise, tail=1.6, scale=0.3)
    a, b, c = (
        simulate("gd", problem, {"gamma": 0.1}, steps=100, seed=s, engine=e).final["x"]
        for e, s in (("numpy", 0), ("numba", 0), ("numpy", 1))
    )
    assert np.abs(a - b).max() < AGREE * np.abs(a).max() < np.abs(a - c).max()


def draws(noise, tail, count=40_000):
    problem = get_problem("one_minus_cos", d=count, noise=noise, tail=tail, scale=2.0)
    return problem._draw(np.random.default_rng(0)) / 2.0


def fits(sample, law):
    return stats.kstest(sample, law.cdf).pvalue > 1e-3


def test_the_laws_are_those_named():
    assert fits(draws("student", 1.5), stats.t(1.5)) and not fits(draws("student", 2.0), stats.t(1.5))
    size = np.abs(draws("pareto", 1.5))
    assert size.min() >= 1 and fits(size, stats.pareto(1.5)) and not fits(size, stats.pareto(1.6))
    assert abs((draws("pareto", 1.5) > 0).mean() - 0.5) < 5 * 0.5 / math.sqrt(40_000)  # five deviations


def test_variances_are_those_of_the_laws_or_infinite():
    for noise, law in (("student", stats.t(4.5)), ("pareto", stats.pareto(4.5))):
        problem = get_problem("quadratic", n=2, d=3, noise=noise, tail=4.5, scale=0.5)
        second = law.var() + law.mean() ** 2  # of the size; the sign makes the mean 0
        assert problem.constants.sigma2_sup == pytest.approx(3 * 0.25 * second, rel=1e-12) and problem.stochastic
        assert problem.constants.sigma2_sup >= 3 * 0.25 * 4.5 / 2.5
        assert get_problem("quadratic", noise=noise, tail=2, scale=1).constants.sigma2_sup == math.inf
        again = get_problem(**problem.describe())
        assert again.constants.sigma2_sup == problem.constants.sigma2_sup


@pytest.mark.parametrize(
    "options",
    [
        {"noise": "student", "tail": 1.0, "scale": 1.0},
        {"noise": "pareto", "tail": 1.5},
        {"noise": "pareto", "tail": 1.5, "scale": 1.0, "sigma2": 1.0},
        {"sigma2": 1.0, "tail": 1.5},
        {"noise": "pareto", "tail": math.nan, "scale": 1.0},
    ],
)
def test_bad_options_are_one_sentence(options):
    with pytest.raises(UsageError, match=r"tail|scale|sigma2"):
        get_problem("quadratic", **options)
