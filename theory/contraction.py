"""Best contraction of a method: a Lyapunov function found together with its rate, from one round: :func:`contraction`.

A candidate is ``V = sum_ij P_ij <phi_i, phi_j> + sum_k p_k (f(x_k) - f*)`` over the features phi: the fields of the state (iterates less
x*) and the gradients at the iterates; means and deviations over the workers have their own P.  For a fixed V the smallest rho with
``V(after) <= rho V(before)`` is a worst case of one round, hence a verified rate; for a fixed rho the V with the largest margin t in
``rho V(before) - V(after) >= t V_k(before)`` is one semidefinite program, V_k being the V before.  Alternating the two (Dinkelbach's
method for a smallest largest ratio) goes down to the best rate of the class; nothing is bisected on feasibility.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from verify_rates.solvers.kinds import check_kinds
from verify_rates.solvers.method import Method, UsageError, get_method
from verify_rates.solvers.words import Kind, Unsupported, gap, grad, mean, optimum, spread, sqnorm
from verify_rates.theory.told import Told
from verify_rates.theory.worst_case.algebra import Form, Vec
from verify_rates.theory.worst_case.algebra import sqnorm as square
from verify_rates.theory.worst_case.assemble import Assembler, Conic, assemble, products, smat, triangle
from verify_rates.theory.worst_case.backends import SQRT2, Raw, conic_program, off_diagonal, solve_conic
from verify_rates.theory.worst_case.bounds import ROUNDING, grams, lower, upper
from verify_rates.theory.worst_case.grouped import told, with_groups
from verify_rates.theory.worst_case.interior import interior_point
from verify_rates.theory.worst_case.noise import world_of
from verify_rates.theory.worst_case.result import WorstCase
from verify_rates.theory.worst_case.solve import SHARP, exact_hypers, setting_of, worst_case
from verify_rates.theory.worst_case.world import PepWorld, Setting, branches, field_units, run

# Shares of the squared gradients (in their unit) that a normalised V must keep, tried in turn until the ends agree: a V blind for the
# iterate would contract at a rate of no interest.  Far above what a solver leaves (1e-10); that V comes close to blind costs digits.
CONTROLS = (1e-6, 1e-5, 1e-7)
AGREE = 1e-5
# Stop when a round of the alternation gains less than this, relatively: a hundredth of what callers need.
GAIN = 1e-8
MOST_ROUNDS = 40
# The lower end is looked for this much below the upper one, relatively, the first that works: more than a solver leaves (1e-10 and what
# making an instance strictly feasible costs), less than callers need.
BELOW = (2e-7, 1e-6, 5e-6, 2e-5)
# Terms of V this much smaller than the largest are rounding of the solver's 1e-10 and are left out.
NEGLIGIBLE = 1e-12
HALVINGS = 40
CURVATURES = 9  # of quadratics
SAFETY = 10  # times the first-order rounding error of an eigenvalue
SETTLED = 4  # steps after which a run from x* rests, if it does


@dataclass(frozen=True)
class Features:
    """Which features a Lyapunov function may use."""

    fields: dict[str, Kind]
    iterates: tuple[str, ...]
    evaluated: tuple[str, ...]  # iterates at which gradients and function values are used
    limits: dict[str, float]  # fields that tend to this multiple of the workers' gradients at x*
    star: bool  # whether these gradients differ
    deviations: bool
    values: bool  # whether there are function values
    groups: tuple[int, ...] = ()  # numbers of workers of the groups, where workers differ

    def of(self, s: Any, w: Any) -> Iterator[tuple[str, bool, Any]]:
        """Name, whether per worker, and value of every feature of a state, in the words."""
        for name, kind in self.fields.items():
            value, wide = getattr(s, name), kind in (Kind.PER_WORKER, Kind.PER_WORKER_QUEUE)
            if kind.is_queue:
                yield from ((f"{name}[{k}]", wide, item) for k, item in enumerate(value))
            elif name in self.iterates:
                yield f"{name} - x*", wide, value - (spread(w, optimum(w)) if wide else optimum(w))
            elif name in self.limits:
                yield f"{name} - {self.limits[name]:g} grad(x*)", wide, value - self.limits[name] * grad(w, optimum(w))
            else:
                yield name, wide, value
        for name in self.evaluated:
            g = grad(w, getattr(s, name))
            yield f"grad({name})", True, g - grad(w, optimum(w)) if self.star else g

    def parts(self, s: Any, w: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Means and deviations by name; of every group, where workers differ."""
        made = list(self.of(s, w))
        if self.groups:
            return self._of_groups(made, w)
        means = {name: mean(w, v) if wide else v for name, wide, v in made}
        deviations = {name: v - spread(w, mean(w, v)) for name, wide, v in made if wide and self.deviations}
        return means, deviations

    def _of_groups(self, made: list[tuple[str, bool, Any]], w: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        if not hasattr(w, "of_groups"):
            raise Unsupported("a Lyapunov function over groups of workers is read in worst cases with the same groups alone")
        means: dict[str, Any] = {name: v for name, wide, v in made if not wide}
        deviations: dict[str, Any] = {}
        for name, _, v in (item for item in made if item[1]):
            for j, (mean_j, dev_j) in enumerate(w.of_groups(v)):
                means[f"{name} of group {j + 1}"] = mean_j
                if self.groups[j] > 1:
                    deviations[f"{name} of group {j + 1}"] = dev_j
        return means, deviations

    def least(self, s: Any, w: Any) -> Any:
        """What V must control: squared gradients at the iterates, less those at x* (squared distances where all gradients are known)."""
        wanted = [v for name, _, v in self.of(s, w) if name.startswith("grad(")] or [
            v for name, _, v in self.of(s, w) if name.endswith(" - x*")
        ]
        return sum((sqnorm(w, v) for v in wanted[1:]), sqnorm(w, wanted[0]))

    def gaps(self, s: Any, w: Any) -> dict[str, Any]:
        """Function gaps at the iterates, by field."""
        return {name: gap(w, getattr(s, name)) for name in self.evaluated if self.values}


@dataclass(frozen=True)
class Lyapunov:
    """A Lyapunov function as data; being callable it is a measure, ``V(s, w, h)``, for worst cases, runs and replays.

    Attributes
    ----------
    mean_names, dev_names : the rows of the matrices, as "x - x*", "e", "grad(x)" (less the worker's gradient at x*).
    P_mean, P_dev : symmetric matrices, of the products of means and of deviations (averaged over the workers).
    gaps : weight of ``f - f*`` at each iterate.
    """

    features: Features = field(repr=False)
    mean_names: tuple[str, ...]
    dev_names: tuple[str, ...]
    P_mean: np.ndarray
    P_dev: np.ndarray
    gaps: dict[str, float]

    @property
    def __name__(self) -> str:
        return "lyapunov"

    def __call__(self, s: Any, w: Any, h: Any) -> Any:
        total: Any = 0.0
        for P, vectors in zip((self.P_mean, self.P_dev), self.features.parts(s, w), strict=True):
            total = sum((c * sqnorm(w, v) for c, v in _squares(P, list(vectors.values()))), total)
        for name, value in self.features.gaps(s, w).items():
            total = total + self.gaps[name] * value
        return total

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        names = {"mean_names": list(self.mean_names), "dev_names": list(self.dev_names)}
        return names | {"P_mean": self.P_mean.tolist(), "P_dev": self.P_dev.tolist(), "gaps": dict(self.gaps)}


def _squares(P: np.ndarray, vectors: list[Any]) -> Iterator[tuple[float, Any]]:
    """The quadratic form as a weighted sum of squares, along the eigenvectors of the matrix scaled to unit diagonal."""
    if not P.size:
        return
    sizes = np.sqrt(np.maximum(np.abs(np.diag(P)), 1e-300))
    values, directions = np.linalg.eigh(P / np.outer(sizes, sizes))
    for value, direction in zip(values.tolist(), (directions.T * sizes).tolist(), strict=True):
        if abs(value) > NEGLIGIBLE * max(abs(values)):
            parts = [c * v for c, v in zip(direction, vectors, strict=True)]
            yield value, sum(parts[1:], parts[0])


@dataclass(frozen=True)
class Contraction(Told):
    """The best contraction factor of a Lyapunov function per communication round, between two ends.

    Attributes
    ----------
    lower, upper : ``V(after) <= upper V(before)`` on every instance; no V of the class that keeps the stated share of the
        squared gradients contracts faster than ``lower``.
    rigorous : both ends were verified after the solves, in the sense of :class:`WorstCase`; ``upper`` always is.
    status : "solved" (with a factor of 1 or more where no V contracts, see ``contracts``), "at rest" (one round ends at x*, whatever V),
        "no fixed point" (a round moves the state away from x*, so that nothing contracts), "no metric" (one round makes every V that was
        tried grow without bound), "no V" (none that decreases controls the gradients), "not verified" (a V was found, but not proved),
        or "failed" (the solver was).
    lyapunov : V as data, and as a measure; None where there is none.
    check : the worst case of one round with V before at most 1 and V after maximised; its instance replays.
    why : what the ends rest on.
    """

    lower: float
    upper: float
    rigorous: bool
    status: str
    why: str
    lyapunov: Lyapunov | None
    check: WorstCase | None = field(repr=False)
    seconds: float
    statement: dict[str, Any]

    def __float__(self) -> float:
        raise TypeError("a contraction is an interval, not a number: use .upper (proved by .lyapunov) or .lower.")

    @property
    def ok(self) -> bool:
        """Whether a factor was found."""
        return self.status in ("solved", "at rest")

    @property
    def contracts(self) -> bool:
        """Whether the factor is proved to be below 1."""
        return self.ok and self.upper < 1

    def __str__(self) -> str:
        if not self.ok:
            return f"{self.status}: {self.why}"
        sure = "verified" if self.rigorous else "upper end verified"
        what = "contraction" if self.upper < 1 else "no contraction is proved: factor"
        return f"{what} per round in [{self.lower:.10g}, {self.upper:.10g}] ({sure}; {self.why})"

    def to_dict(self) -> dict[str, Any]:
        """Plain data; infinities are None."""
        plain = {name: getattr(self, name) for name in ("rigorous", "status", "why", "seconds", "statement")}
        ends = {k: v if math.isfinite(v) else None for k, v in (("lower", self.lower), ("upper", self.upper))}
        parts = {"lyapunov": self.lyapunov, "check": self.check}
        return ends | plain | {k: v.to_dict() if v else None for k, v in parts.items()}

    def facts(self) -> Iterator[tuple[str, str]]:
        """The statement, and V row by row."""
        yield from super().facts()
        if self.lyapunov:
            for names, P in ((self.lyapunov.mean_names, self.lyapunov.P_mean), (self.lyapunov.dev_names, self.lyapunov.P_dev)):
                yield from ((f"V: {name}", " ".join(f"{v:.4g}" for v in row)) for name, row in zip(names, P, strict=True))


def contraction(
    method: str | Method,
    hyper: dict[str, Any],
    *,
    functions: str = "smooth_strongly_convex",
    L: Any = 1.0,
    mu: Any = 0.0,
    n: int | str = "any",
    compressor: Any = None,
    d: int | None = None,
    mixing: Any = None,
    zeta2_star: Any = 0.0,
    groups: Any = None,
) -> Contraction:
    """The fastest contraction that a quadratic-plus-function-value Lyapunov function proves, per communication round.

    Guarantee
    ---------
    ``upper`` is the worst case of one round for the Lyapunov function found, solved and verified like any other (also by callers:
    ``worst_case(..., start="free", initial=V, measure=V)`` with ``V = found.lyapunov``).  ``lower`` holds for every V of the class (the
    features of the state, see the module) that is at least ``statement["control"]`` times the squared gradients at the
    iterates, less those at x* (the weakest measure: where mu > 0 it controls distances and gaps).  Tight where a proof
    with one round of inequalities is tight: gd, compressed gd, EF and EF21 for one and for any number of workers, momentum methods.

    Parameters
    ----------
    method, hyper, functions, L, mu, n, compressor, d, mixing : as for :func:`worst_case`; hyper-parameters are constant.
    zeta2_star : 0 (the workers share a minimiser) or None (arbitrary minimisers).
    groups : kinds of workers with their own L, mu and delta, as for :func:`worst_case`; V then weighs every kind by itself.

    Errors
    ------
    UsageError on bad input; Unsupported where a word has no quadratic description, for classes without a minimiser and for
    compressors with an absolute error, under which nothing contracts.

    Example
    -------
    >>> found = contraction("gd", {"gamma": 1.0}, L=1.0, mu=0.1, n=1)
    >>> abs(found.upper - 0.81) < 1e-6, found.rigorous
    (True, True)
    """
    began = time.perf_counter()
    method = get_method(method)
    common: dict[str, Any] = {"functions": functions, "L": L, "mu": mu, "n": n, "compressor": compressor, "d": d, "mixing": mixing}
    common |= {"zeta2_star": zeta2_star, "groups": groups}
    values, setting, rounds = _checked(method, hyper, **common)
    posed = _posed(method, values, setting, rounds)
    common |= {"steps": rounds, "start": "free"}
    statement: dict[str, Any] = {"method": method.name, "hyper": {k: float(v) for k, v in values._asdict().items()}, "functions": functions}
    statement |= {"L": float(setting.L), "mu": float(setting.mu), "n": n, "steps per round": rounds}
    statement |= {k: float(v) for k, v in (("delta", setting.delta),) if v is not None}
    statement |= told(setting) | {
        "zeta2_star": zeta2_star,
        "mixing": None if setting.mixing is None else [float(v) for v in setting.mixing],
    }

    best = NOTHING
    for control in CONTROLS:
        found = _ends(replace(posed, control=control), method, hyper, setting, common)
        if (
            best.status == "failed"
            or best.check is None
            or (found.upper - found.lower, found.upper) < (best.upper - best.lower, best.upper)
        ):
            best, statement["control"] = found, control
        if best.status == "at rest":
            break
        if best.rigorous and best.upper - best.lower <= AGREE * best.upper:
            break
    return replace(best, seconds=time.perf_counter() - began, statement=statement)


def _nothing(status: str, why: str, **parts: Any) -> Contraction:
    nothing: dict[str, Any] = {"lyapunov": None, "check": None, "seconds": 0.0, "statement": {}}
    return Contraction(lower=-math.inf, upper=math.inf, rigorous=False, status=status, why=why, **nothing | parts)


NOTHING = _nothing("failed", "no share of control was tried.")


def _ends(posed: Posed, method: Method, hyper: dict[str, Any], setting: Setting, common: dict[str, Any]) -> Contraction:
    """Both ends for one share of control."""
    if np.abs(posed.after).max(initial=0.0) <= ROUNDING * np.abs(posed.before).max():
        why = "one round ends at x* on every instance, so that nothing is left of any V"
        return replace(_nothing("at rest", why, lyapunov=posed.lyapunov(np.ones(len(posed.before)))), lower=0.0, upper=0.0, rigorous=True)
    found = _descend(posed)
    if found is None:
        return _nothing(*(_moved_from_rest(posed, method, hyper, setting) or _why_none(posed)))
    V = posed.lyapunov(found)
    check = worst_case(method, hyper, initial=V, measure=V, **common)
    if not check.rigorous:
        why = "the V that was found could not be verified, which mostly means that none contracts."
        status, why = _moved_from_rest(posed, method, hyper, setting) or ("not verified", check.message if not check.ok else why)
        return _nothing(status, why, lyapunov=V, check=check)
    low, source = -math.inf if posed.conic.mixed else _lower(posed, found, check.upper), "the best V of its class"
    if low < check.upper * (1 - AGREE) and not setting.groups:
        simple = _on_quadratics(method, hyper, setting)
        low, source = max((low, source), (simple, "no V does better on quadratics, as far as the lower end says"))
    workers = "one worker" if setting.n == 1 else "exchangeable workers, every n >= 2"
    workers = f"groups of {', '.join(str(g.n) for g in setting.groups)} workers" if setting.groups else workers
    why = f"{workers}; V over {', '.join(posed.names[0])}; {source if math.isfinite(low) else 'no lower end is known'}"
    return replace(_nothing("solved", why, lyapunov=V, check=check), lower=low, upper=check.upper, rigorous=math.isfinite(low))


def quick_rate(method: Method, hyper: dict[str, Any], **problem: Any) -> float:
    """The rate of :func:`contraction` as the solver says it, unverified, for searches; inf where nothing was found.

    >>> abs(quick_rate(get_method("gd"), {"gamma": 1.0}, mu=0.1) - 0.81) < 1e-6
    True
    """
    posed = _posed(method, *_checked(method, hyper, **problem))
    found = _descend(posed)
    return math.inf if found is None else float(_rate(posed, found))


def _checked(
    method: Method,
    hyper: dict[str, Any],
    functions: str = "smooth_strongly_convex",
    L: Any = 1.0,
    mu: Any = 0.0,
    n: int | str = "any",
    compressor: Any = None,
    d: int | None = None,
    mixing: Any = None,
    zeta2_star: Any = 0.0,
    groups: Any = None,
) -> tuple[Any, Setting, int]:
    """Exact hyper-parameters, the setting, and the steps of a round, as far as they make sense here."""
    values = exact_hypers(method, hyper)
    check_kinds(method, method.hypers(**hyper))
    if isinstance(functions, dict):
        raise Unsupported("contraction with several functions: Lyapunov functions are sought for one class; ask worst_case with a given V")
    setting = with_groups(setting_of(functions, L, mu, n, compressor, d, mixing, zeta2_star), groups)
    _refuse(method, values, setting)
    return values, setting, max(1, int(method.rounds(values)))


def _refuse(method: Method, values: Any, setting: Setting) -> None:
    if not setting.functions.minimiser:
        raise Unsupported("the contraction of a class whose functions need not have a minimiser: nothing pulls towards x*")
    if setting.Delta2:
        raise Unsupported("the contraction under a compressor with an absolute error: it moves even the minimiser")
    if setting.zeta2_star:
        raise UsageError("zeta2_star is 0 (common minimiser) or None (arbitrary ones) here: a rate per round does not depend on scale.")
    for name, value in values._asdict().items():
        if callable(value) or isinstance(value, list):
            raise UsageError(f"{name} of {method.name} must be constant; a schedule has no rate per round.")


# --- the two programs -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Posed:
    """One round in arrays: on the instances z of a round, and on those of a state alone; V is a vector P over pairs of features."""

    features: Features
    names: tuple[tuple[str, ...], tuple[str, ...]]
    sizes: tuple[np.ndarray, np.ndarray]  # of the features, in means and deviations
    gap_size: float
    conic: Conic
    before: np.ndarray  # (P, z): V before is P @ before @ z
    after: np.ndarray
    alone: Conic
    state: np.ndarray  # (P, z of a state)
    measure: np.ndarray  # (z of a state,)
    watched: np.ndarray  # (z,) the same before a round
    control: float  # V is at least this times the measure
    inside: np.ndarray  # (z,) a strictly feasible instance of means

    @property
    def heights(self) -> int:
        """The number of gaps in V."""
        return len(self.features.evaluated) if self.features.values else 0

    @cached_property
    def to_state(self) -> np.ndarray:
        """From products of features to an instance of a state."""
        return np.linalg.pinv(self.state)

    @cached_property
    def reference(self) -> np.ndarray:
        """Products of features at a generic state, at which V is 1."""
        made = self.before @ self.inside
        i, j = triangle(len(self.sizes[1]))
        own = np.concatenate([np.zeros(len(triangle(len(self.sizes[0]))[0])), i == j, np.zeros(self.heights)])
        load, room = (self.alone.A @ (self.to_state @ v) for v in (own, -made))
        return made + 0.5 * min(1.0, (room[load > 0] / load[load > 0]).min(initial=1.0)) * own

    def matrices(self, pairs: np.ndarray) -> list[np.ndarray]:
        """Symmetric matrices over the features of means and of deviations."""
        ends = np.cumsum([0, *(len(size) * (len(size) + 1) // 2 for size in self.sizes)])
        return [smat(pairs[a:b], len(size)) for a, b, size in zip(ends[:-1], ends[1:], self.sizes, strict=True)]

    def lyapunov(self, P: np.ndarray) -> Lyapunov:
        """V as data, in own units."""
        matrices = [M / (1 + (1 - np.eye(len(M)))) / np.outer(size, size) for M, size in zip(self.matrices(P), self.sizes, strict=True)]
        start = len(P) - self.heights
        gaps = dict(zip(self.features.evaluated[: self.heights], (P[start:] / self.gap_size).tolist(), strict=True))
        return Lyapunov(self.features, *self.names, matrices[0], matrices[1], gaps)


def _posed(method: Method, values: Any, setting: Setting, rounds: int) -> Posed:
    """Run the step function on symbols from a free state, and read features before and after."""
    units = field_units(method, values, setting, rounds + int(getattr(values, "tau", 0)) + 1, world_of)
    kinds, evaluated = method.kinds, method.start if setting.width else ()
    star = setting.n != 1 and setting.zeta2_star is None and bool(setting.width)
    features = Features(
        kinds,
        method.start,
        evaluated,
        _limits(method, values, setting) if star else {},
        star,
        setting.n != 1,
        setting.functions.values,
        tuple(g.n for g in setting.groups),
    )

    alone = world_of(setting)
    s = alone.free_start(method, values, units)
    own = _collect(features, s, alone)
    controlled = features.least(s, alone)
    alone_conic, alone_builder = assemble(alone, own.everything + controlled)
    sizes = tuple(np.array([alone.size(v) for v in part]) for part in own.vectors)

    world = world_of(setting)
    s = world.free_start(method, values, units)
    first, watched = _collect(features, s, world), features.least(s, world)
    lasts = [(float(weight), _collect(features, states[-1], world)) for weight, states in branches(method, values, world, s, rounds)]
    conic, builder = assemble(world, sum((last.everything for _, last in lasts), first.everything + watched))
    scaling = (sizes, float(setting.L))
    size = alone.form_size(controlled)
    return Posed(
        features,
        own.names,
        sizes,  # type: ignore[arg-type]
        float(setting.L),
        conic,
        first.rows(builder, *scaling),
        sum((weight * last.rows(builder, *scaling) for weight, last in lasts), np.zeros(())),
        alone_conic,
        own.rows(alone_builder, *scaling),
        alone_builder.form(controlled) / size,
        builder.form(watched) / size,
        CONTROLS[0],
        interior_point(world, conic, builder),
    )


def _limits(method: Method, values: Any, setting: Setting) -> dict[str, float]:
    """Multiples of the workers' gradients at x* at which a run from x* rests when compression loses nothing (EF21's estimates)."""
    lossless = all(given is None for given in (setting.delta, *(g.delta for g in setting.groups)))
    world = PepWorld(replace(setting, groups=(), delta=None if lossless else Fraction(1)))
    s = world.start(method, values, world.minimiser)
    before, after = run(method, values, world, s, SETTLED)[-2:]
    (star,) = world.points[0].g.dev
    fields = [name for name, kind in method.kinds.items() if kind is Kind.PER_WORKER and name not in method.start]
    still = [name for name in fields if getattr(before, name).key == getattr(after, name).key]
    return {name: float(v.dev[star]) for name in still if set((v := getattr(after, name)).dev) == {star} and not v.mean}


@dataclass(frozen=True)
class _Collected:
    """The features of one state in symbols."""

    names: tuple[tuple[str, ...], tuple[str, ...]]
    vectors: tuple[list[Vec], list[Vec]]
    gaps: list[Form]

    @property
    def everything(self) -> Form:
        """A form in which all of them occur."""
        return sum(self.gaps, sum((square(v) for part in self.vectors for v in part), Form()))

    def rows(self, builder: Assembler, sizes: Any, gap_size: float) -> np.ndarray:
        """Products of features, each divided by its size, and gaps, as rows over z."""
        lengths, zeros = [k * (k + 1) // 2 for k in builder.orders], []
        for part, (vectors, size) in enumerate(zip(self.vectors, sizes, strict=True)):
            U = builder.coordinates(vectors)[part] / size[:, None]
            i, j = triangle(len(vectors))
            rows = np.zeros((i.size, sum(lengths) + builder.scalars))
            rows[:, sum(lengths[:part]) : sum(lengths[: part + 1])] = products(U[i], U[j])
            zeros.append(rows)
        return np.vstack([*zeros, *(builder.form(form)[None] / gap_size for form in self.gaps)])


def _collect(features: Features, s: Any, world: PepWorld) -> _Collected:
    parts = features.parts(s, world)
    return _Collected(tuple(tuple(p) for p in parts), tuple(list(p.values()) for p in parts), list(features.gaps(s, world).values()))  # type: ignore[arg-type]


def _descend(posed: Posed) -> np.ndarray | None:
    """V with the smallest rate, by alternating margin and rate; at first the margin is against the measure, at rate 1."""
    against, best, rho = posed.watched, None, 1.0
    for _ in range(MOST_ROUNDS):
        P = _margin(posed, rho, against)[0]
        rate = math.inf if P is None else _rate(posed, P)
        if rate >= (math.inf if best is None else rho):
            break
        done = best is not None and rho - rate <= GAIN * rate
        against, best, rho = P @ posed.before, P, rate
        if done:
            break
    return best


def _moved_from_rest(posed: Posed, method: Method, hyper: dict[str, Any], setting: Setting) -> tuple[str, str] | None:
    """Status and reason where one round from x* does not end there."""
    values, features, world = exact_hypers(method, hyper), posed.features, world_of(setting)

    def rest(name: str, kind: Kind) -> Any:
        shared = kind in (Kind.SHARED, Kind.SHARED_QUEUE)
        if name in method.start:
            return world.minimiser if shared else world.spread(world.minimiser)
        if name in features.limits:
            return features.limits[name] * world.grad(world.minimiser)
        return (world.nothing(shared),) * int(values.tau) if kind.is_queue else world.nothing(shared)

    s = method.state(**{name: rest(name, kind) for name, kind in method.kinds.items()})
    s = run(method, values, world, s, max(1, int(method.rounds(values))))[-1]
    left = [name for part in features.parts(s, world) for name, v in part.items() if v.mean or v.dev]
    if not left or world.tosses:
        return None
    return (
        "no fixed point",
        f"nothing contracts: a round that begins at x* ends elsewhere ({', '.join(dict.fromkeys(left))} need not be 0).",
    )


def _why_none(posed: Posed) -> tuple[str, str]:
    """Status and reason where no V was found."""
    P, t, _, message = _margin(posed, 1.0, posed.watched)
    if message == "PrimalInfeasible":
        return "no V", "no quadratic-plus-function-value V that controls the gradients stays below itself in this setting, at any margin."
    if P is None:
        return "failed", f"the solver failed ({message}) in the search for a V; other units or parameters may help."
    if t <= 0:
        return "no V", f"no quadratic-plus-function-value V that controls the gradients decreases in this setting (best margin {t:.2g})."
    return (
        "no metric",
        "of every V tried, the value after a round is unbounded where that before is at most 1: it controls too little.",
    )


def _rate(posed: Posed, P: np.ndarray) -> float:
    """The largest V after where V before is at most 1, as the solver says it; inf where it fails."""
    one = P @ posed.before
    size, height = np.abs(one).max(), P @ posed.after
    conic = replace(
        posed.conic,
        c=height / np.abs(height).max(),
        A=sp.csr_array(sp.vstack([posed.conic.A, sp.csr_array(one[None] / size)], format="csr")),
        b=np.append(posed.conic.b, 1 / size),
    )
    raw = solve_conic(conic, SHARP, "CLARABEL", scaled=False)
    return upper(conic, raw).bound.value * np.abs(height).max() if raw.ok else math.inf


def _margin(posed: Posed, rho: float, against: np.ndarray) -> tuple[np.ndarray | None, float, Raw | None, str]:
    """P of the largest margin t in ``rho V_P(before) - V_P(after) >= t against``, t, the instance that stops it, and the solver's word.

    P is 1 at the reference, nonnegative, and at least ``control`` times the measure; all by multipliers of the inequalities.
    """
    import clarabel

    one, two = posed.conic, posed.alone
    rows, equalities, tri, more = one.A.shape[0], one.E.shape[0], one.mixed * (one.mixed + 1) // 2, two.A.shape[0]
    half = off_diagonal(one.mixed, SQRT2)
    nP = len(posed.before)
    # columns: P, t, multipliers of the inequalities and equalities of a round, of its mixing, and of the inequalities of a state
    mixing = -(one.P.T @ sp.diags_array(half)) if tri else one.P.T
    falls = sp.hstack([(rho * posed.before - posed.after).T, -against[:, None], one.A.T, one.E.T, mixing, sp.csc_array((one.c.size, more))])
    holds = sp.hstack([posed.state.T, sp.csc_array((two.c.size, 1 + rows + equalities + tri)), two.A.T])
    columns = nP + 1 + rows + equalities + tri + more
    reference = np.zeros((1, columns))
    reference[0, :nP] = posed.reference
    signs = sp.diags_array(np.concatenate([np.zeros(nP + 1), np.ones(rows), np.zeros(equalities + tri), np.ones(more)])).tocsr()
    select = sp.csr_array(-signs[[*range(nP + 1, nP + 1 + rows), *range(columns - more, columns)]])
    mixed = -sp.eye_array(columns, format="csr")[columns - more - tri : columns - more]
    parts = [_split(falls, one, np.zeros(one.c.size)), _split(holds, two, -posed.control * posed.measure)]
    blocks = [parts[0][0], parts[1][0], sp.csr_array(reference), select, parts[0][1], parts[1][1], mixed]
    rhs = [parts[0][2], parts[1][2], np.ones(1), np.zeros(select.shape[0]), parts[0][3], parts[1][3], np.zeros(tri)]
    zero = parts[0][0].shape[0] + parts[1][0].shape[0] + 1
    cones = [clarabel.ZeroConeT(zero), clarabel.NonnegativeConeT(select.shape[0])]
    cones += [clarabel.PSDTriangleConeT(k) for k in (*one.orders, *two.orders, one.mixed) if k]
    q = np.zeros(columns)
    q[nP] = -1.0
    kept = [(block, r) for block, r in zip(blocks, rhs, strict=True) if block.shape[0]]
    x, y, message = conic_program(q, sp.vstack([b for b, _ in kept], format="csc"), np.concatenate([r for _, r in kept]), cones)
    if message not in ("Solved", "AlmostSolved", "InsufficientProgress"):
        return None, math.nan, None, message
    gram = y[zero + select.shape[0] :][: sum(one.sizes)] * np.concatenate([off_diagonal(k, 1 / SQRT2) for k in one.orders])
    z = np.concatenate([gram, -y[: parts[0][0].shape[0]]])
    return x[:nP], float(x[nP]), Raw("solved", message, z, np.zeros(rows), np.zeros(equalities), np.zeros((one.mixed,) * 2)), message


def _split(coefficients: Any, conic: Conic, constant: np.ndarray) -> tuple[Any, Any, np.ndarray, np.ndarray]:
    """Rows and right-hand sides that make ``coefficients x + constant`` 0 on the scalars and semidefinite on the Gram triangles."""
    gram = sum(conic.sizes)
    weights = np.concatenate([off_diagonal(k, SQRT2 / 2) for k in conic.orders])
    made = sp.csr_array(coefficients)
    return made[gram:], -(sp.diags_array(weights) @ made[:gram]), -constant[gram:], weights * constant[:gram]


# --- the lower end ----------------------------------------------------------------------------------------------------


def _lower(posed: Posed, V: np.ndarray, rate: float) -> float:
    """The largest rho at which one instance shows that no V of the class can do: after - rho before is a state's own products.

    If the products of features after a round are rho times those before plus those of another state (with room for what V must
    control), then ``V(after) >= rho V(before)`` for every V that is nonnegative on states.
    """
    rows = np.vstack([posed.alone.A.toarray(), posed.measure])
    if np.abs(rows @ posed.to_state @ posed.state - rows).max(initial=0) > ROUNDING * len(rows) * np.abs(posed.to_state).max():
        return -math.inf  # something else than the features decides what a state may be
    for below in BELOW:
        z = _instance(posed, V, rate * (1 - below))
        if z is not None and _shows(posed, z, 0.0):
            low, high = 0.0, rate
            for _ in range(HALVINGS):
                middle = (low + high) / 2
                low, high = (middle, high) if _shows(posed, z, middle) else (low, middle)
            if low > rate * (1 - 2 * below):
                return low
    return -math.inf


def _instance(posed: Posed, V: np.ndarray, rho: float) -> np.ndarray | None:
    """A strictly feasible instance near the one that stops every V from contracting by rho."""
    raw = _margin(posed, rho, V @ posed.before)[2]
    if raw is None:
        return None
    size = max(np.trace(G) for G in grams(posed.conic, raw.z) if G.size)
    bound, z = lower(replace(posed.conic, c=np.zeros_like(posed.conic.c)), replace(raw, z=raw.z / size), posed.inside)
    return z if bound.verified else None


def _shows(posed: Posed, z: np.ndarray, rho: float) -> bool:
    """Whether the instance shows that no V contracts faster than rho."""
    left, m = posed.after @ z - rho * posed.before @ z, posed.measure @ posed.to_state
    spare = posed.control * posed.reference
    left = left + max(0.0, posed.control * float(m @ left) / (1 - float(m @ spare))) * posed.reference
    slack = ROUNDING * (1 + np.abs(posed.to_state) @ np.abs(left)).max()
    positive = all(np.linalg.eigvalsh(G)[0] > slack for G in posed.matrices(left) if G.size)
    return positive and float((posed.alone.A @ (posed.to_state @ left)).max(initial=-np.inf)) < -slack


def _on_quadratics(method: Method, hyper: dict[str, Any], setting: Setting) -> float:
    """The squared spectral radius on quadratics of a few curvatures, less its rounding: no V that controls gradients contracts faster."""
    import scipy.linalg

    from verify_rates.theory.quadratic import LAM, quadratic

    shares = [1] if setting.delta in (None, 1) else [1, 1 - math.sqrt(1 - setting.delta)]  # C(v) = s v has ||C(v)-v||^2 = (1-s)^2 ||v||^2
    best = -math.inf
    for share in shares:
        try:
            transfer = quadratic(method, hyper, compressor=share).transfer
        except Unsupported:
            return -math.inf
        for lam in np.unique(np.geomspace(max(float(setting.mu), 1e-3 * float(setting.L)), float(setting.L), CURVATURES)):
            M = np.array(transfer.subs(LAM, lam).tolist(), dtype=float)
            values, left, right = scipy.linalg.eig(M, left=True, right=True)
            error = len(M) * np.finfo(float).eps * np.linalg.norm(M) / np.maximum(np.abs(np.sum(left.conj() * right, axis=0)), 1e-300)
            best = max(best, float((np.abs(values) - SAFETY * error).max()))
    return best**2 if best > 0 else -math.inf
