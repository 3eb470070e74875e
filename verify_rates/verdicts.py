"""Verdicts: what the evidence says of a claim, and nothing more."""

from __future__ import annotations

import enum
import math
from dataclasses import asdict, dataclass, field
from typing import Any

from verify_rates.solvers.method import UsageError
from verify_rates.theory.claims import Claim
from verify_rates.trust import BROKEN

SCHEMA_VERSION = 1

# A worst case is solved to about 1e-8 relative; a bound is separated from it only beyond this share of the bound.
RTOL_SDP = 1e-6
# Runs and closed forms are double precision; rounding accumulates over at most 1e5 steps.
RTOL_RUN = 1e-9
# Sampling refutes only at this error probability per claim, twice, on fresh seeds.
LEVEL = 1e-6


class Verdict(enum.Enum):
    """The verdict on a claim; the value is its name, ``sentence`` what is shown."""

    CERTIFIED = "certified"
    HOLDS = "holds"
    CONSISTENT = "consistent"
    REFUTED = "refuted"
    INCONCLUSIVE = "inconclusive"
    NOT_CHECKABLE = "not checkable"

    @property
    def sentence(self) -> str:
        return {
            Verdict.CERTIFIED: "an exact rational certificate proves it at every checked parameter",
            Verdict.HOLDS: "the exact value stays within the bound at every checked parameter",
            Verdict.CONSISTENT: "no run and no search beat the bound",
            Verdict.REFUTED: "a concrete instance beats the bound",
            Verdict.INCONCLUSIVE: "the evidence does not separate the measured value from the bound",
            Verdict.NOT_CHECKABLE: "it states nothing that can be checked",
        }[self]


@dataclass(frozen=True)
class Check:
    """One piece of evidence: an interval for the measured value beside the bound.

    Attributes
    ----------
    kind : worst case | moments | runs | search | identity | formula.
    parameters : where it was checked.
    bound : the claim's value there (None where the claim compares nothing).
    lower, upper : what the measured value certainly reaches, and never exceeds as far as this check knows
        (inf where the check has no upper end, as in simulations).
    status : the solver's or the run's own status; only "ok" is evidence.
    proves : True where [lower, upper] encloses the exact value over the whole class at these parameters.
    rtol : the relative accuracy at which lower and upper are known.
    evidence_against : for samples, the e-value against "the mean stays within the bound" (None: deterministic).
    """

    kind: str
    parameters: dict[str, Any]
    bound: float | None
    lower: float
    upper: float
    relation: str = "<="
    status: str = "ok"
    proves: bool = False
    certified: bool = False
    rtol: float = RTOL_RUN
    evidence_against: float | None = None
    samples: list[float] = field(default_factory=list)
    solver: str = ""
    seeds: list[int] = field(default_factory=list)
    seconds: float = 0.0
    message: str = ""
    witness: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        return _plain(asdict(self))


def _plain(value: Any) -> Any:
    """The value as JSON data: NumPy scalars and arrays become numbers and lists, infinities become text."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    return str(value)


@dataclass(frozen=True)
class Result:
    """A claim with its verdict and the evidence for it."""

    claim: Claim
    verdict: Verdict
    checks: list[Check]
    message: str
    seconds: float = 0.0
    cached: bool = False

    @property
    def tightness(self) -> float | None:
        """Worst measured value over the bound (None where nothing is compared, as in an identity)."""
        if self.claim.kind == "identity":
            return None
        ratios = [_ratio(c) for c in self.checks if c.status == "ok" and c.bound is not None]
        return max((r for r in ratios if r is not None), default=None)

    @property
    def as_expected(self) -> bool:
        met = {"holds": (Verdict.CERTIFIED, Verdict.HOLDS, Verdict.CONSISTENT), "fails": (Verdict.REFUTED,)}[self.claim.expect]
        return self.verdict in met or self.verdict in (Verdict.INCONCLUSIVE, Verdict.NOT_CHECKABLE)

    def replay(self) -> Any:
        """The witness of a refuted claim run again, a :class:`verify_rates.witness.Replay`; UsageError where there is none."""
        from verify_rates.witness import replay, stored

        if self.witness is None:
            raise UsageError(f"{self.claim.id} has no witness to replay: it is {self.verdict.value}.")
        return replay(stored(self.claim.id, self.witness), self.claim)

    @property
    def witness(self) -> dict[str, Any] | None:
        return next((c.witness for c in self.checks if c.witness and outcome(c) is Verdict.REFUTED), None)

    def to_json(self) -> dict[str, Any]:
        c = self.claim
        return {
            "id": c.id,
            "statement": c.statement,
            "method": c.method,
            "kind": c.kind,
            "verdict": self.verdict.value,
            "expect": c.expect,
            "as_expected": self.as_expected,
            "tight": c.tight,
            "tightness": _plain(self.tightness),
            "bound": c.bound,
            "relation": c.relation,
            "measure": c.measure if isinstance(c.measure, str) else c.measure.__name__,
            "source": c.source,
            "provenance": c.provenance,
            "message": self.message,
            "seconds": round(self.seconds, 3),
            "cached": self.cached,
            "checks": [check.to_json() for check in self.checks],
        }


def _ratio(c: Check) -> float | None:
    if c.bound is None or not math.isfinite(c.lower):
        return None
    if c.bound == 0:
        return 0.0 if c.lower <= 0 else math.inf
    return c.lower / c.bound if c.relation == "<=" else c.bound / c.lower if c.lower else math.inf


def outcome(c: Check, factor: float = 1.0) -> Verdict:
    """What one check says when its bound is multiplied by ``factor``; never better than its status allows.

    A check whose interval straddles the bound says nothing.  A sample refutes only with an e-value of 1/LEVEL, and is
    consistent where its mean stays within the bound or its e-value below 1; that e-value belongs to the unscaled bound, so
    with another factor it is computed anew from the stored samples.
    """
    if c.status != "ok" or any(map(math.isnan, (c.lower, c.upper))):
        return Verdict.INCONCLUSIVE
    if c.bound is None:
        return Verdict.HOLDS if c.proves else Verdict.CONSISTENT
    if not math.isfinite(c.bound):
        return Verdict.CONSISTENT if c.bound > 0 and c.relation == "<=" else Verdict.INCONCLUSIVE
    bound = c.bound * factor
    slack = c.rtol * max(abs(bound), abs(c.bound))
    above = c.lower > bound + slack
    below = c.upper < bound - slack
    broken = {"<=": above, ">=": below, "==": above or below}[c.relation]
    if c.samples:  # only an upper bound on a mean can be tested on samples of unbounded size
        if c.relation != "<=":
            return Verdict.INCONCLUSIVE
        from verify_rates.statistics import e_value

        if not broken:
            return Verdict.CONSISTENT
        e = c.evidence_against if factor == 1.0 and c.evidence_against is not None else e_value(c.samples, bound)
        if 0 < e < 1:  # betting against the claim lost money; a bound that is attained lies below half of all samples (0: no bet)
            return Verdict.CONSISTENT
        return Verdict.REFUTED if e >= 1 / LEVEL else Verdict.INCONCLUSIVE
    if broken:
        return Verdict.REFUTED
    kept = {
        "<=": c.upper <= bound + slack,
        ">=": c.lower >= bound - slack,
        "==": c.upper <= bound + slack and c.lower >= bound - slack,
    }[c.relation]
    if not c.proves:
        return Verdict.CONSISTENT
    if not kept:
        return Verdict.INCONCLUSIVE
    return Verdict.CERTIFIED if c.certified and factor >= 1 else Verdict.HOLDS


def judge(claim: Claim, checks: list[Check], factor: float = 1.0) -> Verdict:
    """The verdict on a claim from its checks, its bound multiplied by ``factor``.

    One refutation refutes.  A wrong declaration of a user's object leaves nothing better than inconclusive.  Where the exact
    value over the class is computed, every such check has to prove the bound; else all runs have to be consistent.  A check
    that says nothing never helps.
    """
    if claim.not_checkable:
        return Verdict.NOT_CHECKABLE
    said = [(c, outcome(c, factor)) for c in checks if c.status != "not applicable"]
    if any(o is Verdict.REFUTED for _, o in said):
        return Verdict.REFUTED
    if any(c.status.startswith(BROKEN) for c, _ in said):
        return Verdict.INCONCLUSIVE
    exact = [o for c, o in said if c.proves or c.kind == "worst case"]
    decisive = exact or [o for _, o in said]
    if not decisive or any(o is Verdict.INCONCLUSIVE for o in decisive):
        return Verdict.INCONCLUSIVE
    order = (Verdict.CONSISTENT, Verdict.HOLDS, Verdict.CERTIFIED)
    return min(decisive, key=order.index)
