"""Compressors of single papers: their class, both engines, and DGC's released rule by hand."""

import numpy as np
import pytest

from verify_rates.solvers.chunks import sampled_selection
from verify_rates.solvers.compressor_check import check_compressor
from verify_rates.solvers.compressors import TopK, get_compressor
from verify_rates.solvers.method import UsageError

RTOL = 1e-13  # an orthonormal transform of at most 16 entries there and back
CLASSED = ["block_topk(k=2, chunk=5)", "block_topk(k=3, chunk=12)", "dct_topk(k=2, chunk=6)"]
OTHERS = ["sampled_topk(k=3, share=0.4)", "norm_sign", "sign"]


@pytest.mark.parametrize("spec", CLASSED)
def test_declared_class_survives_the_search(spec):
    made = get_compressor(spec)
    assert check_compressor(made, 12, np.random.default_rng(0)) == []
    assert made.describe() == spec and get_compressor(made.describe()) == made


@pytest.mark.parametrize("spec", CLASSED)
def test_the_class_is_tight(spec):
    """Equal entries, in the basis in which entries are chosen, lose exactly 1 - delta."""
    from verify_rates.solvers.chunks import dct_basis, in_chunks

    made = get_compressor(spec)
    v = np.ones((1, 12))
    if made.name == "dct_topk":
        v = in_chunks(v, dct_basis(6), np)
    assert np.sum((made(v) - v) ** 2) == pytest.approx((1 - made.constants(12)["delta"]) * 12, rel=RTOL)


@pytest.mark.parametrize("spec", CLASSED + OTHERS)
def test_kernel_and_rows_agree(spec):
    made, rng = get_compressor(spec), np.random.default_rng(1)
    kernel, params = made.compiled()
    for v in (*rng.normal(size=(30, 12)), *np.round(rng.normal(size=(30, 12)), 1), np.zeros(12), np.ones(12)):
        out = np.empty(12)
        bits = kernel(v, params, rng, out)
        said = made(v[None, :])[0]
        assert np.abs(out - said).max() <= RTOL * np.abs(v).max()
        assert bits == (made.bits(12) if made.bits(12) is not None else made.message_bits(said))


def test_one_piece_is_plain_top_k():
    v = np.random.default_rng(0).normal(size=(5, 12))
    assert np.array_equal(get_compressor("block_topk(k=4, chunk=99)")(v), TopK(4)(v))


def test_a_full_sample_is_plain_top_k_and_a_small_one_is_not():
    v = np.random.default_rng(0).normal(size=(20, 50))
    assert np.array_equal(get_compressor("sampled_topk(k=5, share=1)")(v), TopK(5)(v))
    assert not np.array_equal(get_compressor("sampled_topk(k=5, share=0.1)")(v), TopK(5)(v))


def test_the_released_rule_can_leave_out_the_largest_entry():
    """11 entries above the threshold, 10 wanted: within the 30 % that are not sorted again, the last one is dropped."""
    v = np.zeros(100)
    v[:10], v[99] = 1.0, 1000.0
    kept = sampled_selection(v, 10, 0.1)  # the sample sees entries 0, 10, ..., 90
    assert kept.sum() == 10 and not kept[99]
    assert np.sum(v[~kept] ** 2) > 0.99999 * np.sum(v**2)  # no class with a useful delta


def test_norm_sign_is_no_contraction():
    spike = np.eye(9)[:1]
    error = np.sum((get_compressor("norm_sign")(spike) - spike) ** 2)
    assert error == pytest.approx(2 * (1 - 1 / 3)) and error > 1
    assert np.sum((get_compressor("norm_sign")(np.ones((1, 9))) - 1) ** 2) < RTOL


@pytest.mark.parametrize(
    ("spec", "says"), [("block_topk(k=0)", "k of"), ("block_topk(k=7, chunk=5)", "at most"), ("sampled_topk(k=2, share=0)", "share")]
)
def test_bad_parameters_are_refused(spec, says):
    with pytest.raises(UsageError, match=says):
        get_compressor(spec).constants(10)
