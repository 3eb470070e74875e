from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, gossip, grad


class State(NamedTuple):
    x: PerWorker  # (n, d) every worker's model


class Hyper(NamedTuple):
    gamma: float  # step size
    H: int = 1  # local steps between two mixings


@method(state=State, hyper=Hyper, rounds=lambda h: h.H, paper="oldsgd")
def ldsgd(s, w, h, t):
    """Local decentralised SGD: every worker steps alone, the models are mixed with the neighbours' every H steps."""
    y = s.x - h.gamma * grad(w, s.x)
    if (t + 1) % h.H == 0:
        y = gossip(w, y)
    return State(x=y)
