"""Both engines are one definition: the same numbers, whatever the method, the compressor, the problem and the threads."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from collections import deque
from types import SimpleNamespace
from typing import NamedTuple

import array_api_strict
import numpy as np
import pytest
from shipped import shipped

import verify_rates
from verify_rates.problems import get_problem, problems
from verify_rates.solvers.compressors import compressors, get_compressor
from verify_rates.solvers.engine import arrays, cache, compiled, plan
from verify_rates.solvers.engine.run import simulate
from verify_rates.solvers.kinds import check_kinds
from verify_rates.solvers.method import Method, UsageError, get_method
from verify_rates.solvers.topologies import get_topology
from verify_rates.solvers.words import (
    PerWorker,
    PerWorkerQueue,
    Shared,
    Unsupported,
    chance,
    clip,
    compress,
    delay,
    gossip,
    grad,
    mean,
    sign,
    spread,
)

# Each step adds a few roundings of 1.1e-16 and the methods contract or barely expand: 500 steps stay far below this.
AGREE = 1e-12
STEPS = 500
RNG = np.random.default_rng(0)
DENSE = RNG.standard_normal((24, 5))
BINARY = (RNG.random((24, 5)) < 0.35).astype(float)
LABELS = np.where(DENSE @ np.arange(1.0, 6.0) > 0.3, 1.0, -1.0)
PROBLEMS = {
    "quadratic": [{"n": 3, "d": 5, "zeta2_star": 0.5, "sigma2": 0.1}, {"n": 3, "d": 5, "common": False, "zeta2_star": 0.5}],
    "ridge": [{"data": (DENSE, LABELS), "n": 3, "lam": 0.1, "batch": 4}],
    "logistic": [{"data": (BINARY, LABELS), "n": 3, "lam": 0.1, "batch": 4}, {"data": (DENSE, LABELS), "n": 3, "lam": 0.1}],
    "nonconvex_logistic": [{"data": (DENSE, LABELS), "n": 3, "lam": 0.1, "batch": 4}],
    "huber": [{"n": 3, "d": 5, "shift": 0.5, "sigma2": 0.1, "noise": "two_point"}],
    "one_minus_cos": [{"n": 3, "d": 5, "shift": 0.5, "sigma2": 0.01}],
}
# An engine takes a problem as a kernel and data, whatever the method: these meet a few methods, those above meet all.
WITH_FEW_METHODS = {
    "embedding": [{"n": 3, "m": 8, "vocabulary": 6, "width": 2, "batch": 3}],
    "factorisation": [{"n": 3, "rows": 4, "spread": 0.3}, {"n": 3, "symmetric": False, "rows": 3, "columns": 2, "sigma2": 0.01}],
    "mixture": [{"n": 3, "m": 8, "batch": 3}],
    "network": [{"data": (DENSE, LABELS), "n": 3, "hidden": 2, "batch": 4}],
    "phase_retrieval": [{"n": 3, "d": 4, "batch": 3}],
    "pl": [{"n": 3, "d": 5, "rank": 3, "waves": 3.0, "zeta2_star": 0.5, "sigma2": 0.01}],
    "ridge_dual": [{"data": (DENSE, LABELS), "n": 3, "lam": 0.1}],
    "svm": [{"data": (BINARY, LABELS), "n": 3, "lam": 0.1, "batch": 4}, {"data": (DENSE, LABELS), "n": 3, "lam": 0.1}],
}
FEW = {"gd": None, "ef_sgd": "topk(k=2)", "gossip_sgd": None}
OPTIONS = {"topk": "topk(k=2)", "randk": "randk(k=2)", "qsgd": "qsgd(levels=4)", "hard_threshold": "hard_threshold(lam=0.05)"}
HYPER = {"gamma": 0.05, "H": 3, "tau": 2, "beta": 0.4, "eta": 0.3, "p": 0.3, "penalty": 1.2, "limit": 0.5, "Q": 1}
# Sums of mixing errors, momenta near a minimum, and messages that shrink before they meet a threshold amplify roundings.
GENTLE = {
    "bi2clip": {"low": 0.01, "high": 0.5, "low_outer": 0.001, "high_outer": 0.02},
    "bi2clip_norm": {"low": 0.01, "high": 0.5, "low_outer": 0.001, "high_outer": 0.02},
    "tailopt": {"eta": 0.01, "eps": 0.1},
    "signsgd_mv": {"gamma": 0.0137},  # steps on a rounder lattice meet gradients that are exactly 0, whose sign is rounding
    "signsgd_fd": {"gamma": 0.0137},
    "mt_dao": {"gamma": 0.01, "omega_2": 0.3, "beta_2": 0.5, "beta_v": 0.9, "K_x": 4, "K_1": 2, "K_2": 3, "K_v": 2, "eps": 0.1},
    "mt_dao_sgdm": {"p_x": 0.3, "beta_1": 0.9, "omega_1": 0.5, "p_1": 0.4, "beta_2": 0.5, "omega_2": 0.3, "p_2": 0.5},
    "co2": {"gamma": 0.02},
    "cold": {"eta": 0.02, "s": 0.7},
}
FEWER = {
    "slowmo": 60,
    "co2": 120,
    "cold": 120,
    "nids": 120,
    "extra": 120,
    "adam": 60,
    "zero_one_adam": 40,
    "signsgd_mv": 60,
    "signsgd_fd": 60,
}


def families():
    return {name for name, made in problems().items() if isinstance(made, type) and made.__module__.startswith("verify_rates.")}


def own_compressors():
    named = {name: made for name, made in compressors().items() if made.__module__ == "verify_rates.solvers.compressors"}
    return [get_compressor(OPTIONS.get(name, name)) for name in named] + [get_compressor("randk(k=2, scaled=True)")]


def hyper_of(method):
    chosen = {name: HYPER.get(name, 0.3) for name in method.hyper._fields if name in HYPER or name not in method.hyper._field_defaults}
    return chosen | GENTLE.get(method.name, {})


def parts(history):
    """All arrays of a history, each with the scale of its rounding errors: a small gap is the difference of larger values."""
    found = {"bits": (history.bits, np.max(history.bits)), "diverged": (history.diverged, 1.0)}
    for group in ("values", "means", "best", "at_average"):
        for name, v in getattr(history, group).items():
            found[f"{group}.{name}"] = (v, np.max(np.abs(history.values[name])))
    return found | {f"final.{name}": (v, np.max(np.abs(v), initial=0.0)) for name, v in history.final.items()}


def difference(a, b):
    """Largest difference of two histories, relative to the scale of each array."""
    a, b = parts(a), parts(b)
    assert a.keys() == b.keys()
    return max(np.max(np.abs(a[k][0] * 1.0 - b[k][0]), initial=0.0) / max(a[k][1], 1e-300) for k in a)


def uses_compress(method):
    return bool({"compress", "masked"} & set(check_kinds(method, method.hypers(**hyper_of(method)))))


@pytest.fixture(scope="module")
def made():
    assert set(PROBLEMS) | set(WITH_FEW_METHODS) == families(), "a new family needs an entry in PROBLEMS or WITH_FEW_METHODS"
    return [get_problem(name, **options) for name, several in PROBLEMS.items() for options in several]


@pytest.mark.parametrize("method", shipped().values(), ids=lambda m: m.name)
def test_numpy_and_numba_agree(method, made):
    known = None
    for problem in made:
        for compressor in own_compressors() if uses_compress(method) else [None]:
            options = {"steps": FEWER.get(method.name, STEPS), "compressor": compressor, "topology": "ring", "seed": 7, "every": 100}
            a, b = (simulate(method, problem, hyper_of(method), engine=e, **options) for e in ("numpy", "numba"))
            assert difference(a, b) < AGREE, (problem.name, compressor)
            assert not a.diverged.any()
            known = known or len(compiled._known)
            assert len(compiled._known) == known, "a step was compiled again for another problem or compressor"
    assert len(compiled.drive.signatures) == 1


@pytest.mark.parametrize("name", WITH_FEW_METHODS)
def test_numpy_and_numba_agree_on_every_family(name):
    for options in WITH_FEW_METHODS[name]:
        problem = get_problem(name, **options)
        for method, compressor in FEW.items():
            given = {"steps": STEPS, "compressor": compressor, "topology": "ring", "seed": 7, "every": 100}
            a, b = (simulate(method, problem, {"gamma": 0.005}, engine=e, **given) for e in ("numpy", "numba"))
            assert difference(a, b) < AGREE, (name, method)
            assert not a.diverged.any()


def test_the_comparison_sees_a_small_change():
    problem = get_problem("quadratic", n=3, d=5, sigma2=0.1)
    a = simulate("gd", problem, {"gamma": 0.05}, steps=STEPS, engine="numpy")
    b = simulate("gd", problem, {"gamma": 0.05 * (1 + 1e-9)}, steps=STEPS)
    c = simulate("gd", problem, {"gamma": 0.05}, steps=STEPS, seed=1)
    assert difference(a, b) > AGREE
    assert difference(a, c) > AGREE


@pytest.mark.parametrize("method", shipped().values(), ids=lambda m: m.name)
def test_any_array_library(method):
    problem = get_problem("quadratic", n=3, d=5, sigma2=0.1, zeta2_star=0.5)
    options = {"steps": 20, "compressor": "topk(k=2)", "topology": "ring", "measures": ("function_gap", "distance", "grad_norm")}
    a, b = (simulate(method, problem, hyper_of(method), engine=e, **options) for e in ("numpy", array_api_strict))
    assert difference(a, b) < AGREE


class Everything(NamedTuple):
    x: Shared
    y: PerWorker
    q: PerWorkerQueue


class Numbers(NamedTuple):
    gamma: float
    tau: int = 2


SCALE = 0.5


def halved(v):
    return SCALE * v


def everything(s, w, h, t):
    q, late = delay(w, s.q, h.gamma * grad(w, s.y))
    x = s.x - compress(w, mean(w, halved(late)))  # a compressor at the server
    if chance(w, 0.5):
        x = x - h.gamma / 10 * sign(w, x)
    return Everything(x=x, y=gossip(w, s.y - clip(w, late, 0.01) + h.gamma * (spread(w, x) - s.y)), q=q)


EVERYTHING = Method("everything", everything, Everything, Numbers, start=("x", "y"))


def test_words_that_no_method_of_the_catalogue_uses():
    problem = get_problem("quadratic", n=3, d=5, sigma2=0.1)
    options = {"steps": STEPS, "compressor": "randk(k=2)", "topology": "ring", "measures": ("function_gap", "distance")}
    a, b = (simulate(EVERYTHING, problem, {"gamma": 0.1}, engine=e, **options) for e in ("numpy", "numba"))
    assert difference(a, b) < AGREE
    assert (a.bits == 0).all()


def test_bits_do_not_depend_on_the_threads():
    problem = get_problem("quadratic", n=3, d=5, sigma2=0.1)
    options = {"steps": 200, "seeds": 5, "compressor": "randk(k=2)"}
    one, two = (parts(simulate("ef_sgd", problem, {"gamma": 0.1}, jobs=j, **options)) for j in (1, 2))
    assert all(np.array_equal(one[k][0], two[k][0]) for k in one)
    alone = simulate("ef_sgd", problem, {"gamma": 0.1}, **options | {"seeds": [3]})
    assert np.array_equal(alone.final["x"][0], one["final.x"][0][3])
    assert len(np.unique(one["final.x"][0], axis=0)) == 5


class Permuted:
    """A problem with its workers in another order."""

    def __init__(self, base, order):
        self.base, self.order = base, list(order)
        self.name, self.n, self.d, self.constants, self.value = base.name, base.n, base.d, base.constants, base.value

    def grads(self, x, gens=None, xp=np):
        back = np.argsort(self.order)
        g = self.base.grads(x if x.ndim == 1 else x[back], gens and [gens[i] for i in back], xp)
        return g[self.order]

    def compiled(self):
        kernel, data = self.base.compiled()
        return kernel, data._replace(vectors=data.vectors[self.order], tensors=data.tensors[self.order])

    def compiled_value(self):
        return self.base.compiled_value()


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_the_order_of_the_workers_does_not_matter(engine, monkeypatch):
    base, order = get_problem("quadratic", n=4, d=5, common=False, zeta2_star=1.0, sigma2=0.1), [2, 0, 3, 1]
    ring = get_topology("ring", 4)
    turned = SimpleNamespace(name="turned", n=4, W=ring.W[np.ix_(order, order)])
    runs = {"compressor": "randk(k=2)", "steps": 200, "engine": engine}
    first = [simulate(m, base, hyper_of(m), topology=ring, **runs) for m in shipped().values()]

    def draws(n, seed, trial, original=plan.generators):
        workers, shared = original(n, seed, trial)
        return [workers[i] for i in order], shared

    unturned = simulate("ef_sgd", Permuted(base, order), {"gamma": 0.05}, **runs)  # other draws: another answer
    for module in (arrays, compiled):
        monkeypatch.setattr(module, "generators", draws)
    second = [simulate(m, Permuted(base, order), hyper_of(m), topology=turned, **runs) for m in shipped().values()]
    for a, b in zip(first, second, strict=True):
        kinds = get_method(a.settings["method"]).kinds
        for name, v in a.final.items():
            shape = kinds[name].shape(4, 5, 2)
            same = np.take(v, order, axis=1 + shape.index(4)) if 4 in shape else v
            assert np.max(np.abs(same - b.final[name])) <= AGREE * np.max(np.abs(v)), (a.settings["method"], name)
    assert difference(unturned, first[list(shipped()).index("ef_sgd")]) > AGREE


def plain_dd_ef_sgd(problem, gamma, tau, steps, k):
    """The loop as one would write it: messages wait in a queue."""
    x, e, queue = np.zeros(problem.d), np.zeros((problem.n, problem.d)), deque()
    for _ in range(steps):
        p = e + problem.grads(x)
        m = np.zeros_like(p)
        for i, row in enumerate(p):
            kept = sorted(range(problem.d), key=lambda j: (-abs(row[j]), j))[:k]
            m[i, kept] = row[kept]
        e = p - m
        queue.append(m.mean(axis=0))
        if len(queue) > tau:
            x = x - gamma * queue.popleft()
    return x


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("tau", [0, 1, 3])
def test_delayed_messages_arrive_tau_steps_late(engine, tau):
    problem = get_problem("quadratic", n=3, d=5, zeta2_star=1.0)
    h = simulate("dd_ef_sgd", problem, {"gamma": 0.1, "tau": tau}, steps=50, compressor="topk(k=2)", engine=engine)
    right, wrong = (plain_dd_ef_sgd(problem, 0.1, late, 50, 2) for late in (tau, tau + 1))
    assert np.max(np.abs(h.final["x"][0] - right)) < AGREE
    assert np.max(np.abs(h.final["x"][0] - wrong)) > AGREE


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_schedules(engine):
    problem = get_problem("quadratic", n=3, d=5)
    x = np.zeros(5)
    for t in range(30):
        x = x - problem.grads(x).mean(axis=0) / (t + 2)
    falling = simulate("gd", problem, {"gamma": lambda t: 1 / (t + 2)}, steps=30, engine=engine)
    listed = simulate("gd", problem, {"gamma": [1 / (t + 2) for t in range(40)]}, steps=30, engine=engine)
    assert np.max(np.abs(falling.final["x"][0] - x)) < AGREE
    assert np.array_equal(falling.final["x"], listed.final["x"])
    growing = simulate("local_sgd", problem, {"gamma": 0.1, "H": [1] * 4 + [2] * 6}, steps=10, every=1, engine=engine)
    assert growing.rounds.tolist() == [0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 7]


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_means_best_and_average_are_those_of_every_step(engine):
    problem = get_problem("quadratic", n=3, d=5, sigma2=0.5)
    options = {"steps": 60, "measures": ("function_gap", "distance"), "seeds": 2, "engine": engine}
    full = simulate("gd", problem, {"gamma": 0.3}, every=1, keep_states=True, **options)
    tracked = simulate("gd", problem, {"gamma": 0.3}, every=20, track=("mean", "best", "average"), **options)
    thin = simulate("gd", problem, {"gamma": 0.3}, every=20, **options)
    average = full.states["x"][:, :-1].mean(axis=1)
    for name, v in full.values.items():
        assert tracked.values[name] == pytest.approx(v[:, ::20], rel=AGREE)
        assert tracked.means[name] == pytest.approx(v[:, :-1].mean(axis=1), rel=AGREE)
        assert tracked.best[name] == pytest.approx(v.min(axis=1), rel=AGREE)
        assert thin.means[name] == pytest.approx(v[:, [0, 20, 40]].mean(axis=1), rel=AGREE)
        assert thin.best[name] == pytest.approx(v[:, ::20].min(axis=1), rel=AGREE)
        assert (thin.means[name] != tracked.means[name]).all()
    assert tracked.at_average["function_gap"] == pytest.approx([problem.value(x) for x in average], rel=1e-9)  # f - f* cancels
    assert thin.settings["track"] == []


def test_bits_are_counted():
    problem = get_problem("quadratic", n=3, d=5)
    topk, free = get_compressor("topk(k=2)"), get_compressor("hard_threshold(lam=0.1)")
    for engine in ("numpy", "numba"):
        h = simulate("ef_sgd", problem, {"gamma": 0.1}, steps=10, every=1, compressor=topk, engine=engine)
        assert np.array_equal(h.bits[0], topk.bits(5) * np.arange(11))
        h = simulate("ef_sgd", problem, {"gamma": 0.1}, steps=10, every=1, compressor=free, engine=engine)
        assert (np.diff(h.bits[0]) >= 0).all() and len(np.unique(np.diff(h.bits[0]))) > 1


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("compressor", own_compressors(), ids=str)
def test_a_diverging_run_is_marked_and_ends(engine, compressor):
    problem = get_problem("quadratic", n=3, d=5, sigma2=0.1)
    h = simulate("cgd", problem, {"gamma": 1e9}, steps=200, every=1, compressor=compressor, engine=engine, seeds=2, track=("mean", "best"))
    gap = h.values["function_gap"]
    assert h.diverged.all() and np.isnan(gap[:, -1]).all() and np.isnan(h.means["function_gap"]).all()
    assert (h.best["function_gap"] == np.nanmin(gap, axis=1)).all()
    fine = simulate("cgd", problem, {"gamma": 0.01}, steps=200, compressor=compressor, engine=engine)
    assert not fine.diverged.any()


def test_histories_are_thin_and_show_themselves():
    problem = get_problem("quadratic", n=3, d=5)
    for steps in (1, 7, 199, 200, 201, 398, 399, 10_000):
        h = simulate("gd", problem, {"gamma": 0.1}, steps=steps)
        assert len(h.steps) <= 200 and h.steps[0] == 0 and h.steps[-1] == steps
    h = simulate("gd", problem, {"gamma": 0.1}, steps=40, every=15, seeds=[4, 2], measures=("distance", "function_gap"))
    frame = h.to_frame()
    assert h.steps.tolist() == [0, 15, 30, 40]
    assert frame.dtype.names == ("trial", "step", "round", "bits", "distance", "function_gap")
    assert frame["trial"].tolist() == [4] * 4 + [2] * 4 and frame["distance"][5] == h.values["distance"][1, 1]
    assert "gd on quadratic" in repr(h) and "<table>" in h._repr_html_()
    assert {"method", "hyper", "problem", "engine", "versions", "seconds", "from_cache"} <= h.settings.keys()


def test_progress_ends_at_one():
    for engine in ("numpy", "numba"):
        seen = []
        simulate("gd", get_problem("quadratic"), {"gamma": 0.1}, steps=50, seeds=3, engine=engine, progress=seen.append)
        assert seen == sorted(seen) and seen[-1] == 1.0


BAD = [
    ({"method": "ef_sdg"}, "ef_sgd"),
    ({"hyper": {"gama": 0.1}}, "gamma"),
    ({"hyper": {}}, "needs gamma"),
    ({"hyper": {"gamma": float("nan")}}, "finite"),
    ({"hyper": {"gamma": lambda t: 1 / (t - 2) if t != 2 else float("inf")}}, "gamma"),
    ({"hyper": {"gamma": [0.1] * 3}}, "3 values"),
    ({"method": "fedavg", "hyper": {"gamma": 0.1, "p": 1.5}}, "each takes a probability"),
    ({"method": "mt_dao_sgdm", "hyper": {"gamma": 0.1, "p_x": 2.0}}, "chance takes a probability"),
    ({"method": "signsgd_fd", "hyper": {"gamma": 0.1, "attackers": 1, "p": 3.0}}, "flip takes a probability"),
    ({"steps": 0}, "steps"),
    ({"steps": 2.5}, "steps"),
    ({"seeds": 0}, "seeds"),
    ({"seeds": [1, 1]}, "different"),
    ({"seed": -1}, "seed"),
    ({"every": 0}, "every"),
    ({"jobs": 0}, "jobs"),
    ({"compressor": None}, "compress"),
    ({"compressor": "topk(k=9)"}, "9"),
    ({"method": "gossip_sgd", "topology": None}, "topology"),
    ({"method": "gossip_sgd", "topology": get_topology("ring", 5)}, "5 workers"),
    ({"x0": np.zeros(4)}, "shape"),
    ({"x0": [np.inf] * 5}, "finite"),
    ({"x0": "here"}, "vector"),
    ({"measures": ("distanse",)}, "distance"),
    ({"measures": ("consensus_error",)}, "consensus_error"),
    ({"measures": ("distance", "distance")}, "same name"),
    ({"track": ("meen",)}, "mean"),
    ({"engine": "numbra"}, "numba"),
]


@pytest.mark.parametrize(("change", "says"), BAD, ids=[says for _, says in BAD])
def test_bad_input_is_refused_in_one_sentence(change, says):
    given = {"method": "ef_sgd", "hyper": {"gamma": 0.1}, "steps": 10, "compressor": "topk(k=2)"} | change
    with pytest.raises(UsageError, match=says) as caught:
        simulate(given.pop("method"), get_problem("quadratic", n=3, d=5), given.pop("hyper"), **given)
    assert "\n" not in str(caught.value)


def test_a_measure_without_a_meaning_gives_its_reason():
    problem = get_problem("nonconvex_logistic", data=(DENSE, LABELS), n=3, lam=0.1)
    with pytest.raises(Unsupported, match="minimiser"):
        simulate("gd", problem, {"gamma": 0.1}, steps=5, measures=("distance",))


# --- what is edited is compiled again --------------------------------------------------------------------------------

USER = """
import sys
from typing import NamedTuple
from verify_rates.problems import get_problem
from verify_rates.solvers.engine.run import simulate
from verify_rates.solvers.method import method
from verify_rates.solvers.words import Shared, grad, mean
from helping import RATE, shrink

class State(NamedTuple):
    x: Shared

class Hyper(NamedTuple):
    gamma: float

def direction(w, x):
    return 1.0 * mean(w, grad(w, x))

@method(state=State, hyper=Hyper)
def mine(s, w, h, t):
    return State(x=shrink(s.x) - 1.0 * RATE * h.gamma * direction(w, s.x))

for engine in ("numpy", "numba"):
    h = simulate("mine", get_problem("quadratic", n=2, d=3), {"gamma": 0.1}, steps=10, engine=engine)
    print(repr(float(h.values["function_gap"][0, -1])), h.settings.get("from_cache"))
"""
HELPING = """
RATE = 1.0

def shrink(v):
    return 0.99 * v
"""


def run_user(folder, env, agree=True):
    told = subprocess.run([sys.executable, "user.py"], cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    assert told.returncode == 0, told.stderr
    (plain, _), (compiled_value, cached) = (line.split() for line in told.stdout.splitlines())
    assert not agree or float(compiled_value) == pytest.approx(float(plain), rel=AGREE)
    return float(compiled_value), cached == "True"


def edit(file, old, new):
    """Change a file without a trace that a stamp would see: same size, same times."""
    stamp, text = file.stat(), file.read_text()
    assert old in text and len(old) == len(new)
    file.write_text(text.replace(old, new))
    os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def test_an_edit_of_the_users_files_changes_the_answer(tmp_path):
    user, helping = tmp_path / "user.py", tmp_path / "helping.py"
    user.write_text(USER)
    helping.write_text(HELPING)
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    edits = [(user, "1.0 * RATE", "1.5 * RATE"), (user, "1.0 * mean", "1.1 * mean"), (helping, "0.99", "0.90"), (helping, "= 1.0", "= 1.2")]
    seen = [run_user(tmp_path, env)[0]]
    assert run_user(tmp_path, env) == (seen[0], True)
    for file, old, new in edits:
        edit(file, old, new)
        seen.append(run_user(tmp_path, env)[0])
    assert len(set(seen)) == len(seen)


@pytest.mark.slow
def test_an_edit_of_the_package_changes_the_answer(tmp_path):
    package = pathlib.Path(verify_rates.__file__).parent
    copy = tmp_path / "verify_rates"
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("solvers", "problems"):
        source = pathlib.Path(next(iter(sys.modules[f"verify_rates.{name}"].__path__)))
        shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "helping.py").write_text(HELPING)
    env = os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1", "VERIFY_RATES_CACHE": str(tmp_path / "cache")}
    edits = [("problems/kernels.py", "total += H", "total -= H"), ("solvers/engine/compiled.py", "return out / v", "return out * v")]
    seen = [run_user(tmp_path, env)[0]]
    for file, old, new in edits:  # a kernel, a word
        edit(copy / file, old, new)
        seen.append(run_user(tmp_path, env, agree=False)[0])
    assert len(set(seen)) == len(seen)


def test_a_function_made_twice_in_one_process_is_not_mixed_up():
    problem = get_problem("quadratic", n=3, d=5)

    class State(NamedTuple):
        x: Shared

    class Hyper(NamedTuple):
        gamma: float

    def made(factor):
        def scaled(s, w, h, t):
            return State(x=s.x - factor * h.gamma * mean(w, grad(w, s.x)))

        return Method("scaled", scaled, State, Hyper)

    for factor in (1.0, 2.0):
        a, b = (simulate(made(factor), problem, {"gamma": 0.1}, steps=5, engine=e) for e in ("numpy", "numba"))
        assert difference(a, b) < AGREE


TWINS = """
import sys
from typing import NamedTuple
from verify_rates.problems import get_problem
from verify_rates.solvers.engine.run import simulate
from verify_rates.solvers.method import Method
from verify_rates.solvers.words import Shared, grad, mean

class State(NamedTuple):
    x: Shared

class Hyper(NamedTuple):
    gamma: float

def made(factor):
    def turned(v):
        return factor * v

    def scaled(s, w, h, t):
        return State(x=s.x - h.gamma * turned(mean(w, grad(w, s.x))))

    return Method("scaled", scaled, State, Hyper)

for factor in map(float, sys.argv[1:]):
    a, b = (simulate(made(factor), get_problem("quadratic"), {"gamma": 0.1}, steps=9, engine=e) for e in ("numpy", "numba"))
    print(factor, abs(a.final["x"] - b.final["x"]).max(), b.settings["from_cache"])
"""


def test_code_cached_by_two_processes_is_not_mixed_up(tmp_path):
    """Numba numbers functions per process and links by name and number: a third process must not take one for the other."""
    (tmp_path / "twins.py").write_text(TWINS)
    for factors in (["3"], ["1"], ["2"], ["1", "2"]):  # the first one warms the package's own code, so that 1 and 2 get equal numbers
        told = subprocess.run([sys.executable, "twins.py", *factors], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert told.returncode == 0, told.stderr
        assert all(float(line.split()[1]) < AGREE for line in told.stdout.splitlines()), told.stdout
    assert [line.split()[2] for line in told.stdout.splitlines()] == ["True", "True"]


def test_the_cache_lives_where_it_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("VERIFY_RATES_CACHE", str(tmp_path / "here"))
    assert cache.root() == tmp_path / "here"
    monkeypatch.delenv("VERIFY_RATES_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.root() == tmp_path / "verify-rates"
