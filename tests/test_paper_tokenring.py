"""TokenRing: the checks notice a broken merge, protocol or formula; the calculators refuse bad input."""

from fractions import Fraction

import numpy as np
import pytest

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators import tokenring as tr


def test_a_broken_merge_is_noticed(monkeypatch):
    honest = tr.merge
    monkeypatch.setattr(tr, "merge", lambda o, l, ob, lb: (honest(o, l, ob, lb)[0], np.maximum(l, lb)))
    found = tr.merged_attention(3, 0, 1.0)
    assert found.lower > found.bound


def test_a_broken_protocol_is_noticed(monkeypatch):
    honest = tr.protocol
    monkeypatch.setattr(tr, "protocol", lambda N: honest(N)[:-1])
    for found in (tr.transfers(3), tr.bytes_per_rank(3, 2, 4, 4, 8)):
        assert found.lower > 0
    monkeypatch.setattr(tr, "protocol", lambda N: [m for m in honest(N) if m.what == "query"])
    assert tr.step_times(3).lower > 0 and tr.hops(3, False).lower != 3


def test_broken_formulas_are_noticed(monkeypatch):
    monkeypatch.setattr(tr, "ratio", lambda a, b, d: 2 * (b / a) / (1 + 1 / d))
    assert tr.ratio_formula().lower > 0 and tr.ratio_value().lower > 0.005
    honest = tr.sizes
    monkeypatch.setattr(tr, "sizes", lambda *a, **k: honest(*a, **k)._replace(lse=1, compute=0))
    assert tr.sizes_of_arrays(2, 4, 4, 8).lower > 0 and tr.bytes_per_rank(3, 2, 4, 4, 8).lower == 0  # both sides take lse


def test_zigzag_is_no_half_for_odd_blocks():
    assert tr.zigzag(2, 4).lower == 0 and tr.zigzag(2, 3).lower > 0


def test_step_two_misses_the_measured_time_by_sixteen_percent():
    assert 0.15 < tr.readme("second").lower < 0.17 and tr.readme("first").lower < 0.10


def test_few_key_heads_make_tokenring_lose():
    for h_kv in (1, 2, 4, 8, 16):
        s = tr.sizes(1000, 32, h_kv, 128, 1e30)  # communication bound
        faster = tr.tokenring_seconds(64, s, 1.0) < tr.ring_seconds(64, s, 1.0)
        assert not faster and tr.ratio(32, h_kv, 128) < 1
    s = tr.sizes(1000, 32, 32, 128, 1e30)
    assert tr.tokenring_seconds(64, s, 1.0) < tr.ring_seconds(64, s, 1.0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tr.sizes(0, 4, 4, 8, 1.0), "n must be a whole number"),
        (lambda: tr.sizes(2, 4, 3, 8, 1.0), "multiple of h_kv"),
        (lambda: tr.sizes(2, 4, 4, 8, 0.0), "F must be positive"),
        (lambda: tr.tokenring_seconds(2, tr.sizes(2, 4, 4, 8, Fraction(1)), 1), "at least 3"),
    ],
)
def test_bad_input_is_one_sentence(call, words):
    with pytest.raises(UsageError, match=words):
        call()
