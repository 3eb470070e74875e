"""Is Network the Bottleneck: the what-if simulator (backward pass, fusion buffer, ring all-reduce), and checks of its statements."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators.streams import choose, fifo, positive, ring_all_reduce, same_maximum, whole
from verify_rates.theory.evidence import Found

Event = tuple[Any, Any]  # (seconds of waiting, bytes) of a gradient tensor, in backward order
FLUSH_SECONDS, FLUSH_BYTES = 0.005, 64 * 2**20  # the released fusion buffer

# Bytes and seconds of one vector addition: the published points of a table of 25 that is flat below 1.3 MB.
ADD_BYTES = (0.0, 1.3e6, 2.62e6, 21.0e6, 83.9e6, 671e6)
ADD_SECONDS = (9.3e-6, 1.2e-5, 1.82e-5, 8.53e-5, 3.138e-4, 2.434e-3)
LEAST_ADD = ADD_SECONDS[0]

NEAR_ONE = 0.9  # our reading of "near 1"
TABLE_ATOL = 1e-3  # the accuracy to which the published factors are asked for; the equal waits stand in for a log of times
PRINTED_ATOL = 0.5e-4  # half a unit of the last printed digit


class Measured(NamedTuple):
    """A profiled model: seconds of a batch on one device and of its backward pass, and the sizes of its tensors."""

    t_batch: float
    T_back: float
    tensors: tuple[tuple[int, int], ...]  # (bytes, positions per channel: the work is in proportion to their product)

    def events(self, rule: str = "equal") -> list[Event]:
        """Backward events: waits that are ``equal``, or in proportion to the ``work`` of the tensor's layer (no log is public here).

        >>> len(model("resnet50").events())
        161
        """
        rules = {"equal": [1.0] * len(self.tensors), "work": [float(b * p) for b, p in self.tensors]}
        return spread_backward([b for b, _ in self.tensors], self.T_back, choose(rule, rules, "rule of waits"))


class Bucket(NamedTuple):
    ready: Any  # seconds from the start of the backward pass
    size: Any  # bytes


def spread_backward(sizes: Sequence[Any], T_back: Any, weights: Sequence[Any] | None = None) -> list[Event]:
    """Events of a list of tensors (in backward order) whose times are not known: ``T_back`` shared out by weights, equally by default.

    >>> spread_backward([8, 4], 1.0, [1, 3])
    [(0.25, 8), (0.75, 4)]
    """
    shares = [1] * len(sizes) if weights is None else list(weights)
    if len(shares) != len(sizes) or not sizes or sum(shares) <= 0 or min(shares) < 0:
        raise UsageError(f"weights must be {len(sizes)} numbers of at least 0, not all 0, one for each of the tensors.")
    return [(positive(T_back, "T_back") * w / sum(shares), s) for w, s in zip(shares, sizes, strict=True)]


def add_seconds(size: float) -> float:
    """Seconds to add two vectors of ``size`` bytes on the measured device: linear between the published points, and beyond them.

    >>> round(add_seconds(21.0e6), 7)
    8.53e-05
    """
    slope = (ADD_SECONDS[-1] - ADD_SECONDS[-2]) / (ADD_BYTES[-1] - ADD_BYTES[-2])
    return float(np.interp(size, ADD_BYTES, ADD_SECONDS)) + max(0.0, size - ADD_BYTES[-1]) * slope


def all_reduce_seconds(size: Any, n: int, bw: Any, compression: Any = 1, add: Callable[[Any], Any] = add_seconds, lat: Any = 0) -> Any:
    """Seconds of a ring all-reduce (network_bottleneck.2, with ``lat`` network_bottleneck.7).

    Mathematics: ``2*(n-1)*lat + 2*(8*size*(n-1)/n)/bw/compression + (n-1)*add(size/n)``.

    Parameters
    ----------
    size : bytes.
    bw : bit/s of every link, one direction.
    compression : factor by which the network carries less; adding works on the whole vector, encoding is free (as released).
    add : seconds to add a vector of so many bytes.
    lat : seconds per message; 0 as released.

    >>> round(all_reduce_seconds(64e6, 16, 10e9), 4)
    0.0963
    """
    return 2 * (n - 1) * lat + 2 * (8 * size * (n - 1) / n) / bw / compression + (n - 1) * add(size / n)


def buckets(events: Sequence[Event], flush_seconds: Any = FLUSH_SECONDS, flush_bytes: Any = FLUSH_BYTES) -> tuple[Any, list[Bucket]]:
    """(T_back, buckets) of the fusion buffer: flushed by the compute time since the last flush, or by its bytes; tensors stay whole.

    >>> buckets([(0.004, 10), (0.004, 20), (0.001, 5)])
    (0.009000000000000001, [Bucket(ready=0.008, size=30), Bucket(ready=0.009000000000000001, size=5)])
    """
    now: Any = 0
    waited: Any = 0
    held: Any = 0
    found: list[Bucket] = []
    for wait, size in events:
        now, waited, held = now + wait, waited + wait, held + size
        if waited >= flush_seconds or held >= flush_bytes:
            found.append(Bucket(now, held))
            waited, held = 0, 0
    if held > 0:
        found.append(Bucket(now, held))
    return now, found


def overhead(
    events: Sequence[Event],
    n: int,
    bw: Any,
    *,
    compression: Any = 1,
    add: Callable[[Any], Any] = add_seconds,
    lat: Any = 0,
    flush_seconds: Any = FLUSH_SECONDS,
    flush_bytes: Any = FLUSH_BYTES,
) -> Any:
    """Seconds by which the last all-reduce ends after the backward pass; see :func:`scaling_factor` for the parameters."""
    T_back, groups = buckets(events, flush_seconds, flush_bytes)
    if n == 1 or not groups:
        return 0
    ends = fifo((g.ready, all_reduce_seconds(g.size, n, bw, compression, add, lat)) for g in groups)
    return max(ends[-1] - T_back, 0)


def scaling_factor(events: Sequence[Event], n: int, bw: Any, t_batch: Any, **options: Any) -> Any:
    """Throughput of ``n`` workers over ``n`` times that of one, simulated (network_bottleneck.3).

    Parameters
    ----------
    events : (seconds of waiting, bytes) of every gradient tensor in backward order.
    n : workers in the ring.
    bw : bit/s of a link in one direction, as a number (``theory.units.bits_per_second`` reads text).
    t_batch : seconds of a batch on one device.
    options : compression (>= 1), add, lat (s), flush_seconds, flush_bytes of the fusion buffer.

    Errors: UsageError for values that are not finite, n < 1, bw <= 0, compression < 1, no events.

    >>> m = model("resnet50")
    >>> round(scaling_factor(m.events(), 16, 10e9, m.t_batch), 2)
    0.57
    """
    if not events:
        raise UsageError("events must have at least one (seconds, bytes).")
    for wait, size in events:
        positive(wait, "a wait", zero=True)
        positive(size, "a size", zero=True)
    whole(n, "n")
    positive(bw, "bw")
    positive(t_batch, "t_batch")
    if positive(options.get("compression", 1), "compression") < 1:
        raise UsageError(f"compression must be at least 1, not {options['compression']!r}.")
    return t_batch / (t_batch + overhead(events, n, bw, **options))


# --- the three models of the published table: sizes follow from the definitions, times were measured by the authors ------------


def _resnet(blocks: Sequence[int]) -> list[tuple[int, int]]:
    made, channels, side = [(9408, 112), (64, 112), (64, 112)], 64, 56
    for stage, count in enumerate(blocks):
        width = 64 * 2**stage
        for block in range(count):
            after = side // 2 if stage and not block else side
            shortcut = [(channels * 4 * width, after), (4 * width, after), (4 * width, after)] if not block else []
            made += [(channels * width, side), (width, side), (width, side), (9 * width**2, after), (width, after), (width, after)]
            made += [(4 * width**2, after), (4 * width, after), (4 * width, after), *shortcut]
            channels, side = 4 * width, after
    return [*made, (2_048_000, 1), (1000, 1)]


def _vgg16_bn() -> list[tuple[int, int]]:
    made, channels, side = [], 3, 224
    for stage in ((64, 64), (128, 128), (256,) * 3, (512,) * 3, (512,) * 3):
        for width in stage:
            made += [(9 * channels * width, side), *[(width, side)] * 3]
            channels = width
        side //= 2
    return [*made, (25088 * 4096, 1), (4096, 1), (4096 * 4096, 1), (4096, 1), (4_096_000, 1), (1000, 1)]


_MODELS: dict[str, tuple[float, float, Callable[[], list[tuple[int, int]]]]] = {
    "resnet50": (0.128086, 0.064807, lambda: _resnet((3, 4, 6, 3))),
    "resnet101": (0.192006, 0.106407, lambda: _resnet((3, 4, 23, 3))),
    "vgg16": (0.194524, 0.111620, _vgg16_bn),
}

# (bw in Gbit/s, n, compression) to the published factor, recomputed by the paper's rules from the logs of its authors.
TABLE: dict[str, dict[tuple[int, int, int], float]] = {
    name: {(bw, n, c): v for bw, row in rows.items() for (n, c), v in zip(((16, 1), (16, 2), (16, 5), (64, 1), (64, 2)), row, strict=True)}
    for name, rows in {
        "resnet50": {
            100: (0.9987, 0.9988, 0.9989, 0.9946, 0.9947),
            25: (0.9702, 0.9984, 0.9987, 0.9103, 0.9944),
            10: (0.5718, 0.8693, 0.9984, 0.5397, 0.8169),
            1: (0.0798, 0.1530, 0.3394, 0.0760, 0.1453),
        },
        "resnet101": {100: (0.9991, 0.9992, 0.9992, 0.9968, 0.9969), 10: (0.5307, 0.8416, 0.9991, 0.4998, 0.7873)},
        "vgg16": {
            100: (0.9985, 0.9986, 0.9986, 0.9935, 0.9935),
            40: (0.6589, 0.9985, 0.9986, 0.6221, 0.9548),
            10: (0.2119, 0.3869, 0.7667, 0.2013, 0.3666),
        },
    }.items()
}


def model(name: str) -> Measured:
    """A model of the paper: resnet50, resnet101 or vgg16 (with batch normalisation, as in the released log).

    >>> sum(size for size, _ in model("vgg16").tensors)
    553463968
    """
    t_batch, T_back, made = choose(name, _MODELS, "model")
    return Measured(t_batch, T_back, tuple((4 * numbers, side**2) for numbers, side in reversed(made())))


def most_factor(name: str, bw: float, n: int, compression: float) -> float:
    """The largest factor that any order and timing of the model's tensors can reach: all bytes cross the link, adding takes time.

    Mathematics: the first bucket is not ready before the pass starts, and at least one all-reduce follows the pass.
    """
    made = model(name)
    total = sum(size for size, _ in made.tensors)
    least = (n - 1) * LEAST_ADD
    late = 2 * 8 * total * (n - 1) / n / bw / compression + least - made.T_back
    return made.t_batch / (made.t_batch + max(least, late))


# --- checks ---------------------------------------------------------------------------------------------------------------


def throughput_ratio() -> Found:
    """network_bottleneck.1 and .3: n workers do n batches in t_batch + overhead, one does one in t_batch; in symbols."""
    import sympy as sp

    n, b, t, o = sp.symbols("n b t o", positive=True)
    ratio = (n * b / (t + o)) / (n * (b / t))
    event = [(Fraction(1), Fraction(8))]
    made = scaling_factor(event, 2, 8, Fraction(3), add=lambda x: 0)  # 8 bytes at 8 bit/s: the overhead is 8 s
    return Found.count((sp.simplify(ratio - t / (t + o)) != 0) + (made != ratio.subs({t: 3, o: 8})), 2, proves=True)


def ring_time(n: int, latency: bool) -> Found:
    """network_bottleneck.2 and .7: the formula is the time of the ring, played message by message, in symbols."""
    import sympy as sp

    size, bw, c, lat = sp.symbols("S bw c alpha", positive=True)
    A = sp.Function("A")
    lat = lat if latency else 0
    played = ring_all_reduce(n, size, 8 / (bw * c), lat, A).seconds
    return Found.count(int(sp.expand(played - all_reduce_seconds(size, n, bw, c, A, lat)) != 0), 1, proves=True)


def max_plus_form(count: int) -> Found:
    """network_bottleneck.4: the recursion of the FIFO is Max over j of ready_j + what is left from j on, in symbols."""
    import sympy as sp

    waits, sent = (sp.symbols(f"{name}1:{count + 1}", nonnegative=True) for name in "wT")
    ready = [sum(waits[: j + 1]) for j in range(count)]
    end = fifo(zip(ready, sent, strict=True), sp.Max)[-1]
    return Found.count(int(not same_maximum(end, sp.Max(*(ready[j] + sum(sent[j:]) for j in range(count))))), 1, proves=True)


def monotone(count: int) -> Found:
    """network_bottleneck.4.monotone: a faster link and more compression never lengthen a step, over all small logs."""
    wrong, cases = 0, 0
    options: dict[str, Any] = {"add": lambda x: x / 3, "flush_seconds": Fraction(1), "flush_bytes": 3}
    for flat in itertools.product((0, 1, 2), (1, 2), repeat=count):
        events = _pairs(flat)
        for n in (1, 2, 3):
            by_bw = [overhead(events, n, Fraction(bw), **options) for bw in (1, 4, 16, 64)]
            by_c = [overhead(events, n, Fraction(4), compression=c, **options) for c in (1, 2, 8)]
            cases += 1
            wrong += by_bw != sorted(by_bw, reverse=True) or by_c != sorted(by_c, reverse=True)
    return Found.count(wrong, cases, proves=True)


def _pairs(flat: Sequence[int]) -> list[Event]:
    return [(Fraction(w), Fraction(s)) for w, s in zip(flat[::2], flat[1::2], strict=True)]


def last_bucket(count: int) -> Found:
    """network_bottleneck.5: the overhead is at least the time of a last bucket that is flushed at T_back, over all small logs."""
    wrong, cases = 0, 0
    for flat in itertools.product((0, 1, 2), (0, 1, 3), repeat=count):
        events = _pairs(flat)
        T_back, groups = buckets(events, Fraction(2), 3)
        if groups and groups[-1].ready == T_back:
            cases += 1
            last = all_reduce_seconds(groups[-1].size, 2, 8, 1, lambda x: x)
            wrong += overhead(events, 2, 8, add=lambda x: x, flush_seconds=Fraction(2), flush_bytes=3) < last
    return Found.count(wrong, cases, proves=True)


def buffer_size(small: int, large: int) -> Found:
    """network_bottleneck.4.buffer: two tensors of 1 byte, 1 s apart: seconds of overhead with the larger beside the smaller buffer."""
    options: dict[str, Any] = {"add": lambda x: 0, "flush_seconds": Fraction(9)}
    less, more = (overhead([(Fraction(1), 1)] * 2, 2, 8, flush_bytes=b, **options) for b in (small, large))
    return Found(float(more), float(more), float(less), proves=True, message=f"{more} s with {large} bytes, {less} s with {small}")


def table(name: str) -> Found:
    """network_bottleneck.3.table: the largest distance to a published factor, with equal waits in place of the log."""
    made = model(name)
    off = {
        (bw, n, c): abs(scaling_factor(made.events(), n, bw * 1e9, made.t_batch, compression=c) - factor)
        for (bw, n, c), factor in TABLE[name].items()
    }
    worst = max(off, key=off.__getitem__)
    return Found(off[worst], off[worst], TABLE_ATOL, message=f"worst of {len(off)} at (Gbit/s, n, compression) = {worst}: {off[worst]:.2e}")


def table_within_totals(name: str) -> Found:
    """network_bottleneck.3.totals: how far a published factor exceeds what the totals of the model allow."""
    over = max(factor - most_factor(name, bw * 1e9, n, c) for (bw, n, c), factor in TABLE[name].items())
    return Found(over, over, PRINTED_ATOL, message=f"largest excess {over:.2e} of {len(TABLE[name])} factors")


def headline(name: str, gbit: int, n: int, compression: int) -> Found:
    """network_bottleneck.6: the factor lies between 0 and what the totals allow; is it near 1?"""
    most = most_factor(name, gbit * 1e9, n, compression)
    return Found(0.0, most, NEAR_ONE, ">=", message=f"{name}: at most {most:.3f} at {gbit} Gbit/s, {n} workers, compression {compression}")


def headline_simulated(name: str, gbit: int, n: int, compression: int) -> Found:
    """network_bottleneck.6.repaired: the smaller of the factors with equal waits and with waits in proportion to work."""
    made = model(name)
    rules = ("equal", "work")
    low, high = sorted(scaling_factor(made.events(r), n, gbit * 1e9, made.t_batch, compression=compression) for r in rules)
    return Found(low, high, NEAR_ONE, ">=", message=f"{name}: {low:.3f} at {gbit} Gbit/s, {n} workers, compression {compression}")
