"""What a method is: a step function with its state, its hyper-parameters and its name, found by discovery."""

from __future__ import annotations

import difflib
import importlib
import inspect
import math
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, get_args, get_type_hints

from verify_rates.solvers.words import Kind

_REGISTRY: dict[str, Method] = {}
MOST_LISTED = 30  # names in one sentence


class UsageError(ValueError):
    """Bad input; the message is one sentence that says what is wrong and what is allowed (exit code 2)."""


def nearest(name: str, known: Iterable[str], what: str) -> UsageError:
    """The error for an unknown name, with the closest known ones."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    listed = ", ".join(known[:MOST_LISTED]) + (", ..." if len(known) > MOST_LISTED else "")
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"known are {listed or 'none'}."
    return UsageError(f"unknown {what} {name!r}; {hint}")


def home(fn: Any) -> str:
    """Where a function was defined: its file, or "__main__" for a notebook or a session, where every cell may define it anew.

    >>> home(nearest).endswith("method.py")
    True
    """
    fn = inspect.unwrap(getattr(fn, "py_func", fn))
    code = getattr(fn, "__code__", None)
    return "__main__" if getattr(fn, "__module__", "") == "__main__" or code is None else code.co_filename


@dataclass(frozen=True)
class Method:
    """A distributed optimisation method, written once.

    Attributes
    ----------
    name : unique name, as on the command line.
    step : ``step(s, w, h, t) -> State``, a pure function in the words of :mod:`verify_rates.solvers.words`.
    state : NamedTuple class of the fields, annotated ``Shared``, ``PerWorker``, ``SharedQueue`` or ``PerWorkerQueue``.
    hyper : NamedTuple class of the hyper-parameters, annotated ``float`` or ``int``; fields may have defaults.
    start : the fields that start at ``x0``; all others start at zero.
    rounds : steps that make one communication round, a function of ``h``.
    paper : slug of the paper it comes from.
    """

    name: str
    step: Callable[..., Any]
    state: Any
    hyper: Any
    start: tuple[str, ...] = ("x",)
    rounds: Callable[[Any], float] = field(default=lambda h: 1)
    paper: str = ""

    def __call__(self, s: Any, w: Any, h: Any, t: int) -> Any:
        return self.step(s, w, h, t)

    @property
    def doc(self) -> str:
        return inspect.getdoc(self.step) or ""

    @property
    def kinds(self) -> dict[str, Kind]:
        """Kind of every state field, in order."""
        hints = get_type_hints(self.state, include_extras=True)
        return {name: get_args(hints[name])[1] for name in self.state._fields}

    def hypers(self, **values: Any) -> Any:
        """The hyper-parameters as a NamedTuple; UsageError on an unknown, missing, non-finite or fractional one.

        A value may be a number, a schedule ``t -> number`` or a sequence indexed by ``t`` (``tau`` is always a number).
        """
        for name in values:
            if name not in self.hyper._fields:
                raise nearest(name, self.hyper._fields, f"hyper-parameter of {self.name}")
        missing = [f for f in self.hyper._fields if f not in values and f not in self.hyper._field_defaults]
        if missing:
            raise UsageError(f"{self.name} needs {', '.join(missing)}; its hyper-parameters are {', '.join(self.hyper._fields)}.")
        hints = get_type_hints(self.hyper)
        return self.hyper(**{k: _checked(self.name, k, v, hints[k] is int) for k, v in values.items()})

    def initial(self, world: Any, x0: Any, zeros: Callable[[Kind], Any]) -> Any:
        """The first state: fields in ``start`` at ``x0`` (spread where per-worker), the others ``zeros(kind)``."""

        def value(name: str, kind: Kind) -> Any:
            if name not in self.start:
                return zeros(kind)
            return x0 if kind is Kind.SHARED else world.spread(x0)

        return self.state(**{name: value(name, kind) for name, kind in self.kinds.items()})


def _checked(method: str, name: str, value: Any, whole: bool) -> Any:
    if callable(value) and name != "tau":
        return value
    if hasattr(value, "__len__") and name != "tau":
        return [_checked(method, name, v, whole) for v in value]
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise UsageError(f"{name} of {method} must be a number, not {value!r}.") from None
    if not math.isfinite(number):
        raise UsageError(f"{name} of {method} must be finite, not {value!r}.")
    least = {"H": 1, "tau": 0}.get(name, 0)
    if number < least:
        raise UsageError(f"{name} of {method} must be at least {least}, not {value!r}.")
    if whole and number != int(number):
        raise UsageError(f"{name} of {method} must be a whole number, not {value!r}.")
    return int(number) if whole else number


def at(h: Any, t: int) -> Any:
    """The hyper-parameters of step ``t``: schedules resolved to numbers."""

    def now(v: Any) -> Any:
        if callable(v):
            return float(v(t))
        return v[t] if isinstance(v, list) else v

    return h if not any(callable(v) or isinstance(v, list) for v in h) else type(h)(*map(now, h))


def method(
    *,
    state: Any,
    hyper: Any,
    name: str | None = None,
    start: tuple[str, ...] = ("x",),
    rounds: Callable[[Any], float] | None = None,
    paper: str = "",
) -> Callable[[Callable[..., Any]], Method]:
    """Register a step function as a method; see :class:`Method` for the arguments."""

    def register(step: Callable[..., Any]) -> Method:
        made = Method(name or step.__name__, step, state, hyper, start, rounds or (lambda h: 1), paper)
        for fieldname, kind in made.kinds.items():
            if not isinstance(kind, Kind):
                raise UsageError(f"field {fieldname!r} of {made.name} must be annotated Shared, PerWorker, SharedQueue or PerWorkerQueue.")
        known = _REGISTRY.get(made.name)
        if known is not None and home(known.step) != home(step):
            raise UsageError(f"a method named {made.name!r} exists already; choose another name.")
        _REGISTRY[made.name] = made
        return made

    return register


def methods() -> dict[str, Method]:
    """All methods by name: those in ``solvers/methods/`` and those registered by the user's files."""
    from verify_rates.solvers import methods as folder

    for module in pkgutil.iter_modules(folder.__path__):
        importlib.import_module(f"{folder.__name__}.{module.name}")
    return dict(sorted(_REGISTRY.items()))


def get_method(name: str | Method) -> Method:
    """The method of that name; UsageError with the nearest match when there is none."""
    if isinstance(name, Method):
        return name
    known = _REGISTRY if name in _REGISTRY else methods()  # reading the folder takes milliseconds
    if name not in known:
        raise nearest(name, known, "method")
    return known[name]
