"""Spot checks of a problem: are its gradients those of its value, and do its constants hold where we look?

They can refute a declaration, never prove it.  What is measured below is a lower bound on the true constant (a Lipschitz ratio
over a segment, a curvature, a sampled second moment), so a finding is an error of the declaration beyond the tolerances here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from verify_rates.problems.local import on_ball
from verify_rates.solvers.method import UsageError
from verify_rates.solvers.own import repeats, shown

SCALES = (0.0, 1e-2, 1.0, 10.0)  # distances of the points from x* (or 0)
SEGMENT = 1e-3  # length of the segments over which gradients are compared, times 1 + ||x||
CLIMB = tuple(np.repeat((3.0, 1.0, 0.3, 0.1, 0.03), 6))  # steps of the search for points of extreme curvature
POWER_STEPS = 40  # towards the direction of largest or smallest curvature
RTOL = 1e-9  # rounding: gradients carry about 1e-14 of their size, divided by the segment and the curvature's share of it
DIFFERENCE_RTOL = (
    1e-5  # extrapolated central differences of the value at h = 1e-5: truncation is far below, rounding (u/h) is granted apart
)
RATIOS = 1000  # evaluations of the ratio that mu_pl bounds, a point
BALLS = (0.5, 2.0)  # radii of the balls around 0 on which local constants are compared
SIGMAS = 6.0  # standard errors of a sampled mean; a correct declaration fails with probability 1e-9 a check


@dataclass(frozen=True)
class Finding:
    """One declaration that does not hold.

    Attributes
    ----------
    what : name of the constant, or "grads".
    declared, measured : the two numbers (measured is a bound that the truth cannot fall short of).
    sentence : for the user; ``str`` adds the numbers of the point.
    at : the point at which it was measured, (d,); None for a contradiction between declarations.
    """

    what: str
    declared: float
    measured: float
    sentence: str
    at: np.ndarray | None = None

    def __str__(self) -> str:
        return self.sentence if self.at is None else f"{self.sentence.rstrip('.')} at x = {shown(self.at)}."


def check_constants(problem: Any, rng: np.random.Generator | None = None, points: int = 4, draws: int = 400) -> list[Finding]:
    """Random and adversarial spot checks of a problem's gradients and of all its declared constants.

    Gradients are compared with differences of the value; ``L``, ``mu``, ``L_max``, ``mu_min`` with the ratios along segments in the
    direction of largest and smallest curvature (power iteration on differences of gradients), and on balls where they are local
    (:func:`verify_rates.problems.local.on_ball`); ``f_star`` with values along gradient descent; ``x_star`` with its gradient and value;
    ``mu_pl`` with the ratio it bounds; ``sigma2`` with sampled noise (and its mean with 0); ``zeta2`` at the points.

    Parameters
    ----------
    problem : follows :class:`verify_rates.solvers.oracle.Oracle`, or the name of one.
    rng : default: seed 0.
    points : random points, besides x* and 0.
    draws : stochastic gradients a point.

    Returns
    -------
    The findings; empty where everything holds.  Errors: UsageError where a function fails, shapes are wrong, numbers are not
    finite, or two equal calls differ.

    >>> from verify_rates.problems import get_problem
    >>> check_constants(get_problem("quadratic", n=2, d=3))
    []
    """
    if isinstance(problem, str):
        from verify_rates.problems import get_problem

        problem = get_problem(problem)
    rng = rng or np.random.default_rng(0)
    _shapes(problem)
    where = list(_points(problem, rng, points))
    found = [f for f in _orderings(problem.constants) if f]
    for check in (_gradients, _curvature, _on_balls, _minimum, _slope, _spread, _noise):
        found += [f for f in check(problem, where, rng, draws) if f]
    return _worst(found)


def _worst(found: list[Finding]) -> list[Finding]:
    """The finding furthest off for every declaration."""
    worst: dict[str, Finding] = {}
    for f in found:
        if f.what not in worst or abs(f.measured - f.declared) > abs(worst[f.what].measured - worst[f.what].declared):
            worst[f.what] = f
    return list(worst.values())


def _exceeds(what: str, declared: float | None, measured: float, tol: float, at: np.ndarray) -> Finding | None:
    if declared is None or not measured > declared + tol:
        return None
    return Finding(what, declared, measured, f"{what} is declared as {declared:.10g}, but at least {measured:.10g} was measured.", at)


def _below(what: str, declared: float, measured: float, tol: float, at: np.ndarray) -> Finding | None:
    if not measured < declared - tol:
        return None
    return Finding(what, declared, measured, f"{what} is declared as {declared:.10g}, but at most {measured:.10g} was measured.", at)


def _exceeds_ratio(mu_pl: float, ratio: float, at: np.ndarray) -> Finding | None:
    if not ratio < mu_pl * (1 - RTOL):
        return None
    told = f"mu_pl is declared as {mu_pl:.10g}, but ||grad f||^2 / (2 (f - f*)) is at most {ratio:.10g} somewhere."
    return Finding("mu_pl", mu_pl, ratio, told, at)


def _shapes(problem: Any) -> None:
    x = np.zeros(problem.d)
    g = problem.grads(x)
    if getattr(g, "shape", None) != (problem.n, problem.d):
        raise UsageError(
            f"grads of {problem.name} must return shape ({problem.n}, {problem.d}), not {getattr(g, 'shape', type(g).__name__)}."
        )
    if not (np.all(np.isfinite(g)) and math.isfinite(float(problem.value(x)))):
        raise UsageError(f"value and gradients of {problem.name} must be finite at 0.")
    repeats(f"grads of {problem.name}", g, problem.grads(x))
    repeats(f"value of {problem.name}", problem.value(x), problem.value(x))
    repeats(f"stochastic grads of {problem.name}", *(problem.grads(x, [np.random.default_rng(1)] * problem.n) for _ in range(2)))
    if np.abs(problem.grads(np.zeros((problem.n, problem.d))) - g).max() > RTOL * (1 + np.abs(g).max()):
        raise UsageError(f"grads of {problem.name} differ between a shared point and the same point at every worker.")


def _points(problem: Any, rng: np.random.Generator, points: int) -> Iterator[np.ndarray]:
    centre = np.zeros(problem.d) if problem.constants.x_star is None else np.asarray(problem.constants.x_star)
    yield np.zeros(problem.d)
    yield centre
    for k in range(points):
        yield centre + SCALES[k % len(SCALES)] * rng.standard_normal(problem.d)


def _orderings(c: Any) -> Iterator[Finding | None]:
    """What holds between the constants of any problem."""
    pairs = [("mu_min", c.mu_min, "mu", c.mu), ("L", c.L, "L_max", c.L_max), ("mu", c.mu, "L", c.L)]
    pairs += [("f_star", c.f_star[0], "the upper end of f_star", c.f_star[1])]
    pairs += [("sigma2_star", c.sigma2_star, "sigma2_sup", c.sigma2_sup), ("zeta2_star", c.zeta2_star, "zeta2_sup", c.zeta2_sup)]
    for small, low, large, high in pairs:
        if low is not None and high is not None and low > high + RTOL * abs(high if math.isfinite(high) else 0.0):
            yield Finding(small, low, high, f"{small} = {low:.10g} is declared, but it must be at most {large} = {high:.10g}.")
    if c.convex and c.mu < 0:
        yield Finding("convex", 1.0, c.mu, f"a convex problem has mu of at least 0, but {c.mu:g} is declared.")


def _gradients(problem: Any, where: list[np.ndarray], rng: np.random.Generator, draws: int) -> Iterator[Finding | None]:
    """Directional derivatives of the value by central differences."""
    for x in where:
        v = rng.standard_normal(problem.d)
        v /= np.linalg.norm(v)
        h = 1e-5 * (1 + float(np.linalg.norm(x)))
        ends = [(problem.value(x + k * h * v), problem.value(x - k * h * v)) for k in (1.0, 0.5)]
        coarse, fine = ((high - low) / (2 * k * h) for (high, low), k in zip(ends, (1.0, 0.5), strict=True))
        slope, difference = float(problem.grads(x).mean(axis=0) @ v), (4 * fine - coarse) / 3  # without the terms of h^2
        rounding = 64 * 2.0**-53 * problem.d * (abs(ends[0][0]) + abs(ends[0][1])) / h
        L = abs(problem.constants.L)
        if math.isinf(L):  # what the gradients do along this segment
            L = float(np.linalg.norm((problem.grads(x + h * v) - problem.grads(x - h * v)).mean(axis=0))) / (2 * h)
        size = float(np.linalg.norm(problem.grads(x).mean(axis=0))) + h * L
        if not abs(slope - difference) <= DIFFERENCE_RTOL * size + rounding:
            told = f"the gradient along a direction is {slope:.8g}, but the value's slope is {difference:.8g}."
            yield Finding("grads", difference, slope, told, x)


def _curvature(problem: Any, where: list[np.ndarray], rng: np.random.Generator, draws: int) -> Iterator[Finding | None]:
    c = problem.constants

    def mean(X: np.ndarray) -> np.ndarray:
        return problem.grads(X[0]).mean(axis=0)[None, :]

    for x in where:
        yield from _extremes("L", "mu", c.L, c.mu, mean, x[None, :], rng)
        yield from _extremes("L_max", "mu_min", c.L_max, c.mu_min, problem.grads, np.tile(x, (problem.n, 1)), rng)


def _on_balls(problem: Any, where: list[np.ndarray], rng: np.random.Generator, draws: int) -> Iterator[Finding | None]:
    """The constants of balls around 0, at points that stay inside."""
    if not hasattr(problem, "_within"):
        return

    def mean(X: np.ndarray) -> np.ndarray:
        return problem.grads(X[0]).mean(axis=0)[None, :]

    for radius in BALLS:
        c, inside = on_ball(problem, radius), radius - 2 * SEGMENT * (1 + radius)

        def kept(X: np.ndarray, inside: float = inside) -> np.ndarray:
            return X * np.minimum(1.0, inside / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300))

        x = kept(rng.standard_normal((1, problem.d)))
        yield from _extremes("L", "mu", c.L, c.mu, mean, x, rng, kept)
        yield from _extremes("L_max", "mu_min", c.L_max, c.mu_min, problem.grads, np.tile(x, (problem.n, 1)), rng, kept)


def _extremes(
    high: str, low: str, L: float, mu: float, grads: Any, X: np.ndarray, rng: np.random.Generator, kept: Any = lambda X: X
) -> Iterator[Finding | None]:
    """Per row the largest ratio, then the smallest curvature, over segments from points that climb towards it, kept in a region."""
    h = SEGMENT * (1 + float(np.linalg.norm(X[0])))

    def slopes(X: np.ndarray, V: np.ndarray) -> np.ndarray:
        return (grads(X + h * V) - grads(X)) / h

    def ratios(X: np.ndarray, V: np.ndarray) -> np.ndarray:
        return np.linalg.norm(slopes(X, V), axis=1)

    def curvatures(X: np.ndarray, V: np.ndarray) -> np.ndarray:
        return np.sum(V * slopes(X, V), axis=1)

    rounding = 64 * 2.0**-53 * (1 + float(np.abs(grads(X)).max())) * math.sqrt(X.shape[1]) / h
    V = _iterate(lambda V: slopes(X, V), rng, X.shape)
    Y = _climb(lambda Y: ratios(Y, V), X, rng, kept)
    found = ratios(Y, _iterate(lambda V: slopes(Y, V), rng, X.shape))
    ratio = float(found.max())
    yield _exceeds(high, L, ratio, RTOL * abs(ratio) + rounding, Y[int(found.argmax())])
    V = _iterate(lambda V: ratio * V - slopes(X, V), rng, X.shape)
    Y = _climb(lambda Y: -curvatures(Y, V), X, rng, kept)
    found = curvatures(Y, _iterate(lambda V: ratio * V - slopes(Y, V), rng, X.shape))
    yield _below(low, mu, float(found.min()), RTOL * ratio + rounding, Y[int(found.argmin())])


def _iterate(product: Any, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Power iteration, per row."""
    V = _normalised(rng.standard_normal(shape))
    for _ in range(POWER_STEPS):
        V = _normalised(product(V))
    return V


def _climb(height: Any, X: np.ndarray, rng: np.random.Generator, kept: Any = lambda X: X) -> np.ndarray:
    """Random search with shrinking steps for a point of larger height, per row."""
    best = height(X)
    for scale in CLIMB:
        Y = kept(X + scale * rng.standard_normal(X.shape))
        now = height(Y)
        X = np.where((now > best)[:, None], Y, X)
        best = np.maximum(now, best)
    return X


def _normalised(V: np.ndarray) -> np.ndarray:
    size = np.linalg.norm(V, axis=1, keepdims=True)
    flat = np.full_like(V, 1 / math.sqrt(V.shape[1]))
    return np.where(size > 0, V / np.where(size > 0, size, 1.0), flat)


def _minimum(problem: Any, where: list[np.ndarray], rng: np.random.Generator, draws: int) -> Iterator[Finding | None]:
    c = problem.constants
    low, high = c.f_star
    if c.x_star is not None:
        value, g = problem.value(c.x_star), problem.grads(c.x_star)
        size = float(np.abs(g).max()) + 1e-300
        residual = float(np.linalg.norm(g.mean(axis=0)))
        tol = 1e-7 * (size + min(c.L, 1e300) * (1 + float(np.linalg.norm(c.x_star))))
        if not residual <= tol:
            yield Finding("x_star", 0.0, residual, f"x_star must be a minimiser, but the gradient there has norm {residual:.6g}.", c.x_star)
        elif not value <= high + RTOL * (1 + abs(value)):
            yield Finding("f_star", high, value, f"f_star is declared as at most {high:.10g}, but f(x_star) = {value:.10g}.", c.x_star)
    for x in where:
        L = on_ball(problem, 1 + 2 * float(np.linalg.norm(x))).L
        step = 1 / L if 0 < L < math.inf else 1e-3
        for _ in range(50):
            yield _below("f_star", low, problem.value(x), RTOL * (1 + abs(low)) if math.isfinite(low) else 0.0, x)
            x = x - step * problem.grads(x).mean(axis=0)


def _slope(problem: Any, where: list[np.ndarray], rng: np.random.Generator, draws: int) -> Iterator[Finding | None]:
    """The Polyak-Lojasiewicz inequality, at points from which line searches led to its smallest ratio."""
    from scipy.optimize import minimize

    c = problem.constants
    if c.mu_pl is None or not math.isfinite(c.f_star[1]):
        return

    def ratio(x: np.ndarray) -> float:
        gap = problem.value(x) - c.f_star[1]
        return float(np.sum(problem.grads(x).mean(axis=0) ** 2)) / (2 * gap) if gap > 1e-6 * (1 + abs(c.f_star[1])) else 1e300

    for x in where:
        start = x + rng.standard_normal(problem.d)  # x* itself has no ratio
        y = minimize(ratio, start, method="Powell", options={"maxfev": RATIOS}).x
        yield _exceeds_ratio(c.mu_pl, ratio(y), y)


def _spread(problem: Any, where: list[np.ndarray], rng: np.random.Generator, draws: int) -> Iterator[Finding | None]:
    c = problem.constants
    for x in where:
        g = problem.grads(x)
        measured = float(np.mean(np.sum((g - g.mean(axis=0)) ** 2, axis=1)))
        yield _exceeds("zeta2_sup", c.zeta2_sup, measured, RTOL * float(np.sum(g**2)), x)
    if c.x_star is not None:
        g = problem.grads(c.x_star)
        yield _exceeds("zeta2_star", c.zeta2_star, float(np.mean(np.sum(g**2, axis=1))), RTOL * float(np.sum(g**2)) + 1e-24, c.x_star)


def _noise(problem: Any, where: list[np.ndarray], rng: np.random.Generator, draws: int) -> Iterator[Finding | None]:
    c = problem.constants
    for x in where[1 : 1 + len(SCALES)]:
        exact = problem.grads(x)
        gens = [np.random.default_rng(seed) for seed in rng.integers(2**63, size=problem.n)]
        samples = np.stack([problem.grads(x, gens) for _ in range(draws)]) - exact  # (draws, n, d)
        squares = np.sum(samples**2, axis=2)
        rounding = RTOL * float(np.sum(exact**2))
        worker = squares.mean(axis=0)
        error = squares.std(axis=0) / math.sqrt(draws)
        i = int(np.argmax(worker - SIGMAS * error))
        yield _exceeds("sigma2_sup", c.sigma2_sup, float(worker[i] - SIGMAS * error[i]), rounding, x)
        if c.x_star is not None and np.array_equal(x, c.x_star):
            yield _exceeds("sigma2_star", c.sigma2_star, float(worker.mean() - SIGMAS * np.linalg.norm(error) / problem.n), rounding, x)
        known = c.sigma2_sup is not None and c.sigma2_sup < math.inf
        allowed = c.sigma2_sup if known else float(samples.var(axis=0).max())  # a rare outcome may be missing in its coordinate
        deviation = np.sqrt(np.maximum(samples.var(axis=0), allowed))
        bias = np.abs(samples.mean(axis=0)) - SIGMAS * deviation / math.sqrt(draws)
        far = float(bias.max())
        if far > math.sqrt(rounding) + 1e-12:
            yield Finding("grads", 0.0, far, f"stochastic gradients are biased: their mean is off by at least {far:.4g}.", x)
