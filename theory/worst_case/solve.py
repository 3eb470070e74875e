"""Exact worst cases of a method over a class of problems: :func:`worst_case`."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from verify_rates.solvers.kinds import check_kinds
from verify_rates.solvers.measures import get_measure
from verify_rates.solvers.method import Method, UsageError, get_method, nearest
from verify_rates.solvers.words import Kind, Unsupported
from verify_rates.theory.worst_case.algebra import Form, exact, is_fraction
from verify_rates.theory.worst_case.apart import exact_matrix
from verify_rates.theory.worst_case.assemble import Conic, assemble, rescaled, triangle, turned
from verify_rates.theory.worst_case.backends import Raw, solve_conic, version
from verify_rates.theory.worst_case.bounds import SINGULAR, Bound, Dual, blended, grams, lower, upper
from verify_rates.theory.worst_case.classes import FunctionClass, get_class
from verify_rates.theory.worst_case.facial import relaxations
from verify_rates.theory.worst_case.instance import record
from verify_rates.theory.worst_case.interior import best_run, interior_point
from verify_rates.theory.worst_case.noise import world_of
from verify_rates.theory.worst_case.result import WorstCase
from verify_rates.theory.worst_case.working_set import solve_few
from verify_rates.theory.worst_case.world import PepWorld, Setting, at_exact, branches, field_units, taken

TAKES = ("last", "best", "best_after", "mean", "average_iterate")
STARTS = ("standard", "free")
CONSTANTS = ("delta", "Delta2", "omega")  # of a compressor's class
# Least eigenvalues asked of the slack matrices (see backends), in normalised units: the first covers what a good solve leaves and is not
# seen at the accuracy that callers need (1e-6 relative), nor is the second, asked where that left too much; multipliers of the third
# repair those of the first by a blend.
SHARP, FIRM, SAFE = 1e-11, 1e-10, 1e-7
# Largest trace of the Gram matrices, times their order, where vectors are asked to be short; a solution needs no more than about 1.
LONGEST = 4.0
# Ends further apart than this, relatively, are not good enough to stop at.
WIDE = 1e-6
# In problems too large for that, ends this close do: a solve of all inequalities leaves as much.
ENOUGH = 5e-6
# Up to this order of the Gram matrices a second solve is worth its digits.
LIGHT = 32
# Units are not taken smaller than this from a solution: what is zero there has no unit.
SMALLEST_UNIT = 1e-4


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
    setting = _kept_apart(_with_chance(setting, method, sigma2, sampled), mixing, apart)
    steps = _whole(steps, "steps", 1)
    for what, value, known in (("take", take, TAKES), ("start", start, STARTS)):
        if value not in known:
            raise nearest(str(value), known, what)
    measure_function = get_measure(measure)
    check_kinds(method, method.hypers(**hyper))
    asked = (method, values, setting, steps, start, measure_function, take, initial, initial_value)
    world, first, aim = _collected(*asked)
    conic, builder = assemble(world, aim)
    statement = _statement(method, values, steps, setting, initial, initial_value, measure, take, start)
    common: dict[str, Any] = {
        "exact": not world.relaxed,
        "why": world.relaxed or _reason(setting, world),
        "solver": solver,
        "solver_version": version(solver),
        "size": {"gram": list(conic.orders), "inequalities": conic.A.shape[0], "points": sum(len(p.points) for p in world.parts.values())},
        "statement": statement,
    }
    best = _best(conic, interior_point(world, conic, builder), solver)
    if best.raw.ok and world.linear and world.plain and setting.functions.linear == "symmetric":
        run_low, z = best_run(world, conic, builder)
        best = best.with_better_ends_of(dataclasses.replace(best, low=run_low, z=z))
    conic, raw, top, low = best.conic, best.raw, best.top, best.low
    if not raw.ok:
        return _without_value(raw, common, time.perf_counter() - began)
    high, reached = (conic.offset + conic.unit * end.value for end in (top, low))
    verified = top.verified and (low.verified or bool(world.relaxed))
    if world.searches:
        reached, ok = _searched(world, builder, best, asked, solver)
        met = ok and high - reached <= WIDE * abs(high)
        common |= {"exact": met, "why": f"{_reason(setting, world)}; {SEARCHED}" if met else world.relaxed}
        verified, world.relaxed = top.verified and ok, "" if ok else world.relaxed
    if not verified and high < reached - WIDE * abs(reached):
        failed = dataclasses.replace(raw, status="failed", message=f"{raw.message}, but its ends contradict each other")
        return _without_value(failed, common, time.perf_counter() - began)
    instance = None
    if not world.relaxed and world.plain and not (world.linear or any(n.startswith("initial") for n, _ in world.equalities)):
        callables = {"measure": measure if callable(measure) else None, "initial": None if isinstance(initial, str) else initial}
        instance = record(world, conic, builder, best.z, first, statement, reached, **callables)
    duals = best.lam / conic.scales * conic.unit / conic.radius2
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


Solve = Callable[[Conic, float], Raw]


@dataclass(frozen=True)
class Solved:
    """One solve and its two ends."""

    conic: Conic
    raw: Raw
    top: Bound
    low: Bound
    lam: np.ndarray
    z: np.ndarray

    @property
    def verified(self) -> bool:
        return self.top.verified and self.low.verified

    @property
    def apart(self) -> float:
        """Distance of the ends, relatively."""
        return (self.top.value - self.low.value) / max(abs(self.top.value), 1e-300)

    @property
    def known(self) -> float:
        """The upper end, where it is verified."""
        return self.top.value if self.top.verified else math.inf

    @property
    def wide(self) -> bool:
        return self.raw.ok and (self.apart > WIDE or not self.verified)

    def with_better_ends_of(self, other: Solved) -> Solved:
        """Each end from the solve in which it is better; both are of one problem and in one scaling."""
        better = self
        if (not other.top.verified, other.top.value) < (not self.top.verified, self.top.value):
            better = dataclasses.replace(better, top=other.top, lam=other.lam)
        if (not other.low.verified, -other.low.value) < (not self.low.verified, -self.low.value):
            better = dataclasses.replace(better, low=other.low, z=other.z)
        return better


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


def _searched(world: PepWorld, builder: Any, best: Solved, asked: tuple[Any, ...], solver: str) -> tuple[float, bool]:
    """A value that is reached, where every search makes the move of the relaxed instance that lies along its directions."""
    G, coefficients = grams(best.conic, best.z)[0], []
    for move, directions in world.searches:
        U = builder.coordinates([move, *directions])[0]
        products = U @ G @ U.T
        lengths = np.sqrt(np.diag(products).clip(1e-300))[1:]
        found = np.linalg.lstsq(products[1:, 1:] / np.outer(lengths, lengths), products[1:, 0] / lengths, rcond=SINGULAR)[0] / lengths
        coefficients.append(tuple(exact(float(c)) for c in found))
    found_moves: tuple[Any, ...] = (*asked, tuple(coefficients))
    made, _, aim = _collected(*found_moves)
    conic, builder = assemble(made, aim)
    again = _best(conic, interior_point(made, conic, builder), solver)
    return conic.offset + conic.unit * again.low.value, again.raw.ok and again.low.verified


def _best(conic: Conic, inside: np.ndarray, solver: str) -> Solved:
    """Solve and verify; wide ends are tried again in units of the first value, then in those of the first solution too."""
    few = _of_few(conic, inside) if solver == "CLARABEL" else None
    if few is not None and few.verified and few.apart <= (WIDE if sum(conic.orders) <= LIGHT else ENOUGH):
        return few
    first = _attempt(conic, inside, solver)
    if not first.raw.ok and few is None and (reached := float(conic.c @ inside)) > 1:
        told = dataclasses.replace(first, z=inside, top=Bound(reached, False))
        again = _in_units_of(told, 1.0, inside, solver, math.inf)
        first = again if again.top.verified and again.top.value >= reached else first
    found = first if few is None or not first.raw.ok else first.with_better_ends_of(few)
    if found.wide and solver == "CLARABEL" and sum(conic.orders) <= LIGHT:
        again = _attempt(conic, inside, solver, found.known, scaled=False)
        found = found.with_better_ends_of(again) if again.raw.ok else found
    if found.wide and sum(conic.orders) <= LIGHT:
        found = found.with_better_ends_of(_in_basis_of(first, inside, solver))
    for least in (1.0, SMALLEST_UNIT):
        if found.wide and first.top.value > 0 and sum(conic.orders) <= LIGHT:
            found = found.with_better_ends_of(_in_units_of(first, least, inside, solver))
    return found


def _in_basis_of(first: Solved, inside: np.ndarray, solver: str) -> Solved:
    """Another solve in bases in which a point between the solution and the strictly feasible one is the identity: little is then needed to
    make it feasible where equalities leave little room."""
    conic = first.conic
    if not first.raw.ok or min((np.linalg.eigvalsh(M)[0] for M in grams(conic, inside) if M.size), default=0.0) <= 0:
        return first
    closer, turns, rows = turned(conic, first.z + inside)

    def told(z: np.ndarray, turns: list[np.ndarray]) -> np.ndarray:
        matrices = [turn @ G @ turn.T for turn, G in zip(turns, grams(conic, z), strict=True)]
        return np.concatenate([*(M[triangle(len(M))] for M in matrices), z[sum(conic.sizes) :]])

    again = _attempt(closer, told(inside, [np.linalg.inv(turn) for turn in turns]), solver, first.known)
    return dataclasses.replace(again, conic=conic, lam=again.lam / rows, z=told(again.z, turns)) if again.raw.ok else first


def _in_units_of(first: Solved, least: float, inside: np.ndarray, solver: str, most: float = 1.0) -> Solved:
    """Another solve in units of a solution, none below ``least`` or above ``most``, told in the scaling of the first."""
    closer, columns, rows = rescaled(first.conic, first.z, first.top.value, least, most)
    again = _attempt(closer, inside / columns, solver, 1.0 if first.top.verified else math.inf, scaled=False)
    if not again.raw.ok:
        return first
    ratio = closer.unit / first.conic.unit
    top, low = (dataclasses.replace(end, value=end.value * ratio) for end in (again.top, again.low))
    return Solved(first.conic, again.raw, top, low, again.lam * ratio / rows, again.z * columns)


def _of_few(conic: Conic, inside: np.ndarray) -> Solved | None:
    """The solve with few inequalities, where the problem is of that kind; multipliers blended with safer ones where they need it."""
    raw = solve_few(conic, SHARP)
    if raw is None or not raw.ok:
        return None
    low, z = lower(conic, raw, inside)
    dual = upper(conic, raw)
    if not dual.bound.verified:
        safe = solve_few(conic, SAFE)
        mixed = blended(conic, raw.z, dual, upper(conic, safe)) if safe is not None and safe.ok else dual
        dual = mixed if mixed.bound.verified else dual
    return Solved(conic, raw, dual.bound, low, dual.lam, z)


def _attempt(conic: Conic, inside: np.ndarray, solver: str, known: float = math.inf, scaled: bool = True) -> Solved:
    """One solve with its ends; an upper end that is no better than a ``known`` verified one is not repaired."""
    solve = partial(solve_conic, solver=solver, scaled=scaled)
    raw = solve(conic, SHARP)
    if not raw.ok:  # no strictly feasible multipliers
        raw = solve(conic, 0.0)
    if not raw.ok:
        nothing = Bound(math.nan, False)
        return Solved(conic, raw, nothing, nothing, raw.lam, raw.z)
    low, z = lower(conic, raw, inside)
    dual = upper(conic, raw)
    if raw.status != "solved" or not low.verified:  # nothing bounds some direction
        short = solve(_short(conic), SHARP)
        other, vectors = lower(conic, short, inside) if short.ok else (low, z)
        low, z = (other, vectors) if (other.verified, other.value) > (low.verified, low.value) else (low, z)
    if not dual.bound.verified and known - dual.bound.value > WIDE * abs(dual.bound.value):
        dual = _repaired(conic, raw, dual, low.value, solve)
    return Solved(conic, raw, dual.bound, low, dual.lam, z)


def _short(conic: Conic) -> Conic:
    """The same with short vectors only: its instances are some of those of the problem, and none of them has unbounded directions."""
    diagonal = np.concatenate([np.equal(*triangle(k)).astype(float) for k in conic.orders])
    row = np.concatenate([diagonal, np.zeros(conic.c.size - diagonal.size)])
    A = sp.csr_array(sp.vstack([conic.A, row[None]], format="csr"))
    limit = LONGEST * sum(conic.orders)
    return dataclasses.replace(conic, A=A, b=np.append(conic.b, limit), names=(*conic.names, "short"), scales=np.append(conic.scales, 1.0))


def _repaired(conic: Conic, raw: Raw, dual: Dual, low: float, solve: Solve) -> Dual:
    """Verified multipliers from further solves: blended in, or those of a relaxation with practically the same value."""
    best = dual

    def done() -> bool:
        return best.bound.verified and best.bound.value - low <= WIDE * abs(best.bound.value)

    def better(found: Dual) -> Dual:
        better_one = found.bound.verified and (not best.bound.verified or found.bound.value < best.bound.value)
        return found if better_one else best

    if raw.status == "solved":
        firmer = solve(conic, FIRM)
        best = better(upper(conic, firmer)) if firmer.ok else best
        best = best if best.bound.verified else better(_blend(conic, raw, dual, solve))
    for smaller, kept in relaxations(conic, raw.lam):
        if done():
            break
        other = solve(smaller, SHARP)
        if not other.ok:
            continue
        found = upper(smaller, other)
        found = found if found.bound.verified else _blend(smaller, other, found, solve)
        lam = np.zeros(len(conic.b))
        lam[kept] = found.lam
        best = better(dataclasses.replace(found, lam=lam))
    return best if done() or raw.status == "solved" else better(_blend(conic, raw, dual, solve))


def _blend(conic: Conic, raw: Raw, dual: Dual, solve: Solve) -> Dual:
    safe = solve(conic, SAFE)
    mixed = blended(conic, raw.z, dual, upper(conic, safe)) if safe.ok else dual
    return mixed if mixed.bound.verified else dual


def _without_value(raw: Any, common: dict[str, Any], seconds: float) -> WorstCase:
    sentence = {
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


# --- input -----------------------------------------------------------------------------------------------------------


def exact_hypers(method: Method, hyper: dict[str, Any]) -> Any:
    """The hyper-parameters checked as for a run; fractions stay fractions, so that coefficients are exact."""
    checked = method.hypers(**hyper)

    def keep(name: str, value: Any) -> Any:
        given = hyper.get(name, value)
        if isinstance(value, list):
            return [exact(g) if is_fraction(g) else v for g, v in zip(given, value, strict=True)]
        return exact(given) if is_fraction(given) and not isinstance(value, int) else value

    return checked._replace(**{name: keep(name, getattr(checked, name)) for name in checked._fields})


def _whole(value: Any, name: str, least: int) -> int:
    number = exact(value)
    if number.denominator != 1 or number < least:
        raise UsageError(f"{name} must be a whole number of at least {least}, not {value!r}.")
    return int(number)


def setting_of(
    functions: Any,
    L: Any,
    mu: Any,
    n: Any,
    compressor: Any,
    d: int | None,
    mixing: Any,
    zeta2_star: Any,
    objective: Any = None,
    random: bool = False,
) -> Setting:
    """What is assumed, checked; UsageError with one sentence where it makes no sense.

    Unbiased compressors are read where ``random`` says so, Unsupported elsewhere.
    """
    given = functions if isinstance(functions, dict) else {"f": functions}
    if not given:
        raise UsageError("functions names no function; give a class, or a dictionary such as {'f': 'convex', 'h': 'indicator'}.")
    parts = [(name, *_class_of(value, L if i == 0 else None, mu if i == 0 else 0)) for i, (name, value) in enumerate(given.items())]
    unit = next((L for _, cls, L, _ in parts if cls.takes_L and not cls.bounded), Fraction(1))  # of gradients in a class without L
    parts = [(name, cls, L if cls.takes_L else max(unit, mu), mu) for name, cls, L, mu in parts]
    (name, cls, L, mu), *others = parts
    minimised = tuple(given if objective is None else objective)
    for item in minimised:
        if item not in given:
            raise nearest(str(item), given, "function")
    for item, other, *_ in parts:
        if others and (other.at_minimiser or (other.linear and item != name)):
            why = "is read of a single function (a quadratic also as the first of several)"
            raise Unsupported(f"the worst case of {item!r}: the class {other.name!r} {why}")
    if zeta2_star is not None:
        zeta2_star = _named("zeta2_star", zeta2_star)
        if zeta2_star < 0:
            raise UsageError(f"zeta2_star must be at least 0, not {float(zeta2_star):g}.")
        if not cls.minimiser:
            if zeta2_star:
                why = "speaks of the gradients at a minimiser, which functions of that class need not have; leave it out."
                raise UsageError(f"zeta2_star {why} (The class is {cls.name!r}.)")
            zeta2_star = None
    workers = None if n == "any" else _whole(n, "n", 1)
    spectrum, workers = _spectrum(mixing, workers)
    delta, Delta2, omega = _compressor(compressor, d)
    if omega is not None and not (random and workers is not None):
        why = "they keep a term omega/n, which is read in worst cases of one step, for a number n of workers"
        raise Unsupported(f"the worst case of unbiased compressors: {why}")
    return Setting(cls, L, mu, workers, delta, Delta2, spectrum, zeta2_star, name, tuple(others), minimised, unit, omega)


def _with_chance(setting: Setting, method: Method, sigma2: Any, sampled: Any) -> Setting:
    """The same with noise and with workers drawn at random."""
    noise, n = _named("sigma2", sigma2), setting.n
    if noise < 0:
        raise UsageError(f"sigma2 must be at least 0, not {float(noise):g}.")
    if noise and n is None:
        raise UsageError("independent noise keeps a term sigma2/n; give the number n of workers.")
    if sampled is None:
        return dataclasses.replace(setting, sigma2=noise)
    b = _whole(sampled, "sampled", 1)
    if n == 1 or (n is None and b > 1):
        raise UsageError("workers are sampled of several; give their number n (any number will do where one is sampled).")
    if n is not None and b > n:
        raise UsageError(f"sampled = {b} exceeds the number n = {n} of workers.")
    own = [name for name, kind in method.kinds.items() if kind in (Kind.PER_WORKER, Kind.PER_WORKER_QUEUE)]
    if own:
        raise Unsupported(f"the worst case of sampled workers: {method.name} keeps {own[0]} on every worker, also on those not drawn")
    return dataclasses.replace(setting, sigma2=noise, sampled=b)


def _class_of(value: Any, L: Any, mu: Any) -> tuple[FunctionClass, Fraction, Fraction]:
    """A class with its constants, from its name or ``(name, L, mu)``; L as None is 1."""
    if isinstance(value, (tuple, list)):
        if not 1 <= len(value) <= 3:
            raise UsageError("a class with constants is written (name, L) or (name, L, mu).")
        value, L, mu = value[0], (value[1] if len(value) > 1 else None), (value[2] if len(value) > 2 else 0)
    cls = get_class(value)
    L, mu = _named("L", 1 if L is None else L), _named("mu", mu)
    if not cls.takes_L:
        if L != 1:
            raise UsageError(f"the class {cls.name!r} has no L; leave it out.")
        L = max(L, mu)  # a unit
    if L <= 0:
        raise UsageError(f"L must be positive, not {float(L):g}.")
    if mu < 0:
        raise UsageError(f"mu must be at least 0, not {float(mu):g}.")
    if mu > L:
        raise UsageError(f"mu = {float(mu):g} exceeds L = {float(L):g}; no function is more convex than it is smooth.")
    if mu and not cls.takes_mu:
        raise UsageError(f"the class {cls.name!r} has no mu; leave it out.")
    return cls, L, mu


def _named(name: str, value: Any) -> Fraction:
    try:
        return exact(value)
    except UsageError:
        raise UsageError(f"{name} must be a finite number, not {value!r}.") from None


def _kept_apart(setting: Setting, mixing: Any, apart: bool) -> Setting:
    """The same with workers kept apart, where asked for or where a matrix is given."""
    matrix = np.ndim(mixing) == 2
    if not (apart or matrix):
        return setting
    if setting.n in (None, 1):
        raise UsageError("workers are kept apart where there are several; give their number n.")
    if (
        setting.others
        or setting.functions.linear
        or setting.functions.at_minimiser
        or setting.omega is not None
        or setting.sigma2
        or setting.sampled
    ):
        raise Unsupported("the worst case of workers kept apart: they have one class of functions each, and nothing random of their own")
    known = matrix or hasattr(mixing, "W")
    if mixing is not None and not known:
        if not isinstance(mixing, str):
            raise UsageError("workers kept apart mix by a matrix; give it, or a topology.")
        from verify_rates.solvers.topologies import get_topology

        mixing = get_topology(mixing, setting.n)
    return dataclasses.replace(setting, apart=True, W=None if mixing is None else exact_matrix(mixing, setting.n))


def _compressor(compressor: Any, d: int | None) -> tuple[Fraction | None, Fraction | None, Fraction | None]:
    """delta, Delta2 and omega, each None where it is not given."""
    if compressor is None:
        return None, None, None
    if isinstance(compressor, str):
        from verify_rates.solvers.compressors import get_compressor

        compressor = get_compressor(compressor)
    if hasattr(compressor, "constants"):
        if d is None:
            raise UsageError(f"the constants of compressor {compressor.name!r} depend on the dimension; give d.")
        constants = compressor.constants(_whole(d, "d", 1))
        if "delta" in constants or "Delta2" in constants:  # read for any number of steps
            constants = {k: v for k, v in constants.items() if k != "omega"}
    else:
        constants = dict(compressor)
    for name in constants:
        if name not in CONSTANTS:
            raise nearest(name, CONSTANTS, "compressor constant")
    if not constants:
        raise UsageError("a compressor is given by delta, Delta2 or omega; an empty class cannot be used.")
    delta, Delta2, omega = (None if constants.get(k) is None else _named(k, constants[k]) for k in CONSTANTS)
    if delta is not None and not 0 < delta <= 1:
        raise UsageError(f"delta must lie in (0, 1], not {float(delta):g}.")
    if Delta2 is not None and Delta2 < 0:
        raise UsageError(f"Delta2 must be at least 0, not {float(Delta2):g}.")
    if omega is not None and omega < 0:
        raise UsageError(f"omega must be at least 0, not {float(omega):g}.")
    return delta, Delta2, omega


def _spectrum(mixing: Any, n: int | None) -> tuple[tuple[Fraction, Fraction] | None, int | None]:
    """Eigenvalues on deviations, and the number of workers (a topology knows its own)."""
    if mixing is None:
        return None, n
    if isinstance(mixing, str):
        from verify_rates.solvers.topologies import get_topology

        mixing = get_topology(mixing, n)
    if np.ndim(mixing) == 2:
        values = np.linalg.eigvalsh(np.array([[float(c) for c in row] for row in exact_matrix(mixing, n)]))
        low, high = np.clip([values[0], values[-2:][0]], -1.0, 1.0)
        return (exact(low), exact(high)), len(values)
    if hasattr(mixing, "spectrum"):
        if n not in (None, mixing.n):
            raise UsageError(f"n = {n} workers do not fit a topology of {mixing.n}.")
        values = [*map(float, mixing.spectrum)]
        low, high = (exact(values[0]), exact(values[-2])) if len(values) > 1 else (Fraction(0), Fraction(0))
        return (low, high), mixing.n
    if isinstance(mixing, (tuple, list)):
        if len(mixing) != 2:
            raise UsageError("mixing is one number lam or a pair (lmin, lmax).")
        low, high = (_named("mixing", v) for v in mixing)
    else:
        high = _named("mixing", mixing)
        if high < 0:
            raise UsageError("lam must be at least 0; give (lmin, lmax) for a range of eigenvalues.")
        low = -high
    if not -1 <= low <= high <= 1:
        raise UsageError("eigenvalues of a mixing matrix lie in [-1, 1], the smaller first.")
    return (low, high), n


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
