"""Worst-case functions everywhere: through the recorded points, of their class between them, and in pictures."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from verify_rates.solvers.method import UsageError
from verify_rates.solvers.words import Unsupported
from verify_rates.theory.worst_case.interpolant import interpolant
from verify_rates.theory.worst_case.solve import worst_case

# Values are a minimum solved to about 1e-10 in units where the problem is about 1, gradients to its square root.
RTOL_VALUE, RTOL_GRADIENT = 1e-8, 1e-5
STEP = 1e-5  # of central differences; their error is L STEP^2 and rounding/STEP

CASES = [
    ("gd", {"gamma": 1.0}, {"n": 1, "steps": 3}),
    ("gd", {"gamma": 1.5}, {"n": 1, "steps": 2, "mu": 0.1}),
    ("heavy_ball", {"gamma": 1.0, "beta": 0.3}, {"n": 1, "steps": 3, "mu": 0.05}),
    ("ef_sgd", {"gamma": 0.3}, {"steps": 2, "mu": 0.1, "compressor": {"delta": 0.5}, "zeta2_star": 0.5}),
    ("gd", {"gamma": 0.7}, {"n": 1, "steps": 2, "functions": "smooth", "measure": "grad_norm", "initial": "gap_to_last"}),
]


def made(k):
    method, hyper, problem = CASES[k]
    instance = worst_case(method, hyper, **problem).instance
    return instance, instance.function()


def conditions(f, x, g, mu, L):
    """Largest violation of the interpolation conditions of curvatures in [mu, L] by many pairs."""
    width = L - mu
    h, v = g - mu * x, f - mu / 2 * np.sum(x**2, axis=1)
    dh = h[:, None] - h[None]
    need = v[None] + np.einsum("jd,ijd->ij", h, x[:, None] - x[None]) + np.sum(dh**2, axis=2) / (2 * width)
    return float((need - v[:, None]).max())


@pytest.mark.parametrize("k", range(len(CASES)))
def test_it_interpolates_and_is_of_its_class(k):
    _, f = made(k)
    size = max(np.abs(f.f).max(), np.sum(f.x**2, axis=1).max())
    for x, g, value in zip(f.x, f.g, f.f, strict=True):
        assert abs(f(x) - value) <= RTOL_VALUE * size
        assert np.abs(f.gradient(x) - g).max() <= RTOL_GRADIENT * np.sqrt(size)
    rng = np.random.default_rng(k)
    x = np.vstack([f.x, f.x[rng.integers(len(f.x), size=20)] + rng.standard_normal((20, f.x.shape[1])) * np.abs(f.x).max()])
    values, gradients = np.array([f(p) for p in x]), np.array([f.gradient(p) for p in x])
    assert conditions(values, x, gradients, f.mu, f.L) <= RTOL_GRADIENT * np.sum(x**2, axis=1).max()
    p, direction = x[-1], rng.standard_normal(x.shape[1])
    slope = (f(p + STEP * direction) - f(p - STEP * direction)) / (2 * STEP)
    assert abs(slope - f.gradient(p) @ direction) <= RTOL_GRADIENT * np.linalg.norm(direction) * np.linalg.norm(p) * 10


def test_wrong_data_are_not_interpolated():
    """What the checks above would miss if the function were anything through the points."""
    _, f = made(0)
    wrong = dataclasses.replace(f, f=f.f * np.where(np.arange(len(f.f)) == 1, 1.5, 1.0))
    assert max(abs(wrong(x) - value) for x, value in zip(wrong.x, wrong.f, strict=True)) > 1e-3
    low = dataclasses.replace(f, L=0.5 * f.L)
    assert max(abs(low(x) - value) for x, value in zip(low.x, low.f, strict=True)) > 1e-3


def test_a_run_on_the_function_reaches_the_lower_end():
    """Gradient descent on the interpolant itself, nothing recorded."""
    found = worst_case("gd", {"gamma": 1.0}, steps=3, n=1)
    f = found.instance.function()
    x = np.concatenate([np.asarray(part, float) for part in found.instance.start["x"]])
    for _ in range(3):
        x = x - f.gradient(x)
    assert abs(f(x) / found.lower - 1) <= 1e-6


def test_convex_functions_are_maxima():
    f = worst_case("gd", {"gamma": 0.5}, steps=2, n=1, functions="convex_lipschitz", take="best").instance.function()
    assert all(abs(f(x) - value) <= RTOL_VALUE for x, value in zip(f.x, f.f, strict=True))
    assert all(np.linalg.norm(f.gradient(x)) <= 1 + RTOL_VALUE for x in np.random.default_rng(0).standard_normal((20, f.x.shape[1])))


def test_refusals():
    instance, f = made(0)
    with pytest.raises(UsageError, match="workers"):
        instance.function(worker=1)
    with pytest.raises(UsageError, match="shape"):
        f(np.zeros(f.x.shape[1] + 1))
    with pytest.raises(UsageError, match="finite"):
        f(np.full(f.x.shape[1], np.nan))
    with pytest.raises(Unsupported, match="monotone"):
        interpolant("monotone", 1.0, 0.0, f.x, f.g, f.f)


@pytest.mark.parametrize("k", [0, 3])
def test_pictures(k):
    instance, _ = made(k)
    figure = instance.plot()
    assert "worst case" in figure.axes[0].get_title() and figure.axes[0].lines
