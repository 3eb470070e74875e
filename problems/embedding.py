"""Embedding tables whose rows are used by Zipf's law: batches make sparse gradients, all constants are known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from verify_rates.problems.base import ADDITIVE, Family, host, number, truth
from verify_rates.problems.rounding import U, down, gamma, up
from verify_rates.solvers.method import UsageError
from verify_rates.solvers.oracle import Constants


@dataclass(kw_only=True, eq=False)
class Embedding(Family):
    """``f_i(E) = mean over worker i's m samples of ||E[t] - y||^2/2 + lam/2 ||E||^2``, tokens t drawn with chance ~ rank^(-zipf).

    x is the table E of ``vocabulary`` rows and ``width`` columns, row by row.  A gradient of a batch touches the rows of its tokens alone
    (with lam = 0): :meth:`density` says how many are expected.

    Guarantee: the Hessians are diagonal, ``share of the token + lam``, so L, mu and mu_pl (the least share that is not 0) are exact to
    rounding; f* and the constants at x* follow from the means of the targets.  Suprema over x of noise and heterogeneity are infinite.

    Parameters
    ----------
    n, m : workers, samples of each.
    vocabulary, width : rows and columns of the table.
    zipf : exponent, at least 0 (0: all tokens alike).
    own_order : every worker ranks the tokens in an order of its own, instead of all in the same.
    jitter : standard deviation of the targets around the token's own.
    lam : weight of the regulariser, at least 0; with 0, tokens that nobody has make a null space.
    batch : samples a gradient, drawn with replacement.
    seed : worker i's samples depend on (seed, i) alone.
    noise, sigma2, p : see :class:`~verify_rates.problems.base.Problem`.

    Errors: UsageError where an option is out of range.

    >>> f = Embedding(n=2, vocabulary=100, zipf=1.2, batch=8)
    >>> f.density(8) < f.density(64) < 1
    True
    """

    name: ClassVar[str] = "embedding"
    noises: ClassVar[tuple[str, ...]] = (*ADDITIVE, "batch")
    n: int = 4
    m: int = 40
    vocabulary: int = 50
    width: int = 4
    zipf: float = 1.1
    own_order: bool = False
    jitter: float = 0.5
    lam: float = 0.0
    batch: int | None = None
    seed: int = 0

    def _check(self) -> None:
        self.m = number("m", self.m, 1, whole=True)
        self.vocabulary = number("vocabulary", self.vocabulary, 1, whole=True)
        self.width = number("width", self.width, 1, whole=True)
        self.zipf = number("zipf", self.zipf, 0)
        self.jitter = number("jitter", self.jitter, 0)
        self.lam = number("lam", self.lam, 0)
        self.seed = number("seed", self.seed, 0, whole=True)
        truth("own_order", self.own_order)
        self.d = self.vocabulary * self.width
        if self.vocabulary >= 2**31:
            raise UsageError(f"vocabulary must be less than 2^31, not {self.vocabulary}.")
        chances = np.arange(1, self.vocabulary + 1) ** -self.zipf
        own = np.random.default_rng([self.seed, 13]).standard_normal((self.vocabulary, self.width))
        tokens, targets = [], []
        for i in range(self.n):
            rng = np.random.default_rng([self.seed, 14, i])
            drawn = rng.choice(self.vocabulary, size=self.m, p=chances / chances.sum())
            tokens.append(rng.permutation(self.vocabulary)[drawn] if self.own_order else drawn)
            targets.append(own[tokens[-1]] + self.jitter * rng.standard_normal((self.m, self.width)))
        self.tokens, self.targets = np.stack(tokens).astype(np.int32), np.stack(targets)  # (n, m), (n, m, width)

    @cached_property
    def counts(self) -> np.ndarray:
        """How often every worker has every token, int64 (n, vocabulary)."""
        return np.stack([np.bincount(t, minlength=self.vocabulary) for t in self.tokens])

    def density(self, batch: int, workers: int = 1) -> float:
        """Expected share of the table's rows that the batches of so many workers (the first ones) touch together.

        ``mean_t (1 - prod_i (1 - share_it)^batch)`` for samples drawn with replacement: with lam = 0 the density of a gradient.

        Errors: UsageError for a batch below 1 or more workers than there are.

        >>> Embedding(n=1, m=1, vocabulary=4).density(3)
        0.25
        """
        batch, workers = number("batch", batch, 1, whole=True), number("workers", workers, 1, whole=True)
        if workers > self.n:
            raise UsageError(f"workers must be at most n = {self.n}, not {workers}.")
        missed = np.prod((1 - self.counts[:workers] / self.m) ** batch, axis=0)
        return float(np.mean(1 - missed))

    def value(self, x: np.ndarray) -> float:
        """``f(x)``."""
        E = host(x).reshape(self.vocabulary, self.width)
        return float(np.sum((E[self.tokens] - self.targets) ** 2) / (2 * self.n * self.m) + self.lam * np.sum(E**2) / 2)

    @cached_property
    def _sums(self) -> np.ndarray:
        """Mean target times share, (n, d)."""
        out = np.zeros((self.n, self.vocabulary, self.width))
        for i in range(self.n):
            np.add.at(out[i], self.tokens[i], self.targets[i] / self.m)
        return out.reshape(self.n, self.d)

    @cached_property
    def _shares(self) -> np.ndarray:
        """Share of the samples with the coordinate's token, (n, d)."""
        return np.repeat(self.counts / self.m, self.width, axis=1)

    def _full(self, x: Any, xp: Any) -> Any:
        return (xp.asarray(self._shares) + self.lam) * x - xp.asarray(self._sums)

    def _sampled(self, x: Any, gens: list[np.random.Generator], xp: Any) -> Any:
        """The rows of a batch, with their multiplicity, on the host; then the same expression."""
        shares, sums = np.zeros((self.n, self.vocabulary)), np.zeros((self.n, self.vocabulary, self.width))
        for i, gen in enumerate(gens):
            rows = (gen.random(self.batch) * self.m).astype(np.int64)
            np.add.at(shares[i], self.tokens[i, rows], 1 / len(rows))
            np.add.at(sums[i], self.tokens[i, rows], self.targets[i, rows] / len(rows))
        return (xp.asarray(np.repeat(shares, self.width, axis=1)) + self.lam) * x - xp.asarray(sums.reshape(self.n, self.d))

    # --- constants ----------------------------------------------------------------------------------------------------

    def _constants(self) -> Constants:
        total, all_ = self.counts.sum(axis=0), self.n * self.m
        x, moved = self._minimiser()
        slack = gamma(all_ * self.width + 16)
        value = self.value(x)
        L_max, L = (up(float(c.max()) + self.lam, 3) for c in (self.counts / self.m, total / all_))
        return Constants(
            L=L,
            L_max=L_max,
            mu=max(0.0, down(float(total.min()) / all_ + self.lam, 3)),
            mu_min=max(0.0, down(float(self.counts.min()) / self.m + self.lam, 3)),
            sigma2_star=self._noise_at(x, moved),
            sigma2_sup=0.0 if self.batch is None or self.m == 1 else math.inf,
            zeta2_star=0.0 if self.n == 1 else self._spread_at(x, moved * L_max),
            zeta2_sup=0.0 if self.n == 1 else math.inf,
            f_star=(max(0.0, down(value * (1 - slack) - up(L * moved**2, 4))), up(value * (1 + slack))),
            x_star=x,
            convex=True,
            mu_pl=down(float(total[total > 0].min() if self.lam == 0 else total.min()) / all_ + self.lam, 3),
        )

    def _minimiser(self) -> tuple[np.ndarray, float]:
        """The means of the targets, and a bound on their distance to the exact ones; 0 for tokens that nobody has."""
        shares, sums = self._shares.mean(axis=0) + self.lam, self._sums.mean(axis=0)
        x = np.divide(sums, shares, out=np.zeros(self.d), where=shares > 0)
        sizes = np.repeat(np.abs(self.targets).max(), self.d)
        return x, up(float(np.linalg.norm(sizes)) * gamma(2 * self.n * self.m + 16) * 2)

    def _spread_at(self, x: np.ndarray, drift: float) -> float:
        g = self._full(x, np)
        error = gamma(self.m + 8) * float(np.linalg.norm(np.abs(self._sums) + (self._shares + self.lam) * np.abs(x), axis=1).max())
        lengths = np.linalg.norm(g, axis=1) * (1 + gamma(self.d + 4)) + error * (1 + gamma(self.d + 8)) + drift
        return up(float(np.mean(lengths**2)) * (1 + gamma(self.n + 4)))

    def _noise_at(self, x: np.ndarray, moved: float) -> float:
        """``mean_i (mean_r ||e_r||^2 - ||mean_r e_r||^2)/batch`` with one sample's ``e_r = (E[t] - y)`` in row t.

        The square root moves by at most the distance to the exact minimiser, because E -> E[t] has norm 1.
        """
        if self.batch is None or self.m == 1:
            return 0.0
        apart = x.reshape(self.vocabulary, self.width)[self.tokens] - self.targets
        second = np.mean(np.sum(apart**2, axis=2), axis=1)
        mean = np.sum((self._shares * x - self._sums) ** 2, axis=1)
        total = float(np.mean(np.maximum(second - mean, 0.0) + gamma(4 * self.m * self.width + 32) * 2 * second))
        return up((math.sqrt(total) * (1 + 4 * U) + moved) ** 2 / self.batch * (1 + 8 * U))

    def _data(self) -> dict[str, np.ndarray]:
        return {
            "rows": self.targets.reshape(-1, self.width),
            "cols": self.tokens.ravel(),
            "offsets": self.m * np.arange(self.n + 1),
            "params": np.array([self.lam, float(self.width)]),
        }

    def _kernels(self) -> tuple[Any, Any]:
        from verify_rates.problems import nonconvex_kernels

        return nonconvex_kernels.embedding, nonconvex_kernels.embedding_value
