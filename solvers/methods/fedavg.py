from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, Shared, each, grad, mean, spread


class State(NamedTuple):
    x: PerWorker  # (n, d) every worker's model
    y: Shared  # (d,) the server's model


class Hyper(NamedTuple):
    gamma: float  # local step size
    H: int = 1  # local steps of a round
    p: float = 1.0  # probability that a worker takes part in a round
    alpha: float = 1.0  # server step size


@method(state=State, hyper=Hyper, start=("x", "y"), rounds=lambda h: h.H, paper="lupa")
def fedavg(s, w, h, t):
    """FedAvg (McMahan et al. 2017) with independent participation and a server step (Reddi et al. 2021).

    Whoever takes part counts 1/p times, so that the average progress is unbiased; traffic counts every worker as if it sent.
    """
    x, y = s.x - h.gamma * grad(w, s.x), s.y
    if (t + 1) % h.H == 0:
        progress = x - spread(w, y)
        if h.p != 1:
            progress = each(w, h.p, progress / h.p, 0 * progress)
        y = y + h.alpha * mean(w, progress)
        x = spread(w, y)
    return State(x=x, y=y)
