"""Curves of papers about costs and schedules: a printed formula beside what a simulation gives, over one parameter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from verify_rates import page_models as models
from verify_rates.page_models import Line


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


CURVES = {
    "lamy_poirier": Curve(
        "lamy_poirier.1",
        "micro-batches",
        "seconds of a forward pass",
        "The two formulas for the makespan (lines), and the schedule played task by task (marks), of 16 layers on 4 devices, one second a"
        " layer and micro-batch.",
        models.pipelines,
    ),
    "mergecomp": Curve(
        "mergecomp.3",
        "last tensor of the first group",
        "seconds of a step",
        "The closed form for two groups (line), and both streams played (marks), on eight tensors, over all places of the cut.",
        models.two_groups,
    ),
    "network_bottleneck": Curve(
        "network_bottleneck.3",
        "Gbit/s",
        "scaling factor",
        "The most that the totals of a model allow (lines), and the what-if simulator with equal waits (marks), 16 workers, nothing"
        " compressed.",
        models.factors,
    ),
    "topk_empirical": Curve(
        "topk_empirical.3",
        "kept entries k of 120",
        "seconds of an iteration",
        "Both formulas (lines), and the rings played message by message (marks), on 4 workers.",
        models.sparse_rings,
    ),
    "zen": Curve(
        "zen.2",
        "density of one tensor",
        "words received by a worker",
        "Both formulas at the densification of the supports (lines), and words counted on random supports of 64 positions (marks), 8"
        " workers.",
        models.synchronisations,
    ),
    "edge_learning": Curve(
        "edge_learning.1",
        "band",
        "end of the round",
        "The flexible split's formula and the rigid split's root (lines), and the uploads of three clients played by events (marks).",
        models.uploads,
    ),
    "decoupled_diloco": Curve(
        "decoupled_diloco.8",
        "thousand chips",
        "goodput",
        "The formula (lines), and the mean over 10,000 drawn failures (marks), where a failure costs a learner 60 s and a chip fails once a"
        " year.",
        models.goodputs,
    ),
    "loscar": Curve(
        "loscar.7",
        "seconds of the communication",
        "seconds of a round",
        "The printed time of a round (line; refuted), and the round by its events (marks): one worker takes 3 steps of 1 s, the other 1"
        " step and 4 more while it waits.",
        models.rounds_of_unequal_workers,
    ),
    "deepcompile": Curve(
        "deepcompile.4.repaired",
        "layers",
        "seconds of the program",
        "The repaired lower bound (lines), and the program played on two streams (marks): 2 s a layer, 2 s or 3 s a gather.",
        models.programs,
    ),
    "adaptive_dfl": Curve(
        "adaptive_dfl.3",
        "workers n",
        "energy of an averaging",
        "Twice the weight of the minimum spanning tree (line), and transmissions counted while the tree is walked (marks), on random"
        " links.",
        models.trees,
    ),
    "copo": Curve(
        "copo.5",
        "deviation of the second cluster",
        "deviations to the boundary",
        "The signal-to-noise ratio R/(a + b) (line), and the nearest root of the boundary's equation (marks), for centres 5 apart.",
        models.boundaries,
    ),
    "dgc": Curve(
        "dgc.6",
        "share of the entries that is sent",
        "compression",
        "Both formulas (lines), and bits counted on a vector of a million entries (marks).",
        models.ratios,
    ),
    "ab_training": Curve(
        "ab_training.6",
        "rank",
        "traffic over that of data parallel",
        "The formula (lines), and numbers counted over a period of 10 steps (marks), for 64 x 48 weights.",
        models.factors_of_rank,
    ),
}
