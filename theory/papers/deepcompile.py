"""DeepCompile (arXiv 2504.09983): the passes as read in the released code, on our two-stream simulator."""

from typing import Any

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "DeepCompile: A Compiler-Driven Approach to Optimizing Distributed Deep Learning Training",
    "arXiv 2504.09983",
    rows=("000-2",),
    kind="schedule",
)

CALCULATOR = "verify_rates.theory.calculators.deepcompile:"
RELEASED: dict[str, Any] = {"source": "the released pass, read as a promise", "provenance": "code"}

CLAIMS = [
    Claim(
        "deepcompile.1",
        "With T(s) = a + b*s: 1.2*Max(T(c),T(n)) > T(c+n) iff Min(c,n) < 0.2*(a/b + Max(c,n)).",
        kind="iff",
        check=CALCULATOR + "fuse_rule",
        grid=({},),
        source="derived",
    ),
    Claim(
        "deepcompile.2",
        "With T(s) = a + b*s the density of pass C is a/s + b, which falls in s.",
        kind="identity",
        check=CALCULATOR + "density",
        grid=({},),
        source="derived",
    ),
    Claim(
        "deepcompile.2.order",
        "So pass C takes the smallest parameters first, where all are gathered equally often.",
        kind="property",
        check=CALCULATOR + "order_of_sizes",
        grid=({"counts": (2, 2)}, {"counts": (2, 2, 2, 2)}),
        source="derived",
    ),
    Claim(
        "deepcompile.2.counts",
        "Pass C takes the smallest first, however often each is gathered.",
        kind="property",
        check=CALCULATOR + "order_of_sizes",
        grid=({"counts": (1, 4)},),
        source="our question",
        expect="fails",
    ),
    Claim(
        "deepcompile.2.optimal",
        "No set of parameters within the budget saves more than pass C.",
        kind="property",
        relation=">=",
        check=CALCULATOR + "greedy_saving",
        grid=({"sizes": (1, 2), "a": 1, "b": 1, "room": 2},),
        source="our question: the pass stops at the first that does not fit",
        expect="fails",
    ),
    Claim(
        "deepcompile.3",
        "Exposed communication is makespan - compute: the time that computations wait.",
        kind="identity",
        check=CALCULATOR + "exposed",
        grid=product(layers=(1, 2, 3)),
        source="derived",
    ),
    Claim(
        "deepcompile.4",
        "makespan >= Max(sum of compute, sum of gathers, first gather + sum of compute).",
        kind="property",
        relation=">=",
        check=CALCULATOR + "makespan_bound",
        grid=({"seconds": (1, 1), "sizes": (0, 1)},),
        source="derived",
        expect="fails",
    ),
    Claim(
        "deepcompile.4.repaired",
        "makespan >= Max(sum of compute, sum of gathers, first gather + compute from the first computation with a parameter on).",
        kind="property",
        check=CALCULATOR + "makespan_bound_repaired",
        grid=product(layers=(1, 2, 3)),
        source="derived",
    ),
    Claim(
        "deepcompile.5",
        "A persistent parameter saves (2*A-1)*T_AG(s) of gathers in a step with A accumulation steps.",
        kind="identity",
        check=CALCULATOR + "saving",
        grid=product(accumulate=(1, 2, 8)),
        source="derived",
    ),
    Claim(
        "deepcompile.prefetch.memory",
        "Pass B never exceeds its limit on the profile.",
        kind="property",
        check=CALCULATOR + "prefetch_memory",
        grid=({"bases": (3,), "size": 2, "device_bytes": 5, "check_own": False},),
        expect="fails",
        **RELEASED,
    ),
    Claim(
        "deepcompile.prefetch.memory.repaired",
        "Pass B never exceeds its limit if it checks again after taking a gather along.",
        kind="property",
        check=CALCULATOR + "prefetch_memory_all",
        grid=product(layers=(1, 2), check_own=True),
        source="derived",
    ),
    Claim(
        "deepcompile.prefetch.faster",
        "Where every gather comes right before its use, pass B never lengthens the program.",
        kind="property",
        check=CALCULATOR + "prefetch_makespan_all",
        grid=product(layers=(1, 2, 3)),
        source="derived",
    ),
    Claim(
        "deepcompile.prefetch.faster.early",
        "Pass B never lengthens a program whose gathers are issued at first.",
        kind="property",
        check=CALCULATOR + "prefetch_makespan",
        grid=({"seconds": (1, 0), "sizes": (1, 6), "start": 0, "early": True},),
        source="our question: fused gathers let the first computation wait",
        expect="fails",
    ),
]
