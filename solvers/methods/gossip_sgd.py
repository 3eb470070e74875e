from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, gossip, grad


class State(NamedTuple):
    x: PerWorker  # (n, d) every worker's model


class Hyper(NamedTuple):
    gamma: float  # step size


@method(state=State, hyper=Hyper, paper="matcha")
def gossip_sgd(s, w, h, t):
    """Decentralised SGD: a gradient step at the own model, then mixing with the neighbours."""
    return State(x=gossip(w, s.x - h.gamma * grad(w, s.x)))
