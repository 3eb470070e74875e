"""One step in expectation: unbiased compressors, gradient noise, sampled workers, against closed forms and exact enumerations."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from verify_rates.solvers.method import Method, UsageError
from verify_rates.solvers.words import PerWorker, Shared, Unsupported, chance, compress, grad, mean, optimum, prox, spread, sqnorm
from verify_rates.theory.contraction import contraction
from verify_rates.theory.worst_case.instance import Instance
from verify_rates.theory.worst_case.noise import RandomWorld
from verify_rates.theory.worst_case.solve import worst_case

RTOL = 1e-6  # what callers are promised
ROUNDING = 1e-12  # of a formula in double precision
WRONG = 1e-4  # a bound off by this much is told from the truth
L, MU = 1.0, 0.1


def assert_tight(found, truth):
    """Both ends verified, on their sides and close; a bound that is a little lower is refuted, a little higher is not; it replays."""
    assert found.status == "solved" and found.rigorous and found.exact, str(found)
    assert found.lower <= truth * (1 + ROUNDING) and found.upper >= truth * (1 - ROUNDING), f"{found} against {truth!r}"
    assert found.upper - truth <= RTOL * truth and truth - found.lower <= RTOL * truth, f"{found} against {truth!r}"
    assert found.lower > truth * (1 - WRONG) and found.upper < truth * (1 + WRONG)
    assert_replays(found)


def assert_replays(found):
    assert abs(found.instance.replay() - found.lower) <= RTOL * found.lower


def compressed(gamma, omega, n):
    """``max over lam in {mu, L} of 1 - 2 gamma lam + (1 + omega/n) (gamma lam)^2``.

    With a common minimiser at distance 1, ``||g_i||^2 <= (L + mu) <g_i, x> - L mu`` and ``||mean g||^2 <= mean ||g_i||^2`` make the
    expectation affine in ``<mean g, x>``, between mu and L; ``f_i = lam/2 ||x||^2`` reaches either end.
    """
    return max(1 - 2 * gamma * lam + (1 + omega / n) * (gamma * lam) ** 2 for lam in (MU, L))


# --- unbiased compressors ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 10, 10**6])
@pytest.mark.parametrize(("gamma", "omega"), [(0.2, 4), (1.0, 1), (1.7, Fraction(1, 3))])
def test_compressed_gradients(gamma, omega, n):
    found = worst_case("cgd", {"gamma": gamma}, steps=1, mu=MU, n=n, compressor={"omega": omega}, measure="distance")
    assert_tight(found, compressed(gamma, float(omega), n))


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_do_not_matter(scale):
    given = {"steps": 1, "L": scale, "mu": MU * scale, "n": 3, "measure": "distance", "initial_value": 1e-4}
    found = worst_case("cgd", {"gamma": 0.5 / scale}, compressor={"omega": 2}, **given)
    assert_tight(found, compressed(0.5, 2, 3) * 1e-4)
    noisy = worst_case("gd", {"gamma": 0.5 / scale}, sigma2=0.3 * scale**2, **given)
    assert_tight(noisy, (1 - 0.5 * MU) ** 2 * 1e-4 + 0.25 * 0.3 / 3)


def test_values_at_a_random_point():
    """E f(x + z) = f(x) + L/2 E||z||^2 is reached; on a quadratic of curvature L both parts are at hand."""
    gamma, n, omega = 1.8, 4, 2.0
    found = worst_case("cgd", {"gamma": gamma}, steps=1, n=n, compressor={"omega": omega}, measure="function_gap")
    assert found.exact and found.rigorous
    assert_replays(found)
    assert found.upper >= ((1 - gamma) ** 2 + gamma**2 * omega / n) / 2 * (1 - ROUNDING)
    settled = worst_case("gd", {"gamma": gamma}, steps=1, n=n, measure="function_gap")
    assert found.lower > settled.upper * (1 + RTOL)


def test_values_that_count_against_are_at_their_least():
    """``||x - x*||^2 - (f - f*)`` at x + z: curvature mu everywhere, along the noise too, reaches 1 - mu/2 times its mean."""
    measure = lambda s, w, h: sqnorm(w, s.x - optimum(w)) - w.gap(s.x)  # noqa: E731
    found = worst_case("gd", {"gamma": 1.0}, steps=1, mu=MU, n=1, sigma2=0.4, measure=measure)
    truth = (1 - MU / 2) * ((1 - MU) ** 2 + 0.4)
    assert found.rigorous and abs(found.upper - truth) <= RTOL and abs(found.lower - truth) <= RTOL
    assert found.instance is None, "a replay takes the largest curvature"


def test_curvature_along_noise_cannot_be_both():
    """A value that counts and counts against at one point cancels; at two points the least and the largest curvature exclude each other,
    and without convexity the least may lie below the infimum: then it is an upper bound, and called so."""
    given = {"steps": 1, "n": 1, "sigma2": 0.4}
    halves = [lambda s, w, h: w.gap(s.x) / 2, lambda s, w, h: w.gap(s.x) - w.gap(s.x) / 2]
    assert len({worst_case("gd", {"gamma": 1.0}, mu=MU, measure=m, **given).upper for m in halves}) == 1
    two = worst_case("gd", {"gamma": 1.0}, mu=MU, measure=lambda s, w, h: w.gap(s.x) - w.gap(2 * s.x) / 4, **given)
    below = worst_case("gd", {"gamma": 1.0}, functions="smooth", initial="function_gap", measure=lambda s, w, h: -1 * w.gap(s.x), **given)
    assert all(f.rigorous and not f.exact and f.lower == -math.inf for f in (two, below))


def test_heterogeneous_workers():
    """Gradients at x* are compressed too: at least ``gamma^2 omega/n zeta2`` more, as tilted quadratics show; and it is continuous."""
    given = {"steps": 1, "mu": MU, "n": 5, "compressor": {"omega": 3}, "measure": "distance"}
    values = [worst_case("cgd", {"gamma": 0.4}, zeta2_star=z, **given) for z in (0.0, 1e-6, 1.0)]
    assert all(v.rigorous and v.exact for v in values)
    assert values[1].upper < values[0].lower * 1.01 and values[2].lower > values[1].upper
    assert values[2].upper >= compressed(0.4, 3, 5) + 0.4**2 * 3 / 5 * 1.0
    for v in values:
        assert_replays(v)


def test_no_variance_is_no_compressor():
    plain = worst_case("gd", {"gamma": 0.4}, steps=1, mu=MU, n=3)
    for none in ({"omega": 0}, {"omega": 3, "Delta2": 0}, {"omega": 3, "delta": 1}):
        assert worst_case("cgd", {"gamma": 0.4}, steps=1, mu=MU, n=3, compressor=none).upper == plain.upper


def test_a_compressor_enters_through_its_class():
    a = worst_case("cgd", {"gamma": 0.4}, steps=1, n=3, compressor="randk(k=2, scaled=True)", d=8, measure="distance")
    assert a.statement["compressor"] == {"omega": 3.0}
    b = worst_case("cgd", {"gamma": 0.4}, steps=1, n=3, compressor={"omega": 3}, measure="distance")
    assert a.upper == b.upper


def _expected(curvatures, turns, gamma, n, d):
    """E||x - gamma mean C(A_i x)||^2 of rand-1 compressors scaled by d, by enumeration of all draws, at the worst unit x."""
    A = np.array([Q @ np.diag(c) @ Q.T for c, Q in zip(curvatures, turns, strict=True)])
    total = np.zeros((d, d))
    for drawn in itertools.product(range(d), repeat=n):
        M = np.eye(d) - gamma * d * np.mean([np.outer(np.eye(d)[k], A[i][k]) for i, k in enumerate(drawn)], axis=0)
        total += M.T @ M / d**n
    return np.linalg.eigvalsh(total)[-1]


def test_real_compressors_stay_below():
    """Rand-1 in three dimensions has omega = 2; no quadratics beat the bound, and equal ones of curvature L or mu reach it."""
    n, d, rng = 2, 3, np.random.default_rng(3)
    for gamma in (0.3, 0.9):
        found = worst_case("cgd", {"gamma": gamma}, steps=1, mu=MU, n=n, compressor={"omega": d - 1}, measure="distance")
        turns = [[np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(n)] for _ in range(60)]
        random = [_expected(rng.uniform(MU, 1, (n, d)), turn, gamma, n, d) for turn in turns]
        equal = [_expected(np.full((n, d), lam), turns[0], gamma, n, d) for lam in (MU, L)]
        assert 0.3 * found.upper < max(random) <= found.upper
        assert abs(max(equal) - found.upper) <= RTOL * found.upper


@pytest.mark.parametrize("wrong", ["independence", "variance"])
def test_what_is_dropped_is_noticed(wrong, monkeypatch):
    """Draws that all workers share lose the 1/n; without the variance there is no finite worst case."""
    given = {"steps": 1, "mu": MU, "n": 4, "compressor": {"omega": 2}, "measure": "distance"}
    if wrong == "independence":
        honest = RandomWorld._fresh_random

        def shared(self, unit, together):
            made = honest(self, unit, together)
            self.weights |= dict.fromkeys(made.mean, Fraction(1))
            return made

        monkeypatch.setattr(RandomWorld, "_fresh_random", shared)
        found = worst_case("cgd", {"gamma": 1.0}, **given)
        assert abs(found.upper - compressed(1.0, 2, 1)) <= RTOL and found.lower > compressed(1.0, 2, 4) * (1 + WRONG)
        with pytest.raises(UsageError, match="independence"):
            found.instance.replay()
    else:
        honest = RandomWorld._draw
        monkeypatch.setattr(RandomWorld, "_draw", lambda self, unit, shared, limits: honest(self, unit, shared, []))
        assert worst_case("cgd", {"gamma": 1.0}, **given).status == "unbounded"


# --- a method with a memory -------------------------------------------------------------------------------------------


class Remembering(NamedTuple):
    x: Shared
    v: PerWorker


class Two(NamedTuple):
    gamma: float
    beta: float


def _diana(s, w, h, t):
    m = compress(w, grad(w, s.x) - s.v)
    return Remembering(x=s.x - h.gamma * (mean(w, s.v) + mean(w, m)), v=s.v + h.beta * m)


def _diana_energy(M):
    def energy(s, w, h):
        star = spread(w, optimum(w))
        return sqnorm(w, s.x - optimum(w)) + M * h.gamma**2 * sqnorm(w, s.v - grad(w, star))

    return energy


@pytest.mark.parametrize("n", [1, 4, 100])
def test_diana_contracts_as_its_theorem_says(n):
    """``max(1 - gamma mu, 1 - beta/2)`` for ``gamma <= 1/((1 + 6 omega/n) L)``, ``beta <= 1/(1 + omega)`` with the energy's weight
    ``4 omega/(n beta)`` (Gorbunov, Hanzely, Richtarik 2020, Section 4 on DIANA); the exact worst case lies below."""
    omega, beta = 3.0, 0.25
    gamma, energy = 1 / (1 + 6 * omega / n), _diana_energy(4 * omega / (n * beta))
    given = {"steps": 1, "mu": MU, "n": n, "compressor": {"omega": omega}, "zeta2_star": None, "start": "free"}
    found = worst_case(Method("diana_x", _diana, Remembering, Two), {"gamma": gamma, "beta": beta}, initial=energy, measure=energy, **given)
    bound = max(1 - gamma * MU, 1 - beta / 2)
    assert found.exact and found.rigorous and 0.8 * bound < found.upper <= bound, str(found)
    assert found.upper - found.lower <= RTOL
    assert abs(found.instance.replay(Method("diana_x", _diana, Remembering, Two)) - found.lower) <= RTOL


# --- noise ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 7])
@pytest.mark.parametrize(("gamma", "sigma2", "radius2"), [(0.5, 0.09, 1), (1.9, 1e-6, 1), (1.0, 1e6, 1), (0.5, 1.0, 1e-6)])
def test_noisy_gradients(gamma, sigma2, radius2, n):
    """``max((1 - gamma L)^2, (1 - gamma mu)^2) R^2 + gamma^2 sigma2/n``."""
    given = {"steps": 1, "mu": MU, "n": n, "measure": "distance", "initial_value": radius2}
    found = worst_case("gd", {"gamma": gamma}, sigma2=sigma2, **given)
    assert_tight(found, max((1 - gamma) ** 2, (1 - gamma * MU) ** 2) * radius2 + gamma**2 * sigma2 / n)


@pytest.mark.parametrize("functions", ["smooth_strongly_convex", "smooth"])
def test_noise_raises_values_by_half_L(functions):
    """One step of size 1/L: f falls by ||grad||^2/(2 L) and rises by sigma2/(2 n L)."""
    given = {"steps": 1, "n": 3, "functions": functions, "initial": "function_gap", "measure": "function_gap"}
    plain, noisy = (worst_case("gd", {"gamma": 1.0}, sigma2=s, **given) for s in (0.0, 0.6))
    assert noisy.rigorous and abs(noisy.upper - plain.upper - 0.6 / 6) <= 2 * RTOL


def test_noise_then_a_compressor():
    """Compressed noise: for n = 1 and gradients of one quadratic, x1 = x - gamma m with E||m - (g + xi)||^2 <= eps E||g + xi||^2."""
    gamma, eps, sigma2 = 0.5, 0.25, 0.2
    found = worst_case("cgd", {"gamma": gamma}, steps=1, mu=MU, n=1, compressor={"delta": 1 - eps}, sigma2=sigma2, measure="distance")
    assert found.exact and found.rigorous
    assert_replays(found)

    def reached(lam):
        """m = (1 - a) g + (1 + b) xi spends eps (||g||^2 + sigma2) on a and b in the best way."""
        budget = eps * (lam**2 + sigma2)
        angles = np.linspace(0, 2 * math.pi, 4001)
        a, b = math.sqrt(budget) * np.cos(angles), math.sqrt(budget) * np.sin(angles)
        return np.max((1 - gamma * (lam - a)) ** 2 + gamma**2 * (math.sqrt(sigma2) + b) ** 2)

    assert found.upper >= max(reached(MU), reached(L)) * (1 - ROUNDING)
    assert found.upper <= max(reached(lam) for lam in np.linspace(MU, L, 50)) * (1 + WRONG)


def test_feedback_with_noise():
    """EF on noisy gradients: more than without noise, less with more workers, and it replays."""
    lyapunov = {"initial": "ef_lyapunov", "measure": "ef_lyapunov", "start": "free", "compressor": {"delta": 0.75}, "mu": MU}
    values = [worst_case("ef_sgd", {"gamma": 0.15}, steps=1, n=n, sigma2=s, **lyapunov) for n, s in ((2, 0.0), (2, 0.1), (50, 0.1))]
    assert all(v.rigorous and v.exact for v in values)
    assert values[0].upper < values[2].lower < values[2].upper < values[1].lower
    for v in values:
        assert_replays(v)


class Point(NamedTuple):
    x: Shared


class Step(NamedTuple):
    gamma: float
    p: float = 0.5


def _twice(s, w, h, t):
    """Two draws at one point are independent."""
    return Point(x=s.x - h.gamma / 2 * (mean(w, grad(w, s.x)) + mean(w, grad(w, s.x))))


def _lazy(s, w, h, t):
    return Point(x=s.x - h.gamma * mean(w, grad(w, s.x)) if chance(w, h.p) else s.x)


def test_two_draws_are_independent():
    method, given = Method("twice", _twice, Point, Step), {"steps": 1, "mu": MU, "n": 2, "sigma2": 0.4, "measure": "distance"}
    found = worst_case(method, {"gamma": 0.5}, **given)
    truth = (1 - 0.5 * MU) ** 2 + 0.25 * 0.4 / 2 / 2
    assert found.rigorous and abs(found.upper - truth) <= RTOL and abs(found.lower - truth) <= RTOL
    assert abs(found.instance.replay(method) - found.lower) <= RTOL


def test_noise_and_a_coin():
    method = Method("lazy", _lazy, Point, Step)
    found = worst_case(method, {"gamma": 0.5, "p": 0.25}, steps=1, mu=MU, n=2, sigma2=0.4, measure="distance")
    truth = 0.75 + 0.25 * ((1 - 0.5 * MU) ** 2 + 0.25 * 0.4 / 2)
    assert found.rigorous and abs(found.upper - truth) <= RTOL and abs(found.instance.replay(method) - found.lower) <= RTOL


# --- sampled workers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", ["any", 2, 9])
def test_one_function_of_many(n):
    """SGD under interpolation: ``max(1 - gamma mu, gamma L - 1)^2`` for any number of functions."""
    found = worst_case("gd", {"gamma": 1.8}, steps=1, mu=MU, n=n, sampled=1, measure="distance")
    assert_tight(found, max(1 - 1.8 * MU, 1.8 * L - 1) ** 2)


def test_batches():
    """Without replacement ``(n - b)/(b (n - 1))`` of the deviations remains: quadratics tilted against each other reach a value, and
    batches of all workers are gradient descent."""
    n, zeta2, gamma = 5, 0.5, 0.8
    values = [worst_case("gd", {"gamma": gamma}, steps=1, n=n, mu=MU, sampled=b, zeta2_star=zeta2, measure="distance") for b in range(1, 6)]
    assert all(v.rigorous and v.exact for v in values)
    for b, v in enumerate(values, start=1):
        assert_replays(v)
        tilted = max((1 - gamma * lam) ** 2 for lam in (MU, L)) + gamma**2 * (n - b) / (b * (n - 1)) * zeta2
        assert v.upper >= tilted * (1 - ROUNDING)
    uppers = [v.upper for v in values]
    assert uppers == sorted(uppers, reverse=True)
    plain = worst_case("gd", {"gamma": gamma}, steps=1, n=n, mu=MU, zeta2_star=zeta2, measure="distance")
    assert abs(uppers[-1] - plain.upper) <= RTOL


def test_noise_of_sampled_workers_is_averaged_over_these():
    found = worst_case("gd", {"gamma": 0.5}, steps=1, n=6, mu=MU, sampled=3, sigma2=0.6, measure="distance")
    assert_tight(found, (1 - 0.5 * MU) ** 2 + 0.25 * 0.6 / 3)


def test_values_after_sampling_are_a_bound():
    found = worst_case("gd", {"gamma": 0.5}, steps=1, n=6, sampled=1, zeta2_star=1.0)
    assert not found.exact and found.lower == -math.inf and "descent" in found.why and found.instance is None


# --- records and refusals ---------------------------------------------------------------------------------------------


def test_a_spoiled_record_does_not_replay():
    found = worst_case("cgd", {"gamma": 0.5}, steps=1, mu=MU, n=3, compressor={"omega": 2}, sigma2=0.1, measure="distance")
    data = found.instance.to_dict()
    assert Instance.from_dict(json.loads(found.instance.to_json())).replay() == found.instance.replay()

    def louder(copy):
        copy["draws"][0][1] = [1.1 * v for v in copy["draws"][0][1]]

    def together(copy):
        copy["draws"][0][0] = [1.1 * v for v in copy["draws"][0][0]]

    def biased(copy):
        copy["answers"][0]["m"][0][0] += 0.1

    def quieter(copy):
        copy["statement"]["sigma2"] = 0.05

    for change in (louder, together, biased, quieter):
        copy = json.loads(json.dumps(data))
        change(copy)
        with pytest.raises(UsageError):
            Instance.from_dict(copy).replay()


def _proximal(s, w, h, t):
    return Point(x=prox(w, s.x - h.gamma * mean(w, grad(w, s.x)), h.gamma))


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"n": 2, "sigma2": 1, "steps": 2}, Unsupported, "random point"),
        ({"n": 2, "sigma2": 1, "measure": "grad_norm"}, Unsupported, "one step"),
        ({"n": 2, "sigma2": 1, "functions": "convex_quadratic_growth"}, Unsupported, "nothing bounds"),
        ({"n": 2, "sigma2": 1, "functions": "smooth", "initial": "gap_to_last", "measure": "function_gap"}, Unsupported, "conditions"),
        ({"sigma2": 1}, UsageError, "number n"),
        ({"n": 2, "sigma2": -1}, UsageError, "at least 0"),
        ({"n": 2, "sigma2": math.nan}, UsageError, "finite"),
        ({"compressor": {"omega": 1}}, Unsupported, "omega/n"),
        ({"n": 2, "compressor": {"omega": -1}}, UsageError, "at least 0"),
        ({"n": 1, "sampled": 1}, UsageError, "several"),
        ({"sampled": 2}, UsageError, "give their number"),
        ({"n": 3, "sampled": 4}, UsageError, "exceeds"),
        ({"n": 3, "sampled": 0}, UsageError, "at least 1"),
    ],
)
def test_bad_input_is_one_sentence(given, error, words):
    with pytest.raises(error, match=words) as caught:
        worst_case("gd", {"gamma": 0.5}, **({"steps": 1} | given))
    assert "\n" not in str(caught.value)


def test_what_is_not_read_is_refused():
    with pytest.raises(Unsupported, match="not drawn"):
        worst_case("ef_sgd", {"gamma": 0.5}, steps=1, n=3, sampled=1, compressor={"delta": 0.5})
    with pytest.raises(Unsupported, match="prox"):
        worst_case(Method("p", _proximal, Point, Step), {"gamma": 0.5}, steps=1, n=1, sigma2=1, measure="distance")
    with pytest.raises(Unsupported, match="omega/n"):
        contraction("cgd", {"gamma": 0.5}, mu=MU, n=2, compressor={"omega": 1})
