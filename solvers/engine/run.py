"""``simulate``: run a method on a problem for several seeds, with any engine."""

from __future__ import annotations

import importlib
import importlib.metadata
import math
import platform
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from verify_rates.solvers.engine.history import History
from verify_rates.solvers.engine.plan import Plan, Trial
from verify_rates.solvers.kinds import check_kinds
from verify_rates.solvers.measures import get_measure
from verify_rates.solvers.method import Method, UsageError, get_method, nearest
from verify_rates.solvers.own import blamed, is_own, repeats
from verify_rates.solvers.words import OF_WORST_CASES, Unsupported

ENGINES = {"numba": None, "numpy": "numpy", "cupy": "cupy"}  # name -> array namespace
TRACKS = ("mean", "best", "average")
RECORDS = 200  # at most so many steps are recorded unless ``every`` says otherwise
SEED_BITS = 63


def simulate(
    method: str | Method,
    problem: Any,
    hyper: Any = None,
    *,
    steps: int,
    seeds: int | Sequence[int] = 1,
    seed: int = 0,
    compressor: Any = None,
    topology: Any = None,
    x0: Any = None,
    measures: Sequence[Any] = ("function_gap",),
    every: int | None = None,
    track: Iterable[str] = (),
    keep_states: bool = False,
    engine: Any = "numba",
    jobs: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> History:
    """Run a method on a problem, once per seed, and return what it measured on the way.

    The step function runs as it is on arrays (``engine="numpy"``, ``"cupy"`` or an array-API namespace) or compiled
    (``"numba"``); both draw the same random numbers and agree to rounding.  A trial's draws depend on ``(seed, trial)`` alone:
    on neither the number of trials nor of threads.

    Parameters
    ----------
    method : name or :class:`Method`.
    problem, compressor, topology : objects by the protocols of ``solvers/oracle.py``, or their names.
    hyper : dict or NamedTuple of hyper-parameters; a value may be a schedule ``t -> number`` or a sequence indexed by t.
    steps : T, number of steps.
    seeds : number of trials, or the numbers of the trials to run.
    seed : number that all trials share.
    x0 : (d,) start; the problem's own (0, or beside 0 where that is a saddle) if not given.
    measures : names or functions ``measure(s, w, h) -> number``, evaluated with full gradients.
    every : steps between two records; by default as few as give at most 200 records.  Steps 0 and T are always recorded.
    track : of ``"mean"``, ``"best"``, ``"average"``: those of the history's ``means``, ``best`` and ``at_average`` that must see every
        step; the others see the recorded steps (a measure at every step can cost more than the run).
    keep_states : also keep every recorded state.
    jobs : threads of the compiled engine, one trial each; by default all processors.
    progress : called with the finished share of the work, from 0 to 1.

    Raises
    ------
    UsageError : bad input, in one sentence.
    Unsupported : a measure or a word without a meaning here, with the reason.

    A trial that leaves the finite numbers is not an error: ``history.diverged`` marks it and its values are NaN from there on.

    Examples
    --------
    >>> from verify_rates.problems import get_problem
    >>> h = simulate("gd", get_problem("quadratic"), {"gamma": 0.1}, steps=50, engine="numpy", measures=("distance",))
    >>> int(h.steps[-1]), bool(h.values["distance"][0, -1] < h.values["distance"][0, 0])
    (50, True)
    """
    with blamed():
        plan = make_plan(method, problem, hyper, steps, compressor, topology, x0, measures, every, track, keep_states)
    trials = _trials(seeds)
    pairs = [(_whole(seed, "seed", 0), trial) for trial in trials]
    jobs = None if jobs is None else _whole(jobs, "jobs", 1)
    run = _engine(engine)
    began = time.perf_counter()
    with blamed():
        done, notes = run(plan, pairs, jobs, progress)
    notes |= {"seconds": time.perf_counter() - began, "seed": seed, "trials": trials}
    return _history(plan, done, _settings(plan, engine) | notes)


def make_plan(method, problem, hyper, steps, compressor=None, topology=None, x0=None, measures=(), every=None, track=(), keep_states=False):
    """Check everything that :func:`simulate` is given and put it in plain arrays."""
    method = get_method(method)
    problem, compressor, topology = _objects(problem, compressor, topology)
    given = hyper._asdict() if hasattr(hyper, "_asdict") else dict(hyper or {})
    h = method.hypers(**given)
    steps = _whole(steps, "steps", 1)
    used = check_kinds(method, h)
    _needs(method, used, problem, compressor, topology)
    track = frozenset([track] if isinstance(track, str) else track)
    for name in track - set(TRACKS):
        raise nearest(str(name), TRACKS, "track")
    tau = int(getattr(h, "tau", 0))
    records = _records(steps, every)
    start = _start(x0, problem)
    plan = Plan(
        method, problem, compressor, topology, _table(method, h, steps), tau, start, steps, records, _named(measures), track, keep_states
    )
    _try_own(plan)
    _try_measures(plan)
    return plan


def _objects(problem: Any, compressor: Any, topology: Any) -> tuple[Any, Any, Any]:
    if isinstance(problem, str):
        from verify_rates.problems import get_problem

        problem = get_problem(problem)
    if isinstance(compressor, str):
        from verify_rates.solvers.compressors import get_compressor

        compressor = get_compressor(compressor)
    if isinstance(topology, str):
        from verify_rates.solvers.topologies import get_topology

        topology = get_topology(topology, problem.n)
    return problem, compressor, topology


def _whole(value: Any, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise UsageError(f"{name} must be a whole number of at least {least}, not {value!r}.")
    return int(value)


def _trials(seeds: Any) -> list[int]:
    if not isinstance(seeds, (Sequence, np.ndarray, range)):
        return list(range(_whole(seeds, "seeds", 1)))
    trials = [_whole(s, "every trial's number", 0) for s in seeds]
    if not trials or len(set(trials)) < len(trials):
        raise UsageError("seeds must be a number of trials or different trial numbers, at least one.")
    return trials


def _needs(method: Method, used: Sequence[str], problem: Any, compressor: Any, topology: Any) -> None:
    for word in set(used) & set(OF_WORST_CASES):
        raise Unsupported(f"the run of {word!r}: the functions are known through their gradients alone; it is a word of worst cases")
    compresses = "compress" in used or "masked" in used
    if compresses and compressor is None:
        raise UsageError(f"{method.name} compresses; give a compressor, for example compressor='topk(k=10)'.")
    if "gossip" in used and topology is None:
        raise UsageError(f"{method.name} mixes with neighbours; give a topology, for example topology='ring'.")
    if "gossip" in used and topology.n != problem.n:
        raise UsageError(f"the topology {topology.name} has {topology.n} workers but the problem {problem.name} has {problem.n}.")
    if compresses:
        compressor.constants(problem.d)  # refuses parameters that do not fit the dimension


def _table(method: Method, h: Any, steps: int) -> np.ndarray:
    def column(name: str, v: Any) -> list[float]:
        if callable(v):
            values = [float(v(t)) for t in range(steps)]
        elif isinstance(v, list):
            values = [float(x) for x in v[:steps]]
        else:
            return [float(v)]
        if len(values) < steps:
            raise UsageError(f"{name} of {method.name} has {len(values)} values but the run has {steps} steps.")
        for value in values:
            method.hypers(**{**_numbers(h), name: value})
        return values

    columns = [column(name, v) for name, v in h._asdict().items()]
    rows = max(map(len, columns), default=1)
    return np.array([c if len(c) == rows else c * rows for c in columns]).reshape(len(columns), rows).T.copy()


def _numbers(h: Any) -> dict[str, Any]:
    return {name: 0 if name == "tau" else 1 for name in h._fields}


def _records(steps: int, every: Any) -> np.ndarray:
    gap = math.ceil(steps / (RECORDS - 1)) if every is None else _whole(every, "every", 1)
    return np.unique(np.append(np.arange(0, steps, gap), steps)).astype(np.int64)


def _start(x0: Any, problem: Any) -> np.ndarray:
    d = problem.d
    try:
        start = np.array(getattr(problem, "start", np.zeros(d))) if x0 is None else np.array(x0, dtype=float)
    except (TypeError, ValueError):
        raise UsageError(f"x0 must be a vector of {d} numbers.") from None
    if start.shape != (d,):
        raise UsageError(f"x0 must have shape ({d},), not {start.shape}.")
    if not np.isfinite(start).all():
        raise UsageError("x0 must be finite.")
    return start


def _named(measures: Any) -> dict[str, Callable[..., Any]]:
    chosen = [measures] if isinstance(measures, str) or callable(measures) else list(measures)
    functions = [get_measure(m) for m in chosen]
    named = {f.__name__: f for f in functions}
    if len(named) < len(functions):
        raise UsageError(f"two measures have the same name; the names are {', '.join(f.__name__ for f in functions)}.")
    return named


def _try_own(plan: Plan) -> None:
    """What is the user's, twice at the start: where it fails, or draws from anywhere but its generator, is told before the run."""
    from verify_rates.solvers.engine.arrays import state_of, world_of
    from verify_rates.solvers.engine.plan import generators

    if is_own(plan.problem):
        gens = (generators(plan.n, 0, 0)[0] for _ in range(2))
        repeats(f"the gradient of {plan.problem.name}", *(plan.problem.grads(plan.x0, g) for g in gens))
    if is_own(plan.compressor):
        v = np.linspace(-1.0, 2.0, plan.n * plan.d).reshape(plan.n, plan.d)
        repeats(f"compressor {plan.compressor.name}", *(plan.compressor(v.copy(), generators(plan.n, 0, 0)[0]) for _ in range(2)))
    if not plan.method.step.__module__.startswith("verify_rates."):
        states = (plan.method.step(_locked(state_of(plan, plan.start())), world_of(plan, (0, 0)), plan.hyper(0), 0) for _ in range(2))
        for name, first, second in zip(plan.method.state._fields, *states, strict=True):
            repeats(f"{name} of {plan.method.name}", first, second)


def _locked(s: Any) -> Any:
    """The state with arrays that refuse to be changed in place: the other readings of a step would not see that."""
    for v in s:
        v.setflags(write=False)
    return s


def _try_measures(plan: Plan) -> None:
    """Every measure once at the start, where a field that the state lacks or a missing minimiser is told in one sentence."""
    from verify_rates.solvers.engine.arrays import measure, state_of, world_of

    s, w, h = state_of(plan, plan.start()), world_of(plan, (0, 0)), plan.hyper(0)
    for name, function in plan.measures.items():
        try:
            values = measure(replace(plan, measures={name: function}), s, w, h)
        except (AttributeError, UsageError) as err:
            fields = ", ".join(plan.method.state._fields)
            raise UsageError(f"{name} does not fit {plan.method.name} with the fields {fields}: {str(err).rstrip('.')}.") from err
        if math.isinf(values[0]):
            raise UsageError(f"{name} is infinite at the start x0; choose a start of moderate size.")


def _engine(engine: Any) -> Callable[..., tuple[list[Trial], dict[str, Any]]]:
    if not isinstance(engine, str):
        return _on_arrays(engine)
    if engine not in ENGINES:
        raise nearest(engine, ENGINES, "engine")
    if ENGINES[engine]:
        try:
            xp = importlib.import_module(str(ENGINES[engine]))
        except ImportError:
            raise UsageError(f"engine {engine!r} needs the package {ENGINES[engine]}, which is not installed.") from None
        try:
            xp.zeros(1)
        except Exception as error:  # what a library raises without a device is its own affair
            raise UsageError(f"engine {engine!r} finds no device to run on ({str(error).rstrip('.')}).") from None
        return _on_arrays(xp)
    from verify_rates.solvers.engine.compiled import run_trials

    return run_trials


def _on_arrays(xp: Any) -> Callable[..., tuple[list[Trial], dict[str, Any]]]:
    from verify_rates.solvers.engine.arrays import run_trial

    def run(plan: Plan, pairs: list[tuple[int, int]], jobs: int | None, progress: Callable[[float], None] | None):
        def tick(k: int) -> Callable[[int], None] | None:
            return (lambda t: progress((k + t / plan.steps) / len(pairs))) if progress else None

        return [run_trial(plan, pair, xp, tick(k)) for k, pair in enumerate(pairs)], {}

    return run


def _settings(plan: Plan, engine: Any) -> dict[str, Any]:
    def name(thing: Any) -> str | None:
        return None if thing is None else str(thing) if type(thing).__str__ is not object.__str__ else thing.name

    names = plan.method.hyper._fields
    return {
        "method": plan.method.name,
        "hyper": {k: plan.table[:, j].tolist() if np.ptp(plan.table[:, j]) else float(plan.table[0, j]) for j, k in enumerate(names)},
        "problem": name(plan.problem),
        "problem_options": plan.problem.describe() if hasattr(plan.problem, "describe") else {},
        "compressor": name(plan.compressor),
        "topology": name(plan.topology),
        "n": plan.n,
        "d": plan.d,
        "steps": plan.steps,
        "track": sorted(plan.track),
        "engine": engine if isinstance(engine, str) else engine.__name__,
        "versions": {"python": platform.python_version()} | {p: importlib.metadata.version(p) for p in ("numpy", "numba", "verify-rates")},
    }


def _rounds(plan: Plan) -> np.ndarray:
    """Finished communication rounds up to every recorded step."""
    if len(plan.table) == 1:
        return plan.records // plan.method.rounds(plan.hyper(0))
    shares = np.cumsum([0.0] + [1 / plan.method.rounds(plan.hyper(t)) for t in range(plan.steps)])
    return np.floor(shares[plan.records] * (1 + 1e-12))  # 1e-12: H shares of 1/H make a whole round


def _history(plan: Plan, trials: list[Trial], settings: dict[str, Any]) -> History:
    stacked: Any = Trial._make(map(np.array, zip(*trials, strict=True)))  # one array a field, seeds first

    def named(values: np.ndarray) -> dict[str, np.ndarray]:
        return {name: values[..., j] for j, name in enumerate(plan.measures)}

    return History(
        steps=plan.records,
        values=named(stacked.values),
        means=named(stacked.means),
        best=named(stacked.best),
        at_average=named(stacked.at_average),
        bits=stacked.bits,
        rounds=_rounds(plan),
        final=plan.split(stacked.final),
        states=plan.split(stacked.states) if plan.keep_states else None,
        diverged=stacked.diverged,
        settings=settings,
    )
