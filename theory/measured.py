"""What was measured, as inputs of time lines and plans: compute times of a profile, a link's law, tables of places, tensors of a model.

Every object stands where a number is expected: ``compute=read_profile(...)`` is its mean, ``size=read_model(...)`` its bytes,
``**fit(...).link()`` and ``**read_links(...).slowest()`` are a latency and a bandwidth.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from verify_rates.solvers.method import UsageError, nearest
from verify_rates.theory.units import FLOAT_BYTES


def csv_rows(path: str | Path, required: Sequence[str], what: str) -> list[tuple[int, dict[str, str]]]:
    """The rows of a CSV file with a header, each with its line number; UsageError where it cannot be read or lacks a column."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, skipinitialspace=True)
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"cannot read the {what} {str(path)!r}: {getattr(error, 'strerror', None) or error}.") from None
    if not rows or not set(required) <= set(reader.fieldnames or ()):
        raise UsageError(f"{path} is no {what}: it needs a header with {','.join(required)} and at least one row.")
    return rows


def _number(text: Any, path: str | Path, line: int, column: str, positive: bool = False) -> float:
    """A number of a cell; UsageError naming the line for what is none, not finite or negative."""
    try:
        value = float(text)
    except (TypeError, ValueError):
        raise UsageError(f"{path}, line {line}: {column} must be a number, not {text!r}.") from None
    if not math.isfinite(value) or value < 0 or (positive and value == 0):
        raise UsageError(f"{path}, line {line}: {column} must be finite and {'positive' if positive else 'at least 0'}, not {text!r}.")
    return value


# --- compute times ----------------------------------------------------------------------------------------------------

STEP = re.compile(r"ProfilerStep#(\d+)")
OLD_KINDS = {"operator": "cpu_op"}  # profilers before 2022 also wrote Kernel and Runtime
EXCHANGE = re.compile(r"nccl|rccl|hccl|oneccl|gloo|c10d|\bmpi", re.IGNORECASE)  # what such libraries call their kernels and calls


@dataclass(frozen=True)
class Profile:
    """Measured compute times.

    Attributes
    ----------
    durations : seconds, in order, per (worker, stream).
    rule : what was counted as one duration.
    source : the file or files.

    As a number it is the mean of all durations, so it stands wherever a compute time does.

    >>> float(Profile({("0", "compute"): (1.0, 3.0)}, "by hand", "none"))
    2.0
    """

    durations: Mapping[tuple[str, str], tuple[float, ...]]
    rule: str
    source: str

    @property
    def values(self) -> list[float]:
        """All durations: the empirical distribution."""
        return [v for part in self.durations.values() for v in part]

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    def __float__(self) -> float:
        return self.mean

    @property
    def per_worker(self) -> list[float]:
        """Mean of each worker in order, for ``compute=`` of workers that differ; UsageError where a worker has several streams."""
        streams = Counter(worker for worker, _ in self.durations)
        for worker, count in streams.items():
            if count > 1:
                raise UsageError(f"worker {worker} has durations on {count} streams; choose one by stream=.")
        return [float(np.mean(part)) for part in self.durations.values()]

    def quantile(self, q: float | Sequence[float]) -> Any:
        return np.quantile(self.values, q)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        parts = [{"worker": w, "stream": s, "seconds": list(v)} for (w, s), v in self.durations.items()]
        return {"source": self.source, "rule": self.rule, "mean": self.mean, "durations": parts}

    def __str__(self) -> str:
        low, middle, high = self.quantile([0.05, 0.5, 0.95])
        head = f"{len(self.values)} durations, {self.rule}: mean {self.mean:.6g} s, 5 % {low:.6g}, 50 % {middle:.6g}, 95 % {high:.6g} s"
        parts = [f"worker {w}, {s}: {len(v)}, mean {np.mean(v):.6g} s" for (w, s), v in self.durations.items()]
        return "\n".join([head, *parts])


class _Span(NamedTuple):
    """One complete event in seconds."""

    name: str
    kind: str
    worker: str
    stream: str
    start: float
    end: float
    args: Mapping[str, Any]


def read_profile(path: str | Path | Sequence[str | Path], *, match: str | None = None, stream: str | None = None, skip: int = 0) -> Profile:
    """Compute times from a Kineto or Chrome trace (JSON, also compressed) or a CSV file with a column ``seconds``.

    What is one duration: with ``match``, every event whose name the pattern finds.  Without it, per step (``ProfilerStep#N``) the time
    during which at least one kernel runs that this step launched and that does not communicate (by its name: NCCL and its like), or,
    where no device was profiled, at least one operator of the processor; without steps, every event of the category ``compute``, as in
    the time lines that this package writes.

    Parameters
    ----------
    path : a file, or one file per worker.  A CSV file may also have the columns ``worker`` and ``stream``.
    match : regular expression, searched in the names.
    stream : count only what ran on this stream (a thread's name or number).
    skip : durations to leave out at the start of every stream, such as warm-up.

    Errors: UsageError for files that are empty, malformed or without matching events, and for durations that are negative or not numbers.

    Where it differs: time during which kernels overlap counts once; the gaps between kernels do not count, so that a step that waits for
    the processor is shorter here than on the clock.

    >>> import json, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "t.csv"
    ...     _ = file.write_text("worker,seconds\\n0,0.2\\n1,0.3\\n1,0.5\\n")
    ...     read_profile(file).per_worker
    [0.2, 0.4]
    """
    paths = [path] if isinstance(path, (str, Path)) else list(path)
    if not paths:
        raise UsageError("a profile needs at least one file.")
    if isinstance(skip, bool) or not isinstance(skip, int) or skip < 0:
        raise UsageError(f"skip must be a whole number of at least 0, not {skip!r}.")
    merged: dict[tuple[str, str], list[float]] = {}
    rules = []
    for number, file in enumerate(paths):
        found, rule = _csv_durations(file) if Path(file).suffix == ".csv" else _trace_durations(file, match)
        workers = list(dict.fromkeys(worker for worker, _ in found))
        if len(paths) > 1 and len(workers) > 1:
            raise UsageError(f"{file} holds {len(workers)} workers; give such a file alone, or files of one worker each.")
        rules.append(rule)
        for (worker, on), part in found.items():
            if stream is None or on == stream:
                merged.setdefault((str(number) if len(paths) > 1 else worker, on), []).extend(part[skip:])
    kept = {key: tuple(part) for key, part in merged.items() if part}
    if not kept:
        left = f"after the first {skip}" if skip else "on it" if stream is not None else ""
        where = f" on the stream {stream!r}" if stream is not None else ""
        raise UsageError(f"{', '.join(map(str, paths))}: no durations{where} {left}".rstrip() + ".")
    return Profile(kept, rules[0], ", ".join(map(str, paths)))


def _csv_durations(path: str | Path) -> tuple[dict[tuple[str, str], list[float]], str]:
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for line, row in csv_rows(path, ["seconds"], "table of durations"):
        found[row.get("worker") or "0", row.get("stream") or "compute"].append(_number(row["seconds"], path, line, "seconds"))
    return found, "one a row"


def _trace_durations(path: str | Path, match: str | None) -> tuple[dict[tuple[str, str], list[float]], str]:
    from verify_rates.theory.timeline.chrome import load

    trace = load(path)
    spans = _spans(trace, path)
    if match is not None:
        try:
            pattern = re.compile(match)
        except re.error as error:
            raise UsageError(f"match must be a regular expression, not {match!r}: {error}.") from None
        found = _each([s for s in spans if pattern.search(s.name)], spans, f"matches {match!r}", path)
        return found, f"one an event that matches {match!r}"
    if any(STEP.fullmatch(s.name) for s in spans):
        about = trace.get("distributedInfo")
        return _per_step(spans, str(about.get("rank", "")) if isinstance(about, dict) else "", path)
    return _each([s for s in spans if s.kind == "compute"], spans, "is a step or a computation", path), "one an event of the kind compute"


def _spans(trace: Mapping[str, Any], path: str | Path) -> list[_Span]:
    """Complete events and begin-end pairs, from the first of them on, with the names that metadata give to workers and threads.

    Times since 1970 in microseconds leave a float no digits below a fourth of one, so the first is taken off before anything is added.
    """
    events = trace["traceEvents"]
    origin = min((_moment(e, "ts", path) for e in events if e.get("ph") in ("X", "B")), default=0.0)
    names = {
        (kind, str(e.get("pid")), str(e.get("tid")) if kind == "thread_name" else ""): str(_args(e)["name"])
        for e in events
        for kind in ("process_name", "thread_name")
        if e.get("ph") == "M" and e.get("name") == kind and "name" in _args(e)
    }
    found, opened = [], defaultdict(list)
    for e in events:
        pid, tid = str(e.get("pid")), str(e.get("tid"))
        if e.get("ph") == "B":
            opened[pid, tid].append(e)
        if e.get("ph") not in ("X", "E"):
            continue
        first, ts = e, _moment(e, "ts", path) - origin
        if e["ph"] == "E":
            if not opened[pid, tid]:
                raise UsageError(f"{path}: the end of {e.get('name')!r} at {e.get('ts')} has no beginning.")
            first = opened[pid, tid].pop()
            start, end = _moment(first, "ts", path) - origin, ts
        else:
            start, end = ts, ts + _moment(e, "dur", path)
        if end < start:
            raise UsageError(f"{path}: {first.get('name')!r} at {first.get('ts')} has a negative duration.")
        process = names.get(("process_name", pid, ""), "")  # profilers name all processes alike, after the program
        worker = process.removeprefix("worker ") if process.startswith("worker ") else pid
        on = names.get(("thread_name", pid, tid), tid).strip()
        kind = str(first.get("cat")).lower()
        kind = OLD_KINDS.get(kind, kind)
        found.append(_Span(str(first.get("name")), kind, worker, on, start / 1e6, end / 1e6, _args(first)))
    if not found:
        raise UsageError(f"{path} holds no events with a duration.")
    return found


def _args(e: Mapping[str, Any]) -> Mapping[str, Any]:
    found = e.get("args")
    return found if isinstance(found, dict) else {}


def _moment(e: Mapping[str, Any], key: str, path: str | Path) -> float:
    try:
        value = float(e[key])
    except (KeyError, TypeError, ValueError):
        raise UsageError(f"{path}: {key} of {e.get('name')!r} must be a number of microseconds, not {e.get(key)!r}.") from None
    if not math.isfinite(value):
        raise UsageError(f"{path}: {key} of {e.get('name')!r} must be finite, not {value}.")
    return value


def _each(chosen: Iterable[_Span], spans: Sequence[_Span], what: str, path: str | Path) -> dict[tuple[str, str], list[float]]:
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for s in sorted(chosen, key=lambda s: s.start):
        found[s.worker, s.stream].append(s.end - s.start)
    if not found:
        often = ", ".join(repr(name) for name, _ in Counter(s.name for s in spans).most_common(5))
        raise UsageError(f"no event of {path} {what}; name the events to count by match=, of which the most frequent are {often}.")
    return dict(sorted(found.items()))


def _per_step(spans: Sequence[_Span], rank: str, path: str | Path) -> tuple[dict[tuple[str, str], list[float]], str]:
    steps = sorted((s for s in spans if STEP.fullmatch(s.name) and not s.kind.startswith("gpu")), key=lambda s: s.start)
    workers = {s.worker for s in steps}
    if len(workers) != 1:
        raise UsageError(f"{path} holds the steps of {len(workers)} processes; give one file per worker.")
    launched = {str(s.args["correlation"]): s.start for s in spans if s.kind.endswith(("runtime", "driver")) and "correlation" in s.args}
    device = any(s.kind == "kernel" for s in spans)
    busy = [s for s in spans if s.kind == ("kernel" if device else "cpu_op") and not EXCHANGE.search(s.name) and not STEP.fullmatch(s.name)]
    starts = np.array([launched.get(str(s.args.get("correlation")), s.start) for s in busy])
    order = np.argsort(starts, kind="stable")
    ends = np.searchsorted(starts[order], [(step.start, step.end) for step in steps])
    durations = [_covered((busy[i].start, busy[i].end) for i in order[first:last]) for first, last in ends]
    if not any(durations):
        raise UsageError(f"{path}: no kernel and no operator that computes was launched in its {len(steps)} steps; name events by match=.")
    what = "kernels that do not communicate run" if device else "operators of the processor that do not communicate run"
    return {(rank or workers.pop(), "compute"): durations}, f"one a step, the time during which {what}"


def _covered(spans: Iterable[tuple[float, float]]) -> float:
    """Length of a union of intervals."""
    total, until = 0.0, -math.inf
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


# --- latency and bandwidth from a table -------------------------------------------------------------------------------

LEVEL = 0.95  # of the intervals
DOUBT = 1e-3  # level at which the straight line is doubted: a true one is doubted in one table of a thousand
SPREAD = 0.25  # relative residuals above which times are said to be no law of bytes
LEAST = 1e-3  # of a time: a fitted time below this share of it is taken as this share
EXACT = 1e-9  # relative residuals that are rounding


@dataclass(frozen=True)
class Fit:
    """``seconds = latency + 8*bytes/bandwidth`` fitted to a table.

    Attributes
    ----------
    latency, bandwidth : s and bit/s; at least 0, and infinite where time does not grow with bytes.
    latency_se, bandwidth_se : standard errors.
    latency_interval, bandwidth_interval : 95 %.
    residuals : (m,) relative, (seconds - fitted)/fitted, in the order of the table.
    rms : their root mean square, by m less the parameters.
    table : (m, 2) the bytes and seconds.
    doubts : sentences on why the law may be wrong; empty where nothing speaks against it.
    """

    latency: float
    bandwidth: float
    latency_se: float
    bandwidth_se: float
    latency_interval: tuple[float, float]
    bandwidth_interval: tuple[float, float]
    residuals: tuple[float, ...]
    rms: float
    doubts: tuple[str, ...]
    table: tuple[tuple[float, float], ...]

    def seconds(self, size: float) -> float:
        """Predicted time of so many bytes."""
        return self.latency + 8 * size / self.bandwidth

    def link(self) -> dict[str, float]:
        """As arguments of a time line or a plan; UsageError where the bandwidth is infinite."""
        if not math.isfinite(self.bandwidth):
            raise UsageError("these times do not grow with bytes, so they say nothing about the bandwidth.")
        return {"latency": self.latency, "bandwidth": self.bandwidth}

    def plot(self, path: str | Path | None = None) -> Any:
        """Times against bytes with the law; a matplotlib Figure, also written to ``path`` if given."""
        from matplotlib.figure import Figure

        x, y = np.array(self.table).T
        figure = Figure(figsize=(4.5, 3), layout="constrained")
        axes, line = figure.subplots(), np.geomspace(max(x[x > 0].min(), 1.0), x.max(), 200)
        axes.plot(x, y, ".", label="measured")
        axes.plot(line, [self.seconds(v) for v in line], color="black", linewidth=1, label="latency + bytes/bandwidth")
        axes.set(xlabel="bytes", ylabel="seconds", xscale="symlog" if x.min() == 0 else "log", yscale="log")
        axes.set_title(f"{self.latency:.3g} s, {self.bandwidth:.3g} bit/s, residuals {self.rms:.1%}", fontsize=9)
        axes.legend()
        if path is not None:
            figure.savefig(path)
        return figure

    def to_json(self, **options: Any) -> str:
        """Everything as JSON text; what is infinite becomes null."""
        data: dict[str, Any] = {k: v if not isinstance(v, float) or math.isfinite(v) else None for k, v in asdict(self).items()}
        ends = {k: [v if math.isfinite(v) else None for v in data[k]] for k in ("latency_interval", "bandwidth_interval")}
        return json.dumps({**data, **ends}, allow_nan=False, **options)

    def __str__(self) -> str:
        low, high = self.latency_interval
        slow, fast = self.bandwidth_interval
        most = max(map(abs, self.residuals))
        return "\n".join(
            [
                f"latency {self.latency:.6g} s, standard error {self.latency_se:.2g} (95 %: {low:.6g} to {high:.6g})",
                f"bandwidth {self.bandwidth:.6g} bit/s, standard error {self.bandwidth_se:.2g} (95 %: {slow:.6g} to {fast:.6g})",
                f"relative residuals: {self.rms:.2%} (root mean square), {most:.2%} at most, {len(self.residuals)} rows",
                *(f"doubt: {doubt}" for doubt in self.doubts),
            ]
        )


def fit(table: Any) -> Fit:
    """Latency and bandwidth from measured (bytes, seconds).

    Mathematics: ``seconds = a + b*bytes`` with errors in proportion to the time (their share constant and unknown): the estimating
    equations ``sum (y - f)/f**2 * grad f = 0``, a weighted least-squares problem whose weights are taken anew from the fit until they
    stay; a and b at least 0.  Standard errors and Student intervals from its weighted normal matrix; of the bandwidth 8/b, by the ends
    of b.  Doubts by an F test of a bend (terms in the square root and the logarithm of bytes).

    Parameters
    ----------
    table : path of a CSV file with the columns ``bytes,seconds``, or an array (m, 2), or a list of pairs.

    Errors: UsageError for fewer than three rows, one size only, and for numbers that are not finite, negative, or times of 0.

    >>> found = fit([(0, 0.1), (1000, 0.101), (1_000_000, 0.9), (2_000_000, 1.7)])
    >>> f"{found.latency:.2f} s, {found.bandwidth / 1e6:.1f} Mbit/s", found.doubts
    ('0.10 s, 10.0 Mbit/s', ())
    """
    x, y = _table(table)
    if len(x) < 3:
        raise UsageError(f"a fit of latency and bandwidth needs at least three rows of bytes and seconds, not {len(x)}.")
    if len(set(x.tolist())) == 1:
        raise UsageError(f"every row has {x[0]:g} bytes; latency and bandwidth can be told apart only by rows of unlike size.")
    scale = x.max()
    columns = np.stack([np.ones_like(x), x / scale], axis=1)
    free, roots = _weighted(columns, y)
    active = free >= 0
    theta = np.zeros(2)
    theta[active] = free if active.all() else _weighted(columns[:, active], y)[0]
    residuals = (y - columns @ theta) * _roots(columns @ theta, y)
    rms = float(np.sqrt(np.sum(residuals**2) / (len(x) - active.sum())))
    errors, low, high = _errors(columns * roots[:, None], (y - columns @ free) * roots, free)
    a, b = theta[0], theta[1] / scale
    b_low, b_high = (max(0.0, v / scale) for v in (low[1], high[1]))
    rate = 8 / b if b > 0 else math.inf
    return Fit(
        latency=float(a),
        bandwidth=float(rate),
        latency_se=float(errors[0]),
        bandwidth_se=float(8 * errors[1] / scale / b**2) if b > 0 else math.inf,
        latency_interval=(float(max(0.0, low[0])), float(max(0.0, high[0]))),
        bandwidth_interval=(float(8 / b_high) if b_high > 0 else math.inf, float(8 / b_low) if b_low > 0 else math.inf),
        residuals=tuple(map(float, residuals)),
        rms=rms,
        doubts=_doubts(x, y, columns * roots[:, None], roots, residuals, free),
        table=tuple(zip(x.tolist(), y.tolist(), strict=True)),
    )


def _table(table: Any) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(table, (str, Path)):
        rows = csv_rows(table, ["bytes", "seconds"], "table of bytes and seconds")
        pairs = [(_number(r["bytes"], table, k, "bytes"), _number(r["seconds"], table, k, "seconds", positive=True)) for k, r in rows]
        return np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])
    try:
        values = np.asarray(table, dtype=float)
    except (TypeError, ValueError):
        raise UsageError("a table must be pairs of numbers: bytes and seconds.") from None
    if values.ndim != 2 or values.shape[1] != 2:
        raise UsageError(f"a table must have the shape (rows, 2), bytes and seconds, not {values.shape}.")
    good = np.isfinite(values).all(axis=1) & (values[:, 0] >= 0) & (values[:, 1] > 0)
    if not good.all():
        k = int(np.argmin(good))
        row = tuple(map(float, values[k]))
        raise UsageError(f"row {k} of the table is {row}: bytes must be at least 0 and seconds positive, both finite.")
    return values[:, 0], values[:, 1]


def _roots(fitted: np.ndarray, y: np.ndarray) -> np.ndarray:
    """One over the fit; a fit near or below 0 must not take all the weight."""
    return 1 / np.maximum(fitted, LEAST * y)


def _weighted(columns: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least squares whose weights are one over the fit, squared, until they stay; and those weights' roots."""
    roots = 1 / y
    for _ in range(100):
        theta = np.linalg.lstsq(columns * roots[:, None], y * roots, rcond=None)[0]
        before, roots = roots, _roots(columns @ theta, y)
        if np.allclose(before, roots, rtol=1e-13, atol=0):
            break
    return theta, roots


def _errors(scaled: np.ndarray, residuals: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Standard errors of the two parameters, and the ends of their intervals, of the fit without bounds."""
    from scipy.stats import t

    degrees = len(residuals) - 2
    errors = np.sqrt(np.sum(residuals**2) / degrees * np.diag(np.linalg.inv(scaled.T @ scaled)))
    wide = t.ppf((1 + LEVEL) / 2, degrees) * errors
    return errors, theta - wide, theta + wide


def _doubts(
    x: np.ndarray, y: np.ndarray, scaled: np.ndarray, roots: np.ndarray, residuals: np.ndarray, free: np.ndarray
) -> tuple[str, ...]:
    told = []
    if free[0] < 0:
        told.append("the best straight line has a negative latency, so the latency is set to 0.")
    if free[1] < 0:
        told.append("times fall with bytes, so the bandwidth is set to infinity.")
    spread = float(np.sqrt(np.mean(residuals**2)))
    if len(set(x.tolist())) >= 5 and len(x) >= 7 and spread > EXACT:
        chance = _bend(x, y * roots, scaled, roots)
        if chance < DOUBT:
            told.append(f"the times bend against bytes (F test, p = {chance:.1g}): one latency and one bandwidth do not describe them.")
    if spread > SPREAD:
        worst = int(np.argmax(np.abs(residuals)))
        told.append(f"the times scatter by {spread:.0%} about the law; the worst row has {x[worst]:g} bytes and {residuals[worst]:+.0%}.")
    return tuple(told)


def _bend(x: np.ndarray, y: np.ndarray, scaled: np.ndarray, roots: np.ndarray) -> float:
    """How probable a bend as large as seen is where there is none."""
    from scipy.stats import f

    bend = np.stack([np.sqrt(x), np.log(1 + x / x[x > 0].min())], axis=1)
    more = np.hstack([scaled, bend / bend.max(axis=0) * roots[:, None]])
    before, after = (float(np.sum((y - part @ np.linalg.lstsq(part, y, rcond=None)[0]) ** 2)) for part in (scaled, more))
    degrees = len(x) - 4
    return float(f.sf((before - after) / 2 / (after / degrees), 2, degrees)) if after > 0 else 0.0


# --- places and the links between them --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Links:
    """One-way latency and bandwidth between places.

    Attributes
    ----------
    names : (p,) places in the order of the file.
    latency : (p, p) seconds from row to column, 0 on the diagonal, NaN where the file has no such pair.
    bandwidth : (p, p) bit/s, infinite on the diagonal; None where the file has none.
    missing : pairs that the file lacks.
    asymmetry : the largest ``|there - back| / max(there, back)`` of the latencies, and its pair.
    """

    names: tuple[str, ...]
    latency: np.ndarray
    bandwidth: np.ndarray | None
    missing: tuple[tuple[str, str], ...]
    asymmetry: tuple[float, tuple[str, str]]

    def slowest(self, places: Sequence[str] | None = None) -> dict[str, float]:
        """The largest latency and the smallest bandwidth among some of the places (by default all), as arguments of a time line.

        Guarantee: an upper bound on the time of any exchange among them in which every transfer has its link alone.

        Errors: UsageError for unknown places, fewer than two, or a pair that the file lacks.
        """
        chosen = list(self.names if places is None else places)
        for place in chosen:
            if place not in self.names:
                raise nearest(str(place), self.names, "place")
        if len(set(chosen)) < 2:
            raise UsageError("the slowest link needs at least two unlike places.")
        among = np.ix_(*[[self.names.index(p) for p in chosen]] * 2)
        lost = [pair for pair in self.missing if pair[0] in chosen and pair[1] in chosen]
        if lost:
            more = f" and {len(lost) - 1} more pairs" if len(lost) > 1 else ""
            raise UsageError(f"nothing is known of {' to '.join(lost[0])}{more}.")
        found = {"latency": float(self.latency[among].max())}
        return found if self.bandwidth is None else {**found, "bandwidth": float(self.bandwidth[among].min())}

    def __str__(self) -> str:
        off = self.latency[~np.eye(len(self.names), dtype=bool)]
        spans = f"latency {np.nanmin(off):.6g} to {np.nanmax(off):.6g} s one way"
        if self.bandwidth is not None:
            rates = self.bandwidth[np.isfinite(self.bandwidth)]
            spans += f", bandwidth {rates.min():.6g} to {rates.max():.6g} bit/s"
        share, pair = self.asymmetry
        told = f"not symmetric: {' and '.join(pair)} differ by {share:.1%}" if share > 0 else "symmetric"
        lost = f"; no rows for {', '.join(' to '.join(p) for p in self.missing)}" if self.missing else ""
        return f"{len(self.names)} places, {spans}; {told}{lost}"


def read_links(path: str | Path) -> Links:
    """Places and links from a CSV file ``from,to,latency_s[,bandwidth_bit_per_s]``, one row per directed pair; latency is one way.

    Errors: UsageError naming the line for numbers that are none, not finite or negative, pairs given twice, and links to the same place.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "t.csv"
    ...     _ = file.write_text("from,to,latency_s\\nOslo,Rome,0.03\\nRome,Oslo,0.02\\n")
    ...     print(read_links(file))
    2 places, latency 0.02 to 0.03 s one way; not symmetric: Oslo and Rome differ by 33.3%
    """
    rows = csv_rows(path, ["from", "to", "latency_s"], "table of links")
    names = tuple(dict.fromkeys(row[end] for _, row in rows for end in ("from", "to")))
    rated = "bandwidth_bit_per_s" in rows[0][1]
    latency = np.where(np.eye(len(names), dtype=bool), 0.0, math.nan)
    bandwidth = np.where(np.eye(len(names), dtype=bool), math.inf, math.nan)
    for line, row in rows:
        a, b = row["from"], row["to"]
        if not a or not b or a == b:
            raise UsageError(f"{path}, line {line}: a link needs two unlike places, not {a!r} and {b!r}.")
        at = names.index(a), names.index(b)
        if not math.isnan(latency[at]):
            raise UsageError(f"{path}, line {line}: the link from {a} to {b} is given twice.")
        latency[at] = _number(row["latency_s"], path, line, "latency_s")
        if rated:
            bandwidth[at] = _number(row["bandwidth_bit_per_s"], path, line, "bandwidth_bit_per_s", positive=True)
    missing = tuple((names[i], names[j]) for i, j in np.argwhere(np.isnan(latency)))
    with np.errstate(invalid="ignore"):
        uneven = np.nan_to_num(np.abs(latency - latency.T) / np.maximum(np.maximum(latency, latency.T), np.finfo(float).tiny))
    i, j = np.unravel_index(int(np.argmax(uneven)), uneven.shape)
    return Links(names, latency, bandwidth if rated else None, missing, (float(uneven[i, j]), (names[i], names[j])))


# --- tensors of a model -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Model:
    """The gradient tensors of a model, in the order of the file (usually that of the backward pass).

    As a number it is its bytes, so it stands wherever a size does.

    >>> model = Model(("bias", "weight"), (40, 4000))
    >>> float(model), model.d
    (4040.0, 1010)
    """

    names: tuple[str, ...]
    bytes: tuple[int, ...]

    @property
    def total(self) -> int:
        """Bytes of all tensors."""
        return sum(self.bytes)

    @property
    def d(self) -> int:
        """Numbers of 32 bits; UsageError where the bytes are no multiple of 4."""
        if self.total % FLOAT_BYTES:
            raise UsageError(f"{self.total} bytes are no whole number of float32 values.")
        return self.total // FLOAT_BYTES

    def __float__(self) -> float:
        return float(self.total)

    def __str__(self) -> str:
        k = int(np.argmax(self.bytes))
        largest = f"largest {self.names[k]} ({self.bytes[k]:,} bytes, number {k + 1})"
        return f"{len(self.names)} tensors, {self.total:,} bytes, {self.total // FLOAT_BYTES:,} float32 values; {largest}"


def read_model(path: str | Path) -> Model:
    """A model's tensors from a CSV file ``name,bytes``.

    Errors: UsageError naming the line for sizes that are no positive whole numbers and for names given twice.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "t.csv"
    ...     _ = file.write_text("name,bytes\\nfc.bias,4000\\nfc.weight,8192000\\n")
    ...     print(read_model(file))
    2 tensors, 8,196,000 bytes, 2,049,000 float32 values; largest fc.weight (8,192,000 bytes, number 2)
    """
    found: dict[str, int] = {}
    for line, row in csv_rows(path, ["name", "bytes"], "list of tensors"):
        size = _number(row["bytes"], path, line, "bytes", positive=True)
        if size != int(size):
            raise UsageError(f"{path}, line {line}: bytes must be a whole number, not {row['bytes']!r}.")
        if not row["name"] or row["name"] in found:
            raise UsageError(f"{path}, line {line}: every tensor needs a name of its own, not {row['name']!r}.")
        found[row["name"]] = int(size)
    return Model(tuple(found), tuple(found.values()))
