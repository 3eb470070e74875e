"""DeCo-SGD (arXiv 2507.17346).  In our letters: a is bw, b is lat, theta is x."""

from verify_rates.theory.claims import Claim, Paper, Setting, product

PAPER = Paper(
    "DeCo-SGD: Taming Latency and Bandwidth",
    "arXiv 2507.17346",
    rows=("002-0",),
    kind="convergence, cost model, schedule",
)

CALCULATOR = "verify_rates.theory.calculators.deco:"
QUADRATIC = {"problem": {"name": "quadratic", "n": 4, "d": 20, "L": 1.0, "mu": 0.05, "zeta2_star": 1.0, "sigma2": 0.5}}
REAL = {"problem": {"name": "logistic", "data": "breast_cancer", "n": 10, "lam": 1e-2, "sigma2": 0.5}}
NONCONVEX = {"problem": {"name": "nonconvex_logistic", "data": "breast_cancer", "n": 4, "lam": 1e-1, "sigma2": 0.5}}
GROWTH = dict(n=4, d=20, k=10, steps=4000, seed=0)

CLAIMS = [
    Claim(
        "deco.1",
        "Removing the error memory and the averages under way from the model leaves plain SGD, exactly.",
        method="dd_ef_sgd",
        kind="identity",
        check=CALCULATOR + "virtual_sequence",
        grid=product(problem=("quadratic", "logistic"), compressor=("topk(k=3)", "scaled_sign"), tau=(0, 1, 4), seed=(0, 1)),
        source="derived",
    ),
    Claim(
        "deco.2",
        "The factor phi_A = (1-delta)/(delta*(1-delta)^tau), as quoted, explodes as delta -> 1 for tau >= 2; it is least at delta = 1/tau.",
        kind="property",
        check=CALCULATOR + "phi_a_shape",
        grid=product(tau=(2, 3, 6, 20)),
        source="a description of the paper",
        provenance="paper (secondary)",
    ),
    Claim(
        "deco.3",
        "The factor phi_B = (1-delta)/(delta*(1-delta/2)^tau) vanishes as delta -> 1.",
        kind="property",
        check=CALCULATOR + "phi_b_shape",
        grid=product(tau=(0, 2, 6, 20)),
        source="recalled",
        provenance="recalled",
    ),
    Claim(
        "deco.4",
        "Expected shape of the paper's rate.",
        method="dd_ef_sgd",
        not_checkable="an order without constants; the step-size condition is not available",
        source="recalled",
        provenance="recalled",
    ),
    Claim(
        "deco.5",
        "Nonconvex bound of DD-EF-SGD: staleness and compression enter additively.",
        method="dd_ef_sgd",
        measure="grad_norm",
        take="mean",
        bound="4*F0/(gamma*N) + 2*L*gamma*sigma2/n"
        " + 4*L**2*gamma**2*(4*(1-delta)*zeta2_sup/delta**2 + 2*(1-delta)*sigma2/delta + 2*tau*sigma2/n)",
        lets={"gamma": "c/(4*L*Max(1, sqrt(tau**2 + 2*(1-delta)/delta**2)))"},
        setting=Setting(functions="smooth", compressor="contractive", noise=True),
        grid=product(n=1, L=1, delta=(0.5, 1), tau=(0, 1, 2), sigma2=0, zeta2_sup=0, c=1, N=(3,)),
        partial=True,
        initial="function_gap",
        runs=tuple(
            {**p, **q}
            for p in (QUADRATIC, REAL, NONCONVEX)
            for q in product(compressor=("topk(k=1)", "topk(k=5)"), tau=(0, 4), c=1, N=(20, 300))
        ),
        families=("one_minus_cos",),
        source="derived",
    ),
    Claim(
        "deco.6",
        "Tuning gamma in deco.5 gives the stated number of steps, with an explicit constant of 128.",
        kind="property",
        check=CALCULATOR + "tuned_complexity",
        grid=product(seed=tuple(range(4))),
        source="derived",
    ),
    Claim(
        "deco.7",
        "Strongly convex analogue.",
        method="dd_ef_sgd",
        not_checkable="an order without constants (a sketch)",
        source="derived",
    ),
    Claim(
        "deco.8",
        "phi_B falls in delta on all of (0, 1) iff tau < 3 + 2*sqrt(2).",
        kind="iff",
        check=CALCULATOR + "phi_b_monotone",
        grid=product(tau=(0, 1, 3, 5, 6, 10)),
        source="derived",
    ),
    Claim(
        "deco.9",
        "Delayed gradient descent on a quadratic is stable iff gamma*L < 2*sin(pi/(2*(2*tau+1))).",
        method="dd_ef_sgd",
        kind="iff",
        check=CALCULATOR + "delayed_stability",
        grid=product(tau=(0, 1, 2, 3, 5, 8)),
        source="derived",
    ),
    Claim(
        "deco.10",
        "Under full hiding only tau1 = ceil(lat/T_comp) and tau1 + 1 can be optimal, for objectives that fall in delta and rise in tau.",
        kind="property",
        check=CALCULATOR + "two_candidates",
        grid=product(objective=("additive", "phi_B"), seed=tuple(range(5))),
        source="recalled and derived",
        provenance="recalled",
    ),
    Claim(
        "deco.11",
        "Seconds per iteration: max of computing, sending, and the loop of both with the latency over tau + 1.",
        method="dd_ef_sgd",
        kind="identity",
        check=CALCULATOR + "cycle_time",
        grid=product(tau=(0, 1, 2, 3, 5)),
        source="derived",
    ),
    Claim(
        "deco.12",
        "All communication is hidden iff delta <= bw*T_comp/size and tau >= (lat + delta*size/bw)/T_comp.",
        method="dd_ef_sgd",
        kind="iff",
        check=CALCULATOR + "full_hiding",
        grid=product(tau=(0, 1, 2, 4)),
        source="derived",
    ),
    Claim(
        "deco.13",
        "Synchronous SGD takes T_comp + size/bw + lat an iteration.",
        method="gd",
        kind="identity",
        check=CALCULATOR + "synchronous",
        grid=product(method=("gd", "ef_sgd")),
        source="derived",
    ),
    Claim(
        "deco.14",
        "Time to accuracy is the number of steps times the time of a step, exactly: not where tau >= 1, because of the start.",
        method="dd_ef_sgd",
        kind="identity",
        check=CALCULATOR + "time_to_accuracy",
        grid=(*product(tau=0, T_comp=2, T_tx=1, lat=3, steps=(1, 9)), {"tau": 1, "T_comp": 1, "T_tx": 1, "lat": 0, "steps": 1}),
        source="derived",
        expect="fails",
    ),
    Claim(
        "deco.14.repaired",
        "T steps take from T*T_iter to (T-1)*T_iter + T_comp + T_tx + lat.",
        method="dd_ef_sgd",
        kind="property",
        check=CALCULATOR + "time_to_accuracy_repaired",
        grid=product(tau=(0, 1, 2, 4)),
        source="derived",
    ),
    *(
        Claim(
            f"deco.{number}.growth",
            f"Our reading of {name}, not the paper's theorem: the error energy mean ||e_i||^2 grows with tau at least as phi(tau)/phi(0).",
            method="dd_ef_sgd",
            kind="property",
            relation=">=",
            check=CALCULATOR + "energy_growth",
            grid=product(factor=name, tau=(4, 16), tau_max=16, **GROWTH),
            source="a reading of the quoted factor",
            expect="fails",
        )
        for number, name in ((2, "phi_A"), (3, "phi_B"))
    ),
]
