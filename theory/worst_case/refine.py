"""From a problem to two verified ends: one solve, and others in other units or bases while the ends are apart."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp

from verify_rates.theory.worst_case.assemble import Conic, rescaled, triangle, turned
from verify_rates.theory.worst_case.backends import Raw, solve_conic
from verify_rates.theory.worst_case.bounds import Bound, Dual, blended, grams, lower, upper
from verify_rates.theory.worst_case.facial import relaxations
from verify_rates.theory.worst_case.working_set import solve_few

# Least eigenvalues asked of the slack matrices (see backends), in normalised units: the first covers what a good solve leaves and is not
# seen at the accuracy that callers need (1e-6 relative), or seldom, where a sharper one is tried; multipliers of the last repair those of
# the others by a blend.
SHARP, SHARPER, SAFE = 1e-10, 1e-11, 1e-7
# Largest trace of the Gram matrices, times their order, where vectors are asked to be short; a solution needs no more than about 1.
LONGEST = 4.0
# Ends further apart than this, relatively, are not good enough to stop at.
WIDE = 1e-6
# In problems too large for that, ends this close do: a solve of all inequalities leaves as much.
ENOUGH = 5e-6
# Up to this order of the Gram matrices a second solve is worth its digits.
LIGHT = 32
# Units are not taken smaller than this from a solution: what is zero there has no unit.
SMALLEST_UNIT = 1e-4

Solve = Callable[[Conic, float], Raw]


@dataclass(frozen=True)
class Solved:
    """A solve and its two ends."""

    conic: Conic
    raw: Raw
    top: Bound
    low: Bound
    lam: np.ndarray
    z: np.ndarray

    @property
    def apart(self) -> float:
        """Distance of the ends, relatively; infinite unless both are verified."""
        sure = self.top.verified and self.low.verified
        return (self.top.value - self.low.value) / max(abs(self.top.value), 1e-300) if sure else math.inf

    @property
    def known(self) -> float:
        """The upper end, where it is verified."""
        return self.top.value if self.top.verified else math.inf

    def with_better_ends_of(self, other: Solved) -> Solved:
        """Each end from the solve in which it is better; both are of one problem and in one scaling."""
        if not (self.raw.ok and other.raw.ok):
            return self if self.raw.ok else other
        better = self
        if (not other.top.verified, other.top.value) < (not self.top.verified, self.top.value):
            better = dataclasses.replace(better, top=other.top, lam=other.lam)
        if (not other.low.verified, -other.low.value) < (not self.low.verified, -self.low.value):
            better = dataclasses.replace(better, low=other.low, z=other.z)
        return better


def refined(conic: Conic, inside: np.ndarray, solver: str, reached: tuple[Bound, np.ndarray] | None = None) -> Solved:
    """Solve and verify, in one way after another until the ends are close; each end is the best found (or the one known as ``reached``)."""
    ways = _ways(conic, inside, solver)
    found, near = next(ways), WIDE if sum(conic.orders) <= LIGHT else ENOUGH
    if reached is not None and found.raw.ok:
        found = found.with_better_ends_of(dataclasses.replace(found, low=reached[0], z=reached[1]))
    while found.apart > near and (again := next(ways, None)) is not None:
        found = found.with_better_ends_of(again)
    return found


def _ways(conic: Conic, inside: np.ndarray, solver: str) -> Iterator[Solved]:
    """The ways of solving, cheapest first; large problems are solved once."""
    few = _of_few(conic, inside) if solver == "CLARABEL" else None
    if few is not None:
        yield few
    first = _attempt(conic, inside, solver)
    yield first
    reached = float(conic.c @ inside)
    if not first.raw.ok and few is None and reached > 1:  # too large a value for these units
        large = _in_units_of(dataclasses.replace(first, z=inside, top=Bound(reached, False)), 1.0, inside, solver, math.inf)
        if large.top.verified and large.top.value >= reached:
            first = large
            yield first
    if not first.raw.ok or sum(conic.orders) > LIGHT:
        return
    sharper = _attempt(conic, inside, solver, first.known, SHARPER)
    yield sharper
    first = sharper if sharper.raw.ok else first
    if solver == "CLARABEL":
        yield _attempt(conic, inside, solver, first.known, SHARPER, scaled=False)
    yield _in_basis_of(first, inside, solver)
    if first.top.value > 0:
        for least in (1.0, SMALLEST_UNIT):
            yield _in_units_of(first, least, inside, solver)


def _in_basis_of(first: Solved, inside: np.ndarray, solver: str) -> Solved:
    """Another solve in bases in which a point between the solution and the strictly feasible one is the identity: little is then needed to
    make it feasible where equalities leave little room."""
    conic = first.conic
    if min((np.linalg.eigvalsh(M)[0] for M in grams(conic, inside) if M.size), default=0.0) <= 0:
        return first
    closer, turns, rows = turned(conic, first.z + inside)

    def told(z: np.ndarray, turns: list[np.ndarray]) -> np.ndarray:
        matrices = [turn @ G @ turn.T for turn, G in zip(turns, grams(conic, z), strict=True)]
        return np.concatenate([*(M[triangle(len(M))] for M in matrices), z[sum(conic.sizes) :]])

    again = _attempt(closer, told(inside, [np.linalg.inv(turn) for turn in turns]), solver, first.known, SHARPER)
    return dataclasses.replace(again, conic=conic, lam=again.lam / rows, z=told(again.z, turns)) if again.raw.ok else first


def _in_units_of(first: Solved, least: float, inside: np.ndarray, solver: str, most: float = 1.0) -> Solved:
    """Another solve in units of a solution, none below ``least`` or above ``most``, told in the scaling of the first."""
    closer, columns, rows = rescaled(first.conic, first.z, first.top.value, least, most)
    again = _attempt(closer, inside / columns, solver, 1.0 if first.top.verified else math.inf, SHARPER, scaled=False)
    if not again.raw.ok:
        return first
    ratio = closer.unit / first.conic.unit
    top, low = (dataclasses.replace(end, value=end.value * ratio) for end in (again.top, again.low))
    return Solved(first.conic, again.raw, top, low, again.lam * ratio / rows, again.z * columns)


def _of_few(conic: Conic, inside: np.ndarray) -> Solved | None:
    """The solve with few inequalities, where the problem is of that kind; multipliers blended with safer ones where they need it."""
    raw = solve_few(conic, SHARP)
    if raw is None or not raw.ok:
        return None
    dual, (low, z) = upper(conic, raw), lower(conic, raw, inside)
    if not dual.bound.verified:
        dual = _blend(conic, raw, dual, solve_few)
    return Solved(conic, raw, dual.bound, low, dual.lam, z)


def _attempt(conic: Conic, inside: np.ndarray, solver: str, known: float = math.inf, margin: float = SHARP, scaled: bool = True) -> Solved:
    """One solve with its ends; an upper end that is no better than a ``known`` verified one is not repaired."""
    solve = partial(solve_conic, solver=solver, scaled=scaled)
    raw = solve(conic, margin)
    if not raw.ok:  # no strictly feasible multipliers
        raw = solve(conic, 0.0)
    if not raw.ok:
        nothing = Bound(math.nan, False)
        return Solved(conic, raw, nothing, nothing, raw.lam, raw.z)
    low, z = lower(conic, raw, inside)
    dual = upper(conic, raw)
    if not low.verified or dual.bound.value - low.value > WIDE * abs(dual.bound.value):  # perhaps nothing bounds some direction
        short = solve(_short(conic), margin)
        other, vectors = lower(conic, short, inside) if short.ok else (low, z)
        low, z = (other, vectors) if (other.verified, other.value) > (low.verified, low.value) else (low, z)
    if not dual.bound.verified and known - dual.bound.value > WIDE * abs(dual.bound.value):
        dual = _repaired(conic, raw, dual, low.value, solve, margin)
    return Solved(conic, raw, dual.bound, low, dual.lam, z)


def _short(conic: Conic) -> Conic:
    """The same with short vectors only: its instances are some of those of the problem, and none of them has unbounded directions."""
    diagonal = np.concatenate([np.equal(*triangle(k)).astype(float) for k in conic.orders])
    row = np.concatenate([diagonal, np.zeros(conic.c.size - diagonal.size)])
    A = sp.csr_array(sp.vstack([conic.A, row[None]], format="csr"))
    limit = LONGEST * sum(conic.orders)
    return dataclasses.replace(conic, A=A, b=np.append(conic.b, limit), names=(*conic.names, "short"), scales=np.append(conic.scales, 1.0))


def _repaired(conic: Conic, raw: Raw, dual: Dual, low: float, solve: Solve, margin: float) -> Dual:
    """Verified multipliers: blended with safer ones, or those of a relaxation with practically the same value."""
    found = _blend(conic, raw, dual, solve)
    for smaller, kept in relaxations(conic, raw.lam):
        if found.bound.verified and found.bound.value - low <= WIDE * abs(found.bound.value):
            break
        other = solve(smaller, margin)
        if not other.ok:
            continue
        again = upper(smaller, other)
        again = again if again.bound.verified else _blend(smaller, other, again, solve)
        if again.bound.verified and (not found.bound.verified or again.bound.value < found.bound.value):
            lam = np.zeros(len(conic.b))
            lam[kept] = again.lam
            found = dataclasses.replace(again, lam=lam)
    return found


def _blend(conic: Conic, raw: Raw, dual: Dual, solve: Callable[[Conic, float], Raw | None]) -> Dual:
    safe = solve(conic, SAFE)
    mixed = blended(conic, raw.z, dual, upper(conic, safe)) if safe is not None and safe.ok else dual
    return mixed if mixed.bound.verified else dual
