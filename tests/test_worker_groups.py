"""Groups of workers in worst cases and contractions: equal ones reduce to what is known, sizes and times do not depend on numbers."""

from __future__ import annotations

import math

import pytest

from verify_rates.solvers.method import UsageError
from verify_rates.solvers.words import Unsupported
from verify_rates.theory.contraction import contraction
from verify_rates.theory.worst_case.solve import worst_case

RTOL = 1e-6
KIND = {"L": 1, "mu": 0.1, "delta": 0.75}
ALONE = {"L": 1, "mu": 0.1, "compressor": {"delta": 0.75}}
EF = {"steps": 1, "start": "free", "initial": "ef_lyapunov", "measure": "ef_lyapunov"}
EF21 = {"steps": 1, "start": "free", "initial": "ef21_lyapunov", "measure": "ef21_lyapunov", "zeta2_star": None}
GD = {"steps": 2, "measure": "distance"}
CASES = {"ef_sgd": EF, "ef21": EF21, "cgd": GD}


def groups(*numbers, **other):
    """Groups of the standard kind, the last one with other constants."""
    made = [{"n": n, **KIND} for n in numbers]
    made[-1] |= other
    return made


def same(a, b):
    assert a.rigorous and b.rigorous and a.exact and b.exact, f"{a} {b}"
    assert a.lower <= b.upper * (1 + RTOL) and b.lower <= a.upper * (1 + RTOL), f"{a} {b}"
    assert abs(a.upper / b.upper - 1) <= RTOL, f"{a.upper} {b.upper}"


@pytest.mark.parametrize("method", CASES)
def test_equal_groups_are_one(method):
    """One group, two of unequal numbers, and a million beside one: the result of exchangeable workers."""
    known = worst_case(method, {"gamma": 0.3}, **ALONE, **CASES[method])
    for numbers in ((5,), (2, 3), (10**6, 1)):
        same(worst_case(method, {"gamma": 0.3}, groups=groups(*numbers), **CASES[method]), known)


@pytest.mark.parametrize("zeta2_star", [0, 0.5])
def test_local_steps_with_heterogeneity(zeta2_star):
    problem = {"steps": 3, "zeta2_star": zeta2_star}
    one = worst_case("local_sgd", {"gamma": 0.3, "H": 2}, mu=0.1, **problem)
    two = worst_case("local_sgd", {"gamma": 0.3, "H": 2}, groups=[{"n": 4, "mu": 0.1}, {"n": 3, "mu": 0.1}], **problem)
    same(one, two)


@pytest.mark.parametrize("method", CASES)
def test_two_workers_are_two_explicit_functions(method):
    same(
        worst_case(method, {"gamma": 0.3}, n=2, apart=True, **ALONE, **CASES[method]),
        worst_case(method, {"gamma": 0.3}, groups=groups(1, 1), **CASES[method]),
    )


@pytest.mark.parametrize("n", [(2, 3), (1, 4)])
def test_unequal_workers_one_by_one_and_as_groups(n):
    """Every worker as a group of its own (explicit workers), against two groups: the reduction loses nothing."""
    other = {"L": 2, "mu": 0.5, "delta": 0.5}
    problem = {"steps": 1, "start": "free"} | {k: memory for k in ("initial", "measure")}
    single = [{"n": 1, **KIND}] * n[0] + [{"n": 1, **KIND, **other}] * n[1]
    together = [{"n": n[0], **KIND}, {"n": n[1], **KIND, **other}]
    same(worst_case("ef_sgd", {"gamma": 0.2}, groups=single, **problem), worst_case("ef_sgd", {"gamma": 0.2}, groups=together, **problem))


def memory(s, w, h):
    from verify_rates.solvers.words import optimum, sqnorm

    return sqnorm(w, s.x - optimum(w)) + sqnorm(w, s.e)


def test_the_flatter_group_decides_and_shares_matter():
    """gd with short steps: the average of quadratics of least curvature is the worst, mean mu = share-weighted."""
    found = worst_case("gd", {"gamma": 0.5}, groups=[{"n": 1, "L": 1, "mu": 0.1}, {"n": 3, "L": 1, "mu": 0.5}], steps=1, measure="distance")
    assert found.rigorous and abs(found.upper - (1 - 0.5 * 0.4) ** 2) <= RTOL


def test_numbers_of_workers_cost_nothing():
    """The problem to solve is of one size (the benchmark prints seconds)."""
    many, few = (worst_case("ef21", {"gamma": 0.1}, groups=groups(*n, L=2, mu=0.5), **EF21) for n in ((2 * 10**6, 3 * 10**6), (2, 3)))
    assert many.size == few.size and abs(many.upper / few.upper - 1) <= RTOL


# --- contraction ------------------------------------------------------------------------------------------------------

S, Q = 0.5, 0.9 / 1.1
STEP = 2 / 1.1 * (1 - S) / (1 + S)
RHO = (((1 - S) * Q + math.sqrt((1 - S) ** 2 * Q**2 + 4 * S)) / 2) ** 2  # Berg Thomsen, Taylor and Dieuleveut 2025


@pytest.mark.parametrize(("method", "zeta2_star"), [("ef_sgd", 0), ("ef21", None)])
@pytest.mark.parametrize("numbers", [(5,), (2, 3)])
def test_contraction_of_equal_groups(method, zeta2_star, numbers):
    found = contraction(method, {"gamma": STEP}, groups=groups(*numbers), zeta2_star=zeta2_star)
    assert found.ok and RHO * (1 - RTOL) <= found.upper <= RHO * (1 + RTOL), str(found)
    assert found.check.rigorous and found.statement["groups"][0]["n"] == numbers[0]


def test_contraction_of_unequal_groups_is_confirmed_by_the_worst_case():
    """The V found is a measure: one step from it is a worst case like any other; V of fewer workers is not read elsewhere."""
    kinds = [{"n": 1, **KIND}, {"n": 2, **KIND, "mu": 0.5}]
    found = contraction("ef_sgd", {"gamma": 0.3}, groups=kinds)
    again = worst_case("ef_sgd", {"gamma": 0.3}, groups=kinds, steps=1, start="free", initial=found.lyapunov, measure=found.lyapunov)
    assert again.rigorous and abs(again.upper / found.upper - 1) <= RTOL
    assert contraction("ef_sgd", {"gamma": 0.3}, **ALONE).upper > found.upper
    with pytest.raises(Unsupported, match="groups"):
        worst_case("ef_sgd", {"gamma": 0.3}, **ALONE, steps=1, start="free", initial=found.lyapunov, measure=found.lyapunov)


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"groups": []}, UsageError, "at least one"),
        ({"groups": {"n": 1}}, UsageError, "list"),
        ({"groups": 5}, UsageError, "list"),
        ({"groups": [{"n": 1}], "L": 2}, UsageError, "own L and mu"),
        ({"groups": [{"n": 1}], "mu": 0.5}, UsageError, "own L and mu"),
        ({"groups": [{"n": 1, "l": 2}]}, UsageError, "L"),
        ({"groups": [{"L": 1}]}, UsageError, "how many"),
        ({"groups": [{"n": 0}]}, UsageError, "n of a group"),
        ({"groups": [{"n": 1, "L": 1, "mu": 2}]}, UsageError, "mu <= L"),
        ({"groups": [{"n": 1, "L": float("nan")}]}, UsageError, "finite"),
        ({"groups": [{"n": 1, "delta": 0}]}, UsageError, "delta"),
        ({"groups": [{"n": 1}], "n": 3}, UsageError, "leave out n"),
        ({"groups": [{"n": 1}], "compressor": {"delta": 0.5}}, UsageError, "own delta"),
        ({"groups": [{"n": 1}]}, UsageError, "every group its delta"),
        ({"groups": [{"n": 2, "delta": 0.5}], "mixing": 0.5}, Unsupported, "exact means"),
        ({"groups": [{"n": 2, "delta": 0.5}], "functions": "smooth"}, Unsupported, "minimiser"),
    ],
)
def test_bad_input_is_one_sentence(given, kind, words):
    with pytest.raises(kind, match=words):
        worst_case("ef_sgd", {"gamma": 0.1}, steps=2, **given)
