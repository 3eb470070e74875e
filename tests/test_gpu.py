"""Arrays of a GPU: the array engine on CuPy, and clear words where there is none."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from verify_rates.problems import get_problem
from verify_rates.solvers.engine.run import simulate
from verify_rates.solvers.method import UsageError

ROOT = Path(__file__).resolve().parents[1]
# Engines differ by rounding alone; as in the tests of the engines.
RTOL = 1e-12

METHODS = {
    "gd": {},
    "gd_pair": {},
    "cgd": {"compressor": "randk(k=3)"},
    "ef_sgd": {"compressor": "topk(k=3)"},
    "ef21": {"compressor": "scaled_sign"},
    "dd_ef_sgd": {"compressor": "qsgd(levels=4)", "hyper": {"tau": 2}},
    "local_sgd": {"hyper": {"H": 3}},
    "gossip_sgd": {"topology": "ring"},
    "acco": {},
}


@pytest.fixture(scope="module")
def cupy():
    """CuPy with a device; REQUIRE_ALL=1 turns its absence into a failure."""
    try:
        import cupy

        cupy.zeros(1)
    except Exception as error:
        sentence = f"needs CuPy and a GPU: {error}"
        if os.environ.get("REQUIRE_ALL") == "1":
            pytest.fail(sentence)
        pytest.skip(sentence)
    return cupy


@pytest.mark.parametrize("problem", [{"name": "quadratic", "zeta2_star": 1.0, "sigma2": 0.1}, {"name": "logistic", "batch": 4}])
@pytest.mark.parametrize("method", METHODS)
def test_cupy_agrees_with_numpy(cupy, method, problem):
    given = {"hyper": {}, **METHODS[method]}
    hyper = {"gamma": 0.1, **given.pop("hyper")}
    made = get_problem(**problem)
    here, there = (simulate(method, made, hyper, steps=20, engine=engine, **given) for engine in ("numpy", "cupy"))
    for name, values in here.final.items():
        np.testing.assert_allclose(there.final[name], values, rtol=RTOL, atol=RTOL)
    np.testing.assert_array_equal(there.bits, here.bits)


def test_a_missing_device_is_one_sentence(monkeypatch):
    def zeros(*args):
        raise RuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected.")

    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(zeros=zeros, __name__="cupy"))
    with pytest.raises(UsageError, match=r"engine 'cupy' finds no device to run on \(cudaErrorNoDevice: .* detected\)\.$"):
        simulate("gd", "quadratic", {"gamma": 0.1}, steps=1, engine="cupy")


def test_a_missing_package_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(UsageError, match="needs the package cupy, which is not installed"):
        simulate("gd", "quadratic", {"gamma": 0.1}, steps=1, engine="cupy")


def test_arrays_are_moved_once(monkeypatch):
    """A device keeps what the problem holds: a step moves nothing but its draws."""
    import array_api_strict as xp

    moved = []
    plain = xp.asarray

    def counting(value, *args, **kwargs):
        if isinstance(value, np.ndarray):
            moved.append(value.shape)
        return plain(value, *args, **kwargs)

    monkeypatch.setattr(xp, "asarray", counting)
    problem = get_problem("quadratic", n=2, d=3)
    simulate("gd", problem, {"gamma": 0.1}, steps=5, engine=xp, measures=("grad_norm",), every=5)
    first = len(moved)
    moved.clear()
    simulate("gd", problem, {"gamma": 0.1}, steps=50, engine=xp, measures=("grad_norm",), every=50)
    assert len(moved) < first, "the number of moves must not grow with the steps"


def test_the_benchmark_runs_and_says_what_is_missing():
    arguments = ["--d", "64", "--n", "2", "--steps", "5", "--repeats", "1"]
    done = subprocess.run([sys.executable, ROOT / "benchmarks" / "gpu.py", *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines if line.startswith(("numpy", "numba", "cupy"))] == ["numpy", "numba", "cupy"]
    assert next(line for line in lines if line.startswith("numpy")).split()[3] == "1.00"
    missing = next(line for line in lines if line.startswith("cupy"))
    assert "not measured: " in missing or len(missing.split()) >= 4
