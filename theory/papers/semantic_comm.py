"""Image semantic communication (arXiv 2501.04408): the FDMA template of rates, energies and times; no statement on learning."""

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "Resource Allocation for the Training of Image Semantic Communication Networks",
    "arXiv 2501.04408",
    rows=("002-14",),
    kind="cost model (off-topic for convergence rates)",
)

CALCULATOR = "verify_rates.theory.calculators.semantic_comm:"

CLAIMS = [
    Claim(
        "semantic_comm.1",
        "The rate B*log2(1 + p*h/(N0*B)) is jointly concave in power and band.",
        kind="property",
        check=CALCULATOR + "concave_rate",
        grid=({},),
        source="derived",
    ),
    Claim(
        "semantic_comm.2",
        "The energy per bit p/r grows with the power, from N0*ln(2)/h on.",
        kind="property",
        check=CALCULATOR + "energy_per_bit",
        grid=({},),
        source="derived",
    ),
    Claim(
        "semantic_comm.3",
        "At fixed power the uplink time falls with the band and is convex.",
        kind="property",
        check=CALCULATOR + "uplink_time",
        grid=({},),
        source="derived",
    ),
    Claim(
        "semantic_comm.4",
        "kappa*C*f^2*w1 + w2*C/f is least at f = (w2/(2*kappa*w1))^(1/3).",
        kind="identity",
        check=CALCULATOR + "cpu_optimum",
        grid=({},),
        source="derived",
    ),
    Claim(
        "semantic_comm.kkt",
        "Latency only, powers fixed: all devices finish at the same time, and water-filling is the optimum.",
        kind="property",
        check=CALCULATOR + "equal_finish",
        grid=product(n=(1, 3, 6), seed=(0, 1)),
        source="derived",
    ),
]
