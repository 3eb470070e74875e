"""Resource allocation: the method against the simulator, what stalls, and checks that break where the statement is broken."""

import itertools

import numpy as np
import pytest

from verify_rates.problems import get_problem
from verify_rates.solvers.engine.run import simulate
from verify_rates.solvers.method import UsageError
from verify_rates.solvers.topologies import get_topology
from verify_rates.theory.calculators import resource_allocation as ra

AGREE = 1e-12  # some tens of steps in double precision on numbers of order 1
PROBLEM = {"name": "quadratic", "n": 5, "d": 3, "L": 1.0, "mu": 0.3, "common": False, "zeta2_star": 1.0}


def agents(compressor, steps=40, gamma=0.8):
    made, W = get_problem(**PROBLEM), get_topology("ring", 5).W
    run = simulate(
        "resource_agent", made, {"gamma": gamma}, steps=steps, topology="ring", compressor=compressor, engine="numpy", x0=np.ones(3)
    )
    return made, W, run.final["x"][0]


def test_the_method_is_the_agent_form_and_without_quantiser_the_link_form():
    made, W, found = agents("identity")
    for form in (ra.agent_step, ra.link_step):
        x = [np.ones(3) for _ in range(5)]
        for _ in range(40):
            x = form(x, list(made.grads(np.array(x))), W - np.diag(np.diag(W)), 0.8, ra.linear)
        assert np.abs(np.array(x) - found).max() < AGREE


@pytest.mark.parametrize("compressor", ["identity", "topk(k=1)", "scaled_sign"])
def test_the_method_keeps_the_sum_and_reaches_equal_slopes_where_nothing_is_quantised(compressor):
    made, _, x = agents(compressor, steps=3000)
    assert np.abs(x.sum(axis=0) - 5.0).max() < AGREE * 3000
    psi = made.grads(x)
    assert (np.abs(psi - psi.mean(axis=0)).max() < 1e-9) == (compressor == "identity")


def test_the_agent_form_stalls_where_quantised_slopes_are_equal_and_the_link_form_does_not():
    made, W = ra.allocation(4, 0.5, 1.0, True, 0), ra.weights("ring", 4)
    ends = {}
    for name, form in ra.FORMS.items():
        x = np.zeros(4)
        for _ in range(400):
            x = np.array(form(list(x), list(made.psi(x)), W, 0.3, lambda z: ra.log_quantiser(z, 1.0)), float)
        ends[name] = made.value(x) - made.optimum(0.0)
    assert ends["link"] < 1e-9 < 1e-3 < ends["agent"]


def test_the_optimum_of_an_allocation():
    made = ra.allocation(4, 0.5, 1.0, True, 1)
    best, rng = made.optimum(2.0), np.random.default_rng(0)
    for _ in range(200):
        x = rng.normal(size=4) * 4
        assert made.value(x + (2.0 - x.sum()) / 4) >= best
    x, W = np.full(4, 0.5), ra.weights("complete", 4)
    for _ in range(300):
        x = np.array(ra.link_step(list(x), list(made.psi(x)), W, 0.2, ra.linear))
    assert abs(made.value(x) - best) < 1e-12


def test_curvatures_are_what_is_said():
    made, z = ra.allocation(4, 0.2, 1.0, True, 0), np.linspace(-9, 9, 4001)
    slope = np.array([(made.psi(made.centres + b) - made.psi(made.centres + a)) / (b - a) for a, b in itertools.pairwise(z)])
    assert slope.min() >= 0.2 - 1e-9 and slope.max() <= 1.0 + 1e-9


@pytest.mark.parametrize(
    ("name", "text", "call"),
    [
        ("DESCENT", "eta*(1 - eta*L*c*lam_m/4)", lambda: ra.descent("complete", "linear", 6, 1.0, False, 0.9, 0)),
        ("LIMIT", "2.1/(L*c*lam_m)", lambda: ra.step_limit("ring", 5, 0)),
        ("RATE", "1 - 3*mu*eta*b*lam_2*(1 - eta*L*c*lam_m/2)", lambda: ra.linear_rate("complete", "linear", 6, 1.0, False, 0.1, 0)),
        ("SECTOR", ("exp(-s/3)", "exp(s/2)"), lambda: ra.log_sector((1, 1))),
        ("SECTOR", ("exp(-s/2)", "exp(s)"), lambda: ra.log_sector((1, 1))),
        ("LEVEL_BITS", "ceiling(log(k)/log(2))", lambda: ra.code_bits(3, True)),
    ],
)
def test_checks_break_with_another_formula(monkeypatch, name, text, call):
    found = call()
    assert found.lower <= found.bound + 1e-12
    monkeypatch.setattr(ra, name, text)
    found = call()
    assert found.lower > found.bound or (found.relation == "==" and found.upper < found.bound * (1 - 1e-6))


def test_a_wrong_sector_or_a_missing_message_is_noticed(monkeypatch):
    assert ra.linear_rate("complete", "log(d=1)", 6, 1.0, False, 0.9, 0).lower <= 1
    monkeypatch.setitem(ra.NONLINEARITIES, "linear", (ra.linear, 2.0, 2.0))
    found = ra.linear_rate("complete", "linear", 6, 1.0, False, 0.1, 0)
    assert found.lower > found.bound


def test_an_update_before_all_messages_is_noticed(monkeypatch):
    """The same clock with delays one longer than it waits for."""
    honest = np.random.default_rng

    class Late:
        def __init__(self, seed):
            self.rng = honest(seed)

        def integers(self, low, high, shape):
            return self.rng.integers(low, high + 1, shape)

        def __getattr__(self, name):
            return getattr(self.rng, name)

    assert ra.slow_clock("link", "linear", 5, 2, 0).lower == 0
    monkeypatch.setattr(ra.np.random, "default_rng", lambda seed=None: Late(seed) if seed == [0, 9] else honest(seed))
    assert ra.slow_clock("link", "linear", 5, 2, 0).lower > 0


def test_bad_curvatures_are_one_sentence():
    with pytest.raises(UsageError, match="0 < mu <= L"):
        ra.allocation(3, 2.0, 1.0, False, 0)
