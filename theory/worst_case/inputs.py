"""What callers of a worst case say, checked and as exact numbers."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np

from verify_rates.solvers.method import Method, UsageError, nearest
from verify_rates.solvers.words import Kind, Unsupported
from verify_rates.theory.worst_case.algebra import exact, is_fraction
from verify_rates.theory.worst_case.apart import exact_matrix
from verify_rates.theory.worst_case.classes import FunctionClass, get_class
from verify_rates.theory.worst_case.world import Setting

LARGEST = 1e100  # L in double precision, with room for its powers
CONSTANTS = ("delta", "Delta2", "omega")  # of a compressor's class
MOST_APART = 100  # workers, whose Gram matrix has at least as many rows


def exact_hypers(method: Method, hyper: dict[str, Any]) -> Any:
    """The hyper-parameters checked as for a run; fractions stay fractions, so that coefficients are exact."""
    checked = method.hypers(**hyper)

    def keep(name: str, value: Any) -> Any:
        given = hyper.get(name, value)
        if isinstance(value, list):
            return [exact(g) if is_fraction(g) else v for g, v in zip(given, value, strict=True)]
        return exact(given) if is_fraction(given) and not isinstance(value, int) else value

    return checked._replace(**{name: keep(name, getattr(checked, name)) for name in checked._fields})


def whole(value: Any, name: str, least: int) -> int:
    """A whole number of at least ``least``."""
    number = exact(value)
    if number.denominator != 1 or number < least:
        raise UsageError(f"{name} must be a whole number of at least {least}, not {value!r}.")
    return int(number)


def setting_of(
    functions: Any,
    L: Any,
    mu: Any,
    n: Any,
    compressor: Any,
    d: int | None,
    mixing: Any,
    zeta2_star: Any,
    objective: Any = None,
    random: bool = False,
) -> Setting:
    """What is assumed, checked; UsageError with one sentence where it makes no sense.

    Unbiased compressors are read where ``random`` says so, Unsupported elsewhere.
    """
    given = functions if isinstance(functions, dict) else {"f": functions}
    if not given:
        raise UsageError("functions names no function; give a class, or a dictionary such as {'f': 'convex', 'h': 'indicator'}.")
    parts = [(name, *_class_of(value, L if i == 0 else None, mu if i == 0 else 0)) for i, (name, value) in enumerate(given.items())]
    unit = next((L for _, cls, L, _ in parts if cls.takes_L and not cls.bounded), Fraction(1))  # of gradients in a class without L
    parts = [(name, cls, L if cls.takes_L else max(unit, mu), mu) for name, cls, L, mu in parts]
    (name, cls, L, mu), *others = parts
    minimised = tuple(given if objective is None else objective)
    for item in minimised:
        if item not in given:
            raise nearest(str(item), given, "function")
    for item, other, *_ in parts:
        if others and (other.at_minimiser or (other.linear and item != name)):
            why = "is read of a single function (a quadratic also as the first of several)"
            raise Unsupported(f"the worst case of {item!r}: the class {other.name!r} {why}")
    if zeta2_star is not None:
        zeta2_star = _named("zeta2_star", zeta2_star)
        if zeta2_star < 0:
            raise UsageError(f"zeta2_star must be at least 0, not {float(zeta2_star):g}.")
        if not cls.minimiser:
            if zeta2_star:
                why = "speaks of the gradients at a minimiser, which functions of that class need not have; leave it out."
                raise UsageError(f"zeta2_star {why} (The class is {cls.name!r}.)")
            zeta2_star = None
    workers = None if n == "any" else whole(n, "n", 1)
    spectrum, workers = _spectrum(mixing, workers)
    delta, Delta2, omega = _compressor(compressor, d)
    if omega is not None and not (random and workers is not None):
        why = "they keep a term omega/n, which is read in worst cases of one step, for a number n of workers"
        raise Unsupported(f"the worst case of unbiased compressors: {why}")
    return Setting(cls, L, mu, workers, delta, Delta2, spectrum, zeta2_star, name, tuple(others), minimised, unit, omega)


def with_chance(setting: Setting, method: Method, sigma2: Any, sampled: Any) -> Setting:
    """The same with noise and with workers drawn at random."""
    noise, n = _named("sigma2", sigma2), setting.n
    if noise < 0:
        raise UsageError(f"sigma2 must be at least 0, not {float(noise):g}.")
    if noise and n is None:
        raise UsageError("independent noise keeps a term sigma2/n; give the number n of workers.")
    if sampled is None:
        return dataclasses.replace(setting, sigma2=noise)
    b = whole(sampled, "sampled", 1)
    if n == 1 or (n is None and b > 1):
        raise UsageError("workers are sampled of several; give their number n (any number will do where one is sampled).")
    if n is not None and b > n:
        raise UsageError(f"sampled = {b} exceeds the number n = {n} of workers.")
    own = [name for name, kind in method.kinds.items() if kind in (Kind.PER_WORKER, Kind.PER_WORKER_QUEUE)]
    if own:
        raise Unsupported(f"the worst case of sampled workers: {method.name} keeps {own[0]} on every worker, also on those not drawn")
    return dataclasses.replace(setting, sigma2=noise, sampled=b)


def _class_of(value: Any, L: Any, mu: Any) -> tuple[FunctionClass, Fraction, Fraction]:
    """A class with its constants, from its name or ``(name, L, mu)``; L as None is 1."""
    if isinstance(value, (tuple, list)):
        if not 1 <= len(value) <= 3:
            raise UsageError("a class with constants is written (name, L) or (name, L, mu).")
        value, L, mu = value[0], (value[1] if len(value) > 1 else None), (value[2] if len(value) > 2 else 0)
    cls = get_class(value)
    L, mu = _named("L", 1 if L is None else L), _named("mu", mu)
    if not cls.takes_L:
        if L != 1:
            raise UsageError(f"the class {cls.name!r} has no L; leave it out.")
        L = max(L, mu)  # a unit
    if L <= 0:
        raise UsageError(f"L must be positive, not {float(L):g}.")
    if not 1 / LARGEST <= L <= LARGEST:
        raise UsageError(f"L must lie between {1 / LARGEST:g} and {LARGEST:g}; choose other units.")
    if mu < 0:
        raise UsageError(f"mu must be at least 0, not {float(mu):g}.")
    if mu > L:
        raise UsageError(f"mu = {float(mu):g} exceeds L = {float(L):g}; no function is more convex than it is smooth.")
    if mu and not cls.takes_mu:
        raise UsageError(f"the class {cls.name!r} has no mu; leave it out.")
    return cls, L, mu


def _named(name: str, value: Any) -> Fraction:
    try:
        return exact(value)
    except UsageError:
        raise UsageError(f"{name} must be a finite number, not {value!r}.") from None


def kept_apart(setting: Setting, mixing: Any, apart: bool) -> Setting:
    """The same with workers kept apart, where asked for or where a matrix is given."""
    matrix = np.ndim(mixing) == 2
    if not (apart or matrix):
        return setting
    if setting.n in (None, 1):
        raise UsageError("workers are kept apart where there are several; give their number n.")
    if setting.n > MOST_APART:
        raise UsageError(f"at most {MOST_APART} workers are kept apart, not {setting.n}: the problem grows with n.")
    if (
        setting.others
        or setting.functions.linear
        or setting.functions.at_minimiser
        or setting.omega is not None
        or setting.sigma2
        or setting.sampled
    ):
        raise Unsupported("the worst case of workers kept apart: they have one class of functions each, and nothing random of their own")
    known = matrix or hasattr(mixing, "W")
    if mixing is not None and not known:
        if not isinstance(mixing, str):
            raise UsageError("workers kept apart mix by a matrix; give it, or a topology.")
        from verify_rates.solvers.topologies import get_topology

        mixing = get_topology(mixing, setting.n)
    return dataclasses.replace(setting, apart=True, W=None if mixing is None else exact_matrix(mixing, setting.n))


def _compressor(compressor: Any, d: int | None) -> tuple[Fraction | None, Fraction | None, Fraction | None]:
    """delta, Delta2 and omega, each None where it is not given."""
    if compressor is None:
        return None, None, None
    if isinstance(compressor, str):
        from verify_rates.solvers.compressors import get_compressor

        compressor = get_compressor(compressor)
    if hasattr(compressor, "constants"):
        if d is None:
            raise UsageError(f"the constants of compressor {compressor.name!r} depend on the dimension; give d.")
        constants = compressor.constants(whole(d, "d", 1))
        if "delta" in constants or "Delta2" in constants:  # read for any number of steps
            constants = {k: v for k, v in constants.items() if k != "omega"}
    else:
        constants = dict(compressor)
    for name in constants:
        if name not in CONSTANTS:
            raise nearest(name, CONSTANTS, "compressor constant")
    if not constants:
        raise UsageError("a compressor is given by delta, Delta2 or omega; an empty class cannot be used.")
    delta, Delta2, omega = (None if constants.get(k) is None else _named(k, constants[k]) for k in CONSTANTS)
    if delta is not None and not 0 < delta <= 1:
        raise UsageError(f"delta must lie in (0, 1], not {float(delta):g}.")
    if Delta2 is not None and Delta2 < 0:
        raise UsageError(f"Delta2 must be at least 0, not {float(Delta2):g}.")
    if omega is not None and omega < 0:
        raise UsageError(f"omega must be at least 0, not {float(omega):g}.")
    return delta, Delta2, omega


def _spectrum(mixing: Any, n: int | None) -> tuple[tuple[Fraction, Fraction] | None, int | None]:
    """Eigenvalues on deviations, and the number of workers (a topology knows its own)."""
    if mixing is None:
        return None, n
    if isinstance(mixing, str):
        from verify_rates.solvers.topologies import get_topology

        mixing = get_topology(mixing, n)
    if np.ndim(mixing) == 2:
        spectrum = np.linalg.eigvalsh(np.array(exact_matrix(mixing, n), float)).clip(-1.0, 1.0)
        return (exact(spectrum[0]), exact(spectrum[-2:][0])), len(spectrum)
    if hasattr(mixing, "spectrum"):
        if n not in (None, mixing.n):
            raise UsageError(f"n = {n} workers do not fit a topology of {mixing.n}.")
        values = [*map(float, mixing.spectrum)]
        low, high = (exact(values[0]), exact(values[-2])) if len(values) > 1 else (Fraction(0), Fraction(0))
        return (low, high), mixing.n
    if isinstance(mixing, (tuple, list)):
        if len(mixing) != 2:
            raise UsageError("mixing is one number lam or a pair (lmin, lmax).")
        low, high = (_named("mixing", v) for v in mixing)
    else:
        high = _named("mixing", mixing)
        if high < 0:
            raise UsageError("lam must be at least 0; give (lmin, lmax) for a range of eigenvalues.")
        low = -high
    if not -1 <= low <= high <= 1:
        raise UsageError("eigenvalues of a mixing matrix lie in [-1, 1], the smaller first.")
    return (low, high), n
