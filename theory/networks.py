"""Networks that vary: bandwidth and latency over time, transfers integrated exactly over them, and time lines along them."""

from __future__ import annotations

import csv
import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from verify_rates.solvers.method import Method, UsageError, nearest
from verify_rates.theory import units
from verify_rates.theory.measured import csv_rows
from verify_rates.theory.timeline.events import Load
from verify_rates.theory.timeline.line import Costs, asked
from verify_rates.theory.timeline.simulate import ClockWorld, Event

TIME, UNTIL, BANDWIDTH, LATENCY = "time_s", "until_s", "bandwidth_bit_per_s", "latency_s"
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
GAP = 2.0  # an interval of more than so many median intervals is a gap, where a file does not say how long its rows hold
GAPS = {
    "hold": "held at the values before",
    "zero": "taken as outages",
    "error": "refused",
}


@dataclass(frozen=True)
class Trace:
    """Bandwidth and latency of a link over time, each held until the next row; after the last row it starts again.

    Attributes
    ----------
    times : (m,) seconds, from 0, increasing.
    bandwidth : (m,) bit/s; 0 is an outage, in which a transfer waits.
    latency : (m,) seconds.
    period : seconds after which the trace repeats; more than the last of ``times``.
    note : how it was read, where it comes from a file.

    Numbers may be fractions: everything is then computed exactly.

    Errors: UsageError where there are no rows, times do not increase, or the link never carries anything.

    >>> Trace((0, 1), (8, 0), (0.5, 0.5), 3).transfer(0.5, 8)
    3.5
    """

    times: tuple[Any, ...]
    bandwidth: tuple[Any, ...]
    latency: tuple[Any, ...]
    period: Any
    note: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not self.times or not len(self.times) == len(self.bandwidth) == len(self.latency):
            raise UsageError("a trace needs at least one row, and a bandwidth and a latency for each.")
        numbers = [*self.times, *self.bandwidth, *self.latency, self.period]
        if not all(math.isfinite(v) and v >= 0 for v in numbers):
            raise UsageError("times, bandwidths and latencies of a trace must be finite and at least 0.")
        if self.times[0] != 0 or any(b <= a for a, b in zip(self.times, (*self.times[1:], self.period), strict=True)):
            raise UsageError("the times of a trace must start at 0 and increase, and its period come after the last of them.")
        if not any(self.bandwidth):
            raise UsageError("the bandwidth of this trace is 0 throughout: nothing would ever arrive.")

    @cached_property
    def _carried(self) -> list[Any]:
        """Bits that pass from 0 to the start of every piece, and to the end of the period."""
        ends = (*self.times[1:], self.period)
        return [0, *accumulate(r * (b - a) for a, b, r in zip(self.times, ends, self.bandwidth, strict=True))]

    def _piece(self, t: Any) -> tuple[Any, int]:
        """Whole periods before t, and the number of the piece."""
        turns = t // self.period
        return turns, max(0, bisect_right(self.times, t - turns * self.period) - 1)

    def carried(self, t: Any) -> Any:
        """Bits that the link can have sent by time t."""
        turns, k = self._piece(t)
        return turns * self._carried[-1] + self._carried[k] + self.bandwidth[k] * (t - turns * self.period - self.times[k])

    def transfer(self, start: Any, bits: Any) -> Any:
        """When the last of so many bits, sent from ``start`` on, is on the link: the first t with carried(t) - carried(start) = bits.

        Exact over changes of the bandwidth during the transfer.
        """
        if bits <= 0:
            return start
        turns, k = self._piece(start)
        inside = start - turns * self.period
        for piece in range(k, len(self.times)):  # usually few; whole periods are skipped below
            end = self.times[piece + 1] if piece + 1 < len(self.times) else self.period
            left = self.bandwidth[piece] * (end - inside)
            if bits <= left:
                return turns * self.period + inside + bits / self.bandwidth[piece]
            bits, inside = bits - left, end
        whole = -(-bits // self._carried[-1]) - 1  # periods that end before the last bit
        bits, turns = bits - whole * self._carried[-1], turns + 1 + whole
        piece = next(i for i, sum_ in enumerate(self._carried[1:]) if sum_ >= bits)
        return turns * self.period + self.times[piece] + (bits - self._carried[piece]) / self.bandwidth[piece]

    def latency_at(self, t: Any) -> Any:
        """The latency of what is sent at time t."""
        return self.latency[self._piece(t)[1]]

    @property
    def mean_bandwidth(self) -> float:
        """Bits a period over seconds a period."""
        return float(self._carried[-1]) / float(self.period)

    @property
    def mean_latency(self) -> float:
        """Average over time."""
        return float(sum(v * hold for v, hold in zip(self.latency, self.holds, strict=True))) / float(self.period)

    @property
    def holds(self) -> list[Any]:
        """(m,) seconds that every row holds."""
        return [b - a for a, b in pairwise((*self.times, self.period))]

    def summary(self) -> dict[str, Any]:
        """What people ask of a trace; means, quantiles and the standard deviation are over time, not over rows.

        >>> found = Trace((0, 3), (8, 0), (0.5, 0.1), 4).summary()
        >>> found["mean_bandwidth"], found["zero_share"], found["bandwidth_quantiles"]["50%"]
        (6.0, 0.25, 8.0)
        """
        holds, rates = self.holds, self.bandwidth
        mean, total = self.mean_bandwidth, float(self.period)
        off = [hold if rate == 0 else 0 for hold, rate in zip(holds, rates, strict=True)]
        longest = max(accumulate(off, lambda run, hold: run + hold if hold else 0))
        spread = sum((float(r) - mean) ** 2 * float(h) for r, h in zip(rates, holds, strict=True)) / total
        return {
            "rows": len(self.times),
            "duration": total,
            "mean_bandwidth": mean,
            "bandwidth_std": math.sqrt(spread),
            "bandwidth_min": float(min(rates)),
            "bandwidth_max": float(max(rates)),
            "bandwidth_quantiles": _quantiles(rates, holds),
            "zero_rows": sum(rate == 0 for rate in rates),
            "zero_share": float(sum(off)) / total,
            "longest_outage": float(longest),
            "longest_interval": float(max(holds)),
            "mean_latency": self.mean_latency,
            "latency_min": float(min(self.latency)),
            "latency_max": float(max(self.latency)),
            "note": self.note,
        }

    def __str__(self) -> str:
        s = self.summary()
        shares = ", ".join(f"{q} {rate / 1e6:.4g}" for q, rate in s["bandwidth_quantiles"].items())
        ends = f"{s['bandwidth_min'] / 1e6:.4g} to {s['bandwidth_max'] / 1e6:.4g}"
        told = [
            f"{s['rows']} rows, {s['duration']:.6g} s, then again from the start; the longest row holds {s['longest_interval']:.4g} s",
            f"bandwidth in Mbit/s: mean {s['mean_bandwidth'] / 1e6:.4g}, standard deviation {s['bandwidth_std'] / 1e6:.4g}, {ends}",
            f"quantiles over time: {shares}",
            f"nothing passes {s['zero_share']:.2%} of the time, {s['longest_outage']:.4g} s at a stretch at most",
            f"latency: mean {s['mean_latency']:.6g} s, {s['latency_min']:.6g} to {s['latency_max']:.6g}",
        ]
        return "\n".join([*told, self.note] if self.note else told)

    def plot(self, path: str | Path | None = None) -> Any:
        """Bandwidth and latency over time, outages shaded; a matplotlib Figure, also written to ``path`` if given."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 3.2), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        edges = [float(t) for t in (*self.times, self.period)]
        above.stairs([float(v) / 1e6 for v in self.bandwidth], edges, baseline=None, color="#5577bb")
        above.axhline(self.mean_bandwidth / 1e6, color="black", linewidth=0.8, linestyle="--", label="mean")
        for start, end, rate in zip(edges, edges[1:], self.bandwidth, strict=False):
            if rate == 0:
                above.axvspan(start, end, color="#d9d9d9", linewidth=0)
        below.stairs([1e3 * float(v) for v in self.latency], edges, baseline=None, color="#5577bb")
        above.set(ylabel="Mbit/s", ylim=(0, None))
        below.set(xlabel="seconds (grey: nothing passes)", ylabel="latency, ms")
        above.legend(fontsize=7)
        if path is not None:
            figure.savefig(path)
        return figure


def _quantiles(values: Sequence[Any], holds: Sequence[Any]) -> dict[str, float]:
    """The least value below or at which the link is for at least such a share of the time."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    passed = list(accumulate(holds[i] for i in order))
    return {f"{q:.0%}": float(values[order[min(bisect_left(passed, q * passed[-1]), len(order) - 1)]]) for q in QUANTILES}


def constant(bandwidth: Any, latency: Any = 0.0) -> Trace:
    """A link that does not vary.

    >>> constant("8bit/s", "1s").transfer(2.0, 16)
    4.0
    """
    return Trace((0,), (units.bits_per_second(bandwidth),), (units.seconds(latency, "a latency"),), 1)


def periodic(high: Any, low: Any, period: Any, share: float = 0.5, latency: Any = 0.0) -> Trace:
    """A square wave: the high bandwidth for ``share`` of each period, then the low one.

    >>> periodic("2Mbit/s", "1Mbit/s", "4s").mean_bandwidth
    1500000.0
    """
    length, wait = units.seconds(period, "a period"), units.seconds(latency, "a latency")
    if not 0 < share < 1:
        raise UsageError(f"the share of the high bandwidth lies strictly between 0 and 1, not {share!r}.")
    return Trace((0, share * length), (units.bits_per_second(high), units.bits_per_second(low)), (wait, wait), length)


def markov(levels: Sequence[Any], stay: Any, length: int, seed: int = 0, latency: Any = 0.0) -> Trace:
    """A Markov chain on bandwidths (0 is an outage): every second it keeps its level with probability ``1 - 1/stay``, else draws another.

    >>> sorted(set(markov(["1Mbit/s", "10Mbit/s"], "5s", 100).bandwidth))
    [1000000.0, 10000000.0]
    """
    import numpy as np

    rates, mean = [0.0 if v in (0, "0") else units.bits_per_second(v) for v in levels], units.seconds(stay, "a mean stay")
    if len(rates) < 2 or mean < 1 or length < 1:
        raise UsageError("a Markov trace needs at least two levels, a mean stay of at least 1s and a length of at least 1.")
    rng, wait = np.random.default_rng(seed), units.seconds(latency, "a latency")
    state, found = int(rng.integers(len(rates))), []
    for _ in range(length):
        found.append(rates[state])
        if rng.random() < 1 / mean:
            state = (state + int(rng.integers(1, len(rates)))) % len(rates)
    return Trace(tuple(range(length)), tuple(found), (wait,) * length, length)


def measured_like(mean: Any, spread: float, memory: Any, length: int, seed: int = 0, latency: Any = 0.0) -> Trace:
    """Bandwidths that look measured: log-normal, with standard deviation ``spread`` and correlation time ``memory`` of the logarithm.

    >>> round(measured_like("10Mbit/s", 0.5, "20s", 100_000).mean_bandwidth / 1e7, 1)
    1.0
    """
    import numpy as np

    rate, tail = units.bits_per_second(mean), units.seconds(memory, "a correlation time")
    if not (math.isfinite(spread) and spread >= 0 and tail > 0 and length >= 1):
        raise UsageError("a measured-like trace needs a spread of at least 0, a positive correlation time and a length of at least 1.")
    rng, wait, keep = np.random.default_rng(seed), units.seconds(latency, "a latency"), math.exp(-1 / tail)
    x, found = rng.standard_normal(), []
    for _ in range(length):
        found.append(rate * math.exp(spread * x - spread**2 / 2))
        x = keep * x + math.sqrt(1 - keep**2) * rng.standard_normal()
    return Trace(tuple(range(length)), tuple(found), (wait,) * length, length)


def resampled(trace: Trace, length: Any, block: Any = "10s", seed: int = 0) -> Trace:
    """A new trace like a measured one: stretches of it, from random moments on, of random lengths (stationary bootstrap).

    Bandwidths, latencies and outages are as frequent as measured (in expectation), and as correlated over times shorter than ``block``.

    Parameters
    ----------
    length : seconds of the new trace.
    block : mean length of a stretch.

    Source: Politis and Romano 1994 (JASA 89).

    >>> square = periodic("2Mbit/s", "1Mbit/s", "4s")
    >>> round(resampled(square, "4000s").mean_bandwidth / square.mean_bandwidth, 1)
    1.0
    """
    import numpy as np

    whole, mean = units.seconds(length, "a length"), units.seconds(block, "a mean stretch")
    if whole <= 0 or mean <= 0:
        raise UsageError("a resampled trace needs a positive length and a positive mean stretch.")
    rng, at, ends = np.random.default_rng(seed), 0.0, (*trace.times[1:], trace.period)
    rows: dict[float, tuple[Any, Any]] = {}  # a piece too short for the clock is replaced by the next
    while at < whole:
        inside = float(rng.uniform(0, float(trace.period)))
        piece, end = trace._piece(inside)[1], min(whole, at + float(rng.exponential(mean)))
        while at < end:
            rows[at] = trace.bandwidth[piece], trace.latency[piece]
            at = min(end, at + float(ends[piece]) - inside)
            piece = (piece + 1) % len(ends)
            inside = float(trace.times[piece])
    bandwidth, waits = zip(*rows.values(), strict=True)
    return Trace(tuple(rows), bandwidth, waits, whole, f"resampled in stretches of {mean:g} s")


def read_trace(path: str | Path, latency: Any = 0.0, *, gaps: str = "hold") -> Trace:
    """A trace from a CSV file with the columns ``time_s, bandwidth_bit_per_s`` and, if it has them, ``latency_s`` and ``until_s``.

    Times are shifted to start at 0; after the last row it repeats.  A row holds until ``until_s``, or, in a file without this column,
    until the next row; the last one then for the median distance of rows, and what is longer than two of these is a gap.

    Parameters
    ----------
    path : the file.
    latency : of all rows where the file has no such column.
    gaps : "hold" (the values before go on), "zero" (nothing passes) or "error"; what was done is said in the trace's ``note``.

    Errors: UsageError naming the line for what is no number, negative, or out of order.
    """
    wait = units.seconds(latency, "a latency")
    if gaps not in GAPS:
        raise nearest(str(gaps), GAPS, "rule for gaps")
    found = [(line, _row(path, line, row, wait)) for line, row in csv_rows(path, [TIME, BANDWIDTH], "trace")]
    for (_, before), (line, row) in pairwise(found):
        if row[0] <= before[0]:
            raise UsageError(f"{path}, line {line}: the time {row[0]:g} does not come after {before[0]:g}; sort the rows.")
    first, times = found[0][1][0], [row[0] for _, row in found]
    usual = statistics.median_high(b - a for a, b in pairwise(times)) if len(times) > 1 else 1.0
    rows: list[tuple[float, float, float]] = []
    holes = []
    for (line, (time, rate, waits, until)), then in zip(found, [*times[1:], math.inf], strict=True):
        if until is not None and not time < until <= then:
            raise UsageError(f"{path}, line {line}: until_s must come after {time:g} and not after the next row, not {until:g}.")
        rows.append((time - first, rate, waits))
        end = until if until is not None else time + usual if then - time > GAP * usual else then
        if end < then < math.inf:
            holes.append((line, end, then))
            if gaps == "zero":
                rows.append((end - first, 0.0, waits))
    if holes and gaps == "error":
        line, end, then = holes[0]
        more = f" ({len(holes)} gaps in all)" if len(holes) > 1 else ""
        raise UsageError(f"{path}, line {line}: nothing is known from {end:g} s to {then:g} s{more}; choose gaps='hold' or gaps='zero'.")
    last = found[-1][1]
    kind = "gaps" if last[3] is not None else f"intervals of more than {GAP:g} medians of {usual:g} s"
    missing = f"{sum(then - end for _, end, then in holes):g} s"
    note = f"{len(holes)} {kind}, {missing} beyond what is known, are {GAPS[gaps]}" if holes else "no gaps"
    moments, bandwidth, latencies = zip(*rows, strict=True)
    return Trace(moments, bandwidth, latencies, (last[3] if last[3] is not None else last[0] + usual) - first, note)


def _row(path: str | Path, line: int, row: dict[str, str], wait: float) -> tuple[float, float, float, float | None]:
    """Time, bandwidth, latency and, if known, the end of a row."""
    try:
        time, rate = float(row[TIME]), float(row[BANDWIDTH])
        waits, until = (float(row[name]) if name in row else missing for name, missing in ((LATENCY, wait), (UNTIL, math.inf)))
    except (TypeError, ValueError):
        raise UsageError(f"{path}, line {line}: time, bandwidth and latency must be numbers.") from None
    if not (math.isfinite(time) and math.isfinite(rate) and math.isfinite(waits)) or min(rate, waits) < 0 or math.isnan(until):
        raise UsageError(f"{path}, line {line}: bandwidth and latency must be finite and at least 0.")
    return time, rate, waits, until if UNTIL in row else None


def write_trace(path: str | Path, trace: Trace) -> None:
    """A CSV file that :func:`read_trace` reads as the same trace (fractions become floats)."""
    ends = (*trace.times[1:], trace.period)
    rows = [[repr(float(v)) for v in row] for row in zip(trace.times, ends, trace.bandwidth, trace.latency, strict=True)]
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([[TIME, UNTIL, BANDWIDTH, LATENCY], *rows])


def generate(spec: str) -> Trace:
    """A trace by a text: ``periodic(high=.., low=.., period=..)``, ``markov(levels=..|.., stay=.., length=..)``,
    ``measured_like(mean=.., spread=.., memory=.., length=..)``, or ``measured_like(FILE, length=.., block=..)``, a file resampled.

    Errors: UsageError for an unknown name or parameter and for one that is missing.

    >>> generate("periodic(high=2Mbit/s, low=1Mbit/s, period=4s)").mean_bandwidth
    1500000.0
    """
    from inspect import Parameter, signature

    from verify_rates.solvers.compressors import split_spec

    name, given, named = split_spec(spec, "trace")
    makers: dict[str, Callable[..., Trace]] = {"periodic": periodic, "markov": markov, "measured_like": measured_like}
    if name not in makers:
        raise nearest(name, makers, "kind of trace")
    start: list[Any] = []
    make = makers[name]
    if given:
        if name != "measured_like" or len(given) > 1:
            raise UsageError(
                f"{given[0]!r} in {spec!r} is not of the form key=value, as in periodic(high=2Mbit/s, low=1Mbit/s, period=4s)."
            )
        make, start = resampled, [read_trace(given[0])]
    known = dict(list(signature(make).parameters.items())[len(start) :])
    for key in named:
        if key not in known:
            raise nearest(key, known, f"parameter of {name}")
    lacking = [k for k, v in known.items() if v.default is Parameter.empty and k not in named]
    if lacking:
        raise UsageError(f"{name} needs {', '.join(lacking)}.")
    return make(*start, **{key: _parameter(make, key, text) for key, text in named.items()})


def _parameter(make: Callable[..., Trace], key: str, text: str) -> Any:
    """Levels are a list, counts and shares are numbers; the rest is text with its unit."""
    kind = {"seed": int, "share": float, "spread": float, **({} if make is resampled else {"length": int})}.get(key)
    if key == "levels":
        return text.split("|")
    try:
        return kind(text) if kind else text
    except ValueError:
        raise UsageError(f"{key} must be a {'whole number' if kind is int else 'number'}, not {text!r}.") from None


class _Moment(NamedTuple):
    """A time, and the event that it waits for."""

    time: Any
    event: int = -1


@dataclass
class _TraceWorld(ClockWorld):
    """Clocks whose links follow a trace; each link is first in, first out.  Every event knows which other one let it start."""

    trace: Trace | None = None
    after: list[int] = field(default_factory=list)  # per event the one it waited for, -1 for none
    idle: dict[tuple[str, int], _Moment] = field(default_factory=dict)  # when a stream was last left, and by which event

    def task(self, word: str, stream: tuple[str, int], ready: Any, load: Load | None = None, copies: int = 1) -> Any:
        assert self.trace is not None and isinstance(self.cost, Costs)
        start, before = max(ready, self.idle.get(stream, _Moment(0)))
        if load is None:
            end = arrives = start + self.cost(word, stream).occupies
        else:
            end = self.trace.transfer(start, copies * self.cost.bits(load))
            arrives = end + self.trace.latency_at(end)
        number = len(self.events)
        self.idle[stream] = _Moment(end, number)
        self.events.append(Event(word, *stream, self.step, start, end, arrives))
        self.after.append(before)
        return _Moment(arrives, number)


def along(
    method: str | Method,
    hyper: Any,
    trace: Trace,
    *,
    steps: int,
    compute: Any,
    size: Any,
    compressor: Any = None,
    bytes_share: float | None = None,
    encode: Any = 0.0,
    topology: Any = None,
    n: int | None = None,
) -> list[Event]:
    """The events of the first steps of a method whose links follow a trace, by event simulation.

    Arguments as for :func:`verify_rates.timeline`, which it equals on a constant trace.  The last ``arrives`` is when the run is over.

    >>> events = along("dd_ef_sgd", {"tau": 1}, constant("8bit/s", "2s"), steps=3, compute=1.0, size=4.0)
    >>> max(e.arrives for e in events)
    15.0
    """
    given = {"size": size, "compressor": compressor, "bytes_share": bytes_share, "encode": encode, "topology": topology, "n": n}
    return _played(method, hyper, trace, steps, compute=compute, **given).events


def _played(method: str | Method, hyper: Any, trace: Trace, steps: int, **given: Any) -> _TraceWorld:
    """The world after the first steps."""
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise UsageError(f"steps must be a whole number from 1 on, not {steps!r}.")
    mean: dict[str, Any] = {"latency": trace.mean_latency, "bandwidth": trace.mean_bandwidth}  # for the checks; transfers follow the trace
    found, h, _, neighbours, costs, _ = asked(method, hyper, **mean, **given)
    world = _TraceWorld(neighbours, costs.encode > 0, cost=costs, trace=trace)
    s = world.start(found, h, _Moment(0))
    for t in range(steps):
        world.step = t
        s = found.state(*map(world.settle, found.step(s, world, h, t)))
    return world


@dataclass(frozen=True)
class AlongTrace:
    """The first steps of a method along a trace.

    Attributes
    ----------
    seconds : when the last result is there.
    seconds_per_step : that, over the steps; the filling of the pipeline counts.
    at_mean : steady seconds per step on a link that keeps the trace's mean bandwidth and mean latency.
    shares : seconds of compute, transfer and latency on the path of events, each waiting for the one before, that ends last: what the
        time consists of.
    walk : numbers of the events on that path.
    events : as of :func:`along`.
    """

    method: str
    steps: int
    seconds: float
    seconds_per_step: float
    at_mean: float
    shares: dict[str, float]
    walk: tuple[int, ...] = field(repr=False)
    events: tuple[Event, ...] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, the events with named columns."""
        names = ("method", "steps", "seconds", "seconds_per_step", "at_mean", "shares", "walk")
        return {name: getattr(self, name) for name in names} | {"events": [e._asdict() for e in self.events]}

    def to_chrome(self, path: str | Path) -> None:
        """Write the events as Chrome trace JSON for Perfetto (compressed for ``.gz``), with arrows along the path that ends last."""
        from verify_rates.theory.timeline.chrome import write

        write(path, self.events, walk=self.walk, about={"method": self.method})

    def to_html(self, path: str | Path) -> None:
        """Write a Gantt chart as one interactive HTML page that needs no network."""
        from verify_rates.theory.timeline.gantt import page

        title = f"{self.method}: {self.steps} steps in {self.seconds:.6g} s"
        Path(path).write_text(page(self.events, self.walk, title, "path of events that ends last"), encoding="utf-8")

    def __str__(self) -> str:
        pace = f"{self.steps} steps in {self.seconds:.6g} s, {self.seconds_per_step:.6g} s per step"
        parts = ", ".join(f"{name} {share / self.seconds:.1%}" for name, share in self.shares.items()) if self.seconds else "nothing"
        return f"{self.method}: {pace} (at the mean bandwidth and latency: {self.at_mean:.6g} s)\nits last result waited for: {parts}"


def run_along(method: str | Method, hyper: Any, trace: Trace, *, steps: int, **given: Any) -> AlongTrace:
    """:func:`along` with its time, beside the steady state at the trace's mean; arguments as there.

    >>> run_along("gd", {}, Trace((0, 1), (8, 0), (0, 0), 2), steps=4, compute=0.0, size=1.0).seconds
    7.0
    """
    from verify_rates.theory.timeline import timeline

    world = _played(method, hyper, trace, steps, **given)
    mean = timeline(method, hyper, latency=trace.mean_latency, bandwidth=trace.mean_bandwidth, steps=1, **given)
    walk, events = _last(world), world.events
    shares = {"compute": 0.0, "transfer": 0.0, "latency": 0.0}
    for i, then in zip(walk, [*(events[j].start for j in walk[1:]), events[walk[-1]].arrives], strict=True):
        shares["transfer" if events[i].stream == "link" else "compute"] += float(events[i].end - events[i].start)
        shares["latency"] += float(then - events[i].end)
    seconds = float(events[walk[-1]].arrives)
    return AlongTrace(mean.method, steps, seconds, seconds / steps, mean.seconds_per_step, shares, tuple(walk), tuple(events))


def _last(world: _TraceWorld) -> list[int]:
    """The events on the path that ends last, in order of time."""
    path = [max(range(len(world.events)), key=lambda i: world.events[i].arrives)]
    while (before := world.after[path[-1]]) >= 0:
        path.append(before)
    return path[::-1]
