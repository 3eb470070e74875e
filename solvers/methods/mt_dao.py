import math
from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, clip, divide, grad, mean, spread, sqrt, times


class State(NamedTuple):
    x: PerWorker  # (n, d) every worker's model
    u_1: PerWorker  # (n, d) first momentum
    u_2: PerWorker  # (n, d) second momentum, of another time scale
    v: PerWorker  # (n, d) average of squared gradients


class Hyper(NamedTuple):
    gamma: float  # step size
    beta_1: float = 0.9  # decay of the first momentum
    omega_1: float = 0.5  # its weight in the direction
    K_1: int = 1  # it is averaged every K_1 steps
    beta_2: float = 0.0  # the same of the second
    omega_2: float = 0.0
    K_2: int = 1
    beta_v: float = 0.999  # decay of the squares
    K_v: int = 1
    K_x: int = 1  # the models are averaged every K_x steps
    limit: float = 1.0  # where gradients are clipped, entry by entry
    eps: float = 1e-8  # added to the root


@method(state=State, hyper=Hyper, rounds=lambda h: math.lcm(*map(int, (h.K_x, h.K_1, h.K_2, h.K_v))), paper="mt_dao")
def mt_dao(s, w, h, t):
    """MT-DAO with two momenta: Adam-like steps along momenta of several time scales, each averaged with a period of its own."""
    g = clip(w, grad(w, s.x), h.limit)
    u, z = h.beta_1 * s.u_1 + (1 - h.beta_1) * g, h.beta_2 * s.u_2 + (1 - h.beta_2) * g
    v = h.beta_v * s.v + (1 - h.beta_v) * times(w, g, g)
    if t % h.K_1 == 0:
        u = spread(w, mean(w, u))
    if t % h.K_2 == 0:
        z = spread(w, mean(w, z))
    if t % h.K_v == 0:
        v = spread(w, mean(w, v))
    x = s.x - h.gamma * divide(w, (1 - h.omega_1 - h.omega_2) * g + h.omega_1 * u + h.omega_2 * z, sqrt(w, v) + h.eps)
    if t % h.K_x == 0:
        x = spread(w, mean(w, x))
    return State(x=x, u_1=u, u_2=z, v=v)
