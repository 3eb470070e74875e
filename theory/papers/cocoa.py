"""CoCoA (arXiv 1611.02189).  The paper's tau (1/tau is the smoothness of f) is its own; Theta is eps, sigma' c, sigma_max b."""

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "CoCoA: A General Framework for Communication-Efficient Distributed Optimization",
    "arXiv 1611.02189",
    rows=("000-7",),
    kind="convergence",
)

CALCULATOR = "verify_rates.theory.calculators.cocoa:"
STRONGLY_CONVEX = ("ridge", "elastic_net", "ridge_dual")
PARTS = {
    "contraction": ("cocoa.2", "the suboptimality shrinks by 1 - gamma*(1-Theta)*s a round, s = mu*tau/(mu*tau + sigma_max*sigma')"),
    "gap": ("cocoa.2.gap", "the gap is at most the suboptimality over gamma*(1-Theta)*s"),
    "rounds": ("cocoa.2.rounds", "after log(h0/eps)/(gamma*(1-Theta)*s) rounds the suboptimality is at most eps"),
}
RUNS = (*product(gamma=1.0, safe=(True, False), H=(0, 4)), *product(gamma=0.5, safe=False, H=(0, 4)))

CLAIMS = [
    Claim(
        "cocoa.1",
        "Key lemma: the decrease of a round is at least gamma*(1-Theta) times a quadratic in s, for every s in [0, 1].",
        check=CALCULATOR + "lemma",
        grid=tuple(
            {"kind": kind, "K": K, "per": per, **run, "seed": 0}
            for kind in (*STRONGLY_CONVEX, "box_lasso", "svm_dual")
            for K, per in ((4, 1), (3, 2))
            for run in RUNS
            if per > 1 or run["H"] == 0
        ),
        source="derived and recalled (CoCoA, Lemma 7)",
    ),
    *(
        Claim(
            claim_id,
            f"Strongly convex g_i: {statement}.",
            check=CALCULATOR + "strongly_convex",
            grid=tuple(
                {"part": part, "kind": kind, "K": K, "per": 2, **run, "seed": 0}
                for kind in STRONGLY_CONVEX
                for K in (2, 4)
                for run in RUNS[::2]
            ),
            source="derived and recalled (CoCoA, Theorem 3)",
        )
        for part, (claim_id, statement) in PARTS.items()
    ),
    Claim(
        "cocoa.3",
        "g_i with support in [-L, L]: the gap at the average of the points T0..T-1 is at most eps.",
        check=CALCULATOR + "bounded_support",
        grid=product(kind=("box_lasso", "svm_dual"), K=(2, 5), gamma=(0.5, 1.0), safe=(True, False), share=(1.0, 0.1), seed=(0, 1)),
        source="derived and recalled (CoCoA, Theorem 2)",
    ),
    Claim(
        "cocoa.4",
        "H coordinate steps have an accuracy Theta of at most (1 - c_loc)^H; it is that number for H = 1, and smaller beyond.",
        check=CALCULATOR + "local_accuracy",
        grid=product(n=(1, 2, 3), H=(1, 2, 5), seed=(0, 1)),
        source="derived",
    ),
    Claim(
        "cocoa.4.equality",
        "H coordinate steps have the accuracy Theta = (1 - c_loc)^H, read as an equality.",
        kind="identity",
        relation="==",
        check=CALCULATOR + "local_equality",
        grid=product(n=2, H=(1, 2), seed=0),
        source="derived",
        expect="fails",
    ),
    Claim(
        "cocoa.5",
        "A round takes T_local + T_ar(m), from the time line of H local steps and one all-reduce of m numbers.",
        kind="identity",
        check=CALCULATOR + "round_time",
        grid=product(machines=((1.0, 1.0), (0.2, 0.5, 0.3)), H=(1, 7), m=(10, 1000), latency=(0.0, 0.1), bandwidth=1e5, R=(1, 12)),
        source="derived",
    ),
]
