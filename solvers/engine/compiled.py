"""The compiled engine: the same step function as machine code, whole trajectories without the interpreter.

The words are Numba overloads on the type of the world below.  A method's step is compiled once, wrapped so that its state is one
vector and its hyper-parameters one row; it is handed as a first-class function to the one driver, which knows neither methods
nor problems.  Measures are compiled and handed over in the same way, kernels are members of the world.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache as cached
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import overload, register_jitable
from numba.typed import List

from verify_rates.solvers import words
from verify_rates.solvers.chunks import largest_divisor
from verify_rates.solvers.compressors import FLOAT_BITS
from verify_rates.solvers.engine import cache
from verify_rates.solvers.engine.integers import check_integers
from verify_rates.solvers.engine.plan import Plan, Trial, generators, twins
from verify_rates.solvers.engine.signatures import COMPRESS, DATA, GENERATOR, GRAD, MATRIX, VALUE, VECTOR
from verify_rates.solvers.words import Kind, Unsupported


class CompiledWorld(NamedTuple):
    """What the words need; see the fields of :class:`verify_rates.solvers.engine.arrays.ArrayWorld`."""

    n: Any
    d: Any
    t: Any
    exact: Any
    grad: Any
    value: Any
    data: Any
    compress: Any
    params: Any
    W: Any  # (P, n, n), the mixing matrices
    now: Any  # the number of the one that this step uses
    gens: Any
    first: Any  # with the next: equal generators, which grad_pair alone draws from
    second: Any
    shared: Any
    x_star: Any
    f_star: Any
    delta: Any
    sent: Any  # (1,) bits of all workers so far


class Parts(NamedTuple):
    """The members of the world that are data; kernels become members in compiled code only, as arguments of the driver."""

    n: Any
    d: Any
    data: Any
    params: Any
    W: Any
    order: Any  # which of W a step uses
    gens: Any
    first: Any
    second: Any
    shared: Any
    x_star: Any
    f_star: Any
    delta: Any
    sent: Any


GENERATORS = types.ListType(GENERATOR)
INTS = types.Array(types.int64, 1, "C")
TENSOR = types.Array(types.float64, 3, "C")
KERNELS = {"grad": types.FunctionType(GRAD), "value": types.FunctionType(VALUE), "compress": types.FunctionType(COMPRESS)}
_MEMBERS: dict[str, Any] = {
    **{"n": types.int64, "d": types.int64, "t": types.int64, "exact": types.boolean, **KERNELS},
    **{"data": DATA, "params": VECTOR, "W": TENSOR, "order": INTS, "now": types.int64},
    **{"gens": GENERATORS, "first": GENERATORS, "second": GENERATORS, "shared": GENERATOR},
    **{"x_star": VECTOR, "f_star": types.float64, "delta": types.float64, "sent": VECTOR},
}
WORLD = types.NamedTuple([_MEMBERS[name] for name in CompiledWorld._fields], CompiledWorld)
PARTS = types.NamedTuple([_MEMBERS[name] for name in Parts._fields], Parts)
STEP = types.void(VECTOR, WORLD, VECTOR, VECTOR)  # (state, world, hyper row, next state)
MEASURE = types.float64(VECTOR, WORLD, VECTOR)  # (state, world, hyper row)
MEASURE_TYPE = types.FunctionType(MEASURE)
MEASURES = types.ListType(MEASURE_TYPE)


def _store(v, out):
    for k, x in enumerate(v.flat):  # entry by entry: slice assignment compiles for a second, for its error message's sake
        out[k] = x


store = register_jitable(_store)


# --- the words -------------------------------------------------------------------------------------------------------


def meaning(word: Callable[..., Any]) -> Callable[..., Any]:
    """Register the compiled meanings of a word: of the types of its arguments an implementation is made, or None."""

    def register(choose: Callable[..., Any]) -> Callable[..., Any]:
        code = choose.__code__
        names = ", ".join(code.co_varnames[: code.co_argcount])
        scope = {"choose": choose, "is_world": lambda w: isinstance(w, types.NamedTuple) and w.instance_class is CompiledWorld}
        exec(f"def typed({names}):\n    return choose({names}) if is_world(w) else None", scope)
        overload(word)(scope["typed"])
        return choose

    return register


def _ndim(v: Any) -> int:
    return v.ndim if isinstance(v, types.Array) else 0


@meaning(words.grad)
def _grad(w, x):
    def shared(w, x):
        out = np.empty((w.n, w.d))
        for i in range(w.n):
            w.grad(w.data, i, x, w.gens[i], w.exact, out[i])
        return out

    def per_worker(w, x):
        out = np.empty((w.n, w.d))
        for i in range(w.n):
            w.grad(w.data, i, x[i], w.gens[i], w.exact, out[i])
        return out

    return {1: shared, 2: per_worker}.get(_ndim(x))


def _average(v):
    out = np.zeros(v.shape[1])
    for i in range(v.shape[0]):
        for j in range(v.shape[1]):
            out[j] += v[i, j]
    return out / v.shape[0]


average = register_jitable(_average)


@meaning(words.mean)
def _mean(w, v):
    return (lambda w, v: average(v)) if _ndim(v) == 2 else None


@meaning(words.spread)
def _spread(w, v):
    def spread(w, v):
        out = np.empty((w.n, w.d))
        for i in range(w.n):
            for j in range(w.d):
                out[i, j] = v[j]
        return out

    return spread if _ndim(v) == 1 else None


@meaning(words.gossip)
def _gossip(w, v):
    def gossip(w, v):
        W, out = w.W[w.now], np.zeros((w.n, w.d))
        for i in range(w.n):
            for j in range(w.n):
                if W[i, j] != 0.0:
                    for k in range(w.d):
                        out[i, k] += W[i, j] * v[j, k]
        return out

    return gossip if _ndim(v) == 2 else None


@meaning(words.compress)
def _compress(w, v):
    def server(w, v):
        out = np.empty(w.d)
        w.compress(v, w.params, w.shared, out)
        return out

    def workers(w, v):
        out = np.empty((w.n, w.d))
        for i in range(w.n):
            w.sent[0] += w.compress(v[i], w.params, w.gens[i], out[i])
        return out

    return {1: server, 2: workers}.get(_ndim(v))


@meaning(words.delay)
def _delay(w, q, v):
    def delay(w, q, v):
        tau = q.shape[0]
        if tau == 0:
            return q, v.copy()
        later = np.empty_like(q)
        for k in range(tau - 1):
            store(q[k + 1], later[k].reshape(v.size))
        store(v, later[tau - 1].reshape(v.size))
        return later, q[0].copy()

    return delay if _ndim(q) == _ndim(v) + 1 else None


@meaning(words.chance)
def _chance(w, p):
    return lambda w, p: w.shared.random() < p


@meaning(words.sign)
def _sign(w, v):
    return lambda w, v: np.sign(v)


@meaning(words.clip)
def _clip(w, v, c):
    return lambda w, v, c: np.minimum(np.maximum(v, -c), c)


@meaning(words.rescale)
def _rescale(w, v, low, high):
    def rescale(w, v, low, high):
        rows = v.copy().reshape((v.size // w.d, w.d))
        for row in rows:
            norm = np.sqrt((row * row).sum())
            row *= min(max(norm, low), high) / (norm if norm > 0.0 else 1.0)
        return rows.reshape(v.shape)

    return rescale if _ndim(v) else None


@meaning(words.masked)
def _masked(w, v):
    def masked(w, v):
        message = np.empty(w.d)
        w.compress(np.ones(w.d), w.params, w.shared, message)
        mask = message != 0.0
        if v.ndim == 2:
            w.sent[0] += FLOAT_BITS * w.n * mask.sum()
        return np.where(mask, v, 0.0)

    return masked if _ndim(v) else None


@meaning(words.sqrt)
def _sqrt(w, v):
    return lambda w, v: np.sqrt(v)


@meaning(words.log)
def _log(w, v):
    return lambda w, v: np.log(v)


@meaning(words.times)
def _times(w, a, b):
    return (lambda w, a, b: a * b) if _ndim(a) == _ndim(b) else None


@meaning(words.divide)
def _divide(w, a, b):
    return (lambda w, a, b: a / b) if _ndim(a) == _ndim(b) else None


@meaning(words.outside)
def _outside(w, m, v):
    def outside(w, m, v):
        out = np.empty(v.shape)
        for index in np.ndindex(v.shape):
            out[index] = v[index] if m[index] == 0.0 else 0.0
        return out

    return outside if _ndim(m) == _ndim(v) else None


@meaning(words.mean_sent)
def _mean_sent(w, v):
    def mean_sent(w, v):
        out = np.zeros(w.d)
        for j in range(w.d):
            sent = 0
            for i in range(w.n):
                out[j] += v[i, j]
                sent += v[i, j] != 0.0
            out[j] /= max(sent, 1)
        return out

    return mean_sent if _ndim(v) == 2 else None


@meaning(words.gathered)
def _gathered(w, v):
    return lambda w, v: v


@meaning(words.coordinate_mean)
def _coordinate_mean(w, v):
    def shared(w, v):
        out = np.empty(w.d)
        out[:] = v.sum() / w.d
        return out

    def per_worker(w, v):
        out = np.empty((w.n, w.d))
        for i in range(w.n):
            out[i, :] = v[i].sum() / w.d
        return out

    return {1: shared, 2: per_worker}.get(_ndim(v))


def _by_chunks(v, chunk, inverse):
    s = divisor(v.shape[v.ndim - 1], int(chunk))
    out, basis = np.zeros(v.size), np.empty((s, s))
    for k in range(s):
        for j in range(s):
            basis[k, j] = np.sqrt((1 if k == 0 else 2) / s) * np.cos(np.pi * (j + 0.5) * k / s)
    flat = v.copy().reshape(v.size)
    for c in range(0, v.size, s):
        for k in range(s):
            for j in range(s):
                if inverse:
                    out[c + j] += basis[k, j] * flat[c + k]
                else:
                    out[c + k] += basis[k, j] * flat[c + j]
    return out.reshape(v.shape)


divisor, by_chunks = register_jitable(largest_divisor), register_jitable(_by_chunks)


@meaning(words.dct)
def _dct(w, v, chunk):
    return lambda w, v, chunk: by_chunks(v, chunk, False)


@meaning(words.idct)
def _idct(w, v, chunk):
    return lambda w, v, chunk: by_chunks(v, chunk, True)


@meaning(words.orthogonalise)
def _orthogonalise(w, v, rows, eps):
    def orthogonalise(w, v, rows, eps):
        r = divisor(w.d, int(rows))
        M = v.copy().reshape((r, w.d // r))
        lam, V = np.linalg.eigh(M.T @ M)
        scaled = M @ V
        for j in range(lam.size):
            scaled[:, j] /= np.sqrt(max(lam[j], 0.0) + eps)
        return (scaled @ V.T).reshape(w.d)

    return orthogonalise if _ndim(v) == 1 else None


@meaning(words.flip)
def _flip(w, v, count, p):
    def flip(w, v, count, p):
        out = v.copy()
        for i in range(count):
            for j in range(w.d):
                if w.gens[i].random() < p:
                    out[i, j] = -out[i, j]
        return out

    return flip if _ndim(v) == 2 else None


@meaning(words.full_grad)
def _full_grad(w, x):
    def shared(w, x):
        out = np.empty((w.n, w.d))
        for i in range(w.n):
            w.grad(w.data, i, x, w.gens[i], True, out[i])
        return out

    def per_worker(w, x):
        out = np.empty((w.n, w.d))
        for i in range(w.n):
            w.grad(w.data, i, x[i], w.gens[i], True, out[i])
        return out

    return {1: shared, 2: per_worker}.get(_ndim(x))


def _own_points(n, d, x):
    """Each worker's point: a shared one is everybody's."""
    if x.ndim == 2:
        return x.copy().reshape((n, d))
    out = np.empty((n, d))
    for i in range(n):
        store(x, out[i])
    return out


own_points = register_jitable(_own_points)


@meaning(words.grad_pair)
def _grad_pair(w, x, y):
    def grad_pair(w, x, y):
        a, b = own_points(w.n, w.d, x), own_points(w.n, w.d, y)
        first, second = np.empty((w.n, w.d)), np.empty((w.n, w.d))
        for i in range(w.n):
            w.grad(w.data, i, a[i], w.first[i], w.exact, first[i])
            w.grad(w.data, i, b[i], w.second[i], w.exact, second[i])
        return first, second

    return grad_pair


@meaning(words.each)
def _each(w, p, a, b):
    def each(w, p, a, b):
        out = np.empty((w.n, w.d))
        for i in range(w.n):
            out[i] = a[i] if w.gens[i].random() < p else b[i]
        return out

    return each if _ndim(a) == _ndim(b) == 2 else None


@meaning(words.optimum)
def _optimum(w):
    return lambda w: w.x_star


@meaning(words.gap)
def _gap(w, x):
    def gap(w, x):
        total = 0.0
        for i in range(w.n):
            total += w.value(w.data, i, x)
        return total / w.n - w.f_star

    return gap if _ndim(x) == 1 else None


@meaning(words.sqnorm)
def _sqnorm(w, v):
    return {1: lambda w, v: (v * v).sum(), 2: lambda w, v: (v * v).sum() / v.shape[0]}.get(_ndim(v))


@meaning(words.consensus)
def _consensus(w, x):
    return {1: lambda w, x: x, 2: lambda w, x: average(x)}.get(_ndim(x))


# --- the driver ------------------------------------------------------------------------------------------------------


class Inputs(NamedTuple):
    """Of the driver: what a trial needs besides its world."""

    start: Any  # (size,)
    table: Any  # (T or 1, k)
    records: Any  # (R,)
    every: Any  # (3,) whether mean, best, average see every step
    control: Any  # (2,) [0] stop when not 0, [1] the last recorded step


class Outputs(NamedTuple):
    """Of the driver: the arrays of :class:`Trial`."""

    values: Any
    means: Any
    best: Any
    at_average: Any
    bits: Any
    final: Any
    states: Any


INPUTS = types.NamedTuple([VECTOR, MATRIX, INTS, types.Array(types.boolean, 1, "C"), INTS], Inputs)
OUTPUTS = types.NamedTuple([MATRIX, VECTOR, VECTOR, VECTOR, VECTOR, VECTOR, MATRIX], Outputs)

with cache.keyed():

    @njit(cache=True, nogil=True)
    def assemble(p, grad, value, compress, t, exact):
        return CompiledWorld(
            p.n,
            p.d,
            t,
            exact,
            grad,
            value,
            p.data,
            compress,
            p.params,
            p.W,
            p.order[min(t, p.order.size - 1)],
            p.gens,
            p.first,
            p.second,
            p.shared,
            p.x_star,
            p.f_star,
            p.delta,
            p.sent,
        )

    @njit(types.boolean(VECTOR), cache=True, nogil=True)
    def finite(v):
        ok = True
        for x in v:
            ok &= np.isfinite(x)
        return ok

    @njit(types.boolean(types.FunctionType(STEP), MEASURES, *KERNELS.values(), PARTS, INPUTS, OUTPUTS), cache=True, nogil=True)
    def drive(step, measures, grad, value, compress, parts, given, out):
        """One trial; False where the state has left the finite numbers."""
        T, M, table = given.records[-1], len(measures), given.table
        mean_counts, field_counts, r = 0, 0, 0
        s, following, fields = given.start.copy(), np.empty_like(given.start), np.zeros_like(given.start)
        values, good = np.zeros(M), True
        for t in range(T + 1):
            row = table[min(t, table.shape[0] - 1)]
            recorded = t == given.records[r]
            if recorded:
                out.bits[r:] = parts.sent[0] / parts.n
            good = finite(s)
            if not good or given.control[0] != 0:  # before a compressor sees what is not a number
                break
            if recorded or given.every[0] or given.every[1]:
                for j in range(M):
                    values[j] = measures[j](s, assemble(parts, grad, value, compress, t, True), row)
            if recorded:
                store(values, out.values[r])
                if out.states.shape[0] > 0:
                    store(s, out.states[r])
                given.control[1] = t
                r += 1
            if recorded or given.every[1]:
                for j in range(M):
                    out.best[j] = np.fmin(out.best[j], values[j])
            if t == T:
                break
            if recorded or given.every[0]:
                out.means[:] += values
                mean_counts += 1
            if recorded or given.every[2]:
                fields += s
                field_counts += 1
            step(s, assemble(parts, grad, value, compress, t, False), row, following)
            s, following = following, s
        store(s, out.final)
        if not good:
            out.means[:] = np.nan
            return False
        out.means[:] /= mean_counts
        fields /= field_counts
        last = table[min(T, table.shape[0] - 1)]
        for j in range(M):
            out.at_average[j] = measures[j](fields, assemble(parts, grad, value, compress, T, True), last)
        return True

    @njit(COMPRESS, cache=True, nogil=True)
    def no_compressor(v, params, gen, out):
        return np.nan

    @njit(VALUE, cache=True, nogil=True)
    def no_value(data, i, x):
        return np.nan

    @njit(GENERATORS(), cache=True)
    def no_generators():
        return List.empty_list(GENERATOR)

    @njit(types.void(GENERATORS, GENERATOR), cache=True)
    def add_generator(gens, gen):
        gens.append(gen)

    @njit(MEASURES(), cache=True)
    def no_measures():
        return List.empty_list(MEASURE_TYPE)

    @njit(types.void(MEASURES, MEASURE_TYPE), cache=True)
    def add_measure(measures, f):
        measures.append(f)


# --- a method and its measures as members of that driver -------------------------------------------------------------

_FIELD = {  # how a field of each kind is cut out of the state vector, and how many entries it has
    Kind.SHARED: ("", "w.d"),
    Kind.PER_WORKER: (".reshape((w.n, w.d))", "w.n * w.d"),
    Kind.SHARED_QUEUE: (".reshape((tau, w.d))", "tau * w.d"),
    Kind.PER_WORKER_QUEUE: (".reshape((tau, w.n, w.d))", "tau * w.n * w.d"),
}


def _unpacking(plan: Plan) -> list[str]:
    """Source lines that make ``s`` and ``h`` of the vector ``flat`` and the row ``row``."""
    fields = plan.method.hyper._fields
    lines = [f"tau = int(row[{fields.index('tau')}])"] if "tau" in fields else []
    end = "0"
    for name, kind in plan.method.kinds.items():
        shape, size = _FIELD[kind]
        start, end = end, f"end_{name}"
        lines += [f"{end} = {start} + {size}", f"field_{name} = flat[{start}:{end}]{shape}"]
    values = ", ".join(f"int(row[{j}])" if whole else f"row[{j}]" for j, whole in enumerate(plan.whole))
    return [*lines, f"s = State({', '.join(f'field_{name}' for name in plan.method.state._fields)})", f"h = Hyper({values})"]


def _step_source(plan: Plan) -> str:
    stores = [f"store(r.{name}, out[end_{name} - field_{name}.size : end_{name}])" for name in plan.method.state._fields]
    body = [*_unpacking(plan), "r = inner(s, w, h, w.t)", *stores]
    return "\n    ".join(["def outer(flat, w, row, out):", *body])


def _measure_source(plan: Plan) -> str:
    return "\n    ".join(["def outer(flat, w, row):", *_unpacking(plan), "return inner(s, w, h)"])


_known: dict[str, Any] = {}


def _compile(plan: Plan, inner: Callable[..., Any], source: str, signature: Any) -> Any:
    """The wrapped function, from memory or disk where nothing it depends on has changed."""
    key = cache.function_key(inner, extra=source)
    if key not in _known:
        for fn in [*cache.helpers(inner), inner]:
            _register(fn)
        scope: dict[str, Any] = {
            "inner": inner,
            "State": plan.method.state,
            "Hyper": plan.method.hyper,
            "store": store,
            "__name__": __name__,
        }
        named = source.replace("def outer(", f"def outer_{key}(", 1)
        exec(compile(named, __file__, "exec"), scope)  # a file that exists: Numba caches no other; the key sees the edits
        with cache.keyed(key):
            _known[key] = _readable(njit(signature, cache=True, nogil=True, error_model="numpy"), scope[f"outer_{key}"], inner)
    return _known[key]


@cached
def _register(fn: FunctionType) -> None:
    """Let compiled code call a Python function."""
    named = cache.renamed(fn)
    overload(fn, strict=False)(lambda *args, **kwargs: named)


def _readable(compiler: Callable[..., Any], outer: Callable[..., Any], inner: Callable[..., Any]) -> Any:
    from numba.core.errors import NumbaError

    try:
        return compiler(outer)
    except NumbaError as err:
        lines = [line.strip() for line in str(err).splitlines() if line.strip()]
        told = next((line for line in lines if not line.startswith(("Failed in", "-", "\x1b"))), lines[0])
        raise Unsupported(f"{inner.__name__} does not compile ({told}); engine='numpy' runs it as it is.") from err


# --- running ---------------------------------------------------------------------------------------------------------


class Job(NamedTuple):
    """One trial: what the driver takes."""

    step: Any
    measures: Any
    grad: Any
    value: Any
    compress: Any
    parts: Parts
    given: Inputs
    out: Outputs


def _generators(plan: Plan, seed: tuple[int, int]) -> tuple[Any, ...]:
    workers, shared = generators(plan.n, *seed)
    lists = [no_generators() for _ in range(3)]
    for made, gens in zip(lists, (workers, *twins(workers)), strict=True):
        for gen in gens:
            add_generator(made, gen)
    return (*lists, shared)


def _writable(v: np.ndarray) -> np.ndarray:
    return np.require(v, requirements=["C", "W"])


def _job(plan: Plan, seed: tuple[int, int], step: Any, measures: Any) -> Job:
    grad, data = plan.problem.compiled()
    value = plan.problem.compiled_value() if hasattr(plan.problem, "compiled_value") else no_value
    compress, params = (no_compressor, np.zeros(0)) if plan.compressor is None else plan.compressor.compiled()
    W, order = plan.mixing(seed)
    x_star, f_star = plan.problem.constants.x_star, float(plan.problem.constants.f_star[0])
    x_star = np.full(plan.d, math.nan) if x_star is None else x_star
    data, params, W, order, x_star = type(data)(*map(_writable, data)), *map(_writable, (params, W, order, x_star))
    gens, first, second, shared = _generators(plan, seed)
    parts = Parts(plan.n, plan.d, data, params, W, order, gens, first, second, shared, x_star, f_star, plan.delta, np.zeros(1))
    every = np.array([name in plan.track for name in ("mean", "best", "average")])
    given = Inputs(plan.start(), plan.table, plan.records, every, np.zeros(2, np.int64))
    out = Outputs(*plan.empty_trial()[:-1])
    out.means[:], out.best[:] = 0.0, math.inf
    return Job(step, measures, grad, value, compress, parts, given, out)


def run_trials(
    plan: Plan, seeds: list[tuple[int, int]], jobs: int | None = None, progress: Callable[[float], None] | None = None
) -> tuple[list[Trial], dict[str, Any]]:
    """All trials, one a thread at a time; a trial's numbers do not depend on the number of threads."""
    began = time.perf_counter()
    if not plan.method.step.__module__.startswith("verify_rates."):
        check_integers(plan)
    step = _compile(plan, plan.method.step, _step_source(plan), STEP)
    compiled = [_compile(plan, f, _measure_source(plan), MEASURE) for f in plan.measures.values()]
    measures = no_measures()
    for f in compiled:
        add_measure(measures, f)
    cold = [f for f in (step, *compiled, drive) if not f.stats.cache_hits]
    compile_seconds = time.perf_counter() - began
    work = [_job(plan, seed, step, measures) for seed in seeds]
    with ThreadPoolExecutor(jobs or len(os.sched_getaffinity(0))) as pool:
        waiting = [pool.submit(drive, *job) for job in work]
        try:
            _watch(waiting, work, plan.steps, progress)
        except BaseException:  # an interrupt as well: the compiled loops look at this flag
            for job in work:
                job.given.control[0] = 1
            raise
    trials = [Trial(*job.out, not good.result()) for job, good in zip(work, waiting, strict=True)]
    return trials, {"compile_seconds": compile_seconds, "from_cache": not cold}


def _watch(waiting: list[Any], work: list[Job], steps: int, progress: Callable[[float], None] | None) -> None:
    from concurrent.futures import wait

    while wait(waiting, timeout=0.2).not_done:
        if progress:
            progress(sum(int(job.given.control[1]) for job in work) / (steps * len(work)))
    for future in waiting:
        future.result()
    if progress:
        progress(1.0)
