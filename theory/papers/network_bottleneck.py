"""Is Network the Bottleneck of Distributed Training? (arXiv 2006.10103); its N is n, c is compression, A() the time of an addition."""

from typing import Any

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "Is Network the Bottleneck of Distributed Training?",
    "arXiv 2006.10103",
    rows=("002-11",),
    kind="cost model",
)

CALCULATOR = "verify_rates.theory.calculators.network_bottleneck:"
RELEASED: dict[str, Any] = {"source": "the released simulator", "provenance": "code"}
MODELS = ("resnet50", "resnet101", "vgg16")

CLAIMS = [
    Claim(
        "network_bottleneck.1",
        "The scaling factor is the throughput of n workers over n times that of one.",
        kind="identity",
        check=CALCULATOR + "throughput_ratio",
        grid=({},),
        source="a description of the paper",
        provenance="paper (secondary)",
    ),
    Claim(
        "network_bottleneck.2",
        "A ring all-reduce of S bytes takes 2*(8*S*(n-1)/n)/bw/c + (n-1)*A(S/n).",
        kind="identity",
        check=CALCULATOR + "ring_time",
        grid=product(n=(1, 2, 3, 16), latency=False),
        **RELEASED,
    ),
    Claim(
        "network_bottleneck.3",
        "The simulated scaling factor is t_batch/(t_batch + overhead).",
        kind="identity",
        check=CALCULATOR + "throughput_ratio",
        grid=({},),
        **RELEASED,
    ),
    Claim(
        "network_bottleneck.3.table",
        "The factors of ResNet-50 from its tensors with equal waits (the log of times is not given): 20 entries to 1e-3.",
        kind="table",
        check=CALCULATOR + "table",
        grid=product(name="resnet50"),
        **RELEASED,
    ),
    Claim(
        "network_bottleneck.3.totals",
        "No published factor exceeds what the bytes, the backward time and the link allow for any order and timing of the tensors.",
        kind="property",
        check=CALCULATOR + "table_within_totals",
        grid=product(name=MODELS),
        source="derived",
    ),
    Claim(
        "network_bottleneck.4",
        "The overhead is Max over j of ready_j + sum of T_ar from j on, less T_back.",
        kind="identity",
        check=CALCULATOR + "max_plus_form",
        grid=product(count=(1, 2, 4, 6)),
        source="derived",
    ),
    Claim(
        "network_bottleneck.4.monotone",
        "The overhead never rises with bandwidth or compression.",
        kind="property",
        check=CALCULATOR + "monotone",
        grid=product(count=(1, 2, 3)),
        source="derived",
    ),
    Claim(
        "network_bottleneck.4.buffer",
        "A larger fusion buffer never lengthens a step.",
        kind="property",
        check=CALCULATOR + "buffer_size",
        grid=product(small=1, large=2),
        source="our question",
        expect="fails",
    ),
    Claim(
        "network_bottleneck.5",
        "The overhead is at least the time of the last bucket where that is flushed at the end of the backward pass.",
        kind="property",
        check=CALCULATOR + "last_bucket",
        grid=product(count=(1, 2, 3)),
        source="derived",
    ),
    Claim(
        "network_bottleneck.6",
        "With the network fully used the factor is near 1 (0.9) at 100 Gbit/s without compression, and at 10 Gbit/s with 5 times.",
        kind="property",
        relation=">=",
        check=CALCULATOR + "headline",
        grid=(*product(name=MODELS, gbit=100, n=64, compression=1), *product(name=MODELS, gbit=10, n=(16, 64), compression=5)),
        source="abstract of the paper",
        provenance="paper",
        expect="fails",
    ),
    Claim(
        "network_bottleneck.6.repaired",
        "Near 1 at 100 Gbit/s for all three models; at 10 Gbit/s 5 times suffice for the ResNets, VGG-16 needs about 10 times.",
        kind="property",
        relation=">=",
        check=CALCULATOR + "headline_simulated",
        grid=(
            *product(name=MODELS, gbit=100, n=(16, 64), compression=1),
            *product(name=MODELS[:2], gbit=10, n=(16, 64), compression=5),
            *product(name="vgg16", gbit=10, n=(16, 64), compression=10),
        ),
        source="derived",
    ),
    Claim(
        "network_bottleneck.7",
        "With a latency: T_ar = 2*(n-1)*alpha + 2*(n-1)/n*8*S/(bw*c) + (n-1)*A(S/n).",
        kind="identity",
        check=CALCULATOR + "ring_time",
        grid=product(n=(1, 2, 3, 16), latency=True),
        source="derived",
    ),
]
