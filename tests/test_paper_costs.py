"""The cost models of deco, acco, lupa and matcha: every check notices a formula that is a little off."""

import importlib
from fractions import Fraction

import pytest

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators.lines import function
from verify_rates.theory.calculators.messages import Network, all_gather, broadcast, ring_all_reduce, tree_reduce

BROKEN = [
    ("deco", "PACE", "Max(T_comp, T_tx, (T_comp + T_tx + lat)/(tau + 2))", "cycle_time", {"tau": 1}),
    ("deco", "PACE", "Max(T_comp, (T_comp + T_tx + lat)/(tau + 1))", "cycle_time", {"tau": 1}),
    ("deco", "HIDDEN", "T_tx <= T_comp and tau*T_comp >= lat", "full_hiding", {"tau": 1}),
    ("deco", "SYNCHRONOUS", "Max(T_comp, T_tx) + lat", "synchronous", {"method": "gd"}),
    ("deco", "PACE", "Max(T_comp, T_tx, (T_comp + T_tx + lat)/tau)", "time_to_accuracy_repaired", {"tau": 2}),
    ("acco", "UPDATE", "2*Max(a/2, 2*T_tx)", "update_time", {"scheme": "acco"}),
    ("acco", "SEQUENTIAL", "a + 2*T_tx", "update_time", {"scheme": "sequential"}),
    ("acco", "SPEED_UP", "(a + T_tx)/Max(a, T_tx)", "speed_up", {}),
    ("acco", "ADAPTIVE", "1 + T_tx/(2*a)", "adaptive", {}),
    ("acco", "OVERLAP", "a >= T_tx", "overlap", {}),
    ("acco", "MEMORY", "2 + 2 + 2 + (4 + 4 + 8)/n", "memory", {"n": 8}),
    ("lupa", "TOTAL", "T*T_comp + (T/H)*((n-1)*a + 2*(n-1)/n*d*b)", "seconds", {"n": 4, "d": 8, "H": 2, "T": 4}),
    ("lupa", "PACE", "Max(T_comp, (T_tx + lat)/H)", "pace", {"H": 2}),
    ("matcha", "MATCHING", "lat + 8*size/bw", "communication_time", {"graph": "ring", "budget": 5}),
    ("matcha", "EXPECTED", "a*q/2", "communication_time", {"graph": "ring", "budget": 5}),
    ("matcha", "RUNTIME", "N*(T_comp + a)", "runtime", {"graph": "ring", "budget": 3, "steps": 2}),
]


def verdict(found):
    off = found.lower - found.bound
    return abs(off) > 1e-9 if found.relation == "==" else off > 1e-9


@pytest.mark.parametrize(("slug", "name", "text", "function", "point"), BROKEN, ids=[f"{b[0]}-{b[1]}-{b[3]}" for b in BROKEN])
def test_a_broken_formula_is_noticed(monkeypatch, slug, name, text, function, point):
    module = importlib.import_module(f"verify_rates.theory.calculators.{slug}")
    assert not verdict(getattr(module, function)(**point))
    monkeypatch.setattr(module, name, text)
    assert verdict(getattr(module, function)(**point))


def test_a_broken_ring_is_noticed(monkeypatch):
    from verify_rates.theory.calculators import lupa

    monkeypatch.setattr(lupa, "ring_all_reduce", lambda net, vectors: [vectors[0]] * net.n)
    assert verdict(lupa.seconds(n=4, d=8, H=2, T=4))


# --- collectives message by message -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("d", [1, 5, 12])
def test_a_ring_sums_and_costs_the_formula_where_chunks_are_equal(n, d):
    net = Network(n, Fraction(3), Fraction(1, 2))
    vectors = [[(7 * i + 3 * j) % 11 for j in range(d)] for i in range(n)]
    assert ring_all_reduce(net, vectors) == [[sum(column) for column in zip(*vectors, strict=True)]] * n
    said = 2 * (n - 1) * Fraction(3) + Fraction(2 * (n - 1), n) * d * Fraction(1, 2)
    assert net.seconds == said if d % n == 0 else net.seconds > said


@pytest.mark.parametrize("n", [1, 2, 8])
def test_gather_reduce_and_broadcast(n):
    items = [[i, i] for i in range(n)]
    assert all_gather(Network(n, 1, 1), items, 1) == [[x for item in items for x in item]] * n
    assert tree_reduce(Network(n, 1, 1), items, lambda a, b: a + b, len) == [x for item in items for x in item]
    net = Network(n, 1, 1)
    broadcast(net, 5)
    assert net.seconds == 6 * (n.bit_length() - 1)


def test_bad_networks_are_one_sentence():
    with pytest.raises(UsageError, match="power of two"):
        all_gather(Network(3, 1, 1), [[1]] * 3, 1)
    with pytest.raises(UsageError, match="one message at a time"):
        Network(3, 1, 1).together([(0, 1, 1), (2, 1, 1)])
    with pytest.raises(UsageError, match="at least 1"):
        Network(0, 1, 1)


def test_formulas_stay_fractions():
    assert function("a/2 + 1/3", "a")(Fraction(1)) == Fraction(5, 6)
