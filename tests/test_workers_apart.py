"""Workers kept apart: what mean and deviation say of exchangeable ones, and mixing matrices taken exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from verify_rates.solvers.method import UsageError
from verify_rates.solvers.topologies import get_topology
from verify_rates.solvers.words import Unsupported
from verify_rates.theory.worst_case.apart import ApartWorld, exact_matrix
from verify_rates.theory.worst_case.solve import worst_case

RTOL = 1e-6
MU = 0.1
EF = {"steps": 1, "compressor": {"delta": 0.75}, "initial": "ef_lyapunov", "measure": "ef_lyapunov", "start": "free"}
EF21 = EF | {"initial": "ef21_lyapunov", "measure": "ef21_lyapunov", "zeta2_star": None}


# --- exchangeable workers: the reduction is exact ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "hyper", "given"),
    [
        ("cgd", {"gamma": 0.5}, {"steps": 2, "compressor": {"delta": 0.75}, "measure": "distance"}),
        ("ef_sgd", {"gamma": 0.3}, {"steps": 2, "compressor": {"delta": 0.75}}),
        ("ef_sgd", {"gamma": 0.3}, EF),
        ("ef21", {"gamma": 0.3}, EF21),
        ("local_sgd", {"gamma": 0.3, "H": 2}, {"steps": 3, "zeta2_star": 0.5}),
        ("local_sgd", {"gamma": 0.3, "H": 2}, {"steps": 2}),
        ("cgd", {"gamma": 0.5}, {"steps": 1, "compressor": {"Delta2": 0.3}, "measure": "distance"}),
        ("dd_ef_sgd", {"gamma": 0.3, "tau": 1}, {"steps": 2, "compressor": {"delta": 0.75}}),
    ],
)
@pytest.mark.parametrize("n", [2, 3])
def test_mean_and_deviation_say_what_all_workers_say(name, hyper, given, n):
    reduced, apart = (worst_case(name, hyper, mu=MU, n=n, apart=a, **given) for a in (False, True))
    assert reduced.exact and apart.exact and reduced.rigorous and apart.rigorous, str(apart)
    assert reduced.lower <= apart.upper and apart.lower <= reduced.upper
    assert abs(reduced.upper - apart.upper) <= RTOL * apart.upper and apart.upper - apart.lower <= RTOL * apart.upper
    assert apart.size["gram"][0] > reduced.size["gram"][0] and apart.size["gram"][1] == 0


def test_a_dropped_worker_is_noticed(monkeypatch):
    """Were the mean that of the first worker alone, one worker's value would come out."""
    given = {"steps": 2, "mu": MU, "zeta2_star": 0.5, "measure": "distance"}
    honest = worst_case("local_sgd", {"gamma": 0.3, "H": 2}, n=2, apart=True, **given)
    monkeypatch.setattr(ApartWorld, "mean", lambda self, v: v.each[0])
    assert worst_case("local_sgd", {"gamma": 0.3, "H": 2}, n=2, apart=True, **given).lower > honest.upper * (1 + RTOL)


# --- mixing matrices ---------------------------------------------------------------------------------------------------


def _mixing_matrix(rng, n):
    """Symmetric and doubly stochastic: a convex combination of permutations, symmetrised."""
    weights = rng.dirichlet(np.ones(n + 1))
    W = sum(w * np.eye(n)[rng.permutation(n)] for w in weights)
    return (W + W.T) / 2


@pytest.mark.parametrize("n", [2, 3, 5])
def test_averaging_contracts_by_the_second_eigenvalue(n):
    """Consensus error under W: exactly the square of the largest eigenvalue on deviations."""
    W = _mixing_matrix(np.random.default_rng(n), n)
    lam = np.abs(np.linalg.eigvalsh(W - 1 / n)).max()
    given = {"steps": 1, "start": "free", "initial": "consensus_error", "measure": "consensus_error"}
    found = worst_case("gossip_sgd", {"gamma": 0.0}, mixing=W, **given)
    assert found.exact and found.rigorous and found.statement["n"] == n
    assert abs(found.upper - lam**2) <= RTOL * lam**2 and abs(found.lower - lam**2) <= RTOL * lam**2
    spectral = worst_case("gossip_sgd", {"gamma": 0.0}, mixing=lam, **given)
    assert abs(spectral.upper - lam**2) <= RTOL * lam**2


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("name", "steps"), [("gossip_sgd", 2), ("gradient_tracking", 1)])
def test_the_spectrum_bounds_every_matrix(name, steps, seed):
    """The bound from the spectrum is above the exact value of each matrix that has it."""
    W = _mixing_matrix(np.random.default_rng(seed), 3)
    low, high = np.linalg.eigvalsh(W)[[0, -2]]
    given = {"steps": steps, "mu": MU, "n": 3, "zeta2_star": 1.0}
    exact, bound = (worst_case(name, {"gamma": 0.4}, mixing=m, **given) for m in (W, (low - 1e-9, high + 1e-9)))
    assert exact.exact and exact.rigorous and bound.rigorous and not bound.exact
    assert exact.lower <= bound.upper and bound.upper >= exact.upper * (1 - RTOL)


def test_two_workers_have_one_eigenvalue():
    """There the spectrum says everything."""
    W = [[Fraction(7, 10), Fraction(3, 10)], [Fraction(3, 10), Fraction(7, 10)]]
    given = {"steps": 3, "mu": MU, "zeta2_star": 1.0}
    a = worst_case("gossip_sgd", {"gamma": 0.5}, mixing=W, **given)
    b = worst_case("gossip_sgd", {"gamma": 0.5}, mixing=(0.4, 0.4), **given)
    assert a.exact and b.exact and abs(a.upper - b.upper) <= RTOL * b.upper and a.lower <= b.upper and b.lower <= a.upper


def test_a_topology_has_its_matrix():
    ring = get_topology("ring", 4)
    given = {"steps": 1, "mu": MU, "n": 4, "zeta2_star": 1.0}
    a, b, c = (
        worst_case("gossip_sgd", {"gamma": 0.5}, **given, **m)
        for m in ({"mixing": ring.W}, {"mixing": "ring", "apart": True}, {"mixing": "ring"})
    )
    assert a.upper == b.upper and a.exact and not c.exact and a.lower <= c.upper


def test_a_changed_matrix_is_noticed():
    given = {"steps": 1, "start": "free", "initial": "consensus_error", "measure": "consensus_error"}
    W = np.array(_mixing_matrix(np.random.default_rng(0), 3))
    changed = 0.999 * W + 0.001 / 3
    a, b = (worst_case("gossip_sgd", {"gamma": 0.0}, mixing=M, **given) for M in (W, changed))
    assert b.upper < a.lower


def test_rows_add_up_exactly():
    """Thirds as floats are thirds, so that a mean of equal points is that point."""
    rows = exact_matrix(get_topology("ring", 5), None)
    assert all(sum(row) == 1 for row in rows) and all(rows[i][j] == rows[j][i] for i in range(5) for j in range(5))
    assert rows[0][0] == Fraction(1, 3)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"mixing": [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]}, "square"),
        ({"mixing": [[0.5, 0.4], [0.4, 0.5]]}, "add up to 1"),
        ({"mixing": [[0.5, 0.5], [0.4, 0.6]]}, "symmetric"),
        ({"mixing": [[2.0, -1.0], [-1.0, 2.0]]}, "eigenvalues"),
        ({"mixing": [["a", "b"], ["b", "a"]]}, "real numbers"),
        ({"n": 10**5, "apart": True, "mixing": None}, "at most 100"),
        ({"mixing": [[float("nan"), 0.5], [0.5, 0.5]]}, "symmetric"),
        ({"mixing": [[0.5, 0.5], [0.5, 0.5]], "n": 3}, "do not fit"),
        ({"mixing": 0.5, "n": 3, "apart": True}, "give it, or a topology"),
        ({"n": "any", "apart": True, "mixing": None}, "give their number"),
        ({"n": 3, "apart": True, "mixing": None}, "mixing as a matrix"),
    ],
)
def test_bad_input_is_one_sentence(given, words):
    with pytest.raises(UsageError, match=words) as caught:
        worst_case("gossip_sgd", {"gamma": 0.5}, steps=1, **given)
    assert "\n" not in str(caught.value)


def test_what_is_not_read_is_refused():
    for given in (
        {"sigma2": 1.0},
        {"functions": "convex_quadratic_growth"},
        {"functions": "quadratic"},
        {"functions": {"f": "convex", "h": "convex"}},
    ):
        with pytest.raises(Unsupported, match="kept apart"):
            worst_case("gd", {"gamma": 0.5}, steps=1, n=2, apart=True, **given)
