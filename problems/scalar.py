"""Adversarial families: one scalar function in every coordinate, shifted for each worker."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from verify_rates.problems.base import Family, host, number
from verify_rates.problems.rounding import U, down, gamma, up
from verify_rates.solvers.method import UsageError
from verify_rates.solvers.oracle import Constants


@dataclass(kw_only=True, eq=False)
class Shifted(Family):
    """``f_i(x) = sum_j phi(x_j - s_ij)`` with ``s_ij`` uniform in ``[centre - shift, centre + shift]``.

    Parameters
    ----------
    n, d : workers and dimension.
    centre : where the functions sit, so that a start at 0 has this distance in every coordinate.
    shift : heterogeneity; 0: all workers share one function, f* = 0, and the constants are exact.
    seed : of the shifts.
    noise, sigma2, p : see :class:`~verify_rates.problems.base.Problem`; "two_point" is the adversarial one.
    """

    n: int = 1
    d: int = 1
    L: float = 1.0
    centre: float = 1.0
    shift: float = 0.0
    seed: int = 0

    def _check(self) -> None:
        self.d = number("d", self.d, 1, whole=True)
        self.L = number("L", self.L, 0, strict=True)
        self.centre = number("centre", self.centre)
        self.shift = number("shift", self.shift, 0)
        self.seed = number("seed", self.seed, 0, whole=True)
        if self.n == 1 and self.shift > 0:
            raise UsageError("one worker has no heterogeneity: choose shift = 0, or n of at least 2.")
        rng = np.random.default_rng([self.seed, 4])
        self._shifts = self.centre + self.shift * rng.uniform(-1.0, 1.0, (self.n, self.d))
        self._shape()

    @abc.abstractmethod
    def _shape(self) -> None:
        """Validate and prepare what phi needs."""

    @abc.abstractmethod
    def _values(self, r: np.ndarray) -> np.ndarray:
        """phi at r, any shape."""

    def value(self, x: np.ndarray) -> float:
        """``f(x)``."""
        return float(np.mean(np.sum(self._values(host(x) - self._shifts), axis=1)))

    @property
    def _alike(self) -> bool:
        return bool(np.all(self._shifts == self._shifts[0]))


@dataclass(kw_only=True, eq=False)
class Huber(Shifted):
    """The classical worst case of gradient descent: a parabola that turns into a line, plus ``mu/2 r^2``.

    ``phi(r) = (L - mu) h_c(r) + mu r^2/2`` with ``h_c(r) = r^2/2`` for ``|r| <= c`` and ``c |r| - c^2/2`` beyond.  With d = 1, one worker,
    ``c = R/(2 N gamma L + 1)`` and the start at distance R it attains ``L R^2/(2 (2 N gamma L + 1))`` after N steps of gamma <= 1/L.

    Guarantee: L and mu exact where shift = 0, valid bounds else; f* is an interval proved by convexity.

    Parameters: see :class:`Shifted`; c, where the line begins; ``0 <= mu <= L``.

    >>> Huber(L=2.0, mu=0.5).constants.f_star
    (0.0, 0.0)
    """

    name: ClassVar[str] = "huber"
    mu: float = 0.0
    c: float = 0.1

    def _shape(self) -> None:
        self.mu = number("mu", self.mu, 0)
        self.c = number("c", self.c, 0, strict=True)
        if self.mu > self.L:
            raise UsageError(f"mu must be at most L, but mu = {self.mu:g} and L = {self.L:g}.")
        self._curve = self.L - self.mu
        while Fraction(self._curve) + Fraction(self.mu) > Fraction(self.L):
            self._curve = down(self._curve)

    def _values(self, r: np.ndarray) -> np.ndarray:
        r = np.abs(r)
        inner = np.minimum(r, self.c)
        return self._curve * inner * (r - inner / 2) + self.mu * r**2 / 2

    def _full(self, x: Any, xp: Any) -> Any:
        r = x - xp.asarray(self._shifts)
        return self._curve * xp.clip(r, -self.c, self.c) + self.mu * r

    def _constants(self) -> Constants:
        """Derivatives are nondecreasing, so at the computed minimiser each is within n times the mean's residual of that at x*."""
        x = self._shifts[0].copy() if self._alike else self._bisected()
        g = self._full(x, np)
        error = gamma(self.n + 8) * np.max(np.abs(g) + self._curve * self.c + self.mu * np.abs(x - self._shifts), axis=0)
        residual = 0.0 if self._alike else np.abs(g.mean(axis=0)) + error
        width = np.ptp(self._shifts, axis=0) * (1 + 2 * U)  # a minimiser lies between the shifts
        high = self.value(x) * (1 + gamma(self.n * self.d + 12))
        low = self.value(x) * (1 - gamma(self.n * self.d + 12)) - float(np.sum(residual * width)) * (1 + gamma(self.d + 4))
        at_star = float(np.mean(np.sum((np.abs(g) + self.n * residual + error * (not self._alike)) ** 2, axis=1)))
        star, sup = at_star * (1 + gamma(self.n * self.d + 8)), self._spread_sup()
        return Constants(
            L=self.L,
            L_max=self.L,
            mu=self.mu,
            mu_min=self.mu,
            sigma2_star=0.0,
            sigma2_sup=0.0,
            zeta2_star=min(star, sup),
            zeta2_sup=sup,
            f_star=(0.0, 0.0) if self._alike else (max(0.0, down(low)), up(high)),
            x_star=x,
            convex=True,
        )

    def _spread_sup(self) -> float:
        """``|phi'(x - s) - phi'(x - s')| <= L |s - s'|``: at most ``L^2`` times the shifts' variance; clipping bounds it too."""
        if self._alike:
            return 0.0
        spread = float(np.sum(np.var(self._shifts, axis=0)) + 8 * U * self.d * np.max(np.abs(self._shifts)) * self.shift)
        bound = self.L**2 * spread * (1 + gamma(self.n * self.d + 8))
        return up(bound if self.mu > 0 else min(bound, self.d * (self._curve * self.c) ** 2 * (1 + 8 * U)))

    def _bisected(self) -> np.ndarray:
        low, high = self._shifts.min(axis=0), self._shifts.max(axis=0)
        for _ in range(100):
            middle = (low + high) / 2
            rising = self._full(middle, np).mean(axis=0) > 0
            low, high = np.where(rising, low, middle), np.where(rising, middle, high)
        return (low + high) / 2

    def _data(self) -> dict[str, np.ndarray]:
        return {"vectors": self._shifts, "params": np.array([self._curve, self.c, self.mu])}

    def _kernels(self) -> tuple[Any, Any]:
        from verify_rates.problems import kernels

        return kernels.huber, kernels.huber_value


@dataclass(kw_only=True, eq=False)
class OneMinusCos(Shifted):
    """A smooth nonconvex function with every curvature between -L and L: ``phi(r) = L/omega^2 (1 - cos(omega r))``.

    The mean over the workers is ``L/omega^2 (1 - R_j cos(omega x_j - theta_j))`` with ``R_j e^{i theta_j} = mean_i e^{i omega s_ij}``, so
    everything is known in closed form: ``f* = L/omega^2 sum_j (1 - R_j)``, ``x*_j = theta_j/omega``.

    Parameters: see :class:`Shifted`; omega, the frequency.

    >>> OneMinusCos(L=2.0).constants.mu
    -2.0
    """

    name: ClassVar[str] = "one_minus_cos"
    omega: float = 1.0

    def _shape(self) -> None:
        self.omega = number("omega", self.omega, 0, strict=True)
        self._slope = self.L / self.omega
        while Fraction(self._slope) * Fraction(self.omega) > Fraction(self.L):
            self._slope = down(self._slope)

    def _values(self, r: np.ndarray) -> np.ndarray:
        return 2 * self._slope / self.omega * np.sin(self.omega * r / 2) ** 2

    def _full(self, x: Any, xp: Any) -> Any:
        return self._slope * xp.sin(self.omega * (x - xp.asarray(self._shifts)))

    def _constants(self) -> Constants:
        """Angles carry an error of a few u times their size; ``slack`` grants 64."""
        first = np.mean(np.exp(1j * self.omega * self._shifts), axis=0)
        second = np.mean(np.exp(2j * self.omega * self._shifts), axis=0)
        x = self._shifts[0].copy() if self._alike else np.angle(first) / self.omega
        slack = gamma(64 + self.n) * (1 + self.omega * float(np.abs(self._shifts).max() + np.abs(x).max()))
        R = np.ones(self.d) if self._alike else np.abs(first)
        lowest, scale = float(np.sum(1 - R)), self._slope / self.omega
        star = self._slope**2 * (float(np.mean(np.sum(np.sin(self.omega * (x - self._shifts)) ** 2, axis=1))) + 2 * self.d * slack)
        sup = self._slope**2 * (float(np.sum((1 - R**2 + np.abs(first**2 - second)) / 2)) + 2 * self.d * slack)
        steepest = min(self.L, up(self.L * (float(R.max()) + slack)))
        return Constants(
            L=steepest,
            L_max=self.L,
            mu=-steepest,
            mu_min=-self.L,
            sigma2_star=0.0,
            sigma2_sup=0.0,
            zeta2_star=0.0 if self._alike else up(star, 4),
            zeta2_sup=0.0 if self._alike else up(sup, 4),
            f_star=(0.0, 0.0) if self._alike else _around(scale * lowest, scale * self.d * slack),
            x_star=x,
            convex=False,
        )

    def _data(self) -> dict[str, np.ndarray]:
        return {"vectors": self._shifts, "params": np.array([self._slope, self.omega])}

    def _kernels(self) -> tuple[Any, Any]:
        from verify_rates.problems import kernels

        return kernels.one_minus_cos, kernels.one_minus_cos_value


def _around(value: float, error: float) -> tuple[float, float]:
    return max(0.0, math.nextafter(value - error, -math.inf)), up(value + error)
