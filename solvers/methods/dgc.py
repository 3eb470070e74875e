from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, Shared, compress, grad, mean, outside


class State(NamedTuple):
    x: Shared  # (d,) weights
    u: PerWorker  # (n, d) momenta
    v: PerWorker  # (n, d) accumulated momenta, not yet sent


class Hyper(NamedTuple):
    gamma: float  # step size
    beta: float  # momentum
    nesterov: int = 0  # 1: the accumulated direction looks one step ahead


def accumulated(s, w, h):
    """Momentum correction: ``(u, v)``, where momenta, not gradients, are accumulated."""
    g = grad(w, s.x)
    u = h.beta * s.u + g
    v = s.v + u
    if h.nesterov == 1:
        u = h.beta * (s.u + g)
        v = s.v + u + g
    return u, v


@method(state=State, hyper=Hyper, paper="dgc")
def dgc(s, w, h, t):
    """Deep gradient compression: accumulated momenta are sent in part; what is sent is cleared from both memories (factor masking)."""
    u, v = accumulated(s, w, h)
    m = compress(w, v)
    return State(x=s.x - h.gamma * mean(w, m), u=outside(w, m, u), v=outside(w, m, v))


@method(state=State, hyper=Hyper, paper="dgc")
def dgc_unmasked(s, w, h, t):
    """Momentum correction without factor masking: what is sent leaves the accumulated momentum, the momentum itself goes on."""
    u, v = accumulated(s, w, h)
    m = compress(w, v)
    return State(x=s.x - h.gamma * mean(w, m), u=u, v=v - m)
