"""Evidence from samples without normal theory: an e-value for the mean of a non-negative quantity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# Bets, as shares of the largest one that keeps the capital non-negative; averaging over them keeps the test valid.
_BETS = np.array([0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 0.99])


def e_value(samples: Sequence[float], bound: float) -> float:
    """Evidence against "the mean is at most ``bound``" from independent non-negative samples.

    The capital of a gambler who bets that the mean is larger, ``prod_i (1 + b*(x_i/bound - 1))``, averaged over a few
    constant bets b in (0, 1): under the hypothesis its expectation is at most 1 whatever the tails, so by Markov's inequality
    it exceeds 1/alpha with probability at most alpha (betting tests, Waudby-Smith and Ramdas 2024).

    Parameters
    ----------
    samples : independent non-negative numbers, one a seed.
    bound : the claimed limit on their mean, positive.

    >>> e_value([2.0] * 40, 1.0) > 1e6, e_value([1.0] * 40, 1.0) <= 1.0
    (True, True)
    """
    x = np.asarray(samples, dtype=float)
    if x.size == 0 or np.isnan(x).any() or (x < 0).any():
        return 0.0
    if bound <= 0:
        return float("inf") if (x > 0).any() else 0.0
    ratio = x / bound
    if np.isinf(ratio).any():
        return float("inf")
    logs = np.log1p(np.outer(_BETS, ratio - 1)).sum(axis=1)
    top = logs.max()
    return float(np.exp(min(top, 700.0)) * np.mean(np.exp(logs - top)))
