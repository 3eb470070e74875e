"""COLD (arXiv 2105.06697), in a reconstruction: NIDS with innovation compression.  In our letters a is gamma, c is eta, xi is c."""

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "Innovation Compression for Communication-Efficient Distributed Optimization With Linear Convergence (COLD)",
    "arXiv 2105.06697",
    rows=("000-9",),
    kind="convergence",
)

CALCULATOR = "verify_rates.theory.calculators.cold:"
RATES = ({"rate": (1, 2), "eps": (1, 2)}, {"rate": (1, 3), "eps": (1, 2)}, {"rate": (9, 10), "eps": (1, 1000)})

CLAIMS = [
    Claim(
        "cold.1",
        "Linear rate for contractive compressors, the same as without compression (arXiv version).",
        method="cold",
        not_checkable="the paper's constants, its step-size condition and its pseudo-code are not available; cold.4 is our substitute",
        source="COLD, abstract",
        provenance="paper",
    ),
    Claim(
        "cold.2",
        "Without compression and at eta = 1/2 the models follow NIDS exactly.",
        method="cold",
        kind="identity",
        check=CALCULATOR + "nids_recurrence",
        grid=product(problem=("quadratic", "nonconvex_logistic"), topology=("ring", "star(mixing=best)"), gamma=(0.3, 1.0)),
        source="derived",
    ),
    Claim(
        "cold.3",
        "One-bit Dyna-COLD: once |y-v| <= s, moves of y by at most (xi-1/2)*s a step keep it so, for xi > 1/2; larger moves do not.",
        method="cold",
        kind="property",
        check=CALCULATOR + "no_overload",
        grid=product(xi=((51, 100), (3, 4), (99, 100), (199, 200))),
        source="derived",
    ),
    Claim(
        "cold.3.runs",
        "One-bit Dyna-COLD converges at the rate of its scale, with the reference values of eta, xi and s_0.",
        method="cold",
        kind="property",
        check=CALCULATOR + "dynamic_rate",
        grid=(
            *product(eta=0.05, xi=0.995, scale=5, seed=(0, 1), overload=False),
            *product(eta=0.1, xi=0.99, scale=5, seed=(0, 1), overload=False),
            *product(eta=(0.2, 0.4), xi=0.98, scale=(1, 5), seed=0, overload=True),
        ),
        source="derived",
    ),
    Claim(
        "cold.4",
        "With a contractive compressor a matrix inequality gives a rate; its Lyapunov function shrinks so fast in every step of a run.",
        method="cold",
        check=CALCULATOR + "lyapunov_rate",
        grid=tuple(
            {"k": k, "d": 20, "n": 8, "topology": "ring", "gamma": gamma, "eta": eta, "seed": seed}
            for k, gamma, eta in ((20, 1.0, 0.5), (18, 1.0, 0.5), (15, 1.0, 0.2), (10, 1.0, 0.05), (10, 0.5, 0.02))
            for seed in (0, 1)
        ),
        source="derived",
    ),
    Claim(
        "cold.4.spectral",
        "On quadratics without compression the rate is the spectral radius of the matrix of (x, e).",
        method="cold",
        kind="identity",
        check=CALCULATOR + "spectral_rate",
        grid=product(common=(True, False), gamma=(0.5, 1.0), eta=(0.05, 0.5), topology=("ring", "complete"), seed=0),
        source="derived",
    ),
    Claim(
        "cold.4.moments",
        "With rand-k the second-moment operator gives the expected squared distance, by enumeration of all draws.",
        method="cold",
        kind="identity",
        check=CALCULATOR + "second_moments",
        grid=(*product(k=1, gamma=(0.5, 1.0), eta=(0.1, 0.3), seed=(0, 1)), *product(k=2, gamma=0.5, eta=0.3, seed=0)),
        source="derived",
    ),
    Claim(
        "cold.5",
        "An agent sends deg*k*(32 + ceil(log2 d)) bits a step with top-k.",
        method="cold",
        kind="identity",
        check=CALCULATOR + "bits",
        grid=product(d=(20, 128), k=(1, 5), topology=("ring", "star", "matcha8")),
        source="derived",
    ),
    Claim(
        "cold.5.total",
        "Messages until rate^N <= eps are log(1/eps)/log(1/rate): as printed it counts parts of messages.",
        kind="identity",
        check=CALCULATOR + "total_bits",
        grid=tuple({**p, "whole": False} for p in RATES),
        source="derived",
        expect="fails",
    ),
    Claim(
        "cold.5.total.repaired",
        "Messages until rate^N <= eps are ceil(log(1/eps)/log(1/rate)).",
        kind="identity",
        check=CALCULATOR + "total_bits",
        grid=tuple({**p, "whole": True} for p in RATES),
        source="derived",
    ),
    Claim(
        "cold.reference",
        "Top-k on a ring of 8 quadratics with d = 20 and gamma = 1/L converges linearly to machine precision.",
        method="cold",
        kind="table",
        check=CALCULATOR + "reference",
        grid=tuple({"k": k, "eta": eta, "seed": 0} for k, eta in ((10, 0.5), (5, 0.3), (2, 0.1), (1, 0.05))),
        source="reference numbers of the paper's file",
    ),
]
