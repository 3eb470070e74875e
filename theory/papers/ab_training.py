"""AB-Training (arXiv 2405.01067); the statements are our own.  dA and dB are the groups' mean changes from A0 and B0."""

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "AB-Training: A Communication-Efficient Approach for Distributed Low-Rank Learning",
    "arXiv 2405.01067",
    rows=("000-8",),
    kind="cost model (empirical)",
)

CALCULATOR = "verify_rates.theory.calculators.ab_training:"
SYNCHRONISATIONS = (
    ("full", "A0*B0 + (dA*B0 + A0*dB)/2"),
    ("with_stale", "that of full plus dA*dB/4"),
    ("only_learned", "A0*B0 + dA*B0 + A0*dB + dA*dB, twice the first-order step"),
)

CLAIMS = [
    *(
        Claim(
            f"ab_training.{number}",
            f"Synchronisation {mode} gives {said}.",
            kind="identity",
            check=CALCULATOR + "identity",
            grid=product(mode=mode, workers=(2, 4, 6)),
            source="derived",
        )
        for number, (mode, said) in enumerate(SYNCHRONISATIONS, 1)
    ),
    Claim(
        "ab_training.4",
        "A step on A alone is gradient descent preconditioned by B'B = V S V'.",
        kind="property",
        check=CALCULATOR + "preconditioned",
        grid=product(seed=(0, 1), m=(3, 5), n=(3, 4)),
        source="derived",
    ),
    Claim(
        "ab_training.5",
        "The cut loses at most cutoff*s_1*sqrt(rank dropped).",
        check=CALCULATOR + "truncation",
        grid=product(seed=0, cutoff=(0.05, 0.15, 0.5)),
        source="derived",
    ),
    Claim(
        "ab_training.6",
        "Traffic over a period relative to data parallel: D/P + (1-D/P)*rho + (m+n)*r/(P*m*n).",
        kind="identity",
        check=CALCULATOR + "traffic",
        grid=product(m=(64, 512), n=(64, 100), r=(1, 16), P=(10, 1500), D=(0, 5)),
        source="derived",
    ),
    Claim(
        "ab_training.6.reported",
        "The reported saving of 70.31 % at D/P = 0.2 implies a rank ratio of about 0.12.",
        kind="table",
        check=CALCULATOR + "implied_rank",
        grid=({"share": "0.2", "said": "0.12"},),
        source="derived",
    ),
    Claim(
        "ab_training.7",
        "Both factors take r*(m+n)/(m*n) of the storage.",
        kind="identity",
        check=CALCULATOR + "storage",
        grid=product(m=(8, 20), n=(8, 12), r=(1, 3)),
        source="derived",
    ),
]
