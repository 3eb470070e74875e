"""The data of a page's figure: every check of its claims, and one curve where they offer one."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from verify_rates.page_curves import CURVES, Curve
from verify_rates.page_words import number, prose
from verify_rates.solvers.method import UsageError, get_method
from verify_rates.theory.claims import Claim
from verify_rates.theory.evidence import IDENTITY_RTOL
from verify_rates.verdicts import Check, Result, Verdict, outcome

Data = dict[str, Any]

KEPT = 9  # significant digits of the stored data
SOLVED = (1, 2, 3, 4, 5, 6)  # steps at which the worst case of a curve is solved
SHARES = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)  # of the steps of a run at which its curve is measured
LONGEST, SEEDS = 300, 8  # steps and seeds of a curve by runs
FEW_LINES = 4
LEAST_POINTS = 3
NEAR = 1e-2  # of the bound


def data_of(about: Sequence[Claim], results: Mapping[str, Result], slug: str = "") -> Data:
    """What the figure of these claims shows, as plain data.

    ``claims``: per claim its verdict and, of every check, the kind, the measured value, the bound and the ratio of both.  ``curve``:
    bound and measured values against steps or a parameter, or None.  ``slug``: of the paper, for which a curve may be written down.
    """
    return {"claims": {c.id: _evidence(results[c.id]) for c in about}, "curve": _curve(about, results, slug)}


def _short(value: float | None) -> float | str | None:
    if value is None or math.isnan(value):
        return None
    return float(f"{value:.{KEPT}g}") if math.isfinite(value) else ("inf" if value > 0 else "-inf")


def _evidence(result: Result) -> Data:
    used = [c for c in result.checks if c.status == "ok"]
    return {"verdict": result.verdict.value, "checks": [_point(c) for c in used]}


def _point(c: Check) -> Data:
    ratio = None
    if c.bound is not None and c.bound > 0 and c.bound != IDENTITY_RTOL and math.isfinite(c.lower):
        ratio = c.lower / c.bound if c.relation != ">=" else (c.bound / c.lower if c.lower > 0 else math.inf)
    by = c.kind if c.kind in ("moments", "runs", "search") else ("exact" if c.proves else "computed")
    by = "worst case" if "worst case" in c.kind else by
    counted = re.match(r"\d+ of (\d+) cases", c.message)
    numbers = {"measured": _short(c.lower), "bound": _short(c.bound), "ratio": _short(ratio)}
    return {"by": by, **numbers, "refutes": outcome(c) is Verdict.REFUTED, **({"cases": int(counted[1])} if counted else {})}


# --- the curve ------------------------------------------------------------------------------------------------------------


def _curve(about: Sequence[Claim], results: Mapping[str, Result], slug: str) -> Data | None:
    """The first that there is: one written down, worst cases of a tight bound, runs of a bound, a series of the checks."""
    if slug in CURVES:
        return _written(CURVES[slug])
    sound = [c for c in about if c.expect == "holds" and not c.not_checkable]
    bounds = [c for c in sound if c.bound and c.relation == "<="]
    for c in sorted(bounds, key=lambda c: not c.setting.compressor):
        if c.tight and c.grid and not c.partial and (found := _solved(c)):
            return found
    for c in bounds:
        if c.runs and (found := _run(c)):
            return found
    return _series(sound, results)


def _written(curve: Curve) -> Data:
    lines = [
        {
            "label": line.label,
            "x": list(line.x),
            "bound": [_short(float(v)) for v in line.formula],
            "measured": {"played": [_short(float(v)) for v in line.played]},
        }
        for line in curve.lines()
    ]
    return {"claim": curve.claim, "over": curve.over, "of": curve.of, "where": "", "says": curve.says, "lines": lines}


def _solved(claim: Claim) -> Data | None:
    from verify_rates.exact import check_worst_case

    point = next((p for p in claim.grid if p.get("N", 0) > 1), claim.grid[0])
    return _lines(claim, "steps N", [(N, {"worst case": check_worst_case(claim, {**point, "N": N})}) for N in SOLVED], _told(claim, point))


def _run(claim: Claim) -> Data | None:
    """Runs at the claim's point with the most steps, and their exact expectation where it is known."""
    from verify_rates.runs import check_moments, check_run

    point = max(claim.runs, key=lambda p: min(p["N"], LONGEST))
    rounds = int(get_method(claim.method).rounds(get_method(claim.method).hypers(**_hyper(claim, point))))
    last = min(int(point["N"]), LONGEST) // rounds
    steps = sorted({max(1, round(last * share)) * rounds for share in SHARES})
    rows = []
    for N in steps:
        at = {**point, "N": N}
        try:
            found = {"runs": check_run(claim, at, seed=0, trials=SEEDS), "exact expectation": check_moments(claim, at, seed=0)}
        except UsageError:  # the bound divides by zero at so few steps
            continue
        rows.append((N, {k: v for k, v in found.items() if v is not None}))
    return _lines(claim, "steps N", rows, _told(claim, point))


def _hyper(claim: Claim, point: Mapping[str, Any]) -> dict[str, Any]:
    fields = get_method(claim.method).hyper._fields
    return {f: point.get(f, 1) for f in fields if f in point or f not in get_method(claim.method).hyper._field_defaults}


def _told(claim: Claim, point: Mapping[str, Any]) -> str:
    """Where a curve is taken."""
    problem = dict(point.get("problem", {}))
    name = str(problem.pop("name", "")).replace("_", " ")
    rest = {k: v for k, v in {**problem, **point}.items() if k not in ("problem", "N") and v is not None}
    numbers = ", ".join(f"{k} = {number(v)}" if isinstance(v, (int, float)) else f"{k} = {v}" for k, v in rest.items())
    return f"{name} with {numbers}" if name else numbers


def _lines(claim: Claim, over: str, rows: Sequence[tuple[Any, Mapping[str, Check]]], where: str) -> Data | None:
    """A curve of one line: the bound, and measured values by their kind."""
    good = [(x, {k: c for k, c in found.items() if c.status == "ok" and c.bound is not None}) for x, found in rows]
    good = [(x, found) for x, found in good if found]
    if len(good) < LEAST_POINTS:
        return None
    kinds = list(dict.fromkeys(k for _, found in good for k in found))
    bound = [_short(next(iter(found.values())).bound) for _, found in good]
    measured = {k: [_short(found[k].lower) if k in found else None for _, found in good] for k in kinds}
    line = {"label": "", "x": [x for x, _ in good], "bound": bound, "measured": measured}
    return {"claim": claim.id, "over": over, "of": _quantity(claim), "where": where, "lines": [line]}


_QUANTITIES = {"grad_norm": "squared gradient norm", "function_gap": "function gap", "distance": "squared distance"}
_TAKEN = {"mean": "mean over the steps", "best": "best step", "average_iterate": "average iterate"}


def _quantity(claim: Claim) -> str:
    """What a bound is about, as the label of an axis."""
    name = claim.measure if isinstance(claim.measure, str) else claim.measure.__name__
    said = _QUANTITIES.get(name, name.replace("_", " "))
    return f"{said}, {_TAKEN[claim.take]}" if claim.take in _TAKEN else said


def _series(claims: Sequence[Claim], results: Mapping[str, Result]) -> Data | None:
    """The longest series of checks over one parameter; else one in which other parameters change with it."""
    for alone in (True, False):
        found = [line for c in claims for line in _series_of(c, results[c.id], alone)]
        if found:
            return max(reversed(found), key=_rank)
    return None


def _series_of(claim: Claim, result: Result, alone: bool) -> list[Data]:
    checks = [c for c in result.checks if c.status == "ok" and c.bound and math.isfinite(c.bound) and math.isfinite(c.lower)]
    checks = [c for c in checks if c.bound != IDENTITY_RTOL]
    names = [k for k in (claim.grid[0] if claim.grid else {}) if k not in ("seed", "said")]
    found = [_over(claim, name, checks, alone) for name in names]
    return [f for f in found if f and _near(f)]


def _near(found: Data) -> bool:
    """Some measured value comes near its bound: else the bound is a tolerance, or nothing is seen."""
    pairs = [pair for line in found["lines"] for values in line["measured"].values() for pair in zip(values, line["bound"], strict=True)]
    return max(measured / bound for measured, bound in pairs) > NEAR


def _rank(found: Data) -> tuple[bool, int]:
    lines = found["lines"]
    return all(len(set(line["bound"])) >= LEAST_POINTS for line in lines), min(len(line["x"]) for line in lines)


def _number(value: Any) -> float | None:
    """A number, or text that is one, as a fraction in the grid of a claim."""
    try:
        return None if isinstance(value, bool) else float(Fraction(value))
    except (TypeError, ValueError):
        return None


def _over(claim: Claim, name: str, checks: Sequence[Check], alone: bool) -> Data | None:
    """The series of one claim over one parameter, a line for every choice of the others, of the first seed alone."""
    seeds = [c.parameters["seed"] for c in checks if "seed" in c.parameters]
    groups: dict[str, list[tuple[float, Check]]] = {}
    for check in checks:
        if seeds and check.parameters["seed"] != min(seeds):
            continue
        rest = {k: v for k, v in check.parameters.items() if k not in (name, "seed")}
        x = _number(check.parameters.get(name))
        if x is None:
            return None
        groups.setdefault(_label(rest, checks) if alone else "", []).append((x, check))
    lines = []
    for label, points in sorted(groups.items()):
        points.sort(key=lambda p: p[0])
        xs, found = [int(x) if x == int(x) else x for x, _ in points], [c for _, c in points]
        changes = max(len({c.bound for c in found}), len({_short(c.lower) for c in found}))
        if len(set(xs)) < len(xs):
            return None
        if len(xs) < LEAST_POINTS or changes < LEAST_POINTS:
            continue
        kind = "exact value" if all(c.proves for c in found) else "computed"
        measured = {kind: [_short(c.lower if c.relation != ">=" else c.upper) for c in found]}
        lines.append({"label": label, "x": xs, "bound": [_short(c.bound) for c in found], "measured": measured})
    if not lines:
        return None
    chosen = [lines[round(i * (len(lines) - 1) / (FEW_LINES - 1))] for i in range(FEW_LINES)] if len(lines) > FEW_LINES else lines
    where = "" if alone else "other parameters change with it"
    return {"claim": claim.id, "over": name, "of": "", "where": where, "lines": chosen}


def _label(rest: Mapping[str, Any], checks: Sequence[Check]) -> str:
    """Those of the other parameters that change over the checks."""
    changing = [k for k in rest if len({json.dumps(c.parameters.get(k)) for c in checks}) > 1]
    return ", ".join(f"{k} = {rest[k]}" for k in changing)


def caption(data: Data, about: Sequence[Claim]) -> str:
    """What the figure shows, in a few sentences."""
    curve = data["curve"]
    told = (
        "Every check of the claims: the measured value over the bound (1: they are equal; red: it refutes the claim; what lies beyond the"
        " axis is drawn at its end)."
    )
    if curve is None:
        return told
    if curve.get("says"):
        return f"Left: {prose(curve['says'])} Right: {told[0].lower()}{told[1:]}"
    kinds = list(dict.fromkeys(k for line in curve["lines"] for k in line["measured"]))
    words = {"worst case": "exact worst case", "runs": f"mean of up to {SEEDS} runs"}
    shown = " and ".join(words.get(k, k) for k in kinds)
    over = "the number of steps" if curve["over"] == "steps N" else prose(curve["over"])
    where = f" ({prose(curve['where'])})" if curve["where"] else ""
    statement = next(c.statement for c in about if c.id == curve["claim"]).rstrip(".")
    left = f"Left: the bound of `{curve['claim']}` (*{prose(statement)}*; line) and the {shown} (marks) against {over}{where}."
    return f"{left} Right: {told[0].lower()}{told[1:]}"
