"""SignSGD with federated defence (arXiv 2402.01340).  In our letters delta is gamma, M is n, Delta is F0, r is p, ||L||_1 is a."""

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "SignSGD with Federated Defense (signSGD-FD)",
    "arXiv 2402.01340",
    rows=("002-19",),
    kind="convergence (adversarial, 1 bit)",
)

CALCULATOR = "verify_rates.theory.calculators.signsgd_fd:"
PRINTED = {"FD": (0.0500, 0.0500, 0.0500, 0.0500), "MV": (0.0500, 0.1543, 0.3646), "half": (0.0500, 0.0782, 0.0988, 0.1260)}
TABLE = tuple({"L": L, "rule": rule, "said": said} for rule, row in PRINTED.items() for L, said in zip((0, 3, 6, 7), row, strict=False))

CLAIMS = [
    Claim(
        "signsgd_fd.1",
        "With counted errors the defence decodes as with known ones below M/2 attackers, and fails from M/2 on; its constants are missing.",
        method="signsgd_fd",
        kind="property",
        check=CALCULATOR + "counters",
        grid=(
            *product(M=7, L=(0, 3), r=1.0, p=0.2, seed=0),
            *product(M=7, L=3, r=0.5, p=0.2, seed=0),
            *product(M=7, L=(4, 6), r=1.0, p=0.2, seed=0),
        ),
        source="a description of the paper",
        provenance="paper (secondary)",
    ),
    Claim(
        "signsgd_fd.2",
        "The mean of ||grad||_1 is at most sqrt(2*a*F0/T)/(1-2*PEmax), a the sum of the coordinates' smoothness.",
        check=CALCULATOR + "chain",
        grid=product(seed=(0, 1), d=2, T=(1, 4), error=(0.0, 0.2, 0.45)),
        source="recalled",
        provenance="recalled",
    ),
    Claim(
        "signsgd_fd.3",
        "A flip with probability r turns the cross-over p into p + r - 2*p*r.",
        kind="identity",
        check=CALCULATOR + "channel",
        grid=({"size": 20},),
        source="derived",
    ),
    Claim(
        "signsgd_fd.4",
        "A step lowers f by gamma*sum (1-2*PE_n)*|g_n| up to gamma^2*a/2; with the tuned gamma this gives signsgd_fd.2.",
        check=CALCULATOR + "descent",
        grid=product(seed=(0, 1, 2), d=(1, 2, 6)),
        source="derived",
    ),
    Claim(
        "signsgd_fd.5",
        "The weighted vote with known errors errs at most with (1/2)*prod 2*sqrt(p*(1-p)), which is below the committee's potential.",
        check=CALCULATOR + "weighted_bounds",
        grid=product(seed=0, M=(1, 2, 3, 5, 8), instances=10),
        source="derived",
    ),
    Claim(
        "signsgd_fd.6",
        "The majority vote errs at most with (2*sqrt(q*(1-q)))^M, q < 1/2 the mean cross-over.",
        check=CALCULATOR + "majority_bound",
        grid=product(seed=0, M=(1, 2, 3, 7, 11), instances=20),
        source="derived",
    ),
    Claim(
        "signsgd_fd.7",
        "Sign inversion leaves the error of the weighted vote with known errors exactly as it is.",
        kind="identity",
        check=CALCULATOR + "inversion",
        grid=product(seed=(0, 1), M=(1, 4, 7)),
        source="derived",
    ),
    Claim(
        "signsgd_fd.8",
        "Flips with probability 1/2 leave error and bound of the honest workers alone, and are the worst.",
        kind="property",
        check=CALCULATOR + "stochastic",
        grid=product(seed=(0, 1, 2), M=(3, 7), attackers=(1, 2)),
        source="derived",
    ),
    Claim(
        "signsgd_fd.9",
        "A worker sends d bits a round, 32 times less than in full precision.",
        method="signsgd_fd",
        kind="table",
        check=CALCULATOR + "bits",
        grid=product(d=(2, 10, 100)),
        source="derived",
    ),
    Claim(
        "signsgd_fd.reference",
        "Reference table at 15 workers with p = 0.3, without the majority at 7 attackers.",
        kind="property",
        check=CALCULATOR + "reference",
        grid=TABLE,
        source="derived",
    ),
    Claim(
        "signsgd_fd.reference.mv7",
        "Its last entry as printed: the majority vote errs with probability .4540 at 7 attackers; false in the last digit.",
        kind="property",
        check=CALCULATOR + "reference",
        grid=({"L": 7, "rule": "MV", "said": 0.4540},),
        source="derived",
        expect="fails",
    ),
    Claim(
        "signsgd_fd.reference.repaired",
        "The majority vote errs with probability .4539 at 7 attackers.",
        kind="property",
        check=CALCULATOR + "reference",
        grid=({"L": 7, "rule": "MV", "said": 0.4539},),
        source="derived",
    ),
]
