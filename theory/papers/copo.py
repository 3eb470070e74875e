"""COPO (arXiv 2502.02580): clustering of anisotropic mixtures; nothing in it is about distributed training."""

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "COPO: Minimax-Optimal Spectral Clustering with Covariance Projection for High-Dimensional Anisotropic Mixtures",
    "arXiv 2502.02580",
    rows=("000-15",),
    kind="off-topic (statistics; not about distributed training)",
)

CALCULATOR = "verify_rates.theory.calculators.copo:"

CLAIMS = [
    Claim(
        "copo.1",
        "The reassignment step does not change when the embedding is mapped by an invertible matrix.",
        kind="identity",
        check=CALCULATOR + "invariance",
        grid=product(K=(1, 2, 3), seed=(0, 1)),
        source="derived",
    ),
    Claim(
        "copo.1.procedure",
        "The same of the whole procedure: not of its first labels by k-means.",
        kind="property",
        check=CALCULATOR + "initialiser_is_not_invariant",
        grid=product(seed=0),
        source="derived",
        expect="fails",
    ),
    Claim(
        "copo.2",
        "Rate exp(-(1+o(1))*SNR^2/2).",
        not_checkable="an exponent up to o(1); its special cases are copo.4 and copo.5",
        source="recalled and derived",
        provenance="recalled",
    ),
    Claim(
        "copo.3",
        "Two complementary lower bounds.",
        not_checkable="conditions and constants are not available",
        source="COPO",
        provenance="paper",
    ),
    Claim(
        "copo.4",
        "A common covariance: SNR is half the distance in its inverse, the rate exp(-Delta^2/8).",
        kind="identity",
        check=CALCULATOR + "common_covariance",
        grid=({},),
        source="derived",
    ),
    Claim(
        "copo.5",
        "One dimension: SNR = |w_a - w_b|/(s_a + s_b), from both clusters.",
        kind="identity",
        check=CALCULATOR + "on_a_line",
        grid=product(most=4),
        source="derived",
    ),
    Claim(
        "copo.5.table",
        "-log(err)/(SNR^2/2) is 1.57, 1.18 and 1.09 at SNR 2.7, 5.3 and 8, equal for both clusters.",
        kind="table",
        check=CALCULATOR + "exponents",
        grid=({},),
        source="derived",
    ),
]
