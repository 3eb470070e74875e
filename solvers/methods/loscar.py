from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, Shared, grad, masked, mean, spread


class State(NamedTuple):
    x: PerWorker  # (n, d) every worker's model
    y: PerWorker  # (n, d) what it sent: its model on the mask of the round
    m: Shared  # (d,) the average of what was sent


class Hyper(NamedTuple):
    gamma: float  # step size
    H: int = 1  # local steps of a round
    Q: int = 0  # of them those taken while the average is under way, fewer than H


@method(state=State, hyper=Hyper, rounds=lambda h: h.H, paper="loscar")
def loscar(s, w, h, t):
    """LOSCAR-SGD with equal step counts: sparse averaging on a shared mask; the progress made meanwhile is added to the average."""
    x, y, m = s.x - h.gamma * grad(w, s.x), s.y, s.m
    if (t + 1 + h.Q) % h.H == 0:
        y = masked(w, x)
        m = mean(w, y)
    if (t + 1) % h.H == 0:
        x = x + spread(w, m) - y
    return State(x=x, y=y, m=m)
