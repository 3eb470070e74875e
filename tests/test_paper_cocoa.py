"""CoCoA: special cases of the simulator, the certificate, and checks that break where the statement is broken."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from verify_rates.problems.columns import KINDS
from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators import cocoa

CLOSE = 1e-9  # objectives of order 1, minimised to double precision


def after(made, gamma, sp, count, H=0):
    return next(itertools.islice((a for a, _ in cocoa.rounds(made, gamma, sp, H)), count, None))


@pytest.mark.parametrize("kind", KINDS)
def test_one_machine_needs_one_round(kind):
    """K = 1, sigma' = gamma = 1, exact local solver: the subproblem is the problem, f being quadratic with Hessian I/tau."""
    made = cocoa.instance(kind, 1, 4, 3, 0)
    assert made.primal(after(made, 1.0, 1.0, 1)) - cocoa.optimum(made)[1] < CLOSE


def test_averaging_takes_the_mean_of_the_machines_own_solutions():
    made = cocoa.instance("elastic_net", 3, 2, 3, 0)
    a = after(made, 1 / 3, 1.0, 1)
    for part in made.parts:
        columns = list(part)
        alone = replace(made, A=made.A[:, columns], c=made.c[columns], parts=(tuple(range(len(columns))),))
        assert np.abs(a[columns] - cocoa.optimum(alone)[0] / 3).max() < CLOSE


@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_certifies(kind):
    made = cocoa.instance(kind, 3, 2, 3, 1)
    best, rng = cocoa.optimum(made), np.random.default_rng(0)
    assert made.gap(best[0]) < CLOSE
    for _ in range(20):
        a = np.clip(rng.normal(size=6), made.low, made.high)
        assert made.gap(a) >= made.primal(a) - best[1] - CLOSE


def test_the_svm_step_is_that_of_the_released_code():
    lam, made = 0.3, cocoa.instance("svm_dual", 2, 3, 3, 0, mu=0.3)
    n, sp = made.A.shape[1], 2.0
    a = np.random.default_rng(1).uniform(size=n)
    w = made.w(made.A @ a)  # lam times the w of the code
    order = [0, 2, 1, 0]
    d = cocoa.Local(made, (0, 1, 2), a, w, sp).steps(iter(order))
    now, dw, yx = a.copy(), np.zeros(3), made.A * lam * n  # the last are y_i x_i
    for i in order:
        slope = (yx[:, i] @ (w / lam) + sp * yx[:, i] @ dw - 1) * lam * n
        new = np.clip(now[i] - slope / (sp * yx[:, i] @ yx[:, i]), 0, 1)
        dw, now[i] = dw + yx[:, i] * (new - now[i]) / (lam * n), new
    assert np.abs(a[:3] + d - now[:3]).max() < CLOSE


def test_the_least_sigma_is_reached_by_columns_that_every_machine_has():
    made = cocoa.instance("ridge", 4, 1, 3, 0, mu=1e-6)
    same = replace(made, A=np.repeat(made.A[:, :1], 4, axis=1))
    assert abs(same.least_sigma() - 4) < CLOSE
    assert made.least_sigma() < 4
    start, best = same.primal(np.zeros(4)), cocoa.optimum(same)[1]
    assert same.primal(after(same, 1.0, 0.49 * 4, 200)) > start
    assert same.primal(after(same, 1.0, 4.0, 1)) - best < 1e-5 * (start - best)


def test_a_smaller_sigma_breaks_the_lemma():
    assert cocoa.lemma("ridge", 3, 2, 1.0, False, 0, 0).lower <= 0
    found = cocoa.lemma("ridge", 3, 2, 1.0, False, 0, 0, part=0.6)
    assert found.lower > found.bound


@pytest.mark.parametrize(
    ("name", "text", "call"),
    [
        (
            "STRONG",
            "6*gamma*(1-eps)*mu*tau/(mu*tau + b*c)",
            lambda: cocoa.strongly_convex("contraction", "ridge", 4, 2, 1.0, False, 0, 0),
        ),
        ("STRONG", "20*gamma*(1-eps)*mu*tau/(mu*tau + b*c)", lambda: cocoa.strongly_convex("gap", "ridge", 4, 2, 1.0, False, 0, 0)),
        ("ROUNDS", "log(F0/s)", lambda: cocoa.strongly_convex("rounds", "ridge", 4, 2, 1.0, False, 0, 0)),
        ("T_LAST", "u + 1", lambda: cocoa.bounded_support("box_lasso", 5, 0.5, True, 0.2, 0)),
    ],
)
def test_rates_break_with_another_formula(monkeypatch, name, text, call):
    found = call()
    assert found.lower <= found.bound
    monkeypatch.setattr(cocoa, name, text)
    monkeypatch.setattr(cocoa, "T_FIRST", "0" if name == "T_LAST" else cocoa.T_FIRST)
    found = call()
    assert found.lower > found.bound


def test_local_steps_lose_against_a_faster_claim():
    found = cocoa.local_accuracy(2, 1, 0)
    assert found.lower == pytest.approx(found.bound) and cocoa.local_accuracy(2, 2, 0).lower < cocoa.local_accuracy(2, 2, 0).bound


def test_the_best_number_of_local_steps_grows_with_the_time_of_an_all_reduce():
    def best(reduce):
        return min(range(1, 200), key=lambda H: (H + reduce) / (1 - 0.9**H))

    assert best(0.0) == 1 and best(1.0) < best(10.0) < best(100.0)


def test_bad_instances_are_one_sentence():
    made = cocoa.instance("ridge", 2, 1, 2, 0)
    for change, words in (({"parts": ((0,),)}, "every column"), ({"tau": 0.0}, "tau > 0"), ({"mu": 0.0}, "bounded box")):
        with pytest.raises(UsageError, match=words):
            replace(made, **change)
    with pytest.raises(UsageError, match="did you mean"):
        cocoa.instance("ridg", 2, 1, 2, 0)
