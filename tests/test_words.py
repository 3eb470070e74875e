"""The words of nonlinear and randomised methods: both engines, their meaning by hand, and what they refuse."""

from typing import NamedTuple

import numpy as np
import pytest

from verify_rates.problems import get_problem
from verify_rates.solvers.chunks import dct_basis, largest_divisor
from verify_rates.solvers.compressors import get_compressor
from verify_rates.solvers.engine.arrays import ArrayWorld
from verify_rates.solvers.engine.plan import generators, twins
from verify_rates.solvers.engine.run import simulate
from verify_rates.solvers.kinds import check_kinds
from verify_rates.solvers.method import Method, UsageError
from verify_rates.solvers.words import (
    PerWorker,
    Shared,
    coordinate_mean,
    dct,
    divide,
    each,
    flip,
    full_grad,
    grad,
    grad_pair,
    idct,
    log,
    masked,
    mean,
    mean_sent,
    orthogonalise,
    outside,
    rescale,
    spread,
    sqrt,
    times,
)

AGREE = 1e-12  # some hundred steps of a contracting recursion in double precision
ROUNDING = 1e-13  # products of orthonormal matrices of at most 16 columns


class State(NamedTuple):
    x: Shared
    y: PerWorker


class Hyper(NamedTuple):
    gamma: float


def nonlinear(s, w, h, t):
    g = grad(w, s.y)
    size = sqrt(w, times(w, g, g) + 1e-3)
    u = divide(w, g, size) - log(w, size) / 100
    kept = outside(w, dct(w, u, 3) - u, u) + idct(w, dct(w, u, 3), 3)
    x = s.x - h.gamma * orthogonalise(w, mean_sent(w, kept), 2, 0.1)
    return State(x=x, y=spread(w, x) - h.gamma * (u - coordinate_mean(w, u)) + h.gamma / 10 * spread(w, coordinate_mean(w, s.x)))


def chancy(s, w, h, t):
    a, b = grad_pair(w, s.x, s.y)
    c, e = grad_pair(w, s.y, s.x)
    g = a - b + full_grad(w, s.y) + (c - e) / 10
    y = each(w, 0.3, spread(w, s.x), s.y)
    return State(x=s.x - h.gamma * mean(w, flip(w, g, 1, 0.1) + full_grad(w, s.x) / 10), y=y)


def cut(s, w, h, t):
    m = masked(w, s.y - h.gamma * rescale(w, grad(w, s.y), 0.1, 0.4))
    x = s.x - h.gamma * rescale(w, mean(w, grad(w, s.x)), 0.0, 0.5) + masked(w, mean(w, m) - s.x) / 10
    return State(x=x, y=outside(w, m, s.y) + m)


METHODS = [Method(f.__name__, f, State, Hyper, start=("x", "y")) for f in (nonlinear, chancy, cut)]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_engines_agree(method):
    problem = get_problem("quadratic", n=3, d=6, sigma2=0.1, zeta2_star=0.5)
    options = {"steps": 300, "every": 50, "seeds": 2, "compressor": "randk(k=2)"}
    a, b = (simulate(method, problem, {"gamma": 0.05}, engine=e, **options) for e in ("numpy", "numba"))
    c = simulate(method, problem, {"gamma": 0.05}, engine="numpy", seed=1, **options)
    assert not a.diverged.any()
    for name, v in a.final.items():
        assert np.max(np.abs(v - b.final[name])) < AGREE * np.max(np.abs(v)) < np.max(np.abs(v - c.final[name]))


def world(n=3, d=6, **options):
    gens, shared = generators(n, 0, 0)
    return ArrayWorld(get_problem("quadratic", n=n, d=d, **options), gens, shared, twins=twins(gens))


def test_pairs_of_gradients_share_their_draw_and_no_other_word_disturbs_it():
    w = world(sigma2=4.0)
    x, y = np.zeros(6), np.ones((3, 6))
    for _ in range(3):
        grad(w, x)
        a, b = grad_pair(w, x, y)
        noise_a, noise_b = a - full_grad(w, x), b - full_grad(w, y)
        assert np.abs(noise_a - noise_b).max() < ROUNDING < np.abs(noise_a).max()
        assert np.abs(noise_a - grad(w, x) + full_grad(w, x)).min() > ROUNDING


def test_messages_are_cut_and_averaged_by_hand():
    w = world(n=3, d=2)
    v = np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 0.0]])
    assert mean_sent(w, v).tolist() == [2.0, 0.0] and mean(w, v).tolist() == [4 / 3, 0.0]
    assert outside(w, v, np.full((3, 2), 7.0)).tolist() == [[0, 7], [0, 7], [7, 7]]
    assert coordinate_mean(w, v).tolist() == [[0.5, 0.5], [1.5, 1.5], [0.0, 0.0]]


def test_norms_and_masks_by_hand():
    w = world(n=3, d=2)
    v = np.array([[3.0, 4.0], [0.0, 0.1], [0.0, 0.0]])
    assert rescale(w, v, 1.0, 2.0) == pytest.approx(np.array([[1.2, 1.6], [0.0, 1.0], [0.0, 0.0]]), rel=ROUNDING)
    assert rescale(w, v[0], 0.0, 9.0).tolist() == [3.0, 4.0]
    w = world(n=3, d=6)
    w.compressor = get_compressor("randk(k=2)")
    kept = [masked(w, np.ones((3, 6))) for _ in range(50)]
    assert all((k == k[0]).all() and k.sum() == 6 for k in kept) and len({tuple(k[0]) for k in kept}) > 5
    assert w.sent == 50 * 2 * 32
    assert masked(w, np.ones(6)).sum() == 2 and w.sent == 50 * 2 * 32  # at the server nobody sends


def test_the_transform_is_orthonormal_and_the_polar_factor_is_one():
    w = world(n=2, d=12)
    v = np.random.default_rng(0).normal(size=(2, 12))
    assert np.abs(idct(w, dct(w, v, 4), 4) - v).max() < ROUNDING < np.abs(dct(w, v, 4) - v).max()
    assert np.abs(np.linalg.norm(dct(w, v, 5), axis=1) - np.linalg.norm(v, axis=1)).max() < ROUNDING  # pieces of 4
    from scipy.fft import dct as reference

    assert np.abs(dct(w, v, 4).reshape(2, 3, 4) - reference(v.reshape(2, 3, 4), norm="ortho")).max() < ROUNDING
    assert [largest_divisor(12, s) for s in (1, 5, 12, 99)] == [1, 4, 12, 12] and dct_basis(1).tolist() == [[1.0]]
    M = v[0].reshape(3, 4)
    U, _, Vt = np.linalg.svd(M.T, full_matrices=False)
    P = orthogonalise(w, np.ascontiguousarray(M.T).ravel(), 4, 1e-24).reshape(4, 3)  # M'M of a 4 x 3 matrix is regular
    assert np.abs(P - U @ Vt).max() < 1e-10  # rounding times cond(M'M), which is below 1e3


def test_attackers_flip_and_coins_are_the_workers_own():
    w = world(n=4, d=500)
    v = np.ones((4, 500))
    flipped = flip(w, v, 2, 0.25)
    assert (flipped[2:] == 1).all() and abs((flipped[:2] == -1).mean() - 0.25) < 0.07  # 5 deviations of 1000 coins
    assert (flip(w, v, 4, 1.0) == -1).all() and (flip(w, v, 4, 0.0) == 1).all()
    drawn = np.array([each(w, 0.5, v, 0 * v)[:, 0] for _ in range(200)])
    assert np.abs(np.corrcoef(drawn.T) - np.eye(4)).max() < 0.4 and abs(drawn.mean() - 0.5) < 0.09


@pytest.mark.parametrize(
    "step",
    [
        lambda s, w, h, t: s._replace(x=times(w, s.x, s.y)),
        lambda s, w, h, t: s._replace(y=outside(w, s.x, s.y)),
        lambda s, w, h, t: s._replace(x=mean_sent(w, s.x)),
        lambda s, w, h, t: s._replace(y=orthogonalise(w, s.y, 2, 0.1)),
        lambda s, w, h, t: s._replace(y=each(w, 0.5, s.x, s.y)),
        lambda s, w, h, t: s._replace(x=full_grad(w, s.x)),
    ],
)
def test_kinds_are_checked(step):
    method = Method("wrong", step, State, Hyper)
    with pytest.raises(UsageError, match=r"shared|per worker"):
        check_kinds(method, method.hypers(gamma=0.1))


def test_traffic_of_messages_that_are_turned_averaged_over_senders_or_gathered():
    from verify_rates.theory.traffic import traffic

    for name, compressor, bits in (
        ("signsgd_mv", "sign", 64),
        ("signsgd_fd", "sign", 64),
        ("demo_v1", "block_topk(k=2, chunk=64)", 2 * 38),
    ):
        found = traffic(name, {"beta": 0.5} if name == "demo_v1" else {}, d=64, n=5, compressor=compressor)
        assert found.up_per_round == bits, name
    assert traffic("adam", {}, d=64, n=5).up_per_round == 64 * 32
