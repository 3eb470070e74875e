import itertools
import math

import networkx as nx
import numpy as np
import pytest

from verify_rates.problems import get_problem
from verify_rates.solvers.engine.run import simulate
from verify_rates.solvers.method import UsageError
from verify_rates.solvers.switching import SWITCHING, Switching, best_alpha, decomposed, matchings, rho_of, switching
from verify_rates.solvers.topologies import MATCHA8_MATCHINGS, MIXINGS, Topology, get_topology, topologies
from verify_rates.solvers.words import Unsupported

ATOL = 1e-12  # eigenvalues of symmetric matrices with entries of size 1, n <= 16
ALPHA_ATOL = 1e-8  # of rho at the weight that is searched for: Brent's search stops at 1.5e-8 of the weight, slopes are of order 1
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
        ("ring", 10**6, "at most 10000 workers"),
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


# --- graphs that change ----------------------------------------------------------------------------------------------

J8 = np.full((8, 8), 1 / 8)


@pytest.mark.parametrize("name", SWITCHING)
def test_every_changing_topology_leads_to_the_average(name):
    t = get_topology(name, 8)
    assert t.n == 8 and t.members.shape[1:] == (8, 8) and not t.members.flags.writeable
    assert np.abs(t.members - t.members.transpose(0, 2, 1)).max() <= ATOL and np.abs(t.members.sum(axis=2) - 1).max() <= ATOL
    again = get_topology(t.name, 8)
    assert np.array_equal(again.members, t.members) and again.name == t.name
    v = np.random.default_rng(0).normal(size=8)
    x, mean = v, v.mean()
    for k in t.order(3000, (0, 0)):
        x = t.members[k] @ x
    assert np.abs(x - mean).max() <= 1e-9
    assert str(t).startswith(t.name)


def test_one_peer_averages_in_a_period_and_no_sooner():
    t = get_topology("one_peer", 16)
    assert t.window == 4 and t.period_rho <= ATOL and t.mean_degree == 1.0
    assert not t.connected_within(3) and t.connected_within(4)
    assert all(np.abs(M - 1 / 16).max() <= ATOL for M in t.windows(4))
    assert get_topology("one_peer", 1).n == get_topology("one_peer", 2).n - 1 == 1


def test_windows_of_scattered_links_connect_and_shorter_ones_do_not():
    t = get_topology("scattered(graph=path, window=4, seed=3)", 8)
    assert t.window == 4 and not t.connected_within(3)  # a path without one of its links falls apart
    union = {tuple(sorted(e)) for e in t.union.edges}
    assert union == {(i, i + 1) for i in range(7)}
    other = get_topology("scattered(graph=path, window=4, seed=4)", 8)
    assert not np.array_equal(other.members, t.members)


def test_a_period_contracts_the_consensus_distance_as_said():
    t = get_topology("scattered(graph=ring, window=3)", 8)
    rng, worst = np.random.default_rng(1), 0.0
    for s in range(3):
        for _ in range(200):
            v = rng.normal(size=8)
            v -= v.mean()
            x = v
            for k in range(3):
                x = t.members[(s + k) % 3] @ x
            worst = max(worst, float(x @ x / (v @ v)))
        u = np.linalg.svd(t.windows(3)[s] - J8)[2][0]
        worst = max(worst, float(np.sum((t.windows(3)[s] @ u) ** 2)))
    assert worst == pytest.approx(t.period_rho, rel=1e-9)


@pytest.mark.parametrize("name", ["random_matchings(graph=matcha8, p=0.4)", "random_edge(graph=torus)", "intermittent(graph=star, p=0.3)"])
def test_rho_of_a_drawn_topology_is_the_mean_over_draws(name):
    t = get_topology(name, 8)
    order = t.order(40_000, (5, 0))
    counts = np.bincount(order, minlength=len(t.members)) / len(order)
    sampled = np.einsum("k,kij,kil->jl", counts, t.members, t.members) - J8
    # entries of W'W are of order 1: the mean of 4e4 draws is off by 5e-3 a standard deviation, six of them in an 8 x 8 norm
    assert abs(np.linalg.norm(sampled, 2) - t.rho) <= 6 * 8 / math.sqrt(40_000)
    exact = sum(p * W.T @ W for p, W in zip(t.chances, t.members, strict=True)) - J8
    assert np.linalg.norm(exact, 2) == pytest.approx(t.rho, abs=ATOL) and abs(t.chances.sum() - 1) <= ATOL


def test_drawn_topologies_against_closed_forms():
    t = get_topology("random_matchings(graph=matcha8, p=0.4)", 8)
    Ls = decomposed("matcha8", 8)
    alpha, rho = best_alpha(Ls, [0.4] * 5)
    assert t.rho == pytest.approx(rho, abs=ATOL) == pytest.approx(rho_of(Ls, [0.4] * 5, alpha), abs=ATOL)
    assert min(rho_of(Ls, [0.4] * 5, a) for a in np.linspace(0, 1, 301)) >= rho - ALPHA_ATOL
    ring = get_topology("ring", 8)
    assert get_topology("intermittent(graph=ring, p=0.3)", 8).rho == pytest.approx(1 - 0.3 * (1 - ring.rho), abs=ATOL)
    L = get_topology("ring(mixing=best)", 8).laplacian_spectrum  # of one link: E[W'W] = I - L/(2 * 8 links)
    assert get_topology("random_edge(graph=ring)", 8).rho == pytest.approx(1 - L[1] / 16, abs=ATOL)
    assert t.mean_degree == pytest.approx(0.4 * 2 * 12 / 8)


def test_matchings_cover_a_graph_once():
    for name in ("ring", "torus", "star", "complete", "matcha8"):
        graph = get_topology(name, 8).graph
        Ls = matchings(graph)
        assert all(np.array_equal(L @ L, 2 * L) for L in Ls)
        assert np.array_equal(sum(Ls), np.diag(list(dict(sorted(graph.degree)).values())) - nx.to_numpy_array(graph, nodelist=range(8)))


def test_draws_depend_on_seed_and_trial_alone():
    t = get_topology("random_edge", 8)
    first = t.order(50, (3, 1))
    assert np.array_equal(first, t.order(50, (3, 1))) and np.array_equal(first[:20], t.order(20, (3, 1)))
    assert not np.array_equal(first, t.order(50, (3, 2))) and not np.array_equal(first, t.order(50, (4, 1)))
    assert list(get_topology("one_peer", 8).order(5, (0, 0))) == [0, 1, 2, 0, 1]


@pytest.mark.parametrize("name", ["one_peer", "random_matchings(graph=ring, p=0.5)", "scattered(graph=ring, window=2)"])
def test_gossip_uses_the_matrix_of_the_step_in_both_engines(name):
    problem = get_problem("quadratic", n=4, d=3, zeta2_star=1.0)
    t = get_topology(name, 4)
    a, b = (simulate("gossip_sgd", problem, {"gamma": 0.1}, steps=30, seeds=2, seed=9, topology=name, engine=e) for e in ("numpy", "numba"))
    for trial in range(2):
        x = np.zeros((4, 3))
        for k in t.order(30, (9, trial)):
            x = t.members[k] @ (x - 0.1 * problem.grads(x))
        assert np.abs(a.final["x"][trial] - x).max() <= ATOL and np.abs(b.final["x"][trial] - x).max() <= ATOL
    fixed = simulate("gossip_sgd", problem, {"gamma": 0.1}, steps=30, topology="ring", seed=9)
    assert np.abs(fixed.final["x"][0] - a.final["x"][0]).max() > 1e-3
    assert a.settings["topology"].startswith(t.name)


def test_a_single_member_is_the_fixed_topology():
    problem, ring = get_problem("quadratic", n=4, d=3, zeta2_star=1.0), get_topology("ring", 4)
    for engine in ("numpy", "numba"):
        a, b = (simulate("gossip_sgd", problem, {"gamma": 0.1}, steps=30, topology=t, engine=engine) for t in (ring, switching([ring])))
        assert np.array_equal(a.final["x"], b.final["x"])


@pytest.mark.parametrize("name", ["one_peer", "alternating", "periodic", "random_matchings", "random_edge", "intermittent"])
def test_one_worker_alone_mixes_with_itself(name):
    assert get_topology(name, 1).members.tolist() in ([[[1.0]]], [[[1.0]], [[1.0]]])


def test_readings_of_one_graph_refuse_with_the_reason():
    from verify_rates.theory.quadratic import quadratic
    from verify_rates.theory.timeline import timeline
    from verify_rates.theory.traffic import traffic
    from verify_rates.theory.worst_case.solve import worst_case

    t = get_topology("one_peer", 4)
    for reading in (
        lambda: t.rho,
        lambda: t.W,
        lambda: worst_case("gossip_sgd", {"gamma": 0.5}, steps=1, mixing=t, n=4),
        lambda: quadratic("gossip_sgd", {"gamma": 0.5}, gossip=t),
        lambda: timeline("gossip_sgd", {"gamma": 0.5}, topology="one_peer", n=4, compute=1.0, size=1e6, bandwidth=1e9, latency=0.0),
        lambda: get_topology("random_edge", 4).window,
        lambda: get_topology("random_edge", 4).period_rho,
    ):
        with pytest.raises(Unsupported, match=r"one_peer|random_edge"):
            reading()
    sent = traffic("gossip_sgd", {"gamma": 0.5}, d=10, n=4, topology="one_peer").up_per_step
    assert sent == traffic("gossip_sgd", {"gamma": 0.5}, d=10, n=2, topology="path").up_per_step  # one neighbour a step


@pytest.mark.parametrize(
    ("spec", "n", "message"),
    [
        ("one_pear", 8, "did you mean 'one_peer'"),
        ("one_peer", 6, "power of two"),
        ("random_edge", 1000, "needs 1000 matrices"),
        ("one_peer", None, "needs the number of workers"),
        ("one_peer(3)", 8, "takes 0 parameter"),
        ("random_edge(graph=rng)", 8, "did you mean 'ring'"),
        ("random_matchings(p=0)", 8, "p of random_matchings must be in (0, 1]"),
        ("random_matchings(p=nan)", 8, "must be finite"),
        ("random_matchings(graph=complete)", 16, "at most 12"),
        ("random_matchings(q=1)", 8, "unknown parameter of random_matchings 'q'"),
        ("intermittent(p=1.5)", 8, "must be in (0, 1]"),
        ("intermittent(mixing=metro)", 8, "did you mean 'metropolis'"),
        ("scattered(window=0)", 8, "between 1 and the 8 links"),
        ("scattered(window=9)", 8, "between 1 and the 8 links"),
        ("scattered(seed=-1)", 8, "seed must be at least 0"),
        ("periodic(graphs=ring+str)", 8, "did you mean 'star'"),
    ],
)
def test_bad_changing_topologies(spec, n, message):
    with pytest.raises(UsageError) as error:
        get_topology(spec, n)
    assert message in str(error.value)


def test_bad_changing_topologies_of_one_s_own():
    ring = get_topology("ring", 4)
    for make, said in (
        (lambda: switching([]), "at least one graph"),
        (lambda: switching([ring, get_topology("ring", 5)]), "same workers, not 4 and 5"),
        (lambda: switching([[(0, 1)], [(0, 1)]], name="pairs") and switching([np.eye(3), np.eye(3)]), "do not connect"),
        (lambda: switching([np.array([[0.0, 1.0], [1.0, 0.0]])]), "never shrinks"),
        (lambda: switching([ring, ring], chances=[0.5, 0.6]), "sum to 1"),
        (lambda: switching([ring, ring], chances=[1.0]), "2 numbers"),
        (lambda: switching([ring, ring], chances=[math.nan, 1.0]), "at least 0"),
        (lambda: switching([np.array([[0.5, 0.5], [0.4, 0.6]])]), "symmetric"),
        (lambda: switching([[(0, 1)]], mixing="metropolos"), "did you mean 'metropolis'"),
        (lambda: Switching("idle", np.stack([np.eye(2), np.full((2, 2), 0.5)]), [1.0, 0.0]), "do not connect"),
    ):
        with pytest.raises(UsageError, match=said):
            make()


@pytest.mark.parametrize("name", ["scattered(graph=ring, window=3)", "random_edge", "random_matchings(graph=ring, p=0.4)", "one_peer"])
def test_resource_allocation_over_a_changing_graph_keeps_the_sum_and_equalises_the_slopes(name):
    """Agents share a fixed sum; only the links of the step are used, and no single graph has to connect them."""
    problem = get_problem("quadratic", n=8, d=3, zeta2_star=1.0, mu=0.3, common=False)
    start = np.random.default_rng(0).standard_normal(3)
    run = simulate("resource_agent", problem, {"gamma": 0.5}, steps=4000, topology=name, compressor="identity", x0=start, engine="numpy")
    x = run.final["x"][0]
    assert np.abs(x.sum(axis=0) - 8 * start).max() <= 8 * 4000 * 2**-52 * np.abs(x).max()  # one rounding a step and agent
    slopes, first = problem.grads(x), problem.grads(start)
    assert np.ptp(slopes, axis=0).max() <= 1e-6 * np.ptp(first, axis=0).max()
