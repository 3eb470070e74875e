"""Poplar: batch sizes for unequal GPUs under ZeRO, exact, and the checks of the statements.

A curve of a GPU is the list of seconds of one micro-step with 1, 2, ... samples; its length is the largest micro-batch that fits.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators.streams import positive, ring_all_gather, whole
from verify_rates.theory.evidence import Found

Curve = Sequence[Any]


class Plan(NamedTuple):
    """Micro-batches ``batches`` per GPU, ``steps`` micro-steps an iteration, and its seconds."""

    seconds: Any
    steps: int
    batches: tuple[Any, ...]


def sweep(curves: Sequence[Curve], gbs: int, per_step: Any = 0) -> Plan:
    """The best uniform plan of ZeRO-2/3, where all GPUs synchronise after every micro-step (poplar.1).

    Mathematics: for every budget among the values of all curves each GPU takes the largest batch within it;
    ``steps*(budget + per_step)`` is least over the budgets.  Guarantee: optimal among plans whose micro-steps are all alike, for any
    curves, monotone or not.

    Parameters
    ----------
    curves : seconds of a micro-step of every GPU with 1, 2, ... samples.
    gbs : samples of an iteration.
    per_step : seconds of the collective after each micro-step.

    Errors: UsageError for empty curves, times that are not positive, gbs < 1.

    >>> sweep([[1, 2, 3], [2, 4]], 4)
    Plan(seconds=3, steps=1, batches=(3, 1))
    """
    _check(curves, gbs, per_step)
    best: Plan | None = None
    for budget in sorted({t for curve in curves for t in curve}):
        batches = tuple(max((b for b, t in enumerate(curve, 1) if t <= budget), default=0) for curve in curves)
        plan = _plan(curves, gbs, per_step, batches)
        if best is None or plan.seconds < best.seconds:
            best = plan
    assert best is not None
    return best


def _plan(curves: Sequence[Curve], gbs: int, per_step: Any, batches: tuple[int, ...]) -> Plan:
    steps = -(-gbs // sum(batches))
    return Plan(steps * (max(c[b - 1] for c, b in zip(curves, batches, strict=True) if b) + per_step), steps, batches)


def _check(curves: Sequence[Curve], gbs: Any, per_step: Any) -> None:
    whole(gbs, "gbs")
    positive(per_step, "per_step", zero=True)
    if not curves or not all(len(c) for c in curves):
        raise UsageError("every GPU needs a curve with at least one time.")
    for t in itertools.chain(*curves):
        positive(t, "a time")


def curve(samples: Mapping[int, Any], most: int | None = None) -> list[float]:
    """A GPU's curve from measured (batch, seconds), by monotone cubic interpolation; a cubic spline may fall between rising samples.

    Parameters
    ----------
    most : the largest micro-batch that fits; by default the largest measured one.  Nothing is extrapolated.

    >>> [round(t, 3) for t in curve({1: 1.0, 3: 2.0, 4: 4.0})]
    [1.0, 1.286, 2.0, 4.0]
    """
    from scipy.interpolate import PchipInterpolator

    at = sorted(samples)
    last = at[-1] if most is None and at else most
    if len(at) < 2 or at[0] != 1 or last is None or not 1 <= last <= at[-1]:
        raise UsageError("a curve needs at least two samples, the first at batch 1 and the last at or beyond the largest batch.")
    for b in at:
        positive(samples[b], "a time")
    return [float(t) for t in PchipInterpolator(at, [float(samples[b]) for b in at])(range(1, last + 1))]


def independent(curves: Sequence[Curve], gbs: int, per_iteration: Any = 0) -> Plan:
    """The best plan of ZeRO-0/1, where each GPU accumulates by itself: samples per GPU, exact by dynamic programming.

    >>> independent([[1, 1.5], [2, 3]], 6)
    Plan(seconds=3.0, steps=1, batches=(4, 2))
    """
    _check(curves, gbs, per_iteration)
    costs = [_alone(curve, gbs) for curve in curves]
    best: dict[int, tuple[Any, tuple[int, ...]]] = {0: (0, ())}
    for cost in costs:
        joined: dict[int, tuple[Any, tuple[int, ...]]] = {}
        for done, (seconds, batches) in best.items():
            for more in range(gbs - done + 1):
                made = (max(seconds, cost[more]), (*batches, more))
                if done + more not in joined or made[0] < joined[done + more][0]:
                    joined[done + more] = made
        best = joined
    seconds, batches = best[gbs]
    return Plan(seconds + per_iteration, 1, batches)


def _alone(curve: Curve, most: int) -> list[Any]:
    """Least seconds of 0, 1, ... samples on one GPU, split into micro-batches."""
    cost: list[Any] = [0]
    for B in range(1, most + 1):
        cost.append(min(cost[B - b] + t for b, t in enumerate(curve, 1) if b <= B))
    return cost


def proportional(speeds: Sequence[Any], gbs: Any) -> Plan:
    """Samples in proportion to speed, real numbers (poplar.2): optimal where times are linear and nothing runs out of memory.

    >>> proportional([Fraction(1), Fraction(3)], 8)
    Plan(seconds=Fraction(2, 1), steps=1, batches=(Fraction(2, 1), Fraction(6, 1)))
    """
    for v in speeds:
        positive(v, "a speed")
    total = sum(speeds)
    return Plan(gbs / total, 1, tuple(gbs * v / total for v in speeds))


def gain(speeds: Sequence[Any]) -> Any:
    """Time of equal over that of proportional shares: ``sum(v)/(n*min(v))``.

    >>> gain([Fraction(1), Fraction(3)])
    Fraction(2, 1)
    """
    return sum(speeds) / (len(speeds) * min(speeds))


def equal_finish(speeds: Sequence[Any], starts: Sequence[Any], gbs: Any) -> Plan:
    """Real shares where GPU i takes ``a_i + b/v_i`` seconds if it takes part at all (poplar.3.repaired).

    Mathematics: finishing times of those that take part are equal to lam, ``sum v_i*max(0, lam - a_i) = gbs``; a GPU whose start-up
    a_i is at least lam gets nothing.

    >>> equal_finish([1, 1], [Fraction(0), Fraction(3)], 1)
    Plan(seconds=Fraction(1, 1), steps=1, batches=(Fraction(1, 1), 0))
    """
    if len(speeds) != len(starts):
        raise UsageError(f"speeds and starts must have the same length, not {len(speeds)} and {len(starts)}.")
    for v, a in zip(speeds, starts, strict=True):
        positive(v, "a speed")
        positive(a, "a start", zero=True)
    order = sorted(range(len(speeds)), key=lambda i: starts[i])
    for count in range(len(order), 0, -1):
        chosen = order[:count]
        level = printed_level([speeds[i] for i in chosen], [starts[i] for i in chosen], positive(gbs, "gbs"))
        if level > starts[chosen[-1]] or count == 1:
            break
    return Plan(level, 1, tuple(speeds[i] * (level - starts[i]) if i in chosen else 0 for i in range(len(speeds))))


def printed_level(speeds: Sequence[Any], starts: Sequence[Any], gbs: Any) -> Any:
    """lam of poplar.3 as printed, all GPUs taking part."""
    return (gbs + sum(v * a for v, a in zip(speeds, starts, strict=True))) / sum(speeds)


def memory_bytes(parameters: Any, stage: int, n: int) -> Any:
    """Bytes per GPU of parameters, gradients and Adam's states in mixed precision (poplar.5).

    >>> memory_bytes(1000, 0, 8), memory_bytes(1000, 3, 8)
    (16000, 2000.0)
    """
    kept = {"parameters": 2, "gradients": 2, "states": 12}  # fp16, fp16, fp32 copy with two moments
    shared = {0: (), 1: ("states",), 2: ("states", "gradients"), 3: tuple(kept)}
    if stage not in shared:
        raise UsageError(f"the ZeRO stage is 0, 1, 2 or 3, not {stage!r}.")
    whole(n, "n")
    return sum(parameters * b / n if what in shared[stage] else parameters * b for what, b in kept.items())


# --- checks ---------------------------------------------------------------------------------------------------------------


def _curves(n: int, longest: int, levels: int) -> Iterator[tuple[Curve, ...]]:
    """All n curves of up to ``longest`` entries with times 1..levels, in any order (also falling ones)."""
    each = [c for size in range(1, longest + 1) for c in itertools.product(range(1, levels + 1), repeat=size)]
    yield from itertools.product(each, repeat=n)


def sweep_is_optimal(n: int, longest: int, levels: int) -> Found:
    """poplar.1: against all uniform plans, for all small curves, batches and collective times."""
    wrong, cases = 0, 0
    for curves in _curves(n, longest, levels):
        plans = [b for b in itertools.product(*(range(len(c) + 1) for c in curves)) if any(b)]
        for gbs, per_step in itertools.product((1, 3, 4), (0, 2)):
            cases += 1
            wrong += sweep(curves, gbs, per_step).seconds != min(_plan(curves, gbs, per_step, b).seconds for b in plans)
    return Found.count(wrong, cases, proves=True)


def uneven_steps(curves: Sequence[Curve], gbs: int, per_step: int) -> Found:
    """poplar.1.uneven: the sweep beside the best plan whose micro-steps may differ, by dynamic programming over samples."""
    choices: dict[int, Any] = {}
    for batches in itertools.product(*(range(len(c) + 1) for c in curves)):
        if any(batches):
            seconds = max(c[b - 1] for c, b in zip(curves, batches, strict=True) if b) + per_step
            choices[sum(batches)] = min(seconds, choices.get(sum(batches), seconds))
    best: list[Any] = [0]
    for done in range(1, gbs + 1):
        best.append(min(best[max(0, done - b)] + seconds for b, seconds in choices.items()))
    found = sweep(curves, gbs, per_step)
    return Found(
        found.seconds, found.seconds, best[gbs], proves=True, message=f"{found.seconds} s with equal micro-steps, {best[gbs]} s without"
    )


def steps_fall(n: int, longest: int, levels: int) -> Found:
    """poplar.1.steps: a slower collective never makes the sweep take more micro-steps."""
    wrong, cases = 0, 0
    for curves in _curves(n, longest, levels):
        for gbs in (3, 5):
            steps = [sweep(curves, gbs, c).steps for c in (0, 1, 3, 10)]
            cases += 1
            wrong += steps != sorted(steps, reverse=True)
    return Found.count(wrong, cases, proves=True)


def proportional_is_optimal(n: int, levels: int, pieces: int) -> Found:
    """poplar.2: against all splits into ``pieces`` parts; equal shares take the gain longer."""
    wrong, cases = 0, 0
    for speeds in itertools.product(range(1, levels + 1), repeat=n):
        v = [Fraction(s) for s in speeds]
        plan, gbs = proportional(v, Fraction(pieces)), Fraction(pieces)
        splits = _splits(n, pieces)
        wrong += any(max(B / s for B, s in zip(split, v, strict=True)) < plan.seconds for split in splits)
        wrong += max(B / s for B, s in zip(plan.batches, v, strict=True)) != plan.seconds or sum(plan.batches) != gbs
        wrong += max(gbs / n / s for s in v) != plan.seconds * gain(v) or gain(v) != sum(v) / (n * min(v))
        cases += 3
    return Found.count(wrong, cases, proves=True)


def _splits(n: int, pieces: int) -> list[tuple[int, ...]]:
    return [s for s in itertools.product(range(pieces + 1), repeat=n) if sum(s) == pieces]


def _finish(split: Sequence[Any], speeds: Sequence[Any], starts: Sequence[Any]) -> Any:
    return max(a + B / v for B, v, a in zip(split, speeds, starts, strict=True) if B)


def printed_affine(speeds: Sequence[int], starts: Sequence[int], gbs: int) -> Found:
    """poplar.3 as printed, on one instance: its finishing time beside the best of all whole splits."""
    level = printed_level(speeds, [Fraction(a) for a in starts], gbs)
    shares = [v * (level - a) for v, a in zip(speeds, starts, strict=True)]
    best = min(_finish(s, [Fraction(v) for v in speeds], starts) for s in _splits(len(speeds), gbs))
    shown = ", ".join(map(str, shares))
    return Found(float(level), float(level), float(best), proves=True, message=f"shares {shown} finish at {level}, a split at {best}")


def affine_is_optimal(n: int, levels: int, pieces: int) -> Found:
    """poplar.3.repaired: against all splits; shares are not negative, sum to the batch and finish together; starts may idle a GPU."""
    wrong, cases = 0, 0
    for speeds, starts in itertools.product(itertools.product(range(1, levels + 1), repeat=n), itertools.product((0, 1, 4), repeat=n)):
        v, a = [Fraction(s) for s in speeds], [Fraction(s) for s in starts]
        plan = equal_finish(v, a, Fraction(pieces))
        cases += 2
        wrong += min(plan.batches) < 0 or sum(plan.batches) != pieces or _finish(plan.batches, v, a) != plan.seconds
        wrong += any(_finish(split, v, a) < plan.seconds for split in _splits(n, pieces))
    return Found.count(wrong, cases, proves=True)


def proportional_is_not(speeds: Sequence[int], starts: Sequence[int], gbs: int) -> Found:
    """poplar.3, first sentence: the proportional rule's finishing time exceeds the best one on this instance."""
    v, a = [Fraction(s) for s in speeds], [Fraction(s) for s in starts]
    rule, best = _finish(proportional(v, Fraction(gbs)).batches, v, a), equal_finish(v, a, Fraction(gbs)).seconds
    return Found(float(rule), float(rule), float(best), proves=True, message=f"proportional {rule} s, equal finishing {best} s")


def volumes(stage: int, n: int) -> Found:
    """poplar.4: numbers that leave a GPU in a step of one micro-batch, by rings: (n-1)/n of 2 or 3 per parameter."""
    psi = Fraction(12)
    part = ring_all_gather(n, psi / n, 1).sent[0]  # a reduce-scatter sends as much
    moved = {0: 2 * part, 1: 2 * part, 2: 2 * part, 3: 3 * part}[stage]  # reduce-scatter and gather(s)
    said = (3 if stage == 3 else 2) * psi
    return Found(float(moved), float(moved), float(said), proves=True, message=f"{moved} of {said} for 12 parameters")


MEMORY = {0: "16*a", 1: "4*a + 12*a/n", 2: "2*a + 14*a/n", 3: "16*a/n"}  # poplar.5, a parameters


def memory(stage: int, n: int) -> Found:
    """poplar.5: the printed sums against what is kept and what is shared."""
    from verify_rates.theory.symbols import exact

    made = memory_bytes(Fraction(24), stage, n)
    return Found.count(int(made != exact(MEMORY[stage], {"a": 24, "n": n})), 1, proves=True)
