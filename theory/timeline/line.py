"""``timeline``: seconds per step of any method from its step function, the cycle that sets the pace, and its events as data."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from verify_rates.solvers.kinds import check_kinds
from verify_rates.solvers.method import Method, UsageError, get_method, nearest
from verify_rates.solvers.words import Unsupported
from verify_rates.theory.timeline import formulas, replay, simulate
from verify_rates.theory.timeline.collectives import Exchange, exchange
from verify_rates.theory.timeline.cycles import CycleRatio, cycle_ratio
from verify_rates.theory.timeline.events import Load, Task, constants, period_steps, periodic_tasks, task_names, words_used
from verify_rates.theory.timeline.simulate import Cost, Event
from verify_rates.theory.units import FLOAT_BYTES, bits_per_second, seconds, size_bytes

LINKS = {
    "fifo": "first in, first out in program order; a transfer holds the link for bytes/bandwidth, its latency passes beside the next one",
    "blocking": "first in, first out in program order; a transfer holds the link for bytes/bandwidth plus latency",
}
ENGINES = ("steps", "tasks")


@dataclass(frozen=True)
class Costs:
    """Seconds of every kind of task; fractions where the question is an exact one."""

    compute: tuple[float, ...]
    encode: float
    latency: float
    bandwidth: float  # bit/s
    message_bits: float
    dense_bits: float
    blocking: bool
    values_bits: Any = None  # of a message without its places, where it has fewer
    exchange: Exchange | None = None  # how an average is carried out, where it is more than one transfer

    def bits(self, load: Load) -> Any:
        return load.bits(self.message_bits, self.dense_bits, self.values_bits)

    def transfer(self, load: Load, copies: int) -> float:
        return copies * self.bits(load) / self.bandwidth

    def __call__(self, word: str, stream: tuple[str, int], load: Load | None = None, copies: int = 1) -> Cost:
        if load is None:
            return Cost(self.encode if word == "compress" else self.compute[stream[1]], 0 * self.latency)
        tx = self.transfer(load, copies)
        if self.exchange and word == "mean":
            return self.exchange.cost(tx, self.latency)
        return Cost(tx + self.latency, 0 * self.latency) if self.blocking else Cost(tx, self.latency)


@dataclass(frozen=True)
class TimeLine:
    """Steady-state pace of a method and the first events.

    Attributes
    ----------
    seconds_per_step, seconds_per_round : in the steady state.
    steps_per_round : steps of one communication round.
    limit : "compute", "link" or "feedback loop": what the limiting cycle consists of.
    cycle : names of the tasks on the limiting cycle, in order; ``rounds_under_way`` rounds pass while it is walked once.
    sentence : the same in words.
    gap : relative distance between the cycle's ratio and a proved upper bound (rounding only).
    link : the rule of the link, in words.
    inputs : what was asked, in SI units (bytes_sent: per averaging).
    notes : inputs without effect and assumptions.
    events : the first tasks as they run (seconds).
    graph : the event graph behind it.
    """

    method: str
    seconds_per_step: float
    seconds_per_round: float
    steps_per_round: int
    limit: str
    cycle: tuple[str, ...]
    rounds_under_way: int
    sentence: str
    gap: float
    link: str
    inputs: dict[str, Any]
    notes: tuple[str, ...]
    events: tuple[Event, ...] = field(repr=False)
    graph: EventGraph = field(repr=False)

    @cached_property
    def _formula(self) -> tuple[Any, str]:
        return self.graph.formula(self.steps_per_round)

    @property
    def formula(self) -> Any:
        """SymPy expression, seconds per step, in T_comp, T_tx (bytes/bandwidth), lat; None where ``formula_reason`` says why."""
        return self._formula[0]

    @property
    def formula_reason(self) -> str:
        return self._formula[1]

    def __str__(self) -> str:
        lines = [f"{self.method}: {self.seconds_per_step:.6g} s per step, {self.seconds_per_round:.6g} s per round"]
        lines += [f"limit: {self.sentence}", f"formula: {self.formula if self.formula is not None else self.formula_reason}"]
        return "\n".join([*lines, f"link: {self.link}", *(f"note: {note}" for note in self.notes)])

    def to_json(self, **options: Any) -> str:
        """Everything as JSON text; the formula as text, events with named columns."""
        names = [f for f in self.__dataclass_fields__ if f not in ("events", "graph")]
        data: dict[str, Any] = {name: getattr(self, name) for name in names}
        data["formula_reason"] = self.formula_reason
        data["formula"] = None if self.formula is None else str(self.formula)
        data["events"] = [event._asdict() for event in self.events]
        return json.dumps(data, **options)

    def _repr_html_(self) -> str:
        rows = [
            ("seconds per step", f"{self.seconds_per_step:.6g}"),
            ("seconds per round", f"{self.seconds_per_round:.6g}"),
            ("limit", self.sentence),
            ("formula", self.formula if self.formula is not None else self.formula_reason),
            ("link", self.link),
            *(("note", note) for note in self.notes),
        ]
        body = "".join(f"<tr><th>{html.escape(a)}</th><td>{html.escape(str(b))}</td></tr>" for a, b in rows)
        return f"<table><caption>{html.escape(self.method)}</caption>{body}</table>"

    def plot(self, path: str | Path | None = None) -> Any:
        """Gantt chart of the events, the walk that sets the pace marked; a matplotlib Figure, also written to ``path`` if given."""
        from verify_rates.theory.timeline.gantt import figure_of

        return figure_of(self, path)

    def to_html(self, path: str | Path) -> None:
        """Write the Gantt chart as one interactive HTML page that needs no network."""
        from verify_rates.theory.timeline.gantt import page_of

        Path(path).write_text(page_of(self), encoding="utf-8")

    def to_chrome(self, path: str | Path) -> None:
        """Write the events as Chrome trace JSON for Perfetto (compressed for ``.gz``), with arrows along the walk that sets the pace."""
        from verify_rates.theory.timeline.chrome import write
        from verify_rates.theory.timeline.gantt import critical_walk

        write(path, self.events, walk=critical_walk(self), about={"method": self.method, **self.inputs})


def timeline(
    method: str | Method,
    hyper: Any = None,
    *,
    compute: Any,
    latency: Any,
    bandwidth: Any,
    size: Any,
    compressor: Any = None,
    bytes_share: float | None = None,
    encode: Any = 0.0,
    topology: Any = None,
    n: int | None = None,
    link: str = "fifo",
    collective: str | None = None,
    steps: int | None = None,
) -> Any:
    """Time per step of a method under compute time, latency and bandwidth, from the data dependencies of its step function.

    Mathematics: the step function is run on values that know what they wait for.  ``grad`` holds a worker's compute stream for
    ``compute``; ``mean`` holds the one link for ``T_tx = bytes/bandwidth`` and arrives ``latency`` later; ``gossip`` holds each
    worker's own link for one message per neighbour; ``delay`` lets later work start earlier; averages of what is already shared
    are free.  The pace is the maximum cycle ratio of the event graph of one round.

    Guarantee: exact for FIFO streams (tight); the cycle that attains it is returned.

    Parameters
    ----------
    hyper : the method's hyper-parameters (numbers; those that play no part here, such as gamma, may be left out).
    compute : seconds of one ``grad`` word, or text such as "50ms"; a list gives one time a worker.  A distribution such as
        "lognormal(mean=50ms, sigma=0.3)" (:func:`verify_rates.theory.stragglers.durations`) makes every gradient of each of the n workers
        take a time of its own: the answer is then a :class:`verify_rates.theory.stragglers.Stragglers`, a mean over simulated runs of
        ``steps`` steps with its interval, and no formula.
    latency : seconds from the end of a transfer to its arrival.
    bandwidth : bit/s, or text such as "1Gbit/s".
    size : bytes of one uncompressed vector (float32), or text such as "400MB".
    compressor, bytes_share : what ``compress`` leaves of it: the compressor's exact bits, or the share of bytes; by default all.
    encode : seconds of compressing one vector on the compute stream.
    topology, n : for ``gossip``: the graph, and the number of workers where neither it nor ``compute`` says it; without a graph every
        worker has one neighbour.
    collective : what carries out ``mean`` among the n workers, as "ring" (:func:`verify_rates.collective` names them); by default one
        transfer of the whole message.  On links that are alike it holds the one link of the averages for as long as the next collective
        has to wait for it, ``hold``, and the last worker has the result at its ``seconds``, ``seconds - hold`` later: for a ring with
        link="fifo" ``hold = 2(n-1)/n*T_tx + (2n-3)*latency``, and the last latency passes beside the next collective.
    link : "fifo"; "blocking" (the latency holds the link as well); "fair" (transfers under way share the link: an event simulation without
        cycle or formula, a :class:`verify_rates.theory.timeline.shared.SharedTimeLine`).
    steps : how many steps the events show.

    Errors: UsageError for bad input, Unsupported for methods whose branches are random or whose links are shared fairly.

    Where it differs: without ``collective`` an average is one transfer, whatever the number of workers.  With it, the average begins when
    the last worker is ready and is there when the last worker has it: exact for workers and links that are alike and collectives that end
    everywhere at once (ring, direct, recursive_doubling and halving_doubling of 2**q workers), an upper bound where they do not.

    >>> t = timeline("dd_ef_sgd", {"tau": 2}, compute="50ms", latency="100ms", bandwidth="1Gbit/s", size="400MB", bytes_share=0.01)
    >>> round(t.seconds_per_step, 6), t.limit, str(t.formula)
    (0.060667, 'feedback loop', 'Max(T_comp, T_tx, T_comp/3 + T_tx/3 + lat/3)')
    """
    from verify_rates.theory.stragglers import stragglers, varies

    given = {"latency": latency, "bandwidth": bandwidth, "size": size, "compressor": compressor, "bytes_share": bytes_share}
    given |= {"encode": encode, "topology": topology, "n": n, "link": link, "collective": collective}
    if link == "fair" and not varies(compute):
        from verify_rates.theory.timeline.shared import shared_time_line

        del given["link"]
        return shared_time_line(method, hyper, compute=compute, steps=steps, **given)
    if varies(compute):
        return stragglers(method, hyper, compute=compute, **given, **({} if steps is None else {"steps": steps}))
    method, h, words, neighbours, costs, inputs = asked(method, hyper, compute=compute, **given)
    check_kinds(method, h)
    tasks = periodic_tasks(method, h, neighbours, costs.encode > 0)
    _check_exchange(costs, tasks)
    graph = EventGraph(tasks, costs)
    found = graph.pace()
    per_round, n_steps = found.ratio, period_steps(method, h)
    shown = steps_shown(steps, n_steps, int(getattr(h, "tau", 0)))
    events = replay.run(method, h, shown, costs, neighbours, costs.encode > 0)
    limit, sentence, rounds = graph.words(found)
    names = task_names(tasks)
    inputs |= {"hyper": {k: v for k, v in h._asdict().items() if k != "gamma"}, "workers": len(neighbours), "link": link}
    notes = _notes(words, tasks, compressor, bytes_share, costs, topology)
    return TimeLine(
        method=method.name,
        seconds_per_step=per_round / n_steps,
        seconds_per_round=per_round,
        steps_per_round=n_steps,
        limit=limit,
        cycle=tuple(names[i] for i in found.nodes),
        rounds_under_way=rounds,
        sentence=sentence,
        gap=(found.upper - found.ratio) / found.ratio if found.ratio else 0.0,
        link=LINKS[link] if costs.exchange is None else f"{LINKS[link]}; an average is a {collective} of {costs.exchange.n} workers",
        inputs=inputs,
        notes=notes,
        events=tuple(events),
        graph=graph,
    )


def round_seconds_by_simulation(
    method: str | Method, hyper: Any = None, *, engine: str = "tasks", exact: bool = False, **given: Any
) -> Any:
    """Seconds per round of the same question by event simulation to the periodic regime; further arguments as in :func:`timeline`.

    Guarantee: exact up to rounding; with ``exact`` a fraction, without any rounding.

    Parameters
    ----------
    engine : "tasks" plays the tasks of one round over and over, compiled where there are many; "steps" runs the step function itself
        with clocks for vectors, slower and independent of the graph of tasks.
    exact : times, rates and sizes are read as fractions (text and Decimal as they are written, floats as the binary numbers they are).

    >>> round_seconds_by_simulation("gd", compute=1.0, latency=2.0, bandwidth=8.0, size=4.0)
    7.0
    >>> round_seconds_by_simulation("gd", compute="0.1", latency="0.2", bandwidth="3", size="1", exact=True)
    Fraction(89, 30)
    """
    if engine not in ENGINES:
        raise nearest(str(engine), ENGINES, "engine")
    method, h, _, neighbours, costs, _ = asked(method, hyper, exact=exact, **given)
    if costs.exchange:
        _check_exchange(costs, periodic_tasks(method, h, neighbours, costs.encode > 0))
    if engine == "steps":
        return simulate.seconds_per_round(method, h, costs, neighbours, costs.encode > 0)
    graph = EventGraph(periodic_tasks(method, h, neighbours, costs.encode > 0), costs)
    return replay.pace(graph.pattern())


@dataclass(frozen=True)
class EventGraph:
    """The tasks of one round and what they wait for: an edge carries the time from start to start, and tokens (rounds)."""

    tasks: Sequence[Task]
    costs: Costs

    def edges(self) -> list[tuple[int, int, float, int, dict[str, int]]]:
        """``(from, to, seconds, tokens, costs by name)``."""
        out = []
        for i, task in enumerate(self.tasks):
            for j, k in sorted(task.after):
                out.append((j, i, sum(self._cost(j)), k, self._names(j, arrives=True)))
            if task.behind is not None and task.behind not in task.after:  # waiting for its result is waiting for its end
                j, k = task.behind
                out.append((j, i, self._cost(j).occupies, k, self._names(j, arrives=False)))
        return out

    def pattern(self) -> replay.Pattern:
        """The tasks as arrays, to be played for many rounds."""
        return replay.pattern(self.tasks, [self._cost(j) for j in range(len(self.tasks))])

    def _cost(self, j: int) -> Cost:
        task = self.tasks[j]
        return self.costs(task.word, task.stream, task.load, task.copies)

    def _names(self, j: int, arrives: bool) -> dict[str, int]:
        task = self.tasks[j]
        if task.load is None:
            alike = len(set(self.costs.compute)) == 1
            return {"T_enc" if task.word == "compress" else "T_comp" if alike else f"T_comp_{task.stream[1]}": 1}
        sizes = sorted({self.costs.transfer(t.load, t.copies) for t in self.tasks if t.load})
        number = "" if len(sizes) == 1 else f"_{sizes.index(self.costs.transfer(task.load, task.copies)) + 1}"
        tx = f"T_tx{number}"
        if self.costs.exchange and task.word == "mean":
            return self.costs.exchange.counts(tx, f"T_mean{number}", f"lat_mean{number}", arrives)
        return {tx: 1, "lat": 1} if arrives or self.costs.blocking else {tx: 1}

    def pace(self) -> CycleRatio:
        """Seconds per round with the cycle that attains it; fractions where the costs are."""
        edges = self.edges()
        if not edges:
            raise UsageError("the method computes and sends nothing, so nothing sets its pace.")
        source, target, time, tokens, _ = zip(*edges, strict=True)
        exact = isinstance(self.costs.latency, Fraction)
        return cycle_ratio(len(self.tasks), source, target, time, tokens, task_names(self.tasks), exact)

    def formula(self, steps: int) -> tuple[Any, str]:
        """Seconds per step as a SymPy expression, or None with the reason."""
        if len(self.tasks) > formulas.MOST_TASKS:
            return None, f"more than {formulas.MOST_TASKS} tasks a round, too many for a formula"
        edges = self.edges()
        cycles = formulas.simple_cycles(len(self.tasks), [(a, b) for a, b, *_ in edges])
        if cycles is None:
            return None, f"more than {formulas.MOST_CYCLES} cycles, too many for a formula"
        terms: list[formulas.Term] = []
        for cycle in cycles:
            counts: dict[str, Any] = {}
            for e in cycle:
                for name, times in edges[e][4].items():
                    counts[name] = counts.get(name, 0) + times
            terms.append((counts, sum(edges[e][3] for e in cycle)))
        return formulas.derived(terms, steps), ""

    def words(self, found: CycleRatio) -> tuple[str, str, int]:
        """The limit, a sentence about it, and the rounds under way on the cycle."""
        edges = self.edges()
        rounds = sum(edges[e][3] for e in found.edges)
        streams = {self.tasks[i].stream[0] for i in found.nodes}
        names = task_names(self.tasks)
        shown = [names[i] for i in found.nodes]
        way = " -> ".join([*(shown if len(shown) <= 6 else [*shown[:2], "...", *shown[-2:]]), shown[0]])
        if streams == {"compute"}:
            return "compute", f"compute: a worker's compute stream is never idle ({way}).", rounds
        waits = any((edges[e][0], edges[e][3]) in self.tasks[edges[e][1]].after for e in found.edges)
        if streams == {"link"} and (not waits or self.costs.blocking):
            return "link", f"link: a link is never idle ({way}).", rounds
        return "feedback loop", f"feedback loop: {way}, {rounds} round{'s' if rounds > 1 else ''} under way.", rounds


# --- input -----------------------------------------------------------------------------------------------------------


class Question(NamedTuple):
    """What was asked for, checked and in SI units."""

    method: Method
    hyper: Any
    words: tuple[str, ...]  # of one whole period
    neighbours: list[list[int]]  # per worker; one worker stands for all where all are alike
    costs: Costs
    inputs: dict[str, Any]


def asked(
    method: str | Method,
    hyper: Any = None,
    *,
    compute: Any,
    latency: Any,
    bandwidth: Any,
    size: Any,
    compressor: Any = None,
    bytes_share: float | None = None,
    encode: Any = 0.0,
    topology: Any = None,
    n: int | None = None,
    link: str = "fifo",
    collective: str | None = None,
    exact: bool = False,
) -> Question:
    """The arguments of :func:`timeline` as values, or as fractions; UsageError in one sentence for what is wrong.

    >>> asked("gd", compute="50ms", latency=0, bandwidth="1Gbit/s", size="1kB").costs.dense_bits
    8000.0
    """
    found = get_method(method)
    h = constants(found, hyper)
    words = words_used(found, h)
    neighbours, compute_times = _workers(compute, topology, n, words, exact)
    costs, inputs = _costs(compute_times, latency, bandwidth, size, compressor, bytes_share, encode, link, exact)
    if collective is not None:
        inputs["collective"] = collective
        if "mean" in words or "mean_sent" in words or "gathered" in words:
            costs = replace(costs, exchange=exchange(collective, _number(compute, topology, n), link))
    return Question(found, h, words, neighbours, costs, inputs)


def _number(compute: Any, topology: Any, n: int | None) -> int | None:
    """How many workers an average is over, as far as it is said."""
    if isinstance(compute, (list, tuple)):
        return len(compute)
    if n is not None or topology is None:
        return n
    from verify_rates.solvers.topologies import get_topology

    return get_topology(topology, n).n


def _check_exchange(costs: Costs, tasks: Sequence[Task]) -> None:
    """Unsupported where averages are no tasks of one link, each with its own time."""
    carried = costs.exchange
    if carried is None:
        return
    if any(task.word == "broadcast" for task in tasks):
        raise Unsupported(f"the time line of a server's broadcast beside a {carried.name}: which links it takes is not said")
    sizes = {costs.transfer(task.load, task.copies) for task in tasks if task.word == "mean" and task.load}
    if len(sizes) > 1 and not all(carried.even(tx, costs.latency) for tx in sizes):
        raise Unsupported(
            f"the time line of averages of unlike size by {carried.name}: its workers end at unlike moments; use ring or direct"
        )


def _workers(compute: Any, topology: Any, n: int | None, words: Sequence[str], exact: bool) -> tuple[Any, tuple[Any, ...]]:
    """Neighbours and compute time per worker; one worker stands for all where all are alike."""
    listed = isinstance(compute, (list, tuple))
    if listed and not compute:
        raise UsageError("compute must hold at least one time.")
    times = tuple(seconds(c, "compute", exact) for c in (compute if listed else [compute]))
    if listed and n is not None and n != len(times):
        raise UsageError(f"compute holds {len(times)} times, but n = {n}.")
    if "gossip" not in words or topology is None:
        if "gossip" in words and len(set(times)) > 1:
            raise UsageError("gossip among workers of different speed needs a topology.")
        alike = len(set(times)) == 1
        return ([[0]], times[:1]) if alike else ([[i] for i in range(len(times))], times)
    from verify_rates.solvers.topologies import get_topology

    graph = get_topology(topology, len(times) if listed else n)
    degrees = set(map(int, graph.degrees))
    if len(set(times)) == 1 and len(degrees) == 1:
        return [[0] * degrees.pop()], times[:1]
    return [sorted(graph.graph[i]) for i in range(graph.n)], times if listed else times * graph.n


def _costs(compute, latency, bandwidth, size, compressor, bytes_share, encode, link, exact) -> tuple[Costs, dict[str, Any]]:
    if link == "fair":
        raise Unsupported(
            "the time line of a fairly shared link: it is no max-plus system and has no closed form; use link='fifo' or 'blocking'"
        )
    if link not in LINKS:
        raise nearest(str(link), LINKS, "link rule")
    dense = 8 * size_bytes(size, "size", exact)
    bits, values = _message_bits(compressor, bytes_share, dense)
    message: Any = Fraction(bits) if exact else float(bits)
    lat, bw = seconds(latency, "latency", exact), bits_per_second(bandwidth, "bandwidth", exact)
    enc = seconds(encode, "encode", exact)
    inputs = {"compute": list(compute), "encode": enc, "latency": lat, "bandwidth": bw, "size": dense / 8, "bytes_sent": message / 8}
    return Costs(compute, enc, lat, bw, message, dense, link == "blocking", values), inputs


def _message_bits(compressor: Any, bytes_share: Any, dense: Any) -> tuple[Any, int | None]:
    """Bits of a message; of one on a mask that everybody knows, where the compressor keeps a fixed number of places."""
    if compressor is not None and bytes_share is not None:
        raise UsageError("give compressor or bytes_share, not both.")
    if bytes_share is not None:
        if isinstance(bytes_share, bool) or not isinstance(bytes_share, (int, float, Fraction)) or not 0 < bytes_share <= 2:
            raise UsageError(f"bytes_share must be in (0, 2] (above 1 where indices outweigh), not {bytes_share!r}.")
        return (Fraction(bytes_share) if isinstance(dense, Fraction) else bytes_share) * dense, None
    if compressor is None:
        return dense, None
    from verify_rates.solvers.compressors import get_compressor

    made = get_compressor(compressor)
    d = dense / 8 / FLOAT_BYTES
    if d != int(d):
        raise UsageError(
            f"size must be a multiple of {FLOAT_BYTES} bytes (float32) where a compressor counts the bits, not {dense / 8:g} bytes."
        )
    bits = made.bits(int(d))
    if bits is None:
        raise UsageError(f"the bits of {made.name} depend on the data; give bytes_share instead.")
    kept = getattr(made, "k", None)
    return bits, None if kept is None else 8 * FLOAT_BYTES * int(kept)


def steps_shown(steps: Any, per_round: int, tau: int) -> int:
    if steps is None:
        return max(per_round * 3, 2 * tau + 4)
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise UsageError(f"steps must be a whole number of at least 1, not {steps!r}.")
    return steps


def _notes(words: Sequence[str], tasks: Sequence[Task], compressor: Any, share: Any, costs: Costs, topology: Any) -> tuple[str, ...]:
    notes = []
    compresses = "compress" in words or "masked" in words
    if not compresses and (compressor is not None or share is not None):
        notes.append("the compressor has no effect: the method compresses nothing.")
    if compresses and compressor is None and share is None:
        notes.append("no compressor and no bytes_share: whole vectors are sent.")
    if "compress" not in words and costs.encode > 0:
        notes.append("encode has no effect: the method compresses nothing.")
    if not any(task.load for task in tasks):
        notes.append("latency, bandwidth and size have no effect: the method sends nothing.")
    if "gossip" in words and topology is None:
        notes.append("no topology: every worker exchanges with one neighbour.")
    if "gossip" not in words and topology is not None:
        notes.append("the topology has no effect: the method does not gossip.")
    if costs.exchange and len(set(costs.compute)) > 1:
        notes.append("workers of unlike speed: every average begins when the last is ready, which may be later than its transfers need.")
    if costs.exchange and costs.exchange.forms is None and any(task.word == "mean" for task in tasks):
        held = "T_mean is how long an average holds its link, lat_mean how much later its result is there"
        notes.append(f"{held}: no single sums of latency and bytes over bandwidth, or of too many transfers.")
    if costs.exchange and not costs.exchange.even(costs.dense_bits / costs.bandwidth, costs.latency):
        notes.append(f"{costs.exchange.name} ends at unlike moments; every worker is taken to go on when the last has its result.")
    return tuple(notes)
