"""MergeComp: how many groups of tensors to merge, encode and send, and where to cut; with the checks of its statements.

A compute stream works through the backward pass, and encodes each group right after the last of its tensors; a link sends the
groups first in, first out.  Costs of a group of x bytes are ``encode(x)`` and ``transfer(x)`` seconds (decoding counts to either).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators.streams import affine, fifo, positive, same_maximum, whole
from verify_rates.theory.calculators.streams import cuts as all_cuts
from verify_rates.theory.evidence import Found

Cost = Callable[[Any], Any]

# mergecomp.3, .4: the published and derived forms, over the names that _closed() gives them.
TWO_GROUPS = "Max(A + 2*Bh + gh*X + Bg + gg*(X - S), T + Bh + gh*S + 2*Bg + gg*X)"
ONE_GROUP = "A + Bh + gh*X + Bg + gg*X"


class Plan(NamedTuple):
    """Groups end after the tensors ``cuts``; ``seconds`` a step; ``evaluated`` cuts were timed to find them."""

    seconds: Any
    cuts: tuple[int, ...]
    evaluated: int


def step_seconds(times: Sequence[Any], sizes: Sequence[Any], cuts: Sequence[int], encode: Cost, transfer: Cost) -> Any:
    """Seconds of one step when groups end after the tensors ``cuts``, by playing both streams.

    Parameters
    ----------
    times : (N,) backward seconds of the tensors, in the order of the backward pass.
    sizes : (N,) bytes.
    cuts : increasing positions in 1..N-1; none makes one group.
    encode, transfer : seconds for a group of so many bytes.

    Errors: UsageError for lengths that differ, negative numbers, cuts outside 1..N-1 or out of order.

    >>> step_seconds([1, 1], [2, 2], [1], affine(0, 1), affine(0, 1))
    8
    """
    _check(times, sizes, cuts)
    return _streams(times, sizes, cuts, encode, transfer)[0]


def _check(times: Sequence[Any], sizes: Sequence[Any], cuts: Sequence[int] = ()) -> None:
    if len(times) != len(sizes) or not times:
        raise UsageError(f"times and sizes must have the same length of at least 1, not {len(times)} and {len(sizes)}.")
    for values, name in ((times, "a backward time"), (sizes, "a size")):
        for v in values:
            positive(v, name, zero=True)
    if list(cuts) != sorted(set(cuts)) or any(not 1 <= c < len(times) for c in cuts):
        raise UsageError(f"cuts must increase within 1..{len(times) - 1}, not {list(cuts)}.")


def _streams(times: Any, sizes: Any, cuts: Any, encode: Cost, transfer: Cost, join: Any = max) -> tuple[Any, list[tuple[Any, Any]]]:
    """(end, transfers as (ready, duration)); works on symbols with ``join=sympy.Max``."""
    now: Any = 0
    jobs = []
    ends = [0, *cuts, len(times)]
    for a, b in itertools.pairwise(ends):
        size = sum(sizes[a:b])
        now = now + sum(times[a:b]) + encode(size)
        jobs.append((now, transfer(size)))
    return fifo(jobs, join)[-1], jobs


def best_groups(times: Sequence[Any], sizes: Sequence[Any], groups: int, encode: Cost, transfer: Cost) -> Plan:
    """The best cuts into so many groups, by trying all of them; ties to the first.

    >>> best_groups([1, 1, 1], [1, 1, 1], 2, affine(0, 0), affine(0, 1))
    Plan(seconds=5, cuts=(1,), evaluated=2)
    """
    _check(times, sizes)
    if not 1 <= groups <= len(times):
        raise UsageError(f"groups must be in 1..{len(times)}, not {groups!r}.")
    tried = [(_streams(times, sizes, c, encode, transfer)[0], c) for c in all_cuts(len(times), groups)]
    seconds, chosen = min(tried, key=lambda p: p[0])
    return Plan(seconds, chosen, len(tried))


def binary_search(times: Sequence[Any], sizes: Sequence[Any], encode: Cost, transfer: Cost, before: tuple[int, ...] = ()) -> Plan:
    """The released search of the last cut: halve the range by comparing a cut with the next one; the best cut that was timed.

    Guarantee: optimal for affine costs and tensors of positive size (mergecomp.3.search); not with empty
    tensors or other costs (mergecomp.3.empty, mergecomp.3.concave).
    """
    _check(times, sizes, before)
    low, high = (before[-1] if before else 0) + 1, len(times) - 1
    if low > high:
        raise UsageError("there is no cut left to search; give at least two tensors after the last fixed cut.")
    timed: dict[int, Any] = {}

    def at(j: int) -> Any:
        if j not in timed:
            timed[j] = _streams(times, sizes, (*before, j), encode, transfer)[0]
        return timed[j]

    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if at(middle) > at(middle + 1) else (low, middle)
    at(low)
    chosen = min(sorted(timed), key=timed.__getitem__)
    return Plan(timed[chosen], (*before, chosen), len(timed))


def y_search(
    times: Sequence[Any], sizes: Sequence[Any], encode: Cost, transfer: Cost, most: int | None = None, least_gain: Any = 0
) -> Plan:
    """Algorithm 2: more groups as long as each one more saves at least ``least_gain`` seconds; at most ``most`` groups.

    All cuts but the last are tried, the last is found by :func:`binary_search`: ``O(N**(y-2)*log N)`` timings.
    Differs from an optimum where a plateau comes before a gain (mergecomp.3.stop).

    >>> y_search([1, 1, 1], [1, 1, 1], affine(1, 0), affine(0, 1)).cuts
    (2,)
    """
    _check(times, sizes)
    last = min(len(times), whole(len(times) if most is None else most, "most"))
    best = Plan(_streams(times, sizes, (), encode, transfer)[0], (), 1)
    timed = 1
    for y in range(2, last + 1):
        found = [binary_search(times, sizes, encode, transfer, c) for c in itertools.combinations(range(1, len(times) - 1), y - 2)]
        timed += sum(p.evaluated for p in found)
        plan = min(found, key=lambda p: p.seconds)
        if plan.seconds >= best.seconds or best.seconds - plan.seconds < least_gain:
            break
        best = plan
    return best._replace(evaluated=timed)


def harmful(encode_seconds: Any, compressed_seconds: Any, dense_seconds: Any) -> bool:
    """Whether compression lengthens a step of ONE group (mergecomp.5.repaired): encoding plus sending less takes longer."""
    return encode_seconds + compressed_seconds > dense_seconds


# --- checks ---------------------------------------------------------------------------------------------------------------


def _symbols(count: int) -> tuple[Any, Any, Any]:
    import sympy as sp

    t, s = (sp.symbols(f"{name}1:{count + 1}", nonnegative=True) for name in "ts")
    return t, s, sp.symbols("Bh gh Bg gg", nonnegative=True)


def _closed(text: str, t: Any, s: Any, costs: Any, j: int) -> Any:
    import sympy as sp

    names = dict(zip(("Bh", "gh", "Bg", "gg"), costs, strict=True))
    local = {**names, "A": sum(t), "X": sum(s), "T": sum(t[:j]), "S": sum(s[:j]), "Max": sp.Max}
    return sp.expand(sp.sympify(text, locals=local)) if "Max" not in text else sp.sympify(text, locals=local)


def two_groups_form(count: int) -> Found:
    """mergecomp.3, first half: the closed form of two groups is the makespan of both streams, for every cut, in symbols."""
    import sympy as sp

    t, s, costs = _symbols(count)
    Bh, gh, Bg, gg = costs
    wrong = 0
    for j in range(1, count):
        end, _ = _streams(t, s, (j,), affine(Bh, gh), affine(Bg, gg), sp.Max)
        wrong += not same_maximum(end, _closed(TWO_GROUPS, t, s, costs, j))
    return Found.count(wrong, count - 1, proves=True)


def one_group_form(count: int) -> Found:
    """mergecomp.4, in symbols."""
    import sympy as sp

    t, s, costs = _symbols(count)
    Bh, gh, Bg, gg = costs
    end, _ = _streams(t, s, (), affine(Bh, gh), affine(Bg, gg), sp.Max)
    return Found.count(int(sp.expand(end - _closed(ONE_GROUP, t, s, costs, 0)) != 0), 1, proves=True)


def _affine_costs(levels: Sequence[int]) -> Iterator[tuple[Cost, Cost]]:
    for Bh, gh, Bg, gg in itertools.product(levels, repeat=4):
        yield affine(Bh, gh), affine(Bg, gg)


def objective(count: int) -> Found:
    """mergecomp.1: compute, encoding and sending less what overlaps is the makespan, over all groupings; there are 2^(N-1)."""
    wrong, cases = 0, 0
    for t in itertools.product((0, 1, 3), repeat=count):
        for s in itertools.product((1, 2), repeat=count):
            for encode, transfer in _affine_costs((0, 1)):
                groupings = [c for y in range(1, count + 1) for c in all_cuts(count, y)]
                wrong += len(groupings) != 2 ** (count - 1)
                for c in groupings:
                    end, jobs = _streams(t, s, c, encode, transfer)
                    computing = jobs[-1][0]
                    ends = fifo(jobs)
                    overlap = sum(max(0, min(e, computing) - (e - duration)) for e, (_, duration) in zip(ends, jobs, strict=True))
                    parts = [sum(s[a:b]) for a, b in itertools.pairwise([0, *c, count])]
                    cases += 1
                    wrong += end != sum(t) + sum(map(encode, parts)) + sum(map(transfer, parts)) - overlap
    return Found.count(wrong, cases, proves=True)


def search_is_exact(count: int) -> Found:
    """mergecomp.3, second half: F is unimodal, and the binary search finds its least value, for all small instances."""
    wrong, cases = 0, 0
    for t in itertools.product((0, 1, 2), repeat=count):
        for s in itertools.product((1, 2), repeat=count):
            for encode, transfer in _affine_costs((0, 1)):
                F = [_streams(t, s, (j,), encode, transfer)[0] for j in range(1, count)]
                falls = F.index(min(F))
                up = all(a <= b for a, b in itertools.pairwise(F[falls:]))
                down = all(a >= b for a, b in itertools.pairwise(F[: falls + 1]))
                cases += 1
                wrong += not (up and down and binary_search(t, s, encode, transfer).seconds == min(F))
    return Found.count(wrong, cases, proves=True)


# floor(2*sqrt(x)) seconds for x bytes: concave but for rounding, so that all stays in whole numbers.
CONCAVE = (0, 2, 3, 3, 4, 4, 4, 5, 5, 6, 6)


def search_gap(times: Sequence[int], sizes: Sequence[int], encode: Sequence[int] | str, transfer: Sequence[int]) -> Found:
    """mergecomp.3.empty, .concave: seconds at the cut that the binary search finds, beside the best cut."""
    costs = (CONCAVE.__getitem__ if encode == "concave" else affine(*encode)), affine(*transfer)
    found, best = binary_search(times, sizes, *costs), best_groups(times, sizes, 2, *costs)
    return Found(found.seconds, found.seconds, best.seconds, proves=True, message=f"cut {found.cuts} found, {best.cuts} is best")


def stop_rule(times: Sequence[int], sizes: Sequence[int], encode: Sequence[int], transfer: Sequence[int]) -> Found:
    """mergecomp.3.stop: seconds where Algorithm 2 stops (no smallest gain, no most groups), beside the best of all groupings."""
    h, g = affine(*encode), affine(*transfer)
    stopped = y_search(times, sizes, h, g).seconds
    per_y = [best_groups(times, sizes, y, h, g).seconds for y in range(1, len(times) + 1)]
    return Found(stopped, stopped, min(per_y), proves=True, message=f"best seconds of 1, 2, ... groups: {per_y}")


def one_or_two(count: int) -> Found:
    """mergecomp.4.one: one group beats every two iff start-up costs exceed what the best cut hides, over all small instances."""
    wrong, cases = 0, 0
    for t in itertools.product((0, 2), repeat=count):
        for s in itertools.product((1, 2), repeat=count):
            for Bh, gh, Bg, gg in itertools.product((0, 1, 3), repeat=4):
                one = _streams(t, s, (), affine(Bh, gh), affine(Bg, gg))[0]
                two = best_groups(t, s, 2, affine(Bh, gh), affine(Bg, gg)).seconds
                # A cut hides min(sending the first group, computing the second) and costs Bh + Bg.
                saves = []
                for j in range(1, count):
                    first, rest = sum(s[:j]), sum(s[j:])
                    saves.append(min(Bg + gg * first, sum(t[j:]) + Bh + gh * rest) - Bh - Bg)
                cases += 1
                wrong += (one < two) != (max(saves) < 0)
    return Found.count(wrong, cases, proves=True)


def harm_by_totals(times: Sequence[int], sizes: Sequence[int], encode: Sequence[int], sent: Sequence[int], dense: Sequence[int]) -> Found:
    """mergecomp.5 as printed, on one instance that meets its condition: compressed seconds, said to be above the dense ones."""
    groups = range(1, len(times))
    total = sum(affine(*encode)(x) + affine(*sent)(x) - affine(*dense)(x) for x in sizes)
    if total <= 0:
        raise UsageError("the instance does not meet the condition: encoding and sending compressed must exceed sending dense.")
    compressed = _streams(times, sizes, groups, affine(*encode), affine(*sent))[0]
    plain = _streams(times, sizes, groups, lambda x: 0, affine(*dense))[0]
    return Found(compressed, compressed, plain, ">=", proves=True, message=f"{total} s more in total, yet {compressed} s, not {plain} s")


def harm_of_one_group(levels: int) -> Found:
    """mergecomp.5.repaired: with one group the condition is exact; with any groups encoding beyond the exposed dense time harms."""
    wrong, cases = 0, 0
    values = range(levels)
    for t1, t2, h1, h2, c1, c2, g1, g2 in itertools.product(values, repeat=8):
        cases += 1
        alone, plain = (_streams((t1,), (1,), (), affine(v, 0), affine(w, 0))[0] for v, w in ((h1, c1), (0, g1)))
        wrong += (alone > plain) != harmful(h1, c1, g1)
        both = fifo([(t1 + h1, c1), (t1 + h1 + t2 + h2, c2)])[-1]
        dense = fifo([(t1, g1), (t1 + t2, g2)])[-1]
        wrong += h1 + h2 > dense - (t1 + t2) and both <= dense
    return Found.count(wrong, cases, proves=True)
