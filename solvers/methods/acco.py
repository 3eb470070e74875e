from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import Shared, grad, mean


class State(NamedTuple):
    x: Shared  # (d,) the model theta, updated by both halves
    y: Shared  # (d,) the estimate theta-tilde, made from the first half alone


class Hyper(NamedTuple):
    gamma: float  # step size


@method(state=State, hyper=Hyper, start=("x", "y"), paper="acco")
def acco(s, w, h, t):
    """ACCO with SGD: half of each gradient is taken at the model, half at an estimate made while the model was under way."""
    first = grad(w, s.y)  # computed while the last real update is communicated
    second = grad(w, s.x)  # computed while the first half is communicated
    y = s.x - h.gamma * mean(w, first)
    x = s.x - h.gamma / 2 * mean(w, first + second)
    return State(x=x, y=y)
