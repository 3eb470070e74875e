"""ZEN (arXiv 2309.13254): times without latency, in words per second; d_G is d, d_G^k/d_G is gamma_k, s_n the skewness."""

from typing import Any

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "ZEN: Empowering Distributed Training with Sparsity-driven Data Synchronization",
    "arXiv 2309.13254",
    rows=("002-7",),
    kind="cost model, schedule",
)

CALCULATOR = "verify_rates.theory.calculators.zen:"
STATED: dict[str, Any] = {"source": "ZEN, OSDI 2025", "provenance": "paper"}
KINDS = ("random", "clustered", "zipf")
UNEQUAL_SUM: dict[str, Any] = {"sets": ((0, 2), (1, 2)), "M": 4}

CLAIMS = [
    Claim(
        "zen.1",
        "Theorem 1 in its design space (one topology; incremental or one-shot; central or parallel; balanced or not): BP or HC is best.",
        kind="property",
        check=CALCULATOR + "theorem_1",
        grid=({"n": 2, "steps": 8}, {"n": 4, "steps": 4}, {"n": 8, "steps": 1}),
        **STATED,
    ),
    Claim(
        "zen.1.hybrid",
        "Theorem 1 beyond that space: no scheme at all beats both BP and HC.",
        kind="property",
        check=CALCULATOR + "theorem_1_hybrid",
        grid=({"base": ((0, 1), (0, 1), (0, 2), (0, 2)), "group": 2},),
        source="our question: groups that reduce-scatter, then double across groups, then all-gather",
        expect="fails",
    ),
    Claim(
        "zen.2",
        "Balanced Parallelism takes (n-1)/n*(gamma_n + 1)*2*M*d/b.",
        kind="identity",
        check=CALCULATOR + "bp_time",
        grid=product(kind=KINDS, n=(2, 4, 8)),
        **STATED,
    ),
    Claim(
        "zen.3",
        "Hierarchical Centralisation takes the sum over its levels of gamma_(2^(i-1))*2*M*d/b.",
        kind="identity",
        check=CALCULATOR + "hc_time",
        grid=product(kind=KINDS, n=(2, 4, 8)),
        **STATED,
    ),
    Claim(
        "zen.4",
        "A sparse parameter server takes 2*(n-1)*(d + d^n)*s_n*M/n/b, s_n the skewness of a tensor.",
        kind="property",
        check=CALCULATOR + "sparse_ps",
        grid=({**UNEQUAL_SUM, "by_its_own_skew": False},),
        expect="fails",
        **STATED,
    ),
    Claim(
        "zen.4.repaired",
        "It takes at most 2*(n-1)*(s_n*d + s'*d^n)*M/n/b, s' the skewness of the sum, and exactly that if all tensors fill slices alike.",
        kind="property",
        check=CALCULATOR + "sparse_ps_all",
        grid=({"M": 4, "n": 2, "count": 2}, {"M": 6, "n": 3, "count": 2}, {"M": 4, "n": 4, "count": 2}),
        source="derived",
    ),
    Claim(
        "zen.5",
        "With a broadcast of the sum, r*2*d^n*M/b: r = ceil(log2 n) for a binomial tree, 2*(n-1)/n for scatter and all-gather.",
        kind="identity",
        check=CALCULATOR + "broadcast",
        grid=product(n=(2, 3, 4, 8, 13), words=12, tree=(True, False)),
        **STATED,
    ),
    Claim(
        "zen.6",
        "The first half of a sparse ring takes 2*(sum over i < n of d^i)*M/n/b.",
        kind="identity",
        check=CALCULATOR + "ring_first_half",
        grid=product(kind=KINDS, n=(2, 4, 8)),
        **STATED,
    ),
    Claim(
        "zen.7",
        "One-shot all-gather: every worker receives (n-1)*2*d*M.",
        kind="identity",
        check=CALCULATOR + "agsparse_words",
        grid=product(n=(2, 4, 8)),
        **STATED,
    ),
    Claim(
        "zen.8",
        "Dense all-reduce takes 2*(n-1)/n*M/b.",
        kind="identity",
        check=CALCULATOR + "dense_time",
        grid=product(n=(2, 4, 8)),
        **STATED,
    ),
    Claim(
        "zen.9",
        "Theorem 2 with 3 (push) and sqrt(6) (pull) for its constant, which is not available: balanced with probability 1 - 1/n.",
        kind="property",
        check=CALCULATOR + "balance_of_hashing",
        grid=product(n=(2, 4, 16), count=(400, 1000), push=(True, False)),
        **STATED,
    ),
    Claim(
        "zen.10",
        "The hash bitmaps of all servers are M/32 words together, whatever n (a worker receives (n-1)/n of them; its own stays).",
        kind="identity",
        check=CALCULATOR + "bitmap_words",
        grid=product(M=(64, 1000), n=(2, 3, 16)),
        **STATED,
    ),
    Claim(
        "zen.11",
        "BP with COO beats dense all-reduce iff d + d^n < 1.",
        kind="iff",
        check=CALCULATOR + "bp_against_dense",
        grid=({},),
        source="derived",
    ),
    Claim(
        "zen.12",
        "A worker receives (n-1)/n*(2*d + d^n)*M + M/32 words.",
        kind="identity",
        check=CALCULATOR + "zen_volume",
        grid=product(kind="random", n=2, own=True),
        source="derived",
        expect="fails",
    ),
    Claim(
        "zen.12.repaired",
        "A worker receives (n-1)/n*(2*d + d^n + 1/32)*M words: the bitmap of its own partition does not travel.",
        kind="identity",
        check=CALCULATOR + "zen_volume",
        grid=product(kind=KINDS, n=(2, 4, 8), own=False),
        source="derived",
    ),
    Claim(
        "zen.13",
        "Latency adds 2*(n-1)*alpha to BP and log2(n)*alpha to HC.",
        kind="identity",
        check=CALCULATOR + "messages",
        grid=product(n=(2, 4, 16)),
        source="derived",
    ),
    Claim(
        "zen.14",
        "Independent supports: gamma_k = (1-(1-d)^k)/d.",
        kind="identity",
        check=CALCULATOR + "union_of_independent",
        grid=({"k": 1, "M": 3}, {"k": 2, "M": 3}, {"k": 4, "M": 2}),
        source="derived",
    ),
    Claim(
        "zen.14.table",
        "The printed crossovers d* of n = 4 to 128.",
        kind="table",
        check=CALCULATOR + "crossover_table",
        grid=({},),
        source="derived",
    ),
    Claim(
        "zen.14.once",
        "For independent supports BP is better iff d > d*: there is one crossover.",
        kind="iff",
        check=CALCULATOR + "one_crossover",
        grid=product(n=(4, 8, 16, 32)),
        source="derived",
    ),
]
