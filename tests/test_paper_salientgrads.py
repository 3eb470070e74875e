"""SalientGrads: reductions, and checks that notice a broken formula."""

import numpy as np
import pytest

from verify_rates.problems import get_problem
from verify_rates.solvers.engine.run import simulate
from verify_rates.theory.calculators import salientgrads as calculator

AGREE = 1e-12  # some dozen steps of a contracting recursion in double precision


def test_a_full_mask_is_local_sgd():
    problem = get_problem("quadratic", n=3, d=5, zeta2_star=0.5)
    options = {"steps": 40, "x0": np.arange(1.0, 6.0), "engine": "numpy"}
    a = simulate("salientgrads", problem, {"gamma": 0.1, "H": 4}, compressor="identity", **options).final["x"]
    b = simulate("local_sgd", problem, {"gamma": 0.1, "H": 4}, **options).final["x"]
    assert np.abs(a - b).max() < AGREE


def test_the_mask_is_the_largest_mean_saliency_and_stays():
    problem, x0 = get_problem("quadratic", n=3, d=5, zeta2_star=0.5), np.arange(1.0, 6.0)
    h = simulate("salientgrads", problem, {"gamma": 0.1}, steps=9, every=1, x0=x0, compressor="topk(k=2)", keep_states=True, engine="numpy")
    score = np.abs(problem.grads(x0) * x0).mean(axis=0)
    assert (h.final["k"][0] != 0).nonzero()[0].tolist() == sorted(np.argsort(-score)[:2].tolist())
    assert (h.states["k"][0, 1:] == h.states["k"][0, 1]).all() and (h.states["x"][0, 1:, :, h.final["k"][0] == 0] == 0).all()


def test_engines_agree_from_a_salient_start():
    problem = get_problem("quadratic", n=3, d=5, zeta2_star=0.5, sigma2=0.1)
    options = {"steps": 40, "x0": np.arange(1.0, 6.0), "compressor": "topk(k=3)"}
    a, b = (simulate("salientgrads", problem, {"gamma": 0.1, "H": 4}, engine=e, **options).final["x"] for e in ("numpy", "numba"))
    assert np.abs(a - b).max() < AGREE < np.abs(a).max()


def test_nothing_is_salient_at_zero():
    problem = get_problem("quadratic", n=3, d=5, zeta2_star=0.5)
    final = simulate("salientgrads", problem, {"gamma": 0.1}, steps=9, compressor="topk(k=2)", engine="numpy").final
    assert not final["k"].any() and not final["x"].any()


@pytest.mark.parametrize(
    ("name", "value", "call"),
    [
        ("BIAS", 2.1, lambda: calculator.bias(0, 2)),
        ("SET_UP", 65, lambda: calculator.break_even(10)),
        ("NUMBER_BITS", 33, lambda: calculator.bits(0, 3)),
    ],
)
def test_broken_formulas_are_refuted(monkeypatch, name, value, call):
    assert call().lower <= call().bound
    monkeypatch.setattr(calculator, name, value)
    assert call().lower > call().bound


def test_other_columns_are_another_method(monkeypatch):
    honest = calculator.masked_run

    def turned(*args):
        problem, mask, models = honest(*args)
        return problem, np.roll(mask, 1), models

    assert calculator.restriction(0, 3, 4).lower < AGREE
    monkeypatch.setattr(calculator, "masked_run", turned)
    assert calculator.restriction(0, 3, 4).lower > 1e-3
    assert calculator.latency_fit("a", 0.698).lower > calculator.TABLE_ATOL
