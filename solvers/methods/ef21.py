from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, Shared, compress, grad, mean


class State(NamedTuple):
    x: Shared  # (d,) iterate
    v: PerWorker  # (n, d) what the server knows of each worker's gradient


class Hyper(NamedTuple):
    gamma: float  # step size


@method(state=State, hyper=Hyper, paper="rates")
def ef21(s, w, h, t):
    """EF21: step along the estimates, then send the compressed difference C(g - v) at the new point."""
    x = s.x - h.gamma * mean(w, s.v)
    return State(x=x, v=s.v + compress(w, grad(w, x) - s.v))
