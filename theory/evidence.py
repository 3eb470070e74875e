"""What the checks of ``theory/calculators`` return, and the traced runs that they share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# A run of at most some hundred steps in double precision; each step adds a few roundings of the size of the iterates.
IDENTITY_RTOL = 1e-11

PROBLEMS: dict[str, dict[str, Any]] = {
    "quadratic": {"name": "quadratic", "n": 4, "d": 12, "L": 1.0, "mu": 0.1, "zeta2_star": 1.0},
    "logistic": {"name": "logistic", "data": "breast_cancer", "n": 5, "lam": 1e-2},
    "nonconvex_logistic": {"name": "nonconvex_logistic", "data": "breast_cancer", "n": 5, "lam": 1e-1},
}


@dataclass(frozen=True)
class Found:
    """A measured value, known to lie in [lower, upper], beside what the claim says of it.

    ``proves`` where the interval encloses the exact value of the claim at this point (a symbolic or exhaustive answer).
    """

    lower: float
    upper: float
    bound: float
    relation: str = "<="
    proves: bool = False
    message: str = ""

    @classmethod
    def identity(cls, residual: float, message: str = "") -> Found:
        """An identity that was met up to ``residual``, relative to the size of its terms."""
        return cls(residual, residual, IDENTITY_RTOL, message=message or f"largest relative residual {residual:.2e}")

    @classmethod
    def count(cls, violations: int, cases: int, proves: bool = False) -> Found:
        """A property that was violated in so many of so many cases."""
        return cls(float(violations), float(violations), 0.0, proves=proves, message=f"{violations} of {cases} cases violate it")


def trace(
    method: str,
    problem: str,
    hyper: dict[str, Any],
    steps: int,
    *,
    compressor: str | None = None,
    topology: str | None = None,
    seed: int = 0,
    sigma2: float = 0.0,
) -> tuple[Any, list[Any], list[list[np.ndarray]]]:
    """Run the step function itself; ``(problem, states 0..steps, gradients of every step in the order of the calls)``."""
    from verify_rates.problems import get_problem
    from verify_rates.solvers.engine.arrays import ArrayWorld, state_of, world_of
    from verify_rates.solvers.engine.run import make_plan

    class Recorder(ArrayWorld):
        def grad(self, x):
            seen.append(super().grad(x))
            return seen[-1]

    made = get_problem(**PROBLEMS[problem], sigma2=sigma2)
    plan = make_plan(method, made, hyper, steps, compressor=compressor, topology=topology)
    world = world_of(plan, (seed, 0))
    world.__class__ = Recorder
    seen: list[np.ndarray] = []
    states, gradients = [state_of(plan, plan.start())], []
    for t in range(steps):
        seen, world.t = [], t
        states.append(plan.method.step(states[-1], world, plan.hyper(t), t))
        gradients.append(seen)
    return made, states, gradients


def relative(residuals: list[np.ndarray], scale: list[np.ndarray]) -> float:
    """The largest norm among the residuals over the largest among the terms."""
    top = max(float(np.linalg.norm(v)) for v in scale)
    return max(float(np.linalg.norm(v)) for v in residuals) / top
