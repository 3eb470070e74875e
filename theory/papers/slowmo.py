"""SlowMo (arXiv 1910.00643), the parent theorem of CO2.  The paper's m is n, its tau is H, its V is sigma2/n, its tau*T is N."""

from verify_rates.solvers.measures import grad_norm_less_drift
from verify_rates.theory.claims import Claim, Paper, Setting, product

PAPER = Paper("SlowMo", "arXiv 1910.00643", kind="convergence")

CALCULATOR = "verify_rates.theory.calculators.slowmo:"
THEOREM = "(2*F0 + sigma2*L)/sqrt(n*N) + 4*sigma2*L**2*(H-1)/N*((1-beta)/alpha - 1)**2 + 8*sigma2*L**2*H/N*beta**2/(1-beta**2)"
LOOKAHEAD = "(2*F0 + sigma2*L)/sqrt(N) + 4*sigma2*L**2*(H-1)/N*(1/alpha - 1)**2"
STEP = {"gamma": "(1-beta)/alpha*sqrt(n/N)"}
PRINTED = "N >= n*L**2*(1 + sqrt(3)*Max(3*H*(1-beta-alpha)/alpha, 4*H*beta/(1-beta), 1))"
SQUARED = "N >= n*L**2*(1 + sqrt(3)*Max(3*H*(1-beta-alpha)/alpha, 4*H*beta/(1-beta), 1))**2"
SAFE = "N >= n*L**2*(1 + sqrt(3)*Max(3*H*Abs(1-beta-alpha)/alpha, 4*H*beta/(1-beta), 1))**2"
SMOOTH = Setting(functions="smooth", noise=True, per_worker=True)
ALONE = Setting(functions="smooth", noise=True, per_worker=True, n=1)


def parabola(L):
    """One worker in one dimension, L*(x - 1)^2/2."""
    return {"problem": {"name": "quadratic", "n": 1, "d": 1, "L": L, "mu": L}}


# One round of two steps: the inner steps are 20 times too long, and the theorem's condition on N does not notice.
TOO_LONG = {**parabola(0.0068), "alpha": 2.0**-12, "beta": 0.0, "H": 2, "N": 2}
# A large outer step on long rounds: the bracket is 1 + sqrt(3), whatever alpha > 1 - beta.
TOO_BOLD = {**parabola(1.46), "alpha": 2.5, "beta": 0.0, "H": 8, "N": 16}
NOISY = {"problem": {"name": "quadratic", "n": 4, "d": 6, "L": 0.25, "mu": 0.02, "zeta2_star": 0.5, "sigma2": 0.5}}
NONCONVEX = {"problem": {"name": "one_minus_cos", "n": 2, "d": 3, "L": 0.25, "omega": 1.5, "shift": 0.7, "sigma2": 0.3}}
POINTS = (
    {"alpha": 1.0, "beta": 0.0, "H": 4, "N": 40},
    {"alpha": 0.5, "beta": 0.0, "H": 2, "N": 60},
    {"alpha": 1.0, "beta": 0.5, "H": 2, "N": 80},
)
LONE = {"problem": {"name": "one_minus_cos", "n": 1, "d": 3, "L": 0.25, "omega": 1.5, "sigma2": 0.3}}

CLAIMS = [
    Claim(
        "slowmo.1",
        "Theorem 1 (the drift term on the left), under its condition as printed: the bracket to the power 1.",
        method="slowmo",
        measure=grad_norm_less_drift,
        take="mean",
        bound=THEOREM,
        lets=STEP,
        when=(PRINTED,),
        setting=SMOOTH,
        runs=(TOO_LONG,),
        source="SlowMo, Theorem 1",
        provenance="paper",
        expect="fails",
    ),
    Claim(
        "slowmo.1.repaired",
        "Theorem 1 with the bracket squared and |1-beta-alpha| in it.",
        method="slowmo",
        measure=grad_norm_less_drift,
        take="mean",
        bound=THEOREM,
        lets=STEP,
        when=(SAFE,),
        setting=SMOOTH,
        runs=(
            *({**p, **q} for p in (NOISY, NONCONVEX) for q in POINTS),
            {**parabola(0.25), "alpha": 2.5, "beta": 0.0, "H": 2, "N": 20},
        ),
        families=("one_minus_cos",),
        source="derived",
    ),
    Claim(
        "slowmo.2",
        "Corollary 1 (local SGD inside): O(1/sqrt(n*N)) + O(n*H/T).",
        method="slowmo",
        not_checkable="an order without constants",
        source="SlowMo, Corollary 1",
        provenance="paper",
    ),
    Claim(
        "slowmo.3",
        "Corollary 2 (Lookahead: one worker, beta = 0), under the condition of Theorem 1 as printed.",
        method="slowmo",
        measure="grad_norm",
        take="mean",
        bound=LOOKAHEAD,
        lets=STEP,
        when=("beta == 0", PRINTED),
        setting=ALONE,
        runs=(TOO_LONG,),
        source="SlowMo, Corollary 2",
        provenance="paper",
        expect="fails",
    ),
    Claim(
        "slowmo.3.repaired",
        "Corollary 2 with the bracket squared and |1-alpha| in it.",
        method="slowmo",
        measure="grad_norm",
        take="mean",
        bound=LOOKAHEAD,
        lets=STEP,
        when=("beta == 0", SAFE),
        setting=ALONE,
        runs=tuple({**LONE, **q} for q in POINTS if q["beta"] == 0),
        families=("one_minus_cos",),
        source="derived",
    ),
    Claim(
        "slowmo.3.special",
        "Corollary 2 is Theorem 1 at n = 1, beta = 0.",
        kind="identity",
        check=CALCULATOR + "special_case",
        grid=({"text": "THEOREM", "said": "LOOKAHEAD", "values": {"n": 1, "beta": 0}},),
        source="derived",
    ),
    Claim(
        "slowmo.4",
        "At H = 1, alpha = 1, beta = 0 only the first term of Theorem 1 is left: plain SGD.",
        kind="identity",
        check=CALCULATOR + "special_case",
        grid=({"text": "THEOREM", "said": "PLAIN", "values": {"H": 1, "alpha": 1, "beta": 0}},),
        source="derived",
    ),
    Claim(
        "slowmo.5",
        "A step-size condition gamma_eff*L*bracket <= 1 is the condition on N with the bracket squared.",
        kind="identity",
        check=CALCULATOR + "power",
        grid=({},),
        source="derived",
    ),
    Claim(
        "slowmo.5.safe",
        "Theorem 1 with the bracket squared as it is: a large outer step (alpha > 1-beta) makes no term of it large.",
        method="slowmo",
        measure=grad_norm_less_drift,
        take="mean",
        bound=THEOREM,
        lets=STEP,
        when=(SQUARED,),
        setting=SMOOTH,
        runs=(TOO_BOLD,),
        source="derived",
        expect="fails",
    ),
    Claim(
        "slowmo.6",
        "On one eigenvector a round has the polynomial z^2-(1+beta-c)*z+beta, c = alpha*kappa, and is stable iff 0 < c < 2*(1+beta).",
        method="slowmo",
        kind="iff",
        check=CALCULATOR + "recursion",
        grid=product(method="slowmo", staleness=0, H=(1, 2, 3)),
        source="derived",
    ),
]
