"""The array engine: the definition itself on arrays of NumPy or of any array-API library."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from verify_rates.solvers.chunks import dct_basis, in_chunks, largest_divisor
from verify_rates.solvers.compressors import FLOAT_BITS
from verify_rates.solvers.engine.plan import Plan, Trial, generators, twins
from verify_rates.solvers.method import UsageError
from verify_rates.solvers.words import World


def to_host(v: Any) -> np.ndarray:
    """An array of any library as a NumPy array."""
    if isinstance(v, np.ndarray):
        return v
    return v.get() if hasattr(v, "get") else np.from_dlpack(v)


@dataclass
class ArrayWorld(World):
    """The words on arrays: shared (d,), per-worker (n, d).

    With ``exact`` the gradients are full ones, as the measures need them.
    """

    problem: Any
    gens: list[np.random.Generator]
    shared: np.random.Generator
    compressor: Any = None
    W: Any = None  # (P, n, n), the mixing matrices
    order: Any = (0,)  # which of them a step uses; the last for all steps beyond
    xp: Any = np
    t: int = 0
    exact: bool = False
    delta: float = math.nan  # of the compressor
    twins: Any = None  # two lists of equal generators, which ``grad_pair`` alone draws from
    sent: float = 0.0  # bits a worker has sent, mean over the workers

    reading = "a run"

    def grad(self, x):
        return self.problem.grads(x, None if self.exact else self.gens, self.xp)

    def _check(self, word, v, *ndims):
        """Arrays broadcast silently; a method says what it means."""
        if v.ndim not in ndims:
            takes = " or ".join({1: "shared", 2: "per-worker"}[ndim] for ndim in ndims)
            raise UsageError(f"{word}(w, v) takes a {takes} value, not an array of shape {tuple(v.shape)}.")

    def mean(self, v):
        self._check("mean", v, 2)
        return self.xp.mean(v, axis=0)

    def spread(self, v):
        self._check("spread", v, 1)
        return self.xp.broadcast_to(v[None, :], (self.problem.n, self.problem.d))

    def gossip(self, v):
        self._check("gossip", v, 2)
        return self.W[int(self.order[min(self.t, len(self.order) - 1)]), :, :] @ v

    def compress(self, v):
        if v.ndim == 1:  # at the server: coins of the shared generator, no worker sends anything
            return self.compressor(v[None, :], [self.shared], self.xp)[0, :]
        m = self.compressor(v, self.gens, self.xp)
        self.sent += self._bits(m)
        return m

    def _bits(self, m):
        bits = self.compressor.bits(m.shape[1])
        if bits is not None:
            return bits
        rows = to_host(m)
        return math.fsum(self.compressor.message_bits(row) for row in rows) / len(rows)

    def delay(self, q, v):
        if q.shape[0] == 0:
            return q, v
        return self.xp.concat([q[1:, ...], v[None, ...]], axis=0), q[0, ...]

    def chance(self, p):
        return bool(self.shared.random() < p)

    def sign(self, v):
        return self.xp.sign(v)

    def clip(self, v, c):
        return self.xp.clip(v, -c, c)

    def rescale(self, v, low, high):
        norm = self.xp.sqrt(self.xp.sum(v * v, axis=-1, keepdims=True))
        return v * (self.xp.clip(norm, low, high) / self.xp.where(norm == 0, self.xp.ones_like(norm), norm))

    def masked(self, v):
        mask = self.compressor(np.ones((1, self.problem.d)), [self.shared])[0] != 0
        self.sent += FLOAT_BITS * float(np.sum(mask)) * (v.ndim == 2)  # everybody knows the places
        return self.xp.where(self.xp.asarray(mask), v, self.xp.zeros_like(v))

    def sqrt(self, v):
        return self.xp.sqrt(v)

    def log(self, v):
        return self.xp.log(v)

    def times(self, a, b):
        return a * b

    def divide(self, a, b):
        return a / b

    def outside(self, m, v):
        return self.xp.where(m == 0, v, self.xp.zeros_like(v))

    def mean_sent(self, v):
        self._check("mean_sent", v, 2)
        sent = self.xp.sum(self.xp.where(v == 0, self.xp.zeros_like(v), self.xp.ones_like(v)), axis=0)
        return self.xp.sum(v, axis=0) / self.xp.where(sent == 0, self.xp.ones_like(sent), sent)

    def coordinate_mean(self, v):
        return self.xp.broadcast_to(self.xp.mean(v, axis=-1, keepdims=True), v.shape)

    def dct(self, v, chunk):
        return in_chunks(v, dct_basis(largest_divisor(v.shape[-1], chunk)).T, self.xp)

    def idct(self, v, chunk):
        return in_chunks(v, dct_basis(largest_divisor(v.shape[-1], chunk)), self.xp)

    def orthogonalise(self, v, rows, eps):
        self._check("orthogonalise", v, 1)
        M = self.xp.reshape(v, (largest_divisor(v.shape[0], rows), -1))
        lam, V = self.xp.linalg.eigh(M.T @ M)
        return self.xp.reshape(((M @ V) / self.xp.sqrt(self.xp.where(lam > 0, lam, self.xp.zeros_like(lam)) + eps)) @ V.T, v.shape)

    def flip(self, v, count, p):
        self._check("flip", v, 2)
        signs = np.ones(v.shape)
        for i in range(count):
            signs[i] = np.where(self.gens[i].random(v.shape[1]) < p, -1.0, 1.0)
        return self.xp.asarray(signs) * v

    def full_grad(self, x):
        return self.problem.grads(x, None, self.xp)

    def grad_pair(self, x, y):
        first, second = (None, None) if self.exact else self.twins
        return self.problem.grads(x, first, self.xp), self.problem.grads(y, second, self.xp)

    def each(self, p, a, b):
        self._check("each", a, 2)
        heads = np.array([[gen.random() < p] for gen in self.gens])
        return self.xp.where(self.xp.asarray(heads), a, b)

    def optimum(self):
        x = self.problem.constants.x_star
        return self.refuse("optimum", f"no minimiser of {self.problem.name} is known") if x is None else self.xp.asarray(x)

    def gap(self, x):
        self._check("gap", x, 1)
        return self.problem.value(to_host(x)) - self.problem.constants.f_star[0]

    def sqnorm(self, v):
        self._check("sqnorm", v, 1, 2)
        return self.xp.sum(v * v) / (1 if v.ndim == 1 else v.shape[0])

    def consensus(self, x):
        return x if x.ndim == 1 else self.mean(x)


def world_of(plan: Plan, seed: tuple[int, int], xp: Any = np) -> ArrayWorld:
    """The world of one seed."""
    gens, shared = generators(plan.n, *seed)
    members, order = plan.mixing(seed)
    return ArrayWorld(plan.problem, gens, shared, plan.compressor, xp.asarray(members), order, xp, delta=plan.delta, twins=twins(gens))


def state_of(plan: Plan, flat: np.ndarray, xp: Any = np) -> Any:
    """A concatenated state as the method's NamedTuple."""
    return plan.method.state(**{name: xp.asarray(np.ascontiguousarray(v)) for name, v in plan.split(flat).items()})


def measure(plan: Plan, s: Any, w: ArrayWorld, h: Any) -> list[float]:
    """All measures of a state, with full gradients."""
    w.exact = True
    try:
        return [float(f(s, w, h)) for f in plan.measures.values()]
    finally:
        w.exact = False


def run_trial(plan: Plan, seed: tuple[int, int], xp: Any = np, tick: Callable[[int], None] | None = None) -> Trial:
    """One seed on arrays of ``xp``; ``tick`` hears the number of every recorded step."""
    with np.errstate(all="ignore"):
        return _run_trial(plan, world_of(plan, seed, xp), tick or (lambda t: None))


def _run_trial(plan: Plan, w: ArrayWorld, tick: Callable[[int], None]) -> Trial:
    out = plan.empty_trial()
    tracks = _Tracks(plan, w.xp)
    s = state_of(plan, plan.start(), w.xp)
    steps = iter(plan.records)
    r, due = 0, next(steps)
    for t in range(plan.steps + 1):
        w.t, h = t, plan.hyper(t)
        recorded = t == due
        values = measure(plan, s, w, h) if tracks.wants(recorded) else []
        if recorded:
            flat = _flat(s)
            out.bits[r:] = w.sent
            if not np.isfinite(flat).all():
                return out._replace(best=tracks.best, final=flat, diverged=True)
            out.values[r] = values
            if plan.keep_states:
                out.states[r] = flat
            tick(t)
            r, due = r + 1, next(steps, -1)
        tracks.see(s, values, t, recorded)
        if t < plan.steps:
            s = plan.method.step(s, w, h, t)
    average = measure(plan, tracks.average(), w, plan.hyper(plan.steps))
    return out._replace(means=tracks.mean, best=tracks.best, at_average=np.array(average), final=_flat(s))


def _flat(s: Any) -> np.ndarray:
    return np.concatenate([np.ravel(to_host(v)) for v in s])


class _Tracks:
    """Running mean, minimum and average iterate, over every step where tracked, else over the recorded ones."""

    def __init__(self, plan: Plan, xp: Any) -> None:
        self.plan, self.counts = plan, [0, 0]
        M = len(plan.measures)
        self.sums, self.best = np.zeros(M), np.full(M, math.inf)
        self.fields = [xp.zeros(shape) for shape in plan.shapes.values()]

    def wants(self, recorded: bool) -> bool:
        return recorded or bool(self.plan.track & {"mean", "best"})

    def see(self, s: Any, values: list[float], t: int, recorded: bool) -> None:
        track, last = self.plan.track, t == self.plan.steps
        if recorded or "best" in track:
            self.best = np.fmin(self.best, values)
        if not last and (recorded or "mean" in track):
            self.sums, self.counts[0] = self.sums + values, self.counts[0] + 1
        if not last and (recorded or "average" in track):
            self.fields, self.counts[1] = list(itertools.starmap(lambda a, b: a + b, zip(self.fields, s, strict=True))), self.counts[1] + 1

    @property
    def mean(self) -> np.ndarray:
        return self.sums / self.counts[0]

    def average(self) -> Any:
        return self.plan.method.state(*(v / self.counts[1] for v in self.fields))
