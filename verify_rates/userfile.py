"""The user's file: loaded once by path, under a name that stays the same from run to run, with errors as one sentence."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from verify_rates.solvers.method import UsageError, methods

_PREFIX = "verify_rates_user_"  # compiled code is cached under the module's name and workers import it by that name
_LOADED: dict[Path, tuple[str, ModuleType]] = {}
_NEIGHBOURS: set[str] = set()  # modules that came in with a user's file, and may be read anew


def load(path: str | Path) -> ModuleType:
    """Run a user's Python file and return its module.

    The module's name is a hash of the path.  The file's folder is appended to ``sys.path``, so that it can import its
    neighbours.  A file that has not changed since it was loaded, nor any neighbour it imports, is not run again.

    Parameters
    ----------
    path : the file; **its code is run**.

    Raises
    ------
    UsageError : there is no such file, it is not Python, or it raises; the sentence names the line.

    >>> load("no_such_theory.py")
    Traceback (most recent call last):
    ...
    verify_rates.solvers.method.UsageError: there is no file 'no_such_theory.py'; give the path of a Python file.
    """
    file = Path(path).resolve()
    if not file.is_file():
        what = "a folder, not a file" if file.is_dir() else "missing"
        sentence = f"there is no file {str(path)!r}" if what == "missing" else f"{str(path)!r} is {what}"
        raise UsageError(f"{sentence}; give the path of a Python file.")
    sources = local_sources(file)
    stamp = digest(sources)
    known = _LOADED.get(file)
    if known is not None and known[0] == stamp:
        return known[1]
    _LOADED.pop(file, None)
    _forget(sources)
    methods()  # the package's own come first, so that a name the user takes twice is refused at the user's line
    before = set(sys.modules)
    try:
        module = _run(file)
        _check_neighbours(file, sources)
    except UsageError:
        _forget(sources)  # what half a file has given is not known
        raise
    finally:
        _NEIGHBOURS.update(set(sys.modules) - before)
    _LOADED[file] = (stamp, module)
    if getattr(sys.modules.get(file.stem), "__name__", _PREFIX).startswith(_PREFIX):
        sys.modules[file.stem] = module  # so that a claim's check "my_theory:function" finds the functions beside it
    return module


def load_all(paths: Iterable[str | Path]) -> list[ModuleType]:
    """The modules of several files; UsageError where two different files have one name."""
    files = list(paths)
    for i, a in enumerate(files):
        for b in files[:i]:
            if Path(a).stem == Path(b).stem and Path(a).resolve() != Path(b).resolve():
                raise UsageError(f"{str(b)!r} and {str(a)!r} have the same name; rename one of them.")
    return [load(f) for f in files]


def forget(path: str | Path) -> None:
    """Undo :func:`load`: the file's module, its neighbours and every name that they gave are no longer known.

    >>> forget("no_such_theory.py")
    """
    file = Path(path).resolve()
    known = _LOADED.pop(file, None)
    _forget(local_sources(file) if file.is_file() else [file])
    for name in [n for n, module in sys.modules.items() if known is not None and module is known[1]]:
        del sys.modules[name]
    if str(file.parent) in sys.path and not any(f.parent == file.parent for f in _LOADED):
        sys.path.remove(str(file.parent))


def loaded(file: str | Path) -> bool:
    """Whether this is a file that :func:`load` has run, or a neighbour that came in with one.

    >>> loaded("no_such_theory.py")
    False
    """
    neighbours = (getattr(sys.modules.get(name), "__file__", None) for name in _NEIGHBOURS)
    return Path(file).resolve() in _LOADED or str(file) in neighbours


def loaded_modules() -> list[ModuleType]:
    """The modules of all files that are loaded."""
    return [module for _, module in _LOADED.values()]


def module_name(path: str | Path) -> str:
    """The name under which the file's module is loaded, from its path alone."""
    return _PREFIX + hashlib.sha256(str(Path(path).resolve()).encode()).hexdigest()[:16]


def local_sources(path: str | Path) -> list[Path]:
    """The file and every neighbour that it imports, directly or through others, sorted; UsageError where one is not Python."""
    found: set[Path] = set()
    waiting = [Path(path).resolve()]
    root = waiting[0].parent  # on sys.path: names in a package's files are read from there too
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            for level, name in sorted(_imported(file)):
                folders = [file.parents[level - 1]] if level else [file.parent, root]
                waiting += [n for folder in folders for n in _neighbour(folder, name)]
    return sorted(found)


def digest(files: list[Path]) -> str:
    """A hash of the names and the bytes of these files."""
    h = hashlib.sha256()
    for file in files:
        data = file.read_bytes()
        h.update(f"{file.name}\0{len(data)}\0".encode() + data)
    return h.hexdigest()


def _parse(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_bytes(), filename=str(file))
    except SyntaxError as e:
        where = f"line {e.lineno} of {file.name}" if e.lineno else file.name
        raise UsageError(f"{where} is not valid Python: {e.msg}.") from None
    except (ValueError, RecursionError, MemoryError) as e:
        raise UsageError(f"{file.name} is not valid Python: {e}.") from None


def _imported(file: Path) -> set[tuple[int, str]]:
    """Modules that the file imports, anywhere in it: the number of leading dots and the name."""
    names: set[tuple[int, str]] = set()
    for node in ast.walk(_parse(file)):
        if isinstance(node, ast.Import):
            names |= {(0, alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            names |= {(node.level, base)} | {(node.level, f"{base}.{alias.name}".strip(".")) for alias in node.names}
    return {(level, name) for level, name in names if name and level <= len(file.parents)}


def _neighbour(folder: Path, name: str) -> list[Path]:
    """The files beside the user's that ``import name`` would read (the package itself is never one)."""
    if name.split(".")[0] == "verify_rates":
        return []
    at = folder.joinpath(*name.split("."))
    candidates = [at.with_suffix(".py"), at / "__init__.py", folder / name.split(".")[0] / "__init__.py"]
    return [c for c in candidates if c.is_file()]


def _forget(sources: list[Path]) -> None:
    """Drop neighbours that were imported before, so that an edited one is read anew, and all names that these files have given."""
    from verify_rates.problems.base import FAMILIES
    from verify_rates.solvers import compressors, method, topologies

    files = {str(s) for s in sources}
    for name in [n for n in _NEIGHBOURS if getattr(sys.modules.get(n), "__file__", None) in files]:
        del sys.modules[name]
    registries: tuple[tuple[dict[str, Any], Callable[[Any], str]], ...] = (
        (method._REGISTRY, lambda m: method.home(m.step)),
        (compressors._REGISTRY, compressors._home),
        (FAMILIES, lambda p: getattr(p, "home", "")),
        (topologies.GRAPHS, method.home),
        (topologies._OWN, method.home),
    )
    for registry, home in registries:
        for name in [n for n, thing in registry.items() if home(thing) in files]:
            del registry[name]


def _run(file: Path) -> ModuleType:
    name = module_name(file)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file.name} is not a Python file; its name must end in .py.")
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as e:
        del sys.modules[name]
        raise UsageError(_sentence(file, e)) from e
    return module


def _sentence(file: Path, e: BaseException) -> str:
    lines = [f.lineno for f in traceback.extract_tb(e.__traceback__) if Path(f.filename) == file]
    where = f"line {lines[-1]} of {file.name}" if lines else file.name
    what = str(e) if isinstance(e, UsageError) else f"{type(e).__name__}: {e}"
    return f"{where} failed with {' '.join(what.split()).rstrip('.')}."


def _check_neighbours(file: Path, sources: list[Path]) -> None:
    """A neighbour that another module of the same name hides would be read silently in its place."""
    for source in sources:
        if source == file or source.parent != file.parent:
            continue
        got = getattr(sys.modules.get(source.stem), "__file__", None)
        if got is not None and Path(got).resolve() != source:
            raise UsageError(f"{file.name} imports {source.stem}, but another module of that name hides {source.name}; rename it.")
