"""Bring your own problem: value and gradients as functions, constants declared and spot-checked."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from verify_rates.problems.base import ADDITIVE, FAMILIES, Problem, filled, host, number
from verify_rates.problems.checks import check_constants
from verify_rates.solvers.engine.arrays import to_host
from verify_rates.solvers.method import UsageError, nearest
from verify_rates.solvers.oracle import Constants, Data
from verify_rates.solvers.words import Unsupported

KERNEL_RTOL = 1e-12  # a kernel may sum in another order than the array code; the engines agree to this


@dataclass(kw_only=True, eq=False)
class Custom(Problem):
    """A problem made of a user's functions; see :func:`make_problem`."""

    noises: ClassVar[tuple[str, ...]] = (*ADDITIVE, "own")
    label: str
    dimension: int
    value_function: Callable[[np.ndarray], float]
    gradient_function: Callable[..., np.ndarray]
    declared: Constants
    kernel: Any = None
    kernel_data: Data | None = None

    def _check(self) -> None:
        self.name = self.label  # type: ignore[misc]
        self.d = number("d", self.dimension, 1, whole=True)
        if self.kernel is not None and self.noise in ("gaussian", "two_point"):
            raise UsageError(f"{self.name} has a kernel, which draws its own noise: give grads(x, gens) instead of sigma2.")

    def _constants(self) -> Constants:
        return self.declared

    def value(self, x: np.ndarray) -> float:
        """``f(x)``, by the user's function."""
        return float(self.value_function(host(x)))

    def _full(self, x: Any, xp: Any) -> Any:
        return self._call(x, xp)

    def _sampled(self, x: Any, gens: list[np.random.Generator], xp: Any) -> Any:
        return self._call(x, xp, gens)

    def _call(self, x: Any, xp: Any, *gens: Any) -> Any:
        point = host(to_host(x))
        g = np.asarray(self.gradient_function(point if point.ndim == 2 else np.tile(point, (self.n, 1)), *gens), dtype=np.float64)
        if g.shape != (self.n, self.d):
            raise UsageError(f"grads of {self.name} must return shape ({self.n}, {self.d}), not {g.shape}.")
        return xp.asarray(g)

    def compiled(self) -> tuple[Any, Data]:
        """The user's kernel and data."""
        if self.kernel is None:
            raise Unsupported(f"compiled run of {self.name!r}: it has no kernel; give one to make_problem, or use the array engine")
        return self.kernel, self.kernel_data  # type: ignore[return-value]

    def describe(self) -> dict[str, Any]:
        """Its name: the file that makes it must be loaded to find it again."""
        return {"name": self.name}


def make_problem(
    name: str,
    n: int,
    d: int,
    value: Callable[[np.ndarray], float],
    grads: Callable[..., np.ndarray],
    constants: Constants | Mapping[str, Any],
    kernel: Any = None,
    data: Data | Mapping[str, Any] | None = None,
    value_kernel: Any = None,
    check: bool = True,
    **noise: Any,
) -> Custom:
    """Make a problem of your own functions, spot-check it, and register it under its name for ``get_problem``.

    Parameters
    ----------
    value : ``value(x) -> f(x)``, x of shape (d,).
    grads : ``grads(X) -> (n, d)``, X of shape (n, d): worker i's gradient at its own point X[i]; with a second parameter,
        ``grads(X, gens=None)``, it draws its own noise from ``gens[i]``, and is exact where gens is None.
    constants : :class:`~verify_rates.solvers.oracle.Constants`, or a dict with at least L, mu and f_star (a number or an interval).
        Left out: L_max and mu_min are those of f for one worker, else inf and -inf; noise and heterogeneity unknown (0 where there
        cannot be any); convex is ``mu >= 0``.
    kernel, data, value_kernel : for the compiled engine, of the signatures GRAD and VALUE in ``solvers/engine/signatures.py``; data:
        the slots of :class:`~verify_rates.solvers.oracle.Data` that they read.
    check : spot-check gradients, constants and kernel now (:func:`~verify_rates.problems.checks.check_constants`).
    noise : ``sigma2``, ``noise``, ``p`` for additive noise.

    Errors: UsageError for a taken name, missing or contradictory constants, and for the first spot check that fails.

    >>> f = make_problem("parabola", 2, 3, lambda x: float(x @ x), lambda X: 2 * X, {"L": 2, "mu": 2, "L_max": 2, "mu_min": 2, "f_star": 0})
    >>> f.grads(np.ones(3)).shape
    (2, 3)
    >>> from verify_rates.problems import get_problem
    >>> get_problem("parabola") is f
    True
    """
    _free(name)
    n = number("n", n, 1, whole=True)
    for option in noise:
        if option not in ("noise", "sigma2", "p"):
            raise nearest(option, ("noise", "sigma2", "p"), "option of make_problem")
    own = len(inspect.signature(grads).parameters) > 1
    if own and noise:
        raise UsageError(f"grads of {name} takes gens and so draws its own noise; leave out {', '.join(noise)}.")
    declared = _declared(name, n, own, constants)
    slots = data if isinstance(data, Data) else filled(**(data or {}))
    options = {"noise": "own"} if own else noise
    problem = Custom(
        label=name,
        dimension=d,
        n=n,
        value_function=value,
        gradient_function=grads,
        declared=declared,
        kernel=kernel,
        kernel_data=slots,
        **options,
    )
    if value_kernel is not None:
        problem.compiled_value = lambda: value_kernel  # type: ignore[attr-defined] # the engine asks whether there is one
    if check:
        _spot_check(problem)
    FAMILIES[name] = problem
    return problem


def _free(name: str) -> None:
    from verify_rates.problems import problems

    if not isinstance(name, str) or not name.isidentifier():
        raise UsageError(f"a problem's name must be one word of letters, digits and underscores, not {name!r}.")
    if inspect.isclass(problems().get(name)):
        raise UsageError(f"a problem family named {name!r} exists already; choose another name.")


def _declared(name: str, n: int, own: bool, constants: Constants | Mapping[str, Any]) -> Constants:
    if not isinstance(constants, (Constants, Mapping)):
        raise UsageError(f"constants of {name} must be a Constants or a dict, not {type(constants).__name__}.")
    given = dict(constants._asdict() if isinstance(constants, Constants) else constants)
    for key in given:
        if key not in Constants._fields:
            raise nearest(key, Constants._fields, "constant")
    missing = [key for key in ("L", "mu", "f_star") if key not in given]
    if missing:
        raise UsageError(f"constants of {name} lack {', '.join(missing)}; L, mu and f_star are needed.")
    for key in ("L", "mu", "L_max", "mu_min", "sigma2_star", "sigma2_sup", "zeta2_star", "zeta2_sup"):
        if given.get(key) is not None:
            given[key] = _bound(key, given[key])
    one = n == 1
    quiet = None if own else 0.0
    defaults = {
        "L_max": given["L"] if one else math.inf,
        "mu_min": given["mu"] if one else -math.inf,
        "sigma2_star": quiet,
        "sigma2_sup": quiet,
        "zeta2_star": 0.0 if one else None,
        "zeta2_sup": 0.0 if one else None,
        "x_star": None,
        "convex": given["mu"] >= 0,
    }
    made = Constants(**{**defaults, **given})
    ends = made.f_star if isinstance(made.f_star, (tuple, list)) else (made.f_star, made.f_star)
    if len(ends) != 2:
        raise UsageError(f"f_star of {name} must be a number or an interval of two, not {made.f_star!r}.")
    x_star = None if made.x_star is None else np.array(made.x_star, dtype=float)
    if x_star is not None and not np.all(np.isfinite(x_star)):
        raise UsageError(f"x_star of {name} must be finite.")
    return made._replace(f_star=(_bound("f_star", ends[0]), _bound("f_star", ends[1])), x_star=x_star, convex=bool(made.convex))


def _bound(key: str, value: Any) -> float:
    try:
        x = float(value)
    except (TypeError, ValueError):
        raise UsageError(f"{key} must be a number, not {value!r}.") from None
    if math.isnan(x):
        raise UsageError(f"{key} must not be NaN; leave it out where it is unknown.")
    if x < 0 and key not in ("mu", "mu_min", "f_star"):
        raise UsageError(f"{key} must be at least 0, not {value!r}.")
    return x


def _spot_check(problem: Custom) -> None:
    x = problem.constants.x_star
    if x is not None and x.shape != (problem.d,):
        raise UsageError(f"x_star of {problem.name} must have shape ({problem.d},), not {x.shape}.")
    for finding in check_constants(problem):
        raise UsageError(f"{problem.name} fails a spot check: {finding}")
    if problem.kernel is None:
        return
    kernel, data = problem.compiled()
    rng = np.random.default_rng(0)
    x = rng.standard_normal(problem.d)
    expected, out = problem.grads(x), np.empty(problem.d)
    for i in range(problem.n):
        kernel(data, i, x, rng, True, out)
        if not np.abs(out - expected[i]).max() <= KERNEL_RTOL * (1 + np.abs(expected).max()):
            raise UsageError(f"{problem.name} fails a spot check: its kernel and grads differ for worker {i}.")
