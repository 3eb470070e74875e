from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, Shared, compress, grad, mean


class State(NamedTuple):
    x: Shared  # (d,) iterate
    e: PerWorker  # (n, d) error memory, in units of x
    a: Shared  # (d,) weighted average of the iterates so far


class Hyper(NamedTuple):
    gamma: float  # step size
    theta: float = 1.0  # weight of the present iterate in the average


@method(state=State, hyper=Hyper, paper="absolute_compression")
def ec_sgd(s, w, h, t):
    """Error compensation for absolute compressors: send gamma C(e/gamma + g), so that C works on gradients, whatever the step."""
    p = s.e / h.gamma + grad(w, s.x)
    m = compress(w, p)
    return State(x=s.x - h.gamma * mean(w, m), e=h.gamma * (p - m), a=(1 - h.theta) * s.a + h.theta * s.x)
