"""Certificates that only the truth passes, for every method with a worst case."""

import copy
import json
import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
import test_known_rates as known
from shipped import shipped

from verify_rates.proofs_check import checker
from verify_rates.proofs_check.certificates import certify, confirm, gd_certificate, write
from verify_rates.proofs_check.checker import Refused, Statement, Sum, check, read, seal, semidefinite
from verify_rates.proofs_check.trace import trace
from verify_rates.solvers.method import Method, UsageError, get_method
from verify_rates.solvers.words import Unsupported, sqnorm
from verify_rates.theory.worst_case.solve import worst_case

F = Fraction
SHARP = F(1, 10**7)
S, MU = F(1, 2), F(1, 10)  # sqrt(1 - delta), and mu at L = 1
Q = (1 - MU) / (1 + MU)
STEP = 2 / (1 + MU) * (1 - S) / (1 + S)
RHO = float((((1 - S) * Q) + float((1 - S) ** 2 * Q**2 + 4 * S) ** 0.5) / 2) ** 2  # Berg Thomsen, Taylor and Dieuleveut 2025
LYAPUNOV = {"steps": 1, "mu": MU, "compressor": {"delta": 1 - S**2}, "start": "free"}


@pytest.mark.parametrize("N", range(1, 11))
def test_the_closed_form_of_gd_proves_the_exact_rate(N):
    made = gd_certificate(N)
    assert made["rate"] == f"1/{4 * N + 2}"
    assert check(made, {"L": "1", "mu": "0", "method": "gd", "steps": N}) == confirm(made)
    short = {**made, "rate": str(F(made["rate"]) * F(10**9 - 1, 10**9))}  # the rate is exact, so no smaller one can be proved
    with pytest.raises(Refused, match="more than the rate"):
        check(resealed(short))


def test_the_closed_form_with_other_steps_and_units():
    assert gd_certificate(7, "2/9", 3)["rate"] == "9/62"
    assert gd_certificate(2, 0.75)["about"]["hyper"] == {"gamma": "3/4"}


@pytest.mark.parametrize("arguments", [(0,), (101,), (True,), (2, 2), (2, 0), (2, "a"), (2, float("nan")), (2, "1/0"), (2, 1, -1)], ids=str)
def test_the_closed_form_refuses(arguments):
    with pytest.raises(UsageError):
        gd_certificate(*arguments)


def _gd(gamma, N, measure, initial, L=1, mu=0, n=1, **more):
    return "gd", {"gamma": gamma}, {"steps": N, "measure": measure, "initial": initial, "L": L, "mu": mu, "n": n, **more}


BOTH = ("ef_lyapunov", "ef21_lyapunov")
EXACT = {  # method, hyper, problem, the exact worst case
    "gd distance": (*_gd(F(19, 10), 3, "distance", "distance", mu=MU), F(9, 10) ** 6),
    "gd gap": (*_gd(1, 3, "function_gap", "function_gap", mu=MU), F(9, 10) ** 6),
    "gd gradient": (*_gd(1, 3, "grad_norm", "grad_norm", mu=MU), F(9, 10) ** 6),
    "gd units": (*_gd(F(1, 1000), 2, "function_gap", "function_gap", L=1000, mu=100), F(9, 10) ** 4),
    "gd gap to gradient": (*_gd(F(3, 2), 3, "grad_norm", "function_gap"), F(1, 5)),
    "gd long step": (*_gd(F(17, 10), 3, "function_gap", "distance"), F(7, 10) ** 6 / 2),
    "gd many workers": (*_gd(1, 3, "function_gap", "distance", n="any"), F(1, 14)),
    "gd nonconvex": (*_gd(1, 5, "grad_norm", "gap_to_last", n=1, functions="smooth", take="best"), F(4, 15)),
    "gd L = 1e6": (*_gd(F(1, 10**6), 3, "function_gap", "distance", L=10**6), F(10**6, 14)),
    "gd L = 1e-6": (*_gd(10**6, 3, "function_gap", "distance", L=F(1, 10**6)), F(1, 14 * 10**6)),
    "ogm-like": (
        "nesterov",
        {"gamma": 1, "beta": [F(i, i + 3) for i in range(4)]},
        {"steps": 4, "n": 1},
        F(2, 16 + 20 + 6),
    ),
    "cgd": (
        "cgd",
        {"gamma": 1},
        {"steps": 1, "mu": MU, "n": 1, "compressor": {"delta": F(3, 4)}, "initial": "function_gap"},
        (1 - MU * S) ** 2,
    ),
    **{f"ef n={n}": ("ef_sgd", {"gamma": STEP}, {**LYAPUNOV, "n": n, "measure": BOTH[0], "initial": BOTH[0]}, RHO) for n in (1, 10, "any")},
    **{
        f"ef21 n={n}": ("ef21", {"gamma": STEP}, {**LYAPUNOV, "n": n, "measure": BOTH[1], "initial": BOTH[1], "zeta2_star": None}, RHO)
        for n in (1, 10, "any")
    },
}


@pytest.mark.parametrize("case", EXACT.values(), ids=EXACT)
def test_known_exact_rates_are_proved_and_nothing_less(case):
    """Proved 1 + 1e-7 times over; 1 - 1e-6 times the rate is refused, for no multipliers can prove it."""
    method, hyper, problem, rate = case
    made = certify(method, hyper, bound=rate, inflate=SHARP, **problem)
    assert F(made["rate"]) == F(rate) * (1 + SHARP)
    assert confirm(read(json.dumps(made))) == check(made)
    with pytest.raises(Refused):
        certify(method, hyper, bound=F(rate) * (1 - F(1, 10**6)), inflate=0, **problem)


GIVEN = {"tau": 2, "H": 3, "beta": F(1, 3), "eta": F(1, 2)}
PROBLEM = {"steps": 3, "mu": MU, "compressor": {"delta": S}}


def _hyper(method):
    """Small steps, and values for what has no default."""
    names = [f for f in method.hyper._fields if f not in method.hyper._field_defaults]
    return {f: GIVEN.get(f, F(1, 5)) for f in names}


@pytest.mark.parametrize("name", sorted(shipped()))
@pytest.mark.parametrize("n", [1, "any"])
def test_every_method_with_a_worst_case_is_certified_or_says_why(name, n):
    """Two readings of the words, one through floats and one through fractions, give one value: certified above it, refused below."""
    method = get_method(name)
    problem = {**PROBLEM, "n": n}
    try:
        found = worst_case(name, _hyper(method), **problem)
    except (Unsupported, UsageError):
        return
    if not (found.rigorous and found.exact):
        return
    try:
        made = certify(name, _hyper(method), bound=found.upper, **problem)
    except Unsupported as why:
        assert len(str(why)) > 20 and {"gossip", "prox", "implicit", "line_search", "lmo"} & set(str(why).replace("'", " ").split())
        return
    assert confirm(made) and made["workers"] == ("one" if n == 1 else "any")
    with pytest.raises(Refused):
        certify(name, _hyper(method), bound=found.lower * (1 - 1e-4), inflate=0, **problem)


def test_an_own_lyapunov_function_in_fractions():
    """A contraction result: V = ||x - x*||^2 + c ||m||^2 for heavy ball, the numbers of V being fractions."""

    def V(s, w, h):
        return sqnorm(w, s.x - w.optimum()) + F(1, 2) * sqnorm(w, s.v)

    method, hyper = get_method("heavy_ball"), {"gamma": F(1, 2), "beta": F(1, 10)}
    problem = {"steps": 1, "mu": MU, "n": "any", "measure": V, "initial": V, "start": "free"}
    bound = worst_case(method, hyper, **problem).upper
    made = certify(method, hyper, bound=bound, **problem)
    assert bound < 1 and confirm(made, measure=V, initial=V)
    with pytest.raises(Refused, match="not that of heavy_ball"):
        confirm(made, measure="distance", initial="distance")


@pytest.mark.parametrize("n", [1, "any"])
@pytest.mark.parametrize(("mu", "N"), [(F(9, 10), 6), (F(99, 100), 3), (F(999, 1000), 1)])
def test_mu_near_L_over_many_steps(mu, N, n):
    """Down to falls by 1e-12, the accuracy of the solver in units of the start; the measure falls by (1 - mu)^2 a step."""
    problem = {"steps": N, "mu": mu, "n": n, "measure": "distance"}
    assert confirm(certify("gd", {"gamma": 1}, bound=(1 - mu) ** (2 * N), **problem))
    with pytest.raises(Refused, match="certify_chain" if N > 1 else "."):
        certify("gd", {"gamma": 1}, bound=(1 - mu) ** (2 * N) * (1 - 10 * SHARP), inflate=0, **problem)


SMOOTH_CONVEX = [(i, r) for i, r in known.ROWS if r["class"] == "L-smooth convex" and r["N"].isdigit() and int(r["N"]) <= 5]


@pytest.mark.parametrize("row", [r for _, r in SMOOTH_CONVEX], ids=[f"line{i}" for i, _ in SMOOTH_CONVEX])
def test_all_rows_of_smooth_convex_type(row, monkeypatch):
    """Of every row with at most five steps the exact value is certified within 1e-6; tight rows at what the table says."""
    asked = []

    def record(method, hyper, **problem):
        asked.append((method, hyper, problem))
        return worst_case(method, hyper, **problem)

    monkeypatch.setattr(known, "worst_case", record)
    found = known.asked(row)(known.parameters(row), int(row["N"]))
    ((method, hyper, problem),) = asked
    if "line" in row["method"] or "greedy" in row["method"]:
        with pytest.raises(Unsupported, match="search"):  # where a search ends is no combination with fractions known beforehand
            certify(method, hyper, **problem)
        return
    exact = known.formula(row, known.parameters(row)) if row["tight"].startswith("yes") else found.upper
    assert found.lower <= exact * (1 + known.ROUNDING) and exact <= found.upper * (1 + known.ROUNDING)
    made = certify(method, hyper, bound=exact, inflate=F(9, 10**7), **problem)
    functions = {k: problem[k] for k in ("measure", "initial") if callable(problem.get(k))}
    assert confirm(made, method, **functions) and F(exact) < F(made["rate"]) <= F(exact) * (1 + F(known.RTOL))


@pytest.mark.skipif(not known.ROWS, reason="the table of known rates is not beside the repository")
def test_the_table_has_such_rows():
    assert len(SMOOTH_CONVEX) >= 6


def test_gd_with_twenty_steps_at_a_sharp_inflation():
    made = certify("gd", {"gamma": 1}, steps=20, bound=F(1, 82), inflate=SHARP, n=1)
    assert F(made["rate"]) == F(1, 82) * (1 + SHARP)


def test_a_method_that_is_not_the_one_named_is_refused():
    made = gd_certificate(3)
    heavy = Method("gd", lambda s, w, h, t: get_method("gd").step(s, w, h._replace(gamma=2 * h.gamma), t), *_shape("gd"))
    with pytest.raises(Refused, match="not that of gd"):
        confirm(made, heavy)


def _shape(name):
    method = get_method(name)
    return method.state, method.hyper, method.start


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bound": 0}, "positive"),
        ({"bound": "x"}, "fraction"),
        ({"inflate": float("nan")}, "fraction"),
        ({"mu": 2}, "exceeds"),
        ({"steps": 0}, "steps"),
        ({"measure": "gap"}, "measure"),
        ({"take": "first"}, "take"),
        ({"start": "zero"}, "start"),
    ],
)
def test_bad_input_is_one_sentence(change, words):
    with pytest.raises(UsageError, match=words):
        certify("gd", {"gamma": 1}, **{"steps": 2, "bound": F(1, 10), "n": 1} | change)


@pytest.mark.parametrize("problem", [{"functions": "convex"}, {"mu": 1}, {"functions": "quadratic"}])
def test_what_a_certificate_does_not_speak_of(problem):
    with pytest.raises(Unsupported, match="a certificate"):
        certify("gd", {"gamma": 1}, steps=2, bound=1, n=1, **problem)


# --- nothing else passes ----------------------------------------------------------------------------------------------


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


EF = certify("ef_sgd", {"gamma": STEP}, bound=RHO, inflate=SHARP, n="any", measure=BOTH[0], initial=BOTH[0], **LYAPUNOV)
SAMPLES = {"gd": gd_certificate(3), "ef": EF}


@pytest.mark.parametrize("which", SAMPLES)
def test_every_field_perturbed_is_refused(which):
    made = SAMPLES[which]
    for path in leaves(made):
        old = look(made, path)
        for junk in [*JUNK, str(old) + "1"]:
            if junk == old and type(junk) is type(old):
                continue
            corrupted = replaced(made, path, junk)
            with pytest.raises(Refused):
                check(corrupted)  # the seal is broken
            if path != ("sha256",) and path[0] != "about" and not _weaker(made, corrupted, path):
                with pytest.raises(Refused):
                    confirm(resealed(corrupted))  # the content is nonsense, whoever sealed it


def _weaker(made, changed, path):
    """Whether a changed place states less: a larger rate, a smaller class, or other multipliers of the same statement."""
    sign = {("rate",): 1, ("class", "mu"): 1, ("class", "L"): -1, ("compressor", "delta"): 1}.get(path)
    if sign is None or not isinstance(look(changed, path), str):
        return path[0] == "multipliers" or path == ("about", "start")  # where it is the same
    try:
        return sign * F(look(changed, path)) > sign * F(look(made, path))
    except (ValueError, ZeroDivisionError):
        return False


@pytest.mark.parametrize("which", SAMPLES)
def test_plausible_changes_are_refused_or_weaken_the_statement(which):
    made, passed = SAMPLES[which], 0
    for path in leaves(made):
        old = look(made, path)
        if path in (("format",), ("sha256",)) or old is None:
            continue
        changes = [old + 1, old - 1] if isinstance(old, int) else []
        if isinstance(old, str) and old.lstrip("-").replace("/", "").isdigit():
            changes = [str(F(old) + d) for d in (F(1, 10**4), -F(1, 10**4), 1, -1)] + [str(-F(old) or 1)]
        elif isinstance(old, str):
            changes = ["distance", "grad_norm", "any", "one", "smooth", "pair", "initial", "cgd", "free"]
        for change in changes:
            if change != old:
                changed = replaced(made, path, change)
                try:
                    confirm(resealed(changed))
                except Refused as refused:
                    assert "\n" not in str(refused)
                else:
                    passed += 1
                    assert _weaker(made, changed, path), (path, change)
    assert passed  # a larger rate at least


def test_structure_is_checked():
    made = gd_certificate(2)
    for broken in (
        {k: v for k, v in made.items() if k != "rate"},
        {**made, "more": 1},
        {**made, "multipliers": []},
        {**made, "multipliers": made["multipliers"][:-1]},
        {**made, "multipliers": [*made["multipliers"], made["multipliers"][0]]},
        {**made, "multipliers": [*made["multipliers"], ["pair", 1, 1, "1"]]},
        {**made, "multipliers": [*made["multipliers"], ["pair", True, 2, "1"]]},
        {**made, "multipliers": [*made["multipliers"], ["pear", 1, 2, "1"]]},
        {**made, "multipliers": [*made["multipliers"], ["heterogeneity", "1"]]},
        {**made, "multipliers": [*made["multipliers"], ["infimum", 1, "1"]]},
        {**made, "points": made["points"][:-1]},
        {**made, "unknowns": [1, 0, 3]},
        {**made, "unknowns": [10**9, 0, 3]},
        {**made, "class": {"L": "1"}},
        {**made, "class": {"functions": "smooth", "L": "1", "mu": "1/2"}},
        {**made, "class": {"functions": "smooth_strongly_convex", "L": "1", "mu": "1"}},
        {**made, "minimiser": 1},
        {**made, "workers": "two"},
        {**made, "least": [[0, []]]},
        {**made, "initial": []},
        [],
        "text",
        None,
    ):
        with pytest.raises(Refused):
            confirm(resealed(broken)) if isinstance(broken, dict) else check(broken)


@pytest.mark.parametrize(
    "expected", [{"rate": "1/13"}, {"L": "2"}, {"steps": 4}, {"measure": "distance"}, {"method": "ogm"}, {"zeta2": "0"}]
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
    """On f(x) = c*x^2/2: exactly 0 at c = mu and c = L, kept between, broken outside."""
    L, mu, N = F(3), F(1, 4), 3
    c = {"mu": mu, "between": F(2), "L": L, "too steep": L + F(1, 100), "too flat": mu - F(1, 100)}[curvature]
    gamma = F(1, 5)
    stated, _ = trace("gd", {"gamma": gamma}, steps=N, L=L, mu=mu, n=1)
    statement = Statement(stated)
    place = [F(0), *(2 * (1 - gamma * c) ** k for k in range(N + 1))]  # x*, x_0, x_1, ...
    coordinates = [F(0), place[1], *(c * x for x in place[1:])]  # x* and x_0 - x*, then gradients
    heights = [c * x**2 / 2 for x in place[1:]]
    for i in range(N + 2):
        for j in range(N + 2):
            if i != j:
                total = Sum(statement.sizes, statement.values)
                statement.inequality(total, F(1), "pair", i, j)
                value = sum(w * f for w, f in zip(total.values, heights, strict=True))
                value += sum(v * coordinates[a] * coordinates[b] for a, row in enumerate(total.grams[0]) for b, v in enumerate(row))
                assert {"mu": value == 0, "L": value == 0, "between": value < 0}.get(curvature, value > 0)


def test_the_checker_stands_alone(tmp_path):
    """The file alone, without site packages, decides; it is short and imports the standard library only."""
    source = Path(checker.__file__).read_text()
    imported = {line.split()[1] for line in source.splitlines() if line.startswith(("import ", "from "))}
    assert imported == {"hashlib", "json", "re", "sys", "fractions"} and len(source.splitlines()) < 290
    (tmp_path / "alone.py").write_text(source)
    good = write(gd_certificate(5), tmp_path / "good.json")
    bad = write({**gd_certificate(5), "rate": "1/23"}, tmp_path / "bad.json")

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(tmp_path / "alone.py"), *map(str, arguments)], capture_output=True, text=True
        )
        assert done.stdout.count("\n") == 1 and done.stderr == ""
        return done.returncode, done.stdout

    assert run(good)[0] == 0 and run(good)[1].startswith("accepted: function_gap <= 1/22 after 5 steps")
    assert run(good, "rate=1/22", "steps=5")[0] == 0
    assert run(good, "rate=1/23")[0] == 1 and run(good, "rate")[0] == 1
    assert run(bad)[0] == 1 and run(bad)[1].startswith("refused: ")
    assert run(tmp_path / "none.json")[0] == 1 and run()[0] == 1 and run(tmp_path)[0] == 1


@pytest.mark.parametrize(
    ("field", "value"), [("steps", "9" * 30), ("steps", "2.0"), ("initial_value", float("inf")), ("hyper", {"gamma": []})]
)
def test_a_statement_that_cannot_be_traced_again_is_refused_at_once(field, value):
    made = gd_certificate(2)
    made = {**made, "about": {**made["about"], field: value}}
    with pytest.raises(Refused):
        confirm({**made, "sha256": seal(made)})


@pytest.mark.parametrize("made", [[], [1, 2], "text", None, 3])
def test_json_that_is_no_certificate_is_refused(made):
    with pytest.raises(Refused):
        confirm(made)


@pytest.mark.parametrize(
    ("method", "problem", "what"),
    [
        ("gossip_sgd", {"mixing": 0.5}, "gossip"),
        ("gossip_sgd", {"mixing": [[0.5, 0.5], [0.5, 0.5]], "n": 2}, "gossip"),
        ("gd", {"sigma2": 0.1, "n": 2}, "gradient noise"),
        ("gd", {"sampled": 1, "n": 2}, "workers drawn"),
        ("gd", {"groups": [{"n": 1, "L": 1}]}, "groups of workers"),
    ],
)
def test_what_worst_cases_read_and_certificates_do_not_is_said(method, problem, what):
    with pytest.raises(Unsupported, match=what):
        certify(method, {"gamma": 0.1}, steps=1, bound=1, **problem)
    assert certify("gd", {"gamma": 0.1}, steps=1, bound=1, mixing=None, sigma2=0)["rate"]
    with pytest.raises(UsageError, match="did you mean 'mixing'"):
        certify("gd", {"gamma": 0.1}, steps=1, bound=1, mixin=0.5)
