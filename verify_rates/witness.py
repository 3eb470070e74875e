"""Witnesses: what beats a bound, stored so that one command reaches it again."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from verify_rates.solvers.method import UsageError
from verify_rates.verdicts import RTOL_RUN, SCHEMA_VERSION

KINDS = ("run", "worst case", "formula")
# A run repeats bit for bit on one machine; another processor may round otherwise over the steps of a run.
RTOL_REPLAY = 1e-6


@dataclass(frozen=True)
class Replay:
    """A witness that was run again: the value it reaches now beside the stored one and the bound."""

    claim: str
    kind: str
    value: float
    stored: float
    bound: float
    relation: str

    @property
    def reproduced(self) -> bool:
        """The stored value is reached again, and it still beats the bound."""
        same = self.value == self.stored or abs(self.value - self.stored) <= RTOL_REPLAY * max(abs(self.stored), abs(self.bound))
        slack = RTOL_RUN * abs(self.bound)
        above, below = self.value > self.bound + slack, self.value < self.bound - slack
        return same and {"<=": above, ">=": below, "==": above or below}[self.relation]

    @property
    def sentence(self) -> str:
        verb = "reproduced" if self.reproduced else "NOT reproduced"
        return (
            f"{self.claim}: {verb}; the {self.kind} reaches {self.value:.10g} (stored {self.stored:.10g}), "
            f"the claim says {self.relation} {self.bound:.10g}."
        )

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "reproduced": self.reproduced, "sentence": self.sentence}


def stored(claim_id: str, witness: Mapping[str, Any], source: str = "") -> dict[str, Any]:
    """The witness as the content of a file; ``source`` is the user's file that it needs, if any."""
    return {"schema_version": SCHEMA_VERSION, "claim": claim_id, "source": source, **witness}


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
    if made["schema_version"] != SCHEMA_VERSION:
        raise UsageError(f"{name} has schema_version {made['schema_version']!r}; this version reads {SCHEMA_VERSION}.")
    if made["kind"] not in KINDS:
        raise UsageError(f"{name} is a witness of unknown kind {made['kind']!r}; known are {', '.join(KINDS)}.")
    if any(not isinstance(made[k], (int, float)) and made[k] != "inf" for k in ("value", "bound")):
        raise UsageError(f"{name} is not a witness: value and bound must be numbers.")
    if made["relation"] not in ("<=", ">=", "=="):
        raise UsageError(f"{name} is not a witness: relation must be <=, >= or ==.")


def replay(witness: Mapping[str, Any] | str | Path) -> Replay:
    """Run a witness again.

    Parameters
    ----------
    witness : the content of a witness file, or its path.

    Raises
    ------
    UsageError : the file is no witness, or what it names does not exist here.
    """
    made = read(witness) if isinstance(witness, (str, Path)) else dict(witness)
    _check(made, "this")
    if made.get("source"):
        from verify_rates.userfile import load

        load(made["source"])
    try:
        value = {"run": _run, "worst case": _worst_case, "formula": _formula}[made["kind"]](made)
    except (KeyError, TypeError, AttributeError, ImportError) as error:
        raise UsageError(f"the witness of {made['claim']} is damaged: {type(error).__name__} {error}.") from None
    return Replay(made["claim"], made["kind"], value, float(made["value"]), float(made["bound"]), made["relation"])


def _run(made: Mapping[str, Any]) -> float:
    from verify_rates.runs import execute

    _known_measures(made["recipe"])
    return float(execute(made["recipe"])["values"].mean())


def _worst_case(made: Mapping[str, Any]) -> float:
    from verify_rates.exact import replay_instance

    _known_measures(made["recipe"])
    return replay_instance(made["recipe"], made["instance"])


def _formula(made: Mapping[str, Any]) -> float:
    if made["check"] not in _known_checks():
        raise UsageError(f"the witness of {made['claim']} names the check {made['check']!r}, which is no claim's; give its file by --from.")
    found = formula(made["check"], made["parameters"])
    if found.bound != float(made["bound"]) or found.relation != made["relation"]:
        raise UsageError(f"the witness of {made['claim']} has another bound than its check, {found.relation} {found.bound:.10g}.")
    return found.lower if made["relation"] != ">=" else found.upper


def _known_checks() -> set[str]:
    from verify_rates.theory.claims import claims, collect
    from verify_rates.userfile import loaded_modules

    return {c.check for c in (*claims().values(), *(c for module in loaded_modules() for c in collect(module)))} - {""}


def _known_measures(recipe: Mapping[str, Any]) -> None:
    """A witness is data: it must not make this process import a module of its choice."""
    from verify_rates.userfile import loaded_modules

    ours = {"__main__", *(m.__name__ for m in loaded_modules())}
    for path in (recipe["measure"], recipe["initial"]):
        module, colon, _ = str(path).partition(":")
        if colon and module not in ours and not module.startswith("verify_rates."):
            raise UsageError(f"the witness names the measure {path!r}, which is in no file read here; give its file by --from.")


def formula(path: str, parameters: Mapping[str, Any]) -> Any:
    """What the check of that dotted path finds at these parameters."""
    module, name = path.split(":")
    return getattr(importlib.import_module(module), name)(**parameters)
