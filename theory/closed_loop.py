"""A closed loop on a network that varies: staleness and compression chosen anew from what the link did, against choices that stay.

A protocol, no step function: DD-EF-SGD whose delta and tau change while it runs.  Every step sends ``C(e + g)`` with the contraction of
the moment; step t applies all averages up to number ``t - tau`` that are not applied yet, and starts when the last of these has arrived.
With delta and tau fixed it is ``dd_ef_sgd`` (tested), and its seconds are those of ``networks.along`` (tested).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verify_rates.solvers.compressors import get_compressor
from verify_rates.solvers.method import UsageError
from verify_rates.theory.networks import Trace
from verify_rates.theory.planner import OBJECTIVES

Setting = tuple[int, float]  # tau, delta
Policy = Callable[[int, float, float], Setting]  # (step, measured bandwidth in bit/s, measured latency in s) -> setting
SMOOTHING = 0.5  # weight of the newest transfer in the measured bandwidth


@dataclass(frozen=True)
class LoopRun:
    """What a run did: after every step the seconds on the clock, f - f*, and the setting."""

    seconds: np.ndarray  # (steps,) when the step's model was there
    gap: np.ndarray  # (steps,)
    tau: np.ndarray  # (steps,)
    delta: np.ndarray  # (steps,)

    def seconds_to(self, target: float) -> float:
        """When f - f* was at most the target for the first time; infinity where it never was."""
        reached = np.flatnonzero(self.gap <= target)
        return float(self.seconds[reached[0]]) if len(reached) else float("inf")


def fixed(tau: int, delta: float) -> Policy:
    """The choice that stays."""
    return lambda step, bandwidth, latency: (tau, delta)


def deco(size: float, compute: float, every: int, objective: str = "additive", most: int = 32) -> Policy:
    """DeCo's rule applied anew every so many steps: communication just hidden at the measured bandwidth and latency, best objective.

    Parameters
    ----------
    size, compute : bytes of an uncompressed vector and seconds of one gradient.
    every : steps between two plans.
    objective : one of "phi_A", "phi_B" and "additive" (papers/deco.md).
    most : largest staleness.
    """
    if objective not in OBJECTIVES:
        raise UsageError(f"the objective must be one of {', '.join(OBJECTIVES)}, not {objective!r}.")
    if not (isinstance(every, int) and every >= 1 and size > 0 and compute > 0):
        raise UsageError("a plan needs a positive size and compute time, and at least one step between two plans.")
    factor, kept = OBJECTIVES[objective], [(0, 1.0)]

    def choose(step: int, bandwidth: float, latency: float) -> Setting:
        if step % every == 0:
            rate = bandwidth / (8 * size)
            hiding = [(tau, min(1.0, rate * compute, rate * (tau * compute - latency))) for tau in range(most + 1)]
            kept[0] = min(((t, d) for t, d in hiding if d > 0), key=lambda p: (factor(*p), p), default=(most, min(1.0, rate * compute)))
        return kept[0]

    return choose


def run_loop(problem: Any, policy: Policy, trace: Trace, *, gamma: float, steps: int, compute: float, size: float) -> LoopRun:
    """Run delayed, compressed gradient descent on a problem over a link that follows a trace.

    Parameters
    ----------
    problem : with exact gradients; starts at 0.
    policy : chooses tau and delta before every step, from the bandwidth and the latency of the transfers so far.
    gamma, steps : step size and number of steps.
    compute, size : seconds of a gradient; bytes of an uncompressed vector (top-k sends ``k = ceil(delta*d)`` entries, and that share).

    Errors: UsageError for noise, of which this simulator has none, and for bad numbers.

    >>> from verify_rates.problems import get_problem
    >>> link = Trace((0,), (8.0,), (1.0,), 1)
    >>> done = run_loop(get_problem("quadratic", n=2, d=4), fixed(1, 0.5), link, gamma=0.1, steps=3, compute=1, size=4)
    >>> done.seconds.tolist()
    [1.0, 4.0, 6.0]
    """
    if problem.stochastic:
        raise UsageError("a closed loop is run with exact gradients; leave out sigma2 and batch.")
    if not (steps >= 1 and gamma > 0 and compute >= 0 and size > 0):
        raise UsageError("steps and gamma, and the size of a vector, must be positive, and compute at least 0.")
    x, e = np.zeros(problem.d), np.zeros((problem.n, problem.d))
    no_draws: list[np.random.Generator] = []
    messages: list[np.ndarray] = []
    arrived: list[float] = []
    applied, clock, link = 0, 0.0, 0.0
    bandwidth, latency = float(trace.bandwidth[0]) or trace.mean_bandwidth, float(trace.latency[0])
    record = np.zeros((4, steps))
    f_star = problem.constants.f_star[0]
    for t in range(steps):
        tau, delta = policy(t, bandwidth, latency)
        kept = max(1, int(np.ceil(delta * problem.d - 1e-12)))
        clock += compute
        p = e + problem.grads(x)
        sent = get_compressor(f"topk(k={kept})")(p, no_draws)
        e = p - sent
        messages.append(sent.mean(axis=0))
        start, bits = max(clock, link), 8 * size * kept / problem.d
        link = trace.transfer(start, bits)
        arrived.append(link + trace.latency_at(link))
        seen = bits / (link - start) if link > start else bandwidth
        bandwidth, latency = (1 - SMOOTHING) * bandwidth + SMOOTHING * seen, trace.latency_at(link)
        while applied <= t - tau:
            clock = max(clock, arrived[applied])
            x = x - gamma * messages[applied]
            applied += 1
        record[:, t] = clock, problem.value(x) - f_star, tau, delta
    return LoopRun(*record)


def compare(
    problem: Any,
    trace: Trace,
    *,
    target: float,
    gamma: float,
    steps: int,
    compute: float,
    size: float,
    every: int = 10,
    taus: Sequence[int] = (0, 1, 2, 4, 8),
    deltas: Sequence[float] = (1.0, 0.5, 0.25, 0.1, 0.05),
) -> dict[str, float]:
    """Seconds until f - f* is at most the target: every choice that stays, and DeCo's rule in a closed loop under each objective.

    Keys are such as "tau=2, delta=0.5" and "closed loop, additive"; infinity where the steps do not reach the target.
    """
    given: dict[str, Any] = {"gamma": gamma, "steps": steps, "compute": compute, "size": size}
    policies = {f"tau={tau}, delta={delta:g}": fixed(tau, delta) for tau in taus for delta in deltas}
    policies |= {f"closed loop, {name}": deco(size, compute, every, name) for name in OBJECTIVES}
    return {name: run_loop(problem, policy, trace, **given).seconds_to(target) for name, policy in policies.items()}
