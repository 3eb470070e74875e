"""The closed loop: with a fixed choice it is the catalogue's method and time line; on a measured trace it beats every fixed choice."""

from pathlib import Path

import numpy as np
import pytest

from verify_rates import simulate
from verify_rates.problems import get_problem
from verify_rates.solvers.method import UsageError
from verify_rates.theory.closed_loop import compare, deco, fixed, run_loop
from verify_rates.theory.networks import Trace, along, markov, read_trace

TRACE = Path(__file__).parents[2] / "shared" / "data" / "traces" / "5g_static.csv"
VARYING = markov(["10bit/s", "200bit/s"], "5s", 50, latency="2s")


@pytest.fixture(scope="module")
def problem():
    return get_problem("logistic", data="breast_cancer", n=4, lam=0.05)


@pytest.mark.parametrize("tau", [0, 1, 4])
def test_a_fixed_choice_is_dd_ef_sgd(problem, tau):
    gamma, steps = 0.1 / problem.constants.L, 30
    done = run_loop(problem, fixed(tau, 5 / problem.d), VARYING, gamma=gamma, steps=steps, compute=1.0, size=100.0)
    known = simulate("dd_ef_sgd", problem, {"gamma": gamma, "tau": tau}, steps=steps, compressor="topk(k=5)", measures=("function_gap",))
    assert np.allclose(done.gap, np.ravel(known.values["function_gap"])[1:], rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("tau", [0, 1, 4])
def test_its_seconds_are_those_of_the_time_line(problem, tau):
    share, steps = 5 / problem.d, 30
    done = run_loop(problem, fixed(tau, share), VARYING, gamma=1e-3, steps=steps, compute=1.0, size=100.0)
    events = along("dd_ef_sgd", {"tau": tau}, VARYING, steps=steps, compute=1.0, size=100.0, bytes_share=share)
    arrived = [e.arrives for e in events if e.word == "mean"]
    computed = [e.end for e in events if e.word == "grad"]
    assert np.allclose(done.seconds, [max(computed[t], arrived[t - tau] if t >= tau else 0) for t in range(steps)], rtol=1e-12)


def test_decos_rule_follows_the_link():
    """papers/deco.md: at 1 Gbit/s and 1.19 s the additive objective takes (7, 0.5); a slower link makes it compress more."""
    policy = deco(50e6, 0.2, every=5)
    assert policy(0, 1e9, 1.19) == (7, pytest.approx(0.5))
    assert policy(1, 1e8, 1.19) == (7, pytest.approx(0.5))  # planned anew every fifth step only
    assert policy(5, 1e8, 1.19)[1] == pytest.approx(0.05)


def test_the_closed_loop_beats_every_fixed_choice_on_a_measured_trace(problem):
    if not TRACE.exists():
        pytest.skip("the measured traces are not beside this checkout")
    trace = read_trace(TRACE)
    F0 = problem.value(np.zeros(problem.d)) - problem.constants.f_star[0]
    given = {"gamma": 0.1 / problem.constants.L, "steps": 120, "compute": 1.0}
    found = compare(problem, trace, target=0.02 * F0, size=0.5 * trace.mean_bandwidth / 8, **given)
    loops = {k: v for k, v in found.items() if k.startswith("closed loop")}
    others = min(v for k, v in found.items() if k not in loops)
    assert min(loops.values()) < 0.9 * others
    # and where compressing much costs few steps it does not: there the rule spends bandwidth that a fixed choice saves
    low = compare(problem, trace, target=0.001 * F0, size=8 * trace.mean_bandwidth / 8, **given)
    assert min(v for k, v in low.items() if k.startswith("closed loop")) > min(v for k, v in low.items() if not k.startswith("closed loop"))


def test_bad_input_is_one_sentence(problem):
    given = {"gamma": 0.1, "steps": 3, "compute": 1.0, "size": 8.0}
    link = Trace((0,), (8.0,), (0.0,), 1)
    for make in (
        lambda: run_loop(get_problem("quadratic", sigma2=1.0), fixed(0, 1.0), link, **given),
        lambda: run_loop(problem, fixed(0, 1.0), link, **{**given, "steps": 0}),
        lambda: run_loop(problem, fixed(0, 1.0), link, **{**given, "gamma": 0.0}),
        lambda: deco(1.0, 1.0, 0),
        lambda: deco(1.0, 1.0, 5, "phi_C"),
    ):
        with pytest.raises(UsageError) as told:
            make()
        assert "\n" not in str(told.value)
