"""The result of a worst case: two ends, what they rest on, and the instance that reaches the lower one; never a bare number."""

from __future__ import annotations

import html
import json
import math
from dataclasses import dataclass, field
from typing import Any

from verify_rates.theory.worst_case.instance import Instance


@dataclass(frozen=True)
class WorstCase:
    """A worst case between two ends.

    Attributes
    ----------
    lower, upper : ends, in the measure's own unit; ``-inf`` and ``inf`` where nothing is known.
    rigorous : both ends were verified after the solve, in double precision: multipliers nonnegative, slack matrices with a
        smallest eigenvalue above the rounding of the computation, function values balanced to rounding; every inequality of
        the instance satisfied with more slack than rounding.  It is not a proof in exact arithmetic: the named allowances of
        :mod:`verify_rates.theory.worst_case.bounds` cover rounding.
    exact : the semidefinite program is the worst case itself; False: its value is an upper bound on it.
    why : the reason for either.
    status : "solved", "inaccurate", "unbounded" (along a direction), "uncontrolled" (the value grows with the size of the instances, as far
        as three sizes show), "infeasible" or "failed".
    gap : ``upper - lower`` of the semidefinite program (also where ``lower`` is not given, the bound not being exact).
    solver, solver_version, seconds : what solved it, and the wall time of the whole call.
    size : orders of the Gram matrices, number of inequalities, of points.
    statement : the problem in plain data.
    multipliers : of the named inequalities, in the problem's own units.
    instance : points, gradients, function values and answers that reach ``lower``; None where there is none.
    """

    lower: float
    upper: float
    rigorous: bool
    exact: bool
    why: str
    status: str
    gap: float
    solver: str
    solver_version: str
    seconds: float
    size: dict[str, Any]
    statement: dict[str, Any]
    multipliers: dict[str, float] = field(default_factory=dict, repr=False)
    instance: Instance | None = field(default=None, repr=False)
    message: str = ""

    def __float__(self) -> float:
        raise TypeError("a worst case is an interval, not a number: use .upper (never below the truth) or .lower (reached by .instance).")

    @property
    def ok(self) -> bool:
        """Whether the solve can be used at all."""
        return self.status in ("solved", "inaccurate")

    def __str__(self) -> str:
        if not self.ok:
            return f"{self.status}: {self.message}"
        kind = "exact worst case" if self.exact else "upper bound on the worst case"
        sure = "verified" if self.rigorous else "not verified"
        return f"{kind} in [{self.lower:.10g}, {self.upper:.10g}] ({sure}; {self.why})"

    def to_dict(self) -> dict[str, Any]:
        """Plain data; infinities and unknown numbers are None."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "instance"}
        plain |= {k: None for k, v in plain.items() if isinstance(v, float) and not math.isfinite(v)}
        return plain | {"instance": self.instance.to_dict() if self.instance else None}

    def to_json(self, **options: Any) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), allow_nan=False, **options)

    def _repr_html_(self) -> str:
        rows = {
            "worst case": str(self),
            "status": f"{self.status} by {self.solver} {self.solver_version} in {self.seconds:.3g} s",
            "gap": f"{self.gap:.2g}",
            **{k: str(v) for k, v in self.statement.items()},
        }
        body = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in rows.items())
        return f"<table>{body}</table>"
