"""Decoupled DiLoCo: merge rules, fragments, the syncer with quorum and grace, and the goodput of a cluster that fails.

The syncer is a simulator and no step function: who takes part in an average depends on when answers arrive.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators.lines import function
from verify_rates.theory.evidence import Found

YEAR = Fraction(31_557_600)  # seconds

GRACE = "Max(0, gamma*(tau*T_comp - q - s))"  # decoupled_diloco.1; q is the quorum's time, s the time of the merge
LPT = "4/3 - 1/(3*k)"  # decoupled_diloco.5, k fragments
GOODPUT = "1/(1 + (n/m)*c/a)"  # decoupled_diloco.8: n chips, m learners, c seconds lost a failure, a seconds between two failures of a chip
AVERAGE = "2*8*size/(H*T_comp)"  # decoupled_diloco.9, size in bytes, bits per second
PEAK = "8*size/(k*tau*T_comp)"
DATA_PARALLEL = "2*8*size*(m-1)/m/T_comp"

# chips (in thousands), learners, goodput in percent as printed, seconds lost as the file says they follow
TABLE = (
    (2400, 1, 40, 20),
    (2400, 8, 80, 26),
    (2400, 16, 86, 34),
    (1200, 1, 58, 19),
    (1200, 2, 70, 23),
    (1200, 8, 88, 29),
    (1200, 16, 93, 32),
)


# --- merging ----------------------------------------------------------------------------------------------------------


def token_weight(tokens: float, steps: int) -> float:
    """``tokens*(tokens/steps)``: at equal steps a learner with twice the batch counts four times.

    >>> token_weight(8, 2) / token_weight(4, 2)
    4.0
    """
    if steps < 1 or tokens <= 0:
        raise UsageError("a weight needs at least one step and a positive number of tokens.")
    return tokens * (tokens / steps)


def average(vectors: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Avg: the weighted mean, ``(M, d), (M,) -> (d,)``."""
    return np.asarray(weights) @ vectors / np.sum(weights)


def rda(vectors: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """RDA: the weighted mean of the norms times the direction of the weighted mean direction; Avg where that direction vanishes.

    >>> rda(np.array([[3.0, 0.0], [0.0, 1.0]]), np.array([1.0, 1.0])).round(6).tolist()
    [1.414214, 1.414214]
    """
    norms = np.linalg.norm(vectors, axis=1)
    units = np.divide(vectors, norms[:, None], out=np.zeros_like(vectors), where=norms[:, None] > 0)
    direction = average(units, weights)
    length = np.linalg.norm(direction)
    if length == 0:
        return average(vectors, weights)
    return average(norms[:, None], weights)[0] * direction / length


def outer_step(x: np.ndarray, memory: np.ndarray, delta: np.ndarray, lr: float, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """Outer SGD with Nesterov momentum on one fragment; returns the fragment and its memory."""
    memory = beta * memory + delta
    return x - lr * (delta + beta * memory), memory


def one_learner(seed: int) -> Found:
    """decoupled_diloco.2: a single learner's vector passes unchanged, whatever its weight."""
    rng = np.random.default_rng([seed, 2])
    v, w = rng.standard_normal((1, 9)) * 10.0 ** rng.uniform(-3, 3), rng.uniform(0.1, 9, 1)
    return Found.identity(float(np.linalg.norm(rda(v, w) - v[0]) / np.linalg.norm(v)))


def _small_instances(skip_vanishing: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """One coordinate, up to three learners, small whole numbers: the smallest instances come first."""
    found = []
    for M in (1, 2, 3):
        for v, w in itertools.product(itertools.product((-2, -1, 0, 1, 2), repeat=M), itertools.product((1, 2), repeat=M)):
            vanishes = sum(a * np.sign(b) for a, b in zip(w, v, strict=True)) == 0 and any(v)
            if not (skip_vanishing and vanishes):
                found.append((np.array(v, float)[:, None], np.array(w, float)))
    return sorted(found, key=lambda i: (len(i[1]), np.abs(i[0]).sum() + i[1].sum()))


def norm_of_rda(skip_vanishing: bool) -> Found:
    """decoupled_diloco.3: ``||RDA|| = sum w*||v||/sum w >= ||Avg||`` on all small instances, and at random in nine dimensions."""
    worst, where = 0.0, ""
    rng = np.random.default_rng(3)
    many = [(rng.standard_normal((M, 9)), rng.uniform(0.1, 2, M)) for M in (1, 2, 5, 8) for _ in range(20)]
    for v, w in [*_small_instances(skip_vanishing), *many]:
        norms = float(average(np.linalg.norm(v, axis=1)[:, None], w)[0])
        ours, mean = float(np.linalg.norm(rda(v, w))), float(np.linalg.norm(average(v, w)))
        off = max(abs(ours - norms), mean - norms) / max(norms, 1.0)
        if off > max(worst, 1e-12):
            worst, where = off, where or f"v = {v[:, 0].tolist()}, w = {w.tolist()}: ||RDA|| = {ours:g}, mean of norms {norms:g}"
    return Found.identity(worst, where)


def orthogonal(M: int) -> Found:
    """decoupled_diloco.4: equal norms R, orthogonal directions, equal weights."""
    R = 3.0
    rotation = np.linalg.qr(np.random.default_rng([M, 4]).standard_normal((M, M)))[0]
    v, w = R * rotation, np.full(M, 2.0)
    off = [np.linalg.norm(average(v, w)) - R / math.sqrt(M), np.linalg.norm(rda(v, w)) - R]
    return Found.identity(float(np.abs(off).max()) / R)


# --- fragments --------------------------------------------------------------------------------------------------------


def fragments(sizes: Sequence[int], count: int) -> list[list[int]]:
    """Tensors to fragments: largest first, each to the lightest fragment so far (ties to the lowest number).

    >>> fragments([3, 1, 2, 2], 2)
    [[3, 1], [2, 2]]
    """
    if count < 1:
        raise UsageError(f"there must be at least one fragment, not {count!r}.")
    made: list[list[int]] = [[] for _ in range(count)]
    for size in sorted(sizes, reverse=True):
        min(made, key=sum).append(size)
    return made


def balance(count: int, most: int, largest: int) -> Found:
    """decoupled_diloco.5: the heaviest fragment over the best possible one, on all lists of up to ``most`` whole sizes."""
    worst = Fraction(0)
    for length in range(1, most + 1):
        for sizes in itertools.combinations_with_replacement(range(1, largest + 1), length):
            ours = max(map(sum, fragments(sizes, count)))
            worst = max(worst, Fraction(ours, _best(sizes, count)))
    said = function(LPT, "k")(Fraction(count))
    return Found(float(worst), float(worst), float(said), proves=True, message=f"largest ratio {worst}, bound {said}")


def _best(sizes: Sequence[int], count: int) -> int:
    reached = {(0,) * count}
    for size in sizes:
        reached = {tuple(sorted((*loads[:i], loads[i] + size, *loads[i + 1 :]))) for loads in reached for i in range(count)}
    return min(map(max, reached))


# --- the syncer -------------------------------------------------------------------------------------------------------


def waiting(
    delays: Sequence[Sequence[int]],
    quorum: int,
    T_comp: Fraction,
    tau: int,
    sync: Fraction,
    grace: Callable[[Fraction], Fraction],
    between: int,
) -> list[Fraction]:
    """How long the learners stand still, per round, all learners together.

    Every learner steps in ``T_comp``, sends its fragment, and goes on; ``tau`` steps later it overwrites the fragment, and waits for it
    if it took part and the result is not there.  The syncer waits for ``quorum`` answers, then the grace, then merges for ``sync``.

    Parameters
    ----------
    delays : per round and learner the seconds from sending to the syncer.
    grace : given the quorum's time of this round; seconds.
    between : steps between two rounds, at least tau.
    """
    M = len(delays[0])
    if not 1 <= quorum <= M or between < tau:
        raise UsageError("the quorum must be between 1 and the number of learners, and rounds at least tau steps apart.")
    clock, stood = [Fraction(0)] * M, []
    for late in delays:
        arrive = [now + d for now, d in zip(clock, late, strict=True)]
        met = sorted(arrive)[quorum - 1]
        closed = met + grace(met - min(clock))
        waits = [
            max(Fraction(0), closed + sync - now - tau * T_comp) if there <= closed else Fraction(0)
            for now, there in zip(clock, arrive, strict=True)
        ]
        clock = [now + between * T_comp + w for now, w in zip(clock, waits, strict=True)]
        stood.append(sum(waits, Fraction(0)))
    return stood


def grace_window(estimate: str, factor: int) -> Found:
    """decoupled_diloco.1: seconds of waiting that the grace adds, on all small instances of two learners and two rounds.

    ``estimate``: "exact" knows this round's quorum time, "average" takes that of the round before.  ``factor``: gamma in tenths.
    """
    gamma, rule = Fraction(factor, 10), function(GRACE, "gamma tau T_comp q s")
    worst, where = Fraction(0), ""
    for delays in itertools.product(itertools.product(range(4), repeat=2), repeat=2):
        for quorum, tau, s in itertools.product((1, 2), (1, 2), (0, 1)):
            known = [Fraction(sorted(delays[0])[quorum - 1])]

            def grace(q: Fraction, known: list[Fraction] = known, tau: int = tau, s: int = s) -> Fraction:
                said = rule(gamma, tau, Fraction(2), q if estimate == "exact" else known[-1], s)
                known.append(q)
                return said

            rules = (grace, lambda q: Fraction(0))
            waited = [sum(waiting(delays, quorum, Fraction(2), tau, Fraction(s), g, tau), Fraction(0)) for g in rules]
            if waited[0] - waited[1] > worst:
                worst = waited[0] - waited[1]
                where = where or f"delays {delays}, quorum {quorum}, tau {tau}, merge {s} s, step 2 s: {float(worst):g} s are added"
    return Found(float(worst), float(worst), 0.0, proves=True, message=where or "the grace adds no waiting")


def overlap() -> Found:
    """decoupled_diloco.10: nobody waits iff quorum and merge fit into tau steps; three learners, all small delays."""
    wrong = cases = 0
    for late, quorum, tau, s in itertools.product(itertools.product(range(4), repeat=3), (1, 2, 3), (1, 2), range(4)):
        waited = sum(waiting([late], quorum, Fraction(2), tau, Fraction(s), lambda q: Fraction(0), tau))
        wrong += (waited == 0) != (sorted(late)[quorum - 1] + s <= 2 * tau)
        cases += 1
    return Found.count(wrong, cases, proves=True)


# --- failures ---------------------------------------------------------------------------------------------------------


def failure_rate() -> Found:
    """decoupled_diloco.6: mean time to the first failure of N chips with exponential lives, as an integral."""
    t, a = sp.symbols("t a", positive=True)
    N = sp.Symbol("N", positive=True, integer=True)
    mean = sp.integrate(sp.exp(-t / a) ** N, (t, 0, sp.oo))
    return Found.count(int(sp.simplify(mean - a / N) != 0), 1, proves=True)


def renewal_goodput(rate: Any, loss: Any) -> Any:
    """Share of time in which a learner works: exponential time to the next failure, then ``loss`` seconds of standing still."""
    return (1 / rate) / (1 / rate + loss)


def simulated_goodput(rate: float, loss: float, failures: int, seed: int) -> float:
    """The same by drawing lives; failures of a learner that stands still change nothing."""
    up = np.random.default_rng([seed, 8]).exponential(1 / rate, failures).sum()
    return float(up / (up + failures * loss))


def goodput_model() -> Found:
    """decoupled_diloco.8: the formula is the renewal model's goodput, and the losses that the file reads off the table follow from it.

    A printed loss agrees if it is the rounded value for some goodput that rounds to the printed percentage.
    """
    n, m, c, a = sp.symbols("n m c a", positive=True)
    formula = 1 / (1 + (n / m) * c / a)
    wrong = [sp.simplify(renewal_goodput(n / m / a, c) - formula) != 0]
    for thousands, learners, percent, loss in TABLE:
        chips = 1000 * thousands
        low, high = (YEAR * Fraction(learners, chips) * (100 / (percent + half) - 1) for half in (Fraction(1, 2), Fraction(-1, 2)))
        wrong.append(not low <= loss + Fraction(1, 2) or not loss - Fraction(1, 2) <= high)
        at = float(function(GOODPUT, "n m c a")(Fraction(chips), learners, Fraction(loss), YEAR))
        wrong.append(abs(100 * at - percent) > 1)  # the loss is rounded to a second: up to 1.3 % of it
    return Found.count(sum(map(bool, wrong)), len(wrong), proves=True)


def isolation() -> Found:
    """decoupled_diloco.7 in the renewal model: M independent learners on N chips do as well as one on N/M chips, for any N, M."""
    wrong = cases = 0
    for N, M, loss in itertools.product((6, 12, 24), (1, 2, 3), (Fraction(1), Fraction(7, 2))):
        several = sum(renewal_goodput(Fraction(N, M) / YEAR, loss) for _ in range(M)) / M
        wrong += several != function(GOODPUT, "n m c a")(Fraction(N, M), 1, loss, YEAR)
        cases += 1
    return Found.count(wrong, cases, proves=True)


def isolation_in_the_table() -> Found:
    """decoupled_diloco.7 taken as an equality: printed percentages at equal chips per learner may differ by rounding alone (1 point)."""
    pairs = [(r, s) for r, s in itertools.combinations(TABLE, 2) if r[0] * s[1] == s[0] * r[1]]
    gap, r, s = max((abs(r[2] - s[2]), r, s) for r, s in pairs)
    said = f"{r[0]}k chips and {r[1]} learners: {r[2]} %; {s[0]}k and {s[1]}: {s[2]} %"
    return Found(gap, gap, 1.0, proves=True, message=said)


# --- bandwidth --------------------------------------------------------------------------------------------------------


def bandwidth(learners: int, k: int, tau: int) -> Found:
    """decoupled_diloco.9: bits counted fragment by fragment over one period of H = 2*k steps, and by a ring for data parallel."""
    from verify_rates.theory.calculators.messages import Network, ring_all_reduce

    size, T_comp, H = 8 * k * learners, Fraction(3, 2), 2 * k
    up = down = 0
    for step in range(H):
        if step % (H // k) == 0:  # a fragment is due: sent, and received again
            up, down = up + size // k, down + size // k
    net = Network(learners, 0, 0)
    ring_all_reduce(net, [[1] * size] * learners)
    wrong = [
        Fraction(8 * (up + down)) / (H * T_comp) != function(AVERAGE, "size H T_comp")(Fraction(size), H, T_comp),
        Fraction(8 * size, k) / (tau * T_comp) != function(PEAK, "size k tau T_comp")(Fraction(size), k, tau, T_comp),
        Fraction(8 * net.words[0]) / T_comp != function(DATA_PARALLEL, "size m T_comp")(Fraction(size), learners, T_comp),
    ]
    return Found.count(sum(wrong), 3, proves=True)


def printed_saving() -> Found:
    """Data parallel over this method's average, for 8 sites and the default H = 24, beside 198 / 0.84 as printed."""
    size = T_comp = Fraction(1)
    ours = function(DATA_PARALLEL, "size m T_comp")(size, 8, T_comp) / function(AVERAGE, "size H T_comp")(size, 24, T_comp)
    said = Fraction(19800, 84)
    return Found(
        float(ours), float(ours), float(said), "==", proves=True, message=f"the formulas save {ours}x, printed is {float(said):.4g}x"
    )
