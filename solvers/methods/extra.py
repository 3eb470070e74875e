from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, gossip, grad


class State(NamedTuple):
    x: PerWorker  # (n, d) every worker's model
    v: PerWorker  # (n, d) correction: x_{k+1} - (I+W)/2 x_k + gamma g_k


class Hyper(NamedTuple):
    gamma: float  # step size


@method(state=State, hyper=Hyper, paper="cold")
def extra(s, w, h, t):
    """EXTRA (Shi, Ling, Wu, Yin 2015): x_{k+2} = (I+W) x_{k+1} - (I+W)/2 x_k - gamma (g_{k+1} - g_k), from x_1 = W x_0 - gamma g_0."""
    g = grad(w, s.x)
    mixed = gossip(w, s.x)
    x = mixed + s.v - h.gamma * g
    return State(x=x, v=x - (s.x + mixed) / 2 + h.gamma * g)
