"""gTop-k S-SGD: the tree top-k all-reduce with put-back as released, its cost, and where it loses gradient.

It is a simulator and no step function: what a merge keeps depends on pairs of ranks, not on a mean over the workers.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators.lines import function
from verify_rates.theory.calculators.messages import Network, all_gather, broadcast, ring_all_reduce, tree_reduce
from verify_rates.theory.evidence import Found

# n ranks (a power of two, 2**q), d words, k kept; a is the latency and b the time per word.
DENSE = "2*(n-1)*a + 2*(n-1)/n*d*b"  # gtopk.2
TOPK = "q*a + 2*(n-1)*k*b"  # gtopk.3
GTOPK = "2*q*a + 4*k*q*b"  # gtopk.4
README = "q*a + 2*k*q*b"  # gtopk.4 as the README prints it
BREAK_EVEN = "2*k*b*(n-1-2*q) - a*q"  # gtopk.5: gTop-k is cheaper iff positive

ALPHA, BETA = Fraction(436, 1000), Fraction(36, 1000000)  # ms, and ms a word of 4 bytes: 1 GbE, as fitted in the released script
LETTERS = "n q d k a b"

Pairs = dict[int, Any]  # index -> value


def largest(values: Pairs, k: int) -> Pairs:
    """The k entries of largest magnitude, ties to the lowest index.

    >>> largest({0: 1, 1: -3, 2: 1}, 2)
    {0: 1, 1: -3}
    """
    kept = sorted(values, key=lambda i: (-abs(values[i]), i))[:k]
    return {i: values[i] for i in sorted(kept)}


def merge(one: Pairs, other: Pairs, k: int) -> Pairs:
    """Values on common indices are added, then the k largest of the union are kept."""
    return largest({i: one.get(i, 0) + other.get(i, 0) for i in one.keys() | other.keys()}, k)


def step(residuals: Sequence[Sequence[Any]], gradients: Sequence[Sequence[Any]], k: int, net: Network) -> tuple[Pairs, list[list[Any]]]:
    """One step of every worker: select, reduce over the tree, broadcast, put back.

    Parameters
    ----------
    residuals, gradients : (n, d) numbers; n a power of two.
    k : kept entries.
    net : the clocks; they are advanced.

    Returns
    -------
    The k pairs that every rank applies (a sum over the ranks), and the new residuals.

    >>> step([[0, 0], [0, 0]], [[3, 1], [1, 2]], 1, Network(2, 1, 1))
    ({0: 3}, [[0, 1], [1, 2]])
    """
    d = len(gradients[0])
    if not 1 <= k <= d:
        raise UsageError(f"k must be between 1 and d = {d}, not {k!r}.")
    u = [[r + g for r, g in zip(*pair, strict=True)] for pair in zip(residuals, gradients, strict=True)]
    chosen = [largest(dict(enumerate(v)), k) for v in u]
    found = tree_reduce(net, chosen, lambda x, y: merge(x, y, k), lambda pairs: 2 * len(pairs))
    broadcast(net, 2 * k)
    return found, [[v[i] if i not in mine or i not in found else 0 for i in range(d)] for v, mine in zip(u, chosen, strict=True)]


def cost(scheme: str, rounds: int, said: str) -> Found:
    """gtopk.2 to gtopk.4: seconds of the collective, played message by message, beside the printed formula.

    ``said`` names the formula, so that the README's form of gtopk.4 can be asked as well.
    """
    n, d, k = 2**rounds, 2**rounds * 3, 3
    net = Network(n, ALPHA, BETA)
    data = np.random.default_rng([rounds, 4]).integers(-50, 50, (n, d)).tolist()
    total = [sum(column) for column in zip(*data, strict=True)]
    wrong = False
    if scheme == "dense":
        wrong = ring_all_reduce(net, data) != [total] * n
    elif scheme == "topk":
        pairs = [list(largest(dict(enumerate(v)), k).items()) for v in data]
        wrong = all_gather(net, pairs, 2) != [[p for mine in pairs for p in mine]] * n
    else:
        step([[0] * d] * n, data, k, net)
    if wrong:
        raise ArithmeticError(f"the collective {scheme} gives wrong data")
    expected = float(function(globals()[said], LETTERS)(n, rounds, d, k, ALPHA, BETA))
    took = float(net.seconds)
    return Found(took, took, expected, "==", proves=True, message=f"{took:.6g} ms on {n} ranks, said are {expected:.6g} ms")


def break_even(rounds: int) -> Found:
    """gtopk.5: the printed inequality is that of the two costs; never met for n <= 4, met for k large enough from n = 8 on."""
    n, wrong, cases = 2**rounds, 0, 0
    for a, b, k in itertools.product((Fraction(0), ALPHA, Fraction(7)), (BETA, Fraction(2)), (1, 10, 10**6)):
        values = (n, rounds, 10**7, k, a, b)
        cheaper = function(GTOPK, LETTERS)(*values) < function(TOPK, LETTERS)(*values)
        wrong += cheaper != (function(BREAK_EVEN, LETTERS)(*values) > 0)
        wrong += cheaper and n <= 4
        cases += 2
    large = (n, rounds, 10**12, 10**9, ALPHA, BETA)
    wrong += (function(BREAK_EVEN, LETTERS)(*large) > 0) != (n >= 8)
    return Found.count(wrong, cases + 1, proves=True)


def selection_error(values: int) -> Found:
    """The assumption of gtopk.1 on two ranks, two coordinates and k = 1: largest excess of the error over that of random-k.

    All vectors of whole numbers of magnitude up to ``values`` are tried; the smallest one with a positive excess is shown.
    """
    worst, where = Fraction(0), ""
    numbers = sorted(range(-values, values + 1), key=abs)
    for flat in itertools.product(numbers, repeat=4):
        data = [list(flat[:2]), list(flat[2:])]
        found, _ = step([[0, 0]] * 2, data, 1, Network(2, 0, 0))
        total = [data[0][i] + data[1][i] for i in range(2)]
        error = sum((total[i] - found.get(i, 0)) ** 2 for i in range(2))
        excess = error - Fraction(1, 2) * sum(v**2 for v in total)
        if excess > worst:
            worst, where = excess, where or f"gradients {data[0]} and {data[1]}: error {error}, random-1 {error - excess} on average"
    return Found(float(worst), float(worst), 0.0, proves=True, message=where or "no excess")


def lost(n: int, values: int) -> Found:
    """The gradient that is neither applied nor kept: ``max_j |sum_i u_ij - applied_j - sum_i residual_ij|``, d = 2 and k = 1.

    All vectors of whole numbers from 0 to ``values`` are tried for n ranks (the first rank holds both, the others too).
    """
    worst, where = 0, ""
    vectors = list(itertools.product(range(values + 1), repeat=2))
    for data in itertools.product(vectors, repeat=n):
        found, residuals = step([[0, 0]] * n, data, 1, Network(n, 0, 0))
        gone = max(abs(sum(v[i] for v in data) - found.get(i, 0) - sum(r[i] for r in residuals)) for i in range(2))
        if gone > worst:
            worst, where = gone, where or f"gradients {[list(v) for v in data]}: {gone} of coordinate mass is lost"
    return Found(worst, worst, 0.0, proves=True, message=where or "nothing is lost")
