"""Functions that are smooth on every ball but on no whole space: their constants are those of a ball that is named."""

from __future__ import annotations

import abc
import math
from typing import Any, NamedTuple

import numpy as np

from verify_rates.problems.base import Family, host, number
from verify_rates.problems.rounding import gamma, up
from verify_rates.solvers.method import UsageError


class Curvature(NamedTuple):
    """Bounds on the Hessians of f and of every f_i, as in :class:`verify_rates.solvers.oracle.Constants`."""

    L: float
    L_max: float
    mu: float
    mu_min: float


class Ball(NamedTuple):
    """Where constants hold: the gradients' Lipschitz constants between any two points of ``||x - centre|| <= radius``."""

    centre: np.ndarray  # (d,)
    radius: float
    L: float
    L_max: float
    mu: float
    mu_min: float


class LocallySmooth(Family):
    """A family whose global L is infinite; what it declares instead is a function of how far from 0 the points are."""

    @abc.abstractmethod
    def _within(self, reach: float) -> Curvature:
        """Bounds that hold for ``||x|| <= reach``."""


def on_ball(problem: Any, radius: float, centre: Any = None) -> Ball:
    """The constants of a problem on a ball: local ones where the family has no global ones, else the global ones.

    A method may use them as long as its iterates stay in the ball; nothing here says that they do.

    Parameters
    ----------
    problem : see :mod:`verify_rates.problems`.
    radius : of the ball, more than 0.
    centre : (d,); 0 if not given.

    Errors: UsageError for a radius that is not positive and finite, or a centre of another shape or not finite.

    >>> from verify_rates.problems import get_problem
    >>> f = get_problem("phase_retrieval", n=2, d=3)
    >>> f.constants.L, on_ball(f, 1.0).L < on_ball(f, 2.0).L < float("inf")
    (inf, True)
    """
    radius = number("radius", radius, 0, strict=True)
    middle = np.zeros(problem.d) if centre is None else host(centre)
    if middle.shape != (problem.d,) or not np.all(np.isfinite(middle)):
        raise UsageError(f"the centre of a ball must be {problem.d} finite numbers.")
    if not hasattr(problem, "_within"):
        c = problem.constants
        return Ball(middle, radius, c.L, c.L_max, c.mu, c.mu_min)
    reach = up((float(np.linalg.norm(middle)) * (1 + gamma(problem.d + 2)) + radius), 2)
    return Ball(middle, radius, *problem._within(reach))


def squares_up(rows: np.ndarray) -> np.ndarray:
    """Upper bounds on the squared norms of rows, (N,)."""
    return np.sum(rows**2, axis=-1) * (1 + gamma(rows.shape[-1] + 4))


def norm_up(M: np.ndarray) -> float:
    """A proved upper bound on the spectral norm of a matrix."""
    from verify_rates.problems.rounding import gram, largest_eigenvalue

    if not np.any(M):
        return 0.0
    G, error = gram(M if M.shape[0] >= M.shape[1] else M.T)
    return up(math.sqrt(up(largest_eigenvalue(G) + error)))
