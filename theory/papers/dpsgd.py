"""DPSGD (arXiv 2210.02882).  The statements are our own, for the constant-delay stand-in; tau is the staleness."""

from verify_rates.theory.claims import Claim, Paper, Setting, product

PAPER = Paper(
    "DPSGD: Scaling up Stochastic Gradient Descent for Non-convex Optimisation",
    "arXiv 2210.02882",
    rows=("002-6",),
    kind="convergence (constants missing)",
)

CALCULATOR = "verify_rates.theory.calculators.dpsgd:"
QUADRATIC = {"problem": {"name": "quadratic", "n": 4, "d": 6, "L": 1.0, "mu": 0.05, "zeta2_star": 1.0, "sigma2": 0.5}}
NONCONVEX = {"problem": {"name": "nonconvex_logistic", "data": "breast_cancer", "n": 4, "lam": 1e-1, "sigma2": 0.5}}
QUIET = {"problem": {"name": "quadratic", "n": 1, "d": 1, "L": 1.0, "mu": 1.0, "sigma2": 1e-3}}
EXACTLY = {"compressor": "identity"}
DELAYED = Setting(functions="smooth", compressor="contractive", noise=True)
TUNED = "4*sqrt(2)*sqrt(F0*L*sigma2/(n*N)) + 16*L*F0*tau/N"

CLAIMS = [
    Claim(
        "dpsgd.1",
        "O(1/sqrt(T)) with speed-up while the cores are at most T^(1/4) and the workers at most T^(1/2).",
        not_checkable="orders without constants",
        source="DPSGD",
        provenance="paper",
    ),
    Claim(
        "dpsgd.2",
        "Nonconvex bound for updates that arrive tau steps late.",
        method="dd_ef_sgd",
        measure="grad_norm",
        take="mean",
        bound="4*F0/(gamma*N) + 2*L*gamma*sigma2/n + 8*L**2*gamma**2*tau*sigma2/n",
        lets={"gamma": "c/(4*L*Max(1, tau))"},
        setting=DELAYED,
        grid=product(n=1, L=1, delta=1, tau=(0, 1, 2), sigma2=0, c=1, N=(3,)),
        partial=True,
        initial="function_gap",
        runs=tuple({**p, **EXACTLY, **q} for p in (QUADRATIC, NONCONVEX) for q in product(tau=(0, 4), c=1, N=(20, 80))),
        families=("one_minus_cos",),
        source="derived",
    ),
    Claim(
        "dpsgd.2.in_turn",
        "An asynchronous master whose workers push single updates in turn is the delayed method with staleness n - 1.",
        method="dd_ef_sgd",
        kind="identity",
        check=CALCULATOR + "delayed",
        grid=product(n=(1, 2, 5), seed=(0, 1)),
        source="derived",
    ),
    Claim(
        "dpsgd.2.together",
        "With one thread and workers that pull and push together it is local SGD with B steps.",
        method="local_sgd",
        kind="identity",
        check=CALCULATOR + "local",
        grid=product(n=(1, 3), B=(1, 4), seed=0),
        source="derived",
    ),
    Claim(
        "dpsgd.3",
        "The tuned step in dpsgd.2 as printed, without the condition on the step.",
        method="dd_ef_sgd",
        measure="grad_norm",
        take="mean",
        bound=TUNED,
        lets={"gamma": "sqrt(2*n*F0/(L*sigma2*N))"},
        setting=DELAYED,
        runs=({**QUIET, **EXACTLY, "tau": 0, "N": 1},),
        source="derived",
        expect="fails",
    ),
    Claim(
        "dpsgd.3.repaired",
        "The tuned step in dpsgd.2 where it is at most 1/(4*L*Max(1, tau)).",
        method="dd_ef_sgd",
        measure="grad_norm",
        take="mean",
        bound=TUNED,
        lets={"gamma": "sqrt(2*n*F0/(L*sigma2*N))"},
        when=("4*gamma*L*Max(1, tau) <= 1",),
        setting=DELAYED,
        runs=tuple(
            {"problem": {**QUADRATIC["problem"], "sigma2": 40.0}, **EXACTLY, **q} for q in ({"tau": 0, "N": 150}, {"tau": 2, "N": 200})
        ),
        source="derived",
    ),
    Claim(
        "dpsgd.3.tuned",
        "The bound of dpsgd.2 at that step is the stated one.",
        kind="identity",
        check=CALCULATOR + "tuned",
        grid=({},),
        source="derived",
    ),
    Claim(
        "dpsgd.4",
        "Reference results of asynchronous SGD with consistent and inconsistent reads.",
        not_checkable="recalled orders without constants",
        source="recalled (Lian et al. 2015)",
        provenance="recalled",
    ),
]
