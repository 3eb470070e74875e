from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, Shared, compress, each, full_grad, grad_pair, mean, spread


class State(NamedTuple):
    x: Shared  # (d,) iterate
    e: PerWorker  # (n, d) error memory, in units of x
    r: PerWorker  # (n, d) reference points
    a: Shared  # (d,) weighted average of the iterates so far


class Hyper(NamedTuple):
    gamma: float  # step size
    p: float  # probability that a worker moves its reference point to x
    theta: float = 1.0  # weight of the present iterate in the average


@method(state=State, hyper=Hyper, start=("x", "r"), paper="absolute_compression")
def ec_lsvrg(s, w, h, t):
    """EC-SGD with loopless variance reduction: g = grad f_l(x) - grad f_l(r) + grad f(r), each worker with a reference point of its own."""
    new, old = grad_pair(w, s.x, s.r)
    p = s.e / h.gamma + new - old + full_grad(w, s.r)
    m = compress(w, p)
    r = each(w, h.p, spread(w, s.x), s.r)
    return State(x=s.x - h.gamma * mean(w, m), e=h.gamma * (p - m), r=r, a=(1 - h.theta) * s.a + h.theta * s.x)
