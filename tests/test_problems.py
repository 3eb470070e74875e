"""Problems: constants against brute force and exact arithmetic, data files, shards, kernels, and the spot checks themselves."""

from __future__ import annotations

import gzip
import json
import math
import pathlib
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from verify_rates.problems import get_problem, glm, problems
from verify_rates.problems.checks import check_constants
from verify_rates.problems.custom import make_problem
from verify_rates.problems.data import dataset, get_data, read_libsvm
from verify_rates.problems.rounding import gram, gram_norm, largest_eigenvalue, smallest_eigenvalue
from verify_rates.problems.shards import shard
from verify_rates.solvers.method import UsageError
from verify_rates.solvers.oracle import Data
from verify_rates.solvers.words import Unsupported

SHARED_DATA = pathlib.Path(__file__).resolve().parents[2] / "shared" / "data"
RTOL_KERNEL = 1e-13  # two orders of summation over at most a few thousand terms of like size: sqrt(terms) * 1.1e-16
RTOL_ATTAINED = 1e-9  # a constant that is exact up to rounding errors: d^2 u = 1e-12 at most here, power iteration adds more

SPECS = [
    {"name": "quadratic", "n": 4, "d": 7, "L": 3.0, "mu": 0.2, "zeta2_star": 2.0, "sigma2": 0.5},
    {"name": "quadratic", "n": 3, "d": 6, "common": False, "zeta2_star": 1.0, "noise": "two_point", "sigma2": 0.5, "p": 0.2},
    {"name": "quadratic", "n": 1, "d": 5, "mu": 0.0, "rotate": False},
    {"name": "huber", "n": 3, "d": 4, "shift": 0.3, "sigma2": 1.0},
    {"name": "huber", "n": 3, "d": 2, "shift": 0.3, "mu": 0.1, "noise": "two_point", "sigma2": 1.0},
    {"name": "huber", "L": 2.0},
    {"name": "one_minus_cos", "n": 3, "d": 2, "shift": 0.7, "noise": "two_point", "sigma2": 2.0, "p": 0.1},
    {"name": "one_minus_cos", "omega": 3.0},
    {"name": "ridge", "data": "digits", "n": 3, "batch": 4, "samples": 300},
    {"name": "logistic", "n": 4, "batch": 8, "shards": "label", "samples": 200},
    {"name": "logistic", "n": 2, "lam": 0.2, "shards": "copies", "sigma2": 0.5, "samples": 100},
    {"name": "nonconvex_logistic", "n": 3, "batch": 8, "lam": 0.5, "samples": 200},
    {"name": "svm", "n": 3, "batch": 8, "lam": 0.1, "samples": 200, "shards": "label"},
]


@pytest.fixture(scope="module")
def made():
    return {json.dumps(spec): get_problem(**spec) for spec in SPECS}


def each(fn):
    return pytest.mark.parametrize("spec", [pytest.param(s, id=f"{k}-{s['name']}") for k, s in enumerate(SPECS)])(fn)


def generators(n, seed=0):
    return [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(n)]


def small_file(tmp_path, text, name="data.txt"):
    path = tmp_path / name
    path.write_bytes(text.encode("latin-1") if isinstance(text, str) else text)
    return str(path)


class Declaring:
    """A problem that declares other constants than its own."""

    def __init__(self, problem, **other):
        self.problem, self.name, self.n, self.d = problem, problem.name, problem.n, problem.d
        self.constants = problem.constants._replace(**other)

    def value(self, x):
        return self.problem.value(x)

    def grads(self, *args, **kwargs):
        return self.problem.grads(*args, **kwargs)


# --- constants -------------------------------------------------------------------------------------------------------


@each
def test_constants_pass_the_spot_checks(made, spec):
    assert check_constants(made[json.dumps(spec)], np.random.default_rng(5)) == []


@each
@pytest.mark.parametrize("constant", ["L", "L_max"])
def test_an_L_of_nine_tenths_is_caught(made, spec, constant):
    problem = made[json.dumps(spec)]
    wrong = Declaring(problem, **{constant: 0.9 * getattr(problem.constants, constant)})
    assert constant in {f.what for f in check_constants(wrong, points=2, draws=20)}


@each
def test_a_mu_that_is_too_large_is_caught(made, spec):
    problem = made[json.dumps(spec)]
    c = problem.constants
    wrong = Declaring(problem, mu=c.mu + 0.01 * c.L, mu_min=c.mu_min + 0.01 * c.L)
    assert {"mu", "mu_min"} <= {f.what for f in check_constants(wrong, draws=20)}


@pytest.mark.parametrize(
    ("spec", "constant", "factor"),
    [
        (0, "sigma2_star", 0.5),
        (0, "sigma2_sup", 0.5),
        (0, "zeta2_star", 0.99),
        (0, "zeta2_sup", 0.99),
        (4, "zeta2_star", 0.99),
        (6, "zeta2_sup", 0.8),
        (8, "sigma2_star", 0.5),
        (9, "sigma2_sup", 0.005),
        (9, "zeta2_star", 0.999),
    ],
)
def test_other_constants_that_are_too_small_are_caught(made, spec, constant, factor):
    problem = made[json.dumps(SPECS[spec])]
    wrong = Declaring(problem, **{constant: factor * getattr(problem.constants, constant)})
    assert constant in {f.what for f in check_constants(wrong)}


def test_a_wrong_minimum_is_caught(made):
    problem = made[json.dumps(SPECS[9])]
    c = problem.constants
    width = 1e-6

    def found(**other):
        return {f.what for f in check_constants(Declaring(problem, **other), draws=20)}

    assert found(f_star=(c.f_star[0] + width, c.f_star[1] + width)) == {"f_star"}
    assert found(f_star=(c.f_star[0] - 2 * width, c.f_star[1] - width)) == {"f_star"}
    assert "x_star" in found(x_star=c.x_star + 1e-3)


def test_a_wrong_gradient_and_biased_noise_are_caught(made):
    problem = Declaring(made[json.dumps(SPECS[0])])
    problem.grads = lambda x, gens=None, xp=np: problem.problem.grads(x, gens, xp) * (1.01 if gens is None else 1.0)
    assert "grads" in {f.what for f in check_constants(problem)}
    problem.grads = lambda x, gens=None, xp=np: problem.problem.grads(x, gens, xp) + (0.0 if gens is None else 0.5)
    assert [f.what for f in check_constants(problem) if "biased" in f.sentence] == ["grads"]


@each
def test_constants_are_in_order(made, spec):
    c = made[json.dumps(spec)].constants
    assert 0 < c.L <= c.L_max
    assert c.mu_min <= c.mu <= c.L
    assert c.f_star[0] <= c.f_star[1]
    assert c.convex == (c.mu >= 0)


def test_rotated_quadratics_attain_what_they_declare_and_never_more():
    f = get_problem("quadratic", n=3, d=12, L=5.0, mu=0.25, common=False, zeta2_star=2.0)
    for H in f.slots.tensors:
        eigenvalues = np.linalg.eigvalsh(H)
        assert eigenvalues[-1] == pytest.approx(5.0, rel=RTOL_ATTAINED)
        assert eigenvalues[0] == pytest.approx(0.25, rel=RTOL_ATTAINED)
        assert largest_eigenvalue(H) <= 5.0
        assert smallest_eigenvalue(H) >= 0.25
    mean = np.linalg.eigvalsh(f.slots.tensors.mean(axis=0))
    assert (mean[0], mean[-1]) == (pytest.approx(0.25, rel=RTOL_ATTAINED), pytest.approx(5.0, rel=RTOL_ATTAINED))
    g = f.grads(f.constants.x_star)
    assert np.all(g.sum(axis=0) == 0)  # exactly
    zeta2 = sum(Fraction(v) ** 2 for v in g.ravel()) / 3
    assert Fraction(2) * (1 - Fraction(RTOL_ATTAINED)) <= zeta2 <= 2
    assert f.value(f.constants.x_star) == 0.0


def test_diagonal_quadratics_are_exact():
    f = get_problem("quadratic", n=2, d=4, L=3.0, mu=0.7, rotate=False)
    assert list(np.diag(f.slots.tensors[0])[[0, -1]]) == [0.7, 3.0]


def _positive_definite(M):
    """Exact: all pivots of a rational symmetric matrix are positive."""
    M = [[Fraction(v) for v in row] for row in M]
    for k in range(len(M)):
        if M[k][k] <= 0:
            return False
        for i in range(k + 1, len(M)):
            factor = M[i][k] / M[k][k]
            M[i] = [a - factor * b for a, b in zip(M[i], M[k], strict=True)]
    return True


def _exact_hessian_at_zero(problem, curvature):
    A = problem.A if isinstance(problem.A, np.ndarray) else problem.A.toarray()
    H = [[Fraction(problem.lam) if j == k else Fraction(0) for k in range(problem.d)] for j in range(problem.d)]
    for i in range(problem.n):
        rows = A[problem._own(i)]
        for a in rows:
            for j in range(problem.d):
                for k in range(problem.d):
                    H[j][k] += Fraction(curvature) * Fraction(a[j]) * Fraction(a[k]) / (problem.n * len(rows))
    return np.array(H, dtype=object)


@pytest.mark.parametrize(("name", "curvature"), [("logistic", 0.25), ("ridge", 1.0)])
def test_L_and_mu_against_exact_arithmetic(name, curvature):
    rng = np.random.default_rng(3)
    f = get_problem(name, data=(rng.standard_normal((30, 4)), np.sign(rng.standard_normal(30))), n=3, lam=0.01)
    H, eye = _exact_hessian_at_zero(f, curvature), np.array([[Fraction(j == k) for k in range(4)] for j in range(4)], dtype=object)
    below = Fraction(1) - Fraction(1, 10**12)
    assert _positive_definite(Fraction(f.constants.L) * eye - H)
    assert not _positive_definite(Fraction(f.constants.L) * below * eye - H)  # the bound is tight: a little less is too little
    if name == "ridge":
        assert _positive_definite(H - Fraction(f.constants.mu) * eye)
        assert not _positive_definite(H - Fraction(f.constants.mu) * (2 - below) * eye)
    else:
        assert f.constants.mu == 0.01


def test_eigenvalue_bounds_hold_on_matrices_of_known_spectrum():
    rng = np.random.default_rng(1)
    for d in (1, 2, 9, 40):
        integers = rng.integers(-8, 9, (d + 3, d)).astype(float)
        M = integers.T @ integers  # exact
        low, high = smallest_eigenvalue(M), largest_eigenvalue(M)
        exact = np.array([[Fraction(v) for v in row] for row in M], dtype=object) if d < 10 else None
        eigenvalues = np.linalg.eigvalsh(M)
        assert low <= eigenvalues[0] <= eigenvalues[-1] <= high
        assert high == pytest.approx(eigenvalues[-1], rel=RTOL_ATTAINED)
        if exact is not None:
            eye = np.array([[Fraction(j == k) for k in range(d)] for j in range(d)], dtype=object)
            assert _positive_definite(Fraction(high) * eye - exact)
    assert largest_eigenvalue(np.zeros((3, 3))) == 0.0


def test_the_gram_bound_without_a_dense_matrix_is_valid_and_tight_for_nonnegative_data():
    rng = np.random.default_rng(2)
    A = (rng.random((60, 20)) < 0.3).astype(float)
    weights = np.full(60, 1 / 60)
    G, error = gram(A, weights)
    assert 0 <= error < 1e-12
    exact = np.linalg.eigvalsh(G)[-1]
    for data in (A, dataset("sparse", A, np.zeros(60)).A):
        assert exact <= gram_norm(data, weights, dense_up_to=1) <= exact * (1 + 1e-6)
    mixed = A * np.where(rng.random(A.shape) < 0.5, -1, 1)
    assert gram_norm(mixed, weights, dense_up_to=1) >= np.linalg.eigvalsh(gram(mixed, weights)[0])[-1]


def _high_precision_minimum(f):
    """Newton on f in 50 digits."""
    mpmath.mp.dps = 50
    A = f.A if isinstance(f.A, np.ndarray) else f.A.toarray()
    rows = [[mpmath.mpf(v) for v in a] for a in A]
    weights = [mpmath.mpf(1) / (f.n * int(m)) for m in np.diff(f.offsets) for _ in range(m)]
    lam, logistic = mpmath.mpf(f.lam), f.name == "logistic"
    x = mpmath.matrix([mpmath.mpf(v) for v in f.constants.x_star])
    for _ in range(4):
        g, H, value = lam * x, lam * mpmath.eye(f.d), lam * (x.T * x)[0] / 2
        for a, y, w in zip(rows, f.y, weights, strict=True):
            z = mpmath.fdot(a, list(x))
            e = mpmath.exp(-y * z) if logistic else None
            value += w * (mpmath.log1p(e) if logistic else (z - y) ** 2 / 2)
            s = -y * e / (1 + e) if logistic else z - y
            c = e / (1 + e) ** 2 if logistic else 1
            for j in range(f.d):
                g[j] += w * s * a[j]
                for k in range(f.d):
                    H[j, k] += w * c * a[j] * a[k]
        if mpmath.norm(g) < mpmath.mpf(10) ** -30:
            return value, x
        x = x - mpmath.lu_solve(H, g)
    raise AssertionError("Newton did not converge")


@pytest.mark.parametrize("name", ["logistic", "ridge"])
def test_the_interval_of_f_star_contains_the_minimum_in_50_digits(name):
    rng = np.random.default_rng(4)
    f = get_problem(name, data=(rng.standard_normal((25, 3)), np.sign(rng.standard_normal(25))), n=3, lam=0.02)
    low, high = f.constants.f_star
    value, x = _high_precision_minimum(f)
    assert mpmath.mpf(low) <= value <= mpmath.mpf(high)
    assert high - low < 1e-12
    exact = np.array([float(v) for v in x])
    assert np.allclose(f.constants.x_star, exact, rtol=0, atol=1e-12)
    assert f.constants.zeta2_star >= np.mean(np.sum(f.grads(exact) ** 2, axis=1)) * (1 - 1e-13)


def test_minimisers_without_a_dense_hessian_are_the_same(monkeypatch):
    dense = get_problem("logistic", n=3, samples=100, lam=0.05).constants
    monkeypatch.setattr(glm, "DENSE_HESSIAN", 0)
    sparse = get_problem("logistic", n=3, samples=100, lam=0.05).constants
    assert np.allclose(dense.x_star, sparse.x_star, rtol=0, atol=1e-12)
    assert sparse.f_star[1] - sparse.f_star[0] < 1e-12


def test_gaps_are_never_negative_along_a_run(made):
    for spec in SPECS:
        f = made[json.dumps(spec)]
        x = np.zeros(f.d)
        for _ in range(200):
            assert f.value(x) >= f.constants.f_star[0]
            x = x - f.grads(x).mean(axis=0) / f.constants.L


@pytest.mark.parametrize("spec", [SPECS[3], SPECS[4], SPECS[6]], ids=["huber", "huber-mu", "cos"])
def test_the_minimum_of_shifted_scalars_against_a_fine_grid(made, spec):
    f = made[json.dumps(spec)]
    grid = np.linspace(f._shifts.min() - 0.1, f._shifts.max() + 0.1, 20001)
    minima = [min(np.mean([f._values(grid - s) for s in f._shifts[:, j]], axis=0)) for j in range(f.d)]
    spacing = grid[1] - grid[0]
    low, high = f.constants.f_star
    assert low <= sum(minima) <= high + f.d * f.constants.L * spacing**2
    assert high - low < 1e-12
    spread = [np.max(np.var([f._full(np.full(f.d, x), np)[:, j] for x in grid[::50]], axis=1)) for j in range(f.d)]
    assert sum(spread) <= f.constants.zeta2_sup


def test_huber_attains_the_worst_case_of_gradient_descent():
    N, gamma, R = 5, 0.8, 1.0
    f = get_problem("huber", c=R / (2 * N * gamma + 1), centre=R)
    x = np.zeros(1)
    for _ in range(N):
        x = x - gamma * f.grads(x)[0]
    assert f.value(x) == pytest.approx(R**2 / (2 * (2 * N * gamma + 1)), rel=1e-14)


def test_batch_noise_at_the_minimiser_is_enumerated_exactly(made):
    f = made[json.dumps(SPECS[9])]
    x = f.constants.x_star
    total = 0.0
    for i in range(f.n):
        samples = np.array([f._slopes(f.A[r] @ x, f.y[r], np) * f.A[r] for r in range(f.offsets[i], f.offsets[i + 1])])
        total += np.mean(np.sum((samples - samples.mean(axis=0)) ** 2, axis=1))
    assert f.constants.sigma2_star == pytest.approx(total / f.n / f.batch, rel=1e-9)
    assert f.constants.sigma2_star >= total / f.n / f.batch * (1 - 1e-13)
    assert f.constants.sigma2_sup < math.inf


def test_suprema_are_infinite_where_nothing_bounds_them():
    c = get_problem("ridge", n=2, batch=3).constants
    assert (c.sigma2_sup, c.zeta2_sup) == (math.inf, math.inf)
    assert get_problem("quadratic", n=2, common=False).constants.zeta2_sup == math.inf
    copies = get_problem("ridge", n=2, shards="copies").constants
    assert (copies.zeta2_star, copies.zeta2_sup) == (0.0, 0.0)


def test_without_a_regulariser_the_minimiser_is_said_to_be_unknown():
    c = get_problem("logistic", n=2, lam=0.0, batch=2).constants
    assert (c.mu, c.x_star, c.zeta2_star, c.sigma2_star) == (0.0, None, None, None)
    assert c.f_star[0] == 0.0


# --- noise, kernels, records -----------------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("exact", [True, False])
def test_kernels_equal_the_array_code(made, spec, exact):
    f = made[json.dumps(spec)]
    kernel, data = f.compiled()
    X = np.random.default_rng(0).standard_normal((f.n, f.d))
    for point in (X, np.tile(X[0], (f.n, 1))):
        expected = f.grads(point if point is X else X[0], None if exact else generators(f.n))
        gens, out = generators(f.n), np.full(f.d, np.nan)
        for i in range(f.n):
            kernel(data, i, point[i].copy(), gens[i], exact, out)
            assert np.abs(out - expected[i]).max() <= RTOL_KERNEL * (1 + np.abs(expected).max())
    value = np.mean([f.compiled_value()(data, i, X[0].copy()) for i in range(f.n)])
    assert value == pytest.approx(f.value(X[0]), rel=RTOL_KERNEL)


@pytest.mark.parametrize("layout", ["dense", "binary8", "binary", "sparse"])
def test_every_storage_layout_gives_the_same_gradients(layout):
    rng = np.random.default_rng(7)
    d = 300 if layout == "binary" else 20
    A = (rng.random((40, d)) < (0.6 if layout == "dense" else 0.1)).astype(float)
    A *= 1.0 if layout in ("binary8", "binary") else rng.standard_normal(A.shape)
    f = get_problem("logistic", data=(A, np.arange(40) % 2), n=3, batch=5)
    data = f.slots
    used = {"dense": data.rows, "binary8": data.cols8, "binary": data.cols, "sparse": data.vals}
    assert used[layout].size > 0
    assert data.vals.size == 0 or layout == "sparse"
    kernel = f.compiled()[0]
    x, out = rng.standard_normal(d), np.empty(d)
    samples = A[np.concatenate(shard(f._targets(get_data((A, np.arange(40) % 2))), 3))][f._own(1)]
    slopes = -f.y[f._own(1)] / (1 + np.exp(f.y[f._own(1)] * (samples @ x)))
    kernel(data, 1, x, rng, True, out)
    assert np.allclose(out, samples.T @ slopes / len(samples) + f.lam * x, rtol=0, atol=RTOL_KERNEL * 10)
    assert np.allclose(f.grads(x)[1], out, rtol=0, atol=RTOL_KERNEL)


@each
def test_array_libraries_give_the_same_gradients(made, spec):
    xp = pytest.importorskip("array_api_strict")
    f = made[json.dumps(spec)]
    x = np.random.default_rng(0).standard_normal((f.n, f.d))
    for point in (x, x[0]):
        expected, found = f.grads(point, generators(f.n)), f.grads(xp.asarray(point), generators(f.n), xp)
        assert np.abs(np.from_dlpack(found) - expected).max() <= RTOL_KERNEL * (1 + np.abs(expected).max())


@each
def test_a_description_makes_the_same_problem_again(made, spec):
    f = made[json.dumps(spec)]
    again = get_problem(**json.loads(json.dumps(f.describe())))
    x = np.random.default_rng(1).standard_normal(f.d)
    assert np.array_equal(f.grads(x, generators(f.n)), again.grads(x, generators(f.n)))
    assert f.describe() == again.describe()


def test_given_arrays_survive_a_description():
    f = get_problem("ridge", data=([[1.0, 2.0], [0.1, -1.0], [3.0, 1.0]], [0.5, 1.0, -1.0]), n=3)
    again = get_problem(**json.loads(json.dumps(f.describe())))
    assert np.array_equal(f.grads(np.ones(2)), again.grads(np.ones(2)))


def test_large_given_arrays_are_not_written_down():
    f = get_problem("ridge", data=(np.ones((1001, 100)), np.ones(1001)), n=2)
    with pytest.raises(Unsupported, match="its data is too large"):
        f.describe()


def test_seeds_are_deterministic_and_matter():
    for name, options in (("quadratic", {"zeta2_star": 1.0}), ("huber", {"n": 2, "shift": 1.0}), ("logistic", {"shards": "dirichlet"})):
        one, two, other = (get_problem(name, seed=s, **options) for s in (1, 1, 2))
        x = np.ones(one.d)
        assert np.array_equal(one.grads(x), two.grads(x))
        assert not np.array_equal(one.grads(x), other.grads(x))


@pytest.mark.parametrize("p", [0.5, 0.02])
def test_two_point_noise_has_mean_zero_and_no_more_than_the_declared_variance(p):
    f = get_problem("huber", d=3, noise="two_point", sigma2=2.0, p=p)
    high, low = f._levels
    assert p * high + (1 - p) * low == pytest.approx(0.0, abs=1e-15)
    variance = 3 * (Fraction(p) * Fraction(high) ** 2 + (1 - Fraction(p)) * Fraction(low) ** 2)
    assert 2 * (1 - Fraction(1, 10**14)) <= variance <= 2
    seen = f.grads(np.zeros(3), [np.random.default_rng(0)]) - f.grads(np.zeros(3))
    assert all(min(abs(v - high), abs(v - low)) < 1e-15 for v in seen.ravel())


# --- shards ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["homogeneous", "label", "dirichlet"])
@pytest.mark.parametrize(("m", "n"), [(50, 7), (7, 7), (40, 1)])
def test_shards_cover_every_sample_once_and_leave_no_worker_empty(how, m, n):
    y = np.arange(m) % 2
    for alpha in (1e-3, 1.0):
        parts = shard(y, n, how, alpha=alpha, seed=3)
        assert len(parts) == n
        assert min(map(len, parts)) >= 1
        assert sorted(np.concatenate(parts)) == list(range(m))
        assert all(np.array_equal(a, b) for a, b in zip(parts, shard(y, n, how, alpha=alpha, seed=3), strict=True))
    if how != "dirichlet":
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_shards_by_label_are_pure_and_dirichlet_lies_between():
    y = np.arange(400) % 2

    def impurity(how, alpha=1.0):
        return np.mean([np.var(y[part]) for part in shard(y, 4, how, alpha=alpha)])

    assert impurity("label") == 0.0
    assert impurity("dirichlet", 0.05) < impurity("dirichlet", 100.0) <= 0.25
    assert impurity("homogeneous") > 0.24
    assert [list(part) for part in shard(y[:3], 2, "copies")] == [[0, 1, 2]] * 2


# --- data files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("\n# nothing\n\n", "is empty"),
        ("1 1:1\n-1 2:x\n", "line 2: the value of index 2 is 'x'"),
        ("1 1:1\n\n-1 2\n", "line 3: '2' is not of the form"),
        ("1 3:\n-1 1:1\n", "line 1: the value of index 3 is ''"),
        ("1 3: 1\n-1 1:1\n", "line 1: the value of index 3 is ''"),
        ("1 3:1:2\n-1 1:1\n", "line 1: the value of index 3 is '1:2'"),
        ("1 1:1_0\n-1 1:1\n", "line 1: the value of index 1 is '1_0'"),
        ("1 1.5:1\n-1 1:1\n", "line 1: '1.5:1' is not of the form"),
        ("one 1:1\n-1 1:1\n", "line 1: the label is 'one'"),
        ("1,2 1:1\n-1 1:1\n", "line 1: the label is '1,2'"),
        ("1 1:1\n-1 4:1 2:1 4:2\n", "line 2: index 4 appears twice"),
        ("1 1:1\n-1 4:1 4:1\n", "line 2: index 4 appears twice"),
        ("1 -2:1\n-1 1:1\n", "line 1: index -2 is not allowed"),
        ("1 1:1\n-1 1:nan\n", "line 2: the value of index 1 is 'nan'; it must be finite"),
        ("1 1:inf\n-1 1:1\n", "line 1: the value of index 1 is 'inf'; it must be finite"),
        ("1 1:1e999\n-1 1:1\n", "line 1: the value of index 1 is '1e999'; it must be finite"),
        ("nan 1:1\n-1 1:1\n", "line 1: the label is 'nan'; it must be finite"),
        ("1 99999999999:1\n-1 1:1\n", "line 1: index 99999999999 is too large"),
        ("1\n-1\n", "every row is empty"),
        ("\x00\x01\xff", "line 1: the label is"),
    ],
)
def test_a_malformed_file_is_named_by_line(tmp_path, text, said):
    with pytest.raises(UsageError) as error:
        read_libsvm(small_file(tmp_path, text))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_labels_must_be_two_and_are_mapped_in_order(tmp_path):
    assert list(read_libsvm(small_file(tmp_path, "7 1:1\n3 1:2\n7 1:1\n")).signs()) == [1.0, -1.0, 1.0]
    with pytest.raises(UsageError, match="it has 3: 1, 2, 3"):
        read_libsvm(small_file(tmp_path, "1 1:1\n2 1:1\n3 1:2\n")).signs()
    with pytest.raises(UsageError, match="it has 1: 5"):
        get_problem("logistic", data=small_file(tmp_path, "5 1:1\n5 1:2\n"), n=1)


def test_indices_layout_and_empty_rows(tmp_path):
    one = read_libsvm(small_file(tmp_path, "1 1:1 3:2\n\n-1\n1 2:1 # note\n"))
    assert np.array_equal(_dense(one.A), [[1, 0, 2], [0, 0, 0], [0, 1, 0]])
    zero = read_libsvm(small_file(tmp_path, "1 0:1 3:2\n-1 2:1\n"))
    assert np.array_equal(_dense(zero.A), [[1, 0, 0, 2], [0, 0, 1, 0]])
    unsorted = read_libsvm(small_file(tmp_path, "1 3:2 1:1\n-1 2:1\n"))
    assert np.array_equal(_dense(unsorted.A), [[1, 0, 2], [0, 1, 0]])
    path = small_file(tmp_path, "1 1:1 3:2\n-1 2:1\n")
    assert read_libsvm(path, zero_based=True).A.shape == (2, 4)
    assert read_libsvm(path, features=6).A.shape == (2, 6)
    with pytest.raises(UsageError, match="line 1: index 3 is beyond the 2 features"):
        read_libsvm(path, features=2)
    with pytest.raises(UsageError, match="line 1: index 0 is not allowed; indices start at 1"):
        read_libsvm(small_file(tmp_path, "1 0:1\n-1 2:1\n"), zero_based=False)


def _dense(A):
    return A if isinstance(A, np.ndarray) else A.toarray()


def test_gzip_is_recognised_by_its_bytes_and_damage_is_said(tmp_path):
    text = "1 1:1 9:1\n-1 2:1 9:1\n" * 50
    plain, packed = (read_libsvm(small_file(tmp_path, raw, "x.dat")) for raw in (text, gzip.compress(text.encode())))
    assert np.array_equal(_dense(plain.A), _dense(packed.A))
    assert plain.binary
    assert plain.A.indices.dtype == np.int32
    with pytest.raises(UsageError, match="cannot be read"):
        read_libsvm(small_file(tmp_path, gzip.compress(text.encode())[:40]))
    with pytest.raises(UsageError, match="is a folder"):
        read_libsvm(str(tmp_path))


def test_a_description_holds_the_file_to_its_checksum(tmp_path):
    path = small_file(tmp_path, "1 1:1\n-1 2:1\n")
    recorded = get_problem("logistic", data=path, n=2).describe()
    assert get_problem(**recorded).d == 2
    small_file(tmp_path, "1 1:1\n-1 3:1\n")
    with pytest.raises(UsageError, match="is not the file asked for"):
        get_problem(**recorded)


def test_embedded_sets():
    cancer, digits = get_data("breast_cancer"), get_data("digits")
    assert (cancer.A.shape, digits.A.shape) == ((569, 30), (1797, 64))
    assert np.mean(np.sum(cancer.A**2, axis=1)) == pytest.approx(1.0, rel=1e-12)
    assert (digits.A.min(), digits.A.max()) == (0.0, 1.0)
    assert sorted(np.unique(digits.signs())) == [-1.0, 1.0]


@pytest.mark.parametrize(("name", "shape", "binary"), [("a9a.gz", (32561, 123), True), ("mushrooms.gz", (8124, 112), True)])
def test_real_files_load_with_their_constants(name, shape, binary):
    path = SHARED_DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not beside this repository")
    f = get_problem("logistic", data=str(path), n=10, batch=32, lam=1e-3)
    c = f.constants
    assert f.A.shape == shape
    assert f.binary is binary
    assert f.slots.cols8.size == f.A.nnz
    assert np.linalg.norm(f.grads(c.x_star).mean(axis=0)) < 1e-11
    assert c.f_star[1] - c.f_star[0] < 1e-11


# --- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("quadratc", {}, "did you mean 'quadratic'"),
        ("logistic", {"lamb": 1.0}, "did you mean 'lam'"),
        ("quadratic", {"mu": 2.0}, "mu must be at most L"),
        ("quadratic", {"L": math.nan}, "L must be finite"),
        ("quadratic", {"L": 0.0}, "L must be more than 0"),
        ("quadratic", {"mu": -0.1}, "mu must be at least 0"),
        ("quadratic", {"n": 0}, "n must be at least 1"),
        ("quadratic", {"n": 2.5}, "n must be a whole number"),
        ("quadratic", {"d": 1}, "one eigenvalue"),
        ("quadratic", {"n": 1, "zeta2_star": 1.0}, "no heterogeneity"),
        ("quadratic", {"common": "yes"}, "must be true or false"),
        ("quadratic", {"noise": "batch"}, "noise must be one of"),
        ("quadratic", {"noise": "gaussian"}, "goes with sigma2 > 0"),
        ("quadratic", {"noise": "none", "sigma2": 1.0}, "goes with sigma2 > 0"),
        ("quadratic", {"sigma2": math.inf}, "sigma2 must be finite"),
        ("quadratic", {"sigma2": "much"}, "sigma2 must be a number"),
        ("huber", {"p": 1.0}, "p must be less than 1"),
        ("huber", {"c": 0}, "c must be more than 0"),
        ("huber", {"shift": 0.1}, "no heterogeneity"),
        ("huber", {"mu": 1.5}, "mu must be at most L"),
        ("one_minus_cos", {"omega": 0}, "omega must be more than 0"),
        ("logistic", {"lam": -1}, "lam must be at least 0"),
        ("logistic", {"lam": math.nan}, "lam must be finite"),
        ("logistic", {"n": 1000}, "need at least as many samples"),
        ("logistic", {"samples": 1000}, "samples = 1000 is more than"),
        ("logistic", {"batch": 0}, "batch must be at least 1"),
        ("logistic", {"batch": 2, "sigma2": 1.0}, "choose one kind of noise"),
        ("logistic", {"batch": 2, "noise": "none"}, "choose one kind of noise"),
        ("logistic", {"shards": "random"}, "shards must be one of"),
        ("logistic", {"shards": "dirichlet", "alpha": 0}, "alpha must be more than 0"),
        ("logistic", {"data": "digit"}, "did you mean 'digits'"),
        ("logistic", {"data": "missing.txt"}, "there is no file"),
        ("logistic", {"data": 3}, "data must be one of"),
        ("ridge", {"data": ([[1.0, 2.0], [1.0]], [1, 2])}, "rows of one length"),
        ("ridge", {"data": ([[1.0], [math.nan]], [1, 2])}, "NaN or inf"),
        ("ridge", {"data": ([[1.0], [2.0]], [1, 2, 3])}, "one target a row"),
        ("ridge", {"data": ([[1e200], [2.0]], [1, 2])}, "beyond 1e+100"),
        ("ridge", {"data": "digits", "features": 64}, "leave them out"),
        ("ridge", {"data": "x.txt", "features": 2.5}, "there is no file"),
    ],
)
def test_bad_options_are_said_in_one_sentence(name, options, said):
    with pytest.raises(UsageError) as error:
        get_problem(name, **options)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_points_and_generators_must_fit():
    f = get_problem("quadratic", n=2, d=3, sigma2=1.0)
    with pytest.raises(UsageError, match="has shape"):
        f.grads(np.zeros(2))
    with pytest.raises(UsageError, match="one generator a worker"):
        f.grads(np.zeros(3), generators(3))
    with pytest.raises(UsageError, match="go with a problem's name"):
        get_problem(f, n=3)
    with pytest.raises(UsageError, match="lacks name"):
        get_problem(object())
    assert get_problem(f) is f


def test_families_are_found():
    assert {"quadratic", "ridge", "logistic", "nonconvex_logistic", "huber", "one_minus_cos"} <= set(problems())


# --- bring your own --------------------------------------------------------------------------------------------------

CENTRES = np.array([[1.0, 0.0, 2.0], [-1.0, 0.0, 0.0]])
OWN = {"L": 2.0, "L_max": 2.0, "mu": 2.0, "mu_min": 2.0, "x_star": [0.0, 0.0, 1.0], "f_star": 2.0, "zeta2_star": 8.0, "zeta2_sup": 8.0}


def own_value(x):
    return float(np.mean(np.sum((x - CENTRES) ** 2, axis=1)))


def own_grads(X):
    return 2 * (X - CENTRES)


def test_a_users_problem_works_and_is_found_by_name():
    f = make_problem("own_one", 2, 3, own_value, own_grads, OWN, sigma2=0.5)
    assert get_problem(**f.describe()) is f
    assert f.constants.sigma2_sup == 0.5
    assert np.array_equal(f.grads(np.zeros(3)), -2 * CENTRES)
    assert f.grads(np.zeros(3), generators(2)).shape == (2, 3)
    kernel, data = f.compiled()  # its functions compile
    out = np.empty(3)
    kernel(data, 1, np.ones(3), generators(2)[1], True, out)
    assert np.array_equal(out, 2 * (1 - CENTRES[1]))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"L": 1.8, "L_max": 1.8}, "mu = 2 is declared, but it must be at most L = 1.8"),
        ({"L": 1.8, "L_max": 1.8, "mu": 0.0, "mu_min": 0.0}, "fails a spot check: L"),
        ({"zeta2_star": 7.9}, "fails a spot check: zeta2_star"),
        ({"f_star": 2.1}, "fails a spot check: f_star"),
        ({"x_star": [0.0, 0.0]}, "x_star of"),
        ({"L": math.nan}, "must not be NaN"),
        ({"L": -1.0}, "L must be at least 0"),
        ({"Lmax": 1.0}, "did you mean"),
        ({"f_star": (1.0, 2.0, 3.0)}, "an interval of two"),
    ],
)
def test_a_users_wrong_declarations_are_refused(change, said):
    with pytest.raises(UsageError) as error:
        make_problem("own_wrong", 2, 3, own_value, own_grads, {**OWN, **change})
    assert said in str(error.value)
    assert "own_wrong" not in problems()


def test_a_users_wrong_functions_and_names_are_refused():
    with pytest.raises(UsageError, match="slope"):
        make_problem("own_wrong", 2, 3, own_value, lambda X: 1.9 * (X - CENTRES), OWN)
    with pytest.raises(UsageError, match="must return shape"):
        make_problem("own_wrong", 2, 3, own_value, lambda X: X[0], OWN)
    with pytest.raises(UsageError, match="exists already"):
        make_problem("logistic", 2, 3, own_value, own_grads, OWN)
    with pytest.raises(UsageError, match="one word"):
        make_problem("two words", 2, 3, own_value, own_grads, OWN)
    with pytest.raises(UsageError, match="lack mu"):
        make_problem("own_wrong", 2, 3, own_value, own_grads, {"L": 2.0, "f_star": 2.0})


def test_a_users_kernel_is_compared_with_the_array_code():
    from numba import njit

    from verify_rates.solvers.engine.signatures import GRAD

    def right(data, i, x, gen, exact, out):
        for j in range(x.size):
            out[j] = 2.0 * (x[j] - data.vectors[i, j])

    def wrong(data, i, x, gen, exact, out):
        for j in range(x.size):
            out[j] = 2.0 * x[j]

    f = make_problem("own_kernel", 2, 3, own_value, own_grads, OWN, kernel=njit(GRAD)(right), data={"vectors": CENTRES})
    assert isinstance(f.compiled()[1], Data)
    with pytest.raises(UsageError, match="its kernel and grads differ"):
        make_problem("own_wrong", 2, 3, own_value, own_grads, OWN, kernel=njit(GRAD)(wrong), data={"vectors": CENTRES})
    with pytest.raises(UsageError, match="draws its own noise"):
        make_problem("own_wrong", 2, 3, own_value, own_grads, OWN, kernel=njit(GRAD)(right), data={"vectors": CENTRES}, sigma2=1.0)


def test_a_user_may_draw_the_noise():
    def grads(X, gens=None):
        g = own_grads(X)
        return g if gens is None else g + np.array([gen.uniform(-1, 1, 3) for gen in gens])

    f = make_problem("own_noise", 2, 3, own_value, grads, {**OWN, "sigma2_star": 1.0, "sigma2_sup": 1.0})
    assert f.stochastic
    assert not np.array_equal(f.grads(np.zeros(3), generators(2)), f.grads(np.zeros(3)))
    with pytest.raises(UsageError, match="fails a spot check: sigma2"):
        make_problem("own_wrong", 2, 3, own_value, grads, {**OWN, "sigma2_star": 0.7, "sigma2_sup": 0.7})
