"""Exact worst cases that any correct engine reproduces (rates.N is row N of the project's table of known rates)."""

from verify_rates.solvers.measures import ef21_lyapunov, ef_lyapunov, pair_distance
from verify_rates.solvers.words import gap, grad, mean, sqnorm
from verify_rates.theory.claims import Claim, Paper, Setting, product

PAPER = Paper(
    "Exact worst cases of known rates",
    kind="convergence",
)

CONVEX, NONCONVEX = Setting(), Setting(functions="smooth")
ONE_COMPRESSED = Setting(n=1, compressor="contractive", per_worker=True)
EF = Setting(compressor="contractive", shared_minimiser=True, per_worker=True)
EF21 = Setting(compressor="contractive", per_worker=True)

REAL = {"problem": {"name": "logistic", "data": "breast_cancer", "n": 10, "lam": 1e-2}}
REAL_ONE = {"problem": {"name": "logistic", "data": "breast_cancer", "n": 1, "lam": 1e-2}}
DIGITS = {"problem": {"name": "ridge", "data": "digits", "n": 5, "lam": 1e-1}}
SHARED = {"problem": {"name": "quadratic", "n": 4, "d": 20, "L": 1.0, "mu": 0.1, "zeta2_star": 0.0}}
HETEROGENEOUS = {"problem": {"name": "quadratic", "n": 4, "d": 20, "L": 1.0, "mu": 0.1, "zeta2_star": 1.0}}

FOLKLORE = "folklore; Taylor, Hendrickx and Glineur 2018"
EF_TIGHT = "Berg Thomsen, Taylor and Dieuleveut"
EF_STEP = {"s": "sqrt(1-delta)", "gamma": "2/(L+mu)*(1-s)/(1+s)", "q": "(L-mu)/(L+mu)"}
EF_RATE = "((((1-s)*q + sqrt((1-s)**2*q**2 + 4*s))/2)**2)**N*V0"
CGD_STEP = {"s": "sqrt(1-delta)"}
QUADRATIC_MINIMUM = "Max(mu/L, Min(1, 1/(gamma*L*(2*N+1))))"
NEXT_THETA = "lam_fista(t+1) + floor((t+1)/N)*(theta_ogm(N) - lam_fista(t+1))"  # the last one is another


def quarter_residual(s, w, h):
    """``||x - A x||^2 / 4``, the gradient being x - A x."""
    return sqnorm(w, mean(w, grad(w, s.x))) / 4


def triple_output(s, w, h):
    """``f - f*`` at the output ``xi + rho^2/(1-rho^2) v`` of the triple momentum method, ``rho = beta/eta - 1``."""
    rho = h.beta / h.eta - 1
    return gap(w, s.x + (rho**2 / (1 - rho**2) - h.eta) * s.v)


def runs(*problems, **values):
    """Every problem with every combination of the values."""
    return tuple({**p, **point} for p in problems for point in product(**values))


CLAIMS = [
    Claim(
        "rates.1",
        "Gradient descent with gamma <= 1/L on convex functions: f(x_N) - f* <= L*R0^2/(4*N*L*gamma+2), exactly.",
        method="gd",
        measure="function_gap",
        bound="L/(4*N*L*gamma + 2)*V0",
        lets={"gamma": "c/L"},
        when=("gamma*L <= 1",),
        setting=CONVEX,
        grid=product(L=(3, 1), c=(1, 0.5), N=(1, 4)),
        runs=runs(REAL, DIGITS, c=1, N=(10, 100)),
        families=("huber",),
        source="Drori and Teboulle 2014, Theorem 3.1",
        provenance="paper",
        tight=True,
    ),
    Claim(
        "rates.2",
        "Gradient descent with any step below 2/L on convex functions: the worst of the Huber and the quadratic regime.",
        method="gd",
        measure="function_gap",
        bound="Max(L/(4*N*L*gamma + 2), L*(1 - gamma*L)**(2*N)/2)*V0",
        lets={"gamma": "c/L"},
        when=("gamma*L < 2",),
        setting=CONVEX,
        grid=product(L=1, c=(1.7, 1.2, 1.95), N=(1, 3)),
        runs=runs(REAL, c=(1.5, 1.9), N=50),
        families=("huber",),
        source="Taylor, Hendrickx and Glineur 2017",
        provenance="paper",
        tight=True,
    ),
    Claim(
        "rates.3",
        "Gradient descent with any step below 2/L on convex functions: squared gradient norm from the initial gap.",
        method="gd",
        measure="grad_norm",
        initial="function_gap",
        bound="Max(2*L/(2*N*L*gamma + 1), 2*L*(1 - gamma*L)**(2*N))*V0",
        lets={"gamma": "c/L"},
        when=("gamma*L < 2",),
        setting=CONVEX,
        grid=product(L=1, c=(1.5, 1), N=(1, 3)),
        runs=runs(REAL, c=(1, 1.5), N=50),
        families=("huber",),
        source="Taylor, Hendrickx and Glineur 2017; Rotaru et al. 2024",
        provenance="paper",
        tight=True,
    ),
    *(
        Claim(
            id_,
            f"Gradient descent with the N = 2^k - 1 silver steps on convex functions: {what}.",
            method="gd",
            measure="function_gap",
            bound=bound,
            lets={"rho": "1 + sqrt(2)", "a": "twos(N+1)", "gamma": "(1 + (1+sqrt(2))**(twos(t+1)-1))/L"},
            when=("2**a == N + 1",),
            setting=CONVEX,
            grid=product(L=(10, 1), N=(1, 3, 7)),
            runs=runs(REAL, DIGITS, N=(7, 63)),
            families=("huber",),
            source=source,
            provenance=provenance,
            tight=tight,
        )
        for id_, what, bound, source, provenance, tight in (
            ("rates.4", "the published rate", "L/(1 + sqrt(4*rho**(2*a) - 3))*V0", "Altschuler and Parrilo 2023", "paper", False),
            ("silver.exact", "the exact rate", "L/(4*rho**a - 2)*V0", "found from exact worst cases, k = 1 to 4", "derived", True),
        )
    ),
    *(
        Claim(
            f"rates.{row}",
            f"Gradient descent on strongly convex functions contracts {what} by max((1-gamma*L)^2, (1-gamma*mu)^2) a step.",
            method="gd",
            measure=measure,
            initial=measure,
            bound="Max((1-gamma*L)**2, (1-gamma*mu)**2)**N*V0",
            lets={"gamma": "c/L"},
            when=("gamma*L < 2",),
            setting=CONVEX,
            grid=product(L=1, mu=0.1, c=(1, 1.9), N=steps),
            runs=runs(REAL, DIGITS, c=1, N=20),
            source=FOLKLORE,
            provenance="paper",
            tight=True,
        )
        for row, what, measure, steps in (
            (5, "the squared distance", "distance", (1, 2)),
            (6, "the function gap", "function_gap", (1, 4)),
            (7, "the squared gradient norm", "grad_norm", (1, 4)),
        )
    ),
    Claim(
        "rates.8",
        "Gradient descent with the optimal step 2/(L+mu) contracts the squared distance by ((L-mu)/(L+mu))^2 a step.",
        method="gd",
        measure="distance",
        bound="((L-mu)/(L+mu))**(2*N)*V0",
        lets={"gamma": "2/(L+mu)"},
        setting=CONVEX,
        grid=(*product(L=1, mu=(0.1, 0.5), N=(1, 4)), {"L": 1, "mu": 0.1, "N": 10}),
        runs=runs(REAL, DIGITS, N=20),
        source="folklore",
        provenance="paper",
        tight=True,
    ),
    Claim(
        "rates.9",
        "Two gradient descents on one strongly convex function approach each other by max((1-gamma*L)^2, (1-gamma*mu)^2) a step.",
        method="gd_pair",
        measure=pair_distance,
        initial=pair_distance,
        free=True,
        bound="Max((1-gamma*L)**2, (1-gamma*mu)**2)**N*V0",
        lets={"gamma": "c/L"},
        setting=CONVEX,
        grid=product(L=1, mu=0.1, c=(1, 1.9), N=1),
        runs=runs({**SHARED, "x0": (1.0,) * 20}, c=(1, 1.9), N=10),
        source="PEPit, gradient_descent_contraction",
        provenance="code",
        tight=True,
    ),
    Claim(
        "rates.10",
        "Gradient descent, step 1/L, smooth nonconvex functions: the best squared gradient norm is at most 4*L/(3*N) times f(x_0)-f(x_N).",
        method="gd",
        measure="grad_norm",
        take="best",
        initial="gap_to_last",
        bound="4*L/(3*N)*V0",
        lets={"gamma": "1/L"},
        setting=NONCONVEX,
        grid=product(L=(1, 10), N=(1, 5)),
        runs=runs({"problem": {"name": "nonconvex_logistic", "data": "breast_cancer", "n": 10, "lam": 1e-1}}, N=(5, 50)),
        families=("one_minus_cos",),
        source="PEPit, nonconvex gradient_descent",
        provenance="code",
        tight=True,
    ),
    Claim(
        "rates.11",
        "Gradient descent on quadratics: the worst of the largest eigenvalue and the slowest one below it.",
        method="gd",
        measure="function_gap",
        bound="L/2*Max(q*(1 - q*L*gamma)**(2*N), (1 - gamma*L)**(2*N))*V0",
        lets={"gamma": "c/L", "q": QUADRATIC_MINIMUM},
        when=("gamma*L < 2",),
        setting=Setting(functions="quadratic", n=1),
        grid=product(L=3, mu=(0.3, 0), c=(1, 1.8), N=(1, 4)),
        source="Bousselmi, Hendrickx and Glineur 2023",
        provenance="paper",
    ),
    Claim(
        "rates.12",
        "Gradient descent with steps 1/(L*u_t) on convex functions of quadratic growth: f(x_N) - f* <= L*R0^2/(2*u_N).",
        method="gd",
        measure="function_gap",
        bound="L/(2*u_qg(N))*V0",
        lets={"gamma": "1/(L*u_qg(t+1))"},
        setting=Setting(functions="convex_quadratic_growth", n=1),
        grid=product(L=(1, 3), N=(1, 6)),
        source="Goujaud, Taylor and Dieuleveut 2022, Conjecture A.3",
        provenance="paper",
        tight=True,
    ),
    Claim(
        "rates.13",
        "Heavy ball in its averaging form on convex functions of quadratic growth: f(x_N) - f* <= L*R0^2/(2*(N+1)).",
        method="heavy_ball",
        measure="function_gap",
        bound="L/(2*(N+1))*V0",
        lets={"gamma": "1/(L*(t+2))", "beta": "t/(t+2)"},
        setting=Setting(functions="convex_quadratic_growth", n=1),
        grid=product(L=(1, 3), N=(1, 5)),
        source="Goujaud, Taylor and Dieuleveut 2022, Theorems 2.3 and 2.4",
        provenance="paper",
        tight=True,
    ),
    Claim(
        "rates.16",
        "The optimised gradient method on convex functions: f(x_N) - f* <= L*R0^2/(2*theta_N^2), the best of all first-order methods.",
        method="ogm",
        measure="function_gap",
        bound="L/(2*theta_ogm(N)**2)*V0",
        lets={"gamma": "1/L", "a": f"(lam_fista(t) - 1)/({NEXT_THETA})", "b": f"lam_fista(t)/({NEXT_THETA})"},
        setting=CONVEX,
        grid=product(L=(3, 1), N=(1, 4)),
        runs=runs(REAL, DIGITS, N=(10, 50)),
        families=("huber",),
        source="Kim and Fessler 2016, Theorem 2; Drori 2017",
        provenance="paper",
        tight=True,
    ),
    Claim(
        "rates.17",
        "Nesterov's method with momentum t/(t+3) on convex functions: f(x_N) - f* <= 2*L*R0^2/(N^2+5*N+6).",
        method="nesterov",
        measure="function_gap",
        bound="2*L/(N**2 + 5*N + 6)*V0",
        lets={"gamma": "1/L", "beta": "t/(t+3)"},
        setting=CONVEX,
        grid=product(L=1, N=(1, 2, 5)),
        runs=runs(REAL, DIGITS, N=(10, 50)),
        families=("huber",),
        source="Taylor, Hendrickx and Glineur 2017, Table 1",
        provenance="paper",
        tight=True,
    ),
    Claim(
        "rates.18",
        "Nesterov's method with FISTA's momentum on convex functions: f(x_N) - f* <= L*R0^2/(2*lam_{N-1}^2), 3 times too much at N = 1.",
        method="nesterov",
        measure="function_gap",
        bound="L/(2*lam_fista(N-1)**2)*V0",
        lets={"gamma": "1/L", "beta": "(lam_fista(t) - 1)/lam_fista(t+1)"},
        setting=CONVEX,
        grid=product(L=1, N=(1, 5)),
        runs=runs(REAL, DIGITS, N=(10, 50)),
        families=("huber",),
        source="Beck and Teboulle 2009, Theorem 4.4",
        provenance="paper",
    ),
    *(
        Claim(
            id_,
            f"Triple momentum: f(x_N) - f* is at most rho^({power})*L*kappa/2*R0^2, rho = 1 - sqrt(mu/L).",
            method="triple_momentum",
            measure=triple_output,
            bound=f"rho**({power})*L**2/(2*mu)*V0",
            lets={"rho": "1 - sqrt(mu/L)", "gamma": "(1+rho)/L", "beta": "rho**2/(2-rho)", "eta": "rho**2/((1+rho)*(2-rho))"},
            setting=CONVEX,
            grid=product(L=1, mu=(0.1, 0.5), N=(1, 4)),
            runs=runs(REAL, N=(10, 50)),
            source=source,
            provenance=provenance,
            tight=tight,
            expect=expect,
        )
        for id_, power, source, provenance, tight, expect in (
            ("tmm.docstring", "2*N+2", "PEPit 0.5.1, triple_momentum, docstring", "code", False, "fails"),
            ("tmm.steps", "2*N", "Van Scoy, Freeman and Lynch 2018, Theorem 1, with N gradient steps", "paper", False, "holds"),
        )
    ),
    Claim(
        "rates.23",
        "The subgradient method with step R0/(M*sqrt(N+1)) on convex functions with subgradients up to M (here L) has a best value within "
        "M*R0/sqrt(N+1), exactly.",
        method="gd",
        measure="function_gap",
        take="best",
        bound="L/sqrt(N+1)*V0",
        lets={"gamma": "1/(L*sqrt(N+1))"},
        setting=Setting(functions="convex_lipschitz", n=1),
        grid=product(L=(1, 2), N=(1, 6)),
        source="Nesterov 2003; Drori and Teboulle 2016",
        provenance="paper",
        tight=True,
    ),
    Claim(
        "rates.24",
        "Gradient descent under a restricted secant inequality (mu) and an error bound (L): the squared distance contracts by "
        "1 - 2*gamma*mu + gamma^2*L^2 a step.",
        method="gd",
        measure="distance",
        bound="(1 - 2*gamma*mu + L**2*gamma**2)**N*V0",
        lets={"gamma": "c*mu/L**2"},
        setting=Setting(functions="secant_error_bound", n=1),
        grid=product(L=1, mu=(0.1, 0.5), c=(1, 0.5), N=(1, 4)),
        source="Guille-Escuret, Ibrahim, Goujaud and Mitliagkas 2022",
        provenance="paper",
        tight=True,
    ),
    *(
        Claim(
            id_,
            f"Krasnoselskii-Mann iterations, steps above (1 + sqrt(N/(N+1)))/2: ||x - A x||^2/4 after N steps is at most ({power})^(2N).",
            method="gd",
            measure=quarter_residual,
            bound=f"({power})**(2*N)*V0",
            lets={"gamma": "c"},
            when=("gamma > (1 + sqrt(N/(N+1)))/2",),
            setting=Setting(functions="nonexpansive_residual", n=1),
            grid=product(L=1, c=(0.97, 0.99), N=(2, 3)),
            source=source,
            provenance=provenance,
            tight=tight,
            expect=expect,
        )
        for id_, power, source, provenance, tight, expect in (
            (
                "km.docstring",
                "gamma-1",
                "PEPit 0.5.1, krasnoselskii_mann_constant_step_sizes, docstring, second case",
                "code",
                False,
                "fails",
            ),
            ("km.long", "2*gamma-1", "derived (Lieder 2018, Theorem 4.9, is what the docstring quotes)", "derived", True, "holds"),
        )
    ),
    Claim(
        "rates.47",
        "Compressed gradient descent, one worker, any step: f - f* is multiplied by at most the worst of the two perturbed curvatures.",
        method="cgd",
        measure="function_gap",
        initial="function_gap",
        bound="Max((1-gamma*mu*(1-s))**2, (1-gamma*L*(1+s))**2)**N*V0",
        lets={**CGD_STEP, "gamma": "c/L"},
        setting=ONE_COMPRESSED,
        grid=product(L=1, mu=0.1, delta=(0.75, 0.5), c=(1, 0.5), N=1),
        runs=runs(REAL_ONE, compressor=("topk(k=10)", "topk(k=25)"), c=0.5, N=20),
        source="de Klerk, Glineur and Taylor 2020 with relative error sqrt(eps)",
        provenance="paper",
        tight=True,
    ),
    Claim(
        "rates.48",
        "Compressed gradient descent, one worker, at its optimal step.",
        method="cgd",
        measure="function_gap",
        initial="function_gap",
        bound="(((1+s)*L-(1-s)*mu)/((1+s)*L+(1-s)*mu))**(2*N)*V0",
        lets={**CGD_STEP, "gamma": "2/((1-s)*mu+(1+s)*L)"},
        setting=ONE_COMPRESSED,
        grid=product(L=1, mu=0.1, delta=(0.75, 0.5, 0.9), N=1),
        runs=runs(REAL_ONE, compressor="topk(k=10)", N=20),
        source=f"{EF_TIGHT} 2025",
        provenance="paper",
        tight=True,
    ),
    *(
        Claim(
            id_,
            f"EF at its optimal step contracts its Lyapunov function by exactly rho, {who}.",
            method="ef_sgd",
            measure=ef_lyapunov,
            initial=ef_lyapunov,
            free=True,
            bound=EF_RATE,
            lets=EF_STEP,
            setting=Setting(n=n, compressor="contractive", shared_minimiser=True, per_worker=True),
            grid=product(L=1, mu=(0.1, 0.5), delta=(0.75, 0.5), N=1),
            runs=simulated,
            source=f"{EF_TIGHT} 2025, Theorem 1; 2026, Theorem 2",
            provenance="paper",
            tight=True,
        )
        for id_, who, n, simulated in (
            ("rates.49", "one worker", 1, runs(REAL_ONE, compressor="topk(k=10)", N=20)),
            ("rates.50", "two workers with a common minimiser", 2, ()),
            ("ef.10", "ten workers with a common minimiser", 10, ()),
            ("ef.1000", "a thousand workers with a common minimiser", 1000, ()),
            ("ef.any", "any number of workers with a common minimiser", "any", runs(SHARED, compressor=("topk(k=2)", "topk(k=10)"), N=20)),
        )
    ),
    *(
        Claim(
            id_,
            f"EF21 at its optimal step contracts its Lyapunov function by exactly rho, {who}.",
            method="ef21",
            measure=ef21_lyapunov,
            initial=ef21_lyapunov,
            free=True,
            bound=EF_RATE,
            lets=EF_STEP,
            setting=Setting(n=n, compressor="contractive", per_worker=True),
            grid=product(L=1, mu=(0.1, 0.5), delta=(0.75, 0.5), N=1),
            runs=simulated,
            source=f"{EF_TIGHT} 2025, Theorem 2; 2026, Theorem 1",
            provenance="paper",
            tight=True,
        )
        for id_, who, n, simulated in (
            ("ef21.1", "one worker", 1, runs(REAL_ONE, compressor="topk(k=10)", N=20)),
            ("rates.51", "two workers", 2, ()),
            ("rates.52", "three workers", 3, ()),
            ("ef21.10", "ten workers", 10, ()),
            ("ef21.1000", "a thousand workers", 1000, ()),
            ("ef21.any", "any number of workers", "any", runs(HETEROGENEOUS, compressor=("topk(k=2)", "topk(k=10)"), N=20)),
        )
    ),
    Claim(
        "rates.53",
        "EF, the original form of its rate, equals the exact contraction.",
        method="ef_sgd",
        measure=ef_lyapunov,
        initial=ef_lyapunov,
        free=True,
        bound="(s + (1+s)*(L-mu)/4*(gamma/(L+mu))*((1-s)*(L-mu) + (1+s)*sqrt((L-mu)**2 + 16*L*mu*s/(1+s)**2)))**N*V0",
        lets={"s": "sqrt(1-delta)", "gamma": "2/(L+mu)*(1-s)/(1+s)"},
        setting=EF,
        grid=product(L=1, mu=0.1, delta=(0.75, 0.5), N=1),
        source=f"{EF_TIGHT}, released certificates",
        provenance="code",
        tight=True,
    ),
    Claim(
        "rates.54",
        "Gradient descent with an unbiased compressor of variance omega, one worker: one-step contraction of the squared distance.",
        method="cgd",
        measure="distance",
        bound="Max(1-2*gamma*mu+(1+omega)*gamma**2*mu**2, 1-2*gamma*L+(1+omega)*gamma**2*L**2)**N*V0",
        lets={"gamma": "c/(L*(1+omega))"},
        setting=Setting(n=1, compressor="unbiased", per_worker=True),
        runs=runs(
            {"problem": {"name": "quadratic", "n": 1, "d": 20, "L": 1.0, "mu": 0.1}},
            compressor=("randk(k=4,scaled=true)", "qsgd(levels=2)"),
            c=(1, 0.5),
            N=(1, 10),
        ),
        source="derived",
    ),
    Claim(
        "rates.55",
        "SGD with additive noise of variance sigma2: the squared distance contracts up to gamma^2*sigma2 a step.",
        method="gd",
        measure="distance",
        bound="Max((1-gamma*L)**2, (1-gamma*mu)**2)*V0 + gamma**2*sigma2/n",
        lets={"gamma": "c/L"},
        setting=Setting(noise=True),
        runs=runs({"problem": {"name": "quadratic", "n": 2, "d": 10, "L": 1.0, "mu": 0.1, "sigma2": 0.09}}, c=(0.5, 1, 1.8), N=1),
        source="derived",
    ),
]
