"""Worst case of gradient descent, end to end, against PEPit with the same solver in the same run.

Run ``python benchmarks/worst_case.py`` (options: ``--steps 5 10 20 40 --repeats 3``).  Each side poses and solves
``max f(x_N) - f*`` over L-smooth convex f with ``||x_0 - x*|| <= 1`` at step 1/L; the truth is ``L/(4 N + 2)``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

# Issue: our side is at least this many times faster.
TARGETS = {5: 5.0, 10: 8.0, 20: 8.0, 40: 3.0}
TARGET_AT_20 = TARGETS[20]


def ours(N: int) -> tuple[float, float]:
    """Lower and upper end, verified."""
    from verify_rates.theory.worst_case.solve import worst_case

    found = worst_case("gd", {"gamma": 1.0}, steps=N, n=1)
    if not found.rigorous:
        raise RuntimeError(f"not verified at N = {N}: {found}")
    return found.lower, found.upper


def pepit(N: int) -> tuple[float, float]:
    """PEPit's one number, twice."""
    from PEPit import PEP
    from PEPit.functions import SmoothConvexFunction

    problem = PEP()
    f = problem.declare_function(SmoothConvexFunction, L=1.0)
    optimum = f.stationary_point()
    x = problem.set_initial_point()
    problem.set_initial_condition((x - optimum) ** 2 <= 1)
    for _ in range(N):
        x = x - f.gradient(x)
    problem.set_performance_metric(f(x) - f(optimum))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = problem.solve(wrapper="cvxpy", solver="CLARABEL", verbose=0)
    return value, value


def best_time(run: Callable[[int], tuple[float, float]], N: int, repeats: int) -> tuple[float, tuple[float, float]]:
    """The shortest wall time of several runs, and the last answer."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        answer = run(N)
        times.append(time.perf_counter() - began)
    return min(times), answer


def measure(steps: list[int], repeats: int) -> list[dict[str, float]]:
    """One row per N: seconds and relative errors of both sides, and the ratio of the times."""
    ours(2), pepit(2)  # imports and first calls
    rows = []
    for N in steps:
        truth = 1 / (4 * N + 2)
        mine, (low, high) = best_time(ours, N, repeats)
        theirs, (value, _) = best_time(pepit, N, repeats)
        errors = {"lower": low / truth - 1, "upper": high / truth - 1, "pepit": value / truth - 1}
        rows.append({"N": N, "seconds": mine, "pepit_seconds": theirs, "ratio": theirs / mine, **errors})
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, nargs="+", default=[5, 10, 20, 40])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print(f"{'N':>3} {'ours s':>8} {'PEPit s':>8} {'ratio':>6}   relative error: lower, upper, PEPit")
    rows = measure(options.steps, options.repeats)
    for r in rows:
        errors = " ".join(f"{r[k]:+.1e}" for k in ("lower", "upper", "pepit"))
        print(f"{r['N']:>3} {r['seconds']:8.3f} {r['pepit_seconds']:8.3f} {r['ratio']:6.1f}   {errors}")
    missed = [r for r in rows if r["ratio"] < TARGETS.get(r["N"], 0.0)]
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
