"""Is what a user declares of a compressor or a problem true?  Tested before a claim rests on it, once for each object."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from verify_rates.solvers.method import UsageError
from verify_rates.solvers.own import is_own

BROKEN = "a declaration is wrong"  # how the status of a check begins that rests on one


class Broken(Exception):
    """A declared class or constant was contradicted; the message is the sentence with the vector's numbers."""


def vouch(problem: Any, compressor: Any = None, *, kernels: bool = True) -> None:
    """Test the constants of a user's problem and the class of a user's compressor; what the package ships has its own tests.

    Parameters
    ----------
    kernels : also compare compiled versions with the functions, as a run on the compiled engine needs.

    Raises
    ------
    Broken : a vector contradicts a declaration.
    UsageError : a function fails, returns another shape or NaN, or does not repeat itself.

    >>> from verify_rates.problems import get_problem
    >>> vouch(get_problem("quadratic"), None)
    """
    sentence = _problem(problem) if is_own(problem) else None
    if sentence is None and is_own(compressor):
        sentence = _compressor(compressor, problem.d, False) or (_compressor(compressor, problem.d, True) if kernels else None)
    if sentence:
        raise Broken(sentence)


@lru_cache(maxsize=64)
def _problem(problem: Any) -> str | None:
    from verify_rates.problems.checks import check_constants

    return next((f"of problem {problem.name}, {finding}" for finding in check_constants(problem)), None)


@lru_cache(maxsize=64)
def _compressor(compressor: Any, d: int, kernel: bool) -> str | None:
    from verify_rates.solvers.compressor_check import check_compressor

    try:
        compressor.constants(d)
    except UsageError:
        return None  # it does not go with this dimension, which the run will say
    return next((str(violation) for violation in check_compressor(compressor, d, kernel=kernel)), None)
