"""Poplar: the checks notice rules that are not optimal and broken formulas; the calculators refuse bad input."""

import itertools
from fractions import Fraction

import pytest

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators import poplar


def test_a_sweep_over_too_few_budgets_is_noticed(monkeypatch):
    honest = poplar.sweep
    monkeypatch.setattr(poplar, "sweep", lambda curves, gbs, c=0: honest([curve[:1] for curve in curves], gbs, c))
    assert poplar.sweep_is_optimal(1, 3, 3).lower > 0


def test_more_steps_for_a_slower_collective_are_noticed(monkeypatch):
    monkeypatch.setattr(poplar, "sweep", lambda curves, gbs, c=0: poplar.Plan(1, int(c), ()))
    assert poplar.steps_fall(1, 1, 1).lower > 0


def test_other_shares_are_noticed(monkeypatch):
    monkeypatch.setattr(poplar, "proportional", lambda v, gbs: poplar.Plan(gbs / sum(v) * 2, 1, tuple(gbs / len(v) for _ in v)))
    assert poplar.proportional_is_optimal(2, 2, 4).lower > 0
    honest = poplar.printed_level
    monkeypatch.setattr(poplar, "printed_level", lambda v, a, gbs: honest(v, a, gbs) + 1)
    assert poplar.affine_is_optimal(2, 2, 4).lower > 0


def test_other_bytes_are_noticed(monkeypatch):
    monkeypatch.setitem(poplar.MEMORY, 2, "4*a + 12*a/n")
    assert poplar.memory(2, 4).lower > 0 and poplar.memory(1, 4).lower == 0
    honest = poplar.ring_all_gather
    monkeypatch.setattr(poplar, "ring_all_gather", lambda n, size, s: honest(2 * n, size, s))
    assert poplar.volumes(0, 4).lower > poplar.volumes(0, 4).bound


def test_the_printed_affine_rule_gives_a_negative_share():
    assert "-1" in poplar.printed_affine((1, 1), (0, 3), 1).message


def test_independent_accumulation_against_all_splits():
    curves = [[2, 3, 7], [1, 4], [5]]
    for gbs in range(1, 7):
        best = min(
            max(poplar._alone(c, B)[B] for c, B in zip(curves, split, strict=True))
            for split in itertools.product(range(gbs + 1), repeat=3)
            if sum(split) == gbs
        )
        assert poplar.independent(curves, gbs).seconds == best


def test_curves_from_rising_samples_rise_and_are_not_extrapolated():
    made = poplar.curve({1: 1.0, 2: 1.1, 3: 5.0, 8: 5.1})
    assert made == sorted(made) and len(made) == 8 and made[2] == 5.0
    with pytest.raises(UsageError, match="at or beyond the largest batch"):
        poplar.curve({1: 1.0, 4: 2.0}, most=5)


def test_gain_tends_to_one_as_speeds_equalise():
    gains = [poplar.gain([Fraction(1), 1 + Fraction(1, k)]) for k in (1, 10, 100)]
    assert gains == sorted(gains, reverse=True) and gains[-1] < 1.01


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: poplar.sweep([], 3), "every GPU needs a curve"),
        (lambda: poplar.sweep([[1, float("inf")]], 3), "a time must be positive and finite"),
        (lambda: poplar.sweep([[1]], 0), "gbs must be a whole number"),
        (lambda: poplar.equal_finish([1], [1, 2], 3), "same length"),
        (lambda: poplar.proportional([0], 3), "a speed must be positive"),
        (lambda: poplar.memory_bytes(10, 4, 2), "ZeRO stage"),
    ],
)
def test_bad_input_is_one_sentence(call, words):
    with pytest.raises(UsageError, match=words):
        call()
