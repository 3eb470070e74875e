"""A strictly feasible point of a worst case: the method run on one-dimensional quadratics with a perfect compressor.

Blending a solver's point with it makes every inequality strict, so that what is reported as reached is reached.
"""

from __future__ import annotations

import numpy as np

from verify_rates.theory.worst_case.algebra import Vec
from verify_rates.theory.worst_case.assemble import Assembler, Conic, triangle
from verify_rates.theory.worst_case.world import PepWorld

POSITIONS = np.geomspace(0.9, 0.003, 10)  # curvatures tried, as positions between the least and the largest of the shifted class
FILLED = 0.9  # share of the initial condition that is used
MOST = 0.8  # share of the run with most room


def interior_point(world: PepWorld, conic: Conic, builder: Assembler) -> np.ndarray:
    """A mixture of such runs, scaled so that the initial condition holds with room; most of it is the run with most room."""
    runs = _runs(world, builder)
    bounded = conic.b > 0
    reached = conic.A[bounded] @ runs.T / conic.b[bounded, None]
    runs /= np.maximum(reached.max(axis=0, initial=0.0) / FILLED, 1.0)[:, None]
    room = (conic.b[:, None] - conic.A @ runs.T).min(axis=0, initial=np.inf)
    return MOST * runs[int(np.argmax(room))] + (1 - MOST) * runs.mean(axis=0)


def _runs(world: PepWorld, builder: Assembler) -> np.ndarray:
    """The points z, one a curvature, of runs on ``(curvature + shift)/2 ||x - x*||^2``; unknowns without a rule are drawn."""
    least = world.setting.kappa
    curvatures = world.setting.width * (least + POSITIONS * (1 - least))
    drawn = [np.random.default_rng(seed).standard_normal(len(world.mean_units)) for seed in range(len(curvatures))]
    values = np.array(drawn) * world.mean_units
    positions = _dense([p.x for p in world.points], len(world.mean_units)) - _dense([world.minimiser], len(world.mean_units))
    rules = {k: (curvatures, row) for p, row in zip(world.points, positions, strict=True) if len(p.h.mean) == 1 for k in p.h.mean}
    for g, gamma, v in world.implicit:
        (k,) = g.mean
        rules[k] = (curvatures / (1 + float(gamma) * curvatures), _dense([v], len(world.mean_units))[0])
    sent = _dense([a.v for a in world.answers], len(world.mean_units))
    rules |= {k: (np.ones_like(curvatures), row) for a, row in zip(world.answers, sent, strict=True) for k in a.m.mean}
    for k in sorted(rules):  # a basis vector is newer than those it is made of
        factor, row = rules[k]
        values[:, k] = factor * (values @ row)
    heights = curvatures[:, None] / 2 * (values @ positions.T) ** 2
    kept = values[:, builder.kept[0]] / builder.units[0][builder.kept[0]]
    i, j = triangle(builder.orders[0])
    return np.hstack([kept[:, i] * kept[:, j], np.zeros((len(kept), len(triangle(builder.orders[1])[0]))), _scalars(world, heights)])


def _dense(vectors: list[Vec], size: int) -> np.ndarray:
    """Mean coefficients over the whole basis, one row a vector."""
    out = np.zeros((len(vectors), size))
    for row, v in zip(out, vectors, strict=True):
        for k, c in v.mean.items():
            row[k] = float(c)
    return out


def _scalars(world: PepWorld, heights: np.ndarray) -> np.ndarray:
    """Function values where a scalar is one; a minimum of measures is put below all of them."""
    scalars = np.full((len(heights), len(world.scalar_units)), -1.0)
    if not world.setting.functions.values:
        heights = np.zeros((len(heights), 0))
    first = 0.0 if world.centred or not heights.size else heights[:, 0]
    for height, p in zip(heights.T, world.points if heights.size else [], strict=True):
        for k in p.v.f if len(p.v.f) == 1 else ():
            scalars[:, k] = (height - first) / world.scalar_units[k]
    for k in world.f_star.f:
        scalars[:, k] = -first / world.scalar_units[k] - 0.1
    return scalars
