"""Networks that vary: bandwidth and latency over time, transfers integrated exactly over them, and time lines along them."""

from __future__ import annotations

import csv
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from verify_rates.solvers.method import Method, UsageError
from verify_rates.theory import units
from verify_rates.theory.timeline.events import Load
from verify_rates.theory.timeline.line import Costs, asked
from verify_rates.theory.timeline.simulate import ClockWorld, Event

TIME, BANDWIDTH, LATENCY = "time_s", "bandwidth_bit_per_s", "latency_s"


@dataclass(frozen=True)
class Trace:
    """Bandwidth and latency of a link over time, each held until the next row; after the last row it starts again.

    Attributes
    ----------
    times : (m,) seconds, from 0, increasing.
    bandwidth : (m,) bit/s; 0 is an outage, in which a transfer waits.
    latency : (m,) seconds.
    period : seconds after which the trace repeats; more than the last of ``times``.

    Numbers may be fractions: everything is then computed exactly.

    Errors: UsageError where there are no rows, times do not increase, or the link never carries anything.

    >>> Trace((0, 1), (8, 0), (0.5, 0.5), 3).transfer(0.5, 8)
    3.5
    """

    times: tuple[Any, ...]
    bandwidth: tuple[Any, ...]
    latency: tuple[Any, ...]
    period: Any

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
        ends = (*self.times[1:], self.period)
        return float(sum(v * (b - a) for a, b, v in zip(self.times, ends, self.latency, strict=True))) / float(self.period)


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
    """A Markov chain on bandwidths: every second it keeps its level with probability ``1 - 1/stay``, else it draws another.

    >>> sorted(set(markov(["1Mbit/s", "10Mbit/s"], "5s", 100).bandwidth))
    [1000000.0, 10000000.0]
    """
    import numpy as np

    rates, mean = [units.bits_per_second(v) for v in levels], units.seconds(stay, "a mean stay")
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


def read_trace(path: str | Path, latency: Any = 0.0) -> Trace:
    """A trace from a CSV file with the columns ``time_s, bandwidth_bit_per_s`` and, if it has one, ``latency_s``.

    Times are shifted to start at 0; a gap holds the last values; after the last row the median distance of rows passes, then it repeats.

    Parameters
    ----------
    path : the file.
    latency : of all rows where the file has no such column.

    Errors: UsageError naming the line for what is no number, negative, or out of order.
    """
    wait = units.seconds(latency, "a latency")
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"cannot read the trace {str(path)!r}: {getattr(error, 'strerror', None) or error}.") from None
    if not rows or not {TIME, BANDWIDTH} <= set(rows[0]):
        raise UsageError(f"{path} is no trace: it needs a header with {TIME},{BANDWIDTH} (and {LATENCY}, if known) and at least one row.")
    found: list[tuple[float, float, float]] = []
    for line, row in enumerate(rows, start=2):
        try:
            made = float(row[TIME]), float(row[BANDWIDTH]), float(row[LATENCY]) if row.get(LATENCY) is not None else wait
        except (TypeError, ValueError):
            raise UsageError(f"{path}, line {line}: time, bandwidth and latency must be numbers.") from None
        if not all(map(math.isfinite, made)) or min(made[1:]) < 0:
            raise UsageError(f"{path}, line {line}: bandwidth and latency must be finite and at least 0.")
        if found and made[0] <= found[-1][0]:
            raise UsageError(f"{path}, line {line}: the time {made[0]:g} does not come after {found[-1][0]:g}; sort the rows.")
        found.append(made)
    times = [t - found[0][0] for t, _, _ in found]
    steps = sorted(b - a for a, b in pairwise(times))
    period = times[-1] + (steps[len(steps) // 2] if steps else 1.0)
    return Trace(tuple(times), tuple(b for _, b, _ in found), tuple(v for _, _, v in found), period)


@dataclass
class _TraceWorld(ClockWorld):
    """Clocks whose links follow a trace; each link is first in, first out."""

    trace: Trace | None = None

    def task(self, word: str, stream: tuple[str, int], ready: Any, load: Load | None = None, copies: int = 1) -> Any:
        assert self.trace is not None and isinstance(self.cost, Costs)
        start = max(ready, self.free.get(stream, 0))
        if load is None:
            end = arrives = start + self.cost(word, stream).occupies
        else:
            end = self.trace.transfer(start, copies * load.bits(self.cost.message_bits, self.cost.dense_bits))
            arrives = end + self.trace.latency_at(end)
        self.free[stream] = end
        self.events.append(Event(word, *stream, self.step, start, end, arrives))
        return arrives


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
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise UsageError(f"steps must be a whole number from 1 on, not {steps!r}.")
    link = {"latency": trace.mean_latency, "bandwidth": trace.mean_bandwidth}  # for the check of the rest; transfers follow the trace
    given = {"size": size, "compressor": compressor, "bytes_share": bytes_share, "encode": encode, "topology": topology, "n": n}
    method, h, _, neighbours, costs, _ = asked(method, hyper, compute=compute, **link, **given)
    world = _TraceWorld(neighbours, costs.encode > 0, cost=costs, trace=trace)
    s = world.start(method, h, 0)
    for t in range(steps):
        world.step = t
        s = method.state(*map(world.settle, method.step(s, world, h, t)))
    return world.events
