from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, Shared, SharedQueue, clip, delay, grad, mean, spread


class State(NamedTuple):
    x: PerWorker  # (n, d) every worker's model
    y: Shared  # (d,) the model at the start of the round
    u: Shared  # (d,) outer momentum, in units of x
    q: SharedQueue  # (tau, d) progress of the rounds whose average is under way


class Hyper(NamedTuple):
    gamma: float  # inner step size
    H: int = 1  # local steps of a round
    alpha: float = 1.0  # outer step size
    beta: float = 0.0  # outer momentum
    tau: int = 1  # staleness in rounds
    penalty: float = 1.0  # gap penalty Lambda, constant as in the released code, or a schedule
    limit: float = 0.0  # where the momentum is clipped; 0: nowhere


@method(state=State, hyper=Hyper, start=("x", "y"), rounds=lambda h: h.H, paper="co2")
def co2(s, w, h, t):
    """CO2: local SGD with outer momentum on averages that arrive tau rounds late, so that they travel during the local steps."""
    x, y, u, q = s.x - h.gamma * grad(w, s.x), s.y, s.u, s.q
    if (t + 1) % h.H == 0:
        q, arrived = delay(w, q, y - mean(w, x))
        u = h.beta * u + arrived / h.penalty
        if h.limit > 0:
            u = clip(w, u, h.limit)
        y = y - h.alpha * u
        x = spread(w, y)
    return State(x=x, y=y, u=u, q=q)
