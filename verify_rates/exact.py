"""Evidence from exact worst cases: one parameter point of a claim, solved over the whole class."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from verify_rates.points import steps_of, whole
from verify_rates.runs import NotApplicable, bound_at, define, hyper_of, measure_from, measure_path
from verify_rates.solvers.method import UsageError
from verify_rates.solvers.words import Unsupported
from verify_rates.theory.claims import COMPRESSORS, Claim, Point
from verify_rates.verdicts import RTOL_RUN, RTOL_SDP, Check, Verdict, outcome

# Letters that start at 1 in a worst case: the initial condition is "this measure is at most 1".
STARTS_AT_ONE = {"distance": "R2", "function_gap": "F0", "grad_norm": "G0"}
START_LETTERS = {"V0", *STARTS_AT_ONE.values()}
INFLATION = Fraction(1, 10**7)  # an exact bound leaves no room for rounding: so much more is certified, relatively
MOST_CERTIFIED = 200  # inequalities; larger problems take long to certify and are left to the command for it
KIND, PART = "worst case", "part of the worst case"


def check_worst_case(claim: Claim, point: Point) -> Check:
    """Solve the worst case of a claim at one parameter point and compare it with the bound.

    Only a result whose two ends were verified is evidence; a lower end above the bound refutes when its instance, replayed on the
    step function, reaches it.
    """
    from verify_rates.theory.worst_case.solve import worst_case

    kind = PART if claim.partial else KIND
    nothing = Check(kind, dict(point), None, math.nan, math.nan, claim.relation)
    try:
        values = _values(claim, point)
        problem = _problem(claim, values)
        bound = bound_at(claim, values)
        found = worst_case(claim.method, hyper_of(claim, values), **problem)
    except NotApplicable as why:
        return replace(nothing, status="not applicable", message=str(why))
    except Unsupported as why:
        return replace(nothing, status=f"not supported: {why}", message=str(why))
    kind = KIND if _covers(claim, found, problem["n"]) else PART
    status = "ok" if found.ok and found.rigorous else "not verified" if found.ok else f"{found.status}: {found.message}"
    ends = f"{'exact worst case' if found.exact else 'upper bound'} in [{found.lower:.9g}, {found.upper:.9g}]"
    check = Check(
        kind,
        {**point, "n": problem["n"], "method": claim.method, "hyper": hyper_of(claim, values), "steps": problem["steps"]},
        bound,
        found.lower,
        found.upper,
        claim.relation,
        status=status,
        proves=kind == KIND and (found.exact or claim.relation == "<="),
        rtol=RTOL_SDP,
        solver=f"{found.solver} {found.solver_version}",
        seconds=found.seconds,
        message=f"{ends}, the claim says {bound:.9g}",
    )
    if found.instance is None:  # without a witness that replays nothing is refuted
        return replace(check, lower=-math.inf)
    if status == "ok" and outcome(check) is Verdict.HOLDS:
        check = _certified(check, claim, values, bound, found.size["inequalities"])
    witness = {"kind": KIND, "point": dict(point), "instance": found.instance.to_dict(), "value": found.lower, "bound": bound}
    return _replayed(claim, replace(check, witness={**witness, "relation": claim.relation}))


def _values(claim: Claim, point: Point) -> dict[str, Any]:
    """The letters at a grid point; those of the start are 1 where the initial condition says so, and unknown elsewhere."""
    at_one = {"V0", STARTS_AT_ONE.get(_initial_name(claim), "V0")}
    values = define(claim, {**dict.fromkeys(at_one, 1.0), **point})
    for letter in sorted(START_LETTERS & values.keys()):
        if letter not in at_one or values[letter] != 1:
            raise UsageError(f"claim {claim.id}: a grid must not set {letter}; a worst case starts with the claim's initial measure at 1.")
    return values


def _covers(claim: Claim, found: Any, n: int | str) -> bool:
    """Whether the class of the worst case is the claim's.

    It has exact gradients, and L and mu of every worker's function; where deviations between the workers play no part (the second Gram
    matrix is empty) those of the average are the same.
    """
    alike = bool(found.size["inequalities"]) and not found.size["gram"][1]  # without a solve nothing says how workers would differ
    return not claim.partial and not claim.setting.noise and (claim.setting.per_worker or n == 1 or alike)


def _certified(check: Check, claim: Claim, values: Mapping[str, Any], bound: float, inequalities: int) -> Check:
    """The check marked as certified where an exact rational certificate proves the bound and the independent checker accepts it."""
    from verify_rates.proofs_check.certificates import certify
    from verify_rates.proofs_check.checker import Refused

    if inequalities > MOST_CERTIFIED or claim.relation != "<=":
        return check
    try:
        certify(claim.method, hyper_of(claim, values), bound=bound, inflate=INFLATION, **_problem(claim, values))
    except (Refused, UsageError, Unsupported):
        return check
    return replace(check, certified=True, message=f"{check.message}; certified in fractions to a factor 1+{float(INFLATION):g}")


def _initial_name(claim: Claim) -> str:
    return claim.initial if isinstance(claim.initial, str) else ""


def _problem(claim: Claim, values: Mapping[str, Any]) -> dict[str, Any]:
    setting = claim.setting
    if setting.compressor == "unbiased":
        raise UsageError(f"claim {claim.id}: a grid needs a contractive or absolute compressor; check unbiased ones by runs.")
    letters = ("L", *([COMPRESSORS[setting.compressor]] if setting.compressor else []))
    if missing := [letter for letter in letters if values.get(letter) is None]:
        raise UsageError(f"claim {claim.id}: give {missing[0]} at every point of the grid.")
    compressor = {letter: values[letter] for letter in letters[1:]} or None
    return {
        "steps": steps_of(claim, values),
        "functions": setting.functions,
        "L": values["L"],
        "mu": values.get("mu", 0.0),
        "n": _workers(claim, values),
        "compressor": compressor,
        "zeta2_star": 0.0 if setting.shared_minimiser else values.get("zeta2_star"),
        "initial": claim.initial,
        "measure": claim.measure,
        "take": claim.take,
        "start": "free" if claim.free else "standard",
    }


def _workers(claim: Claim, values: Mapping[str, Any]) -> int | str:
    """Those of the point, where the claim is about them."""
    n = claim.setting.n
    if "n" not in values:
        return n
    given = whole(claim, values["n"], "n", 1)
    if n not in ("any", given):
        raise NotApplicable(f"the claim is about n = {n}, the point has {given} workers")
    return given


def _replayed(claim: Claim, check: Check) -> Check:
    """The check with its witness run once: an instance that does not reach its value is no evidence of the lower end."""
    assert check.witness is not None
    try:
        reached, _ = replay_instance(claim, check.witness["point"], check.witness["instance"])
    except UsageError as error:
        return replace(check, lower=-math.inf, witness=None, message=f"{check.message}; the instance does not replay ({error})")
    lower = min(check.lower, reached)
    return replace(check, lower=lower, witness={**check.witness, "value": lower})


def replay_instance(claim: Claim, point: Point, instance: Mapping[str, Any]) -> tuple[float, float]:
    """Run the claim's method on a recorded worst-case instance: the measure that it reaches, and the claim's bound there.

    UsageError where the instance is of another problem than the claim's at that point, or violates an assumption.
    """
    from verify_rates.theory.worst_case.instance import Instance
    from verify_rates.theory.worst_case.solve import statement_of

    values = _values(claim, point)
    recorded = Instance.from_dict(dict(instance))
    wanted = statement_of(claim.method, hyper_of(claim, values), **_problem(claim, values))
    for name, value in wanted.items():
        if not _same(recorded.statement.get(name), value):
            found = recorded.statement.get(name)
            raise UsageError(f"the instance is of another problem than {claim.id} there: its {name} is {found!r}, not {value!r}.")
    made = replace(
        recorded,
        measure=measure_from(measure_path(claim.measure)),
        initial=claim.initial if claim.initial == "gap_to_last" else measure_from(measure_path(claim.initial)),
    )
    return made.replay(claim.method), bound_at(claim, values)


def _same(a: Any, b: Any) -> bool:
    """Equal plain data, numbers to the rounding of a fraction written as a float."""
    if isinstance(b, dict):
        return isinstance(a, dict) and a.keys() == b.keys() and all(_same(a[k], v) for k, v in b.items())
    if isinstance(b, list):
        return isinstance(a, list) and len(a) == len(b) and all(map(_same, a, b))
    if isinstance(b, float) and isinstance(a, (int, float)):
        return math.isclose(a, b, rel_tol=RTOL_RUN)
    return type(a) is type(b) and a == b
