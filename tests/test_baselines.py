"""The baselines that papers compare with, against the simpler methods that they contain and against a few lines of NumPy."""

import numpy as np
import pytest

from verify_rates.problems import get_problem
from verify_rates.solvers.engine.run import simulate

AGREE = 1e-12  # some hundred steps of a contracting recursion in double precision
PROBLEM = get_problem("quadratic", n=4, d=5, sigma2=0.1, zeta2_star=0.5)


def run(method, steps=60, **hyper):
    options = {"topology": "ring"} if "psgd" in method or "gossip" in method else {}
    return simulate(method, PROBLEM, {"gamma": 0.1, **hyper}, steps=steps, engine="numpy", **options).final["x"][0]


@pytest.mark.parametrize("H", [1, 4])
def test_fedavg_with_everybody_is_local_sgd(H):
    assert np.abs(run("fedavg", H=H) - run("local_sgd", H=H)).max() < AGREE
    for other in ({"p": 0.5}, {"alpha": 0.5}):
        assert np.abs(run("fedavg", H=H, **other) - run("local_sgd", H=H)).max() > AGREE


def test_the_server_step_scales_the_progress_of_one_round():
    moved = {alpha: run("fedavg", steps=3, H=3, alpha=alpha) for alpha in (1.0, 0.25)}  # from 0
    assert np.abs(moved[0.25] - 0.25 * moved[1.0]).max() < AGREE < np.abs(moved[1.0]).max()


def test_participation_does_not_bias_the_round():
    """Means over 4,000 seeds lie within 5 standard errors of the round with everybody, which itself is far from no progress."""
    exact = get_problem("quadratic", n=4, d=5, zeta2_star=0.5)

    def moved(p, seeds):
        given = {"steps": 2, "engine": "numpy", "seeds": seeds}
        return simulate("fedavg", exact, {"gamma": 0.1, "H": 2, "p": p}, **given).final["y"]

    sample, full = moved(0.3, range(4000)), moved(1.0, range(1))[0]
    error = sample.std(axis=0) / np.sqrt(len(sample))
    assert (error > 0).all() and (np.abs(sample.mean(axis=0) - full) < 5 * error).all()


@pytest.mark.parametrize("nesterov", [0, 1])
def test_momentum_as_frameworks_write_it(nesterov):
    exact = get_problem("quadratic", n=2, d=4)
    h = simulate("sgd_momentum", exact, {"gamma": 0.1, "beta": 0.6, "nesterov": nesterov}, steps=50, engine="numpy")
    x, u = np.zeros(4), np.zeros(4)
    for _ in range(50):
        g = exact.grads(x).mean(axis=0)
        u = 0.6 * u + g
        x = x - 0.1 * (g + 0.6 * u if nesterov else u)
    assert np.abs(h.final["x"][0] - x).max() < AGREE
    assert np.abs(run("sgd_momentum", beta=0.6) - run("heavy_ball", beta=0.6)).max() < AGREE
    assert np.abs(run("sgd_momentum", beta=0.0, nesterov=nesterov) - run("gd")).max() < AGREE
    assert np.abs(run("sgd_momentum", beta=0.6, nesterov=1) - run("heavy_ball", beta=0.6)).max() > AGREE


def test_the_two_orders_of_decentralised_sgd_mix_alike():
    """Adapt then combine is D-PSGD seen half a step later: W(x - gamma g) of the one is W y - gamma g(y) of the other."""
    exact = get_problem("quadratic", n=4, d=5, zeta2_star=0.5)
    given = {"steps": 1, "engine": "numpy", "topology": "ring"}
    d_psgd, gossip = (simulate(m, exact, {"gamma": 0.1}, **given).final["x"][0] for m in ("d_psgd", "gossip_sgd"))
    g = exact.grads(np.zeros((4, 5)))
    assert np.abs(d_psgd + 0.1 * g).max() < AGREE
    assert np.abs(gossip - d_psgd).max() > AGREE


def test_only_the_order_of_d_psgd_overlaps():
    """Mixing that does not wait for the gradient travels beside it; adapt then combine sends what the gradient gave."""
    from verify_rates.theory.timeline import timeline

    given = {"compute": 1.0, "latency": 0.0, "bandwidth": 8.0, "size": 1.0, "n": 3}
    seconds = {m: timeline(m, **given).seconds_per_step for m in ("d_psgd", "gossip_sgd")}
    assert seconds == {"d_psgd": 1.0, "gossip_sgd": 2.0}
