"""EC-SGD and EC-LSVRG: reductions, and checks that notice a broken formula."""

import numpy as np
import pytest

from verify_rates.problems import get_problem
from verify_rates.solvers.engine.run import simulate
from verify_rates.theory.calculators import absolute_compression as calculator

AGREE = 1e-12  # some hundred steps of a contracting recursion in double precision
NOISY = {"n": 3, "d": 6, "sigma2": 0.1, "zeta2_star": 0.5}


def run(method, problem, steps=100, engine="numpy", **options):
    hyper = options.pop("hyper", {"gamma": 0.1})
    return simulate(method, problem, hyper, steps=steps, engine=engine, **options).final


def test_constant_steps_give_error_feedback_in_gradient_units_and_no_compression_sgd():
    problem = get_problem("quadratic", **NOISY)
    for compressor in ("hard_threshold(lam=0.3)", "topk(k=2)", "qsgd(levels=2)"):
        a, b = (run(m, problem, compressor=compressor) for m in ("ec_sgd", "dd_ef_sgd"))
        assert np.abs(a["x"] - b["x"]).max() < AGREE and np.abs(a["e"] - 0.1 * b["e"]).max() < AGREE
    exact, sgd = run("ec_sgd", problem, compressor="identity"), run("gd", problem)
    assert np.abs(exact["x"] - sgd["x"]).max() < AGREE and not exact["e"].any()
    assert np.abs(run("ec_sgd", problem, compressor="topk(k=2)")["x"] - run("ef_sgd", problem, compressor="topk(k=2)")["x"]).max() < AGREE


def test_the_average_is_the_one_of_its_weights():
    problem, ratio = get_problem("quadratic", **NOISY), 0.97
    theta = [(1 - ratio) / (1 - ratio ** (t + 1)) for t in range(40)]
    h = simulate(
        "ec_sgd",
        problem,
        {"gamma": 0.1, "theta": theta},
        steps=40,
        every=1,
        compressor="topk(k=2)",
        keep_states=True,
        engine="numpy",
        measures=("average_gap",),
    )
    weights = ratio ** -(np.arange(40) + 1.0)
    said = weights @ h.states["x"][0, :-1] / weights.sum()
    assert np.abs(h.final["a"][0] - said).max() < AGREE
    assert h.values["average_gap"][0, -1] == pytest.approx(problem.value(said) - problem.constants.f_star[0], rel=1e-9)  # a difference


def test_without_noise_variance_reduction_is_gradient_descent():
    """Additive noise cancels in the pair of gradients; with p = 1 the reference is the last iterate."""
    problem, exact = get_problem("quadratic", **NOISY), get_problem("quadratic", **{**NOISY, "sigma2": 0.0})
    for p in (0.0, 0.3, 1.0):
        a = run("ec_lsvrg", problem, compressor="identity", hyper={"gamma": 0.1, "p": p})
        assert np.abs(a["x"] - run("gd", exact)["x"]).max() < AGREE


def test_variance_reduction_reaches_the_minimum_with_samples():
    problem = get_problem("logistic", data="breast_cancer", n=3, lam=0.3, batch=1)
    options = {"steps": 4000, "compressor": "identity"}
    ends = {
        m: run(m, problem, hyper=h, **options)["x"][0] for m, h in (("ec_lsvrg", {"gamma": 0.02, "p": 0.05}), ("ec_sgd", {"gamma": 0.02}))
    }
    away = {m: np.linalg.norm(x - problem.constants.x_star) for m, x in ends.items()}
    assert away["ec_lsvrg"] < 1e-6 < 1e-3 < away["ec_sgd"]


def test_a_threshold_in_units_of_x_has_a_floor_that_a_smaller_step_does_not_lower():
    problem = get_problem("quadratic", n=1, d=6, L=1.0, mu=1.0)
    gaps = {}
    for method in ("ec_sgd", "ef_sgd"):
        for gamma in (0.1, 0.001):
            x = run(method, problem, steps=int(20 / gamma), compressor="hard_threshold(lam=0.5)", hyper={"gamma": gamma})["x"][0]
            gaps[method, gamma] = problem.value(x) - problem.constants.f_star[0]
    assert gaps["ec_sgd", 0.001] < 1e-2 * gaps["ec_sgd", 0.1]
    assert gaps["ef_sgd", 0.001] > 0.1 * gaps["ef_sgd", 0.1] > 0


def test_enumeration_is_the_expectation_of_the_engine():
    """A single sample and a sure coin leave one outcome: the engine's run on the same least squares."""
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(1, 2)), rng.normal(size=1)
    problem = get_problem("ridge", data=(A, y), n=1, lam=0.0, batch=1)
    world = calculator.Enumerated(A[None], y[None], 0.2)
    from verify_rates.solvers.method import get_method

    hyper = {"gamma": 0.1, "p": 1.0, "theta": 0.5}
    rows = np.asarray(problem.grads(np.zeros(2)))
    scale = float(rows[0] @ (-y[0] * A[0]) / (y[0] ** 2 * A[0] @ A[0]))  # the library's convention of the loss
    assert scale == pytest.approx(1.0)
    for k in range(2):
        end = run("ec_lsvrg", problem, steps=5, compressor="hard_threshold(lam=0.2)", hyper=hyper)["a"][0, k]
        said = calculator.expected(world, [get_method("ec_lsvrg").hypers(**hyper)] * 5, 1.0, lambda s, k=k: float(s.a[k]))
        assert end == pytest.approx(said, abs=AGREE)


@pytest.mark.parametrize(
    ("name", "text", "call"),
    [
        ("RESIDUAL", "gamma**2*lam**2", lambda: calculator.residual("quadratic", 1.0, 0.2, 0)),
        ("PROGRESS", "V0*(1-eta)**N/(1000*gamma)", lambda: calculator.lsvrg(0, 1, 2, 5, 0.1, 0.5, 1.0)),
    ],
)
def test_broken_formulas_are_refuted(monkeypatch, name, text, call):
    assert call().lower <= call().bound
    monkeypatch.setattr(calculator, name, text)
    assert call().lower > call().bound


def test_broken_counts_are_refuted(monkeypatch):
    assert calculator.message_bits(10, 0.5).lower == 0
    monkeypatch.setattr(calculator, "NUMBER_BITS", 31)
    assert calculator.message_bits(10, 0.5).lower > 0


def test_the_floor_matters(monkeypatch):
    """With exact gradients at the minimum and a threshold above them the floor alone carries the bound."""
    found = calculator.lsvrg(0, 1, 2, 5, 2.0, 0.5, 1.0)
    monkeypatch.setattr(calculator, "FLOOR", "0*Delta2")
    assert calculator.lsvrg(0, 1, 2, 5, 2.0, 0.5, 1.0).bound < found.bound
