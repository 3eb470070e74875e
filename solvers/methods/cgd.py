from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import Shared, compress, grad, mean


class State(NamedTuple):
    x: Shared  # (d,) iterate


class Hyper(NamedTuple):
    gamma: float  # step size


@method(state=State, hyper=Hyper, paper="rates")
def cgd(s, w, h, t):
    """Compressed gradient descent: every worker sends C(g), nothing is remembered."""
    return State(x=s.x - h.gamma * mean(w, compress(w, grad(w, s.x))))
