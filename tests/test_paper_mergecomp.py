"""MergeComp: verdicts, and checks that notice broken formulas."""

import pytest

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators import mergecomp, streams
from verify_rates.theory.calculators.mergecomp import affine


def test_broken_closed_forms_are_noticed(monkeypatch):
    monkeypatch.setattr(mergecomp, "TWO_GROUPS", mergecomp.TWO_GROUPS.replace("2*Bg", "Bg"))
    monkeypatch.setattr(mergecomp, "ONE_GROUP", mergecomp.ONE_GROUP.replace("gh*X", "2*gh*X"))
    assert mergecomp.two_groups_form(3).lower > 0 and mergecomp.one_group_form(2).lower > 0


def test_another_stream_order_is_noticed(monkeypatch):
    honest = mergecomp.fifo
    monkeypatch.setattr(mergecomp, "fifo", lambda jobs, join=max: honest([(r + 1, d) for r, d in jobs], join))
    assert mergecomp.objective(2).lower > 0 and mergecomp.two_groups_form(2).lower > 0


def test_a_search_that_goes_the_wrong_way_is_noticed(monkeypatch):
    honest = mergecomp.binary_search

    def lazy(times, sizes, encode, transfer, before=()):
        return honest(times[:2], sizes[:2], encode, transfer)._replace(seconds=mergecomp.step_seconds(times, sizes, [1], encode, transfer))

    assert mergecomp.search_is_exact(3).lower == 0
    monkeypatch.setattr(mergecomp, "binary_search", lazy)
    assert mergecomp.search_is_exact(3).lower > 0


def test_another_condition_of_harm_is_noticed(monkeypatch):
    monkeypatch.setattr(mergecomp, "harmful", lambda h, c, g: h + c >= g)
    assert mergecomp.harm_of_one_group(2).lower > 0


def test_one_group_or_two(monkeypatch):
    assert mergecomp.one_or_two(2).lower == 0
    honest = mergecomp.best_groups
    monkeypatch.setattr(mergecomp, "best_groups", lambda *a: honest(*a)._replace(seconds=honest(*a).seconds + 1))
    assert mergecomp.one_or_two(2).lower > 0


def test_the_search_over_groups_uses_fewer_timings_and_is_optimal_within_its_groups():
    times, sizes, costs = list(range(1, 13)), [5, 1, 4, 2, 8, 3, 1, 1, 9, 2, 6, 5], (affine(1, 1), affine(2, 1))
    plan = mergecomp.y_search(times, sizes, *costs, most=3)
    best = min(mergecomp.best_groups(times, sizes, y, *costs).seconds for y in (1, 2, 3))
    assert plan.seconds == best and plan.evaluated < 11 + 55
    assert mergecomp.step_seconds(times, sizes, plan.cuts, *costs) == plan.seconds


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mergecomp.step_seconds([1], [1, 2], [], affine(0, 1), affine(0, 1)), "same length"),
        (lambda: mergecomp.step_seconds([1, -1], [1, 2], [], affine(0, 1), affine(0, 1)), "a backward time must be at least 0"),
        (lambda: mergecomp.step_seconds([1, float("nan")], [1, 2], [], affine(0, 1), affine(0, 1)), "finite"),
        (lambda: mergecomp.step_seconds([1, 1], [1, 2], [2], affine(0, 1), affine(0, 1)), "cuts must increase within"),
        (lambda: mergecomp.best_groups([1, 1], [1, 2], 3, affine(0, 1), affine(0, 1)), "groups must be in"),
        (lambda: mergecomp.binary_search([1], [1], affine(0, 1), affine(0, 1)), "no cut left"),
        (lambda: mergecomp.harm_by_totals((0,), (1,), (0, 0), (0, 0), (1, 1)), "does not meet"),
    ],
)
def test_bad_input_is_one_sentence(call, words):
    with pytest.raises(UsageError, match=words):
        call()


def test_maxima_are_compared_as_functions():
    import sympy as sp

    a, b, c = sp.symbols("a b c", nonnegative=True)
    assert streams.same_maximum(c + sp.Max(a, a / 2), a + c)
    assert streams.same_maximum(sp.Max(a, b, (a + b) / 2), sp.Max(a, b))
    assert not streams.same_maximum(sp.Max(a, b, a / 2 + b), sp.Max(a, b))


def test_rings_played_message_by_message():
    from fractions import Fraction

    done = streams.ring_all_reduce(3, Fraction(5), Fraction(1, 2), Fraction(1, 7), lambda x: x)
    assert done.seconds == 4 * (Fraction(1, 7) + Fraction(5, 6)) + 2 * Fraction(5, 3) and done.sent == [Fraction(20, 3)] * 3
