"""Traffic of a method: exact bits per worker, step and round, up and down, index bits included."""

from __future__ import annotations

import html
import json
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from verify_rates.solvers.kinds import check_kinds
from verify_rates.solvers.method import Method, UsageError, get_method
from verify_rates.solvers.words import Unsupported
from verify_rates.theory.timeline.events import Load, constants, period_steps, periodic_tasks, words_used

DOWN = (
    "a worker receives the other n - 1 messages of an average, or the dense average where that is smaller (nothing where the server alone "
    "needs it), and every message of the server"
)


@dataclass(frozen=True)
class Traffic:
    """Bits of one worker once everything repeats (mean over the workers where their degrees differ, and over the coins tossed).

    Attributes
    ----------
    up_per_step, down_per_step, up_per_round, down_per_round : bits sent and received; None where they depend on the data.
    messages_per_round, dense_per_round : compressor messages and whole vectors that a worker sends.
    depends_on_data : whether the compressor's messages vary in length.
    rule : what is counted downwards.
    formula : where the numbers come from, in words.
    notes : assumptions, and inputs without effect.
    """

    method: str
    up_per_step: float | None
    down_per_step: float | None
    up_per_round: float | None
    down_per_round: float | None
    steps_per_round: int
    messages_per_round: float
    dense_per_round: float
    depends_on_data: bool
    rule: str
    formula: str
    notes: tuple[str, ...]

    def __str__(self) -> str:
        if self.depends_on_data:
            amount = "depends on the data"
        else:
            amount = f"up {self.up_per_step:.10g}, down {self.down_per_step:.10g} bits per worker and step"
        return "\n".join([f"{self.method}: {amount}", self.formula, *(f"note: {note}" for note in self.notes)])

    def to_json(self, **options: Any) -> str:
        """Everything as JSON text."""
        return json.dumps(asdict(self), **options)

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(str(v))}</td></tr>" for k, v in asdict(self).items())
        return f"<table>{rows}</table>"


def traffic(
    method: str | Method,
    hyper: Any = None,
    *,
    d: int,
    n: int,
    compressor: Any = None,
    topology: Any = None,
    dtype_bits: int = 32,
) -> Traffic:
    """Bits that one worker sends and receives per step and per communication round.

    Mathematics: the step function says what is averaged and gossiped.  A mean sends what no earlier mean has sent: one message
    ``C(v)`` at the compressor's bits, or a dense vector at ``dtype_bits * d``; a sum of several messages costs the smaller of
    the two.  Down, a worker receives the other ``n - 1`` messages or the dense average, whichever is smaller, or nothing where the
    server alone uses it; a message that the server compresses goes to all.  A message on a mask that everybody knows has no index
    bits.  A gossip sends and receives once per neighbour.  Coins: the expectation over how they fall.

    Guarantee: exact in the steady state (the first round may send less, since zeros need not be sent).

    Parameters
    ----------
    hyper : the method's hyper-parameters (gamma may be left out).
    d, n : dimension and number of workers.
    compressor : text or object; by default nothing is compressed.
    topology : needed for gossip.
    dtype_bits : bits of one number of a dense vector; a compressor counts its own payload (float32).

    Errors: UsageError for bad input, Unsupported where random branches lead to very many states.

    >>> t = traffic("ef_sgd", d=123, n=10, compressor="topk:12")
    >>> t.up_per_step, t.down_per_step
    (468.0, 3936.0)
    """
    method = get_method(method)
    for name, value in (("d", d), ("n", n), ("dtype_bits", dtype_bits)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UsageError(f"{name} must be a whole number of at least 1, not {value!r}.")
    h = constants(method, hyper)
    check_kinds(method, h)
    words = words_used(method, h)
    message, values, made = _message(compressor, d, words, dtype_bits)
    degree = _degree(topology, n, "gossip" in words)
    steps, sent = period_steps(method, h), _sent(method, h, words)
    return _summed(method, steps, sent, message, values, dtype_bits * d, degree, n, made, _notes(words, compressor, topology, made))


class Sent(NamedTuple):
    """A collective of a period: what it carries, whether the workers get its result, and how often it is to be expected."""

    word: str
    load: Load
    down: bool
    times: float

    def copies(self, degree: float) -> float:
        """Messages of a worker: one a neighbour, none where the server sends."""
        return self.times * {"gossip": degree, "broadcast": 0.0}.get(self.word, 1.0)


def _sent(method: Method, h: Any, words: tuple[str, ...]) -> list[Sent]:
    try:
        return [Sent(t.word, t.load, t.down, 1.0) for t in periodic_tasks(method, h) if t.load is not None]
    except Unsupported:
        if "chance" not in words:
            raise
    from verify_rates.theory.timeline.coins import begin, explore

    first = begin(method, h)
    chain = explore(method, h, first)
    if chain is None:
        raise Unsupported(f"the traffic of {method.name!r}: its coins lead to too many states")
    return [
        Sent(word, load, True, weight * float(o.probability) * first.period)
        for follow, weight in zip(chain.follow, chain.weights.tolist(), strict=True)
        for o in follow
        for word, load in o.loads
    ]


def _message(compressor: Any, d: int, words: tuple[str, ...], dtype_bits: int) -> tuple[float | None, float | None, Any]:
    """Bits of a message and of one without its places; None where they depend on the data."""
    if compressor is None or not {"compress", "masked"} & set(words):
        return float(dtype_bits * d), float(dtype_bits * d), None
    from verify_rates.solvers.compressors import get_compressor

    made = get_compressor(compressor)
    made.constants(d)  # refuses parameters that do not fit d
    if "masked" not in words and made.bits(d) is None:
        return None, None, made
    mask = made(np.ones((1, d)), [np.random.default_rng(0)])  # as many places whatever is drawn
    return made.bits(d), float(dtype_bits * np.count_nonzero(mask)), made


def _degree(topology: Any, n: int, used: bool) -> float:
    if not used:
        return 0.0
    if topology is None:
        raise UsageError("the traffic of a gossip needs a topology.")
    from verify_rates.solvers.topologies import get_topology

    return get_topology(topology, n).mean_degree


def _summed(
    method: Method,
    steps: int,
    sent: list[Sent],
    message: float | None,
    values: float | None,
    dense: float,
    degree: float,
    n: int,
    made: Any,
    notes: Any,
) -> Traffic:
    compressed = [c.load for c in sent if not c.load.dense]
    messages = sum((c.load.messages + c.load.masked) * c.copies(degree) for c in sent if not c.load.dense)
    whole = sum(c.copies(degree) for c in sent if c.load.dense)
    varies = any((load.messages and message is None) or (load.masked and values is None) for load in compressed)
    up = down = None
    if not varies:
        sizes = [c.load.bits(dense if message is None else message, dense, values) for c in sent]
        up = sum(bits * c.copies(degree) for c, bits in zip(sent, sizes, strict=True))
        down = sum(_down(c, bits, dense, degree, n) for c, bits in zip(sent, sizes, strict=True))
    one = values if compressed and not any(load.messages for load in compressed) else message
    what = f"{messages:g} message(s) of {made}" if made else "no compressed message"
    each = "" if made is None else " (length depends on the data)" if one is None else f" of {one:.10g} bits"
    formula = f"per round up: {what}{each}, {whole:g} dense vector(s) of {dense:.10g} bits; down: {DOWN}."
    return Traffic(
        method=method.name,
        up_per_step=None if up is None else up / steps,
        down_per_step=None if down is None else down / steps,
        up_per_round=up,
        down_per_round=down,
        steps_per_round=steps,
        messages_per_round=messages,
        dense_per_round=whole,
        depends_on_data=varies,
        rule=DOWN,
        formula=formula,
        notes=notes,
    )


def _down(c: Sent, bits: float, dense: float, degree: float, n: int) -> float:
    """What a worker receives of a collective."""
    if c.word == "broadcast":
        return bits * c.times
    if c.word == "gossip":
        return bits * degree * c.times
    on_mask = c.load.masked == 1 and not c.load.messages and not c.load.dense  # so is the average
    return min((min(n - 1, 1) if on_mask else n - 1) * bits, dense) * c.times * c.down


def _notes(words: tuple[str, ...], compressor: Any, topology: Any, made: Any) -> tuple[str, ...]:
    notes = []
    if "chance" in words:
        notes.append("what coins decide is counted with its probability.")
    if compressor is not None and made is None:
        notes.append("the compressor has no effect: the method compresses nothing.")
    if {"compress", "masked"} & set(words) and made is None:
        notes.append("no compressor: whole vectors are sent.")
    if "gossip" not in words and topology is not None:
        notes.append("the topology has no effect: the method does not gossip.")
    return tuple(notes)
