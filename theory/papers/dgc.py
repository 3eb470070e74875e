"""Deep gradient compression (arXiv 1712.01887).  In our letters the momentum m is beta, eta is gamma, D0 is F0, T is N, N is n."""

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "Deep Gradient Compression (DGC)",
    "arXiv 1712.01887",
    rows=("000-14",),
    kind="convergence (compression; no theorem in the paper), cost model",
)

CALCULATOR = "verify_rates.theory.calculators.dgc:"

CLAIMS = [
    Claim(
        "dgc.1",
        "Top-k is contractive with delta = k/d, with equality exactly when all entries are equal in size.",
        kind="property",
        check=CALCULATOR + "top_k",
        grid=product(d=(2, 3, 4, 5), size=2),
        source="derived",
    ),
    Claim(
        "dgc.2",
        "Without masking x - gamma*mean v is dense heavy ball, whatever is sent.",
        method="dgc_unmasked",
        kind="identity",
        check=CALCULATOR + "virtual_sequence",
        grid=(
            *product(problem="quadratic", compressor=("topk(k=2)", "scaled_sign", "sampled_topk(k=3, share=0.3)"), beta=(0.0, 0.9), seed=0),
            *product(problem="logistic", compressor="topk(k=2)", beta=0.9, seed=1),
        ),
        source="derived",
    ),
    Claim(
        "dgc.3",
        "With masking it is not: a step of the virtual sequence deviates by more than a hundredth of the iterates.",
        method="dgc",
        kind="property",
        check=CALCULATOR + "masking",
        grid=product(problem="quadratic", compressor="topk(k=2)", beta=0.9, seed=(0, 1)),
        source="derived",
    ),
    Claim(
        "dgc.4",
        "In a block of T steps the gradient at position t has the coefficient sum of beta^i, i < T-t, with momentum correction, 1 without.",
        kind="identity",
        check=CALCULATOR + "block_coefficients",
        grid=product(T=(1, 2, 5, 12), corrected=(True, False)),
        source="derived",
    ),
    Claim(
        "dgc.5",
        "Error-feedback bound without momentum and masking, from a bound on the workers' gradients.",
        method="dgc_unmasked",
        check=CALCULATOR + "ef_bound",
        grid=product(problem=("quadratic", "logistic", "nonconvex_logistic"), compressor=("topk(k=1)", "topk(k=6)"), c=(0.1, 1)),
        source="derived",
    ),
    Claim(
        "dgc.6",
        "Values of 32 bits with run lengths of 16 compress by 32/(48*rho), with indices of 32 bits by 1/(2*rho): 666.7 and 500 at 0.001.",
        kind="table",
        check=CALCULATOR + "ratio",
        grid=({"rho": "1/1000", "bits": 16, "said": "2000/3"}, {"rho": "1/1000", "bits": 32, "said": "500"}),
        source="derived",
    ),
    Claim(
        "dgc.7",
        "The sparse all-gather beats the ring all-reduce iff n*48*rho < 64, that is n < 1333.3 at rho = 0.001.",
        kind="property",
        check=CALCULATOR + "crossover",
        grid=(*product(rho="1/1000", n=(2, 1333, 1334, 5000)), *product(rho="1/16", n=(2, 8, 21, 22, 40))),
        source="derived",
    ),
]
