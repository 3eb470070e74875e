"""ZEN: the checks notice broken formulas and broken traffic; the calculators refuse bad input."""

from fractions import Fraction

import pytest

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators import zen


def test_broken_times_are_noticed(monkeypatch):
    honest = zen.sync_seconds
    monkeypatch.setattr(zen, "sync_seconds", lambda *a, **k: zen.Times(*(2 * t for t in honest(*a, **k))))
    for found in (zen.bp_time("random", 4), zen.hc_time("random", 4), zen.agsparse_words(4), zen.dense_time(4), zen.messages(4)):
        assert found.lower > found.bound


def test_broken_traffic_is_noticed(monkeypatch):
    monkeypatch.setattr(zen, "union", lambda sets: frozenset(sets[0]))
    assert zen.ring_first_half("random", 4).lower > 0
    monkeypatch.setattr(zen, "skewness", lambda s, M, n: Fraction(1))
    assert zen.sparse_ps_all(4, 2, 2).lower > 0


def test_a_scheme_outside_the_bounds_is_noticed(monkeypatch):
    monkeypatch.setitem(zen.CENTRAL, ("ring", "one-shot"), lambda n, g: 1)
    assert zen.theorem_1(4, 2).lower > 0


def test_other_densities_bitmaps_and_rounds_are_noticed(monkeypatch):
    honest, owners = zen.independent, zen.hash_owners
    monkeypatch.setattr(zen, "independent", lambda d: lambda k: 1 + 11 * (honest(d)(k) - 1) / 10)
    assert zen.union_of_independent(2, 2).lower > 0 and zen.crossover_table().lower > 0.5
    monkeypatch.setattr(zen, "hash_owners", lambda M, n: owners(M - 1, n))
    assert zen.bitmap_words(64, 4).lower > 0
    monkeypatch.setattr(zen.math, "ceil", lambda x: int(x))
    assert zen.broadcast(3, 12, True).lower > 0


def test_the_probability_of_imbalance_needs_its_constant(monkeypatch):
    monkeypatch.setattr(zen.math, "sqrt", lambda x: 0.5 * x**0.5)
    found = zen.balance_of_hashing(16, 1000, True)
    assert found.lower > found.bound


def test_hashing_balances_and_slices_do_not():
    sets = zen.supports("zipf", 16, 60_000, 3000)
    assert max(zen.imbalance(sets, zen.hash_owners(60_000, 16))) < 1.35  # 1 + 3*sqrt(16*log(16)/3000) = 1.36
    assert max(zen.imbalance(sets, [x * 16 // 60_000 for x in range(60_000)])) > 5


def test_nothing_is_lost_and_limits():
    same = [frozenset({1, 2})] * 8
    apart = [frozenset({2 * i, 2 * i + 1}) for i in range(8)]
    assert sum(level[0] for level in zen.doubling(same)) == 3 * 4 and sum(level[0] for level in zen.doubling(apart)) == 7 * 4
    full = zen.sync_seconds(Fraction(80), 8, Fraction(1, 40), Fraction(1), lambda k: Fraction(k))
    assert full.hc == 7 * 4 and full.bp == 4 * Fraction(7, 8) * 9


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: zen.sync_seconds(1.0, 6, 0.1, 1.0), "power of two"),
        (lambda: zen.sync_seconds(1.0, 4, 1.5, 1.0), r"\(0, 1\]"),
        (lambda: zen.sync_seconds(1.0, 4, 0.1, float("inf")), "b must be positive and finite"),
        (lambda: zen.crossover(2), "at least 4"),
        (lambda: zen.supports("zip", 2, 8, 2), "did you mean 'zipf'"),
    ],
)
def test_bad_input_is_one_sentence(call, words):
    with pytest.raises(UsageError, match=words):
        call()
