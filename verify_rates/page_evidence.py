"""Evidence in words: what a claim assumes, what its verdict rests on, and what its witness is."""

from __future__ import annotations

import importlib
import inspect
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

from verify_rates.page_words import number, prose, sentence
from verify_rates.theory import symbols
from verify_rates.theory.claims import Setting
from verify_rates.theory.evidence import IDENTITY_RTOL
from verify_rates.verdicts import Check, Result, Verdict, outcome

_FUNCTIONS = {
    "smooth_strongly_convex": "every worker's function is L-smooth and μ-strongly convex (μ = 0: convex)",
    "smooth": "the functions are L-smooth and bounded below, not necessarily convex",
}
_COMPRESSORS = {
    "contractive": "the compressor is contractive: E‖C(v) - v‖² ≤ (1-δ)·‖v‖²",
    "absolute": "the compressor has an absolute error: E‖C(v) - v‖² ≤ Δ²",
    "unbiased": "the compressor is unbiased: E C(v) = v and E‖C(v) - v‖² ≤ ω·‖v‖²",
}


def assumptions(setting: Setting) -> str:
    """What a bound assumes, in words.

    >>> assumptions(Setting(functions="smooth", n=10))
    'the functions are L-smooth and bounded below, not necessarily convex; 10 workers; exact gradients'
    """
    told = [
        _FUNCTIONS.get(setting.functions, f"the function is of the class {setting.functions.replace('_', ' ')}"),
        "L and μ are those of every worker's function, not of the average" if setting.per_worker else "",
        "any number of workers" if setting.n == "any" else f"{setting.n} worker{'' if setting.n == 1 else 's'}",
        _COMPRESSORS.get(setting.compressor, ""),
        "all workers' functions have a common minimiser" if setting.shared_minimiser else "",
        "gradient noise of variance at most σ² per worker" if setting.noise else "exact gradients",
    ]
    return "; ".join(t for t in told if t)


_BASIS = {
    "worst case": ("exact worst case", "at {} parameter points"),
    "part of the worst case": ("exact worst case of a part of the class", "at {} parameter points"),
    "moments": ("exact expectation", "of {} runs"),
    "runs": ("runs", "at {} parameter points"),
    "search": ("search for a violation", "in {} families of instances"),
}


def _counted(text: str, count: int) -> str:
    text = text.format(count)
    return re.sub(r"^(\w+ 1 (?:\w+ )?)(points|runs|families)", lambda m: m[1] + {"families": "family"}.get(m[2], m[2][:-1]), text)


def basis(result: Result) -> str:
    """What the verdict rests on, in words; the kinds of evidence with their numbers."""
    used = [c for c in result.checks if c.status == "ok"]
    told = []
    for kind, count in Counter(c.kind for c in used).items():
        if kind in _BASIS:
            what, where = _BASIS[kind]
        else:
            proves = all(c.proves for c in used if c.kind == kind)
            what, where = ("exact value" if proves else "computed"), "at {} parameter points"
        told.append(f"{what} {_counted(where, count)}")
    if any(c.certified for c in used):
        told.append("rational certificates")
    return ", ".join(told)


def closeness(result: Result) -> str:
    """The largest measured value over the bound, or what takes its place where nothing is compared."""
    used = [c for c in result.checks if c.status == "ok" and c.bound]
    if not used or result.verdict is Verdict.NOT_CHECKABLE:
        return ""
    if result.claim.kind != "identity":
        return f"{number(result.tightness)}{' (said to be exact)' if result.claim.tight else ''}"
    if result.verdict is Verdict.REFUTED:
        return "not equal"
    return "equal to rounding" if any(c.bound == IDENTITY_RTOL for c in used) else "equal"


@cache
def method_of_check(path: str) -> str:
    """The first sentence of the docstring of a claim's check, without the ids of claims before it."""
    module, _, name = path.partition(":")
    doc = (inspect.getdoc(getattr(importlib.import_module(module), name)) or "").split("\n\n")[0].replace("\n", " ")
    doc = re.sub(r"^[a-z][a-z_]*\.[\w.]+(?:,? (?:and |to )?[a-z_]*\.\w+)*,?(?:: | (?=[a-z]))", "", doc)
    return doc


# --- witnesses ------------------------------------------------------------------------------------------------------------


def refuting(result: Result) -> Check | None:
    """The first check that refutes a claim."""
    return next((c for c in result.checks if c.witness and outcome(c) is Verdict.REFUTED), None)


def point(parameters: Mapping[str, Any], told: str = "") -> str:
    """The parameters of a witness that people can read: letters with numbers, unless they are told already."""
    found = {k: v for k, v in parameters.items() if isinstance(v, (int, float)) and not isinstance(v, bool) and _is_letter(k)}
    said = {f"{prose(k)} = {number(float(v))}": f"{prose(k)} {number(float(v))}" for k, v in found.items()}
    return ", ".join(a for a, b in said.items() if a not in told and b not in told)


def _is_letter(name: str) -> bool:
    return name in symbols.LETTERS or len(name) == 1 or ("_" in name and len(name) <= 4) or bool(re.fullmatch(r"xi\d", name))


def _value(v: Any) -> str:
    if isinstance(v, (list, tuple)):
        return f"({', '.join(map(_value, v))})"
    return number(float(v)) if isinstance(v, (int, float)) else prose(str(v))


def witness(result: Result) -> str:
    """What the smallest witness is, and the two numbers, in one or two sentences."""
    check = refuting(result)
    assert check is not None and check.bound is not None
    if check.kind in ("runs", "search"):
        return _run(check)
    if check.kind == "worst case":
        where = point((check.witness or {}).get("point", {}))
        return f"At {where} the exact worst case is {number(check.lower)}; the claim says at most {number(check.bound)}."
    told = sentence(check.message).rstrip(".")
    where = point(check.parameters, told)
    return (f"{told} (at {where})." if where else f"{told}.") + _numbers(check, told)


_SAYS = {"<=": "at most ", ">=": "at least ", "==": ""}


def _numbers(check: Check, told: str) -> str:
    """The measured value and the bound, where the sentence does not have them already."""
    said = number(check.bound)
    if check.bound in (0.0, IDENTITY_RTOL) or said in re.findall(r"[\d.e+-]*\d", told):
        return ""
    value = check.upper if check.relation == ">=" else check.lower
    return f" The value is {number(value)}; the claim says {_SAYS[check.relation]}{said}."


def _run(check: Check) -> str:
    p = check.parameters
    problem = dict(p["problem"])
    name = str(problem.pop("name")).replace("_", " ")
    options = ", ".join(f"{prose(k)} = {_value(v)}" for k, v in {**problem, **p["hyper"]}.items() if v is not None)
    sent = f", compressed by `{p['compressor']}`" if p.get("compressor") else ""
    runs = f"the mean of {p['trials']} runs" if p["trials"] > 1 else "one run"
    reached = f"{runs} reaches {number(check.lower)}, the claim says at most {number(check.bound)}."
    return f"`{p['method']}` on {name} with {options}{sent}, {p['steps']} steps: {reached}"
