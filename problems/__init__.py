"""What methods run on: objectives with exactly known constants, data loading and sharding."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any

_COMPILED = {"kernels", "custom_kernels", "nonconvex_kernels"}  # imported by ``compiled()`` alone, because Numba takes a second


def problems() -> dict[str, Any]:
    """All problem families by name, and the problems that a user's file has made with ``make_problem``.

    >>> "quadratic" in problems()
    True
    """
    from verify_rates.problems.base import FAMILIES

    for module in pkgutil.iter_modules(__path__):
        if module.name not in _COMPILED:
            importlib.import_module(f"{__name__}.{module.name}")
    return dict(sorted(FAMILIES.items()))


def get_problem(name: Any, **options: Any) -> Any:
    """A problem by name and options, or the problem itself.

    Parameters
    ----------
    name : a family of :func:`problems`, or an object that follows :class:`verify_rates.solvers.oracle.Oracle`.
    options : of the family; ``get_problem(**problem.describe())`` makes a problem again.

    Errors: UsageError for an unknown name or option (with the nearest known ones), or for options beside an object.

    >>> get_problem("quadratic", n=2, d=3, L=4.0).constants.L
    4.0
    """
    from verify_rates.solvers.method import UsageError, nearest

    if not isinstance(name, str):
        if options:
            raise UsageError(f"options ({', '.join(options)}) go with a problem's name, not with a problem that exists already.")
        return _checked(name)
    known = problems()
    if name not in known:
        raise nearest(name, known, "problem")
    family: Any = known[name]
    if not inspect.isclass(family):
        if options:
            fixed = f"it has n = {family.n} and d = {family.d}"
            raise UsageError(f"problem {name} of your file takes no options ({', '.join(options)}); {fixed}.")
        return family
    import dataclasses

    allowed = [f.name for f in dataclasses.fields(family) if f.init]  # type: ignore[arg-type]
    for option in options:
        if option not in allowed:
            raise nearest(option, allowed, f"option of {name}")
    return family(**options)


def _checked(problem: Any) -> Any:
    from verify_rates.solvers.method import UsageError

    missing = [a for a in ("name", "n", "d", "constants", "value", "grads") if not hasattr(problem, a)]
    if missing:
        raise UsageError(f"a problem needs name, n, d, constants, value and grads; {type(problem).__name__} lacks {', '.join(missing)}.")
    return problem
