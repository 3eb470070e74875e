from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, gossip, grad


class State(NamedTuple):
    x: PerWorker  # (n, d) every worker's model
    b: PerWorker  # (n, d) mixture of the models at the start of the round, under way during its steps
    a: PerWorker  # (n, d) sum of the round's gradients


class Hyper(NamedTuple):
    gamma: float  # step size, constant within a round
    H: int = 1  # local steps of a round


@method(state=State, hyper=Hyper, start=("x", "b"), rounds=lambda h: h.H, paper="oldsgd")
def oldsgd(s, w, h, t):
    """Overlapping local decentralised SGD: the models of the round's start are mixed while its H steps are computed."""
    g = grad(w, s.x)
    x, b, a = s.x - h.gamma * g, s.b, s.a + g
    if (t + 1) % h.H == 0:
        x = b - h.gamma * a
        b, a = gossip(w, x), 0 * a
    return State(x=x, b=b, a=a)
