"""Solvers of a :class:`Conic`: the dual handed straight to Clarabel, or the primal to any solver through cvxpy."""

from __future__ import annotations

import importlib.metadata
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from verify_rates.solvers.method import nearest
from verify_rates.theory.worst_case.assemble import Conic, smat, triangle

TOLERANCE = 1e-10  # asked of the solver, in normalised units; what it reached is measured afterwards
SQRT2 = np.sqrt(2.0)
OPTIONS = {  # through cvxpy
    "CLARABEL": {"tol_gap_abs": TOLERANCE, "tol_gap_rel": TOLERANCE, "tol_feas": TOLERANCE},
    "SCS": {"eps_abs": TOLERANCE, "eps_rel": TOLERANCE, "max_iters": 50_000},
}


@dataclass(frozen=True)
class Raw:
    """What a solver said, unverified."""

    status: str  # "solved", "inaccurate", "unbounded", "infeasible" or "failed"
    message: str  # the solver's own word
    z: np.ndarray  # (nz,) primal point
    lam: np.ndarray  # (rows,) multipliers of A z <= b
    nu: np.ndarray  # (equalities,) multipliers of E z = 0
    S: np.ndarray  # (mixed, mixed) multiplier of the semidefinite constraint

    @property
    def ok(self) -> bool:
        """Whether there is anything to look at."""
        return self.status in ("solved", "inaccurate")


def off_diagonal(k: int, value: float) -> np.ndarray:
    rows, columns = triangle(k)
    return np.where(rows == columns, 1.0, value)


def conic_program(
    q: np.ndarray, M: Any, rhs: np.ndarray, cones: list[Any], sparse: bool = False, scaled: bool = False
) -> tuple[np.ndarray, np.ndarray, str]:
    """Minimise ``q'x`` over ``rhs - M x`` in the product of Clarabel's cones: x, the multipliers y, and the solver's own word.

    ``sparse`` splits semidefinite cones along the cliques of their entries, which pays where most entries are empty; ``scaled`` says that
    rows and units are normalised already, where the solver's own scaling costs digits.
    """
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.direct_solve_method = "faer"
    settings.presolve_enable = False
    settings.equilibrate_enable = not scaled
    settings.chordal_decomposition_enable = sparse
    settings.chordal_decomposition_complete_dual = True
    settings.chordal_decomposition_compact = False  # the other form loses a digit
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = TOLERANCE / 100 if sparse else TOLERANCE
    zero = sp.csc_matrix((q.size, q.size))
    try:
        found = clarabel.DefaultSolver(
            zero, q, M if isinstance(M, sp.csc_matrix) else sp.csc_matrix(M), rhs, [c for c in cones if c.dim], settings
        ).solve()
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # the solver's eigenvalue routine gave up: no Exception of Python's
            raise
        return np.zeros(q.size), np.zeros(rhs.size), "Panic"
    return np.array(found.x), np.array(found.z), str(found.status)


def _dual_program(conic: Conic) -> tuple[np.ndarray, Any, np.ndarray, np.ndarray, list[Any]]:
    """``q``, ``M``, the right-hand side, what a unit of margin takes from it, and the cones, of ``min b'lam``."""
    import clarabel

    A, E, P = conic.small
    nG, nD = conic.sizes
    rows, equalities, tri = A.shape[0], E.shape[0], P.shape[0]
    stack = np if all(isinstance(part, np.ndarray) for part in (A, E, P)) else sp
    weights = np.concatenate([off_diagonal(k, SQRT2 / 2) for k in conic.orders])[:, None]  # svec of a matrix from its doubled coefficients
    half = off_diagonal(conic.mixed, SQRT2)[:, None]  # inner product of smat(P z) with svec(S)
    adjoint = stack.vstack([A, E, -half * P]).T
    positive = np.eye(rows + equalities + tri)
    blocks = [adjoint[nG + nD :], -positive[:rows], -(weights * adjoint[: nG + nD]), -positive[rows + equalities :]]
    cones = [clarabel.ZeroConeT(conic.c.size - nG - nD), clarabel.NonnegativeConeT(rows)]
    cones += [clarabel.PSDTriangleConeT(k) for k in (*conic.orders, conic.mixed) if k]
    rhs = np.concatenate([conic.c[nG + nD :], np.zeros(rows), -weights[:, 0] * conic.c[: nG + nD], np.zeros(tri)])
    one = np.concatenate([np.equal(*triangle(k)).astype(float) for k in conic.orders])
    margin = np.concatenate([np.zeros(conic.c.size - nG - nD + rows), one, np.zeros(tri)])
    q = np.concatenate([conic.b, np.zeros(equalities + tri)])
    M = np.vstack(blocks) if stack is np else sp.vstack([sp.csc_array(block) for block in blocks if block.shape[0]])
    return q, sp.csc_matrix(M), rhs, margin, cones


def clarabel_dual(conic: Conic, margin: float, sparse: bool = False, scaled: bool = True) -> Raw:
    """Solve ``min b'lam`` over multipliers whose matrices are at least ``margin`` times the identity.

    The margin keeps the multipliers feasible when the solver leaves a residual; it raises the value by ``margin`` times a trace.
    """
    if "dual" not in conic.made:
        conic.made["dual"] = _dual_program(conic)
    q, M, rhs, unit, cones = conic.made["dual"]
    x, y, message = conic_program(q, M, rhs - margin * unit, cones, sparse, scaled)
    (nG, nD), rows, equalities = conic.sizes, conic.A.shape[0], conic.E.shape[0]
    scalars = conic.c.size - nG - nD
    off = np.concatenate([off_diagonal(k, 1 / SQRT2) for k in conic.orders])
    S = smat(x[rows + equalities :] * off_diagonal(conic.mixed, 1 / SQRT2), conic.mixed)
    z = np.concatenate([y[scalars + rows :][: nG + nD] * off, -y[:scalars]])
    status = {
        "Solved": "solved",
        "AlmostSolved": "inaccurate",
        "InsufficientProgress": "inaccurate",
        "PrimalInfeasible": "unbounded",
        "DualInfeasible": "infeasible",
    }.get(message, "failed")
    return Raw(status, message, z, x[:rows], x[rows : rows + equalities], S)


def through_cvxpy(conic: Conic, margin: float, solver: str) -> Raw:
    """The primal ``max c'z + margin tr`` over ``A z <= b``, each family of constraints as one vectorised cvxpy constraint."""
    import cvxpy as cp

    grams = [cp.Variable((k, k), PSD=True) for k in conic.orders if k]
    scalars = conic.c.size - sum(conic.sizes)
    parts = [M[triangle(M.shape[0])] for M in grams] + ([cp.Variable(scalars)] if scalars else [])
    z = cp.hstack(parts)
    constraints = [conic.A @ z <= conic.b]
    if conic.E.shape[0]:
        constraints.append(conic.E @ z == 0)
    if conic.mixed:
        M = cp.Variable((conic.mixed, conic.mixed), PSD=True)
        constraints.append(M[triangle(conic.mixed)] == conic.P @ z)
    problem = cp.Problem(cp.Maximize(conic.c @ z + margin * sum(cp.trace(M) for M in grams)), constraints)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # "may be inaccurate": what was reached is measured afterwards
            problem.solve(solver=solver, **OPTIONS.get(solver, {}))
        message = str(problem.status)
    except cp.error.SolverError as error:
        message = f"failed: {error}".splitlines()[0]
    known = {"optimal": "solved", "optimal_inaccurate": "inaccurate", "unbounded": "unbounded", "infeasible": "infeasible"}
    status = known.get(message, "failed")
    duals = [c.dual_value for c in constraints]
    if z.value is None or duals[0] is None:
        z0, lam0, nu0 = (np.zeros(k) for k in (conic.c.size, conic.b.size, conic.E.shape[0]))
        return Raw(status if status in ("unbounded", "infeasible") else "failed", message, z0, lam0, nu0, np.zeros((conic.mixed,) * 2))
    nu = np.atleast_1d(duals[1]) if conic.E.shape[0] else np.zeros(0)
    S = smat(np.atleast_1d(duals[-1]) / off_diagonal(conic.mixed, 2.0), conic.mixed) if conic.mixed else np.zeros((0, 0))
    return Raw(status, message, z.value, np.atleast_1d(duals[0]), nu, S)


def solvers() -> tuple[str, ...]:
    """Names that ``worst_case(solver=...)`` takes here: the installed solvers of semidefinite programs."""
    import cvxpy as cp

    able = [name for name in cp.installed_solvers() if name in ("CLARABEL", "SCS", "MOSEK", "CVXOPT", "COPT", "SDPA")]
    return ("CLARABEL", *(f"cvxpy:{name}" for name in able))


def solve_conic(conic: Conic, margin: float, solver: str, sparse: bool = False, scaled: bool = True) -> Raw:
    """Solve with the named solver; UsageError with the nearest match when it is unknown or not installed."""
    if solver == "CLARABEL":
        return clarabel_dual(conic, margin, sparse, scaled)
    if solver not in solvers():
        raise nearest(str(solver), solvers(), "solver")
    return through_cvxpy(conic, margin, solver.removeprefix("cvxpy:"))


@cache
def version(solver: str) -> str:
    """The version of the solver's package."""
    name = solver.removeprefix("cvxpy:").lower()
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
