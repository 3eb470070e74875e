"""Protocols, schedules and cost formulas of papers: simulators do what they say, and every check notices a broken formula."""

import importlib
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

from verify_rates.solvers.engine.run import simulate
from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators import adaptive_dfl, aet_sgd, copo, decoupled_diloco, edge_learning, gtopk, het, lasgd, semantic_comm
from verify_rates.theory.calculators.messages import Network
from verify_rates.theory.claims import claims

ONE_OF_A_ROW = {"M": 2, "n": 3, "steps": 400, "seed": 0, "s": 0, "c": 0.5}

# module, constant, broken text, check, its point (at which the right text passes)
BROKEN = [
    (gtopk, "DENSE", "2*(n-1)*a + (n-1)/n*d*b", "cost", {"scheme": "dense", "rounds": 2, "said": "DENSE"}),
    (gtopk, "TOPK", "q*a + (n-1)*k*b", "cost", {"scheme": "topk", "rounds": 2, "said": "TOPK"}),
    (gtopk, "GTOPK", "q*a + 2*k*q*b", "cost", {"scheme": "gtopk", "rounds": 2, "said": "GTOPK"}),
    (gtopk, "BREAK_EVEN", "2*k*b*(n-1-q) - a*q", "break_even", {"rounds": 2}),
    (decoupled_diloco, "GRACE", "Max(0, gamma*(2*tau*T_comp - q - s))", "grace_window", {"estimate": "exact", "factor": 9}),
    (decoupled_diloco, "LPT", "7/6 - 1/(3*k)", "balance", {"count": 2, "most": 6, "largest": 4}),
    (decoupled_diloco, "GOODPUT", "1/(1 + n*c/a)", "goodput_model", {}),
    (decoupled_diloco, "GOODPUT", "1/(1 + n/m*c/(2*a))", "isolation", {}),
    (decoupled_diloco, "AVERAGE", "8*size/(H*T_comp)", "bandwidth", {"learners": 2, "k": 2, "tau": 1}),
    (decoupled_diloco, "PEAK", "8*size/(tau*T_comp)", "bandwidth", {"learners": 2, "k": 2, "tau": 1}),
    (decoupled_diloco, "DATA_PARALLEL", "8*size*(m-1)/m/T_comp", "bandwidth", {"learners": 2, "k": 2, "tau": 1}),
    (het, "LEMMA_1_REPAIRED", "2*s", "clock_gap_at_reads", {"n": 2, "s": 1}),
    (het, "LEMMA_3_REPAIRED", "4*s + 1", "missed_updates", {"n": 2, "s": 1, "said": "LEMMA_3_REPAIRED"}),
    (het, "RELEASED", "a + (n-2)*b", "released", {"n": 2, "pull": 2, "push": 3}),
    (het, "BYTES", "16*u + p*(8 + 4*d) + q*(16 + 4*d)", "bytes_of", {"seed": 0, "width": 8}),
    (het, "DENSE", "(n-1)/n*4*d", "dense_bytes", {"n": 3}),
    (het, "BOUND_11", "(2*L*F0 + M*G2)/sqrt(T) + 4*s**2*M**2*G2/T", "corollary", {}),
    (het, "WEIGHTED", "2*F0/(eta*T) + eta*L*M*G2", "bound", {"name": "WEIGHTED", **ONE_OF_A_ROW, "p_hundredths": 1}),
    (het, "SIMPLEST", "F0/(2*eta*T)", "bound", {"name": "SIMPLEST", **ONE_OF_A_ROW, "p_hundredths": 100}),
    (het, "STALENESS", "s**2*eta**2*M*G2/2", "staleness", {"M": 2, "n": 4, "s": 1, "seed": 0}),
    (adaptive_dfl, "SHARE", "1 - (1 - a)*tau", "fixed", {"seed": 0}),
    (adaptive_dfl, "TREE_FACTOR", "n/2", "tree_cost", {"n": 5, "seed": 0}),
    (adaptive_dfl, "RING_FACTOR", "2*n/(n-1)", "ring_cost", {"n": 3, "seed": 0}),
    (adaptive_dfl, "BUDGET", "floor(Min((a/k - b)/c, u/k/q))", "budget_rule", {}),
    (aet_sgd, "STEPS", "c*R*R/2", "round_count", {"c": 10, "most": 100}),
    (aet_sgd, "ROUNDS", "sqrt(2*T/c)", "round_count", {"c": 10, "most": 100}),
    (aet_sgd, "MESSAGES", "R*m/2", "message_count", {"n": 5, "R": 7}),
    (aet_sgd, "ROUND_TIME_REPAIRED", "Max(a, (a + lat)/(tau + 2))", "round_time", {"said": "ROUND_TIME_REPAIRED", "delay": 4, "lag": 0}),
    (lasgd, "HIDDEN", "Max(T_comp, T_tx/H)", "pace", {"method": "lasgd", "H": 2}),
    (lasgd, "BLOCKING", "Max(T_comp, (T_tx + lat)/H)", "pace", {"method": "local_sgd", "H": 2}),
    (lasgd, "ALL_REDUCE", "2*(n-1)*a + (n-1)/n*d*b", "all_reduce", {"n": 5}),
    (lasgd, "HARMONIC", "(a + b)/2", "stragglers", {"said": "HARMONIC", "slow": 2, "fast": 1}),
    (semantic_comm, "LIMIT", "a/b", "energy_per_bit", {}),
    (semantic_comm, "FREQUENCY", "(c/(kappa*u))**(1/3)", "cpu_optimum", {}),
    (copo, "SNR_COMMON", "sqrt(R2)", "common_covariance", {}),
    (copo, "SNR_LINE", "R/(2*Max(a, b))", "on_a_line", {"most": 2}),
    (copo, "PRINTED", ((8, 1.67),), "exponents", {}),
]


def broken(found):
    off = found.lower - found.bound
    return abs(off) > 1e-9 * abs(found.bound) if found.relation == "==" else off > 1e-9 * abs(found.bound)


@pytest.mark.parametrize(
    ("module", "name", "text", "check", "point"), BROKEN, ids=[f"{b[0].__name__.rsplit('.', 1)[1]}-{b[1]}-{b[3]}" for b in BROKEN]
)
def test_a_broken_formula_is_noticed(monkeypatch, module, name, text, check, point):
    assert not broken(getattr(module, check)(**point))
    monkeypatch.setattr(module, name, text)
    assert broken(getattr(module, check)(**point))


REFUTED = [i for i, c in claims().items() if c.expect == "fails" and i.split(".")[0] in {b[0].__name__.rsplit(".", 1)[1] for b in BROKEN}]


@pytest.mark.parametrize("claim_id", REFUTED)
def test_what_is_refuted_has_a_witness_in_words(claim_id):
    claim = claims()[claim_id]
    module, name = claim.check.split(":")
    found = [getattr(importlib.import_module(module), name)(**point) for point in claim.grid]
    assert any(broken(f) and f.message for f in found)


# --- gTop-k -----------------------------------------------------------------------------------------------------------


def test_gtopk_keeps_the_whole_gradient_where_k_is_d():
    data = np.random.default_rng(0).integers(-9, 9, (4, 5)).tolist()
    found, residuals = gtopk.step([[0] * 5] * 4, data, 5, Network(4, 1, 1))
    assert found == {i: sum(v[i] for v in data) for i in range(5)} and residuals == [[0] * 5] * 4


def test_gtopk_refuses():
    with pytest.raises(UsageError, match="between 1 and d"):
        gtopk.step([[0]], [[1]], 2, Network(1, 1, 1))
    with pytest.raises(UsageError, match="power of two"):
        gtopk.step([[0]] * 3, [[1]] * 3, 1, Network(3, 1, 1))


def test_a_put_back_that_drops_is_noticed(monkeypatch):
    whole = gtopk.step
    monkeypatch.setattr(gtopk, "step", lambda r, g, k, net: (whole(r, g, k, net)[0], [[0] * len(v) for v in g]))
    assert broken(gtopk.lost(2, 2))


# --- Decoupled DiLoCo -------------------------------------------------------------------------------------------------


def test_rda_without_its_direction_is_noticed(monkeypatch):
    monkeypatch.setattr(decoupled_diloco, "rda", decoupled_diloco.average)
    assert (
        broken(decoupled_diloco.norm_of_rda(True))
        and broken(decoupled_diloco.orthogonal(3))
        and not broken(decoupled_diloco.one_learner(0))
    )
    monkeypatch.setattr(decoupled_diloco, "rda", lambda v, w: w @ v)
    assert broken(decoupled_diloco.one_learner(0))


def test_goodput_by_drawing_lives():
    rate, loss = 1 / 50, 20.0
    drawn = [decoupled_diloco.simulated_goodput(rate, loss, 4000, seed) for seed in range(30)]
    said = decoupled_diloco.renewal_goodput(rate, loss)
    assert abs(np.mean(drawn) - said) < 5 * np.std(drawn) / np.sqrt(30)


def test_outer_step_without_momentum_is_a_step_and_diloco_refuses():
    x, memory = decoupled_diloco.outer_step(np.ones(2), np.zeros(2), np.array([1.0, 2.0]), 0.5, 0.0)
    assert x.tolist() == [0.5, 0.0] and memory.tolist() == [1.0, 2.0]
    with pytest.raises(UsageError, match="quorum"):
        decoupled_diloco.waiting([[0, 0]], 3, Fraction(1), 1, Fraction(0), lambda q: Fraction(0), 1)
    with pytest.raises(UsageError, match="tokens"):
        decoupled_diloco.token_weight(0, 1)
    with pytest.raises(UsageError, match="fragment"):
        decoupled_diloco.fragments([1], 0)


def test_a_syncer_that_merges_slowly_is_noticed(monkeypatch):
    exact = decoupled_diloco.waiting
    monkeypatch.setattr(decoupled_diloco, "waiting", lambda d, k, T, tau, s, g, h: exact(d, k, T, tau, s + 1, g, h))
    assert broken(decoupled_diloco.overlap())


# --- HET --------------------------------------------------------------------------------------------------------------


def test_a_cache_that_is_one_clock_late_is_noticed(monkeypatch):
    exact = het.valid
    monkeypatch.setattr(het, "valid", lambda cached, cg, s: exact(cached, cg, s + 1))
    assert broken(het.clock_gap_at_reads(2, 0)) and broken(het.missed_updates(2, 0, "LEMMA_3_REPAIRED"))


def test_a_cache_that_keeps_its_writes_is_noticed(monkeypatch):
    monkeypatch.setattr(het, "valid", lambda cached, cg, s: cg <= cached[1] + s + 1)
    with pytest.raises(UsageError, match="too many states"):
        monkeypatch.setattr(het, "MOST_STATES", 2000)
        het.fresh_at_zero(2)


def test_reads_are_fresh_at_staleness_zero():
    assert het.fresh_at_zero(2).lower == 0


def test_a_theorem_with_a_step_that_is_far_too_long_fails(monkeypatch):
    monkeypatch.setattr(het.np, "ceil", lambda v: 2)
    assert broken(het.theorem(0, 1, 0))


# --- the others -------------------------------------------------------------------------------------------------------


def test_trees_are_all_trees():
    for n, count in ((2, 1), (3, 3), (4, 16), (5, 125)):
        made = {tuple(sorted(t)) for t in adaptive_dfl.trees(n)}
        assert len(made) == count and all(nx.is_tree(nx.Graph(list(t))) for t in made)


def test_equal_local_steps_give_the_mean():
    centres = [Fraction(c) for c in (1, 5, 9)]
    assert adaptive_dfl.fixed_point(centres, [3, 3, 3], Fraction(1, 3)) == 5


def test_a_lag_is_kept_and_refused():
    ends, _, _ = aet_sgd.run(aet_sgd._ring(3), [1] * 6, Fraction(1), Fraction(10), 2)
    assert ends == [1, 2, 3, 12, 13, 14]
    with pytest.raises(UsageError, match="lag"):
        aet_sgd.run(aet_sgd._ring(3), [1], Fraction(1), Fraction(1), -1)
    with pytest.raises(UsageError, match="c must be"):
        aet_sgd.rounds_done(5, 0)


def _final(name, hyper, n=3):
    from verify_rates.problems import get_problem

    problem = get_problem("quadratic", n=n, d=5, zeta2_star=0.5 * (n > 1), sigma2=0.1)
    return simulate(name, problem, hyper, steps=24, seed=3, engine="numpy").final["x"]


def test_lasgd_reduces():
    grouped = _final("lasgd_grouped", {"gamma": 0.1, "H": 4, "tau": 0})
    assert (grouped == _final("local_sgd", {"gamma": 0.1, "H": 4})).all()
    alone = _final("lasgd", {"gamma": 0.1, "H": 4}, n=1)
    np.testing.assert_allclose(alone[0], _final("gd", {"gamma": 0.1}, n=1), rtol=0, atol=1e-12)
    assert not np.allclose(_final("lasgd", {"gamma": 0.1, "H": 4}), _final("local_sgd", {"gamma": 0.1, "H": 4}))


def test_lasgd_without_its_correction_is_noticed(monkeypatch):
    from dataclasses import replace

    from verify_rates.solvers import method as registry
    from verify_rates.solvers.methods.lasgd import Background, grad, mean, spread

    def step(s, w, h, t):
        x, y = s.x - h.gamma * grad(w, s.x), s.y
        if (t + 1) % h.H == 0:
            x = spread(w, mean(w, s.y))
            y = x
        return Background(x=x, y=y)

    monkeypatch.setitem(registry._REGISTRY, "lasgd", replace(registry.methods()["lasgd"], step=step))
    assert broken(lasgd.mean_preserved("quadratic", 3, 0)) and broken(lasgd.drift_of_two_rounds("quadratic", 3, 0))


def test_a_band_that_is_half_empty_is_late_and_clients_are_checked():
    assert broken(edge_learning.flexible_makespan(2, 3, idle=True))
    with pytest.raises(UsageError, match="positive load"):
        edge_learning.flexible([Fraction(0)], [Fraction(0)], Fraction(1))


def test_broken_times_of_a_round_are_noticed(monkeypatch):
    flexible, rigid = edge_learning.flexible, edge_learning.rigid
    monkeypatch.setattr(edge_learning, "flexible", lambda a, q, band: flexible(a, q, band) * Fraction(11, 10))
    assert (
        broken(edge_learning.flexible_makespan(2, 3))
        and broken(edge_learning.flexible_is_least(2, 3))
        and broken(edge_learning.ordering(1, 3))
    )
    for factor in (Fraction(9, 10), Fraction(11, 10)):
        monkeypatch.setattr(edge_learning, "rigid", lambda a, q, b, f=factor: tuple(t * f for t in rigid(a, q, b)))
        assert broken(edge_learning.rigid_split(2, 0))
    monkeypatch.setattr(edge_learning, "_ordered_time", lambda ready, order: min(ready))
    assert broken(edge_learning.convex_in_inverse_speed())


def test_bands_that_do_not_fill_the_water_are_noticed(monkeypatch):
    exact = semantic_comm.needed_band
    monkeypatch.setattr(semantic_comm, "needed_band", lambda device, seconds: 1.01 * exact(device, seconds))
    assert broken(semantic_comm.equal_finish(3, 0))
    with pytest.raises(UsageError, match="positive"):
        semantic_comm.rate(semantic_comm.Device(1, 1, 1, 0), 0)


def test_copo_beats_k_means_on_elongated_clusters():
    from sklearn.cluster import KMeans

    rng = np.random.default_rng(5)
    truth = np.repeat([0, 1], 150)
    flat = rng.standard_normal((300, 2)) * [8.0, 0.6] + np.where(truth[:, None] == 0, [6.0, 2.5], [6.0, -2.5])
    Y = np.concatenate([flat, 0.1 * rng.standard_normal((300, 20))], axis=1)

    def wrong(labels):
        return min(np.mean(labels != truth), np.mean(labels == truth))

    assert wrong(KMeans(2, n_init=10, random_state=0).fit_predict(Y)) > 0.2
    assert wrong(copo.copo(Y, 2, rounds=30)) < 0.2
    with pytest.raises(UsageError, match="K must be"):
        copo.embed(Y, 0)
    with pytest.raises(UsageError, match="too few"):
        copo.distances(flat[:3], np.array([0, 0, 1]), 2)


def test_a_map_that_is_not_linear_changes_copo(monkeypatch):
    exact = copo._exact_distances
    monkeypatch.setattr(copo, "_exact_distances", lambda P, labels: exact(P.applyfunc(lambda v: v * v), labels))
    assert broken(copo.invariance(2, 0))
