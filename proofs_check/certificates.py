"""Rational certificates of worst cases, for the independent checker.

A solver proposes multipliers with the largest margin; they are rounded, the function values made to cancel exactly over the rationals, and
the checker decides.  ``gd_certificate`` writes the closed-form multipliers of Drori and Teboulle (2014, Theorem 3.1), which prove the exact
worst case without any solver.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from verify_rates.proofs_check.chain_checker import FORMAT as CHAIN
from verify_rates.proofs_check.checker import FORMAT, Refused, Statement, Sum, check, difference, read, seal
from verify_rates.proofs_check.trace import trace
from verify_rates.solvers.method import Method, UsageError

__all__ = ["Refused", "certify", "check", "confirm", "gd_certificate", "read", "write"]

BITS = 60  # multipliers are rounded to multiples of 2**-BITS in units in which the rate is 1, far below any margin that is used
INFLATION = Fraction(1, 10**6)  # an optimal rate has no room for rounding: prove this much more, relatively
BASES = 3  # solves, each seen from the worst case of the one before
LEAST_SIZE = 1e-3  # of an unknown in new units: its square bounds the margin, which is the smaller one still
LEAST_WEIGHT = 1e-6  # of a multiplier where those that balance are chosen
MOST_DIGITS = 4  # of a number of steps: far above what is certified, and traced again in moments
POSITIONS = (0, 1)  # the numbers of the unknowns x* and x_0 - x* (see trace)
MARGINS = (1.0, 1e-6)  # units of the margin for the solver, whose own accuracy is relative to 1

Name = tuple[Any, ...]


def certify(
    method: str | Method, hyper: dict[str, Any], *, steps: int, bound: Any = None, inflate: Any = INFLATION, **problem: Any
) -> dict[str, Any]:
    """An accepted certificate that ``measure <= (1 + inflate)*bound`` after ``steps`` steps of a method.

    For every deterministic method whose words have a quadratic description, for one worker or any number of them, and for Lyapunov
    functions (``steps=1, start="free"`` with the function as ``measure`` and ``initial``).

    Parameters
    ----------
    method, hyper, steps, problem : as for :func:`verify_rates.worst_case`; floats are taken at their exact binary value.
    bound : the claimed bound; by default the upper end of the worst case.
    inflate : by how much more is proved, relatively: an exact bound leaves no room for the rounding of multipliers.

    Errors
    ------
    Refused where no certificate was found, as for a bound that is too small; UsageError for bad input; Unsupported for what a certificate
    does not speak of (other classes, gossip, proximal steps).

    Example
    -------
    >>> made = certify("gd", {"gamma": 1}, steps=2, bound=Fraction(1, 10), n=1)
    >>> made["rate"], check(made)[:33]
    ('1000001/10000000', 'function_gap <= 1000001/10000000 ')
    """
    if bound is None:
        from verify_rates.theory.worst_case.solve import worst_case

        bound = worst_case(method, hyper, steps=steps, **problem).upper
    stated, units = trace(method, hyper, steps=steps, **problem)
    target = _fraction("bound", bound) * (1 + _fraction("inflate", inflate))
    if target <= 0:
        raise UsageError(f"a bound must be positive, not {bound}.")
    statement = Statement(stated)
    rows = _inequalities(stated, statement)
    untouched = _without_idle_positions(stated, statement, rows)
    reason = Refused("no multipliers were found")
    for chosen in filter(None, (untouched, rows)):
        for propose in _proposals(statement, chosen, target, units):
            try:
                return _sealed(stated, propose(), target)
            except Refused as why:
                reason = why
    if problem.get("take", "last") in ("last", "mean") and steps > 1:
        raise Refused(f"{reason}; certify_chain, which proves one step at a time, may reach further") from None
    raise reason


def confirm(made: Mapping[str, Any], method: str | Method | None = None, **problem: Any) -> str:
    """The checker's sentence, after tracing the method again: the coordinates in the certificate are the method's.

    Parameters
    ----------
    made : a certificate.
    method : by default the one that the certificate names.
    problem : measure and initial where they are functions.

    Errors: Refused where the certificate proves nothing or is not of that method.

    >>> confirm(gd_certificate(3)).startswith("function_gap <= 1/14 after 3 steps of the method written in it, called gd,")
    True
    """
    if isinstance(made, dict) and made.get("format") == CHAIN:
        from verify_rates.proofs_check.chains import confirm_chain

        return confirm_chain(made, method, **problem)
    sentence = check(made)
    about, setting = made["about"], made["class"]
    if not (isinstance(about["steps"], str) and about["steps"].isdecimal() and len(about["steps"]) <= MOST_DIGITS):
        raise Refused(f"steps must be a whole number of at most {MOST_DIGITS} digits")
    try:
        again, _ = trace(
            method or about["method"],
            {k: _read_number(v) for k, v in about["hyper"].items()},
            **{
                "steps": int(about["steps"]),
                "functions": setting["functions"],
                "L": Fraction(setting["L"]),
                "mu": Fraction(setting["mu"]),
                "n": 1 if made["workers"] == "one" else "any",
                "compressor": {k: Fraction(v) for k, v in made["compressor"].items()} or None,
                "zeta2_star": 0 if made["workers"] == "one" else None if made["zeta2_star"] is None else Fraction(made["zeta2_star"]),
                "initial": about["initial"],
                "initial_value": Fraction(about["initial_value"]),
                "measure": about["measure"],
                "take": about["take"],
                "start": about["start"],
            }
            | problem,
        )
    except (UsageError, ValueError, TypeError, AttributeError, ArithmeticError, LookupError) as error:
        raise Refused(f"the method it names cannot be traced again: {error}") from None
    for name, value in again.items():
        if made[name] != value:
            raise Refused(f"its {name} is not that of {about['method']}")
    return sentence


def _read_number(value: Any) -> Any:
    if isinstance(value, list):
        return [_read_number(v) for v in value]
    number = Fraction(value)
    return int(number) if number.denominator == 1 else number


def gd_certificate(steps: int, gamma: Any = 1, L: Any = 1) -> dict[str, Any]:
    """The certificate of ``f(x_N) - f* <= L/(4*N*L*gamma + 2)*||x_0 - x*||^2`` for gradient descent on smooth convex functions.

    Guarantee: tight (Drori and Teboulle 2014, Theorem 3.1), for ``0 < gamma <= 1/L``.

    Parameters
    ----------
    steps : N, from 1 to 100.
    gamma, L : step size and smoothness; int, Fraction, or text such as "1/3" (a float is taken at its exact binary value).

    Errors: UsageError for a step outside the range.

    >>> gd_certificate(2)["rate"]
    '1/10'
    """
    if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= 100:
        raise UsageError(f"steps must be a whole number from 1 to 100, not {steps!r}.")
    N, gamma, L = steps, _fraction("gamma", gamma), _fraction("L", L)
    if not 0 < gamma * L <= 1:
        raise UsageError(f"the closed form needs 0 < gamma <= 1/L = {1 / L}, not gamma = {gamma}.")
    stated, _ = trace("gd", {"gamma": gamma}, steps=N, L=L, n=1)
    grow = [Fraction(i, 2 * N + 1 - i) for i in range(N + 1)]  # multiplier between x_{i-1} and x_i; x* is point 0
    found: dict[Name, Fraction] = {("pair", i, i + 1): grow[i] for i in range(1, N + 1)}
    found |= {("pair", 0, i + 1): (grow[i + 1] if i < N else 1) - grow[i] for i in range(N + 1)}
    rate = L / (4 * N * L * gamma + 2)
    return _sealed(stated, {**found, ("initial", 0): rate}, rate)


def write(made: Mapping[str, Any], path: str | Path) -> Path:
    """Write a certificate as JSON and return its path."""
    target = Path(path)
    target.write_text(json.dumps(made) + "\n", encoding="utf-8")
    return target


def _sealed(stated: Mapping[str, Any], multipliers: Mapping[Name, Fraction], rate: Fraction) -> dict[str, Any]:
    """The certificate, accepted by the checker."""
    rows = [[*name, str(w)] for name, w in multipliers.items() if w]
    made = {"format": FORMAT, **stated, "rate": str(rate), "multipliers": rows}
    made["sha256"] = seal(made)
    check(made)
    return made


# --- from inequalities to multipliers --------------------------------------------------------------------------------


def _inequalities(stated: Mapping[str, Any], statement: Statement) -> dict[Name, Sum]:
    """Every inequality that the checker knows for this statement."""
    points, messages = range(len(statement.points)), range(len(statement.messages))
    names: list[Name] = [("pair", i, j) for i in points for j in points if i != j]
    names += [("contraction", k) for k in messages if "delta" in stated["compressor"]]
    names += [("error", k) for k in messages if "Delta2" in stated["compressor"]]
    names += [("initial", k) for k in range(len(statement.initial))]
    names += [("heterogeneity",)] if statement.zeta2 and statement.star is not None else []
    names += [("infimum", k) for k in points] if statement.infimum is not None else []
    names += [("least", i, k) for i, (_, forms) in enumerate(statement.least) for k in range(len(forms))]
    made = {}
    for name in names:
        made[name] = Sum(statement.sizes, statement.values)
        statement.inequality(made[name], Fraction(1), *name)
    return made


def _without_idle_positions(stated: Mapping[str, Any], statement: Statement, rows: Mapping[Name, Sum]) -> dict[Name, Sum]:
    """Without the pairs that speak of ``x*`` as a vector, or of ``x_0 - x*``, where neither the measure nor the start does (its row is then
    0 and needs no margin), and without those that then have no unknown in common with the statement, through others or directly."""
    if stated["about"]["start"] == "free" or statement.star is None:
        return {}
    goal = Sum(statement.sizes, statement.values)
    goal.form(1, statement.measure)
    others = [goal, *(total for name, total in rows.items() if name[0] != "pair")]
    idle = [k for k in POSITIONS if not any(any(total.grams[0][k]) for total in others)]
    kept = {name: total for name, total in rows.items() if not any(any(total.grams[0][k]) for k in idle)}
    if len(kept) == len(rows):
        return {}
    touched = {name: _touched(total) for name, total in kept.items()}
    reached = set().union(*map(_touched, others))
    while more := {u for unknowns in touched.values() if unknowns & reached for u in unknowns} - reached:
        reached |= more
    return {name: total for name, total in kept.items() if touched[name] & reached}


def _touched(total: Sum) -> set[tuple[int, int]]:
    """The unknowns that occur: (part, number) of means, deviations and values."""
    found = {(part, k) for part, gram in enumerate(total.grams) for k, row in enumerate(gram) if any(row)}
    return found | {(2, k) for k, v in enumerate(total.values) if v}


def _proposals(
    statement: Statement, rows: Mapping[Name, Sum], target: Fraction, units: Any
) -> Iterator[Callable[[], dict[Name, Fraction]]]:
    """Multipliers with the largest margin, rounded, with function values that cancel exactly; further ones for where these fail.

    A margin is relative to the sizes of the unknowns in the worst case: where the first guess of these is too rough, the Gram matrices of a
    first solve, which need not reach the rate, tell a better basis.
    """
    goal = Sum(statement.sizes, statement.values)
    goal.form(-1, statement.measure)
    goal.constant(target)
    yield from _proposals_of(statement, goal, rows, target, units)


def _proposals_of(
    statement: Statement, goal: Sum, rows: Mapping[Name, Sum], target: Fraction, units: Any
) -> Iterator[Callable[[], dict[Name, Fraction]]]:
    """The same for any goal of that size."""
    units, turns = _less_curvature(statement, units) if 2 * statement.mu > statement.L else (units, None)
    for margin in MARGINS:
        arrays = _Arrays(goal, rows, units, turns)
        for _ in range(BASES):
            guess, worst = _solved(arrays, float(target), margin)
            yield partial(_exact, goal, rows, target, arrays, guess)
            arrays = arrays.seen_from(worst)


def _exact(goal: Sum, rows: Mapping[Name, Sum], target: Fraction, arrays: _Arrays, guess: Any) -> dict[Name, Fraction]:
    """A solver's multipliers as fractions."""
    if not all(map(math.isfinite, guess)):
        raise Refused("the solver found no multipliers")
    rounded = [Fraction(max(0, math.floor(v * 2**BITS)), 2**BITS) for v in guess]
    found = {name: v * target / Fraction(s) for name, v, s in zip(rows, rounded, arrays.scale, strict=True)}
    return _balanced(goal, rows, found, arrays.values[:, 1:] / arrays.scale, guess)


def _less_curvature(statement: Statement, units: Any) -> tuple[Any, list[Any]]:
    """Units and bases in which an unknown gradient at x is ``mu*(x - x_0)`` and something of size (L - mu)*|x - x_0|, x_0 being the
    first point: where mu is near L, gradients are all but multiples of positions, and what is left of them decides."""
    import numpy as np

    sizes, turns, (x0, *_) = [list(u) for u in units], [np.eye(len(u)) for u in units[:2]], statement.points[0]
    for x, g, _ in statement.points:
        for part, turn in enumerate(turns):
            (k, *more), moved = g[part] or [None], difference(x, x0)[part]
            if k is not None and not more and not moved.get(k):
                away = sum((float(c) * turn[j] for j, c in moved.items()), np.zeros(len(turn)))
                turn[k] = np.eye(len(turn))[k] + float(statement.mu) * away
                sizes[part][k] = float(statement.L - statement.mu) * (float(np.abs(away * sizes[part]).max(initial=0.0)) or 1.0)
    return sizes, turns


class _Arrays:
    """Gram parts (entries, 1 + rows), values and constants of the goal and of every row as floats; without unknowns that occur nowhere."""

    def __init__(self, goal: Sum, rows: Mapping[Name, Sum], units: Any, turns: Any = None) -> None:
        import numpy as np

        sums, self.grams = [goal, *rows.values()], []
        for part in (0, 1):
            used = [k for k in range(len(units[part])) if any(any(s.grams[part][k]) for s in sums)]
            unit = np.array([units[part][k] for k in used])
            stacked = np.array([[[float(s.grams[part][i][j]) for j in used] for i in used] for s in sums])
            stacked = stacked.reshape(len(sums), len(used), len(used))
            if turns is not None:
                turn = turns[part][np.ix_(used, used)]
                stacked = turn.T @ stacked @ turn
            stacked = stacked * np.outer(unit, unit)
            self.grams.append(stacked.reshape(len(sums), -1).T)
        self.values = (np.array([[float(v) for v in s.values] for s in sums]).reshape(len(sums), -1) * np.array(units[2])).T
        self.constants = np.array([float(s.const) for s in sums])
        self._rescale()

    def _rescale(self) -> None:
        import numpy as np

        stacked = np.abs(np.vstack([*self.grams, self.values, self.constants[None]]))[:, 1:]
        self.scale = stacked.max(axis=0)
        self.scale[self.scale == 0] = 1.0

    def seen_from(self, worst: tuple[list[Any], Any]) -> _Arrays:
        """The same in bases and units in which the Gram matrices and function values of a worst case are 1, where they are not tiny."""
        import copy

        import numpy as np

        made, (grams, heights) = copy.copy(self), worst
        made.grams = []
        for flat, G in zip(self.grams, grams, strict=True):
            root, k = _root(G), len(G)
            stacked = np.einsum("ai,abr,bj->ijr", root, flat.reshape(k, k, flat.shape[1]), root, optimize=True)
            made.grams.append(((stacked + stacked.transpose(1, 0, 2)) / 2).reshape(k * k, flat.shape[1]))
        made.values = self.values * heights[:, None]
        made._rescale()
        return made


def _root(G: Any) -> Any:
    """R with ``R R' = G``, no eigenvalue below ``LEAST_SIZE**2``."""
    import numpy as np

    values, vectors = np.linalg.eigh(G)
    return vectors * np.sqrt(values.clip(LEAST_SIZE**2))


def _solved(arrays: _Arrays, target: float, margin: float) -> tuple[Any, tuple[list[Any], Any]]:
    """Nonnegative weights of the scaled rows that make the least eigenvalue of both Gram forms, and the constant, as large as possible (at
    most 1) relative to the target, and the worst case."""
    import clarabel
    import numpy as np
    import scipy.sparse as sp

    from verify_rates.theory.worst_case.assemble import smat, triangle
    from verify_rates.theory.worst_case.backends import conic_program, off_diagonal

    m = len(arrays.scale)
    over = np.append(target, arrays.scale)
    values, constants, grams = arrays.values / over, arrays.constants / over, [g / over for g in arrays.grams]
    occur = np.abs(values).max(axis=1, initial=0) > 0
    values = values[occur]
    one = np.append(np.zeros(m), 1.0)
    blocks = [
        np.hstack([values[:, 1:], np.zeros((len(values), 1))]),
        -np.eye(m + 1)[:m],
        np.append(-constants[1:], margin)[None],
        one[None],
    ]
    right, cones = (
        [-values[:, 0], np.zeros(m), constants[:1], np.ones(1)],
        [clarabel.ZeroConeT(len(values)), clarabel.NonnegativeConeT(m + 2)],
    )
    orders = [math.isqrt(len(g)) for g in grams]
    for k, gram in zip(orders, grams, strict=True):
        i, j = triangle(k)
        svec = gram[i * k + j] * off_diagonal(k, math.sqrt(2.0))[:, None]
        blocks.append(np.hstack([-svec[:, 1:], margin * (i == j)[:, None]]))
        right.append(svec[:, 0])
        cones.append(clarabel.PSDTriangleConeT(k))
    x, y, _ = conic_program(-one, sp.csc_matrix(np.vstack(blocks)), np.concatenate(right), cones)
    y, place, found = np.nan_to_num(y), len(values) + m + 2, []
    for k in orders:
        found.append(smat(y[place : place + k * (k + 1) // 2] / off_diagonal(k, math.sqrt(2.0)), k))
        place += k * (k + 1) // 2
    heights = np.ones(len(occur))
    heights[occur] = np.abs(y[: len(values)])
    largest = max(max(np.diag(G).max(initial=0) for G in found), 1e-300)
    worst = [G / largest for G in found], np.clip(heights / largest, LEAST_SIZE**2, 1)
    return x[:m], worst


def _balanced(goal: Sum, rows: Mapping[Name, Sum], found: dict[Name, Fraction], values: Any, guess: Any) -> dict[Name, Fraction]:
    """The multipliers changed as little as rounding needs, on a well-chosen few, so that no function value is left over; one that would
    have to be negative is 0."""
    import numpy as np
    from scipy.linalg import qr

    names, found = list(rows), dict(found)
    weights = np.maximum(guess, LEAST_WEIGHT)
    while len(weights):
        left = [g + sum(w * rows[name].values[k] for name, w in found.items() if w) for k, g in enumerate(goal.values)]
        rank = int(np.linalg.matrix_rank(values * (weights > 0)))
        chosen = qr(values * weights, pivoting=True, mode="economic")[2][:rank]
        equations = qr(values[:, chosen].T, pivoting=True, mode="economic")[2][:rank]
        change = _linear_solve([[rows[names[c]].values[e] for c in chosen] for e in equations], [-left[e] for e in equations])
        negative = [c for c, v in zip(chosen, change, strict=True) if found[names[c]] + v < 0]
        if not negative:
            return found | {names[c]: found[names[c]] + v for c, v in zip(chosen, change, strict=True)}
        for c in negative:
            found[names[c]], weights[c] = Fraction(0), 0.0
        if not (weights > 0).any():
            break
    raise Refused("the function values cannot be made to cancel")


def _linear_solve(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """The exact solution of a square system."""
    from sympy import QQ
    from sympy.polys.matrices import DomainMatrix
    from sympy.polys.matrices.exceptions import DMNonInvertibleMatrixError

    def rational(v: Fraction) -> Any:
        return QQ(v.numerator, v.denominator)

    k = len(right)
    system = DomainMatrix([[rational(v) for v in row] for row in matrix], (k, k), QQ)
    try:
        solved = system.lu_solve(DomainMatrix([[rational(v)] for v in right], (k, 1), QQ))
    except DMNonInvertibleMatrixError:
        raise Refused("the function values cannot be made to cancel") from None
    return [Fraction(int(v.numerator), int(v.denominator)) for v in solved.to_list_flat()]


def _fraction(name: str, value: Any) -> Fraction:
    try:
        return Fraction(int(value.p), int(value.q)) if hasattr(value, "is_Rational") else Fraction(value)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError, AttributeError):
        raise UsageError(f"{name} must be a fraction, not {value!r}.") from None
