"""TokenRing and ring attention: merging of partial outputs, the protocol, step times and bytes, with the checks of the statements.

N ranks hold n tokens each (their queries, keys and values); numbers have 2 bytes, log-sum-exps 4.  Queries travel one way around,
partial outputs go straight back to their owner in the other direction.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators.streams import positive, whole
from verify_rates.theory.evidence import Found

README_RTOL = 0.15  # the accuracy to which the measured times are asked for


class Sizes(NamedTuple):
    """Bytes of the messages and seconds of one step of attention (tokenring.4)."""

    query: Any
    output: Any
    lse: Any
    key_value: Any
    compute: Any


class Message(NamedTuple):
    step: int
    source: int
    target: int
    what: str  # "query" or "output"


def sizes(n: int, h_q: int, h_kv: int, d: int, F: Any, causal: bool = False) -> Sizes:
    """Bytes and seconds of one step.

    Parameters
    ----------
    n : tokens per rank.
    h_q, h_kv, d : heads of queries, heads of keys and values, size of a head.
    F : floating-point operations per second.
    causal : with the zigzag order, where every step but the first does half of the work.

    >>> sizes(6000, 32, 32, 128, 1e14).query
    49152000
    """
    for value, name in ((n, "n"), (h_q, "h_q"), (h_kv, "h_kv"), (d, "d")):
        whole(value, name)
    if h_q % h_kv:
        raise UsageError(f"h_q must be a multiple of h_kv, not {h_q} and {h_kv}.")
    work = 4 * n**2 * h_q * d
    return Sizes(2 * n * h_q * d, 2 * n * h_q * d, 4 * n * h_q, 4 * n * h_kv * d, work / positive(F, "F") / (2 if causal else 1))


def ring_seconds(N: int, s: Sizes, B: Any) -> Any:
    """Seconds of ring attention over N ranks: keys and values travel while the step computes (tokenring.5)."""
    return (whole(N, "N") - 1) * max(s.compute, s.key_value / positive(B, "B")) + s.compute


def tokenring_seconds(N: int, s: Sizes, B: Any) -> Any:
    """Seconds of TokenRing over N >= 3 ranks with B bytes/s in each direction (tokenring.5), steps as barriers.

    >>> s = Sizes(query=4, output=4, lse=1, key_value=8, compute=3)
    >>> tokenring_seconds(4, s, 1), ring_seconds(4, s, 1)
    (23.0, 27.0)
    """
    if whole(N, "N") < 3:
        raise UsageError(f"the closed form needs N of at least 3, not {N}.")
    q, o = s.query / positive(B, "B"), (s.output + s.lse) / B
    return 2 * max(s.compute, q) + (N - 3) * max(s.compute, q, o) + max(s.compute, o) + o


def ratio(h_q: Any, h_kv: Any, d: Any) -> Any:
    """Communication time of a step, ring attention over TokenRing (tokenring.6): below 1 TokenRing loses.

    >>> ratio(32, 32, 128) > 1 > ratio(32, 8, 128)
    True
    """
    return 2 * (h_kv / h_q) / (1 + 2 / d)


def protocol(N: int) -> list[Message]:
    """All messages of the released loop over N ranks; step N is the transfer after the loop."""
    sent = []
    for step in range(N + 1):
        for rank in range(N):
            if step < N - 1:
                sent.append(Message(step, rank, (rank + 1) % N, "query"))
            if step > 1 and N > 1:  # the block of the step before: its queries came from that many ranks back
                sent.append(Message(step, rank, (rank - (step - 1)) % N, "output"))
    return sent


def merge(out: Any, lse: Any, out_b: Any, lse_b: Any) -> tuple[Any, Any]:
    """The released merge of two partial outputs (tokenring.1): weights are sigmoids of the difference of log-sum-exps.

    >>> merge(np.array([1.0]), np.array(0.0), np.array([3.0]), np.array(0.0))[0]
    array([2.])
    """
    weight = np.exp(-np.logaddexp(0.0, lse - lse_b))  # sigmoid(lse_b - lse)
    return out - weight * (out - out_b), lse + np.logaddexp(0.0, lse_b - lse)


# --- checks ---------------------------------------------------------------------------------------------------------------


def merge_rule() -> Found:
    """tokenring.1 in symbols: with weights A = e^lse the merge is the weighted mean, and the new weight is A + B."""
    import sympy as sp

    A, B, u, v = sp.symbols("A B u v", positive=True)

    def sigmoid(x: Any) -> Any:
        return 1 / (1 + sp.exp(-x))

    lse, lse_b = sp.log(A), sp.log(B)
    out = u - sigmoid(lse_b - lse) * (u - v)
    new = lse - sp.log(sigmoid(lse - lse_b))
    wrong = (sp.simplify(out - (A * u + B * v) / (A + B)) != 0) + (sp.simplify(sp.exp(new) - (A + B)) != 0)
    return Found.count(wrong, 2, proves=True)


def merged_attention(N: int, seed: int, spread: float) -> Found:
    """tokenring.2: merging N blocks in the order of their arrival is softmax attention over all keys."""
    rng = np.random.default_rng([seed, 2])
    n, d = 3, 4
    q, k, v = rng.standard_normal((n, d)), rng.standard_normal((N, n, d)), rng.standard_normal((N, n, d))

    def block(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scores = spread * q @ keys.T
        top = scores.max(axis=1, keepdims=True)
        weights = np.exp(scores - top)
        return weights @ values / weights.sum(axis=1, keepdims=True), top + np.log(weights.sum(axis=1, keepdims=True))

    out, lse = block(k[0], v[0])
    for i in range(1, N):
        out, lse = merge(out, lse, *block(k[i], v[i]))
    full, full_lse = block(k.reshape(-1, d), v.reshape(-1, d))
    off = max(np.abs(out - full).max() / np.abs(full).max(), np.abs(lse - full_lse).max() / np.abs(full_lse).max())
    return Found.identity(float(off))


def transfers(N: int) -> Found:
    """tokenring.3: N-1 queries and N-1 outputs leave every rank, and every pair of blocks is computed and returned exactly once."""
    sent = protocol(N)
    wrong = sum(sum(m.source == r and m.what == w for m in sent) != N - 1 for r in range(N) for w in ("query", "output"))
    holds = list(range(N))  # whose queries a rank has
    seen = {(r, r) for r in range(N)}
    back = set()
    for step in range(1, N):
        moved = [m for m in sent if m.step == step - 1 and m.what == "query"]
        holds = [holds[next(m.source for m in moved if m.target == r)] for r in range(N)]
        seen |= {(holds[r], r) for r in range(N)}
        back |= {(m.target, m.source) for m in sent if m.step == step + 1 and m.what == "output"}
        wrong += any((holds[r], r) not in back for r in range(N))
    wrong += seen != {(a, b) for a in range(N) for b in range(N)}
    wrong += back | {(r, r) for r in range(N)} != seen
    return Found.count(wrong, 2 * N + N + 1, proves=True)


def sizes_of_arrays(n: int, h_q: int, h_kv: int, d: int) -> Found:
    """tokenring.4: bytes of the arrays, and operations of the two products of matrices, counted."""
    q, kv, lse = np.zeros((n, h_q, d), np.float16), np.zeros((2, n, h_kv, d), np.float16), np.zeros((n, h_q), np.float32)
    said = sizes(n, h_q, h_kv, d, Fraction(1))
    scores = h_q * n * n * 2 * d  # a product and a sum for every entry of both factors
    values = h_q * n * d * 2 * n
    wrong = (said[:4] != (q.nbytes, q.nbytes, lse.nbytes, kv.nbytes)) + (said.compute != scores + values)
    return Found.count(int(wrong), 2, proves=True)


def zigzag(N: int, n: int) -> Found:
    """tokenring.4, causal: every step after the first does n^2/2 pairs, by one of the two half shapes, and misses no causal pair."""
    half, wrong = n // 2, 0
    tokens = [[*range(r * half, (r + 1) * half), *range((2 * N - 1 - r) * half, (2 * N - r) * half)] for r in range(N)]
    done = {(a, b) for r in range(N) for a in tokens[r] for b in tokens[r] if b <= a}
    for r in range(N):
        for other in range(N):
            if other != r:
                q, k = (tokens[r], tokens[other][:half]) if other < r else (tokens[r][half:], tokens[other])
                pairs = {(a, b) for a in q for b in k}
                wrong += 2 * len(pairs) != n * n or any(b > a for a, b in pairs)
                done |= pairs
    wrong += done != {(a, b) for a in range(N * n) for b in range(a + 1)}
    return Found.count(wrong, N * (N - 1) + 1, proves=True)


def played_seconds(N: int, s: Sizes, B: Any, barriers: bool = True) -> Any:
    """TokenRing by its messages: a step computes and sends in both directions; with barriers it ends when all of it ended."""
    sent = protocol(N)
    if barriers:
        total = 0
        for step in range(N + 1):
            load = {w: any(m.step == step and m.what == w for m in sent) for w in ("query", "output")}
            parts = [s.compute] * (step < N) + [s.query / B] * load["query"] + [(s.output + s.lse) / B] * load["output"]
            total += max(parts, default=0)
        return total
    computed = arrived = forward = backward = 0
    for step in range(N):
        computed = max(computed, arrived) + s.compute
        if step >= 1:
            backward = max(backward, computed) + (s.output + s.lse) / B
        if step < N - 1:
            forward += s.query / B
            arrived = forward
    return max(computed, backward)


def played_ring(N: int, s: Sizes, B: Any) -> Any:
    """Ring attention by its messages: N steps, keys and values travel in all but the last."""
    return sum(max([s.compute] + [s.key_value / B] * (step < N - 1)) for step in range(N))


def _small_sizes() -> Iterable[Sizes]:
    for compute, q, o, lse, kv in itertools.product((0, 1, 3, 5), (1, 2, 4), (1, 2, 4), (0, 1), (2, 8)):
        yield Sizes(Fraction(q), Fraction(o), Fraction(lse), Fraction(kv), Fraction(compute))


def step_times(N: int) -> Found:
    """tokenring.5 against the protocol with a barrier after every step; without barriers it is never slower."""
    wrong, cases = 0, 0
    for s in _small_sizes():
        cases += 3
        wrong += tokenring_seconds(N, s, Fraction(1)) != played_seconds(N, s, Fraction(1))
        wrong += ring_seconds(N, s, Fraction(1)) != played_ring(N, s, Fraction(1))
        wrong += played_seconds(N, s, Fraction(1), barriers=False) > tokenring_seconds(N, s, Fraction(1))
    return Found.count(wrong, cases, proves=True)


def without_barriers(N: int, compute: int, query: int, output: int) -> Found:
    """tokenring.5.free on one instance (sizes over the bandwidth, no lse): played with transfers that may run ahead of the steps."""
    s = Sizes(query, output, 0, 1, compute)
    played, said = played_seconds(N, s, Fraction(1), barriers=False), tokenring_seconds(N, s, Fraction(1))
    return Found(float(played), float(played), float(said), "==", proves=True, message=f"played {played} s, formula {said} s")


def ratio_formula() -> Found:
    """tokenring.6 in symbols, from the sizes of tokenring.4; and below 1 for every h_kv/h_q < 1/2."""
    import sympy as sp

    n, hq, hkv, d, B, x = sp.symbols("n h_q h_kv d B x", positive=True)
    from_sizes = (4 * n * hkv * d / B) / ((2 * n * hq * d + 4 * n * hq) / B)
    top = sp.limit(ratio(1, sp.Rational(1, 2), d), d, sp.oo)
    rising = sp.simplify(sp.diff(ratio(1, sp.Rational(1, 2), d), d)) - 2 / (d + 2) ** 2
    wrong = (sp.simplify(from_sizes - ratio(hq, hkv, d)) != 0) + (top != 1) + (sp.simplify(rising) != 0)
    wrong += sp.simplify(ratio(1, x, d) / x - ratio(1, 1, d)) != 0
    return Found.count(wrong, 4, proves=True)


def ratio_value() -> Found:
    """tokenring.6: 1.97 for as many key as query heads and d = 128."""
    off = abs(ratio(Fraction(1), Fraction(1), Fraction(128)) - Fraction("1.97"))
    return Found(float(off), float(off), 0.005, proves=True, message=f"{float(ratio(1, 1, 128)):.4f}, printed 1.97")


def bytes_per_rank(N: int, n: int, h_q: int, h_kv: int, d: int) -> Found:
    """tokenring.7: what leaves every rank, counted over the protocol."""
    s = sizes(n, h_q, h_kv, d, Fraction(1))
    sent = [sum(s.query if m.what == "query" else s.output + s.lse for m in protocol(N) if m.source == r) for r in range(N)]
    said = (N - 1) * (2 * n * h_q * d * 2 + s.lse), 2 * (N - 1) * n * h_kv * d * 2
    return Found.count((set(sent) != {said[0]}) + ((N - 1) * s.key_value != said[1]), 2)


def hops(N: int, shortest: bool) -> Found:
    """tokenring.8: links that the outputs of a rank cross on a physical ring, going back the way the queries came, or the shorter way."""
    crossed = [0] * N
    for m in protocol(N):
        if m.what == "output":
            back = (m.source - m.target) % N
            crossed[m.source] += min(back, N - back) if shortest else back
    return Found(float(max(crossed)), float(max(crossed)), N * (N - 1) / 2, "==", proves=True, message=f"{crossed[0]} hops per rank")


def overlap() -> Found:
    """tokenring.9 in symbols: C*B*F - Q*F is a positive multiple of n - F/(2*B), for ring attention of n - F/B."""
    import sympy as sp

    n, h, d, F, B = sp.symbols("n h d F B", positive=True)
    compute = 4 * n**2 * h * d / F
    ours = sp.simplify((compute - 2 * n * h * d / B) / (n - F / (2 * B)))
    ring = sp.simplify((compute - 4 * n * h * d / B) / (n - F / B))
    return Found.count((ours.is_positive is not True) + (ring.is_positive is not True), 2, proves=True)


def readme(step: str) -> Found:
    """tokenring.5.readme: 4 A10, 32 heads of 128, 24,000 tokens; the bandwidth is that of the ring's 7.6 ms for keys and values."""
    s = sizes(6000, 32, 32, 128, 1e14)
    B = s.key_value / 7.6e-3
    said, measured = {"first": (s.query / B, 3.5e-3), "second": ((s.output + s.lse) / B, 4.6e-3)}[step]
    off = abs(said - measured) / measured
    return Found(off, off, README_RTOL, proves=True, message=f"{1e3 * said:.2f} ms computed, {1e3 * measured:.1f} ms measured")
