"""Curves of papers about costs and schedules: a printed formula beside what a simulation gives, over one parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any


@dataclass(frozen=True)
class Line:
    """One formula over a parameter, and the played values beside it."""

    label: str
    x: Sequence[float]
    formula: Sequence[Any]
    played: Sequence[Any]


@dataclass(frozen=True)
class Curve:
    """What a figure shows beside the checks.

    Attributes
    ----------
    claim : whose formula it is.
    over, of : what stands on the axes, with units.
    says : the sentence under the figure.
    lines : makes the lines.
    """

    claim: str
    over: str
    of: str
    says: str
    lines: Callable[[], list[Line]]


def pipelines() -> list[Line]:
    """lamy_poirier.1 at 16 layers on 4 devices."""
    from verify_rates.theory.calculators.lamy_poirier import forward_seconds, play

    batches = (1, 2, 3, 4, 6, 8, 12, 16)
    return [
        Line(
            "modular" if modular else "contiguous",
            batches,
            [forward_seconds(16, 4, b, 1, modular) for b in batches],
            [play(16, 4, b, 1, modular=modular, layered=modular, backward=False).seconds for b in batches],
        )
        for modular in (False, True)
    ]


def two_groups() -> list[Line]:
    """mergecomp.3 on eight tensors, encoding 1 + s/2 and sending 2 + s seconds for s bytes."""
    from verify_rates.theory.calculators.mergecomp import TWO_GROUPS, _closed, affine, step_seconds

    times, sizes = (1, 1, 2, 1, 1, 3, 1, 2), (4, 1, 1, 2, 1, 1, 3, 1)
    encode, transfer = (1, Fraction(1, 2)), (2, 1)
    cuts = range(1, len(times))
    closed = [_closed(TWO_GROUPS, times, sizes, (*encode, *transfer), j) for j in cuts]
    return [Line("", tuple(cuts), closed, [step_seconds(times, sizes, [j], affine(*encode), affine(*transfer)) for j in cuts])]


def factors() -> list[Line]:
    """network_bottleneck.3 with 16 workers and without compression."""
    from verify_rates.theory.calculators.network_bottleneck import model, most_factor, scaling_factor

    speeds, lines = (1, 2, 5, 10, 25, 50, 100), []
    for name in ("resnet50", "resnet101", "vgg16"):
        made = model(name)
        simulated = [scaling_factor(made.events(), 16, s * 1e9, made.t_batch) for s in speeds]
        lines.append(Line(name, speeds, [most_factor(name, s * 1e9, 16, 1) for s in speeds], simulated))
    return lines


def sparse_rings() -> list[Line]:
    """topk_empirical.3 with the numbers of its check."""
    from verify_rates.theory.calculators.topk_empirical import iteration_seconds, ring_all_gather, ring_all_reduce

    d, n, bw, lat, comp, select = 120, 4, Fraction(3), Fraction(1, 7), Fraction(2), Fraction(5)
    kept = (1, 5, 10, 20, 40, 60)
    said = [iteration_seconds(d, k, n, bw, T_comp=comp, T_select=select, lat=lat) for k in kept]
    dense = comp + ring_all_reduce(n, Fraction(4 * d), 1 / bw, lat).seconds
    topk = [comp + select + ring_all_gather(n, Fraction(8 * k), 1 / bw, lat).seconds for k in kept]
    return [Line("dense", kept, [s.dense for s in said], [dense] * len(kept)), Line("top-k", kept, [s.topk for s in said], topk)]


def synchronisations() -> list[Line]:
    """zen.2 and zen.3 on random supports, 8 workers and 64 positions."""
    counts = (1, 2, 4, 8, 16, 32, 48)
    density, rows = [k / 64 for k in counts], [_synchronised(8, 64, count) for count in counts]
    return [
        Line("balanced parallelism", density, [said.bp for said, _, _ in rows], [words for _, words, _ in rows]),
        Line("hierarchical centralisation", density, [said.hc for said, _, _ in rows], [words for _, _, words in rows]),
    ]


def _synchronised(n: int, M: int, count: int) -> tuple[Any, Any, Any]:
    """The formulas' times, and the words that a worker receives by either scheme, for random supports of ``count`` positions."""
    from verify_rates.theory.calculators import zen

    sets = zen.supports("random", n, M, count)

    def gamma(k: int) -> Fraction:
        return zen._mean([len(zen.union(sets[i : i + k])) for i in range(0, n, k)]) / count

    turns = [zen.parallel(sets, owner) for owner in zen._turned(n, M)]
    bp = zen._mean([zen._mean([push[i] + sum(pull) - pull[i] for i in range(n)]) for push, pull in turns])
    hc = sum(zen._mean(level) for level in zen.doubling(sets))
    return zen.sync_seconds(Fraction(M), n, Fraction(count, M), Fraction(1), gamma), bp, hc


def uploads() -> list[Line]:
    """edge_learning.1 and .2: three clients."""
    from verify_rates.theory.calculators.edge_learning import RULES, flexible, rigid, served

    ready, loads = [Fraction(0), Fraction(1), Fraction(3)], [Fraction(6), Fraction(2), Fraction(4)]
    bands = (1, 2, 3, 4, 6, 8)

    def split(band: Fraction) -> Fraction:
        end = rigid(ready, loads, band)[1]
        shares = {k: q / (end - a) / band for k, (a, q) in enumerate(zip(ready, loads, strict=True))}
        return served(ready, loads, band, lambda there, left, ready: {k: shares[k] for k in there})

    made = [Fraction(b) for b in bands]
    shared = [served(ready, loads, b, RULES["equal shares"]) for b in made]
    return [
        Line("flexible", bands, [flexible(ready, loads, b) for b in made], shared),
        Line("rigid", bands, [rigid(ready, loads, b)[1] for b in made], [split(b) for b in made]),
    ]


def goodputs() -> list[Line]:
    """decoupled_diloco.8: a minute lost at a failure, a year between two failures of a chip."""
    from verify_rates.theory.calculators.decoupled_diloco import GOODPUT, YEAR, simulated_goodput
    from verify_rates.theory.calculators.lines import function

    chips, loss, year = (150_000, 300_000, 600_000, 1_200_000, 2_400_000), 60, float(YEAR)
    goodput = function(GOODPUT, "n m c a")
    return [
        Line(
            f"{m} learner{'s' if m > 1 else ''}",
            [n // 1000 for n in chips],
            [goodput(n, m, loss, year) for n in chips],
            [simulated_goodput(n / m / year, loss, 10_000, 0) for n in chips],
        )
        for m in (1, 4, 16)
    ]


CURVES = {
    "lamy_poirier": Curve(
        "lamy_poirier.1",
        "micro-batches",
        "seconds of a forward pass",
        "The two formulas for the makespan (lines), and the schedule played task by task (marks), of 16 layers on 4 devices, one second a"
        " layer and micro-batch.",
        pipelines,
    ),
    "mergecomp": Curve(
        "mergecomp.3",
        "last tensor of the first group",
        "seconds of a step",
        "The closed form for two groups (line), and both streams played (marks), on eight tensors, over all places of the cut.",
        two_groups,
    ),
    "network_bottleneck": Curve(
        "network_bottleneck.3",
        "Gbit/s",
        "scaling factor",
        "The most that the totals of a model allow (lines), and the what-if simulator with equal waits (marks), 16 workers, nothing"
        " compressed.",
        factors,
    ),
    "topk_empirical": Curve(
        "topk_empirical.3",
        "kept entries k of 120",
        "seconds of an iteration",
        "Both formulas (lines), and the rings played message by message (marks), on 4 workers.",
        sparse_rings,
    ),
    "zen": Curve(
        "zen.2",
        "density of one tensor",
        "words received by a worker",
        "Both formulas at the densification of the supports (lines), and words counted on random supports of 64 positions (marks), 8"
        " workers.",
        synchronisations,
    ),
    "edge_learning": Curve(
        "edge_learning.1",
        "band",
        "end of the round",
        "The flexible split's formula and the rigid split's root (lines), and the uploads of three clients played by events (marks).",
        uploads,
    ),
    "decoupled_diloco": Curve(
        "decoupled_diloco.8",
        "thousand chips",
        "goodput",
        "The formula (lines), and the mean over 10,000 drawn failures (marks), where a failure costs a learner 60 s and a chip fails once a"
        " year.",
        goodputs,
    ),
}
