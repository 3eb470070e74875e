"""Time lines as Chrome trace JSON, which Perfetto and chrome://tracing show, and such files as events again.

The format allows more than its readers show, so what is written keeps to what all of them do:

1. Complete events of one thread must nest, so every stream (and direction of a link) is a thread of its own, on which nothing overlaps.
2. What is under way on a link (latency) does overlap: it is written as asynchronous events, each pair with an id of its own.
3. ``ts`` and ``dur`` are microseconds.  Times are rounded to whole nanoseconds before a duration is taken, and written so that a reader
   that cuts off does not shift a start by one nanosecond, which would make neighbours overlap.
4. Processes and threads are positive whole numbers (0 is the idle task of a machine), unlike one another, and named by metadata.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from verify_rates.solvers.method import UsageError
from verify_rates.theory.timeline.simulate import Event

NANOSECONDS = 10**9


def trace_of(events: Sequence[Event], *, walk: Sequence[int] = (), about: dict[str, Any] | None = None) -> dict[str, Any]:
    """Events as the JSON object of a Chrome trace.

    Parameters
    ----------
    events : of a time line, or along a bandwidth trace (:func:`verify_rates.theory.networks.along`).
    walk : numbers of events between which arrows (flows) are drawn, such as the walk that sets the pace.
    about : what to tell in ``otherData``.

    >>> made = trace_of([Event("grad", "compute", 0, 0, 0.0, 1e-6, 1e-6)])
    >>> made["traceEvents"][-1]["ph"], made["traceEvents"][-1]["ts"], made["traceEvents"][-1]["dur"]
    ('X', 0.0, 1.0)
    """
    workers = {worker: i for i, worker in enumerate(sorted({e.worker for e in events}), start=1)}
    keys = sorted({(e.worker, e.stream) for e in events})
    places = {key: {"pid": workers[key[0]], "tid": len(workers) + i} for i, key in enumerate(keys, start=1)}  # tid unlike every pid
    named = []
    for (worker, stream), at in places.items():
        named += [*_named("process", at, f"worker {worker}", workers[worker]), *_named("thread", at, stream, at["tid"])]
    timed: list[dict[str, Any]] = []
    for i, e in enumerate(events):
        at = places[e.worker, e.stream]
        args = {"step": e.step, "worker": e.worker, "arrives_us": _micro(_nano(e.arrives)), "sets_the_pace": i in walk}
        start, end, arrives = _nano(e.start), _nano(e.end), _nano(e.arrives)
        timed.append({"name": e.word, "cat": e.stream, "ph": "X", "ts": _micro(start), "dur": _micro(end - start), **at, "args": args})
        if arrives > end:
            flight = {"name": f"{e.word} under way", "cat": "latency", "id": f"{i + 1:#x}", **at}
            timed += [{**flight, "ph": "b", "ts": _micro(end), "args": {"step": e.step}}, {**flight, "ph": "e", "ts": _micro(arrives)}]
    timed += _arrows(events, walk, places)
    timed.sort(key=lambda e: e["ts"])
    return {"traceEvents": named + timed, "displayTimeUnit": "ms", "otherData": {"generator": "verify-rates", **(about or {})}}


def _named(what: str, at: dict[str, int], name: str, order: int) -> list[dict[str, Any]]:
    given = {"ph": "M", "ts": 0, **at}
    index = {"name": f"{what}_sort_index", "args": {"sort_index": order}}
    return [{"name": f"{what}_name", "args": {"name": name}, **given}, {**index, **given}]


def _arrows(events: Sequence[Event], walk: Sequence[int], places: dict[tuple[int, str], dict[str, int]]) -> list[dict[str, Any]]:
    """Flows from event to event; one without duration cannot hold an end of a flow."""
    out = []
    for number, (i, j) in enumerate(pairwise(walk), start=1):
        ends = events[i], events[j]
        if all(_nano(e.end) > _nano(e.start) for e in ends):
            for phase, e in zip("sf", ends, strict=True):
                arrow = {"name": "sets the pace", "cat": "cycle", "ph": phase, "id": number, "ts": _micro(_nano(e.start))}
                out.append({**arrow, **places[e.worker, e.stream], **({"bp": "e"} if phase == "f" else {})})
    return out


def _nano(seconds: Any) -> int:
    return round(seconds * NANOSECONDS)


def _micro(nano: int) -> float:
    """The number whose thousandfold, cut off, is so many nanoseconds."""
    value = nano / 1000
    return value if int(value * 1000) >= nano else math.nextafter(value, math.inf)


def write(path: str | Path, events: Sequence[Event], *, walk: Sequence[int] = (), about: dict[str, Any] | None = None) -> None:
    """Write :func:`trace_of` to a file, compressed where its name ends in ``.gz``."""
    text = json.dumps(trace_of(events, walk=walk, about=about), allow_nan=False).encode()
    Path(path).write_bytes(gzip.compress(text, mtime=0) if Path(path).suffix == ".gz" else text)


def load(path: str | Path) -> dict[str, Any]:
    """The JSON object of a Chrome trace, compressed or not; a bare list of events becomes one.

    Errors: UsageError for a file that cannot be read, is no JSON, holds no list of events, or has none.
    """
    name = str(path)
    try:
        raw = Path(path).read_bytes()
        data = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"cannot read the trace {name!r}: {getattr(error, 'strerror', None) or error}.") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is no JSON: {error}.") from None
    made = {"traceEvents": data} if isinstance(data, list) else data
    if not isinstance(made, dict) or not isinstance(made.get("traceEvents"), list):
        raise UsageError(f"{name} is no Chrome trace: it needs a list of events, or an object with the key traceEvents.")
    if not made["traceEvents"]:
        raise UsageError(f"{name} holds no events.")
    if not all(isinstance(e, dict) for e in made["traceEvents"]):
        raise UsageError(f"{name} is no Chrome trace: its events must be objects.")
    return made


def read(path: str | Path) -> list[Event]:
    """The events of a file that :func:`write` made, in order of their start, to the nanosecond.

    Errors: as :func:`load`, and UsageError where the file is a trace of something else.
    """
    events = [e for e in load(path)["traceEvents"] if e.get("ph") == "X"]
    try:
        found = [Event(e["name"], e["cat"], e["args"]["worker"], e["args"]["step"], *_times(e)) for e in events]
        return sorted(found, key=lambda e: (e.start, e.end))
    except (KeyError, TypeError, ValueError, OverflowError):
        raise UsageError(f"{path} is no time line of verify-rates; read a profile by read_profile.") from None


def _times(e: dict[str, Any]) -> tuple[float, float, float]:
    start = round(e["ts"] * 1000)
    return start / NANOSECONDS, (start + round(e["dur"] * 1000)) / NANOSECONDS, round(e["args"]["arrives_us"] * 1000) / NANOSECONDS
