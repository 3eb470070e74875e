"""DeepCompile: the passes over a graph with sharded parameters, played on two streams with memory; and checks of the statements.

A program is a list of operators in the order in which they are issued.  The compute stream runs computations in order; the other stream
runs gathers in order, each not before the computation issued before it has ended; a computation waits for the gathers of its parameters.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators.streams import affine, positive, whole
from verify_rates.theory.evidence import Found

FUSE = Fraction(6, 5)  # the literal 1.2 of the released pass
MARGIN = Fraction(1, 10)
MOST_PLACED = 8
MOST_FUSED, MOST_BUFFERED = 10**9, 4 * 10**9  # bytes
Time = Callable[[Any], Any]  # seconds to gather so many bytes


class Op(NamedTuple):
    """One operator.

    ``kind`` is "compute" (``seconds``, its ``parameters`` must be there), "gather" or "release" (of ``parameters``); ``base`` are the bytes
    in use beside gathered parameters while it runs.
    """

    kind: str
    parameters: tuple[str, ...] = ()
    seconds: Any = 0
    base: Any = 0


class Played(NamedTuple):
    """A program that was played: its end, the gathers' times, the bytes in use at every operator, the waits of the computations."""

    makespan: Any
    gathers: list[tuple[Any, Any]]
    memory: list[Any]
    waits: list[Any]


def play(ops: Sequence[Op], sizes: Mapping[str, Any], time: Time) -> Played:
    """Play a program on two streams.

    Parameters
    ----------
    sizes : bytes of every sharded parameter.
    time : seconds of gathering so many bytes at once.

    Errors: UsageError for an unknown kind or parameter, and where a parameter is used that was not gathered or was released.

    >>> ops = [Op("gather", ("a",)), Op("compute", ("a",), 2), Op("release", ("a",))]
    >>> play(ops, {"a": 3}, lambda size: size).makespan
    5
    """
    computed: Any = 0
    sent: Any = 0
    there: dict[str, Any] = {}
    gathers, memory, waits = [], [], []
    for op in ops:
        for p in op.parameters:
            if p not in sizes:
                raise UsageError(f"the parameter {p!r} has no size.")
        if op.kind == "gather":
            began = max(sent, computed)
            sent = began + time(sum(sizes[p] for p in op.parameters))
            gathers.append((began, sent))
            there.update(dict.fromkeys(op.parameters, sent))
        elif op.kind == "compute":
            missing = [p for p in op.parameters if p not in there]
            if missing:
                raise UsageError(f"a computation uses {missing[0]!r}, which is not gathered there.")
            began = max([computed, *(there[p] for p in op.parameters)])
            waits.append(began - computed)
            computed = began + op.seconds
        elif op.kind != "release":
            raise UsageError(f"an operator is compute, gather or release, not {op.kind!r}.")
        memory.append(op.base + sum(sizes[p] for p in there))
        if op.kind == "release":
            for p in op.parameters:
                there.pop(p, None)
    return Played(max(computed, sent), gathers, memory, waits)


def fuses(c: Any, n: Any, time: Time) -> bool:
    """Whether pass B puts a gather of n bytes into the open group of c bytes (sizes below the cap)."""
    return FUSE * max(time(c), time(n)) > time(c + n)


def fuses_affine(c: Any, n: Any, a: Any, b: Any) -> bool:
    """The same for ``time(s) = a + b*s``: ``min(c,n) < (a/b + max(c,n))/5`` (deepcompile.1).

    >>> fuses_affine(1, 10, 1, 1), fuses_affine(9, 10, 1, 1)
    (True, False)
    """
    return min(c, n) < Fraction(1, 5) * (Fraction(a) / b + max(c, n))


def list_schedule(tasks: Mapping[str, tuple[Iterable[str], Iterable[str], Any]], sizes: Mapping[str, Any]) -> list[Op]:
    """Pass A: gathers in the order that frees their parameters soonest.

    Parameters
    ----------
    tasks : per computation (computations before it, parameters, seconds), in a topological order.

    >>> [op.kind for op in list_schedule({"f": ((), ("a",), 1), "g": (("f",), (), 1)}, {"a": 4})]
    ['gather', 'compute', 'release', 'compute']
    """
    before = {k: tuple(v[0]) for k, v in tasks.items()}
    uses = {k: tuple(v[1]) for k, v in tasks.items()}
    done: set[str] = set()
    gathered: set[str] = set()
    freed: set[str] = set()
    ops: list[Op] = []

    def needed(p: str) -> list[str]:
        """Computations that are left until p can be released, in order."""
        wanted, stack = set(), [k for k in tasks if p in uses[k]]
        while stack:
            k = stack.pop()
            if k not in done and k not in wanted:
                wanted.add(k)
                stack.extend(before[k])
        return [k for k in tasks if k in wanted]

    def run(names: Iterable[str]) -> None:
        for k in names:
            if k not in done:
                ops.append(Op("compute", uses[k], tasks[k][2]))
                done.add(k)
                over = tuple(p for p in sorted(gathered - freed) if all(j in done for j in tasks if p in uses[j]))
                if over:
                    ops.append(Op("release", over))
                    freed.update(over)

    def ready() -> list[str]:
        return [k for k in tasks if k not in done and set(before[k]) <= done and set(uses[k]) <= gathered]

    while left := [p for p in sizes if p not in gathered and any(p in u for u in uses.values())]:
        costs = {}
        for p in left:
            chain = needed(p)
            others = {q for k in chain for q in uses[k]} - gathered - {p}
            costs[p] = (sum(sizes[q] for q in others), len(others), sum(tasks[k][2] for k in chain))
        chosen = min(left, key=lambda p: costs[p])
        ops.append(Op("gather", (chosen,)))
        gathered.add(chosen)
        if not costs[chosen][0]:
            run(needed(chosen))
        else:
            while names := ready():  # nothing else is waited for
                run(names[:1])
    while names := ready():
        run(names[:1])
    return ops


def prefetch(
    ops: Sequence[Op],
    sizes: Mapping[str, Any],
    time: Time,
    device_bytes: Any,
    *,
    most_fused: Any = MOST_FUSED,
    most_buffered: Any = MOST_BUFFERED,
    check_own: bool = False,
) -> list[Op]:
    """Pass B: gathers move towards the start, fused where that is cheap, as long as the profile leaves memory.

    As released it looks at the operator before the one it is at BEFORE it takes that one's gather along, so a gather passes the operator
    before it unchecked (deepcompile.prefetch.memory); ``check_own`` looks again afterwards.

    Parameters
    ----------
    device_bytes : memory of a device; a tenth is left as a margin.

    >>> ops = [Op("compute", (), 2), Op("gather", ("a",)), Op("compute", ("a",), 1)]
    >>> [op.kind for op in prefetch(ops, {"a": 1}, lambda s: s, 100)]
    ['gather', 'compute', 'compute']
    """
    _once(ops)
    limit = (1 - MARGIN) * positive(device_bytes, "device_bytes")
    peaks = play(ops, sizes, time).memory
    behind: list[list[str]] = []
    group: list[str] = []
    turned: list[Op] = []

    def held(names: Iterable[str]) -> Any:
        return sum(sizes[p] for p in names)

    def total() -> Any:
        return held(group) + sum(map(held, behind))

    def make_room(before: Any) -> None:
        nonlocal group
        while before + total() > limit or total() > most_buffered:
            if not behind:
                if not group:
                    return
                behind.append(group)
                group = []
            turned.append(Op("gather", tuple(reversed(behind.pop(0)))))

    for i in range(len(ops) - 1, -1, -1):
        if i:
            make_room(peaks[i - 1])
        if ops[i].kind == "gather":
            size = held(ops[i].parameters)
            if group and not (fuses(held(group), size, time) and held(group) + size < most_fused):
                behind.append(group)
                group = []
            group.extend(reversed(ops[i].parameters))
            if check_own and i:
                make_room(peaks[i - 1])
        else:
            turned.append(ops[i])
    turned += [Op("gather", tuple(reversed(names))) for names in (*behind, group) if names]
    return turned[::-1]


def _once(ops: Sequence[Op]) -> None:
    """A pass works on one graph, forward or backward, where a parameter is gathered once."""
    gathered = [p for op in ops if op.kind == "gather" for p in op.parameters]
    again = next((p for p in gathered if gathered.count(p) > 1), None)
    if again is not None:
        raise UsageError(f"{again!r} is gathered more than once; give the forward and the backward graph one by one.")


def best_placement(ops: Sequence[Op], sizes: Mapping[str, Any], time: Time, device_bytes: Any) -> tuple[Any, list[Op]]:
    """The least makespan over all earlier places of single gathers in their order, within the limit of pass B (at most 8 gathers).

    >>> ops = [Op("compute", (), 2), Op("gather", ("a",)), Op("compute", ("a",), 1)]
    >>> best_placement(ops, {"a": 1}, lambda s: s, 100)[0]
    3
    """
    where = [i for i, op in enumerate(ops) if op.kind == "gather"]
    if len(where) > MOST_PLACED:
        raise UsageError(f"all placements are tried for at most {MOST_PLACED} gathers, not {len(where)}.")
    _once(ops)
    limit, others = (1 - MARGIN) * positive(device_bytes, "device_bytes"), [op for op in ops if op.kind != "gather"]
    own = [i - k for k, i in enumerate(where)]  # how many other operators come before a gather
    best: tuple[Any, list[Op]] | None = None
    for places in itertools.product(*(range(last + 1) for last in own)):
        if list(places) == sorted(places):
            made: list[Op] = []
            for j in range(len(others) + 1):
                made += [ops[i] for i, p in zip(where, places, strict=True) if p == j] + others[j : j + 1]
            done = play(made, sizes, time)
            if (best is None or done.makespan < best[0]) and (places == tuple(own) or max(done.memory) <= limit):
                best = done.makespan, made
    assert best is not None  # the places as they are belong to the choices
    return best


def persistent(sizes: Mapping[str, Any], seconds: Mapping[str, Any], device_bytes: Any, peak: Any) -> list[str]:
    """Pass C: parameters that stay gathered; by seconds of their gathers per byte, until the first that does not fit.

    >>> persistent({"a": 4, "b": 2}, {"a": 6, "b": 4}, 10, 4)
    ['b']
    """
    budget = max(0, (1 - MARGIN) * positive(device_bytes, "device_bytes") - peak)
    chosen: list[str] = []
    for p in sorted(sizes, key=lambda p: (-Fraction(seconds[p]) / Fraction(sizes[p]), list(sizes).index(p))):
        if sizes[p] > budget:
            break
        budget -= sizes[p]
        chosen.append(p)
    return chosen


def offload(peaks: Sequence[Any], states: Sequence[Any], device_bytes: Any) -> list[int]:
    """Pass D, forward: how many optimizer states have been offloaded when each operator starts (in their order)."""
    limit = (1 - MARGIN) * positive(device_bytes, "device_bytes")
    gone, counts = 0, []
    for peak in peaks:
        while gone < len(states) and limit - peak - sum(states[gone:]) < 0:
            gone += 1
        counts.append(gone)
    return counts


def reload(peaks: Sequence[Any], states: Sequence[Any], device_bytes: Any) -> list[int]:
    """Pass D, backward: how many states have been reloaded after each operator, given the peaks of those after it; the rest at the end.

    >>> reload([9, 7, 1], [3, 3], 10)
    [0, 2, 2]
    """
    limit = (1 - MARGIN) * positive(device_bytes, "device_bytes")
    back, counts = 0, []
    for i in range(len(peaks)):
        later = max(peaks[i + 1 :], default=0)
        while back < len(states) and limit > later + sum(states[: back + 1]):
            back += 1
        counts.append(back)
    return counts


# --- checks ---------------------------------------------------------------------------------------------------------------


def fuse_rule() -> Found:
    """deepcompile.1: in symbols for c <= n (the rule is symmetric), and on small whole numbers."""
    import sympy as sp

    a, b, c, n = sp.symbols("a b c n", positive=True)
    lead = sp.Rational(FUSE.numerator, FUSE.denominator) * (a + b * n) - (a + b * (c + n))
    said = sp.Rational(1, 5) * (a / b + n) - c
    wrong = int(sp.simplify(lead - b * said) != 0)
    numbers = range(1, 13)
    wrong += sum(
        fuses(Fraction(x), Fraction(y), affine(p, q)) != fuses_affine(x, y, p, q)
        for x, y, p, q in itertools.product(numbers, numbers, (0, 1, 4), (1, 3))
    )
    return Found.count(wrong, 1 + 144 * 6, proves=True)


def order_of_sizes(counts: Sequence[int]) -> Found:
    """deepcompile.2: pass C with room for one parameter less takes the smallest first; ``counts`` gathers a step, by size 1, 2, ..."""
    wrong, cases = 0, 0
    for a, b in itertools.product((1, 2, 5), (0, 1, 3)):
        sizes = {str(s): s for s in range(1, len(counts) + 1)}
        seconds = {str(s): k * (a + b * s) for s, k in enumerate(counts, 1)}
        taken = persistent(sizes, seconds, Fraction(10, 9) * sum(sizes.values()), 0)
        cases += 1
        wrong += taken != sorted(taken, key=lambda p: sizes[p])
    said = f"{wrong} of {cases} cases violate it; the last one takes the sizes {', '.join(taken)}"
    return Found(float(wrong), float(wrong), 0.0, proves=True, message=said)


def density() -> Found:
    """deepcompile.2 in symbols: time over bytes is a/s + b, which falls in s."""
    import sympy as sp

    a, b, s = sp.symbols("a b s", positive=True)
    d = (a + b * s) / s
    return Found.count((sp.simplify(d - (a / s + b)) != 0) + (sp.diff(d, s).simplify().is_negative is not True), 2, proves=True)


def greedy_saving(sizes: Sequence[int], a: int, b: int, room: int) -> Found:
    """deepcompile.2.optimal: seconds that pass C saves, beside the most that any set of parameters with ``room`` bytes saves."""
    named = {str(i): s for i, s in enumerate(sizes)}
    seconds = {p: a + b * s for p, s in named.items()}
    taken = sum(seconds[p] for p in persistent(named, seconds, Fraction(10, 9) * room, 0))
    sets = itertools.chain.from_iterable(itertools.combinations(named, k) for k in range(len(named) + 1))
    best = max(sum(seconds[p] for p in s) for s in sets if sum(named[p] for p in s) <= room)
    return Found(taken, taken, best, ">=", proves=True, message=f"pass C saves {taken} s, the best set {best} s")


def _programs(layers: int) -> Iterable[tuple[list[Op], dict[str, int]]]:
    """All programs of so many computations of 1 or 2 s, each with or without a parameter of 1 or 2 bytes gathered at or before it."""
    for seconds in itertools.product((1, 2), repeat=layers):
        for sizes in itertools.product((0, 1, 2), repeat=layers):
            for lead in itertools.product(*(range(i + 1) if size else (0,) for i, size in enumerate(sizes))):
                ops: list[Op] = []
                for i in range(layers):
                    ops += [Op("gather", (str(j),)) for j in range(layers) if sizes[j] and lead[j] == i]
                    ops.append(Op("compute", (str(i),) if sizes[i] else (), seconds[i]))
                    if sizes[i]:
                        ops.append(Op("release", (str(i),)))
                yield ops, {str(i): s for i, s in enumerate(sizes) if s}


def _byte(size: Any) -> Any:
    """One second of start-up and one a byte."""
    return 1 + size


def exposed(layers: int) -> Found:
    """deepcompile.3: makespan less compute is the time that computations wait, over all small programs."""
    wrong, cases = 0, 0
    for ops, sizes in _programs(layers):
        done = play(ops, sizes, _byte)
        cases += 1
        wrong += done.makespan - sum(op.seconds for op in ops) != sum(done.waits)
    return Found.count(wrong, cases, proves=True)


def _bound(ops: Sequence[Op], sizes: Mapping[str, Any], printed: bool) -> Any:
    gathers = [_byte(sum(sizes[p] for p in op.parameters)) for op in ops if op.kind == "gather"]
    computing = [op for op in ops if op.kind == "compute"]
    first = 0 if printed else next((i for i, op in enumerate(computing) if op.parameters), len(computing))
    return max(sum(op.seconds for op in ops), sum(gathers), (gathers[0] if gathers else 0) + sum(op.seconds for op in computing[first:]))


def makespan_bound(seconds: Sequence[int], sizes: Sequence[int]) -> Found:
    """deepcompile.4 as printed, on one program whose gathers are issued first; size 0 is a computation without a parameter."""
    named = {str(i): s for i, s in enumerate(sizes) if s}
    ops = [Op("gather", (p,)) for p in named]
    ops += [Op("compute", (str(i),) if sizes[i] else (), t) for i, t in enumerate(seconds)]
    done, said = play(ops, named, _byte).makespan, _bound(ops, named, True)
    return Found(done, done, said, ">=", proves=True, message=f"makespan {done}, said at least {said}")


def makespan_bound_repaired(layers: int) -> Found:
    """deepcompile.4.repaired, over all small programs."""
    wrong, cases = 0, 0
    for ops, sizes in _programs(layers):
        cases += 1
        wrong += play(ops, sizes, _byte).makespan < _bound(ops, sizes, False)
    return Found.count(wrong, cases, proves=True)


def saving(accumulate: int) -> Found:
    """deepcompile.5: seconds of gathers of an optimizer step with and without persistence, counted over forward and backward passes."""
    size = {"a": Fraction(7)}
    layer = [Op("gather", ("a",)), Op("compute", ("a",), 1), Op("release", ("a",))]
    sharded = play(layer * (2 * whole(accumulate, "accumulate")), size, _byte)
    kept = play([layer[0], *[layer[1]] * (2 * accumulate)], size, _byte)
    saved = sum(e - b for b, e in sharded.gathers) - sum(e - b for b, e in kept.gathers)
    return Found.count(int(saved != (2 * accumulate - 1) * _byte(size["a"])), 1, proves=True)


def prefetch_memory(bases: Sequence[int], size: int, device_bytes: int, check_own: bool) -> Found:
    """deepcompile.prefetch.memory on one program: a gather after operators of these ``bases``; most bytes in use, beside the limit."""
    ops = [*(Op("compute", (), 1, base) for base in bases), Op("gather", ("a",)), Op("compute", ("a",), 1)]
    most = max(play(prefetch(ops, {"a": size}, _byte, device_bytes, check_own=check_own), {"a": size}, _byte).memory)
    limit = (1 - MARGIN) * device_bytes
    return Found(float(most), float(most), float(limit), proves=True, message=f"{most} bytes in use, limit {limit}")


def prefetch_memory_all(layers: int, check_own: bool) -> Found:
    """The same over all small programs with bases 0 and 3, wherever the profile itself stays within the limit."""
    wrong, cases = 0, 0
    for ops, sizes in _programs(layers):
        for bases in itertools.product((0, 3), repeat=layers):
            left = iter(bases)
            made = [op._replace(base=next(left)) if op.kind == "compute" else op for op in ops]
            for device_bytes in (Fraction(40, 9), Fraction(50, 9)):
                limit = (1 - MARGIN) * device_bytes
                if max(play(made, sizes, _byte).memory) <= limit:
                    cases += 1
                    wrong += max(play(prefetch(made, sizes, _byte, device_bytes, check_own=check_own), sizes, _byte).memory) > limit
    return Found.count(wrong, cases, proves=True)


def prefetch_makespan(seconds: Sequence[int], sizes: Sequence[int], start: int, early: bool) -> Found:
    """deepcompile.prefetch.faster on one program without a limit of memory; gathers right before their use, or (early) all at first."""
    named = {str(i): s for i, s in enumerate(sizes) if s}
    first = [Op("gather", (p,)) for p in named]
    ops = first if early else []
    for i, t in enumerate(seconds):
        ops = ops + ([Op("gather", (str(i),))] if sizes[i] and not early else [])
        ops = [*ops, Op("compute", (str(i),) if sizes[i] else (), t)]

    def time(size: Any) -> Any:
        return start + size

    plain, moved = (play(p, named, time).makespan for p in (ops, prefetch(ops, named, time, 10**6)))
    return Found(moved, moved, plain, proves=True, message=f"{moved} s with prefetch, {plain} s without")


def prefetch_makespan_all(layers: int) -> Found:
    """The same over all small programs whose gathers come right before their use."""
    wrong, cases = 0, 0
    for seconds, sizes in itertools.product(itertools.product((0, 1, 3), repeat=layers), itertools.product((0, 1, 4), repeat=layers)):
        for start in (0, 1, 10):
            found = prefetch_makespan(seconds, sizes, start, False)
            cases += 1
            wrong += found.lower > found.bound
    return Found.count(wrong, cases, proves=True)
