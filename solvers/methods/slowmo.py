from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, Shared, grad, mean, spread


class State(NamedTuple):
    x: PerWorker  # (n, d) every worker's model
    y: Shared  # (d,) the model at the start of the round
    u: Shared  # (d,) slow momentum, in gradient units


class Hyper(NamedTuple):
    gamma: float  # inner step size, constant within a round
    H: int = 1  # local steps of a round
    alpha: float = 1.0  # outer step size, in units of gamma
    beta: float = 0.0  # outer momentum


@method(state=State, hyper=Hyper, start=("x", "y"), rounds=lambda h: h.H, paper="slowmo")
def slowmo(s, w, h, t):
    """SlowMo: local SGD whose round is one gradient step of an outer optimiser with momentum."""
    x, y, u = s.x - h.gamma * grad(w, s.x), s.y, s.u
    if (t + 1) % h.H == 0:
        u = h.beta * u + (y - mean(w, x)) / h.gamma
        y = y - h.alpha * h.gamma * u
        x = spread(w, y)
    return State(x=x, y=y, u=u)
