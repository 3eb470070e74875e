"""Rational certificates of worst cases, for the independent checker.

``gd_certificate`` writes the closed-form multipliers of Drori and Teboulle (2014, Theorem 3.1), which prove the exact worst case, so that
no solver and no rounding is involved.  ``certificate`` takes any nonnegative multipliers near an optimum and makes them exact.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from verify_rates.proofs_check.checker import FORMAT, Refused, check, seal
from verify_rates.solvers.method import UsageError

__all__ = ["Refused", "certificate", "check", "gd_certificate", "write"]


def gd_certificate(steps: int, gamma: Any = 1, L: Any = 1) -> dict[str, Any]:
    """The certificate of ``f(x_N) - f* <= L/(4*N*L*gamma + 2)*||x_0 - x*||^2`` for gradient descent on smooth convex functions.

    Guarantee: tight (Drori and Teboulle 2014, Theorem 3.1), for ``0 < gamma <= 1/L``.

    Parameters
    ----------
    steps : N, from 1 to 100.
    gamma, L : step size and smoothness; int, Fraction, or text such as "1/3" (a float is taken at its exact binary value).

    Errors: UsageError for a step outside the range.

    >>> check(gd_certificate(2))
    'gd with gamma = 1 has f(x_2) - f* <= 1/10 * (||x_0 - x*||^2) for every 1-smooth convex f'
    """
    N, gamma, L = _whole(steps), _fraction("gamma", gamma), _fraction("L", L)
    if not 0 < gamma * L <= 1:
        raise UsageError(f"the closed form needs 0 < gamma <= 1/L = {1 / L}, not gamma = {gamma}.")
    grow = [Fraction(i, 2 * N + 1 - i) for i in range(N + 1)]  # multiplier between x_{i-1} and x_i
    multipliers = {(i - 1, i): grow[i] for i in range(1, N + 1)}
    multipliers |= {("*", i): (grow[i + 1] if i < N else 1) - grow[i] for i in range(N + 1)}
    rows = [[-gamma] * k for k in range(1, N + 1)]
    return certificate(L, 0, rows, multipliers, L / (4 * N * L * gamma + 2), name="gd", gamma=gamma)


def certificate(
    L: Any,
    mu: Any,
    coefficients: Iterable[Iterable[Any]],
    multipliers: Mapping[tuple[Any, Any], Any],
    rate: Any,
    *,
    measure: str = "function_gap",
    initial: str = "distance",
    name: str = "fixed",
    gamma: Any = 0,
) -> dict[str, Any]:
    """A sealed certificate of ``measure(x_N) <= rate*initial(x_0)``; whether it proves that is for the checker to say.

    Parameters
    ----------
    L, mu : the class of functions.
    coefficients : row k (from 1) holds the weights of g_0..g_{k-1} in ``x_k - x_0``.
    multipliers : (i, j) to the multiplier of the interpolation inequality of i above j; points are 0..N and "*".
    rate : of the statement.
    measure, initial : "distance", "function_gap" or "grad_norm", at x_N and at x_0.
    name, gamma : "gd" with its step, or "fixed".
    """
    rows = [[str(_fraction("a coefficient", c)) for c in row] for row in coefficients]
    made = {
        "format": FORMAT,
        "class": {"L": str(_fraction("L", L)), "mu": str(_fraction("mu", mu))},
        "algorithm": {"name": name, "gamma": str(_fraction("gamma", gamma)), "coefficients": rows},
        "steps": len(rows),
        "measure": measure,
        "initial": initial,
        "rate": str(_fraction("rate", rate)),
        "multipliers": [[i, j, str(_fraction("a multiplier", v))] for (i, j), v in multipliers.items() if v],
    }
    return {**made, "sha256": seal(made)}


def write(made: Mapping[str, Any], path: str | Path) -> Path:
    """Write a certificate as JSON and return its path."""
    target = Path(path)
    target.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    return target


def _whole(steps: Any) -> int:
    if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= 100:
        raise UsageError(f"steps must be a whole number from 1 to 100, not {steps!r}.")
    return steps


def _fraction(name: str, value: Any) -> Fraction:
    try:
        return Fraction(int(value.p), int(value.q)) if hasattr(value, "is_Rational") else Fraction(value)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError, AttributeError):
        raise UsageError(f"{name} must be a fraction, not {value!r}.") from None
