"""Rational certificates of chained potentials, one link a step: :func:`certify_chain`.

The potentials that :func:`verify_rates.potential` finds are inflated by an equal share a step, rounded to fractions, and every link gets
rational multipliers of its own; :mod:`verify_rates.proofs_check.chain_checker` decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from verify_rates.proofs_check.certificates import INFLATION, Name, Refused, _fraction, _inequalities, _proposals_of, _read_number
from verify_rates.proofs_check.chain_checker import FORMAT, Step, check_chain
from verify_rates.proofs_check.checker import Sum, seal, semidefinite
from verify_rates.proofs_check.trace import CLASSES, Tracing, _form, _name, _text, _vector
from verify_rates.solvers.measures import get_measure
from verify_rates.solvers.method import Method, UsageError, get_method
from verify_rates.solvers.words import Unsupported
from verify_rates.theory.contraction import Features
from verify_rates.theory.potentials import _reads_time, potential
from verify_rates.theory.worst_case.algebra import Form, exact
from verify_rates.theory.worst_case.solve import exact_hypers, setting_of
from verify_rates.theory.worst_case.world import Setting, at_exact


def certify_chain(method: str | Method, hyper: dict[str, Any], *, steps: int, inflate: Any = INFLATION, **problem: Any) -> dict[str, Any]:
    """An accepted certificate of a bound after many steps, from chained potentials; its size grows linearly in N.

    Guarantee: what it states holds in exact arithmetic: the bound of :func:`verify_rates.potential`, times ``1 + inflate`` at most.

    Parameters
    ----------
    method, hyper, steps, problem : as for :func:`verify_rates.potential`.
    inflate : by how much more is proved, relatively: half of it is room in the links, and every step gets an equal share of the rest.

    Errors
    ------
    Refused where no chain was found or a link has no rational multipliers; UsageError and Unsupported as there.

    Example
    -------
    >>> made = certify_chain("gd", {"gamma": 1}, steps=12, n=1)
    >>> abs(float(Fraction(made["rate"])) * 50 - 1) < 2e-6, check_chain(made)[:15]
    (True, 'function_gap <=')
    """
    method = get_method(method)
    chain = _Traced(method, hyper, steps=steps, **problem)
    more = _fraction("inflate", inflate)
    if more <= 0:
        raise UsageError(f"inflate must be positive, not {inflate}: rounded multipliers need room.")
    found = potential(method, hyper, steps=steps, room=float(more) / 2, **problem)
    if not found.ok:
        raise Refused(f"no chain of potentials: {found.why}")
    chain.features = found.potentials[0].features
    statements, numbers, units = chain.statements()
    share = 1 + float(more) / 2.1 / steps
    potentials = [_rounded(V, share ** (steps - 1 - k)) for k, V in enumerate(found.potentials)]
    tau = _fraction("upper", found.upper * share**steps) / chain.reach
    made: dict[str, Any] = {"format": FORMAT, **chain.common(), "statements": statements}
    made |= {"potentials": [[[[str(c) for c in row] for row in P] for P in V[:2]] + [[str(c) for c in V[2]]] for V in potentials]}
    ends, read = [None, *potentials, None], [Step(made, s) for s in statements]
    rows = [_inequalities({"compressor": made["compressor"]}, step) for step in read]
    links = []
    for k, number in enumerate(numbers):
        goal = _goal(read[number], ends[k], ends[k + 1], tau)
        try:
            multipliers = _multipliers(read[number], rows[number], goal, units[number])
        except Refused as why:
            raise Refused(f"link {k} has no rational multipliers: {why}") from None
        links.append([number, [[*name, str(w)] for name, w in multipliers.items() if w]])
    made |= {"links": links, "rate": str(tau * chain.reach)}
    made["sha256"] = seal(made)
    check_chain(made)
    return made


def confirm_chain(made: Mapping[str, Any], method: str | Method | None = None, **problem: Any) -> str:
    """The checker's sentence, after tracing the method again: steps, states and measures in the chain are the method's.

    Parameters
    ----------
    made : a chain.
    method : by default the one that the chain names.
    problem : measure and initial where they are functions.

    Errors: Refused where the chain proves nothing or is not of that method.
    """
    sentence = check_chain(made)
    about, setting, many = made["about"], made["class"], made["workers"] == "any"
    try:
        chain = _Traced(
            get_method(method or about["method"]),
            {k: _read_number(v) for k, v in about["hyper"].items()},
            **{
                "steps": int(about["steps"]),
                "functions": setting["functions"],
                "L": Fraction(setting["L"]),
                "mu": Fraction(setting["mu"]),
                "n": "any" if many else 1,
                "compressor": {k: Fraction(v) for k, v in made["compressor"].items()} or None,
                "zeta2_star": None if many and made["zeta2_star"] is None else 0,
                "initial": about["initial"],
                "initial_value": Fraction(about["initial_value"]),
                "measure": about["measure"],
                "take": about["take"],
            }
            | problem,
        )
        given = made["features"]
        limits = {k: float(Fraction(v)) for k, v in given["limits"].items()}
        kinds, start = chain.method.kinds, chain.method.start
        chain.features = Features(kinds, start, tuple(given["evaluated"]), limits, given["star"], many, given["values"])
        again, (statements, numbers, _) = chain.common(), chain.statements()
    except (UsageError, ValueError, TypeError, AttributeError, ArithmeticError, LookupError, Unsupported) as error:
        raise Refused(f"the method it names cannot be traced again: {error}") from None
    for name, value in (again | {"statements": statements}).items():
        if made[name] != value:
            raise Refused(f"its {name} is not that of {about['method']}")
    if [number for number, _ in made["links"]] != numbers:
        raise Refused(f"its links are not the steps of {about['method']}")
    return sentence


class _Traced:
    """The steps of a method in coordinates, each from an arbitrary state (the first from where a run starts)."""

    features: Features

    def __init__(
        self,
        method: Method,
        hyper: dict[str, Any],
        *,
        steps: int,
        functions: str = "smooth_strongly_convex",
        L: Any = 1,
        mu: Any = 0,
        n: Any = "any",
        compressor: Any = None,
        d: int | None = None,
        mixing: Any = None,
        zeta2_star: Any = 0,
        initial: Any = "distance",
        initial_value: Any = 1,
        measure: Any = "function_gap",
        take: str = "last",
    ) -> None:
        if mixing is not None:
            raise Unsupported("a certificate of a chain with gossip: it speaks of exact means alone")
        self.method, self.values, self.steps, self.take = method, exact_hypers(method, hyper), steps, take
        self.setting: Setting = setting_of(functions, L, mu, n, compressor, d, None, zeta2_star)
        if self.setting.functions.name not in CLASSES or self.setting.mu == self.setting.L or not self.setting.functions.minimiser:
            raise Unsupported(f"a certificate of a chain in {self.setting.functions.name!r}: it speaks of {CLASSES[0]} with mu < L")
        self.measure, self.initial, self.reach = get_measure(measure), get_measure(initial), exact(initial_value)
        self.names = _name(measure), _name(initial)

    def common(self) -> dict[str, Any]:
        """What all links state."""
        values, setting, f = self.values._asdict(), self.setting, self.features
        many = setting.n != 1
        return {
            "about": {
                "method": self.method.name,
                "hyper": {k: _text([v(t) for t in range(self.steps)] if callable(v) else v) for k, v in values.items()},
                "steps": str(self.steps),
                "measure": self.names[0],
                "initial": self.names[1],
                "initial_value": str(self.reach),
                "take": self.take,
            },
            "class": {"functions": setting.functions.name, "L": str(setting.L), "mu": str(setting.mu)},
            "workers": "any" if many else "one",
            "compressor": {} if setting.delta is None else {"delta": str(setting.delta)},
            "zeta2_star": None if setting.zeta2_star is None or not many else str(setting.zeta2_star),
            "features": {
                "evaluated": list(f.evaluated),
                "limits": {k: str(Fraction(v)) for k, v in f.limits.items()},
                "star": f.star,
                "values": f.values,
            },
        }

    def statements(self) -> tuple[list[dict[str, Any]], list[int], list[Any]]:
        """Different steps, the number of each link's, and the sizes of their unknowns."""
        known: dict[Any, int] = {}
        made: list[dict[str, Any]] = []
        numbers: list[int] = []
        units: list[Any] = []
        for t in range(self.steps):
            key = (at_exact(self.values, t), t if _reads_time(self.method) else None, t == 0, t == self.steps - 1)
            if key not in known:
                known[key] = len(made)
                stated, sizes = self._step(t)
                made.append(stated)
                units.append(sizes)
            numbers.append(known[key])
        return made, numbers, units

    def _step(self, t: int) -> tuple[dict[str, Any], Any]:
        world, hyper, last = Tracing(self.setting, True), at_exact(self.values, t), t == self.steps - 1
        s = world.first(self.method, self.values, t > 0)
        before = self._state(s, world) if t else None
        start = None if t else _form(self.initial(s, world, hyper))
        gain = self.measure(s, world, hyper) / self.steps if self.take == "mean" else Form()
        made = self.method.step(s, world, hyper, t)
        if world.tosses:
            raise Unsupported("a certificate of a chain with 'chance': both branches of a coin are read for one step only")
        if last and self.take == "last":
            gain = self.measure(made, world, hyper)
        stated = {
            "unknowns": [],
            "points": [],
            "minimiser": 0,
            "messages": [],
            "before": before,
            "after": None if last else self._state(made, world),
            "initial": start,
            "gain": _form(gain),
        }
        stated["unknowns"] = [len(u) for u in world.units]
        stated["points"] = [{"x": _vector(x), "g": _vector(g), "f": _form(f)} for x, g, f in world.points]
        stated["messages"] = [{"v": _vector(v), "m": _vector(m)} for v, m in world.messages]
        return stated, world.units

    def _state(self, s: Any, world: Tracing) -> list[Any]:
        parts = [[_vector(v) for v in part.values()] for part in self.features.parts(s, world)]
        return [*parts, [_form(f) for f in self.features.gaps(s, world).values()]]


def _rounded(V: Any, factor: float) -> list[Any]:
    """A potential times a factor, as fractions: lower triangles and weights of gaps."""
    triangles = [[[Fraction(float(c) * factor) for c in row[: i + 1]] for i, row in enumerate(P)] for P in (V.P_mean, V.P_dev)]
    return [*triangles, [Fraction(float(c) * factor) for c in V.gaps.values()]]


def _goal(step: Step, before: Any, after: Any, tau: Fraction) -> Sum:
    """What must be nonnegative."""
    goal = Sum(step.sizes, step.values)
    if before is None:
        goal.form(tau, step.start)
    else:
        step.potential(goal, 1, before, step.before)
    if after is not None:
        step.potential(goal, -1, after, step.after)
    goal.form(-1, step.gain)
    return goal


def _multipliers(step: Step, rows: Mapping[Name, Sum], goal: Sum, units: Any) -> dict[Name, Fraction]:
    """Rational multipliers that prove one link."""
    reason = Refused("none were found")
    size = _size(goal, units)
    goal.constant(size)  # links have no constants: room for the solver's margin, left out below
    for propose in _proposals_of(step, goal, rows, size, units):
        try:
            found = propose()
        except Refused as why:
            reason = why
            continue
        if _proves(step, goal, size, found):
            return found
        reason = Refused("rounding broke them")
    raise reason


def _size(goal: Sum, units: Any) -> Fraction:
    entries = [
        abs(float(c)) * unit[i] * unit[j]
        for gram, unit in zip(goal.grams, units, strict=False)
        for i, row in enumerate(gram)
        for j, c in enumerate(row)
    ]
    return Fraction(max(entries, default=0.0) or 1.0)


def _proves(step: Step, goal: Sum, spare: Fraction, found: Mapping[Name, Fraction]) -> bool:
    total = Sum(step.sizes, step.values)
    total.const, total.values, total.grams = goal.const - spare, list(goal.values), [[row[:] for row in gram] for gram in goal.grams]
    for name, w in found.items():
        step.inequality(total, w, *name)
    return not any(total.values) and total.const >= 0 and all(map(semidefinite, total.grams))
