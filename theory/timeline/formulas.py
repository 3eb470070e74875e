"""Closed forms of the time per step: published ones, and one derived from any small event graph."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy as sp

T_comp, T_tx, lat = sp.symbols("T_comp T_tx lat", nonnegative=True)
tau = sp.Symbol("tau", integer=True, nonnegative=True)
H = sp.Symbol("H", integer=True, positive=True)

_SYNCHRONOUS = T_comp + T_tx + lat

# Seconds per step for a FIFO link, T_tx = bytes/bw: the transfer holds the link, the latency does not.
CLOSED_FORMS: dict[str, sp.Expr] = {
    "gd": _SYNCHRONOUS,  # deco.13
    "cgd": _SYNCHRONOUS,
    "ef_sgd": _SYNCHRONOUS,
    "ef21": _SYNCHRONOUS,
    "heavy_ball": _SYNCHRONOUS,
    "nesterov": _SYNCHRONOUS,
    "triple_momentum": _SYNCHRONOUS,
    "gossip_sgd": _SYNCHRONOUS,  # one neighbour; T_tx is the time of all messages of one exchange
    "dd_ef_sgd": sp.Max(T_comp, T_tx, (T_comp + T_tx + lat) / (tau + 1)),  # deco.11
    "local_sgd": T_comp + (T_tx + lat) / H,
    "acco": sp.Max(2 * T_comp, 2 * T_tx, T_comp + T_tx + lat),  # acco.6 where lat = 0, T_comp = n*T_g/2, T_m = T_tx
}

Term = tuple[dict[str, Any], int]  # how often each cost occurs on a cycle (whole numbers or fractions), and its tokens
MOST_CYCLES = 2000
MOST_TASKS = 200


def derived(terms: Sequence[Term], steps: int) -> sp.Expr:
    """``Max`` over the cycles, seconds per step; terms that a mixture of others always covers are left out."""
    names = sorted({name for counts, _ in terms for name in counts})
    rows = np.unique([[float(counts.get(name, 0)) / k for name in names] for counts, k in terms], axis=0)
    exact = {tuple(float(counts.get(name, 0)) / k for name in names): (counts, k) for counts, k in terms}
    kept = [tuple(rows[i]) for i in undominated(rows)]
    symbols = {name: sp.Symbol(name, nonnegative=True) for name in names}
    made = []
    for row in kept:
        counts, k = exact[row]
        made.append(sum(sp.Rational(c) * symbols[name] for name, c in sorted(counts.items())) / sp.Integer(k * steps))
    return sp.Max(*made)


def undominated(rows: np.ndarray) -> list[int]:
    """Rows that exceed every convex combination of the other ones for some non-negative costs."""
    kept = list(range(len(rows)))
    for i in range(len(rows)):
        others = [j for j in kept if j != i]
        if others and _covered(rows[i], rows[others]):
            kept.remove(i)
    return kept


def _covered(row: np.ndarray, others: np.ndarray) -> bool:
    from scipy.optimize import linprog

    n = len(others)
    out = linprog(np.zeros(n), A_ub=-others.T, b_ub=-row, A_eq=np.ones((1, n)), b_eq=[1.0], method="highs")
    return out.status == 0


def simple_cycles(count: int, edges: Sequence[tuple[int, int]]) -> list[list[int]] | None:
    """All simple cycles as lists of edge numbers; None where there are more than 2000."""
    import networkx as nx

    graph = nx.DiGraph()
    for e, (a, b) in enumerate(edges):  # an edge is a node of its own, so that parallel edges stay apart
        graph.add_edges_from([(a, count + e), (count + e, b)])
    found = list(itertools.islice(nx.simple_cycles(graph), MOST_CYCLES + 1))
    return None if len(found) > MOST_CYCLES else [[a - count for a in cycle if a >= count] for cycle in found]


def closed_form(name: str) -> Callable[..., float] | None:
    """The published form of that method as a function of ``(T_comp, T_tx, lat, tau, H)``."""
    expr = CLOSED_FORMS.get(name)
    return None if expr is None else sp.lambdify((T_comp, T_tx, lat, tau, H), expr, "math")
