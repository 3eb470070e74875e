"""Rational certificates of worst cases, for the independent checker.

``gd_certificate`` writes the closed-form multipliers of Drori and Teboulle (2014, Theorem 3.1), which prove the exact worst case, so that
no solver and no rounding is involved.  ``find_certificate`` lets a solver look for multipliers of any other rate and makes them exact.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from verify_rates.proofs_check.checker import FORMAT, Refused, Sum, check, interpolation, points, seal
from verify_rates.solvers.method import UsageError

__all__ = ["Refused", "certificate", "certify_gd", "check", "find_certificate", "gd_certificate", "write"]

BITS = 44  # multipliers are rounded to multiples of 2**-BITS of their unit, far below the margin that an inflation of 1e-7 leaves
INFLATION = Fraction(1, 10**7)  # an optimal rate has no room for rounding: prove this much more, relatively


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
    multipliers: dict[tuple[Any, Any], Any] = {(i - 1, i): grow[i] for i in range(1, N + 1)}
    multipliers |= {("*", i): (grow[i + 1] if i < N else 1) - grow[i] for i in range(N + 1)}
    rows = [[-gamma] * k for k in range(1, N + 1)]
    return certificate(L, 0, rows, multipliers, L / (4 * N * L * gamma + 2), name="gd", gamma=gamma)


def certify_gd(
    steps: int, gamma: Any, L: Any, bound: Any, *, mu: Any = 0, measure: str = "function_gap", initial: str = "distance"
) -> dict[str, Any]:
    """An accepted certificate that gradient descent satisfies ``measure(x_N) <= (1 + 1e-7)*bound*initial(x_0)``.

    It covers every number of workers: gd sees the average of their functions alone, which lies in the class where each of them does.
    Parameters as in :func:`certificate`; floats are taken at their exact binary value.

    Errors: Refused where no certificate was found; UsageError for bad numbers.

    >>> certify_gd(5, 1, 1, 1 / 22)["rate"]
    '1/22'
    """
    N, step, bound = _whole(steps), _fraction("gamma", gamma), _fraction("bound", bound)
    closed = mu == 0 and (measure, initial) == ("function_gap", "distance") and 0 < step * _fraction("L", L) <= 1
    if closed:
        made = gd_certificate(N, step, L)
        if Fraction(made["rate"]) <= bound * (1 + INFLATION):
            check(made)
            return made
    rows = [[-step] * k for k in range(1, N + 1)]
    return find_certificate(L, mu, rows, bound, measure=measure, initial=initial, name="gd", gamma=step)


def find_certificate(
    L: Any,
    mu: Any,
    coefficients: Iterable[Iterable[Any]],
    rate: Any,
    *,
    measure: str = "function_gap",
    initial: str = "distance",
    name: str = "fixed",
    gamma: Any = 0,
    inflation: Any = INFLATION,
) -> dict[str, Any]:
    """A certificate of ``measure(x_N) <= (1 + inflation)*rate*initial(x_0)``, found by a solver and made exact.

    The solver maximises the margin of the Gram form; its multipliers are rounded, the function values made to cancel exactly through the
    inequalities with the minimiser, and the checker decides.  Parameters as in :func:`certificate`.

    Errors: Refused where no certificate was found, as for a rate that is too small; UsageError for bad numbers.

    >>> made = find_certificate(1, "1/10", [["-1"]], "81/100", measure="distance", name="gd", gamma=1)
    >>> check(made).startswith("gd with gamma = 1 has ||x_1 - x*||^2 <= 810000081/1000000000 *")
    True
    """
    rows = [[_fraction("a coefficient", c) for c in row] for row in coefficients]
    L, mu = _fraction("L", L), _fraction("mu", mu)
    target = _fraction("rate", rate) * (1 + _fraction("inflation", inflation))
    stated = {"measure": measure, "initial": initial, "name": name, "gamma": gamma}
    if not (rows and 0 <= mu < L and measure in _UNITS and initial in _UNITS):
        raise UsageError(f"a certificate needs at least one step, 0 <= mu < L, and measures among {', '.join(_UNITS)}.")
    x, g = points({"name": "fixed", "gamma": "0", "coefficients": [[str(c) for c in row] for row in rows]}, len(rows))
    total = Sum(len(rows))
    total.measure(target, initial, 0, x, g)
    total.measure(-1, measure, len(rows), x, g)
    terms = {}
    for i in x:
        for j in (k for k in x if k != i):
            terms[i, j] = Sum(len(rows))
            interpolation(terms[i, j], Fraction(1), i, j, x, g, L, mu)
    if "distance" not in (measure, initial):  # where x_0 - x* is not needed, its row is 0 and leaves no margin
        free = {pair: term for pair, term in terms.items() if not any(term.gram[0])}
        try:
            return _exact(total, free, L, mu, rows, target, stated)
        except Refused:
            pass  # then it is needed
    return _exact(total, terms, L, mu, rows, target, stated)


def _exact(
    total: Sum, terms: dict[Any, Sum], L: Fraction, mu: Fraction, rows: list[list[Fraction]], target: Fraction, stated: dict[str, Any]
) -> dict[str, Any]:
    """Multipliers from the solver, rounded down, the function values pushed along the steps until they cancel."""
    unit, last = L ** _UNITS[stated["measure"]], len(rows)
    guess = _margin(total, terms, float(L), float(unit))
    found = {pair: Fraction(max(0, math.floor(v * 2**BITS)), 2**BITS) * unit / L for pair, v in zip(terms, guess, strict=True)}

    def left(k: int) -> Fraction:
        return total.values[k] - sum((w * terms[pair].values[k] for pair, w in found.items()), Fraction(0))

    over = sum((left(k) for k in range(last + 1)), Fraction(0))
    if over < 0 and ("*", last) not in terms and any(j == "*" for _, j in terms):
        largest = max((pair for pair in terms if pair[1] == "*"), key=lambda pair: found[pair])
        found[largest] += over  # too much was taken down to f*
    for k in range(last):
        rest = left(k)
        found[(k, k + 1) if rest > 0 else (k + 1, k)] += abs(rest)
    rest = left(last)
    ends = (last, "*") if rest > 0 else ("*", last)
    found[ends] = found.get(ends, Fraction(0)) + abs(rest)
    made = certificate(L, mu, rows, found, target, **stated)
    check(made)
    return made


_UNITS = {"distance": 0, "function_gap": 1, "grad_norm": 2}  # powers of L that turn a measure into squared distance


def _margin(total: Sum, terms: Mapping[Any, Sum], L: float, unit: float) -> list[float]:
    """Multipliers, in units of ``unit/L``, that make the smallest eigenvalue of the Gram form (at L = 1) as large as possible."""
    import cvxpy as cp
    import numpy as np

    scale = np.array([1.0] + [L] * (len(total.gram) - 1))
    grams = [np.array(t.gram, dtype=float) * np.outer(scale, scale) / L for t in terms.values()]
    values = np.array([t.values for t in terms.values()], dtype=float).T
    weights, margin = cp.Variable(len(grams), nonneg=True), cp.Variable()
    start = np.array(total.gram, dtype=float) * np.outer(scale, scale) / unit
    if not any(total.gram[0]) and not any(any(t.gram[0]) for t in terms.values()):
        start, grams = start[1:, 1:], [m[1:, 1:] for m in grams]
    flat = np.stack([m.ravel() for m in grams], axis=1)
    slack = cp.Constant(start) - cp.reshape(flat @ weights, start.shape, order="C") - margin * np.eye(len(start))
    ends = np.array(total.values, dtype=float) * L / unit
    problem = cp.Problem(cp.Maximize(margin), [(slack + slack.T) / 2 >> 0, values @ weights == ends, margin <= 1])
    try:
        problem.solve(solver="CLARABEL")
    except cp.SolverError:
        raise Refused("the solver found no multipliers") from None
    if weights.value is None:
        raise Refused(f"no multipliers prove this rate: the solver says {problem.status}")
    return [float(v) for v in weights.value]


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
