from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, gossip, grad


class State(NamedTuple):
    x: PerWorker  # (n, d) every worker's model


class Hyper(NamedTuple):
    gamma: float  # step size


@method(state=State, hyper=Hyper, paper="matcha")
def d_psgd(s, w, h, t):
    """D-PSGD (Lian et al. 2017): mixing with the neighbours beside the gradient step, so that both can run at once."""
    return State(x=gossip(w, s.x) - h.gamma * grad(w, s.x))
