"""0/1 Adam and Adam: reductions, schedules, and checks that notice a broken formula or method."""

import numpy as np
import pytest

from verify_rates.problems import get_problem
from verify_rates.solvers.engine.run import simulate
from verify_rates.theory.calculators import zero_one_adam as calculator

AGREE = 1e-12  # some hundred steps of a contracting recursion in double precision
PROBLEM = get_problem("quadratic", n=3, d=6, sigma2=0.1, zeta2_star=0.5)


def run(method, hyper, compressor=None, steps=100, problem=PROBLEM):
    return simulate(method, problem, {"gamma": 0.05, "beta": 0.8, **hyper}, steps=steps, compressor=compressor, engine="numpy").final


@pytest.mark.parametrize(("corrected", "late"), [(1, 0), (0, 0), (0, 1)])
def test_adam_is_its_loop(corrected, late):
    exact = get_problem("quadratic", n=2, d=4)
    x, m, v = np.zeros(4), np.zeros(4), np.zeros(4)
    for t in range(1, 40):
        g = exact.grads(x).mean(axis=0)
        old, m, v = v, 0.8 * m + 0.2 * g, 0.9 * v + 0.1 * g * g
        a, b = (1 - 0.8**t, 1 - 0.9**t) if corrected else (1.0, 1.0)
        x = x - 0.05 * (m / a) / (np.sqrt((old if late else v) / b) + 0.1)
    h = {"theta": 0.9, "eps": 0.1, "corrected": corrected, "late": late}
    assert np.abs(run("adam", h, steps=39, problem=exact)["x"][0] - x).max() < AGREE


def test_without_memory_adam_is_a_sign_method():
    """beta = theta = 0: every entry moves by gamma*|g|/(|g| + eps)."""
    exact = get_problem("quadratic", n=2, d=4)
    g = exact.grads(np.zeros(4)).mean(axis=0)
    x = run("adam", {"beta": 0.0, "theta": 0.0, "eps": 1e-12}, steps=1, problem=exact)["x"][0]
    assert np.abs(x + 0.05 * np.sign(g)).max() < 1e-10  # eps over the smallest entry of g


def test_frozen_squares_and_exact_exchange_are_momentum():
    """Without any refresh the root is eps: heavy ball with gamma*(1 - beta)/eps."""
    a = run("zero_one_adam", {"refresh": 0, "eps": 1.0}, "identity")
    b = run("heavy_ball", {"gamma": 0.05 * 0.2})
    assert np.abs(a["a"] - b["x"]).max() < AGREE and np.abs(a["x"][0] - a["a"][:, None]).max() == 0


def test_both_residuals_are_kept():
    """Two-sided error feedback: what was sent and what is kept make up what was to be sent."""
    plan = calculator.schedule(30, calculator.sync_steps(30, 3, 2), calculator.refresh_steps(30, 3))
    final = run("zero_one_adam", plan, "norm_sign", steps=30)
    assert np.abs(final["e"]).max() > 0 and np.abs(final["r"]).max() > 0
    first = simulate("zero_one_adam", PROBLEM, {"gamma": 0.05, "beta": 0.8, "refresh": 0}, steps=1, compressor="norm_sign", engine="numpy")
    total = first.final["e"].mean(axis=1)[0] + first.final["r"][0]
    exact = run("zero_one_adam", {"refresh": 0}, "identity", steps=1)
    assert np.abs(-first.final["a"][0] * 0.1 + total + exact["a"][0] * 0.1).max() < AGREE


def test_the_two_schedules_of_the_synchronisation_differ():
    tutorial, released = calculator.sync_steps(200, 4, 4), calculator.released_sync_steps(200, 16, 16, 20)
    assert max(np.diff(tutorial)) == 16 == max(np.diff(released)) and tutorial != released
    plan = calculator.schedule(200, tutorial, [0])
    assert sum(plan["window"][t] for t in tutorial) == tutorial[-1] + 1


@pytest.mark.parametrize(
    ("name", "value", "call"),
    [
        ("REFRESHES", "k*log(T/k + 1)", lambda: calculator.refreshes(4, 1000)),
        ("ALL_REDUCE", "2*d", lambda: calculator.one_bit_all_reduce(3, 8)),
        ("VOLUME", "b*u + c", lambda: calculator.volume(10, 4, 3, 2, 10)),
        ("CHORD", -0.5, lambda: calculator.refreshes(16, 1000)),
    ],
)
def test_broken_formulas_are_refuted(monkeypatch, name, value, call):
    def violated(f):
        return f.lower > f.bound if f.relation == "<=" else f.lower != pytest.approx(f.bound)

    assert not violated(call())
    monkeypatch.setattr(calculator, name, value)
    assert violated(call())


def test_the_identities_break_with_another_schedule(monkeypatch):
    honest = calculator.schedule
    assert calculator.linearity(5, 1, 0).lower < 1e-13
    monkeypatch.setattr(calculator, "schedule", lambda T, sync, refresh: honest(T, sync, range(T)))
    assert calculator.linearity(5, 1, 0).lower > 1e-6
