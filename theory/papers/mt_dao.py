"""MT-DAO (arXiv 2510.05361).  The paper's M is n, its eta is gamma; p_x, p_1, beta_1, omega_1 are p, q, beta, alpha, and u, theta, a
those of a second momentum; b is beta_omega, s is psi_full."""

from verify_rates.theory.claims import Claim, Paper, Setting, product

PAPER = Paper(
    "MT-DAO: Multi-timescale Distributed Adaptive Optimizers with Local Updates",
    "arXiv 2510.05361",
    rows=("002-12",),
    kind="convergence, schedule",
)

CALCULATOR = "verify_rates.theory.calculators.mt_dao:"
PSI_FULL = "4*(1-p)/p**2*((1-alpha-a) + alpha*(1-beta)*(1-q)/(1-(1-q)*beta) + a*(1-theta)*(1-u)/(1-(1-u)*theta))"
LETS = {
    "b": "alpha*beta/(1-beta) + a*theta/(1-theta)",
    "s": PSI_FULL,
    "gamma": "c/(L*Max(4, 4*b, 2*sqrt(s)))",
    **{"p_x": "p", "p_1": "q", "p_2": "u", "beta_1": "beta", "beta_2": "theta", "omega_1": "alpha", "omega_2": "a"},
}
QUASI = {"p": 0.25, "q": 0.25, "beta": 0.9, "alpha": 0.9, "u": 1.0, "theta": 0.0, "a": 0.0}  # one momentum
TWO = {"p": 0.1, "q": 0.3, "beta": 0.95, "alpha": 0.5, "u": 0.5, "theta": 0.5, "a": 0.3}
PLAIN = {"p": 0.1, "q": 1.0, "beta": 0.0, "alpha": 0.0, "u": 1.0, "theta": 0.0, "a": 0.0}  # local SGD by coins
LIGHT = {**QUASI, "p": 0.5, "q": 0.5, "alpha": 0.1}  # most of the direction is the gradient, of which psi knows nothing
SCHEMES = (QUASI, TWO, PLAIN)
QUADRATIC = {"problem": {"name": "quadratic", "n": 4, "d": 6, "L": 1.0, "mu": 0.05, "zeta2_star": 0.5, "sigma2": 0.5}}
NONCONVEX = {"problem": {"name": "one_minus_cos", "n": 3, "d": 3, "L": 1.0, "omega": 1.5, "shift": 0.7, "sigma2": 0.3}}
PERIODS = tuple(dict(zip(("K_x", "K_1", "K_2", "K_v"), K, strict=True)) for K in ((1, 1, 1, 1), (4, 2, 3, 6), (5, 5, 1, 2)))

CLAIMS = [
    Claim(
        "mt_dao.1",
        "Theorem 1: O(1/sqrt(T)); the coins and the heterogeneity enter terms of second order through beta_omega and psi.",
        method="mt_dao_sgdm",
        not_checkable="the constants and the cap of the step size are not available",
        source="a description of the paper",
        provenance="paper (secondary)",
    ),
    Claim(
        "mt_dao.1.psi",
        "Our reading of psi, not the paper's theorem: it bounds the consensus error, sum E D_t <= gamma^2*psi*sum E G_t.",
        method="mt_dao_sgdm",
        check=CALCULATOR + "consensus",
        grid=({**LIGHT, "text": "PSI", "lam": 0.0, "zeta2": 1.0, "sigma2": 0.0, "steps": 3},),
        source="a reading of the quoted factor",
        expect="fails",
    ),
    Claim(
        "mt_dao.2",
        "With one momentum of weight 1 psi is that of DES-LOC-SGDM.",
        kind="identity",
        check=CALCULATOR + "special_case",
        grid=({"text": "PSI", "said": "DES_LOC", "values": {"alpha": 1, "a": 0}},),
        source="a description of the paper",
        provenance="paper (secondary)",
    ),
    Claim(
        "mt_dao.3",
        "Step size and leading term by analogy with DES-LOC.",
        method="mt_dao_sgdm",
        not_checkable="a recalled analogy, not a statement of the paper",
        source="recalled",
        provenance="recalled",
    ),
    Claim(
        "mt_dao.4",
        "Consensus recursions of the models and of every momentum, in expectation over the coins of one step.",
        method="mt_dao_sgdm",
        check=CALCULATOR + "recursions",
        grid=tuple({**scheme, "seed": seed} for scheme in (*SCHEMES, {**TWO, "alpha": 0.05, "a": 0.9}) for seed in (0, 1)),
        source="derived",
    ),
    Claim(
        "mt_dao.5",
        "The consensus error stays below gamma^2*psi_full times the dissimilarity of the gradients, summed over the steps.",
        method="mt_dao_sgdm",
        check=CALCULATOR + "consensus",
        grid=tuple({**scheme, **q} for scheme in SCHEMES for q in product(lam=(0.0, 0.3), zeta2=(0.0, 1.0), sigma2=0.5, steps=300)),
        source="derived",
    ),
    Claim(
        "mt_dao.5.special",
        "Without momentum psi_full is that of local SGD by coins, with weight 1 it is psi, and with p_x = 1 it is 0.",
        kind="identity",
        check=CALCULATOR + "special_case",
        grid=(
            {"text": "PSI_FULL", "said": "LOCAL", "values": {"alpha": 0, "a": 0}},
            {"text": "PSI_FULL", "said": "DES_LOC", "values": {"alpha": 1, "a": 0}},
            {"text": "PSI_FULL", "said": "0", "values": {"p": 1}},
        ),
        source="derived",
    ),
    Claim(
        "mt_dao.6",
        "The virtual sequence z_t = xbar_t - gamma*sum_j omega_j*beta_j/(1-beta_j)*ubar^j_{t-1} takes plain steps.",
        method="mt_dao_sgdm",
        kind="identity",
        check=CALCULATOR + "virtual_sequence",
        grid=product(problem=("quadratic", "logistic"), seed=(0, 1)),
        source="derived",
    ),
    Claim(
        "mt_dao.7",
        "Nonconvex bound of MT-DAO-SGDM from beta_omega and psi_full.",
        method="mt_dao_sgdm",
        measure="grad_norm",
        take="mean",
        bound="2*F0/(gamma*N) + gamma*L*sigma2/n + 2*L**2*gamma**2*b**2*sigma2/n + 2*L**2*gamma**2*s*(sigma2 + 2*zeta2_sup)",
        lets=LETS,
        setting=Setting(functions="smooth", noise=True, per_worker=True),
        runs=tuple({**p, **scheme, "c": 1, "N": 150} for p in (QUADRATIC, NONCONVEX) for scheme in SCHEMES),
        source="derived",
    ),
    Claim(
        "mt_dao.8",
        "Half-life of a momentum: log(1/2)/log(beta), 6.58 at 0.9 and 692.8 at 0.999.",
        kind="table",
        check=CALCULATOR + "half_life",
        grid=({"beta": 0.9, "printed_value": 6.58, "digits": 2}, {"beta": 0.999, "printed_value": 692.8, "digits": 1}),
        source="a description of the paper; derived",
        provenance="paper (secondary)",
    ),
    Claim(
        "mt_dao.9",
        "Variance of the momentum K steps later: (1-beta)/(1+beta)*(1-beta^(2K))*sigma2.",
        kind="identity",
        check=CALCULATOR + "variance",
        grid=product(k=(1, 2, 5)),
        source="a description of the paper; derived",
        provenance="paper (secondary)",
    ),
    Claim(
        "mt_dao.10",
        "Mutual information of Gaussian momenta K steps apart: log det(I + beta^(2K)*S_U*S_L^-1)/2.",
        kind="identity",
        check=CALCULATOR + "information",
        grid=product(k=(1, 3), seed=(0, 1)),
        source="a description of the paper; derived",
        provenance="paper (secondary)",
    ),
    Claim(
        "mt_dao.11",
        "With gradients clipped at rho a momentum moves at most 2*rho*(1-beta^K), the squares at most 2*rho^2*(1-beta^K) in K steps.",
        check=CALCULATOR + "drift",
        grid=product(k=(1, 2, 6), squares=(False, True)),
        source="a description of the paper; derived",
        provenance="paper (secondary)",
    ),
    Claim(
        "mt_dao.12",
        "Volume relative to DDP: 1/K_x + sum_j 1/K_j + 1/K_v.",
        method="mt_dao",
        kind="table",
        check=CALCULATOR + "volume",
        grid=PERIODS,
        source="a description of the paper",
        provenance="paper (secondary)",
    ),
    Claim(
        "mt_dao.12.saving",
        "One momentum and K = 32 save a factor of 10.67.",
        method="mt_dao",
        kind="table",
        check=CALCULATOR + "saving",
        grid=({"K": 32, "printed_value": 10.67, "digits": 2},),
        source="a description of the paper",
        provenance="paper (secondary)",
    ),
    Claim(
        "mt_dao.13",
        "Seconds a step without overlap: T_comp plus the volume relative to DDP times one all-reduce.",
        method="mt_dao",
        kind="identity",
        check=CALCULATOR + "seconds",
        grid=PERIODS,
        source="derived",
    ),
]
