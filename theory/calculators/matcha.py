"""MATCHA: matchings, the contraction constant rho, and checks of its closed forms."""

from __future__ import annotations

import itertools
from fractions import Fraction

import networkx as nx
import numpy as np

from verify_rates.solvers.switching import matchings, rho_of
from verify_rates.theory.calculators.lines import function, pace_of
from verify_rates.theory.evidence import Found

SIZE = 8
RHO_RTOL = 1e-12  # eigenvalues of 8 x 8 matrices with entries of order 1


def graph_of(name: str) -> nx.Graph:
    from verify_rates.solvers.topologies import get_topology

    return get_topology(name, SIZE).graph


def laplacian(graph: nx.Graph) -> np.ndarray:
    return nx.laplacian_matrix(graph, nodelist=sorted(graph)).toarray().astype(float)


def enumerated(activations: list[tuple[float, np.ndarray]]) -> float:
    """``||E[W'W] - J||_2`` over weighted mixing matrices."""
    n = len(activations[0][1])
    return _norm(sum(q * W.T @ W for q, W in activations) - np.ones((n, n)) / n)


def _norm(M: np.ndarray) -> float:
    return float(np.abs(np.linalg.eigvalsh(M)).max())


def _equal(measured: float, said: float) -> Found:
    """Two numbers of order 1 that have to agree to the accuracy of eigenvalues."""
    return Found(abs(measured - said), abs(measured - said), RHO_RTOL, proves=True, message=f"{measured:.10f} and {said:.10f}")


def _vanilla(graph: nx.Graph) -> tuple[float, float, float]:
    eigenvalues = np.linalg.eigvalsh(laplacian(graph))
    low, high = eigenvalues[1], eigenvalues[-1]
    return 2 / (low + high), ((high - low) / (high + low)) ** 2, high


def matching_square(graph: str) -> Found:
    """matcha.1 in whole numbers, and that the matchings are disjoint and give back the graph."""
    made = graph_of(graph)
    Ls = matchings(made)
    wrong = sum(not np.array_equal(L @ L, 2 * L) for L in Ls) + (not np.array_equal(sum(Ls), laplacian(made)))
    return Found.count(wrong, len(Ls) + 1, proves=True)


def rho_by_enumeration(graph: str, share: float, alpha: float) -> Found:
    """matcha.2 with unequal probabilities, against all activations."""
    Ls = matchings(graph_of(graph))
    p = np.minimum(1.0, share * np.linspace(0.5, 1.5, len(Ls)))
    weighted = []
    for on in itertools.product((0, 1), repeat=len(Ls)):
        weight = float(np.prod(np.where(on, p, 1 - p)))
        weighted.append((weight, np.eye(SIZE) - alpha * sum(b * L for b, L in zip(on, Ls, strict=True))))
    return _equal(rho_of(Ls, p, alpha), enumerated(weighted))


def vanilla(graph: str) -> Found:
    """matcha.3: the closed form equals the smallest rho over a fine grid of alpha, and rho at the stated alpha."""
    made = graph_of(graph)
    Ls = matchings(made)
    alpha, said, high = _vanilla(made)
    ones = np.ones(len(Ls))
    scanned = min(rho_of(Ls, ones, a) for a in np.linspace(0, 2 / high, 400))
    if scanned < said - RHO_RTOL:
        return Found(said - scanned, said - scanned, 0.0, proves=True, message=f"alpha on a grid reaches {scanned:.8f} < {said:.8f}")
    return _equal(rho_of(Ls, ones, alpha), said)


def periodic(graph: str, share: float) -> Found:
    """matcha.4: all matchings together with probability ``share``."""
    made = graph_of(graph)
    alpha, rho, _ = _vanilla(made)
    W = np.eye(SIZE) - alpha * laplacian(made)
    return _equal(enumerated([(share, W), (1 - share, np.eye(SIZE))]), 1 - share * (1 - rho))


def existence(graph: str, share: float, seed: int) -> Found:
    """matcha.5: rho at alpha0 against its bound, for random probabilities of a connected mean graph."""
    Ls = matchings(graph_of(graph))
    p = np.minimum(1.0, share * np.random.default_rng([seed, 5]).uniform(0.2, 1.8, len(Ls)))
    eigenvalues = np.linalg.eigvalsh(sum(q * L for q, L in zip(p, Ls, strict=True)))
    noise = _norm(sum(q * (1 - q) * L for q, L in zip(p, Ls, strict=True)))
    curvature = eigenvalues[-1] ** 2 + 2 * noise
    measured = rho_of(Ls, p, eigenvalues[1] / curvature)
    return Found(measured, measured, 1 - eigenvalues[1] ** 2 / curvature, proves=True)


# matcha.7 and matcha.8: a is t_match, q the sum of the activation probabilities, N the number of iterations.
MATCHING = "lat + size/bw"
EXPECTED = "a*q"
RUNTIME = "N*(T_comp + a*q)"


def _activations(p: list[Fraction]) -> list[tuple[Fraction, int]]:
    """All activations with their probability and the number of matchings that take part."""
    found = []
    for on in itertools.product((0, 1), repeat=len(p)):
        weight = Fraction(1)
        for b, q in zip(on, p, strict=True):
            weight *= q if b else 1 - q
        found.append((weight, sum(on)))
    return found


def _probabilities(M: int, budget: Fraction, seed: int) -> list[Fraction]:
    """Unequal ones, cut off at 1, that use at most the budget ``budget*M``."""
    raw = [Fraction(int(v)) for v in np.random.default_rng([seed, M, 7]).integers(1, 9, M)]
    return [min(Fraction(1), budget * M * v / sum(raw)) for v in raw]


def communication_time(graph: str, budget: int) -> Found:
    """matcha.7: the mean time of the active matchings, by enumeration, is ``t_match*sum_j p_j`` and within the budget (in tenths).

    One matching is an exchange with one neighbour: its time is that of the step function's time line.
    """
    M, share = len(matchings(graph_of(graph))), Fraction(budget, 10)
    p, t_match = _probabilities(M, share, budget), function(MATCHING, "lat size bw")(Fraction(1), Fraction(3), Fraction(2))
    mean = sum(weight * count for weight, count in _activations(p)) * t_match
    wrong = [mean != function(EXPECTED, "a q")(t_match, sum(p)), mean > share * M * t_match]
    wrong.append(sum(w * c for w, c in _activations([Fraction(1)] * M)) * t_match != M * t_match)
    one = pace_of("gossip_sgd", topology="path", n=2)
    wrong.append(one.subs({s: {"T_comp": 0, "lat": 1, "T_tx": Fraction(3, 2)}[s.name] for s in one.free_symbols}) != t_match)
    return Found.count(sum(map(bool, wrong)), len(wrong), proves=True)


def runtime(graph: str, budget: int, steps: int) -> Found:
    """matcha.8: mean seconds of ``steps`` iterations over all activations of all of them, as a distribution in fractions."""
    p = _probabilities(len(matchings(graph_of(graph))), Fraction(budget, 10), budget)
    T_comp, t_match = Fraction(2), Fraction(5, 2)
    distribution = {Fraction(0): Fraction(1)}
    for _ in range(steps):
        later: dict[Fraction, Fraction] = {}
        for (now, chance), (weight, count) in itertools.product(distribution.items(), _activations(p)):
            end = now + T_comp + t_match * count
            later[end] = later.get(end, Fraction(0)) + chance * weight
        distribution = later
    off = sum(t * q for t, q in distribution.items()) - function(RUNTIME, "N T_comp a q")(steps, T_comp, t_match, sum(p))
    return Found.count(int(off != 0), 1, proves=True)
