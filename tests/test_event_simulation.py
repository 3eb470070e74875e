"""Rounds of tasks played by a compiled loop and in fractions, beside the step function with clocks, which knows no graph of tasks."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from shipped import shipped
from test_timeline import _program, needed

from verify_rates.solvers.method import Method, UsageError
from verify_rates.solvers.words import PerWorker, Shared, Unsupported
from verify_rates.theory import units
from verify_rates.theory.timeline import replay, round_seconds_by_simulation, timeline
from verify_rates.theory.timeline.cycles import cycle_ratio
from verify_rates.theory.timeline.events import GraphWorld, constants
from verify_rates.theory.timeline.simulate import run

RTOL = 1e-9  # what the project promises
STEPS = 60


class Fields(NamedTuple):
    x: Shared
    y: Shared
    u: PerWorker
    v: PerWorker


class Hyper(NamedTuple):
    gamma: float


RANDOM = [Method(f"random_{seed}", _program(seed), Fields, Hyper) for seed in range(30)]


def question(rng, exact=False):
    """Random costs; as fractions of small numbers where asked."""

    def draw():
        return Fraction(int(rng.integers(1, 40)), int(rng.integers(1, 12))) if exact else float(10.0 ** rng.uniform(-1, 1))

    share = Fraction(int(rng.integers(1, 8)), 8) if exact else float(rng.uniform(0.05, 1))
    costs = {"compute": [draw() for _ in range(3)], "latency": draw(), "bandwidth": draw(), "size": 4, "bytes_share": share}
    return costs | {"encode": draw() / 4, "topology": "path"}


def lines(methods, rng, **options):
    """Every method that has a time line, with its question."""
    for m in methods:
        hyper = needed(m.name) if m.name in shipped() else {}
        tau = {"tau": int(rng.integers(4))} if "tau" in m.hyper._fields else {}
        given = question(rng, **options)
        try:
            yield m, hyper | tau, given, timeline(m, hyper | tau, **given, steps=1)
        except Unsupported:
            continue
        except UsageError as error:
            assert "nothing sets its pace" in str(error)


# --- the compiled loop -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled_from", [0, 10**9], ids=["compiled", "interpreted"])
def test_events_are_those_of_the_step_function_bit_for_bit(monkeypatch, compiled_from):
    monkeypatch.setattr(replay, "COMPILED_FROM", compiled_from)
    monkeypatch.setattr(replay, "LONG", 0)
    rng, seen = np.random.default_rng(0), 0
    for m, hyper, given, line in lines([*shipped().values(), *RANDOM], rng):
        costs, workers = line.graph.costs, line.inputs["workers"]
        neighbours = [[j for j in (i - 1, i + 1) if 0 <= j < workers] for i in range(workers)]
        arguments = (m, constants(m, hyper), STEPS, costs, neighbours, True)
        assert replay.run(*arguments) == run(*arguments), (m.name, given)
        seen += 1
    assert seen >= 60


def test_a_forgotten_edge_is_seen(monkeypatch):
    monkeypatch.setattr(replay, "LONG", 0)
    m = shipped()["dd_ef_sgd"]
    line = timeline(m, {"tau": 2}, compute=1.0, latency=2.0, bandwidth=8.0, size=1.0)
    arguments = (m, constants(m, {"tau": 2}), STEPS, line.graph.costs)
    right = run(*arguments)
    assert replay.run(*arguments) == right
    whole = replay.pattern

    def forgetful(tasks, costs):
        return whole([t._replace(after=frozenset(list(t.after)[1:])) for t in tasks], costs)

    monkeypatch.setattr(replay, "pattern", forgetful)
    assert replay.run(*arguments) != right


def test_both_engines_agree():
    rng, seen = np.random.default_rng(1), 0
    for m, hyper, given, line in lines([*shipped().values(), *RANDOM[:12]], rng):
        tasks, steps = (round_seconds_by_simulation(m, hyper, engine=e, **given) for e in ("tasks", "steps"))
        assert tasks == pytest.approx(steps, rel=RTOL) and tasks == pytest.approx(line.seconds_per_round, rel=RTOL), m.name
        seen += 1
    assert seen >= 50
    with pytest.raises(UsageError, match="did you mean 'tasks'"):
        round_seconds_by_simulation("gd", engine="task", compute=1, latency=1, bandwidth=1, size=1)


def test_streams_that_nothing_ties_together():
    """A link that falls behind for ever has a pace of its own; the largest one counts."""
    line = timeline("lasgd", {"H": 1}, compute=1.0, latency=0.0, bandwidth=1.0, size=1.0)
    assert replay.pace(line.graph.pattern()) == line.seconds_per_round == 8.0


def test_more_rounds_continue_the_first_ones():
    line = timeline("acco", compute=1.0, latency=0.3, bandwidth=8.0, size=2.0)
    p = line.graph.pattern()
    at_once, first = replay.play(p, 300), replay.play(p, 100)
    assert np.array_equal(at_once, np.concatenate([first, replay.play(p, 200, first)]))


# --- fractions -------------------------------------------------------------------------------------------------------


def test_fractions_agree_exactly():
    rng, seen = np.random.default_rng(2), 0
    for m, hyper, given, _ in lines([*shipped().values(), *RANDOM[:4]], rng, exact=True):
        tasks, steps = (round_seconds_by_simulation(m, hyper, engine=e, exact=True, **given) for e in ("tasks", "steps"))
        ratio = exact_pace(m, hyper, given)
        assert isinstance(tasks, Fraction) and tasks == steps == ratio, m.name
        seen += 1
    assert seen >= 45


def exact_pace(m, hyper, given):
    from verify_rates.theory.timeline.events import periodic_tasks
    from verify_rates.theory.timeline.line import EventGraph, asked

    found, h, _, neighbours, costs, _ = asked(m, hyper, exact=True, **given)
    return EventGraph(periodic_tasks(found, h, neighbours, True), costs).pace().ratio


def test_fractions_see_what_floats_do_not():
    given = {"latency": 0, "bandwidth": 8, "size": 1}
    tiny = Fraction(1, 10**30)
    assert round_seconds_by_simulation("gd", compute=1 + tiny, exact=True, **given) - 2 == tiny
    assert round_seconds_by_simulation("gd", compute=1 + tiny, **given) == 2.0


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (units.seconds, "0.1", Fraction(1, 10)),
        (units.seconds, "50us", Fraction(1, 20000)),
        (units.bits_per_second, "1.5GiB/s", Fraction(12 * 2**30)),
        (units.size_bytes, "1bit", Fraction(1, 8)),
        (units.size_bytes, 0.1, Fraction(0.1)),
    ],
)
def test_quantities_as_fractions(read, text, expected):
    assert read(text, exact=True) == expected and read(text) == float(expected)


@pytest.mark.parametrize("text", ["1e99999999999", "1e-99999999999", 10**400])
def test_absurd_numbers_end_at_once(text):
    with pytest.raises(UsageError):
        units.seconds(text)


def test_cycle_ratios_in_fractions():
    """Ratios so close that floats cannot tell them apart, in random order; and Newton's iteration from a bad cycle."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        times = [Fraction(1, 3) + Fraction(int(k), 10**25) for k in rng.permutation(8)]
        found = cycle_ratio(8, [*range(8)], [*range(8)], times, [1] * 8, exact=True)
        assert found.ratio == found.upper == max(times) and times[found.edges[0]] == found.ratio


@pytest.mark.parametrize("seed", range(20))
def test_cycle_ratios_in_fractions_on_random_graphs(seed):
    from test_cycles import draw, enumerated

    rng, compared = np.random.default_rng(seed), 0
    for _ in range(10):
        count, pairs, times, tokens = draw(rng)
        times = [Fraction(w, 7) + Fraction(int(rng.integers(100)), 10**20) for w in times]
        truth = enumerated(pairs, times, tokens)
        if isinstance(truth, Fraction):
            found = cycle_ratio(count, [a for a, _ in pairs], [b for _, b in pairs], times, tokens, exact=True)
            assert found.ratio == truth == sum(times[e] for e in found.edges) / Fraction(sum(tokens[e] for e in found.edges))
            compared += 1
    assert compared


def test_a_dropped_dependency_is_seen_in_fractions(monkeypatch):
    given = question(np.random.default_rng(4), exact=True)
    right = round_seconds_by_simulation("gd", exact=True, **given)
    monkeypatch.setattr(GraphWorld, "grad", lambda self, x: GraphWorld.__mro__[1].grad(self, type(x)(self, ({},) * len(x.ready), x.shared)))
    assert round_seconds_by_simulation("gd", exact=True, **given) < right
    assert round_seconds_by_simulation("gd", engine="steps", exact=True, **given) == right
