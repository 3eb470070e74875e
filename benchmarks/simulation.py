"""Simulation of EF top-k on a9a: the compiled engine against a NumPy loop over workers, in the same run.

    python benchmarks/simulation.py --data PATH/a9a.gz [--steps 10000] [--seeds 16] [--threads 2]

The task: logistic regression with l2 regularisation, 10 workers, minibatches of 32 drawn with replacement, top-12 of 123 coordinates,
error feedback.  The loop is what scripts of papers do: dense rows, one worker after the other.  Its time for all seeds is that of
one seed times their number, since it knows no parallelism.  Both sides run the same algorithm; their average final function gaps
are printed beside each other.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the loop's products are too small for more

import numpy as np

from verify_rates.problems import get_problem
from verify_rates.solvers.engine.run import simulate

N, BATCH, K, GAMMA, LAM = 10, 32, 12, 0.05, 1e-3


def numpy_loop(A, y, offsets, steps, seed):
    """EF-SGD with top-k as a script of a paper has it; returns the last iterate."""
    d = A.shape[1]
    shards = [(A[a:b], y[a:b]) for a, b in itertools.pairwise(offsets)]
    gens = [np.random.default_rng((seed, i)) for i in range(N)]
    x, e = np.zeros(d), np.zeros((N, d))
    for _ in range(steps):
        total = np.zeros(d)
        for i, (Ai, yi) in enumerate(shards):
            rows = gens[i].integers(len(yi), size=BATCH)
            a, b = Ai[rows], yi[rows]
            g = a.T @ (-b / (1 + np.exp(b * (a @ x)))) / BATCH + LAM * x
            p = e[i] + GAMMA * g
            kept = np.argpartition(np.abs(p), d - K)[d - K :]
            m = np.zeros(d)
            m[kept] = p[kept]
            e[i] = p - m
            total += m
        x = x - total / N
    return x


def timed(run):
    """Result, seconds, CPU seconds of all threads (the second ratio does not suffer from a busy machine)."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = run()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="breast_cancer", help="LIBSVM file, for example a9a.gz (default: the embedded data)")
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    problem = get_problem("logistic", data=given.data, n=N, lam=LAM, batch=BATCH)
    A = problem.A.toarray() if hasattr(problem.A, "toarray") else np.asarray(problem.A)
    A = np.ascontiguousarray(A, dtype=np.float64)

    def compiled(steps, seeds):
        return simulate(
            "ef_sgd", problem, {"gamma": GAMMA}, steps=steps, seeds=seeds, compressor=f"topk(k={K})", jobs=given.threads, every=steps
        )

    print(f"first call, compiled or from the cache: {timed(lambda: compiled(1, 1))[1]:8.2f} s")
    last, loop, loop_cpu = timed(lambda: numpy_loop(A, problem.y, problem.offsets, given.steps, 0))
    history, engine, engine_cpu = timed(lambda: compiled(given.steps, given.seeds))
    each = 1e6 / (given.steps * N)
    print(f"NumPy loop over workers, {given.seeds:3d} seeds:   {loop * given.seeds:8.2f} s, {loop_cpu * each:6.2f} us CPU per worker-step")
    engine_each = engine_cpu * each / given.seeds
    print(f"compiled engine, {given.threads:3d} threads:          {engine:8.2f} s, {engine_each:6.2f} us CPU per worker-step")
    print(f"ratio:                                 {loop * given.seeds / engine:8.1f} in time, {loop_cpu * each / engine_each:6.1f} in CPU")
    gap = problem.value(last) - problem.constants.f_star[0]
    mean = history.values["function_gap"][:, -1].mean()
    print(f"function gap at the end: loop {gap:.5f} (one seed), engine {mean:.5f} (mean)")


if __name__ == "__main__":
    main()
