"""Sublinear rates over long horizons from one potential a step, chained: :func:`potential`.

Functions ``V_1, ..., V_{N-1}`` of the state (quadratic in the fields less x* and in the gradients at the iterates, plus function gaps)
with ``V_1 <= tau initial`` after the first step, ``V_{k+1} <= V_k`` on every step and ``measure <= V_{N-1}`` after the last one prove
``measure <= tau initial``.  Every link speaks of one step, so that all of them together are one semidefinite program whose size grows
linearly in N, where the worst case of N steps has Gram matrices of order N.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from verify_rates.solvers.kinds import check_kinds
from verify_rates.solvers.measures import get_measure
from verify_rates.solvers.method import Method, UsageError, get_method, nearest
from verify_rates.solvers.words import Unsupported
from verify_rates.theory.contraction import Features, Lyapunov, _collect, _Collected, _limits, _split
from verify_rates.theory.told import Told
from verify_rates.theory.worst_case.algebra import Form, exact
from verify_rates.theory.worst_case.assemble import Conic, assemble, in_basis, smat
from verify_rates.theory.worst_case.backends import SQRT2, Raw, conic_program, off_diagonal
from verify_rates.theory.worst_case.bounds import ALLOWANCE, upper
from verify_rates.theory.worst_case.solve import exact_hypers, setting_of
from verify_rates.theory.worst_case.world import PepWorld, Setting, at_exact, field_units

TAKES = ("last", "mean")
# Least eigenvalues asked of every link's slack matrix, one a solve, each in units and bases of the solve before: what a solver leaves
# (1e-10) must not spoil a link, and every unit of margin raises the bound by about N times as much; the last is a resort.
MARGINS = (1e-10, 1e-10, 1e-10, 1e-10, 1e-9)
PROBE = 1e-8  # margin at which the price of a margin is measured
USED = 0.8  # of the room asked for
LARGEST = 1e4  # times the probe
GAIN = 1e-8  # two verified bounds this close, relatively, end the solves
SMALLEST = 1e-6  # units of a link are taken from a solution, but not smaller than this share of the largest
SPAN = 1e6  # of the sizes of rate and potentials along a chain that one unit can hold
MOST_STEPS = 2000


@dataclass(frozen=True)
class Potential(Told):
    """A chain of potentials and what it proves.

    Attributes
    ----------
    upper : proved: the measure after N steps (or its average over 0..N-1) is at most this wherever the initial condition holds.
    rigorous : every link was verified after the solve, in the sense of :class:`WorstCase`.
    potentials : ``V_1, ..., V_{N-1}`` as data, and as measures of a state; the measure itself closes the chain.
    status : "solved", "no potential" (the chain has no solution) or "not verified".
    """

    upper: float
    rigorous: bool
    status: str
    why: str
    potentials: tuple[Lyapunov, ...] = field(repr=False)
    seconds: float
    statement: dict[str, Any]

    def __float__(self) -> float:
        raise TypeError("a potential proves a bound, not a value: use .upper (never below the truth).")

    @property
    def ok(self) -> bool:
        """Whether a chain was found."""
        return self.status == "solved"

    def __str__(self) -> str:
        if not self.ok:
            return f"{self.status}: {self.why}"
        s = self.statement
        what = f"{s['measure']} after {s['steps']} steps" if s["take"] == "last" else f"mean {s['measure']} of steps 0..{s['steps'] - 1}"
        return f"{what} <= {self.upper:.10g} where {s['initial']} <= {s['initial_value']:g} at the start (each link verified; {self.why})"

    def to_dict(self) -> dict[str, Any]:
        """Plain data; infinities are None."""
        plain = {name: getattr(self, name) for name in ("rigorous", "status", "why", "seconds", "statement")}
        ends = {"upper": self.upper if math.isfinite(self.upper) else None}
        return ends | plain | {"potentials": [V.to_dict() for V in self.potentials]}


def potential(
    method: str | Method,
    hyper: dict[str, Any],
    *,
    steps: int,
    functions: str = "smooth_strongly_convex",
    L: Any = 1.0,
    mu: Any = 0.0,
    n: int | str = "any",
    compressor: Any = None,
    d: int | None = None,
    mixing: Any = None,
    zeta2_star: Any = 0.0,
    initial: Any = "distance",
    initial_value: Any = 1.0,
    measure: Any = "function_gap",
    take: str = "last",
    room: float = 0.0,
) -> Potential:
    """A proved bound after many steps, from a chain of one-step potentials; time and memory grow linearly in N.

    Guarantee
    ---------
    ``upper`` is never below the worst case.  It is the best that a chain of potentials over the features of the state shows, which is
    the worst case itself for gradient descent and OGM on smooth convex functions and an upper bound in general.

    Parameters
    ----------
    method, hyper, functions, L, mu, n, compressor, d, mixing : as for :func:`worst_case`; schedules are allowed.
    steps : N, at least 2, at most 2000.
    zeta2_star : 0 (a common minimiser) or None (arbitrary ones).
    initial, initial_value : a measure of the first state, of a standard start, that is at most ``initial_value``.
    measure, take : what is bounded: its value after N steps ("last") or its mean over the states 0..N-1 ("mean").
    room : by how much the bound may exceed the best one, relatively, so that every link holds with room: certificates in fractions need it.

    Errors
    ------
    UsageError on bad input; Unsupported where a word or a measure has no quadratic description, and for shared coins.

    Example
    -------
    >>> found = potential("gd", {"gamma": 1.0}, steps=50, n=1)
    >>> abs(found.upper * 202 - 1) < 1e-6, found.rigorous
    (True, True)
    """
    began = time.perf_counter()
    method = get_method(method)
    values = exact_hypers(method, hyper)
    check_kinds(method, method.hypers(**hyper))
    setting = setting_of(functions, L, mu, n, compressor, d, mixing, zeta2_star)
    _refuse(setting, steps, take)
    reach, goal, start = exact(initial_value), get_measure(measure), get_measure(initial)
    if reach <= 0:
        raise UsageError(f"initial_value must be positive, not {float(reach):g}.")
    chain = _Chain(method, values, setting, steps, start, goal, take)
    statement: dict[str, Any] = {"method": method.name, "steps": steps, "functions": functions, "L": float(setting.L)}
    statement |= {"mu": float(setting.mu), "n": n, "delta": None if setting.delta is None else float(setting.delta)}
    statement |= {"zeta2_star": zeta2_star, "initial": _name(initial), "initial_value": float(reach)}
    statement |= {"measure": _name(measure), "take": take}
    if not 0 <= room < 1:
        raise UsageError(f"room must lie in [0, 1), not {room!r}.")
    found = _best(chain, room)
    return replace(found, upper=found.upper * float(reach), statement=statement, seconds=time.perf_counter() - began)


def _name(measure: Any) -> str:
    return measure if isinstance(measure, str) else getattr(measure, "__name__", "measure")


def _refuse(setting: Setting, steps: Any, take: str) -> None:
    if isinstance(steps, bool) or not isinstance(steps, int) or not 2 <= steps <= MOST_STEPS:
        raise UsageError(f"steps of a chain must be a whole number from 2 to {MOST_STEPS}, not {steps!r}.")
    if take not in TAKES:
        raise nearest(str(take), TAKES, "take of a chain")
    if not setting.functions.minimiser:
        raise Unsupported("potentials of a class whose functions need not have a minimiser: their features are distances to x*")
    if setting.Delta2:
        raise Unsupported("potentials under a compressor with an absolute error: it adds a constant at every step")
    if setting.zeta2_star:
        raise UsageError("zeta2_star is 0 (common minimiser) or None (arbitrary ones) for potentials: a constant adds at every step.")


@dataclass(frozen=True)
class Link:
    """One step in arrays: instances z, V before as ``P @ before @ z``, V after, and the measure (or the initial condition)."""

    conic: Conic
    before: np.ndarray | None  # (P, z); None for the first step
    after: np.ndarray | None  # (P, z); None for the last step
    initial: np.ndarray | None  # (z,) for the first step
    gain: np.ndarray  # (z,) what the step adds to the measure

    def turned(self, turns: list[np.ndarray], scalars: np.ndarray) -> Link:
        """The same in other bases and units: Gram matrices are ``turn G turn'`` of the new ones."""
        place, parts = 0, []
        stacked = [self.conic.A.toarray(), self.conic.E.toarray(), self.conic.P.toarray(), self.gain[None]]
        stacked += [v if v.ndim == 2 else v[None] for v in (self.before, self.after, self.initial) if v is not None]
        rows = np.vstack(stacked)
        for turn, length in zip(turns, self.conic.sizes, strict=True):
            parts.append(in_basis(rows[:, place : place + length], turn))
            place += length
        made = np.split(np.hstack([*parts, rows[:, place:] * scalars]), np.cumsum([len(v) for v in stacked])[:-1])
        A, E, P, gain = made[:4]
        rest = iter(made[4:])
        before, after, initial = (None if v is None else next(rest) for v in (self.before, self.after, self.initial))
        size = np.abs(A).max(axis=1)
        conic = replace(self.conic, A=sp.csr_array(A / size[:, None]), E=sp.csr_array(E), P=sp.csr_array(P))
        return Link(conic, before, after, None if initial is None else initial[0], gain[0])


class _Chain:
    """All steps of a method as links, in one normalisation."""

    def __init__(self, method: Method, values: Any, setting: Setting, steps: int, initial: Any, measure: Any, take: str) -> None:
        self.method, self.values, self.setting, self.steps, self.take = method, values, setting, steps, take
        self.measure, self.initial = measure, initial
        first = at_exact(values, 0)
        self.units = field_units(method, values, setting, min(steps, 1 + int(getattr(values, "tau", 0)) + int(method.rounds(first))))
        star = setting.n != 1 and setting.zeta2_star is None and bool(setting.width)
        limits = _limits(method, first, setting) if star else {}
        self.features = Features(method.kinds, method.start, self._evaluated(), limits, star, setting.n != 1, setting.functions.values)
        world = PepWorld(setting)
        own = _collect(self.features, world.free_start(method, values, self.units), world)
        self.names, self.sizes = own.names, tuple(np.array([world.size(v) for v in part]) for part in own.vectors)
        self.features_squared = sum(k * (k + 1) // 2 for k in map(len, self.sizes)) + len(own.gaps)
        world = PepWorld(setting)
        self.unit = world.form_size(self._form(measure, world.free_start(method, values, self.units), world, 0))
        world = PepWorld(setting)
        self.start_unit = world.form_size(self._form(initial, world.start(method, values), world, 0))
        if not self.unit or not self.start_unit:
            raise UsageError("the measure and the initial condition must say something of a state; one of them is constant.")
        self.links = list(self._links())
        self.units_of_unknowns = np.ones(1 + self.features_squared * (steps - 1))  # of the rate and of every V's coefficients

    def _evaluated(self) -> tuple[str, ...]:
        """Iterates at which the step or the measure asks for gradients: others would add unknowns that nothing speaks of."""
        if not self.setting.width:
            return ()
        world = PepWorld(self.setting)
        s = world.free_start(self.method, self.values, self.units)
        self.method.step(s, world, at_exact(self.values, 0), 0)
        self._form(self.measure, s, world, 0)
        return tuple(name for name in self.method.start if getattr(s, name).key in world.own.known)

    def _form(self, measure: Any, s: Any, world: PepWorld, t: int) -> Form:
        form = measure(s, world, at_exact(self.values, min(t, self.steps - 1)))
        if not isinstance(form, Form) or form.const:
            raise UsageError("a measure or initial condition here must be made of gap and sqnorm alone, without constants.")
        return form

    def _links(self) -> Iterator[Link]:
        known: dict[Any, Link] = {}
        for t in range(self.steps):
            key = (at_exact(self.values, t), t if _reads_time(self.method) else None, t == 0, t == self.steps - 1)
            if key not in known:
                known[key] = self._link(t)
            yield known[key]

    def _link(self, t: int) -> Link:
        world = PepWorld(self.setting)
        last = t == self.steps - 1
        s = world.start(self.method, self.values) if t == 0 else world.free_start(self.method, self.values, self.units)
        first: _Collected | None = None if t == 0 else _collect(self.features, s, world)
        initial = self._form(self.initial, s, world, 0) if t == 0 else None
        gained = self._form(self.measure, s, world, t) / self.steps if self.take == "mean" else Form()
        made = self.method.step(s, world, at_exact(self.values, t), t)
        if world.tosses:
            raise Unsupported("potentials of 'chance': both branches of a coin are read for contractions only")
        done = None if last else _collect(self.features, made, world)
        if last and self.take == "last":
            gained = self._form(self.measure, made, world, t)
        parts = [gained, *([] if initial is None else [initial]), *(c.everything for c in (first, done) if c is not None)]
        conic, builder = assemble(world, sum(parts[1:], parts[0]))
        scaling = (self.sizes, float(self.setting.L))
        return Link(
            conic,
            first.rows(builder, *scaling) if first is not None else None,
            done.rows(builder, *scaling) if done is not None else None,
            None if initial is None else builder.form(initial) / self.start_unit,
            builder.form(gained) / self.unit if gained.squares or gained.f else np.zeros(conic.c.size),
        )

    def lyapunov(self, P: np.ndarray) -> Lyapunov:
        """A potential as data, in own units."""
        ends = np.cumsum([0, *(len(s) * (len(s) + 1) // 2 for s in self.sizes)])
        matrices = [
            smat(P[a:b] / off_diagonal(len(s), 2.0), len(s)) / np.outer(s, s) * self.unit
            for a, b, s in zip(ends[:-1], ends[1:], self.sizes, strict=True)
        ]
        gaps = (P[ends[-1] :] * self.unit / float(self.setting.L)).tolist()
        fields = self.features.evaluated if self.features.values else ()
        return Lyapunov(self.features, *self.names, matrices[0], matrices[1], dict(zip(fields, gaps, strict=True)))


def _reads_time(method: Method) -> bool:
    """Whether the step function uses its iteration number itself, beyond resolved schedules."""
    import dis

    function = getattr(method.step, "py_func", method.step)
    name = function.__code__.co_varnames[3]
    used = [i.argval if isinstance(i.argval, tuple) else (i.argval,) for i in dis.get_instructions(function)]
    return name in function.__code__.co_cellvars or any(name in names for names in used)


@dataclass(frozen=True)
class _Solution:
    """What the solver said: the rate, the potentials, and each link's multipliers."""

    ok: bool
    message: str
    tau: float = math.inf
    P: tuple[np.ndarray, ...] = ()
    multipliers: tuple[tuple[np.ndarray, np.ndarray, np.ndarray], ...] = ()


def _solved(chain: _Chain, margin: float) -> _Solution:
    """All links as one program: minimise tau over the potentials and the multipliers of every link."""
    import clarabel

    nP, N = chain.features_squared, chain.steps
    zero: list[Any] = []
    semi: list[Any] = []
    zero_rhs: list[np.ndarray] = []
    semi_rhs: list[np.ndarray] = []
    orders: list[int] = []
    free = 1 + nP * (N - 1)
    starts = np.cumsum([free, *(_width(link.conic) for link in chain.links)])
    columns = int(starts[-1])

    def add(conic: Conic, own: list[tuple[int, Any]], constant: np.ndarray, at: int) -> None:
        parts = sp.hstack([sp.csr_array(block) for _, block in own] + [_adjoint(conic)], format="coo")
        places = np.concatenate([np.arange(k, k + block.shape[1]) for k, block in own] + [np.arange(at, at + _width(conic))])
        scalar, gram, scalar_rhs, gram_rhs = _split(parts, conic, constant)
        one = np.concatenate([off_diagonal(k, 0.0) for k in conic.orders])
        for block, target in ((scalar, zero), (gram, semi)):
            block = sp.coo_array(block)
            target.append(sp.csr_array((block.data, (block.row, places[block.col])), shape=(block.shape[0], columns)))
        zero_rhs.append(scalar_rhs)
        semi_rhs.append(gram_rhs - margin * one)
        orders.extend(k for k in conic.orders if k)

    for k, link in enumerate(chain.links):
        own = [(0, link.initial[:, None])] if link.initial is not None else [(1 + nP * (k - 1), link.before.T)]  # type: ignore[union-attr]
        own += [(1 + nP * k, -link.after.T)] if link.after is not None else []
        add(link.conic, own, -link.gain, int(starts[k]))
    conics = [link.conic for link in chain.links]
    positive = np.concatenate([int(s) + np.arange(c.A.shape[0]) for s, c in zip(starts[:-1], conics, strict=True)])
    select = -sp.eye_array(columns, format="csr")[positive]
    mixed = [(int(s) + c.A.shape[0] + c.E.shape[0], c.mixed) for s, c in zip(starts[:-1], conics, strict=True) if c.mixed]
    tri = [np.arange(s, s + k * (k + 1) // 2) for s, k in mixed]
    extra = -sp.eye_array(columns, format="csr")[np.concatenate(tri)] if tri else sp.csr_array((0, columns))
    M = sp.vstack([*zero, select, *semi, extra], format="csc")
    rhs = np.concatenate([*zero_rhs, np.zeros(len(positive)), *semi_rhs, np.zeros(extra.shape[0])])
    cones = [clarabel.ZeroConeT(sum(map(len, zero_rhs))), clarabel.NonnegativeConeT(len(positive))]
    cones += [clarabel.PSDTriangleConeT(k) for k in [*orders, *(k for _, k in mixed)]]
    q = np.zeros(columns)
    q[0] = 1.0
    units = np.concatenate([chain.units_of_unknowns, np.ones(columns - free)])
    x, _, message = conic_program(q, M @ sp.diags_array(units), rhs, cones)
    x = x * units
    if message not in ("Solved", "AlmostSolved", "InsufficientProgress"):
        return _Solution(False, message)
    P = tuple(x[1 + nP * k : 1 + nP * (k + 1)] for k in range(N - 1))
    return _Solution(True, message, float(x[0]), P, tuple(_cut(x[s:], link.conic) for s, link in zip(starts, chain.links, strict=False)))


def _width(conic: Conic) -> int:
    return conic.A.shape[0] + conic.E.shape[0] + conic.mixed * (conic.mixed + 1) // 2


def _adjoint(conic: Conic) -> Any:
    half = off_diagonal(conic.mixed, SQRT2)
    mixing = -(conic.P.T @ sp.diags_array(half)) if conic.mixed else sp.csr_array((conic.c.size, 0))
    return sp.hstack([conic.A.T, conic.E.T, mixing], format="csr")


def _cut(x: np.ndarray, conic: Conic) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, e = conic.A.shape[0], conic.E.shape[0]
    S = smat(x[a + e : _width(conic)] * off_diagonal(conic.mixed, 1 / SQRT2), conic.mixed)
    return x[:a], x[a : a + e], S


def _proved(chain: _Chain, found: _Solution) -> bool:
    """Whether every link holds, each verified on its own with the multipliers that the program found for it."""
    for k, (link, known) in enumerate(zip(chain.links, found.multipliers, strict=True)):
        before = _before(link, found, k)
        after = 0.0 if link.after is None else found.P[k] @ link.after
        if not _holds(link.conic, link.gain + after - before, known):
            return False
    return True


def _in_units_of(chain: _Chain, found: _Solution) -> None:
    """Put every link, the rate and every V in units in which what a first solution says is about 1: they change by orders along a chain."""
    sizes = np.array([max(found.tau, 1e-300), *(max(np.abs(P).max(), 1e-300) for P in found.P)])
    if sizes.max() > SPAN * sizes.min():  # else the solver's accuracy, which is relative to 1, suffices: smaller units cost margin
        chain.units_of_unknowns = np.repeat(sizes, [1, *(P.size for P in found.P)])
    for k, link in enumerate(chain.links):
        before = _before(link, found, k)
        after = np.zeros_like(before) if link.after is None else found.P[k] @ link.after
        lam = np.maximum(found.multipliers[k][0], 0)
        forms = [before, after, link.gain, link.conic.A.T @ lam + before - after - link.gain]
        place, turns = 0, []
        for order, length in zip(link.conic.orders, link.conic.sizes, strict=True):
            matrices = [smat(v[place : place + length] / off_diagonal(order, 2.0), order) for v in forms]
            turns.append(_inverse_root(np.sum([_absolute(M) for M in matrices], axis=0)))
            place += length
        size = sum(np.abs(v[place:]) for v in forms[:3]) + abs(link.conic.A[:, place:]).T @ lam
        chain.links[k] = link.turned(turns, 1 / np.maximum(size, SMALLEST * max(size.max(initial=0.0), 1e-300)))


def _before(link: Link, found: _Solution, k: int) -> np.ndarray:
    """What a link starts from: tau times the initial condition, or the V before."""
    if link.initial is not None:
        return found.tau * link.initial
    return found.P[k - 1] @ link.before


def _absolute(M: np.ndarray) -> np.ndarray:
    """The matrix with absolute eigenvalues."""
    values, vectors = np.linalg.eigh(M)
    return (vectors * np.abs(values)) @ vectors.T


def _inverse_root(M: np.ndarray) -> np.ndarray:
    """R with ``R' M R = 1``, small eigenvalues of M raised to a share of the largest."""
    values, vectors = np.linalg.eigh(M)
    return vectors / np.sqrt(np.maximum(values, SMALLEST * values.max(initial=1e-300)))


def _with_room(chain: _Chain, best: _Solution, room: float) -> _Solution:
    """A verified chain with as large a margin as that share of the bound allows (the bound rises about linearly in it), if there is one."""
    _in_units_of(chain, best)
    probe = _solved(chain, PROBE)
    if not probe.ok or probe.tau <= best.tau:
        return best
    found = _solved(chain, PROBE * min(USED * room * best.tau / (probe.tau - best.tau), LARGEST))
    return found if found.ok and found.tau <= best.tau * (1 + room) and _proved(chain, found) else best


def _best(chain: _Chain, room: float) -> Potential:
    """The best verified chain over a few solves."""
    workers = "one worker" if chain.setting.n == 1 else "exchangeable workers, every n >= 2"
    over = f"V over {', '.join(chain.names[0])}"
    best, last = None, _Solution(False, "")
    for turn, margin in enumerate(MARGINS):
        found = _solved(chain, margin)
        if not found.ok and turn == 0:
            found = _solved(chain, 0.0)
        if not found.ok:
            last = last if last.ok else found
            break
        last = found
        if _proved(chain, found) and (best is None or found.tau < best.tau):
            agreed = best is not None and best.tau - found.tau <= GAIN * found.tau
            best = found
            if agreed:
                break
        _in_units_of(chain, found)
    if best is not None:
        best = _with_room(chain, best, room) if room else best
        bound = best.tau * (1 + ALLOWANCE) * chain.unit / chain.start_unit
        return Potential(bound, True, "solved", f"{workers}; {over}", tuple(chain.lyapunov(P) for P in best.P), 0.0, {})
    if last.ok:
        return _nothing("not verified", "a chain was found, but not every link of it could be verified")
    return _nothing("no potential", f"the solver found no chain with {over} ({last.message}); that none exists is not proved")


def _nothing(status: str, why: str) -> Potential:
    return Potential(math.inf, False, status, why, (), 0.0, {})


def _holds(conic: Conic, height: np.ndarray, known: tuple[np.ndarray, np.ndarray, np.ndarray]) -> bool:
    """Whether the multipliers, repaired, prove ``height @ z <= 0`` on every instance z of a link."""
    size = max(float(np.abs(height).max()), 1.0)
    lam, nu, S = (part / size for part in known)
    return upper(replace(conic, c=height / size), Raw("solved", "chain", np.zeros(conic.c.size), lam, nu, S)).bound.verified
