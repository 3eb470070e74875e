"""The stored table of exact worst cases: rows again, and what the text says about them."""

from __future__ import annotations

import csv
import importlib.util
import json
import math
import re
from pathlib import Path

import pytest

from verify_rates.theory.contraction import contraction
from verify_rates.theory.worst_case.solve import worst_case

DOCS = Path(__file__).parents[1] / "docs"
TEXT = (DOCS / "exact_tables.md").read_text()
RTOL = 2e-5  # the step is stored with six digits, at a kink of the value, and a Lyapunov function is searched to 1e-5


def rows():
    with (DOCS / "exact_tables.csv").open(newline="") as file:
        return list(csv.DictReader(file))


ROWS = rows()
STALE = {(int(r["tau"]), float(r["delta"])): r for r in ROWS if r["method"] == "dd_ef_sgd"}


def test_ends_are_ordered():
    for row in ROWS:
        assert not row["lower"] or 0 < float(row["lower"]) <= float(row["upper"])
        assert (row["lower"] == "") == ("upper bound" in row["setting"] and float(row["lam"]) > 0)


@pytest.mark.parametrize(("tau", "delta"), [(0, 0.75), (2, 0.5), (4, 0.1)])
def test_contractions_again(tau, delta):
    row = STALE[tau, delta]
    found = contraction("dd_ef_sgd", {"gamma": float(row["gamma"]), "tau": tau}, mu=0.1, compressor={"delta": delta})
    assert abs(found.upper - float(row["upper"])) <= RTOL


@pytest.mark.parametrize(
    "row", [r for r in ROWS if r["method"] == "local_sgd" and r["H"] in "24"], ids=lambda r: f"{r['H']}-{r['zeta2_star']}"
)
def test_local_steps_again(row):
    H = int(row["H"])
    found = worst_case("local_sgd", {"gamma": float(row["gamma"]), "H": H}, steps=2 * H, zeta2_star=float(row["zeta2_star"]))
    assert abs(found.upper / float(row["upper"]) - 1) <= RTOL


@pytest.mark.parametrize("factor", [0.8, 1.25])
def test_another_step_is_worse(factor):
    row = STALE[2, 0.5]
    found = contraction("dd_ef_sgd", {"gamma": factor * float(row["gamma"]), "tau": 2}, mu=0.1, compressor={"delta": 0.5})
    assert found.lower > float(row["upper"]) * (1 + RTOL)


def test_the_text_says_what_the_table_says():
    lines = re.findall(r"^\| (\d) \| (.*) \|$", TEXT.split("## What a stale")[0], re.M)
    assert len(lines) == 5
    for tau, numbers in lines:
        said = [float(x) for x in numbers.split(" | ")]
        for delta, value in zip((1.0, 0.75, 0.5, 0.25, 0.1), said, strict=True):
            row = STALE[int(tau), delta]
            assert abs(float(row["steps_per_efold"]) - value) <= 0.05 + 1e-9
            assert abs(-2 / math.log(float(row["upper"])) - float(row["steps_per_efold"])) <= 0.01


def test_staleness_adds():
    """One more step of delay costs about the same at every compression; the factor falls as more is compressed."""
    steps = {key: float(row["steps_per_efold"]) for key, row in STALE.items()}
    costs = [steps[tau + 1, d] - steps[tau, d] for tau in range(4) for d in (1.0, 0.75, 0.5, 0.25)]
    assert min(costs) >= 5.5 and max(costs) <= 7.25
    factors = [steps[4, d] / steps[0, d] for d in (1.0, 0.75, 0.5, 0.25, 0.1)]
    assert factors == sorted(factors, reverse=True) and factors[2] < 1.8 < 0.75**-4


def test_heavy_ball_beyond_quadratics():
    found = contraction("heavy_ball", {"gamma": 1.8811, "beta": 0.2271}, mu=0.1)
    assert found.rigorous and abs(found.upper - 0.5276) < 5e-5


def _script():
    spec = importlib.util.spec_from_file_location("exact_tables", DOCS.parent / "benchmarks" / "exact_tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("tau", [0, 1])
def test_co2_by_rounds_is_co2(tau):
    """The table reads CO2 with one round a step; both writings have the same worst case after three rounds of two local steps."""
    by_round = worst_case(_script().by_rounds(), {"gamma": 0.4, "H": 2, "tau": tau}, steps=3, mu=0.1)
    at_server = worst_case("co2", {"gamma": 0.4, "H": 2, "tau": tau}, steps=6, mu=0.1)
    assert by_round.rigorous and at_server.rigorous and abs(by_round.upper / at_server.upper - 1) <= RTOL


def test_without_staleness_co2_contracts_as_gradient_descent():
    for row in ROWS:
        if row["method"] == "co2" and row["tau"] == "0":
            assert abs(float(row["upper"]) / (0.9 / 1.1) ** (2 * int(row["H"])) - 1) <= RTOL


def test_stale_rounds_again():
    row = next(r for r in ROWS if r["method"] == "co2" and r["tau"] == "1" and r["H"] == "2")
    found = contraction(_script().by_rounds(), {"gamma": float(row["gamma"]), "H": 2, "tau": 1}, mu=0.1)
    assert abs(found.upper - float(row["upper"])) <= RTOL


def test_the_figure_is_that_of_the_table():
    drawn = json.loads((DOCS / "figures" / "exact-tables.json").read_text())
    assert drawn == _script().curves(ROWS) and all(drawn.values())
    assert len(_script().figure(drawn).axes) == 4


def test_the_text_says_what_stale_rounds_cost():
    said = re.findall(r"^\| (\d) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", TEXT, re.M)
    known = {(r["H"], r["tau"]): r for r in ROWS if r["method"] == "co2"}
    assert [H for H, *_ in said] == ["1", "2", "4", "8"]
    for H, fresh, stale, gamma in said:
        assert abs(float(known[H, "0"]["upper"]) - float(fresh)) <= 5.1e-5
        assert abs(float(known[H, "1"]["upper"]) - float(stale)) <= 5.1e-5
        assert abs(float(known[H, "1"]["gamma"]) - float(gamma)) <= 5.1e-4
