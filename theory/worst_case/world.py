"""The words of a step as a performance-estimation problem: running the step function on symbols collects its constraints.

Every vector is mean plus deviation over the workers; inner products averaged over the workers are ``m'Gm + q'Dq`` with Gram
matrices G, D >= 0.  A constraint is a :class:`Form` that must be at most 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from verify_rates.solvers.method import UsageError, at
from verify_rates.solvers.words import Kind, Unsupported, World
from verify_rates.theory.worst_case.algebra import Form, Vec, exact, inner, sqnorm
from verify_rates.theory.worst_case.classes import FunctionClass


@dataclass(frozen=True)
class Setting:
    """What is assumed: the class and its constants, the workers, the compressor's class, the mixing's spectrum."""

    functions: FunctionClass
    L: Fraction
    mu: Fraction
    n: int | None  # None: any number n >= 2 at once
    delta: Fraction | None  # mean ||C(v)-v||^2 <= (1-delta) mean ||v||^2
    Delta2: Fraction | None  # mean ||C(v)-v||^2 <= Delta2
    mixing: tuple[Fraction, Fraction] | None  # eigenvalues on deviations lie between
    zeta2_star: Fraction | None  # mean ||grad f_i(x*)||^2 at most; None: arbitrary

    @property
    def shift(self) -> Fraction:
        """Curvature taken out before interpolation; that of the class where mu is near L, so that the problem stays well conditioned."""
        return self.mu if self.functions.shifts and 2 * self.mu > self.L else Fraction(0)

    @property
    def width(self) -> float:
        """The unit of interpolated gradients: their Lipschitz constant."""
        return float(self.L - self.shift)

    @property
    def kappa(self) -> float:
        """Least curvature left, in that unit."""
        return float(self.mu - self.shift) / self.width if self.width else 0.0


class Point(NamedTuple):
    """An evaluated point: where, every worker's gradient, the mean function value.

    ``h`` and ``v``, of which the interpolation conditions speak, belong to ``f - shift/2 ||. - x_0||^2`` with x_0 the first point.
    """

    x: Vec
    g: Vec
    f: Form
    h: Vec
    v: Form


class Answer(NamedTuple):
    """What a compressor made of ``v``."""

    v: Vec
    m: Vec


@dataclass
class PepWorld(World):
    """Collects basis vectors, evaluated points and constraints while a step function runs on :class:`Vec` values."""

    setting: Setting
    reading = "the worst case"
    mean_units: list[float] = field(default_factory=list)  # size of every basis vector where positions have size 1
    dev_units: list[float] = field(default_factory=list)
    scalar_units: list[float] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    constraints: list[tuple[str, Form]] = field(default_factory=list)  # (name, form <= 0)
    mixed: list[tuple[Vec, Vec]] = field(default_factory=list)  # deviations before and after
    linear: list[tuple[Vec, Vec]] = field(default_factory=list)  # positions less x*, and gradients of a quadratic
    answers: list[Answer] = field(default_factory=list)
    implicit: list[tuple[Vec, Fraction, Vec]] = field(default_factory=list)  # g with g = g(v - gamma g), gamma, and v - x*
    script: tuple[bool, ...] = ()  # outcomes of the coins of this branch
    tosses: list[tuple[Fraction, bool]] = field(default_factory=list)
    relaxed: str = ""  # why the value is an upper bound only
    centred: bool = True  # the minimiser is the first point; False: it is left out, every finite set of points has one

    def __post_init__(self) -> None:
        self._known: dict[Any, int] = {}
        self._f_star: Form | None = None  # infimum of f where there is no minimiser, made when asked for
        self.asked_for_minimiser = False
        if self.setting.functions.necessary:
            self.relaxed = f"the inequalities of {self.setting.functions.name!r} are necessary, not sufficient"
        self.minimiser = self.basis(1.0, dev=False)  # x* itself; drops out of methods that do not know the origin
        if self.centred:
            g = self._gradient_at_minimiser()
            self._store(Point(self.minimiser, g, Form(), g, Form()))

    def _gradient_at_minimiser(self) -> Vec:
        zeta2 = self.setting.zeta2_star
        if self.setting.n == 1 or zeta2 == 0:
            return Vec(shared=False)
        g = self.basis(float(self.setting.L), shared=False, mean=False)
        if zeta2 is not None:
            self.constraints.append(("heterogeneity", sqnorm(g) - zeta2))
        return g

    @property
    def needs_minimiser(self) -> bool:
        """Whether x* says anything: a measure used it, or the workers' gradients there are restricted."""
        return self.asked_for_minimiser or (self.setting.n != 1 and self.setting.zeta2_star is not None)

    @property
    def delta(self) -> Fraction | float:
        """The compressor's contraction constant, for measures that need it."""
        if self.setting.delta is None:
            raise UsageError("this measure needs the compressor's delta; give compressor={'delta': ...}.")
        return self.setting.delta

    # --- unknowns ----------------------------------------------------------------------------------------------------

    def basis(self, unit: float, shared: bool = True, mean: bool = True, dev: bool = True) -> Vec:
        """A new unknown vector of the given size."""
        made = Vec(shared=shared)
        if mean:
            made.mean = {len(self.mean_units): Fraction(1)}
            self.mean_units.append(unit)
        if dev and not shared and self.setting.n != 1:
            made.dev = {len(self.dev_units): Fraction(1)}
            self.dev_units.append(unit)
        return made

    def scalar(self, unit: float) -> Form:
        """A new unknown number of the given size."""
        self.scalar_units.append(unit)
        return Form(f={len(self.scalar_units) - 1: Fraction(1)})

    def size(self, v: Vec) -> float:
        """Largest coefficient times unit of a vector."""
        sizes = [abs(float(c)) * self.mean_units[k] for k, c in v.mean.items()]
        return max(sizes + [abs(float(c)) * self.dev_units[k] for k, c in v.dev.items()], default=0.0)

    def form_size(self, form: Form) -> float:
        """Largest coefficient times unit of a scalar, its constant left out."""
        sizes = [abs(float(c)) * self.scalar_units[k] for k, c in form.f.items()]
        return max(sizes + [abs(float(c)) * self.size(v) ** 2 for c, v in form.squares], default=0.0)

    # --- points ------------------------------------------------------------------------------------------------------

    def _store(self, point: Point) -> int:
        self._known[point.x.key] = len(self.points)
        self.points.append(point)
        return len(self.points) - 1

    def _evaluate(self, x: Vec) -> int:
        key = x.key
        if key in self._known:
            return self._known[key]
        if not self.points:  # only differences of function values matter
            g = self.basis(float(self.setting.L), shared=False)
            return self._store(Point(x, g, Form(), g, Form()))
        centre = self.points[0]
        r = Vec(x.mean, x.dev, False) - Vec(centre.x.mean, centre.x.dev, False)
        if self.setting.functions.linear:
            if self.setting.n != 1:
                self.refuse("grad", "quadratics are read for one worker")
            h = self.basis(float(self.setting.L), shared=False)
            self.linear.append((r, h))
            self.relaxed = "the symmetry of a quadratic's Hessian is an equality, for which the lower end is not verified"
            return self._store(Point(x, h, inner(h, r) / 2, h, inner(h, r) / 2))
        if self.setting.width:
            h, v = self.basis(self.setting.width, shared=False), self._height()
        else:  # f_i is this one quadratic
            h, v = centre.h, inner(centre.h, r)
        return self._store(self._shifted(x, r, h, v))

    def _height(self) -> Form:
        return self.scalar(self.setting.width) if self.setting.functions.values else Form()

    def _shifted(self, x: Vec, r: Vec, h: Vec, v: Form) -> Point:
        shift = self.setting.shift
        return Point(x, shift * r + h, v + shift / 2 * sqnorm(r), h, v)

    def value(self, x: Vec) -> Form:
        """The mean function value at a point."""
        return self.points[self._evaluate(x)].f

    # --- words of a step ---------------------------------------------------------------------------------------------

    def grad(self, x):
        return self.points[self._evaluate(x)].g

    full_grad = grad

    def prox(self, v, gamma):
        gamma, centre = exact(gamma), self.points[0] if self.points else None
        if gamma <= 0:
            raise UsageError(f"the step of a proximal step must be positive, not {float(gamma):g}.")
        if centre is None or self.setting.shift or (v.shared and self.setting.n != 1):
            self.refuse("prox", "it is read for one worker, or for every worker's own point, where 2 mu <= L and something speaks of x*")
        g = self.basis(min(self.setting.width, 1 / float(gamma)), shared=False)
        x = Vec(v.mean, v.dev, False) - gamma * g
        self.implicit.append((g, gamma, Vec(v.mean, v.dev, False) - Vec(centre.x.mean, centre.x.dev, False)))
        self._store(Point(x, g, height := self._height(), g, height))
        return Vec(x.mean, x.dev, v.shared)

    def mean(self, v):
        return Vec(v.mean)

    def spread(self, v):
        return Vec(v.mean, shared=False)

    def compress(self, v):
        delta, Delta2 = self.setting.delta, self.setting.Delta2
        if delta is None and Delta2 is None:
            raise UsageError("this method compresses; give compressor={'delta': ...} or {'Delta2': ...}.")
        if delta == 1 or Delta2 == 0 or (not (v.mean or v.dev) and Delta2 is None):
            return v
        m = self.basis(self.size(v) or 1.0, shared=v.shared)
        k = len(self.answers)
        if delta is not None:
            self.constraints.append((f"compressor {k}", sqnorm(m - v) - (1 - delta) * sqnorm(v)))
        if Delta2 is not None:
            self.constraints.append((f"absolute compressor {k}", sqnorm(m - v) - Delta2))
        self.answers.append(Answer(v, m))
        return m

    def gossip(self, v):
        if self.setting.mixing is None:
            raise UsageError("this method mixes with its neighbours; give mixing=lam, (lmin, lmax) or a topology.")
        low, high = self.setting.mixing
        if low == high or not v.dev:
            return Vec(v.mean, {k: low * c for k, c in v.dev.items() if low}, False)
        fresh = self.basis(self.size(v), shared=False, mean=False)
        self.mixed.append((Vec(dev=v.dev), Vec(dev=fresh.dev)))
        self.relaxed = "the mixing matrix enters through its spectrum alone"
        return Vec(v.mean, fresh.dev, False)

    def delay(self, q, v):
        return (q, v) if not q else ((*q[1:], v), q[0])

    def chance(self, p):
        p = exact(p)
        if not 0 <= p <= 1:
            raise UsageError(f"a probability lies between 0 and 1, not {float(p)}.")
        if p in (0, 1):
            return p == 1
        k = len(self.tosses)
        outcome = self.script[k] if k < len(self.script) else True
        self.tosses.append((p if outcome else 1 - p, outcome))
        return outcome

    # --- words of a measure ------------------------------------------------------------------------------------------

    def optimum(self):
        if not self.setting.functions.minimiser:
            return self.refuse("optimum", "a nonconvex function need not have a minimiser")
        self.asked_for_minimiser = True
        return self.minimiser

    def gap(self, x):
        if not self.setting.functions.values:
            return self.refuse("gap", f"the class {self.setting.functions.name!r} says nothing of function values")
        f = self.value(x)
        if self.setting.functions.minimiser:
            self.asked_for_minimiser = True
            return f
        if self._f_star is None:
            self._f_star = self.scalar(float(self.setting.L))
        return f - self._f_star

    @property
    def f_star(self) -> Form:
        """The infimum of f."""
        return Form() if self._f_star is None else self._f_star

    def finish(self, objective: Form) -> None:
        """Add the constraints that concern all points: ``f* <= f(x) - ||grad f(x)||^2 / (2 L)`` at shared points, f being L-smooth, or
        bounds on gradients."""
        if self.setting.functions.lipschitz:
            self.constraints += [
                (f"Lipschitz {k}", sqnorm(p.g) - self.setting.L**2) for k, p in enumerate(self.points) if p.g.mean or p.g.dev
            ]
        if self._f_star is None or not any(set(self._f_star.f) & set(form.f) for form in (objective, *(c for _, c in self.constraints))):
            return
        if self.setting.n != 1:
            self.relaxed = "the lower bound on a nonconvex average enters through its own smoothness alone"
        for k, (x, g, f, *_) in enumerate(self.points):
            if not x.dev:
                self.constraints.append((f"lower bound {k}", sqnorm(self.mean(g)) / (2 * self.setting.L) + self._f_star - f))

    def sqnorm(self, v):
        return sqnorm(v)

    def consensus(self, x):
        return self.mean(x)

    # --- start -------------------------------------------------------------------------------------------------------

    def start(self, method: Any, hyper: Any, x0: Vec | None = None) -> Any:
        """The first state as a run starts: iterates at one point (arbitrary unless given), everything else zero."""
        tau = int(getattr(hyper, "tau", 0))

        def zeros(kind: Kind) -> Any:
            zero = Vec(shared=kind in (Kind.SHARED, Kind.SHARED_QUEUE))
            return (zero,) * tau if kind.is_queue else zero

        return method.initial(self, self.basis(1.0) + self.minimiser if x0 is None else x0, zeros)

    def free_start(self, method: Any, hyper: Any, units: dict[str, float]) -> Any:
        """A first state of which every field is arbitrary, of the given size."""
        tau = int(getattr(hyper, "tau", 0))

        def arbitrary(name: str, kind: Kind) -> Any:
            shared = kind in (Kind.SHARED, Kind.SHARED_QUEUE)
            if kind.is_queue:
                return tuple(self.basis(units[name], shared) for _ in range(tau))
            v = self.basis(units[name], shared)
            return v + (self.minimiser if shared else self.spread(self.minimiser)) if name in method.start else v

        return method.state(**{name: arbitrary(name, kind) for name, kind in method.kinds.items()})


def field_units(method: Any, hyper: Any, setting: Setting, steps: int) -> dict[str, float]:
    """The size of every field of the state where positions have size 1: what the first steps from zero make of it."""
    world = PepWorld(setting)
    states = run(method, hyper, world, world.start(method, hyper), steps)[1:]

    def sizes(name: str) -> Iterator[float]:
        for s in states:
            value = getattr(s, name)
            yield max((world.size(v) for v in (value if isinstance(value, tuple) else (value,))), default=0.0)

    return {name: 1.0 if name in method.start else next((u for u in sizes(name) if u), 1.0) for name in method.kinds}


def run(method: Any, hyper: Any, world: Any, s: Any, steps: int) -> list[Any]:
    """The states of one branch, first to last."""
    states = [s]
    for t in range(steps):
        s = method.step(s, world, at_exact(hyper, t), t)
        states.append(s)
    return states


def at_exact(h: Any, t: int) -> Any:
    """The hyper-parameters of step t; fractions stay fractions."""
    if any(callable(v) for v in h):
        return at(h, t)
    return type(h)(*(v[t] if isinstance(v, list) else v for v in h))


def branches(method: Any, hyper: Any, world: Any, s: Any, steps: int) -> Iterator[tuple[Fraction, list[Any]]]:
    """Every outcome of the shared coins with its probability; more than one for a single step only."""
    todo: list[tuple[bool, ...]] = [()]
    while todo:
        world.script, world.tosses = todo.pop(), []
        done = len(world.script)
        states = run(method, hyper, world, s, steps)
        if world.tosses and steps > 1:
            raise Unsupported("the worst case of 'chance' over several steps: ask for one step of a Lyapunov function (steps=1)")
        taken = tuple(outcome for _, outcome in world.tosses)
        todo += [(*taken[:k], not taken[k]) for k in range(done, len(taken))]
        weight = Fraction(1)
        for p, _ in world.tosses:
            weight *= p
        yield weight, states


def average(states: list[Any]) -> Any:
    """The state whose fields are the averages over the given states."""

    def mean(values: tuple[Any, ...]) -> Any:
        if isinstance(values[0], tuple):
            return tuple(mean(v) for v in zip(*values, strict=True))
        return sum(values[1:], values[0]) / len(values)

    return type(states[0])(*(mean(v) for v in zip(*states, strict=True)))


Measure = Callable[[Any, Any, Any], Any]


def taken(take: str, measure: Measure, states: list[Any], world: Any, hyper: Any, least: Callable[[list[Any]], Any]) -> Any:
    """The measure of a trajectory: at the end, at best, on average, or at the average iterate; ``least`` takes minima."""
    last = len(states) - 2

    def now(s: Any, t: int = last) -> Any:
        return measure(s, world, at_exact(hyper, min(t, last)))

    if take == "last":
        return now(states[-1])
    if take == "average_iterate":
        return now(average(states[:-1]))
    if take == "mean":
        values = [now(s, t) for t, s in enumerate(states[:-1])]
        return sum(values[1:], values[0]) / len(values)
    return least([now(s, t) for t, s in enumerate(states)])
