"""0/1 Adam (arXiv 2202.06009).  In our letters beta1 is beta, beta2 is theta, the paper's kappa is k."""

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "0/1 Adam: Maximizing Communication Efficiency for Large-scale Training",
    "arXiv 2202.06009",
    rows=("002-4",),
    kind="convergence (constants missing), schedule",
)

CALCULATOR = "verify_rates.theory.calculators.zero_one_adam:"

CLAIMS = [
    Claim(
        "zero_one_adam.1",
        "Rate with linear speed-up.",
        method="zero_one_adam",
        not_checkable="an order without constants; the terms of higher order are not available",
        source="recalled",
        provenance="recalled",
    ),
    Claim(
        "zero_one_adam.2",
        "About k*log2(T/k+1) refreshes below T, k refreshes before the gap doubles: off by at most 0.0861*k + 1.",
        kind="property",
        check=CALCULATOR + "refreshes",
        grid=product(kappa=(1, 4, 16), T=100_000),
        source="derived",
    ),
    Claim(
        "zero_one_adam.2.example",
        "201 refreshes below T = 10^5 at k = 16.",
        kind="table",
        check=CALCULATOR + "refresh_count",
        grid=({"kappa": 16, "T": 100_000, "said": 201},),
        source="derived",
    ),
    Claim(
        "zero_one_adam.3",
        "Bits a parameter: those of a number at every refresh, one at every synchronisation, and the scales.",
        method="zero_one_adam",
        kind="table",
        check=CALCULATOR + "volume",
        grid=product(T=(10, 100), kappa=4, alpha=3, beta=(0, 2), d=10),
        source="derived",
    ),
    Claim(
        "zero_one_adam.4",
        "A one-bit all-reduce by all-to-all and all-gather sends 2*(n-1)/n*d bits a worker, beside the scales.",
        kind="table",
        check=CALCULATOR + "one_bit_all_reduce",
        grid=product(n=(2, 3, 8), d=(8, 100)),
        source="the released code",
        provenance="code",
    ),
    Claim(
        "zero_one_adam.adam",
        "Both schedules at every step without compression: Adam without bias correction, its squares one step late (released momentum).",
        method="zero_one_adam",
        kind="identity",
        check=CALCULATOR + "adam",
        grid=product(new=1, problem=("quadratic", "logistic"), seed=0),
        source="derived",
    ),
    Claim(
        "zero_one_adam.adam.printed",
        "The same with the momentum before its update, as printed: false, synchronised at every step it never moves.",
        method="zero_one_adam",
        kind="identity",
        check=CALCULATOR + "adam",
        grid=product(new=0, problem="quadratic", seed=0),
        source="a description of the paper",
        provenance="paper (secondary)",
        expect="fails",
    ),
    Claim(
        "zero_one_adam.adam.repaired",
        "As printed and synchronised at every step, no gradient ever enters the model.",
        method="zero_one_adam",
        kind="property",
        check=CALCULATOR + "never_moves",
        grid=({"steps": 1}, {"steps": 50}),
        source="derived",
    ),
    Claim(
        "zero_one_adam.linearity",
        "With frozen squares and exact exchange a synchronisation is the average of the local trajectories.",
        method="zero_one_adam",
        kind="identity",
        check=CALCULATOR + "linearity",
        grid=product(H=(2, 5), new=(0, 1), seed=0),
        source="derived",
    ),
    Claim(
        "zero_one_adam.scale",
        "A reading: the released scale ||p||_2/sqrt(d) makes the one-bit message a contraction; false from d = 5 on.",
        kind="property",
        check=CALCULATOR + "released_scale",
        grid=product(d=(2, 4, 5)),
        source="a reading of the released code",
        expect="fails",
    ),
]
