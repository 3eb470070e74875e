"""Measures of a state, written in the words: ``measure(s, w, h) -> scalar``, read by every engine and by the worst case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from verify_rates.solvers.method import nearest
from verify_rates.solvers.words import consensus, gap, grad, mean, optimum, spread, sqnorm


def distance(s, w, h):
    """``||x - x*||^2`` (of the mean model)."""
    return sqnorm(w, consensus(w, s.x) - optimum(w))


def function_gap(s, w, h):
    """``f(x) - f*`` (at the mean model)."""
    return gap(w, consensus(w, s.x))


def grad_norm(s, w, h):
    """``||grad f(x)||^2`` (at the mean model)."""
    return sqnorm(w, mean(w, grad(w, consensus(w, s.x))))


def average_gap(s, w, h):
    """``f(a) - f*`` at the average that the method itself keeps."""
    return gap(w, consensus(w, s.a))


def grad_norm_less_drift(s, w, h):
    """``||grad f(x)||^2 - ||grad f(x) - mean_i grad f_i(x_i)||^2`` at the mean model x: what a theorem with a drift term leaves."""
    x = consensus(w, s.x)
    g = mean(w, grad(w, x))
    return sqnorm(w, g) - sqnorm(w, g - mean(w, grad(w, s.x)))


def round_grad_norm(s, w, h):
    """``||grad f(y)||^2`` at the shared model y of the start of the round."""
    return sqnorm(w, mean(w, grad(w, s.y)))


def error_energy(s, w, h):
    """``mean_i ||e_i||^2`` of the error memories."""
    return sqnorm(w, s.e)


def consensus_error(s, w, h):
    """``mean_i ||x_i - mean x||^2``."""
    return sqnorm(w, s.x - spread(w, mean(w, s.x)))


def pair_distance(s, w, h):
    """``||x - y||^2`` of two shared models."""
    return sqnorm(w, s.x - s.y)


def ef_lyapunov(s, w, h):
    """``mean_i ||x - x* - e_i||^2 + ||mean e||^2 / sqrt(1-delta)``, EF's Lyapunov function (Berg Thomsen, Taylor, Dieuleveut 2025)."""
    virtual = spread(w, s.x - optimum(w)) - s.e
    return sqnorm(w, virtual) + sqnorm(w, mean(w, s.e)) / (1 - w.delta) ** 0.5


def ef21_lyapunov(s, w, h):
    """``mean_i ||g_i - v_i||^2 + sqrt(1-delta) ||mean g||^2``, EF21's Lyapunov function (the same papers)."""
    g = grad(w, s.x)
    return sqnorm(w, g - s.v) + (1 - w.delta) ** 0.5 * sqnorm(w, mean(w, g))


MEASURES: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (distance, function_gap, average_gap, grad_norm, error_energy, consensus_error, pair_distance, ef_lyapunov, ef21_lyapunov)
}


def get_measure(measure: str | Callable[..., Any]) -> Callable[..., Any]:
    """The measure of that name, or the callable itself; UsageError with the nearest match when there is none."""
    if callable(measure):
        return measure
    if measure not in MEASURES:
        raise nearest(measure, MEASURES, "measure")
    return MEASURES[measure]
