"""SalientGrads: the restriction to a mask, its bias, bits and the break-even."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np

from verify_rates.theory.evidence import Found, relative

STEPS = 40
BIAS = 2  # salientgrads.2: the factor of mu under the squared gradient
SET_UP, PER_ROUND = 33, 64  # salientgrads.4: bits an entry
NUMBER_BITS = 32
CONSTANT_RTOL = 1e-9  # L and mu of a few samples are rounded outwards by less
TABLE_ATOL = 0.0005 + 1e-12  # printed to three digits


def instance(seed: int, n: int = 3, m: int = 8, d: int = 6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples, targets and a start without zeros."""
    rng = np.random.default_rng([seed, d])
    return rng.normal(size=(n * m, d)), rng.normal(size=n * m), rng.normal(size=d)


def masked_run(A: np.ndarray, y: np.ndarray, x0: np.ndarray, k: int, H: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """``(problem, mask, models of the workers at every step)`` of a masked run on ridge regression."""
    from verify_rates.problems import get_problem
    from verify_rates.solvers.engine.run import simulate

    problem = get_problem("ridge", data=(A, y), n=3, lam=0.1)
    options: dict[str, Any] = {"steps": STEPS, "every": 1, "keep_states": True, "engine": "numpy", "measures": (), "x0": x0}
    history = simulate("salientgrads", problem, {"gamma": 0.05, "H": H}, compressor=f"topk(k={k})", **options)
    assert history.states is not None  # asked for
    return problem, history.final["k"][0] != 0, history.states["x"][0]


def restriction(seed: int, k: int, H: int) -> Found:
    """salientgrads.1: the masked run is FedAvg on the kept columns; its curvature lies within that of f."""
    from verify_rates.problems import get_problem
    from verify_rates.solvers.engine.run import simulate

    A, y, x0 = instance(seed)
    problem, mask, masked = masked_run(A, y, x0, k, H)
    reduced = get_problem("ridge", data=(A[:, mask], y), n=3, lam=0.1)
    options: dict[str, Any] = {"steps": STEPS, "every": 1, "keep_states": True, "engine": "numpy", "measures": ()}
    states = simulate("local_sgd", reduced, {"gamma": 0.05, "H": H}, x0=x0[mask], **options).states
    assert states is not None  # asked for
    own = states["x"][0]
    widened = reduced.constants.L > problem.constants.L * (1 + CONSTANT_RTOL) or reduced.constants.mu < problem.constants.mu * (
        1 - CONSTANT_RTOL
    )
    off = [masked[1:, :, mask] - own[1:], masked[1:, :, ~mask]]
    return Found.identity(relative(off, [own]) + float(widened), f"{int(mask.sum())} of {len(mask)} columns kept")


def bias(seed: int, d: int) -> Found:
    """salientgrads.2 on random quadratics, all masks: the largest gap over its bound; and equality where the curvature is mu alone."""
    rng = np.random.default_rng([seed, d])
    worst = 0.0
    for H in (*(M @ M.T + 0.1 * np.eye(d) for M in rng.normal(size=(20, d, d))), np.eye(d)):
        best, mu = rng.normal(size=d), float(np.linalg.eigvalsh(H)[0])
        for kept in itertools.product((False, True), repeat=d):
            on, off = np.array(kept), ~np.array(kept)
            w = np.zeros(d)
            w[on] = np.linalg.solve(H[np.ix_(on, on)], (H @ best)[on])
            g = H @ (w - best)
            if off.any():
                worst = max(worst, float((w - best) @ g) / 2 / (float(g[off] @ g[off]) / (BIAS * mu)))
    return Found(worst, worst, 1 + CONSTANT_RTOL, message=f"largest gap/bound {worst:.6g}")


def bits(seed: int, k: int) -> Found:
    """salientgrads.3: entries that ever move are the kept ones, 32 bits each; with indices they would cost what top-k costs."""
    from verify_rates.solvers.compressors import get_compressor

    A, y, x0 = instance(seed)
    _, mask, models = masked_run(A, y, x0, k, 2)
    d, moved = len(mask), int((np.abs(models[1:]).max(axis=(0, 1)) > 0).sum())
    index = next(b for b in itertools.count() if 2**b >= d)
    share = Fraction(k, d)  # 1 - sparsity
    wrong = [moved * NUMBER_BITS != 32 * share * d, get_compressor(f"topk(k={k})").bits(d) != (32 + index) * share * d]
    return Found.count(sum(wrong), len(wrong))


def break_even(most: int) -> Found:
    """salientgrads.4: bits of set-up and rounds against dense FedAvg, in fractions, for all sparsities j/20 and rounds up to ``most``."""
    wrong = cases = 0
    for j, R in itertools.product(range(1, 21), range(most + 1)):
        s = Fraction(j, 20)
        sparse, dense = 32 + 1 + 2 * 32 * (1 - s) * R, 2 * 32 * R
        cases, wrong = cases + 1, wrong + ((sparse < dense) != (Fraction(SET_UP) / (PER_ROUND * s) < R))
    return Found.count(wrong, cases, proves=True)


def latency_fit(name: str, said: float) -> Found:
    """salientgrads.5: the line through (s = 0, 1.91 s) and (s = 0.9, 0.82 s), and the ratio of the two."""
    dense, sparse = Fraction("1.91"), Fraction("0.82")
    b = (dense - sparse) / Fraction("0.9")
    value = float({"a": dense - b, "b": b}[name])
    return Found(abs(value - said), abs(value - said), TABLE_ATOL, proves=True, message=f"{name} = {value:.6g} s")
