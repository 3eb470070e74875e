"""A user's value and gradient functions as kernels; imported by ``compiled()`` alone, because Numba takes a second."""

from __future__ import annotations

from typing import Any

import numpy as np

from verify_rates.problems.kernels import _add_noise
from verify_rates.solvers.engine.own_kernels import compiled, fixed
from verify_rates.solvers.engine.signatures import GRAD, VALUE
from verify_rates.solvers.words import Unsupported


def gradient_kernel(problem: Any) -> Any:
    """The kernel of a problem's gradient function, with its additive noise."""
    if problem.noise == "own":
        if not problem.rowwise:
            raise Unsupported(
                f"compiled run of {problem.name!r}: grads(X, gens) draws by itself; give grad(i, x, gen) or a kernel, "
                "or engine='numpy' runs it as it is"
            )
        kernel = _drawing(compiled(problem.gradient_function))
    else:
        kernel = (_by_row if problem.rowwise else _all_at_once)(compiled(problem.gradient_function), problem.n)
    return fixed(GRAD, kernel, f"problem {problem.name!r}")


def value_kernel(problem: Any) -> Any:
    """The kernel of a problem's value function: f(x) for every worker, whose mean is f(x)."""
    f = compiled(problem.value_function)

    def kernel(data, i, x):
        return float(f(x.copy()))

    return fixed(VALUE, kernel, f"problem {problem.name!r}")


def _by_row(g: Any, n: int) -> Any:
    def kernel(data, i, x, gen, exact, out):
        out[:] = g(i, x.copy())
        _add_noise(data.params, gen, exact, out)

    return kernel


def _drawing(g: Any) -> Any:
    def kernel(data, i, x, gen, exact, out):
        if exact:
            out[:] = g(i, x.copy(), None)
        else:
            out[:] = g(i, x.copy(), gen)

    return kernel


def _all_at_once(g: Any, n: int) -> Any:
    def kernel(data, i, x, gen, exact, out):
        X = np.empty((n, x.size))
        for k in range(n):
            X[k] = x
        out[:] = g(X)[i]
        _add_noise(data.params, gen, exact, out)

    return kernel
