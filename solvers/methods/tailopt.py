from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, Shared, divide, grad, mean, rescale, spread, sqrt, times


class State(NamedTuple):
    x: PerWorker  # (n, d) every worker's model
    y: Shared  # (d,) the model at the start of the round
    u: Shared  # (d,) outer momentum
    v: Shared  # (d,) sum or average of the squared progress


class Hyper(NamedTuple):
    gamma: float  # inner step size
    H: int = 1  # local steps of a round
    high: float = 1.0  # where gradients are cut, by norm
    eta: float = 0.1  # outer step size
    beta: float = 0.0  # outer momentum (Adam)
    keep: float = 1.0  # v = keep*v + fresh*D^2: (1, 1) is Adagrad, (b, 1-b) RMSProp and Adam
    fresh: float = 1.0
    eps: float = 1e-3  # added to the root


@method(state=State, hyper=Hyper, start=("x", "y"), rounds=lambda h: h.H, paper="tailopt")
def tailopt(s, w, h, t):
    """TailOPT: clipped local steps inside, an adaptive optimiser on their average progress outside; no preconditioner is sent."""
    x, y, u, v = s.x - h.gamma * rescale(w, grad(w, s.x), 0.0, h.high), s.y, s.u, s.v
    if (t + 1) % h.H == 0:
        D = mean(w, x) - y
        u = h.beta * u + (1 - h.beta) * D
        v = h.keep * v + h.fresh * times(w, D, D)
        y = y + h.eta * divide(w, u, sqrt(w, v) + h.eps)
        x = spread(w, y)
    return State(x=x, y=y, u=u, v=v)
