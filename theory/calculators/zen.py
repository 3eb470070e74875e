"""ZEN: schemes that synchronise sparse tensors, played on supports, with their published times; and checks of its statements.

A support is the set of positions of a worker's non-zeros among M.  Sizes are in words (a value is one, a value with its index two, the
released COO), times in words over ``b`` words per second; latency is left out unless said.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators.streams import choose, positive, ring_all_reduce, whole
from verify_rates.theory.evidence import Found

Support = frozenset[int]
COO = 2  # words of one non-zero with its index
WORD = 32  # bits

# Published times for density d of one tensor and g(k) = gamma_k, in units of 2*M*d/b, by the shape of the scheme: (topology, incremental).
CENTRAL: dict[tuple[str, str], Callable[[int, Callable[[int], Any]], Any]] = {
    ("ring", "incremental"): lambda n, g: sum(g(i) for i in range(1, n)),
    ("ring", "one-shot"): lambda n, g: n - 1,
    ("hierarchy", "incremental"): lambda n, g: sum(g(2**i) for i in range(n.bit_length() - 1)),  # HC, zen.3
    ("hierarchy", "one-shot"): lambda n, g: sum(2**i for i in range(n.bit_length() - 1)),
    ("p2p", "incremental"): lambda n, g: n - 1,
    ("p2p", "one-shot"): lambda n, g: n - 1,  # AGsparse, zen.7
}
SCATTER: dict[tuple[str, str], Callable[[int, Callable[[int], Any]], Any]] = {
    ("ring", "incremental"): lambda n, g: Fraction(1, n) * sum(g(i) for i in range(1, n)),  # zen.6
    ("ring", "one-shot"): lambda n, g: Fraction(1, n) * sum(range(1, n)),
    ("hierarchy", "incremental"): lambda n, g: sum(g(2**i) * Fraction(1, 2 ** (i + 1)) for i in range(n.bit_length() - 1)),
    ("hierarchy", "one-shot"): lambda n, g: Fraction(n.bit_length() - 1, 2),
    ("p2p", "incremental"): lambda n, g: Fraction(n - 1, n),
    ("p2p", "one-shot"): lambda n, g: Fraction(n - 1, n),
}


class Times(NamedTuple):
    """Seconds of a synchronisation by each scheme, without latency."""

    bp: Any
    hc: Any
    dense: Any
    agsparse: Any


def log2(n: int) -> int:
    """The exponent of a power of two; UsageError for another number."""
    if whole(n, "n") & (n - 1):
        raise UsageError(f"n must be a power of two, not {n}.")
    return n.bit_length() - 1


def independent(d: Any) -> Callable[[int], Any]:
    """gamma_k of independent supports of density d: ``(1-(1-d)**k)/d`` (zen.14).

    >>> independent(Fraction(1, 2))(2)
    Fraction(3, 2)
    """
    return lambda k: (1 - (1 - d) ** k) / d


def sync_seconds(M: Any, n: int, d: Any, b: Any, gamma: Callable[[int], Any] | None = None, lat: Any = 0) -> Times:
    """Times of Balanced Parallelism, Hierarchical Centralisation, dense all-reduce and one-shot all-gather (zen.2, .3, .8, .7, .13).

    Parameters
    ----------
    M : words of the dense tensor.
    n : workers, a power of two.
    d : density of one tensor, in (0, 1].
    b : words per second of a worker's link, each direction.
    gamma : densification, gamma(k) = density of the sum of k tensors over d; independent supports by default.
    lat : seconds per message.

    Errors: UsageError for n that is no power of two, d outside (0, 1], numbers that are not positive.

    >>> t = sync_seconds(1e6, 16, 0.05, 1e9)
    >>> t.bp < t.hc < t.agsparse
    True
    """
    levels = log2(n)
    for value, name in ((M, "M"), (b, "b"), (d, "d")):
        positive(value, name)
    if d > 1:
        raise UsageError(f"d must be in (0, 1], not {d!r}.")
    g = gamma or independent(d)
    unit = COO * M * d / b
    share = Fraction(n - 1, n) if isinstance(unit, Fraction) else (n - 1) / n
    bp = share * (g(n) + 1) * unit + 2 * (n - 1) * lat
    hc = sum(g(2**i) for i in range(levels)) * unit + levels * lat
    return Times(bp, hc, 2 * share * M / b + 2 * (n - 1) * lat, (n - 1) * unit + (n - 1) * lat)


def choice(M: Any, n: int, d: Any, b: Any, gamma: Callable[[int], Any] | None = None, lat: Any = 0) -> str:
    """Which of "bp" and "hc" the runtime chooses.

    >>> choice(1e6, 16, 0.01, 1e9), choice(1e6, 16, 0.05, 1e9)
    ('hc', 'bp')
    """
    times = sync_seconds(M, n, d, b, gamma, lat)
    return "bp" if times.bp < times.hc else "hc"


def crossover(n: int) -> float:
    """The density above which BP beats HC for independent supports (zen.14).

    >>> round(crossover(16), 4)
    0.0131
    """
    if log2(n) < 2:
        raise UsageError("with two workers HC is never slower than BP; give n of at least 4.")
    from scipy.optimize import brentq

    def lead(d: float) -> float:
        times = sync_seconds(1.0, n, d, 1.0)
        return (times.bp - times.hc) / d

    return float(brentq(lead, 1e-9, 0.999))


# --- supports and what moves ----------------------------------------------------------------------------------------------


def supports(kind: str, n: int, M: int, count: int, seed: int = 0) -> list[Support]:
    """Supports of ``count`` positions a worker: "random", "clustered" (a common half) or "zipf" (head positions more often).

    >>> [len(s) for s in supports("zipf", 2, 64, 8)]
    [8, 8]
    """
    rng = np.random.default_rng([seed, n, M, count])
    weights = {"random": np.ones(M), "clustered": np.where(np.arange(M) < M // 4, 8.0, 1.0), "zipf": 1 / np.arange(1, M + 1)}
    p = choose(kind, weights, "kind of supports")
    return [frozenset(rng.choice(M, count, replace=False, p=p / p.sum()).tolist()) for _ in range(n)]


def union(sets: Sequence[Support]) -> Support:
    return frozenset().union(*sets)


def parallel(sets: Sequence[Support], owner: Sequence[int]) -> tuple[list[int], list[int]]:
    """Words that every server receives in the push and sends to ONE worker in the pull; position x belongs to server owner[x]."""
    n, whole_sum = len(sets), union(sets)
    push = [COO * sum(owner[x] == i for j, s in enumerate(sets) if j != i for x in s) for i in range(n)]
    pull = [COO * sum(owner[x] == i for x in whole_sum) for i in range(n)]
    return push, pull


def doubling(sets: Sequence[Support]) -> list[list[int]]:
    """Words that every worker receives at each level of recursive doubling (Hierarchical Centralisation)."""
    held, received = list(sets), []
    for level in range(log2(len(sets))):
        partner = [held[i ^ (1 << level)] for i in range(len(sets))]
        received.append([COO * len(p) for p in partner])
        held = [a | b for a, b in zip(held, partner, strict=True)]
    assert all(h == union(sets) for h in held)  # nothing is lost
    return received


def hybrid(sets: Sequence[Support], owner: Sequence[int], group: int) -> list[int]:
    """Words that every worker receives when groups reduce-scatter, slices double across groups, and groups all-gather.

    Parameters
    ----------
    owner : slice (0..group-1) of every position.
    group : workers of a group, a power of two.
    """
    n = len(sets)
    held = [frozenset(x for s in sets[i - i % group : i - i % group + group] for x in s if owner[x] == i % group) for i in range(n)]
    mates = [[j for j in range(i - i % group, i - i % group + group) if j != i] for i in range(n)]
    received = [COO * sum(owner[x] == i % group for j in mates[i] for x in sets[j]) for i in range(n)]
    step = group
    while step < n:
        partner = [held[i ^ step] for i in range(n)]
        received = [r + COO * len(p) for r, p in zip(received, partner, strict=True)]
        held = [a | b for a, b in zip(held, partner, strict=True)]
        step *= 2
    received = [r + COO * sum(len(held[j]) for j in mates[i]) for i, r in enumerate(received)]
    assert all(held[i].union(*(held[j] for j in mates[i])) == union(sets) for i in range(n))
    return received


def ring_scatter(sets: Sequence[Support], owner: Sequence[int]) -> list[int]:
    """Words that every worker receives in the first half of a ring that adds as it goes."""
    n = len(sets)
    held = [[frozenset(x for x in s if owner[x] == j) for j in range(n)] for s in sets]
    received = [0] * n
    for step in range(n - 1):
        moved = [(i, (i - step) % n, held[i][(i - step) % n]) for i in range(n)]
        for i, j, part in moved:
            to = (i + 1) % n
            received[to] += COO * len(part)
            held[to][j] = held[to][j] | part
    return received


def hash_owners(M: int, n: int, seed: int = 0) -> list[int]:
    """Server of every position by one hash that all workers share (multiply, shift and modulo in 64 bits)."""
    x = (np.arange(M, dtype=np.uint64) + np.uint64(seed + 1)) * np.uint64(0x9E3779B97F4A7C15)
    x ^= x >> np.uint64(29)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    return ((x >> np.uint64(33)) % np.uint64(n)).tolist()


def imbalance(sets: Sequence[Support], owner: Sequence[int]) -> tuple[float, float]:
    """(push, pull) imbalance: the most loaded server over the mean, at worst over the workers (zen.9)."""
    n = len(sets)

    def of(s: Support) -> float:
        return n * max(np.bincount([owner[x] for x in s], minlength=n)) / len(s)

    return max(map(of, sets)), of(union(sets))


def skewness(s: Support, M: int, n: int) -> Fraction:
    """Density of the fullest of n equal slices over the density of all."""
    return Fraction(n * max(sum(x * n // M == i for x in s) for i in range(n)), len(s))


# --- checks ---------------------------------------------------------------------------------------------------------------


def _mean(values: Sequence[Any]) -> Fraction:
    return Fraction(sum(values), len(values))


def _turned(n: int, M: int) -> list[list[int]]:
    """Balanced partitions of the positions, one for every renaming of the servers by a turn."""
    return [[(x + turn) % n for x in range(M)] for turn in range(n)]


def bp_time(kind: str, n: int) -> Found:
    """zen.2: words received, averaged over workers and over the renamings of the servers, are the formula exactly."""
    M, count = 8 * n, 2 * n
    sets = supports(kind, n, M, count)
    per = []
    for owner in _turned(n, M):
        push, pull = parallel(sets, owner)
        per.append(_mean([push[i] + sum(pull) - pull[i] for i in range(n)]))
    d, gn = Fraction(count, M), Fraction(len(union(sets)), count)
    return _equal(_mean(per), sync_seconds(Fraction(M), n, d, Fraction(1), lambda k: gn).bp)


def _equal(played: Any, said: Any, proves: bool = False) -> Found:
    """Two exact numbers that have to be equal; no proof where the supports are a sample."""
    off = Fraction(played) - Fraction(said)
    return Found(float(abs(off)), float(abs(off)), 0.0, proves=proves, message=f"played {float(played):g}, formula {float(said):g} words")


def hc_time(kind: str, n: int) -> Found:
    """zen.3: words received per level, averaged over the workers, are gamma of the blocks that meet."""
    M, count = 8 * n, 2 * n
    sets = supports(kind, n, M, count)

    def gamma(k: int) -> Fraction:
        return _mean([len(union(sets[i : i + k])) for i in range(0, n, k)]) / count

    played = sum(_mean(level) for level in doubling(sets))
    return _equal(played, sync_seconds(Fraction(M), n, Fraction(count, M), Fraction(1), gamma).hc)


def sparse_ps(sets: Sequence[Sequence[int]], M: int, by_its_own_skew: bool) -> Found:
    """zen.4: time of contiguous slices; the sum's skewness taken as that of one tensor (printed), or as its own (repaired)."""
    made = [frozenset(s) for s in sets]
    n = len(made)
    push, pull = parallel(made, [x * n // M for x in range(M)])
    played = max(push) + (n - 1) * max(pull)
    s = max(skewness(t, M, n) for t in made)
    s_sum = skewness(union(made), M, n) if by_its_own_skew else s
    d, dn = max(Fraction(len(t), M) for t in made), Fraction(len(union(made)), M)
    said = COO * Fraction((n - 1) * M, n) * (s * d + s_sum * dn)
    return Found(float(played), float(played), float(said), proves=True, message=f"played {played}, formula {float(said):g} words")


def sparse_ps_all(M: int, n: int, count: int) -> Found:
    """zen.4.repaired over ALL supports of ``count`` positions: never above, and equal where all have one profile of slices."""
    wrong, cases = 0, 0
    every = [frozenset(c) for c in itertools.combinations(range(M), count)]
    for sets in itertools.product(every, repeat=n):
        found = sparse_ps([sorted(s) for s in sets], M, True)
        one_profile = len({tuple(sum(x * n // M == i for x in s) for i in range(n)) for s in sets}) == 1
        cases += 1
        wrong += found.lower > found.bound or (one_profile and found.lower != found.bound)
    return Found.count(wrong, cases, proves=True)


def broadcast(n: int, words: int, tree: bool) -> Found:
    """zen.5: a broadcast of a sum takes r times its size: r = ceil(log2 n) by a binomial tree, 2*(n-1)/n by scatter and all-gather."""
    if tree:
        informed, rounds = {0}, 0
        while len(informed) < n:
            informed |= {i + len(informed) for i in informed if i + len(informed) < n}
            rounds += 1
        return _equal(rounds * words, math.ceil(math.log2(n)) * words, proves=True)
    scatter = sum(Fraction(words, n) for _ in range(n - 1))
    gather = sum(Fraction(words, n) for _ in range(n - 1))
    return _equal(scatter + gather, Fraction(2 * (n - 1), n) * words, proves=True)


def ring_first_half(kind: str, n: int) -> Found:
    """zen.6: words received, averaged over workers and renamings; d^i is the mean density of i neighbours' sum."""
    M, count = 8 * n, 2 * n
    sets = supports(kind, n, M, count)
    played = _mean([_mean(ring_scatter(sets, owner)) for owner in _turned(n, M)])
    blocks = [_mean([len(union([sets[(a + k) % n] for k in range(i)])) for a in range(n)]) for i in range(1, n)]
    return _equal(played, COO * sum(blocks) / n)


def agsparse_words(n: int) -> Found:
    """zen.7 on supports of one density."""
    M, count = 8 * n, 2 * n
    sets = supports("random", n, M, count)
    received = [COO * sum(len(s) for j, s in enumerate(sets) if j != i) for i in range(n)]
    return _equal(max(received), sync_seconds(Fraction(M), n, Fraction(count, M), Fraction(1)).agsparse)


def dense_time(n: int) -> Found:
    """zen.8 against the ring, played message by message."""
    M = Fraction(24)
    return _equal(ring_all_reduce(n, M, Fraction(1, 3)).seconds, sync_seconds(M, n, Fraction(1, 4), Fraction(3)).dense, proves=True)


def theorem_1(n: int, steps: int) -> Found:
    """zen.1 within the listed design space: no combination beats both BP and HC, for all densifications on a grid.

    gamma rises from gamma_1 = 1 by 0, 1/steps, ... or 1 a tensor, in all ways; the skewness is 1 or 3/2.
    """
    wrong, cases = 0, 0
    for g in _densifications(n, steps):
        bp, hc = SCATTER["p2p", "incremental"](n, g) + Fraction(n - 1, n) * g(n), CENTRAL["hierarchy", "incremental"](n, g)
        schemes = [f(n, g) for f in CENTRAL.values()]
        schemes += [s * (f(n, g) + Fraction(n - 1, n) * g(n)) for f in SCATTER.values() for s in (1, Fraction(3, 2))]
        cases += len(schemes)
        wrong += sum(t < min(bp, hc) for t in schemes)
    return Found.count(wrong, cases, proves=True)


def _densifications(n: int, steps: int) -> Iterator[Callable[[int], Fraction]]:
    """gamma as a function on 1..n: every sequence from 1 whose rises are 0, 1/steps, ... or 1."""
    for rises in itertools.product(range(steps + 1), repeat=n - 1):
        values = [1 + Fraction(r, steps) for r in itertools.accumulate(rises, initial=0)]
        yield _at(values)


def _at(values: Sequence[Fraction]) -> Callable[[int], Fraction]:
    return lambda k: values[k - 1]


def theorem_1_hybrid(base: Sequence[Sequence[int]], group: int) -> Found:
    """zen.1.hybrid on one instance: words at the busiest worker of the better of BP and HC, beside those of the hybrid scheme.

    Every position of ``base`` stands for n alike, one a server, so that all partitions are balanced perfectly.
    """
    n = len(base)
    sets = [frozenset(x * n + i for x in s for i in range(n)) for s in base]
    positions = max(union(sets)) + 1
    push, pull = parallel(sets, [x % n for x in range(positions)])
    bp = max(push[i] + sum(pull) - pull[i] for i in range(n))
    hc = sum(max(level) for level in doubling(sets))
    mixed = max(hybrid(sets, [x % n % group for x in range(positions)], group))
    return Found(min(bp, hc), min(bp, hc), mixed, proves=True, message=f"BP {bp}, HC {hc}, hybrid {mixed} words at the busiest worker")


def balance_of_hashing(n: int, count: int, push: bool) -> Found:
    """zen.9 with 3 (push) and sqrt(6) (pull) for the constant: an exact union bound on the probability of more, beside 1/n.

    Each of ``count`` non-zeros falls on a server with probability 1/n; servers are n, and in a push so are the tensors.
    """
    eps = (3 if push else math.sqrt(6)) * math.sqrt(n * math.log(n) / count)
    first = math.floor((1 + eps) * count / n) + 1
    tail = sum(math.comb(count, j) * (n - 1) ** (count - j) for j in range(first, count + 1))
    most = (n * n if push else n) * Fraction(tail, n**count)
    return Found(float(most), float(most), 1 / n, proves=True, message=f"probability at most {float(most):.3g}, 1/n = {1 / n:.3g}")


def bitmap_words(M: int, n: int) -> Found:
    """zen.10: bits of all servers' bitmaps under hashing, in words; the worker's own partition is among them."""
    sizes = np.bincount(hash_owners(M, n), minlength=n)
    return _equal(Fraction(int(sizes.sum()), WORD), Fraction(M, WORD))


def zen_volume(kind: str, n: int, own: bool) -> Found:
    """zen.12: words received in a push of COO and a pull of values with bitmaps, the formula with or without the own bitmap."""
    M, count = 8 * n, 2 * n
    sets = supports(kind, n, M, count)
    per = []
    for owner in _turned(n, M):
        push, pull = parallel(sets, owner)
        values = [sum(pull) // COO - p // COO for p in pull]
        bits = [M - owner.count(i) for i in range(n)]
        per.append(_mean([push[i] + values[i] + Fraction(bits[i], WORD) for i in range(n)]))
    d, dn, share = Fraction(count, M), Fraction(len(union(sets)), M), Fraction(n - 1, n)
    said = share * (2 * d + dn) * M + (Fraction(M, WORD) if own else share * M / WORD)
    return _equal(_mean(per), said)


def bp_against_dense() -> Found:
    """zen.11: in symbols, from the formulas of zen.2 and zen.8."""
    import sympy as sp

    n, M, b, d, dn = sp.symbols("n M b d dn", positive=True)
    bp = (n - 1) / n * (dn / d + 1) * 2 * M * d / b
    lead = sp.simplify((bp - 2 * (n - 1) / n * M / b) / (2 * (n - 1) / n * M / b))
    exact = sp.expand(lead - (d + dn - 1)) == 0
    agree = all(
        (t.bp < t.dense) == (x + x * g(4) < 1)
        for x in (Fraction(i, 20) for i in range(1, 20))
        for g in (independent(x),)
        for t in (sync_seconds(Fraction(64), 4, x, Fraction(1)),)
    )
    return Found.count(2 - exact - agree, 2, proves=True)


def messages(n: int) -> Found:
    """zen.13: messages that a worker receives one after another: as a server and as a worker in BP, one a level in HC."""
    alpha = Fraction(1, 7)
    with_lat = sync_seconds(Fraction(64), n, Fraction(1, 8), Fraction(1), lat=alpha)
    without = sync_seconds(Fraction(64), n, Fraction(1, 8), Fraction(1))
    push_and_pull = sum(1 for i in range(n) if i != 0) + sum(1 for i in range(n) if i != 0)
    wrong = (with_lat.bp - without.bp != push_and_pull * alpha) + (
        with_lat.hc - without.hc != len(doubling([frozenset({i}) for i in range(n)])) * alpha
    )
    return Found.count(wrong, 2, proves=True)


def union_of_independent(k: int, M: int) -> Found:
    """zen.14: the mean density of the sum of k independent supports, by enumeration of all of them."""
    d, total = Fraction(1, 3), Fraction(0)
    for bits in itertools.product((0, 1), repeat=k * M):
        weight = d ** sum(bits) * (1 - d) ** (k * M - sum(bits))
        total += weight * sum(any(bits[j * M + x] for j in range(k)) for x in range(M))
    return _equal(total / M / d, independent(d)(k), proves=True)


CROSSOVERS = {4: (0.274, 3), 8: (0.058, 3), 16: (0.0131, 4), 32: (0.0031, 4), 64: (7.5e-4, 5), 128: (1.9e-4, 5)}


def crossover_table() -> Found:
    """zen.14: the largest distance of a printed d* from the computed one, in units of its last digit."""
    off = {n: abs(crossover(n) - d) * 10**digits for n, (d, digits) in CROSSOVERS.items()}
    worst = max(off, key=off.__getitem__)
    return Found(off[worst], off[worst], 0.5, proves=True, message=f"n={worst}: {crossover(worst):.6g}, printed {CROSSOVERS[worst][0]}")


def one_crossover(n: int) -> Found:
    """zen.14: BP - HC changes sign once on (0, 1), by counting the roots of a polynomial with rational coefficients."""
    import sympy as sp

    d = sp.Symbol("d")

    def g(k: int) -> Any:
        return sp.cancel((1 - (1 - d) ** k) / d)

    lead = sp.Poly(sp.Rational(n - 1, n) * (g(n) + 1) - sum(g(2**i) for i in range(log2(n))), d)
    roots = lead.count_roots(0, 1)
    signs = lead.eval(0) > 0, lead.eval(1) < 0
    return Found.count((roots != 1) + (not all(signs)), 2, proves=True)
