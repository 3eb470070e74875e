"""CO2 (arXiv 2401.16265).  The paper's G is n, its tau is H, its T counts rounds; tau is the staleness, one round."""

from typing import Any

from verify_rates.solvers.measures import grad_norm_less_drift, round_grad_norm
from verify_rates.theory.claims import Claim, Paper, Setting, product
from verify_rates.theory.papers.slowmo import SAFE, SMOOTH, STEP, THEOREM

PAPER = Paper(
    "CO2: Efficient Distributed Training with Full Communication-Computation Overlap",
    "arXiv 2401.16265",
    rows=("000-0",),
    kind="convergence, cost model",
)

CALCULATOR = "verify_rates.theory.calculators.co2:"
RECURSION = "verify_rates.theory.calculators.slowmo:recursion"
EDGE: dict[str, Any] = {"problem": {"name": "quadratic", "n": 1, "d": 1, "L": 0.732, "mu": 0.732}, "alpha": 1.0, "beta": 0.0}
QUADRATIC = {"problem": {"name": "quadratic", "n": 4, "d": 6, "L": 1.0, "mu": 0.05, "zeta2_star": 0.5, "sigma2": 0.5}}
NONCONVEX = {"problem": {"name": "one_minus_cos", "n": 3, "d": 3, "L": 1.0, "omega": 1.5, "shift": 0.7, "sigma2": 0.3}}

CLAIMS = [
    Claim(
        "co2.1",
        "Published rate O(1/sqrt(n*T*H)) + O(n*H/T).",
        method="co2",
        not_checkable="an order without constants",
        source="CO2",
        provenance="paper",
    ),
    Claim(
        "co2.2",
        "Form of the published condition: T*H at least n*L^2 times a bracket of alpha, beta and H.",
        method="co2",
        not_checkable="the constants of the bracket are not available",
        source="a description of the paper",
        provenance="paper (secondary)",
    ),
    Claim(
        "co2.3",
        "CO2's theorem is SlowMo's Theorem 1 with other letters: the bound of slowmo.1 (in its safe form) for updates one round late.",
        method="co2",
        measure=grad_norm_less_drift,
        take="mean",
        bound=THEOREM,
        lets=STEP,
        when=(SAFE,),
        setting=SMOOTH,
        runs=({**EDGE, "H": 2, "N": 4}, {**EDGE, "problem": {**EDGE["problem"], "L": 5.6, "mu": 5.6}, "H": 20, "N": 240}),
        source="recalled",
        provenance="recalled",
        expect="fails",
    ),
    Claim(
        "co2.4",
        "Nonconvex bound of CO2 with beta = 0 and no penalty; T = N/H - 1 applied updates, the round before the first one taken off.",
        method="co2",
        measure=round_grad_norm,
        take="mean",
        bound="(G0 + (N/H-1)*(9*F0/(2*a*(N/H-1)) + 4*L*a/H*sigma2/n + 8*L**2*a**2*sigma2/(H*n)"
        " + 8*L**2*gamma**2*H*sigma2 + 16*L**2*gamma**2*H**2*zeta2_sup))/(N/H)",
        lets={"gamma": "c/(4*L*H*Max(1, alpha))", "a": "alpha*gamma*H"},
        when=("L*a <= 1/4", "4*L*gamma*H <= 1"),
        setting=Setting(functions="smooth", noise=True, per_worker=True),
        runs=tuple(
            {**p, **q}
            for p in (QUADRATIC, NONCONVEX)
            for q in (
                {"H": 1, "alpha": 1.0, "c": 1, "N": 60},
                {"H": 4, "alpha": 1.0, "c": 1, "N": 120},
                {"H": 4, "alpha": 3.0, "c": 1, "N": 80},
                {"H": 4, "alpha": 0.5, "c": 0.3, "N": 40},
            )
        ),
        families=("one_minus_cos",),
        source="derived",
    ),
    Claim(
        "co2.5",
        "One round late an eigenvector has the polynomial z^2-(1+beta)*z+beta+c, c = alpha*kappa/penalty: stable iff 0 < c < 1-beta.",
        method="co2",
        kind="iff",
        check=RECURSION,
        grid=product(method="co2", staleness=1, H=(1, 2, 3)),
        source="derived",
    ),
    Claim(
        "co2.6",
        "Without staleness it is SlowMo: z^2-(1+beta-c)*z+beta, stable iff 0 < c < 2*(1+beta).",
        method="co2",
        kind="iff",
        check=RECURSION,
        grid=product(method="co2", staleness=0, H=(1, 2, 3)),
        source="derived",
    ),
    Claim(
        "co2.7",
        "A direction is damped iff the gap penalty is larger than alpha*kappa/(1-beta).",
        method="co2",
        kind="iff",
        check=CALCULATOR + "penalty",
        grid=({},),
        source="derived",
    ),
    Claim(
        "co2.8",
        "Ring all-reduce: 2*(n-1)*lat + 2*(n-1)/n*size/bw seconds.",
        kind="identity",
        check=CALCULATOR + "ring",
        grid=tuple({"n": n, "d": d} for n, d in ((1, 3), (2, 4), (3, 6), (5, 10))),
        source="derived",
    ),
    Claim(
        "co2.9",
        "Seconds of H steps, T_ar holding the link: H*(T_comp+T_ar) without overlap, H*T_comp+T_ar local SGD, Max(H*T_comp, T_ar) CO2.",
        method="co2",
        kind="identity",
        check=CALCULATOR + "seconds",
        grid=product(method=("gd", "local_sgd", "slowmo", "co2"), H=(1, 2, 5)),
        source="derived",
    ),
    Claim(
        "co2.10",
        "Full overlap iff H >= T_ar/T_comp; the least H is ceiling(T_ar/T_comp).",
        method="co2",
        kind="iff",
        check=CALCULATOR + "full_overlap",
        grid=({"most": 8},),
        source="derived",
    ),
    Claim(
        "co2.11",
        "At least four more buffers of the model's size.",
        method="co2",
        not_checkable="a count of one implementation's buffers; the step function keeps three more vectors: y, u and the average under way",
        source="a description of the paper",
        provenance="paper (secondary)",
    ),
]
