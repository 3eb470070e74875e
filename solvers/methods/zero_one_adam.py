from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, Shared, compress, divide, grad, mean, spread, sqrt, times


class State(NamedTuple):
    x: PerWorker  # (n, d) models
    a: Shared  # (d,) model of the last synchronisation
    m: PerWorker  # (n, d) momenta
    v: Shared  # (d,) mean of squares, frozen between refreshes
    u: PerWorker  # (n, d) steps since the last synchronisation, not divided by the root
    e: PerWorker  # (n, d) residuals of the workers
    r: Shared  # (d,) residual of the server


class Hyper(NamedTuple):
    gamma: float  # step size
    beta: float  # memory of the momentum
    theta: float = 0.999  # memory of the squares
    eps: float = 1e-1  # added to the root; the squares start at 0, so it plays the part of the paper's v_min
    sync: int = 1  # 1 at the steps of T_u; see calculators.zero_one_adam.schedule
    refresh: int = 1  # 1 at the steps of T_v
    window: float = 1.0  # at a synchronisation: sum of the step sizes since the last one, over gamma
    new: int = 1  # x and u move with the momentum after its update (released code); 0: before it, as printed


@method(state=State, hyper=Hyper, start=("x", "a"), paper="zero_one_adam")
def zero_one_adam(s, w, h, t):
    """0/1 Adam: local steps with a frozen root, synchronised by an all-reduce that is compressed both ways; use norm_sign."""
    g, root = grad(w, s.x), sqrt(w, s.v) + h.eps
    m = h.beta * s.m + (1 - h.beta) * g
    used = m if h.new == 1 else s.m
    x, u = s.x - h.gamma * divide(w, used, spread(w, root)), s.u + h.gamma * used
    a, e, r, v = s.a, s.e, s.r, s.v
    if h.sync == 1:
        c = compress(w, u + e)
        total = mean(w, c) + r
        q = compress(w, total)
        e, r, m, a = u + e - c, total - q, spread(w, q / (h.gamma * h.window)), a - divide(w, q, root)
        x, u = spread(w, a), 0.0 * u
    if h.refresh == 1:
        average = mean(w, g)
        v = h.theta * v + (1 - h.theta) * times(w, average, average)
    return State(x=x, a=a, m=m, v=v, u=u, e=e, r=r)
