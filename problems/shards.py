"""How samples are dealt to workers; every worker gets at least one."""

from __future__ import annotations

import numpy as np

from verify_rates.problems.base import choice, number
from verify_rates.solvers.method import UsageError

SHARDS = ("homogeneous", "label", "dirichlet", "copies")


def shard(y: np.ndarray, n: int, how: str = "homogeneous", alpha: float = 1.0, seed: int = 0) -> list[np.ndarray]:
    """The sample numbers of every worker.

    ``homogeneous``: shuffled, then cut into n parts whose sizes differ by at most one.  ``label``: shuffled, sorted by label, then cut,
    so that most workers see one label.  ``dirichlet``: each label's samples are dealt by proportions drawn from a Dirichlet
    distribution of parameter alpha (small: one label a worker; large: like homogeneous), so sizes differ; a worker left empty
    takes one sample from the largest.  ``copies``: every worker holds all samples, so that all minimise the same function.

    Parameters
    ----------
    y : (N,) labels.  n : workers, at most N.  alpha : more than 0, used by ``dirichlet``.  seed : of the shuffle and the proportions.

    Returns
    -------
    n arrays of sample numbers, covering 0..N-1; disjoint but for ``copies``.

    Errors: UsageError for an unknown way, alpha <= 0, or more workers than samples.

    >>> [len(part) for part in shard(np.array([0, 0, 1, 1, 1]), 2)]
    [3, 2]
    """
    choice("shards", how, SHARDS)
    n = number("n", n, 1, whole=True)
    if how == "copies":
        return [np.arange(len(y))] * n
    if n > len(y):
        raise UsageError(f"n = {n} workers need at least as many samples, but there are {len(y)}.")
    rng = np.random.default_rng([number("seed", seed, 0, whole=True), 2])
    order = rng.permutation(len(y))
    if how == "copies":
        return [order] * n
    if how == "dirichlet":
        return _dirichlet(y, order, n, number("alpha", alpha, 0, strict=True), rng)
    if how == "label":
        order = order[np.argsort(y[order], kind="stable")]
    return np.array_split(order, n)


def _dirichlet(y: np.ndarray, order: np.ndarray, n: int, alpha: float, rng: np.random.Generator) -> list[np.ndarray]:
    parts: list[list[np.ndarray]] = [[] for _ in range(n)]
    for label in np.unique(y):
        mine = order[y[order] == label]
        shares = rng.dirichlet(np.full(n, alpha))
        if not np.all(np.isfinite(shares)):  # every gamma draw underflowed: the limit is one worker
            shares = np.eye(n)[rng.integers(n)]
        cuts = np.round(np.cumsum(shares)[:-1] * len(mine)).astype(int)
        for part, chunk in zip(parts, np.split(mine, cuts), strict=True):
            part.append(chunk)
    dealt = [np.concatenate(part) for part in parts]
    for i in range(n):
        if len(dealt[i]) == 0:
            richest = int(np.argmax([len(part) for part in dealt]))
            dealt[i], dealt[richest] = dealt[richest][-1:], dealt[richest][:-1]
    return dealt
