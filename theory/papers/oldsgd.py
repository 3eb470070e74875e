"""OLDSGD (arXiv 2601.01493).  The paper's tau is H, its alpha is gamma; rho is lam^2; T_tx is the paper's T_m."""

from verify_rates.theory.claims import Claim, Paper, Setting, product

PAPER = Paper(
    "Accelerating Decentralized Optimization via Overlapping Local Steps (OLDSGD)",
    "arXiv 2601.01493",
    rows=("000-6",),
    kind="convergence",
)

CALCULATOR = "verify_rates.theory.calculators.oldsgd:"
QUADRATIC = {"problem": {"name": "quadratic", "n": 4, "d": 6, "L": 1.0, "mu": 0.05, "zeta2_star": 0.5, "sigma2": 0.5}}
NONCONVEX = {"problem": {"name": "one_minus_cos", "n": 6, "d": 3, "L": 1.0, "omega": 1.5, "shift": 0.7, "sigma2": 0.3}}
LETS = {"s": "sqrt(rho)", "gamma": "c*(1-s)/(4*sqrt(2)*H*L)"}
CONSENSUS = "24*gamma**2*(H*sigma2 + 2*H**2*zeta2_sup)/(1-s)**2"
DECENTRALISED = Setting(functions="smooth", noise=True, per_worker=True)
RUNS = tuple(
    {**p, **q}
    for p in (QUADRATIC, NONCONVEX)
    for q in (
        *product(topology=("ring", "complete"), H=(1, 4), c=1, N=40),
        *product(topology="ring", H=4, c=0.3, N=200),
    )
)

CLAIMS = [
    Claim(
        "oldsgd.1",
        "The mean model follows xbar - (gamma/n)*sum_i g_i at every step, as in local SGD.",
        method="oldsgd",
        kind="identity",
        check=CALCULATOR + "average",
        grid=product(method="oldsgd", problem=("quadratic", "logistic"), H=(1, 3), seed=(0, 1)),
        source="a description of the paper; derived",
        provenance="paper (secondary)",
    ),
    Claim(
        "oldsgd.2",
        "Nonconvex bound of OLDSGD from the contraction lam of the mixing matrix.",
        method="oldsgd",
        measure="grad_norm",
        take="mean",
        bound=f"2*F0/(gamma*N) + L*gamma*sigma2/n + L**2*({CONSENSUS})",
        lets=LETS,
        setting=DECENTRALISED,
        runs=RUNS,
        source="derived",
    ),
    Claim(
        "oldsgd.2.consensus",
        "The consensus error in the proof of oldsgd.2, averaged over the steps.",
        method="oldsgd",
        measure="consensus_error",
        take="mean",
        bound=CONSENSUS,
        lets=LETS,
        setting=DECENTRALISED,
        runs=RUNS,
        source="derived",
    ),
    Claim(
        "oldsgd.3",
        "On homogeneous quadratics OLDSGD is stable iff 0 < kappa < 1 + lam_min(W), local decentralised SGD iff 0 < kappa < 2.",
        method="oldsgd",
        kind="iff",
        check=CALCULATOR + "stability",
        grid=product(method=("oldsgd", "ldsgd"), H=(1, 2, 3)),
        source="derived",
    ),
    Claim(
        "oldsgd.4",
        "The fixed point on quadratics with Hessians of their own solves (I - W + Kap) x = Kap c.",
        method="oldsgd",
        kind="identity",
        check=CALCULATOR + "fixed_point",
        grid=product(seed=(0, 1, 2), H=(1, 4)),
        source="derived",
    ),
    Claim(
        "oldsgd.5",
        "Seconds a round: H*T_comp + T_m one after the other, Max(H*T_comp, T_m) with OLDSGD.",
        method="oldsgd",
        kind="identity",
        check=CALCULATOR + "seconds",
        grid=product(method=("oldsgd", "ldsgd"), H=(1, 2, 5)),
        source="derived",
    ),
    Claim(
        "oldsgd.5.ratio",
        "The speed-up of a round is at most 2, reached iff T_m = H*T_comp.",
        method="oldsgd",
        kind="property",
        check=CALCULATOR + "speed_up",
        grid=({},),
        source="derived",
    ),
    Claim(
        "oldsgd.6",
        "Full overlap iff H >= T_m/T_comp.",
        method="oldsgd",
        kind="iff",
        check=CALCULATOR + "speed_up",
        grid=({},),
        source="derived",
    ),
    Claim(
        "oldsgd.7",
        "Memory: two vectors more than local decentralised SGD (the models under way and the accumulator).",
        method="oldsgd",
        kind="table",
        check=CALCULATOR + "memory",
        grid=({},),
        source="derived",
    ),
]
