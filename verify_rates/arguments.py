"""Text of the command line as values: numbers by the safe parser, ``key=value`` pairs, problems by name and options."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from verify_rates.solvers.method import UsageError


def number(text: str, known: Mapping[str, float] | None = None, what: str = "a value") -> float:
    """A number, or an expression in the standard letters whose values are ``known``; text is parsed, never evaluated.

    >>> number("1e-3"), number("2/(L+mu)", {"L": 3.0, "mu": 1.0})
    (0.001, 0.5)
    >>> number("nan")
    Traceback (most recent call last):
    ...
    verify_rates.solvers.method.UsageError: a value must be a finite number, not 'nan'.
    """
    try:
        value = float(text)
    except ValueError:
        from verify_rates.theory.symbols import number as evaluated

        try:
            return evaluated(text, known or {})
        except UsageError as e:
            raise UsageError(f"{what} cannot be read: {e}") from None
    if not math.isfinite(value) or "_" in text:
        raise UsageError(f"{what} must be a finite number, not {text!r}.")
    return value


def split(pairs: Iterable[str]) -> dict[str, str]:
    """Texts ``key=value`` as a dict; UsageError for one that is malformed or given twice.

    >>> split(["gamma=0.1", "tau=2"])
    {'gamma': '0.1', 'tau': '2'}
    """
    found: dict[str, str] = {}
    for pair in pairs:
        key, sign, value = (part.strip() for part in pair.partition("="))
        if not (sign and value and key.isidentifier()):
            raise UsageError(f"{pair!r} is not of the form key=value, as in gamma=0.1.")
        if key in found:
            raise UsageError(f"{key} is given twice; give every key once.")
        found[key] = value
    return found


def hyper(pairs: Iterable[str], known: Mapping[str, float | None] | None = None) -> dict[str, float]:
    """Hyper-parameters from ``key=value`` texts; a value may use the known constants and the keys before it.

    >>> hyper(["gamma=1/L", "beta=gamma/2"], {"L": 4})
    {'gamma': 0.25, 'beta': 0.125}
    """
    given = {k: v for k, v in (known or {}).items() if v is not None and math.isfinite(v)}
    found: dict[str, float] = {}
    for key, text in split(pairs).items():
        found[key] = number(text, given | found, key)
    return found


def option(text: str) -> Any:
    """A problem's option: a truth value, None, a whole number, a number, or the text itself.

    >>> [option(t) for t in ("true", "none", "10", "1e-3", "digits")]
    [True, None, 10, 0.001, 'digits']
    """
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def problem(spec: str, **more: Any) -> Any:
    """The problem of a text such as ``quadratic(L=1, mu=0.1, n=4)`` or ``logistic:data=digits``, with further options.

    >>> problem("quadratic(L=2, mu=0.5)", n=3).n
    3
    """
    from verify_rates.problems import get_problem
    from verify_rates.solvers.compressors import split_spec

    name, given, named = split_spec(spec, "problem")
    if given:
        raise UsageError(f"{given[0]!r} in problem {spec!r} is not of the form key=value, as in quadratic(L=1, mu=0.1).")
    options = {key: option(value) for key, value in named.items()}
    for key, value in more.items():
        if key in options and options[key] != value:
            raise UsageError(f"problem {spec!r} and --{'workers' if key == 'n' else key} disagree on {key}; give it once.")
        options[key] = value
    return get_problem(name, **options)


FILES = {
    "compute": ("profile",),
    "slowest": ("profile",),
    "latency": ("links", "fit"),
    "bandwidth": ("links", "fit"),
    "size": ("model",),
    "d": ("model",),
}


def measured(text: str, role: str) -> Any:
    """A quantity as ``kind:FILE``, read from the file, or the text itself where it is none.

    ``profile:FILE`` gives mean compute times (one a worker, or that of the slowest), ``model:FILE`` a size, ``links:FILE`` or
    ``links:FILE:PLACE,PLACE,...`` and ``fit:FILE`` a latency or a bandwidth.

    >>> measured("50ms", "compute")
    '50ms'
    """
    kind, sign, name = text.partition(":")
    if not sign or kind not in FILES[role]:
        return text
    from verify_rates.theory import measured as files

    if kind == "profile":
        profile = files.read_profile(name)
        means = profile.per_worker
        return max(means) if role == "slowest" else means if len(means) > 1 else means[0]
    if kind == "model":
        model = files.read_model(name)
        return model.d if role == "d" else model
    if kind == "fit":
        return files.fit(name).link()[role]
    file, _, places = name.partition(":")
    found = files.read_links(file).slowest([p.strip() for p in places.split(",")] if places else None)
    if role not in found:
        raise UsageError(f"{file} has no column bandwidth_bit_per_s; give a bandwidth.")
    return found[role]


def link_tables(text: str) -> dict[str, Any]:
    """``FILE`` or ``FILE:PLACE,PLACE,...`` as tables of latency and, where the file has it, bandwidth, from row to column."""
    import numpy as np

    from verify_rates.solvers.method import nearest
    from verify_rates.theory.measured import read_links

    name, _, places = text.partition(":")
    found = read_links(name)
    chosen = [p.strip() for p in places.split(",")] if places else list(found.names)
    for place in chosen:
        if place not in found.names:
            raise nearest(place, found.names, "place")
    among = np.ix_(*[[found.names.index(p) for p in chosen]] * 2)
    tables = {"latency": found.latency[among]}
    return tables if found.bandwidth is None else {**tables, "bandwidth": found.bandwidth[among]}
