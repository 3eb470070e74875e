"""Proofs that name their failing step."""

import json

import pytest
import sympy as sp

from verify_rates.proofs_check.lemmas import expectation
from verify_rates.proofs_check.proof import Proof, ProofError, proofs, run_proofs
from verify_rates.solvers.method import UsageError

x, y = sp.symbols("x y", real=True)
a, b = sp.symbols("a b", positive=True)


# --- scripts ----------------------------------------------------------------------------------------------------------


STEPS = {
    "error_feedback": 11,
    "ef21": 11,
    "deco.5": 11,
    "gd": 6,
    "cgd": 3,
    "acco.2": 4,
    "acco.3": 8,
    "co2.4": 17,
    "co2.5": 14,
    "slowmo.6": 14,
    "lupa.4": 17,
    "oldsgd.2": 18,
    "absolute_compression.1": 4,
    "absolute_compression.2": 10,
    "absolute_compression.4": 12,
    "matcha.6": 15,
    "mt_dao.7": 18,
    "loscar.4": 21,
    "cocoa.3": 10,
    "poplar.1": 3,
    "poplar.2": 6,
    "poplar.3.repaired": 6,
}


@pytest.mark.parametrize(("name", "steps"), STEPS.items())
def test_proof_holds(name, steps):
    (result,) = run_proofs(name)
    assert result.ok, result.message
    assert len(result.steps) >= steps and result.assumptions and result.seconds < 30
    assert json.loads(json.dumps(result.to_json()))["ok"] and name in result._repr_html_()


BROKEN = [
    ("error_feedback", "rho", "means: the slack is a square"),
    ("error_feedback", "lam", "means: the slack is a square"),
    ("error_feedback", "gamma", "means: the slack is a square"),
    ("error_feedback", "compressor multiplier", "means: the slack is a square"),
    ("ef21", "rho", "means: the slack is a square"),
    ("ef21", "lam", "means: the slack is a square"),
    ("ef21", "gamma", "means: the slack is a square"),
    ("ef21", "compressor multiplier", "means: the slack is a square"),
    ("gd", "short: rho", "short: the slack is a square"),
    ("gd", "short: lam", "short: the slack is a square"),
    ("gd", "long: rho", "long: the slack is a square"),
    ("gd", "long: lam", "long: the slack is a square"),
    ("cgd", "cgd rho", "the slack is a sum of squares"),
    ("cgd", "descent multiplier", "the slack is a sum of squares"),
    ("cgd", "cgd compressor multiplier", "the slack is a sum of squares"),
    ("deco.5", "noise of a step", "(a) descent lemma at the virtual iterate"),
    ("deco.5", "two", "(b) two terms"),
    ("deco.5", "young", "(c) (1-delta)*(1+beta) = 1-delta/2"),
    ("deco.5", "step limit", "half of the descent is left"),
    ("deco.5", "noise factor", "the theorem"),
    ("acco.2", "mismatch", "the bound is handed on"),
    ("acco.3", "noise of a step", "one step of descent"),
    ("acco.3", "price of overlap", "the theorem"),
    ("co2.4", "step limit", "the square of the condition"),
    ("co2.4", "drift", "the sum solved"),
    ("co2.4", "bound", "the theorem"),
    ("co2.5", "stale limit", "at the limit one of them is 0"),
    ("slowmo.6", "limit", "at the limit one of them is 0"),
    ("lupa.4", "step", "the factor of a step"),
    ("lupa.4", "noise of a step", "one step of descent"),
    ("lupa.4", "drift", "one step, weighted"),
    ("oldsgd.2", "step limit", "the step condition gives gamma*L <= 1"),
    ("oldsgd.2", "noise of a step", "one step of descent"),
    ("oldsgd.2", "young", "one round of the disagreement"),
    ("oldsgd.2", "fixed point", "the disagreement stays below its fixed point"),
    ("oldsgd.2", "consensus", "the mean over a round"),
    ("absolute_compression.1", "residual", "the residual"),
    ("absolute_compression.2", "weight of the error", "one step of the virtual iterate"),
    ("absolute_compression.2", "step limit", "half of the gap is left"),
    ("absolute_compression.2", "floor", "the theorem"),
    ("absolute_compression.4", "weight of the error", "one step of the virtual iterate"),
    ("absolute_compression.4", "weight of the references", "half of the gap is left"),
    ("absolute_compression.4", "samples", "half of the gap is left"),
    ("absolute_compression.4", "floor", "the theorem"),
    ("matcha.6", "noise of a step", "one step of descent"),
    ("matcha.6", "noise part", "noise stays below its fixed point"),
    ("matcha.6", "three", "the disagreement"),
    ("matcha.6", "bound", "the theorem"),
    ("mt_dao.7", "young", "(1-p)*(1+c) = 1-p/2"),
    ("mt_dao.7", "disagreement", "the disagreement solved"),
    ("mt_dao.7", "noise of a step", "one step of descent"),
    ("mt_dao.7", "bound", "the theorem"),
    ("loscar.4", "step limit", "the step condition"),
    ("loscar.4", "young", "q*(1+a) = 1-p/2"),
    ("loscar.4", "noise of a round", "one round of descent"),
    ("loscar.4", "bound", "more than the theorem"),
    ("cocoa.3", "level of the first phase", "its end"),
    ("cocoa.3", "second phase", "the second phase, by induction"),
    ("cocoa.3", "last rounds", "the theorem"),
    ("poplar.1", "time of the plan", "nor more time"),
    ("poplar.2", "level", "shares add up to the batch"),
    ("poplar.2", "gain", "equal shares"),
    ("poplar.3.repaired", "level", "shares add up to the batch"),
]


@pytest.mark.parametrize("change", [sp.Rational(999, 1000), sp.Rational(1001, 1000), -1])
@pytest.mark.parametrize(("name", "constant", "step"), BROKEN)
def test_broken_proof_names_its_step(name, constant, step, change):
    (result,) = run_proofs(name, {constant: change})
    assert not result.ok
    if change != -1:  # a sign may be noticed earlier
        assert result.failed == step
    assert result.failed in result.message and not result.steps[-1].ok and all(s.ok for s in result.steps[:-1])


def test_every_constant_of_every_proof_is_broken_above():
    broken = {(name, constant) for name, constant, _ in BROKEN}
    for name, (script, _) in proofs().items():
        made = Proof()
        script(made)
        assert {(name, c) for c in made.constants} <= broken


@pytest.mark.parametrize("name", ["error_feedback", "ef21"])
def test_the_proved_rate_is_the_published_formula(name):
    """The scripts' w**2 and gamma, in numbers, against the formulas of the claims."""
    from verify_rates.theory.symbols import number

    for L, mu, eps in ((1.0, 0.1, 0.25), (3.0, 0.5, 0.01), (1.0, 0.9, 0.81)):
        values = {"L": L, "mu": mu, "eps": eps}
        w = (number("(1-sqrt(eps))*(L-mu)/(L+mu)", values) + number("sqrt((1-sqrt(eps))**2*((L-mu)/(L+mu))**2+4*sqrt(eps))", values)) / 2
        s, q = eps**0.5, (L - mu) / (L + mu)
        assert w**2 == pytest.approx((1 - s) * q * w + s, rel=1e-14) and s**0.5 < w < 1


def _claimed():
    """The bounds that the scripts prove, with the letters of the claims for their symbols."""
    from verify_rates.proofs_check import of_absolute_compression, of_gossip, of_local_steps, of_loscar, of_momenta, of_overlap

    late = {"T": "N/H-1", "alpha": "a/(gamma*H)", "zeta2": "zeta2_sup"}  # the claim's mean has the round before the first update
    letters = {"s2": "s**2", "T": "N"}
    return [
        ("acco.2", of_overlap.ACCO_MISMATCH, letters),
        ("acco.3", of_overlap.FULL_BATCH + of_overlap.PRICE, letters),
        ("co2.4", (sp.Symbol("G0") + of_overlap.T * of_overlap.CO2_BOUND) / (of_overlap.T + 1), late),
        ("lupa.4", of_local_steps.LUPA_BOUND, {"T": "N", "L": "kappa*mu"}),
        ("oldsgd.2", of_local_steps.OLDSGD_BOUND, {"T": "N", "lam": "s", "zeta2": "zeta2_sup"}),
        ("oldsgd.2.consensus", of_local_steps.OLDSGD_CONSENSUS, {"lam": "s", "zeta2": "zeta2_sup"}),
        ("absolute_compression.2", of_absolute_compression.EC_SGD_BOUND, {"D1": "sigma2/n", "LEFT": "(1-gamma*mu/2)**N"}),
        ("matcha.6", of_gossip.MATCHA_BOUND, {"T": "N", "r": "sqrt(rho)", "zeta2": "zeta2_sup"}),
        ("loscar.4", of_loscar.LOSCAR_BOUND, {"Hm": "H", "Hb": "a", "Qb": "b", "p_mask": "p"}),
        ("mt_dao.7", of_momenta.MT_DAO_BOUND, {"T": "N", "spread": "b", "psi": "s", "zeta2": "zeta2_sup"}),
    ]


@pytest.mark.parametrize(("claim", "bound", "letters"), _claimed(), ids=lambda value: value if isinstance(value, str) else "")
def test_the_proved_bound_is_the_claims(claim, bound, letters):
    from verify_rates.theory.calculators import loscar
    from verify_rates.theory.claims import claims
    from verify_rates.theory.symbols import number, parse

    text = loscar.BOUND if claim == "loscar.4" else claims()[claim].bound
    short = {"D": dict(claims()["matcha.6"].lets)["D"], "c": "4*(1-p)/p**2"}  # letters of a bound that stand for others
    said = parse(text)
    said = said.subs({s: parse(short[s.name]) for s in said.free_symbols if s.name in short})
    names = sorted({s.name for s in said.free_symbols})
    for shift in range(3):
        values = {name: 2 + shift + 3 * i for i, name in enumerate(names)}
        proved = bound.subs({s: number(letters.get(s.name, s.name), values) for s in bound.free_symbols})
        assert float(proved) == pytest.approx(number(said, values), rel=1e-12)


def test_expectations_know_two_moments_only():
    with pytest.raises(ValueError, match="second moments"):
        expectation(x**3, {x: a})
    assert expectation((x + y) ** 2, {x: a, y: b}) == a + b


def test_steps_refuse_what_is_false():
    p = Proof()
    p.zero("binomial", (x + y) ** 2 - x**2 - 2 * x * y - y**2)
    p.nonnegative("positive", a + b, a / (1 + b), 0)
    p.implied("Young", a * x**2 + y**2 / a - 2 * x * y, squares=[(a, x - y / a)])
    p.region[b] = 1 / (1 + a)
    p.nonnegative("range", 1 - b)
    for bad in (
        lambda q: q.zero("no", (x + y) ** 2 - x**2 - y**2),
        lambda q: q.nonnegative("no", a - b),
        lambda q: q.nonnegative("no", x),  # of unknown sign
        lambda q: q.nonnegative("no", -a),
        lambda q: q.implied("no", x**2 - y**2, squares=[(1, x), (-1, y)]),  # a negative weight
        lambda q: q.implied("no", x**2, by=[(-1, -(x**2))]),
        lambda q: q.implied("no", x**2 + 1, squares=[(1, x)]),
    ):
        q = Proof()
        with pytest.raises(ProofError):
            bad(q)
        assert not q.steps[-1].ok and q.steps[-1].message


def test_unknown_names():
    with pytest.raises(UsageError, match="ef21"):
        run_proofs("ef22")
    with pytest.raises(UsageError, match="constant"):
        run_proofs("ef21", {"Rho": 2})
