from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import Shared, grad, mean


class State(NamedTuple):
    x: Shared  # (d,) iterate
    v: Shared  # (d,) last displacement


class Hyper(NamedTuple):
    gamma: float  # step size
    beta: float  # momentum


@method(state=State, hyper=Hyper, paper="rates")
def heavy_ball(s, w, h, t):
    """Heavy ball (Polyak 1964): x_{k+1} = x_k - gamma g_k + beta (x_k - x_{k-1}), at rest at first."""
    v = h.beta * s.v - h.gamma * mean(w, grad(w, s.x))
    return State(x=s.x + v, v=v)
