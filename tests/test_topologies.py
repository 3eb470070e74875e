import itertools
import math

import networkx as nx
import numpy as np
import pytest

from verify_rates.solvers.method import UsageError
from verify_rates.solvers.topologies import MATCHA8_MATCHINGS, MIXINGS, Topology, get_topology, topologies

ATOL = 1e-12  # eigenvalues of symmetric matrices with entries of size 1, n <= 16
TABLE = 1e-5  # the paper file gives five or six figures


@pytest.mark.parametrize("mixing", MIXINGS)
@pytest.mark.parametrize(("name", "n"), [(name, n) for name in topologies() for n in (8, 16) if name != "matcha8" or n == 8])
def test_every_member_mixes(name, mixing, n):
    t = get_topology(name, n, mixing=mixing)
    assert t.n == n and np.abs(t.W - t.W.T).max() <= ATOL and np.abs(t.W.sum(axis=1) - 1).max() <= ATOL
    off = t.W - np.diag(t.W.diagonal())
    assert {tuple(sorted(e)) for e in t.graph.edges} == {(i, j) for i, j in itertools.combinations(range(n), 2) if abs(off[i, j]) > ATOL}
    J = np.full((n, n), 1 / n)
    assert abs(t.rho - np.linalg.norm(t.W.T @ t.W - J, 2)) <= ATOL and t.rho < 1 and t.spectrum[-1] == 1.0
    assert abs(t.spectral_gap - (1 - math.sqrt(t.rho))) <= ATOL
    again = get_topology(t.name, n)
    assert np.array_equal(again.W, t.W)
    v = np.random.default_rng(0).normal(size=n)
    assert np.abs(np.linalg.matrix_power(t.W, 4000) @ v - v.mean()).max() <= 1e-9


@pytest.mark.parametrize("name", topologies())
def test_best_constant_weight_is_best(name):
    """rho of I - alpha L by a scan over alpha never beats the closed form ((lambda_max - lambda_2)/(lambda_max + lambda_2))^2."""
    t = get_topology(name, 8, mixing="best")
    lam = t.laplacian_spectrum
    assert abs(t.rho - ((lam[-1] - lam[1]) / (lam[-1] + lam[1])) ** 2) <= ATOL
    scan = [max(abs(1 - a * lam[1]), abs(1 - a * lam[-1])) ** 2 for a in np.linspace(0, 2 / lam[-1], 2001)]
    assert min(scan) >= t.rho - ATOL


def test_matcha8_has_the_published_spectrum():
    t = get_topology("matcha8(mixing=best)")
    assert t.graph.number_of_edges() == 12 == sum(map(len, MATCHA8_MATCHINGS))
    assert abs(t.laplacian_spectrum[1] - 0.670023) <= 1e-6 and abs(t.laplacian_spectrum[-1] - 6.329977) <= 1e-6
    assert abs(t.rho - 0.65378) <= TABLE
    alpha = -t.W[0, 4]
    assert abs(-alpha - 0.28571) <= TABLE
    for matching in MATCHA8_MATCHINGS:
        assert len({i for e in matching for i in e}) == 2 * len(matching)


def test_graphs_by_their_spectra():
    """Laplacian eigenvalues known in closed form."""
    n = 8
    ring = [2 - 2 * math.cos(2 * math.pi * k / n) for k in range(n)]
    path = [2 - 2 * math.cos(math.pi * k / n) for k in range(n)]
    known = {
        "ring": ring,
        "path": path,
        "complete": [0.0] + [n] * (n - 1),
        "star": [0.0] + [1.0] * (n - 2) + [n],
        "hypercube": [2.0 * bin(i).count("1") for i in range(n)],
        "grid": [2 - 2 * math.cos(math.pi * a / 2) + 2 - 2 * math.cos(math.pi * b / 4) for a in range(2) for b in range(4)],
    }
    for name, values in known.items():
        assert np.abs(get_topology(name, n).laplacian_spectrum - np.sort(values)).max() <= 10 * ATOL, name
    torus = [4 - 2 * math.cos(2 * math.pi * a / 3) - 2 * math.cos(2 * math.pi * b / 4) for a in range(3) for b in range(4)]
    assert np.abs(get_topology("torus", 12).laplacian_spectrum - np.sort(torus)).max() <= 10 * ATOL


def test_exponential_neighbours():
    t = get_topology("exponential", 16)
    assert sorted(t.graph[0]) == [1, 2, 4, 8, 12, 14, 15] and list(t.degrees) == [7] * 16


def test_metropolis_weights():
    W = get_topology("star", 4).W
    assert W[0, 1] == 0.25 and W[1, 1] == 0.75 and W[1, 2] == 0.0


def test_erdos_renyi_is_seeded():
    edges = [sorted(get_topology(f"erdos_renyi(p=0.5, seed={seed})", 12).graph.edges) for seed in (1, 1, 2)]
    assert edges[0] == edges[1] != edges[2]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("name", ["complete", "ring", "path", "star", "grid", "torus", "exponential"])
def test_few_workers(name, n):
    t = get_topology(name, n)
    assert t.n == n and t.rho < 1 and (n > 1 or (t.rho == 0.0 and t.W.tolist() == [[1.0]]))


def test_own_graph_edges_and_matrix():
    graph = nx.petersen_graph()
    assert get_topology(graph).n == 10 and get_topology(graph, 10, mixing="best").rho < get_topology(graph).rho
    edges = get_topology([(0, 1), (1, 2), [2, 0]])
    assert np.array_equal(edges.W, get_topology("complete", 3).W)
    W = np.array([[0.7, 0.3], [0.3, 0.7]])
    t = get_topology(W)
    assert np.array_equal(t.W, W) and abs(t.rho - 0.16) <= ATOL and get_topology(t, 2) is t
    assert not t.W.flags.writeable


@pytest.mark.parametrize(
    ("spec", "n", "message"),
    [
        ("rng", 4, "did you mean 'ring'"),
        ("ring", None, "needs the number of workers"),
        ("ring", 0, "at least 1"),
        ("ring", 2.5, "whole number"),
        ("ring", True, "whole number"),
        ("ring(", 4, "cannot read topology"),
        ("ring(p=3)", 4, "unknown parameter of ring 'p'"),
        ("ring(mixing=metro)", 4, "did you mean 'metropolis'"),
        ("hypercube", 6, "power of two"),
        ("torus", 7, "one row only"),
        ("grid(rows=3)", 8, "must divide n = 8"),
        ("matcha8", 9, "n = 8 workers, not 9"),
        ("erdos_renyi(p=0.01, seed=0)", 20, "not connected"),
        ("erdos_renyi(p=1.5)", 8, "must be in [0, 1]"),
        ("erdos_renyi(p=nan)", 8, "must be finite"),
        ([(0, 1), (2, 3)], None, "not connected: workers [0, 1] and [2, 3]"),
        ([(0, 1), (1, 3)], None, "numbered 0..n-1"),
        ([], None, "pairs of worker numbers"),
        ([(0, 1, 2)], None, "pairs of worker numbers"),
        ([(0, 1)], 3, "has 2 workers, but n = 3"),
        (nx.DiGraph([(0, 1)]), None, "undirected"),
        (nx.Graph(), None, "numbered 0..n-1"),
        (5, None, "a topology is a name"),
        (np.ones((2, 3)), None, "square"),
        (np.array([[0.5, 0.5], [0.4, 0.6]]), None, "symmetric: W[0, 1] = 0.5 but W[1, 0] = 0.4"),
        (np.array([[0.5, 0.4], [0.4, 0.5]]), None, "row 0 sums to 0.9"),
        (np.array([[0.0, 1.0], [1.0, 0.0]]), None, "modulus 1 or more"),
        (np.eye(3), None, "not connected"),
        (np.full((2, 2), np.nan), None, "finite"),
        (np.array([[2.0, -1.0], [-1.0, 2.0]]), None, "modulus 1 or more"),
    ],
)
def test_bad_topologies(spec, n, message):
    with pytest.raises(UsageError) as error:
        get_topology(spec, n)
    assert message in str(error.value)


def test_two_mixings_are_refused():
    with pytest.raises(UsageError, match="two mixing matrices"):
        get_topology("ring(mixing=best)", 4, mixing="metropolis")
    with pytest.raises(UsageError, match="no effect"):
        get_topology(np.full((2, 2), 0.5), mixing="best")
    with pytest.raises(UsageError, match="symmetric"):
        Topology("custom", np.array([[0.5, 0.5], [0.4, 0.6]]), nx.path_graph(2))
