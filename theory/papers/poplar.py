"""Poplar (arXiv 2408.12596): tau is the budget of a micro-step, gas the micro-steps, Cm the collective after each (per_step)."""

from typing import Any

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "Poplar: Efficient Scaling of Distributed DNN Training on Heterogeneous GPU Clusters",
    "arXiv 2408.12596",
    rows=("000-12",),
    kind="cost model (batch allocation)",
)

CALCULATOR = "verify_rates.theory.calculators.poplar:"
RECALLED: dict[str, Any] = {"source": "Rajbhandari et al. 2020 (ZeRO), recalled", "provenance": "recalled"}
IDLE: dict[str, Any] = {"speeds": (1, 1), "starts": (0, 3), "gbs": 1}

CLAIMS = [
    Claim(
        "poplar.1",
        "The sweep over the values of all curves finds the least gas*(max t_i(b_i) + Cm) over plans whose micro-steps are alike.",
        kind="property",
        check=CALCULATOR + "sweep_is_optimal",
        grid=({"n": 1, "longest": 3, "levels": 3}, {"n": 2, "longest": 2, "levels": 3}),
        source="derived",
    ),
    Claim(
        "poplar.1.uneven",
        "No plan with unequal micro-steps is faster than the sweep's.",
        kind="property",
        check=CALCULATOR + "uneven_steps",
        grid=({"curves": ((1, 2),), "gbs": 3, "per_step": 1},),
        source="our question",
        expect="fails",
    ),
    Claim(
        "poplar.1.steps",
        "The slower the collective the fewer micro-steps.",
        kind="property",
        check=CALCULATOR + "steps_fall",
        grid=({"n": 2, "longest": 2, "levels": 3},),
        source="derived",
    ),
    Claim(
        "poplar.2",
        "Linear times, no cap: shares in proportion to speed are optimal, T = gbs/sum(v); equal shares take sum(v)/(n*min(v)) longer.",
        kind="property",
        check=CALCULATOR + "proportional_is_optimal",
        grid=({"n": 2, "levels": 4, "pieces": 12}, {"n": 3, "levels": 3, "pieces": 9}),
        source="derived",
    ),
    Claim(
        "poplar.3",
        "Affine times a_i + b/v_i: B_i = v_i*(lam - a_i) with lam = (gbs + sum v_i*a_i)/sum v_i is optimal.",
        kind="property",
        check=CALCULATOR + "printed_affine",
        grid=(IDLE,),
        source="derived",
        expect="fails",
    ),
    Claim(
        "poplar.3.repaired",
        "Affine times: GPUs whose start-up is at least lam get nothing, lam from the others; finishing times are equal and optimal.",
        kind="property",
        check=CALCULATOR + "affine_is_optimal",
        grid=({"n": 2, "levels": 3, "pieces": 8}, {"n": 3, "levels": 2, "pieces": 6}),
        source="derived",
    ),
    Claim(
        "poplar.3.proportional",
        "Affine times: the proportional rule is optimal.",
        kind="property",
        check=CALCULATOR + "proportional_is_not",
        grid=({"speeds": (1, 1), "starts": (0, 1), "gbs": 2},),
        source="the negation is derived",
        expect="fails",
    ),
    Claim(
        "poplar.4",
        "ZeRO moves at most 2*Psi (stages 0-2) or 3*Psi (stage 3) a step of one micro-batch; rings move (n-1)/n of it.",
        kind="property",
        check=CALCULATOR + "volumes",
        grid=product(stage=(0, 1, 2, 3), n=(2, 4, 12)),
        **RECALLED,
    ),
    Claim(
        "poplar.5",
        "Bytes per GPU with Adam in mixed precision: 16*Psi, 4*Psi + 12*Psi/n, 2*Psi + 14*Psi/n, 16*Psi/n for stages 0 to 3.",
        kind="identity",
        check=CALCULATOR + "memory",
        grid=product(stage=(0, 1, 2, 3), n=(1, 2, 8)),
        **RECALLED,
    ),
]
