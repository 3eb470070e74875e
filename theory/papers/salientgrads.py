"""SalientGrads (arXiv 2304.07488); the statements are our own.  s is the sparsity."""

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "SalientGrads, later SSFL",
    "arXiv 2304.07488",
    rows=("002-20",),
    kind="schedule, cost model (no theorem known)",
)

CALCULATOR = "verify_rates.theory.calculators.salientgrads:"

CLAIMS = [
    Claim(
        "salientgrads.1",
        "With a fixed mask the method is FedAvg on the kept coordinates, with L and mu within those of f.",
        method="salientgrads",
        kind="identity",
        check=CALCULATOR + "restriction",
        grid=product(seed=(0, 1), k=(1, 3, 6), H=(1, 4)),
        source="derived",
    ),
    Claim(
        "salientgrads.2",
        "The mask costs at most ||grad f(w) off the mask||^2/(2*mu) at its minimiser w.",
        check=CALCULATOR + "bias",
        grid=product(seed=(0, 1), d=(2, 4, 6)),
        source="derived",
    ),
    Claim(
        "salientgrads.3",
        "A round costs 32*(1-s)*d bits each way, without indices; with them (32+ceil(log2 d))*(1-s)*d.",
        method="salientgrads",
        kind="identity",
        check=CALCULATOR + "bits",
        grid=product(seed=(0, 1), k=(1, 3, 6)),
        source="derived",
    ),
    Claim(
        "salientgrads.4",
        "Bits are saved after R > 33/(64*s) participations.",
        kind="property",
        check=CALCULATOR + "break_even",
        grid=({"most": 40},),
        source="derived",
    ),
    Claim(
        "salientgrads.5",
        "The two measured latencies give 0.699 s + 1.211 s*(1-s).",
        kind="table",
        check=CALCULATOR + "latency_fit",
        grid=({"name": "a", "said": 0.699}, {"name": "b", "said": 1.211}),
        source="derived",
    ),
]
