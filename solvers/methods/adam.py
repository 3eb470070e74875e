from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import Shared, divide, grad, mean, sqrt, times


class State(NamedTuple):
    x: Shared  # (d,) iterate
    m: Shared  # (d,) mean of the gradients
    v: Shared  # (d,) mean of their squares


class Hyper(NamedTuple):
    gamma: float  # step size
    beta: float = 0.9  # memory of the mean
    theta: float = 0.999  # memory of the squares
    eps: float = 1e-8  # added to the root
    corrected: int = 1  # 1: divided by 1 - beta^t and 1 - theta^t, for the start at zero
    late: int = 0  # 1: the step uses the squares before their update


@method(state=State, hyper=Hyper, paper="rates")
def adam(s, w, h, t):
    """Adam on the average gradient (Kingma and Ba 2015), with and without bias correction."""
    g = mean(w, grad(w, s.x))
    m = h.beta * s.m + (1 - h.beta) * g
    v = h.theta * s.v + (1 - h.theta) * times(w, g, g)
    used = s.v if h.late == 1 else v
    a = 1 - h.beta ** (t + 1) if h.corrected == 1 else 1.0
    b = 1 - h.theta ** (t + 1) if h.corrected == 1 else 1.0
    return State(x=s.x - h.gamma / a * divide(w, m, sqrt(w, used / b) + h.eps), m=m, v=v)
