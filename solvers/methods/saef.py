from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, Shared, compress, grad, mean, spread


class State(NamedTuple):
    x: Shared  # (d,) model
    e: PerWorker  # (n, d) residuals of the workers, in units of x
    s: Shared  # (d,) residual of the server
    m: PerWorker  # (n, d) momenta


class Hyper(NamedTuple):
    gamma: float  # step size
    alpha: float = 1.0  # share of the residual that is stepped ahead: 1 SAEF, 0 plain error feedback
    P: int = 0  # residuals are averaged every P steps; 0: never
    beta: float = 0.0  # momentum
    wd: float = 0.0  # weight decay


def sent(s, w, h, t):
    """What both variants do on the workers: ``(message, residual, momentum)``."""
    e = s.e
    if h.P > 0 and (t + 1) % max(h.P, 1) == 0:
        e = spread(w, mean(w, s.e))
    z = spread(w, s.x) - h.alpha * e
    m = h.beta * s.m + grad(w, z) + h.wd * z
    p = e + h.gamma * m
    c = compress(w, p)
    return c, p - c, m


@method(state=State, hyper=Hyper, paper="saef")
def saef(s, w, h, t):
    """Step-ahead error feedback: gradients at x minus the own residual; the server compresses the average with a residual of its own."""
    c, e, m = sent(s, w, h, t)
    total = s.s + mean(w, c)
    q = compress(w, total)
    return State(x=s.x - q, e=e, s=total - q, m=m)


@method(state=State, hyper=Hyper, paper="saef")
def saef_one_way(s, w, h, t):
    """Step-ahead error feedback without compression on the way back."""
    c, e, m = sent(s, w, h, t)
    return State(x=s.x - mean(w, c), e=e, s=s.s, m=m)
