"""What an engine asks of a problem, a compressor and a topology.

The array engine calls the vectorised methods; the compiled engine calls one kernel of a fixed signature per object, so that
a method is compiled once and then runs on every problem with every compressor.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np


class Data(NamedTuple):
    """Everything a problem's kernel may read, in slots of fixed type (unused ones are empty)."""

    rows: np.ndarray  # float64 (N, d), C order: dense samples
    indptr: np.ndarray  # int64 (N+1,): sparse samples
    cols: np.ndarray  # int32 (nnz,)
    cols8: np.ndarray  # uint8 (nnz,): instead of cols where d <= 256
    vals: np.ndarray  # float64 (nnz,), empty where every entry is 1
    y: np.ndarray  # float64 (N,): labels or targets
    offsets: np.ndarray  # int64 (n+1,): worker i owns samples offsets[i]:offsets[i+1]
    tensors: np.ndarray  # float64 (n, d, d): one matrix a worker
    vectors: np.ndarray  # float64 (n, d): one vector a worker
    params: np.ndarray  # float64: regularisation, batch size, noise level, ...


class Constants(NamedTuple):
    """What a bound may use; each is exact or rounded in the direction that keeps a bound valid (None: unknown, inf: infinite)."""

    L: float  # f is L-smooth, f the average over the workers
    L_max: float  # every f_i is L_max-smooth
    mu: float  # f is mu-strongly convex (0: convex; negative: only weakly convex)
    mu_min: float  # every f_i is mu_min-strongly convex
    sigma2_star: float | None  # mean_i E||g_i - grad f_i||^2 at x*
    sigma2_sup: float | None  # the same, supremum over x and i
    zeta2_star: float | None  # mean_i ||grad f_i(x*)||^2
    zeta2_sup: float | None  # sup_x mean_i ||grad f_i(x) - grad f(x)||^2
    f_star: tuple[float, float]  # interval that contains inf f
    x_star: np.ndarray | None  # (d,) a minimiser, to working precision
    convex: bool
    mu_pl: float | None = None  # ||grad f(x)||^2 >= 2 mu_pl (f(x) - f*) everywhere (None: unknown)


class Oracle(Protocol):
    """A problem: ``f = mean_i f_i`` over n workers in dimension d, with its noise."""

    name: str
    n: int
    d: int
    constants: Constants

    def value(self, x: np.ndarray) -> float:
        """``f(x)`` at a shared point, (d,)."""

    def grads(self, x: Any, gens: list[np.random.Generator] | None = None, xp: Any = np) -> Any:
        """Gradients, (n, d), at x of shape (d,) or (n, d), as arrays of ``xp``; stochastic where ``gens`` (one a worker) is given.

        Draws are made on the host, worker by worker, in the order in which the kernel makes them.
        """

    def compiled(self) -> tuple[Any, Data]:
        """``(kernel, data)``; the kernel has signature GRAD: ``grad(data, i, x, gen, exact, out) -> None``."""

    def compiled_value(self) -> Any:
        """Kernel of signature VALUE, ``value(data, i, x) -> f_i(x)``, for measures of function values in compiled runs."""


class Compressor(Protocol):
    """A map ``R^d -> R^d`` with its class and its message size."""

    name: str

    def constants(self, d: int) -> dict[str, float]:
        """Of ``delta`` (contractive: ``E||C(v)-v||^2 <= (1-delta)||v||^2``), ``omega`` (unbiased: ``E||C(v)-v||^2 <=
        omega ||v||^2``), ``Delta2`` (absolute: ``E||C(v)-v||^2 <= Delta2``): those that hold in dimension d."""

    def __call__(self, v: Any, gens: list[np.random.Generator], xp: Any = np) -> Any:
        """Compressed rows of v, (n, d); row i draws from ``gens[i]`` on the host, in the kernel's order."""

    def bits(self, d: int) -> float | None:
        """Exact bits of one message, index bits included; None where they depend on the data (then ``message_bits``)."""

    def message_bits(self, m: np.ndarray) -> float:
        """Exact bits of the one message m, (d,)."""

    def compiled(self) -> tuple[Any, np.ndarray]:
        """``(kernel, params)``; the kernel has signature COMPRESS: ``compress(v, params, gen, out) -> bits``."""


class Topology(Protocol):
    """A graph of n workers with a symmetric doubly stochastic mixing matrix."""

    name: str
    n: int
    W: np.ndarray  # float64 (n, n)

    @property
    def spectrum(self) -> np.ndarray:
        """Eigenvalues of W, ascending; the last is 1."""
