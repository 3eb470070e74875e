"""Layered accumulation and modular pipelines: the checks notice broken schedules and formulas."""

from fractions import Fraction

import pytest

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators import lamy_poirier as lp


def test_other_orders_are_noticed(monkeypatch):
    honest = lp.orders
    monkeypatch.setattr(lp, "orders", lambda d_l, n_l, n_mu, modular, layered, backward=True: honest(d_l, n_l, n_mu, False, True, backward))
    assert lp.makespans(2, False).lower > 0 and lp.sharded_traffic(3, 2, False).lower > 0 and lp.reductions(3, 2).lower > 0


def test_other_formulas_are_noticed(monkeypatch):
    monkeypatch.setitem(lp.BUBBLES, True, "(n_l-1)*n_l/d_l")
    assert lp.bubbles().lower > 0
    honest = lp.backward_seconds
    monkeypatch.setattr(lp, "backward_seconds", lambda d, n, t, r, layered, join=max: honest(d, n, t, r, not layered, join))
    assert lp.reductions(3, 2).lower > 0
    monkeypatch.setattr(lp, "hidden_tokens", lambda C, B: C / B)
    assert lp.data_parallel_threshold().lower > 0


def test_checkpoints_are_counted(monkeypatch):
    monkeypatch.setattr(lp, "play", lambda *a, **k: lp.Step(0, 0, 1))
    assert lp.checkpoints(3, 2).lower > 0


def test_a_modular_pipeline_in_standard_order_is_slower():
    assert (
        lp.play(8, 4, 4, 1, modular=True, backward=False).seconds > lp.play(8, 4, 4, 1, modular=True, layered=True, backward=False).seconds
    )


def test_an_order_that_stands_still_is_found(monkeypatch):
    monkeypatch.setattr(lp, "orders", lambda *a: [[(1, 0), (0, 0)]])
    with pytest.raises(UsageError, match="stands still"):
        lp.play(2, 1, 1, 1, backward=False)


def test_the_optimum_beats_every_configuration_and_falls_with_both_methods():
    times = dict(start=Fraction(0), sequence=Fraction(1), reduce=Fraction(12))
    plain = lp.best_configuration(4, 8, 8, **times, modular=False, layered=False)
    both = lp.best_configuration(4, 8, 8, **times, modular=True, layered=True)
    every = [
        lp.play(8, n_l, n_mu, b_mu, 3 * b_mu, Fraction(12) * (n_b - 1) / n_b, modular=True, layered=True).seconds
        for n_b, n_l, n_mu, b_mu in lp.configurations(4, 8, 8)
    ]
    assert both.seconds == min(every) and len(every) > 5 and both.seconds < plain.seconds


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lp.forward_seconds(6, 4, 2, 1, True), "n_l must divide d_l = 6"),
        (lambda: lp.forward_seconds(4, 2, 0, 1, True), "n_mu must be a whole number"),
        (lambda: lp.hidden_tokens(1.0, 0.0), "bw must be positive"),
        (lambda: lp.best_configuration(7, 3, 5, start=0, sequence=1, reduce=0, modular=True, layered=True), "no configuration"),
    ],
)
def test_bad_input_is_one_sentence(call, words):
    with pytest.raises(UsageError, match=words):
        call()
