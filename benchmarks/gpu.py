"""NumPy, Numba and CuPy on one large case, in one run; ready for a machine with a GPU.

    python benchmarks/gpu.py [--d 4096] [--n 16] [--steps 100] [--method ef_sgd|gossip_sgd] [--repeats 3]

The case: a dense quadratic with one d x d Hessian, n workers, exact gradients, and error feedback with the top 1 % of the coordinates
(or gossip on a ring).  The arrays multiply by the Hessian once a step for ef_sgd, whose iterate is shared, and n times for gossip_sgd;
the compiled engine, which knows one worker at a time, n times for both.  All engines run the same step function from the same start:
the largest relative distance of the last state from NumPy's stands in the last column.  Times are the shortest of the repeats, the
first call (compilation, moving the data) apart; ratios are those of NumPy's time.  Without CuPy or without a device its line says so.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from verify_rates.problems import get_problem
from verify_rates.solvers.engine.run import simulate
from verify_rates.solvers.method import UsageError

ENGINES = ("numpy", "numba", "cupy")


def case(method: str, d: int, n: int) -> tuple[Any, dict[str, Any]]:
    """The problem, and what ``simulate`` is given beside it."""
    # diagonal: the proof of a rotated spectrum takes longer than the benchmark; the Hessian is stored and multiplied as a dense one
    problem = get_problem("quadratic", n=n, d=d, L=1.0, mu=0.01, zeta2_star=1.0, rotate=False)
    more = {"topology": "ring"} if method == "gossip_sgd" else {"compressor": f"topk(k={max(1, d // 100)})"}
    return problem, {"hyper": {"gamma": 0.1}, "measures": ("distance",), **more}


def measure(method: str, engine: str, problem: Any, given: dict[str, Any], steps: int, repeats: int) -> tuple[float, float, Any]:
    """Seconds of the first call, shortest seconds of ``steps`` steps, and the history.

    The last state comes back to the host, so that everything queued on a device is done when the clock stops.
    """

    def once() -> tuple[float, Any]:
        began = time.perf_counter()
        history = simulate(method, problem, steps=steps, every=steps, engine=engine, jobs=1, **given)
        return time.perf_counter() - began, history

    first, _ = once()
    times, histories = zip(*(once() for _ in range(repeats)), strict=True)
    return first, min(times), histories[-1]


def apart(history: Any, reference: Any) -> float:
    """Largest distance between two last states, relative to the largest entry of the field."""
    return max(
        float(np.max(np.abs(history.final[name] - v)) / max(float(np.max(np.abs(v))), 1e-300)) for name, v in reference.final.items()
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--d", type=int, default=4096)
    parser.add_argument("--n", type=int, default=16)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--method", choices=("ef_sgd", "gossip_sgd"), default="ef_sgd")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    problem, given = case(options.method, options.d, options.n)
    print(f"{options.method}, d = {options.d}, n = {options.n}, {options.steps} steps, float64")
    print(f"{'engine':8} {'first s':>9} {'s':>9} {'ratio':>7} {'apart':>9}")
    reference, base = None, None
    for engine in ENGINES:
        try:
            first, best, history = measure(options.method, engine, problem, given, options.steps, options.repeats)
        except UsageError as why:
            print(f"{engine:8} not measured: {why}")
            continue
        reference, base = reference or history, base or best
        print(f"{engine:8} {first:9.3f} {best:9.3f} {base / best:7.2f} {apart(history, reference):9.1e}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
