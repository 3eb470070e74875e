"""Adaptive decentralised federated learning (arXiv 2403.20075); device i takes tau_i local steps."""

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "Adaptive Decentralized Federated Learning in Energy and Latency Constrained Wireless Networks",
    "arXiv 2403.20075",
    rows=("002-17",),
    kind="schedule, cost model (convergence bound missing)",
)

CALCULATOR = "verify_rates.theory.calculators.adaptive_dfl:"

CLAIMS = [
    Claim(
        "adaptive_dfl.1",
        "Quadratics of curvature h: the rounds go to sum A_i*c_i/sum A_i, A_i = 1-(1-eta*h)^tau_i; the tau-weighted mean as eta -> 0.",
        kind="identity",
        check=CALCULATOR + "fixed",
        grid=product(seed=(0, 1)),
        source="derived",
    ),
    Claim(
        "adaptive_dfl.1.mean",
        "That point is not the mean of the c_i unless all tau_i are equal.",
        kind="property",
        check=CALCULATOR + "mean_only_if_equal",
        grid=product(most=2, generic=False),
        source="derived",
        expect="fails",
    ),
    Claim(
        "adaptive_dfl.1.repaired",
        "For 0 < eta*h < 1 it is the mean for all c iff all tau_i are equal.",
        kind="property",
        check=CALCULATOR + "mean_only_if_equal",
        grid=product(most=4, generic=True),
        source="derived",
    ),
    Claim(
        "adaptive_dfl.2",
        "Rate, energy and time of a link.",
        not_checkable="definitions (the capacity of a link); semantic_comm checks what follows from them",
        source="derived",
    ),
    Claim(
        "adaptive_dfl.3",
        "Tree: energy 2*sum e, least for the minimum spanning tree; time 2*longest path from the root.",
        kind="identity",
        check=CALCULATOR + "tree_cost",
        grid=({"n": 3, "seed": 0}, {"n": 5, "seed": 0}, {"n": 5, "seed": 1}),
        source="derived",
    ),
    Claim(
        "adaptive_dfl.3.ring",
        "Ring: energy 2*(n-1)/n*sum e, time 2*(n-1)/n*(slowest link), with links of different speed.",
        kind="identity",
        check=CALCULATOR + "ring_cost",
        grid=product(n=(2, 3, 5), seed=(0, 1)),
        source="derived",
    ),
    Claim(
        "adaptive_dfl.4",
        "The greedy rule takes the largest numbers of local steps within both budgets.",
        kind="property",
        check=CALCULATOR + "budget_rule",
        grid=({},),
        source="derived",
    ),
]
