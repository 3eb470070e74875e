from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, grad, mean, spread


class State(NamedTuple):
    x: PerWorker  # (n, d) every worker's model


class Hyper(NamedTuple):
    gamma: float  # step size
    H: int = 1  # local steps between two averagings


@method(state=State, hyper=Hyper, rounds=lambda h: h.H, paper="lupa")
def local_sgd(s, w, h, t):
    """Local SGD: every worker steps alone, the models are averaged every H steps."""
    y = s.x - h.gamma * grad(w, s.x)
    if (t + 1) % h.H == 0:
        y = spread(w, mean(w, y))
    return State(x=y)
