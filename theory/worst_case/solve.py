"""Exact worst cases of a method over a class of problems: :func:`worst_case`."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from verify_rates.solvers.kinds import check_kinds
from verify_rates.solvers.measures import get_measure
from verify_rates.solvers.method import Method, UsageError, get_method, nearest
from verify_rates.theory.worst_case.algebra import Form, exact
from verify_rates.theory.worst_case.assemble import assemble
from verify_rates.theory.worst_case.backends import version
from verify_rates.theory.worst_case.bounds import SINGULAR, grams
from verify_rates.theory.worst_case.grouped import told, with_groups
from verify_rates.theory.worst_case.growth import grows
from verify_rates.theory.worst_case.inputs import CONSTANTS, exact_hypers, kept_apart, setting_of, whole, with_chance
from verify_rates.theory.worst_case.instance import record
from verify_rates.theory.worst_case.interior import best_run, interior_point
from verify_rates.theory.worst_case.low_rank import low_rank as thinned
from verify_rates.theory.worst_case.noise import world_of
from verify_rates.theory.worst_case.refine import SHARPER as SHARP
from verify_rates.theory.worst_case.refine import WIDE, Solved, refined
from verify_rates.theory.worst_case.result import WorstCase
from verify_rates.theory.worst_case.world import PepWorld, Setting, at_exact, branches, field_units, taken

TAKES = ("last", "best", "best_after", "mean", "average_iterate")
STARTS = ("standard", "free")


class Fall(NamedTuple):
    """An initial condition: by how much a measure falls from the first state to the last (``initial=Fall("function_gap")``)."""

    measure: str | Callable[..., Any]


def worst_case(
    method: str | Method,
    hyper: dict[str, Any],
    *,
    steps: int,
    functions: str | dict[str, Any] = "smooth_strongly_convex",
    L: Any = 1.0,
    mu: Any = 0.0,
    n: int | str = "any",
    compressor: Any = None,
    d: int | None = None,
    mixing: Any = None,
    zeta2_star: Any = 0.0,
    initial: Any = "distance",
    initial_value: Any = 1.0,
    measure: str | Callable[..., Any] = "function_gap",
    take: str = "last",
    start: str = "standard",
    solver: str = "CLARABEL",
    objective: Sequence[str] | None = None,
    sigma2: Any = 0.0,
    sampled: int | None = None,
    apart: bool = False,
    low_rank: bool = False,
    groups: Sequence[dict[str, Any]] | None = None,
) -> WorstCase:
    """The largest value of a measure after ``steps`` steps, over all problems of a class, dimensions, starts and compressors.

    Solves the performance-estimation problem that the method's own step function defines.  Every worker has its own function of the
    class, ``f`` is their average, and ``x*`` minimises ``f``.

    Guarantee
    ---------
    ``upper`` is never below the worst case and ``lower`` is reached by ``instance`` (see :class:`WorstCase` for what ``rigorous``
    covers).  Exact for one and for any number of exchangeable workers; an upper bound, and called so, for gossip with more than one
    eigenvalue and for gaps of nonconvex averages.  Contractive compressors that are random are covered in expectation (with
    ``take="best"`` too: the minimum of expectations).  Unbiased compressors, noise and sampling are read for one step, in expectation
    over workers that draw independently (:mod:`~verify_rates.theory.worst_case.noise`); exact too.

    Parameters
    ----------
    method, hyper : a method or its name, and its hyper-parameters; fractions and SymPy rationals stay exact.
    steps : number of steps N, at least 1.
    functions, L, mu : the class and its constants: "smooth_strongly_convex" (mu may be 0), "smooth", "convex", "strongly_convex",
        "smooth_lojasiewicz" (gradients dominate gaps with mu), "convex_lipschitz" (L
        bounds gradients), "convex_quadratic_growth", "secant_error_bound" (RSI with mu, EB with L), and the operators "monotone",
        "cocoercive" and "nonexpansive_residual" (``grad(x) = x - A x``; A is (1-mu)-contractive); all are listed by
        :func:`~verify_rates.theory.worst_case.classes.class_names`.  Or several functions by name, the workers' own first:
        ``{"f": "smooth_strongly_convex", "h": "convex"}``, where a class may come with its own constants, ``(class, L, mu)``.
    n : "any" (every n >= 2 at once), 1, or a number.
    compressor : ``{"delta": ...}``, ``{"Delta2": ...}``, ``{"omega": ...}`` (unbiased, ``E||C(v)-v||^2 <= omega ||v||^2``), or a
        compressor or its name: then its class in dimension ``d``, which is only more than that compressor can do.
    mixing : a bound lam on the absolute eigenvalues on deviations, a pair (lmin, lmax), or a topology or its name (with n workers): an
        upper bound over all matrices with such a spectrum; or the matrix itself, n by n, which is taken exactly.
    zeta2_star : ``mean_i ||grad f_i(x*)||^2`` at most; 0: a common minimiser; None: arbitrary.
    initial, initial_value : a measure of the first state that is at most ``initial_value``; "gap_to_last" for ``f(x_0) - f(x_N)``
        (:class:`Fall` of any other measure);
        "none" where the class bounds everything; or a list of ``(measure, value)``, or ``(measure, "==", 0)`` for one that vanishes.
    measure : a name or ``measure(s, w, h)``, linear in gaps and squared norms.
    take : "last" (N), "best" (minimum over 0..N), "best_after" (over 1..N), "mean" (over 0..N-1), "average_iterate" (measure at the
        average of 0..N-1).
    start : "standard" (as a run starts) or "free" (every field of the state arbitrary).
    solver : "CLARABEL", or "cvxpy:NAME".
    objective : names of the functions of which x* minimises the sum (all of them, unless given).
    sigma2 : ``E||noise||^2`` of every worker's gradient in the step, at most; measures read exact gradients.
    sampled : so many of the workers take part in the step, drawn without replacement: ``mean`` is the average over these (1: a finite
        sum, of which one function is drawn).
    low_rank : look for an instance in few dimensions (:attr:`Instance.dimension`), which gives up at most 1e-6 of the lower end.
    groups : kinds of workers, instead of n, L, mu and the compressor: ``[{"n": 3, "L": 1, "mu": 0.1, "delta": 0.5}, {"n": 5, "L": 2}]``,
        each kind exchangeable; the size depends on the number of kinds alone.
    apart : keep n workers apart, as n functions with their own vectors: the size grows with n, and a topology's own matrix is taken.

    Errors
    ------
    UsageError on bad input; Unsupported where a word or a measure has no quadratic description.

    Example
    -------
    >>> found = worst_case("gd", {"gamma": 1.0}, steps=2, L=1.0, n=1)
    >>> abs(found.upper - 1 / 10) < 1e-7, found.exact, found.rigorous
    (True, True, True)

    Four workers with unbiased compressors, one step: ``1 - 2 gamma mu + (1 + omega/n) (gamma mu)^2``.

    >>> found = worst_case("cgd", {"gamma": 0.2}, steps=1, mu=0.5, n=4, compressor={"omega": 4}, measure="distance")
    >>> abs(found.upper - (1 - 2 * 0.1 + 2 * 0.01)) < 1e-7, found.exact, found.rigorous
    (True, True, True)
    """
    began = time.perf_counter()
    method = get_method(method)
    values = exact_hypers(method, hyper)
    setting = setting_of(functions, L, mu, n, compressor, d, mixing, zeta2_star, objective, random=True)
    setting = with_groups(kept_apart(with_chance(setting, method, sigma2, sampled), mixing, apart), groups)
    steps = whole(steps, "steps", 1)
    for what, value, known in (("take", take, TAKES), ("start", start, STARTS)):
        if value not in known:
            raise nearest(str(value), known, what)
    measure_function = get_measure(measure)
    check_kinds(method, method.hypers(**hyper))
    asked = (method, values, setting, steps, start, measure_function, take, initial, initial_value)
    world, first, aim = _collected(*asked)
    statement = _statement(method, values, steps, setting, initial, initial_value, measure, take, start)
    if not world.form_size(aim):
        return _constant(float(aim.const), statement, solver, time.perf_counter() - began)
    conic, builder = assemble(world, aim)
    common: dict[str, Any] = {
        "exact": not world.relaxed,
        "why": world.relaxed or _reason(setting, world),
        "solver": solver,
        "solver_version": version(solver),
        "size": {"gram": list(conic.orders), "inequalities": conic.A.shape[0], "points": sum(len(p.points) for p in world.parts.values())},
        "statement": statement,
    }
    on_a_line = world.linear and world.plain and setting.functions.linear == "symmetric"
    found = refined(conic, interior_point(world, conic, builder), solver, best_run(world, conic, builder) if on_a_line else None)
    thin = thinned(conic, found.z, found.low) if low_rank and found.raw.ok else None
    found = found if thin is None else dataclasses.replace(found, low=thin[0], z=thin[1])
    conic, raw, top, low = found.conic, found.raw, found.top, found.low
    if not raw.ok:
        return _without_value(raw, conic, common, time.perf_counter() - began)
    high, reached = (conic.offset + conic.unit * end.value for end in (top, low))
    verified = top.verified and (low.verified or bool(world.relaxed))
    recorded: Any = world, conic, builder, found.z, first
    if world.searches:
        (reached, ok), recorded = _searched(world, builder, found, asked, solver)
        met = ok and high - reached <= WIDE * abs(high)
        common |= {"exact": met, "why": f"{_reason(setting, world)}; {SEARCHED}" if met else world.relaxed}
        verified, world.relaxed = top.verified and ok, "" if ok else world.relaxed
    if not verified and high < reached - WIDE * abs(reached):
        failed = dataclasses.replace(raw, status="failed", message=f"{raw.message}, but its ends contradict each other")
        return _without_value(failed, conic, common, time.perf_counter() - began)
    instance = None
    if not (world.relaxed or world.flat or setting.apart or setting.groups):
        callables = {"measure": measure if callable(measure) else None, "initial": None if isinstance(initial, str) else initial}
        instance = record(recorded, statement, reached, **callables)
    duals = found.lam / conic.scales * conic.unit / conic.radius2
    return WorstCase(
        lower=-math.inf if world.relaxed else reached,
        upper=high,
        rigorous=verified,
        status="solved" if verified else raw.status,
        message=raw.message,
        gap=high - reached,
        seconds=time.perf_counter() - began,
        multipliers=dict(zip(conic.names, duals.tolist(), strict=True)),
        instance=instance,
        **common,
    )


def _collected(
    method: Method,
    values: Any,
    setting: Setting,
    steps: int,
    start: str,
    measure: Any,
    take: str,
    initial: Any,
    limit: Any,
    coefficients: Any = None,
    rescaled_already: bool = False,
) -> tuple[PepWorld, Any, Form]:
    """Run the step function on symbols: the world with all constraints, the first state, the objective.

    A minimiser that nothing speaks of is left out in a second run: it would only leave directions of the problem unbounded.
    """
    free = start == "free"
    free_of_minimiser = (True, False) if setting.functions.at_minimiser is None else (True,)
    for centred in free_of_minimiser if setting.minimiser else (False,):
        world = world_of(setting, centred=centred, coefficients=coefficients)
        units = field_units(method, values, setting, steps, world_of) if free else {}
        first = world.free_start(method, values, units) if free else world.start(method, values)
        with _fields_named(method):
            objective, states = _objective(method, values, world, first, steps, measure, take)
            conditions = initial_values(initial, limit, states, world, values)
            vanishing = initial_equalities(initial, states, world, values)
        if not any(part.setting.functions.takes_L for part in world.parts.values()) and not rescaled_already:
            setting = _with_slopes(setting, world.slopes)
            return _collected(method, values, setting, steps, start, measure, take, initial, limit, coefficients, True)
        if world.needs_minimiser or not setting.minimiser:
            break
    for k, (value, bound) in enumerate(conditions):
        if not isinstance(value, Form):
            raise UsageError("an initial condition must be a measure of the state.")
        if world.settled(value) is not value and any(key < 0 for key in value.f):
            world.refuse("gap", "at a random point it is read in measures, not in conditions")
        world.constraints.append((f"initial {k}", value - bound))
    world.equalities += [(f"initial equality {k}", form) for k, form in enumerate(vanishing)]
    world.finish(objective)
    return world, first, objective


def _with_slopes(setting: Setting, slopes: dict[str, Fraction]) -> Setting:
    """The same, where gradients of functions without an L have the given sizes as units."""

    def unit(name: str, L: Fraction, mu: Fraction) -> Fraction:
        return max(slopes.get(name, L), mu)

    others = tuple((name, cls, unit(name, L, mu), mu) for name, cls, L, mu in setting.others)
    return dataclasses.replace(setting, L=unit(setting.name, setting.L, setting.mu), others=others)


SEARCHED = "the searches' own coefficients reach the bound that their orthogonality gives"


def _searched(world: PepWorld, builder: Any, found: Solved, asked: tuple[Any, ...], solver: str) -> tuple[tuple[float, bool], Any]:
    """A value that is reached and whether it is verified, where every search makes the move of the relaxed instance that lies along its
    directions; and what to record of it."""
    G, coefficients = grams(found.conic, found.z)[0], []
    for move, directions in world.searches:
        U = builder.coordinates([move, *directions])[0]
        products = U @ G @ U.T
        lengths = np.sqrt(np.diag(products).clip(1e-300))[1:]
        shares = np.linalg.lstsq(products[1:, 1:] / np.outer(lengths, lengths), products[1:, 0] / lengths, rcond=SINGULAR)[0] / lengths
        coefficients.append(tuple(exact(float(c)) for c in shares))
    found_moves: tuple[Any, ...] = (*asked, tuple(coefficients))
    made, first, aim = _collected(*found_moves)
    conic, builder = assemble(made, aim)
    again = refined(conic, interior_point(made, conic, builder), solver)
    value = conic.offset + conic.unit * again.low.value, again.raw.ok and again.low.verified
    return value, (made, conic, builder, again.z, first)


def _constant(value: float, statement: dict[str, Any], solver: str, seconds: float) -> WorstCase:
    """Where the measure does not depend on the instance, as after a step that ends at x*; the instance at rest meets all assumptions."""
    return WorstCase(
        lower=value,
        upper=value,
        rigorous=True,
        exact=True,
        why="the measure is the same of every instance",
        status="solved",
        gap=0.0,
        solver=solver,
        solver_version=version(solver),
        seconds=seconds,
        size={"gram": [0, 0], "inequalities": 0, "points": 0},
        statement=statement,
        message="nothing had to be solved",
    )


def _without_value(raw: Any, conic: Any, common: dict[str, Any], seconds: float) -> WorstCase:
    if raw.status == "failed" and grows(conic, SHARP, common["solver"]):
        raw = dataclasses.replace(raw, status="uncontrolled")
    sentence = {
        "uncontrolled": "no finite worst case: the measure grows with the size of an instance, which no initial condition bounds.",
        "unbounded": "no finite worst case: the initial condition does not control the measure in this class.",
        "infeasible": "no instance satisfies the assumptions, so there is nothing to maximise over.",
    }.get(raw.status, f"the solver failed ({raw.message}); try another one, for example solver='cvxpy:SCS'.")
    return WorstCase(
        lower=-math.inf, upper=math.inf, rigorous=False, status=raw.status, gap=math.inf, seconds=seconds, message=sentence, **common
    )


def _objective(method: Method, values: Any, world: PepWorld, first: Any, steps: int, measure: Any, take: str) -> tuple[Form, list[Any]]:
    """The measure as a form, weighted over the branches of shared coins, and the states of the last branch."""

    def least(forms: list[Any]) -> Form:
        forms = [world.settled(f) for f in forms]
        low = world.scalar(max(world.form_size(f) for f in forms))
        world.constraints.extend((f"best {t}", low - f) for t, f in enumerate(forms))
        return low

    total = Form()
    for weight, states in branches(method, values, world, first, steps):
        value = taken(take, measure, states, world, values, least)
        if not isinstance(value, Form):
            raise UsageError(f"the measure returned {type(value).__name__}; it must be made of gap, sqnorm and numbers.")
        total = total + weight * world.settled(value)
    return total, states


@contextlib.contextmanager
def _fields_named(method: Method) -> Iterator[None]:
    """A measure that asks for a field which the method lacks is bad input."""
    try:
        yield
    except AttributeError as error:
        if not isinstance(error.obj, method.state):
            raise
        raise UsageError(f"{method.name} has no field {error.name!r}; its fields are {', '.join(method.state._fields)}.") from None


def initial_values(initial: Any, limit: Any, states: list[Any], world: Any, hyper: Any) -> list[tuple[Any, Any]]:
    """Every initial condition as (value, limit)."""
    if initial == "none":
        return []
    if isinstance(initial, (list, tuple)) and not isinstance(initial, Fall):
        if not initial:
            raise UsageError("an empty list of initial conditions bounds nothing; name at least one.")
        pairs = [item if isinstance(item, (list, tuple)) else (item, limit) for item in initial if not _is_equality(item)]
        return [end for name, value in pairs for end in initial_values(name, value, states, world, hyper)]
    number = exact(limit)
    if number <= 0:
        raise UsageError(f"the value of an initial condition must be positive, not {limit!r}.")
    limit = number if isinstance(world, PepWorld) else float(number)
    if initial == "gap_to_last":
        initial = Fall("function_gap")
    if isinstance(initial, Fall):
        measure = get_measure(initial.measure)
        return [(measure(states[0], world, at_exact(hyper, 0)) - measure(states[-1], world, at_exact(hyper, 0)), limit)]
    return [(get_measure(initial)(states[0], world, at_exact(hyper, 0)), limit)]


def _is_equality(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 3


def initial_equalities(initial: Any, states: list[Any], world: Any, hyper: Any) -> list[Form]:
    """The measures of the first state that are said to vanish."""
    found = []
    several = isinstance(initial, (list, tuple)) and not isinstance(initial, Fall)
    for measure, relation, value in filter(_is_equality, initial if several else ()):
        if relation != "==" or exact(value) != 0:
            raise UsageError("an initial equality is written (measure, '==', 0).")
        found.append(get_measure(measure)(states[0], world, at_exact(hyper, 0)))
    return found


def statement_of(
    method: str | Method,
    hyper: dict[str, Any],
    *,
    steps: int,
    functions: str,
    L: Any,
    mu: Any,
    n: int | str,
    compressor: Any,
    zeta2_star: Any,
    initial: Any,
    measure: Any,
    take: str,
    start: str,
) -> dict[str, Any]:
    """The problem that :func:`worst_case` solves for these arguments as plain data, as an :class:`Instance` has it; nothing is solved."""
    method, setting = get_method(method), setting_of(functions, L, mu, n, compressor, None, None, zeta2_star)
    return _statement(method, exact_hypers(method, hyper), steps, setting, initial, 1.0, measure, take, start)


def _statement(
    method: Method, hyper: Any, steps: int, setting: Setting, initial: Any, value: Any, measure: Any, take: str, start: str
) -> dict[str, Any]:
    compressor = {k: float(getattr(setting, k)) for k in CONSTANTS if getattr(setting, k) is not None}
    chance = ({"sigma2": float(setting.sigma2)} if setting.sigma2 else {}) | ({"sampled": setting.sampled} if setting.sampled else {})
    return {
        "method": method.name,
        "hyper": {k: _plain([v(t) for t in range(steps)] if callable(v) else v) for k, v in hyper._asdict().items()},
        "steps": steps,
        "functions": _functions_told(setting),
        "L": float(setting.L),
        "mu": float(setting.mu),
        "n": "any" if setting.n is None else setting.n,
        "compressor": compressor or None,
        "mixing": _plain(setting.W or setting.mixing),
        "zeta2_star": None if setting.zeta2_star is None else float(setting.zeta2_star),
        "initial": _plain(initial),
        "initial_value": float(value),
        "measure": _plain(measure),
        "take": take,
        "start": start,
        **chance,
        **told(setting),
    }


def _functions_told(setting: Setting) -> Any:
    """The class, or every function's name, class and constants."""
    if not setting.others:
        return setting.functions.name
    own = (setting.name, setting.functions, setting.L, setting.mu)
    told = {
        name: {"class": cls.name} | {k: float(v) for k, v in (("L", L), ("mu", mu)) if getattr(cls, f"takes_{k}")}
        for name, cls, L, mu in (own, *setting.others)
    }
    return told | {"objective": list(setting.objective)}


def _plain(value: Any) -> Any:
    if isinstance(value, Fall):
        return f"{_plain(value.measure)} falls"
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if callable(value):
        return getattr(value, "__name__", "callable")
    if isinstance(value, (str, int)):
        return value
    return None if value is None else float(value)


def _reason(setting: Setting, world: PepWorld) -> str:
    if setting.groups:
        sizes = " and ".join(str(g.n) for g in setting.groups)
        return f"groups of {sizes} exchangeable workers; conditions necessary and sufficient by {setting.functions.source}"
    if setting.apart:
        return f"n = {setting.n} workers kept apart; conditions necessary and sufficient by {setting.functions.source}"
    if len(world.parts) > 1:
        sources = dict.fromkeys(part.setting.functions.source for part in world.parts.values())
        return f"conditions necessary and sufficient by {', '.join(sources)}"
    chance = setting.omega is not None or setting.sigma2
    count = f"n = {setting.n}, in expectation over independent draws" if chance else "every n >= 2"
    count += f", over the {setting.sampled} drawn" if setting.sampled else ""
    workers = "one worker" if setting.n == 1 else f"exchangeable workers with their own functions, {count}"
    return f"{workers}; conditions necessary and sufficient by {setting.functions.source}"
