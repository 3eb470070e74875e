"""Worst cases without a value: infinite ones, empty ones and failed solves differ in name and sentence; so does senseless input."""

from __future__ import annotations

import math

import pytest

from verify_rates.solvers.method import UsageError
from verify_rates.solvers.words import optimum, sqnorm
from verify_rates.theory.worst_case import growth, solve
from verify_rates.theory.worst_case.solve import worst_case


def gd(gamma=1.0, **problem):
    return worst_case("gd", {"gamma": gamma}, **{"steps": 2, "n": 1} | problem)


def far(s, w, h):
    """At most 1/2 only where ``||x - x*||^2 >= 3/2``."""
    return 2 - sqnorm(w, s.x - optimum(w))


WITHOUT_VALUE = {
    "unbounded": {"initial": "none"},
    "uncontrolled": {"initial": "grad_norm"},  # of a convex function: long flat valleys
    "infeasible": {"initial": [("distance", 1.0), (far, 0.5)]},
}


@pytest.mark.parametrize("status", WITHOUT_VALUE)
def test_no_value_is_told_by_its_reason(status):
    found = gd(**WITHOUT_VALUE[status])
    assert found.status == status and not found.ok and found.upper == math.inf and not found.rigorous, str(found)
    assert str(found).startswith(f"{status}: ") and "solver" not in found.message


def test_sentences_differ():
    sentences = {gd(**given).message for given in WITHOUT_VALUE.values()}
    assert len(sentences) == len(WITHOUT_VALUE)


def test_a_failed_solve_is_no_statement_about_the_problem(monkeypatch):
    """Where the value does not grow with the size of instances a failure stays one."""
    assert not growth_of(gd_problem("distance")) and growth_of(gd_problem("grad_norm"))
    monkeypatch.setattr(solve, "grows", lambda *_: False)
    found = gd(initial="grad_norm")
    assert found.status == "failed" and "the solver failed" in found.message


def gd_problem(initial):
    made = []
    refined = solve.refined

    def keep(conic, *given):
        made.append(conic)
        return refined(conic, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solve, "refined", keep)
        gd(initial=initial)
    return made[0]


def growth_of(conic):
    return growth.grows(conic, solve.SHARP, "CLARABEL")


def test_mu_and_L():
    with pytest.raises(UsageError, match="mu = 2 exceeds L = 1"):
        gd(mu=2)
    still = gd(mu=1)
    assert still.lower == still.upper == 0 and still.rigorous and "same of every instance" in still.why
    found = gd(0.5, mu=1)
    assert found.rigorous and found.upper == pytest.approx(0.5**4 / 2, rel=1e-6)
