"""TokenRing (arXiv 2412.20501): N ranks, n tokens a rank, B bytes/s in each direction, F operations/s."""

from typing import Any

from verify_rates.theory.claims import Claim, Paper, product

PAPER = Paper(
    "TokenRing: An Efficient Parallelism Framework for Infinite-Context LLMs via Bidirectional Communication",
    "arXiv 2412.20501",
    rows=("000-5",),
    kind="cost model, schedule",
)

CALCULATOR = "verify_rates.theory.calculators.tokenring:"
RELEASED: dict[str, Any] = {"source": "the released code", "provenance": "code"}

CLAIMS = [
    Claim(
        "tokenring.1",
        "The merge is the mean weighted by e^lse: out - sigmoid(lse_b-lse)*(out-out_b), lse - logsigmoid(lse-lse_b) = logaddexp.",
        kind="identity",
        check=CALCULATOR + "merge_rule",
        grid=({},),
        **RELEASED,
    ),
    Claim(
        "tokenring.2",
        "Merging block by block is full softmax attention.",
        kind="identity",
        check=CALCULATOR + "merged_attention",
        grid=product(N=(1, 2, 8), seed=(0, 1), spread=(1.0, 30.0)),
        source="derived",
    ),
    Claim(
        "tokenring.3",
        "Every rank sends N-1 queries and N-1 outputs (N >= 2), and every pair of blocks is computed and returned once.",
        kind="property",
        check=CALCULATOR + "transfers",
        grid=product(N=(2, 3, 4, 8)),
        **RELEASED,
    ),
    Claim(
        "tokenring.4",
        "Query and output have 2*n*h_q*d bytes, lse 4*n*h_q, key and value 4*n*h_kv*d; a step is 4*n^2*h_q*d operations.",
        kind="identity",
        check=CALCULATOR + "sizes_of_arrays",
        grid=product(n=(1, 6), h_q=(4,), h_kv=(1, 4), d=(2, 8)),
        source="derived",
    ),
    Claim(
        "tokenring.4.causal",
        "In the causal zigzag every step after the first does half of the work, and no causal pair is missed.",
        kind="property",
        check=CALCULATOR + "zigzag",
        grid=product(N=(2, 3, 4), n=(2, 4)),
        source="derived",
    ),
    Claim(
        "tokenring.5",
        "Step times of ring attention and of TokenRing (N >= 3), each step a barrier; without barriers it is never slower.",
        kind="identity",
        check=CALCULATOR + "step_times",
        grid=product(N=(3, 4, 7)),
        source="derived",
    ),
    Claim(
        "tokenring.5.free",
        "The formula also holds where transfers may run ahead of the steps.",
        kind="property",
        relation="==",
        check=CALCULATOR + "without_barriers",
        grid=product(N=3, compute=1, query=2, output=2),
        source="our question: are the barriers needed?",
        expect="fails",
    ),
    Claim(
        "tokenring.5.readme",
        "The measured rounds on 4 A10 to 15 %: 3.5 ms for the first steps and 4.6 ms for step 2, from the ring's 7.6 ms.",
        kind="table",
        check=CALCULATOR + "readme",
        grid=product(step=("first", "second")),
        expect="fails",
        **RELEASED,
    ),
    Claim(
        "tokenring.5.readme.repaired",
        "The measured rounds of the first steps to 15 % (step 2 is off by 16 %).",
        kind="table",
        check=CALCULATOR + "readme",
        grid=product(step="first"),
        source="derived",
    ),
    Claim(
        "tokenring.6",
        "Communication per step, ring over TokenRing, is 2*(h_kv/h_q)/(1+2/d): below 1 once h_kv/h_q < 1/2.",
        kind="identity",
        check=CALCULATOR + "ratio_formula",
        grid=({},),
        source="derived",
    ),
    Claim(
        "tokenring.6.value",
        "The ratio is 1.97 for as many key as query heads and d = 128.",
        kind="table",
        check=CALCULATOR + "ratio_value",
        grid=({},),
        source="derived",
    ),
    Claim(
        "tokenring.7",
        "Bytes per rank: ring 2*(N-1)*n*h_kv*d*2, TokenRing (N-1)*(2*n*h_q*d*2 + lse).",
        kind="identity",
        check=CALCULATOR + "bytes_per_rank",
        grid=({"N": 3, "n": 2, "h_q": 4, "h_kv": 4, "d": 8}, {"N": 8, "n": 5, "h_q": 8, "h_kv": 2, "d": 4}),
        source="derived",
    ),
    Claim(
        "tokenring.8",
        "On a physical ring the outputs of a rank, going back the way the queries came, cross N*(N-1)/2 links.",
        kind="identity",
        check=CALCULATOR + "hops",
        grid=product(N=(2, 3, 4, 8), shortest=False),
        source="derived",
    ),
    Claim(
        "tokenring.8.shortest",
        "They cross as many links where they may take the shorter way around.",
        kind="property",
        relation="==",
        check=CALCULATOR + "hops",
        grid=product(N=3, shortest=True),
        source="our question",
        expect="fails",
    ),
    Claim(
        "tokenring.9",
        "Queries hide behind compute iff n >= F/(2*B), in ring attention keys and values iff n >= F/B; heads and d do not matter.",
        kind="iff",
        check=CALCULATOR + "overlap",
        grid=({},),
        source="derived",
    ),
]
