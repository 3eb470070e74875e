"""A strictly feasible point of a worst case: the method run on one-dimensional quadratics with a perfect compressor.

Blending a solver's point with it makes every inequality strict, so that what is reported as reached is reached.
"""

from __future__ import annotations

import numpy as np

from verify_rates.theory.worst_case.algebra import Vec
from verify_rates.theory.worst_case.assemble import Assembler, Conic, products
from verify_rates.theory.worst_case.world import PepWorld

POSITIONS = np.geomspace(0.9, 0.003, 10)  # curvatures tried, as positions between the least and the largest of the shifted class
FILLED = 0.9  # share of the initial condition that is used


def interior_point(world: PepWorld, conic: Conic, builder: Assembler) -> np.ndarray:
    """A mixture of some such runs, scaled so that the initial condition holds with room; most of it is the run with most room."""
    least = world.setting.kappa
    runs = np.array([_quadratic(world, builder, world.setting.width * (least + p * (1 - least)), seed) for seed, p in enumerate(POSITIONS)])
    reached = conic.A @ runs.T
    bounded = conic.b > 0
    runs /= np.maximum(1 / FILLED * (reached[bounded] / conic.b[bounded, None]).max(axis=0, initial=0.0), 1.0)[:, None]
    room = (conic.b[:, None] - conic.A @ runs.T).min(axis=0, initial=np.inf)
    return 0.8 * runs[int(np.argmax(room))] + 0.2 * runs.mean(axis=0)


def _quadratic(world: PepWorld, builder: Assembler, curvature: float, seed: int) -> np.ndarray:
    """The point z of one run on ``(curvature + shift)/2 ||x - x*||^2``; unknowns without a rule are drawn."""
    rules: dict[int, tuple[float, Vec]] = {}
    for p in world.points:
        if len(p.h.mean) == 1:
            rules.update(dict.fromkeys(p.h.mean, (curvature, p.x - Vec(world.minimiser.mean, shared=p.x.shared))))
    for answer in world.answers:
        rules.update(dict.fromkeys(answer.m.mean, (1.0, answer.v)))
    values = np.random.default_rng(seed).standard_normal(len(world.mean_units))
    for k in range(len(values)):
        if k in rules:
            factor, v = rules[k]
            values[k] = factor * _at(v, values)
    coordinates = values[builder.kept[0]] / builder.units[0][builder.kept[0]]
    scalars = _scalars(world, curvature, values)
    sizes = [k * (k + 1) // 2 for k in builder.orders]
    gram = products(coordinates[None, :], coordinates[None, :])[0] / np.where(np.equal(*np.tril_indices(len(coordinates))), 1, 2)
    return np.concatenate([gram, np.zeros(sizes[1]), scalars / np.array(world.scalar_units) if len(scalars) else scalars])


def _at(v: Vec, values: np.ndarray) -> float:
    return float(sum(float(c) * values[k] for k, c in v.mean.items()))


def _scalars(world: PepWorld, curvature: float, values: np.ndarray) -> np.ndarray:
    """Function values where a scalar is one; a minimum of measures is put below all of them."""
    scalars = np.full(len(world.scalar_units), -1.0) * np.array(world.scalar_units)
    centre = _at(world.minimiser, values)
    heights = [curvature / 2 * (_at(p.x, values) - centre) ** 2 for p in world.points]
    first = 0.0 if world.setting.functions.minimiser or not heights else heights[0]
    for height, p in zip(heights, world.points, strict=True):
        if len(p.v.f) == 1:
            scalars[next(iter(p.v.f))] = height - first
    for k in world.f_star.f:
        scalars[k] = -first - 0.1 * world.scalar_units[k]
    return scalars
