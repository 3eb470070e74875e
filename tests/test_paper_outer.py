"""SlowMo and CO2: reductions of the step functions, and checks that notice a broken formula."""

from types import SimpleNamespace

import numpy as np
import pytest

from verify_rates.problems import get_problem
from verify_rates.solvers.engine.run import simulate
from verify_rates.theory.calculators import co2, slowmo

ROUNDING = 1e-12  # sixty contracting steps in double precision
STEPS = 60
PROBLEM = get_problem("quadratic", n=3, d=5, zeta2_star=1.0, sigma2=0.3)


def final(method, steps=STEPS, **hyper):
    made = simulate(method, PROBLEM, {"gamma": 0.2, **hyper}, steps=steps, seeds=2, engine="numpy", compressor="identity", keep_states=True)
    return SimpleNamespace(**made.final)


def apart(a, b):
    return np.max(np.abs(a - b)) / np.max(np.abs(a))


@pytest.mark.parametrize("H", [1, 3])
def test_slowmo_without_momentum_is_local_sgd(H):
    plain = final("local_sgd", H=H).x
    assert apart(plain, final("slowmo", H=H, alpha=1.0, beta=0.0).x) < ROUNDING < apart(plain, final("slowmo", H=H, beta=0.1).x)


@pytest.mark.parametrize("H", [1, 3])
def test_co2_without_staleness_is_slowmo(H):
    options = {"H": H, "alpha": 0.7, "beta": 0.4}
    slow = final("slowmo", **options).x
    assert apart(slow, final("co2", tau=0, **options).x) < ROUNDING < apart(slow, final("co2", tau=1, **options).x)


def test_co2_with_single_steps_is_the_delayed_update():
    for tau in (1, 2, 5):
        late = final("dd_ef_sgd", gamma=0.1, tau=tau).x
        assert apart(late, final("co2", gamma=0.1, tau=tau).y) < ROUNDING
        assert apart(late, final("co2", gamma=0.1, tau=tau + 1).y) > ROUNDING


def test_staleness_counts_rounds():
    """The loop as one would write it, with a list for what is under way."""
    for H, tau in ((2, 1), (2, 2), (4, 2), (3, 3)):
        made = simulate("co2", QUIET, {"gamma": 0.1, "H": H, "tau": tau}, steps=8 * H, engine="numpy").final["y"][0]
        y, waiting = np.zeros(5), [np.zeros(5)] * tau
        for _ in range(8):
            x = np.tile(y, (3, 1))
            for _ in range(H):
                x = x - 0.1 * QUIET.grads(x)
            waiting.append(y - x.mean(axis=0))
            y = y - waiting.pop(0)
        assert apart(y, made) < ROUNDING


QUIET = get_problem("quadratic", n=3, d=5, zeta2_star=1.0)


def test_clip_and_penalty_act():
    clipped = final("co2", beta=0.5, limit=1e-3)
    assert np.max(np.abs(clipped.u)) == 1e-3 < np.max(np.abs(final("co2", beta=0.5).u))
    halved = final("co2", alpha=0.5, tau=1).x
    assert apart(halved, final("co2", alpha=1.0, penalty=2.0, tau=1).x) < ROUNDING


BROKEN = [
    (slowmo, "RECURSION", {**slowmo.RECURSION, "slowmo": "u**2 - (1+beta)*u + beta"}, slowmo.recursion, ("slowmo", 0, 2)),
    (slowmo, "STABLE", {**slowmo.STABLE, "slowmo": "0 < c and c < 2"}, slowmo.recursion, ("slowmo", 0, 2)),
    (slowmo, "STABLE", {**slowmo.STABLE, "co2": "0 < c and c < 1"}, slowmo.recursion, ("co2", 1, 2)),
    (
        slowmo,
        "THEOREM",
        slowmo.THEOREM + " + beta + H - 1 + 1/N",
        slowmo.special_case,
        ("THEOREM", "PLAIN", {"H": 1, "alpha": 1, "beta": 0}),
    ),
    (co2, "PENALTY", "alpha*theta", co2.penalty, ()),
    (co2, "RING", "2*n*lat + 2*(n-1)/n*size/bw", co2.ring, (3, 6)),
    (co2, "TIMES", {**co2.TIMES, "co2": "Max(T_comp, T_tx)"}, co2.seconds, ("co2", 2)),
    (co2, "LEAST_H", "floor(T_tx/T_comp)", co2.full_overlap, (4,)),
]


@pytest.mark.parametrize(("module", "name", "wrong", "check", "values"), BROKEN)
def test_checks_notice_a_broken_formula(monkeypatch, module, name, wrong, check, values):
    assert check(*values).lower == 0
    monkeypatch.setattr(module, name, wrong)
    assert check(*values).lower > 0


def test_checks_notice_a_broken_method():
    assert slowmo.recursion("slowmo", 0, 2).lower == 0
    assert slowmo.recursion("co2", 1, 2).lower == 0
    assert slowmo.round_polynomial("co2", {"H": 2, "tau": 2}) != slowmo.round_polynomial("co2", {"H": 2, "tau": 1})
