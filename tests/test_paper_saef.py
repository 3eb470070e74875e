"""Step-ahead error feedback: reductions, and checks that notice a broken formula or method."""

from dataclasses import replace

import numpy as np
import pytest

from verify_rates.problems import get_problem
from verify_rates.solvers.engine.run import simulate
from verify_rates.solvers.method import methods
from verify_rates.theory.calculators import collectives, saef

AGREE = 1e-12  # some hundred steps of a contracting recursion in double precision


def run(method, hyper, compressor="topk(k=2)", engine="numpy", **options):
    problem = get_problem("quadratic", n=3, d=6, sigma2=0.1, zeta2_star=0.5)
    return simulate(method, problem, {"gamma": 0.1, **hyper}, steps=100, compressor=compressor, engine=engine, **options).final


def close(a, b, factor=1.0):
    return np.abs(a - factor * b).max() < AGREE


def test_no_step_ahead_and_no_way_back_is_error_feedback():
    a, b = run("saef_one_way", {"alpha": 0.0}), run("ef_sgd", {})
    assert close(a["x"], b["x"]) and close(a["e"], b["e"])
    assert not close(run("saef_one_way", {})["x"], b["x"])


@pytest.mark.parametrize("method", ["saef", "saef_one_way"])
def test_without_compression_it_is_sgd_with_momentum(method):
    a = run(method, {"P": 3}, "identity")
    assert close(a["x"], run("gd", {}, None)["x"]) and not a["e"].any() and not a["s"].any()
    assert close(run(method, {"beta": 0.5}, "identity")["x"], run("heavy_ball", {"beta": 0.5}, None)["x"])


def test_averaging_and_weight_decay_act():
    plain = run("saef", {})
    assert not close(run("saef", {"P": 5})["x"], plain["x"]) and not close(run("saef", {"wd": 0.1})["x"], plain["x"])
    assert close(run("saef", {"P": 101})["x"], plain["x"])


def test_a_method_with_another_residual_is_noticed(monkeypatch):
    def call():
        return saef.virtual_iterate("saef", "quadratic", "topk(k=3)", 1.0, 5, 0)

    assert call().lower <= call().bound
    known = methods()["saef"]

    def step(s, w, h, t):
        made = known.step(s, w, h, t)
        return made._replace(s=made.s * (1 + 1e-6))

    from verify_rates.solvers import method

    monkeypatch.setitem(method._REGISTRY, "saef", replace(known, step=step))
    assert call().lower > call().bound


def test_the_exact_cases_are_not_exact_in_between():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saef, "QUADRATIC", {**saef.QUADRATIC, "common": False})
        found = saef.exact_case("common Hessian", "topk(k=1)", 0)
        assert found.lower > found.bound
        found = saef.exact_case("averaging", "topk(k=1)", 0)
        assert found.lower <= found.bound


@pytest.mark.parametrize(
    ("name", "text", "call"),
    [
        ("NONCONVEX_BOUND", "F0/(2*gamma*T)", lambda: saef.nonconvex_noise(0, 0, 1)),
        ("RESIDUAL", "2*(1-delta)*gamma**2*G2/delta**2", lambda: saef.residual_limit(0.1)),
        ("RESIDUAL", "gamma**2*G2*(1-delta)/delta/20", lambda: saef.residual("topk(k=1)", 0, 0)),
        ("AVERAGING", "32*d*2/H", lambda: saef.averaging_bits(3, 10, 4)),
    ],
)
def test_broken_formulas_are_refuted(monkeypatch, name, text, call):
    def violated(f):
        return f.lower > f.bound if f.relation == "<=" else f.lower != pytest.approx(f.bound)

    assert not violated(call())
    monkeypatch.setattr(saef, name, text)
    assert violated(call())


def test_the_mismatch_is_what_is_needed(monkeypatch):
    monkeypatch.setattr(saef, "NONCONVEX_BOUND", "F0/(100*gamma*T)")
    monkeypatch.setattr(saef, "mismatch", lambda s, alpha: np.zeros(len(s["x"])))
    found = saef.nonconvex("quadratic", 1, "topk(k=2)", 1.0)
    assert found.lower > found.bound


def test_only_the_smoothness_of_every_worker_will_do():
    """The smallest counterexample: two workers, two dimensions, three steps, top-1."""
    found = saef.nonconvex_noise(13, 1, 3, "average")
    assert found.proves and found.lower > found.bound
    each = saef.nonconvex_noise(13, 1, 3)
    assert each.lower <= each.bound


def test_a_ring_sends_what_it_must():
    held, sent = collectives.ring_all_reduce([[1, 2, 3, 4]] * 3)
    assert held == [[3, 6, 9, 12]] * 3 and sum(sent) == 2 * 2 * 4
    assert collectives.ring_numbers(1, 5) == 0


def test_bits_notice_another_count():
    assert saef.bits("topk(k=2)", "topk", 65).lower == 0 and saef.bits("scaled_sign", "topk", 65).lower > 0
