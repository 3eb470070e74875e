from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, compress, gossip, grad


class State(NamedTuple):
    x: PerWorker  # (n, d) every worker's model
    v: PerWorker  # (n, d) estimate of the models, which the neighbours keep too
    e: PerWorker  # (n, d) dual variable, with mean 0


class Hyper(NamedTuple):
    gamma: float  # step size
    eta: float = 0.5  # weight of a mixing
    beta: float = 1.0  # share of a message that the estimate takes up: 1 is COLD; LEAD takes 1/(1+omega) of unbiased messages
    s: float = 1.0  # scale in front of the compressor, s C(u/s): a schedule in Dyna-COLD, without effect on homogeneous compressors


@method(state=State, hyper=Hyper, paper="cold")
def cold(s, w, h, t):
    """COLD-like: NIDS with a compressed innovation.  y = x - gamma g - e; send C(y - v); e moves by eta (I-W) of the estimate of y."""
    y = s.x - h.gamma * grad(w, s.x) - s.e
    m = h.s * compress(w, (y - s.v) / h.s)
    known = s.v + m
    p = h.eta * (known - gossip(w, known))
    return State(x=y - p, v=s.v + h.beta * m, e=s.e + p)
