"""Proofs that name their failing step, and certificates that only the truth passes."""

import copy
import json
import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
import sympy as sp

from verify_rates.proofs_check import checker
from verify_rates.proofs_check.certificates import INFLATION, certificate, certify_gd, find_certificate, gd_certificate, write
from verify_rates.proofs_check.checker import Refused, check, read, seal, semidefinite
from verify_rates.proofs_check.proof import Proof, ProofError, proofs, run_proofs
from verify_rates.solvers.method import UsageError

x, y = sp.symbols("x y", real=True)
a, b = sp.symbols("a b", positive=True)


# --- scripts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["error_feedback", "ef21", "deco.5"])
def test_proof_holds(name):
    (result,) = run_proofs(name)
    assert result.ok, result.message
    assert len(result.steps) >= 11 and result.assumptions and result.seconds < 30
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
    ("deco.5", "noise of a step", "(a) descent lemma at the virtual iterate"),
    ("deco.5", "two", "(b) two terms"),
    ("deco.5", "young", "(c) (1-delta)*(1+beta) = 1-delta/2"),
    ("deco.5", "step limit", "half of the descent is left"),
    ("deco.5", "noise factor", "the theorem"),
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


# --- certificates -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("N", range(1, 11))
def test_gd_certificate_proves_the_exact_rate(N):
    made = gd_certificate(N)
    assert made["rate"] == f"1/{4 * N + 2}"
    assert f"f(x_{N}) - f* <= 1/{4 * N + 2} *" in check(made, {"L": "1", "mu": "0", "name": "gd", "gamma": "1", "steps": N})
    short = copy.deepcopy(made)
    short["rate"] = str(Fraction(made["rate"]) * Fraction(10**9 - 1, 10**9))  # the rate is exact, so no smaller one can be proved
    with pytest.raises(Refused, match="semidefinite"):
        check(resealed(short))


def test_gd_certificate_with_other_steps_and_units():
    assert "<= 9/62 *" in check(gd_certificate(7, "2/9", 3))
    assert "gamma = 3/4" in check(gd_certificate(2, 0.75))


BAD_STEPS = [(0,), (101,), (True,), (2, 2), (2, 0), (2, "a"), (2, float("nan")), (2, "1/0"), (2, 1, -1)]


@pytest.mark.parametrize("arguments", BAD_STEPS, ids=str)
def test_gd_certificate_refuses(arguments):
    with pytest.raises(UsageError):
        gd_certificate(*arguments)


def test_strongly_convex_certificate_by_hand():
    """||grad f(x_1)||^2 <= (1-gamma*mu)^2*||grad f(x_0)||^2 for gamma = 1/L, from one pair of inequalities."""
    L, mu, gamma = Fraction(1), Fraction(1, 10), Fraction(1)
    lam = 2 * (1 - gamma * mu) / gamma
    options = {"measure": "grad_norm", "initial": "grad_norm", "name": "gd", "gamma": gamma}
    made = certificate(L, mu, [[-gamma]], {(0, 1): lam, (1, 0): lam}, (1 - gamma * mu) ** 2, **options)
    assert "||grad f(x_1)||^2 <= 81/100 * (||grad f(x_0)||^2) for every 1-smooth 1/10-strongly convex f" in check(made)
    with pytest.raises(Refused, match="semidefinite"):
        check(certificate(L, mu, [[-gamma]], {(0, 1): lam, (1, 0): lam}, Fraction(80, 100), **options))


SMALL = Fraction(1, 10)
CASES = [  # measure, initial, L, mu, gamma, steps, the exact worst case
    ("distance", "distance", 1, SMALL, Fraction(19, 10), 3, Fraction(9, 10) ** 6),
    ("function_gap", "function_gap", 1, SMALL, 1, 3, Fraction(9, 10) ** 6),
    ("grad_norm", "grad_norm", 1, SMALL, 1, 3, Fraction(9, 10) ** 6),
    ("function_gap", "function_gap", 1000, 100, Fraction(1, 1000), 2, Fraction(9, 10) ** 4),
    ("grad_norm", "function_gap", 1, 0, Fraction(3, 2), 3, Fraction(1, 5)),
    ("function_gap", "distance", 1, 0, Fraction(17, 10), 3, Fraction(7, 10) ** 6 / 2),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(map(str, c[:2])))
def test_certificates_found_by_a_solver_are_exact(case):
    """At the known exact rates: proved with the stated inflation, refused with the same deflation."""
    measure, initial, L, mu, gamma, N, rate = case
    rows = [[-Fraction(gamma)] * k for k in range(1, N + 1)]
    options = {"measure": measure, "initial": initial, "name": "gd", "gamma": gamma}
    made = find_certificate(L, mu, rows, rate, **options)
    assert check(read(json.dumps(made)), {"rate": rate * (1 + INFLATION), "L": L, "mu": mu, **options})
    with pytest.raises(Refused):
        find_certificate(L, mu, rows, rate, inflation=-INFLATION, **options)


def test_certify_gd_at_the_bounds_of_claims():
    """Bounds as floats, as a claim gives them: the formula passes, 0.999 of it does not."""
    from verify_rates.theory.symbols import number

    for bound, values, options in (
        ("L/(4*N*L*gamma+2)", {"L": 3.0, "gamma": 1 / 3, "N": 4}, {}),
        ("Max((1-gamma*L)**2,(1-gamma*mu)**2)**N", {"L": 1.0, "mu": 0.1, "gamma": 1.9, "N": 2}, {"measure": "distance"}),
        (
            "Max(2*L/(2*N*L*gamma+1), 2*L*(1-gamma*L)**(2*N))",
            {"L": 1.0, "gamma": 1.5, "N": 2},
            {"measure": "grad_norm", "initial": "function_gap"},
        ),
    ):
        rate = number(bound, values)
        given = (values["N"], values["gamma"], values["L"])
        made = certify_gd(*given, rate, mu=values.get("mu", 0), **options)
        assert Fraction(made["rate"]) <= Fraction(rate) * (1 + INFLATION) and check(made, {"steps": values["N"]})
        with pytest.raises(Refused):
            certify_gd(*given, 0.999 * rate, mu=values.get("mu", 0), **options)


def test_find_certificate_refuses_bad_input():
    for bad in ((1, 2, [["-1"]], 1), (1, 0, [], 1), (0, 0, [["-1"]], 1), (1, 0, [["x"]], 1), (1, 0, [["-1"]], "rate")):
        with pytest.raises(UsageError):
            find_certificate(*bad)
    with pytest.raises(UsageError, match="distance"):
        find_certificate(1, 0, [["-1"]], 1, measure="gap")


def resealed(made):
    return {**made, "sha256": seal(made)}


def leaves(value, path=()):
    """Paths to every leaf of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        yield path
    else:
        for key, inner in items:
            yield from leaves(inner, (*path, key))


def replaced(made, path, value):
    out = copy.deepcopy(made)
    at = out
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return out


def look(made, path):
    for key in path:
        made = made[key]
    return made


JUNK = [
    "",
    "x",
    "1/0",
    "0.5",
    "2/4",
    "-0",
    "1e3",
    " 1",
    "1_0",
    "\u0661",
    None,
    True,
    1,
    0,
    -1,
    1.5,
    float("nan"),
    float("inf"),
    [],
    {},
    "9" * 5000,
    10**30,
]


@pytest.mark.parametrize("path", list(leaves(gd_certificate(3))), ids=str)
def test_every_field_perturbed_is_refused(path):
    made = gd_certificate(3)
    old = look(made, path)
    for junk in [*JUNK, str(old) + "1"]:
        if junk == old and type(junk) is type(old):
            continue
        corrupted = replaced(made, path, junk)
        with pytest.raises(Refused):
            check(corrupted)  # the seal is broken
        if path != ("sha256",):
            with pytest.raises(Refused):
                check(resealed(corrupted))  # the content is nonsense, whoever sealed it


@pytest.mark.parametrize("path", [p for p in leaves(gd_certificate(3)) if p not in (("format",), ("sha256",))], ids=str)
def test_plausible_changes_are_refused_or_weaken_the_statement(path):
    """A resealed change passes only where it states less: a larger rate, or a smaller class of functions."""
    made = gd_certificate(3)
    old = look(made, path)
    changes = [old + 1, old - 1] if isinstance(old, int) else ["*", 2] if old == "*" else []
    if isinstance(old, str) and old not in checker.MEASURES and old not in ("gd", "*"):
        changes = [str(Fraction(old) + d) for d in (Fraction(1, 10**6), -Fraction(1, 10**6), 1, -1)] + [str(-Fraction(old) or 1)]
    changes += [m for m in checker.MEASURES if old in checker.MEASURES and m != old] + (["fixed", "GD"] if old == "gd" else [])
    accepted = []
    for change in changes:
        if change != old:
            try:
                check(resealed(replaced(made, path, change)))
                accepted.append(change)
            except Refused as refused:
                assert "\n" not in str(refused)
    weaker = {("rate",): 1, ("class", "mu"): 1, ("class", "L"): -1}.get(path)
    if weaker is None:
        assert accepted == []
    else:
        assert accepted and all(Fraction(c) * weaker > Fraction(old) * weaker for c in accepted)


def test_structure_is_checked():
    made = gd_certificate(2)
    for broken in (
        {k: v for k, v in made.items() if k != "rate"},
        {**made, "more": 1},
        {**made, "multipliers": []},
        {**made, "multipliers": made["multipliers"][:-1]},
        {**made, "multipliers": [*made["multipliers"], made["multipliers"][0]]},
        {**made, "multipliers": [*made["multipliers"], [1, 1, "1"]]},
        {**made, "multipliers": [*made["multipliers"], [True, 2, "1"]]},
        {**made, "algorithm": {**made["algorithm"], "coefficients": made["algorithm"]["coefficients"][:-1]}},
        {**made, "algorithm": {**made["algorithm"], "coefficients": [["-1"], ["-1", "-1", "0"]]}},
        {**made, "class": {"L": "1"}},
        {**made, "steps": 3},
        [],
        "text",
        None,
    ):
        with pytest.raises(Refused):
            check(resealed(broken) if isinstance(broken, dict) else broken)


@pytest.mark.parametrize(
    "expected",
    [
        {"rate": "1/13"},
        {"gamma": "1/2"},
        {"L": "2"},
        {"steps": 4},
        {"measure": "distance"},
        {"name": "ogm"},
        {"mu": "1/10"},
        {"zeta2": "0"},
    ],
)
def test_a_certificate_of_something_else_is_refused(expected):
    with pytest.raises(Refused, match="states"):
        check(gd_certificate(3), expected)


def test_text_is_read_strictly():
    text = json.dumps(gd_certificate(2))
    assert check(read(text))
    for bad in ("", "{", text[:-1], text + text, "[" * 100000, '{"rate": 1, "rate": 2}', " " * (checker.MAX_CHARS + 1)):
        with pytest.raises(Refused):
            read(bad)


def test_random_bytes_flipped_in_the_file_are_refused(tmp_path):
    text = (write(gd_certificate(4), tmp_path / "c.json")).read_text()
    rng = random.Random(0)
    for _ in range(400):
        i = rng.randrange(len(text))
        new = text[:i] + chr(rng.randrange(33, 127)) + text[i + 1 :]
        try:
            same = json.loads(new) == json.loads(text)
        except ValueError:
            same = False
        if not same:
            with pytest.raises(Refused):
                check(read(new))


def test_semidefinite_against_known_matrices():
    F = Fraction
    assert semidefinite([[F(1), F(2)], [F(2), F(4)]]) and semidefinite([[F(0), F(0)], [F(0), F(1)]])
    assert not semidefinite([[F(1), F(2)], [F(2), F(4) - F(1, 10**50)]])
    assert not semidefinite([[F(0), F(1, 10**50)], [F(1, 10**50), F(1)]])
    assert not semidefinite([[F(-1)]])


@pytest.mark.parametrize("curvature", ["mu", "between", "L", "too steep", "too flat"])
def test_the_checkers_inequalities_are_true_of_the_class_and_of_nothing_more(curvature):
    """On f(x) = c*x^2/2: exactly 0 at c = mu and c = L, positive between, negative outside."""
    L, mu, N = Fraction(3), Fraction(1, 4), 3
    c = {"mu": mu, "between": Fraction(2), "L": L, "too steep": L + Fraction(1, 100), "too flat": mu - Fraction(1, 100)}[curvature]
    gamma = Fraction(1, 5)
    x, g = checker.points({"name": "gd", "gamma": "1/5", "coefficients": [["-1/5"] * k for k in range(1, N + 1)]}, N)
    place = {"*": Fraction(0), **{k: 2 * (1 - gamma * c) ** k for k in range(N + 1)}}
    coordinates = [place[0], *(c * place[k] for k in range(N + 1))]
    for i in x:
        for j in x:
            if i != j:
                total = checker.Sum(N)
                checker.interpolation(total, Fraction(1), i, j, x, g, L, mu)
                value = sum(w * c * place[k] ** 2 / 2 for k, w in enumerate(total.values))
                value += sum(total.gram[a][b] * coordinates[a] * coordinates[b] for a in range(N + 2) for b in range(N + 2))
                assert {"mu": value == 0, "L": value == 0, "between": value > 0}.get(curvature, value < 0)


def test_checker_stands_alone(tmp_path):
    """The file alone, without site packages, decides; it is short and imports the standard library only."""
    source = Path(checker.__file__).read_text()
    imported = {line.split()[1] for line in source.splitlines() if line.startswith(("import ", "from "))}
    assert imported == {"hashlib", "json", "re", "sys", "fractions"} and len(source.splitlines()) < 200
    (tmp_path / "alone.py").write_text(source)
    good = write(gd_certificate(5), tmp_path / "good.json")
    bad = write({**gd_certificate(5), "rate": "1/23"}, tmp_path / "bad.json")

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(tmp_path / "alone.py"), *map(str, arguments)], capture_output=True, text=True
        )
        assert done.stdout.count("\n") == 1 and done.stderr == ""
        return done.returncode, done.stdout

    assert run(good)[0] == 0 and run(good)[1].startswith("accepted: gd with gamma = 1 has f(x_5) - f* <= 1/22 ")
    assert run(good, "rate=1/22", "steps=5")[0] == 0
    assert run(good, "rate=1/23")[0] == 1 and run(good, "rate")[0] == 1
    assert run(bad)[0] == 1 and run(bad)[1].startswith("refused: ")
    assert run(tmp_path / "none.json")[0] == 1 and run()[0] == 1 and run(tmp_path)[0] == 1


def test_module_runs_as_said(tmp_path):
    good = write(gd_certificate(1), tmp_path / "good.json")
    done = subprocess.run([sys.executable, "-m", "verify_rates.proofs_check.checker", str(good)], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("accepted: ")
