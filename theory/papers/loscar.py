"""LOSCAR-SGD (arXiv 2605.20866).  The paper's eta is gamma; K is k, p = k/d, q = 1-p; H is the largest H_i."""

from verify_rates.theory.claims import Claim, Paper, Setting, product

PAPER = Paper(
    "LOSCAR-SGD: Local SGD with Communication-Computation Overlap and Delay-Corrected Sparse Model Averaging",
    "arXiv 2605.20866",
    rows=("000-16",),
    kind="convergence, cost model",
)

CALCULATOR = "verify_rates.theory.calculators.loscar:"
UNEQUAL = {"N": (1, 2, 2, 3, 3, 1, 2, 4), "Q": (0, 1, 2, 0, 1, 3, 1, 0)}
EQUAL = {"N": (3,) * 8, "Q": (1,) * 8}
SMALL = tuple({"n": n, "d": d, "k": k} for n, d, k in ((1, 2, 1), (2, 3, 1), (3, 4, 2), (2, 4, 4)))

CLAIMS = [
    Claim(
        "loscar.1",
        "Shape of the published theorem: linear speed-up in n; sparsity, overlap and unequal counts in terms of second order.",
        method="loscar",
        not_checkable="constants not available",
        source="a description of the paper",
        provenance="paper (secondary)",
    ),
    Claim(
        "loscar.2",
        "The merge keeps the average: the mean model is that of what the workers had reached.",
        method="loscar",
        kind="identity",
        check=CALCULATOR + "invariance",
        grid=tuple({**counts, "k": k, "seed": 0} for counts in (UNEQUAL, EQUAL) for k in (1, 4, 8)),
        source="derived",
    ),
    Claim(
        "loscar.3",
        "Expected disagreement after a merge: q*||e+dN+dQ||^2 + p*||dQ||^2, centred increments.",
        method="loscar",
        kind="identity",
        check=CALCULATOR + "disagreement",
        grid=tuple({**size, "seed": seed} for size in SMALL for seed in (0, 1)),
        source="derived",
    ),
    Claim(
        "loscar.4",
        "Nonconvex bound for one shared function, any step counts: the disagreement enters at second order through (1-p)/p^2.",
        method="loscar",
        check=CALCULATOR + "bound",
        grid=tuple(
            {**counts, "k": k, "centre": centre, "R": 20, "share": 1.0, "seed": 0, "seeds": 12}
            for counts in (UNEQUAL, EQUAL)
            for k, centre in ((8, 1.0), (2, 1.0), (1, 0.0))
        ),
        setting=Setting(functions="smooth", noise=True),
        source="derived",
    ),
    Claim(
        "loscar.5",
        "The naive merge has the mean of what was sent on the mask, and so loses the average.",
        method="loscar",
        kind="identity",
        check=CALCULATOR + "naive_merge",
        grid=tuple({**size, "seed": seed} for size in SMALL for seed in (0, 1)),
        source="derived",
    ),
    Claim(
        "loscar.6",
        "Volume: K values up and K down a worker and round, no indices.",
        method="loscar",
        kind="table",
        check=CALCULATOR + "volume",
        grid=tuple({"d": 100, "k": k, "n": n} for k in (1, 7) for n in (2, 9)),
        source="derived",
    ),
    Claim(
        "loscar.7",
        "Round time max_i(N_i*c_i) + Max(tc, max_i Q_i*c_i) where a worker goes on as soon as it has sent.",
        method="loscar",
        kind="identity",
        check=CALCULATOR + "unequal",
        grid=({"relation": "=="},),
        source="derived",
        expect="fails",
    ),
    Claim(
        "loscar.7.repaired",
        "The round takes Max(max_i N_i*c_i + tc, max_i (N_i+Q_i)*c_i), at most the printed time, and equal to it where all send together.",
        method="loscar",
        kind="property",
        check=CALCULATOR + "unequal",
        grid=({"relation": "<="},),
        source="derived",
    ),
    Claim(
        "loscar.7.equal",
        "For equal workers the round time follows from the step function.",
        method="loscar",
        kind="identity",
        check=CALCULATOR + "equal",
        grid=tuple({"H": H, "Q": Q} for H, Q in ((1, 0), (3, 1), (4, 2), (5, 4))),
        source="derived",
    ),
    Claim(
        "loscar.8",
        "Extra memory: K numbers.",
        method="loscar",
        kind="table",
        check=CALCULATOR + "memory",
        grid=product(d=8, k=(1, 3)),
        source="derived",
    ),
]
