"""Evidence from runs: one parameter point of a claim, simulated and measured, with the accuracy of what was measured."""

from __future__ import annotations

import importlib
import json
import math
import numbers
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from inspect import isclass
from pathlib import Path
from typing import Any

import numpy as np

from verify_rates.points import RECIPE_KEYS, steps_of
from verify_rates.problems import get_problem
from verify_rates.solvers.measures import get_measure
from verify_rates.solvers.method import UsageError, get_method
from verify_rates.solvers.own import is_own
from verify_rates.solvers.words import Unsupported
from verify_rates.statistics import e_value
from verify_rates.theory import symbols
from verify_rates.theory.claims import COMPRESSORS, Claim, Point
from verify_rates.trust import BROKEN, Broken, vouch
from verify_rates.verdicts import RTOL_RUN, Check

# A minimiser counts as shared where the workers' gradients there are this small against L_max^2 (rounding of the solver for x*).
SHARED_RTOL = 1e-20
FRESH = 1_000_003  # added to the seed where a sample is drawn again
# Up to so many steps over all seeds, on so few samples, the array engine is done before the compiled one has loaded its kernels.
SMALL, FEW_ROWS = 8_000, 5_000
# On large data fewer seeds are run, never fewer than these: rows read in all, a step and its measure reading every row once.
LEAST_TRIALS, ROWS = 4, 2.5e7
BELOW = "a run below a lower bound on the worst case says nothing"
COINS = {"chance", "each", "flip"}  # words that draw in any run
TRACK = {"last": (), "best": ("best",), "mean": ("mean",), "average_iterate": ("average",)}


class NotApplicable(Exception):
    """A claim's assumption fails at a parameter point; the message says which."""


class Unfit(NotApplicable):
    """A user's compressor has no constants at a parameter point; in a run that names it, that is a mistake."""


def problem_of(spec: Mapping[str, Any]) -> Any:
    """The problem of a run; made once, but for a user's, which stays what its file made of it."""
    from verify_rates.problems import problems

    made = problems().get(str(spec.get("name")))
    if made is not None and not isclass(made):
        return get_problem(**spec)
    return _problem(json.dumps(dict(spec), sort_keys=True, default=str), _stamp(str(spec.get("data"))))


def _stamp(path: str) -> tuple[int, ...]:
    """What changes with a data file's content; empty for data that are no file."""
    if not Path(path).is_file():
        return ()
    stat = Path(path).stat()
    return stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size


@lru_cache(maxsize=32)
def _problem(text: str, stamp: tuple[int, ...]) -> Any:
    return get_problem(**json.loads(text))


def define(claim: Claim, values: dict[str, Any]) -> dict[str, Any]:
    """Adds the claim's definitions to the values; a definition that contains ``t`` becomes a schedule, a list over the steps.

    Raises NotApplicable where a condition of the claim fails.
    """
    known: dict[str, Any] = {k: v for k, v in values.items() if isinstance(v, numbers.Real) and k in symbols.SYMBOLS}
    schedules: dict[str, list[float]] = {}
    for name, text in claim.lets.items():
        expr = symbols.parse(text)
        if any(s.name == "t" for s in expr.free_symbols):
            schedules[name] = [symbols.number(expr, {**known, "t": t}) for t in range(steps_of(claim, known))]
        else:
            known[name] = symbols.number(expr, known)
    for condition in claim.when:
        if not symbols.holds(condition, known):
            raise NotApplicable(f"{condition} does not hold here")
    return {**values, **known, **schedules}


def bound_at(claim: Claim, values: Mapping[str, Any]) -> float:
    """The claim's bound as a number; NotApplicable where it needs a constant that is unknown or infinite."""
    expr = symbols.parse(claim.bound)
    needed = sorted(s.name for s in expr.free_symbols)
    missing = [s for s in needed if values.get(s) is None]
    if missing:
        raise NotApplicable(f"{', '.join(missing)} is not known here")
    infinite = [s for s in needed if math.isinf(values[s])]
    if infinite:
        raise NotApplicable(f"{', '.join(infinite)} is infinite here, so the bound says nothing")
    return symbols.number(expr, values)


def hyper_of(claim: Claim, values: Mapping[str, Any]) -> dict[str, Any]:
    """The method's hyper-parameters among the values."""
    method = get_method(claim.method)
    return {f: values[f] for f in method.hyper._fields if f in values}


def measure_path(measure: str | Callable[..., Any]) -> str:
    """A measure as text that finds it again: its name, or ``module:function``; UsageError for one that stands in no module."""
    if callable(measure) and "<" in measure.__qualname__:
        raise UsageError(f"the measure {measure.__qualname__} must be a function at the top level of its file, so that it is found again.")
    return measure if isinstance(measure, str) else f"{measure.__module__}:{measure.__qualname__}"


def measure_from(path: str) -> Callable[..., Any]:
    """The measure of that path."""
    if ":" not in path:
        return get_measure(path)
    module, name = path.split(":")
    return getattr(importlib.import_module(module), name)


def constants_of(claim: Claim, problem: Any, compressor: Any, topology: Any) -> dict[str, Any]:
    """The letters that a problem, a compressor and a topology give a value; NotApplicable where the claim's setting is not theirs."""
    c, setting = problem.constants, claim.setting
    if setting.functions.startswith("smooth") and math.isinf(c.L):
        raise NotApplicable(f"{problem.name} is smooth on balls alone, its global L is infinite")
    if setting.functions == "smooth_strongly_convex" and not c.convex:
        raise NotApplicable(f"{problem.name} is not convex")
    if setting.n != "any" and problem.n != setting.n:
        raise NotApplicable(f"the claim is about n = {setting.n}, the problem has {problem.n} workers")
    if setting.shared_minimiser and not (c.zeta2_star is not None and c.zeta2_star <= SHARED_RTOL * c.L_max**2):
        raise NotApplicable("the workers have no common minimiser here")
    if problem.stochastic and not setting.noise:
        raise NotApplicable("the claim is about exact gradients")
    values = {
        "n": problem.n,
        "d": problem.d,
        "L": c.L_max if setting.per_worker else c.L,
        "mu": c.mu_min if setting.per_worker else c.mu,
        "L_max": c.L_max,
        "mu_min": c.mu_min,
        "sigma2": c.sigma2_sup,
        "sigma2_sup": c.sigma2_sup,
        "sigma2_star": c.sigma2_star,
        "zeta2_star": c.zeta2_star,
        "zeta2_sup": c.zeta2_sup,
        "rho": None if topology is None else topology.rho,
    }
    if compressor is None:
        return values
    try:
        known = compressor.constants(problem.d)
    except UsageError as error:
        raise (Unfit if is_own(compressor) else NotApplicable)(str(error)) from None
    if not setting.compressor:
        raise UsageError(f"claim {claim.id}: a run compresses; say of which class in the setting, such as compressor='contractive'.")
    if COMPRESSORS[setting.compressor] not in known:
        raise NotApplicable(f"{compressor.name} is not {setting.compressor}")
    return {**values, **known}


def recipe(claim: Claim, point: Point, seed: int, trials: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """``(what to run, the values of the letters)`` at a parameter point; Broken where it rests on a wrong declaration."""
    problem = problem_of(point["problem"])
    compressor = _made("compressor", point.get("compressor"), problem)
    topology = _made("topology", point.get("topology"), problem)
    values = constants_of(claim, problem, compressor, topology)
    given = {k: v for k, v in point.items() if k not in RECIPE_KEYS}
    if taken := [k for k in given if values.get(k) is not None and not math.isclose(values[k], given[k], rel_tol=RTOL_RUN)]:
        raise UsageError(f"claim {claim.id}: a run must not set {taken[0]}; its problem and its compressor have {values[taken[0]]:.6g}.")
    values |= given
    x0 = point.get("x0")
    start = _start(x0, problem)
    if start.shape != (problem.d,):
        raise UsageError(f"claim {claim.id}: x0 has shape {start.shape}, the problem's points have {(problem.d,)}.")
    values.update(_initial(problem, start))
    values = define(claim, values)
    stochastic = problem.stochastic or bool(getattr(compressor, "random", False)) or not COINS.isdisjoint(_words(claim, values))
    made = {
        "method": claim.method,
        "hyper": hyper_of(claim, values),
        "problem": dict(point["problem"]),
        "compressor": point.get("compressor"),
        "topology": point.get("topology"),
        "steps": (steps := steps_of(claim, values)),
        "x0": x0,
        "measure": measure_path(claim.measure),
        "take": claim.take,
        "initial": measure_path(claim.initial) if any(s.name == "V0" for s in symbols.parse(claim.bound).free_symbols) else None,
        "seed": seed,
        "trials": int(point.get("seeds", _affordable(trials, steps, problem))) if stochastic else 1,
        "stochastic": stochastic,
    }
    vouch(problem, compressor, kernels=engine_of(made) == "numba")
    return made, values


def _start(x0: Any, problem: Any) -> np.ndarray:
    """Where :func:`verify_rates.solvers.engine.run.simulate` starts."""
    return np.array(getattr(problem, "start", np.zeros(problem.d)) if x0 is None else x0, dtype=float)


def _words(claim: Claim, values: Mapping[str, Any]) -> tuple[str, ...]:
    from verify_rates.solvers.kinds import check_kinds

    method = get_method(claim.method)
    return check_kinds(method, method.hypers(**hyper_of(claim, values)), steps_of(claim, values))


def _made(what: str, spec: Any, problem: Any) -> Any:
    if spec is None:
        return None
    if what == "compressor":
        from verify_rates.solvers.compressors import get_compressor

        return get_compressor(spec)
    from verify_rates.solvers.topologies import get_topology

    return get_topology(spec, problem.n)


def _initial(problem: Any, x0: np.ndarray) -> dict[str, Any]:
    """F0, R2 and G0 at the start; F0 from the lower end of f*, so that a bound is never too small by the width of that interval."""
    c = problem.constants
    return {
        "F0": problem.value(x0) - c.f_star[0],
        "R2": None if c.x_star is None else float(np.sum((x0 - c.x_star) ** 2)),
        "G0": float(np.sum(problem.grads(x0).mean(axis=0) ** 2)),
    }


def engine_of(made: Mapping[str, Any]) -> str:
    """The engine that runs a recipe; both draw the same numbers and agree to rounding."""
    small = made["steps"] * made["trials"] <= SMALL and rows_of(problem_of(made["problem"])) <= FEW_ROWS
    return "numpy" if small else "numba"


def rows_of(problem: Any) -> int:
    """Samples of a problem (its workers, where it has none)."""
    return int(problem.offsets[-1]) if hasattr(problem, "offsets") else problem.n


def _affordable(trials: int, steps: int, problem: Any) -> int:
    return min(trials, max(LEAST_TRIALS, int(ROWS // (2 * steps * rows_of(problem)))))


def execute(made: Mapping[str, Any]) -> dict[str, Any]:
    """Run a recipe: ``values``, the measured value of every trial (inf where it diverged), ``V0``, the initial value, and ``engine``."""
    measure = measure_from(made["measure"])
    start = _start_measure(made["initial"])
    measures = tuple({f.__name__: f for f in (measure, start) if f is not None}.values())
    history, engine = _history(made, measures, engine_of(made))
    if history.diverged.any() and engine != "numpy" and _rests_on_own(made):
        history, engine = _history(made, measures, "numpy")  # which says where a user's function has no number to give
    name = measure.__name__
    taken = {
        "last": history.values[name][:, -1],
        "best": history.best[name],
        "mean": history.means[name],
        "average_iterate": history.at_average[name],
    }[made["take"]]
    values = taken if made["take"] == "best" else np.where(history.diverged, np.inf, taken)  # the best came before it diverged
    size = float(np.max(np.abs(history.values[name][:, 0])))  # of the measure at the start
    return {"values": values, "V0": _start_value(history, start, made["initial"]), "size": size, "engine": engine}


def _history(made: Mapping[str, Any], measures: tuple[Any, ...], engine: str) -> tuple[Any, str]:
    """The run and the engine that did it: the array engine where a user's function does not compile."""
    from verify_rates.solvers.engine.run import simulate

    options = {
        **{"steps": made["steps"], "seeds": made["trials"], "seed": made["seed"], "every": made["steps"], "x0": made["x0"]},
        **{"compressor": made["compressor"], "topology": made["topology"], "measures": measures, "track": TRACK[made["take"]]},
    }
    try:
        return simulate(made["method"], problem_of(made["problem"]), made["hyper"], engine=engine, **options), engine
    except Unsupported:
        if engine == "numpy":
            raise
        return simulate(made["method"], problem_of(made["problem"]), made["hyper"], engine="numpy", **options), "numpy"


def _rests_on_own(made: Mapping[str, Any]) -> bool:
    problem = problem_of(made["problem"])
    return is_own(problem) or is_own(_made("compressor", made["compressor"], problem))


def _start_measure(initial: str | None) -> Callable[..., Any] | None:
    return None if initial is None else measure_from("function_gap" if initial == "gap_to_last" else initial)


def _start_value(history: Any, start: Callable[..., Any] | None, initial: str | None) -> float | None:
    """V0: the claim's initial measure at the start, less its last value for ``gap_to_last``."""
    if start is None:
        return None
    first = history.values[start.__name__][0]
    return float(first[0] - first[-1]) if initial == "gap_to_last" else float(first[0])


def accuracy(made: Mapping[str, Any], value: float, unit: float = 1.0) -> float:
    """Absolute accuracy of a measured value: what the uncertainty of x* and f* and the rounding of gradients can do to it.

    In squared distances an error r of x* matters as 2*sqrt(v)*r + r^2; gradients at the size of ||x|| ~ 1 are rounded at
    1e-13*L_max; function values at 1e-14 of their size, which is that of f* or of L_max*||x||^2.  A user's measure may be any of
    these in a unit of its own, and is granted the largest.
    """
    value = value / unit
    c = problem_of(made["problem"]).constants
    size = 1.0 if c.x_star is None else 1 + float(np.linalg.norm(c.x_star))
    width = c.f_star[1] - c.f_star[0] + 1e-14 * max(c.L_max * size**2, abs(c.f_star[1]))
    radius = 1e-14 if c.x_star is None else 1e-13 * size
    of_minimiser = radius + (math.sqrt(2 * max(0.0, c.f_star[1] - c.f_star[0]) / c.mu) if c.mu > 0 else 0.0)

    def squared(r: float) -> float:
        return 2 * math.sqrt(max(value, 0.0)) * r + r**2

    known = {"function_gap": width, "grad_norm": squared(radius * c.L_max)}
    own = ":" in made["measure"] and not made["measure"].startswith("verify_rates.")
    return unit * (max(*known.values(), squared(of_minimiser)) if own else known.get(made["measure"], squared(of_minimiser)))


def _unit(made: Mapping[str, Any], size: float, values: Mapping[str, Any]) -> float:
    """The unit of a user's measure, at least 1: its size over the smallest of gap, squared distance and squared gradient at the start."""
    own = ":" in made["measure"] and not made["measure"].startswith("verify_rates.")
    known = [v for v in (values.get(k) for k in ("F0", "R2", "G0")) if v]
    return max(1.0, size / min(known)) if own and known and math.isfinite(size) else 1.0


def check_run(claim: Claim, point: Point, *, seed: int, trials: int, kind: str = "runs") -> Check:
    """Simulate one parameter point of a claim and compare what is measured with the bound.

    A sample whose mean exceeds the bound is drawn again, eight times as large, on fresh seeds, and refutes only if both samples
    do so at the level 1e-6: by chance at most 1e-12 a point, so that a claim with a million points keeps 1e-6 in all.  A point that
    does not meet the claim's assumptions gives a check "not applicable".
    """
    began = time.perf_counter()
    try:
        made, values = recipe(claim, point, seed, trials)
        first = measured(claim, kind, point, made, values)
    except NotApplicable as why:
        if isinstance(why, Unfit) and kind == "runs":
            raise UsageError(str(why)) from None
        return Check(kind, dict(point), None, math.nan, math.nan, claim.relation, status="not applicable", message=str(why))
    except Broken as why:
        return broken(kind, claim, point, why)
    if claim.relation == ">=" and first.bound is not None and not first.lower >= first.bound:
        return replace(first, status="not applicable", message=BELOW, witness=None)
    check = first
    if first.evidence_against is not None and first.bound is not None and first.lower > first.bound:
        again = measured(claim, kind, point, {**made, "seed": seed + FRESH, "trials": 8 * made["trials"]}, values)
        check = replace(again, evidence_against=min(first.evidence_against, again.evidence_against or 0.0))
    return replace(check, seconds=time.perf_counter() - began)


def broken(kind: str, claim: Claim, point: Point, why: Broken) -> Check:
    """The check of a point that rests on a wrong declaration: evidence of nothing."""
    return Check(kind, dict(point), None, math.nan, math.nan, claim.relation, status=f"{BROKEN}: {why}", message=str(why))


def measured(claim: Claim, kind: str, point: Point, made: dict[str, Any], values: dict[str, Any]) -> Check:
    """Execute a recipe and set what it measures beside the claim's bound."""
    done = execute(made)
    bound = bound_at(claim, {**values, "V0": done["V0"]})
    mean = float(np.mean(done["values"]))
    slack = accuracy(made, mean, _unit(made, max(done["size"], abs(mean)), values)) if math.isfinite(mean) else 0.0
    safe = np.where(done["values"] < 0, done["values"] - slack, np.maximum(done["values"] - slack, 0.0))
    stochastic = made["stochastic"]
    ratio = mean / bound if bound else math.inf
    return Check(
        kind,
        {**made, "letters": {k: v for k, v in values.items() if isinstance(v, (int, float)) and k in symbols.SYMBOLS}},
        bound,
        lower=float(np.mean(safe)),
        upper=math.inf if stochastic else mean + slack,
        relation=claim.relation,
        rtol=RTOL_RUN,
        evidence_against=e_value(safe, bound) if stochastic else None,
        samples=safe.tolist() if stochastic else [],
        solver=done["engine"],
        seeds=[made["seed"], made["trials"]],
        message=f"{made['trials']} run{'s' if made['trials'] > 1 else ''}, measured/bound = {ratio:.3g}",
        witness={
            "kind": "run",
            "point": dict(point),
            "seed": made["seed"],
            "trials": made["trials"],
            "value": mean,
            "bound": bound,
            "relation": claim.relation,
        },
    )


def check_moments(claim: Claim, point: Point, *, seed: int) -> Check | None:
    """The exact expectation at a point of ``runs`` where the method is linear on a quadratic with noise; None elsewhere.

    No sampling: the second moments of the linear recursion that the step function is (``theory.quadratic``).
    """
    from verify_rates.theory.quadratic import quadratic

    if point["problem"].get("name") != "quadratic" or point.get("compressor") or claim.take not in ("last", "mean"):
        return None
    began = time.perf_counter()
    try:
        made, values = recipe(claim, point, seed, 1)
        problem, topology = problem_of(point["problem"]), _made("topology", point.get("topology"), problem_of(point["problem"]))
        if not made["stochastic"]:
            return None
        reading = quadratic(made["method"], made["hyper"], gossip=topology)
        start = _start(made["x0"], problem)
        spectrum, x0, x_star, offsets = problem.modes(start)
        measures = [measure_from(m) for m in (made["measure"], made["initial"]) if m is not None]
        given = {
            "x_star": x_star,
            "sigma2": problem.sigma2,
            "n": problem.n,
            "offsets": offsets,
            "W": None if topology is None else topology.W,
        }
        found = reading.moments(made["steps"], spectrum, x0, measures=measures, **given).values
    except (NotApplicable, Unsupported, Broken):
        return None
    along = found[measures[0].__name__]
    value = float(along[-1] if claim.take == "last" else along[:-1].mean())
    bound = bound_at(claim, {**values, "V0": float(found[measures[-1].__name__][0])})
    message = f"exact expectation/bound = {value / bound if bound else math.inf:.3g}"
    if claim.relation == ">=" and value < bound:
        return None
    letters = {k: v for k, v in values.items() if isinstance(v, (int, float)) and k in symbols.SYMBOLS}
    return Check(
        "moments", {**made, "letters": letters}, bound, value, value, claim.relation, seconds=time.perf_counter() - began, message=message
    )


def with_data(point: Point, data: str | Path | None) -> Point:
    """The point with its real data replaced by the user's file."""
    problem = point.get("problem")
    if data is None or not problem or "data" not in problem:
        return point
    return {**point, "problem": {**problem, "data": str(data)}}
