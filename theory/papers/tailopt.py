"""TailOPT / Bi2Clip (arXiv 2502.04164).  The statements are our own: a the moment, u the threshold, q = (E||g||^a)^(1/a)."""

from verify_rates.theory.claims import Claim, Paper, Setting, product

PAPER = Paper(
    "TailOPT / Bi2Clip: Efficient Distributed Optimization under Heavy-Tailed Noise",
    "arXiv 2502.04164",
    rows=("000-17",),
    kind="convergence (heavy tails)",
)

CALCULATOR = "verify_rates.theory.calculators.tailopt:"
HEAVY = {"name": "one_minus_cos", "n": 1, "d": 1, "L": 1.0, "omega": 1.0, "noise": "pareto"}
# E|noise|^a = scale^a*b/(b-a), b the tail; the gradient itself is at most L/omega = 1.
TAILS = tuple({"problem": {**HEAVY, "tail": b, "scale": s}, "b": b, "s": s, "a": a} for b, s, a in ((1.8, 0.1, 1.5), (1.4, 0.3, 1.2)))

CLAIMS = [
    Claim(
        "tailopt.1",
        "Clipping by norm at u: E||clip(g)||^2 <= u^(2-a)*E||g||^a and ||E clip(g) - E g|| <= u^(1-a)*E||g||^a.",
        check=CALCULATOR + "clip_lemma",
        grid=product(noise=("pareto", "student"), tail=1.6, a=(1.1, 1.5, 2.0), shift=(0.0, 3.0), level=(0.5, 5.0)),
        source="derived",
    ),
    Claim(
        "tailopt.1.pointwise",
        "The clip lemma vector by vector: min(r,1)^2 <= r^a and max(r-1,0) <= r^a for 1 < a <= 2.",
        check=CALCULATOR + "pointwise",
        grid=product(a=(1.01, 1.5, 2.0)),
        source="derived",
    ),
    Claim(
        "tailopt.2",
        "Clipped SGD on smooth functions: 2*F0/(gamma*T) + G^(2a)*u^(-2(a-1)) + L*gamma*G^a*u^(2-a).",
        method="bi2clip_norm",
        measure="grad_norm",
        take="mean",
        bound="2*F0/(gamma*N) + q**(2*a)*u**(-2*(a-1)) + L*gamma*q**a*u**(2-a)",
        lets={"q": "L + s*(b/(b-a))**(1/a)", "high": "u"},
        when=("a < b", "1 < a and a <= 2"),
        setting=Setting(functions="smooth", noise=True, n=1),
        runs=tuple({**p, **q} for p in TAILS for q in product(gamma=(0.2, 1.0), u=(1.0, 20.0), N=40)),
        source="derived",
    ),
    Claim(
        "tailopt.3",
        "With u = T^(1/(3a-2)) and gamma = T^(-1/2)*u^(-(2-a)/2) all three terms scale as T^(-2(a-1)/(3a-2)).",
        kind="identity",
        check=CALCULATOR + "exponent",
        grid=({},),
        source="derived",
    ),
    Claim(
        "tailopt.4",
        "The lower threshold moves a vector by at most low*sqrt(d).",
        method="bi2clip",
        check=CALCULATOR + "lower_threshold",
        grid=product(d=(1, 2, 4), low=(0.1, 1.0), high=2.0),
        source="derived",
    ),
    Claim(
        "tailopt.5",
        "One dense vector a round and worker, no state of an optimiser.",
        method="tailopt",
        kind="table",
        check=CALCULATOR + "volume",
        grid=product(method=("bi2clip", "bi2clip_norm", "tailopt"), d=100, H=(1, 8)),
        source="TailOPT",
        provenance="paper",
    ),
]
