"""What the figures show, as data: every ``data_*`` is a pure function of its parameters that returns a :class:`Frame`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verify_rates.solvers.method import UsageError

SHOWN = 1e-10  # function gaps below this share of the first one are left out: rounding (1e-14 of f) would be 1e-4 of them and more


@dataclass(frozen=True)
class Frame:
    """The data of one figure.

    Attributes
    ----------
    name : of the figure.
    parameters : all that the data depend on, and the constants that follow from it; plain data.
    columns : arrays by name; NaN where there is nothing to show.
    """

    name: str
    parameters: dict[str, Any]
    columns: dict[str, np.ndarray]

    def to_json(self) -> str:
        """Everything as JSON text; NaN becomes null, floats keep every digit."""
        columns = {k: np.asarray(v, dtype=object) for k, v in self.columns.items()}
        plain = {k: np.where(np.isnan(self.columns[k]), None, v).tolist() for k, v in columns.items()}  # type: ignore[call-overload]
        return json.dumps({"name": self.name, "parameters": self.parameters, "columns": plain}, indent=1, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Frame:
        """The frame that ``to_json`` wrote; UsageError where the text is none."""
        try:
            data = json.loads(text)
            return cls(data["name"], data["parameters"], {k: np.array(v, dtype=float) for k, v in data["columns"].items()})
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"the stored data are no frame of a figure ({error}).") from None

    def difference(self, other: Frame, rtol: float) -> str:
        """The first difference beyond the relative tolerance in one sentence; "" where there is none."""
        if self.name != other.name or self.columns.keys() != other.columns.keys():
            return "the columns have other names"
        said, stored = (json.loads(json.dumps(f.parameters)) for f in (self, other))
        for key in sorted({*said, *stored}):
            if not _close(said.get(key), stored.get(key), rtol):
                return f"{key} is {said.get(key)!r}, stored is {stored.get(key)!r}"
        for key, now in self.columns.items():
            then = other.columns[key]
            if now.shape != then.shape:
                return f"{key} has the shape {now.shape}, stored is {then.shape}"
            off = ~np.isclose(now, then, rtol=rtol, atol=0, equal_nan=True)
            if off.any():
                at = tuple(int(i) for i in np.argwhere(off)[0])
                return f"{key}{list(at)} is {now[at]:.9g}, stored is {then[at]:.9g}"
        return ""


def _close(a: Any, b: Any, rtol: float) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=rtol)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_close(a[k], b[k], rtol) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_close(x, y, rtol) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def _claim(claim_id: str) -> Any:
    from verify_rates.theory.claims import claims

    return claims()[claim_id]


# --- bound, worst case and runs of error feedback ---------------------------------------------------------------------

RATE = "ef.any"  # the claim whose bound is drawn


def data_error_feedback(
    *,
    kept: Sequence[int] = (15, 3),
    steps: int = 40,
    solved: Sequence[int] = (1, 3, 6, 10, 14),
    n: int = 10,
    lam: float = 1e-2,
    seeds: int = 20,
    engine: str = "numba",
) -> Frame:
    """Error feedback on logistic regression: published bound, exact worst case, worst instance run, and runs on real data.

    For every ``k`` of ``kept`` the compressors top-k and rand-k, both with delta = k/d; the step is the bound's own.  The workers share
    the data (``shards="copies"``), so that they have the common minimiser which the bound assumes.  All is relative to the start, where
    the error memories are empty.

    Columns
    -------
    steps (T+1,), bound (K, T+1); solved (S,), lower, upper, replayed (K, S); topk (K, T+1); randk, randk_low, randk_high (K, T+1): mean
    and range of the seeds.

    >>> frame = data_error_feedback(kept=(15,), steps=3, solved=(1,), seeds=1, engine="numpy")
    >>> bool(frame.columns["topk"][0, 1] < frame.columns["lower"][0, 0] <= frame.columns["bound"][0, 1])
    True
    """
    from verify_rates.runs import problem_of

    spec = {"name": "logistic", "data": "breast_cancer", "n": n, "lam": lam, "shards": "copies"}
    problem = problem_of(spec)
    count = np.arange(steps + 1)
    per_k = [_error_feedback(problem, k, count, solved, seeds, engine) for k in kept]
    columns = {name: np.array([part[name] for part in per_k]) for name in per_k[0] if name != "letters"}
    parameters = {
        "problem": spec,
        "claim": RATE,
        "source": _claim(RATE).source,
        "measure": "ef_lyapunov, relative to the start",
        "d": problem.d,
        "steps": steps,
        "seeds": seeds,
        "kept": list(kept),
        "letters": [part["letters"] for part in per_k],
    }
    return Frame("error-feedback", parameters, {"steps": count.astype(float), "solved": np.array(solved, float), **columns})


def _error_feedback(problem: Any, k: int, count: np.ndarray, solved: Sequence[int], seeds: int, engine: str) -> dict[str, Any]:
    from verify_rates.runs import bound_at, constants_of, define
    from verify_rates.solvers.compressors import get_compressor
    from verify_rates.solvers.measures import ef_lyapunov
    from verify_rates.theory.worst_case.solve import worst_case

    claim = _claim(RATE)
    values = define(claim, constants_of(claim, problem, get_compressor(f"topk(k={k})"), None) | {"V0": 1.0, "N": int(count[-1])})
    letters = {name: float(values[name]) for name in ("L", "mu", "delta", "gamma")}
    hyper = {"gamma": letters["gamma"]}
    found = [
        worst_case(
            claim.method,
            hyper,
            steps=N,
            L=letters["L"],
            mu=letters["mu"],
            compressor={"delta": letters["delta"]},
            initial=ef_lyapunov,
            measure=ef_lyapunov,
        )
        for N in solved
    ]
    runs = {name: _lyapunov(problem, hyper, f"{name}(k={k})", len(count) - 1, s, engine) for name, s in (("topk", 1), ("randk", seeds))}
    return {
        "letters": letters,
        "bound": [bound_at(claim, {**values, "N": int(N)}) for N in count],
        "lower": [w.lower for w in found],
        "upper": [w.upper for w in found],
        "replayed": [w.instance.replay(claim.method) if w.instance else math.nan for w in found],
        "topk": runs["topk"][0],
        "randk": runs["randk"].mean(axis=0),
        "randk_low": runs["randk"].min(axis=0),
        "randk_high": runs["randk"].max(axis=0),
    }


def _lyapunov(problem: Any, hyper: dict[str, float], compressor: str, steps: int, seeds: int, engine: str) -> np.ndarray:
    from verify_rates.solvers.engine.run import simulate

    given: dict[str, Any] = {"measures": ("ef_lyapunov",), "every": 1, "engine": engine}
    values = simulate("ef_sgd", problem, hyper, steps=steps, seeds=seeds, compressor=compressor, **given).values["ef_lyapunov"]
    return values / values[:, :1]


# --- time per iteration -------------------------------------------------------------------------------------------------

PACED: tuple[tuple[str, str, dict[str, int], bool], ...] = (
    ("synchronous SGD", "gd", {}, False),
    ("compression", "ef_sgd", {}, True),
    ("staleness 4", "dd_ef_sgd", {"tau": 4}, False),
    ("both, staleness 1", "dd_ef_sgd", {"tau": 1}, True),
    ("both, staleness 4", "dd_ef_sgd", {"tau": 4}, True),
)


def data_time_per_step(
    *,
    compute: float = 0.05,
    latency: float = 0.1,
    bandwidth: float = 1e9,
    size: float = 400e6,
    bytes_share: float = 0.01,
    points: int = 49,
    simulated: int = 7,
) -> Frame:
    """Seconds per step against latency and against bandwidth, from the data dependencies of each step function.

    Seconds, bit/s and bytes; ``bytes_share`` is sent where a method compresses.  Each of ``latency`` and ``bandwidth`` is the value
    that is held while the other one varies.  Beside the exact steady state stands an event simulation at ``simulated`` points.

    Columns
    -------
    latency, bandwidth (P,); by_latency, by_bandwidth (methods, P); the same with ``simulated_`` at fewer points.

    >>> frame = data_time_per_step(points=3, simulated=1)
    >>> bool(abs(frame.columns["by_latency"][0, 0] - (0.05 + 3.2 + 1e-3)) < 1e-12)
    True
    """
    from verify_rates.theory.timeline import timeline
    from verify_rates.theory.timeline.line import round_seconds_by_simulation

    held = {"compute": compute, "latency": latency, "bandwidth": bandwidth, "size": size}
    axes = {"latency": np.geomspace(1e-3, 10.0, points), "bandwidth": np.geomspace(1e7, 1e12, points)}
    few = np.unique(np.linspace(0, points - 1, simulated).round().astype(int))
    columns: dict[str, np.ndarray] = {}

    def curves(axis: str, grid: np.ndarray, read: Callable[..., float]) -> np.ndarray:
        share = {True: bytes_share, False: None}
        return np.array([[read(m, h, **held | {axis: float(v)}, bytes_share=share[packed]) for v in grid] for _, m, h, packed in PACED])

    for axis, grid in axes.items():
        columns[axis] = grid
        columns[f"by_{axis}"] = curves(axis, grid, lambda *a, **k: timeline(*a, steps=1, **k).seconds_per_step)
        columns[f"simulated_{axis}"] = grid[few]
        columns[f"simulated_by_{axis}"] = curves(axis, grid[few], round_seconds_by_simulation)
    methods = [{"label": label, "method": m, "hyper": h, "bytes_share": bytes_share if packed else 1.0} for label, m, h, packed in PACED]
    return Frame("time-per-step", {**held, "bytes_share": bytes_share, "link": "fifo", "methods": methods}, columns)


# --- time to accuracy ---------------------------------------------------------------------------------------------------

STEPS_CLAIM = "deco.5"


def data_time_to_accuracy(
    *,
    eps: float = 1e-3,
    compute: float = 0.2,
    latency: float = 1.0,
    bandwidth: float = 100e6,
    d: int = 12_500_000,
    n: int = 10,
    lam: float = 1e-2,
    batch: int = 8,
    taus: Sequence[int] = tuple(range(17)),
    deltas: Sequence[float] = tuple(np.geomspace(1e-3, 1.0, 91).tolist()),
) -> Frame:
    """Seconds until ``dd_ef_sgd`` provably has a mean squared gradient norm of at most ``eps``, over contraction and staleness.

    Steps times seconds per step.  Steps: the smallest T at which the derived bound deco.5 is at most eps, with the best step size that
    it allows; L, F0, sigma2 and zeta2_sup are those of logistic regression on embedded real data.  Seconds per step: the exact steady
    state of the time line for a model of ``d`` float32 numbers, of which top-k sends k = delta*d with their indices (or the whole
    vector, where that is shorter).  What is drawn is thus a guarantee, no measurement; the network is an assumption.

    Columns
    -------
    tau (A,), delta (B,); steps, gamma, seconds_per_step, seconds (A, B); optimum (2,): tau and delta; synchronous (1,): seconds at tau = 0
    and delta = 1.

    >>> frame = data_time_to_accuracy(taus=(0, 6), deltas=(0.1, 1.0))
    >>> frame.columns["optimum"].tolist()
    [6.0, 0.1]
    """
    import sympy as sp

    from verify_rates.solvers.compressors import FLOAT_BITS, get_compressor
    from verify_rates.theory import symbols
    from verify_rates.theory.planner import steps_needed
    from verify_rates.theory.timeline import timeline

    spec = {"name": "logistic", "data": "breast_cancer", "n": n, "lam": lam, "batch": batch, "shards": "copies"}
    letters = _smooth_constants(spec)
    kept = [max(1, round(delta * d)) for delta in deltas]
    shares = [min(1.0, get_compressor(f"topk(k={k})").bits(d) / (FLOAT_BITS * d)) for k in kept]
    exact = [k / d for k in kept]

    def pace(tau: int, share: float) -> float:
        given: dict[str, Any] = {"compute": compute, "latency": latency, "bandwidth": bandwidth, "size": d * FLOAT_BITS // 8}
        return timeline("dd_ef_sgd", {"tau": tau}, bytes_share=share, steps=1, **given).seconds_per_step

    claim = _claim(STEPS_CLAIM)
    fewest = steps_needed(claim, letters, eps)
    where = dict(zip(("tau", "delta"), np.meshgrid(np.array(taus, float), exact, indexing="ij"), strict=True))
    steps, c = fewest(where)
    sizes = symbols.parse(claim.lets["gamma"])
    names = [s.name for s in sizes.free_symbols]
    gamma = sp.lambdify(list(sizes.free_symbols), sizes, "numpy")(*({**letters, **where, "c": c}[k] for k in names))
    paces = np.array([[pace(tau, share) for share in shares] for tau in taus])
    seconds = steps * paces
    a, b = divmod(int(np.argmin(seconds)), len(exact))
    synchronous = float(fewest({"tau": 0.0, "delta": 1.0})[0]) * pace(0, 1.0)
    network = {"compute": compute, "latency": latency, "bandwidth": bandwidth, "d": d, "link": "fifo", "compressor": "topk(k=delta*d)"}
    parameters = {"problem": spec, "letters": letters, "eps": eps, "claim": STEPS_CLAIM, **network}
    columns = {
        "tau": np.array(taus, float),
        "delta": np.array(exact),
        "bytes_share": np.array(shares),
        "steps": steps,
        "gamma": gamma,
        "seconds_per_step": paces,
        "seconds": seconds,
        "optimum": np.array([taus[a], exact[b]], float),
        "synchronous": np.array([synchronous]),
    }
    return Frame("time-to-accuracy", parameters, columns)


def _smooth_constants(spec: Mapping[str, Any]) -> dict[str, float]:
    """The letters of deco.5 that a problem gives, at a start in 0."""
    from verify_rates.runs import problem_of

    problem = problem_of(spec)
    c = problem.constants
    F0 = problem.value(np.zeros(problem.d)) - c.f_star[0]
    return {"n": float(problem.n), "L": c.L, "F0": F0, "sigma2": c.sigma2_sup, "zeta2_sup": c.zeta2_sup}


# --- methods compared ---------------------------------------------------------------------------------------------------

COMPARED: tuple[dict[str, Any], ...] = (
    {"label": "GD", "method": "gd"},
    {"label": "compressed GD, rand-k", "method": "cgd", "compressor": "randk(k=3, scaled=true)"},
    {"label": "EF, top-k", "method": "ef_sgd", "compressor": "topk(k=3)"},
    {"label": "EF21, top-k", "method": "ef21", "compressor": "topk(k=3)"},
    {"label": "DD-EF, top-k, staleness 2", "method": "dd_ef_sgd", "compressor": "topk(k=3)", "hyper": {"tau": 2}},
    {"label": "local SGD, H = 8", "method": "local_sgd", "hyper": {"H": 8}},
    {"label": "ACCO", "method": "acco"},
    {"label": "gossip on a ring", "method": "gossip_sgd", "topology": "ring"},
)


def data_methods(
    *,
    compared: Sequence[Mapping[str, Any]] = COMPARED,
    rounds: int = 600,
    records: int = 60,
    seeds: int = 5,
    data: str = "breast_cancer",
    grid: Sequence[float] = tuple((2.0 ** np.arange(-8.0, 6.0)).tolist()),
    n: int = 10,
    lam: float = 1e-2,
    compute: float = 1e-3,
    latency: float = 1e-3,
    bandwidth: float = 100e3,
    engine: str = "numba",
) -> Frame:
    """Function gap against rounds, bits and seconds of several methods on real data, each at its own best step size.

    The step size is the one of ``grid`` (in units of 1/L) with the smallest median gap after ``rounds`` communication rounds, and where
    several leave the shown range before, the one that does so first.  Bits: what a worker sends, indices included
    (``theory.traffic``).  Seconds: the exact steady state of the time line for float32 vectors.

    Columns
    -------
    rounds (M, R), gap, gap_low, gap_high (M, R): median and range of the seeds; bits, seconds (M, R); gamma, bits_per_round,
    seconds_per_round (M,).

    >>> frame = data_methods(compared=COMPARED[:1], rounds=20, records=2, seeds=1, grid=(0.5, 1.0), engine="numpy")
    >>> frame.columns["bits"].tolist()
    [[960.0, 19200.0]]
    """
    from verify_rates.runs import problem_of

    spec = {"name": "logistic", "data": data, "n": n, "lam": lam}
    problem = problem_of(spec)
    shown = np.unique(np.geomspace(1, rounds, records).round().astype(int))
    network = {"compute": compute, "latency": latency, "bandwidth": bandwidth}
    per_method = [_tuned(problem, entry, rounds, shown, seeds, grid, network, engine) for entry in compared]
    columns = {name: np.array([part[name] for part in per_method]) for name in per_method[0]}
    plain = [{"hyper": {}, **entry} for entry in compared]
    parameters = {"problem": spec, "L": problem.constants.L, "d": problem.d, "total_rounds": rounds, "seeds": seeds, "grid": list(grid)}
    return Frame("methods", {**parameters, **network, "methods": plain, "link": "fifo"}, columns)


def _tuned(
    problem: Any,
    entry: Mapping[str, Any],
    rounds: int,
    shown: np.ndarray,
    seeds: int,
    grid: Sequence[float],
    network: Mapping[str, Any],
    engine: str,
) -> dict[str, Any]:
    from verify_rates.solvers.compressors import FLOAT_BITS
    from verify_rates.solvers.engine.run import simulate
    from verify_rates.solvers.method import get_method
    from verify_rates.theory.timeline import timeline
    from verify_rates.theory.traffic import traffic

    method, hyper = get_method(entry["method"]), dict(entry.get("hyper", {}))
    made = {k: entry[k] for k in ("compressor", "topology") if k in entry}
    per_round = int(method.rounds(method.hypers(gamma=0.0, **hyper)))
    random = "randk" in entry.get("compressor", "")

    def run(c: float, count: int, every: int) -> Any:
        given = {**made, "engine": engine, "seeds": count, "every": every * per_round}
        return simulate(method, problem, {"gamma": c / problem.constants.L, **hyper}, steps=rounds * per_round, **given)

    def merit(c: float) -> tuple[float, int]:
        gap = np.median(run(c, seeds if random else 1, 1).values["function_gap"], axis=0)
        reached = np.flatnonzero(gap <= SHOWN * gap[0])
        last = max(gap[-1], SHOWN * gap[0]) if np.isfinite(gap[-1]) else math.inf
        return float(last), int(reached[0]) if len(reached) else rounds

    best = min(grid, key=merit)
    values = run(best, seeds if random else 1, 1).values["function_gap"]
    gaps = np.where(values > SHOWN * values[:, :1], values, math.nan)[:, shown]
    sent = traffic(method, hyper, d=problem.d, n=problem.n, **made)
    line = timeline(method, hyper, size=problem.d * FLOAT_BITS // 8, n=problem.n, **made, **network)
    if sent.up_per_step is None:
        raise UsageError(f"the bits of {entry['compressor']} depend on the data; compare methods with compressors of fixed length.")
    bits, seconds = sent.up_per_step * per_round, line.seconds_per_step * per_round
    return {
        "rounds": shown.astype(float),
        "gap": np.median(gaps, axis=0),
        "gap_low": gaps.min(axis=0),
        "gap_high": gaps.max(axis=0),
        "bits": shown * bits,
        "seconds": shown * seconds,
        "gamma": best / problem.constants.L,
        "bits_per_round": bits,
        "seconds_per_round": seconds,
    }
