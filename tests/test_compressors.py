import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest

from verify_rates.solvers import compressors as module
from verify_rates.solvers.compressor_check import check_compressor
from verify_rates.solvers.compressors import (
    QSGD,
    HardThreshold,
    Identity,
    RandK,
    ScaledSign,
    TopK,
    compressor,
    compressors,
    get_compressor,
    index_bits,
)
from verify_rates.solvers.method import UsageError
from verify_rates.solvers.words import Unsupported

MEMBERS = ["identity", "topk(k=3)", "randk(k=3)", "randk(k=3, scaled=true)", "scaled_sign", "qsgd(levels=4)", "hard_threshold(lam=0.5)"]
RTOL = 1e-15  # one sum or norm in another order: a few units in the last place, relative to the largest entry
RTOL_MOMENT = 1e-12  # sums of squares over at most 1e4 terms
LAST = 1 - 2.0**-53  # the largest draw


class Fixed:
    """A generator whose draws are given."""

    def __init__(self, *draws):
        self.left = list(draws)

    def random(self, size):
        return np.array([self.left.pop(0) for _ in range(size)])


def gens(n):
    return [np.random.default_rng(i) for i in range(n)]


def vectors(d=11):
    rng = np.random.default_rng(1)
    yield np.zeros((2, d))
    yield np.ones((2, d))
    yield np.round(rng.normal(size=(40, d)), 1)  # many ties
    yield rng.normal(size=(40, d)) * 10.0 ** rng.integers(-100, 100, (40, 1))
    yield np.eye(d)
    yield -np.eye(d) * 1e-160


# --- constants -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", MEMBERS)
@pytest.mark.parametrize("d", [3, 11])
def test_declared_class_survives_the_search(spec, d):
    assert check_compressor(get_compressor(spec), d, np.random.default_rng(d)) == []


class Claims:
    """Another compressor with other constants: what the check must catch."""

    def __init__(self, inner, **constants):
        self.inner, self.declared, self.name = inner, constants, inner.name

    def constants(self, d):
        return self.declared

    def __call__(self, *args):
        return self.inner(*args)

    def __getattr__(self, name):
        return getattr(self.inner, name)


@pytest.mark.parametrize(
    ("inner", "constants", "found"),
    [
        (TopK(3), {"delta": 3 / 11 * 1.001}, "delta"),
        (RandK(3), {"delta": 3 / 11 * 1.1}, "delta"),
        (RandK(3), {"omega": 11 / 3 - 1}, "unbiased"),
        (TopK(3), {"omega": 11 / 3 - 1}, "unbiased"),
        (RandK(3, scaled=True), {"omega": (11 / 3 - 1) * 0.9}, "omega"),
        (RandK(3, scaled=True), {"delta": 3 / 11}, "delta"),
        (ScaledSign(), {"delta": 1.001 / 11}, "delta"),
        (QSGD(4), {"omega": 0.12}, "omega"),
        (QSGD(1), {"omega": 0.0}, "omega"),
        (HardThreshold(0.5), {"Delta2": 11 * 0.25 * 0.98}, "Delta2"),
        (HardThreshold(0.5), {"delta": 0.01}, "delta"),
        (TopK(3), {"Delta2": 1e6}, "Delta2"),
    ],
)
def test_a_wrong_constant_is_found_with_its_witness(inner, constants, found):
    violations = check_compressor(Claims(inner, **constants), 11, np.random.default_rng(0))
    assert violations[0].constant == found
    assert violations[0].vector.shape == (11,) and inner.name in str(violations[0])


def test_the_check_is_sound_for_rare_large_errors():
    """Mean ratio exactly 1, by a rare large error: must not be accused (a normal interval would accuse it half of the time)."""

    @compressor(delta=lambda d: 0.5, bits=lambda d: 32.0 * d, name="rare")
    def rare(v, gen):
        return v * (1 + np.sqrt(0.5 / 0.001)) if gen.random() < 0.001 else v

    try:
        accused = [check_compressor(rare(), 3, np.random.default_rng(seed)) for seed in range(5)]
    finally:
        del module._REGISTRY["rare"]
    assert accused == [[]] * 5


@pytest.mark.parametrize("k", [1, 2, 5])
def test_rand_k_takes_every_subset_equally_often(k):
    """All draws on the grid that decides: Floyd's steps hit every k-subset equally often."""
    d = 5
    ranges = [range(j + 1) for j in range(d - k, d)]
    counts = {}
    for choice in itertools.product(*ranges):
        draws = [(c + 0.5) / len(r) for c, r in zip(choice, ranges, strict=True)]
        m = RandK(k)(np.arange(1.0, d + 1)[None], [Fixed(*draws)])[0]
        key = tuple(np.flatnonzero(m))
        counts[key] = counts.get(key, 0) + 1
    assert len(counts) == math.comb(d, k) and len(set(counts.values())) == 1 and all(len(key) == k for key in counts)


@pytest.mark.parametrize("scaled", [False, True])
def test_rand_k_moments_by_enumeration(scaled):
    d, k, v = 6, 2, np.array([3.0, -1.0, 0.5, 0.0, 2.0, -4.0])
    c = RandK(k, scaled)
    outcomes = [c(v[None], [Fixed((i + 0.5) / (d - 1), (j + 0.5) / d)])[0] for i in range(d - 1) for j in range(d)]
    error = np.mean([np.sum((m - v) ** 2) for m in outcomes]) / np.sum(v**2)
    expected = c.constants(d)["omega"] if scaled else 1 - c.constants(d)["delta"]
    assert error == pytest.approx(expected, rel=RTOL_MOMENT)
    bias = np.mean(outcomes, axis=0) - (v if scaled else k / d * v)
    assert np.abs(bias).max() <= RTOL_MOMENT * np.abs(v).max()


@pytest.mark.parametrize("levels", [1, 2, 4, 16])
def test_qsgd_moments_by_integration(levels):
    """Each entry is rounded down or up at one draw; that draw is its probability, which must make it unbiased."""
    d, rng, worst = 9, np.random.default_rng(2), 0.0
    c = QSGD(levels)
    for v in [*rng.normal(size=(30, d)), np.ones(d), np.eye(d)[0], np.r_[np.ones(3), np.zeros(d - 3)]]:
        down, up = (c(v[None], [Fixed(*[u] * d)])[0] for u in (LAST, 0.0))
        gap = np.where(up == down, 1.0, up - down)
        p = (v - down) / gap  # the probability of rounding up that makes it unbiased
        for shift in (-1e-9, 1e-9):
            draws = np.clip(p + shift, 0.0, LAST)
            m = c(v[None], [Fixed(*draws)])[0]
            inner = (p > 1e-8) & (p < 1 - 1e-8)
            assert np.allclose(m[inner], (up if shift < 0 else down)[inner], rtol=RTOL_MOMENT)
        worst = max(worst, float(np.sum((up - v) * (v - down)) / np.sum(v**2)))
    assert worst <= c.constants(d)["omega"] * (1 + RTOL_MOMENT)
    assert worst >= 0.1 * c.constants(d)["omega"]  # the bound is no accident of scale


@pytest.mark.parametrize("spec", MEMBERS)
def test_members_say_whether_they_draw(spec):
    g = gens(1)
    get_compressor(spec)(np.ones((1, 5)), g)
    assert (g[0].bit_generator.state != gens(1)[0].bit_generator.state) == get_compressor(spec).random


def test_tight_vectors():
    d, k = 8, 3
    equal, spike = np.ones((1, d)), np.eye(d)[:1]
    assert np.sum((TopK(k)(equal) - equal) ** 2) == d - k
    assert np.sum((ScaledSign()(spike) - spike) ** 2) == pytest.approx(1 - 1 / d, rel=RTOL_MOMENT)
    below = np.full((1, d), 0.5 * (1 - 1e-12))
    assert np.sum((HardThreshold(0.5)(below) - below) ** 2) == pytest.approx(d * 0.25, rel=1e-11)
    assert np.array_equal(HardThreshold(0.5)(-0.5 * equal), -0.5 * equal)  # at lam it is kept


def test_scaled_sign_identity():
    v = np.random.default_rng(0).normal(size=(20, 7))
    error = np.sum((ScaledSign()(v) - v) ** 2, axis=1)
    assert error == pytest.approx(np.sum(v**2, axis=1) - np.sum(np.abs(v), axis=1) ** 2 / 7, rel=1e-12)


# --- array version, compiled version, other array libraries ----------------------------------------------------------


@pytest.mark.parametrize("spec", MEMBERS)
def test_compiled_equals_arrays(spec):
    c = get_compressor(spec)
    kernel, params = c.compiled()
    for v in vectors():
        m, g = c(v, gens(len(v))), gens(len(v))
        for i, row in enumerate(v):
            out = np.full(row.shape, np.nan)
            bits = kernel(row.copy(), params, g[i], out)
            assert np.abs(out - m[i]).max() <= RTOL * np.abs(m[i]).max()
            assert bits == c.message_bits(m[i])
            if spec.startswith(("topk", "randk", "hard", "identity")):
                assert np.array_equal(out, m[i])
        assert [x.bit_generator.state for x in g] == [x.bit_generator.state for x in _used(c, v)]


def _used(c, v):
    g = gens(len(v))
    c(v, g)
    return g


@pytest.mark.parametrize("spec", MEMBERS)
def test_any_array_library(spec):
    xp = pytest.importorskip("array_api_strict")
    c = get_compressor(spec)
    for v in vectors():
        m = c(xp.asarray(v), gens(len(v)), xp)
        assert isinstance(m, type(xp.asarray(v)))
        np.testing.assert_allclose(np.asarray(m), c(v, gens(len(v))), rtol=RTOL, atol=0)


def test_top_k_ties_go_to_the_lowest_index():
    v = np.array([[1.0, -2.0, 2.0, 1.0, -2.0], [0.0, 0.0, 0.0, 0.0, 0.0]])
    assert TopK(2)(v).tolist() == [[0.0, -2.0, 2.0, 0.0, 0.0], [0.0] * 5]
    assert TopK(4)(v)[0].tolist() == [1.0, -2.0, 2.0, 0.0, -2.0]


@pytest.mark.parametrize("k", range(1, 8))
def test_top_k_against_a_stable_sort(k):
    v = np.random.default_rng(k).integers(-3, 4, (200, 7)).astype(float)
    keep = np.argsort(-np.abs(v), axis=1, kind="stable")[:, :k]
    expected = np.zeros_like(v)
    np.put_along_axis(expected, keep, np.take_along_axis(v, keep, axis=1), axis=1)
    assert np.array_equal(TopK(k)(v), expected)


@pytest.mark.parametrize("spec", MEMBERS)
def test_divergence_shows(spec):
    """A NaN is passed on by both versions, and quickselect ends."""
    c = get_compressor(spec)
    v = np.array([[1.0, np.nan, 3.0, np.nan, 0.0]])
    kernel, params = c.compiled()
    out = np.zeros(5)
    kernel(v[0].copy(), params, np.random.default_rng(0), out)
    m = c(v, gens(1))[0]
    if not spec.startswith("randk"):  # may not choose the entry
        assert np.isnan(m).any() and np.isnan(out).any()


# --- bits ------------------------------------------------------------------------------------------------------------


def test_bits_by_formula():
    assert Identity().bits(123) == 32 * 123
    assert TopK(12).bits(123) == RandK(12).bits(123) == 12 * (32 + 7)
    assert TopK(1).bits(1) == 32
    assert ScaledSign().bits(123) == 32 + 123
    assert QSGD(1).bits(10) == 32 + 10 * 2 and QSGD(3).bits(10) == 32 + 10 * 3 and QSGD(4).bits(10) == 32 + 10 * 4
    assert HardThreshold(1.0).bits(123) is None
    assert HardThreshold(1.0).message_bits(np.array([0.0, 2.0, -3.0])) == 2 * (32 + 2)


def test_bits_are_monotone():
    d = 50
    assert all(a < b for a, b in itertools.pairwise(TopK(k).bits(d) for k in range(1, d + 1)))
    assert all(a < b for a, b in itertools.pairwise(RandK(k).bits(d) for k in range(1, d + 1)))
    assert all(a <= b for a, b in itertools.pairwise(QSGD(s).bits(d) for s in range(1, 40)))
    v = np.random.default_rng(0).normal(size=(1, d))
    sent = [HardThreshold(lam).message_bits(HardThreshold(lam)(v)[0]) for lam in (0.1, 0.5, 1.0, 2.0)]
    assert all(a > b for a, b in itertools.pairwise(sent))


def test_index_bits_address_every_entry():
    assert all(2 ** index_bits(d) >= d > 2 ** (index_bits(d) - 1) for d in range(2, 300))


# --- by name, and bad input ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", MEMBERS)
def test_describe_recreates(spec):
    c = get_compressor(spec)
    assert get_compressor(c.describe()) == c and c.describe() == spec


def test_every_member_is_tested():
    own = {name for name, cls in compressors().items() if cls.__module__ == module.__name__}
    assert own == {get_compressor(spec).name for spec in MEMBERS}


@pytest.mark.parametrize("text", ["topk:12", "topk(12)", "topk(k=12)", " topk ( k = 12 ) ", "topk:k=12"])
def test_spellings(text):
    assert get_compressor(text) == TopK(12)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("tpk(k=3)", "did you mean 'topk'"),
        ("", "cannot read compressor"),
        ("topk(k=3", "cannot read compressor"),
        ("__import__('os').getcwd()", "unknown compressor"),
        ("topk(k=__import__('os'))", "must be a whole number"),
        ("topk", "topk needs k"),
        ("topk(k=0)", "at least 1, not 0"),
        ("topk(k=-1)", "at least 1"),
        ("topk(k=2.5)", "must be a whole number"),
        ("topk(k=nan)", "must be a whole number"),
        ("topk(j=3)", "unknown parameter of topk 'j'"),
        ("topk(3, 4)", "takes 1 parameter"),
        ("topk(3, k=4)", "gives k twice"),
        ("topk(k=3, k=4)", "gives k twice"),
        ("randk(k=3, scaled=maybe)", "must be true or false"),
        ("qsgd(levels=0)", "at least 1"),
        ("hard_threshold(lam=nan)", "must be finite"),
        ("hard_threshold(lam=inf)", "must be finite"),
        ("hard_threshold(lam=0)", "positive"),
        ("hard_threshold(lam=-1)", "positive"),
        (3, "a compressor is a text"),
        (TopK, "a compressor is a text"),
    ],
)
def test_bad_specs(spec, message):
    with pytest.raises(UsageError, match=None) as error:
        get_compressor(spec)
    assert message in str(error.value)


@pytest.mark.parametrize("use", [lambda c: c.bits(5), lambda c: c.constants(5), lambda c: c(np.ones((1, 5)), gens(1))])
@pytest.mark.parametrize("c", [TopK(6), RandK(6)])
def test_k_above_d_is_refused_at_use(c, use):
    with pytest.raises(UsageError, match="at most the dimension d = 5, not 6"):
        use(c)


@pytest.mark.parametrize("spec", ["topk:6", "randk:6"])
def test_k_above_d_never_reads_beyond_the_vector(spec):
    kernel, params = get_compressor(spec).compiled()
    with pytest.raises(ValueError, match="k > d"):
        kernel(np.ones(5), params, np.random.default_rng(0), np.zeros(5))


def test_bad_objects():
    with pytest.raises(UsageError):
        TopK(True)
    with pytest.raises(UsageError):
        HardThreshold(math.nan)
    with pytest.raises(UsageError, match="rows"):
        TopK(1)(np.ones(4))
    with pytest.raises(UsageError, match="at least 1"):
        Identity().constants(0)


# --- a compressor of one's own ---------------------------------------------------------------------------------------


@compressor(delta=lambda d, k: k / d, bits=lambda d, k: k * (32.0 + math.ceil(math.log2(d))))
def first_k(v, gen, k: int = 2):
    out = np.zeros_like(v)
    order = np.argsort(-np.abs(v), kind="mergesort")  # stable in NumPy and Numba alike
    for j in range(k):
        out[order[j]] = v[order[j]]
    return out


@compressor(omega=1.0, message_bits=lambda m: 33.0 * np.sum(m != 0.0))
def coin(v, gen):
    return 2.0 * v if gen.random() < 0.5 else np.zeros_like(v)


@compressor(delta=0.5, bits=lambda d: 32.0 * d)
def liar(v, gen):
    return 0.2 * v


@pytest.fixture(autouse=True, scope="module")
def _forget():
    yield
    for name in ("first_k", "coin", "liar"):
        module._REGISTRY.pop(name, None)


def test_own_compressor_is_known_by_name_and_compiled():
    c = get_compressor("first_k(k=3)")
    assert c.constants(6) == {"delta": 0.5} and c.bits(6) == 3 * 35 and c.describe() == "first_k(k=3)"
    assert check_compressor(c, 7, np.random.default_rng(0)) == []
    assert check_compressor(coin(), 4, np.random.default_rng(0)) == []
    kernel, params = coin().compiled()
    out = np.zeros(4)
    sent = {kernel(np.ones(4), params, np.random.default_rng(seed), out) for seed in range(20)}
    assert sent == {0.0, 4 * 33.0}


def test_own_compressor_that_lies_is_caught():
    found = check_compressor(liar(), 5, np.random.default_rng(0))
    assert [v.constant for v in found] == ["delta"] and found[0].measured == pytest.approx(0.64 / 0.5, rel=1e-9)


@dataclass(frozen=True)
class Uneven(TopK):
    """Counts other bits than it declares."""

    name = ""

    def message_bits(self, m):
        return 1.0


def test_uneven_bits_and_kernels_are_caught():
    assert [v.constant for v in check_compressor(Uneven(2), 5, np.random.default_rng(0))] == ["bits"]

    class Other(Claims):
        def compiled(self):
            return RandK(2).compiled()

    assert [v.constant for v in check_compressor(Other(TopK(2), delta=0.4), 5, np.random.default_rng(0))] == ["kernel"]


@pytest.mark.parametrize("body", [lambda v, gen: v[:-1], lambda v, gen: v * np.nan])
def test_own_compressor_of_wrong_shape_or_nan(body):
    made = compressor(delta=0.5, bits=lambda d: 1.0, name="broken")(body)
    try:
        said = "returns NaN at the finite vector" if body(np.ones(3), None).shape == (3,) else r"must return shape \(3,\), not \(2,\)"
        with pytest.raises(UsageError, match=said):
            made()(np.ones((2, 3)), gens(2))
    finally:
        del module._REGISTRY["broken"]


def test_own_compressor_that_numba_cannot_compile_says_so():
    made = compressor(delta=0.5, bits=lambda d: 1.0, name="dynamic")(lambda v, gen: np.array([float(str(a)) for a in v]))
    try:
        with pytest.raises(Unsupported, match="engine='numpy' runs it as it is"):
            made().compiled()
    finally:
        del module._REGISTRY["dynamic"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bits": len}, "must declare its class"),
        ({"delta": 0.5}, "must say its bits"),
        ({"delta": 0.5, "bits": len, "message_bits": len}, "must say its bits"),
        ({"delta": 0.5, "bits": len, "name": "topk"}, "exists already"),
    ],
)
def test_bad_declarations(given, message):
    with pytest.raises(UsageError, match=message):
        compressor(**given)(lambda v, gen: v)


@pytest.mark.parametrize("delta", [0.0, 1.5, -1.0, math.nan])
def test_delta_outside_its_range(delta):
    made = compressor(delta=delta, bits=lambda d: 1.0, name="odd")(lambda v, gen: v)
    try:
        with pytest.raises(UsageError, match=r"in \(0, 1\]"):
            made().constants(3)
    finally:
        del module._REGISTRY["odd"]
