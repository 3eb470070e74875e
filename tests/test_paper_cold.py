"""COLD: reductions of the decentralised methods, and checks that break where the statement is broken."""

from dataclasses import replace

import numpy as np
import pytest

from verify_rates.problems import get_problem
from verify_rates.solvers.engine.run import simulate
from verify_rates.solvers.method import methods
from verify_rates.theory.calculators import cold

AGREE = 1e-12  # 100 steps in double precision on numbers of order 1
PROBLEM = {"name": "quadratic", "n": 4, "d": 6, "L": 1.0, "mu": 0.1, "common": False, "zeta2_star": 1.0, "sigma2": 0.2}
AVERAGE = "complete"  # its Metropolis weights are J


def models(method, hyper, steps=100, problem=PROBLEM, **options):
    made = get_problem(**problem)
    x = simulate(method, made, {"gamma": 0.2, **hyper}, steps=steps, seed=3, engine="numpy", **options).final["x"][0]
    return np.broadcast_to(x, (made.n, made.d))


@pytest.mark.parametrize("method", ["gradient_tracking", "gossip_sgd"])
def test_full_averaging_is_gradient_descent(method):
    assert np.abs(models(method, {}, topology=AVERAGE) - models("gd", {})).max() < AGREE


def test_cold_with_full_averaging_is_gradient_descent():
    found = models("cold", {"eta": 1.0}, topology=AVERAGE, compressor="identity")
    assert np.abs(found - models("gd", {})).max() < AGREE


@pytest.mark.parametrize("method", ["nids", "extra"])
def test_the_mean_of_full_averaging_sees_identical_workers_as_one(method):
    alike = {**PROBLEM, "zeta2_star": 0.0, "sigma2": 0.0, "common": True}
    assert np.abs(models(method, {}, topology=AVERAGE, problem=alike) - models("gd", {}, problem=alike)).max() < AGREE


@pytest.mark.parametrize(
    ("method", "hyper"), [("nids", {}), ("extra", {}), ("gradient_tracking", {}), ("cold", {"eta": 0.3}), ("gossip_sgd", {})]
)
def test_one_worker_is_gradient_descent(method, hyper):
    alone = {**PROBLEM, "n": 1, "zeta2_star": 0.0}
    found = models(method, {}, topology=AVERAGE, compressor="identity" if method == "cold" else None, problem=alone)
    assert np.abs(found - models("gd", {}, problem=alone)).max() < AGREE


def test_cold_without_compression_is_nids():
    assert np.abs(models("cold", {"eta": 0.5}, topology="ring", compressor="identity") - models("nids", {}, topology="ring")).max() < AGREE


def test_diana_without_compression_is_gradient_descent():
    for beta in (0.0, 0.5, 1.0):
        assert np.abs(models("diana", {"beta": beta}, compressor="identity") - models("gd", {})).max() < AGREE


def test_diana_without_memory_is_compressed_gradient_descent():
    found = models("diana", {"beta": 0.0}, compressor="qsgd(levels=4)")
    assert np.array_equal(found, models("cgd", {}, compressor="qsgd(levels=4)"))


def test_scaling_does_nothing_to_homogeneous_compressors():
    given = {"topology": "ring", "compressor": "topk(k=3)"}
    assert np.abs(models("cold", {"eta": 0.05, "s": 4.0}, **given) - models("cold", {"eta": 0.05}, **given)).max() == 0.0


@pytest.mark.parametrize("method", ["nids", "extra", "gradient_tracking"])
def test_exact_methods_reach_the_minimiser_where_gossip_sgd_does_not(method):
    quiet = {**PROBLEM, "sigma2": 0.0}
    star = get_problem(**quiet).constants.x_star
    assert np.abs(models(method, {}, steps=2000, topology="ring", problem=quiet) - star).max() < 1e-10
    assert np.abs(models("gossip_sgd", {}, steps=2000, topology="ring", problem=quiet) - star).max() > 1e-2


def broken(name, field, factor):
    method = methods()[name]
    return replace(method, step=lambda s, w, h, t: (m := method.step(s, w, h, t))._replace(**{field: getattr(m, field) * factor}))


def test_identities_break_with_another_method(monkeypatch):
    from verify_rates.solvers import method as registry

    monkeypatch.setitem(registry._REGISTRY, "nids", broken("nids", "v", 1 + 1e-6))
    found = cold.nids_recurrence("quadratic", "ring", 0.3)
    assert found.lower > found.bound


def test_the_condition_of_dyna_cold_is_sharp(monkeypatch):
    assert cold.no_overload((3, 4)).lower == 0
    for text in ("(c - 2/5)*s", "(c - 3/5)*s"):
        monkeypatch.setattr(cold, "NO_OVERLOAD", text)
        assert cold.no_overload((3, 4)).lower > 0


def test_a_start_above_the_scale_overloads_at_once():
    """Why cold.3 says once: the condition on moves alone does not bring y - v below the scale."""
    _, _, inputs, _ = cold.dynamic_run(0.1, 0.99, 0.01, 20, 0)
    assert max(inputs) > 1


def test_the_lmi_needs_a_small_weight_of_mixing():
    assert cold.lmi_rate((0.0, 1.0), 0.2, 1.0, 0.5, 1.0, 0.5)[0] == np.inf
    rates = [cold.lmi_rate((0.0, 1.0), 0.2, 1.0, q, 1.0, 0.05)[0] for q in (0.0, 0.25, 0.5)]
    assert rates == sorted(rates) and rates[-1] < 1


def test_the_lmi_rate_is_beaten_by_a_weaker_compressor(monkeypatch):
    """With the rate for k = 20 of 20 a run with k = 8 is too slow: the check notices."""
    given = cold._lmi
    monkeypatch.setattr(cold, "_lmi", lambda w, mu, L, q, gamma, eta: given(w, mu, L, 0.0, gamma, eta))
    found = cold.lyapunov_rate(4, 20, 8, "ring", 1.0, 0.5, 0)
    assert found.lower > found.bound


def test_moments_and_spectrum_break_with_another_map(monkeypatch):
    assert cold.second_moments(1, 0.5, 0.1, 0).lower < 1e-11
    plain = cold.Affine.matrices
    monkeypatch.setattr(cold.Affine, "matrices", lambda self: (plain(self)[0] * (1 + 1e-6), plain(self)[1]))
    for found in (cold.second_moments(1, 0.5, 0.1, 0), cold.spectral_rate(True, 0.5, 0.3, "ring", 0)):
        assert found.lower > found.bound


def test_bits_break_without_indices(monkeypatch):
    monkeypatch.setattr(cold, "TOP_K", "32*k")
    found = cold.bits(20, 3, "ring")
    assert found.lower != found.bound
