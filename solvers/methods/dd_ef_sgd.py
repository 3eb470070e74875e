from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, Shared, SharedQueue, compress, delay, grad, mean


class State(NamedTuple):
    x: Shared  # (d,) iterate
    e: PerWorker  # (n, d) error memory, in gradient units
    q: SharedQueue  # (tau, d) averages under way


class Hyper(NamedTuple):
    gamma: float  # step size, constant (the memory is in gradient units)
    tau: int = 0  # staleness: an average is applied tau steps after its gradients


@method(state=State, hyper=Hyper, paper="deco")
def dd_ef_sgd(s, w, h, t):
    """Error feedback with delayed aggregation (DD-EF-SGD): the average arrives tau steps late."""
    p = s.e + grad(w, s.x)
    m = compress(w, p)
    q, arrived = delay(w, s.q, mean(w, m))
    return State(x=s.x - h.gamma * arrived, e=p - m, q=q)
