"""Is everything there that the toolkit needs?  Versions, solvers, data, caches and threads, each with one line."""

from __future__ import annotations

import os
import platform
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

OPTIONAL = {
    "scs": "a second solver for the reference path",
    "tueplots": "figures at a venue's width",
    "cupy-cuda12x": "runs on a GPU",
    "array-api-strict": "tests of the array engine",
}
STEPS_WARM = 2  # steps of the runs that compile the kernels


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at, whether it is fine, and a detail.  ``status`` is ok | missing | optional."""

    name: str
    status: str
    detail: str

    def to_json(self) -> dict[str, str]:
        return asdict(self)


def examine(warm: bool = False) -> list[Finding]:
    """All findings; with ``warm`` the kernels of every method are compiled and kept.

    >>> {f.name: f.status for f in examine()}["numpy"]
    'ok'
    """
    return list(_findings(warm))


def _findings(warm: bool) -> Iterator[Finding]:
    from verify_rates.store import versions

    yield Finding("verify-rates", "ok", versions()["verify-rates"])
    yield Finding("python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    for name in _required():
        yield _package(name, "missing", "required; install it with pip")
    for name, use in OPTIONAL.items():
        yield _package(name, "optional", f"not installed; only needed for {use}")
    yield _attempt("worst-case solver", _solver)
    yield _attempt("cvxpy solvers", _cvxpy_solvers)
    yield _attempt("data sets", _data)
    yield _attempt("cache", _cache)
    yield Finding("processors", "ok", f"{len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else os.cpu_count()} usable")
    yield _attempt("threads", _threads)
    if warm:
        yield from _warm()


def _required() -> list[str]:
    """Names of the packages that the installed package says it needs."""
    return [re.split(r"[^A-Za-z0-9._-]", line)[0] for line in metadata.requires("verify-rates") or [] if "extra ==" not in line]


def _package(name: str, otherwise: str, hint: str) -> Finding:
    try:
        return Finding(name, "ok", metadata.version(name))
    except metadata.PackageNotFoundError:
        return Finding(name, otherwise, hint)


def _attempt(name: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(name, "ok", look())
    except Exception as e:  # a doctor reports whatever is broken
        return Finding(name, "missing", f"{type(e).__name__}: {' '.join(str(e).split())}")


def _solver() -> str:
    """A one-variable semidefinite program, so that a solver that is installed but broken shows."""
    import clarabel
    import numpy as np
    from scipy import sparse

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    A, b = sparse.csc_matrix(-np.eye(1)), np.array([-2.0])
    solution = clarabel.DefaultSolver(sparse.csc_matrix((1, 1)), np.ones(1), A, b, [clarabel.NonnegativeConeT(1)], settings).solve()
    if abs(solution.x[0] - 2.0) > 1e-6:  # Clarabel's default tolerance is 1e-8, relative to numbers of size 2
        raise RuntimeError(f"Clarabel returned {solution.x[0]} where 2 is right")
    return f"clarabel {clarabel.__version__} solves"


def _cvxpy_solvers() -> str:
    import cvxpy

    return ", ".join(cvxpy.installed_solvers())


def _data() -> str:
    from verify_rates.problems.data import EMBEDDED, get_data

    return ", ".join(f"{name} {get_data(name).A.shape[0]} x {get_data(name).A.shape[1]}" for name in EMBEDDED)


def _cache() -> str:
    from verify_rates.store import cache_folder

    folder = cache_folder()
    with tempfile.TemporaryFile(dir=folder):
        pass
    files = [f for f in folder.rglob("*") if f.is_file()]
    return f"{folder} is writable and holds {len(files)} files, {sum(f.stat().st_size for f in files) / 1e6:.1f} MB"


def _threads() -> str:
    import numpy  # noqa: F401 - loads the library whose threads are counted
    from numba.core.config import NUMBA_NUM_THREADS
    from threadpoolctl import threadpool_info

    pools = ", ".join(f"{p['internal_api']} {p['num_threads']}" for p in threadpool_info())
    return f"numba {NUMBA_NUM_THREADS}" + (f", {pools}" if pools else "")


def _warm() -> Iterator[Finding]:
    """Compile every method as ``check`` will need it."""
    from verify_rates.problems import get_problem
    from verify_rates.solvers.engine.run import simulate
    from verify_rates.solvers.method import methods

    problem = get_problem("quadratic", n=2, d=2)
    for name, m in methods().items():

        def run(m: Any = m) -> str:
            began = time.perf_counter()
            hyper = {f: 1 for f in m.hyper._fields if f not in m.hyper._field_defaults}
            simulate(m, problem, hyper, steps=STEPS_WARM, compressor="identity", topology="ring", engine="numba")
            return f"compiled or found in {time.perf_counter() - began:.1f} s"

        yield _attempt(f"kernels of {name}", run)
