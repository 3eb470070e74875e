from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, compress, gossip, grad


class State(NamedTuple):
    x: PerWorker  # (n, d) every agent's share; their sum stays what it was


class Hyper(NamedTuple):
    gamma: float  # step size


@method(state=State, hyper=Hyper, paper="resource_allocation")
def resource_agent(s, w, h, t):
    """Resource allocation, agent form: minimise sum f_i(x_i) at a constant sum; x_i moves by -gamma sum_j W_ij (C(f_i') - C(f_j'))."""
    m = compress(w, grad(w, s.x))
    return State(x=s.x - h.gamma * (m - gossip(w, m)))
