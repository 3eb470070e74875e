from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, PerWorkerQueue, delay, grad, mean, spread


class Background(NamedTuple):
    x: PerWorker  # (n, d) every worker's model
    y: PerWorker  # (n, d) the snapshot whose average is under way


class Hyper(NamedTuple):
    gamma: float  # step size
    H: int = 1  # local steps while one average is under way


@method(state=Background, hyper=Hyper, start=("x", "y"), rounds=lambda h: h.H, paper="lasgd")
def lasgd(s, w, h, t):
    """Local SGD with a background average of snapshots (reading A): when it arrives, the steps made since are put on top of it."""
    x, y = s.x - h.gamma * grad(w, s.x), s.y
    if (t + 1) % h.H == 0:
        x = spread(w, mean(w, s.y)) + (x - s.y)
        y = x
    return Background(x=x, y=y)


class Grouped(NamedTuple):
    x: PerWorker  # (n, d) every machine's shared copy
    q: PerWorkerQueue  # (tau, n, d) gradients of its devices that are not applied yet


class GroupedHyper(NamedTuple):
    gamma: float  # step size
    H: int = 1  # updates of a copy between two averagings
    tau: int = 0  # how late a device's gradient is applied: the devices of a machine less one


@method(state=Grouped, hyper=GroupedHyper, rounds=lambda h: h.H, paper="lasgd")
def lasgd_grouped(s, w, h, t):
    """Groups of devices that update a shared copy asynchronously (reading B); the copies are averaged every H updates."""
    q, g = delay(w, s.q, grad(w, s.x))
    x = s.x - h.gamma * g
    if (t + 1) % h.H == 0:
        x = spread(w, mean(w, x))
    return Grouped(x=x, q=q)
