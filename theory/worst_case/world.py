"""The words of a step as a performance-estimation problem: running the step function on symbols collects its constraints.

Every vector is mean plus deviation over the workers; inner products averaged over the workers are ``m'Gm + q'Dq`` with Gram
matrices G, D >= 0.  A constraint is a :class:`Form` that must be at most 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from verify_rates.solvers.method import UsageError, at, nearest
from verify_rates.solvers.words import Kind, Unsupported, World
from verify_rates.theory.worst_case.algebra import Form, Vec, exact, sqnorm
from verify_rates.theory.worst_case.classes import FunctionClass


class Group(NamedTuple):
    """Exchangeable workers: how many, and their constants."""

    n: int
    L: Fraction
    mu: Fraction
    delta: Fraction | None


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
    name: str = "f"  # of the workers' functions
    others: tuple[tuple[str, FunctionClass, Fraction, Fraction], ...] = ()  # functions that all workers share: name, class, L, mu
    objective: tuple[str, ...] = ("f",)  # names of the functions of which x* minimises the sum
    unit: Fraction = Fraction(1)  # of gradients where L says nothing of them
    omega: Fraction | None = None  # E C(v) = v and E||C(v)-v||^2 <= omega ||v||^2, workers independent
    sigma2: Fraction = Fraction(0)  # E||noise of a worker's gradient||^2 at most, workers independent
    sampled: int | None = None  # workers whose vectors a mean takes, drawn in every step; None: all
    apart: bool = False  # every worker has its own vectors
    W: tuple[tuple[Fraction, ...], ...] | None = None  # the mixing matrix, where workers are kept apart
    groups: tuple[Group, ...] = ()  # kinds of workers; none: all are exchangeable

    @property
    def minimiser(self) -> bool:
        """Whether there is an x*: the classes say so of every function of the sum."""
        classes = {self.name: self.functions} | {name: cls for name, cls, *_ in self.others}
        return bool(self.objective) and all(classes[name].minimiser for name in self.objective)

    def of(self, functions: FunctionClass, L: Fraction, mu: Fraction) -> Setting:
        """The same with another class."""
        return replace(self, functions=functions, L=L, mu=mu, others=())

    @cached_property
    def shift(self) -> Fraction:
        """Curvature taken out before interpolation; that of the class where mu is near L, so that the problem stays well conditioned."""
        return self.mu if self.functions.shifts and 2 * self.mu > self.L else Fraction(0)

    @cached_property
    def width(self) -> float:
        """The unit of interpolated gradients: their Lipschitz constant, where there is one."""
        return float(self.unit) if self.functions.bounded else float(self.L - self.shift)

    @cached_property
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


@dataclass
class Part:
    """One function (or operator), its class and constants, and the points at which it was evaluated."""

    name: str
    setting: Setting
    points: list[Point] = field(default_factory=list)
    known: dict[Any, int] = field(default_factory=dict)

    def store(self, point: Point) -> int:
        self.known[point.x.key] = len(self.points)
        self.points.append(point)
        return len(self.points) - 1


class Search(NamedTuple):
    """A line or subspace search: the move that was made, and the directions."""

    move: Vec
    directions: list[Vec]


class Answer(NamedTuple):
    """What a compressor made of ``v``."""

    v: Vec
    m: Vec


@dataclass
class PepWorld(World):
    """Collects basis vectors, evaluated points and constraints while a step function runs on :class:`Vec` values."""

    setting: Setting
    reading = "the worst case"
    flat = False  # a value at a random point counts against, so that its curvature is least there: no instance is recorded
    mean_units: list[float] = field(default_factory=list)  # size of every basis vector where positions have size 1
    dev_units: list[float] = field(default_factory=list)
    scalar_units: list[float] = field(default_factory=list)
    constraints: list[tuple[str, Form]] = field(default_factory=list)  # (name, form <= 0)
    equalities: list[tuple[str, Form]] = field(default_factory=list)  # (name, form = 0)
    mixed: list[tuple[Vec, Vec]] = field(default_factory=list)  # deviations before and after
    linear: list[tuple[Vec, Vec]] = field(default_factory=list)  # positions and gradients of a quadratic, less those at its first point
    answers: list[Answer] = field(default_factory=list)
    copies: dict[int, tuple[float, Vec | None]] = field(default_factory=dict)  # in a plain run: basis vector k is factor times this (or 1)
    resolvents: list[tuple[Vec, Fraction, Vec]] = field(default_factory=list)  # g with g = g(v - gamma g), gamma, and v - x*
    searches: list[Search] = field(default_factory=list)
    found: list[tuple[Vec, Vec]] = field(default_factory=list)  # implicit steps and searches, from where to where, in order
    coefficients: tuple[tuple[Fraction, ...], ...] | None = None  # of the directions of every search; None: any move
    weights: dict[int, Fraction] = field(default_factory=dict)  # of random basis vectors: E||mean_i z_i||^2 over mean_i E||z_i||^2
    draws: list[Vec] = field(default_factory=list)  # noise of the gradients, in order
    slopes: dict[str, Fraction] = field(default_factory=dict)  # sizes of gradients that implicit steps suggest where no class has an L
    script: tuple[bool, ...] = ()  # outcomes of the coins of this branch
    tosses: list[tuple[Fraction, bool]] = field(default_factory=list)
    relaxed: str = ""  # why the value is an upper bound only
    centred: bool = True  # the minimiser is the first point; False: it is left out, every finite set of points has one

    def __post_init__(self) -> None:
        own = Part(self.setting.name, self.setting)
        self.parts = {own.name: own} | {name: Part(name, self.setting.of(cls, L, mu)) for name, cls, L, mu in self.setting.others}
        self.own, self.points = own, own.points
        self.plain = not self.setting.others  # a run on one-dimensional quadratics is an instance of it
        self._f_star: Form | None = None  # infimum of f where there is no minimiser, made when asked for
        self._solved: dict[Any, Vec] = {}  # implicit steps
        self._floors: dict[str, Form] = {}  # the same of single functions; only differences of their values may be spoken of
        self.asked_for_minimiser = False
        for part in self.parts.values():
            if part.setting.functions.necessary:
                self.relaxed = f"the inequalities of {part.setting.functions.name!r} are necessary, not sufficient"
        self.minimiser = self.basis(1.0, dev=False)  # x* itself; drops out of methods that do not know the origin
        if self.centred:
            self._optimal()

    def _optimal(self) -> None:
        """The minimiser as first point of every function of the objective; their gradients there add up to zero."""
        total, last = Vec(shared=False), self.own.name if self.own.name in self.setting.objective else self.setting.objective[-1]
        for name in sorted(self.setting.objective, key=lambda name: name == last):
            part = self.parts[name]
            if name != last:
                total = total + (g := self._fresh(part))
            else:
                g = -total + (self._gradient_at_minimiser() if part is self.own else Vec(shared=False))
            part.store(Point(self.minimiser, g, Form(), g, Form()))

    def _fresh(self, part: Part, most: float = math.inf) -> Vec:
        """A new gradient of a function; of one of several it is told from that at its first point, so that tilts of two functions which
        cancel are one vector."""
        made = self._image_of(part, most)
        return made + part.points[0].h if self.setting.others and part.points else made

    def _image_of(self, part: Part, most: float = math.inf) -> Vec:
        return self.basis(min(most, part.setting.width or float(part.setting.L)), shared=False, dev=part is self.own)

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

    def _evaluate(self, x: Vec, part: Part | None = None) -> Point:
        part = part or self.own
        if x.key in part.known:
            return part.points[part.known[x.key]]
        if part is not self.own and x.dev:
            self.refuse(f"grad of {part.name}", "a function that all workers share is read at points that all workers share")
        if not part.points:  # only differences of function values matter
            g = self._fresh(part)
            part.store(Point(x, g, Form(), g, Form()))
        elif part.setting.functions.linear:
            self._image(part, x)
        elif part.setting.width:
            self._shifted(part, x, self._fresh(part), self._height(part))
        else:  # f_i is this one quadratic
            h = part.points[0].h
            self._shifted(part, x, h, self.inner(h, _apart(x, part.points[0].x)))
        return part.points[-1]

    def _height(self, part: Part | None = None) -> Form:
        setting = (part or self.own).setting
        return self.scalar(setting.width) if setting.functions.values else Form()

    def _shifted(self, part: Part, x: Vec, h: Vec, v: Form) -> None:
        shift, r = part.setting.shift, _apart(x, part.points[0].x)
        part.store(Point(x, shift * r + h, v + shift / 2 * sqnorm(r), h, v))

    def _image(self, part: Part, x: Vec) -> None:
        """A point of a quadratic, or of a linear operator: images of differences of points."""
        if self.setting.n != 1 or part is not self.own:
            self.refuse("grad", "quadratics and linear operators are read for one worker, as its own function")
        first, h = part.points[0], self._image_of(part)
        r, g = _apart(x, first.x), first.g + h
        self.linear.append((r, h))
        f = self.inner(first.g, r) + self.inner(h, r) / 2 if part.setting.functions.values else Form()
        part.store(Point(x, g, f, g, f))

    def settled(self, form: Form) -> Form:
        """A measure without scalars that stand for values at random points."""
        return form

    def value(self, x: Vec) -> Form:
        """The mean function value at a point."""
        return self._evaluate(x).f

    # --- words of a step ---------------------------------------------------------------------------------------------

    def grad(self, x):
        return self._evaluate(x).g

    full_grad = grad

    def grad_of(self, x, of):
        part = self._part(of)
        return self.mean(self._evaluate(x, part).g)

    def _part(self, name: Any) -> Part:
        if name not in self.parts:
            raise nearest(str(name), self.parts, "function")
        return self.parts[name]

    def prox(self, v, gamma):
        gamma, centre = _positive(gamma), self.points[0] if self.points else None
        if self.setting.n == 1 and (centre is None or self.setting.shift or not self.plain):
            return self._implicit(v, Fraction(1), {self.own.name: gamma})
        if centre is None or self.setting.shift or (v.shared and self.setting.n != 1) or self.setting.functions.linear:
            self.refuse("prox", "it is read for one worker, or for every worker's own point, where 2 mu <= L and something speaks of x*")
        g = self.basis(min(self.setting.width, 1 / float(gamma)), shared=False)
        x = Vec(v.mean, v.dev, False) - gamma * g
        self.resolvents.append((g, gamma, _apart(v, centre.x)))
        self.own.store(Point(x, g, height := self._height(), g, height))
        return Vec(x.mean, x.dev, v.shared)

    def prox_of(self, v, gamma, of, error):
        return self._implicit(v, Fraction(1), {of or self.own.name: _positive(gamma)}, exact(error))

    def implicit(self, v, a, weights):
        if not isinstance(weights, dict) or not weights:
            raise UsageError("implicit(w, v, a, weights) takes weights as a dictionary from names of functions to numbers.")
        return self._implicit(v, exact(a), {name: _positive(c) for name, c in weights.items()})

    def _implicit(self, v: Vec, a: Fraction, weights: dict[str, Fraction], error: Fraction = Fraction(0)) -> Vec:
        """A new x with ``a x + sum_k weights_k g_k(x) = v``: an unknown gradient of every function, but of the last where a = 0."""
        parts = [self._part(name) for name in weights]
        if a < 0 or not 0 <= error < 1:
            raise UsageError("an implicit step needs a factor a >= 0, and an error of at least 0 and below 1.")
        if v.dev or any(p.setting.functions.linear or not p.setting.width or (p is self.own and self.setting.n != 1) for p in parts):
            self.refuse("implicit", "it is read at shared points, of functions that all workers share or for one worker; not of quadratics")
        asked = (v.key, a, tuple(weights.items()))
        if asked in self._solved and not error:  # an oracle that is asked twice says the same
            return self._solved[asked]
        self.plain = False
        v = Vec(v.mean, shared=False)
        known = zip(parts if a else parts[:-1], weights.values(), strict=False)
        unknown = [self._fresh(p, float(a / c) or math.inf) for p, c in known]  # h of every function
        moved = sum((c * p.setting.shift for p, c in zip(parts, weights.values(), strict=True) if p.points), Fraction(0))
        total = a + moved  # g = h + shift (x - x_0)
        last = list(weights.values())[-1]
        for part, c in zip(parts, weights.values(), strict=True):
            if not part.setting.functions.takes_L:
                self.slopes.setdefault(part.name, (a or last) / c)
        if a:
            e = self.basis(1.0, shared=False, dev=False) if error else Vec(shared=False)
            at_first = [c * p.setting.shift * _free(p.points[0].x) for p, c in zip(parts, weights.values(), strict=True) if p.points]
            x = (sum(at_first, v + e) - _weighted(unknown, weights)) / total
            if error:
                self.constraints.append((f"error {len(self.constraints)}", sqnorm(e) - error**2 * sqnorm(x - v)))
        else:
            x = self.basis(1.0, shared=False, dev=False)
            slopes = [c * p.setting.shift * _apart(x, p.points[0].x) for p, c in zip(parts, weights.values(), strict=True) if p.points]
            rest = v - sum(slopes, Vec(shared=False)) - _weighted(unknown, weights)
            unknown.append(rest / last)
        for part, h in zip(parts, unknown, strict=True):
            if part.points:
                self._shifted(part, x, h, self._height(part))
            else:
                part.store(Point(x, h, Form(), h, Form()))
        self._solved[asked] = Vec(x.mean)
        self.found.append((Vec(v.mean), self._solved[asked]))
        return self._solved[asked]

    def line_search(self, x, directions):
        if self.setting.n != 1 or self.setting.others or not self.setting.functions.values:
            self.refuse("line_search", "it is read for one worker and one function")
        flat = [v for d in directions for v in (d if isinstance(d, tuple) else (d,))]
        flat = [Vec(v.mean, shared=False) for v in flat]
        k, self.plain = len(self.searches), False
        if self.coefficients is None:
            move = self.basis(1.0, shared=False, dev=False)
            orthogonal, self.relaxed = [move, *flat], "a line search enters through the gradient where it ends, orthogonal to the moves"
        else:
            move = sum((c * v for c, v in zip(self.coefficients[k], flat, strict=True)), Vec(shared=False))
            orthogonal = flat
        self.searches.append(Search(move, flat))
        found = x + Vec(move.mean)
        self.found.append((x, found))
        g = self._evaluate(found).g
        self.equalities += [(f"search {k} ({i})", self.inner(g, d)) for i, d in enumerate(orthogonal) if d.mean]
        return found

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
        m = self._answer(v)
        k = len(self.answers)
        if delta is not None:
            self.constraints.append((f"compressor {k}", self.sqnorm(m - v) - (1 - delta) * self.sqnorm(v)))
        if Delta2 is not None:
            self.constraints.append((f"absolute compressor {k}", self.sqnorm(m - v) - Delta2))
        self.answers.append(Answer(v, m))
        return m

    def _answer(self, v: Vec) -> Vec:
        made = self.basis(self.size(v) or 1.0, shared=v.shared)
        self.copies |= dict.fromkeys(made.mean, (1.0, v))
        return made

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
        if not self.setting.minimiser:
            return self.refuse("optimum", "a nonconvex function need not have a minimiser")
        self.asked_for_minimiser = True
        return self.minimiser

    def _valued(self, part: Part) -> None:
        if not (part.setting.functions.values or part.setting.functions.indicator):
            self.refuse("gap", f"the class {part.setting.functions.name!r} says nothing of function values")

    def gap(self, x):
        total = Form()
        for name in self.setting.objective:
            self._valued(self.parts[name])
            total = total + self._evaluate(x, self.parts[name]).f
        if self.setting.minimiser:
            self.asked_for_minimiser = True
            return total
        if self._f_star is None:
            self._f_star = self.scalar(float(self.setting.L))
        return total - self._f_star

    def gap_of(self, x, of):
        part = self._part(of)
        self._valued(part)
        f = self._evaluate(x, part).f
        if self.setting.minimiser:
            return f - self._evaluate(self.optimum(), part).f
        if of not in self._floors:
            self._floors[of] = self.scalar(float(part.setting.L))
        return f - self._floors[of]

    @property
    def f_star(self) -> Form:
        """The infimum of f."""
        return Form() if self._f_star is None else self._f_star

    def finish(self, objective: Form) -> None:
        """Add the constraints that concern all points: ``f* <= f(x) - ||grad f(x)||^2 / (2 L)`` at shared points, f being L-smooth, or
        bounds on gradients."""
        for part in self.parts.values():
            functions, L, name = part.setting.functions, part.setting.L, "" if part is self.own else f"{part.name}: "
            points = list(enumerate(part.points))
            if functions.lipschitz:
                self.constraints += [(f"{name}Lipschitz {k}", sqnorm(p.g) - L**2) for k, p in points if p.g.mean or p.g.dev]
            if functions.bounded:
                self.constraints += [
                    (f"{name}diameter {i} {j}", sqnorm(_apart(p.x, q.x)) - L**2) for i, p in points for j, q in points[i + 1 :]
                ]
        used = set(objective.f).union(*(form.f for _, form in (*self.constraints, *self.equalities)))
        floors = [*self._floors.values(), *([self._f_star] if self.setting.others and self._f_star else [])]
        if any(used & set(floor.f) for floor in floors):
            self.refuse(
                "gap", "a sum of such functions, or one of several, need not have an infimum; only differences of values can be read"
            )
        if self._f_star is None or not used & set(self._f_star.f):
            return
        if self.setting.n != 1:
            self.relaxed = "the lower bound on a nonconvex average enters through its own smoothness alone"
        for k, (x, g, f, *_) in enumerate(self.points):
            if not x.dev:  # a smooth function descends from there; one with corners need not
                descent = sqnorm(self.mean(g)) / (2 * self.setting.L) if self.setting.functions.smooth else Form()
                self.constraints.append((f"lower bound {k}", descent + self._f_star - f))

    def sqnorm(self, v):
        return sqnorm(v)

    def inner(self, a, b):
        """By polarisation of vectors of one size, so that their product has the size it should have."""
        sizes = self.size(a), self.size(b)
        ratio = Fraction(2) ** round(math.log2(sizes[1] / sizes[0]) / 2) if all(sizes) else Fraction(1)
        return (self.sqnorm(ratio * a + b / ratio) - self.sqnorm(ratio * a - b / ratio)) / 4

    def consensus(self, x):
        return self.mean(x)

    # --- start -------------------------------------------------------------------------------------------------------

    def unknown(self, unit: float, shared: bool) -> Any:
        """An arbitrary value of a field."""
        return self.basis(unit, shared)

    def nothing(self, shared: bool) -> Any:
        """Zero."""
        return Vec(shared=shared)

    def start(self, method: Any, hyper: Any, x0: Vec | None = None) -> Any:
        """The first state as a run starts: iterates at one point (arbitrary unless given), everything else zero."""
        tau = int(getattr(hyper, "tau", 0))

        def zeros(kind: Kind) -> Any:
            zero = self.nothing(kind in (Kind.SHARED, Kind.SHARED_QUEUE))
            return (zero,) * tau if kind.is_queue else zero

        return method.initial(self, self.basis(1.0) + self.minimiser if x0 is None else x0, zeros)

    def free_start(self, method: Any, hyper: Any, units: dict[str, float]) -> Any:
        """A first state of which every field is arbitrary, of the given size."""
        tau, origin = int(getattr(hyper, "tau", 0)), [self.minimiser]

        def arbitrary(name: str, kind: Kind) -> Any:
            shared = kind in (Kind.SHARED, Kind.SHARED_QUEUE)
            if kind.is_queue:
                return tuple(self.unknown(units[name], shared) for _ in range(tau))
            v = self.unknown(units[name], shared)
            if name not in method.start:
                return v
            v = v + (origin[0] if shared else self.spread(origin[0]))
            if not self.centred and shared:
                origin[0] = v  # without x* only differences of positions count
            return v

        return method.state(**{name: arbitrary(name, kind) for name, kind in method.kinds.items()})


def _free(v: Vec) -> Vec:
    return Vec(v.mean, v.dev, False)


def _apart(a: Vec, b: Vec) -> Vec:
    return _free(a) - _free(b)


def _weighted(vectors: list[Vec], weights: dict[str, Fraction]) -> Vec:
    return sum((c * v for v, c in zip(vectors, weights.values(), strict=False)), Vec(shared=False))


def _positive(gamma: Any) -> Fraction:
    number = exact(gamma)
    if number <= 0:
        raise UsageError(f"the step of a proximal step must be positive, not {float(number):g}.")
    return number


def field_units(method: Any, hyper: Any, setting: Setting, steps: int, make: Callable[[Setting], PepWorld] = PepWorld) -> dict[str, float]:
    """The size of every field of the state where positions have size 1: what the first steps from zero make of it."""
    world = make(setting)
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
        world.drawing = True
        s = method.step(s, world, at_exact(hyper, t), t)
        world.drawing = False
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
    """The measure of a trajectory: at the end, at best (over all states or those after steps), on average, or at the average iterate;
    ``least`` takes minima."""
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
    return least([now(s, t) for t, s in enumerate(states)][take == "best_after" :])
