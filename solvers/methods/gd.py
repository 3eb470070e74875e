from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import Shared, grad, mean


class State(NamedTuple):
    x: Shared  # (d,) iterate


class Hyper(NamedTuple):
    gamma: float  # step size


@method(state=State, hyper=Hyper, paper="rates")
def gd(s, w, h, t):
    """Gradient descent on the average; with stochastic gradients, synchronous SGD."""
    return State(x=s.x - h.gamma * mean(w, grad(w, s.x)))
