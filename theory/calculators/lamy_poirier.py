"""Layered gradient accumulation and modular pipelines: makespans, traffic, the best configuration, and checks of the statements.

A batch is ``n_b*n_mu*b_mu`` sequences: n_b copies of the model, n_mu micro-batches of b_mu sequences; ``d_l`` layers lie on n_l devices of
a pipeline, in contiguous stages or (modular) layer j on device ``j mod n_l``.  Layered accumulation takes every layer through all
micro-batches before the next layer; the standard order takes every micro-batch through all layers of a device.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators.streams import fifo, positive, same_maximum, whole
from verify_rates.theory.evidence import Found


class Step(NamedTuple):
    """One optimiser step, in the unit of the given times."""

    seconds: Any  # until the last gradient is reduced
    compute_end: Any
    checkpoints: int  # the most layer inputs that one device holds


class Configuration(NamedTuple):
    n_b: int
    n_l: int
    n_mu: int
    b_mu: int
    seconds: Any


def forward_seconds(d_l: int, n_l: int, n_mu: int, t: Any, modular: bool) -> Any:
    """Makespan of the forward pass alone (lamy_poirier.1).

    Parameters
    ----------
    d_l, n_l, n_mu : layers, devices of the pipeline (a divisor of d_l), micro-batches.
    t : seconds of one layer on one micro-batch.

    Errors: UsageError unless n_l divides d_l and all are positive.

    >>> forward_seconds(16, 4, 4, 1, modular=False), forward_seconds(16, 4, 4, 1, modular=True)
    (28, 19)
    """
    per = _per_device(d_l, n_l, n_mu)
    return ((per - 1) * max(n_mu, n_l) + n_mu + n_l - 1) * t if modular else (n_mu + n_l - 1) * per * t


def bubble_share(d_l: int, n_l: int, n_mu: int, modular: bool) -> Fraction:
    """Idle time over ideal time of a forward pass (lamy_poirier.2), for every n_mu.

    >>> bubble_share(16, 4, 4, modular=False), bubble_share(16, 4, 4, modular=True)
    (Fraction(3, 4), Fraction(3, 16))
    """
    return Fraction(forward_seconds(d_l, n_l, n_mu, 1, modular), n_mu * (d_l // n_l)) - 1


def backward_seconds(d_l: int, n_mu: int, t_b: Any, r: Any, layered: bool, join: Any = max) -> Any:
    """Backward pass and gradient reduction on one device with one communication stream (lamy_poirier.3).

    Parameters
    ----------
    t_b, r : seconds of the backward pass of a layer on one micro-batch, and of the reduction of one layer.

    >>> backward_seconds(4, 8, 1, 3, layered=True), backward_seconds(4, 8, 1, 3, layered=False)
    (35, 41)
    """
    first = n_mu * t_b if layered else (d_l * (n_mu - 1) + 1) * t_b
    return join(d_l * n_mu * t_b + r, first + d_l * r)


def hidden_tokens(flops: Any, bw: Any) -> Any:
    """Tokens above which the reduction is hidden: per step with layered, per micro-batch with standard accumulation (lamy_poirier.7).

    Parameters
    ----------
    flops, bw : operations per second, and bytes per second of the device's link in one direction.

    >>> hidden_tokens(312e12, 50e9)
    4160.0
    """
    return 2 * positive(flops, "flops") / (3 * positive(bw, "bw"))


def _per_device(d_l: int, n_l: int, n_mu: int) -> int:
    whole(n_mu, "n_mu")
    if whole(d_l, "d_l") % whole(n_l, "n_l"):
        raise UsageError(f"n_l must divide d_l = {d_l}, not {n_l}.")
    return d_l // n_l


def orders(d_l: int, n_l: int, n_mu: int, modular: bool, layered: bool, backward: bool = True) -> list[list[tuple[int, int]]]:
    """Per device its tasks in order, as (layer, micro-batch); layers d_l..2*d_l-1 are the backward pass, the last of them layer 0's."""
    per = _per_device(d_l, n_l, n_mu)
    made: list[list[tuple[int, int]]] = []
    for device in range(n_l):
        mine = [j for j in range(d_l) if (j % n_l if modular else j // per) == device]
        passes = [mine, [2 * d_l - 1 - j for j in reversed(mine)]][: 2 if backward else 1]
        made.append([])
        for layers in passes:
            made[-1] += [(j, m) for j in layers for m in range(n_mu)] if layered else [(j, m) for m in range(n_mu) for j in layers]
    return made


def play(
    d_l: int,
    n_l: int,
    n_mu: int,
    t_f: Any,
    t_b: Any = 0,
    r: Any = 0,
    *,
    modular: bool = False,
    layered: bool = False,
    backward: bool = True,
) -> Step:
    """Play a step task by task: a device works through its order, a task waits for the layer before on the same micro-batch.

    Errors: UsageError where the order stands still (a task waits for one that is behind it).

    >>> play(16, 4, 4, 1, modular=True, layered=True, backward=False).seconds
    19
    """
    todo = orders(d_l, n_l, n_mu, modular, layered, backward)
    ends: dict[tuple[int, int], Any] = {}
    free, at, held, most = [t_f * 0] * n_l, [0] * n_l, [0] * n_l, [0] * n_l
    jobs: list[list[tuple[Any, Any]]] = [[] for _ in range(n_l)]
    left = dict.fromkeys(range(d_l, 2 * d_l), n_mu)
    while any(a < len(tasks) for a, tasks in zip(at, todo, strict=True)):
        moved = False
        for device, tasks in enumerate(todo):
            while at[device] < len(tasks) and (tasks[at[device]][0] == 0 or (tasks[at[device]][0] - 1, tasks[at[device]][1]) in ends):
                layer, batch = tasks[at[device]]
                began = max(free[device], ends.get((layer - 1, batch), free[device]))
                free[device] = ends[layer, batch] = began + (t_f if layer < d_l else t_b)
                held[device] += 1 if layer < d_l else -1
                most[device] = max(most[device], held[device])
                if layer >= d_l:
                    left[layer] -= 1
                    if not left[layer]:
                        jobs[device].append((free[device], r))
                at[device] += 1
                moved = True
        if not moved:
            raise UsageError("the order stands still: a task waits for one that is behind it on its device.")
    compute = max(free)
    return Step(max([compute, *(fifo(j)[-1] for j in jobs if j)]), compute, max(most))


def configurations(devices: int, batch: int, d_l: int) -> Iterator[tuple[int, int, int, int]]:
    """All (n_b, n_l, n_mu, b_mu) with ``n_b*n_l = devices``, ``n_b*n_mu*b_mu = batch`` and n_l a divisor of d_l."""
    for n_l in (i for i in range(1, d_l + 1) if d_l % i == 0 and devices % i == 0):
        n_b = devices // n_l
        if batch % n_b == 0:
            for n_mu in (i for i in range(1, batch // n_b + 1) if batch // n_b % i == 0):
                yield n_b, n_l, n_mu, batch // n_b // n_mu


def best_configuration(
    devices: int, batch: int, d_l: int, *, start: Any, sequence: Any, reduce: Any, modular: bool, layered: bool
) -> Configuration:
    """The fastest configuration of that many devices at a given batch (the critical one), by playing all; ties to the first.

    Parameters
    ----------
    start, sequence : a layer takes ``start + sequence*b_mu`` seconds on a micro-batch forwards, three times that backwards (recomputation).
    reduce : seconds of reducing one layer over many copies; over n_b it is ``reduce*(n_b-1)/n_b``.

    Errors: UsageError where no configuration fits.

    >>> best_configuration(4, 8, 4, start=0, sequence=1, reduce=0, modular=True, layered=True).seconds
    32
    """
    found = []
    for n_b, n_l, n_mu, b_mu in configurations(whole(devices, "devices"), whole(batch, "batch"), whole(d_l, "d_l")):
        t = start + sequence * b_mu
        step = play(d_l, n_l, n_mu, t, 3 * t, reduce * (n_b - 1) / n_b if n_b > 1 else 0, modular=modular, layered=layered)
        found.append(Configuration(n_b, n_l, n_mu, b_mu, step.seconds))
    if not found:
        raise UsageError(f"no configuration of {devices} devices fits a batch of {batch} and {d_l} layers.")
    return min(found, key=lambda c: c.seconds)


# --- checks ---------------------------------------------------------------------------------------------------------------


def makespans(n_l: int, backward: bool) -> Found:
    """lamy_poirier.1: both forms against the played schedule; with a backward pass of twice the time against three times them."""
    wrong, cases = 0, 0
    for per, n_mu, modular in itertools.product((1, 2, 4), (1, 2, 3, 4, 8, 16), (False, True)):
        played = play(n_l * per, n_l, n_mu, 1, 2, modular=modular, layered=modular, backward=backward).seconds
        cases += 1
        wrong += played != (3 if backward else 1) * forward_seconds(n_l * per, n_l, n_mu, 1, modular)
    return Found.count(wrong, cases, proves=True)


BUBBLES = {False: "(n_l-1)/n_mu", True: "(n_l-1)*n_l/(n_mu*d_l)"}  # lamy_poirier.2


def _printed_bubble(d_l: int, n_l: int, n_mu: int, modular: bool) -> Fraction:
    from verify_rates.theory.symbols import exact

    return exact(BUBBLES[modular].replace("n_l", "a").replace("n_mu", "b").replace("d_l", "c"), {"a": n_l, "b": n_mu, "c": d_l})


def bubbles() -> Found:
    """lamy_poirier.2: the printed shares, for n_mu >= n_l if modular."""
    wrong, cases = 0, 0
    for n_l, per, n_mu, modular in itertools.product((1, 2, 4, 8), (1, 2, 4), (1, 2, 4, 8, 11), (False, True)):
        if n_mu >= n_l or not modular:
            cases += 1
            wrong += bubble_share(n_l * per, n_l, n_mu, modular) != _printed_bubble(n_l * per, n_l, n_mu, modular)
    return Found.count(wrong, cases, proves=True)


def bubble_at(d_l: int, n_l: int, n_mu: int) -> Found:
    """lamy_poirier.2.few: the share of a modular pipeline, played, beside the printed one."""
    played = Fraction(play(d_l, n_l, n_mu, 1, modular=True, layered=True, backward=False).seconds, n_mu * d_l // n_l) - 1
    said = _printed_bubble(d_l, n_l, n_mu, True)
    return Found(float(played), float(played), float(said), "==", proves=True, message=f"played {played}, printed {said}")


def reductions(d_l: int, n_mu: int) -> Found:
    """lamy_poirier.3 in symbols: the FIFO of reductions is the printed maximum of two; and when it is hidden, on small numbers."""
    import sympy as sp

    t, r = sp.symbols("t_b r", nonnegative=True)
    wrong = 0
    for layered in (False, True):
        ready = [(i * n_mu if layered else d_l * (n_mu - 1) + i) * t for i in range(1, d_l + 1)]
        end = fifo([(x, r) for x in ready], sp.Max)[-1]
        wrong += not same_maximum(end, backward_seconds(d_l, n_mu, t, r, layered, sp.Max))
        for tb, rr in itertools.product(range(1, 4), range(13)):
            played = play(d_l, 1, n_mu, 0, tb, rr, layered=layered)
            wrong += played.seconds != backward_seconds(d_l, n_mu, tb, rr, layered)
            hidden = played.seconds == played.compute_end + rr  # all but the last reduction
            wrong += d_l > 1 and hidden != (rr <= (n_mu if layered else 1) * tb)
    return Found.count(wrong, 2 + 2 * 3 * 13 * 2, proves=True)


def layer_runs(layers: Sequence[int]) -> int:
    """Runs of tasks that use one layer: how often it is gathered, or its gradient reduced, if nothing stays after a run.

    >>> layer_runs([0, 0, 1, 0])
    3
    """
    return 1 + sum(a != b for a, b in itertools.pairwise(layers)) if layers else 0


def traffic(d_l: int, n_mu: int, layered: bool, reuse: bool = False) -> tuple[Fraction, Fraction]:
    """(gathers, reductions) of a step with sharded parameters on one device, in units of all parameters (lamy_poirier.4).

    Parameters
    ----------
    reuse : whether a layer may stay where the forward pass turns into the backward pass.

    >>> traffic(4, 8, layered=True), traffic(4, 8, layered=False)
    ((Fraction(2, 1), Fraction(1, 1)), (Fraction(16, 1), Fraction(8, 1)))
    """
    (order,) = orders(d_l, 1, n_mu, False, layered)
    used = [layer if layer < d_l else 2 * d_l - 1 - layer for layer, _ in order]
    forward, backward = used[: d_l * n_mu], used[d_l * n_mu :]
    gathered = layer_runs(used) if reuse else layer_runs(forward) + layer_runs(backward)
    return Fraction(gathered, d_l), Fraction(layer_runs(backward), d_l)


def sharded_traffic(d_l: int, n_mu: int, reuse: bool) -> Found:
    """lamy_poirier.4: gathers and reductions, counted over the orders."""
    layered, standard = traffic(d_l, n_mu, True, reuse), traffic(d_l, n_mu, False, reuse)
    wrong = (layered != (2, 1)) + (standard != (2 * n_mu, n_mu))
    shown = f"gathers and reductions: layered {' and '.join(map(str, layered))}, standard {' and '.join(map(str, standard))}"
    return Found(float(wrong), float(wrong), 0.0, proves=True, message=shown)


def checkpoints(d_l: int, n_mu: int) -> Found:
    """lamy_poirier.5: layer inputs held at most, played: n_mu*d_l with layered accumulation, d_l one micro-batch at a time."""
    layered = play(d_l, 1, n_mu, 1, 2, layered=True).checkpoints
    held = most = 0
    for _ in range(n_mu):
        for change in [1] * d_l + [-1] * d_l:
            held += change
            most = max(most, held)
    return Found.count((layered != n_mu * d_l) + (most != d_l), 2, proves=True)


def intensity() -> Found:
    """lamy_poirier.6 in symbols: attention 4*d^2 and a four times wider layer 8*d^2; 2+2+4 operations each; 2 bytes there and back."""
    import sympy as sp

    d = sp.Symbol("d_m", positive=True)
    parameters = 4 * d * d + 2 * d * (4 * d)
    forward, again, backward = 2 * parameters, 2 * parameters, 4 * parameters
    off = sp.simplify((forward + again + backward) / (2 * d + 2 * d) - 24 * d)
    return Found.count(int(off != 0), 1, proves=True)


def data_parallel_threshold() -> Found:
    """lamy_poirier.7 in symbols: 4p bytes at B against 6p operations a token at C; and its example."""
    import sympy as sp

    p, C, B, tokens = sp.symbols("p C B tokens", positive=True)
    margin = (6 * p * tokens / C - 4 * p / B) / (6 * p / C)
    said = sp.nsimplify(hidden_tokens(Fraction(1), Fraction(1)))
    wrong = (sp.simplify(margin - (tokens - said * C / B)) != 0) + (hidden_tokens(312e12, 50e9) != 4160)
    return Found.count(wrong, 2, proves=True)


def halved(devices: int, batch: int, d_l: int, start: int, reduce: int) -> Found:
    """lamy_poirier.half: shortest step without the two methods over that with both, in exact arithmetic, over all configurations."""
    shortest = [
        best_configuration(
            devices, batch, d_l, start=Fraction(start), sequence=Fraction(1), reduce=Fraction(reduce), modular=on, layered=on
        )
        for on in (False, True)
    ]
    gain = float(shortest[0].seconds / shortest[1].seconds)
    return Found(gain, gain, 2.0, ">=", proves=True, message=f"{gain:.3f} times; without {shortest[0][:4]}, with {shortest[1][:4]}")
