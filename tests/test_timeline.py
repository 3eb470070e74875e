import itertools
import json
import math
from typing import NamedTuple

import numpy as np
import pytest
import sympy as sp
from shipped import shipped

from verify_rates.solvers import method as registry
from verify_rates.solvers.method import UsageError, method, methods
from verify_rates.solvers.words import PerWorker, Shared, Unsupported, chance, compress, gossip, grad, mean, spread
from verify_rates.theory import units
from verify_rates.theory.calculators.streams import same_maximum
from verify_rates.theory.timeline import EventGraph, formulas, replay, round_seconds_by_simulation, timeline
from verify_rates.theory.timeline.cycles import cycle_ratio
from verify_rates.theory.timeline.events import EventWorld, period_steps, periodic_tasks
from verify_rates.theory.timeline.formulas import CLOSED_FORMS, closed_form
from verify_rates.theory.timeline.line import asked
from verify_rates.theory.timeline.simulate import ClockWorld
from verify_rates.theory.traffic import traffic

RTOL = 1e-9  # what the project promises; sums of at most some thousands of times are good to 1e-12
INSTANCES = 200


def instances(name, count=INSTANCES, seed=0):
    """Random hyper-parameters and costs over four decades, so that every cycle sets the pace in some instance."""
    rng = np.random.default_rng((seed, *name.encode()))
    for _ in range(count):
        T_comp, T_tx, lat = 10.0 ** rng.uniform(-3, 1, 3)
        size, share = float(rng.integers(1, 1000) * 4), float(rng.uniform(0.01, 1))
        whole = int(rng.choice([0, 1, 2, 3, 5, 8, 13, 70]))
        hyper = {"tau": whole} if name == "dd_ef_sgd" else {"H": whole + 1} if name == "local_sgd" else {}
        hyper = {**needed(name), **hyper}
        sends = share if {"compress", "masked"} & set(words_of(name)) else 1.0
        costs = {"compute": float(T_comp), "latency": float(lat), "bandwidth": 8 * size * sends / float(T_tx), "size": size}
        yield hyper, {**costs, "bytes_share": share}, (float(T_comp), float(T_tx), float(lat))


def needed(name):
    """A value for every hyper-parameter without a default; the step size, on which no time depends, is left to the readings."""
    hyper = methods()[name].hyper
    return {k: 1 if hyper.__annotations__[k] is int else 0.5 for k in hyper._fields if k not in hyper._field_defaults and k != "gamma"}


def words_of(name):
    from verify_rates.solvers.kinds import check_kinds

    m = methods()[name]
    return check_kinds(m, m.hypers(**{"gamma": 0.0, **needed(name)}))


def value(formula, T_comp, T_tx, lat):
    return float(sp.lambdify([sp.Symbol(s, nonnegative=True) for s in ("T_comp", "T_tx", "lat")], formula, "math")(T_comp, T_tx, lat))


def differ(a, b):
    return abs(a - b) > RTOL * max(abs(a), abs(b))


def disagreements(name, count=INSTANCES):
    """Instances where the published closed form and the maximum cycle ratio differ."""
    form, wrong = closed_form(name), 0
    for hyper, costs, (T_comp, T_tx, lat) in instances(name, count):
        found = timeline(name, hyper, **costs, steps=1).seconds_per_step
        wrong += differ(found, form(T_comp, T_tx, lat, hyper.get("tau", 0), hyper.get("H", 1)))
    return wrong


# --- the three answers agree -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(CLOSED_FORMS))
def test_published_forms_follow_from_the_step_function(name):
    """As functions of all non-negative costs, at every setting drawn; and in numbers, with every limit met."""
    limits, compared = set(), set()
    for hyper, costs, (T_comp, T_tx, lat) in instances(name, 40):
        line = timeline(name, hyper, **costs, steps=1)
        tau, H = hyper.get("tau", 0), hyper.get("H", 1)
        assert not differ(line.seconds_per_step, closed_form(name)(T_comp, T_tx, lat, tau, H)), (hyper, costs)
        assert line.gap <= 1e-11
        limits.add(line.limit)
        if (tau, H) not in compared:
            assert same_maximum(line.formula, CLOSED_FORMS[name].subs({formulas.tau: tau, formulas.H: H}))
            compared.add((tau, H))
    assert limits == ({"compute", "link", "feedback loop"} if name in ("dd_ef_sgd", "acco") else {"feedback loop"})


SMALL = {"tau": (0, 1, 3), "H": (1, 2, 3), "Q": (0, 1), "P": (0, 2, 3), **dict.fromkeys(("K_1", "K_2", "K_v", "K_x"), (1, 2))}
HYPERS, COSTS_EACH, WITNESSED = 5, 40, 3  # of every method: settings, costs each, of those replayed by the step function


class Instances:
    """One method at random settings: its tasks once a setting, then any number of costs."""

    def __init__(self, name, seed=0):
        self.name, self.rng, self.forms = name, np.random.default_rng((seed, *name.encode())), {}
        self.fields = methods()[name].hyper._fields

    def hyper(self):
        drawn = {k: int(self.rng.choice(SMALL[k])) for k in SMALL if k in self.fields}
        if "Q" in drawn:
            drawn["Q"] = min(drawn["Q"], drawn["H"] - 1)
        return {**needed(self.name), **drawn}

    def costs(self):
        compute, latency, encode = (float(10.0 ** self.rng.uniform(-2, 1)) for _ in range(3))
        share, size = float(self.rng.uniform(0.01, 1)), float(4 * self.rng.integers(1, 100))
        given = {"compute": compute, "latency": latency, "encode": encode, "size": size, "bytes_share": share}
        return given | {"bandwidth": 8 * size * share / float(10.0 ** self.rng.uniform(-2, 1))}

    def formula(self, graph, steps, costs):
        """The derived formula at these costs; it is another one where sums of messages cost as much as a whole vector."""
        key = (steps, *((a, b, k, *sorted(names)) for a, b, _, k, names in graph.edges()))
        if key not in self.forms:
            made = graph.formula(steps)[0]
            letters = sorted(made.free_symbols, key=str)
            self.forms[key] = [str(s) for s in letters], sp.lambdify(letters, made, "math")
        names, form = self.forms[key]
        sizes = sorted({costs.transfer(t.load, t.copies) for t in graph.tasks if t.load})
        known = {"T_comp": costs.compute[0], "T_enc": costs.encode, "lat": costs.latency, "T_tx": sizes[0]}
        known |= {f"T_tx_{i}": seconds for i, seconds in enumerate(sizes, start=1)}
        return float(form(*(known[n] for n in names)))


@pytest.mark.parametrize("name", sorted(shipped()))
def test_every_method_three_ways(name):
    """200 instances each: cycle ratio, simulation and derived formula agree, and the step function with clocks on some."""
    drawn, seen = Instances(name), False
    for _ in range(HYPERS):
        hyper = drawn.hyper()
        found, h, _, neighbours, costs, _ = asked(name, hyper, **drawn.costs())
        tasks, steps = periodic_tasks(found, h, neighbours, True), period_steps(found, h)
        for i in range(COSTS_EACH):
            given = drawn.costs()
            costs = asked(name, hyper, **given).costs
            graph = EventGraph(tasks, costs)
            pace = graph.pace()
            assert not differ(pace.ratio, replay.pace(graph.pattern())), (hyper, given)
            assert not differ(pace.ratio / steps, drawn.formula(graph, steps, costs)), (hyper, given)
            if i < WITNESSED:
                witness = round_seconds_by_simulation(name, hyper, engine="steps", **given)
                assert not differ(pace.ratio, witness), (hyper, given)
            seen = seen or any(differ(broken.pace().ratio, pace.ratio) for broken in without_one(graph))
    assert seen, "a dropped dependency changes nothing"


def without_one(graph):
    """The graph whose tasks of one word wait for their streams alone, each word in turn."""
    for word in sorted({task.word for task in graph.tasks}):
        tasks = [t._replace(after=frozenset()) if t.word == word else t for t in graph.tasks]
        yield EventGraph(tasks, graph.costs)


def test_acco_is_the_papers_formula():
    """acco.6, 2*Max(n*T_g/2, T_m), with T_comp = n*T_g/2: without latency, or where the latency holds the link too."""
    rng = np.random.default_rng(0)
    for T_comp, T_tx, lat in 10.0 ** rng.uniform(-2, 1, (INSTANCES, 3)):
        size = {"size": 4.0, "bandwidth": 32 / T_tx, "compute": T_comp}
        assert not differ(timeline("acco", latency=0, **size, steps=1).seconds_per_step, 2 * max(T_comp, T_tx))
        assert not differ(timeline("acco", latency=lat, link="blocking", **size, steps=1).seconds_per_step, 2 * max(T_comp, T_tx + lat))


@pytest.mark.parametrize("topology", ["ring", "star", "path", "complete"])
def test_workers_of_different_speed(topology):
    rng = np.random.default_rng(1)
    for _ in range(20):
        compute = (10.0 ** rng.uniform(-2, 1, 5)).tolist()
        costs = {"compute": compute, "latency": float(rng.uniform(0, 2)), "bandwidth": 32.0, "size": 4.0, "topology": topology}
        line = timeline("gossip_sgd", **costs, steps=1)
        assert not differ(line.seconds_per_step, round_seconds_by_simulation("gossip_sgd", **costs))
        assert line.seconds_per_step >= max(compute)


def test_a_collective_waits_for_the_slowest():
    line = timeline("gd", compute=[1.0, 3.0, 2.0], latency=1.0, bandwidth=8.0, size=2.0)
    assert line.seconds_per_step == 6.0 and line.cycle == ("grad on worker 1", "mean")
    assert {e.worker for e in line.events if e.word == "grad"} == {0, 1, 2}


def test_alike_workers_stand_for_one_another():
    given = {"latency": 0.3, "bandwidth": 32.0, "size": 4.0}
    one = timeline("gossip_sgd", compute=1.0, topology=networkx_ring(6), **given)
    many = timeline("gossip_sgd", compute=[1.0] * 5 + [1.0 - 1e-9], topology=networkx_ring(6), **given)
    assert one.inputs["workers"] == 1 and many.inputs["workers"] == 6
    assert one.seconds_per_step == pytest.approx(1 + 2 + 0.3) and many.seconds_per_step == pytest.approx(one.seconds_per_step, abs=1e-8)


def networkx_ring(n):
    import networkx as nx

    return nx.cycle_graph(n)


def test_encoding_takes_compute_time():
    given = {"latency": 1.0, "bandwidth": 8.0, "size": 4.0, "compute": 1.0}
    assert timeline("ef_sgd", encode=0.5, **given).seconds_per_step == timeline("ef_sgd", **given).seconds_per_step + 0.5
    assert "T_enc" in str(timeline("dd_ef_sgd", {"tau": 9}, encode=0.5, **given).formula)
    assert not differ(
        timeline("dd_ef_sgd", {"tau": 3}, encode=0.5, **given).seconds_per_step,
        round_seconds_by_simulation("dd_ef_sgd", {"tau": 3}, encode=0.5, **given),
    )


# --- mutations: a dropped dependency is seen -------------------------------------------------------------------------


def _no_delay(self, q, v):
    return q, v


def _too_long(self, q, v):
    return ((*q[1:], v), q[0]) if len(q) > 1 else (q, q[0] if q else v)


def _mean_waits_for_nobody(self, v):
    _MEAN(self, v)
    return type(v)(self, (_past(self),), shared=True)


def _grad_waits_for_nobody(self, x):
    return _GRAD(self, type(x)(self, (_past(self),) * len(x.ready), x.shared))


def _past(world):
    return 0.0 if isinstance(world, ClockWorld) else {}


_MEAN, _GRAD = EventWorld.mean, EventWorld.grad


@pytest.mark.parametrize(
    ("word", "broken", "name"),
    [
        ("delay", _no_delay, "dd_ef_sgd"),
        ("delay", _too_long, "dd_ef_sgd"),
        ("mean", _mean_waits_for_nobody, "dd_ef_sgd"),
        ("mean", _mean_waits_for_nobody, "acco"),
        ("grad", _grad_waits_for_nobody, "gd"),
        ("grad", _grad_waits_for_nobody, "local_sgd"),
        ("spread", lambda self, v: type(v)(self, (_past(self),) * self.n), "local_sgd"),
    ],
)
def test_a_dropped_dependency_is_seen(monkeypatch, word, broken, name):
    assert disagreements(name, 40) == 0
    monkeypatch.setattr(EventWorld, word, broken)
    assert disagreements(name, 40) > 0


def test_a_link_without_its_queue_is_seen(monkeypatch):
    """The simulation must notice a link that serves transfers side by side."""

    def task(self, word, stream, ready, load=None, copies=1):
        occupies, later = self.cost(word, stream, load, copies)
        return (ready if load else max(ready, self.free.get(stream, 0.0))) + occupies + later

    costs = {"compute": 0.1, "latency": 0.0, "bandwidth": 8.0, "size": 1.0}
    right = timeline("dd_ef_sgd", {"tau": 9}, **costs).seconds_per_step
    assert not differ(right, round_seconds_by_simulation("dd_ef_sgd", {"tau": 9}, engine="steps", **costs))
    monkeypatch.setattr(ClockWorld, "task", task)
    assert differ(right, round_seconds_by_simulation("dd_ef_sgd", {"tau": 9}, engine="steps", **costs))


# --- cycle ratio -----------------------------------------------------------------------------------------------------


def _by_enumeration(count, edges):
    """Largest ratio over all simple cycles of a multigraph, by depth-first search."""
    best = -math.inf
    out = [[e for e in edges if e[0] == u] for u in range(count)]

    def walk(root, at, time, tokens, seen):
        nonlocal best
        for _, v, w, k in out[at]:
            if v == root:
                best = max(best, (time + w) / (tokens + k))
            elif v > root and v not in seen:
                walk(root, v, time + w, tokens + k, seen | {v})

    for root in range(count):
        walk(root, root, 0.0, 0, {root})
    return best


def test_howard_against_enumeration():
    rng = np.random.default_rng(0)
    for _ in range(300):
        count = int(rng.integers(1, 7))
        edges = []
        for _ in range(int(rng.integers(1, 16))):
            u, v = rng.integers(count, size=2)
            edges.append((int(u), int(v), float(rng.choice([0.0, 1.0, rng.uniform(0, 5)])), int(u >= v) * int(rng.integers(1, 4))))
        expected = _by_enumeration(count, edges)
        if expected == -math.inf:
            with pytest.raises(UsageError, match="no cycle"):
                cycle_ratio(count, *zip(*edges, strict=True))
            continue
        found = cycle_ratio(count, *zip(*edges, strict=True))
        assert found.ratio == pytest.approx(expected, rel=1e-12) and found.ratio <= found.upper <= expected + 1e-11
        cycle = [edges[e] for e in found.edges]
        assert [e[0] for e in cycle] == found.nodes and all(a[1] == b[0] for a, b in itertools.pairwise([*cycle, cycle[0]]))
        assert sum(e[2] for e in cycle) / sum(e[3] for e in cycle) == pytest.approx(found.ratio, rel=1e-12)


def test_a_cycle_without_delay_is_named():
    with pytest.raises(UsageError, match=r"deadlock: a cycle without delay, (grad -> mean -> grad|mean -> grad -> mean)\."):
        cycle_ratio(3, [0, 1, 2, 2], [1, 0, 2, 0], [1.0, 1.0, 9.0, 1.0], [0, 0, 1, 0], ["grad", "mean", "other"])


@pytest.mark.parametrize("times", [[math.nan, 1.0], [math.inf, 1.0]])
def test_bad_times(times):
    with pytest.raises(UsageError, match="finite"):
        cycle_ratio(2, [0, 1], [1, 0], times, [1, 0])


# --- the result ------------------------------------------------------------------------------------------------------

COSTS = {"compute": "50ms", "latency": "100ms", "bandwidth": "1Gbit/s", "size": "400MB"}


def test_events_keep_the_rules():
    line = timeline("dd_ef_sgd", {"tau": 2}, **COSTS, bytes_share=0.05, steps=300)
    assert len(line.events) == 600
    for stream in ("compute", "link"):
        own = [e for e in line.events if e.stream == stream]
        assert all(a.end <= b.start for a, b in itertools.pairwise(own))
    grads = [e for e in line.events if e.word == "grad"]
    means = [e for e in line.events if e.word == "mean"]
    assert all(m.start >= g.end for g, m in zip(grads, means, strict=True))
    assert all(g.start >= m.arrives for g, m in zip(grads[3:], means, strict=False))  # x of step t+3 holds the mean of step t
    pace = (grads[-1].start - grads[-61].start) / 60
    assert pace == pytest.approx(line.seconds_per_step, rel=RTOL)


def test_result_shows_itself(tmp_path):
    line = timeline("dd_ef_sgd", {"tau": 2}, **COSTS, compressor="topk(k=1000000)")
    data = json.loads(line.to_json())
    assert data["seconds_per_step"] == line.seconds_per_step and data["formula"] == str(line.formula)
    assert set(data["events"][0]) == {"word", "stream", "worker", "step", "start", "end", "arrives"}
    assert data["inputs"]["bytes_sent"] == 1_000_000 * (32 + 27) / 8 and "first in, first out" in data["link"]
    assert "<table>" in line._repr_html_() and "Max(" in line._repr_html_() and "per step" in str(line)
    figure = line.plot(tmp_path / "line.png")
    assert (tmp_path / "line.png").read_bytes()[:4] == b"\x89PNG"
    assert len(figure.axes[0].collections) == len(line.events)


def test_limits_in_words():
    kw = {"latency": 0.0, "bandwidth": 8.0, "size": 1.0}
    assert timeline("dd_ef_sgd", {"tau": 9}, compute=2.0, **kw).sentence.startswith("compute: a worker's compute stream is never idle")
    assert timeline("dd_ef_sgd", {"tau": 9}, compute=0.5, **kw).sentence.startswith("link: a link is never idle (mean -> mean)")
    loop = timeline("dd_ef_sgd", {"tau": 1}, compute=1.0, **kw | {"latency": 9.0})
    assert loop.limit == "feedback loop" and loop.rounds_under_way == 2 and "2 rounds under way" in loop.sentence


def test_inputs_without_effect_are_said():
    assert any("compressor has no effect" in note for note in timeline("gd", **COSTS, compressor="topk:3").notes)
    assert any("topology has no effect" in note for note in timeline("gd", **COSTS, topology="ring").notes)
    assert any("whole vectors" in note for note in timeline("ef_sgd", **COSTS).notes)
    assert any("one neighbour" in note for note in timeline("gossip_sgd", **COSTS).notes)
    assert timeline("ef_sgd", **COSTS, bytes_share=0.1).notes == ()


# --- methods of one's own --------------------------------------------------------------------------------------------


class Mine(NamedTuple):
    x: Shared
    v: PerWorker


class Hyper(NamedTuple):
    gamma: float


@pytest.fixture
def own():
    before = dict(registry._REGISTRY)
    yield
    registry._REGISTRY.clear()
    registry._REGISTRY.update(before)


def test_what_is_sent_follows_from_the_sums(own):
    """Increments are sent once; a mean of what is known is free."""

    @method(state=Mine, hyper=Hyper)
    def increments(s, w, h, t):
        c = compress(w, grad(w, s.x) - s.v)
        v = s.v + c
        x = s.x - h.gamma * (mean(w, s.v) + mean(w, c)) - h.gamma * mean(w, v)
        return Mine(x=x, v=v + spread(w, mean(w, spread(w, s.x))))

    t = traffic(increments, d=100, n=4, compressor="topk:3")
    assert t.up_per_step == 3 * (32 + 7) and t.messages_per_round == 1 and t.dense_per_round == 0
    assert timeline(increments, compute=1.0, latency=2.0, bandwidth=8.0, size=4.0).seconds_per_step == 7.0


@pytest.mark.parametrize("again", [mean, lambda w, v: mean(w, v + 0.0 * v)])
def test_what_was_sent_before_is_free_but_not_earlier(monkeypatch, own, again):
    """The second mean of one message sends nothing, yet its result is there no sooner than the first one's."""

    @method(state=Mine, hyper=Hyper)
    def twice(s, w, h, t):
        c = compress(w, grad(w, s.x))
        mean(w, c)
        return Mine(x=s.x - h.gamma * again(w, c), v=s.v)

    @method(state=Mine, hyper=Hyper)
    def late(s, w, h, t):
        c = compress(w, grad(w, s.x))
        mean(w, c)
        return Mine(x=s.x - h.gamma * again(w, s.v), v=c)

    @method(state=Mine, hyper=Hyper)
    def mixed(s, w, h, t):
        c = compress(w, grad(w, s.v))
        gossip(w, c)
        return Mine(x=s.x, v=gossip(w, c))

    given = {"compute": 1.0, "latency": 9.0, "bandwidth": 8.0, "size": 4.0}
    assert traffic(twice, d=100, n=4, compressor="topk:3").up_per_step == 3 * 39
    right = ((twice, 14.0), (late, 7.0), (mixed, 14.0))
    for made, expected in right:
        assert timeline(made, **given).seconds_per_step == round_seconds_by_simulation(made, **given) == expected
    monkeypatch.setattr(EventWorld, "_known", lambda self, v: ())
    assert all(timeline(made, **given).seconds_per_step < expected for made, expected in right)


class Fields(NamedTuple):
    x: Shared
    y: Shared
    u: PerWorker
    v: PerWorker


def _program(seed):
    """A random step function: five words on random values, then random fields of the next state."""

    def step(s, w, h, t):
        rng = np.random.default_rng(seed)
        shared, own = [s.x, s.y], [s.u, s.v]
        for _ in range(5):
            move, a, b = rng.integers(6), own[rng.integers(len(own))], own[rng.integers(len(own))]
            if move == 0:
                own.append(grad(w, a))
            elif move == 1:
                own.append(grad(w, shared[-1]))
            elif move == 2:
                shared.append(shared[rng.integers(len(shared))] - mean(w, a))
            elif move == 3:
                own.append(spread(w, shared[-1]) + a)
            elif move == 4:
                own.append(gossip(w, a))
            else:
                own.append(a - compress(w, b))
        return Fields(shared[-1], shared[rng.integers(len(shared))], own[-1], own[-2])

    return step


def test_random_methods(own):
    """Graph and simulation share the words' meaning, not the arithmetic: they agree on whatever is written in the words."""
    answers, rng = 0, np.random.default_rng(0)
    for seed in range(60):
        made = method(state=Fields, hyper=Hyper, name=f"random_{seed}")(_program(seed))
        costs = {"compute": 10.0 ** rng.uniform(-1, 1), "latency": 10.0 ** rng.uniform(-1, 1), "bandwidth": 8.0, "size": 4.0}
        costs |= {"bytes_share": 0.2, "encode": 0.1, "n": 4, "topology": "path"} if seed % 2 else {"bytes_share": 0.5}
        try:
            line = timeline(made, **costs, steps=1)
        except UsageError as error:
            assert "nothing sets its pace" in str(error)
            continue
        except Unsupported as error:
            assert "do not repeat" in str(error)
            continue
        answers += 1
        assert not differ(line.seconds_per_step, round_seconds_by_simulation(made, **costs)), seed
    assert answers >= 50


def test_a_formula_that_would_be_too_long_says_so():
    line = timeline("local_sgd", {"H": 300}, **COSTS)
    assert line.formula is None and "200 tasks" in line.formula_reason and "200 tasks" in str(line)
    assert line.seconds_per_step == pytest.approx(0.05 + (3.2 + 0.1) / 300, rel=RTOL)


def test_schedules_of_the_step_size_play_no_part():
    line = timeline("gd", {"gamma": lambda t: 1 / (t + 1)}, **COSTS)
    assert line.seconds_per_step == timeline("gd", **COSTS).seconds_per_step and json.loads(line.to_json())["inputs"]["hyper"] == {}


def test_coins_are_refused_with_the_way_out(own):
    @method(state=Mine, hyper=Hyper)
    def coin(s, w, h, t):
        return Mine(x=s.x - mean(w, grad(w, s.x)) if chance(w, 0.5) else s.x, v=s.v)

    with pytest.raises(Unsupported, match=r"random.*expected_time"):
        timeline(coin, **COSTS)


def test_gossip_of_increments(own):
    @method(state=Mine, hyper=Hyper)
    def choco(s, w, h, t):
        v = s.v + compress(w, spread(w, s.x) - s.v + grad(w, s.v))
        return Mine(x=s.x, v=v + gossip(w, v))

    t = traffic(choco, d=100, n=4, compressor="topk:3", topology="ring")
    assert t.up_per_step == t.down_per_step == 2 * 3200.0  # a mixture is a new dense vector, which is gossiped next time


# --- units -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (units.seconds, "50ms", 0.05),
        (units.seconds, "3us", 3e-6),
        (units.seconds, "2 h", 7200.0),
        (units.seconds, "1e-3", 1e-3),
        (units.seconds, 0, 0.0),
        (units.bits_per_second, "1Gbit/s", 1e9),
        (units.bits_per_second, "1GB/s", 8e9),
        (units.bits_per_second, "1GiB/s", 8 * 2.0**30),
        (units.bits_per_second, "100Mbitps", 1e8),
        (units.bits_per_second, "5", 5.0),
        (units.size_bytes, "400MB", 4e8),
        (units.size_bytes, "1MiB", 2.0**20),
        (units.size_bytes, "1Gbit", 1.25e8),
        (units.size_bytes, "7 bytes", 7.0),
        (units.size_bytes, 12, 12.0),
    ],
)
def test_units(read, text, expected):
    assert read(text) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (units.bits_per_second, "1Gb/s", "ambiguous"),
        (units.bits_per_second, "1Gbps", "ambiguous"),
        (units.bits_per_second, "100mb/s", "ambiguous"),
        (units.bits_per_second, "1Gbit", "must be a rate"),
        (units.bits_per_second, "0", "positive"),
        (units.bits_per_second, "-1Gbit/s", "positive"),
        (units.bits_per_second, "nan", "must be a number"),
        (units.bits_per_second, math.inf, "finite"),
        (units.size_bytes, "400Mb", "ambiguous"),
        (units.size_bytes, "400MB/s", "write it as"),
        (units.size_bytes, "lots", "must be a number"),
        (units.size_bytes, None, "must be a number"),
        (units.size_bytes, math.nan, "finite"),
        (units.seconds, "5MB", "write a time"),
        (units.seconds, "-5ms", "at least 0"),
        (units.seconds, "50 m", "write a time"),
    ],
)
def test_bad_units(read, text, message):
    with pytest.raises(UsageError, match=message):
        read(text)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bandwidth": "1Gb/s"}, "bandwidth '1Gb/s' is ambiguous"),
        ({"compute": -1}, "compute must be finite"),
        ({"compute": []}, "at least one time"),
        ({"size": 0}, "size must be finite and positive"),
        ({"bytes_share": 0.0}, "bytes_share must be in"),
        ({"bytes_share": math.nan}, "bytes_share must be in"),
        ({"bytes_share": 0.1, "compressor": "topk:3"}, "not both"),
        ({"compressor": "hard_threshold:1"}, "depend on the data"),
        ({"compressor": "topk:3", "size": 10}, "multiple of 4 bytes"),
        ({"compressor": "tpk:3"}, "did you mean 'topk'"),
        ({"link": "fif"}, "did you mean 'fifo'"),
        ({"steps": 0}, "steps must be a whole number"),
        ({"hyper": {"tua": 3}}, "did you mean 'tau'"),
        ({"hyper": {"tau": -1}}, "at least 0"),
        ({"hyper": {"tau": 10**6}}, "at most 4096"),
    ],
)
def test_bad_questions(change, message):
    given = {"hyper": {"tau": 2}, **COSTS, **change}
    with pytest.raises(UsageError, match=None) as error:
        timeline("dd_ef_sgd", **given)
    assert message in str(error.value)


def test_further_refusals():
    with pytest.raises(Unsupported, match="max-plus"):
        round_seconds_by_simulation("gd", **COSTS, link="fair")
    with pytest.raises(Unsupported, match="plays one of them"):
        timeline("gd", **COSTS, link="fair", collective="ring", n=4)
    with pytest.raises(UsageError, match="schedule"):
        timeline("local_sgd", {"H": [1, 2]}, **COSTS)
    with pytest.raises(UsageError, match="needs a topology"):
        timeline("gossip_sgd", **COSTS | {"compute": [1.0, 2.0]})
    with pytest.raises(UsageError, match="needs the number of workers"):
        timeline("gossip_sgd", **COSTS, topology="ring")
    with pytest.raises(UsageError, match="holds 2 times, but n = 3"):
        timeline("gossip_sgd", **COSTS | {"compute": [1.0, 2.0]}, topology="ring", n=3)
    with pytest.raises(UsageError, match="has 3 workers, but n = 2"):
        timeline("gossip_sgd", **COSTS | {"compute": [1.0, 2.0]}, topology=[(0, 1), (1, 2)])
    with pytest.raises(UsageError, match="nothing sets its pace"):
        EventGraph([], None).pace()


# --- traffic ---------------------------------------------------------------------------------------------------------

COMPRESSORS = ["identity", "topk(k=3)", "randk(k=3)", "randk(k=3, scaled=true)", "scaled_sign", "qsgd(levels=4)", "hard_threshold(lam=0.5)"]


@pytest.mark.parametrize("name", sorted(shipped()))
@pytest.mark.parametrize("spec", COMPRESSORS)
def test_traffic_of_every_method_and_compressor(name, spec):
    try:
        t = traffic(name, needed(name), d=20, n=4, compressor=spec, topology="ring")
    except Unsupported as error:
        assert len(str(error)) > 20
        return
    if t.depends_on_data:
        assert spec.startswith("hard") and "compress" in words_of(name) and t.up_per_step is None and "depends on the data" in str(t)
    else:
        assert t.up_per_round > 0 and t.up_per_round == t.up_per_step * t.steps_per_round
    assert json.loads(t.to_json())["method"] == name and "<table>" in t._repr_html_()


@pytest.mark.parametrize("name", ["cgd", "ef_sgd", "ef21", "dd_ef_sgd"])
@pytest.mark.parametrize("spec", COMPRESSORS)
def test_traffic_against_a_run(name, spec):
    """The bits that the array engine counts, message by message."""
    from verify_rates.problems import get_problem
    from verify_rates.solvers.engine.run import simulate

    problem = get_problem("quadratic")
    hyper = {"gamma": 0.01} | ({"tau": 2} if name == "dd_ef_sgd" else {})
    run = simulate(name, problem, hyper, steps=6, compressor=spec, engine="numpy", measures=("distance",), x0=np.ones(problem.d))
    t = traffic(name, hyper, d=problem.d, n=problem.n, compressor=spec)
    if t.depends_on_data:
        assert 0 <= run.bits[0, -1] <= 6 * problem.d * (32 + (problem.d - 1).bit_length())
    else:
        assert run.bits[0, -1] == 6 * t.up_per_step


def test_traffic_by_hand():
    assert traffic("gd", d=10, n=4).up_per_step == 320 and traffic("gd", d=10, n=4, dtype_bits=16).up_per_step == 160
    local = traffic("local_sgd", {"H": 5}, d=10, n=4)
    assert (local.up_per_round, local.up_per_step, local.steps_per_round) == (320, 64, 5)
    assert traffic("acco", d=10, n=4).up_per_step == 640
    assert traffic("gossip_sgd", d=10, n=4, topology="star").up_per_step == 320 * 6 / 4
    small = traffic("ef_sgd", d=1000, n=4, compressor="topk:2")
    assert small.up_per_step == 2 * 42 and small.down_per_step == 3 * 2 * 42  # three other messages are less than the average
    assert traffic("ef_sgd", d=10, n=4, compressor="topk:9").down_per_step == 320


def test_traffic_is_monotone():
    for name in ("cgd", "ef_sgd", "ef21", "dd_ef_sgd"):
        ups = [traffic(name, d=50, n=4, compressor=f"topk:{k}") for k in (1, 2, 10, 40, 50)]
        assert all(a.up_per_step < b.up_per_step and a.down_per_step <= b.down_per_step for a, b in itertools.pairwise(ups))
        assert all(
            traffic(name, {"tau": tau}, d=50, n=4, compressor="topk:3").up_per_step == 3 * 38 for tau in range(4) if name == "dd_ef_sgd"
        )
    rounds = [traffic("local_sgd", {"H": H}, d=50, n=4).up_per_step for H in (1, 2, 4, 8)]
    assert all(a == 2 * b for a, b in itertools.pairwise(rounds))


def test_ignored_compression_is_seen(monkeypatch):
    """A mean that forgets what was sent before, or that sends whole vectors, changes the numbers."""
    right = traffic("ef21", d=50, n=4, compressor="topk:3").up_per_step
    monkeypatch.setattr(EventWorld, "compress", lambda self, v: self._fresh(v.ready))
    assert traffic("ef21", d=50, n=4, compressor="topk:3").up_per_step != right


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"d": 0}, "d must be a whole number"),
        ({"n": 1.5}, "n must be a whole number"),
        ({"dtype_bits": 0}, "dtype_bits must be"),
        ({"compressor": "topk:11"}, "at most the dimension d = 10"),
        ({"method": "ef_sdg"}, "did you mean 'ef_sgd'"),
        ({"method": "gossip_sgd"}, "needs a topology"),
    ],
)
def test_bad_traffic(given, message):
    with pytest.raises(UsageError, match=message):
        traffic(**{"method": "ef_sgd", "d": 10, "n": 4} | given)
