"""Top-k sparsification in a supercomputing environment (arXiv 2209.08497); beta is bw, alpha lat, T_fb T_comp, T_sel T_select."""

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "Empirical Analysis on Top-k Gradient Sparsification for Distributed Deep Learning in a Supercomputing Environment",
    "arXiv 2209.08497",
    rows=("002-16",),
    kind="cost model (measurement)",
)

CALCULATOR = "verify_rates.theory.calculators.topk_empirical:"
SIZES = ({"d": 3, "k": 1}, {"d": 4, "k": 1}, {"d": 4, "k": 3}, {"d": 5, "k": 2})

CLAIMS = [
    Claim(
        "topk_empirical.1",
        "Top-k loses at most (1-k/d)*||x||^2, tight where all entries are equal.",
        kind="property",
        relation="==",
        check=CALCULATOR + "contraction",
        grid=tuple({**size, "levels": 2} for size in SIZES),
        source="derived",
    ),
    Claim(
        "topk_empirical.1.random",
        "Unscaled random-k loses (1-k/d)*||x||^2 in expectation and shrinks the mean step by k/d.",
        kind="identity",
        check=CALCULATOR + "random_k",
        grid=SIZES,
        source="derived",
    ),
    Claim(
        "topk_empirical.2",
        "The distinct indices after the all-gather lie in [k, Min(n*k, d)], and both ends occur.",
        kind="property",
        check=CALCULATOR + "union_growth",
        grid=({"d": 4, "k": 1, "n": 3}, {"d": 4, "k": 2, "n": 3}, {"d": 5, "k": 2, "n": 2}, {"d": 6, "k": 1, "n": 4}),
        source="derived",
    ),
    Claim(
        "topk_empirical.3",
        "T_dense = T_comp + 2*(n-1)*lat + 2*(n-1)/n*d*b_v/bw; T_topk = T_comp + T_select + (n-1)*lat + (n-1)*k*(b_v+b_i)/bw.",
        kind="identity",
        check=CALCULATOR + "times_of_rings",
        grid=product(d=(7, 12), k=(1, 3), n=(1, 2, 4, 5)),
        source="derived",
    ),
    Claim(
        "topk_empirical.4",
        "Bytes are saved iff k/d < 2*b_v/(n*(b_v+b_i)), for any n.",
        kind="property",
        relation=">=",
        check=CALCULATOR + "bytes_at",
        grid=({"d": 2, "k": 1, "n": 1},),
        source="derived",
        expect="fails",
    ),
    Claim(
        "topk_empirical.4.repaired",
        "Bytes are saved iff k/d < 2*b_v/(n*(b_v+b_i)), for n >= 2.",
        kind="iff",
        check=CALCULATOR + "bytes_rule",
        grid=(*product(n=(2, 3, 8), value_bytes=4, index_bytes=4), *product(n=(2, 5), value_bytes=2, index_bytes=4)),
        source="derived",
    ),
    Claim(
        "topk_empirical.5",
        "Time is saved iff T_select < (n-1)*lat + (n-1)/bw*(2*d*b_v/n - k*(b_v+b_i)).",
        kind="iff",
        check=CALCULATOR + "time_rule",
        grid=({},),
        source="derived",
    ),
    Claim(
        "topk_empirical.6",
        "Top-k wins iff bw < (n-1)*(2*d*b_v/n - k*(b_v+b_i))/(T_select - (n-1)*lat), where T_select > (n-1)*lat.",
        kind="iff",
        check=CALCULATOR + "break_even_rule",
        grid=product(n=(1, 2, 3, 8)),
        source="derived",
    ),
    Claim(
        "topk_empirical.7",
        "Selection takes c_s*d*log2(d) by sorting, c*d by selection, c'*d by a threshold.",
        not_checkable="orders whose constants are those of a library",
        source="derived",
    ),
]
