"""Where compiled code is kept, and under which key, so that an edited word, kernel or method never runs as it was before.

Numba stamps only the file that defines a function.  Here the folder itself is named by a hash of all that the machine code can
depend on: the package's sources and the versions in use, and for a method the code of its step and of every function it reaches,
the plain values these read, and the user's file with its local imports.
"""

from __future__ import annotations

import ast
import hashlib
import os
import pathlib
import platform
import sys
import sysconfig
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_KEEP_DAYS = 30  # folders of older sources are removed when they have not been used for so long


def root() -> pathlib.Path:
    """The cache's root: ``VERIFY_RATES_CACHE``, else ``verify-rates`` in the user's cache folder, else a temporary folder."""
    chosen = os.environ.get("VERIFY_RATES_CACHE")
    base = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    folder = pathlib.Path(chosen) if chosen else base / "verify-rates"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = pathlib.Path(tempfile.gettempdir()) / "verify-rates"
        folder.mkdir(parents=True, exist_ok=True)
    return folder


@cache
def package_key() -> str:
    """Hash of the sources that compiled code is made of, and of the versions of Python, NumPy and Numba."""
    import numba

    digest = hashlib.sha256(f"{sys.version} {platform.machine()} {np.__version__} {numba.__version__}".encode())
    solvers = pathlib.Path(__file__).resolve().parents[1]
    from verify_rates import problems

    folders = [solvers, solvers / "engine", *map(pathlib.Path, problems.__path__)]
    for file in sorted(file for folder in folders for file in folder.glob("*.py")):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:20]


def package_folder() -> pathlib.Path:
    """The folder of the package's own compiled code, and above that of its users."""
    folder = root() / package_key()
    _remove_old(folder.parent)
    folder.mkdir(exist_ok=True)
    os.utime(folder)
    return folder


@contextmanager
def keyed(key: str = "") -> Iterator[None]:
    """Functions decorated with ``cache=True`` inside are kept in the folder of that key, below the package's."""
    from numba.core import config

    folder = package_folder() / key
    folder.mkdir(exist_ok=True)
    before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before


@cache
def _remove_old(folder: pathlib.Path) -> None:
    import shutil

    for old in folder.iterdir():
        if old.is_dir() and len(old.name) == 20 and old.stat().st_mtime < time.time() - 86400 * _KEEP_DAYS:
            shutil.rmtree(old, ignore_errors=True)


# --- what a user's function depends on -------------------------------------------------------------------------------


def function_key(fn: Callable[..., Any], extra: str = "") -> str:
    """Hash of a function with all it reaches: helpers, plain global values, its file and the local files imported there."""
    digest = hashlib.sha256(f"{package_key()} {extra}".encode())
    for part in _code_parts(fn, {}):
        digest.update(part.encode() + b"\0")
    for file in sorted(_local_files(fn)):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:20]


def values_key(fn: Callable[..., Any]) -> str:
    """Hash of a function's code and helpers with the plain values that they read, without files: those have their own key."""
    return hashlib.sha256("\0".join(_code_parts(fn, {})).encode()).hexdigest()[:20]


def renamed(fn: types.FunctionType) -> types.FunctionType:
    """The function under a name that holds its key.

    Machine code from the disk is linked by names which Numba numbers per process, so of two functions of one name, cached by two
    processes, a third process would run one in place of the other.
    """
    copy = types.FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    copy.__kwdefaults__, copy.__module__ = fn.__kwdefaults__, fn.__module__
    copy.__qualname__ = f"{fn.__qualname__}_{function_key(fn)}"
    return copy


def helpers(fn: Any) -> list[types.FunctionType]:
    """The pure-Python functions that a step reaches, deepest first: found through its globals, closure and local modules."""
    found: dict[types.FunctionType, None] = {}

    def visit(f: types.FunctionType) -> None:
        for value in _reads(f).values():
            if (
                isinstance(value, types.FunctionType)
                and not _is_library(value.__code__.co_filename)
                and value not in found
                and value is not fn
            ):
                found[value] = None
                visit(value)

    visit(fn)
    return list(reversed(found))


def _names(code: types.CodeType) -> set[str]:
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _reads(fn: types.FunctionType) -> dict[str, Any]:
    """Values of the globals, closure cells and local modules' members that a function reads."""
    names = _names(fn.__code__)
    values = {name: fn.__globals__[name] for name in names if name in fn.__globals__}
    for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True):
        values[name] = cell.cell_contents
    for module in [v for v in values.values() if isinstance(v, types.ModuleType) and not _is_library(getattr(v, "__file__", None))]:
        values |= {f"{module.__name__}.{name}": vars(module)[name] for name in names if name in vars(module)}
    return values


def _code_parts(fn: Any, seen: dict[Any, None]) -> Iterator[str]:
    fn = getattr(fn, "py_func", fn)
    if not isinstance(fn, types.FunctionType) or fn in seen:
        return
    seen[fn] = None
    yield from _of_code(fn.__code__)
    yield f"{fn.__defaults__!r} {fn.__kwdefaults__!r}"
    for name, value in sorted(_reads(fn).items()):
        if isinstance(value, (*_PLAIN, tuple, list, dict, np.generic, np.ndarray)):
            yield f"{name}={_stated(value)}"
        elif isinstance(value, type) and hasattr(value, "_fields"):
            yield f"{name}={value._fields!r}"
        elif not _is_library(getattr(getattr(value, "__code__", None), "co_filename", __file__)) or hasattr(value, "py_func"):
            yield from _code_parts(value, seen)


def _stated(value: Any) -> str:
    """The value in full, arrays by their bytes (their repr leaves entries and digits out)."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{value.tobytes().hex()}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{k!r}: {_stated(v)}' for k, v in value.items())}}}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(_stated, value))})"
    return repr(value) if isinstance(value, (*_PLAIN, np.generic)) else type(value).__qualname__  # other reprs may hold addresses


def _of_code(code: types.CodeType) -> Iterator[str]:
    yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars}"
    for const in code.co_consts:
        yield from _of_code(const) if isinstance(const, types.CodeType) else [repr(const)]


@cache
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple(os.path.realpath(paths[name]) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))


@cache
def _is_library(file: str | None) -> bool:
    """Whether a file belongs to Python, to an installed package or to this one (whose sources are in ``package_key``)."""
    if file is None:
        return True
    path = os.path.realpath(file)
    engine = str(pathlib.Path(__file__).resolve().parents[1]) + os.sep
    own = path.startswith(engine) and not path.startswith(engine + "methods" + os.sep)
    return own or path.startswith(_library_folders())


def _local_files(fn: Any) -> set[pathlib.Path]:
    """The file that defines a function and the local files that it imports, as far as they are loaded."""
    module = sys.modules.get(getattr(fn, "__module__", None) or "")
    files: dict[pathlib.Path, None] = {}
    _follow(getattr(module, "__file__", None) or fn.__code__.co_filename, getattr(module, "__package__", None) or "", files)
    return set(files)


def _follow(name: str, package: str, files: dict[pathlib.Path, None]) -> None:
    file = pathlib.Path(name)
    if file.suffix != ".py" or file in files or not file.is_file() or _is_library(name):
        return
    files[file] = None
    for node in ast.walk(ast.parse(file.read_bytes())):
        for target in _imported(node, package):
            module = sys.modules.get(target)
            if module is not None and getattr(module, "__file__", None):
                _follow(str(module.__file__), module.__package__ or "", files)


def _imported(node: ast.AST, package: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = package.rsplit(".", node.level - 1)[0] if node.level > 1 else package
    source = ".".join(filter(None, [base if node.level else "", node.module or ""]))
    return [source, *(f"{source}.{alias.name}" for alias in node.names)]
