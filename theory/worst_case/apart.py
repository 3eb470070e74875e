"""Workers kept apart: every worker has its own vectors and its own function, so that a mixing matrix can be taken exactly.

Where workers are exchangeable this gives what mean and deviation give, at n times the size; with a mixing matrix W it gives the worst
case of that matrix, where its spectrum gives a bound for all matrices that have it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from verify_rates.solvers.method import UsageError
from verify_rates.theory.worst_case.algebra import Form, Vec, exact
from verify_rates.theory.worst_case.world import PepWorld, Point

# A float that is this near to a fraction of small denominator is that fraction: a few roundings.
NEAR = 1e-14
SMALL = 1000


class Apart:
    """A vector of every worker; arithmetic as on vectors."""

    __array_ufunc__ = None
    __slots__ = ("each",)
    shared = False

    def __init__(self, each: list[Vec]) -> None:
        self.each = each

    def _with(self, other: Any, sign: int) -> Apart:
        if isinstance(other, Apart):
            return Apart([a + sign * b for a, b in zip(self.each, other.each, strict=True)])
        if isinstance(other, (int, float)) and other == 0:
            return self  # sum() starts from 0
        raise UsageError("a shared value meets a per worker one; use spread(w, v) or mean(w, v) to say what is meant.")

    def __add__(self, other: Any) -> Apart:
        return self._with(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Apart:
        return self._with(other, -1)

    def __rsub__(self, other: Any) -> Apart:
        return (-self)._with(other, 1)

    def __mul__(self, factor: Any) -> Apart:
        c = exact(factor)
        return Apart([c * v for v in self.each])

    __rmul__ = __mul__

    def __truediv__(self, factor: Any) -> Apart:
        return Apart([v / factor for v in self.each])

    def __neg__(self) -> Apart:
        return self * -1


@dataclass
class ApartWorld(PepWorld):
    """A :class:`PepWorld` of n workers, each as a function of its own."""

    def __post_init__(self) -> None:
        given = self.setting
        self.count: int = given.n or 1
        names = tuple(f"f{i}" for i in range(1, self.count + 1))
        others = tuple((name, given.functions, given.L, given.mu) for name in names[1:])
        self.setting = replace(given, n=1, name=names[0], others=others, objective=names)
        super().__post_init__()

    def _optimal(self) -> None:
        zeta2 = self.setting.zeta2_star
        if zeta2 == 0:
            nothing = Vec(shared=False)
            for part in self.parts.values():
                part.store(Point(self.minimiser, nothing, Form(), nothing, Form()))
            return
        super()._optimal()
        if zeta2 is not None:
            at_star = Apart([_shared(part.points[0].g) for part in self.parts.values()])
            self.constraints.append(("heterogeneity", self.sqnorm(at_star) - zeta2))

    @property
    def needs_minimiser(self) -> bool:
        return self.asked_for_minimiser or self.setting.zeta2_star is not None

    def _every(self, word: Callable[[Vec], Any], v: Any) -> Any:
        return Apart([_shared(word(u)) for u in v.each]) if isinstance(v, Apart) else word(v)

    def size(self, v: Any) -> float:
        return max(map(super().size, v.each)) if isinstance(v, Apart) else super().size(v)

    # --- words -------------------------------------------------------------------------------------------------------

    def grad(self, x):
        each = x.each if isinstance(x, Apart) else [x] * self.count
        return Apart([_shared(self._evaluate(v, part).g) for v, part in zip(each, self.parts.values(), strict=True)])

    full_grad = grad

    def prox(self, v, gamma):
        if not isinstance(v, Apart):
            return self.refuse("prox", "of workers kept apart it is read at every worker's own point")
        return Apart([self._implicit(u, Fraction(1), {name: exact(gamma)}) for u, name in zip(v.each, self.parts, strict=True)])

    def grad_of(self, x, of):
        return self.refuse("grad_of", "workers are kept apart with one function each, and no further ones")

    def prox_of(self, v, gamma, of, error):
        return self.grad_of(v, of)

    def mean(self, v):
        return sum(v.each[1:], v.each[0]) / self.count

    def spread(self, v):
        return Apart([v] * self.count)

    def compress(self, v):
        return self._every(super().compress, v)

    def gossip(self, v):
        W = self.setting.W
        if W is None:
            raise UsageError("this method mixes with its neighbours; give mixing as a matrix or a topology.")
        return Apart([sum((c * u for c, u in zip(row, v.each, strict=True) if c), Vec()) for row in W])

    def gap(self, x):
        return super().gap(x) / self.count

    def sqnorm(self, v):
        return sum(map(super().sqnorm, v.each), Form()) / self.count if isinstance(v, Apart) else super().sqnorm(v)

    def consensus(self, x):
        return self.mean(x) if isinstance(x, Apart) else x

    def unknown(self, unit: float, shared: bool) -> Any:
        return self.basis(unit) if shared else Apart([self.basis(unit) for _ in range(self.count)])

    def nothing(self, shared: bool) -> Any:
        return Vec() if shared else Apart([Vec()] * self.count)


def _shared(v: Vec) -> Vec:
    return Vec(v.mean)


def exact_matrix(mixing: Any, n: int | None) -> tuple[tuple[Fraction, ...], ...]:
    """A mixing matrix in fractions, its rows adding up to 1 exactly; UsageError where it is none."""
    try:
        W = np.asarray(getattr(mixing, "W", mixing), float)
    except (TypeError, ValueError):
        raise UsageError("a mixing matrix is made of real numbers.") from None
    if W.ndim != 2 or W.shape[0] != W.shape[1] or not len(W):
        raise UsageError(f"a mixing matrix is square, not of shape {W.shape}.")
    if n not in (None, len(W)):
        raise UsageError(f"n = {n} workers do not fit a mixing matrix of {len(W)}.")
    if not np.isfinite(W).all() or np.abs(W - W.T).max() > NEAR or np.abs(W.sum(axis=0) - 1).max() > len(W) * NEAR:
        raise UsageError("a mixing matrix is symmetric and its rows add up to 1.")
    if np.abs(np.linalg.eigvalsh(W)).max() > 1 + len(W) * NEAR:
        raise UsageError("eigenvalues of a mixing matrix lie in [-1, 1].")
    near = [[_fraction(W[max(i, j), min(i, j)]) for j in range(len(W))] for i in range(len(W))]
    return tuple(
        tuple(c if j != i else 1 - sum(row[:i] + row[i + 1 :], Fraction(0)) for j, c in enumerate(row)) for i, row in enumerate(near)
    )


def _fraction(value: float) -> Fraction:
    simple = Fraction(value).limit_denominator(SMALL)
    return simple if abs(float(simple) - value) <= NEAR else Fraction(value)
