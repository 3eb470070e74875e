"""HET: the embedding cache's clock rules as published and as released, what a read can miss, bytes, and its convergence bounds.

The cache is a protocol with clocks and no step function; it is explored exhaustively where it is small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import sympy as sp

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators.lines import function
from verify_rates.theory.evidence import Found
from verify_rates.theory.symbols import number, parse

# s is the staleness, M blocks, G2 = B^2 the second moment of every block's gradient, a the smallest access probability.
LEMMA_1 = "2*s"  # het.2
LEMMA_1_REPAIRED = "2*s + 1"  # at a read, of the reader
LEMMA_3 = "2*s"  # het.5: updates of one other worker that a read misses, as the bound on the distance takes them
LEMMA_3_REPAIRED = "4*s + 2"
BOUND_10 = "2*F0/(eta*T) + eta*M**2*G2*L + 4*s**2*eta**2*L**2*M**2*G2"  # het.6
BOUND_11 = "(2*L*F0 + M**2*G2)/sqrt(T) + 4*s**2*M**2*G2/T"  # het.7
SIMPLEST = "2*F0/(eta*T) + eta*L*M*G2 + L**2*V0"  # het.8, V0 bounds E||x - x^j||^2
WEIGHTED = "(2*F0/(eta*T) + eta*L*M*G2 + L**2*V0)/p"  # het.6 repaired: p is the smallest access probability
STALENESS = "4*s**2*eta**2*M*G2"  # het.8's V0
RELEASED = "a + (n-1)*b"  # het.9, a the pull bound and b the push bound
BYTES = "16*u + p*(16 + 4*d) + q*(16 + 4*d)"  # het.10: u keys, p rows pulled, q rows pushed, width d
DENSE = "2*(n-1)/n*4*d"  # het.11

MOST_STATES = 400_000


# --- the published protocol, one row ----------------------------------------------------------------------------------
#
# Server: the clock cg.  Worker: None (not cached) or (cs, cc).  For what a read misses, one worker (the reader, number 0) is followed:
# per other worker the updates that are pending there, and those pushed since the reader's last fetch.

Cached = tuple[int, int] | None
State = tuple[int, tuple[Cached, ...], tuple[int, ...], tuple[int, ...], tuple[bool, ...]]


def valid(cached: tuple[int, int], cg: int, s: int) -> bool:
    """The published test: ``cc <= cs + s`` and ``cg <= cc + s``."""
    cs, cc = cached
    return cc <= cs + s and cg <= cc + s


def _reduced(state: State, s: int) -> State:
    """The same state in a finite form: clocks count from the server's, and what is out of reach is all the same.

    A row whose clock is more than ``s + 3`` behind fails the test whatever is written to it, so its clocks may be moved up; more
    missed updates than :func:`_many` are not told apart.
    """
    cg, rows, pending, missed, reading = state
    least = -s - 3
    moved = tuple(None if r is None else (max(r[0] - cg, least), max(r[1] - cg, least)) for r in rows)
    return 0, moved, pending, tuple(min(m, _many(s)) for m in missed), reading


def _many(s: int) -> int:
    return 8 * (s + 1)


def _published_moves(state: State, s: int, overflow: bool) -> Iterator[tuple[State, int | None]]:
    """All next states; with a read of worker 0 comes how many updates of one other worker it misses, as the largest."""
    cg, rows, pending, missed, reading = state
    for i, row in enumerate(rows):
        if reading[i]:  # after a read comes the write of the same batch
            cs, cc = row  # type: ignore[misc]
            more = tuple(p + (j == i) for j, p in enumerate(pending))
            yield (cg, _put(rows, i, (cs, cc + 1)), more, missed, _put(reading, i, False)), None
            continue
        if row is not None and valid(row, cg, s):
            seen = max((pending[j] + missed[j] for j in range(1, len(rows))), default=0) if i == 0 else None
            yield (cg, rows, pending, missed, _put(reading, i, True)), seen
        else:
            out = _evicted(state, i) if row is not None else state
            clock, others, left, gone, busy = out
            fresh = tuple(0 for _ in gone) if i == 0 else gone
            new = (clock, _put(others, i, (clock, clock)), left, fresh, _put(busy, i, True))
            yield new, max((left[j] + fresh[j] for j in range(1, len(rows))), default=0) if i == 0 else None
        if overflow and row is not None:
            yield _evicted(state, i), None


def _put(values: tuple[Any, ...], i: int, value: Any) -> tuple[Any, ...]:
    return (*values[:i], value, *values[i + 1 :])


def _evicted(state: State, i: int) -> State:
    cg, rows, pending, missed, reading = state
    cc = rows[i][1]  # type: ignore[index]
    gone = tuple(m + (pending[j] if j == i else 0) for j, m in enumerate(missed))
    return max(cg, cc), _put(rows, i, None), _put(pending, i, 0), gone, reading


def explore(n: int, s: int, overflow: bool, look: Callable[[State, int | None], None]) -> None:
    """Every state of the published protocol that n workers can reach on one row; ``look`` sees each state, and what reads miss."""
    start: State = (0, (None,) * n, (0,) * n, (0,) * n, (False,) * n)
    todo, known = [start], {start}
    while todo:
        state = todo.pop()
        for new, seen in _published_moves(state, s, overflow):
            made = _reduced(new, s)
            look(made, seen)
            if made not in known:
                if len(known) >= MOST_STATES:
                    raise UsageError("the protocol has too many states for this n and s.")
                known.add(made)
                todo.append(made)


def clock_gap(s: int) -> Found:
    """het.2 as printed: ``|cc_i - cc_j| <= 2*s`` at all times; worker 1 works on a row that worker 0 caches and does not need again."""
    rounds = 2 * s + 1
    cg, rows = 0, [(0, 0), (0, 0)]
    for _ in range(rounds):
        if not valid(rows[1], cg, s):
            cg = max(cg, rows[1][1])
            rows[1] = (cg, cg)
        rows[1] = (rows[1][0], rows[1][1] + 1)
    gap = rows[1][1] - rows[0][1]
    said = number(LEMMA_1, {"s": s})
    return Found(
        gap, gap, said, proves=True, message=f"two workers fetch, one writes {rounds} times: clocks {gap} apart, said are {said:g}"
    )


def clock_gap_at_reads(n: int, s: int) -> Found:
    """het.2 repaired: right after a read of worker 0 no other clock is ahead by more than 2*s + 1, in all reachable states."""
    worst = 0

    def look(state: State, seen: int | None) -> None:
        nonlocal worst
        if seen is not None:
            mine = state[1][0][1]  # type: ignore[index]
            worst = max(worst, *(row[1] - mine for row in state[1][1:] if row is not None), 0)

    explore(n, s, True, look)
    return Found(worst, worst, number(LEMMA_1_REPAIRED, {"s": s}), proves=True, message=f"at most {worst} ahead, n = {n}, s = {s}")


def missed_updates(n: int, s: int, said: str) -> Found:
    """het.5: updates of one other worker that a read misses, in all reachable states; the distance bound takes 2*s of them."""
    worst = 0

    def look(state: State, seen: int | None) -> None:
        nonlocal worst
        worst = max(worst, seen or 0)

    explore(n, s, True, look)
    return Found(
        worst, worst, number(globals()[said], {"s": s}), proves=True, message=f"a read misses up to {worst} updates, n = {n}, s = {s}"
    )


def fresh_at_zero(n: int) -> Found:
    """What to verify 5: at s = 0 a read that passes the test has nothing of its own pending, so every write forces a fetch."""
    wrong = cases = 0

    def look(state: State, seen: int | None) -> None:
        nonlocal wrong, cases
        if seen is not None:
            cases += 1
            wrong += state[2][0] != 0

    explore(n, 0, False, look)
    return Found.count(wrong, cases, proves=True)


# --- the released protocol --------------------------------------------------------------------------------------------


def released(n: int, pull: int, push: int) -> Found:
    """het.9: the largest number of updates that a read misses, in all states of one row (every worker may also evict)."""
    worst = 0
    # per worker: version relative to the server's (None: not cached) and updates pending
    start = ((None, 0),) * n
    todo, known = [start], {start}
    while todo:
        state = todo.pop()
        for new, seen in _released_moves(state, pull, push):
            worst = max(worst, seen)
            if new not in known:
                known.add(new)
                todo.append(new)
    said = function(RELEASED, "a b n")(pull, push, n)
    return Found(worst, worst, float(said), proves=True, message=f"{worst} of {said} updates unseen, n = {n}, bounds {pull} and {push}")


def _released_moves(state: tuple[Any, ...], pull: int, push: int) -> Iterator[tuple[tuple[Any, ...], int]]:
    for i, (behind, pending) in enumerate(state):
        if behind is None or behind > pull:  # read: the server sends the row
            behind = 0
        others = sum(p for j, (_, p) in enumerate(state) if j != i)
        read = _put(state, i, (behind, pending))
        yield read, behind + others
        more = pending + 1  # update after the read
        yield (_pushed(read, i, behind, more, pull) if more > push else _put(read, i, (behind, more))), 0
        if pending:
            yield _put(_pushed(state, i, state[i][0], pending, pull), i, (None, 0)), 0
        elif state[i][0] is not None:
            yield _put(state, i, (None, 0)), 0


def _pushed(state: tuple[Any, ...], i: int, behind: int | None, count: int, pull: int) -> tuple[Any, ...]:
    """The server's version grows by ``count``, and so does the pusher's; the others fall behind (beyond the bound all is one)."""
    return tuple((behind, 0) if j == i else (None if b is None else min(b + count, pull + 1), p) for j, (b, p) in enumerate(state))


# --- bytes ------------------------------------------------------------------------------------------------------------


def bytes_of(seed: int, width: int) -> Found:
    """het.10: the released messages as arrays of their types, for a random batch of keys under the released rules."""
    rng = np.random.default_rng([seed, 10])
    keys = np.unique(rng.integers(0, 40, 25))
    pulled, pushed = keys[rng.random(len(keys)) < 0.4], keys[rng.random(len(keys)) < 0.3]
    request = np.zeros(len(keys), [("key", "i8"), ("version", "i8")])
    row = [("key", "i8"), ("version", "i8"), ("values", "f4", (width,))]
    total = request.nbytes + np.zeros(len(pulled), row).nbytes + np.zeros(len(pushed), row).nbytes
    said = function(BYTES, "u p q d")(len(keys), len(pulled), len(pushed), width)
    return Found(total, total, float(said), "==", proves=True, message=f"{total} bytes for {len(keys)} keys")


def dense_bytes(n: int) -> Found:
    """het.11: bytes that a rank sends in a ring all-reduce of the dense block."""
    from verify_rates.theory.calculators.messages import Network, ring_all_reduce

    d, net = 6 * n, Network(n, 0, 0)
    ring_all_reduce(net, [[1] * d] * n)
    return Found(4 * net.words[0], 4 * net.words[0], float(function(DENSE, "n d")(n, d)), "==", proves=True)


# --- convergence ------------------------------------------------------------------------------------------------------


def access(p_tenths: int, s: int) -> Found:
    """het.3: the mean number of iterations until row i was drawn s times, from the distribution's series."""
    p, k = sp.Rational(p_tenths, 10), sp.Symbol("k", integer=True, nonnegative=True)
    once = sp.summation((k + 1) * p * (1 - p) ** k, (k, 0, sp.oo))  # waiting times between draws are independent
    return Found.count(int(sp.simplify(s * once - s / p) != 0), 1, proves=True)


def corollary() -> Found:
    """het.7: bound (11) is bound (10) at eta = 1/(L*sqrt(T)); at s = 0 the staleness term vanishes."""
    ten, eleven = parse(BOUND_10), parse(BOUND_11)
    named = {x.name: x for x in ten.free_symbols | eleven.free_symbols}
    at = ten.subs(named["eta"], 1 / (named["L"] * sp.sqrt(named["T"])))
    plain = ten.subs(named["s"], 0) - parse("2*F0/(eta*T) + eta*M**2*G2*L")
    return Found.count(int(sp.simplify(at - eleven) != 0) + int(sp.simplify(plain) != 0), 2, proves=True)


def reference(M: int, n: int, s: int, eta: float, steps: int, share: float, seed: int, sigma: float = 0.5) -> dict[str, float]:
    """The reference sequence (4) on ``f = |x|^2/2``, every worker at a copy that misses up to 2*s steps of the others.

    Returns the mean squared gradient along x, ``G2`` (largest mean square of a block's gradient seen), ``V0`` (largest mean of
    ``||x - x^j||^2``) and ``F0``; means over 40 runs.
    """
    rng, runs = np.random.default_rng([seed, 6]), 40
    x = np.ones((runs, M))
    past: list[np.ndarray] = []  # per step the gradients (runs, n, M)
    total = most = far = 0.0
    for _ in range(steps):
        copies = np.repeat(x[:, None, :], n, axis=1)
        window = past[-2 * s :] if s else []
        for age, g in enumerate(reversed(window), 1):
            missing = rng.random((runs, n, 1)) < (1.0 if age < 2 * s else 0.5)
            others = g.sum(axis=1, keepdims=True) - g
            copies += missing * eta / n * share * others
        far = max(far, float(np.mean(np.sum((copies - x[:, None, :]) ** 2, axis=2), axis=0).max()))
        G = copies + sigma * rng.standard_normal(copies.shape)
        most = max(most, float(np.mean(G**2, axis=0).max()))
        total += float(np.mean(np.sum(x**2, axis=1)))
        past = [*past, G][-2 * s - 1 :]
        x = x - eta * share * G.mean(axis=1)
    return {"mean": total / steps, "G2": most, "V0": far, "F0": M / 2}


def bound(name: str, M: int, n: int, s: int, c: float, steps: int, p_hundredths: int, seed: int) -> Found:
    """A bound on the mean squared gradient against the reference sequence; every row is drawn with probability p."""
    p = p_hundredths / 100
    eta = c / np.sqrt(steps)
    seen = reference(M, n, s, float(eta), steps, p, seed)
    values = {"F0": seen["F0"], "eta": float(eta), "T": steps, "M": M, "G2": seen["G2"], "L": 1, "s": s, "V0": seen["V0"], "p": p}
    said = number(globals()[name], values)
    text = f"mean squared gradient {seen['mean']:.4g} after {steps} steps at p = {p:g}, {name} says {said:.4g}"
    return Found(seen["mean"], seen["mean"], said, message=text)


def staleness(M: int, n: int, s: int, seed: int) -> Found:
    """het.8: the distance of the copies under the paper's model (each misses at most 2*s steps of the others)."""
    eta = 0.05
    seen = reference(M, n, s, eta, 60, 1.0, seed)
    return Found(seen["V0"], seen["V0"], number(STALENESS, {"s": s, "eta": eta, "M": M, "G2": seen["G2"]}))


def theorem(s: int, M: int, seed: int) -> Found:
    """het.1: some step of worker 0's copy has a mean squared gradient of at most eps, with eta and T as printed (f = |x|^2/2)."""
    eps, F0, B = 0.5 * M, M / 2, 1.3  # B^2 covers the start, 1 + sigma^2
    root = np.sqrt(eps)
    eta = eps / (12 * M**2 * B**2)
    if s:
        eta = min(eta, root / (4 * np.sqrt(3) * s * M * B), root / (4 * s * M * B))
    steps = int(np.ceil(24 * F0 / (eta * eps)))
    rng, runs, n = np.random.default_rng([seed, 1]), 20, 2
    x, best = np.ones((runs, M)), np.inf
    past: list[np.ndarray] = []
    for _ in range(steps):
        others = [g[:, 1] for g in past]
        copies = np.stack([x + eta / n * sum(others, np.zeros_like(x)), x], axis=1)
        best = min(best, float(np.mean(np.sum(copies[:, 0] ** 2, axis=1))))
        G = copies + 0.5 * rng.standard_normal(copies.shape)
        past = ([*past, G])[-2 * s :] if s else []
        x = x - eta * G.mean(axis=1)
    return Found(best, best, eps, message=f"least mean squared gradient {best:.3g} within {steps} steps, eps {eps:g}")
