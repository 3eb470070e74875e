"""Step-ahead error feedback (arXiv 2008.05823); the statements are our own.  In our letters eta is gamma, Delta is F0, P is H."""

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "Step-Ahead Error Feedback for Distributed Training with Compressed Gradient (SAEF)",
    "arXiv 2008.05823",
    rows=("002-13",),
    kind="convergence (compression)",
)

CALCULATOR = "verify_rates.theory.calculators.saef:"

CLAIMS = [
    Claim(
        "saef.1",
        "Top-k is contractive with delta = k/d, the scaled sign with delta = ||v||_1^2/(d*||v||_2^2) >= 1/d.",
        kind="property",
        check=CALCULATOR + "contraction",
        grid=product(d=(1, 2, 3, 4), size=2),
        source="derived",
    ),
    Claim(
        "saef.2",
        "The model less all residuals, y = x - mean e - s, moves by -gamma times the average gradient, exactly.",
        method="saef",
        kind="identity",
        check=CALCULATOR + "virtual_iterate",
        grid=(
            *product(method="saef", problem="quadratic", compressor=("topk(k=3)", "scaled_sign"), alpha=(0, 1), P=(0, 5), seed=0),
            *product(method="saef", problem="logistic", compressor="topk(k=3)", alpha=1, P=5, seed=0),
            *product(method="saef_one_way", problem="quadratic", compressor="randk(k=2)", alpha=(0, 1), P=(0, 5), seed=1),
        ),
        source="derived",
    ),
    Claim(
        "saef.3",
        "Nonconvex bound at y with the mismatch as only trace of compression; L is the smoothness of every worker's function.",
        method="saef",
        check=CALCULATOR + "nonconvex",
        grid=product(problem=("quadratic", "nonconvex_logistic"), alpha=(0, 1), compressor="topk(k=2)", c=(0.3, 1)),
        source="derived",
    ),
    Claim(
        "saef.3.noise",
        "The same with noise, by the exact expectation over all outcomes of two workers with two-point noise.",
        method="saef_one_way",
        check=CALCULATOR + "nonconvex_noise",
        grid=product(seed=(0, 1, 2), alpha=(0, 1), T=(1, 4)),
        source="derived",
    ),
    Claim(
        "saef.3.average",
        "The same with the smoothness of f alone: false with a step ahead, since gradients are taken at the workers' own points.",
        method="saef_one_way",
        check=CALCULATOR + "nonconvex_noise",
        grid=({"seed": 13, "alpha": 1, "T": 3, "smoothness": "average"}, {"seed": 4, "alpha": 1, "T": 4, "smoothness": "average"}),
        source="a reading of saef.3",
        expect="fails",
    ),
    Claim(
        "saef.4",
        "Residuals stay below 4*(1-delta)*gamma^2*G2/delta^2.",
        method="saef",
        check=CALCULATOR + "residual_limit",
        grid=product(delta=(0.01, 0.1, 0.5, 0.9, 1.0)),
        source="derived; the usual lemma of error feedback",
    ),
    Claim(
        "saef.4.runs",
        "The same along runs of EF and SAEF with both residuals and averaging.",
        method="saef",
        check=CALCULATOR + "residual",
        grid=product(compressor=("topk(k=1)", "topk(k=6)", "scaled_sign"), alpha=(0, 1), P=(0, 3)),
        source="derived",
    ),
    Claim(
        "saef.5",
        "With one worker, averaging every step, or one common Hessian, y is exactly SGD for any compressor (no compression back).",
        method="saef_one_way",
        kind="identity",
        check=CALCULATOR + "exact_case",
        grid=product(case=("one worker", "averaging", "common Hessian"), compressor=("topk(k=1)", "scaled_sign"), seed=(0, 1)),
        source="derived",
    ),
    Claim(
        "saef.6",
        "Each way top-k costs k*(32+ceil(log2 d)) bits a round, the scaled sign d+32.",
        method="saef",
        kind="identity",
        check=CALCULATOR + "bits",
        grid=(
            *product(compressor=("topk(k=1)", "topk(k=2)"), formula="topk", d=(2, 3, 64, 65)),
            *product(compressor="scaled_sign", formula="sign", d=(2, 64)),
        ),
        source="derived",
    ),
    Claim(
        "saef.7",
        "Averaging the residuals by a ring all-reduce every H steps costs 32*d*2*(n-1)/n/H bits a worker and step.",
        method="saef",
        kind="table",
        check=CALCULATOR + "averaging_bits",
        grid=product(n=(2, 3, 8), d=(10, 24), P=(1, 20)),
        source="derived",
    ),
]
