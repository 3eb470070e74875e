"""DeepCompile: the checks notice broken rules; the passes keep programs valid; bad input is one sentence."""

from fractions import Fraction

import pytest

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators import deepcompile as dc
from verify_rates.theory.calculators.deepcompile import Op


def test_another_fuse_rule_is_noticed(monkeypatch):
    monkeypatch.setattr(dc, "FUSE", Fraction(4, 5))
    assert dc.fuse_rule().lower > 0


def test_another_simulator_is_noticed(monkeypatch):
    honest = dc.play

    def other(ops, sizes, time):
        done = honest(ops, sizes, time)
        return done._replace(makespan=done.makespan - 1, gathers=done.gathers[1:], memory=[m + 9 for m in done.memory])

    monkeypatch.setattr(dc, "play", other)
    assert dc.exposed(1).lower > 0 and dc.makespan_bound_repaired(1).lower > 0
    assert dc.prefetch_memory((0,), 1, 5, True).lower > dc.prefetch_memory((0,), 1, 5, True).bound
    monkeypatch.setattr(
        dc, "play", lambda ops, sizes, time: honest(ops, sizes, time)._replace(gathers=honest(ops, sizes, time).gathers[::2])
    )
    assert dc.saving(2).lower > 0


def test_other_passes_are_noticed(monkeypatch):
    monkeypatch.setattr(dc, "persistent", lambda sizes, *a: list(sizes)[::-1])
    assert dc.order_of_sizes((2, 2)).lower > 0
    monkeypatch.setattr(dc, "prefetch", lambda ops, sizes, *a, **k: [op for op in ops for _ in (0, 1)])
    assert dc.prefetch_makespan_all(1).lower > 0
    assert dc.prefetch_memory_all(1, True).lower == 0  # twice the program needs no more memory
    monkeypatch.setattr(dc, "prefetch", lambda ops, sizes, *a, **k: [op._replace(base=99) for op in ops])
    assert dc.prefetch_memory_all(1, True).lower > 0


def test_the_released_check_misses_and_the_second_one_does_not():
    assert dc.prefetch_memory_all(2, False).lower > 0 == dc.prefetch_memory_all(2, True).lower


def test_prefetch_between_the_plain_and_the_best_placement():
    sizes = {"a": 2, "b": 1, "c": 3}
    ops = [op for p, t in (("a", 3), ("b", 1), ("c", 2)) for op in (Op("gather", (p,)), Op("compute", (p,), t))]
    plain = dc.play(ops, sizes, dc._byte).makespan
    moved = dc.play(dc.prefetch(ops, sizes, dc._byte, 100), sizes, dc._byte).makespan
    best, placed = dc.best_placement(ops, sizes, dc._byte, 100)
    assert dc.play(placed, sizes, dc._byte).makespan == best
    assert best <= moved <= plain and moved < plain


def test_the_list_schedule_frees_parameters_soonest():
    tasks = {"f": ((), ("a",), 1), "g": ((), ("b", "c"), 1), "h": (("f", "g"), ("d",), 1)}
    ops = dc.list_schedule(tasks, {"a": 9, "b": 1, "c": 1, "d": 1})
    assert ops[0].parameters == ("a",) and ops[2].kind == "release"  # a alone is enough to run and to be freed
    assert sum(op.kind == "gather" for op in ops) == 4 and [op.kind for op in ops].count("compute") == 3
    assert dc.play(ops, {"a": 9, "b": 1, "c": 1, "d": 1}, dc._byte).makespan > 0


def test_offloading_keeps_within_the_limit_and_reloads_all_that_fits():
    peaks, states = [2, 5, 8, 3], [3, 2, 1]
    gone = dc.offload(peaks, states, 10)
    assert gone == sorted(gone) and all(peak + sum(states[g:]) <= 9 or g == 3 for peak, g in zip(peaks, gone, strict=True))
    back = dc.reload(peaks[::-1], states, 10)
    assert all(sum(states[:b]) + max(peaks[::-1][i + 1 :], default=0) < 9 for i, b in enumerate(back) if b) and back[-1] == 3


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: dc.play([Op("compute", ("a",), 1)], {"a": 1}, dc._byte), "'a', which is not gathered"),
        (lambda: dc.play([Op("gather", ("a",))], {}, dc._byte), "'a' has no size"),
        (lambda: dc.play([Op("reduce")], {}, dc._byte), "not 'reduce'"),
        (lambda: dc.prefetch([], {}, dc._byte, 0), "device_bytes must be positive"),
        (lambda: dc.best_placement([Op("gather", (p,)) for p in "abcdefghi"], {}, dc._byte, 9), "at most 8 gathers"),
        (lambda: dc.prefetch([Op("gather", ("a",))] * 2, {"a": 1}, dc._byte, 9), "'a' is gathered more than once"),
        (lambda: dc.saving(0), "accumulate must be a whole number"),
    ],
)
def test_bad_input_is_one_sentence(call, words):
    with pytest.raises(UsageError, match=words):
        call()
