"""Top-k against dense all-reduce: iteration times and where top-k pays, with the checks of these statements."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators.streams import positive, ring_all_gather, ring_all_reduce, whole
from verify_rates.theory.evidence import Found


class Times(NamedTuple):
    dense: Any  # seconds of an iteration with a dense ring all-reduce
    topk: Any  # seconds with a selection and a ring all-gather of sparse messages


def iteration_seconds(
    d: int, k: int, n: int, bw: Any, *, T_comp: Any = 0, T_select: Any = 0, lat: Any = 0, value_bytes: int = 4, index_bytes: int = 4
) -> Times:
    """Seconds of an iteration (topk_empirical.3).

    Parameters
    ----------
    d, k, n : entries of the gradient, entries kept, workers.
    bw : bytes per second of a link, one direction.
    T_comp, T_select, lat : seconds of forward and backward pass, of the selection, of a message.
    value_bytes, index_bytes : bytes of a value and of an index.

    Errors: UsageError for k > d, numbers that are negative or not finite.

    >>> iteration_seconds(1000, 10, 4, 1000.0, T_select=1)
    Times(dense=6.0, topk=1.24)
    """
    _check(d, k, n, bw, T_comp, T_select, lat)
    dense = T_comp + 2 * (n - 1) * lat + _bytes_dense(d, n, value_bytes) / bw
    return Times(dense, T_comp + T_select + (n - 1) * lat + (n - 1) * k * (value_bytes + index_bytes) / bw)


def _bytes_dense(d: Any, n: Any, value_bytes: Any) -> Any:
    return 2 * (n - 1) * d * value_bytes / n if not isinstance(d, int) else Fraction(2 * (n - 1) * d * value_bytes, n)


def _check(d: Any, k: Any, n: Any, bw: Any, *seconds: Any) -> None:
    if whole(k, "k") > whole(d, "d"):
        raise UsageError(f"k must be at most d = {d}, not {k}.")
    whole(n, "n")
    positive(bw, "bw")
    for s in seconds:
        positive(s, "a time", zero=True)


def saves_bytes(d: int, k: int, n: int, value_bytes: int = 4, index_bytes: int = 4) -> bool:
    """Whether top-k sends fewer bytes: ``k/d < 2*value_bytes/(n*(value_bytes + index_bytes))`` for n >= 2 (topk_empirical.4).

    >>> saves_bytes(1000, 100, 8), saves_bytes(1000, 125, 8)
    (True, False)
    """
    _check(d, k, n, 1)
    return n > 1 and k * n * (value_bytes + index_bytes) < 2 * value_bytes * d


def break_even_bw(d: int, k: int, n: int, T_select: Any, *, lat: Any = 0, value_bytes: int = 4, index_bytes: int = 4) -> Any:
    """The bandwidth in bytes/s below which top-k is faster; inf where it always is, 0 where it never is (topk_empirical.6).

    >>> break_even_bw(1000, 10, 4, 1.0)
    5760.0
    """
    _check(d, k, n, 1, T_select, lat)
    saved = _bytes_dense(d, n, value_bytes) - (n - 1) * k * (value_bytes + index_bytes)
    slower = T_select - (n - 1) * lat
    if slower > 0:
        return max(saved / slower, 0)
    # Selecting costs no more than the latency that is saved: top-k wins on slow links unless it sends more bytes.
    if saved >= 0 and (saved > 0 or slower < 0):
        return math.inf
    return 0


def faster_above_bw(d: int, k: int, n: int, T_select: Any, *, lat: Any = 0, value_bytes: int = 4, index_bytes: int = 4) -> Any:
    """The bandwidth in bytes/s ABOVE which top-k is faster although it sends more, since it saves latency; inf where there is none.

    >>> faster_above_bw(100, 50, 4, 0, lat=1.0)
    200.0
    """
    _check(d, k, n, 1, T_select, lat)
    saved = _bytes_dense(d, n, value_bytes) - (n - 1) * k * (value_bytes + index_bytes)
    slower = T_select - (n - 1) * lat
    return saved / slower if saved < 0 and slower < 0 else math.inf


# --- checks ---------------------------------------------------------------------------------------------------------------


def contraction(d: int, k: int, levels: int) -> Found:
    """topk_empirical.1: the largest ||x-C(x)||^2/||x||^2 of the catalogue's top-k over all small whole vectors, beside 1 - k/d."""
    from verify_rates.solvers.compressors import get_compressor

    x = np.array([v for v in itertools.product(range(-levels, levels + 1), repeat=d) if any(v)], dtype=float)
    kept = get_compressor(f"topk(k={k})").rows(x, [], np)
    lost, size = ((a**2).sum(axis=1).astype(int) for a in (x - kept, x))
    worst = max(Fraction(int(a), int(b)) for a, b in zip(lost, size, strict=True))
    return Found(float(worst), float(worst), float(1 - Fraction(k, d)), "==", proves=True, message=f"{worst} over {len(x)} vectors")


def random_k(d: int, k: int) -> Found:
    """topk_empirical.1, second half, and the fair reading of "random-k fails": over all subsets E||x-C(x)||^2 and E C(x), unscaled."""
    x = [Fraction(i * i - 3, 2) for i in range(d)]
    subsets = list(itertools.combinations(range(d), k))
    lost = Fraction(sum(sum(x[i] ** 2 for i in range(d) if i not in s) for s in subsets), len(subsets))
    mean = [Fraction(sum(i in s for s in subsets), len(subsets)) * x[i] for i in range(d)]
    share = Fraction(k, d)
    wrong = (lost != (1 - share) * sum(v**2 for v in x)) + (mean != [share * v for v in x])
    return Found.count(wrong, 2, proves=True)


def union_growth(d: int, k: int, n: int) -> Found:
    """topk_empirical.2: the sizes of the union over all supports are within [k, Min(n*k, d)], and both ends occur."""
    sizes = {len(frozenset().union(*s)) for s in itertools.product(map(frozenset, itertools.combinations(range(d), k)), repeat=n)}
    return Found.count((min(sizes) != k) + (max(sizes) != min(n * k, d)), 2, proves=True)


def times_of_rings(d: int, k: int, n: int) -> Found:
    """topk_empirical.3: both times are those of the rings, played message by message."""
    bw, lat, comp, select = Fraction(3), Fraction(1, 7), Fraction(2), Fraction(5)
    said = iteration_seconds(d, k, n, bw, T_comp=comp, T_select=select, lat=lat)
    dense = comp + ring_all_reduce(n, Fraction(4 * d), 1 / bw, lat).seconds
    topk = comp + select + ring_all_gather(n, Fraction(8 * k), 1 / bw, lat).seconds
    return Found.count((said.dense != dense) + (said.topk != topk), 2)


def bytes_rule(n: int, value_bytes: int, index_bytes: int) -> Found:
    """topk_empirical.4: the rule as printed against the bytes that the rings send, over all d <= 24 and k."""
    wrong, cases = 0, 0
    for d in range(1, 25):
        for k in range(1, d + 1):
            dense = sum(ring_all_reduce(n, Fraction(d * value_bytes), 1).sent)
            sparse = sum(ring_all_gather(n, Fraction(k * (value_bytes + index_bytes)), 1).sent)
            cases += 1
            wrong += (sparse < dense) != (Fraction(k, d) < Fraction(2 * value_bytes, n * (value_bytes + index_bytes)))
    return Found.count(wrong, cases, proves=True)


def bytes_at(d: int, k: int, n: int) -> Found:
    """topk_empirical.4 on one instance that meets the condition with 4-byte values and indices: bytes sent sparse, said to be fewer."""
    sparse, dense = ring_all_gather(n, Fraction(8 * k), 1).sent[0], ring_all_reduce(n, Fraction(4 * d), 1).sent[0]
    if n * k >= d:
        raise UsageError(f"k/d must be below 1/n, not {k}/{d}.")
    fewer = int(sparse < dense)
    return Found(float(fewer), float(fewer), 1.0, ">=", proves=True, message=f"sparse {sparse}, dense {dense} bytes per worker")


def time_rule() -> Found:
    """topk_empirical.5 in symbols: T_dense - T_topk is the difference of the two sides of the rule."""
    import sympy as sp

    d, k, n, beta, alpha, select, comp, bv, bi = sp.symbols("d k n beta alpha T_sel T_fb b_v b_i", positive=True)
    dense = comp + 2 * (n - 1) * alpha + _bytes_dense(d, n, bv) / beta
    topk = comp + select + (n - 1) * alpha + (n - 1) * k * (bv + bi) / beta
    rule = (n - 1) * alpha + (n - 1) / beta * (2 * d * bv / n - k * (bv + bi)) - select
    return Found.count(int(sp.simplify(dense - topk - rule) != 0), 1, proves=True)


def break_even_rule(n: int) -> Found:
    """topk_empirical.6: top-k is faster iff bw is below the break-even, for all small instances with T_select > (n-1)*lat.

    Outside that condition the answers of :func:`break_even_bw` and :func:`faster_above_bw` are compared with the times as well.
    """
    wrong, cases = 0, 0
    for d, k, select, lat in itertools.product((1, 2, 5, 12), (1, 2, 5), (0, 1, 6), (0, 1, 3)):
        if k > d:
            continue
        for bw in (1, 2, 3, 7, 20, 100):
            times = iteration_seconds(d, k, n, Fraction(bw), T_select=Fraction(select), lat=Fraction(lat))
            below = break_even_bw(d, k, n, Fraction(select), lat=Fraction(lat))
            above = faster_above_bw(d, k, n, Fraction(select), lat=Fraction(lat))
            if select > (n - 1) * lat:
                printed = Fraction(n - 1) * (Fraction(8 * d, n) - 8 * k) / (select - (n - 1) * lat)
                wrong += (times.topk < times.dense) != (bw < printed)
            cases += 1
            wrong += (times.topk < times.dense) != (bw < below or bw > above)
    return Found.count(wrong, cases, proves=True)
