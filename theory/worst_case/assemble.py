"""From a collected problem to sparse arrays: ``max c'z`` over ``A z <= b``, ``E z = 0``, Gram matrices and ``smat(P z)`` semidefinite.

The unknown z holds the upper triangles of G and D, column by column, then the scalars.  Everything is in units in which L, the
initial condition and the measure have size 1, and every row has largest entry 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from verify_rates.solvers.method import UsageError
from verify_rates.theory.worst_case.algebra import Form, Vec
from verify_rates.theory.worst_case.world import Part, PepWorld

DENSE = 500_000  # entries up to which the overhead of sparse arrays costs more than zeros do
LARGE = 12  # order of a Gram matrix from which a sparse form of the problem is worth having
CANCELLED = 1e-15  # relative to its terms, a sum this small is the rounding of zero (inner products by polarisation)
DEPENDENT = 1e-3  # a vector that adds less than this to those before it, relatively, is no basis vector


@dataclass(frozen=True)
class Conic:
    """The arrays of one worst case; ``value = offset + unit * c'z`` in the measure's own unit."""

    c: np.ndarray  # (nz,)
    A: sp.csr_array  # (rows, nz)
    b: np.ndarray  # (rows,)
    E: sp.csr_array  # (equalities, nz), right-hand side 0
    P: sp.csr_array  # (mixed (mixed + 1) / 2, nz): a matrix that must be semidefinite
    orders: tuple[int, int]  # sizes of G and D
    mixed: int  # size of the matrix smat(P z)
    unit: float
    offset: float
    radius2: float  # R^2: the square of the unit of positions
    names: tuple[str, ...]  # of the rows
    positions: tuple[np.ndarray | None, np.ndarray | None]  # rows: a basis of positions, over that of the Gram matrices
    scales: np.ndarray  # (rows,) divide the multipliers of the scaled rows by these to get those in own units
    made: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)  # what solvers are given, made once

    @property
    def sizes(self) -> tuple[int, int]:
        """Lengths of the two triangles."""
        return tuple(k * (k + 1) // 2 for k in self.orders)  # type: ignore[return-value]

    @cached_property
    def small(self) -> tuple[Any, Any, Any]:
        """A, E and P as they are quickest to multiply with: dense where they are small."""
        return tuple(M.toarray() if M.shape[0] * M.shape[1] <= DENSE else M for M in (self.A, self.E, self.P))

    @cached_property
    def of_scalars(self) -> tuple[np.ndarray, np.ndarray]:
        """The columns of the scalars in A and in E."""
        nz = sum(self.sizes)
        return self.A[:, nz:].toarray(), self.E[:, nz:].toarray()


@cache
def triangle(k: int) -> tuple[np.ndarray, np.ndarray]:
    """Row and column numbers of an upper triangle, column by column."""
    columns, rows = np.tril_indices(k)
    rows.flags.writeable = columns.flags.writeable = False  # they are shared
    return rows, columns


def smat(v: np.ndarray, k: int) -> np.ndarray:
    """The symmetric matrix with this upper triangle."""
    rows, columns = triangle(k)
    M = np.zeros((k, k))
    M[rows, columns] = M[columns, rows] = v
    return M


def products(U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Coefficients of ``u'Gv`` on the upper triangle of G, one row a pair."""
    rows, columns = triangle(U.shape[1])
    out = U[:, rows] * V[:, columns] + U[:, columns] * V[:, rows]
    out[:, rows == columns] /= 2
    return out


class Assembler:
    """Turns forms of one world into rows."""

    def __init__(self, world: PepWorld, deviations: bool) -> None:
        self.world = world
        self.units = np.array(world.mean_units), np.array(world.dev_units if deviations else [])
        used: list[set[int]] = [set(), set()]
        for v in self._vectors():
            used[0].update(v.mean)
            used[1].update(v.dev if deviations else ())
        self.kept = [np.array(sorted(u), int) for u in used]  # basis vectors that occur
        self.place = [{int(k): i for i, k in enumerate(kept)} for kept in self.kept]
        self.orders = len(self.kept[0]), len(self.kept[1])
        self.scalars = len(world.scalar_units)

    def _vectors(self) -> Any:
        """All vectors whose products occur; points enter through their differences to the first."""
        for part in self.world.parts.values():
            for p in part.points:
                yield _minus(p.x, part.points[0].x)
                yield p.g
        for form in self._forms():
            for _, v in form.squares:
                yield v
        for pair in (*self.world.mixed, *self.world.linear):
            yield from pair

    def _forms(self) -> list[Form]:
        stated = [form for _, form in (*self.world.constraints, *self.world.equalities)]
        return stated + [p.f for part in self.world.parts.values() for p in part.points]

    def coordinates(self, vectors: list[Vec]) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients over the kept basis, times units: (len, K) for means and for deviations."""
        out = np.zeros((len(vectors), self.orders[0])), np.zeros((len(vectors), self.orders[1]))
        for i, v in enumerate(vectors):
            for part, (array, place, units) in enumerate(zip(out, self.place, self.units, strict=True)):
                for k, c in (v.dev if part else v.mean).items():
                    if k in place:
                        array[i, place[k]] = float(c) * units[k]
        return out

    def positions(self, part: int) -> np.ndarray | None:
        """Positions first, then gradients, as a basis: neighbours differ by few of them, so that inequalities over it are sparse."""
        points = self.world.points
        if self.orders[part] < LARGE or not points or not self.world.plain:
            return None
        candidates = self.coordinates([_minus(p.x, points[0].x) for p in points] + [p.g for p in points])[part]
        chosen, unit = [], np.zeros((0, candidates.shape[1]))
        for v in candidates:
            rest = v - unit.T @ (unit @ v)
            rest -= unit.T @ (unit @ rest)
            if np.linalg.norm(rest) > DEPENDENT * max(float(np.linalg.norm(v)), 1e-300):
                chosen.append(v)
                unit = np.vstack([unit, rest / np.linalg.norm(rest)])
        return np.array(chosen) if len(chosen) == candidates.shape[1] else None

    def gram(self, U: tuple[np.ndarray, ...], V: tuple[np.ndarray, ...]) -> np.ndarray:
        """Coefficients of inner products averaged over the workers."""
        return np.hstack([products(u, v) for u, v in zip(U, V, strict=True)])

    def form(self, form: Form) -> np.ndarray:
        """Coefficients of a scalar on z, without its constant."""
        values = np.zeros(self.scalars)
        for k, c in form.f.items():
            values[k] = float(c) * self.world.scalar_units[k]
        if not form.squares:
            return np.concatenate([np.zeros(sum(k * (k + 1) // 2 for k in self.orders)), values])
        U = self.coordinates([v for _, v in form.squares])
        weights = np.array([float(c) for c, _ in form.squares])
        terms = self.gram(U, U)
        total = weights @ terms
        cancelled = np.abs(total) <= CANCELLED * (np.abs(weights) @ np.abs(terms))
        return np.concatenate([np.where(cancelled, 0.0, total), values])

    def interpolation(self) -> tuple[Any, list[str], list[float]]:
        """Rows ``v_j - v_i + ... <= 0`` of all ordered pairs of points of every function, with names, in units where its shifted L is 1;
        and those units."""
        blocks, names, units = [], [], []
        for part in self.world.parts.values():
            for name, rows in self._pairs(part):
                blocks.append(rows)
                names += name
                units += [part.setting.width] * len(name)
        nz = sum(k * (k + 1) // 2 for k in self.orders) + self.scalars
        if len(names) * nz <= DENSE:
            return np.vstack([np.zeros((0, nz)), *blocks]), names, units
        return sp.csr_array(sp.vstack([sp.csr_array(rows) for rows in blocks], format="csr")), names, units

    def _pairs(self, part: Part) -> Iterator[tuple[list[str], np.ndarray]]:
        setting, width, points = part.setting, part.setting.width, part.points
        if not width or len(points) < 2:
            return
        x = self.coordinates([_minus(p.x, points[0].x) for p in points])
        h = tuple(a / width for a in self.coordinates([p.h for p in points]))
        v = np.array([self.form(p.v) for p in points]) / width
        functions, prefix = setting.functions, "" if part is self.world.own else f"{part.name}: "
        rules = [(functions.pairs, "interpolation")] + ([(functions.at_minimiser, "at minimiser")] if functions.at_minimiser else [])
        for i in range(len(v)):
            others = [j for j in range(len(v)) if j > i or (j < i and not functions.symmetric)]
            for rule, name in rules if i == 0 else rules[:1]:
                for k, ((values, mean), (_, dev)) in enumerate(zip(*(rule(x[p], h[p], i, setting.kappa) for p in (0, 1)), strict=True)):
                    rows = values * (v - v[i])
                    for (um, vm), (ud, vd) in zip(mean, dev, strict=True):
                        rows[:, : -self.scalars or None] += self.gram((um, ud), (vm, vd))
                    yield [f"{prefix}{name} {i} {j}" + k * f" ({k + 1})" for j in others], rows[others]

    def equalities(self) -> sp.csr_array:
        """Rows that vanish, as stated by the world."""
        rows = [self.form(form) for _, form in self.world.equalities]
        rows = [row / max(float(np.abs(row).max()), 1e-300) for row in rows]
        return sp.csr_array(np.array(rows).reshape(len(rows), sum(k * (k + 1) // 2 for k in self.orders) + self.scalars))

    def mixing(self) -> tuple[sp.csr_array, sp.csr_array]:
        """Linear maps of deviations (gossip) or of means: rows that vanish, and the triangle of a matrix that is semidefinite.

        Symmetric maps with spectrum in [l, u]: ``X'Y`` symmetric and ``(Y - l X)'(u X - Y)``; skew ones: ``X'Y`` skew and
        ``L^2 X'X - Y'Y``; any with norm up to L: the latter alone.
        """
        lengths = [s * (s + 1) // 2 for s in self.orders]
        part, nz = int(not self.world.linear), sum(lengths) + self.scalars
        pairs = self.world.linear or self.world.mixed
        k, setting = len(pairs), self.world.setting
        if not k or not self.orders[part]:
            return sp.csr_array((0, nz)), sp.csr_array((0, nz))
        kind = setting.functions.linear or "symmetric"
        least = setting.mu if setting.functions.convex else -setting.L
        low, high = map(float, (least, setting.L) if self.world.linear else setting.mixing or (0, 0))
        X, Y = (self.coordinates(list(v))[part] for v in zip(*pairs, strict=True))
        Y, low, high = (Y / high, low / high, 1.0) if self.world.linear else (Y, low, high)
        place = slice(sum(lengths[:part]), sum(lengths[: part + 1]))

        def rows(D: np.ndarray) -> sp.csr_array:
            full = np.zeros((len(D), nz))
            full[:, place] = D
            return sp.csr_array(full)

        r, s = triangle(k)
        i, j = np.triu_indices(k, 1) if kind == "symmetric" else (r, s)
        sign = {"symmetric": -1, "skew": 1, "any": 0}[kind]
        equal = products(X[i], Y[j]) + sign * products(X[j], Y[i])
        if kind == "symmetric":
            M = (products((Y - low * X)[r], (high * X - Y)[s]) + products((Y - low * X)[s], (high * X - Y)[r])) / 2
        else:
            M = products(X[r], X[s]) - products(Y[r], Y[s])
        return rows(equal if sign else equal[:0]), rows(M)


def _minus(a: Vec, b: Vec) -> Vec:
    return Vec(a.mean, a.dev, True) - Vec(b.mean, b.dev, True)


def deviations_idle(world: PepWorld, objective: Form) -> bool:
    """Whether dropping all deviations changes nothing: they only make constraints harder and do not raise the measure.

    With points shared by all workers the interpolation conditions hold deviations as ``+||dg||^2`` alone.
    """
    local = any(p.x.dev for part in world.parts.values() for p in part.points) or world.mixed
    harder = all(c >= 0 for _, form in world.constraints for c, v in form.squares if v.dev)
    return not local and harder and all(c <= 0 for c, v in objective.squares if v.dev)


def assemble(world: PepWorld, objective: Form) -> tuple[Conic, Assembler]:
    """The arrays that maximise ``objective`` under what the world has collected."""
    if any(name.startswith("initial") and world.form_size(form) == 0 for name, form in world.constraints):
        raise UsageError("an initial condition is constant; it must bound something of the first state.")
    bounded = [(-float(form.const), world.form_size(form)) for _, form in world.constraints if form.const < 0]
    radius2 = max((value / size for value, size in bounded if size), default=1.0)
    unit = world.form_size(objective)
    if unit == 0:
        raise UsageError(f"the measure is constant ({float(objective.const):g} on every instance): there is nothing to maximise.")
    world.constraints.append(("measure", objective))  # so that its basis vectors are kept
    builder = Assembler(world, not deviations_idle(world, objective))
    world.constraints.pop()
    A, names, widths = builder.interpolation()
    extra = [builder.form(form) for _, form in world.constraints]
    more = np.array(extra).reshape(len(extra), A.shape[1])
    A = np.vstack([A, more]) if isinstance(A, np.ndarray) else sp.csr_array(sp.vstack([A, sp.csr_array(more)], format="csr"))
    b = np.concatenate([np.zeros(len(names)), [-float(form.const) / radius2 for _, form in world.constraints]])
    sizes = abs(A).max(axis=1)
    scales = sizes if isinstance(sizes, np.ndarray) else sizes.toarray().ravel()
    bounds_nothing = (scales == 0) & (b >= 0)
    own = np.concatenate([np.array(widths), np.ones(len(extra))])[~bounds_nothing]
    A, b, scales = sp.csr_array(A[~bounds_nothing]), b[~bounds_nothing], np.where(scales == 0, 1.0, scales)[~bounds_nothing]
    E, P = builder.mixing()
    mixed = len(world.linear or world.mixed) if P.shape[0] else 0
    E = sp.csr_array(sp.vstack([E, builder.equalities()], format="csr"))
    conic = Conic(
        c=builder.form(objective) / unit,
        A=sp.csr_array((A.data * np.repeat(1 / scales, np.diff(A.indptr)), A.indices, A.indptr), A.shape),
        b=b / scales,
        E=E,
        P=P,
        orders=builder.orders,
        mixed=mixed,
        unit=unit * radius2,
        offset=float(objective.const),
        radius2=radius2,
        names=tuple(np.array([*names, *(name for name, _ in world.constraints)], dtype=object)[~bounds_nothing]),
        positions=(builder.positions(0), builder.positions(1)),
        scales=scales * own,
    )
    return conic, builder


def rescaled(conic: Conic, z: np.ndarray, value: float, least: float, most: float = 1.0) -> tuple[Conic, np.ndarray, np.ndarray]:
    """The same problem in units in which a given solution and its value are about 1 (none below ``least`` or above ``most``); with the
    factors used.

    A point of the new problem times the column factors is one of the old; multipliers of the new divided by the row factors likewise.
    """
    start, columns = 0, []
    for k, size in zip(conic.orders, conic.sizes, strict=True):
        i, j = triangle(k)
        units = np.sqrt(z[start : start + size][i == j].clip(least**2, most**2))
        columns.append(units[i] * units[j])
        start += size
    factors = np.concatenate([*columns, np.abs(z[start:]).clip(least**2, most**2)])
    scaling = sp.diags_array(factors)
    A = sp.csr_array(conic.A @ scaling)
    rows = abs(A).max(axis=1).toarray().ravel()
    made = replace(
        conic,
        c=conic.c * factors / value,
        A=sp.csr_array(sp.diags_array(1 / rows) @ A),
        b=conic.b / rows,
        E=sp.csr_array(conic.E @ scaling),
        P=sp.csr_array(conic.P @ scaling),
        unit=conic.unit * value,
        positions=(None, None),
        scales=conic.scales * rows,
    )
    return made, factors, rows


def in_basis(rows: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Coefficients on the triangle of G' of what ``rows`` are on that of ``G = turn G' turn'``."""
    i, j = triangle(turn.shape[0])
    matrices = np.zeros((len(rows), *turn.shape[:1] * 2))
    matrices[:, i, j] = matrices[:, j, i] = rows * np.where(i == j, 1.0, 0.5)
    made = np.einsum("ia,mij,jb->mab", turn, matrices, turn, optimize=True)
    r, s = triangle(turn.shape[1])
    return made[:, r, s] * np.where(r == s, 1.0, 2.0)


def turned(conic: Conic, z: np.ndarray) -> tuple[Conic, list[np.ndarray], np.ndarray]:
    """The same problem in bases in which the semidefinite matrices of a given point are the identity; with the bases of the Gram matrices
    (rows in the old one) and the factors of the rows."""
    start, parts, turns = 0, [], []
    stacked = np.vstack([conic.A.toarray(), conic.E.toarray(), conic.P.toarray(), conic.c])
    for k, size in zip(conic.orders, conic.sizes, strict=True):
        turns.append(_root(smat(z[start : start + size], k)))
        parts.append(in_basis(stacked[:, start : start + size], turns[-1]))
        start += size
    A, E, P, c = np.split(np.hstack([*parts, stacked[:, start:]]), np.cumsum([conic.A.shape[0], conic.E.shape[0], conic.P.shape[0]]))
    if conic.mixed:
        inverse, (i, j) = np.linalg.inv(_root(smat(conic.P @ z, conic.mixed))), triangle(conic.mixed)
        P = products(inverse[i], inverse[j]) @ P
    rows = np.abs(A).max(axis=1)
    made = replace(
        conic,
        A=sp.csr_array(A / rows[:, None]),
        b=conic.b / rows,
        c=c[0],
        E=sp.csr_array(E / np.abs(E).max(axis=1, keepdims=True)),
        P=sp.csr_array(P),
        positions=(None, None),
        scales=conic.scales * rows,
    )
    return made, turns, rows


def _root(M: np.ndarray) -> np.ndarray:
    """R with ``R R' = M``."""
    if not M.size:
        return M
    values, vectors = np.linalg.eigh(M)
    return vectors * np.sqrt(values.clip(1e-300))
