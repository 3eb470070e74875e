"""Attempts to get a wrong verdict: false claims that must not pass, true ones that must not be refuted."""

from typing import NamedTuple

import pytest

import verify_rates as vr
from verify_rates import runs
from verify_rates.pipeline import check
from verify_rates.problems import get_problem
from verify_rates.solvers.method import Method, UsageError
from verify_rates.solvers.words import Shared, Unsupported, chance, each, gap, grad, mean, optimum, sqnorm
from verify_rates.theory.claims import Claim, Setting, product
from verify_rates.verdicts import Verdict, outcome

QUADRATIC = {"problem": {"name": "quadratic", "n": 4, "d": 5, "L": 1.0, "mu": 0.1, "zeta2_star": 0.0}}
TIGHT = "L/(4*N*L*gamma + 2)*V0"  # 0.1 at L = gamma = 1, N = 2


class State(NamedTuple):
    x: Shared


class Hyper(NamedTuple):
    gamma: float


@vr.method(state=State, hyper=Hyper)
def own_coins(s, w, h, t):
    """Every worker sends twice its gradient or nothing, by a coin of its own."""
    g = grad(w, s.x)
    return State(x=s.x - h.gamma * mean(w, each(w, 0.5, 2 * g, 0 * g)))


@vr.method(state=State, hyper=Hyper)
def late_coin(s, w, h, t):
    """A shared coin from the second step on."""
    g = mean(w, grad(w, s.x))
    if t > 0 and chance(w, 0.5):
        return State(x=s.x - 2 * h.gamma * g)
    return State(x=s.x - h.gamma * g)


@vr.method(state=State, hyper=Hyper)
def in_place(s, w, h, t):
    """On arrays s.x is the new point in both places, in a worst case the old one in the second."""
    x = s.x
    x -= h.gamma * mean(w, grad(w, s.x))
    return State(x=2 * x - s.x)


@vr.method(state=State, hyper=Hyper)
def if_equal(s, w, h, t):
    """Two vectors of a worst case are never equal."""
    return State(x=s.x if s.x == 0 * s.x else s.x - h.gamma * mean(w, grad(w, s.x)))


@vr.method(state=State, hyper=Hyper)
def if_any(s, w, h, t):
    """A vector of a worst case is always true."""
    return State(x=s.x - h.gamma * mean(w, grad(w, s.x)) if s.x else s.x)


@vr.method(state=State, hyper=Hyper)
def halved(s, w, h, t):
    """2**(-t) in whole numbers is 0 in machine code."""
    return State(x=s.x - h.gamma * 2 ** (-t) * mean(w, grad(w, s.x)))


@vr.method(state=State, hyper=Hyper)
def doubled(s, w, h, t):
    """2**t in whole numbers is 0 in machine code from t = 64 on."""
    return State(x=s.x - h.gamma / 2**t * mean(w, grad(w, s.x)))


@vr.method(state=State, hyper=Hyper)
def in_floats(s, w, h, t):
    return State(x=s.x - h.gamma / 2.0**t / (t + 1) ** 2 * (t % 3 + 1) * mean(w, grad(w, s.x)))


def own_gap(s, w, h):
    return gap(w, s.x)


def own_gradient(s, w, h):
    return sqnorm(w, mean(w, grad(w, s.x)))


def lowered(s, w, h):
    return sqnorm(w, s.x - optimum(w)) - 5


def verdict(claim):
    return check([claim], jobs=1).results[0].verdict


def claim(bound, method="gd", measure="function_gap", **options):
    return Claim("false.1", "an attempt", method=method, measure=measure, bound=bound, source="derived", **options)


@pytest.mark.parametrize("factor", [0.9999, 1 - 1e-5])
def test_a_tight_bound_made_a_little_smaller_is_refuted(factor):
    assert verdict(claim(f"{factor}*{TIGHT}", grid=product(L=1, gamma=1, N=2))) is Verdict.REFUTED


@pytest.mark.parametrize("letter", ["V0", "R2", "F0", "G0"])
def test_a_grid_cannot_set_what_the_worst_case_starts_with(letter):
    with pytest.raises(UsageError, match=letter):
        verdict(claim(f"{letter}/20", grid=product(L=1, gamma=1, N=2, **{letter: 3.0})))
    with pytest.raises(UsageError, match=letter):
        verdict(claim(f"{letter}/20", grid=product(L=1, gamma=1, N=2), lets={letter: "3"}))


def test_a_worst_case_without_noise_does_not_prove_a_claim_with_noise():
    assert verdict(claim(TIGHT, setting=Setting(noise=True), grid=product(L=1, gamma=1, N=2, sigma2=1.0))) is Verdict.CONSISTENT
    assert verdict(claim(f"0.9*{TIGHT}", setting=Setting(noise=True), grid=product(L=1, gamma=1, N=2))) is Verdict.REFUTED


def test_a_worst_case_over_smooth_workers_does_not_prove_a_claim_about_a_smooth_average():
    options = {"method": "ef_sgd", "measure": "distance", "lets": {"gamma": "0.3/L"}, "grid": product(L=1, delta=0.5, N=1)}
    setting = {"compressor": "contractive", "shared_minimiser": True}
    # x = 1, n = 10, f_1 = 5 x^2, the others 0: L = 1 on average; messages off by 0.67 at every worker (10*0.67^2 < 9/2) give x = 1.37
    assert verdict(claim("1.5*V0", setting=Setting(**setting), **options)) is Verdict.CONSISTENT
    assert verdict(claim("1.5*V0", setting=Setting(**setting, per_worker=True), **options)) is Verdict.CERTIFIED
    assert verdict(claim(TIGHT, grid=product(L=1, gamma=1, N=2))) in (Verdict.CERTIFIED, Verdict.HOLDS)  # gd sees the average alone


def test_a_measure_below_zero_is_not_cut_off_at_zero():
    point = {**QUADRATIC, "gamma": 1.0, "N": 200}
    assert verdict(claim("-4.9", measure=lowered, runs=(point,))) is Verdict.CONSISTENT
    assert verdict(claim("-5.1", measure=lowered, runs=(point,))) is Verdict.REFUTED


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_the_best_of_a_diverging_run_is_what_it_was(engine, monkeypatch):
    monkeypatch.setattr(runs, "SMALL", 0 if engine == "numba" else 10**9)
    point = {**QUADRATIC, "gamma": 50.0, "N": 400}
    assert verdict(claim("V0", measure="distance", take="best", runs=(point,))) is Verdict.CONSISTENT
    assert verdict(claim("0.99*V0", measure="distance", take="best", runs=(point,))) is Verdict.REFUTED
    assert verdict(claim("V0", measure="distance", runs=(point,))) is Verdict.REFUTED


@pytest.mark.parametrize("method", ["own_coins", "late_coin"])
def test_methods_that_toss_coins_are_judged_by_samples(method):
    point = {**QUADRATIC, "gamma": 0.2, "N": 8}
    found = check([claim("V0", method=method, measure="distance", runs=(point,))], jobs=1).results[0].checks[0]
    assert len(found.samples) == 40 and len(set(found.samples)) > 1


@pytest.mark.parametrize("L", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize(("measure", "letter"), [(own_gap, "F0"), (own_gradient, "G0"), ("distance", "R2")])
def test_rounding_refutes_nothing_where_the_bound_falls_below_it(measure, letter, L):
    problem = {"name": "quadratic", "n": 3, "d": 4, "L": L, "mu": 0.1 * L, "zeta2_star": 0.0}
    points = tuple({"problem": problem, "N": N} for N in (1, 500, 3000))
    options = {"measure": measure, "lets": {"gamma": "1/L"}, "runs": points}
    assert verdict(claim(f"(1-mu/L)**(2*N)*{letter}", **options)) is Verdict.CONSISTENT
    assert verdict(claim(f"0.01*(1-mu/L)**(2*N)*{letter}", **options)) is Verdict.REFUTED


@pytest.mark.parametrize("letter", ["L", "mu", "n", "zeta2_star"])
def test_a_run_cannot_set_what_its_problem_decides(letter):
    with pytest.raises(UsageError, match=f"must not set {letter}"):
        verdict(claim("L*V0/1000", runs=({**QUADRATIC, "gamma": 1.0, "N": 1, letter: 7},)))


def test_a_search_measures_the_constants_of_its_own_instances():
    """Those of the grid would make bounds of other problems."""
    grid = product(L=1, mu=0, n=3, zeta2_star=0.0, gamma=1, N=5)
    options = {"measure": "distance", "families": ("huber",), "setting": Setting(per_worker=True)}
    made = check([claim("R2 + zeta2_star", grid=grid, **options)], jobs=1).results[0]
    [found] = [c for c in made.checks if c.kind == "search"]
    problem, letters = found.parameters["problem"], found.parameters["letters"]
    assert letters["n"] == problem["n"] and (letters["zeta2_star"] > 0) == (problem["n"] > 1)
    with pytest.raises(UsageError, match="runs or a grid"):
        verdict(claim("R2", **options))


def test_a_step_that_changes_its_state_in_place_is_refused():
    with pytest.raises(UsageError, match="read-only"):
        verdict(claim("R2", method="in_place", measure="distance", runs=({**QUADRATIC, "gamma": 1.0, "N": 2},)))


@pytest.mark.parametrize("method", ["if_equal", "if_any"])
@pytest.mark.parametrize("points", [{"grid": product(L=1, gamma=1, N=2)}, {"runs": ({**QUADRATIC, "gamma": 1.0, "N": 2},)}])
def test_a_step_that_branches_on_a_vector_is_refused(method, points):
    with pytest.raises(UsageError, match="branches on a vector"):
        verdict(claim("2*R2", method=method, measure="distance", **points))


def distance_after(method, engine, steps):
    found = vr.simulate(method, get_problem(**QUADRATIC["problem"]), {"gamma": 0.5}, steps=steps, measures=("distance",), engine=engine)
    return found.values["distance"][0, -1]


@pytest.mark.parametrize(("method", "steps", "reason"), [("halved", 2, "negative power"), ("doubled", 70, "64 bits")])
def test_whole_numbers_of_which_machine_code_makes_others_are_not_compiled(method, steps, reason, monkeypatch):
    with pytest.raises(Unsupported, match=reason):
        distance_after(method, "numba", steps)
    monkeypatch.setattr(runs, "SMALL", 0)
    point = {**QUADRATIC, "gamma": 0.5, "N": steps}
    found = check([claim("V0", method=method, measure="distance", runs=(point,))], jobs=1).results[0].checks[0]
    assert found.solver == "numpy" and found.lower == pytest.approx(distance_after(method, "numpy", steps))


def test_powers_of_floats_compile_to_the_same_numbers():
    assert distance_after("in_floats", "numba", 70) == pytest.approx(distance_after("in_floats", "numpy", 70), rel=1e-12)


def scaled_gap(s, w, h):
    return 1e20 * gap(w, s.x)


def scaled_distance(s, w, h):
    return 1e20 * sqnorm(w, s.x - optimum(w))


@pytest.mark.parametrize(("measure", "start"), [(scaled_gap, "F0"), (scaled_distance, "R2")])
def test_a_measure_in_large_units_is_not_refuted_by_rounding(measure, start):
    """Nor made blind: half of what a short run measures is refuted still."""
    points = tuple({**QUADRATIC, "N": N} for N in (1, 500, 3000))
    options = {"measure": measure, "lets": {"gamma": "1/L"}}
    assert verdict(claim(f"1e20*(1-mu/L)**(2*N)*{start}", runs=points, **options)) is Verdict.CONSISTENT
    assert verdict(claim(f"1e19*(1-mu/L)**(2*N)*{start}", runs=points[:1], **options)) is Verdict.REFUTED


def test_a_lower_bound_is_about_the_worst_case():
    """Instances below it say nothing, one above it supports it; a worst case below it refutes."""
    runs = tuple({**QUADRATIC, "gamma": 1.0, "N": N} for N in (2, 50))
    grid = product(L=1, gamma=1, N=2)
    assert verdict(claim("0.05*V0", relation=">=", grid=grid)) is Verdict.HOLDS
    assert verdict(claim("0.05*V0", relation=">=", grid=grid, runs=runs)) is Verdict.HOLDS
    assert verdict(claim("0.05*V0", relation=">=", runs=runs[1:])) is Verdict.INCONCLUSIVE
    assert verdict(claim("1e-9*V0", relation=">=", runs=runs[:1])) is Verdict.CONSISTENT
    assert verdict(claim("0.11*V0", relation=">=", grid=grid)) in (Verdict.REFUTED, Verdict.INCONCLUSIVE)


POINT = {"L": 1.0, "gamma": 1.0, "N": 2}
OF_EF = {"method": "ef_sgd", "measure": "distance"}
CONTRACTIVE = Setting(compressor="contractive", shared_minimiser=True, per_worker=True)


@pytest.mark.parametrize("letter", ["delta", "Delta2"])
def test_a_worst_case_is_over_the_class_of_compressors_that_the_claim_names(letter):
    """Not over another one, nor over what two have in common."""
    point = {"L": 1, "mu": 0.5, "gamma": 0.5, "N": 1}
    with pytest.raises(UsageError, match="give delta" if letter == "Delta2" else "give Delta2"):
        setting = CONTRACTIVE if letter == "Delta2" else Setting(compressor="absolute", per_worker=True)
        verdict(claim("V0", setting=setting, grid=({**point, letter: 1e-9},), **OF_EF))
    both = ({**point, "delta": 0.5, "Delta2": 1e-9},)
    assert verdict(claim("0.565*V0", setting=CONTRACTIVE, grid=both, **OF_EF)) is Verdict.REFUTED  # 0.5625 without errors, 0.79 with them


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"N": 2.7}, "N must be a whole number"),
        ({"N": float("nan")}, "finite number"),
        ({"N": "2"}, "finite number"),
        ({"N": None}, "finite number"),
        ({"n": 2.5}, "n must be a whole number"),
        ({"L": "1"}, "finite number"),
        ({"gama": 1.0}, "did you mean 'gamma'"),
        ({"problem": QUADRATIC["problem"]}, "unknown name in a grid"),
    ],
)
def test_a_grid_point_that_is_not_what_is_computed_is_refused(change, match):
    with pytest.raises(UsageError, match=match):
        verdict(claim("V0", grid=({**POINT, **change},)))


@pytest.mark.parametrize("missing", ["L", "N"])
def test_a_grid_point_without_a_letter_is_refused(missing):
    with pytest.raises(UsageError, match=f"give {missing}"):
        verdict(claim("V0", grid=({k: v for k, v in POINT.items() if k != missing},)))


def test_a_point_cannot_set_what_the_claim_defines():
    with pytest.raises(UsageError, match="defines as 1/L"):
        verdict(claim(TIGHT, lets={"gamma": "1/L"}, grid=product(L=1, gamma=1.9, N=2)))


def test_a_claim_about_two_workers_is_not_proved_by_one():
    assert verdict(claim("V0", setting=Setting(n=2), grid=product(L=1, gamma=1, N=1, n=1))) is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"problem": "quadratic"}, "needs problem"),
        ({"problem": {"n": 2}}, "needs problem"),
        ({"compresor": "topk(k=1)"}, "did you mean 'compressor'"),
        ({"compressor": "topk(k=1)"}, "of which class"),
        ({"N": 5.5}, "N must be a whole number"),
        ({"seeds": 2.5}, "seeds must be a whole number"),
        ({"x0": [1.0, 2.0]}, "shape"),
        ({"x0": "abc"}, "finite numbers"),
    ],
)
def test_a_run_that_is_not_what_is_computed_is_refused(change, match):
    with pytest.raises(UsageError, match=match):
        verdict(claim("V0", runs=({**QUADRATIC, "gamma": 1.0, "N": 2, **change},)))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"setting": Setting(compressor="contractiv")}, "compressor must be one of"),
        ({"setting": Setting(n=0)}, "n must be"),
        ({"grid": POINT}, "tuple of parameter points"),
        ({"when": "gamma <= 1"}, "tuple of texts"),
    ],
)
def test_a_claim_that_is_misspelt_is_refused(options, match):
    with pytest.raises(UsageError, match=match):
        claim("V0", **options)


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_division_by_the_first_iteration_number_is_told(engine):
    def divided(s, w, h, t):
        return State(x=s.x - h.gamma / t * mean(w, grad(w, s.x)))

    with pytest.raises(UsageError, match="ZeroDivisionError"):
        vr.simulate(Method("divided", divided, State, Hyper), "quadratic", {"gamma": 0.1}, steps=2, engine=engine)


def test_a_true_bound_at_its_exact_mean_is_rarely_refuted(monkeypatch):
    """The level of a whole check, made large enough to be seen: 200 true claims at level 0.05, of which both samples may err in 0.05^2."""
    from verify_rates import verdicts

    monkeypatch.setattr(verdicts, "LEVEL", 0.05)
    exact = check([claim("1", setting=Setting(noise=True), runs=({"problem": NOISY, "gamma": 0.5, "N": 3},))], jobs=1).results[0]
    mean_value = next(c.lower for c in exact.checks if c.kind == "moments")
    point = {"problem": NOISY, "gamma": 0.5, "N": 3}
    true, low = (claim(str(f * mean_value), setting=Setting(noise=True), runs=(point,)) for f in (1.0, 0.7))
    told = [outcome(runs.check_run(true, point, seed=seed, trials=20)) for seed in range(200)]
    assert told.count(Verdict.REFUTED) <= 4  # 0.5 expected at most; more than 4 has a probability below 1e-3
    assert [outcome(runs.check_run(low, point, seed=seed, trials=20)) for seed in range(10)].count(Verdict.REFUTED) > 2


NOISY = {"name": "quadratic", "n": 1, "d": 3, "L": 1.0, "mu": 0.5, "sigma2": 1.0}


def at_rest(method, bound, mu=(0.5, 1), N=1, per_worker=True, **options):
    """Claims whose grid holds the point mu = L, gamma = 1/L, where gradient descent ends at x*."""
    grid = product(L=1, mu=mu, N=N, **options)
    setting = Setting(shared_minimiser=True, per_worker=per_worker)
    return claim(bound, method, "distance", lets={"gamma": "1/L"}, setting=setting, grid=grid)


def test_points_that_end_at_rest_are_judged_like_others():
    kept = at_rest("gd", "Max((1-gamma*L)**2, (1-gamma*mu)**2)**N*V0")
    (result,) = check([kept], jobs=1).results
    assert result.verdict is Verdict.HOLDS and [c.upper for c in result.checks][-1] == 0
    (broken,) = check([at_rest("gd", "-V0/10")], jobs=1).results
    assert broken.verdict in (Verdict.REFUTED, Verdict.INCONCLUSIVE)


def test_a_worst_case_at_rest_of_equal_workers_says_nothing_of_unlike_ones():
    """Curvature 1 on average allows workers of curvatures 1/2 and 3/2, whose local steps do not end at x*."""
    local = at_rest("local_sgd", "V0", mu=1, N=2, H=2, per_worker=False)
    (result,) = check([local], jobs=1).results
    assert result.verdict is not Verdict.HOLDS and result.verdict is not Verdict.CERTIFIED
