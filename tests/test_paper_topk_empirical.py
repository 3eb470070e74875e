"""Top-k against dense: the checks notice broken formulas; the calculators refuse bad input."""

import math

import pytest

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators import topk_empirical as topk


def test_broken_bytes_are_noticed(monkeypatch):
    honest = topk._bytes_dense
    monkeypatch.setattr(topk, "_bytes_dense", lambda d, n, v: honest(d, n, v) * 2)
    assert topk.times_of_rings(7, 1, 4).lower > 0 and topk.time_rule().lower > 0
    assert topk.break_even_rule(3).lower > 0


def test_broken_rings_are_noticed(monkeypatch):
    honest = topk.ring_all_gather
    monkeypatch.setattr(topk, "ring_all_gather", lambda n, size, *a: honest(n, 2 * size, *a))
    assert topk.bytes_rule(3, 4, 4).lower > 0 and topk.times_of_rings(7, 1, 4).lower > 0


def test_a_compressor_that_keeps_others_is_noticed(monkeypatch):
    from verify_rates.solvers.compressors import TopK

    assert topk.contraction(3, 1, 1).lower == topk.contraction(3, 1, 1).bound
    monkeypatch.setattr(TopK, "rows", lambda self, v, gens, xp: xp.where(xp.arange(v.shape[1]) < self.k, v, 0.0))
    assert topk.contraction(3, 1, 1).lower > topk.contraction(3, 1, 1).bound


def test_enumerations_notice_other_subsets(monkeypatch):
    honest = topk.itertools.combinations
    monkeypatch.setattr(topk.itertools, "combinations", lambda items, k: list(honest(items, k))[1:])
    assert topk.random_k(4, 2).lower > 0 and topk.union_growth(2, 1, 2).lower > 0


def test_break_even_on_both_sides_of_its_condition():
    d, k, n = 10**6, 1000, 8
    at = topk.break_even_bw(d, k, n, 0.02)
    for bw, wins in ((0.99 * at, True), (1.01 * at, False)):
        times = topk.iteration_seconds(d, k, n, bw, T_select=0.02)
        assert (times.topk < times.dense) is wins
    assert topk.break_even_bw(d, k, n, 0.0) == math.inf and topk.break_even_bw(d, d // 2, n, 0.1) == 0
    assert topk.saves_bytes(d, d // n - 1, n) and not topk.saves_bytes(d, d // n, n)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: topk.iteration_seconds(5, 6, 2, 1.0), "k must be at most d = 5"),
        (lambda: topk.iteration_seconds(5, 2, 0, 1.0), "n must be a whole number"),
        (lambda: topk.iteration_seconds(5, 2, 2, 0.0), "bw must be positive"),
        (lambda: topk.break_even_bw(5, 2, 2, float("nan")), "a time must be at least 0 and finite"),
    ],
)
def test_bad_input_is_one_sentence(call, words):
    with pytest.raises(UsageError, match=words):
        call()
