"""LOSCAR-SGD with worker-specific step counts, which no step function has: a simulator, its merge rule exactly, and its times."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from verify_rates.theory.calculators.lines import function, pace_of, printed
from verify_rates.theory.calculators.streams import same_maximum
from verify_rates.theory.evidence import Found, relative
from verify_rates.theory.symbols import number

BOUND = (  # loscar.4: H the largest count, a the mean of the counts, b the mean of the overlapping steps, c = 4*(1-p)/p^2
    "4*F0/(gamma*a*R) + 4*L*gamma*sigma2/n + 16*L**2*gamma**2*sigma2*H*(2*c + 4*b/a + 1)"
)
STEP = "1/(L*H*sqrt(64*c + 150))"
EXPECTED = "q*a + p*b"  # loscar.3: a the squared norm of all increments, b of the overlapping ones
ROUND = "((H-b)*T_comp + Max(T_tx + lat, b*T_comp))/H"  # loscar.7 a step of equal workers, b overlapping steps
SIGMAS = 6  # a sample speaks against a bound from its mean less six standard errors


class Round(NamedTuple):
    """One round: models at its start, when sending and at its end, the mask, and the models after the merge; arrays (n, d)."""

    x: Any
    y: Any
    z: Any
    mask: Any
    merged: Any


def merge(y: Any, z: Any, mask: Any, naive: bool = False) -> Any:
    """The models after the average ``m`` has come, ``mask`` of shape (d,): ``m + (z - y)`` on it, or ``m`` alone (naive)."""
    m = y.mean(axis=0)
    return np.where(mask, m if naive else m + (z - y), z)


def rounds(
    problem: Any, N: Sequence[int], Q: Sequence[int], k: int, gamma: float, count: int, seed: int, naive: bool = False
) -> Iterator[Round]:
    """The protocol: worker i takes ``N[i]`` steps, sends k coordinates of one shared mask, takes ``Q[i]`` steps, merges."""
    draws = [np.random.default_rng(s) for s in np.random.SeedSequence([seed, 16]).spawn(problem.n + 1)]
    first, last = np.array(N)[:, None], np.array(N)[:, None] + np.array(Q)[:, None]
    x = np.zeros((problem.n, problem.d))
    for _ in range(count):
        z, y = x, x
        for t in range(int(last.max())):
            z = np.where(t < last, z - gamma * problem.grads(z, draws[:-1]), z)
            y = np.where(t < first, z, y)
        mask = np.zeros(problem.d, bool)
        mask[draws[-1].choice(problem.d, k, replace=False)] = True
        merged = merge(y, z, mask, naive)
        yield Round(x, y, z, mask, merged)
        x = merged


def _problem(centre: float, sigma2: float = 0.5) -> Any:
    from verify_rates.problems import get_problem

    return get_problem("one_minus_cos", n=8, d=8, L=1.0, omega=1.5, centre=centre, sigma2=sigma2)


def invariance(N: Sequence[int], Q: Sequence[int], k: int, seed: int) -> Found:
    """loscar.2: the mean model after a merge is the mean of what the workers had reached."""
    made = list(rounds(_problem(1.0), N, Q, k, 0.1, 20, seed))
    return Found.identity(relative([r.merged.mean(axis=0) - r.z.mean(axis=0) for r in made], [r.z for r in made]))


def _instance(seed: int, n: int, d: int) -> Any:
    """Integer models, increments before and after sending, (n, d)."""
    return np.random.default_rng([seed, 3]).integers(-9, 10, (3, n, d)).astype(object) * Fraction(1)


def disagreement(seed: int, n: int, d: int, k: int) -> Found:
    """loscar.3 for every worker by all masks, in fractions."""
    x, dN, dQ = _instance(seed, n, d)
    y, z = x + dN, x + dN + dQ
    masks = [np.isin(np.arange(d), chosen) for chosen in itertools.combinations(range(d), k)]
    merged = [merge(y, z, m) for m in masks]
    wrong = 0
    for i in range(n):
        expected = sum(_square(v[i] - v.mean(axis=0)) for v in merged) / len(masks)
        everything, overlap = (_square(v[i] - v.mean(axis=0)) for v in (z, dQ))
        p = Fraction(k, d)
        wrong += expected != function(EXPECTED, "p q a b")(p, 1 - p, everything, overlap)
    return Found.count(wrong, n, proves=True)


def _square(v: Any) -> Any:
    return sum(c * c for c in v)


def naive_merge(seed: int, n: int, d: int, k: int) -> Found:
    """loscar.5 for all masks, in fractions: on the mask the mean is that of what was sent, and the average is lost."""
    x, dN, dQ = _instance(seed, n, d)
    y, z = x + dN, x + dN + dQ
    wrong = cases = 0
    for chosen in itertools.combinations(range(d), k):
        mask = np.isin(np.arange(d), chosen)
        made = merge(y, z, mask, naive=True).mean(axis=0)
        kept = bool((made == z.mean(axis=0)).all())
        wrong += not (made[mask] == y.mean(axis=0)[mask]).all() or kept != (not any(dQ.mean(axis=0)[mask]))
        cases += 1
    return Found.count(wrong, cases, proves=True)


def bound(N: Sequence[int], Q: Sequence[int], k: int, centre: float, R: int, share: float, seed: int, seeds: int) -> Found:
    """loscar.4: the average over the rounds of the squared gradient at the mean model, over ``seeds`` runs."""
    problem = _problem(centre)
    p, counts = Fraction(k, problem.d), [a + b for a, b in zip(N, Q, strict=True)]
    given = {
        **{"L": problem.constants.L_max, "sigma2": problem.sigma2, "n": problem.n, "R": R, "c": 4 * (1 - p) / p**2},
        **{"H": max(counts), "a": Fraction(sum(counts), len(counts)), "b": Fraction(sum(Q), len(Q))},
        "F0": problem.value(np.zeros(problem.d)) - problem.constants.f_star[0],
    }
    gamma = share * number(STEP, given)
    said = number(BOUND, {**given, "gamma": gamma})

    def measured(s: int) -> float:
        means = [r.x.mean(axis=0) for r in rounds(problem, N, Q, k, gamma, R, s)]
        return float(np.mean([np.sum(problem.grads(m).mean(axis=0) ** 2) for m in means]))

    values = [measured(seed + s) for s in range(seeds)]
    mean, error = float(np.mean(values)), float(np.std(values, ddof=1)) / math.sqrt(seeds)
    return Found(mean - SIGMAS * error, math.inf, said, message=f"mean of {seeds} runs/bound = {mean / said:.3g}")


def volume(d: int, k: int, n: int) -> Found:
    """loscar.6: bits of a worker and round from the step function, up and down, beside 32 bits for each of K values."""
    from verify_rates.theory.traffic import traffic

    made = traffic("loscar", {"H": 4, "Q": 1}, d=d, n=n, compressor=f"randk(k={k})")
    assert made.up_per_round is not None and made.down_per_round is not None
    both = made.up_per_round + made.down_per_round
    return Found(both, both, 64.0 * k, "==", proves=True, message=f"{both:g} bits a worker and round")


def round_seconds(N: Sequence[int], Q: Sequence[int], c: Sequence[int], tc: int) -> int:
    """Seconds of a round by its events: a worker goes on as soon as it has sent; the average leaves when all have sent."""
    sent = max(a * b for a, b in zip(N, c, strict=True))
    return max(sent + tc, *((a + b) * each for a, b, each in zip(N, Q, c, strict=True)))


def _rounds() -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int]]:
    """Two workers with small counts and times, the smallest first."""
    values = itertools.product(itertools.product((1, 2, 3), repeat=2), itertools.product((0, 1, 2), repeat=2))
    cases = [(N, Q, c, tc) for (N, Q), c, tc in itertools.product(values, itertools.product((1, 2), repeat=2), (1, 2, 3))]
    return iter(sorted(cases, key=lambda case: (sum(case[0]) + sum(case[1]) + sum(case[2]) + case[3], case)))


def _said(N: Sequence[int], Q: Sequence[int], c: Sequence[int], tc: int) -> int:
    """loscar.7 as printed."""
    return max(a * b for a, b in zip(N, c, strict=True)) + max(tc, *(a * b for a, b in zip(Q, c, strict=True)))


def unequal(relation: str) -> Found:
    """loscar.7 for two workers: the printed time against the events; where all send together both are equal."""
    cases = list(_rounds())
    if relation == "==":
        wrong = [case for case in cases if round_seconds(*case) != _said(*case)]
    else:
        together = [case[0][0] * case[2][0] == case[0][1] * case[2][1] for case in cases]
        wrong = [
            case
            for case, same in zip(cases, together, strict=True)
            if round_seconds(*case) > _said(*case) or (same and round_seconds(*case) != _said(*case))
        ]
    found = Found.count(len(wrong), len(cases), proves=True)
    if not wrong:
        return found
    N, Q, c, tc = wrong[0]
    smallest = f"smallest: N = {N}, Q = {Q}, c = {c}, tc = {tc} takes {round_seconds(N, Q, c, tc)} s, said are {_said(N, Q, c, tc)} s"
    return Found(found.lower, found.upper, 0.0, proves=True, message=f"{found.message}; {smallest}")


def equal(H: int, Q: int) -> Found:
    """loscar.7 for equal workers from the step function's time line."""
    made = pace_of("loscar", {"H": H, "Q": Q}, link="blocking")
    return Found.count(int(not same_maximum(made, printed(ROUND, H=H, b=Q))), 1, proves=True)


def memory(d: int, k: int) -> Found:
    """loscar.8: numbers that a worker keeps of what it sent, in a run of the step function."""
    from verify_rates.solvers.engine.run import simulate

    kept = simulate("loscar", _problem(1.0), {"gamma": 0.1, "H": 3, "Q": 1}, steps=9, compressor=f"randk(k={k})", engine="numpy")
    count = np.count_nonzero(kept.final["y"][0], axis=1)
    return Found(float(count.min()), float(count.max()), k, "==", message=f"{count.max()} numbers")
