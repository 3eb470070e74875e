"""Results kept on disk, one file a claim, so that an interrupted run goes on where it stopped."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from verify_rates.solvers.engine.cache import function_key, values_key
from verify_rates.solvers.engine.cache import root as cache_folder
from verify_rates.solvers.method import UsageError, methods
from verify_rates.theory.claims import Claim
from verify_rates.userfile import digest, local_sources
from verify_rates.verdicts import SCHEMA_VERSION, Check, Result, Verdict

LIBRARIES = ("numpy", "scipy", "sympy", "cvxpy", "clarabel", "numba", "scikit-learn", "networkx", "python-flint")
_PACKAGES = ("verify_rates", "verify_rates.solvers", "verify_rates.problems", "verify_rates.theory", "verify_rates.proofs_check")


class StoreWarning(UserWarning):
    """The store could not read or write an entry; the run goes on without it."""


_NUMBERS = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Versions of everything a verdict depends on; a library that is not installed is left out."""
    found = {"verify-rates": importlib.import_module("verify_rates").__version__, "python": sys.version.split()[0]}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


@lru_cache(maxsize=1)
def package_digest() -> str:
    """A hash of every source file of the installed package."""
    folders = [Path(next(iter(importlib.import_module(name).__path__))) for name in _PACKAGES]
    return digest(sorted({f for folder in folders for f in folder.rglob("*.py")}))


def _record(value: Any) -> Any:
    """A claim's field as JSON data; a function by the name and the file in which it stands."""
    if callable(value):
        return f"{value.__module__}:{value.__qualname__}"
    if isinstance(value, Mapping):
        return {str(k): _record(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [_record(v) for v in value]
    if hasattr(value, "__dataclass_fields__"):
        return {f.name: _record(getattr(value, f.name)) for f in fields(value)}
    return value if isinstance(value, (str, int, float, bool)) or value is None else repr(value)


def _functions(claim: Claim) -> dict[str, Any]:
    """The functions on which the claim rests: its measures, its method's step and rounds, its own check in a user's file."""
    found = {what: f for what, f in (("measure", claim.measure), ("initial", claim.initial)) if callable(f)}
    if claim.method and claim.method in (known := methods()):
        found |= {"step": known[claim.method].step, "rounds": known[claim.method].rounds}
    module, _, name = claim.check.partition(":")
    if not module.startswith("verify_rates.") and (own := getattr(sys.modules.get(module), name, None)) is not None:
        found["check"] = own
    return found


def _user_files(claim: Claim) -> list[Path]:
    """Files outside the package on which the claim rests: its method's, its measures', and what they import beside them."""
    starts = {Path(f.__code__.co_filename) for f in _functions(claim).values() if hasattr(f, "__code__")}
    return sorted({s for start in starts if start.is_file() for s in local_sources(start)})


def _objects(claim: Claim) -> dict[str, str]:
    """Hashes of the user's functions and objects that the claim names, with the values they read, and of the data files of its runs."""
    from verify_rates.problems import problems
    from verify_rates.solvers.compressors import _Custom, compressors, split_spec
    from verify_rates.solvers.topologies import _OWN

    found: dict[str, str] = {}

    def add(name: str, *functions: Any) -> None:
        found[name] = " ".join(function_key(f) for f in functions if f is not None)

    for what, function in _functions(claim).items():
        if not function.__module__.startswith("verify_rates."):
            found[what] = values_key(function)
    for point in claim.runs:
        if Path(path := str(point["problem"].get("data"))).is_file():
            found[f"data {path}"] = _file_digest(Path(path))
        names = {what: split_spec(v, what)[0] for what in ("compressor", "topology") if isinstance(v := point.get(what), str)}
        problem: Any = problems().get(str(point["problem"].get("name")))
        made = compressors().get(names.get("compressor", ""))
        if hasattr(problem, "home"):
            add(f"problem {problem.name}", problem.value_function, problem.gradient_function)
            found[f"constants of {problem.name}"] = repr([getattr(c, "tolist", lambda c=c: c)() for c in problem.declared])
        if made is not None and issubclass(made, _Custom):
            add(f"compressor {made.name}", made.one, made.fixed_bits, made.data_bits)
        if names.get("topology") in _OWN:
            add(f"topology {names['topology']}", _OWN[names["topology"]])
    return found


def key(claim: Claim, *, suite: str, seed: int, data: str | Path | None = None, files: tuple[str | Path, ...] = ()) -> str:
    """The name of a claim's entry: a hash of all that its verdict depends on.

    That is the package's sources, the versions, the claim's record, the user's files (``files``, and those of its method and
    measures) with the neighbours they import, the functions of the user's method, measures, problems, compressors and topologies with
    the values that they read (which may come from files of data), the suite, the seed and the bytes of all data files.
    """
    given = sorted({s for f in files for s in local_sources(f)})
    parts = {
        "schema": SCHEMA_VERSION,
        "package": package_digest(),
        "versions": versions(),
        "claim": _record(claim),
        "files": digest(sorted({*given, *_user_files(claim)})),
        "objects": _objects(claim),
        "suite": suite,
        "seed": seed,
        "data": _file_digest(Path(data)) if data is not None else None,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _file_digest(path: Path) -> str:
    try:
        stat = path.stat()
        return _bytes_digest(str(path.resolve()), stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size)
    except OSError as e:
        raise UsageError(f"cannot read the data file {str(path)!r}: {e.strerror or e}.") from None


@lru_cache(maxsize=32)
def _bytes_digest(path: str, mtime_ns: int, ctime_ns: int, size: int) -> str:
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


class Store:
    """Results by key in a folder.

    An entry is written to a temporary file and renamed, so that a killed process leaves entries whole or absent; one that
    cannot be read is ignored with a warning and computed again.

    Parameters
    ----------
    folder : where the entries lie; by default ``results`` in :func:`cache_folder`.

    >>> store = Store(tempfile.mkdtemp())
    >>> claim = Claim("a.1", "nothing", not_checkable="an order without constants", source="derived")
    >>> store.put("k", Result(claim, Verdict.NOT_CHECKABLE, [], "an order without constants"))
    >>> store.get("k", claim).cached
    True
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder = Path(folder) if folder is not None else cache_folder() / "results"

    def path(self, key: str) -> Path:
        """The entry's file."""
        return self.folder / key[:2] / f"{key}.json"

    def get(self, key: str, claim: Claim) -> Result | None:
        """The stored result, marked as cached, or None."""
        path = self.path(key)
        try:
            return replace(from_json(claim, json.loads(path.read_text())), cached=True)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as e:  # undecodable text is a ValueError
            told = f"the stored result {path.name} cannot be read and is computed again ({type(e).__name__})"
            warnings.warn(told, StoreWarning, stacklevel=2)
            return None

    def put(self, key: str, result: Result) -> None:
        """Write the result; where the disk refuses, a warning, and the run goes on."""
        try:
            write_atomically(self.path(key), json.dumps(result.to_json()))
        except OSError as e:
            warnings.warn(f"the result of {result.claim.id} is not kept: {e.strerror or e}", StoreWarning, stacklevel=2)


def write_atomically(path: str | Path, text: str) -> None:
    """Write a file so that a reader, or a crash, sees the old content or the new one; folders are made."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def from_json(claim: Claim, data: Mapping[str, Any]) -> Result:
    """A result from what :meth:`Result.to_json` made of it; ValueError where it is another claim's or damaged."""
    if data["id"] != claim.id:
        raise ValueError("another claim's result")
    names = {f.name for f in fields(Check)}
    checks = []
    for entry in data["checks"]:
        if set(entry) != names:
            raise ValueError("a check of another version")
        numbers = {k: v if k == "witness" else _restored(v) for k, v in entry.items()}
        checks.append(Check(**numbers))
    return Result(claim, Verdict(data["verdict"]), checks, data["message"], float(data["seconds"]))


def _restored(value: Any) -> Any:
    if isinstance(value, str):
        return _NUMBERS.get(value, value)
    if isinstance(value, list):
        return [_restored(v) for v in value]
    if isinstance(value, dict):
        return {k: _restored(v) for k, v in value.items()}
    return value
