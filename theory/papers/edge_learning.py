"""Edge learning (arXiv 2505.08682): a time model of one round, not the paper's exact one, whose formulas are not available."""

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "Joint Communication Scheduling and Resource Allocation for Distributed Edge Learning: "
    "Seamless Integration in Next-Generation Wireless Networks",
    "arXiv 2505.08682",
    rows=("000-4",),
    kind="off-topic for convergence (wireless scheduling; latency/energy cost model)",
)

CALCULATOR = "verify_rates.theory.calculators.edge_learning:"

CLAIMS = [
    Claim(
        "edge_learning.1",
        "Time-varying shares: the round ends at max_j (a_j + sum of q_k with a_k >= a_j, over B), by any work-conserving rule.",
        kind="identity",
        check=CALCULATOR + "flexible_makespan",
        grid=({"clients": 1, "most": 4}, {"clients": 2, "most": 4}, {"clients": 3, "most": 3}),
        source="derived",
    ),
    Claim(
        "edge_learning.1.least",
        "No schedule ends earlier.",
        kind="identity",
        check=CALCULATOR + "flexible_is_least",
        grid=({"clients": 2, "most": 4}, {"clients": 3, "most": 3}),
        source="derived",
    ),
    Claim(
        "edge_learning.2",
        "One split for the round: the best one ends at the root T of sum q_k/(T - a_k) = B.",
        kind="property",
        check=CALCULATOR + "rigid_split",
        grid=product(clients=(1, 2, 4), seed=(0, 1)),
        source="derived",
    ),
    Claim(
        "edge_learning.3",
        "The rigid round is never shorter than the flexible one.",
        kind="property",
        check=CALCULATOR + "ordering",
        grid=({"clients": 1, "most": 4}, {"clients": 2, "most": 4}, {"clients": 3, "most": 3}),
        source="derived",
    ),
    Claim(
        "edge_learning.4",
        "Energy and, for a fixed upload order, the round's time are convex in 1/f_k.",
        kind="property",
        check=CALCULATOR + "convex_in_inverse_speed",
        grid=({},),
        source="derived",
    ),
    Claim(
        "edge_learning.4.order",
        "The same without a fixed order.",
        kind="property",
        check=CALCULATOR + "convex_without_order",
        grid=({},),
        source="derived",
        expect="fails",
    ),
]
