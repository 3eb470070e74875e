from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import Shared, grad, mean


class State(NamedTuple):
    x: Shared  # (d,) where gradients are taken
    y: Shared  # (d,) last gradient step


class Hyper(NamedTuple):
    gamma: float  # step size
    a: float  # weight of the last move of y, constant or a schedule
    b: float  # weight of the last gradient step


@method(state=State, hyper=Hyper, start=("x", "y"), paper="rates")
def ogm(s, w, h, t):
    """Optimised gradient method (Drori and Teboulle 2014; Kim and Fessler 2016), worst-case optimal on smooth convex functions.

    With theta_0 = 1, ..., theta_N of OGM: gamma = 1/L, a = (theta_t - 1)/theta_{t+1}, b = theta_t/theta_{t+1}.
    """
    y = s.x - h.gamma * mean(w, grad(w, s.x))
    return State(x=y + h.a * (y - s.y) + h.b * (y - s.x), y=y)
