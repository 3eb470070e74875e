"""``collective``: seconds of an exchange among workers from its point-to-point transfers, its critical path, and its closed form."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import sympy as sp

from verify_rates.solvers.method import UsageError, nearest
from verify_rates.solvers.words import Unsupported
from verify_rates.theory.timeline import formulas
from verify_rates.theory.timeline.algorithms import ALGORITHMS, OPERATIONS, Algorithm, Options, get_algorithm, transfers
from verify_rates.theory.timeline.algorithms import T_tx as T_TX
from verify_rates.theory.timeline.algorithms import T_tx_local as T_TX_LOCAL
from verify_rates.theory.timeline.algorithms import lat as LAT
from verify_rates.theory.timeline.algorithms import lat_local as LAT_LOCAL
from verify_rates.theory.timeline.simulate import Cost, Event
from verify_rates.theory.timeline.transfers import (
    LOCAL,
    RULES,
    Form,
    Played,
    Sent,
    Transfer,
    critical,
    forms,
    latency_on,
    play,
    play_fair,
)
from verify_rates.theory.units import bits_per_second, seconds, size_bytes

MOST_IN_FORMULA = 20_000  # transfers; beyond, the search for the closed form takes longer than some seconds
COPIES = 6  # collectives back to back, from which it is seen whether they follow one another at one distance
EVEN = 1e-12  # relative: two sums of the same times in another order, of at most some thousands of terms
TABLE_KINDS = ("ring", "tree", "binomial_tree", "recursive_doubling", "halving_doubling", "parameter_server", "direct")


@dataclass(frozen=True)
class CollectiveTime:
    """One collective on links that are free.

    Attributes
    ----------
    kind, operation : the algorithm, and what it gives to every worker.
    n : workers.
    seconds : until the last transfer has arrived.
    algbw : bit/s; the bytes of the vector (of all messages together for an all-gather) over the seconds, as nccl-tests count.
    busbw : bit/s; ``algbw`` times 2(n-1)/n for an all-reduce, (n-1)/n for all-gather and reduce-scatter, 1 else; never above the
        fastest link; None where messages grow on their way.
    latency_seconds, bandwidth_seconds : the two parts of the critical path; their sum is ``seconds``.
    bytes_sent : the most that a worker sends.
    path : numbers of the events on the critical path, in order.
    link : the rule of the links, in words.
    inputs : what was asked, in SI units.
    notes : inputs without effect and assumptions.
    events : every transfer (seconds, bytes).
    """

    kind: str
    operation: str
    n: int
    seconds: float
    algbw: float
    busbw: float | None
    latency_seconds: float
    bandwidth_seconds: float
    bytes_sent: float
    path: tuple[int, ...]
    link: str
    inputs: dict[str, Any]
    notes: tuple[str, ...]
    events: tuple[Sent, ...] = field(repr=False)
    question: Question = field(repr=False)

    @property
    def latency_share(self) -> float:
        """Share of the critical path that is latency."""
        return self.latency_seconds / self.seconds

    @property
    def bandwidth_share(self) -> float:
        """Share of the critical path in which bytes move."""
        return self.bandwidth_seconds / self.seconds

    @cached_property
    def _formula(self) -> tuple[Any, str]:
        try:
            return self.question.closed_form(), ""
        except Unsupported as refused:
            return None, str(refused)

    @property
    def formula(self) -> Any:
        """SymPy expression, seconds for this number of workers, in lat and T_tx (bytes of the size over bandwidth), ``_local`` for links
        within a node; None where ``formula_reason`` says why."""
        return self._formula[0]

    @property
    def formula_reason(self) -> str:
        return self._formula[1]

    @property
    def critical_path(self) -> tuple[str, ...]:
        """The transfers on the critical path by name."""
        return tuple(f"{e.source} to {e.target} in round {e.round}" for e in (self.events[i] for i in self.path))

    def _facts(self) -> dict[str, str]:
        way = self.critical_path
        shown = way if len(way) <= 6 else (*way[:2], "...", *way[-2:])
        return {
            "seconds": f"{self.seconds:.6g}",
            "algbw": f"{self.algbw / 1e9:.6g} Gbit/s",
            "busbw": "none: messages grow on their way" if self.busbw is None else f"{self.busbw / 1e9:.6g} Gbit/s",
            "latency": f"{self.latency_seconds:.6g} s ({self.latency_share:.1%})",
            "bandwidth": f"{self.bandwidth_seconds:.6g} s ({self.bandwidth_share:.1%})",
            "critical path": f"{len(way)} transfers: {', '.join(shown)}",
            "formula": str(self.formula) if self.formula is not None else self.formula_reason,
            "sends": f"{self.bytes_sent:.6g} bytes at most per worker, {len(self.events)} transfers",
            "link": self.link,
        }

    def __str__(self) -> str:
        head = f"{self.kind} ({self.operation}) of {self.n} workers"
        return "\n".join([head, *(f"{k}: {v}" for k, v in self._facts().items()), *(f"note: {note}" for note in self.notes)])

    def to_dict(self, events: bool = True) -> dict[str, Any]:
        """Everything as plain data; the formula as text, events with named columns."""
        names = [f for f in self.__dataclass_fields__ if f not in ("events", "question")]
        data: dict[str, Any] = {name: getattr(self, name) for name in names}
        data |= {"latency_share": self.latency_share, "bandwidth_share": self.bandwidth_share, "critical_path": self.critical_path}
        data |= {"formula": None if self.formula is None else str(self.formula), "formula_reason": self.formula_reason}
        return data | ({"events": [e._asdict() for e in self.events]} if events else {})

    def to_json(self, **options: Any) -> str:
        """Everything as JSON text."""
        return json.dumps(self.to_dict(), allow_nan=False, **options)

    def _repr_html_(self) -> str:
        rows = [*self._facts().items(), *(("note", note) for note in self.notes)]
        body = "".join(f"<tr><th>{html.escape(a)}</th><td>{html.escape(b)}</td></tr>" for a, b in rows)
        return f"<table><caption>{html.escape(self.kind)}</caption>{body}</table>"

    def plot(self, path: str | Path | None = None) -> Any:
        """The transfers of every worker over time, the critical path marked; a matplotlib Figure, also written to ``path`` if given."""
        from verify_rates.theory.timeline.pictures import transfers_figure

        return transfers_figure(self, path)

    def to_chrome(self, path: str | Path) -> None:
        """Write the transfers as Chrome trace JSON for Perfetto, a thread for every directed pair, arrows along the critical path."""
        from verify_rates.theory.timeline.chrome import write

        events = [Event(f"{e.bytes:.6g} bytes", f"to {e.target}", e.source, e.round, e.start, e.end, e.arrives) for e in self.events]
        write(path, events, walk=self.path, about={"collective": self.kind, **self.inputs})


def collective(
    kind: str = "ring",
    *,
    size: Any,
    latency: Any,
    bandwidth: Any,
    n: int | None = None,
    link: str = "fifo",
    chunks: int | None = None,
    servers: int | None = None,
    per_node: int | None = None,
    local_latency: Any = None,
    local_bandwidth: Any = None,
    topology: Any = None,
    matchings: Any = None,
) -> CollectiveTime:
    """Time of one collective on n workers from its transfers, played one by one under a named rule of the links.

    Mathematics: every worker has an out side and an in side.  A transfer of b bytes starts when its data have arrived and both sides
    are free (in program order), holds both for ``b/bandwidth``, and arrives ``latency`` later.  Links that are alike make this a
    max-plus system: the time is a maximum of sums of latencies and of sizes over bandwidth, which ``formula`` derives from the graph.

    Guarantee: exact for the rule of the links; that the transfers do what the operation says is checked while they are made.

    Parameters
    ----------
    kind : ring, tree (balanced binary, in ``chunks``), binomial_tree, recursive_doubling, halving_doubling, parameter_server (the vector in
        parts on the first ``servers`` workers), direct, hierarchical (all-reduce); ring_all_gather, doubling_all_gather;
        ring_reduce_scatter; broadcast, chain_broadcast (in ``chunks``); gossip (own vectors to the neighbours of a ``topology``) and
        pairwise (averages of pairs), by ``matchings`` one after another.
    size : bytes of the vector, or of one worker's message for an all-gather, or text such as "400MB".  A list holds the size of every
        worker's message (all-gather, gossip), or of a sum over 1, 2, ..., n workers (other kinds: sparse messages grow by summing).
    latency : seconds, or text such as "1ms", or an (n, n) table from row to column.
    bandwidth : bit/s, or text such as "10Gbit/s", or an (n, n) table from row to column.
    n : workers; needed unless a table or a topology says it.
    link : "fifo"; "blocking" (the latency holds both sides as well); "fair" (sides share their time among the transfers under way).
    per_node, local_latency, local_bandwidth : hierarchical: workers of a node and the links within it; the workers of a node share its one
        link to the others.

    Errors: UsageError for bad input.  ``formula`` is None, with the reason, for unlike links, unlike messages and fair sharing.

    Source: the factors of busbw are those of nccl-tests (PERFORMANCE.md); halving_doubling is Rabenseifner's algorithm.

    >>> found = collective("ring", n=8, size="400MB", latency="1ms", bandwidth="10Gbit/s")
    >>> round(found.seconds, 6), str(found.formula), f"{found.busbw / 1e9:.3f} Gbit/s, {found.latency_share:.1%} latency"
    (0.574, '7*T_tx/4 + 14*lat', '9.756 Gbit/s, 2.4% latency')
    >>> collective("parameter_server", n=4, size="1MB", latency=0, bandwidth="8Mbit/s", link="fair").seconds
    6.0
    """
    given = {"chunks": chunks, "servers": servers, "per_node": per_node, "topology": topology, "matchings": matchings}
    q = _asked(kind, n, size, latency, bandwidth, link, local_latency, local_bandwidth, given)
    played = q.play()
    path, made = critical(played), q.transfers
    late = latency_on(path, played, q.late, link == "blocking")
    sent = np.zeros(q.n)
    for t in made:
        sent[t.source] += float(t.share) * q.size
    total = played.seconds
    algbw = 8 * q.total / total
    factor = None if q.grows else OPERATIONS[q.algorithm.operation](q.n)
    return CollectiveTime(
        kind=kind,
        operation=q.algorithm.operation,
        n=q.n,
        seconds=total,
        algbw=algbw,
        busbw=None if factor is None else algbw * float(factor),
        latency_seconds=late,
        bandwidth_seconds=total - late,
        bytes_sent=float(sent.max()),
        path=tuple(path),
        link=RULES[link],
        inputs=q.inputs,
        notes=q.notes,
        events=tuple(
            Sent(t.source, t.target, t.round, float(t.share) * q.size, *moments)
            for t, *moments in zip(made, played.start, played.end, played.arrives, strict=True)
        ),
        question=q,
    )


# --- tables -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CollectiveTable:
    """Collectives of several kinds, numbers of workers and sizes.

    ``rows`` : dicts with kind, n, bytes, seconds, algbw and busbw (bit/s), latency_share, bandwidth_share; None where ``reason`` says why.
    """

    rows: tuple[dict[str, Any], ...]
    link: str

    def __str__(self) -> str:
        head = f"{'kind':<20}{'n':>5}{'bytes':>13}{'seconds':>13}{'algbw':>13}{'busbw':>13}{'latency':>9}{'bandwidth':>11}"
        return "\n".join([head, *map(_row, self.rows), f"algbw and busbw in Gbit/s; link: {self.link}"])

    def to_json(self, **options: Any) -> str:
        """Rows and the rule of the links as JSON text."""
        return json.dumps({"link": self.link, "rows": self.rows}, allow_nan=False, **options)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def plot(self, path: str | Path | None = None) -> Any:
        """Bus bandwidth against bytes, a line for every kind and n; a matplotlib Figure, also written to ``path`` if given."""
        from verify_rates.theory.timeline.pictures import table_figure

        return table_figure(self, path)


def _row(row: Mapping[str, Any]) -> str:
    head = f"{row['kind']:<20}{row['n']:>5}{row['bytes']:>13.6g}"
    if row["reason"]:
        return f"{head}  {row['reason']}"
    bus = "-" if row["busbw"] is None else f"{row['busbw'] / 1e9:.5g}"
    shares = f"{row['latency_share']:>9.1%}{row['bandwidth_share']:>11.1%}"
    return f"{head}{row['seconds']:>13.6g}{row['algbw'] / 1e9:>13.5g}{bus:>13}{shares}"


def collective_table(
    sizes: Sequence[Any], ns: Sequence[int], kinds: Sequence[str] = TABLE_KINDS, *, latency: Any, bandwidth: Any, **given: Any
) -> CollectiveTable:
    """Seconds, algbw, busbw and the shares of latency and bandwidth for every kind, number of workers and size.

    Parameters
    ----------
    sizes, ns, kinds : what is combined; further arguments as in :func:`collective`, each given to the kinds that take it.

    Errors: UsageError for bad input; a kind that does not work for some number of workers gets a row with the reason.

    >>> table = collective_table(["1MB"], [4], ["ring", "direct"], latency="1ms", bandwidth="1Gbit/s")
    >>> [(row["kind"], round(row["seconds"], 6)) for row in table.rows]
    [('ring', 0.018), ('direct', 0.014)]
    """
    if not sizes or not ns or not kinds:
        raise UsageError("a table needs at least one size, one number of workers and one kind.")
    taken = {kind: _taken(get_algorithm(kind)) for kind in kinds}
    for option in given:
        if option != "link" and not any(option in names for names in taken.values()):
            raise UsageError(f"none of {', '.join(kinds)} takes {option}.")
    rows = []
    for kind in kinds:
        chosen = {name: value for name, value in given.items() if name == "link" or name in taken[kind]}
        rows += [_entry(kind, n, size, latency=latency, bandwidth=bandwidth, **chosen) for n in ns for size in sizes]
    return CollectiveTable(tuple(rows), RULES[given.get("link", "fifo")])


COLUMNS = ("seconds", "algbw", "busbw", "latency_share", "bandwidth_share")


def _entry(kind: str, n: int, size: Any, **given: Any) -> dict[str, Any]:
    _workers_of(n)
    row: dict[str, Any] = {"kind": kind, "n": n, "bytes": size_bytes(size, "size")}
    why = _impossible(get_algorithm(kind), n, given)
    if why:
        return {**row, **dict.fromkeys(COLUMNS), "reason": why}
    found = collective(kind, n=n, size=size, **given)
    return {**row, **{name: getattr(found, name) for name in COLUMNS}, "reason": ""}


def _impossible(found: Algorithm, n: int, given: Mapping[str, Any]) -> str:
    """Why this number of workers does not go with the algorithm, empty where it does."""
    options = {name: given.get(name) or default for name, default in found.options.items()}
    if None in options.values():
        return ""
    try:
        transfers(found.name, n, tuple(options.items()))
    except UsageError as refused:
        return str(refused)
    return ""


# --- input ------------------------------------------------------------------------------------------------------------


class Question(NamedTuple):
    """What was asked for, checked and in SI units."""

    algorithm: Algorithm
    n: int
    options: Options
    link: str
    size: float  # bytes to which the shares of transfers refer
    total: float  # bytes that algbw counts
    sizes: tuple[Fraction, ...] | None
    tx: tuple[float, ...]
    late: tuple[float, ...]
    unlike: bool
    inputs: dict[str, Any]
    notes: tuple[str, ...]

    @property
    def transfers(self) -> tuple[Transfer, ...]:
        return transfers(self.algorithm.name, self.n, self.options, self.sizes)

    @property
    def grows(self) -> bool:
        return self.sizes is not None and self.algorithm.operation not in ("all_gather", "exchange")

    def play(self) -> Played:
        """By event simulation."""
        if self.link == "fair":
            return play_fair(self.transfers, self.tx, self.late)
        return play(self.transfers, self.tx, self.late, self.link == "blocking", 0.0)

    def closed_form(self) -> sp.Expr:
        """Seconds in lat and T_tx; Unsupported where there is no such form."""
        if self.link == "fair":
            self.algorithm.law("fair")
        if self.unlike:
            raise Unsupported("a closed form in one latency and one bandwidth: the links are unlike")
        if self.sizes is not None:
            raise Unsupported("a closed form in one size: the messages are unlike")
        options = dict(self.options)
        if len(self.transfers) > MOST_IN_FORMULA and self.algorithm.when(self.n, options):
            return self.algorithm.at(self.link, self.n, options)
        if len(self.transfers) > MOST_IN_FORMULA:
            raise Unsupported(f"a closed form of more than {MOST_IN_FORMULA} transfers: the search takes too long")
        return _closed_form(self.algorithm.name, self.n, self.options, self.link == "blocking")


@lru_cache(maxsize=256)
def _closed_form(name: str, n: int, options: Options, blocking: bool) -> sp.Expr:
    return _expression(forms(transfers(name, n, options), blocking)[0])


def _expression(found: Sequence[Form]) -> sp.Expr:
    rows = np.array([[float(v) for v in form] for form in found])
    kept = [found[i] for i in formulas.undominated(rows)]
    symbols = (LAT, LAT_LOCAL, T_TX, T_TX_LOCAL)
    return sp.Max(*(sum(sp.Rational(v) * s for v, s in zip(form, symbols, strict=True)) for form in kept))


def _asked(kind, n, size, latency, bandwidth, link, local_latency, local_bandwidth, given) -> Question:
    found = get_algorithm(kind)
    if link not in RULES:
        raise nearest(str(link), RULES, "link rule")
    lat, bw = _table(latency, "latency", seconds), _table(bandwidth, "bandwidth", bits_per_second)
    n = _count(n, lat, bw, given["topology"])
    options = _options(found, n, given)
    nbytes, total, sizes = _sizes(found, n, size)
    made = transfers(found.name, n, options, sizes)
    tables = isinstance(lat, np.ndarray) or isinstance(bw, np.ndarray)
    local = _local(found, lat, bw, local_latency, local_bandwidth, tables)
    tx, late = _times(made, nbytes, lat, bw, local)
    inputs = {
        "n": n,
        "size": [size_bytes(s) for s in size] if sizes is not None else nbytes,
        "latency": _plain(lat),
        "bandwidth": _plain(bw),
        "link": link,
        **{name: value for name, value in options},
    }
    if LOCAL in {t.level for t in made} and not tables:
        inputs |= {"local_latency": local[0], "local_bandwidth": local[1]}
    return Question(found, n, options, link, nbytes, total, sizes, tx, late, tables, inputs, _notes(found, n, options, link))


def _taken(found: Algorithm) -> set[str]:
    """Names of the arguments that an algorithm takes."""
    more = {"matchings": {"topology"}, "per_node": {"local_latency", "local_bandwidth"}}
    return set(found.options).union(*(more.get(name, set()) for name in found.options))


def _table(value: Any, name: str, read: Any) -> Any:
    """A number, or an (n, n) array."""
    if isinstance(value, str) or np.ndim(value) == 0:
        return read(value, name)
    try:
        made = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise UsageError(f"{name} must be one value or an (n, n) table of numbers.") from None
    if made.ndim != 2 or made.shape[0] != made.shape[1]:
        raise UsageError(f"{name} must be one value or an (n, n) table from row to column, not of shape {made.shape}.")
    off = made[~np.eye(len(made), dtype=bool)]
    if not np.isfinite(off).all() or (off < 0).any() or (name == "bandwidth" and (off == 0).any()):
        raise UsageError(f"every {name} between two workers must be finite and {'positive' if name == 'bandwidth' else 'at least 0'}.")
    return made


def _plain(value: Any) -> Any:
    """As data; what a table says of a worker and itself plays no part."""
    if not isinstance(value, np.ndarray):
        return value
    return [[None if i == j else v for j, v in enumerate(row)] for i, row in enumerate(value.tolist())]


def _workers_of(n: Any) -> int:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 2:
        raise UsageError(f"a collective needs a whole number n of at least 2 workers, not {n!r}.")
    return int(n)


def _count(n: Any, lat: Any, bw: Any, topology: Any) -> int:
    said = {len(table) for table in (lat, bw) if isinstance(table, np.ndarray)} | ({_workers_of(n)} if n is not None else set())
    if len(said) > 1:
        raise UsageError(f"n and the tables disagree on the number of workers: {', '.join(map(str, sorted(said)))}.")
    if said:
        return _workers_of(said.pop())
    if topology is None:
        raise UsageError("a collective needs n, the number of workers.")
    from verify_rates.solvers.topologies import get_topology

    return _workers_of(get_topology(topology).n)


def _options(found: Algorithm, n: int, given: Mapping[str, Any]) -> Options:
    chosen: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        if name not in _taken(found):
            who = [a.name for a in ALGORITHMS.values() if name in _taken(a)]
            raise UsageError(f"{found.name} takes no {name}; {', '.join(who)} {'does' if len(who) == 1 else 'do'}.")
        if name not in ("topology", "matchings") and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise UsageError(f"{name} must be a whole number of at least 1, not {value!r}.")
        chosen[name] = value
    if "matchings" in found.options:
        return (("matchings", _matchings(n, chosen.get("topology"), chosen.get("matchings"))),)
    return tuple((name, chosen.get(name, default)) for name, default in found.options.items())


Matchings = tuple[tuple[tuple[int, int], ...], ...]


def _matchings(n: int, topology: Any, matchings: Any) -> Matchings:
    if (topology is None) == (matchings is None):
        raise UsageError("an exchange by matchings needs either a topology or matchings.")
    if matchings is None:
        from verify_rates.solvers import switching
        from verify_rates.solvers.topologies import get_topology

        found = switching.matchings(get_topology(topology, n).graph)
        return tuple(tuple((int(a), int(b)) for a, b in np.argwhere(np.triu(L < 0))) for L in found)
    try:
        made = tuple(tuple((int(a), int(b)) for a, b in matching) for matching in matchings)
    except (TypeError, ValueError):
        raise UsageError("matchings must be lists of pairs of workers, as [[(0, 1), (2, 3)], [(1, 2)]].") from None
    for matching in made:
        ends = [i for pair in matching for i in pair]
        if not ends or len(set(ends)) < len(ends) or not set(ends) <= set(range(n)):
            raise UsageError(f"a matching must pair workers of 0 to {n - 1}, each at most once, not {list(matching)}.")
    if not made:
        raise UsageError("matchings must hold at least one matching.")
    return made


def _sizes(found: Algorithm, n: int, size: Any) -> tuple[float, float, tuple[Fraction, ...] | None]:
    """Bytes to which shares refer, bytes that algbw counts, and the shares of unlike messages."""
    gathers = found.operation == "all_gather"
    if not isinstance(size, (list, tuple, np.ndarray)):
        one = size_bytes(size, "size")
        return one, n * one if gathers else one, None
    made = [size_bytes(s, "size") for s in size]
    if len(made) != n:
        what = "one for every worker's message" if gathers or found.name == "gossip" else "of a sum over 1, 2, ..., n workers"
        raise UsageError(f"a list of sizes must hold n = {n} of them, {what}, not {len(made)}.")
    top = max(made)
    return top, sum(made) if gathers else top, tuple(Fraction(s) / Fraction(top) for s in made)


def _local(found, lat, bw, local_latency, local_bandwidth, tables) -> tuple[float, float]:
    asked = [name for name, v in (("local_latency", local_latency), ("local_bandwidth", local_bandwidth)) if v is not None]
    if asked and "per_node" not in found.options:
        raise UsageError(f"{found.name} takes no {asked[0]}; hierarchical does.")
    if asked and tables:
        raise UsageError(f"give {asked[0]} or a table of all links, not both.")
    if "per_node" not in found.options or tables:
        return 0.0, 1.0
    if len(asked) < 2:
        raise UsageError("hierarchical needs local_latency and local_bandwidth, those of the links within a node, or tables of all links.")
    return seconds(local_latency, "local_latency"), bits_per_second(local_bandwidth, "local_bandwidth")


def _times(made: Sequence[Transfer], nbytes: float, lat: Any, bw: Any, local: tuple[float, float]) -> tuple[tuple[float, ...], ...]:
    tables = isinstance(lat, np.ndarray) or isinstance(bw, np.ndarray)

    def of(value: Any, t: Transfer, within: float) -> float:
        if t.level == LOCAL and not tables:
            return within
        return float(value[t.source, t.target]) if isinstance(value, np.ndarray) else value

    late = tuple(of(lat, t, local[0]) for t in made)
    return tuple(float(t.share) * (8 * nbytes) / of(bw, t, local[1]) for t in made), late


def _notes(found: Algorithm, n: int, options: Options, link: str) -> tuple[str, ...]:
    notes = []
    if found.operation == "exchange":
        notes.append(f"{len(dict(options)['matchings'])} matchings, in the order given.")
    if "servers" in found.options:
        notes.append("a server is one of the workers and adds its own part without sending it.")
    if link == "fair":
        notes.append("fairly shared links: by event simulation alone; a transfer starts as soon as its data are there.")
    return tuple(notes)


# --- as a part of a time line -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exchange:
    """What an average of a time line costs when it is carried out by a collective among n alike workers.

    Mathematics: collectives in program order are a max-plus linear system from the moments when their data are ready to those when the
    last worker has its result.  Where the k-th of k collectives that are ready together ends at ``seconds + (k-1)*hold``, it is the same
    as one link that is held for ``hold`` and whose results come ``seconds - hold`` later.  That is checked by playing them back to
    back, never assumed.

    >>> Exchange("ring", 4).cost(8.0, 1.0)
    Cost(occupies=17.0, later=1.0)
    """

    name: str
    n: int
    options: Options = ()
    blocking: bool = False

    def cost(self, tx: Any, lat: Any) -> Cost:
        """From the seconds of a whole vector over the bandwidth, and the latency; Unsupported where no such pair exists."""
        return _held(self, tx, lat)[0]

    def even(self, tx: Any, lat: Any) -> bool:
        """Whether all sides are free at the same moment, so that collectives of unlike size follow one another in the same way."""
        return _held(self, tx, lat)[1]

    @cached_property
    def forms(self) -> tuple[Form, Form] | None:
        """Hold and later as sums of latencies and sizes over bandwidth; None where they are maxima of several sums."""
        made = transfers(self.name, self.n, self.options)
        if len(made) > MOST_IN_FORMULA // 2:
            return None
        one, two = forms(made, self.blocking, 2)
        if len(one) > 1 or len(two) > 1:
            return None
        hold = tuple(b - a for a, b in zip(one[0], two[0], strict=True))
        later = tuple(a - b for a, b in zip(one[0], hold, strict=True))
        return cast(Form, hold), cast(Form, later)

    def counts(self, tx: str, hold: str, later: str, arrives: bool) -> dict[str, Any]:
        """How often every cost occurs in the hold, or until the result is there; under names of their own where those are no single sums.

        >>> Exchange("ring", 4).counts("T_tx", "T_mean", "lat_mean", arrives=False)
        {'lat': Fraction(5, 1), 'T_tx': Fraction(3, 2)}
        """
        if self.forms is None:
            return {hold: 1, later: 1} if arrives else {hold: 1}
        found = [a + b if arrives else a for a, b in zip(*self.forms, strict=True)]
        return {"lat": found[0], tx: found[2]}


@lru_cache(maxsize=256, typed=True)
def _held(exchange: Exchange, tx: Any, lat: Any) -> tuple[Cost, bool]:
    made = transfers(exchange.name, exchange.n, exchange.options)
    exact = isinstance(tx, Fraction)
    times, late = [(t.share if exact else float(t.share)) * tx for t in made], [lat] * len(made)
    free: dict[int, Any] = {}
    ends, frees = [], []
    for _ in range(COPIES):
        ends.append(play(made, times, late, exchange.blocking, 0 * lat, free).seconds)
        frees.append(dict(free))
    apart = [b - a for a, b in pairwise(ends)]
    slack = 0 if exact else EVEN * ends[-1]
    if max(apart) - min(apart) > slack:
        raise Unsupported(
            f"a time line with {exchange.name} of {exchange.n} workers: at this latency and bandwidth its repetitions do not follow one "
            "another at one distance, so it is no single task on a link"
        )
    sides = frees[0].values()
    return Cost(apart[0], ends[0] - apart[0]), max(sides) - min(sides) <= slack and abs(max(sides) - apart[0]) <= slack


def exchange(kind: Any, n: Any, link: str) -> Exchange:
    """The collective of a time line, by name; UsageError for one that gives no average, or needs more than n to be described.

    >>> exchange("ring", 4, "fifo").cost(Fraction(8), Fraction(1))
    Cost(occupies=Fraction(17, 1), later=Fraction(1, 1))
    """
    found = get_algorithm(kind)
    if found.operation not in ("all_reduce", "all_gather") or "per_node" in found.options:
        able = [a.name for a in ALGORITHMS.values() if a.operation in ("all_reduce", "all_gather") and "per_node" not in a.options]
        raise UsageError(f"{kind} does not carry out an average on links that are alike; choose one of {', '.join(able)}.")
    if n is None:
        raise UsageError(f"the time of {kind} depends on the number of workers; give n.")
    made = Exchange(kind, _workers_of(n), tuple(found.options.items()), link == "blocking")
    transfers(made.name, made.n, made.options)
    return made
