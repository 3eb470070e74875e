from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, Shared, compress, grad, mean


class State(NamedTuple):
    x: Shared  # (d,) iterate
    v: PerWorker  # (n, d) what is known of each worker's gradient
    a: Shared  # (d,) the mean of v, kept at the server


class Hyper(NamedTuple):
    gamma: float  # step size
    beta: float = 0.5  # share of a message that the memory takes up, at most 1/(1+omega)


@method(state=State, hyper=Hyper, paper="cold")
def diana(s, w, h, t):
    """DIANA (Mishchenko, Gorbunov, Takac, Richtarik 2019): send C(g - v); step along v + C(g - v); v moves by beta C(g - v)."""
    m = compress(w, grad(w, s.x) - s.v)
    arrived = mean(w, m)
    return State(x=s.x - h.gamma * (s.a + arrived), v=s.v + h.beta * m, a=s.a + h.beta * arrived)
