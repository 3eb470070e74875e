"""What families on data share: which samples every worker holds."""

from __future__ import annotations

import abc
import dataclasses
import os
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from verify_rates.problems.base import ADDITIVE, Family, choice, number
from verify_rates.problems.data import Dataset, get_data
from verify_rates.problems.shards import SHARDS, shard
from verify_rates.solvers.method import UsageError

EMBEDDABLE = 100_000  # entries of given arrays that a description may carry


@dataclass(kw_only=True, eq=False)
class Sharded(Family):
    """``f = mean_i f_i`` with f_i a mean over worker i's samples: every worker weighs the same.

    Parameters
    ----------
    data : see :func:`verify_rates.problems.data.get_data`.
    n : workers, at most the number of samples.
    lam : weight of the regulariser, at least 0.
    batch : samples a gradient, drawn with replacement from the worker's own; None: all (or additive noise, see :class:`Problem`).
    shards, alpha : how samples are dealt, see :func:`verify_rates.problems.shards.shard`.
    samples : use only that many, drawn without replacement; None: all.
    features, zero_based : of a LIBSVM file.
    seed : of the subset and the shards.
    sha256 : checksum that a file must have ("": any); filled in, so that a stored description names the very file.
    """

    noises: ClassVar[tuple[str, ...]] = (*ADDITIVE, "batch")
    data: Any = "breast_cancer"
    n: int = 10
    lam: float = 1e-3
    batch: int | None = None
    shards: str = "homogeneous"
    alpha: float = 1.0
    samples: int | None = None
    features: int | None = None
    zero_based: bool | None = None
    seed: int = 0
    sha256: str = ""

    def _check(self) -> None:
        self.lam = number("lam", self.lam, 0)
        self.seed = number("seed", self.seed, 0, whole=True)
        self.alpha = number("alpha", self.alpha, 0, strict=True)
        choice("shards", self.shards, SHARDS)
        found = get_data(self.data, self.features, self.zero_based)
        if self.sha256 not in ("", found.sha256):
            raise UsageError(f"{found.name} is not the file asked for: its SHA-256 is {found.sha256 or 'none'}, not {self.sha256}.")
        self.sha256 = found.sha256
        self.data = _recorded(self.data, found)
        y = self._targets(found)
        keep = self._subset(len(y))
        parts = shard(y[keep], self.n, self.shards, self.alpha, self.seed)
        order = keep[np.concatenate(parts)]
        self.A, self.y, self.binary = found.A[order], y[order], found.binary
        self.d = self.A.shape[1]
        self.offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
        self._weights = 1.0 / (self.n * np.repeat(self._sizes, self._sizes))
        self._prepare()

    def _prepare(self) -> None:
        """Written by the families that have options of their own, or more unknowns than features."""

    @abc.abstractmethod
    def _targets(self, found: Dataset) -> np.ndarray:
        """What the losses compare with, (N,); UsageError where the labels do not fit."""

    @property
    def _sizes(self) -> np.ndarray:
        return np.diff(self.offsets)

    def _subset(self, count: int) -> np.ndarray:
        if self.samples is None:
            return np.arange(count)
        self.samples = number("samples", self.samples, 1, whole=True)
        if self.samples > count:
            raise UsageError(f"samples = {self.samples} is more than the {count} there are.")
        return np.sort(np.random.default_rng([self.seed, 3]).permutation(count)[: self.samples])

    def _own(self, i: int) -> slice:
        return slice(self.offsets[i], self.offsets[i + 1])


def _recorded(option: Any, found: Dataset) -> Any:
    """The data option in a form that JSON can carry."""
    if isinstance(option, (str, os.PathLike)):
        return os.fspath(option)
    if found.name and (found.sha256 or os.path.exists(found.name)):
        return found.name
    if found.A.shape[0] * found.A.shape[1] > EMBEDDABLE:
        return dataclasses.replace(found, name=found.name)
    dense = found.A if isinstance(found.A, np.ndarray) else found.A.toarray()
    return {"rows": dense.tolist(), "y": found.y.tolist()}
