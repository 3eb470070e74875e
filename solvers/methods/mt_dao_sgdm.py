from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, chance, grad, mean, spread


class State(NamedTuple):
    x: PerWorker  # (n, d) every worker's model
    u_1: PerWorker  # (n, d) first momentum
    u_2: PerWorker  # (n, d) second momentum, of another time scale


class Hyper(NamedTuple):
    gamma: float  # step size
    p_x: float = 1.0  # probability that the models are averaged after a step
    beta_1: float = 0.0  # decay of the first momentum
    omega_1: float = 0.0  # its weight in the direction
    p_1: float = 1.0  # probability that it is averaged
    beta_2: float = 0.0  # the same of the second
    omega_2: float = 0.0
    p_2: float = 1.0


@method(state=State, hyper=Hyper, paper="mt_dao")
def mt_dao_sgdm(s, w, h, t):
    """MT-DAO-SGDM with two momenta, the analysed form: quasi-hyperbolic momentum, everything averaged by coins of its own."""
    g = grad(w, s.x)
    u, v = h.beta_1 * s.u_1 + (1 - h.beta_1) * g, h.beta_2 * s.u_2 + (1 - h.beta_2) * g
    if chance(w, h.p_1):
        u = spread(w, mean(w, u))
    if chance(w, h.p_2):
        v = spread(w, mean(w, v))
    x = s.x - h.gamma * ((1 - h.omega_1 - h.omega_2) * g + h.omega_1 * u + h.omega_2 * v)
    if chance(w, h.p_x):
        x = spread(w, mean(w, x))
    return State(x=x, u_1=u, u_2=v)
