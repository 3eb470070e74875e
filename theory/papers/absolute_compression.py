"""Absolute compression with error compensation (arXiv 2203.02383); all statements are our own.  In our letters Delta^2 is Delta2."""

from verify_rates.theory.claims import Claim, Paper, Setting, product

PAPER = Paper(
    "Distributed Methods with Absolute Compression and Error Compensation",
    "arXiv 2203.02383",
    rows=("002-9",),
    kind="convergence",
)

CALCULATOR = "verify_rates.theory.calculators.absolute_compression:"
NOISY = {"problem": {"name": "quadratic", "n": 4, "d": 10, "L": 1.0, "mu": 0.1, "zeta2_star": 4.0, "sigma2": 0.2}}
EXACT = {"problem": {"name": "quadratic", "n": 3, "d": 6, "L": 1.0, "mu": 0.3, "common": False, "zeta2_star": 1.0}}
REAL = {"problem": {"name": "logistic", "data": "breast_cancer", "n": 5, "lam": 0.1, "sigma2": 0.1}}

CLAIMS = [
    Claim(
        "absolute_compression.1",
        "The residual of every worker stays below gamma*Delta: ||e_i||^2 <= gamma^2*d*lam^2 for the hard threshold.",
        method="ec_sgd",
        check=CALCULATOR + "residual",
        grid=product(problem=("quadratic", "logistic"), lam=(0.1, 1.0), gamma=(0.02, 0.2), seed=(0,)),
        source="derived",
    ),
    Claim(
        "absolute_compression.2",
        "EC-SGD: linear progress, the noise of n workers, and a floor gamma^2*Delta^2, whatever the heterogeneity.",
        method="ec_sgd",
        measure="average_gap",
        bound="2*(1-gamma*mu/2)**N*R2/gamma + 2*gamma*sigma2/n + 2*(2*L+mu)*gamma**2*Delta2",
        lets={"gamma": "c/(4*L)", "theta": "(gamma*mu/2)/(1-(1-gamma*mu/2)**(t+1))"},
        when=("4*gamma*L <= 1",),
        setting=Setting(compressor="absolute", noise=True),
        runs=tuple(
            {**p, **q}
            for p in (NOISY, EXACT, REAL)
            for q in product(compressor=("hard_threshold(lam=0.05)", "hard_threshold(lam=1)"), c=(0.5, 1), N=60)
        ),
        source="derived",
    ),
    Claim(
        "absolute_compression.3",
        "Tuned step size.",
        method="ec_sgd",
        not_checkable="an order with hidden logarithms and without constants",
        source="derived",
    ),
    Claim(
        "absolute_compression.4",
        "EC-LSVRG loses the noise term; checked by the exact expectation over all samples and coins of small least squares.",
        method="ec_lsvrg",
        check=CALCULATOR + "lsvrg",
        grid=(
            *product(seed=(0, 1, 2), n=1, m=2, N=5, lam=(0.1, 2.0), p=(0.2, 0.5), c=1.0),
            *product(seed=(0, 1), n=2, m=2, N=2, lam=0.5, p=0.3, c=1.0),
        ),
        source="derived",
    ),
    Claim(
        "absolute_compression.5",
        "A message of the hard threshold costs nnz(|p| >= lam)*(32+ceil(log2 d)) bits.",
        kind="identity",
        check=CALCULATOR + "message_bits",
        grid=product(d=(1, 2, 10, 123, 1024), lam=0.5),
        source="derived",
    ),
    Claim(
        "absolute_compression.5.threshold",
        "For given vectors a constant threshold leaves the least total error under a total budget.",
        kind="property",
        check=CALCULATOR + "constant_threshold",
        grid=product(steps=2, d=2, levels=5),
        source="derived",
    ),
]
