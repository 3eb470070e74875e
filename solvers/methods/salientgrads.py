from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, Shared, compress, grad, mean, outside, sign, spread, times


class State(NamedTuple):
    x: PerWorker  # (n, d) models
    k: Shared  # (d,) saliencies that were kept: their support is the mask


class Hyper(NamedTuple):
    gamma: float  # step size
    H: int = 1  # local steps between two averagings


def inside(w, k, v):
    """The entries of v on the mask."""
    return v - outside(w, spread(w, k), v)


@method(state=State, hyper=Hyper, rounds=lambda h: h.H, paper="salientgrads")
def salientgrads(s, w, h, t):
    """FedAvg on a mask found before the first step: the largest mean saliencies |g*x|, by the compressor (topk) at the server.

    An entry that starts at 0 has no saliency: start at a random point.
    """
    k = s.k
    if t == 0:
        saliency = times(w, grad(w, s.x), s.x)
        k = compress(w, mean(w, times(w, sign(w, saliency), saliency)))
    x = inside(w, k, s.x)
    y = x - h.gamma * inside(w, k, grad(w, x))
    if (t + 1) % h.H == 0:
        y = spread(w, mean(w, y))
    return State(x=y, k=k)
