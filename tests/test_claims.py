"""The shipped claims: one quick check of all of them, and mutations of their bounds on the stored evidence."""

import csv
import math
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from verify_rates.pipeline import SUITES, check, check_one, evidence, mutated
from verify_rates.solvers.method import UsageError
from verify_rates.store import key
from verify_rates.theory.claims import Claim, Setting, claims, product
from verify_rates.verdicts import Check, Verdict, judge, outcome
from verify_rates.witness import replay, stored

SHARED = Path(__file__).resolve().parents[1].parent / "shared"
IDS = sorted(claims())
PROVED = (Verdict.CERTIFIED, Verdict.HOLDS)
PASSED = (Verdict.CERTIFIED, Verdict.HOLDS, Verdict.CONSISTENT)


@pytest.fixture(scope="module")
def results():
    return {r.claim.id: r for r in check(jobs=2).results}


def test_at_least_thirty_claims_and_all_verdicts_as_expected(results):
    assert len(results) >= 30 and sorted(results) == IDS
    wrong = {i: (r.verdict.value, r.message) for i, r in results.items() if not r.as_expected or r.verdict is Verdict.INCONCLUSIVE}
    assert not wrong


def test_the_two_readings_of_the_quoted_factors_are_refuted(results):
    for claim_id in ("deco.2.growth", "deco.3.growth"):
        assert results[claim_id].claim.expect == "fails" and results[claim_id].verdict is Verdict.REFUTED


@pytest.mark.parametrize("claim_id", [i for i in IDS if claims()[i].tight])
def test_tight_claims_are_exact_and_break_a_ten_thousandth_below(results, claim_id):
    result = results[claim_id]
    exact = [c for c in result.checks if c.kind == "worst case"]
    assert exact and result.verdict in PROVED
    for c in exact:
        assert abs(c.lower - c.bound) <= 1e-6 * c.bound + 2e-9 and abs(c.upper - c.bound) <= 1e-6 * c.bound + 2e-9
    assert mutated(result, 1 + 1e-4).verdict is result.verdict
    broken = mutated(result, 1 - 1e-4)
    assert broken.verdict is Verdict.REFUTED and broken.witness is not None
    again = replay(stored(claim_id, broken.witness))
    assert again.reproduced, again.sentence


LOOSE = [i for i, c in claims().items() if c.kind == "bound" and c.bound and not c.tight and c.expect == "holds"]


@pytest.mark.parametrize("claim_id", LOOSE)
def test_loose_bounds_are_refuted_below_what_was_measured(results, claim_id):
    """Scaled to half of what was measured a bound breaks; with samples that needs enough of them, not a convenient formula."""
    result = results[claim_id]
    assert result.verdict in PASSED
    assert mutated(result, 0.5 * result.tightness).verdict is Verdict.REFUTED
    assert mutated(result, 10.0).verdict in PASSED


@pytest.mark.parametrize("claim_id", [i for i in IDS if claims()[i].kind in ("iff", "table") or i == "matcha.5"])
def test_other_statements_break_below_what_was_found(results, claim_id):
    compared = [c for c in results[claim_id].checks if c.bound]
    assert compared or all(c.bound == 0 for c in results[claim_id].checks)  # counts violations; broken on purpose in the papers' tests
    for c in compared:
        assert outcome(c, 0.99 * c.lower / c.bound) is Verdict.REFUTED


def test_the_share_of_mutants_caught(results, capsys):
    """Every claim with a number to break, its bound moved below what was found (a tight one by one part in ten thousand); printed."""
    mutants = caught = 0
    for result in results.values():
        compared = [c for c in result.checks if c.bound and c.status == "ok" and c.relation == "<=" and c.lower > 0]
        if result.claim.expect != "holds" or not compared:
            continue
        factor = 1 - 1e-4 if result.claim.tight else 0.5 * max(c.lower / c.bound for c in compared)
        mutants, caught = mutants + 1, caught + (mutated(result, factor).verdict is Verdict.REFUTED)
    with capsys.disabled():
        print(f"\nmutants caught: {caught} of {mutants} ({caught / mutants:.1%})")
    assert mutants > 100 and caught >= 0.95 * mutants


BROKEN_FORMULAS = [
    ("deco", "PHI_A", "(1-delta)/(delta*(1-delta/2)**tau)", "phi_a_shape", {"tau": 6}),
    ("deco", "PHI_B", "1/(delta*(1-delta/2)**tau)", "phi_b_shape", {"tau": 2}),
    ("deco", "PHI_B", "(1-delta)/(delta*(1-delta)**tau)", "phi_b_monotone", {"tau": 3}),
]


@pytest.mark.parametrize(("slug", "name", "text", "function", "point"), BROKEN_FORMULAS)
def test_shapes_break_with_another_formula(monkeypatch, slug, name, text, function, point):
    import importlib

    module = importlib.import_module(f"verify_rates.theory.calculators.{slug}")
    assert getattr(module, function)(**point).lower == 0
    monkeypatch.setattr(module, name, text)
    assert getattr(module, function)(**point).lower > 0


def test_identities_break_when_the_method_is_another(monkeypatch):
    """The memory in the wrong units, and half a step too much: both identities of deco and acco notice."""
    from verify_rates.solvers.method import methods
    from verify_rates.theory.calculators import acco, deco

    def off(name, field, factor):
        method = methods()[name]

        def step(s, w, h, t):
            made = method.step(s, w, h, t)
            return made._replace(**{field: getattr(made, field) * factor})

        return replace(method, step=step)

    for name, field, call in (
        ("dd_ef_sgd", "e", lambda: deco.virtual_sequence("quadratic", "topk(k=3)", 1, 0)),
        ("acco", "y", lambda: acco.mismatch_identity("quadratic", 0.1, 0)),
        ("acco", "y", lambda: acco.noise_free_is_gd("quadratic", 0.1)),
    ):
        assert call().lower <= call().bound
        broken = off(name, field, 1 + 1e-6)
        with monkeypatch.context() as patch:
            patch.setitem(__import__("verify_rates.solvers.method", fromlist=["x"])._REGISTRY, name, broken)
            assert call().lower > call().bound


def test_matchings_are_checked_against_the_graph(monkeypatch):
    from verify_rates.theory.calculators import matcha

    assert matcha.matching_square("ring").lower == 0
    monkeypatch.setattr(matcha, "matchings", lambda graph: [matcha.laplacian(graph)])
    assert matcha.matching_square("ring").lower > 0


def test_gradient_descent_is_certified(results):
    """Its bounds are proved in fractions at every point of the grid; a certificate that is refused leaves "holds"."""
    for claim_id in ("rates.1", "rates.2", "rates.3", "rates.5", "rates.6", "rates.7"):
        assert results[claim_id].verdict is Verdict.CERTIFIED, results[claim_id].message


def test_a_refused_certificate_does_not_certify(monkeypatch):
    from verify_rates.proofs_check import certificates
    from verify_rates.proofs_check.checker import Refused

    def refuse(*args, **options):
        raise Refused("no")

    monkeypatch.setattr(certificates, "certify", refuse)
    claim = claims()["rates.1"]
    assert judge(claim, evidence(replace(claim, runs=(), families=()), SUITES["quick"])) is Verdict.HOLDS


def _gd(bound, **options):
    return Claim("x.1", "x", method="gd", measure="function_gap", bound=bound, lets={"gamma": "1/L"}, source="derived", **options)


def test_a_false_claim_is_refuted_with_a_witness_that_replays():
    claim = _gd("L/(4*N + 3)*V0", grid=product(L=1, N=2))
    checks = evidence(claim, SUITES["quick"])
    assert judge(claim, checks) is Verdict.REFUTED
    found = replay(stored("x.1", checks[0].witness), claim)
    assert found.reproduced and found.value > found.bound
    damaged = {**checks[0].witness, "value": 2 * checks[0].witness["value"]}
    assert not replay(stored("x.1", damaged), claim).reproduced


def test_a_false_claim_is_refuted_by_runs_and_by_search():
    run = _gd("L/(100*N)*V0", runs=({"problem": {"name": "huber", "c": 0.05}, "N": 9},))
    assert judge(run, evidence(run, SUITES["quick"])) is Verdict.REFUTED
    searched = _gd("L/(4*N + 3)*V0", runs=({"problem": {"name": "quadratic"}, "N": 9},), families=("huber",))
    checks = evidence(searched, SUITES["quick"])
    assert outcome(checks[0]) is Verdict.CONSISTENT and outcome(checks[-1]) is Verdict.REFUTED
    assert replay(stored("x.1", checks[-1].witness), searched).reproduced


def test_a_false_claim_on_means_is_refuted_on_fresh_seeds():
    noisy = {"problem": {"name": "quadratic", "n": 2, "sigma2": 1.0}, "N": 1}
    claim = _gd("gamma**2*sigma2/n/40", setting=Setting(noise=True), runs=(noisy,))
    checks = evidence(claim, SUITES["quick"])
    sampled = next(c for c in checks if c.kind == "runs")
    assert sampled.seeds[0] >= 1_000_003 and outcome(sampled) is Verdict.REFUTED
    assert outcome(next(c for c in checks if c.kind == "moments")) is Verdict.REFUTED


def test_conditions_and_settings_decide_where_a_claim_applies():
    runs = ({"problem": {"name": "one_minus_cos"}, "N": 3}, {"problem": {"name": "quadratic", "sigma2": 1.0}, "N": 3})
    claim = _gd("L*V0", when=("gamma*L <= 1",), grid=product(L=1, N=1), runs=runs)
    kinds = [c.status for c in evidence(claim, SUITES["quick"])]
    assert kinds == ["ok", "not applicable", "not applicable"]
    never = replace(claim, when=("gamma*L > 2",), runs=())
    assert judge(never, evidence(never, SUITES["quick"])) is Verdict.INCONCLUSIVE


def test_an_infinite_constant_says_nothing():
    ridge = {"problem": {"name": "ridge", "data": "digits", "n": 2, "batch": 4}, "N": 2}
    claim = _gd("sigma2_sup + F0", setting=Setting(noise=True), runs=(ridge,))
    checks = evidence(claim, SUITES["quick"])
    assert [c.status for c in checks] == ["not applicable"] and "infinite" in checks[0].message


def test_without_verification_nothing_holds(monkeypatch):
    """A solver's word is not enough: results whose ends were not verified, and failed solves, are inconclusive."""
    import verify_rates.theory.worst_case.solve as solve

    honest = solve.worst_case
    claim = _gd("L/(4*N + 2)*V0", grid=product(L=1, N=2))
    for change in ({"rigorous": False}, {"status": "failed"}, {"status": "infeasible"}, {"upper": math.nan}):
        monkeypatch.setattr(solve, "worst_case", lambda *a, change=change, **k: replace(honest(*a, **k), **change))
        assert judge(claim, evidence(claim, SUITES["quick"])) is Verdict.INCONCLUSIVE


def test_an_internal_error_in_one_claim_does_not_lose_the_others(monkeypatch):
    from verify_rates import pipeline

    honest = pipeline.check_one

    def fail(claim_id, *rest):
        if claim_id == "deco.2":
            raise RuntimeError("a bug")
        return honest(claim_id, *rest)

    monkeypatch.setattr(pipeline, "check_one", fail)
    report = check(["deco.2", "deco.3"], jobs=1)
    assert [r.claim.id for r in report.results] == ["deco.3"] and report.exit_code == 3
    assert report.errors[0]["claim"] == "deco.2" and "a bug" in report.errors[0]["message"]


def test_stored_evidence_is_used_again_and_judged_anew(monkeypatch):
    settings = {"suite": "quick", "seed": 3, "data": None, "files": [], "globs": []}
    first = check_one("matcha.1", settings, fresh=True)
    second = check_one("matcha.1", settings)
    assert not first.cached and second.cached
    assert [c.to_json() | {"seconds": 0} for c in first.checks] == [c.to_json() | {"seconds": 0} for c in second.checks]


def test_the_key_of_a_claim_does_not_depend_on_what_has_been_imported(monkeypatch):
    claim, module = claims()["matcha.1"], claims()["matcha.1"].check.partition(":")[0]
    __import__(module)
    loaded = key(claim, suite="quick", seed=0)
    monkeypatch.delitem(sys.modules, module)
    assert key(claim, suite="quick", seed=0) == loaded


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "theorem"}, "kind must be one of"),
        ({"relation": "<"}, "relation must be one of"),
        ({"take": "first"}, "take must be one of"),
        ({"provenance": "rumour"}, "provenance must be one of"),
        ({"expect": "maybe"}, "expect must be one of"),
        ({"source": ""}, "source"),
        ({"bound": ""}, "give method, measure and bound"),
    ],
)
def test_a_malformed_claim_is_one_sentence(change, words):
    base = dict(id="x.1", statement="x", method="gd", measure="distance", bound="L", source="derived")
    with pytest.raises(UsageError, match=words):
        Claim(**{**base, **change})


def test_claims_carry_the_ids_of_the_papers():
    folder = SHARED / "papers"
    if not folder.exists():
        pytest.skip("the papers' facts are not beside this checkout")
    for slug, last in (("deco", 14), ("acco", 10), ("lupa", 6), ("matcha", 8)):
        printed = set(re.findall(rf"`({slug}\.\d+)`", (folder / f"{slug}.md").read_text()))
        owned = {f"{slug}.{k}" for k in range(1, last + 1)}
        assert owned <= printed and owned <= set(IDS)


def test_rates_agree_with_the_table_of_known_rates(results):
    table = SHARED / "known_rates.csv"
    if not table.exists():
        pytest.skip("the table of known rates is not beside this checkout")
    from verify_rates.theory.symbols import number, parse

    rows = list(csv.DictReader(table.read_text().splitlines()))
    for claim_id in [i for i in IDS if re.fullmatch(r"rates\.\d+", i) and claims()[i].tight]:
        row = rows[int(claim_id.split(".")[1]) - 1]
        given = {k: number(v) for k, v in re.findall(r"(\w+)=([^;]+)", row["params"])} | {"N": int(row["N"])}
        given = {k: v for k, v in given.items() if k != "n"}
        bounds = [c.bound for c in results[claim_id].checks if c.kind == "worst case"]
        said = number(parse(row["rate_formula_sympy"]), given)
        assert any(math.isclose(said, b, rel_tol=1e-12) for b in bounds), (claim_id, said, bounds)


def test_evidence_is_plain_data():
    assert Check("runs", {}, 1.0, 0.5, math.inf).to_json()["upper"] == "inf"
