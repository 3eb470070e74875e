"""The nonconvex and structured families: gradients against differences in every coordinate, constants against brute force."""

from __future__ import annotations

import json
import math

import array_api_strict
import numpy as np
import pytest
from test_problems import Declaring, generators

from verify_rates.problems import get_problem
from verify_rates.problems.checks import check_constants
from verify_rates.problems.local import LocallySmooth, on_ball
from verify_rates.problems.pl import pl_of_waves
from verify_rates.solvers.engine.run import simulate
from verify_rates.solvers.method import UsageError

RTOL_KERNEL = 1e-12  # two orders of summation over a few thousand terms of like size, exp and tanh of two libraries
RTOL_DIFFERENCE = 1e-7  # extrapolated central differences: h^4 = 2e-11 of the fifth derivatives, u/h = 5e-14 of the value, many times
H = 2e-3

SMALL = {"rows": np.random.default_rng(6).normal(size=(18, 3)).round(2).tolist(), "y": [0, 1, 2] * 6}
WIDE = {"rows": np.random.default_rng(7).normal(size=(4, 9)).round(2).tolist(), "y": [1.0, -2.0, 0.5, 3.0]}

SPECS = [
    {"name": "pl", "n": 3, "d": 5, "rank": 3, "zeta2_star": 0.5, "sigma2": 0.1},
    {"name": "pl", "n": 2, "d": 4, "rank": 2, "waves": 3.0, "cond": 4.0, "zeta2_star": 0.5},
    {"name": "pl", "n": 1, "d": 3, "rank": 3, "waves": 0.5, "rotate": False, "L": 4.0},
    {"name": "phase_retrieval", "n": 3, "d": 4, "m": 12, "batch": 3},
    {"name": "phase_retrieval", "n": 2, "d": 3, "m": 10, "jitter": 0.3, "sigma2": 0.1, "radius": 2.5},
    {"name": "factorisation", "n": 3, "rows": 4, "rank": 2, "spread": 0.3, "sigma2": 0.1},
    {"name": "factorisation", "n": 2, "symmetric": False, "rows": 3, "columns": 5, "rank": 2, "spread": 0.2, "top": 2.0},
    {"name": "factorisation", "n": 1, "rows": 3, "rank": 3, "decay": 0.9, "rotate": False},
    {"name": "embedding", "n": 3, "m": 20, "vocabulary": 8, "width": 2, "batch": 4},
    {"name": "embedding", "n": 2, "m": 12, "vocabulary": 6, "width": 2, "own_order": True, "lam": 0.1, "sigma2": 0.2, "zipf": 0.5},
    {"name": "mixture", "n": 3, "m": 12, "batch": 4, "shards": "label", "components": 2},
    {"name": "mixture", "n": 2, "m": 10, "components": 3, "dim": 2, "sigma2": 0.1, "separation": 1.0},
    {"name": "mixture", "n": 2, "m": 10, "components": 1, "dim": 3},
    {"name": "network", "n": 3, "data": SMALL, "hidden": 2, "batch": 3, "lam": 0.01},
    {"name": "network", "n": 2, "data": SMALL, "hidden": 3, "shards": "homogeneous", "sigma2": 0.1},
    {"name": "ridge_dual", "n": 3, "data": SMALL, "lam": 0.1, "shards": "label", "sigma2": 0.1},
    {"name": "ridge_dual", "n": 2, "data": WIDE, "lam": 0.5},
]


def labelled(spec):
    return "-".join([spec["name"], *(str(v) for k, v in spec.items() if k in ("waves", "rank", "kind", "symmetric", "lam"))])


def each(fn):
    return pytest.mark.parametrize("spec", [pytest.param(s, id=f"{k}-{labelled(s)}") for k, s in enumerate(SPECS)])(fn)


@pytest.fixture(scope="module")
def made():
    return {json.dumps(spec): get_problem(**spec) for spec in SPECS}


def differences(f, x):
    """The gradient of f by central differences of steps H and H/2, extrapolated, in every coordinate."""

    def central(e, h):
        return (f(x + h * e) - f(x - h * e)) / (2 * h)

    return np.array([(4 * central(e, H / 2) - central(e, H)) / 3 for e in np.eye(len(x))])


# --- every family ----------------------------------------------------------------------------------------------------


@each
def test_gradients_are_those_of_the_values_in_every_coordinate(made, spec):
    f, rng = made[json.dumps(spec)], np.random.default_rng(1)
    x = (0 if f.constants.x_star is None else f.constants.x_star) + 0.5 * rng.standard_normal(f.d)
    g, kernel = f.grads(x), f.compiled_value()
    scale = np.abs(g).max() + abs(f.value(x))
    assert f.value(x) == pytest.approx(np.mean([kernel(f.slots, i, x) for i in range(f.n)]), rel=RTOL_KERNEL, abs=RTOL_KERNEL * scale)
    for i in range(f.n):
        assert np.abs(differences(lambda y, i=i: kernel(f.slots, i, y), x) - g[i]).max() <= RTOL_DIFFERENCE * scale


@each
def test_constants_pass_the_spot_checks(made, spec):
    assert check_constants(made[json.dumps(spec)], np.random.default_rng(5), draws=100) == []


@each
@pytest.mark.parametrize("exact", [True, False])
def test_kernels_equal_the_array_code(made, spec, exact):
    f, rng = made[json.dumps(spec)], np.random.default_rng(2)
    X = 0.7 * rng.standard_normal((f.n, f.d))
    kernel, data = f.compiled()
    expected, gens = f.grads(X, None if exact else generators(f.n)), generators(f.n)
    for i, gen in enumerate(gens):
        out = np.full(f.d, np.nan)
        kernel(data, i, X[i].copy(), gen, exact, out)
        assert np.abs(out - expected[i]).max() <= RTOL_KERNEL * (1 + np.abs(expected).max())


@each
def test_array_libraries_give_the_same_gradients(made, spec):
    f, xp = made[json.dumps(spec)], array_api_strict
    rng = np.random.default_rng(3)
    for X in (0.5 * rng.standard_normal(f.d), 0.5 * rng.standard_normal((f.n, f.d))):
        for gens in (False, True):
            a, b = (f.grads(m.asarray(X), generators(f.n) if gens else None, m) for m in (np, xp))
            assert np.abs(a - np.from_dlpack(b)).max() <= RTOL_KERNEL * (1 + np.abs(a).max())


@each
def test_a_description_makes_the_same_problem_again(made, spec):
    f = made[json.dumps(spec)]
    again = get_problem(**json.loads(json.dumps(f.describe())))
    x = np.linspace(-1, 1, f.d)
    assert np.array_equal(again.grads(x), f.grads(x)) and again.value(x) == f.value(x)
    if f.describe().get("rotate", True):
        other = get_problem(**{**f.describe(), "seed": 12})
        assert not np.array_equal(other.grads(x), f.grads(x))


def wrong(problem, draws=20, **other):
    found = check_constants(Declaring(problem, **other), np.random.default_rng(5), points=3, draws=draws)
    return {f.what for f in found}


# --- Polyak-Lojasiewicz ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("a", [0.0, 0.3, 1.0, 3.0, 4.5])
def test_the_pl_constant_of_waves_is_the_least_ratio_and_never_above(a):
    r = np.linspace(1e-3, 40, 400_001)
    ratio = float(np.min((2 * r + a * np.sin(2 * r)) ** 2 / (2 * (r**2 + a * np.sin(r) ** 2))))
    assert ratio * (1 - 1e-3 if a == 0.3 else 1 - 1e-5) <= pl_of_waves(a) <= ratio * (1 + 1e-12)  # small waves: flat, cut off
    assert a != 3.0 or pl_of_waves(a) > 1 / 32  # what Karimi, Nutini and Schmidt say of x^2 + 3 sin^2 x


def test_waves_make_a_function_nonconvex_and_keep_pl():
    f = get_problem("pl", n=2, d=4, rank=2, waves=3.0, cond=4.0)
    c = f.constants
    assert not c.convex and c.mu == pytest.approx(-c.L / 2, rel=1e-9) and 0 < c.mu_pl < c.L
    assert np.linalg.matrix_rank(f._P) == 2 and f.value(c.x_star + np.linalg.svd(f._P.T)[2][-1]) == pytest.approx(0, abs=1e-28)
    along = [c.x_star + r * f._P[:, 0] for r in np.linspace(1, 3, 2001)]  # the direction of the least lam_k
    ratio = min(float(np.sum(f.grads(x).mean(axis=0) ** 2)) / (2 * f.value(x)) for x in along)
    assert c.mu_pl <= ratio <= c.mu_pl * (1 + 1e-4)
    top = f._P[:, -1]
    bent = [f.grads(c.x_star + r * top).mean(axis=0) @ top for r in (math.pi / 2 - H, math.pi / 2 + H)]
    assert (bent[1] - bent[0]) / (2 * H) == pytest.approx(c.mu, rel=10 * H**2)
    assert wrong(f, mu_pl=3 * c.mu_pl) == {"mu_pl"} and "mu" in wrong(f, mu=0.0)
    assert {"L", "L_max"} <= wrong(f, L=0.99 * c.L, L_max=0.99 * c.L)


def test_gradient_descent_contracts_at_the_pl_rate_on_a_null_space():
    """With waves = 0 the rate 1 - mu_pl/L per step of 1/L holds, and the bound (1 - q)^2 of the slowest mode is attained."""
    f = get_problem("pl", n=2, d=6, rank=3, cond=5.0, rotate=False)
    c, x = f.constants, np.zeros(6)
    gaps = [f.value(x)]
    for _ in range(60):
        x = x - f.grads(x).mean(axis=0) / c.L
        gaps.append(f.value(x))
    rates = np.array(gaps[1:]) / np.array(gaps[:-1])
    assert np.all(rates <= 1 - c.mu_pl / c.L) and rates[-1] == pytest.approx((1 - c.mu_pl / c.L) ** 2, rel=1e-6)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"waves": 4.7}, "waves must be at most 4.6"),
        ({"waves": math.nan}, "waves must be finite"),
        ({"rank": 0}, "rank must be at least 1"),
        ({"rank": 11}, "rank must be at most d"),
        ({"rank": 1}, "one curvature"),
        ({"cond": 0.5}, "cond must be at least 1"),
        ({"n": 1, "zeta2_star": 1.0}, "no heterogeneity"),
        ({"rotate": 1}, "rotate must be true or false"),
        ({"wave": 1.0}, "did you mean 'waves'"),
    ],
)
def test_bad_options_of_pl(options, said):
    with pytest.raises(UsageError, match=said):
        get_problem("pl", **options)


# --- smooth on balls alone -------------------------------------------------------------------------------------------

LOCAL = [s for s in SPECS if s["name"] in ("phase_retrieval", "factorisation", "mixture", "network") and s.get("components") != 1]


def of_each(specs):
    return pytest.mark.parametrize("spec", [pytest.param(s, id=f"{k}-{labelled(s)}") for k, s in enumerate(specs)])


def hessian(grads, x):
    """By central differences of the gradients, symmetrised."""
    J = np.array([(grads(x + H * e) - grads(x - H * e)) / (2 * H) for e in np.eye(len(x))])
    return (J + J.T) / 2


@of_each(LOCAL)
def test_no_global_smoothness_is_claimed_and_local_constants_hold_and_grow(made, spec):
    f, rng = made[json.dumps(spec)], np.random.default_rng(4)
    assert isinstance(f, LocallySmooth) and f.constants.L == f.constants.L_max == math.inf
    small, large = on_ball(f, 1.0), on_ball(f, 2.0)
    assert small.L <= large.L < math.inf and small.L_max >= small.L and -math.inf < large.mu <= small.mu and small.mu_min <= small.mu
    for radius in (0.3, 2.0):
        ball = on_ball(f, radius)
        for _ in range(6):
            x = rng.standard_normal(f.d)
            x *= (radius - 2 * H) / np.linalg.norm(x)
            eigenvalues = np.linalg.eigvalsh(hessian(lambda y: f.grads(y).mean(axis=0), x))
            assert ball.mu <= eigenvalues[0] + 1e-6 and eigenvalues[-1] <= ball.L + 1e-6  # differences: H^2 times third derivatives
            for i in range(f.n):
                eigenvalues = np.linalg.eigvalsh(hessian(lambda y, i=i: f.grads(y)[i], x))
                assert ball.mu_min <= eigenvalues[0] + 1e-6 and eigenvalues[-1] <= ball.L_max + 1e-6
                assert f.constants.mu_min <= eigenvalues[0] + 1e-6


def test_a_ball_elsewhere_holds_what_the_ball_around_0_that_contains_it_holds():
    f = get_problem("phase_retrieval", n=2, d=3)
    assert pytest.approx(on_ball(f, 6.0).L, rel=1e-12) == on_ball(f, 1.0, [0.0, 3.0, 4.0]).L
    q = get_problem("quadratic", n=2, d=3)
    assert on_ball(q, 1.0).L == q.constants.L
    for radius, centre, said in [
        (0, None, "more than 0"),
        (math.nan, None, "finite"),
        (1, [0.0], "3 finite numbers"),
        (1, [math.inf] * 3, "3 finite"),
    ]:
        with pytest.raises(UsageError, match=said):
            on_ball(f, radius, centre)


def test_local_constants_of_too_small_a_ball_are_caught():
    for spec, factor in ((SPECS[3], 0.4), (SPECS[5], 0.9), (SPECS[6], 0.8)):
        f = get_problem(**spec)
        honest = f._within
        f._within = lambda reach, honest=honest, factor=factor: honest(factor * reach)
        assert {"L", "L_max"} & {finding.what for finding in check_constants(f, np.random.default_rng(5), points=2, draws=20)}, spec


# --- phase retrieval -------------------------------------------------------------------------------------------------


def test_the_planted_point_is_exact():
    for d in (1, 5, 100):
        f = get_problem("phase_retrieval", n=3, d=d, m=7, radius=3.0, seed=d)
        x = f.constants.x_star
        assert f.value(x) == f.value(-x) == 0.0 and not np.any(f.grads(x))
        assert np.linalg.norm(x) == pytest.approx(3.0, rel=d / 64)
        noisy = get_problem("phase_retrieval", n=3, d=d, m=7, batch=2, seed=d)
        assert not np.any(noisy.grads(noisy.constants.x_star, generators(3)))  # batches too: sigma2_star = 0


def test_workers_own_their_samples():
    few, many = (get_problem("phase_retrieval", n=n, d=4) for n in (2, 5))
    assert np.array_equal(few.A, many.A[:2]) and not np.array_equal(many.A[0], many.A[1])


def test_gradient_descent_with_the_ball_s_constant_descends():
    f = get_problem("phase_retrieval", n=2, d=3, m=30)
    x = np.array([0.3, -0.2, 0.1])
    value = f.value(x)
    L = on_ball(f, 1.5).L
    for _ in range(300):
        x = x - f.grads(x).mean(axis=0) / L
        assert np.linalg.norm(x) <= 1.5 and f.value(x) <= value
        value = f.value(x)
    assert value < 1e-3


# --- factorisation ---------------------------------------------------------------------------------------------------


@of_each([s for s in SPECS if s["name"] == "factorisation"])
def test_the_minimum_is_that_of_the_singular_values(made, spec):
    from scipy.optimize import minimize

    f = made[json.dumps(spec)]
    low, high = f.constants.f_star
    s = np.linalg.svd(f.M, compute_uv=False)
    said = f._share * (np.sum(s[f.rank :] ** 2) + np.sum(f.errors**2) / f.n)
    assert low <= said <= high and high - low <= 1e-12 * (1 + high)
    assert low <= f.value(f.constants.x_star) + 1e-15 and f.value(f.constants.x_star) <= high + 1e-15
    best = min(
        minimize(f.value, start, jac=lambda x: f.grads(x).mean(axis=0), options={"gtol": 1e-10}).fun
        for start in np.random.default_rng(0).standard_normal((4, f.d))
    )
    assert best == pytest.approx(said, rel=1e-8, abs=1e-14) and best >= low - 1e-15


def test_the_ball_constant_of_a_symmetric_factorisation_is_attained():
    """At U = R u e' with u in the kernel of M the curvature along U is 3 R^2."""
    f = get_problem("factorisation", n=1, rows=3, rank=1, decay=0.0, rotate=False)
    u = np.array([0.0, 1.0, 0.0])
    R = 0.9
    bent = np.linalg.eigvalsh(hessian(lambda x: f.grads(x)[0], R * u))[-1]
    assert bent == pytest.approx(3 * R**2, rel=1e-5) and pytest.approx(3 * R**2, rel=1e-12) == on_ball(f, R).L


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("phase_retrieval", {"d": 3000}, "at most 2048"),
        ("phase_retrieval", {"m": 0}, "m must be at least 1"),
        ("phase_retrieval", {"radius": 0}, "radius must be more than 0"),
        ("phase_retrieval", {"jitter": math.nan}, "jitter must be finite"),
        ("phase_retrieval", {"batch": 0}, "batch must be at least 1"),
        ("phase_retrieval", {"noise": "pareto"}, "noise must be one of"),
        ("phase_retreival", {}, "did you mean 'phase_retrieval'"),
        ("factorisation", {"rank": 7}, "rank must be at most 6"),
        ("factorisation", {"columns": 3}, "U U' is square"),
        ("factorisation", {"decay": 1.5}, "decay must be at most 1"),
        ("factorisation", {"top": -1}, "top must be more than 0"),
        ("factorisation", {"rows": 0}, "rows must be at least 1"),
        ("factorisation", {"n": 1, "spread": 1.0}, "no heterogeneity"),
        ("factorisation", {"symmetric": "yes"}, "must be true or false"),
    ],
)
def test_bad_options_of_the_quartics(name, options, said):
    with pytest.raises(UsageError, match=said):
        get_problem(name, **options)


@each
def test_a_run_does_not_start_at_rest(made, spec):
    f = made[json.dumps(spec)]
    assert f.start.shape == (f.d,) and np.linalg.norm(f.grads(f.start).mean(axis=0)) > 1e-3
    h = simulate("gd", f, {"gamma": 1e-4}, steps=1, engine="numpy", keep_states=True)
    assert np.array_equal(h.states["x"][0, 0].ravel()[: f.d], f.start)


# --- embedding -------------------------------------------------------------------------------------------------------


def test_embedding_constants_against_brute_force():
    f = get_problem("embedding", n=3, m=20, vocabulary=8, width=2, batch=4)
    c, H = f.constants, np.zeros((3, f.d, f.d))
    for i in range(3):
        for t in f.tokens[i]:
            H[i, 2 * t, 2 * t] += 1 / 20
            H[i, 2 * t + 1, 2 * t + 1] += 1 / 20
    each_, mean = np.linalg.eigvalsh(H), np.linalg.eigvalsh(H.mean(axis=0))
    assert pytest.approx(mean[-1], rel=1e-12) == c.L and c.L_max == pytest.approx(each_.max(), rel=1e-12) and c.mu == pytest.approx(mean[0])
    assert c.mu_pl == pytest.approx(mean[mean > 1e-9][0], rel=1e-12)
    x = np.linalg.lstsq(H.mean(axis=0), f._sums.mean(axis=0), rcond=None)[0]
    assert np.allclose(c.x_star, x, atol=1e-12) and c.f_star[0] <= f.value(x) <= c.f_star[1] * (1 + 1e-12)
    samples = [np.stack([_row(f, i, r, c.x_star) for r in range(20)]) for i in range(3)]
    noise = np.mean([s.var(axis=0).sum() for s in samples]) / 4
    assert noise <= c.sigma2_star <= noise * (1 + 1e-6)
    zeta2 = np.mean(np.sum(f.grads(c.x_star) ** 2, axis=1))
    assert zeta2 <= c.zeta2_star <= zeta2 * (1 + 1e-6)
    assert wrong(f, mu_pl=1.5 * c.mu_pl) == {"mu_pl"} and {"L", "L_max"} <= wrong(f, L=0.9 * c.L, L_max=0.9 * c.L_max)
    assert "sigma2_star" in wrong(f, draws=400, sigma2_star=0.5 * c.sigma2_star) and "zeta2_star" in wrong(f, zeta2_star=0.9 * c.zeta2_star)


def _row(f, i, r, x):
    g = np.zeros((f.vocabulary, f.width))
    g[f.tokens[i, r]] = x.reshape(g.shape)[f.tokens[i, r]] - f.targets[i, r]
    return g.ravel()


def test_density_is_the_expected_share_of_rows_that_batches_touch():
    f = get_problem("embedding", n=3, m=60, vocabulary=30, width=2, batch=5, zipf=1.3)
    gens = generators(3, seed=1)
    touched = np.array([np.any(f.grads(np.full(f.d, 3.7), gens).reshape(3, 30, 2) != 0, axis=2) for _ in range(2000)])
    for workers in (1, 3):
        share = np.any(touched[:, :workers], axis=1).mean(axis=1)
        assert abs(share.mean() - f.density(5, workers)) <= 6 * share.std() / math.sqrt(len(share))
    assert 1 < f.density(5, 3) / f.density(5, 1) < 3  # densification: supports overlap, as popular tokens are popular everywhere
    flat = get_problem("embedding", n=3, m=60, vocabulary=30, zipf=0.0)
    assert flat.density(5) > f.density(5)
    with pytest.raises(UsageError, match="at most n = 3"):
        f.density(5, 4)


def test_zipf_is_followed():
    f = get_problem("embedding", n=1, m=200_000, vocabulary=20, width=1, zipf=1.0)
    chances = (1 / np.arange(1, 21)) / np.sum(1 / np.arange(1, 21))
    assert np.all(np.abs(f.counts[0] / f.m - chances) <= 6 * np.sqrt(chances / f.m))


# --- mixtures --------------------------------------------------------------------------------------------------------


def test_a_mixture_is_what_was_planted():
    f = get_problem("mixture", n=2, m=4000, components=3, dim=2, aspect=5.0)
    for k in range(3):
        own = f.Y[f.labels == k]
        assert np.abs(own.mean(axis=0) - f.centres[k]).max() <= 6 / math.sqrt(len(own))
        assert np.linalg.norm(np.cov(own.T) @ f.S[k] - np.eye(2)) <= 6 * 5 * 4 / math.sqrt(len(own))  # entries times the condition
        assert np.linalg.cond(f.S[k]) == pytest.approx(25.0, rel=1e-9)
    by_label = get_problem("mixture", n=4, shards="label")
    assert [set(row) for row in by_label.labels.tolist()] == [{0}, {1}, {2}, {0}]


def test_the_value_of_a_mixture_is_the_likelihood():
    from scipy.stats import multivariate_normal

    f = get_problem("mixture", n=2, m=9, components=3, dim=2)
    x = np.random.default_rng(0).standard_normal((3, 2))
    Y = f.Y.reshape(-1, 2)
    density = np.mean([multivariate_normal(x[k], np.linalg.inv(f.S[k])).pdf(Y) for k in range(3)], axis=0)
    assert f.value(x.ravel()) == pytest.approx(np.mean(-np.log(density)) - math.log(2 * math.pi), rel=1e-12)
    assert f.constants.f_star[1] <= f.value(f.centres.ravel())


# --- duals -----------------------------------------------------------------------------------------------------------


def test_the_dual_of_ridge_has_the_primal_s_minimum_and_a_gap_that_certifies():
    primal = get_problem("ridge", data=SMALL, n=3, lam=0.1)
    f = get_problem("ridge_dual", data=SMALL, n=3, lam=0.1)
    low, high = f.constants.f_star
    assert -primal.constants.f_star[1] <= high and low <= -primal.constants.f_star[0] and high - low <= 1e-12
    x = f.constants.x_star
    assert f.gap(x) + 1e-15 >= 0 and f.gap(x) <= 1e-13
    assert np.allclose(f.primal_point(x), primal.constants.x_star, atol=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(10):
        a = x + rng.standard_normal(f.d)
        assert f.gap(a) >= f.value(a) - low - 1e-12 > 0


def test_dual_constants_against_the_hessians():
    for options in ({"data": SMALL, "n": 3, "lam": 0.1}, {"data": WIDE, "n": 2, "lam": 0.5}):
        f = get_problem("ridge_dual", **options)
        shared = f.A @ f.A.T / (f.lam * f.d**2)
        each_ = [np.linalg.eigvalsh(shared + np.diag(own)) for own in f._owned]
        mean, c = np.linalg.eigvalsh(shared + np.eye(f.d) / f.d), f.constants
        assert mean[-1] <= c.L * (1 + 1e-14) <= mean[-1] * (1 + 1e-12) and c.mu * (1 - 1e-14) <= mean[0] <= c.mu * (1 + 1e-9)
        assert max(e[-1] for e in each_) <= c.L_max and min(e[0] for e in each_) >= c.mu_min - 1e-15


def test_the_same_dual_by_columns_and_by_gradients():
    from verify_rates.theory.calculators import cocoa

    f = get_problem("ridge_dual", data=SMALL, n=3, lam=0.1)
    made = f.columns()
    a = np.random.default_rng(0).standard_normal(f.d)
    assert made.primal(a) == pytest.approx(f.value(a), rel=1e-12) and made.gap(a) == pytest.approx(f.gap(a), rel=1e-12)
    assert cocoa.optimum(made)[1] == pytest.approx(f.constants.f_star[1], rel=1e-9)
    run = simulate("gd", f, {"gamma": 1 / f.constants.L}, steps=600, engine="numpy")
    assert f.gap(run.final["x"][0].ravel()) < 1e-6


def test_the_squared_hinge_dual_has_the_svm_s_minimum():
    from verify_rates.problems.columns import instance
    from verify_rates.theory.calculators import cocoa

    made = instance("squared_hinge_dual", K=2, per=6, m=3, seed=1, mu=0.3)
    X = (made.A * (0.3 * 12)).T  # y_i x_i
    primal = get_problem("svm", data=(np.vstack([X[:6], -X[6:]]), [1] * 6 + [0] * 6), n=1, lam=0.3)
    assert -cocoa.optimum(made)[1] == pytest.approx(primal.constants.f_star[1], rel=1e-9)
    with pytest.raises(UsageError, match="did you mean 'svm_dual'"):
        instance("svm_duel", K=1, per=1, m=1, seed=0)


# --- network ---------------------------------------------------------------------------------------------------------


def test_the_network_on_digits_sees_few_labels_a_worker_and_learns():
    f = get_problem("network", n=5, hidden=4, samples=300, lam=1e-3, batch=16)
    assert f.d == 4 * 65 + 10 * 5 and f.classes == 10
    labels = [set(f.y[f._own(i)].astype(int).tolist()) for i in range(5)]
    assert all(len(own) <= 4 for own in labels) and set().union(*labels) == set(range(10))
    rng = np.random.default_rng(0)
    x, v = f.start + 0.1 * rng.standard_normal(f.d), rng.standard_normal(f.d)
    g, h = f.grads(x).mean(axis=0), 1e-4
    slope = (8 * (f.value(x + h * v) - f.value(x - h * v)) - (f.value(x + 2 * h * v) - f.value(x - 2 * h * v))) / (12 * h)
    assert slope == pytest.approx(g @ v, rel=1e-8)
    run = simulate("gd", f, {"gamma": 0.5}, steps=150, measures=("grad_norm",), engine="numpy")
    assert f.value(run.final["x"][0].ravel()) < 0.5 * f.value(f.start)
    assert f.constants.f_star[1] < 0.2 * f.value(f.start)


def test_the_network_s_gradient_at_a_point_computed_by_complex_steps():
    """An independent evaluation: tanh, exp and log of complex numbers, imaginary steps of 1e-30 have no cancellation."""
    f = get_problem("network", data=SMALL, n=2, hidden=2, shards="homogeneous", lam=0.05)
    x = 0.3 * np.random.default_rng(1).standard_normal(f.d)

    def loss(i, w):
        A, y = f.A[f._own(i)], f.y[f._own(i)].astype(int)
        first, second = w[:8].reshape(2, 4), w[8:].reshape(3, 3)
        H = np.tanh(np.hstack([A, np.ones((len(A), 1))]) @ first.T)
        logits = np.hstack([H, np.ones((len(A), 1))]) @ second.T
        return np.mean(np.log(np.sum(np.exp(logits), axis=1)) - logits[np.arange(len(y)), y]) + 0.05 * np.sum(w * w) / 2

    for i in range(2):
        steps = [loss(i, (f._origin + x) + 1e-30j * e).imag / 1e-30 for e in np.eye(f.d)]
        assert np.abs(np.array(steps) - f.grads(x)[i]).max() <= RTOL_KERNEL


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("ridge_dual", {"lam": 0}, "lam of ridge_dual must be more than 0"),
        ("ridge_dual", {"shards": "copies"}, "deal every sample to one worker"),
        ("ridge_dual", {"batch": 3}, "noise must be one of"),
        ("svm", {"data": "digits10"}, "must have two labels"),
        ("network", {"hidden": 0}, "hidden must be at least 1"),
        ("network", {"initial": -1}, "initial must be at least 0"),
        ("network", {"lam": math.nan}, "lam must be finite"),
        ("network", {"data": ([[1.0], [2.0]], [1, 1])}, "2 to 100 labels"),
        ("network", {"data": "digit10"}, "did you mean 'digits10'"),
        ("network", {"n": 5000}, "at least as many samples"),
        ("logistic", {"data": "digits10"}, "must have two labels"),
        ("embedding", {"vocabulary": 0}, "vocabulary must be at least 1"),
        ("embedding", {"zipf": -1}, "zipf must be at least 0"),
        ("embedding", {"zipf": math.nan}, "zipf must be finite"),
        ("embedding", {"m": 0}, "m must be at least 1"),
        ("embedding", {"own_order": 1}, "must be true or false"),
        ("embedding", {"vocab": 4}, "did you mean 'vocabulary'"),
        ("mixture", {"components": 0}, "components must be at least 1"),
        ("mixture", {"aspect": 0.5}, "aspect must be at least 1"),
        ("mixture", {"aspect": 1e7}, "aspect must be at most 1e6"),
        ("mixture", {"shards": "dirichlet"}, "shards must be one of"),
        ("mixture", {"separation": math.inf}, "separation must be finite"),
    ],
)
def test_bad_options_of_networks_embeddings_mixtures_and_duals(name, options, said):
    with pytest.raises(UsageError, match=said):
        get_problem(name, **options)


# --- the checks themselves see what they should ----------------------------------------------------------------------


@each
def test_a_gradient_that_is_off_in_one_coordinate_is_seen(made, spec):
    f, rng = made[json.dumps(spec)], np.random.default_rng(1)
    x = (0 if f.constants.x_star is None else f.constants.x_star) + 0.5 * rng.standard_normal(f.d)
    g, kernel = f.grads(x)[0], f.compiled_value()
    scale = np.abs(g).max() + abs(f.value(x))
    j = int(np.argmax(np.abs(g)))
    g[j] *= 1 + 100 * RTOL_DIFFERENCE * scale / abs(g[j])
    assert np.abs(differences(lambda y: kernel(f.slots, 0, y), x) - g).max() > RTOL_DIFFERENCE * scale


@of_each(LOCAL[::2])  # every local family once
def test_wrong_gradients_and_minima_of_local_families_are_caught(made, spec):
    f = made[json.dumps(spec)]
    honest, wide = f.grads, Declaring(f)
    wide._within = f._within
    wide.grads = lambda x, gens=None, xp=np: honest(x, gens, xp) * 1.01
    assert "grads" in {finding.what for finding in check_constants(wide, points=2, draws=20)}
    low, high = f.constants.f_star
    assert low <= high < f.value(f.start)
    late = Declaring(f, f_star=(high + 0.995 * (f.value(np.zeros(f.d)) - high), math.inf))
    late._within = f._within
    assert "f_star" in {finding.what for finding in check_constants(late, points=2, draws=20)}
