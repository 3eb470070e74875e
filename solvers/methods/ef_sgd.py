from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, Shared, compress, grad, mean


class State(NamedTuple):
    x: Shared  # (d,) iterate
    e: PerWorker  # (n, d) error memory, in units of x


class Hyper(NamedTuple):
    gamma: float  # step size


@method(state=State, hyper=Hyper, paper="rates")
def ef_sgd(s, w, h, t):
    """Error feedback: send C(e + gamma g), keep what was not sent."""
    p = s.e + h.gamma * grad(w, s.x)
    m = compress(w, p)
    return State(x=s.x - mean(w, m), e=p - m)
