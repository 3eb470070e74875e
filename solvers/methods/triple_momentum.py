from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import Shared, grad, mean


class State(NamedTuple):
    x: Shared  # (d,) where gradients are taken: xi + eta v
    v: Shared  # (d,) last displacement of xi


class Hyper(NamedTuple):
    gamma: float  # step size
    beta: float  # momentum
    eta: float  # extrapolation


@method(state=State, hyper=Hyper, paper="rates")
def triple_momentum(s, w, h, t):
    """Two-parameter momentum (Van Scoy, Freeman, Lynch 2018): v = beta v - gamma g(xi + eta v), xi = xi + v; eta = 0 is heavy ball.

    With rho = 1 - sqrt(mu/L), gamma = (1+rho)/L, beta = rho^2/(2-rho), eta = rho^2/((1+rho)(2-rho)) squared distances shrink by rho^2 a
    step, the best of fixed-step methods.
    """
    v = h.beta * s.v - h.gamma * mean(w, grad(w, s.x))
    return State(x=s.x - h.eta * s.v + (1 + h.eta) * v, v=v)
