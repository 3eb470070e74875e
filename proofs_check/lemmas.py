"""What several proof scripts use: expectations over noises, Young's inequality, squared sums, and sums over steps by induction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy as sp

from verify_rates.proofs_check.proof import Proof


def expectation(expr: Any, variances: Mapping[Any, Any]) -> Any:
    """Of a polynomial in uncorrelated noises of mean 0, symbol to variance.

    Errors: ValueError if a noise enters above the second power.

    >>> a, b, V = sp.symbols("a b V")
    >>> expectation((a + b + 1) ** 2, {a: V, b: 2 * V})
    3*V + 1
    """
    made = sp.Poly(sp.expand(expr), *variances)
    if made.total_degree() > 2:
        raise ValueError("only first and second moments of the noise are known")
    return made.coeff_monomial(1) + sum(made.coeff_monomial(noise**2) * variance for noise, variance in variances.items())


def power_mean(p: Proof, name: str) -> None:
    """``k*sum ||v_i||^2 >= ||sum v_i||^2`` by induction: from k vectors (sum S, squares N) to one more, v."""
    k = sp.Symbol("k", positive=True)
    N, S, v = sp.Symbol("N", nonnegative=True), sp.Symbol("S", real=True), sp.Symbol("v", real=True)
    p.zero(f"{name}, one vector", 1 * v**2 - v**2)
    after = (k + 1) * (N + v**2) - (S + v) ** 2
    p.implied(f"{name}, one more", after, by=[(1 + 1 / k, k * N - S**2)], squares=[(1 / k, S - k * v)])


def telescope(p: Proof, name: str, gain: Any, cost: Any) -> None:
    """``f_{t+1} <= f_t - gain*g_t + cost`` for every t gives ``f_t <= f_0 - gain*(sum of g) + t*cost``, by induction."""
    f0, f, f_next, total, g, t = sp.symbols("f0 f f_next total g t", real=True)
    after = f0 - gain * (total + g) + (t + 1) * cost - f_next
    before, step = f0 - gain * total + t * cost - f, f - gain * g + cost - f_next
    p.implied(name, after, by=[(1, before), (1, step)])


def weighted_mean(p: Proof, name: str) -> None:
    """``(sum w_i)*(sum w_i*||v_i||^2) >= ||sum w_i*v_i||^2`` by induction: from weights W (sum S, squares N) to one more, w on v."""
    W, w = sp.symbols("W w", positive=True)
    N, S, v = sp.Symbol("N", nonnegative=True), sp.Symbol("S", real=True), sp.Symbol("v", real=True)
    p.zero(f"{name}, one vector", w * (w * v**2) - (w * v) ** 2)
    after = (W + w) * (N + w * v**2) - (S + w * v) ** 2
    p.implied(f"{name}, one more", after, by=[(1 + w / W, W * N - S**2)], squares=[(w / W, S - W * v)])


def geometric_sum(p: Proof, name: str, kept: Any, cost: Any) -> None:
    """``a_{t+1} <= kept*a_t + cost*b_t`` and ``a_0 = 0`` give ``(1-kept)*(sum of a) <= cost*(sum of b)``, by induction."""
    a, a_next, b, total, costs = sp.symbols("a a_next b total costs", nonnegative=True)
    before = cost * costs - (1 - kept) * total - a
    after = cost * (costs + b) - (1 - kept) * (total + a) - a_next
    p.implied(name, after, by=[(1, before), (1, kept * a + cost * b - a_next)])
