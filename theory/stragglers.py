"""Workers whose compute times vary from step to step: the time line by simulation, against that of the mean.

A time line is the largest over paths of sums of times, so it is convex in them: varying times take longer on average than their mean
(Jensen), and by how much depends on who waits for whom.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from verify_rates.solvers.method import Method, UsageError, nearest
from verify_rates.theory import units
from verify_rates.theory.measured import Profile
from verify_rates.theory.timeline import simulate
from verify_rates.theory.timeline.events import period_steps
from verify_rates.theory.timeline.line import Costs, asked
from verify_rates.theory.timeline.simulate import Cost

BLOCK = 256  # draws made at once
MOST_DRAWS = 20_000_000  # gradients of all workers in all runs: some minutes

Draw = Callable[[np.random.Generator, int], np.ndarray]


@dataclass(frozen=True)
class Durations:
    """Independent compute times of one worker.

    Attributes
    ----------
    mean : seconds.
    draw : from a generator and a number to so many seconds.
    told : in words.
    heavy : whether the variance is infinite, so that a mean over runs has no standard error.
    """

    mean: float
    draw: Draw
    told: str
    heavy: bool = False


def _exponential(mean: Any, least: Any = 0.0) -> Durations:
    low, middle = units.seconds(least, "the least time"), units.seconds(mean, "a mean time")
    if middle < low:
        raise UsageError(f"the mean time {middle:g} s lies below the least time {low:g} s.")
    told = f"{low:g} s and an exponential time of mean {middle - low:g} s"
    return Durations(middle, lambda rng, size: low + rng.exponential(middle - low, size), told)


def _lognormal(mean: Any, spread: Any) -> Durations:
    middle, sigma = units.seconds(mean, "a mean time"), _positive(spread, "spread")
    draw: Draw = lambda rng, size: middle * np.exp(sigma * rng.standard_normal(size) - sigma**2 / 2)  # noqa: E731
    return Durations(middle, draw, f"log-normal of mean {middle:g} s, whose logarithm has the standard deviation {sigma:g}")


def _uniform(low: Any, high: Any) -> Durations:
    a, b = units.seconds(low, "the least time"), units.seconds(high, "the largest time")
    if b < a:
        raise UsageError(f"the largest time {b:g} s lies below the least time {a:g} s.")
    return Durations((a + b) / 2, lambda rng, size: rng.uniform(a, b, size), f"uniform from {a:g} to {b:g} s")


def _pareto(least: Any, tail: Any) -> Durations:
    low, alpha = units.seconds(least, "the least time"), _positive(tail, "tail")
    if alpha <= 1:
        raise UsageError(f"tail must exceed 1 (at most 1, the mean time is infinite), not {tail!r}.")
    told = f"Pareto from {low:g} s on, longer than x s with probability ({low:g}/x)^{alpha:g}"
    draw: Draw = lambda rng, size: low * (1 + rng.pareto(alpha, size))  # noqa: E731
    return Durations(low * alpha / (alpha - 1), draw, told, heavy=alpha <= 2)


def _positive(text: Any, name: str) -> float:
    try:
        value = float(text)
    except (TypeError, ValueError):
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise UsageError(f"{name} must be a finite number of at least 0, not {text!r}.")
    return value


KINDS: dict[str, tuple[Callable[..., Durations], tuple[str, ...], tuple[str, ...]]] = {  # needed and further parameters
    "exponential": (_exponential, ("mean",), ("least",)),
    "lognormal": (_lognormal, ("mean", "spread"), ()),
    "uniform": (_uniform, ("low", "high"), ()),
    "pareto": (_pareto, ("least", "tail"), ()),
    "shifted_exponential": (_exponential, ("mean", "least"), ()),
}
ALSO = {"sigma": "spread", "shift": "least"}  # other names of parameters


def varies(compute: Any) -> bool:
    """Whether a compute time is a distribution: a text with parentheses, or a list that holds one.

    >>> varies("exponential(mean=50ms)"), varies("50ms"), varies(["50ms", "uniform(low=1ms, high=2ms)"])
    (True, False, True)
    """
    several = compute if isinstance(compute, (list, tuple)) else [compute]
    return any(isinstance(c, str) and "(" in c for c in several)


def durations(spec: Any) -> Durations:
    """Compute times by a text, or drawn with repetition from measured ones (a list of seconds).

    Texts: ``exponential(mean=50ms, least=40ms)``, ``shifted_exponential(mean=50ms, shift=40ms)`` (the same), ``lognormal(mean=50ms,
    sigma=0.3)`` (``sigma`` or ``spread``: the standard deviation of the logarithm), ``uniform(low=40ms, high=60ms)``, ``pareto(least=40ms,
    tail=2.5)``, and a plain time such as ``50ms``.  ``mean`` is that of the whole time.  They are parsed, never evaluated.

    >>> durations("exponential(mean=50ms, least=40ms)").told
    '0.04 s and an exponential time of mean 0.01 s'
    >>> durations([0.1, 0.3]).mean
    0.2
    """
    if isinstance(spec, str) and "(" not in spec and spec not in KINDS:
        fixed = units.seconds(spec, "a compute time")
        return Durations(fixed, lambda rng, size: np.full(size, fixed), f"{fixed:g} s")
    if not isinstance(spec, str):
        values = np.array([units.seconds(v, "a compute time") for v in spec])
        if not len(values):
            raise UsageError("an empirical distribution needs at least one compute time.")
        return Durations(float(values.mean()), lambda rng, size: rng.choice(values, size), f"one of {len(values)} measured times")
    from verify_rates.solvers.compressors import split_spec

    name, given, named = split_spec(spec, "distribution")
    if name not in KINDS:
        raise nearest(name, KINDS, "distribution")
    make, needed, more = KINDS[name]
    other = {ALSO[key]: value for key, value in named.items() if ALSO.get(key) in needed + more}
    if set(other) & set(named):
        raise UsageError(f"{spec!r} gives {', '.join(sorted(set(other) & set(named)))} under two names; give it once.")
    named = {key: value for key, value in named.items() if ALSO.get(key) not in other} | other
    for key in named:
        if key not in needed + more:
            raise nearest(key, needed + more, f"parameter of {name}")
    if given or not set(needed) <= set(named):
        raise UsageError(f"write {name}({', '.join(f'{k}=..' for k in needed)}), not {spec!r}.")
    return make(**named)


@dataclass(frozen=True)
class Stragglers:
    """Pace of a method whose workers' compute times vary.

    Attributes
    ----------
    seconds_per_step, standard_error : mean over the seeds, from the middle of the run to its end.
    interval : at 95 %, by Student's law over the runs; None where a time has no variance, and so the mean no standard error.
    at_mean : steady seconds per step if every gradient took its worker's mean.
    slowdown : their ratio.
    told : the distribution of each worker.
    """

    method: str
    workers: int
    steps: int
    seeds: int
    seconds_per_step: float
    standard_error: float
    at_mean: float
    slowdown: float
    told: tuple[str, ...]
    interval: tuple[float, float] | None = None
    seed: int = 0
    formula: None = None
    formula_reason: str = "compute times vary: what a step takes is random, so no cycle sets the pace and there is no formula"

    def __str__(self) -> str:
        pace = f"{self.seconds_per_step:.6g} s per step (standard error {self.standard_error:.2g}, {self.seeds} runs of {self.steps} steps)"
        kinds = "; ".join(dict.fromkeys(self.told))
        ends = "none: a time without variance has no standard error"
        if self.interval:
            ends = f"{self.interval[0]:.6g} to {self.interval[1]:.6g} s"
        head = f"{self.method}, {self.workers} workers with {kinds}: {pace}, {self.slowdown:.4g} times that of the mean times"
        return f"{head}\n95 % interval: {ends}\nformula: {self.formula_reason}"

    def to_json(self, **options: Any) -> str:
        return json.dumps(asdict(self), allow_nan=False, **options)


@dataclass
class _Drawn:
    """Costs whose gradients take another time each."""

    costs: Costs
    kinds: Sequence[Durations]
    rngs: Sequence[np.random.Generator]

    def __post_init__(self) -> None:
        self.left: list[list[float]] = [[] for _ in self.kinds]

    def __call__(self, word: str, stream: tuple[str, int], load: Any = None, copies: int = 1) -> Cost:
        if load is not None or word == "compress":
            return self.costs(word, stream, load, copies)
        worker = stream[1]
        if not self.left[worker]:
            self.left[worker] = self.kinds[worker].draw(self.rngs[worker], BLOCK).tolist()
        return Cost(self.left[worker].pop(), 0.0)


def stragglers(
    method: str | Method,
    hyper: Any = None,
    *,
    compute: Any,
    n: int | None = None,
    steps: int = 400,
    seeds: int = 8,
    seed: int = 0,
    topology: Any = None,
    **given: Any,
) -> Stragglers:
    """Time per step when every gradient of every worker takes an independent time.

    Guarantee: an estimate with its standard error over independent runs; the mean time is never less than at the mean times (tested).

    Parameters
    ----------
    compute : a distribution (:func:`durations`: text or a list of seconds) of all n workers; a :class:`Profile`, whose workers keep their
        own times; or a list of n distributions.
    n : number of workers, where ``compute`` does not say it.
    steps, seeds, seed : steps of a run, number of runs, and the seed of all.
    given : latency, bandwidth, size and the rest, as in :func:`verify_rates.timeline`.

    Errors: UsageError for bad input, Unsupported as in :func:`verify_rates.timeline`.

    Differs from a time line: what a step takes is random, so there is no cycle that sets the pace.

    >>> made = stragglers("gd", compute="exponential(mean=1s)", n=4, latency=0, bandwidth=8e9, size=1)
    >>> round(made.slowdown, 1)  # 1 + 1/2 + 1/3 + 1/4 for the slowest of four
    2.1
    """
    kinds = _kinds(compute, n)
    for name, value, least in (("steps", steps, 2), ("seeds", seeds, 2)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise UsageError(f"{name} must be a whole number of at least {least}, not {value!r}.")
    if len(kinds) * steps * seeds > MOST_DRAWS:
        many = f"{len(kinds)} workers, {steps} steps and {seeds} seeds"
        raise UsageError(f"{many} are more than {MOST_DRAWS} gradients to simulate; take fewer.")
    question = asked(method, hyper, compute=[k.mean for k in kinds], topology=topology, **given)
    neighbours = _apart(question.words, len(kinds), topology)
    costs = replace(question.costs, compute=tuple(k.mean for k in kinds))
    encodes = costs.encode > 0

    def pace(cost: Any, count: int) -> float:
        events = simulate.run(question.method, question.hyper, count, cost, neighbours, encodes)
        done = np.maximum.accumulate(_ends(events, count))
        return float(done[-1] - done[count // 2 - 1]) / (count - count // 2)

    runs = []
    for child in np.random.SeedSequence(seed).spawn(seeds):
        rngs = [np.random.default_rng(s) for s in child.spawn(len(kinds))]
        runs.append(pace(_Drawn(costs, kinds, rngs), steps))
    steady = simulate.seconds_per_round(question.method, question.hyper, costs, neighbours, encodes)
    at_mean = steady / period_steps(question.method, question.hyper)
    mean, error = float(np.mean(runs)), float(np.std(runs, ddof=1) / math.sqrt(seeds))
    told = tuple(k.told for k in kinds)
    slowdown = mean / at_mean if at_mean else 1.0
    interval = None if any(k.heavy for k in kinds) else _interval(mean, error, seeds)
    return Stragglers(question.method.name, len(kinds), steps, seeds, mean, error, at_mean, slowdown, told, interval, seed)


def _interval(mean: float, error: float, runs: int) -> tuple[float, float]:
    from scipy.stats import t

    wide = float(t.ppf(0.975, runs - 1)) * error
    return mean - wide, mean + wide


def _ends(events: Sequence[Any], count: int) -> np.ndarray:
    """When the last task of every step was done."""
    ends = np.zeros(count)
    for e in events:
        ends[e.step] = max(ends[e.step], e.end)
    return ends


def _kinds(compute: Any, n: int | None) -> list[Durations]:
    """The distribution of every worker."""
    if n is not None and (isinstance(n, bool) or not isinstance(n, int) or n < 1):
        raise UsageError(f"n must be a whole number of at least 1, not {n!r}.")
    if isinstance(compute, Profile):
        workers: dict[str, list[float]] = {}
        for (worker, _), part in compute.durations.items():
            workers.setdefault(worker, []).extend(part)
        compute = list(workers.values()) if len(workers) > 1 else compute.values
    several = isinstance(compute, (list, tuple)) and bool(compute) and not isinstance(compute[0], (int, float))
    if not several and n is None:
        raise UsageError("one distribution for all workers needs their number n.")
    listed = list(compute) if several else [compute] * (n or 1)
    if n is not None and n != len(listed):
        raise UsageError(f"compute says {len(listed)} workers, but n = {n}.")
    return [durations(spec) for spec in listed]


def _apart(words: Sequence[str], n: int, topology: Any) -> list[list[int]]:
    """Every worker with its neighbours."""
    if "gossip" not in words:
        return [[i] for i in range(n)]
    if topology is None:
        raise UsageError("gossip among workers whose times vary needs a topology.")
    from verify_rates.solvers.topologies import get_topology

    graph = get_topology(topology, n)
    return [sorted(graph.graph[i]) for i in range(n)]
