"""Bring your own problem: value and gradients as functions, constants declared and spot-checked."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from verify_rates.problems.base import ADDITIVE, FAMILIES, Problem, filled, host, number
from verify_rates.problems.checks import check_constants
from verify_rates.solvers.engine.arrays import to_host
from verify_rates.solvers.method import UsageError, home, nearest
from verify_rates.solvers.oracle import Constants, Data
from verify_rates.solvers.own import called, vectors

KERNEL_RTOL = 1e-12  # a kernel may sum in another order than the array code; the engines agree to this


@dataclass(kw_only=True, eq=False)
class Custom(Problem):
    """A problem made of a user's functions; see :func:`make_problem`."""

    noises: ClassVar[tuple[str, ...]] = (*ADDITIVE, "own")
    label: str
    dimension: int
    value_function: Callable[[np.ndarray], float]
    gradient_function: Callable[..., np.ndarray]
    rowwise: bool  # the gradient function takes (i, x), one worker's point, and not all points at once
    declared: Constants
    kernel: Any = None
    kernel_data: Data | None = None
    value_kernel: Any = None

    def _check(self) -> None:
        self.name = self.label  # type: ignore[misc]
        self.d = number("d", self.dimension, 1, whole=True)
        if self.kernel is not None and self.noise in ("gaussian", "two_point"):
            raise UsageError(f"{self.name} has a kernel, which draws its own noise: give grads(x, gens) instead of sigma2.")

    def _constants(self) -> Constants:
        return self.declared

    @property
    def home(self) -> str:
        """The file that made it."""
        return home(self.value_function)

    @property
    def doc(self) -> str:
        """The value function's docstring, which is the problem's."""
        return inspect.getdoc(self.value_function) or f"{self.name}, n = {self.n} workers in dimension d = {self.d}."

    def value(self, x: np.ndarray) -> float:
        """``f(x)``, by the user's function."""
        what, point = f"value of {self.name}", np.array(host(x))
        return float(vectors(what, called(what, self.value_function, point), (), point))

    def _full(self, x: Any, xp: Any) -> Any:
        return self._call(x, xp, None)

    def _sampled(self, x: Any, gens: list[np.random.Generator], xp: Any) -> Any:
        return self._call(x, xp, gens)

    def _call(self, x: Any, xp: Any, gens: Any) -> Any:
        point = host(to_host(x))
        points = np.array(point if point.ndim == 2 else np.tile(point, (self.n, 1)))  # a copy: the function may write on it
        if not self.rowwise:
            what = f"grads of {self.name}"
            given = called(what, self.gradient_function, points, *([] if gens is None else [gens]))
            return xp.asarray(vectors(what, given, (self.n, self.d), point))
        what, own = f"grad of {self.name}", self.noise == "own"
        rows = [called(what, self.gradient_function, i, v, *([gens and gens[i]] if own else [])) for i, v in enumerate(points)]
        return xp.asarray(np.stack([vectors(what, row, (self.d,), v) for row, v in zip(rows, points, strict=True)]))

    def compiled(self) -> tuple[Any, Data]:
        """The user's kernel and data, or the functions compiled; Unsupported where Numba cannot compile them."""
        return self._kernels[:2]

    def compiled_value(self) -> Any:
        """The user's kernel of values, or one that gives f(x), the mean over the workers, for each of them."""
        return self._kernels[2]

    @cached_property
    def _kernels(self) -> tuple[Any, Data, Any]:
        from verify_rates.problems.custom_kernels import gradient_kernel, value_kernel

        slots = self.kernel_data if self.kernel is not None else filled(params=np.array(self._noise_code()))
        gradient = self.kernel if self.kernel is not None else gradient_kernel(self)
        made = gradient, slots, self.value_kernel if self.value_kernel is not None else value_kernel(self)
        self._compare(*made)
        return made  # type: ignore[return-value]

    def _noise_code(self) -> list[float]:
        return [{"gaussian": 1.0, "two_point": 2.0}.get(str(self.noise), 0.0), 0.0, *self._levels, self.p]

    def _compare(self, gradient: Any, data: Any, value: Any) -> None:
        """UsageError where a kernel and the function that it stands for differ at a point."""
        rng = np.random.default_rng(0)
        x = rng.standard_normal(self.d)
        expected, out = self.grads(x), np.empty(self.d)
        size = KERNEL_RTOL * (1 + np.abs(expected).max())
        for i in range(self.n):
            gradient(data, i, x, rng, True, out)
            if not np.abs(out - expected[i]).max() <= size:
                raise UsageError(f"{self.name} fails a spot check: its kernel and grads differ for worker {i}.")
        mean, told = float(np.mean([value(data, i, x) for i in range(self.n)])), self.value(x)
        if not abs(mean - told) <= KERNEL_RTOL * (1 + abs(told)):
            raise UsageError(f"{self.name} fails a spot check: the mean of its value kernel is {mean:.10g}, but its value {told:.10g}.")

    def describe(self) -> dict[str, Any]:
        """Its name: the file that makes it must be loaded to find it again."""
        return {"name": self.name}


def make_problem(
    name: str,
    n: int,
    d: int,
    value: Callable[[np.ndarray], float],
    grads: Callable[..., np.ndarray] | None = None,
    constants: Constants | Mapping[str, Any] | None = None,
    *,
    grad: Callable[..., np.ndarray] | None = None,
    kernel: Any = None,
    data: Data | Mapping[str, Any] | None = None,
    value_kernel: Any = None,
    check: bool = True,
    **noise: Any,
) -> Custom:
    """Make a problem of your own functions, spot-check it, and register it under its name for ``get_problem``.

    Parameters
    ----------
    value : ``value(x) -> f(x)``, x of shape (d,), f the mean over the workers.
    grad : ``grad(i, x) -> (d,)``: worker i's gradient at its point x, (d,); with a third parameter, ``grad(i, x, gen)``, it draws its
        own noise from ``gen``, and is exact where gen is None.
    grads : in its place, all workers at once: ``grads(X) -> (n, d)``, X of shape (n, d): worker i's gradient at its own point X[i];
        with a second parameter, ``grads(X, gens=None)``, it draws its own noise from ``gens[i]``, and is exact where gens is None.
    constants : :class:`~verify_rates.solvers.oracle.Constants`, or a dict with at least L, mu and f_star (a number or an interval).
        Left out: L_max and mu_min are those of f for one worker, else inf and -inf; noise and heterogeneity unknown (0 where there
        cannot be any); convex is ``mu >= 0``.
    kernel, data, value_kernel : the compiled engine compiles value and grad where Numba can (grads as well, but then every worker's
        gradient costs those of all); where it cannot, or to be faster, give kernels of the signatures GRAD and VALUE in
        ``solvers/engine/signatures.py``; data: the slots of :class:`~verify_rates.solvers.oracle.Data` that they read.  Before the
        first run they are compared with value and grad.
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
    if not isinstance(name, str) or not name.isidentifier():
        raise UsageError(f"a problem's name must be one word of letters, digits and underscores, not {name!r}.")
    n = number("n", n, 1, whole=True)
    for option in noise:
        if option not in ("noise", "sigma2", "p"):
            raise nearest(option, ("noise", "sigma2", "p"), "option of make_problem")
    function, rowwise, own = _gradient(name, grads, grad)
    if own and noise:
        raise UsageError(f"the gradients of {name} draw their own noise from the generators; leave out {', '.join(noise)}.")
    problem = Custom(
        label=name,
        dimension=d,
        n=n,
        value_function=value,
        gradient_function=function,
        rowwise=rowwise,
        declared=_declared(name, n, own, constants),
        kernel=kernel,
        kernel_data=data if isinstance(data, Data) else filled(**(data or {})),
        value_kernel=value_kernel,
        **({"noise": "own"} if own else noise),
    )
    _free(name, problem.home)
    if check:
        _spot_check(problem)
    FAMILIES[name] = problem
    return problem


def _free(name: str, file: str) -> None:
    from verify_rates.problems import problems

    known = problems().get(name)
    if inspect.isclass(known):
        raise UsageError(f"a problem family named {name!r} exists already; choose another name.")
    if known is not None and known.home != file:
        raise UsageError(f"a problem named {name!r} exists already, from another file; choose another name.")


def _gradient(name: str, grads: Any, grad: Any) -> tuple[Any, bool, bool]:
    """``(function, whether it takes one worker's point, whether it draws its own noise)``."""
    if (grads is None) == (grad is None):
        raise UsageError(f"give {name} either grad(i, x), one worker's gradient, or grads(X), those of all workers.")
    function, rowwise = (grads, False) if grad is None else (grad, True)
    if not callable(function):
        raise UsageError(f"{'grad' if rowwise else 'grads'} of {name} must be a function, not {function!r}.")
    count = len(inspect.signature(getattr(function, "py_func", function)).parameters)
    least = 2 if rowwise else 1
    if not least <= count <= least + 1:
        allowed = "grad(i, x) or grad(i, x, gen)" if rowwise else "grads(X) or grads(X, gens)"
        raise UsageError(f"the gradients of {name} are {allowed}, not a function of {count} parameters.")
    return function, rowwise, count > least


def _declared(name: str, n: int, own: bool, constants: Constants | Mapping[str, Any] | None) -> Constants:
    if constants is None:
        raise UsageError(f"{name} needs its constants, at least L, mu and f_star, as in constants={{'L': 1, 'mu': 0.1, 'f_star': 0}}.")
    if not isinstance(constants, (Constants, Mapping)):
        raise UsageError(f"constants of {name} must be a Constants or a dict, not {type(constants).__name__}.")
    given = dict(constants._asdict() if isinstance(constants, Constants) else constants)
    for key in given:
        if key not in Constants._fields:
            raise nearest(key, Constants._fields, "constant")
    missing = [key for key in ("L", "mu", "f_star") if key not in given]
    if missing:
        raise UsageError(f"constants of {name} lack {', '.join(missing)}; L, mu and f_star are needed.")
    for key in ("L", "mu", "L_max", "mu_min", "sigma2_star", "sigma2_sup", "zeta2_star", "zeta2_sup", "mu_pl"):
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
    ends = made.f_star if isinstance(made.f_star, (tuple, list, np.ndarray)) else (made.f_star, made.f_star)
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
    if problem.kernel is not None:
        problem.compiled()  # compares it with the functions
