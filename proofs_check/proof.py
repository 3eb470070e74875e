"""What a proof script is: named steps that SymPy checks one by one, so that a proof that fails says where.

A step is an identity (an expression that expands to 0), a sign (an expression that is nonnegative where the symbols may lie), or an
implication ``slack = sum weight*inequality + sum weight*square`` with nonnegative weights.  Vectors are written as scalars: an identity
of quadratic forms in scalars is one of Gram matrices, and so holds in every dimension.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy as sp

from verify_rates.solvers.method import UsageError, nearest

_PROOFS: dict[str, tuple[Callable[[Proof], None], str]] = {}


class ProofError(Exception):
    """A step that does not hold; the message says what is left over."""


@dataclass(frozen=True)
class Step:
    """One checked step: its name, what was checked, whether it holds, and the seconds it took."""

    name: str
    kind: str
    ok: bool
    seconds: float
    message: str = ""


@dataclass(frozen=True)
class ProofResult:
    """A proof that was run.

    Attributes
    ----------
    name, statement : of the proof.
    steps : the steps in order, up to the first that fails.
    assumptions : what the proof takes as given.
    """

    name: str
    statement: str
    steps: tuple[Step, ...]
    assumptions: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return bool(self.steps) and all(step.ok for step in self.steps)

    @property
    def failed(self) -> str:
        """Name of the step that fails ("" if none does)."""
        return next((step.name for step in self.steps if not step.ok), "")

    @property
    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps)

    @property
    def message(self) -> str:
        """The sentence shown to the user."""
        if self.ok:
            return f"{self.name}: proved in {len(self.steps)} steps, {self.seconds:.2f} s."
        wrong = next((step for step in self.steps if not step.ok), None)
        return f"{self.name}: step {wrong.name!r} does not hold: {wrong.message}." if wrong else f"{self.name}: has no step."

    def to_json(self) -> dict[str, Any]:
        steps = [vars(step) for step in self.steps]
        return {
            "name": self.name,
            "statement": self.statement,
            "ok": self.ok,
            "failed": self.failed,
            "seconds": self.seconds,
            "steps": steps,
        }

    def _repr_html_(self) -> str:
        import html

        rows = "".join(
            f"<tr><td>{html.escape(s.name)}</td><td>{s.kind}</td><td>{'holds' if s.ok else html.escape(s.message)}</td></tr>"
            for s in self.steps
        )
        return f"<table><caption>{html.escape(self.message)}</caption>{rows}</table>"


@dataclass
class Proof:
    """Collects the steps of a script; a step that fails ends it.

    Attributes
    ----------
    region : for each symbol of bounded range, its value in terms of positive symbols.
    factors : changes to the constants of :meth:`constant`, for proofs that are broken on purpose.
    """

    factors: Mapping[str, Any] = field(default_factory=dict)
    region: dict[Any, Any] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)

    def assume(self, sentence: str) -> None:
        """State what the proof takes as given."""
        self.assumptions.append(sentence)

    def constant(self, name: str, value: Any) -> Any:
        """A constant of the proof, by name, so that it can be changed from outside."""
        self.constants.append(name)
        return sp.sympify(value) * self.factors.get(name, 1)

    def zero(self, name: str, expr: Any, reduce: tuple[Any, Any] | None = None) -> None:
        """``expr`` is 0 (after ``symbol**2 -> value`` where ``reduce = (symbol, value)``)."""
        self._step(name, "identity", lambda: _zero(expr, reduce))

    def nonnegative(self, name: str, *exprs: Any) -> None:
        """Every expression is nonnegative on the region: a fraction of polynomials in positive symbols without negative coefficients."""

        def check() -> None:
            for expr in exprs:
                _nonnegative(expr, self.region)

        self._step(name, "sign", check)

    def implied(self, name: str, slack: Any, by: Iterable[tuple[Any, Any]] = (), squares: Iterable[tuple[Any, Any]] = ()) -> None:
        """``slack >= 0`` follows: ``slack = sum weight*inequality + sum weight*form**2``, with nonnegative weights.

        ``by`` holds pairs (weight, expression known to be nonnegative), ``squares`` pairs (weight, linear form).
        """
        by, squares = list(by), list(squares)

        def check() -> None:
            _zero(slack - sum(w * e for w, e in by) - sum(w * e**2 for w, e in squares), None)
            for weight, _ in (*by, *squares):
                _nonnegative(weight, self.region)

        self._step(name, "implication", check)

    def _step(self, name: str, kind: str, check: Callable[[], Any]) -> None:
        begun = time.perf_counter()
        try:
            check()
            message = ""
        except ProofError as error:
            message = str(error)
        self.steps.append(Step(name, kind, not message, time.perf_counter() - begun, message))
        if message:
            raise ProofError(message)


def _short(expr: Any) -> str:
    text = str(expr)
    return text if len(text) <= 200 else text[:197] + "..."


def _zero(expr: Any, reduce: tuple[Any, Any] | None) -> None:
    numerator = sp.expand(sp.numer(sp.together(sp.sympify(expr))))
    if reduce is not None:
        symbol, square = reduce
        numerator = sp.expand(sp.numer(sp.together(sp.rem(numerator, symbol**2 - square, symbol))))
    if numerator != 0:
        raise ProofError(f"what is left is {_short(sp.factor(numerator))}, not 0")


def _nonnegative(expr: Any, region: Mapping[Any, Any]) -> None:
    value = sp.cancel(sp.together(sp.sympify(expr).subs(region, simultaneous=True)))
    if value == 0:
        return
    free = sorted(value.free_symbols, key=str)
    if not all(symbol.is_nonnegative for symbol in free):
        raise ProofError(f"{_short(expr)} has symbols of unknown sign")
    parts = [sp.Poly(part, *free).coeffs() if free else [part] for part in sp.fraction(value)]
    signs = [{bool(c > 0) for c in part} for part in parts]
    if len(signs[0]) != 1 or signs[0] != signs[1]:
        raise ProofError(f"{_short(sp.factor(value))} is not seen to be nonnegative")


def proof(name: str, statement: str) -> Callable[[Callable[[Proof], None]], Callable[[Proof], None]]:
    """Register a script under a name."""

    def register(script: Callable[[Proof], None]) -> Callable[[Proof], None]:
        _PROOFS[name] = (script, statement)
        return script

    return register


def proofs() -> dict[str, tuple[Callable[[Proof], None], str]]:
    """All proof scripts of this folder by name, with their statements."""
    from verify_rates import proofs_check

    for module in pkgutil.iter_modules(proofs_check.__path__):
        if module.name.startswith("of_"):
            importlib.import_module(f"{proofs_check.__name__}.{module.name}")
    return dict(sorted(_PROOFS.items()))


def run_proofs(names: str | Iterable[str] | None = None, factors: Mapping[str, Any] | None = None) -> list[ProofResult]:
    """Run proof scripts; a broken one is not an error but a result that names its failing step.

    Parameters
    ----------
    names : of the proofs (all if None).
    factors : constant name to a factor that falsifies it, to see the proof refuse.

    Errors: UsageError for an unknown proof, or a factor for a constant that no chosen proof has.

    >>> run_proofs("error_feedback")[0].ok
    True
    >>> run_proofs("error_feedback", {"rho": sp.Rational(999, 1000)})[0].failed
    'means: the slack is a square'
    """
    known = proofs()
    chosen = list(known) if names is None else [names] if isinstance(names, str) else list(names)
    for name in chosen:
        if name not in known:
            raise nearest(name, known, "proof")
    results, constants = [], set()
    for name in chosen:
        script, statement = known[name]
        made = Proof(dict(factors or {}))
        with contextlib.suppress(ProofError):  # the step has recorded it
            script(made)
        results.append(ProofResult(name, statement, tuple(made.steps), tuple(made.assumptions)))
        constants |= set(made.constants)
    unknown = sorted(set(factors or {}) - constants)
    if unknown:
        raise UsageError(f"no chosen proof has a constant {unknown[0]!r}; known are {', '.join(sorted(constants))}.")
    return results
