"""Deep gradient compression: reductions, schedules, and checks that notice a broken formula or method."""

from fractions import Fraction

import numpy as np
import pytest

from verify_rates.problems import get_problem
from verify_rates.solvers.engine.run import simulate
from verify_rates.theory.calculators import dgc

AGREE = 1e-12  # some hundred steps of a contracting recursion in double precision
PROBLEM = get_problem("quadratic", n=3, d=6, sigma2=0.1, zeta2_star=0.5)


def run(method, hyper, compressor="topk(k=2)"):
    return simulate(method, PROBLEM, {"gamma": 0.05, **hyper}, steps=100, compressor=compressor, engine="numpy").final["x"][0]


def test_nothing_compressed_is_momentum_without_and_plain_sgd_with_masking():
    momentum, sgd = run("heavy_ball", {"beta": 0.7}, None), run("gd", {}, None)
    assert np.abs(run("dgc_unmasked", {"beta": 0.7}, "identity") - momentum).max() < AGREE
    assert np.abs(run("dgc", {"beta": 0.7}, "identity") - sgd).max() < AGREE < np.abs(sgd - momentum).max()


@pytest.mark.parametrize("compressor", ["topk(k=2)", "sampled_topk(k=2, share=0.5)"])
def test_without_momentum_it_is_error_feedback(compressor):
    masked, unmasked = (run(m, {"beta": 0.0}, compressor) for m in ("dgc", "dgc_unmasked"))
    plain = simulate("dd_ef_sgd", PROBLEM, {"gamma": 0.05}, steps=100, compressor=compressor, engine="numpy").final["x"][0]
    for x in (masked, unmasked):
        assert np.abs(x - plain).max() < AGREE
    assert np.abs(run("dgc", {"beta": 0.5}, compressor) - plain).max() > AGREE


def test_nesterov_looks_one_step_ahead():
    """Uncompressed and unmasked: u <- m (u + g), x <- x - gamma (u + g), as optimisers write it."""
    exact = get_problem("quadratic", n=2, d=4)
    h = simulate("dgc_unmasked", exact, {"gamma": 0.1, "beta": 0.6, "nesterov": 1}, steps=50, compressor="identity", engine="numpy")
    x, u = np.zeros(4), np.zeros(4)
    for _ in range(50):
        g = exact.grads(x).mean(axis=0)
        u = 0.6 * (u + g)
        x = x - 0.1 * (u + g)
    assert np.abs(h.final["x"][0] - x).max() < AGREE


def test_masking_clears_both_memories_where_something_was_sent():
    h = simulate("dgc", PROBLEM, {"gamma": 0.05, "beta": 0.7}, steps=7, compressor="topk(k=2)", engine="numpy")
    u, v = h.final["u"][0], h.final["v"][0]
    assert ((v == 0).sum(axis=1) == 2).all() and (u[v == 0] == 0).all() and (u[v != 0] != 0).all()


def test_warm_up_schedules_end_at_the_target_and_differ():
    paper, code = [dgc.paper_density(e) for e in range(8)], [dgc.code_density(e, 0.001, 5) for e in range(8)]
    assert paper == sorted(paper, reverse=True) and code == sorted(code, reverse=True)
    assert paper[-1] == pytest.approx(0.001) and code[-1] == 0.001 and code[0] == pytest.approx(0.3162, abs=1e-4)


def test_the_local_threshold_is_for_a_sum():
    """Independent gradients of norm s: their sum has norm about sqrt(n) s, so n thresholds of n**(-1/2) are right for the sum alone."""
    g = np.random.default_rng(0).normal(size=(200, 16, 50))
    one, total = np.linalg.norm(g, axis=2).mean(), np.linalg.norm(g.sum(axis=1), axis=1).mean()
    assert total / one == pytest.approx(4.0, rel=0.02)  # 200 draws of a norm in 50 dimensions: a tenth over sqrt(200)
    assert dgc.local_clip(total, 16) == pytest.approx(one, rel=0.02)


def test_the_identity_holds_for_one_method_and_not_for_the_other():
    assert dgc.virtual_sequence("quadratic", "topk(k=2)", 0.9, 0).lower < 1e-14
    assert dgc.masking("quadratic", "topk(k=2)", 0.0, 0).lower < 1e-14  # no momentum: nothing is masked away
    assert dgc.masking("quadratic", "topk(k=2)", 0.9, 0).lower > 0.01


@pytest.mark.parametrize(
    ("name", "value", "call"),
    [
        ("BOUND", "F0/(2*gamma*N)", lambda: dgc.ef_bound("quadratic", "topk(k=6)", 0.1)),
        ("LAST_AGE", 1, lambda: dgc.block_coefficients(3, True)),
        ("VALUE_BITS", 64, lambda: dgc.ratio("1/1000", 16, "2000/3")),
        ("CROSSOVER", Fraction(64, 32), lambda: dgc.crossover("1/16", 22)),
    ],
)
def test_broken_formulas_are_refuted(monkeypatch, name, value, call):
    def violated(f):
        return f.lower > f.bound if f.relation == "<=" else f.lower != pytest.approx(f.bound)

    assert not violated(call())
    monkeypatch.setattr(dgc, name, value)
    assert violated(call())
