"""Verdicts say no more than the evidence: statuses, intervals and samples each have the last word where they should."""

import math

import numpy as np
import pytest

from verify_rates.statistics import e_value
from verify_rates.theory.claims import Claim
from verify_rates.verdicts import LEVEL, Check, Result, Verdict, judge, outcome

CLAIM = Claim("x.1", "a statement", method="gd", measure="distance", bound="L", source="derived")
FALSE = Claim("x.2", "a false one", method="gd", measure="distance", bound="L", source="derived", expect="fails")


def check(lower, upper, bound=1.0, **options):
    kind = "worst case" if options.get("proves", True) else "runs"
    return Check(kind, {}, bound, lower, upper, proves=options.pop("proves", True), rtol=options.pop("rtol", 1e-6), **options)


def test_an_interval_below_the_bound_holds_and_above_it_refutes():
    assert outcome(check(0.8, 0.9)) is Verdict.HOLDS
    assert outcome(check(1.1, 1.2)) is Verdict.REFUTED
    assert outcome(check(0.9, 1.1)) is Verdict.INCONCLUSIVE


def test_the_accuracy_of_the_solver_is_granted_once_and_named():
    assert outcome(check(1.0, 1.0 + 9e-7)) is Verdict.HOLDS
    assert outcome(check(1.0, 1.0 + 2e-6)) is Verdict.INCONCLUSIVE
    assert outcome(check(1.0 + 2e-6, 1.1)) is Verdict.REFUTED


@pytest.mark.parametrize("status", ["failed", "inaccurate", "infeasible", "unbounded"])
@pytest.mark.parametrize("upper", [0.1, 5.0, math.inf, math.nan])
def test_a_failed_solve_is_never_a_pass_nor_a_refutation(status, upper):
    assert outcome(check(0.1, upper, status=status)) is Verdict.INCONCLUSIVE
    assert judge(CLAIM, [check(0.1, 0.2), check(0.1, upper, status=status)]) is Verdict.INCONCLUSIVE


def test_not_a_number_is_never_a_pass():
    for bad in (check(math.nan, 0.5), check(0.5, math.nan), check(0.1, 0.2, bound=math.nan)):
        assert outcome(bad) is Verdict.INCONCLUSIVE


def test_runs_never_prove_and_one_witness_refutes_all():
    run = check(0.5, math.inf, proves=False)
    assert outcome(run) is Verdict.CONSISTENT
    assert judge(CLAIM, [run]) is Verdict.CONSISTENT
    assert judge(CLAIM, [check(0.5, 0.6), run]) is Verdict.HOLDS
    assert judge(CLAIM, [check(0.5, 0.6), check(1.5, math.inf, proves=False)]) is Verdict.REFUTED


def test_checks_that_do_not_apply_are_no_evidence():
    assert judge(CLAIM, []) is Verdict.INCONCLUSIVE
    assert judge(CLAIM, [check(math.nan, math.nan, status="not applicable")]) is Verdict.INCONCLUSIVE


def test_a_slice_of_the_worst_case_does_not_prove_the_claim():
    assert judge(CLAIM, [check(0.5, 0.6, proves=False)]) is Verdict.CONSISTENT


def test_relations():
    assert outcome(check(2.0, 2.1, relation=">=")) is Verdict.HOLDS
    assert outcome(check(0.5, 0.6, relation=">=")) is Verdict.REFUTED
    assert outcome(check(1.0, 1.0, relation="==")) is Verdict.HOLDS
    assert outcome(check(0.5, 0.6, relation="==")) is Verdict.REFUTED
    assert outcome(check(0.5, 1.6, relation="==")) is Verdict.INCONCLUSIVE


def test_mutation_by_a_factor():
    tight = check(1.0, 1.0)
    assert [outcome(tight, f) for f in (0.999, 1.0, 1.001)] == [Verdict.REFUTED, Verdict.HOLDS, Verdict.HOLDS]


def test_samples_refute_only_with_enough_evidence():
    few, many = [1.5, 1.6, 1.4], [1.5, 1.6, 1.4] * 30
    for samples, verdict in ((few, Verdict.INCONCLUSIVE), (many, Verdict.REFUTED)):
        c = Check("runs", {}, 1.0, float(np.mean(samples)), math.inf, samples=samples, evidence_against=e_value(samples, 1.0))
        assert outcome(c) is verdict
        assert outcome(c, 2.0) is Verdict.CONSISTENT
    assert outcome(Check("runs", {}, 1.0, 0.1, math.inf, relation=">=", samples=[0.1] * 99)) is Verdict.INCONCLUSIVE


def test_a_sample_of_an_attained_bound_is_consistent_and_one_of_a_broken_bound_is_not():
    draws = np.random.default_rng(0).exponential(1.0, (200, 400))
    said = {scale: [outcome(sampled(scale * row)) for row in draws] for scale in (1.0, 1.2, 2.0)}
    assert Verdict.REFUTED not in said[1.0]
    assert said[1.0].count(Verdict.INCONCLUSIVE) <= 20  # an e-value of 1 is seldom reached by chance
    assert said[1.2].count(Verdict.CONSISTENT) <= 20
    assert set(said[2.0]) == {Verdict.REFUTED}
    assert outcome(sampled([-1e-9, 1.5, 1.6])) is Verdict.INCONCLUSIVE  # no bet is possible


def sampled(samples):
    return Check("runs", {}, 1.0, float(np.mean(samples)), math.inf, samples=list(samples), evidence_against=e_value(samples, 1.0))


def test_expectations_decide_the_exit_code():
    assert not Result(CLAIM, Verdict.REFUTED, [], "").as_expected
    assert not Result(FALSE, Verdict.HOLDS, [], "").as_expected
    assert not Result(FALSE, Verdict.CONSISTENT, [], "").as_expected
    assert Result(FALSE, Verdict.REFUTED, [], "").as_expected


@pytest.mark.parametrize(
    "draw", [lambda g, k: g.pareto(1.2, k) * 0.2, lambda g, k: g.exponential(1.0, k), lambda g, k: 2.0 * (g.random(k) < 0.5)]
)
def test_e_values_are_fair_on_heavy_tails(draw):
    """Under the hypothesis the e-value has mean at most 1 (Markov then gives the level); means of the draws are 1."""
    gen = np.random.default_rng(5)
    values = np.array([e_value(draw(gen, 40), 1.0) for _ in range(4000)])
    assert np.mean(values >= 20) <= 1 / 20
    assert np.mean(values >= 1 / LEVEL) == 0


def test_e_values_grow_against_a_wrong_mean():
    gen = np.random.default_rng(6)
    assert e_value(gen.exponential(2.0, 400), 1.0) > 1 / LEVEL
    assert e_value([], 1.0) == 0 and e_value([math.nan], 1.0) == 0
    assert e_value([0.0, 1e-9], 0.0) == math.inf and e_value([math.inf], 1.0) == math.inf
