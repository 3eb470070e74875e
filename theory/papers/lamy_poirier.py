"""Layered gradient accumulation and modular pipelines (arXiv 2106.02679); formulas are our own, the paper's are not available."""

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "Layered gradient accumulation and modular pipeline parallelism: fast and efficient training of large language models",
    "arXiv 2106.02679",
    rows=("000-10",),
    kind="schedule, cost model",
)

CALCULATOR = "verify_rates.theory.calculators.lamy_poirier:"

CLAIMS = [
    Claim(
        "lamy_poirier.1",
        "Forward makespans: (n_mu+n_l-1)*(d_l/n_l)*t contiguous, ((d_l/n_l-1)*Max(n_mu,n_l)+n_mu+n_l-1)*t modular.",
        kind="identity",
        check=CALCULATOR + "makespans",
        grid=product(n_l=(1, 2, 4, 8), backward=False),
        source="derived",
    ),
    Claim(
        "lamy_poirier.1.backward",
        "With a backward pass of b times the forward pass the makespans are 1 + b times those.",
        kind="identity",
        check=CALCULATOR + "makespans",
        grid=product(n_l=(1, 2, 4), backward=True),
        source="derived",
    ),
    Claim(
        "lamy_poirier.2",
        "Bubbles over ideal: (n_l-1)/n_mu contiguous; (n_l-1)*n_l/(n_mu*d_l) modular, for n_mu >= n_l.",
        kind="identity",
        check=CALCULATOR + "bubbles",
        grid=({},),
        source="derived",
    ),
    Claim(
        "lamy_poirier.2.few",
        "The modular bubble has that share for any number of micro-batches.",
        kind="property",
        relation="==",
        check=CALCULATOR + "bubble_at",
        grid=({"d_l": 4, "n_l": 2, "n_mu": 1},),
        source="our question: is n_mu >= n_l needed?",
        expect="fails",
    ),
    Claim(
        "lamy_poirier.3",
        "Max(d_l*n_mu*t_b + r, first + d_l*r), first = (d_l*(n_mu-1)+1)*t_b or, layered, n_mu*t_b; hidden iff r <= t_b or n_mu*t_b.",
        kind="identity",
        check=CALCULATOR + "reductions",
        grid=product(d_l=(1, 2, 5), n_mu=(1, 3)),
        source="derived",
    ),
    Claim(
        "lamy_poirier.4",
        "Sharded parameters: 2*n_mu gathers and n_mu reductions in standard, 2 and 1 in layered order, if dropped where a pass turns.",
        kind="identity",
        check=CALCULATOR + "sharded_traffic",
        grid=({"d_l": 2, "n_mu": 2, "reuse": False}, {"d_l": 5, "n_mu": 4, "reuse": False}),
        source="derived",
    ),
    Claim(
        "lamy_poirier.4.reuse",
        "They are gathered as often where the layer in use may stay across the turn of a pass.",
        kind="property",
        check=CALCULATOR + "sharded_traffic",
        grid=({"d_l": 2, "n_mu": 1, "reuse": True},),
        source="our question",
        expect="fails",
    ),
    Claim(
        "lamy_poirier.5",
        "Layered accumulation keeps n_mu*d_l layer inputs instead of d_l.",
        kind="identity",
        check=CALCULATOR + "checkpoints",
        grid=product(d_l=(1, 3, 8), n_mu=(1, 4)),
        source="derived",
    ),
    Claim(
        "lamy_poirier.6",
        "A modular pipeline does 8*12*d_m^2/(4*d_m) = 24*d_m operations per byte of activations sent.",
        kind="identity",
        check=CALCULATOR + "intensity",
        grid=({},),
        source="derived",
    ),
    Claim(
        "lamy_poirier.7",
        "The reduction is hidden from (2/3)*C/B tokens on, per step if layered, else per micro-batch: 4,160 at 312 Tflop/s and 50 GB/s.",
        kind="identity",
        check=CALCULATOR + "data_parallel_threshold",
        grid=({},),
        source="derived",
    ),
    Claim(
        "lamy_poirier.half",
        "The two methods halve the shortest step, in our model of 8 devices, 16 layers and a batch of 8 without a start-up time.",
        kind="property",
        relation=">=",
        check=CALCULATOR + "halved",
        grid=({"devices": 8, "batch": 8, "d_l": 16, "start": 0, "reduce": 12},),
        source="abstract of the paper (its hardware and critical batch are not those)",
        provenance="paper",
        expect="fails",
    ),
]
