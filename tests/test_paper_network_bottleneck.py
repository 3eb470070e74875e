"""Network bottleneck: verdicts notice broken formulas, special cases, and bad input."""

import math

import pytest

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators import network_bottleneck as nb


def test_a_broken_all_reduce_is_noticed(monkeypatch):
    honest = nb.all_reduce_seconds
    monkeypatch.setattr(nb, "all_reduce_seconds", lambda size, n, bw, c=1, add=nb.add_seconds, lat=0: honest(size, n, bw, c, add, lat) / 2)
    assert nb.ring_time(3, False).lower > 0 and nb.ring_time(3, True).lower > 0
    assert nb.throughput_ratio().lower > 0 and nb.last_bucket(1).lower == 0  # both sides halve
    assert nb.table("resnet50").lower > nb.TABLE_ATOL


def test_a_broken_link_is_noticed(monkeypatch):
    monkeypatch.setattr(nb, "fifo", lambda jobs, join=max: [join(r, 0) + d for r, d in jobs])
    assert nb.max_plus_form(3).lower > 0
    assert nb.table("resnet50").lower > nb.TABLE_ATOL
    monkeypatch.setattr(nb, "fifo", lambda jobs, join=max: [d for _, d in jobs])
    assert nb.last_bucket(2).lower > 0


def test_a_link_that_loses_by_speed_is_noticed(monkeypatch):
    monkeypatch.setattr(nb, "all_reduce_seconds", lambda size, n, bw, c=1, add=None, lat=0: bw + c)
    assert nb.monotone(1).lower > 0


def test_published_factors_are_bounded_by_totals(monkeypatch):
    assert nb.table_within_totals("vgg16").lower < nb.PRINTED_ATOL
    monkeypatch.setitem(nb.TABLE["vgg16"], (10, 16, 5), 0.80)
    assert nb.table_within_totals("vgg16").lower > nb.PRINTED_ATOL


def test_headline_with_too_little_compression():
    assert nb.headline_simulated("vgg16", 10, 16, 5).upper < nb.NEAR_ONE
    assert nb.headline("vgg16", 10, 16, 5).upper < nb.NEAR_ONE < nb.headline("vgg16", 10, 16, 10).upper


def test_tensor_lists_have_the_published_totals():
    for name, count, total in (("resnet50", 161, 102_228_128), ("resnet101", 314, 178_196_640), ("vgg16", 58, 553_463_968)):
        made = nb.model(name)
        assert len(made.tensors) == count and sum(size for size, _ in made.tensors) == total
        assert math.isclose(sum(w for w, _ in made.events("work")), made.T_back)


def test_special_cases():
    events = nb.model("resnet50").events()
    assert nb.overhead(events, 1, 1e9) == 0
    adds_only = nb.overhead(events, 16, 1e9, compression=1e12)
    assert math.isclose(adds_only, nb.overhead(events, 16, 1e30), rel_tol=1e-9)
    one = [(0.01, 1e6)]
    assert math.isclose(nb.overhead(one, 8, 1e9), nb.all_reduce_seconds(1e6, 8, 1e9), rel_tol=1e-12)
    many = nb.overhead([(0.0, 1e4)] * 100, 8, 1e12, lat=1e-3, flush_bytes=1e4)
    assert nb.overhead([(0.0, 1e4)] * 100, 8, 1e12, lat=1e-3, flush_bytes=1e6) < many  # latency: one bucket wins


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"events": []}, "at least one"),
        ({"events": [(-1, 2)]}, "a wait must be"),
        ({"events": [(1, float("nan"))]}, "a size must be"),
        ({"n": 0}, "n must be a whole number"),
        ({"bw": 0}, "bw must be positive"),
        ({"compression": 0.5}, "compression must be at least 1"),
    ],
)
def test_bad_input_is_one_sentence(change, words):
    with pytest.raises(UsageError, match=words):
        nb.scaling_factor(**{"events": [(1.0, 1.0)], "n": 2, "bw": 1e9, "t_batch": 1.0, **change})


def test_weights_of_the_backward_pass_are_checked():
    with pytest.raises(UsageError, match="weights must be 2 numbers"):
        nb.spread_backward([1, 2], 1.0, [1])


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'resnet50'"):
        nb.model("resnet5")
