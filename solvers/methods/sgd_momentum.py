from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import Shared, grad, mean


class State(NamedTuple):
    x: Shared  # (d,) iterate
    u: Shared  # (d,) momentum, in gradient units


class Hyper(NamedTuple):
    gamma: float  # step size
    beta: float = 0.9  # decay of the momentum
    nesterov: int = 0  # 1: look ahead, step along g + beta u


@method(state=State, hyper=Hyper, paper="rates")
def sgd_momentum(s, w, h, t):
    """Synchronous SGD with momentum as frameworks write it: u = beta u + g, a step along u (Sutskever et al. 2013)."""
    g = mean(w, grad(w, s.x))
    u = h.beta * s.u + g
    step = g + h.beta * u if h.nesterov else u
    return State(x=s.x - h.gamma * step, u=u)
