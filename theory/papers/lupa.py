"""Local SGD with Periodic Averaging (LUPA-SGD, arXiv 1910.13598).  The paper's p is n, its tau is H, its batch B is in sigma2."""

from verify_rates.theory.claims import Claim, Paper, Setting, product

PAPER = Paper(
    "LUPA-SGD: Local SGD with Periodic Averaging: Tighter Analysis and Adaptive Synchronization",
    "arXiv 1910.13598",
    rows=("002-1",),
    kind="convergence, schedule",
)

LOCAL = Setting(noise=True, per_worker=True, shared_minimiser=True)
IDENTICAL = {"problem": {"name": "quadratic", "n": 4, "d": 10, "L": 1.0, "mu": 0.2, "zeta2_star": 0.0, "sigma2": 1.0}}
COPIES = {"problem": {"name": "logistic", "data": "breast_cancer", "n": 4, "lam": 0.2, "shards": "copies", "sigma2": 0.5}}

CLAIMS = [
    Claim(
        "lupa.1",
        "Published three-term bound (recalled), narrowed to a >= 4*kappa because two of its conditions are not available.",
        method="local_sgd",
        measure="function_gap",
        bound="a**3/(N+a)**3*F0 + 4*kappa*sigma2*N*(N+2*a)/(mu*n*(N+a)**3) + 256*kappa**2*sigma2*N*(H-1)/(mu*n*(N+a)**3)",
        lets={"kappa": "L/mu", "a": "Max(4*H + 4, 4*kappa)", "gamma": "4/(mu*(t+a))"},
        setting=LOCAL,
        runs=tuple({**IDENTICAL, **q} for q in product(H=(2, 8), N=(40, 400)))
        + tuple({**COPIES, **q} for q in product(H=(2, 8), N=(40, 120))),  # so short that a sample of 40 is affordable
        source="LUPA-SGD, Theorem (final form)",
        provenance="recalled",
    ),
    Claim(
        "lupa.2",
        "Error O(1/(n*T)) with O((n*T)^(1/3)) rounds.",
        method="local_sgd",
        not_checkable="an order without constants",
        source="LUPA-SGD, poster",
        provenance="paper",
    ),
    Claim(
        "lupa.3",
        "Conditions under which the adaptive schedule keeps the rate.",
        method="local_sgd",
        not_checkable="orders without constants",
        source="LUPA-SGD, poster",
        provenance="paper",
    ),
    Claim(
        "lupa.3.code",
        "The released periods (1+alpha*i)*H, alpha = 2/(R+1)*T/(R*H), sum to T, whether i starts at 0 or at 1.",
        method="local_sgd",
        kind="identity",
        check="verify_rates.theory.calculators.lupa_schedule:released",
        grid=product(T=5469, R=10, H=91, first=(0, 1)),
        source="released code",
        provenance="code",
        expect="fails",
    ),
    Claim(
        "lupa.3.alpha",
        "That formula gives the printed slope 1.0927 of the experiments (T = 5469, ten rounds, H = 91).",
        method="local_sgd",
        kind="table",
        check="verify_rates.theory.calculators.lupa_schedule:slope",
        grid=({"T": 5469, "R": 10, "H": 91, "printed_value": 1.0927},),
        source="released code",
        provenance="code",
    ),
    Claim(
        "lupa.3.repaired",
        "With alpha = 2*(T-R*H)/(H*R*(R-1)), R*H <= T, they sum to T, sum tau_i*(tau_i-1) <= 2*T^2/R, and all are <= 2*T/R.",
        method="local_sgd",
        kind="property",
        check="verify_rates.theory.calculators.lupa_schedule:conditions",
        grid=({"most": 24},),
        source="derived",
    ),
    Claim(
        "lupa.4",
        "Our safe version of the three-term bound for identical convex workers.",
        method="local_sgd",
        measure="function_gap",
        bound="((a-1)/(N+a-1))**3*F0 + 4*kappa*sigma2*N*(N+2*a-1)/(mu*n*(N+a-1)**3)"
        " + 32*kappa**2*sigma2*(1-1/n)*N*(H-1)*((a+H)/a)**2/(mu*(N+a-1)**3)",
        lets={"kappa": "L/mu", "a": "4*kappa", "gamma": "4/(mu*(t+a))"},
        setting=LOCAL,
        runs=tuple({**p, **q} for p in (IDENTICAL, COPIES) for q in product(H=(1, 4, 16), N=(16, 400))),
        source="derived",
    ),
    Claim(
        "lupa.5",
        "Comparison table of errors and rounds.",
        method="local_sgd",
        not_checkable="orders without constants",
        source="LUPA-SGD, poster",
        provenance="paper",
    ),
    Claim(
        "lupa.6",
        "Time of T steps: T*T_comp and T/H ring all-reduces of 2*(n-1)/n*d words (H divides T, n divides d).",
        method="local_sgd",
        kind="identity",
        check="verify_rates.theory.calculators.lupa:seconds",
        grid=product(n=(2, 4, 5), d=20, H=(1, 3), T=6),
        source="derived",
    ),
    Claim(
        "lupa.6.pace",
        "Per step that is T_comp + T_allreduce/H, for every cost.",
        method="local_sgd",
        kind="identity",
        check="verify_rates.theory.calculators.lupa:pace",
        grid=product(H=(1, 2, 5)),
        source="derived",
    ),
    Claim(
        "lupa.6.ragged",
        "The same where H does not divide T: fewer rounds are made than T/H.",
        method="local_sgd",
        kind="identity",
        check="verify_rates.theory.calculators.lupa:seconds",
        grid=({"n": 2, "d": 2, "H": 2, "T": 1},),
        source="derived",
        expect="fails",
    ),
]
