from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, gossip, grad


class State(NamedTuple):
    x: PerWorker  # (n, d) every worker's model
    y: PerWorker  # (n, d) every worker's estimate of the mean gradient
    g: PerWorker  # (n, d) last gradients


class Hyper(NamedTuple):
    gamma: float  # step size


@method(state=State, hyper=Hyper, paper="cold")
def gradient_tracking(s, w, h, t):
    """Gradient tracking, adapt then combine: y_k = W y_{k-1} + g_k - g_{k-1} (y_0 = g_0), x_{k+1} = W (x_k - gamma y_k)."""
    g = grad(w, s.x)
    y = gossip(w, s.y) + g - s.g
    return State(x=gossip(w, s.x - h.gamma * y), y=y, g=g)
