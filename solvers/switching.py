"""Topologies that change: a periodic sequence of graphs, or one drawn anew in every step; no single graph has to be connected."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import networkx as nx
import numpy as np

from verify_rates.solvers.compressors import _kind, read_value, split_spec
from verify_rates.solvers.method import UsageError, nearest
from verify_rates.solvers.topologies import (
    GRAPHS,
    MATCHA8_MATCHINGS,
    MIXINGS,
    RTOL_SPECTRUM,
    _check_matrix,
    _laplacian,
    _support,
    _user_graph,
    get_topology,
)
from verify_rates.solvers.words import Unsupported

MOST_MATCHINGS = 12  # their subsets are enumerated: 4096 matrices
MOST_ENTRIES = 2**26  # of all matrices together: half a gigabyte
DRAWS = 11  # apart from the draws of workers, which have two numbers in their seed


@dataclass(frozen=True, eq=False)
class Switching:
    """Mixing matrices of which every step uses one: step t the one of number ``t mod period``, or one drawn with given chances.

    Every matrix is symmetric and doubly stochastic; together they lead to the average.  All mixings of one step use the same matrix.

    Attributes
    ----------
    name : text from which :func:`verify_rates.solvers.topologies.get_topology` makes it again, or "custom".
    members : float64 (P, n, n), read only.
    chances : float64 (P,), summing to 1; None: in turn.

    Errors: UsageError where a matrix is not symmetric and doubly stochastic, or where mixing does not lead to the average.

    >>> get_topology("one_peer", 8).window
    3
    """

    name: str
    members: np.ndarray
    chances: np.ndarray | None = None

    def __post_init__(self) -> None:
        members = np.array(self.members, dtype=np.float64)
        for W in members:
            _check_matrix(W)
        members.flags.writeable = False
        object.__setattr__(self, "members", members)
        if self.chances is not None:
            object.__setattr__(self, "chances", _chances(self.chances, len(members)))
        if self.n > 1 and self._slowest > 1 - RTOL_SPECTRUM:
            apart = not nx.is_connected(self.union)
            why = "the links of all steps together do not connect the workers" if apart else "some deviation never shrinks"
            raise UsageError(f"mixing with topology {self.name} does not lead to the average: {why}.")

    @property
    def n(self) -> int:
        return self.members.shape[1]

    @property
    def random(self) -> bool:
        return self.chances is not None

    @cached_property
    def union(self) -> nx.Graph:
        """Every link that some step may use."""
        return _support(np.any(self._used() != 0, axis=0))

    def _used(self) -> np.ndarray:
        return self.members if self.chances is None else self.members[self.chances > 0]

    def order(self, steps: int, seed: tuple[int, int]) -> np.ndarray:
        """The number of the matrix that every step uses, int64 (steps,); draws depend on the seed and the trial alone."""
        if self.chances is None:
            return np.arange(steps, dtype=np.int64) % len(self.members)
        rng = np.random.default_rng(np.random.SeedSequence((*seed, DRAWS)))
        return rng.choice(len(self.members), size=steps, p=self.chances).astype(np.int64)

    # --- what mixing does ---------------------------------------------------------------------------------------------

    @cached_property
    def expected(self) -> np.ndarray:
        """``E[W'W]``, (n, n); of a periodic sequence the mean over a random phase."""
        return np.einsum("k,kij,kil->jl", self._weights, self.members, self.members)

    @property
    def _weights(self) -> np.ndarray:
        return np.full(len(self.members), 1 / len(self.members)) if self.chances is None else self.chances

    @property
    def rho(self) -> float:
        """``||E[W'W] - J||_2``: independent draws contract the expected squared consensus distance so much a step (matcha.2).

        Errors: Unsupported for a periodic sequence, of which one step need not contract anything.
        """
        if self.chances is None:
            raise Unsupported(
                f"rho of topology {self.name!r}: it is periodic and single steps need not contract; "
                f"a period of {len(self.members)} does, by {self.period_rho:.6g} (period_rho)"
            )
        return self._expected_rho

    @property
    def _expected_rho(self) -> float:
        return float(np.abs(np.linalg.eigvalsh(self.expected - 1 / self.n)).max())

    def windows(self, steps: int) -> list[np.ndarray]:
        """Products of ``steps`` matrices in a row, one for every phase of a periodic sequence."""
        if self.random:
            raise Unsupported(f"the products of topology {self.name!r}: it is drawn anew in every step")
        P = len(self.members)
        products = []
        for s in range(P):
            product = np.eye(self.n)
            for k in range(steps):
                product = self.members[(s + k) % P] @ product
            products.append(product)
        return products

    @property
    def period_rho(self) -> float:
        """``max ||W_{s+P-1} ... W_s - J||_2^2`` over the phases s: so much a period contracts the squared consensus distance."""
        return max(float(np.linalg.norm(M - 1 / self.n, 2)) ** 2 for M in self.windows(len(self.members)))

    @property
    def _slowest(self) -> float:
        """Below 1 where mixing leads to the average: rho, or the spectral radius of a period's product."""
        if self.random:
            return self._expected_rho
        return float(np.abs(np.linalg.eigvals(self.windows(len(self.members))[0] - 1 / self.n)).max())

    @property
    def window(self) -> int:
        """B, the smallest number of steps in a row whose links together connect all workers, whenever they begin (B-connected).

        Errors: Unsupported where graphs are drawn: no number of steps is sure to connect the workers.
        """
        if self.random:
            raise Unsupported(f"the window of topology {self.name!r}: graphs are drawn, no number of steps is sure to connect the workers")
        return next(b for b in range(1, len(self.members) + 1) if self.connected_within(b))

    def connected_within(self, steps: int) -> bool:
        """Do the links of any ``steps`` steps in a row together connect all workers?"""
        P = len(self.members)
        links = self.members != 0
        each = (np.any([links[(s + k) % P] for k in range(steps)], axis=0) for s in range(P))
        return not self.random and all(nx.is_connected(_support(on)) for on in each)

    @property
    def mean_degree(self) -> float:
        """Links a worker uses in a step, on average over workers, phases and draws."""
        off = (self.members != 0) & ~np.eye(self.n, dtype=bool)
        return float(self._weights @ off.sum(axis=(1, 2))) / self.n

    # --- what only one graph has --------------------------------------------------------------------------------------

    def _refuse(self, what: str) -> NoReturn:
        raise Unsupported(f"{what} of topology {self.name!r}: it changes from step to step and has no single graph or mixing matrix")

    @property
    def W(self) -> np.ndarray:
        self._refuse("the mixing matrix")

    @property
    def graph(self) -> nx.Graph:
        self._refuse("the graph")

    @property
    def spectrum(self) -> np.ndarray:
        self._refuse("the spectrum")

    @property
    def second(self) -> float:
        self._refuse("the second eigenvalue")

    @property
    def spectral_gap(self) -> float:
        self._refuse("the spectral gap")

    @property
    def laplacian_spectrum(self) -> np.ndarray:
        self._refuse("the Laplacian's spectrum")

    @property
    def degrees(self) -> np.ndarray:
        self._refuse("the degrees")

    def __str__(self) -> str:
        if self.random:
            return f"{self.name}, n = {self.n}, drawn, rho = {self.rho:.6g}"
        return f"{self.name}, n = {self.n}, period {len(self.members)}, B = {self.window}, period_rho = {self.period_rho:.6g}"


def _chances(chances: Any, count: int) -> np.ndarray:
    p = np.array(chances, dtype=np.float64)
    if p.shape != (count,) or not np.all(np.isfinite(p)) or p.min() < 0 or abs(p.sum() - 1) > RTOL_SPECTRUM:
        raise UsageError(f"chances must be {count} numbers of at least 0 that sum to 1.")
    p.flags.writeable = False
    return p / p.sum()


def switching(members: Sequence[Any], chances: Any = None, *, mixing: str = "metropolis", name: str = "custom") -> Switching:
    """A changing topology of one's own.

    Parameters
    ----------
    members : graphs, lists of edges on 0..n-1, (n, n) matrices or topologies, one a step in turn; a graph needs all n nodes, no links.
    chances : draw one in every step with these probabilities instead; they sum to 1.
    mixing : weights of graphs: ``metropolis``, ``max_degree``; ``best`` needs connected graphs.

    Errors: UsageError for members of different sizes or none, and as in :class:`Switching`.

    >>> t = switching([[(0, 1), (2, 3)], [(1, 2), (0, 3)]])
    >>> t.window, round(t.period_rho, 6) + 0.0
    (2, 0.0)
    """
    found = [_matrix(m, mixing) for m in members]
    if not found:
        raise UsageError("a changing topology needs at least one graph.")
    sizes = sorted({len(W) for W in found})
    if len(sizes) > 1:
        raise UsageError(f"the graphs of a changing topology must have the same workers, not {sizes[0]} and {sizes[1]}.")
    return Switching(name, np.stack(found), chances)


def _matrix(member: Any, mixing: str) -> np.ndarray:
    if mixing not in MIXINGS:
        raise nearest(mixing, MIXINGS, "mixing")
    if isinstance(member, np.ndarray):
        W = np.asarray(member, dtype=np.float64)
        _check_matrix(W)
        return W
    if hasattr(member, "W"):
        return member.W
    return MIXINGS[mixing](_user_graph(member))


def matchings(graph: nx.Graph) -> list[np.ndarray]:
    """Laplacians of a decomposition into matchings: maximum matchings are peeled until no edge is left.

    >>> [int(L.trace()) // 2 for L in matchings(nx.path_graph(4))]
    [2, 1]
    """
    left, found = nx.Graph(graph), []
    while left.number_of_edges():
        peeled = nx.Graph(sorted(nx.max_weight_matching(left, maxcardinality=True)))
        left.remove_edges_from(peeled.edges)
        found.append(_only(peeled.edges, len(graph)))
    return found


def _only(edges: Any, n: int) -> np.ndarray:
    """The Laplacian of these links alone."""
    made = nx.Graph(list(edges))
    made.add_nodes_from(range(n))
    return _laplacian(made)


def decomposed(name: str, n: int) -> list[np.ndarray]:
    """:func:`matchings` of a named graph; the authors' own for MATCHA's figure."""
    if name == "matcha8":
        return [_only(edges, 8) for edges in MATCHA8_MATCHINGS]
    return matchings(_plain(name, n))


def rho_of(Ls: Sequence[np.ndarray], p: Any, alpha: float) -> float:
    """``||E[W'W] - J||`` of ``W = I - alpha sum B_j L_j``, B_j independent with chances p (matcha.2).

    ``||I - J - 2 alpha Lbar + alpha^2 (Lbar^2 + 2 Ltil)||_2`` with ``Lbar = sum p_j L_j``, ``Ltil = sum p_j (1 - p_j) L_j``.
    """
    n = len(Ls[0])
    mean = sum(q * L for q, L in zip(p, Ls, strict=True))
    spread = sum(q * (1 - q) * L for q, L in zip(p, Ls, strict=True))
    return float(np.abs(np.linalg.eigvalsh(np.eye(n) - 1 / n - 2 * alpha * mean + alpha**2 * (mean @ mean + 2 * spread))).max())


def best_alpha(Ls: Sequence[np.ndarray], p: Any) -> tuple[float, float]:
    """``(alpha, rho)``: the minimum of the convex function rho(alpha), by a search in one dimension."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(lambda a: rho_of(Ls, p, a), bounds=(0.0, 2.0), method="bounded", options={"xatol": 1e-10})
    return float(found.x), float(found.fun)


# --- by name: function of n and parameters ---------------------------------------------------------------------------


def one_peer(n: int) -> Switching:
    """Step t pairs worker i with i xor 2^(t mod log2 n): log2 n steps average exactly (one-peer hypercube)."""
    if n & (n - 1):
        raise UsageError(f"one_peer needs n to be a power of two, not {n}.")
    pairs = [[(i, i ^ (1 << b)) for i in range(n)] for b in range(max(1, n.bit_length() - 1))]
    return Switching("one_peer", np.stack([np.eye(n) - _only(p, n) / 2 for p in pairs]) if n > 1 else np.eye(1)[None])


def alternating(n: int, graph: str = "ring") -> Switching:
    """The matchings of a graph in turn, pairs average."""
    Ls = decomposed(graph, n) or [np.zeros((n, n))]
    return Switching(f"alternating(graph={graph})", np.stack([np.eye(n) - L / 2 for L in Ls]))


def scattered(n: int, graph: str = "ring", window: int = 3, seed: int = 0) -> Switching:
    """The links of a graph dealt at random to the steps of a window, again and again: connected over a window alone."""
    edges = sorted(tuple(sorted(e)) for e in _plain(graph, n).edges)
    if not 1 <= window <= max(len(edges), 1):
        raise UsageError(f"window of scattered must be between 1 and the {len(edges)} links of {graph}, not {window}.")
    dealt = np.random.default_rng([_seed(seed), 12]).permutation(len(edges))
    parts = [[edges[k] for k in part] for part in np.array_split(dealt, window)]
    members = []
    for part in parts:
        made = nx.Graph(part)
        made.add_nodes_from(range(n))
        members.append(MIXINGS["metropolis"](made))
    return Switching(f"scattered(graph={graph}, window={window}, seed={seed})", np.stack(members))


def periodic(n: int, graphs: str = "ring+star", mixing: str = "metropolis") -> Switching:
    """Named graphs in turn, as in periodic(graphs=ring+star)."""
    members = [get_topology(g.strip(), n, mixing=mixing).W for g in graphs.split("+")]
    return Switching(f"periodic(graphs={graphs}, mixing={mixing})", np.stack(members))


def random_matchings(n: int, graph: str = "ring", p: float = 0.5) -> Switching:
    """Every matching of a graph takes part with probability p, with the weight that makes rho smallest (MATCHA with equal chances)."""
    _probability("random_matchings", p)
    Ls = decomposed(graph, n)
    if len(Ls) > MOST_MATCHINGS:
        raise UsageError(f"{graph} on n = {n} workers has {len(Ls)} matchings; random_matchings enumerates at most {MOST_MATCHINGS}.")
    if 2 ** len(Ls) * n * n > MOST_ENTRIES:
        raise UsageError(f"random_matchings on n = {n} workers needs {2 ** len(Ls)} matrices; choose a graph of fewer matchings.")
    alpha, _ = best_alpha(Ls, [p] * len(Ls)) if Ls else (0.0, 0.0)
    members, chances = [], []
    for on in itertools.product((False, True), repeat=len(Ls)):
        members.append(np.eye(n) - alpha * sum((L for b, L in zip(on, Ls, strict=True) if b), np.zeros((n, n))))
        chances.append(math.prod(p if b else 1 - p for b in on))
    return Switching(f"random_matchings(graph={graph}, p={p})", np.stack(members), np.array(chances))


def random_edge(n: int, graph: str = "ring") -> Switching:
    """One link of a graph a step, all equally likely, whose ends average (Boyd, Ghosh, Prabhakar and Shah 2006, by links)."""
    edges = sorted(tuple(sorted(e)) for e in _plain(graph, n).edges) or [(0, 0)]
    if len(edges) * n * n > MOST_ENTRIES:
        raise UsageError(f"random_edge on n = {n} workers needs {len(edges)} matrices; choose fewer workers or links.")
    members = [np.eye(n) - (_only([e], n) / 2 if e[0] != e[1] else 0.0) for e in edges]
    return Switching(f"random_edge(graph={graph})", np.stack(members), np.full(len(edges), 1 / len(edges)))


def intermittent(n: int, graph: str = "ring", p: float = 0.5, mixing: str = "metropolis") -> Switching:
    """All links of a graph with probability p, none otherwise: rho = 1 - p (1 - rho of the graph) (matcha.4)."""
    _probability("intermittent", p)
    W = get_topology(graph, n, mixing=mixing).W
    return Switching(f"intermittent(graph={graph}, p={p}, mixing={mixing})", np.stack([W, np.eye(n)]), np.array([p, 1 - p]))


SWITCHING: dict[str, Callable[..., Switching]] = {
    f.__name__: f for f in (one_peer, alternating, scattered, periodic, random_matchings, random_edge, intermittent)
}


def _plain(name: str, n: int) -> nx.Graph:
    """A named connected graph on n workers."""
    if name not in GRAPHS:
        raise nearest(name, GRAPHS, "graph")
    return get_topology(name, n).graph


def _probability(owner: str, p: float) -> None:
    if not 0 < p <= 1:
        raise UsageError(f"p of {owner} must be in (0, 1], not {p!r}.")


def _seed(seed: int) -> int:
    if seed < 0:
        raise UsageError(f"seed must be at least 0, not {seed}.")
    return seed


def named(text: str, n: int, mixing: str | None = None) -> Switching:
    """The changing topology of a text, as :func:`verify_rates.solvers.topologies.get_topology` reads it.

    >>> named("random_matchings(graph=ring, p=1.0)", 4).rho < 1
    True
    """
    name, given, texts = split_spec(text, "topology")
    make = SWITCHING[name]
    parameters = list(inspect.signature(make).parameters.values())[1:]
    kinds = {p.name: str if p.annotation == "str" else _kind(p.annotation) for p in parameters}
    if len(given) > len(kinds):
        raise UsageError(f"topology {name} takes {len(kinds)} parameter(s): {', '.join(kinds) or 'none'}.")
    texts = {**dict(zip(kinds, given, strict=False)), **texts}
    if mixing is not None:
        if texts.get("mixing", mixing) != mixing:
            raise UsageError(f"topology {text!r} and mixing={mixing!r} name two mixing matrices; give one.")
        texts["mixing"] = mixing
    for key in texts:
        if key not in kinds:
            raise nearest(key, kinds, f"parameter of {name}")
    return make(n, **{k: v if kinds[k] is str else read_value(name, k, v, kinds[k]) for k, v in texts.items()})
