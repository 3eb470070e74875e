"""Chained potentials against closed forms, against worst cases of few steps, and against broken chains."""

from __future__ import annotations

import dataclasses
import json
import math
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner

from verify_rates.cli import main
from verify_rates.solvers.method import Method, UsageError
from verify_rates.solvers.words import Shared, Unsupported, chance, gap, grad, mean
from verify_rates.theory import potentials
from verify_rates.theory.potentials import potential
from verify_rates.theory.worst_case.solve import worst_case

RTOL = 1e-6  # what callers are promised where a chain is tight
ROUNDING = 1e-12  # of a formula evaluated in double precision


class Two(NamedTuple):
    x: Shared
    y: Shared


class Triple(NamedTuple):
    gamma: float
    a: float
    b: float


def _ogm(s, w, h, t):
    x = s.y - h.gamma * mean(w, grad(w, s.y))
    return Two(x=x, y=x + h.a * (x - s.x) + h.b * (x - s.y))


def at_y(s, w, h):
    return gap(w, s.y)


OGM = Method("ogm", _ogm, Two, Triple, ("x", "y"))


def thetas(N):
    made = [1.0]
    for i in range(N):
        made.append((1 + math.sqrt(1 + (4 if i < N - 1 else 8) * made[-1] ** 2)) / 2)
    return made


def ogm(N):
    th = thetas(N)
    hyper = {"gamma": 1.0, "a": [(th[i] - 1) / th[i + 1] for i in range(N)], "b": [th[i] / th[i + 1] for i in range(N)]}
    return potential(OGM, hyper, steps=N, n=1, measure=at_y), 1 / (2 * th[-1] ** 2)


@cache
def gd(N=20, n="any"):
    return potential("gd", {"gamma": 1.0}, steps=N, n=n)


def assert_tight(found, truth):
    assert found.ok and found.rigorous, str(found)
    assert truth * (1 - ROUNDING) <= found.upper <= truth * (1 + RTOL), (found.upper, truth)


@pytest.mark.parametrize(("N", "n"), [(2, 1), (20, "any"), (200, 1)])
def test_gradient_descent(N, n):
    """Drori, Teboulle 2014, Theorem 3.1: L/(4N+2)."""
    assert_tight(gd(N, n), 1 / (4 * N + 2))


@pytest.mark.parametrize("gamma", [0.3, 1.4])
def test_short_and_longer_steps(gamma):
    truth = max(1 / (2 * (2 * 10 * gamma + 1)), (1 - gamma) ** 20 / 2)
    assert_tight(potential("gd", {"gamma": gamma}, steps=10, n=1), truth)


@pytest.mark.parametrize("N", [20, 200])
def test_optimized_gradient_method(N):
    """Kim, Fessler 2016, Theorem 2: L/(2 theta_N^2)."""
    assert_tight(*ogm(N))


@pytest.mark.parametrize(("L", "radius2"), [(1e6, 1e-4), (1e-6, 1e4)])
def test_units(L, radius2):
    assert_tight(potential("gd", {"gamma": 1 / L}, steps=20, L=L, n=1, initial_value=radius2), L * radius2 / 82)


@pytest.mark.parametrize("take", ["last", "mean"])
@pytest.mark.parametrize("N", [2, 4])
def test_error_feedback_is_bounded(take, N):
    problem = {"steps": N, "compressor": {"delta": 0.5}, "take": take}
    exact, found = worst_case("ef_sgd", {"gamma": 0.2}, **problem), potential("ef_sgd", {"gamma": 0.2}, **problem)
    assert found.rigorous and found.upper >= exact.lower and found.upper <= 2 * exact.upper, (found.upper, exact.upper)


def test_error_feedback_over_a_long_horizon():
    long, short = (potential("ef_sgd", {"gamma": 0.2}, steps=N, compressor={"delta": 0.5}, take="mean") for N in (200, 50))
    assert long.rigorous and short.rigorous and 3.8 < short.upper / long.upper < 4.2, "of order 1/N"


def test_potentials_are_data_and_measures():
    """A link solved by the other module: the V after is at most the V before."""
    found = gd()
    k = 7
    link = worst_case("gd", {"gamma": 1.0}, steps=1, start="free", initial=found.potentials[k], measure=found.potentials[k + 1])
    assert len(found.potentials) == 19 and link.rigorous and link.upper <= 1 + RTOL, str(link)
    plain = json.loads(found.to_json())
    assert plain["rigorous"] and len(plain["potentials"]) == 19 and plain["statement"]["steps"] == 20
    with pytest.raises(TypeError, match="upper"):
        float(found)


def test_a_broken_chain_is_refused(monkeypatch):
    """A bound below the truth, or a potential changed by a millionth, is never called proved."""
    solved = potentials._solved

    def lower_rate(chain, margin):
        found = solved(chain, margin)
        return dataclasses.replace(found, tau=found.tau * (1 - 1e-5))

    def changed(chain, margin):
        found = solved(chain, margin)
        P = list(found.P)
        P[5] = P[5] * (1 + 1e-5)
        return dataclasses.replace(found, P=tuple(P))

    for broken in (lower_rate, changed):
        monkeypatch.setattr(potentials, "_solved", broken)
        found = potential("gd", {"gamma": 1.0}, steps=12, n=1)
        assert found.status == "not verified" and found.upper == math.inf and not found.rigorous


def test_schedules_and_time_are_read():
    """A step that reads t itself is assembled anew for every t, and agrees with a schedule."""

    class One(NamedTuple):
        x: Shared

    class Step(NamedTuple):
        gamma: float

    def late(s, w, h, t):
        return One(x=s.x - h.gamma * (1 if t % 2 else 0.5) * mean(w, grad(w, s.x)))

    by_time = potential(Method("late", late, One, Step), {"gamma": 1.0}, steps=6, n=1)
    by_schedule = potential("gd", {"gamma": lambda t: 1.0 if t % 2 else 0.5}, steps=6, n=1)
    assert by_time.rigorous and abs(by_time.upper / by_schedule.upper - 1) <= RTOL
    exact = worst_case("gd", {"gamma": lambda t: 1.0 if t % 2 else 0.5}, steps=6, n=1)
    assert by_schedule.upper >= exact.lower and by_schedule.upper <= exact.upper * (1 + RTOL)


def test_divergence_is_bounded_by_what_it_is():
    assert_tight(potential("gd", {"gamma": 2.5}, steps=4, n=1), 1.5**8 / 2)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"steps": 1}, "from 2"),
        ({"steps": 2.5}, "whole"),
        ({"take": "best"}, "take"),
        ({"zeta2_star": 1.0}, "zeta2_star"),
        ({"initial_value": 0}, "positive"),
    ],
)
def test_bad_input(change, sentence):
    with pytest.raises(UsageError, match=sentence):
        potential("gd", {"gamma": 1.0}, **{"steps": 3, "n": 1} | change)


def test_settings_without_potentials():
    class One(NamedTuple):
        x: Shared

    class Step(NamedTuple):
        gamma: float

    def coin(s, w, h, t):
        return One(x=s.x - h.gamma * mean(w, grad(w, s.x)) if chance(w, 0.5) else s.x)

    with pytest.raises(Unsupported, match="chance"):
        potential(Method("coin", coin, One, Step), {"gamma": 1.0}, steps=3)
    with pytest.raises(Unsupported, match="minimiser"):
        potential("gd", {"gamma": 1.0}, steps=3, functions="smooth")
    with pytest.raises(Unsupported, match="absolute"):
        potential("ef_sgd", {"gamma": 0.1}, steps=3, compressor={"Delta2": 1.0})


def test_command():
    out = CliRunner().invoke(main, ["contraction", "gd", "gamma=1/L", "--n", "1", "--horizon", "10", "--json"])
    assert out.exit_code == 0 and abs(json.loads(out.output)["upper"] * 42 - 1) <= RTOL
    text = CliRunner().invoke(main, ["contraction", "gd", "gamma=1/L", "--n", "1", "--horizon", "10"]).output
    assert "after 10 steps" in text and np.isclose(float(text.split("<= ")[1].split()[0]), 1 / 42)
