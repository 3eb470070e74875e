from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import Shared, grad, mean


class State(NamedTuple):
    x: Shared  # (d,) one trajectory
    y: Shared  # (d,) another one, on the same function


class Hyper(NamedTuple):
    gamma: float  # step size


@method(state=State, hyper=Hyper, start=("x",), paper="rates")
def gd_pair(s, w, h, t):
    """Two gradient descents side by side (y starts at 0): how fast do they approach each other?"""
    return State(x=s.x - h.gamma * mean(w, grad(w, s.x)), y=s.y - h.gamma * mean(w, grad(w, s.y)))
