"""A strictly feasible point of a worst case: the method run on one-dimensional quadratics with a perfect compressor, or a point that a
solver finds where such runs are no instances.

Blending a solver's point with it makes every inequality strict, so that what is reported as reached is reached.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize_scalar

from verify_rates.theory.worst_case.algebra import Vec
from verify_rates.theory.worst_case.assemble import Assembler, Conic, triangle
from verify_rates.theory.worst_case.backends import SQRT2, conic_program, off_diagonal
from verify_rates.theory.worst_case.bounds import ALLOWANCE, ROUNDING, Bound
from verify_rates.theory.worst_case.world import PepWorld

POSITIONS = np.geomspace(0.9, 0.003, 10)  # curvatures tried, as positions between the least and the largest of the shifted class
FILLED = 0.9  # share of the initial condition that is used
FULL = 1 - 1e-11  # share that a run fills whose value is to be reached
GRID = 201  # curvatures tried first
XATOL = 1e-10  # of the position of the best curvature; the value is flat there, or at its end of the interval
ROOM = 0.1  # room that is enough, in normalised units
LARGEST = 10.0  # times the order: the largest trace of a point with room
MOST = 0.8  # share of the run with most room


def interior_point(world: PepWorld, conic: Conic, builder: Assembler) -> np.ndarray:
    """A mixture of such runs, scaled so that the initial condition holds with room; most of it is the run with most room."""
    if not world.plain or conic.E.shape[0] or conic.mixed:
        return _roomiest(conic)
    runs = _runs(world, builder, np.sqrt(conic.radius2))
    bounded = conic.b > 0
    reached = conic.A[bounded] @ runs.T / conic.b[bounded, None]
    runs /= np.maximum(reached.max(axis=0, initial=0.0) / FILLED, 1.0)[:, None]
    room = (conic.b[:, None] - conic.A @ runs.T).min(axis=0, initial=np.inf)
    return MOST * runs[int(np.argmax(room))] + (1 - MOST) * runs.mean(axis=0)


def _roomiest(conic: Conic) -> np.ndarray:
    """A point at which the least room of all inequalities and semidefinite matrices is largest, up to ``ROOM``; one more unknown."""
    import clarabel

    nz, k, tri = conic.c.size, sum(conic.orders), conic.mixed * (conic.mixed + 1) // 2
    scale = np.concatenate([off_diagonal(order, SQRT2) for order in conic.orders])
    one = np.concatenate([np.equal(*triangle(order)).astype(float) for order in conic.orders])
    gram = sp.hstack([-sp.diags_array(scale), sp.csc_array((one.size, nz - one.size)), one[:, None]])
    one_mixed = np.equal(*triangle(conic.mixed)).astype(float)
    mixing = sp.hstack([-sp.diags_array(off_diagonal(conic.mixed, SQRT2)) @ conic.P, one_mixed[:, None]]) if tri else None
    trace = np.concatenate([one, np.zeros(nz - one.size), [0.0]])[None]
    blocks = [
        sp.hstack([conic.E, sp.csc_array((conic.E.shape[0], 1))]),
        sp.hstack([conic.A, np.ones((conic.A.shape[0], 1))]),
        trace,
        np.eye(1, nz + 1, nz),
        gram,
        mixing,
    ]
    rhs: list[Any] = [np.zeros(conic.E.shape[0]), conic.b, [LARGEST * k], [ROOM], np.zeros(one.size + tri)]
    cones = [clarabel.ZeroConeT(conic.E.shape[0]), clarabel.NonnegativeConeT(conic.A.shape[0] + 2)]
    cones += [clarabel.PSDTriangleConeT(order) for order in (*conic.orders, conic.mixed) if order]
    M = sp.vstack([sp.csc_array(block) for block in blocks if block is not None and block.shape[0]], format="csc")
    point, *_ = conic_program(-np.eye(1, nz + 1, nz)[0], M, np.concatenate(rhs), cones)
    return point[:nz]


def best_run(world: PepWorld, conic: Conic, builder: Assembler) -> tuple[Bound, np.ndarray]:
    """The best run on a one-dimensional quadratic: an instance of the class of quadratics by construction, equalities included."""

    def reached(positions: np.ndarray) -> np.ndarray:
        runs = _runs(world, builder, np.sqrt(conic.radius2), positions)
        filled = (conic.A[conic.b > 0] @ runs.T / conic.b[conic.b > 0, None]).max(axis=0, initial=0.0)
        return runs * (FULL / np.maximum(filled, 1e-300))[:, None]

    grid = np.linspace(0, 1, GRID)
    k = int(np.argmax(reached(grid) @ conic.c))
    ends = (grid[max(k - 1, 0)], grid[min(k + 1, GRID - 1)])
    found = minimize_scalar(lambda p: -float(reached(np.array([p]))[0] @ conic.c), bounds=ends, method="bounded", options={"xatol": XATOL})
    z = max(reached(np.array([grid[k], found.x])), key=lambda z: float(z @ conic.c))
    verified = bool(np.all(conic.A @ z - conic.b <= -ROUNDING))
    return Bound(float(conic.c @ z) - ALLOWANCE * float(np.abs(conic.c) @ np.abs(z)), verified), z


def _runs(world: PepWorld, builder: Assembler, radius: float, positions: np.ndarray = POSITIONS) -> np.ndarray:
    """The points z, one a curvature, of runs on ``(curvature + shift)/2 ||x - x*||^2``; unknowns without a rule are drawn.

    ``radius`` is the unit of positions, and ``positions`` place the curvatures between the least (0) and the largest (1) of the class.
    """
    functions = world.setting.functions
    least = -1.0 if functions.linear and not functions.convex else world.setting.kappa
    curvatures = world.setting.width * (least + positions * (1 - least))
    drawn = [np.random.default_rng(seed).standard_normal(len(world.mean_units)) for seed in range(len(curvatures))]
    values = np.array(drawn) * world.mean_units
    places = _dense([p.x for p in world.points], len(world.mean_units)) - _dense([world.minimiser], len(world.mean_units))
    rules = {k: (curvatures, row) for p, row in zip(world.points, places, strict=True) if len(p.h.mean) == 1 for k in p.h.mean}
    for g, gamma, v in world.resolvents:
        (k,) = g.mean
        rules[k] = (curvatures / (1 + float(gamma) * curvatures), _dense([v], len(world.mean_units))[0])
    for k, (share, copied) in world.copies.items():
        if copied is None:
            values[:, k] = share / radius
        else:
            rules[k] = (np.full_like(curvatures, share), _dense([copied], len(world.mean_units))[0])
    for k in sorted(rules):  # a basis vector is newer than those it is made of
        factor, row = rules[k]
        values[:, k] = factor * (values @ row)
    heights = curvatures[:, None] / 2 * (values @ places.T) ** 2
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
