"""Does a compressor keep the class that it declares?  Random and adversarial vectors, with a sound test for random compressors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from verify_rates.solvers.method import UsageError
from verify_rates.solvers.own import repeats, shown
from verify_rates.solvers.words import Unsupported

LEVEL = 1e-6  # probability of accusing a compressor that keeps its word, all tests of one call together
ROUNDING = 1e-12  # relative: squared norms of up to 1e4 terms lose less than 1e4 * 2^-53
PILOT_DRAWS = 64  # draws that guide the search; the test itself uses fresh ones
TEST_DRAWS = 4096  # draws of the test at the worst vector found
STEPS = 200  # proposals of one ascent; a compressor without draws gets ten times as many
BETS = np.array([0.5**j for j in range(1, 11)])  # shares of the largest bet; a mixture, so no tuning


@dataclass(frozen=True)
class Violation:
    """A declared constant that a vector contradicts.

    Attributes
    ----------
    constant : "delta", "omega", "Delta2", "unbiased", "bits", "kernel" or "shape".
    declared, measured : what is promised and what was found, in the constant's own unit (the mean over draws).
    vector : (d,) the witness.
    sentence : what is wrong; ``str`` adds the vector's numbers.
    """

    constant: str
    declared: float
    measured: float
    vector: np.ndarray
    sentence: str

    def __str__(self) -> str:
        return f"{self.sentence.rstrip('.')} at v = {shown(self.vector)}."


def check_compressor(compressor: Any, d: int, rng: np.random.Generator | None = None, kernel: bool = True) -> list[Violation]:
    """Look for vectors on which a compressor breaks what it declares; an empty list when none was found.

    Mathematics: per constant, ascent on the ratio of error to bound from random vectors, spikes, equal entries, ties, decaying
    entries and extreme scales, then a test at the worst vector on fresh draws.  A compressor that leaves its generator
    untouched is judged on one value.  Else "the mean ratio is at most 1" is rejected only where a mixture of the martingales
    ``prod_t (1 + lam (r_t - 1))`` exceeds 1/level (Ville's inequality: valid for any non-negative ratio, however heavy its
    tail).  Unbiasedness: median of means along the direction of the largest bias seen in a pilot, valid under the declared omega.

    Guarantee: a compressor that keeps its word is accused with probability below 1e-6.  One that breaks it may pass.

    Parameters
    ----------
    compressor : object by the protocol of :mod:`verify_rates.solvers.oracle`, or its text such as ``topk(k=3)``.
    d : dimension.
    rng : source of all vectors and draws; by default seed 0.
    kernel : also compare the compiled version, where there is one, with the array version.

    Errors: UsageError where the compressor declares no constant, fails, returns another shape or NaN, or gives two answers for one
    vector and one state of the generator.

    >>> from verify_rates.solvers.compressors import TopK
    >>> check_compressor(TopK(3), 10, np.random.default_rng(0))
    []
    """
    if isinstance(compressor, str):
        from verify_rates.solvers.compressors import get_compressor

        compressor = get_compressor(compressor)
    rng = rng or np.random.default_rng(0)
    constants = compressor.constants(d)
    if not constants:
        raise UsageError(f"{compressor.name} declares none of delta, omega, Delta2.")
    trial = _Trial(compressor, d, rng)
    starts = list(_vectors(d, rng))
    for v in starts:
        repeats(f"compressor {compressor.name}", *(compressor(v[None].copy(), [np.random.default_rng(1)]) for _ in range(2)))
    found = _structure(trial, starts)
    if found:
        return found  # errors of wrong shape or NaN have no constant to be measured
    level = LEVEL / (len(constants) + 1)
    for key, value in constants.items():
        found += _worst(trial, key, value, starts, level)
    if "omega" in constants:
        found += _bias(trial, constants["omega"], starts, level)
    return found + (_kernel(trial, starts) if kernel else [])


@dataclass
class _Trial:
    compressor: Any
    d: int
    rng: np.random.Generator
    random: bool = True

    def __post_init__(self) -> None:
        before = self.rng.bit_generator.state
        first = self.draws(np.arange(1.0, self.d + 1), 8)
        self.random = self.rng.bit_generator.state != before or bool((first != first[0]).any())

    def draws(self, v: np.ndarray, times: int) -> np.ndarray:
        """(times, d): independent compressions of v."""
        return np.asarray(self.compressor(np.tile(v, (times, 1)), [self.rng] * times))

    def ratios(self, key: str, value: float, v: np.ndarray, times: int) -> np.ndarray:
        """Squared error over its bound per draw; 0/0 is 0.  Computed at unit size, so that squares stay in range."""
        unit = float(np.max(np.abs(v))) or 1.0
        error = np.sum(((self.draws(v, times) - v) / unit) ** 2, axis=1)
        norm2 = float(np.sum((v / unit) ** 2))
        bound = {"delta": (1 - value) * norm2, "omega": value * norm2, "Delta2": value / unit / unit}[key]
        slack = ROUNDING * norm2  # the error of the subtraction, also where the bound is 0
        return error / (bound * (1 + ROUNDING) + slack) if bound + slack > 0 else np.where(error > 0, np.inf, 0.0)


def _vectors(d: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    spike, equal = np.zeros(d), np.ones(d)
    spike[rng.integers(d)] = 1.0
    signs = rng.choice([-1.0, 1.0], d)
    yield from (np.zeros(d), spike, -spike, equal, signs, rng.integers(-2, 3, d).astype(float), rng.normal(size=d))
    yield from (0.5 ** np.arange(d), signs * np.arange(1.0, d + 1), equal + 1e-9 * rng.normal(size=d), rng.standard_cauchy(d))
    half = signs * (np.arange(d) < (d + 1) // 2)
    yield from (half, 1e-3 * equal + spike)
    for scale in (1e-150, 1e-8, 1e-2, 10.0, 1e8, 1e150):
        yield scale * rng.normal(size=d)
        yield scale * signs


def _structure(trial: _Trial, starts: list[np.ndarray]) -> list[Violation]:
    name, bits = trial.compressor.name, trial.compressor.bits(trial.d)
    for v in starts:
        m = trial.draws(v, 2)
        if m.shape != (2, trial.d) or not np.isfinite(m).all():
            what = f"shape {m.shape[1:]}" if m.shape != (2, trial.d) else "entries that are not finite"
            return [Violation("shape", trial.d, math.nan, v, f"{name} returns {what} for a finite vector of d = {trial.d} entries.")]
        sent = trial.compressor.message_bits(m[0])
        if not (sent >= 0 and (bits is None or sent == bits)):
            said = "at least 0" if bits is None else f"{bits:g}"
            return [Violation("bits", bits or 0.0, sent, v, f"{name} counts {sent:g} bits for a message where it declares {said}.")]
    return []


def _worst(trial: _Trial, key: str, value: float, starts: list[np.ndarray], level: float) -> list[Violation]:
    def score(v: np.ndarray) -> float:
        return float(np.mean(trial.ratios(key, value, v, PILOT_DRAWS if trial.random else 1)))

    scores = [score(v) for v in starts]
    candidates = [_ascend(trial, starts[i], scores[i], score) for i in np.argsort(scores)[::-1][:3]]
    level /= len(candidates)
    for v in candidates:
        ratios = trial.ratios(key, value, v, TEST_DRAWS if trial.random else 1)
        if _mean_above_one(ratios, level) if trial.random else ratios[0] > 1.0:
            measured = float(np.mean(ratios))
            bound = {"delta": "(1 - delta) ||v||^2", "omega": "omega ||v||^2", "Delta2": "Delta2"}[key]
            sentence = f"{trial.compressor.name} declares {key} = {value:g}, but its squared error is {measured:.6g} times {bound}."
            return [Violation(key, value, measured, v, sentence)]
    return []


def _ascend(trial: _Trial, v: np.ndarray, best: float, score: Any) -> np.ndarray:
    """Random ascent: one entry anew, a copied entry, a rescaled vector, or noise; whatever is better is kept."""
    rng, d = trial.rng, trial.d
    for _ in range(STEPS if trial.random else 10 * STEPS):
        w, i, j = v.copy(), rng.integers(d), rng.integers(d)
        size = float(np.max(np.abs(v))) or 1.0
        move = rng.integers(4)
        if move == 0:
            w[i] = rng.choice([0.0, 1.0, -1.0, rng.normal()]) * size
        elif move == 1:
            w[i] = w[j]
        elif move == 2:
            w = w * np.exp(rng.normal() * 10.0 ** rng.uniform(-4, 0))
        else:
            w = w + 0.1 * size * rng.normal(size=d)
        new = score(w)
        if new > best:
            v, best = w, new
    return v


def _mean_above_one(ratios: np.ndarray, level: float) -> bool:
    """Is the mean of non-negative draws above 1, at that level?"""
    if not np.isfinite(ratios).all():  # an error where none is allowed
        return True
    growth = np.cumsum(np.log1p(np.outer(BETS, ratios - 1.0)), axis=1)  # log of each martingale, (bets, draws)
    top = np.max(growth, axis=0)
    mixture = top + np.log(np.mean(np.exp(growth - top), axis=0))
    return bool(np.max(mixture) > -math.log(level))


def _bias(trial: _Trial, omega: float, starts: list[np.ndarray], level: float) -> list[Violation]:
    level /= len(starts)
    blocks = math.ceil(8 * math.log(2 / level))  # median of means: P(|error| > 2 sqrt(var / size)) <= exp(-blocks / 8), two sides
    size = max(2, TEST_DRAWS * 4 // blocks)
    for v in starts:
        unit = float(np.max(np.abs(v)))
        if unit == 0.0:
            continue
        drift = np.mean(trial.draws(v, TEST_DRAWS // 4), axis=0) / unit - v / unit
        length, norm = float(np.linalg.norm(drift)), float(np.linalg.norm(v / unit))
        if length <= ROUNDING * norm:
            continue
        along = np.concatenate([trial.draws(v, size) / unit @ (drift / length) for _ in range(blocks)]).reshape(blocks, size)
        bias = float(np.median(along.mean(axis=1))) - float(v / unit @ (drift / length))
        radius = 2 * math.sqrt(omega / size) * norm + ROUNDING * norm
        if abs(bias) > radius:
            sentence = f"{trial.compressor.name} declares omega, so it must be unbiased, but E C(v) is off by {abs(bias) / norm:.3g} ||v||."
            return [Violation("unbiased", 0.0, abs(bias) / norm, v, sentence)]
    return []


def _kernel(trial: _Trial, starts: list[np.ndarray]) -> list[Violation]:
    """The compiled version equals the array version on the same draws."""
    try:
        kernel, params = trial.compressor.compiled()
    except Unsupported:
        return []
    for v in starts:
        seed = int(trial.rng.integers(2**32))
        m = np.asarray(trial.compressor(v[None].copy(), [np.random.default_rng(seed)]))[0]
        out = np.empty(trial.d)
        bits = kernel(v.copy(), params, np.random.default_rng(seed), out)
        off = float(np.max(np.abs(out - m)))
        name = trial.compressor.name
        if off > ROUNDING * float(np.max(np.abs(v))):
            return [Violation("kernel", 0.0, off, v, f"the compiled {name} differs from its array version by {off:.3g}.")]
        if bits != trial.compressor.message_bits(m):
            return [Violation("bits", trial.compressor.message_bits(m), bits, v, f"the compiled {name} counts {bits:g} bits.")]
    return []
