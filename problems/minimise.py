"""Minimisers of smooth strongly convex functions, to the last digits; what is proved about them is computed from their gradient."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

STALLED = 3  # iterations without halving the gradient norm, after which rounding errors rule


def newton(
    value: Callable[[np.ndarray], float],
    gradient: Callable[[np.ndarray], np.ndarray],
    solve: Callable[[np.ndarray, np.ndarray], np.ndarray],
    x: np.ndarray,
    most: int = 200,
) -> np.ndarray:
    """Damped Newton; ``solve(x, g)`` is the inverse Hessian at x times g.  Returns the point of smallest gradient norm that was met."""
    best, norm, stalled = x, np.inf, 0
    for _ in range(most):
        g = gradient(x)
        size = float(np.linalg.norm(g))
        stalled = 0 if size < norm / 2 else stalled + 1
        if size < norm:
            best, norm = x, size
        if stalled == STALLED or size == 0.0:
            break
        step = solve(x, g)
        x = x - _length(value, x, step, float(g @ step)) * step
    return best


def _length(value: Callable[[np.ndarray], float], x: np.ndarray, step: np.ndarray, slope: float) -> float:
    """The first of 1, 1/2, 1/4, ... that decreases the value, up to its rounding error."""
    now = value(x)
    slack = 1e-14 * (1 + abs(now))
    length = 1.0
    while value(x - length * step) > now - 1e-4 * length * slope + slack and length > 1e-12:
        length /= 2
    return length
