"""Witnesses: what beats a bound, stored so that one command reaches it again."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from verify_rates.solvers.method import UsageError
from verify_rates.theory.claims import Claim
from verify_rates.verdicts import Check, Verdict, _plain, outcome

VERSION = 2  # of the content of a witness file
KINDS = ("run", "worst case", "formula")
# A run repeats bit for bit on one machine; another processor may round otherwise over the steps of a run.
RTOL_REPLAY = 1e-6


@dataclass(frozen=True)
class Replay:
    """A witness that was run again: the value it reaches now beside the stored one and the bound, and whether it still refutes."""

    claim: str
    kind: str
    value: float
    stored: float
    bound: float
    relation: str
    refutes: bool
    factor: float = 1.0

    @property
    def reproduced(self) -> bool:
        """The stored value is reached again, and it still refutes the claim."""
        return self.refutes and _close(self.value, self.stored, self.bound)

    @property
    def sentence(self) -> str:
        verb = "reproduced" if self.reproduced else "NOT reproduced"
        scaled = f" ({self.factor:g} times its bound: the claim itself is not refuted by this)" if self.factor != 1 else ""
        return (
            f"{self.claim}: {verb}; the {self.kind} reaches {self.value:.10g} (stored {self.stored:.10g}), "
            f"the claim says {self.relation} {self.bound:.10g}{scaled}."
        )

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "reproduced": self.reproduced, "sentence": self.sentence}


def stored(claim_id: str, witness: Mapping[str, Any], source: str = "") -> dict[str, Any]:
    """The witness as the content of a file; ``source`` tells the reader of which user's file the claim is, if of any."""
    return {"schema_version": VERSION, "claim": claim_id, "source": source, **_plain(dict(witness))}


def read(path: str | Path) -> dict[str, Any]:
    """A witness from its file; UsageError in one sentence when it is none."""
    try:
        made = json.loads(Path(path).read_text())
    except OSError as error:
        raise UsageError(f"cannot read the witness {path}: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path} is not a witness: it is not valid JSON.") from None
    _check(made, str(path))
    return made


def _check(made: Any, name: str) -> None:
    needed = {"schema_version", "claim", "kind", "value", "bound", "relation"}
    if not isinstance(made, dict) or not needed <= made.keys():
        raise UsageError(f"{name} is not a witness: it needs the keys {', '.join(sorted(needed))}.")
    if made["schema_version"] != VERSION:
        raise UsageError(f"{name} has schema_version {made['schema_version']!r}; this version reads {VERSION}.")
    if made["kind"] not in KINDS:
        raise UsageError(f"{name} is a witness of unknown kind {made['kind']!r}; known are {', '.join(KINDS)}.")
    if any(not isinstance(made[k], (int, float)) and made[k] != "inf" for k in ("value", "bound")):
        raise UsageError(f"{name} is not a witness: value and bound must be numbers.")
    if made["relation"] not in ("<=", ">=", "=="):
        raise UsageError(f"{name} is not a witness: relation must be <=, >= or ==.")
    factor = made.get("factor", 1.0)
    if not isinstance(factor, (int, float)) or not 0 < factor < math.inf:
        raise UsageError(f"{name} is not a witness: factor must be a positive number.")


def replay(witness: Mapping[str, Any] | str | Path, claim: Claim | None = None) -> Replay:
    """Run a witness again.

    A witness is data and names nothing that is run: method, measure, bound and assumptions are the claim's, taken at the
    witness's parameter point, and what it records has to agree with them.

    Parameters
    ----------
    witness : the content of a witness file, or its path.
    claim : the claim it refutes, as in a notebook; by default the one of that id in the package and in the files read so far.

    Raises
    ------
    UsageError : the file is no witness, its claim is not known here, or it is about something else than the claim.
    """
    made = read(witness) if isinstance(witness, (str, Path)) else dict(witness)
    _check(made, "this")
    claim = claim or _claim_of(made)
    if made["relation"] != claim.relation and not claim.check:
        raise UsageError(f"the witness has another relation than {claim.id}, which says {claim.relation}.")
    factor, seen = float(made.get("factor", 1.0)), float(made["bound"])
    try:
        check, value = {"run": _run, "worst case": _worst_case, "formula": _formula}[made["kind"]](claim, made)
    except (KeyError, TypeError, ValueError, AttributeError, ImportError) as error:
        raise UsageError(f"the witness of {made['claim']} is damaged: {type(error).__name__} {error}.") from None
    assert check.bound is not None
    bound = factor * check.bound
    if not _close(bound, seen, bound):
        raise UsageError(f"the witness of {claim.id} has another bound, {seen:.10g}, than the claim has there, {bound:.10g}.")
    refutes = outcome(check, factor) is Verdict.REFUTED
    return Replay(claim.id, made["kind"], value, float(made["value"]), bound, check.relation, refutes, factor)


def _close(a: float, b: float, scale: float) -> bool:
    return a == b or abs(a - b) <= RTOL_REPLAY * max(abs(b), abs(scale))


def _claim_of(made: Mapping[str, Any]) -> Claim:
    from verify_rates.theory.claims import claims, collect
    from verify_rates.userfile import loaded_modules

    known = {**claims(), **{c.id: c for module in loaded_modules() for c in collect(module)}}
    if made["claim"] not in known:
        where = f" ({made['source']})" if made.get("source") else ""
        raise UsageError(f"the witness is of claim {made['claim']!r}, which no file read here has; give its file{where} by --from.")
    return known[made["claim"]]


def _run(claim: Claim, made: Mapping[str, Any]) -> tuple[Check, float]:
    from verify_rates.runs import NotApplicable, measured, recipe

    point, seed, trials = made["point"], made["seed"], made["trials"]
    if not all(isinstance(v, int) and v >= 0 for v in (seed, trials)) or not trials:
        raise UsageError(f"the witness of {claim.id} is damaged: seed and trials must be whole numbers.")
    try:
        again, values = recipe(claim, point, seed, trials)
    except NotApplicable as why:
        raise UsageError(f"the witness of {claim.id} lies outside of the claim: {why}.") from None
    check = measured(claim, "run", point, {**again, "trials": trials if again["stochastic"] else 1}, values)
    assert check.witness is not None
    return check, float(check.witness["value"])


def _worst_case(claim: Claim, made: Mapping[str, Any]) -> tuple[Check, float]:
    """An instance shows that the worst case is above a bound; that it is below one is shown by solving it again."""
    from verify_rates.exact import check_worst_case, replay_instance

    if claim.relation == ">=" or (claim.relation == "==" and float(made["value"]) < float(made["bound"])):
        check = check_worst_case(claim, made["point"])
        return check, check.upper
    reached, bound = replay_instance(claim, made["point"], made["instance"])
    return Check("worst case", dict(made["point"]), bound, reached, math.inf, claim.relation), reached


def _formula(claim: Claim, made: Mapping[str, Any]) -> tuple[Check, float]:
    from verify_rates.pipeline import check_formula

    if made["check"] != claim.check:
        raise UsageError(f"the witness of {claim.id} names the check {made['check']!r}, which is not that of the claim.")
    point = next((p for p in claim.grid if _plain(dict(p)) == made["parameters"]), None)
    if point is None:
        raise UsageError(f"the witness of {claim.id} is at parameters at which the claim is not checked.")
    check = check_formula(claim, point)
    return check, check.lower if check.relation != ">=" else check.upper


def formula(path: str, parameters: Mapping[str, Any]) -> Any:
    """What the check of that dotted path finds at these parameters."""
    module, name = path.split(":")
    return getattr(importlib.import_module(module), name)(**parameters)
