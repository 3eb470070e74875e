"""A method in coordinates: its step function run on exact vectors gives the statement of a certificate.

This is a second reading of the words beside that of ``theory.worst_case``: the two share the arithmetic of vectors alone, so that a
slip of one shows in the other.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from verify_rates.solvers.measures import get_measure
from verify_rates.solvers.method import Method, UsageError, get_method, nearest
from verify_rates.solvers.words import Kind, Unsupported, World
from verify_rates.theory.worst_case.algebra import Form, Vec, exact, sqnorm
from verify_rates.theory.worst_case.solve import STARTS, TAKES, exact_hypers, initial_values, setting_of
from verify_rates.theory.worst_case.world import Setting, branches, field_units, taken

CLASSES = ("smooth_strongly_convex", "smooth")


class Tracing(World):
    """The words on exact coordinates; every unknown is numbered in the order in which it comes up."""

    reading = "a certificate"

    def __init__(self, setting: Setting, centred: bool) -> None:
        self.setting, self.many = setting, setting.n != 1
        self.units: tuple[list[float], list[float], list[float]] = ([], [], [])  # sizes of the unknown means, deviations, values
        self.points: list[tuple[Vec, Vec, Form]] = []
        self.messages: list[tuple[Vec, Vec]] = []
        self.least: list[tuple[int, list[Form]]] = []
        self.tosses: list[tuple[Fraction, bool]] = []
        self.script: tuple[bool, ...] = ()
        self.infimum: int | None = None
        self.asked_for_minimiser = False
        self.minimiser = self.unknown(1.0)
        self.centred = centred
        if centred:
            local = self.many and setting.zeta2_star != 0
            own = self.unknown(float(setting.L), mean=False) if local else Vec(shared=False)
            self.points.append((self.minimiser, own, Form()))

    @property
    def delta(self) -> Any:
        return self.setting.delta

    def unknown(self, unit: float, shared: bool = True, mean: bool = True) -> Vec:
        """A new vector: a mean, and a deviation where it is per worker and there are several."""
        made = Vec(shared=shared and mean)
        if mean:
            made.mean = {len(self.units[0]): Fraction(1)}
            self.units[0].append(unit)
        if self.many and not made.shared:
            made.dev = {len(self.units[1]): Fraction(1)}
            self.units[1].append(unit)
        return made

    def number(self, unit: float) -> Form:
        """A new value."""
        self.units[2].append(unit)
        return Form(f={len(self.units[2]) - 1: Fraction(1)})

    def size(self, v: Vec) -> float:
        sizes = [abs(float(c)) * self.units[0][k] for k, c in v.mean.items()]
        return max(sizes + [abs(float(c)) * self.units[1][k] for k, c in v.dev.items()], default=0.0)

    def point(self, x: Vec) -> tuple[Vec, Vec, Form]:
        """The point at x, evaluated at most once."""
        for known in self.points:
            if known[0].key == x.key:
                return known
        L = float(self.setting.L)
        self.points.append((x, self.unknown(L, shared=False), self.number(L)))
        return self.points[-1]

    # --- words -------------------------------------------------------------------------------------------------------

    def grad(self, x):
        return self.point(x)[1]

    full_grad = grad

    def mean(self, v):
        return Vec(v.mean)

    consensus = mean

    def spread(self, v):
        return Vec(v.mean, shared=False)

    def compress(self, v):
        if self.setting.delta == 1 or self.setting.Delta2 == 0 or (not (v.mean or v.dev) and self.setting.Delta2 is None):
            return v
        m = self.unknown(self.size(v) or 1.0, shared=v.shared)
        self.messages.append((v, m))
        return m

    def delay(self, q, v):
        return (q, v) if not q else ((*q[1:], v), q[0])

    def chance(self, p):
        p = exact(p)
        if p in (0, 1):
            return p == 1
        k = len(self.tosses)
        outcome = self.script[k] if k < len(self.script) else True
        self.tosses.append((p if outcome else 1 - p, outcome))
        return outcome

    def optimum(self):
        if not self.setting.functions.minimiser:
            self.refuse("optimum", "a nonconvex function need not have a minimiser")
        self.asked_for_minimiser = True
        return self.minimiser

    def gap(self, x):
        f = self.point(x)[2]
        if self.setting.functions.minimiser:
            self.asked_for_minimiser = True
            return f
        if self.infimum is None:
            self.infimum = next(iter(self.number(float(self.setting.L)).f))
        return f - Form(f={self.infimum: Fraction(1)})

    def sqnorm(self, v):
        return sqnorm(v)

    # --- the statement -----------------------------------------------------------------------------------------------

    def smallest(self, forms: list[Form]) -> Form:
        """A value that is at most each of the forms."""
        low = self.number(float(self.setting.L))
        self.least.append((next(iter(low.f)), forms))
        return low

    def first(self, method: Method, hyper: Any, free: bool) -> Any:
        """The first state: as a run starts, or arbitrary."""
        tau, units = int(getattr(hyper, "tau", 0)), field_units(method, hyper, self.setting, 1) if free else {}

        def filled(kind: Kind, make: Any) -> Any:
            return tuple(make() for _ in range(tau)) if kind.is_queue else make()

        if not free:
            x0 = self.unknown(1.0) + self.minimiser
            return method.initial(self, x0, lambda kind: filled(kind, lambda: Vec(shared=_shared(kind))))

        def arbitrary(name: str, kind: Kind) -> Vec:
            shared = _shared(kind)
            v = self.unknown(units[name], shared=shared)
            return v + (self.minimiser if shared else self.spread(self.minimiser)) if name in method.start else v

        return method.state(**{name: filled(kind, lambda n=name, k=kind: arbitrary(n, k)) for name, kind in method.kinds.items()})


UNREAD = {  # what a worst case reads and a certificate does not speak of
    "mixing": "gossip",
    "sigma2": "gradient noise",
    "sampled": "workers drawn at random",
    "groups": "groups of workers",
    "apart": "workers kept apart",
    "objective": "several functions",
}


def _shared(kind: Kind) -> bool:
    return kind in (Kind.SHARED, Kind.SHARED_QUEUE)


def trace(
    method: str | Method,
    hyper: dict[str, Any],
    *,
    steps: int,
    functions: str = "smooth_strongly_convex",
    L: Any = 1,
    mu: Any = 0,
    n: Any = "any",
    compressor: Any = None,
    d: int | None = None,
    zeta2_star: Any = 0,
    initial: Any = "distance",
    initial_value: Any = 1,
    measure: Any = "function_gap",
    take: str = "last",
    start: str = "standard",
    **more: Any,
) -> tuple[dict[str, Any], tuple[list[float], list[float], list[float]]]:
    """The statement of a certificate without its rate, and the sizes of its unknowns; arguments as for ``worst_case``.

    Errors: UsageError and Unsupported as there; Unsupported for classes and words that a certificate does not speak of.
    """
    for name, value in more.items():
        if name not in UNREAD:
            raise nearest(name, (*UNREAD, "functions", "compressor", "initial", "measure"), "argument of a certificate")
        if not (value is None or (isinstance(value, (int, float)) and not value)):
            raise Unsupported(f"a certificate of {UNREAD[name]}: its inequalities are not among those that the checker rebuilds")
    method = get_method(method)
    for what, value, known in (("take", take, TAKES), ("start", start, STARTS)):
        if value not in known:
            raise nearest(str(value), known, what)
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise UsageError(f"steps must be a whole number from 1 on, not {steps!r}.")
    values = exact_hypers(method, hyper)
    setting = setting_of(functions, L, mu, n, compressor, d, None, zeta2_star)
    if setting.functions.name not in CLASSES or setting.mu == setting.L:
        raise Unsupported(f"a certificate of {setting.functions.name!r}: it speaks of {' and '.join(CLASSES)} with mu < L")
    for centred in (True, False) if setting.functions.minimiser else (False,):
        world = Tracing(setting, centred)
        first = world.first(method, values, start == "free")
        total, states = Form(), list[Any]()
        for weight, states in branches(method, values, world, first, steps):
            total = total + weight * taken(take, get_measure(measure), states, world, values, world.smallest)
        conditions = initial_values(initial, initial_value, states, world, values)
        if world.asked_for_minimiser or (world.many and setting.zeta2_star is not None):
            break  # else nothing speaks of x*
    if setting.functions.minimiser and not world.centred and world.asked_for_minimiser:
        raise Unsupported("a certificate of a measure that speaks of x* only sometimes")
    unbounded = any(world.infimum in f.f for f in (total, *(f for f, _ in conditions)))
    if unbounded and world.many:
        raise Unsupported("a certificate of a gap to the infimum of nonconvex functions: it is read for one worker")
    bounds = {k: str(v) for k, v in (("delta", setting.delta), ("Delta2", setting.Delta2)) if v is not None}
    about = {
        "method": method.name,
        "hyper": {k: _text([v(t) for t in range(steps)] if callable(v) else v) for k, v in values._asdict().items()},
        "steps": str(steps),
        "measure": _name(measure),
        "initial": _name(initial),
        "initial_value": str(exact(initial_value)),
        "take": take,
        "start": start,
    }
    made = {
        "about": about,
        "class": {"functions": setting.functions.name, "L": str(setting.L), "mu": str(setting.mu)},
        "workers": "any" if world.many else "one",
        "compressor": bounds,
        "zeta2_star": None if setting.zeta2_star is None or not world.many else str(setting.zeta2_star),
        "unknowns": [len(u) for u in world.units],
        "points": [{"x": _vector(x), "g": _vector(g), "f": _form(f)} for x, g, f in world.points],
        "minimiser": 0 if world.centred else None,
        "infimum": world.infimum if unbounded else None,
        "messages": [{"v": _vector(v), "m": _vector(m)} for v, m in world.messages],
        "least": [[i, [_form(f) for f in forms]] for i, forms in world.least],
        "initial": [[_form(f), str(exact(limit))] for f, limit in conditions],
        "measure": _form(total),
    }
    return made, world.units


def _name(measure: Any) -> str:
    if isinstance(measure, (list, tuple)):
        return ", ".join(_name(m) for m in measure)
    return measure if isinstance(measure, str) else getattr(measure, "__name__", "a measure")


def _text(value: Any) -> Any:
    return [_text(v) for v in value] if isinstance(value, (list, tuple)) else str(exact(value))


def _combination(c: dict[int, Fraction]) -> list[Any]:
    return [[k, str(v)] for k, v in sorted(c.items()) if v]


def _vector(v: Vec) -> list[Any]:
    return [_combination(v.mean), _combination(v.dev)]


def _form(f: Form) -> dict[str, Any]:
    return {"const": str(f.const), "values": _combination(f.f), "squares": [[str(c), _vector(v)] for c, v in f.squares if c]}
