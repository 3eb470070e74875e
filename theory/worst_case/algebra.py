"""Vectors and scalars of a worst case: exact coefficients over a basis, workers as mean plus deviation.

A vector is a combination of basis vectors whose Gram matrices are the unknowns of the semidefinite program; a scalar is affine in
function values and in squared norms averaged over the workers.  Coefficients are fractions, so that two ways of computing one
point give the same coordinates and a repeated evaluation is recognised.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any

from verify_rates.solvers.method import UsageError
from verify_rates.solvers.words import Unsupported

Coefficients = dict[int, Fraction]


def exact(value: Any) -> Fraction:
    """The number as a fraction (floats at their binary value, SymPy irrationals rounded to one); UsageError where it is none.

    >>> exact(0.5), exact(Fraction(1, 3))
    (Fraction(1, 2), Fraction(1, 3))
    """
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, (Vec, Form)):
        raise Unsupported("the worst case of a product of two unknowns: only scaling by a number has a quadratic description")
    if getattr(value, "is_Rational", False):  # SymPy
        return Fraction(int(value.p), int(value.q))
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise UsageError(f"a number is needed, not {value!r}.") from None
    if not math.isfinite(number):
        raise UsageError(f"a finite number is needed, not {value!r}.")
    return Fraction(number)


def is_fraction(value: Any) -> bool:
    """Whether the number is a fraction already, Python's or SymPy's."""
    return isinstance(value, Fraction) or bool(getattr(value, "is_Rational", False))


def _inverse(value: Any) -> Fraction:
    c = exact(value)
    if c == 0:
        raise UsageError("a step or a measure divides by zero here.")
    return 1 / c


def _sum(a: Mapping[int, Fraction], b: Mapping[int, Fraction], sign: int) -> Coefficients:
    out = dict(a)
    for k, c in b.items():
        total = out.get(k, 0) + sign * c
        if total:
            out[k] = Fraction(total)
        else:
            out.pop(k, None)
    return out


def _scaled(a: Mapping[int, Fraction], c: Fraction) -> Coefficients:
    return {k: c * v for k, v in a.items()} if c else {}


class Vec:
    """A vector: coefficients of its mean over the workers and of its deviation; ``shared`` ones have no deviation."""

    __array_ufunc__ = None  # a NumPy scalar on the left hands over to __rmul__
    __slots__ = ("dev", "mean", "shared")

    def __init__(self, mean: Coefficients | None = None, dev: Coefficients | None = None, shared: bool = True) -> None:
        self.mean, self.dev, self.shared = mean or {}, dev or {}, shared

    @property
    def key(self) -> Hashable:
        """Exact coordinates: equal for equal points, shared or not."""
        return frozenset(self.mean.items()), frozenset(self.dev.items())

    def _with(self, other: Any, sign: int) -> Vec:
        if not isinstance(other, Vec):
            if isinstance(other, numbers.Number) and other == 0:
                return self  # sum() starts from 0
            raise UsageError(f"a vector of the state meets {type(other).__name__}; only vectors can be added to vectors.")
        if other.shared is not self.shared:
            raise UsageError("a shared value meets a per worker one; use spread(w, v) or mean(w, v) to say what is meant.")
        return Vec(_sum(self.mean, other.mean, sign), _sum(self.dev, other.dev, sign), self.shared)

    def __add__(self, other: Any) -> Vec:
        return self._with(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Vec:
        return self._with(other, -1)

    def __rsub__(self, other: Any) -> Vec:
        return (-self)._with(other, 1)

    def __mul__(self, factor: Any) -> Vec:
        c = exact(factor)
        return Vec(_scaled(self.mean, c), _scaled(self.dev, c), self.shared)

    __rmul__ = __mul__

    def __truediv__(self, factor: Any) -> Vec:
        return self * _inverse(factor)

    def __neg__(self) -> Vec:
        return self * -1


class Form:
    """A scalar: ``const + sum_k f[k] F_k + sum c mean_i ||v_i||^2`` over the pairs ``(c, v)`` of ``squares``."""

    __array_ufunc__ = None
    __slots__ = ("const", "f", "squares")

    def __init__(self, const: Any = 0, f: Coefficients | None = None, squares: tuple[tuple[Fraction, Vec], ...] = ()) -> None:
        self.const, self.f, self.squares = Fraction(const), f or {}, squares

    def __add__(self, other: Any) -> Form:
        if not isinstance(other, Form):
            return Form(self.const + exact(other), self.f, self.squares)
        return Form(self.const + other.const, _sum(self.f, other.f, 1), self.squares + other.squares)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Form:
        return self + (-1) * other if isinstance(other, Form) else self + (-exact(other))

    def __rsub__(self, other: Any) -> Form:
        return -self + other

    def __mul__(self, factor: Any) -> Form:
        c = exact(factor)
        return Form(c * self.const, _scaled(self.f, c), tuple((c * a, v) for a, v in self.squares if c))

    __rmul__ = __mul__

    def __truediv__(self, factor: Any) -> Form:
        return self * _inverse(factor)

    def __neg__(self) -> Form:
        return self * -1

    def _refuse(self, *_: Any) -> Any:
        raise Unsupported("the worst case of this measure: it must be linear in gaps and squared norms (no powers, roots, comparisons)")

    __float__ = __bool__ = __lt__ = __le__ = __gt__ = __ge__ = __pow__ = __abs__ = _refuse


def sqnorm(v: Vec) -> Form:
    """``mean_i ||v_i||^2``."""
    return Form(squares=((Fraction(1), v),))


def inner(a: Vec, b: Vec) -> Form:
    """``mean_i <a_i, b_i>``, by polarisation."""
    return (sqnorm(a + b) - sqnorm(a - b)) / 4
