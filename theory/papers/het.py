"""HET (arXiv 2112.07221).  The paper's N is n, its B^2 is G2; p_i is the probability that a batch needs row i."""

from typing import Any

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "HET: Scaling out Huge Embedding Model Training via Cache-enabled Distributed Framework",
    "arXiv 2112.07221",
    rows=("000-11",),
    kind="convergence, schedule (cache protocol), cost model",
)

CALCULATOR = "verify_rates.theory.calculators.het:"
ROWS: dict[str, Any] = dict(M=2, n=3, steps=400, seed=0)
ALWAYS = product(**ROWS, s=(0, 2), c=0.5, p_hundredths=100)

CLAIMS = [
    Claim(
        "het.1",
        "With the printed step some iterate of every worker has a mean squared gradient of at most eps in 24*F0/(eta*eps) steps (p_i = 1).",
        kind="property",
        check=CALCULATOR + "theorem",
        grid=product(s=(0, 1, 2), M=(1, 2), seed=0),
        source="HET, Theorem 1",
        provenance="paper",
    ),
    Claim(
        "het.2",
        "The clocks of two workers' copies of a row differ by at most 2*s.",
        kind="property",
        check=CALCULATOR + "clock_gap",
        grid=product(s=(0, 1, 4)),
        source="HET, Lemma 1",
        provenance="paper",
        expect="fails",
    ),
    Claim(
        "het.2.repaired",
        "When a worker reads a row, no other worker's clock is ahead by more than 2*s + 1 (in all reachable states, with evictions).",
        kind="property",
        check=CALCULATOR + "clock_gap_at_reads",
        grid=({"n": 2, "s": 0}, {"n": 2, "s": 1}, {"n": 3, "s": 0}),
        source="derived",
    ),
    Claim(
        "het.3",
        "s updates of row i need s/p_i iterations, in the mean.",
        kind="identity",
        check=CALCULATOR + "access",
        grid=product(p_tenths=3, s=4),
        source="HET, Lemma 2",
        provenance="paper",
    ),
    Claim(
        "het.4",
        "The reference sequence.",
        not_checkable="a definition",
        source="HET, (4)",
        provenance="paper",
    ),
    Claim(
        "het.5",
        "E||x - x^j||^2 <= 4*s^2*eta^2*M^2*B^2, so a read misses at most 2*s updates of another worker.",
        kind="property",
        check=CALCULATOR + "missed_updates",
        grid=product(n=2, s=(0, 1), said="LEMMA_3"),
        source="HET, Lemma 3",
        provenance="paper",
        expect="fails",
    ),
    Claim(
        "het.5.repaired",
        "A read misses at most 4*s + 2 updates of another worker, so E||x - x^j||^2 <= (4*s+2)^2*eta^2*M*B^2.",
        kind="property",
        check=CALCULATOR + "missed_updates",
        grid=(
            {"n": 2, "s": 0, "said": "LEMMA_3_REPAIRED"},
            {"n": 2, "s": 1, "said": "LEMMA_3_REPAIRED"},
            {"n": 3, "s": 0, "said": "LEMMA_3_REPAIRED"},
        ),
        source="derived",
    ),
    Claim(
        "het.6",
        "Bound (10) on the mean squared gradient along the reference sequence, for any access probabilities.",
        kind="property",
        check=CALCULATOR + "bound",
        grid=(*({"name": "BOUND_10", **p} for p in ALWAYS), {"name": "BOUND_10", **ROWS, "s": 0, "c": 0.5, "p_hundredths": 1}),
        source="HET, (10)",
        provenance="paper",
        expect="fails",
    ),
    Claim(
        "het.6.repaired",
        "The mean squared gradient is at most (2*F0/(eta*T) + eta*L*M*B^2 + L^2*V)/min_i p_i, V a bound on E||x - x^j||^2.",
        kind="property",
        check=CALCULATOR + "bound",
        grid=product(name="WEIGHTED", **ROWS, s=(0, 2), c=0.5, p_hundredths=(1, 10, 100)),
        source="derived",
    ),
    Claim(
        "het.7",
        "Bound (11), eta = 1/(L*sqrt(T)), for any access probabilities.",
        kind="property",
        check=CALCULATOR + "bound",
        grid=product(name="BOUND_11", **ROWS, s=0, c=1, p_hundredths=(100, 1)),
        source="HET, Corollary 1 (11)",
        provenance="paper",
        expect="fails",
    ),
    Claim(
        "het.7.identity",
        "Bound (11) is bound (10) at eta = 1/(L*sqrt(T)), and at s = 0 the staleness term of (10) vanishes.",
        kind="identity",
        check=CALCULATOR + "corollary",
        grid=({},),
        source="HET, Corollary 1",
        provenance="paper",
    ),
    Claim(
        "het.8",
        "Every row in every batch: mean squared gradient at most 2*D0/(eta*T) + eta*L*M*B^2 + L^2*V.",
        kind="property",
        check=CALCULATOR + "bound",
        grid=tuple({"name": "SIMPLEST", **p} for p in ALWAYS),
        source="derived",
    ),
    Claim(
        "het.8.staleness",
        "V = 4*s^2*eta^2*M*B^2 where a copy misses at most 2*s steps of the other workers.",
        kind="property",
        check=CALCULATOR + "staleness",
        grid=product(M=2, n=(2, 4), s=(1, 3), seed=0),
        source="derived",
    ),
    Claim(
        "het.9",
        "Released protocol: a read misses at most pull_bound + (n-1)*push_bound updates.",
        kind="property",
        check=CALCULATOR + "released",
        grid=(
            {"n": 2, "pull": 0, "push": 0},
            {"n": 2, "pull": 2, "push": 3},
            {"n": 3, "pull": 1, "push": 1},
            {"n": 3, "pull": 2, "push": 1},
        ),
        source="derived",
    ),
    Claim(
        "het.10",
        "Bytes per worker and iteration: 16*U + P_pull*(16+4*D) + P_push*(16+4*D).",
        kind="identity",
        check=CALCULATOR + "bytes_of",
        grid=product(seed=(0, 1), width=(8, 128)),
        source="derived",
    ),
    Claim(
        "het.11",
        "Dense part: 2*(n-1)/n*4*|x_0| bytes.",
        kind="identity",
        check=CALCULATOR + "dense_bytes",
        grid=product(n=(2, 3, 8)),
        source="derived",
    ),
]
