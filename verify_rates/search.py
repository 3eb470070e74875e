"""Evidence from adversarial search: the instance of a family that comes closest to a claim's bound, or beats it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from verify_rates.points import steps_of
from verify_rates.runs import NotApplicable, bound_at, broken, check_run, execute, recipe
from verify_rates.solvers.method import UsageError, nearest
from verify_rates.theory.claims import Claim, Point
from verify_rates.trust import Broken
from verify_rates.verdicts import Check

# Ranges of what is searched, in logarithms; positions are of size 1 and L is 1, which units allow.
FAMILIES: dict[str, dict[str, tuple[float, float]]] = {
    "huber": {"c": (1e-3, 1.0)},
    "one_minus_cos": {"omega": (0.1, 10.0)},
}
SHIFT, SIGMA2 = (1e-3, 3.0), (1e-3, 10.0)  # heterogeneity and noise, where the claim allows them
SCOUTS = 8  # seeds while searching; the best instance is then measured on fresh ones
# Keys of a parameter point that the instance decides.
OF_THE_INSTANCE = {"problem", "x0", "topology", "n", "d", "L", "mu", "L_max", "mu_min", "zeta2_star", "zeta2_sup"}
OF_THE_INSTANCE |= {"sigma2", "sigma2_star", "sigma2_sup", "V0", "R2", "F0", "G0"}
DIMENSION = 8  # where a compressor has something to choose from
STEPS = 60  # longer runs only approach the stationary state


def check_family(claim: Claim, family: str, *, seed: int, trials: int, budget: int) -> Check:
    """Search a family of instances for the largest measured/bound, then measure the best one on fresh seeds.

    Half of the budget draws at random, half refines the best found, in the logarithms of the parameters.
    """
    if family not in FAMILIES:
        raise nearest(family, FAMILIES, "instance family")
    rng = np.random.default_rng([seed, 7])
    rest = _rest(claim)
    best, ratio = None, -math.inf
    width = 1.0
    for i in range(budget):
        near = best if i >= budget // 2 else None
        point = _draw(claim, family, rest[i % len(rest)] if near is None else near, rng, near, width)
        try:
            value = _ratio(claim, point, seed)
        except Broken as why:
            return broken("search", claim, point, why)
        if value > ratio:
            best, ratio = point, value
        elif near is not None:
            width *= 0.9
    if best is None:
        return Check(
            "search", {"family": family}, None, math.nan, math.nan, claim.relation, status="not applicable", message="no instance applies"
        )
    found = check_run(claim, best, seed=seed + 1, trials=trials, kind="search")
    return replace(found, message=f"best of {budget} instances of {family}: {found.message}")


def _rest(claim: Claim) -> list[dict[str, Any]]:
    """The claim's own parameters (without its problems), each once."""
    points = [{k: v for k, v in p.items() if k not in OF_THE_INSTANCE} for p in claim.runs or claim.grid]
    points = [{**p, "N": min(steps_of(claim, p), STEPS)} for p in points]
    if not points:
        raise UsageError(f"claim {claim.id}: a search takes N and the method's parameters from runs or a grid; give one of them.")
    unique = {repr(sorted(p.items(), key=str)): p for p in points}
    return list(unique.values())


def _draw(claim: Claim, family: str, rest: Mapping[str, Any], rng: np.random.Generator, near: Point | None, width: float) -> dict[str, Any]:
    setting = claim.setting
    ranges = dict(FAMILIES[family])
    n = setting.n if isinstance(setting.n, int) else int(rng.choice([1, 2, 5]))
    if near is not None:
        n = near["problem"]["n"]
    if n > 1 and not setting.shared_minimiser:
        ranges["shift"] = SHIFT
    if setting.noise:
        ranges["sigma2"] = SIGMA2
    values = {
        name: _log_uniform(rng, low, high, None if near is None else near["problem"].get(name), width)
        for name, (low, high) in ranges.items()
    }
    problem: dict[str, Any] = {"name": family, "n": n, "d": DIMENSION if setting.compressor else 1, "L": 1.0, "centre": 1.0, **values}
    if setting.noise:
        problem["noise"] = "two_point"
    return {**{k: v for k, v in rest.items() if k != "problem"}, "problem": problem}


def _log_uniform(rng: np.random.Generator, low: float, high: float, near: float | None, width: float) -> float:
    if near is None:
        return float(np.exp(rng.uniform(math.log(low), math.log(high))))
    return float(np.clip(near * np.exp(0.3 * width * rng.standard_normal()), low, high))


def _ratio(claim: Claim, point: Point, seed: int) -> float:
    """Measured/bound of a few seeds; -inf where the claim says nothing."""
    try:
        made, values = recipe(claim, point, seed, SCOUTS)
        done = execute(made)
        bound = bound_at(claim, {**values, "V0": done["V0"]})
    except NotApplicable:
        return -math.inf
    mean = float(np.mean(done["values"]))
    return mean / bound if bound > 0 else math.inf if mean > 0 else -math.inf
