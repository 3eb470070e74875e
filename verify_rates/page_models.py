"""Models of papers about costs and schedules, played over one parameter beside their printed formulas."""

from __future__ import annotations

from collections.abc import Sequence
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


def rounds_of_unequal_workers() -> list[Line]:
    """loscar.7: the first of two workers takes 3 steps of 1 s, the second 1 step of 1 s and 4 more while it waits."""
    from verify_rates.theory.calculators.loscar import _said, round_seconds

    delays = (1, 2, 3, 4, 5, 6)
    cases = [((3, 1), (0, 4), (1, 1), tc) for tc in delays]
    return [Line("", delays, [_said(*case) for case in cases], [round_seconds(*case) for case in cases])]


def programs() -> list[Line]:
    """deepcompile.4.repaired: layers of 2 s with 1 or 2 bytes of parameters in turn, 1 s to start a gather and 1 s a byte."""
    from verify_rates.theory.calculators.deepcompile import Op, _bound, _byte, play

    counts = range(1, 9)
    found: dict[str, list[tuple[Any, Any]]] = {"all gathered at first": [], "gathered right before use": []}
    for layers in counts:
        sizes = {str(i): 1 + i % 2 for i in range(layers)}
        gathers, computing = [Op("gather", (p,)) for p in sizes], [Op("compute", (p,), 2) for p in sizes]
        turns = [op for pair in zip(gathers, computing, strict=True) for op in pair]
        for ops, values in zip(([*gathers, *computing], turns), found.values(), strict=True):
            values.append((_bound(ops, sizes, False), play(ops, sizes, _byte).makespan))
    return [Line(label, tuple(counts), *map(list, zip(*values, strict=True))) for label, values in found.items()]


def trees() -> list[Line]:
    """adaptive_dfl.3: minimum spanning trees over random links."""
    import networkx as nx

    from verify_rates.theory.calculators.adaptive_dfl import TREE_FACTOR, _weights, function, gather_and_broadcast

    workers, formula, counted = range(2, 9), [], []
    for n in workers:
        weights = _weights(n, 0)
        graph = nx.Graph([(i, j, {"weight": w}) for (i, j), w in weights.items()])
        tree = [(min(e), max(e)) for e in nx.minimum_spanning_edges(graph, data=False)]
        _, used, _, _ = gather_and_broadcast(tree, [Fraction(i) for i in range(n)], weights)
        formula.append(function(TREE_FACTOR, "n")(n) * sum(weights[e] for e in tree))
        counted.append(sum(weights[e] * times for e, times in used.items()))
    return [Line("", tuple(workers), formula, counted)]


def boundaries() -> list[Line]:
    """copo.5: centres 5 apart, deviation 1 of the first cluster; the boundary by the roots of its equation."""
    import numpy as np

    R, a, widths = 5.0, 1.0, (1.5, 2.0, 2.5, 3.0, 4.0, 5.0)
    roots = [np.roots([1 / a**2 - 1 / b**2, 2 * R / b**2, -((R / b) ** 2)]) for b in widths]
    return [Line("", widths, [R / (a + b) for b in widths], [float(np.min(np.abs(x)) / a) for x in roots])]


def ratios() -> list[Line]:
    """dgc.6: by the counts of its check."""
    from verify_rates.theory.calculators.dgc import ratio

    shares = ("1/2", "1/10", "1/50", "1/200", "1/1000")
    kept = [float(Fraction(r)) for r in shares]
    lines = []
    for bits, label in ((16, "run lengths of 16 bits"), (32, "indices of 32 bits")):
        said = [Fraction(32, 32 + bits) / Fraction(r) for r in shares]
        lines.append(Line(label, kept, said, [ratio(r, bits, str(s)).lower for r, s in zip(shares, said, strict=True)]))
    return lines


def factors_of_rank() -> list[Line]:
    """ab_training.6: 64 x 48 weights, a period of 10 steps."""
    from verify_rates.theory.calculators.ab_training import TRAFFIC, period_traffic
    from verify_rates.theory.symbols import exact, parse

    ranks, lines = (1, 4, 8, 16, 24, 32), []
    for D in (0, 2, 5):
        at = [{"m": 64, "n": 48, "k": r, "c": 10, "p": Fraction(D, 10), "rho": Fraction(r * 64, 64 * 48)} for r in ranks]
        label = f"{D} of 10 steps with full weights"
        lines.append(Line(label, ranks, [exact(parse(TRAFFIC), v) for v in at], [period_traffic(64, 48, r, 10, D) for r in ranks]))
    return lines
