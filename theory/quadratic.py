"""A method on quadratics with a common Hessian: one linear recursion a mode, in closed form.

On one eigenvector of the Hessian, with eigenvalue ``lam``, worker i's gradient is ``lam*(x - x*) + u_i`` plus noise, with
``sum_i u_i = 0``.  Every per-worker value is its mean plus a deviation; the means follow one linear recursion and the deviations
another, so the step function itself, read on linear forms, gives the transfer matrices of both.  From them follow the characteristic
polynomial, the largest stable step (Jury) and, under additive noise, exact second moments.
"""

from __future__ import annotations

import copy
import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, get_type_hints

import numpy as np
import sympy as sp

from verify_rates.solvers.kinds import check_kinds
from verify_rates.solvers.measures import MEASURES, get_measure
from verify_rates.solvers.method import Method, UsageError, at, get_method, nearest
from verify_rates.solvers.words import Kind, Unsupported, World
from verify_rates.theory.symbols import SYMBOLS, parse

STAR, OFFSET = "x*", "u"  # the constant of the means, and that of the deviations
MAX_STATES = 60  # of a transfer matrix in symbols; queues count tau times
MARGINAL = 1e-9  # a spectral radius this near 1 has no stationary moments: their relative rounding error would pass 1e-7

LAM = SYMBOLS["lam"]
LAM_W = sp.Symbol("lam_W", real=True)  # an eigenvalue of the mixing matrix other than 1
Z = sp.Symbol("z")
G = sp.Symbol("g", positive=True)  # gamma*lam


# --- values of the reading: linear forms ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """A vector on one mode: coefficients of its mean and (where per-worker) of its deviation, by coordinate."""

    mean: dict[str, Any]
    dev: dict[str, Any] | None = None

    __array_ufunc__ = None  # a NumPy number on the left leaves the operation to us

    def _with(self, other: Any, sign: int) -> Form:
        if not isinstance(other, Form):
            raise Unsupported("the quadratic reading needs linear steps, and a vector meets a plain number in this one.")
        dev = None if self.dev is None or other.dev is None else _plus(self.dev, other.dev, sign)
        return Form(_plus(self.mean, other.mean, sign), dev)

    def __add__(self, other: Any) -> Form:
        return self._with(other, 1)

    def __sub__(self, other: Any) -> Form:
        return self._with(other, -1)

    def __mul__(self, factor: Any) -> Form:
        if isinstance(factor, Form):
            raise Unsupported("the quadratic reading needs linear steps, and this one multiplies two vectors.")
        dev = None if self.dev is None else {k: v * factor for k, v in self.dev.items()}
        return Form({k: v * factor for k, v in self.mean.items()}, dev)

    __rmul__ = __mul__

    def __truediv__(self, factor: Any) -> Form:
        return self * (1 / factor)

    def __neg__(self) -> Form:
        return self * -1


def _plus(a: dict[str, Any], b: dict[str, Any], sign: int) -> dict[str, Any]:
    return {k: a.get(k, 0) + sign * b.get(k, 0) for k in {**a, **b}}


@dataclass(frozen=True)
class Energy:
    """A scalar measure: a sum of squares of forms, weighted (``(weight, form)`` pairs)."""

    terms: tuple[tuple[Any, Form], ...]

    __array_ufunc__ = None

    def __add__(self, other: Any) -> Energy:
        if not isinstance(other, Energy):
            raise Unsupported("exact moments need a measure that is a sum of squares; this one adds a plain number.")
        return Energy(self.terms + other.terms)

    def __sub__(self, other: Any) -> Energy:
        return self + other * -1

    def __mul__(self, factor: Any) -> Energy:
        if isinstance(factor, (Energy, Form)):
            raise Unsupported("exact moments need a measure that is a sum of squares; this one multiplies two of them.")
        return Energy(tuple((w * factor, f) for w, f in self.terms))

    __rmul__ = __mul__

    def __truediv__(self, factor: Any) -> Energy:
        return self * (1 / factor)

    def __neg__(self) -> Energy:
        return self * -1


@dataclass
class QuadraticWorld(World):
    """The words of a step on one mode; ``lam`` a symbol, a number or an array of modes."""

    lam: Any
    share: Any = 1
    mixing: Any = LAM_W
    noisy: bool = True
    calls: int = 0

    reading = "the quadratic reading"

    def grad(self, x):
        dev = x.dev or {}
        mean = {k: v * self.lam for k, v in x.mean.items()}
        mean = _plus(mean, {STAR: self.lam}, -1)
        dev = _plus({k: v * self.lam for k, v in dev.items()}, {OFFSET: 1}, 1)
        if self.noisy:
            noise = f"noise[{self.calls}]"
            self.calls += 1
            mean, dev = {**mean, noise: 1}, {**dev, noise: 1}
        return Form(mean, dev)

    def mean(self, v):
        return Form(v.mean)

    def spread(self, v):
        return Form(v.mean, {})

    def gossip(self, v):
        return Form(v.mean, {k: c * self.mixing for k, c in v.dev.items()})

    def compress(self, v):
        return v * self.share

    def delay(self, q, v):
        return ((*q[1:], v), q[0]) if q else (q, v)

    def chance(self, p):
        return self.refuse("chance", "a coin makes the transfer matrix random")


class MeasureWorld(QuadraticWorld):
    """The words of a measure; ``grad`` is the full gradient."""

    reading = "exact moments"

    def optimum(self):
        return Form({STAR: 1})

    def gap(self, x):
        return Energy(((self.lam / 2, x - self.optimum()),))

    def sqnorm(self, v):
        return Energy(((1, v),))

    def consensus(self, x):
        return x if x.dev is None else Form(x.mean)


# --- the reading ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """One linear recursion ``z <- A z + b*constant + B noise``, as matrices over the coordinates."""

    A: Any  # (p, p)
    b: Any  # (p, 1)
    B: Any  # (p, calls of grad)


@dataclass(frozen=True)
class Quadratic:
    """A method on quadratics; made by :func:`quadratic`.

    Attributes
    ----------
    method, hyper : what is read; hyper-parameters are numbers or SymPy expressions.
    share : the compressor ``C(v) = share*v``.
    gossip : the eigenvalues of the mixing matrix other than 1 (one symbol if none were given).
    period : steps of one round.
    """

    method: Method
    hyper: Any
    share: Any = 1
    gossip: tuple[Any, ...] = (LAM_W,)
    period: int = 1

    # the coordinates, fixed by the state

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Coordinates of the means: the fields, queues entry by entry (oldest first)."""
        return tuple(name for field_ in self.method.kinds for name in self._names(field_))

    @cached_property
    def deviations(self) -> tuple[str, ...]:
        """Coordinates of the deviations: the per-worker fields."""
        own = (Kind.PER_WORKER, Kind.PER_WORKER_QUEUE)
        return tuple(name for field_, kind in self.method.kinds.items() if kind in own for name in self._names(field_))

    def _names(self, field_: str) -> tuple[str, ...]:
        if not self.method.kinds[field_].is_queue:
            return (field_,)
        return tuple(f"{field_}[{i}]" for i in range(getattr(self.hyper, "tau", 0)))

    def _state(self) -> Any:
        def value(field_: str, kind: Kind) -> Any:
            shared = kind in (Kind.SHARED, Kind.SHARED_QUEUE)
            forms = tuple(Form({name: 1}, None if shared else {name: 1}) for name in self._names(field_))
            return forms if kind.is_queue else forms[0]

        return self.method.state(**{f: value(f, k) for f, k in self.method.kinds.items()})

    def _step(self, t: int, lam: Any, share: Any, mixing: Any, hyper: Any) -> tuple[dict[str, Form], int]:
        world = QuadraticWorld(lam=lam, share=share, mixing=mixing)
        new = self.method.step(self._state(), world, at(hyper, t), t)
        values: dict[str, Form] = {}
        for field_ in self.method.kinds:
            made = getattr(new, field_)
            values.update(zip(self._names(field_), made if isinstance(made, tuple) else (made,), strict=True))
        return values, world.calls

    def _rows(self, values: dict[str, Form], calls: int, part: str) -> tuple[list[list[Any]], list[list[Any]], list[list[Any]]]:
        names, constant = (self.coordinates, STAR) if part == "mean" else (self.deviations, OFFSET)
        noise = [f"noise[{i}]" for i in range(calls)]
        rows = [getattr(values[name], part) for name in names]
        return tuple([[row.get(k, 0) for k in keys] for row in rows] for keys in (names, (constant,), noise))  # type: ignore[return-value]

    def _symbolic(self, t: int, part: str, mixing: Any) -> Part:
        values, calls = self._step(t, LAM, _rational(self.share), _rational(mixing), self._exact_hyper)
        return Part(*(sp.Matrix(len(r), len(r[0]) if r else 0, [c for row in r for c in row]) for r in self._rows(values, calls, part)))

    @cached_property
    def _exact_hyper(self) -> Any:
        return type(self.hyper)(*(_rational(v) for v in self.hyper))

    def _round(self, part: str, mixing: Any) -> sp.Matrix:
        self._constant("a transfer matrix")
        if len(self.coordinates) > MAX_STATES:
            raise Unsupported(
                f"a transfer matrix in symbols has at most {MAX_STATES} coordinates, and tau makes it {len(self.coordinates)}."
            )
        steps = [self._symbolic(t, part, mixing).A for t in range(3 * self.period)]
        if steps[: self.period] * 2 != steps[self.period :]:
            raise Unsupported(f"the step of {self.method.name} depends on t beyond one round, so that no matrix repeats.")
        A = sp.eye(steps[0].rows)
        for step in steps[: self.period]:
            A = step * A
        return A.applyfunc(sp.factor)

    def _constant(self, what: str) -> None:
        moving = [name for name, v in zip(self.hyper._fields, self.hyper, strict=True) if callable(v) or isinstance(v, list)]
        if moving:
            raise Unsupported(f"{what} needs constant hyper-parameters; {', '.join(moving)} is a schedule (moments() takes it).")

    @cached_property
    def transfer(self) -> sp.Matrix:
        """Transfer matrix of the means over one round, in the order of ``coordinates``."""
        return self._round("mean", self.gossip[0])

    @cached_property
    def deviation(self) -> sp.Matrix:
        """Transfer matrix of the deviations over one round (of the first eigenvalue of the mixing matrix)."""
        return self._round("dev", self.gossip[0])

    def characteristic(self, part: str = "mean", z: sp.Symbol = Z) -> sp.Expr:
        """Characteristic polynomial of the means ("mean") or of the deviations ("dev"), in ``z``.

        >>> quadratic("dd_ef_sgd", tau=2).characteristic()
        z*(gamma*lam + z**3 - z**2)
        """
        return sp.factor(self._part(part).charpoly(Z).as_expr()).subs(Z, z)

    def _part(self, part: str) -> sp.Matrix:
        if part not in ("mean", "dev"):
            raise UsageError(f"part must be 'mean' or 'dev', not {part!r}.")
        return self.transfer if part == "mean" else self.deviation

    def jury(self, part: str = "mean") -> tuple[sp.Expr, ...]:
        """Expressions that are all positive exactly where the spectral radius is below 1 (Jury); roots at 0 are left out.

        >>> quadratic("dd_ef_sgd", tau=1).jury()
        (gamma*lam, gamma*lam + 2, gamma*lam + 1, -gamma*lam + 1)
        """
        _, nonzero = _strip(sp.Poly(self._part(part).charpoly(Z).as_expr(), Z))
        return tuple(sp.factor(c) for c in _jury(nonzero))

    def spectral_radius(self, lam: float, part: str = "mean", **values: float) -> float:
        """Largest modulus of an eigenvalue at a curvature; ``values`` gives the symbols that are left.

        >>> quadratic("gd", gamma=0.5).spectral_radius(lam=1.0)
        0.5
        """
        given = {LAM: lam, **{SYMBOLS.get(k, sp.Symbol(k, real=True)): v for k, v in values.items()}}
        made = self._part(part).subs({k: _rational(v) for k, v in given.items()})
        _no_letters(made, "spectral_radius")
        if not made.rows:
            return 0.0
        return float(np.max(np.abs(np.linalg.eigvals(np.array(made.tolist(), dtype=float)))))

    def stability_limit(self, L: Any = 1) -> Limit:
        """The largest step below which every curvature in (0, L] is damped, exactly.

        It is an algebraic number, the first root of ``p(1)``, ``p(-1)`` or the critical Jury determinant, after an exact test below it.

        Parameters
        ----------
        L : largest curvature, a number or a symbol.

        Errors: UsageError where the polynomial has letters besides ``gamma*lam``; Unsupported where a mode is never damped.

        >>> quadratic("gd").stability_limit(L=4)
        Limit(gamma < 1/2)
        >>> quadratic("dd_ef_sgd", tau=1).stability_limit(L=1).value
        1
        """
        if "gamma" not in self.hyper._fields:
            raise Unsupported(f"a stability limit needs a step size named gamma; {self.method.name} has {', '.join(self.hyper._fields)}.")
        free = Quadratic(self.method, self.hyper._replace(gamma=SYMBOLS["gamma"]), self.share, self.gossip, self.period)
        parts = [free.transfer] + [free._round("dev", w) for w in (self.gossip if self.deviations else ())]
        found = [x for x in (_limit(A) for A in parts if A.rows) if x is not None]
        if not found:
            raise Unsupported(f"{self.method.name} has no stability limit: every step size damps every mode.")
        best = min(found, key=lambda x: x[0])
        return Limit(best[1] / sp.sympify(L), best[2], self.method.name)

    def stationary_covariance(self, part: str = "mean") -> sp.Matrix:
        """Covariance of one mode in the long run, in symbols (discrete Lyapunov equation), by ``coordinates`` or ``deviations``.

        ``sigma2`` is the noise of this one mode; the means see ``sigma2/n``.  For methods whose step is the same at every t.

        >>> quadratic("gd").stationary_covariance()[0]
        -gamma*sigma2/(lam*n*(gamma*lam - 2))
        """
        if self.period > 1:
            raise Unsupported("a stationary covariance in symbols needs a round of one step; moments() takes every round.")
        A, noise = self._part(part), self._symbolic(0, part, self.gossip[0]).B
        scale = SYMBOLS["sigma2"] / (SYMBOLS["n"] if part == "mean" else 1)
        p = A.rows
        P = sp.Matrix(p, p, lambda i, j: sp.Symbol(f"P_{min(i, j)}_{max(i, j)}"))
        unknown = sorted(P.free_symbols, key=str)
        equations = (A * P * A.T + noise * noise.T * scale - P).upper_triangular()
        found = sp.linsolve([e for e in equations if e != 0], unknown)
        if not found or next(iter(found)).free_symbols & set(unknown):
            raise Unsupported("there is no stationary covariance: a mode is never damped.")
        return P.subs(dict(zip(unknown, next(iter(found)), strict=True))).applyfunc(sp.factor)

    # --- moments ----------------------------------------------------------------------------------------------------------

    def moments(
        self,
        steps: int,
        spectrum: Any,
        x0: Any,
        *,
        x_star: Any = 0.0,
        sigma2: float = 0.0,
        n: int = 1,
        offsets: Any = None,
        W: Any = None,
        measures: Sequence[str | Callable[..., Any]] | None = None,
    ) -> Moments:
        """Expectations of measures at steps 0..T under additive noise, without sampling.

        Guarantee: exact up to the rounding of float64, for every noise that is independent over workers, steps and calls of ``grad``, of
        mean 0 and covariance ``sigma2/d * I``; normality is not needed.  Where the iterates leave the floats the value is inf.

        Parameters
        ----------
        steps : T.
        spectrum : (d,) eigenvalues of the common Hessian.
        x0, x_star : (d,) start and minimiser in the eigenbasis, or one number for all.
        sigma2 : variance of a worker's noise, summed over the d coordinates.
        n : workers.
        offsets : (n, d) gradients of the workers at x_star in the eigenbasis, their mean 0; None for a shared minimiser.
        W : (n, n) symmetric doubly stochastic matrix for ``gossip``.
        measures : names or callables; None for all named measures that the state has.

        Errors: UsageError for wrong shapes and numbers; Unsupported for a measure that is no sum of squares.

        >>> m = quadratic("gd", gamma=0.5).moments(2, [1.0], 1.0, sigma2=1.0, measures=["distance"])
        >>> m.values["distance"].tolist()
        [1.0, 0.5, 0.375]
        """
        setup = _Setup.make(self, steps, spectrum, x0, x_star, sigma2, n, offsets, W)
        chosen = _chosen(measures, self, setup)
        means, deviations = _MeanMoments(self, setup), _DevMoments(self, setup)
        values = {name: np.empty(setup.steps + 1) for name in chosen}
        with np.errstate(over="ignore", invalid="ignore"):  # an expectation that leaves the floats is infinite
            for t in range(setup.steps + 1):
                for name, terms in chosen.items():
                    values[name][t] = _expect((means, deviations), terms)
                if t < setup.steps:
                    means.step(t)
                    deviations.step(t)
            averages = means.average(setup.steps), deviations.average(setup.steps)
            at_average = {name: _expect(averages, terms) for name, terms in chosen.items()}
        return Moments(np.arange(setup.steps + 1), values, at_average, self._settings(setup))

    def stationary(self, spectrum: Any, x0: Any = 0.0, **options: Any) -> dict[str, float]:
        """Limits of the measures as t grows, at the ends of rounds (inf where a mode is not damped); options as in :meth:`moments`.

        >>> quadratic("gd", gamma=0.5).stationary([1.0], sigma2=1.0, measures=["distance"])["distance"]
        0.3333333333333333
        """
        measures = options.pop("measures", None)
        given = {"x_star": 0.0, "sigma2": 0.0, "n": 1, "offsets": None, "W": None, **options}
        setup = _Setup.make(self, 0, spectrum, x0, **given)
        self._constant("a stationary moment")
        chosen = _chosen(measures, self, setup)
        means, deviations = _MeanMoments(self, setup), _DevMoments(self, setup)
        damped = means.settle() and deviations.settle()
        return {name: _expect((means, deviations), terms) if damped else math.inf for name, terms in chosen.items()}

    def _settings(self, setup: _Setup) -> dict[str, Any]:
        return {
            "method": self.method.name,
            "hyper": {k: "schedule" if callable(v) or isinstance(v, list) else _plain(v) for k, v in self.hyper._asdict().items()},
            "share": _plain(self.share),
            "steps": setup.steps,
            "n": setup.n,
            "d": len(setup.spectrum),
            "sigma2": setup.sigma2,
        }

    # --- showing --------------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Everything in symbols, as text."""
        limit = None
        try:
            limit = str(self.stability_limit(SYMBOLS["L"]).value)
        except (Unsupported, UsageError) as refused:
            limit_note = str(refused)
        else:
            limit_note = ""
        return {
            "method": self.method.name,
            "hyper": {k: str(v) for k, v in self.hyper._asdict().items()},
            "period": self.period,
            "coordinates": list(self.coordinates),
            "transfer": [[str(c) for c in row] for row in self.transfer.tolist()],
            "characteristic": str(self.characteristic()),
            "deviations": list(self.deviations),
            "deviation": [[str(c) for c in row] for row in self.deviation.tolist()],
            "stability_limit": limit,
            "stability_note": limit_note,
        }

    def _repr_html_(self) -> str:
        made = self.to_json()
        rows = [("coordinates", ", ".join(made["coordinates"])), ("characteristic polynomial", made["characteristic"])]
        rows += [("stable for gamma <", made["stability_limit"] or made["stability_note"]), ("steps of a round", made["period"])]
        body = "".join(f"<tr><th>{html.escape(str(k))}</th><td><code>{html.escape(str(v))}</code></td></tr>" for k, v in rows)
        return f"<table><caption>{html.escape(self.method.name)} on quadratics</caption>{body}</table>"


@dataclass(frozen=True)
class Limit:
    """``gamma < value``: exact value, the polynomial in ``g = gamma*lam`` that it is a root of, and the method."""

    value: sp.Expr
    polynomial: sp.Expr
    method: str = ""

    def __float__(self) -> float:
        return float(self.value)

    def __repr__(self) -> str:
        return f"Limit(gamma < {self.value})"


def quadratic(
    method: str | Method, hyper: Mapping[str, Any] | None = None, *, compressor: Any = "identity", gossip: Any = None, **values: Any
) -> Quadratic:
    """A method read on quadratics with a common Hessian.

    Parameters
    ----------
    method : name or method.
    hyper, values : hyper-parameters: numbers, SymPy expressions, or text for :func:`~verify_rates.theory.symbols.parse`; a step size
        that is not given becomes the symbol of its name.  Whole numbers (tau, H) must be numbers.
    compressor : "identity", or a number or symbol ``s`` for ``C(v) = s*v``, which is also the expectation of random-k without scaling
        (``s = k/d``; the transfer matrix is then that of the expected state, and moments hold for the deterministic map alone).
    gossip : an eigenvalue of the mixing matrix other than 1, several, or a topology; a symbol if None.

    Errors: UsageError for unknown or bad hyper-parameters; Unsupported for words and compressors that are not linear.

    >>> quadratic("acco").characteristic()
    (gamma*lam + 2*z)*(gamma*lam + z - 1)/2
    """
    read = get_method(method)
    h = _hypers(read, {**(hyper or {}), **values})
    plain = _with_numbers(h)
    check_kinds(read, plain)
    period = max(1, int(read.rounds(at(plain, 0))))
    made = Quadratic(read, h, _share(compressor), _eigenvalues(gossip), period)
    made._step(0, LAM, made.share, made.gossip[0], h)  # words without a meaning here refuse at once
    return made


def _hypers(read: Method, given: dict[str, Any]) -> Any:
    hints = get_type_hints(read.hyper)
    parsed = {k: parse(v) if isinstance(v, str) else v for k, v in given.items()}
    for name, value in parsed.items():
        if name in hints and hints[name] is int and isinstance(value, sp.Basic) and not value.is_number:
            raise UsageError(f"{name} of {read.name} must be a whole number in the quadratic reading, not {value}.")
    symbolic = {k: v for k, v in parsed.items() if isinstance(v, sp.Basic) and not v.is_number}
    for name in read.hyper._fields:
        if name not in given and name not in read.hyper._field_defaults and hints[name] is not int:
            symbolic[name] = SYMBOLS.get(name, sp.Symbol(name, positive=True))
    numbers = {k: v for k, v in parsed.items() if k not in symbolic}
    for name in symbolic:
        if name not in read.hyper._fields:
            raise nearest(name, read.hyper._fields, f"hyper-parameter of {read.name}")
    checked = read.hypers(**{**numbers, **dict.fromkeys(symbolic, 1)})
    exact = {k: v for k, v in numbers.items() if isinstance(v, sp.Basic) and hints[k] is not int}
    return checked._replace(**symbolic, **exact)


def _with_numbers(h: Any) -> Any:
    """The hyper-parameters with 1 for every expression, where only the words and the round matter."""
    return type(h)(*(1.0 if isinstance(v, sp.Basic) else v for v in h))


def _share(compressor: Any) -> Any:
    if isinstance(compressor, sp.Basic):
        return compressor
    name = getattr(compressor, "name", compressor)
    if isinstance(name, str):
        if name == "identity":
            return 1
        raise Unsupported(f"the quadratic reading of compressor {name!r}: only 'identity' and a linear shrink C(v) = s*v are linear maps.")
    try:
        share = float(name)
    except (TypeError, ValueError):
        raise UsageError(f"compressor must be 'identity', a number in (0, 1] or a symbol, not {compressor!r}.") from None
    if not 0 < share <= 1:
        raise UsageError(f"a shrink must lie in (0, 1], not {compressor!r}.")
    return name


def _eigenvalues(gossip: Any) -> tuple[Any, ...]:
    if gossip is None:
        return (LAM_W,)
    listed = list(getattr(gossip, "spectrum", gossip if isinstance(gossip, (list, tuple, np.ndarray)) else [gossip]))
    listed = listed[:-1] if hasattr(gossip, "spectrum") else listed
    for w in listed:
        if not isinstance(w, sp.Basic) and not -1 <= float(w) <= 1:
            raise UsageError(f"an eigenvalue of a mixing matrix lies in [-1, 1], not {w!r}.")
    return tuple(dict.fromkeys(listed)) or (0,)


def _rational(value: Any) -> Any:
    """Numbers exactly, as they are written in decimals; symbols and schedules as they are."""
    if isinstance(value, float):
        return sp.Rational(repr(float(value)))
    if isinstance(value, Fraction):
        return sp.Rational(value.numerator, value.denominator)
    return value


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, sp.Basic) else value


def _no_letters(made: Any, what: str) -> None:
    if made.free_symbols:
        raise UsageError(f"{what} still needs a value of {', '.join(sorted(map(str, made.free_symbols)))}.")


# --- stability --------------------------------------------------------------------------------------------------------


def _strip(p: sp.Poly) -> tuple[int, sp.Poly]:
    """Order of the root 0, and the polynomial without it."""
    order = min(m[0] for m in p.monoms())
    return order, sp.Poly(sp.cancel(p.as_expr() / Z**order), Z)


def _critical(coefficients: list[Any], sign: int) -> sp.Matrix:
    """Jury's matrix ``X + sign*Y`` of order m-1 for ascending coefficients a_0..a_m."""
    m = len(coefficients) - 1
    a = coefficients
    X = sp.Matrix(m - 1, m - 1, lambda i, j: a[m - j + i] if j >= i else 0)
    Y = sp.Matrix(m - 1, m - 1, lambda i, j: a[m - 2 - i - j] if i + j <= m - 2 else 0)
    return X + sign * Y


def _determinant(M: sp.Matrix) -> sp.Expr:
    made = M.to_DM()
    return made.domain.to_sympy(made.charpoly()[-1]) * (-1) ** M.rows if M.rows else sp.Integer(1)


def _jury(p: sp.Poly) -> list[sp.Expr]:
    a = list(reversed(p.all_coeffs()))
    m = len(a) - 1
    if m == 0:
        return []
    conditions = [p.eval(1), (-1) ** m * p.eval(-1)]
    for sign in (1, -1) if m > 1 else ():
        full = _critical(a, sign)
        for cut in range((m - 1) // 2 + (m - 1) % 2):
            inner = full[cut : m - 1 - cut, cut : m - 1 - cut]
            conditions.append(_determinant(inner))
    return conditions


def schur_stable(coefficients: Sequence[Fraction]) -> bool:
    """Are all roots of a polynomial (ascending coefficients) inside the unit circle?  Exact (Schur and Cohn).

    >>> schur_stable([Fraction(1, 2), Fraction(1)])
    True
    """
    scale = math.lcm(*(c.denominator for c in coefficients))
    a = [int(c * scale) for c in coefficients]
    while len(a) > 1:
        if abs(a[0]) >= abs(a[-1]):
            return False
        a = [a[-1] * a[i] - a[0] * a[len(a) - 1 - i] for i in range(1, len(a))]
        common = math.gcd(*a)
        a = [c // common for c in a]
    return True


def _limit(A: sp.Matrix) -> tuple[float, sp.Expr, sp.Expr] | None:
    """First g = gamma*lam at which a mode stops being damped: (float, exact, its polynomial); None if there is none."""
    gamma = SYMBOLS["gamma"]
    p = sp.cancel(sp.together(A.charpoly(Z).as_expr().subs(LAM, G / gamma)))
    left = p.free_symbols - {Z, G}
    if left:
        raise UsageError(f"a stability limit in gamma*lam needs numbers for {', '.join(sorted(map(str, left)))}.")
    factors = [f for f, _ in sp.factor_list(p, Z, G)[1]]
    for f in factors:
        if not f.has(G) and not schur_stable(_fractions(sp.Poly(f, Z))):
            raise Unsupported(f"no step size damps the roots of {f}.")
    moving = [sp.Poly(f, Z) for f in factors if f.has(G) and f.has(Z)]
    found = [x for x in map(_first_crossing, moving) if x is not None]
    return min(found, key=lambda x: x[0]) if found else None


def _first_crossing(p: sp.Poly) -> tuple[float, sp.Expr, sp.Expr] | None:
    a = list(reversed(p.all_coeffs()))
    tests = [p.eval(1), p.eval(-1), a[-1]]
    if len(a) > 2:
        tests.append(_determinant(_critical(a, -1)))  # the product of 1 - z_i*z_j over pairs of roots
    factors = {f for test in tests for f, _ in sp.factor_list(sp.numer(sp.together(test)), G)[1] if f.has(G)}
    roots = [(r, f) for f in factors for r in sp.Poly(f, G).real_roots() if r.evalf(30) > 0]
    first = min(roots, key=lambda x: x[0].evalf(30), default=None)  # there a root lies on the unit circle, or the reading starts unstable
    inside = sp.Rational(str((first[0] / 2).evalf(15))).limit_denominator(math.ceil(8 / float(first[0]))) if first else sp.Integer(1)
    if not schur_stable(_fractions(sp.Poly(p.as_expr().subs(G, inside), Z))):
        raise Unsupported("no step size is stable: a mode grows at every small step.")
    return (float(first[0]), sp.radsimp(first[0]), first[1]) if first else None


def _fractions(p: sp.Poly) -> list[Fraction]:
    return [Fraction(int(c.p), int(c.q)) for c in reversed(p.all_coeffs())]


# --- second moments in numbers ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Setup:
    """The checked numbers of one computation of moments."""

    steps: int
    spectrum: np.ndarray  # (d,)
    x0: np.ndarray  # (d,)
    x_star: np.ndarray  # (d,)
    sigma2: float
    n: int
    mixing: np.ndarray | None  # (n-1,) eigenvalues of W, or None
    weights: np.ndarray  # (channels, d) squared offsets along each deviation
    copies: np.ndarray  # (channels,) deviations that share a channel

    @staticmethod
    def make(read: Quadratic, steps: Any, spectrum: Any, x0: Any, x_star: Any, sigma2: Any, n: Any, offsets: Any, W: Any) -> _Setup:
        steps, n = _whole("steps", steps, 0), _whole("n", n, 1)
        lam = _vector("spectrum", spectrum, None)
        start, star = _vector("x0", x0, len(lam)), _vector("x_star", x_star, len(lam))
        noise = float(_vector("sigma2", sigma2, 1)[0])
        if noise < 0:
            raise UsageError(f"sigma2 must be at least 0, not {sigma2!r}.")
        u = np.zeros((n, len(lam))) if offsets is None else np.asarray(offsets, dtype=float)
        if u.shape != (n, len(lam)) or not np.all(np.isfinite(u)):
            raise UsageError(f"offsets must be finite of shape ({n}, {len(lam)}), not {u.shape}.")
        if np.any(np.abs(u.mean(axis=0)) > 1e-9 * (1 + np.abs(u).max())):
            raise UsageError("offsets must have mean 0 over the workers: they are the gradients at the minimiser.")
        for name, value in zip(read.hyper._fields, read.hyper, strict=True):
            if isinstance(value, sp.Basic) and not value.is_number:
                raise UsageError(f"moments needs a number for {name} of {read.method.name}, not {value}.")
        if isinstance(read.share, sp.Basic) and not read.share.is_number:
            raise UsageError(f"moments needs a number for the compressor, not {read.share}.")
        mixing, weights, copies = _channels(n, u, W)
        return _Setup(steps, lam, start, star, noise, n, mixing, weights, copies)


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise UsageError(f"{name} must be a whole number of at least {least}, not {value!r}.")
    return int(value)


def _vector(name: str, value: Any, d: int | None) -> np.ndarray:
    try:
        made = np.atleast_1d(np.asarray(value, dtype=float))
    except (TypeError, ValueError):
        raise UsageError(f"{name} must be numbers, not {value!r}.") from None
    if made.size == 1 and d is not None:
        made = np.full(d, made.item())
    if made.ndim != 1 or made.size == 0 or (d is not None and made.size != d) or not np.all(np.isfinite(made)):
        raise UsageError(f"{name} must be {'a vector' if d is None else d} of finite numbers, not {np.shape(value)} {str(value)[:40]}.")
    return made


def _channels(n: int, u: np.ndarray, W: Any) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """Deviations grouped into channels: one for all without mixing, else one for each eigenvector of W other than the mean."""
    if W is None:
        return None, np.sum(u**2, axis=0)[None, :], np.array([n - 1.0])
    W = np.asarray(W, dtype=float)
    if W.shape != (n, n) or not np.allclose(W, W.T, atol=1e-12) or not np.allclose(W.sum(axis=1), 1, atol=1e-12):
        raise UsageError(f"W must be symmetric with rows of sum 1 and of shape ({n}, {n}).")
    if n == 1:
        return np.zeros(1), np.zeros((1, u.shape[1])), np.zeros(1)
    values, vectors = np.linalg.eigh(W - np.full((n, n), 1 / n) * 3)  # the mean goes to -2, below all others
    return values[1:], (vectors[:, 1:].T @ u) ** 2, np.ones(n - 1)


class _Moments:
    """First and second moments of one part on all modes and channels; the constant is the last coordinate."""

    part = "mean"

    def __init__(self, read: Quadratic, setup: _Setup) -> None:
        self.read, self.setup = read, setup
        self.hyper = type(read.hyper)(*(float(v) if isinstance(v, sp.Basic) else v for v in read.hyper))
        self.names = read.coordinates if self.part == "mean" else read.deviations
        self.cache: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.moving = any(callable(v) or isinstance(v, list) for v in read.hyper)
        self.first = self.start()  # (channels, d, p+1)
        self.cov = np.zeros((*self.first.shape, self.first.shape[-1]))  # of unit noise
        self.total = np.zeros_like(self.first)  # of the sum of the states so far
        self.total_cov, self.cross = np.zeros_like(self.cov), np.zeros_like(self.cov)  # of the sum; of the sum with the state

    @property
    def mixing(self) -> Any:
        return 1.0

    def start(self) -> np.ndarray:
        raise NotImplementedError

    def matrices(self, t: int) -> tuple[np.ndarray, np.ndarray]:
        """(A with the constant as last coordinate, B B'), each (channels, d, p+1, p+1)."""
        key = t if self.moving else t % self.read.period
        if key not in self.cache:
            if self.moving:
                self.cache.clear()
            values, calls = self.read._step(t, self.setup.spectrum[None, :], float(self.read.share), self.mixing, self.hyper)
            A, b, B = self.read._rows(values, calls, self.part)
            shape, p = self.first.shape[:2], len(self.names)
            full = np.zeros((*shape, p + 1, p + 1 + calls))
            for i in range(p):
                for j, entry in enumerate((*A[i], *b[i], *B[i])):
                    full[:, :, i, j] = np.asarray(entry, dtype=float)
            full[:, :, p, p] = 1
            noise = full[:, :, :, p + 1 :]
            self.cache[key] = full[:, :, :, : p + 1], noise @ np.swapaxes(noise, -1, -2)
        return self.cache[key]

    def step(self, t: int) -> None:
        A, Q = self.matrices(t)
        self.total += self.first
        self.total_cov += self.cross + np.swapaxes(self.cross, -1, -2) + self.cov
        self.cross = (self.cross + self.cov) @ np.swapaxes(A, -1, -2)
        self.first = np.einsum("cdij,cdj->cdi", A, self.first)
        self.cov = A @ self.cov @ np.swapaxes(A, -1, -2) + Q

    def average(self, steps: int) -> _Moments:
        """The moments of the average of the states at steps 0..T-1 (at T = 0: of the start)."""
        made = copy.copy(self)
        if steps:
            made.first, made.cov = self.total / steps, self.total_cov / steps**2
        return made

    def settle(self) -> bool:
        """Go to the limit of the ends of rounds; False where there is none."""
        for c, d in np.ndindex(*self.first.shape[:2]):
            A, Q = np.eye(self.first.shape[-1]), np.zeros(self.cov.shape[-2:])
            for t in range(self.read.period):
                step, noise = (m[c, d] for m in self.matrices(t))
                A, Q = step @ A, step @ Q @ step.T + noise
            inner, p = A[:-1, :-1], len(self.names)
            if p and np.max(np.abs(np.linalg.eigvals(inner))) >= 1 - MARGINAL:
                return False
            self.first[c, d, :-1] = np.linalg.solve(np.eye(p) - inner, A[:-1, -1] * self.first[c, d, -1])
            if p:
                from scipy.linalg import solve_discrete_lyapunov

                self.cov[c, d, :-1, :-1] = solve_discrete_lyapunov(inner, Q[:-1, :-1])
        return True

    def weigh(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the squared first moments and of the unit covariance, (channels, d)."""
        raise NotImplementedError

    def expect(self, terms: Sequence[tuple[Any, np.ndarray]]) -> float:
        """``sum weight*E(row . z)^2``; rows of shape (d, p+1)."""
        of_first, of_cov = self.weigh()
        total = 0.0
        for weight, row in terms:
            square = of_first * np.einsum("di,cdi->cd", row, self.first) ** 2
            square = square + of_cov * np.einsum("di,cdij,dj->cd", row, self.cov, row)
            total += float(np.sum(np.broadcast_to(weight, square.shape) * square))
        return total


class _MeanMoments(_Moments):
    part = "mean"

    def start(self) -> np.ndarray:
        made = np.zeros((1, len(self.setup.spectrum), len(self.names) + 1))
        for field_ in self.read.method.start:
            for name in self.read._names(field_):
                made[0, :, self.names.index(name)] = self.setup.x0
        made[0, :, -1] = self.setup.x_star
        return made

    def weigh(self) -> tuple[np.ndarray, np.ndarray]:
        one = np.ones((1, len(self.setup.spectrum)))
        return one, one * self.setup.sigma2 / (len(self.setup.spectrum) * self.setup.n)


class _DevMoments(_Moments):
    part = "dev"

    @property
    def mixing(self) -> Any:
        return 1.0 if self.setup.mixing is None else self.setup.mixing[:, None]

    def start(self) -> np.ndarray:
        made = np.zeros((*self.setup.weights.shape, len(self.names) + 1))
        made[:, :, -1] = 1
        return made

    def weigh(self) -> tuple[np.ndarray, np.ndarray]:
        d, n = len(self.setup.spectrum), self.setup.n
        return self.setup.weights / n, np.broadcast_to(
            self.setup.copies[:, None] * self.setup.sigma2 / (d * n), (len(self.setup.copies), d)
        )


def _expect(parts: tuple[_Moments, _Moments], terms: tuple[list[Any], list[Any]]) -> float:
    value = sum(part.expect(own) for part, own in zip(parts, terms, strict=True))
    return math.inf if math.isnan(value) else value  # only the difference of two infinities gives nan here


def _chosen(measures: Any, read: Quadratic, setup: _Setup) -> dict[str, tuple[list[Any], list[Any]]]:
    """Every measure as weighted rows on the means and on the deviations."""
    words = check_kinds(read.method, _with_numbers(read.hyper))
    if "gossip" in words and setup.mixing is None and setup.n > 1:
        raise UsageError(f"moments of {read.method.name} with n > 1 need the mixing matrix W.")
    given = measures
    found: dict[str, tuple[list[Any], list[Any]]] = {}
    by_name: dict[str, Any] = {}
    for one in MEASURES if given is None else given:
        measure = get_measure(one)
        try:
            made = measure(read._state(), MeasureWorld(lam=setup.spectrum, noisy=False), read.hyper)
        except (AttributeError, TypeError):
            if given is None:
                continue  # the state has no such field, or it is shared
            raise Unsupported(
                f"exact moments of {getattr(measure, '__name__', measure)!r}: the state of {read.method.name} does not have what it reads."
            ) from None
        if not isinstance(made, Energy):
            raise Unsupported("exact moments need a measure that is a sum of squares of linear forms.")
        name = getattr(measure, "__name__", str(one))
        if by_name.get(name, measure) is not measure:
            raise UsageError(f"two measures are called {name!r}; give them names of their own.")
        by_name[name], found[name] = measure, _on_rows(made, read, setup)
    return found


def _on_rows(made: Energy, read: Quadratic, setup: _Setup) -> tuple[list[Any], list[Any]]:
    d = len(setup.spectrum)

    def row(coefficients: dict[str, Any], names: tuple[str, ...], constant: str) -> np.ndarray:
        return np.stack([np.broadcast_to(np.asarray(coefficients.get(k, 0.0), dtype=float), (d,)) for k in (*names, constant)], axis=1)

    on_means = [(w, row(f.mean, read.coordinates, STAR)) for w, f in made.terms]
    on_devs = [(w, row(f.dev, read.deviations, OFFSET)) for w, f in made.terms if f.dev]
    return on_means, on_devs


@dataclass(frozen=True)
class Moments:
    """Expectations of measures along the steps.

    Attributes
    ----------
    steps : (T+1,) step numbers.
    values : per measure (T+1,), ``E measure`` at each step.
    at_average : per measure, ``E measure`` at the average state over steps 0..T-1 (at T = 0: at the start).
    settings : what was computed.
    """

    steps: np.ndarray
    values: dict[str, np.ndarray]
    at_average: dict[str, float] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def means(self) -> dict[str, float]:
        """Means over steps 0..T-1 (at T = 0: the start)."""
        return {k: float(np.mean(v[:-1] if len(v) > 1 else v)) for k, v in self.values.items()}

    def to_json(self) -> dict[str, Any]:
        """Plain numbers and lists."""
        return {
            **self.settings,
            "values": {k: v.tolist() for k, v in self.values.items()},
            "means": self.means,
            "at_average": self.at_average,
        }

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(k)}</th>" for k in self.values)
        last = "".join(f"<td>{v[-1]:.6g}</td>" for v in self.values.values())
        mean = "".join(f"<td>{v:.6g}</td>" for v in self.means.values())
        caption = html.escape(f"exact moments of {self.settings.get('method', '')}")
        return (
            f"<table><caption>{caption}</caption><tr><th></th>{head}</tr><tr><th>last</th>{last}</tr><tr><th>mean</th>{mean}</tr></table>"
        )
