"""ACCO: Accumulate While You Communicate (arXiv 2406.02613); the statements are our own, for Opt = SGD with equal halves."""

from verify_rates.solvers.measures import pair_distance
from verify_rates.theory.claims import Claim, Paper, Setting, product

PAPER = Paper(
    "ACCO: Accumulate While You Communicate for Communication-Overlapped Sharded LLM Training",
    "arXiv 2406.02613",
    rows=("000-3",),
    kind="convergence, cost model",
)

NOISY = {"problem": {"name": "quadratic", "n": 4, "d": 10, "L": 1.0, "mu": 0.1, "zeta2_star": 1.0, "sigma2": 0.5}}
NONCONVEX = {"problem": {"name": "nonconvex_logistic", "data": "breast_cancer", "n": 4, "lam": 1e-1, "sigma2": 0.5}}
HALF_VARIANCE = {"gamma": "c/L", "s": "sqrt(sigma2/n)"}

CLAIMS = [
    Claim(
        "acco.1",
        "The estimate is off by half a step of gradient difference: e_{t+1} = (gamma/2)*(g_t - gt_t), e_0 = 0.",
        method="acco",
        kind="identity",
        check="verify_rates.theory.calculators.acco:mismatch_identity",
        grid=product(problem=("quadratic", "logistic"), gamma=(0.1, 0.5), seed=(0, 1)),
        source="derived",
    ),
    Claim(
        "acco.2",
        "The mismatch between model and estimate stays below (2/3)*gamma^2*s^2, s^2 the variance of an averaged half gradient.",
        method="acco",
        measure=pair_distance,
        bound="2/3*gamma**2*s**2",
        lets=HALF_VARIANCE,
        when=("gamma*L <= 1",),
        setting=Setting(functions="smooth", noise=True),
        runs=tuple({**p, **q} for p in (NOISY, NONCONVEX) for q in product(c=(0.3, 1), N=(1, 30))),
        families=("one_minus_cos",),
        source="derived",
    ),
    Claim(
        "acco.3",
        "Nonconvex bound of ACCO: full-batch SGD plus one term of third order for the overlap.",
        method="acco",
        measure="grad_norm",
        take="mean",
        bound="2*F0/(gamma*N) + L*gamma*s**2/2 + L**2*gamma**2*s**2/6",
        lets=HALF_VARIANCE,
        when=("gamma*L <= 1",),
        setting=Setting(functions="smooth", noise=True),
        runs=tuple({**p, **q} for p in (NOISY, NONCONVEX) for q in product(c=(0.3, 1), N=(5, 100))),
        families=("one_minus_cos",),
        source="derived",
    ),
    Claim(
        "acco.4",
        "Without noise the estimate equals the model and ACCO is gradient descent without delay.",
        method="acco",
        kind="identity",
        check="verify_rates.theory.calculators.acco:noise_free_is_gd",
        grid=product(problem=("quadratic", "logistic", "nonconvex_logistic"), gamma=(0.1, 1.0)),
        source="derived",
    ),
    Claim(
        "acco.5",
        "On a quadratic ACCO is stable iff gamma*lam < 2, the delayed update iff gamma*lam < 1.",
        method="acco",
        kind="iff",
        check="verify_rates.theory.calculators.acco:stability",
        grid=({"scheme": "acco", "limit": 2}, {"scheme": "delayed", "limit": 1}),
        source="derived",
    ),
]
