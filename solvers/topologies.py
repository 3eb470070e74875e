"""Topologies: a connected graph of n workers and its symmetric mixing matrix, with the spectrum on which gossip depends."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import networkx as nx
import numpy as np

from verify_rates.solvers.compressors import _kind, read_value, split_spec
from verify_rates.solvers.method import UsageError, home, nearest
from verify_rates.solvers.own import called

RTOL_MATRIX = 1e-12  # symmetry and row sums: n roundings of entries of size 1, n up to some thousands
RTOL_SPECTRUM = 1e-10  # eigvalsh is backward stable: n eps ||W||, n up to some thousands, with room for the eigenvalue 1 itself
MOST_WORKERS = 10_000  # whose mixing matrix takes 0.8 GB


@dataclass(frozen=True, eq=False)
class Topology:
    """n workers and the matrix W of one mixing: worker i gets ``sum_j W_ij v_j``.

    W is symmetric, its rows sum to 1 and every eigenvalue but one is inside (-1, 1); single entries may be negative (best-constant
    weights of a star).

    Attributes
    ----------
    name : text from which :func:`get_topology` makes it again, or "custom".
    W : float64 (n, n), read only.
    graph : the undirected graph on 0..n-1.

    Errors: UsageError where W is not symmetric, a row does not sum to 1, or mixing does not lead to the average.
    """

    name: str
    W: np.ndarray
    graph: nx.Graph

    def __post_init__(self) -> None:
        W = np.array(self.W, dtype=np.float64)
        _check_matrix(W)
        W.flags.writeable = False
        object.__setattr__(self, "W", W)
        if self.n > 1 and self.rho > 1 - RTOL_SPECTRUM:
            why = "the graph is not connected" if not nx.is_connected(self.graph) else "an eigenvalue other than 1 has modulus 1 or more"
            raise UsageError(f"mixing with topology {self.name} does not lead to the average: {why}.")

    @property
    def n(self) -> int:
        return len(self.W)

    @cached_property
    def spectrum(self) -> np.ndarray:
        """Eigenvalues of W, ascending; the last is 1.

        >>> get_topology("complete", 4).spectrum.round(12) + 0.0
        array([0., 0., 0., 1.])
        """
        values = np.linalg.eigvalsh(self.W)
        values[np.argmin(np.abs(values - 1.0))] = 1.0  # exact: the vector of ones
        return np.sort(values)

    @property
    def second(self) -> float:
        """The largest modulus of an eigenvalue other than the 1 of the vector of ones; 0 for one worker."""
        others = np.delete(self.spectrum, int(np.argmax(self.spectrum == 1.0)))
        return float(np.max(np.abs(others), initial=0.0))

    @property
    def rho(self) -> float:
        """``||W'W - J||_2 = second**2``, the contraction of the squared consensus distance per mixing (matcha.2).

        >>> round(get_topology("matcha8(mixing=best)", 8).rho, 5)
        0.65378
        """
        return self.second**2

    @property
    def spectral_gap(self) -> float:
        """``1 - second``."""
        return 1.0 - self.second

    @cached_property
    def laplacian_spectrum(self) -> np.ndarray:
        """Eigenvalues of the graph's Laplacian, ascending; the first is 0."""
        return np.linalg.eigvalsh(_laplacian(self.graph))

    @property
    def members(self) -> np.ndarray:
        """The one matrix, (1, n, n); topologies that change have several (:class:`verify_rates.solvers.switching.Switching`)."""
        return self.W[None]

    def order(self, steps: int, seed: tuple[int, int]) -> np.ndarray:
        """Which of the members a step uses, int64 (1,): the one there is."""
        return np.zeros(1, np.int64)

    @property
    def mean_degree(self) -> float:
        """Links of a worker, on average."""
        return float(self.degrees.mean())

    @property
    def degrees(self) -> np.ndarray:
        """int64 (n,): neighbours of every worker."""
        return np.array([self.graph.degree[i] for i in range(self.n)], dtype=np.int64)

    def __str__(self) -> str:
        return f"{self.name}, n = {self.n}, rho = {self.rho:.6g}"


def _check_matrix(W: np.ndarray) -> None:
    if W.ndim != 2 or W.shape[0] != W.shape[1] or not len(W):
        raise UsageError(f"a mixing matrix must be square (n, n) with n >= 1, not of shape {W.shape}.")
    if not np.isfinite(W).all():
        raise UsageError("a mixing matrix must be finite.")
    off = np.abs(W - W.T)
    if off.max() > RTOL_MATRIX:
        i, j = divmod(int(np.argmax(off)), len(W))
        raise UsageError(f"a mixing matrix must be symmetric: W[{i}, {j}] = {W[i, j]:.6g} but W[{j}, {i}] = {W[j, i]:.6g}.")
    sums = np.abs(W.sum(axis=1) - 1.0)
    if sums.max() > RTOL_MATRIX * len(W):
        row = int(np.argmax(sums))
        raise UsageError(
            f"a mixing matrix must be doubly stochastic: row {row} sums to {W[row].sum():.6g}, not 1 "
            "(for an adjacency matrix, hand in networkx.from_numpy_array(A))."
        )


# --- mixing matrices -------------------------------------------------------------------------------------------------


def _laplacian(graph: nx.Graph) -> np.ndarray:
    A = nx.to_numpy_array(graph, nodelist=range(len(graph)), weight=None)
    return np.diag(A.sum(axis=1)) - A


def metropolis(graph: nx.Graph) -> np.ndarray:
    """Metropolis-Hastings: ``W_ij = 1 / (1 + max(deg_i, deg_j))`` on edges; Xiao, Boyd and Kim 2007 (average consensus)."""
    A = nx.to_numpy_array(graph, nodelist=range(len(graph)), weight=None)
    degree = A.sum(axis=1)
    W = A / (1.0 + np.maximum.outer(degree, degree))
    return W + np.diag(1.0 - W.sum(axis=1))


def max_degree(graph: nx.Graph) -> np.ndarray:
    """``W = I - L / (1 + max_i deg_i)``; the 1 keeps the eigenvalue -1 away on bipartite graphs."""
    L = _laplacian(graph)
    return np.eye(len(L)) - L / (1.0 + L.diagonal().max())


def best(graph: nx.Graph) -> np.ndarray:
    """``W = I - alpha L``, ``alpha = 2 / (lambda_2 + lambda_max)``: the smallest rho of one constant weight (matcha.3)."""
    L = _laplacian(graph)
    if len(L) == 1:
        return np.eye(1)
    values = np.linalg.eigvalsh(L)
    return np.eye(len(L)) - 2.0 / (values[1] + values[-1]) * L


MIXINGS: dict[str, Callable[[nx.Graph], np.ndarray]] = {f.__name__: f for f in (metropolis, max_degree, best)}


# --- graphs: name -> function of n and parameters --------------------------------------------------------------------


def complete(n: int) -> nx.Graph:
    return nx.complete_graph(n)


def ring(n: int) -> nx.Graph:
    return nx.Graph([(i, (i + 1) % n) for i in range(n)])


def path(n: int) -> nx.Graph:
    return nx.path_graph(n)


def star(n: int) -> nx.Graph:
    """Worker 0 in the middle."""
    return nx.star_graph(n - 1)


def grid(n: int, rows: int = 0) -> nx.Graph:
    return nx.convert_node_labels_to_integers(nx.grid_2d_graph(*_sides("grid", n, rows)), ordering="sorted")


def torus(n: int, rows: int = 0) -> nx.Graph:
    return nx.convert_node_labels_to_integers(nx.grid_2d_graph(*_sides("torus", n, rows), periodic=True), ordering="sorted")


def _sides(name: str, n: int, rows: int) -> tuple[int, int]:
    """Rows and columns, as square as n allows."""
    if rows < 0 or (rows and n % rows):
        raise UsageError(f"rows of {name} must divide n = {n}, not {rows}.")
    rows = rows or max(r for r in range(1, math.isqrt(n) + 1) if n % r == 0)
    if rows == 1 and n > 3:
        raise UsageError(f"a {name} of n = {n} workers has one row only; choose an n that is not prime, or 'path' or 'ring'.")
    return rows, n // rows


def hypercube(n: int) -> nx.Graph:
    """i and j are neighbours where they differ in one bit."""
    if n & (n - 1):
        raise UsageError(f"a hypercube needs n to be a power of two, not {n}.")
    return nx.Graph([(i, i ^ (1 << b)) for i in range(n) for b in range(n.bit_length() - 1)])


def exponential(n: int) -> nx.Graph:
    """i and i + 2^j (mod n), undirected (the static exponential graph made symmetric)."""
    return nx.Graph([(i, (i + (1 << j)) % n) for i in range(n) for j in range((n - 1).bit_length())])


def erdos_renyi(n: int, p: float = 0.5, seed: int = 0) -> nx.Graph:
    """Every edge with probability p; refused where the draw is not connected."""
    if not 0 <= p <= 1:
        raise UsageError(f"p of erdos_renyi must be in [0, 1], not {p!r}.")
    graph = nx.gnp_random_graph(n, p, seed=seed)
    if not nx.is_connected(graph):
        raise UsageError(f"erdos_renyi(p={p}, seed={seed}) on n = {n} workers is not connected; choose another seed or a larger p.")
    return graph


def matcha8(n: int) -> nx.Graph:
    """The 8-node graph of MATCHA's Fig. 1(a), by its five matchings (papers/matcha.md)."""
    if n != 8:
        raise UsageError(f"matcha8 is a graph of n = 8 workers, not {n}.")
    return nx.Graph([edge for matching in MATCHA8_MATCHINGS for edge in matching])


MATCHA8_MATCHINGS: tuple[tuple[tuple[int, int], ...], ...] = (
    ((1, 5), (6, 7), (0, 4), (2, 3)),
    ((1, 7), (3, 6)),
    ((1, 0), (3, 7), (5, 6)),
    ((1, 2), (7, 0)),
    ((3, 1),),
)

GRAPHS: dict[str, Callable[..., nx.Graph]] = {
    f.__name__: f for f in (complete, ring, path, star, grid, torus, hypercube, exponential, erdos_renyi, matcha8)
}
_PARAMETERS: dict[str, dict[str, type]] = {"grid": {"rows": int}, "torus": {"rows": int}, "erdos_renyi": {"p": float, "seed": int}}


_OWN: dict[str, Callable[..., Any]] = {}  # of the user's files; the names are in GRAPHS too


def topology(make: Callable[..., Any]) -> Callable[..., Any]:
    """Register a topology of one's own under the function's name: of n workers it makes a graph or a mixing matrix.

    Parameters
    ----------
    make : ``make(n, *parameters)`` returns what :func:`get_topology` takes: a networkx graph or a list of edges on 0..n-1 (mixed
        with Metropolis weights unless ``mixing`` says otherwise), or a symmetric doubly stochastic (n, n) matrix.  It must return
        the same each time; parameters are numbers, annotated ``int``, ``bool`` or ``float``.

    Errors: UsageError for a taken name or a function without n; what it returns is checked where it is used.

    >>> @topology
    ... def wheel(n, spokes: int = 1):
    ...     return [(0, i) for i in range(1, n)] + [(i, i % (n - 1) + 1) for i in range(1, n)]
    >>> get_topology("wheel", 5).name
    'wheel(mixing=metropolis)'
    >>> del GRAPHS["wheel"], _OWN["wheel"], _PARAMETERS["wheel"]
    """
    name, parameters = make.__name__, list(inspect.signature(make).parameters.values())
    if not name.isidentifier():
        raise UsageError("a topology is a function with a name, the one by which it is found, not a lambda.")
    if not parameters:
        raise UsageError(f"topology {name} must be a function of n, the number of workers, such as {name}(n).")
    from verify_rates.solvers.switching import SWITCHING

    if name in SWITCHING or (name in GRAPHS and (name not in _OWN or home(_OWN[name]) != home(make))):
        raise UsageError(f"a topology named {name!r} exists already; choose another name.")
    GRAPHS[name] = _OWN[name] = make
    _PARAMETERS[name] = {p.name: _kind(p.annotation) for p in parameters[1:]}
    return make


def topologies() -> list[str]:
    """Names of the graphs that :func:`get_topology` knows; those that change are in :data:`verify_rates.solvers.switching.SWITCHING`.

    >>> "ring" in topologies()
    True
    """
    return sorted(GRAPHS)


def get_topology(spec: Any, n: int | None = None, *, mixing: str | None = None) -> Any:
    """The topology of a text, a networkx graph, a list of edges or a mixing matrix, on n workers.

    Returns a :class:`Topology`, or a :class:`~verify_rates.solvers.switching.Switching` where the graph changes from step to step.

    Parameters
    ----------
    spec : text such as ``ring``, ``torus(rows=2)``, ``erdos_renyi(p=0.4, seed=1)`` or ``star(mixing=best)``, or of a changing one,
        ``one_peer``, ``alternating(graph=ring)``, ``random_matchings(graph=torus, p=0.5)``; a networkx graph; edges
        ``[(0, 1), (1, 2)]``; an (n, n) mixing matrix, taken as it is; or a topology made before.
    n : number of workers; may be left out where ``spec`` fixes it.
    mixing : ``metropolis`` (default), ``max_degree`` or ``best`` (best constant weight).

    Errors: UsageError for an unknown name, an n that does not fit, a graph that is not connected or has other nodes than
    0..n-1, a matrix that is not symmetric and doubly stochastic.

    >>> get_topology("ring", 3).W.round(3)
    array([[0.333, 0.333, 0.333],
           [0.333, 0.333, 0.333],
           [0.333, 0.333, 0.333]])
    >>> get_topology([(0, 1), (1, 2)]).n
    3
    """
    if n is not None and (isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1):
        raise UsageError(f"n must be a whole number of workers, at least 1, not {n!r}.")
    if n is not None and n > MOST_WORKERS:
        raise UsageError(f"a topology has at most {MOST_WORKERS} workers, not {n}: its mixing matrix has n^2 entries.")
    made: Any
    if hasattr(spec, "members"):
        made = spec
    elif isinstance(spec, str):
        made = _named(spec, n, mixing)
    elif isinstance(spec, np.ndarray):
        if mixing is not None:
            raise UsageError("mixing has no effect on a mixing matrix; hand in a graph or leave mixing out.")
        _check_matrix(np.asarray(spec, dtype=np.float64))
        made = Topology("custom", spec, _support(spec))
    else:
        made = _from_graph("custom", _user_graph(spec), mixing or "metropolis")
    if n is not None and made.n != n:
        raise UsageError(f"topology {made.name} has {made.n} workers, but n = {n}.")
    return made


def _named(text: str, n: int | None, mixing: str | None) -> Any:
    from verify_rates.solvers import switching

    name, given, named = split_spec(text, "topology")
    if name not in GRAPHS and name not in switching.SWITCHING:
        raise nearest(name, [*GRAPHS, *switching.SWITCHING], "topology")
    if name not in GRAPHS:
        if n is None:
            raise UsageError(f"topology {name} needs the number of workers n.")
        return switching.named(text, int(n), mixing)
    kinds: dict[str, type] = {**_PARAMETERS.get(name, {}), "mixing": str}
    if len(given) >= len(kinds):
        raise UsageError(f"topology {name} takes its parameters by name: {', '.join(kinds)}.")
    texts = {**dict(zip(kinds, given, strict=False)), **named}
    for key in texts:
        if key not in kinds:
            raise nearest(key, kinds, f"parameter of {name}")
    chosen = texts.pop("mixing", None)
    if mixing is not None and chosen not in (None, mixing):
        raise UsageError(f"topology {text!r} and mixing={mixing!r} name two mixing matrices; give one.")
    given_mixing = mixing or chosen
    chosen = given_mixing or "metropolis"
    n = 8 if n is None and name == "matcha8" else n
    if n is None:
        raise UsageError(f"topology {name} needs the number of workers n.")
    values = {key: read_value(name, key, value, kinds[key]) for key, value in texts.items()}
    if name in _OWN:
        return _own(name, int(n), values, given_mixing)
    full = ", ".join([*(f"{key}={value}" for key, value in values.items()), f"mixing={chosen}"])
    graph = GRAPHS[name](int(n), **values)
    graph.add_nodes_from(range(n))
    return _from_graph(f"{name}({full})", graph, chosen)


def _own(name: str, n: int, values: dict[str, Any], mixing: str | None) -> Topology:
    """What a user's function makes, under its name; UsageError where it fails, or where a second call makes something else."""
    first, second = (called(f"topology {name}", _OWN[name], n, **values) for _ in range(2))
    try:
        made, again = get_topology(first, mixing=mixing), get_topology(second, mixing=mixing)
    except UsageError as error:
        raise UsageError(f"topology {name} does not make one for n = {n}: {error}") from None
    if made.n != n:
        raise UsageError(f"topology {name} was asked for n = {n} workers but makes {made.n}.")
    if not np.array_equal(made.W, again.W):
        raise UsageError(f"topology {name} makes another graph each time; take a seed as a parameter, as in {name}(n, seed: int = 0).")
    options = [f"{key}={value}" for key, value in values.items()]
    if not isinstance(first, (np.ndarray, Topology)):
        options.append(f"mixing={mixing or 'metropolis'}")
    return Topology(f"{name}({', '.join(options)})" if options else name, made.W, made.graph)


def _from_graph(name: str, graph: nx.Graph, mixing: str) -> Topology:
    if mixing not in MIXINGS:
        raise nearest(mixing, MIXINGS, "mixing")
    graph = nx.Graph(graph.edges)
    graph.add_nodes_from(range(max(len(graph), 1)))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    if not nx.is_connected(graph):
        parts = sorted(map(sorted, nx.connected_components(graph)))
        raise UsageError(f"topology {name} is not connected: workers {parts[0]} and {parts[1]} cannot reach each other.")
    return Topology(name, MIXINGS[mixing](graph), graph)


def _user_graph(spec: Any) -> nx.Graph:
    if not isinstance(spec, (nx.Graph, Iterable)):
        raise UsageError(f"a topology is a name, a networkx graph, a list of edges or an (n, n) array, not {type(spec).__name__}.")
    if not isinstance(spec, nx.Graph):
        edges = list(spec)
        if not edges or not all(isinstance(e, (tuple, list)) and len(e) == 2 for e in edges):
            raise UsageError("a list of edges must hold pairs of worker numbers, such as [(0, 1), (1, 2)].")
        spec = nx.Graph([tuple(e) for e in edges])
    if spec.is_directed():
        raise UsageError("a topology is an undirected graph; use graph.to_undirected().")
    if set(spec.nodes) != set(range(len(spec))) or not len(spec):
        raise UsageError(f"the workers of a graph must be numbered 0..n-1, not {sorted(map(str, spec.nodes))[:5]}.")
    return spec


def _support(W: np.ndarray) -> nx.Graph:
    graph = nx.from_numpy_array(np.asarray(W) != 0)
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    return graph
