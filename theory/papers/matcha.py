"""MATCHA (arXiv 1905.09435); the paper's m is n, its eta gamma, its K is N; the budget CB is share."""

from verify_rates.theory.claims import Claim, Paper, Setting, product

PAPER = Paper(
    "MATCHA: Speeding Up Decentralized SGD via Matching Decomposition Sampling",
    "arXiv 1905.09435",
    rows=("002-15",),
    kind="convergence, schedule, cost model",
)

CALCULATOR = "verify_rates.theory.calculators.matcha:"
BUDGET = "verify_rates.theory.calculators.matcha_budget:"
GRAPHS = ("matcha8", "ring", "star", "path", "complete")
DECENTRALISED = Setting(functions="smooth", noise=True, per_worker=True)
QUADRATIC = {"problem": {"name": "quadratic", "n": 8, "d": 10, "L": 1.0, "mu": 0.1, "zeta2_star": 1.0, "sigma2": 0.5}}
LOGISTIC = {"problem": {"name": "nonconvex_logistic", "data": "breast_cancer", "n": 8, "lam": 0.1, "sigma2": 0.5}}
TABLE = {"p": "activation", "lambda_2": "lambda_2 of the mean graph", "alpha": "mixing weight", "rho": "rho", "periodic": "periodic rho"}
BOUND = (
    "(2*F0/(gamma*N) + gamma*L*sigma2/n)/(1-2*D)"
    " + 2*gamma**2*L**2*rho/(1-sqrt(rho))*(sigma2/(1+sqrt(rho)) + 3*zeta2_sup/(1-sqrt(rho)))/(1-2*D)"
)
LETS = {"gamma": "c/L*Min(1, (1/sqrt(rho)-1)/4)", "D": "6*gamma**2*L**2*rho/(1-sqrt(rho))**2"}

CLAIMS = [
    Claim(
        "matcha.1",
        "The Laplacian of a matching satisfies L_j^2 = 2*L_j.",
        kind="identity",
        check=CALCULATOR + "matching_square",
        grid=product(graph=GRAPHS),
        source="derived",
    ),
    Claim(
        "matcha.2",
        "rho(alpha) from the mean Laplacians equals ||E[W'W] - J||, by enumeration of all activations.",
        kind="identity",
        check=CALCULATOR + "rho_by_enumeration",
        grid=product(graph=GRAPHS, share=(0.3, 0.5, 1.0), alpha=(0.2, 0.4)),
        source="released code (graph_manager.py)",
        provenance="code",
    ),
    Claim(
        "matcha.3",
        "Full communication: the best alpha is 2/(lambda_2+lambda_n) and rho = ((lambda_n-lambda_2)/(lambda_n+lambda_2))^2.",
        kind="identity",
        check=CALCULATOR + "vanilla",
        grid=product(graph=GRAPHS),
        source="derived",
    ),
    Claim(
        "matcha.4",
        "Periodic averaging with probability CB: rho = 1 - CB*(1 - rho of full communication).",
        kind="identity",
        check=CALCULATOR + "periodic",
        grid=product(graph=GRAPHS, share=(0.1, 0.3, 0.5, 0.6)),
        source="derived",
    ),
    Claim(
        "matcha.5",
        "For every budget some alpha gives rho < 1: rho <= 1 - lambda_2^2/(lambda_n^2 + 2*||Ltil||).",
        kind="property",
        check=CALCULATOR + "existence",
        grid=product(graph=GRAPHS, share=(0.1, 0.5, 0.9), seed=(0, 1, 2)),
        source="MATCHA, Theorem 1 in substance",
        provenance="recalled",
    ),
    Claim(
        "matcha.6",
        "Convergence of decentralised SGD from rho (the paper's Theorem 2, recalled and re-derived).",
        method="gossip_sgd",
        measure="grad_norm",
        take="mean",
        bound=BOUND,
        lets=LETS,
        when=("D < 1/2", "gamma*L <= 1"),
        setting=DECENTRALISED,
        runs=tuple({**p, **q} for p in (QUADRATIC, LOGISTIC) for q in product(topology=("matcha8", "ring"), c=(0.3, 1), N=(10, 200))),
        source="MATCHA, Theorem 2",
        provenance="recalled",
    ),
    Claim(
        "matcha.7",
        "Mean communication time of an iteration: t_match*sum_j p_j <= CB*M*t_match, M*t_match in full; t_match = lat + bytes/bw.",
        kind="identity",
        check=CALCULATOR + "communication_time",
        grid=product(graph=("matcha8", "ring", "star"), budget=(1, 5, 10)),
        source="derived",
    ),
    Claim(
        "matcha.8",
        "Mean time of a given number K of iterations: K*(T_comp + t_match*sum_j p_j).",
        kind="identity",
        check=CALCULATOR + "runtime",
        grid=product(graph=("matcha8", "ring"), budget=(3, 6), steps=(1, 3)),
        source="derived",
    ),
    Claim(
        "matcha.6.sampled",
        "The same bound where matchings are sampled, with the rho of the activation: exact moments over all activations and the noise.",
        method="gossip_sgd",
        check=BUDGET + "sampled_bound",
        grid=product(graph=("matcha8", "ring", "star"), share=(0.2, 0.5, 0.8), c=(0.3, 1.0), N=(10, 100), seed=0),
        source="MATCHA, Theorem 2",
        provenance="recalled",
    ),
    *(
        Claim(
            f"matcha.table.{column}",
            f"Reference table of the 8-node graph of the paper's figure: {what} at five budgets, to 1e-4.",
            kind="table",
            check=BUDGET + "table",
            grid=product(share=(1.0, 0.6, 0.5, 0.3, 0.1), column=column),
            source="reference numbers of the paper's file, graph from the released code",
        )
        for column, what in TABLE.items()
    ),
    Claim(
        "matcha.activation",
        "The semidefinite program of the probabilities is solved: no probabilities on a grid mix better on average.",
        check=BUDGET + "activation_by_scan",
        grid=(*product(graph=("ring", "path"), share=(0.3, 0.7), parts=20), *product(graph="matcha8", share=(0.3, 0.6), parts=5)),
        source="released code (graph_manager.py)",
        provenance="code",
    ),
    Claim(
        "matcha.alpha",
        "The semidefinite program of the mixing weight has the value of the convex search in alpha.",
        kind="identity",
        check=BUDGET + "alpha_two_ways",
        grid=product(graph=GRAPHS, share=(0.2, 0.5, 1.0)),
        source="released code (graph_manager.py)",
        provenance="code",
    ),
]
