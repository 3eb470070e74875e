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
    Claim(
        "acco.6",
        "Seconds per update: n*T_g + T_m one after the other, 2*Max(n*T_g/2, T_m) with ACCO (T_m holds the link, latency included).",
        method="acco",
        kind="identity",
        check="verify_rates.theory.calculators.acco:update_time",
        grid=product(scheme=("acco", "sequential")),
        source="derived",
    ),
    Claim(
        "acco.7",
        "Speed-up at a fixed batch: at most 3/2, there where n*T_g = 2*T_m; below 1 iff T_m > n*T_g.",
        method="acco",
        kind="property",
        check="verify_rates.theory.calculators.acco:speed_up",
        grid=({},),
        source="derived",
    ),
    Claim(
        "acco.8",
        "With adaptive accumulation the device never idles: per-sample speed-up 1 + T_m/(n*T_g), at the price of a larger batch.",
        kind="identity",
        check="verify_rates.theory.calculators.acco:adaptive",
        grid=({},),
        source="derived",
    ),
    Claim(
        "acco.9",
        "Everything is hidden iff n*T_g >= 2*T_m.",
        method="acco",
        kind="iff",
        check="verify_rates.theory.calculators.acco:overlap",
        grid=({},),
        source="derived",
    ),
    Claim(
        "acco.10",
        "Memory: 2 + 2 + 2 + (4 + 4 + 8 + 12)/n bytes a parameter.",
        kind="table",
        check="verify_rates.theory.calculators.acco:memory",
        grid=product(n=(1, 3, 8, 64)),
        source="released code",
        provenance="code",
    ),
]
