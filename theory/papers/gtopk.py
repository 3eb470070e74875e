"""gTop-k S-SGD (arXiv 1901.04359).  The paper's P is n; costs are in ms for 1 GbE where numbers are shown."""

from typing import Any

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "gTop-k S-SGD: A Distributed Synchronous SGD Algorithm with Global Top-k Sparsification for Low Bandwidth Networks",
    "arXiv 1901.04359",
    rows=("002-3",),
    kind="schedule (algorithm), cost model",
)

CALCULATOR = "verify_rates.theory.calculators.gtopk:"
CODE: dict[str, Any] = dict(kind="identity", source="released code", provenance="code")

CLAIMS = [
    Claim(
        "gtopk.1",
        "Convergence theorem of the companion paper.",
        not_checkable="the statement and its constants are not available",
        source="a description of the companion paper (IJCAI 2019)",
        provenance="paper (secondary)",
    ),
    Claim(
        "gtopk.1.assumption",
        "Its assumption, read for every input: the gTop-k error is at most the random-k error of the sum.",
        kind="property",
        check=CALCULATOR + "selection_error",
        grid=product(values=2),
        source="a description of the companion paper (IJCAI 2019)",
        provenance="paper (secondary)",
        expect="fails",
    ),
    Claim(
        "gtopk.2",
        "Dense ring all-reduce: 2*(n-1)*alpha + 2*(n-1)/n*d*beta.",
        check=CALCULATOR + "cost",
        grid=product(scheme="dense", rounds=(1, 2, 3, 5), said="DENSE"),
        **CODE,
    ),
    Claim(
        "gtopk.3",
        "Top-k by all-gather: log2(n)*alpha + 2*(n-1)*k*beta.",
        check=CALCULATOR + "cost",
        grid=product(scheme="topk", rounds=(1, 2, 3, 5), said="TOPK"),
        **CODE,
    ),
    Claim(
        "gtopk.4",
        "gTop-k, tree reduction and broadcast: 2*log2(n)*alpha + 4*k*log2(n)*beta.",
        check=CALCULATOR + "cost",
        grid=product(scheme="gtopk", rounds=(1, 2, 3, 5), said="GTOPK"),
        **CODE,
    ),
    Claim(
        "gtopk.4.readme",
        "The README's form, log2(n)*alpha + 2*k*log2(n)*beta: it is the reduction alone, half of the cost.",
        check=CALCULATOR + "cost",
        grid=product(scheme="gtopk", rounds=1, said="README"),
        expect="fails",
        **CODE,
    ),
    Claim(
        "gtopk.5",
        "gTop-k is cheaper than top-k iff alpha*log2(n) < 2*k*beta*(n-1-2*log2(n)): never for n <= 4, from n = 8 on for k large enough.",
        kind="iff",
        check=CALCULATOR + "break_even",
        grid=product(rounds=tuple(range(11))),
        source="derived",
    ),
    Claim(
        "gtopk.putback",
        "With the put-back no gradient is lost, on two ranks.",
        kind="property",
        check=CALCULATOR + "lost",
        grid=product(n=2, values=4),
        source="derived",
    ),
    Claim(
        "gtopk.putback.four",
        "The same on four ranks: what one branch of the tree drops is gone where another branch's value of that coordinate survives.",
        kind="property",
        check=CALCULATOR + "lost",
        grid=product(n=4, values=2),
        source="derived",
        expect="fails",
    ),
]
