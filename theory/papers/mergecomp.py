"""MergeComp (arXiv 2103.15195).  In our words: its N tensors, y groups; h is encode, g is transfer."""

from typing import Any

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "MergeComp",
    "arXiv 2103.15195",
    rows=("002-2",),
    kind="schedule, cost model",
)

CALCULATOR = "verify_rates.theory.calculators.mergecomp:"
SECONDARY: dict[str, Any] = {"source": "a description of the paper", "provenance": "paper (secondary)"}

CLAIMS = [
    Claim(
        "mergecomp.1",
        "A step takes compute + encoding + sending - overlap, and N tensors can be grouped in 2^(N-1) ways.",
        kind="identity",
        check=CALCULATOR + "objective",
        grid=product(count=(1, 2, 3)),
        **SECONDARY,
    ),
    Claim(
        "mergecomp.2",
        "Error-feedback and quantised variants keep the rate 1/sqrt(M*K).",
        not_checkable="an order without constants",
        **SECONDARY,
    ),
    Claim(
        "mergecomp.3",
        "Two groups, affine costs: F(j) = Max(A + 2*B_h + g_h*X + B_g + g_g*X_after, T_j + B_h + g_h*X_j + 2*B_g + g_g*X) is the makespan.",
        kind="identity",
        check=CALCULATOR + "two_groups_form",
        grid=product(count=(2, 4, 6)),
        source="derived",
    ),
    Claim(
        "mergecomp.3.search",
        "F(j) falls, then rises, and the binary search over j is exact, for tensors of positive size.",
        kind="property",
        check=CALCULATOR + "search_is_exact",
        grid=product(count=(2, 3, 4)),
        source="derived",
    ),
    Claim(
        "mergecomp.3.empty",
        "The binary search stays exact when tensors may be empty.",
        kind="property",
        check=CALCULATOR + "search_gap",
        grid=({"times": (0, 0, 0, 0, 5), "sizes": (1, 1, 0, 1, 1), "encode": (0, 0), "transfer": (0, 1)},),
        source="our question: is the positive size needed?",
        expect="fails",
    ),
    Claim(
        "mergecomp.3.concave",
        "The binary search stays exact when encoding is concave in the size.",
        kind="property",
        check=CALCULATOR + "search_gap",
        grid=({"times": (0, 0, 0, 0, 1), "sizes": (1, 2, 1, 2, 2), "encode": "concave", "transfer": (0, 1)},),
        source="our question: is the linear-cost assumption needed?",
        expect="fails",
    ),
    Claim(
        "mergecomp.3.stop",
        "Stopping at the first number of groups that saves nothing (Algorithm 2 with beta = 0) loses nothing.",
        kind="property",
        check=CALCULATOR + "stop_rule",
        grid=({"times": (0, 0, 0, 0), "sizes": (1, 1, 1, 1), "encode": (0, 1), "transfer": (0, 1)},),
        expect="fails",
        **SECONDARY,
    ),
    Claim(
        "mergecomp.4",
        "One group takes A + B_h + g_h*X + B_g + g_g*X.",
        kind="identity",
        check=CALCULATOR + "one_group_form",
        grid=product(count=(1, 3, 6)),
        source="derived",
    ),
    Claim(
        "mergecomp.4.one",
        "One group beats two iff for every cut B_h + B_g exceeds min(sending the first, computing and encoding the second group).",
        kind="iff",
        check=CALCULATOR + "one_or_two",
        grid=product(count=(2, 3)),
        source="derived",
    ),
    Claim(
        "mergecomp.5",
        "Compression is harmful when total encoding plus compressed sending exceeds dense sending.",
        kind="property",
        relation=">=",
        check=CALCULATOR + "harm_by_totals",
        grid=({"times": (0, 0), "sizes": (2, 2), "encode": (1, 1), "sent": (1, 1), "dense": (1, 2)},),
        source="derived",
        expect="fails",
    ),
    Claim(
        "mergecomp.5.repaired",
        "With one group compression is harmful iff h + g_c > g_dense; with more, whenever encoding exceeds the exposed dense time.",
        kind="property",
        check=CALCULATOR + "harm_of_one_group",
        grid=product(levels=3),
        source="derived",
    ),
]
