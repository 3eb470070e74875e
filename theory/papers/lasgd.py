"""LASGD (arXiv 2203.13085), in two readings of its abstract: a background average (lasgd), and groups of devices (lasgd_grouped)."""

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "LASGD: Locally Asynchronous SGD for Decentralised Deep Learning",
    "arXiv 2203.13085",
    rows=("002-8",),
    kind="schedule (algorithm; no theorem known)",
)

CALCULATOR = "verify_rates.theory.calculators.lasgd:"

CLAIMS = [
    Claim(
        "lasgd.1",
        "Background average: the mean model obeys xbar_{t+1} = xbar_t - gamma*gbar_t exactly.",
        method="lasgd",
        kind="identity",
        check=CALCULATOR + "mean_preserved",
        grid=product(problem=("quadratic", "logistic"), H=(1, 3, 8), seed=0),
        source="derived",
    ),
    Claim(
        "lasgd.1.drift",
        "A model drifts from the mean by the steps of fewer than two rounds.",
        method="lasgd",
        kind="identity",
        check=CALCULATOR + "drift_of_two_rounds",
        grid=product(problem=("quadratic", "logistic"), H=(1, 3, 8), seed=0),
        source="derived",
    ),
    Claim(
        "lasgd.2",
        "Seconds per step: Max(T_comp, T_allreduce/H) where the average is hidden, T_comp + T_allreduce/H where local SGD blocks.",
        method="lasgd",
        kind="identity",
        check=CALCULATOR + "pace",
        grid=product(method=("lasgd", "local_sgd"), H=(1, 2, 5)),
        source="derived",
    ),
    Claim(
        "lasgd.2.ring",
        "T_allreduce = 2*(n-1)*alpha + 2*(n-1)/n*d*beta.",
        kind="identity",
        check=CALCULATOR + "all_reduce",
        grid=product(n=(1, 2, 5, 8)),
        source="derived",
    ),
    Claim(
        "lasgd.2.straggler",
        "Workers that wait for one another take the maximum of their compute times a step, free ones the mean (persistent speeds).",
        kind="identity",
        check=CALCULATOR + "stragglers",
        grid=product(said="MEAN", slow=2, fast=1),
        source="derived",
        expect="fails",
    ),
    Claim(
        "lasgd.2.repaired",
        "Free workers of persistent speeds take the harmonic mean of their compute times a step.",
        kind="identity",
        check=CALCULATOR + "stragglers",
        grid=product(said="HARMONIC", slow=(2, 5), fast=(1, 3)),
        source="derived",
    ),
]
