from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import Shared, grad, mean


class State(NamedTuple):
    x: Shared  # (d,) iterate
    y: Shared  # (d,) extrapolated point, where gradients are taken


class Hyper(NamedTuple):
    gamma: float  # step size
    beta: float  # momentum, constant or a schedule


@method(state=State, hyper=Hyper, start=("x", "y"), paper="rates")
def nesterov(s, w, h, t):
    """Nesterov's fast gradient: a gradient step from y, then y = x + beta times the last displacement of x."""
    x = s.y - h.gamma * mean(w, grad(w, s.y))
    return State(x=x, y=x + h.beta * (x - s.x))
