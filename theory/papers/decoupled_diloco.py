"""Decoupled DiLoCo (arXiv 2604.21428).  xi_step is T_comp; P fragments are k; N chips are n, M learners m."""

from typing import Any

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "Decoupled DiLoCo for Resilient Distributed Pre-training",
    "arXiv 2604.21428",
    rows=("000-1",),
    kind="schedule, cost model",
)

CALCULATOR = "verify_rates.theory.calculators.decoupled_diloco:"
SECONDARY: dict[str, Any] = dict(source="a description of the paper", provenance="paper (secondary)")

CLAIMS = [
    Claim(
        "decoupled_diloco.1",
        "A grace of at most gamma*(tau*xi_step - xi_quorum - xi_sync), gamma < 1, adds no waiting where the times are known exactly.",
        kind="property",
        check=CALCULATOR + "grace_window",
        grid=product(estimate="exact", factor=(5, 9)),
        **SECONDARY,
    ),
    Claim(
        "decoupled_diloco.1.averages",
        "The same where the times are averages of earlier rounds, as they are in the paper.",
        kind="property",
        check=CALCULATOR + "grace_window",
        grid=product(estimate="average", factor=5),
        source="a reading of the paper's moving averages",
        expect="fails",
    ),
    Claim(
        "decoupled_diloco.2",
        "RDA of one learner is that learner's vector.",
        kind="identity",
        check=CALCULATOR + "one_learner",
        grid=product(seed=(0, 1, 2)),
        source="derived",
    ),
    Claim(
        "decoupled_diloco.3",
        "The norm of RDA is the weighted mean of the norms, and at least the norm of Avg, always.",
        kind="identity",
        check=CALCULATOR + "norm_of_rda",
        grid=product(skip_vanishing=False),
        source="derived",
        expect="fails",
    ),
    Claim(
        "decoupled_diloco.3.repaired",
        "The same wherever the weighted mean direction does not vanish (there RDA falls back to Avg).",
        kind="identity",
        check=CALCULATOR + "norm_of_rda",
        grid=product(skip_vanishing=True),
        source="derived",
    ),
    Claim(
        "decoupled_diloco.4",
        "Orthogonal directions, equal norms R and weights: ||Avg|| = R/sqrt(M), ||RDA|| = R.",
        kind="identity",
        check=CALCULATOR + "orthogonal",
        grid=product(M=(1, 2, 8)),
        source="derived",
    ),
    Claim(
        "decoupled_diloco.5",
        "Greedy fragments: the heaviest is at most 4/3 - 1/(3*P) times the best possible one.",
        kind="property",
        check=CALCULATOR + "balance",
        grid=(
            {"count": 1, "most": 4, "largest": 4},
            {"count": 2, "most": 6, "largest": 6},
            {"count": 3, "most": 7, "largest": 5},
            {"count": 4, "most": 6, "largest": 5},
        ),
        source="classical (Graham)",
        provenance="recalled",
    ),
    Claim(
        "decoupled_diloco.6",
        "Mean time between failures of a cluster: that of a chip over the number of chips (exponential lives).",
        kind="identity",
        check=CALCULATOR + "failure_rate",
        grid=({},),
        **SECONDARY,
    ),
    Claim(
        "decoupled_diloco.7",
        "M independent learners on N chips have the goodput of one learner on N/M chips, in the renewal model.",
        kind="identity",
        check=CALCULATOR + "isolation",
        grid=({},),
        **SECONDARY,
    ),
    Claim(
        "decoupled_diloco.7.table",
        "The same as an equality in the printed table, up to rounding to whole percent.",
        kind="table",
        check=CALCULATOR + "isolation_in_the_table",
        grid=({},),
        expect="fails",
        **SECONDARY,
    ),
    Claim(
        "decoupled_diloco.8",
        "Goodput 1/(1 + (N/M)*loss/MTBI) is the renewal model's, and the table implies losses of 19 to 34 s.",
        kind="table",
        check=CALCULATOR + "goodput_model",
        grid=({},),
        source="derived",
    ),
    Claim(
        "decoupled_diloco.9",
        "Bits per second of a learner's link: average, peak of one fragment, and data parallel.",
        kind="identity",
        check=CALCULATOR + "bandwidth",
        grid=product(learners=(2, 8), k=(1, 6), tau=(1, 2)),
        source="derived",
    ),
    Claim(
        "decoupled_diloco.9.printed",
        "These formulas at H = 24 explain the printed saving from 198 to 0.84 Gbit/s for 8 sites.",
        kind="table",
        check=CALCULATOR + "printed_saving",
        grid=({},),
        expect="fails",
        **SECONDARY,
    ),
    Claim(
        "decoupled_diloco.10",
        "No learner waits iff xi_quorum + xi_sync <= tau*xi_step.",
        kind="iff",
        check=CALCULATOR + "overlap",
        grid=({},),
        source="derived",
    ),
]
