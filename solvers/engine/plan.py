"""What is to be run, checked and in plain arrays: the same for every engine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from verify_rates.solvers.method import Method
from verify_rates.solvers.words import Kind


class Trial(NamedTuple):
    """What one seed leaves behind; a state is the concatenation of its fields, (size,)."""

    values: np.ndarray  # (R, M) measures at the recorded steps; NaN once the state has left the finite numbers
    means: np.ndarray  # (M,)
    best: np.ndarray  # (M,)
    at_average: np.ndarray  # (M,)
    bits: np.ndarray  # (R,) bits a worker has sent, mean over the workers
    final: np.ndarray  # (size,)
    states: np.ndarray  # (R, size), or (0, size) where not asked for
    diverged: bool


@dataclass(frozen=True)
class Plan:
    """One method on one problem for T steps; an engine turns it and a seed into a :class:`Trial`."""

    method: Method
    problem: Any
    compressor: Any
    topology: Any
    table: np.ndarray  # (T or 1, k) hyper-parameters, one row a step where one is a schedule
    tau: int
    x0: np.ndarray  # (d,)
    steps: int
    records: np.ndarray  # (R,) int64, ascending, from 0 to T
    measures: dict[str, Callable[..., Any]]
    track: frozenset[str]  # of mean, best, average: those that see every step, not the recorded ones alone
    keep_states: bool

    @property
    def n(self) -> int:
        return self.problem.n

    @property
    def d(self) -> int:
        return self.problem.d

    @cached_property
    def delta(self) -> float:
        """The compressor's contraction constant, which some Lyapunov functions contain; NaN where there is none."""
        known = {} if self.compressor is None else self.compressor.constants(self.d)
        return float(known.get("delta", math.nan))

    @cached_property
    def whole(self) -> tuple[bool, ...]:
        """Which hyper-parameters are whole numbers."""
        hints = get_type_hints(self.method.hyper)
        return tuple(hints[name] is int for name in self.method.hyper._fields)

    def mixing(self, seed: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """``(matrices (P, n, n), the number of the one that a step uses)``; of the last number for all steps beyond."""
        if self.topology is None:
            return np.zeros((0, 0, 0)), np.zeros(1, np.int64)
        if not hasattr(self.topology, "members"):
            return self.topology.W[None], np.zeros(1, np.int64)
        return self.topology.members, self.topology.order(self.steps, seed)

    def hyper(self, t: int) -> Any:
        """The hyper-parameters of step t as Python numbers."""
        row = self.table[min(t, len(self.table) - 1)]
        return self.method.hyper(*(int(v) if whole else float(v) for v, whole in zip(row, self.whole, strict=True)))

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: kind.shape(self.n, self.d, self.tau) for name, kind in self.method.kinds.items()}

    @cached_property
    def size(self) -> int:
        return sum(map(math.prod, self.shapes.values()))

    def split(self, flat: np.ndarray) -> dict[str, np.ndarray]:
        """The fields of concatenated states, (..., size)."""
        ends = itertools.accumulate(map(math.prod, self.shapes.values()))
        parts = np.split(flat, list(ends)[:-1], axis=-1)
        return {name: part.reshape(flat.shape[:-1] + shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}

    def start(self) -> np.ndarray:
        """The first state, concatenated."""

        def field(name: str, kind: Kind) -> np.ndarray:
            shape = self.shapes[name]
            return np.broadcast_to(self.x0 if name in self.method.start else 0.0, shape).ravel()

        return np.concatenate([field(name, kind) for name, kind in self.method.kinds.items()])

    def empty_trial(self) -> Trial:
        """A trial in which nothing was recorded yet."""
        R, M = len(self.records), len(self.measures)
        states = np.full((R if self.keep_states else 0, self.size), math.nan)
        final = np.full(self.size, math.nan)
        means, best, at_average = np.full((3, M), math.nan)
        return Trial(np.full((R, M), math.nan), means, best, at_average, np.zeros(R), final, states, False)


def generators(n: int, seed: int, trial: int) -> tuple[list[np.random.Generator], np.random.Generator]:
    """One generator a worker and one that all share, the same in every engine."""
    *workers, shared = np.random.SeedSequence((seed, trial)).spawn(n + 1)
    return [np.random.default_rng(s) for s in workers], np.random.default_rng(shared)


def twins(gens: list[np.random.Generator]) -> tuple[list[np.random.Generator], list[np.random.Generator]]:
    """Two lists of equal generators, far from the workers' own draws: two gradients by the same draw."""
    jumped: Any = [gen.bit_generator for gen in gens]  # default_rng's generators can jump, not all can
    first, second = ([np.random.Generator(bits.jumped()) for bits in jumped] for _ in range(2))
    return first, second
