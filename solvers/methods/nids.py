from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, gossip, grad


class State(NamedTuple):
    x: PerWorker  # (n, d) every worker's model
    v: PerWorker  # (n, d) what mixing changed in the last step: x less the point before mixing


class Hyper(NamedTuple):
    gamma: float  # step size


@method(state=State, hyper=Hyper, paper="cold")
def nids(s, w, h, t):
    """NIDS (Li, Shi, Yan 2019): x_{k+2} = (I+W)/2 (2 x_{k+1} - x_k - gamma (g_{k+1} - g_k)), from x_1 = (I+W)/2 (x_0 - gamma g_0)."""
    m = s.x - h.gamma * grad(w, s.x)
    u = m + s.v
    x = (u + gossip(w, u)) / 2
    return State(x=x, v=x - m)
