"""Compute times that vary: the pace agrees with the means of maxima where these are known, and never falls below that of the mean."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import integrate, stats

from verify_rates.cli import main
from verify_rates.solvers.method import UsageError
from verify_rates.theory import stragglers as module
from verify_rates.theory.measured import Profile
from verify_rates.theory.stragglers import durations, stragglers
from verify_rates.theory.timeline import timeline

FREE = {"latency": 0, "bandwidth": 1e12, "size": 1e-9}  # a link that costs nothing, to 1e-20 s
SIGMAS = 5.0  # standard errors: Student's law with 11 degrees of freedom exceeds them with probability 4e-4, and seeds are fixed
RUNS = {"steps": 300, "seeds": 12}


def close(found, value):
    return abs(found.seconds_per_step - value) <= SIGMAS * found.standard_error


def mean_of_largest(distribution, n):
    return integrate.quad(lambda x: 1 - distribution.cdf(x) ** n, 0, np.inf)[0]


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_synchronous_step_waits_for_the_slowest(n):
    found = stragglers("gd", compute="exponential(mean=2s)", n=n, **FREE, **RUNS)
    harmonic = sum(1 / k for k in range(1, n + 1))
    assert close(found, 2 * harmonic) and found.at_mean == pytest.approx(2) and found.slowdown == pytest.approx(found.seconds_per_step / 2)
    assert n == 1 or not close(found, 2.0)


@pytest.mark.parametrize("H", [2, 8])
def test_local_steps_wait_for_the_slowest_sum(H):
    found = stragglers("local_sgd", {"H": H}, compute="exponential(mean=1s)", n=4, **FREE, **RUNS)
    assert close(found, mean_of_largest(stats.gamma(H), 4) / H)


def test_staleness_hides_what_varies_and_no_more():
    given = {"compute": "exponential(mean=1s)", "n": 4, **FREE, **RUNS}
    paces = [stragglers("dd_ef_sgd", {"tau": tau}, **given).seconds_per_step for tau in (0, 1, 4, 16)]
    assert paces == sorted(paces, reverse=True) and close(stragglers("gd", **given), paces[0]) and 1 < paces[-1] < 1.3


def test_measured_times_are_drawn_with_repetition():
    found = stragglers("gd", compute=[1.0, 3.0], n=2, **FREE, **RUNS)
    assert close(found, 0.25 * 1 + 0.75 * 3) and found.at_mean == pytest.approx(2)
    mine = stragglers("gd", compute=Profile({("0", "a"): (1.0, 1.0), ("1", "a"): (5.0,)}, "", ""), **FREE, **RUNS)
    assert (mine.workers, mine.seconds_per_step) == (2, pytest.approx(5))  # each worker keeps its own
    pooled = stragglers("gd", compute=Profile({("0", "a"): (1.0, 3.0)}, "", ""), n=2, **FREE, **RUNS)
    assert pooled.seconds_per_step == found.seconds_per_step


@pytest.mark.parametrize("method", ["gd", "ef_sgd", "dd_ef_sgd", "local_sgd", "acco", "gossip_sgd"])
def test_times_that_do_not_vary_are_the_time_line(method):
    hyper = {"dd_ef_sgd": {"tau": 2}, "local_sgd": {"H": 3}}.get(method, {})
    given = {"latency": 0.3, "bandwidth": 1e6, "size": 4e4, "topology": "ring" if method == "gossip_sgd" else None}
    found = stragglers(method, hyper, compute="uniform(low=200ms, high=200ms)", n=4, steps=240, seeds=2, **given)
    line = timeline(method, hyper, compute=[0.2] * 4, **given)
    assert found.at_mean == pytest.approx(line.seconds_per_step, rel=1e-9)
    assert found.seconds_per_step == pytest.approx(line.seconds_per_step, rel=1e-9) and found.standard_error < 1e-12


def test_what_varies_never_gains():
    """Jensen: a time line is convex in its times."""
    rng = np.random.default_rng(0)
    for _ in range(6):
        method, hyper = [("gd", {}), ("dd_ef_sgd", {"tau": int(rng.integers(4))}), ("local_sgd", {"H": int(rng.integers(1, 5))})][
            rng.integers(3)
        ]
        link = {"latency": float(rng.uniform(0, 1)), "bandwidth": 1e6, "size": float(rng.uniform(1e4, 2e5))}
        found = stragglers(method, hyper, compute=f"lognormal(mean=300ms, spread={rng.uniform(0.1, 1)})", n=3, steps=100, seeds=6, **link)
        assert found.seconds_per_step >= found.at_mean - SIGMAS * found.standard_error


def test_workers_and_runs_draw_for_themselves(monkeypatch):
    given = {"compute": "exponential(mean=1s)", "n": 4, **FREE, "steps": 50, "seeds": 3}
    assert stragglers("gd", **given) == stragglers("gd", **given) != stragglers("gd", seed=1, **given)
    monkeypatch.setattr(np.random, "default_rng", lambda s: np.random.Generator(np.random.PCG64(0)))  # all alike: nobody waits
    same = stragglers("gd", **given)
    assert same.standard_error == 0 and same.slowdown < 1.5


@pytest.mark.parametrize(
    ("spec", "mean"),
    [("exponential(mean=2s, least=1s)", 2), ("lognormal(mean=2s, spread=0.5)", 2), ("uniform(low=1s, high=3s)", 2), ([1, 2, 3], 2)],
)
def test_distributions_have_the_mean_they_say(spec, mean):
    made = durations(spec)
    values = made.draw(np.random.default_rng(0), 40_000)
    assert made.mean == mean and abs(values.mean() - mean) < SIGMAS * values.std() / math.sqrt(len(values)) and values.min() >= 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"compute": "exponental(mean=1s)"}, "did you mean 'exponential'"),
        ({"compute": "exponential(1s)"}, r"write exponential\(mean=..\)"),
        ({"compute": "exponential(mean=1s, least=2s)"}, "below the least time"),
        ({"compute": "lognormal(mean=1s, sprad=1)"}, "did you mean 'spread'"),
        ({"compute": "lognormal(mean=1s, spread=nan)"}, "spread must be a finite number"),
        ({"compute": "uniform(low=2s, high=1s)"}, "below the least time"),
        ({"compute": []}, "at least one compute time"),
        ({"compute": [1.0, -1.0]}, "at least 0"),
        ({"n": None}, "needs their number n"),
        ({"n": 0}, "n must be a whole number"),
        ({"compute": [[1.0], [2.0]]}, "says 2 workers, but n = 3"),
        ({"steps": 1}, "steps must be"),
        ({"seeds": 1}, "seeds must be"),
        ({"n": 10**6}, "more than 20000000 gradients"),
        ({"method": "gossip_sgd"}, "needs a topology"),
    ],
)
def test_bad_input_is_one_sentence(given, words):
    with pytest.raises(UsageError, match=words) as told:
        stragglers(**{"method": "gd", "compute": "exponential(mean=1s)", "n": 3, **FREE, **given})
    assert "\n" not in str(told.value)


def test_the_command(tmp_path):
    given = ["timeline", "dd_ef_sgd", "tau=1", "--compute", "1s", "--latency", "0.1", "--bandwidth", "1Gbit/s", "--size", "1MB"]
    done = CliRunner().invoke(main, [*given, "--stragglers", "exponential(mean=1s, least=0.5s)", "--workers", "4", "--json"])
    found = json.loads(done.stdout)
    known = stragglers("dd_ef_sgd", {"tau": 1}, compute="exponential(mean=1s, least=0.5s)", n=4, latency=0.1, bandwidth=1e9, size=1e6)
    assert done.exit_code == 0 and found["stragglers"]["seconds_per_step"] == known.seconds_per_step and found["seconds_per_step"] >= 1
    file = tmp_path / "p.csv"
    file.write_text("worker,seconds\n0,1\n0,3\n1,2\n")
    told = CliRunner().invoke(main, [*given, "--stragglers", f"profile:{file}"]).stdout
    assert "2 workers with one of 2 measured times; one of 1 measured times" in told
    assert CliRunner().invoke(main, [*given, "--stragglers", "exponential(mean=1s)"]).exit_code == 2  # how many?
    assert module.KINDS.keys() == {"exponential", "lognormal", "uniform", "pareto", "shifted_exponential"}


# --- distributions as compute times of a time line --------------------------------------------------------------------


def test_a_time_line_of_distributions_waits_for_the_slowest_of_n():
    """H_n times the mean of exponential times, and the shift; the interval is Student's."""
    given = {"latency": 0.5, "bandwidth": 8, "size": 1}
    for n, harmonic in ((2, 1.5), (4, 25 / 12)):
        found = timeline("gd", compute="exponential(mean=2s)", n=n, steps=400, **given)
        assert close(found, 2 * harmonic + 1.5) and not close(found, 2 + 1.5)
        shifted = timeline("gd", compute="shifted_exponential(mean=2s, shift=1.5s)", n=n, steps=400, **given)
        assert close(shifted, 1.5 + 0.5 * harmonic + 1.5)
        low, high = found.interval
        wide = stats.t.ppf(0.975, found.seeds - 1) * found.standard_error
        assert (low, high) == pytest.approx((found.seconds_per_step - wide, found.seconds_per_step + wide))
    assert found.formula is None and "no cycle sets the pace" in found.formula_reason and "no cycle sets the pace" in str(found)


def test_an_average_by_a_ring_among_workers_whose_times_vary():
    found = timeline("gd", compute="exponential(mean=2s)", n=4, latency=0.5, bandwidth=8, size=1, collective="ring")
    assert close(found, 2 * 25 / 12 + 6 * (0.5 + 0.25))


def test_a_pareto_time_has_its_mean_and_no_interval_without_a_variance():
    found = timeline("gd", compute="pareto(least=1s, tail=4)", n=3, **FREE)
    assert close(found, mean_of_largest(stats.pareto(4), 3)) and found.interval is not None
    assert durations("pareto(least=3s, tail=1.5)").mean == pytest.approx(9)
    heavy = timeline("gd", compute="pareto(least=1s, tail=1.5)", n=3, **FREE)
    assert heavy.interval is None and "none" in str(heavy)


def test_other_names_of_parameters_and_the_same_bits():
    given = {"n": 2, **FREE, "steps": 50}
    one = timeline("gd", compute="lognormal(mean=1s, sigma=0.3)", **given)
    assert (
        one
        == timeline("gd", compute="lognormal(mean=1s, spread=0.3)", **given)
        == stragglers("gd", compute=["lognormal(mean=1s, spread=0.3)"] * 2, **{k: v for k, v in given.items() if k != "n"})
    )
    mixed = timeline("gd", compute=["1s", "uniform(low=2s, high=2s)"], **FREE)
    assert mixed.seconds_per_step == pytest.approx(2) and mixed.told[0] == "1 s"


@pytest.mark.parametrize(
    ("compute", "word"),
    [
        ("lognormal(mean=1s)", "write lognormal"),
        ("lognormal(mean=1s, sigma=0.1, spread=0.2)", "under two names"),
        ("pareto(least=1s, tail=1)", "must exceed 1"),
        ("parelo(least=1s, tail=3)", "did you mean 'pareto'"),
        ("uniform(low=1s, sigma=2)", "parameter of uniform"),
        ("exponential(mean=__import__('os'))", "number with its unit"),
    ],
)
def test_distributions_are_parsed_and_never_evaluated(compute, word):
    with pytest.raises(UsageError, match=word):
        timeline("gd", compute=compute, n=2, **FREE)
    with pytest.raises(UsageError, match="needs their number n"):
        timeline("gd", compute="exponential(mean=1s)", **FREE)


def test_the_command_takes_a_distribution():
    given = ["timeline", "gd", "--latency", "0", "--bandwidth", "1Gbit/s", "--size", "1", "--compute", "lognormal(mean=1s, sigma=0.3)"]
    found = CliRunner().invoke(main, [*given, "--workers", "3", "--steps", "40", "--json"])
    assert json.loads(found.stdout)["interval"][0] > 1
    assert "no one time line" in CliRunner().invoke(main, [*given, "--workers", "3", "--plot", "a.png"]).stderr
