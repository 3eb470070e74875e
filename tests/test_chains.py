"""Certificates of chained potentials that only the truth passes."""

from __future__ import annotations

import copy
import json
import random
import subprocess
import sys
from fractions import Fraction
from functools import cache

import pytest
from click.testing import CliRunner
from test_certificates import JUNK, leaves, look, replaced, resealed
from test_potentials import OGM, at_y, thetas

from verify_rates.cli import main
from verify_rates.proofs_check import chain_checker
from verify_rates.proofs_check.certificates import INFLATION, confirm, write
from verify_rates.proofs_check.chain_checker import check_chain
from verify_rates.proofs_check.chains import certify_chain, confirm_chain
from verify_rates.proofs_check.checker import Refused, read
from verify_rates.solvers.method import Method, UsageError, get_method
from verify_rates.solvers.words import Unsupported
from verify_rates.theory.potentials import potential

F = Fraction
HALF = {"delta": F(1, 2)}


def ogm(N, **more):
    th = thetas(N)
    hyper = {"gamma": 1.0, "a": [(th[i] - 1) / th[i + 1] for i in range(N)], "b": [th[i] / th[i + 1] for i in range(N)]}
    return certify_chain(OGM, hyper, steps=N, n=1, measure=at_y, **more), 1 / (2 * th[-1] ** 2)


@cache
def gd(N=4, n=1):
    return certify_chain("gd", {"gamma": 1}, steps=N, n=n)


@cache
def ef(take="mean"):
    return certify_chain("ef_sgd", {"gamma": F(1, 5)}, steps=3, compressor=HALF, take=take)


def assert_tight(made, truth):
    """Above the truth, and by no more than was allowed (what the potential itself lacks is a thousandth of that)."""
    assert truth < float(F(made["rate"])) <= truth * (1 + 1.01 * float(INFLATION))


@pytest.mark.parametrize("n", [1, "any"])
@pytest.mark.parametrize("N", [2, 12])
def test_gradient_descent(N, n):
    made = gd(N, n)
    assert_tight(made, 1 / (4 * N + 2))
    assert confirm(read(json.dumps(made))) == check_chain(made, {"method": "gd", "steps": N, "workers": "one" if n == 1 else "any"})


def test_optimized_gradient_method():
    made, truth = ogm(10)
    assert_tight(made, truth)
    assert confirm_chain(made, OGM, measure=at_y)
    with pytest.raises(Refused, match="not that of ogm"):
        confirm_chain(made, OGM, measure="function_gap")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gd", "ogm", "ef"])
def test_two_hundred_steps(name):
    if name == "ef":
        made = certify_chain("ef_sgd", {"gamma": F(1, 5)}, steps=200, compressor=HALF, take="mean")
        found = potential("ef_sgd", {"gamma": F(1, 5)}, steps=200, compressor=HALF, take="mean").upper
        assert confirm(made) and found < float(F(made["rate"])) <= found * (1 + 2 * float(INFLATION))
        return
    if name == "gd":
        assert_tight(gd(200), 1 / 802)
        assert confirm(gd(200))
        return
    made, truth = ogm(200, inflate=F(1, 1000))  # potentials nearly without room: less inflation leaves too little for rounding
    assert truth < float(F(made["rate"])) <= truth * 1.00101 and confirm_chain(made, OGM, measure=at_y)


@pytest.mark.parametrize("take", ["last", "mean"])
def test_error_feedback(take):
    made = ef(take)
    assert confirm(made) and made["workers"] == "any" and made["compressor"] == {"delta": "1/2"}


@pytest.mark.parametrize(("mu", "N"), [(F(9, 10), 6), (F(99, 100), 3)])
def test_mu_near_L_over_several_steps(mu, N):
    """The distance falls by (1 - mu)^2 a step; multipliers of all steps at once differ by orders, those of one step do not."""
    made = certify_chain("gd", {"gamma": 1}, steps=N, mu=mu, n=1, measure="distance")
    assert_tight(made, float((1 - mu) ** (2 * N)))
    assert confirm(made)


def test_schedules_and_units():
    made = certify_chain("gd", {"gamma": [1, F(1, 2), 1]}, steps=3, L=1, n=1)
    assert_tight(made, 1 / (2 + 4 * 2.5))
    assert confirm(made)
    assert_tight(certify_chain("gd", {"gamma": F(1, 1000)}, steps=3, L=1000, n=1, initial_value=F(1, 10)), 100 / 14)


def test_a_chain_of_another_method_is_refused():
    made = gd()
    gd_method = get_method("gd")
    double = Method(
        "gd", lambda s, w, h, t: gd_method.step(s, w, h._replace(gamma=2 * h.gamma), t), gd_method.state, gd_method.hyper, gd_method.start
    )
    with pytest.raises(Refused, match="statements is not that of gd"):
        confirm(made, double)
    with pytest.raises(Refused, match="cannot be traced again"):
        confirm(made, "cgd")


@pytest.mark.parametrize("which", ["gd", "ef"])
def test_every_field_perturbed_is_refused(which):
    made = {"gd": gd(2), "ef": ef()}[which]
    rng = random.Random(0)
    for path in leaves(made):
        old = look(made, path)
        for junk in rng.sample(JUNK, 4):
            if junk == old and type(junk) is type(old):
                continue
            corrupted = replaced(made, path, junk)
            with pytest.raises(Refused):
                check_chain(corrupted)  # the seal is broken
            if (
                path != ("sha256",)
                and path[0] in ("format", "statements", "class", "workers", "compressor", "rate")
                and not larger(made, corrupted)
            ):
                with pytest.raises(Refused):
                    confirm(resealed(corrupted))


def larger(made, changed):
    """Whether what is stated is no more than before: a larger rate, or a smaller class."""
    try:
        places = [(1, ("rate",)), (1, ("class", "mu")), (-1, ("class", "L")), (1, ("compressor", "delta"))]
        return any(sign * (F(look(changed, p)) - F(look(made, p))) > 0 for sign, p in places if p[0] != "compressor" or made["compressor"])
    except (ValueError, TypeError, ArithmeticError, KeyError):
        return False


@pytest.mark.parametrize("which", ["gd", "ef"])
def test_plausible_changes_are_refused(which):
    """Numbers moved by a ten-thousandth, of which only those in the coordinates and in the potentials must show."""
    made = {"gd": gd(), "ef": ef()}[which]
    rng, tried = random.Random(1), 0
    for path in leaves({k: made[k] for k in ("statements", "potentials", "rate")}):
        old = look(made, path)
        if not (isinstance(old, str) and old.lstrip("-").replace("/", "").isdigit()) or rng.random() < 0.5:
            continue
        number, tried = F(old), tried + 1
        for change in (number * (1 - F(1, 100)), number - 1):
            if change != number and path[0] != "potentials":
                with pytest.raises(Refused):
                    confirm(resealed(replaced(made, path, str(change))))
        if path[0] == "potentials" and abs(number) > F(1, 100):
            refusals = 0
            for change in (number * F(101, 100), number * F(99, 100)):
                try:
                    confirm(resealed(replaced(made, path, str(change))))
                except Refused:
                    refusals += 1
            assert refusals, (path, "one of the two directions breaks the link before or after")
    assert tried > 20


def test_links_must_follow_one_another():
    made = gd()
    swapped = copy.deepcopy(made)
    swapped["potentials"].reverse()
    dropped = copy.deepcopy(made)
    del dropped["links"][1], dropped["potentials"][1]
    dropped["about"]["steps"] = "3"
    repeated = copy.deepcopy(made)
    repeated["links"][1] = repeated["links"][0]
    for broken in (swapped, dropped, repeated, {**made, "links": []}, {**made, "links": made["links"][:-1]}, {**made, "potentials": []}):
        with pytest.raises(Refused):
            confirm(resealed(broken))
    claimed = copy.deepcopy(made)
    claimed["about"]["steps"] = "5"
    with pytest.raises(Refused, match="states 5 steps"):
        confirm(resealed(claimed))
    with pytest.raises(Refused, match="states"):
        check_chain(made, {"rate": "1/100"})


def test_a_smaller_rate_is_refused():
    made = gd()
    with pytest.raises(Refused, match="link 0"):
        check_chain(resealed({**made, "rate": str(F(made["rate"]) * (1 - 3 * INFLATION))}))


def test_the_checker_alone(tmp_path):
    """A process that has the standard library and the checkers."""
    path = write(gd(), tmp_path / "chain.json")
    run = [sys.executable, "-m", chain_checker.__name__, str(path)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith("accepted: function_gap <=")
    path.write_text(path.read_text().replace('"last"', '"mean"'))
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout.startswith("refused: ")


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"inflate": 0}, UsageError, "inflate"),
        ({"steps": 1}, UsageError, "steps"),
        ({"mu": 1}, Unsupported, "mu < L"),
        ({"functions": "convex"}, Unsupported, "convex"),
        ({"mixing": 0.5}, Unsupported, "gossip"),
        ({"take": "best"}, UsageError, "take"),
    ],
)
def test_bad_input_is_one_sentence(given, kind, words):
    with pytest.raises(kind, match=words):
        certify_chain("gd", {"gamma": 1}, **{"steps": 3, "n": 1} | given)


def test_on_the_command_line(tmp_path):
    path = tmp_path / "chain.json"
    out = CliRunner().invoke(main, ["contraction", "gd", "gamma=1/L", "--n", "1", "--horizon", "5", "--certificate", str(path)])
    assert out.exit_code == 0 and "certified: at most" in out.output
    assert_tight(read(path.read_text()), 1 / 22)
    checked = CliRunner().invoke(main, ["check-certificate", str(path)])
    assert checked.exit_code == 0 and checked.output.startswith("accepted: function_gap <=")
    path.write_text(path.read_text().replace('"steps": "5"', '"steps": "6"'))
    assert CliRunner().invoke(main, ["check-certificate", str(path)]).exit_code == 1
    refused = CliRunner().invoke(main, ["contraction", "gd", "gamma=1/L", "--mu", "0.1", "--certificate", str(path)])
    assert refused.exit_code == 2 and "--horizon" in refused.output
