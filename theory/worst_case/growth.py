"""Whether a worst case is infinite although no single direction of the problem makes it so.

The largest value within instances of a given size grows with that size where nothing controls the measure: ``f - f*`` under a bound on the
gradient of a convex function, say, which a long valley makes as large as one likes.  Solvers cannot name a ray there and give up.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from verify_rates.theory.worst_case.assemble import Conic, triangle
from verify_rates.theory.worst_case.backends import solve_conic

SIZES = (1e2, 1e4, 1e6)  # traces of the Gram matrices, in normalised units
GROWS = 2.0  # from one size to the next: a value that is reached does not grow, the slowest powers seen (of 1/4) grow by 3


def values_by_size(conic: Conic, margin: float, solver: str) -> list[float]:
    """The largest value among instances up to each size, nan where a solve fails."""
    one = np.concatenate([np.equal(*triangle(k)).astype(float) for k in conic.orders])
    trace = np.concatenate([one, np.zeros(conic.c.size - one.size)])[None]
    found = []
    for size in SIZES:
        A = sp.csr_array(sp.vstack([conic.A, sp.csr_array(trace / size)], format="csr"))
        raw = solve_conic(replace(conic, A=A, b=np.append(conic.b, 1.0), positions=(None, None)), margin, solver)
        found.append(float(conic.c @ raw.z) if raw.ok else math.nan)
    return found


def grows(conic: Conic, margin: float, solver: str) -> bool:
    """Whether the value keeps growing with the size of the instance."""
    values = values_by_size(conic, margin, solver)
    return all(a > 0 and b > GROWS * a for a, b in pairwise(values))
