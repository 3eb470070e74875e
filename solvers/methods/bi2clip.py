from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, Shared, clip, grad, mean, rescale, sign, spread

NONE = 1e300  # a threshold that nothing reaches


class State(NamedTuple):
    x: PerWorker  # (n, d) every worker's model
    y: Shared  # (d,) the model at the start of the round


class Hyper(NamedTuple):
    gamma: float  # inner step size, constant or a schedule, as are the thresholds
    H: int = 1  # local steps of a round
    eta: float = 1.0  # outer step size
    low: float = 0.0  # thresholds of the inner clipping
    high: float = NONE
    low_outer: float = 0.0  # thresholds of the outer clipping
    high_outer: float = NONE


def biclip(w, v, low, high):
    """Entry by entry: magnitudes raised to low and cut at high, 0 stays 0."""
    return clip(w, v - clip(w, v, low) + low * sign(w, v), high)


@method(state=State, hyper=Hyper, start=("x", "y"), rounds=lambda h: h.H, paper="tailopt")
def bi2clip(s, w, h, t):
    """Bi2Clip, by coordinates: local steps along clipped gradients, an outer step along the clipped average progress."""
    x, y = s.x - h.gamma * biclip(w, grad(w, s.x), h.low, h.high), s.y
    if (t + 1) % h.H == 0:
        y = y + h.eta * biclip(w, mean(w, x) - y, h.low_outer, h.high_outer)
        x = spread(w, y)
    return State(x=x, y=y)


@method(state=State, hyper=Hyper, start=("x", "y"), rounds=lambda h: h.H, paper="tailopt")
def bi2clip_norm(s, w, h, t):
    """Bi2Clip, by norms: every gradient and the average progress are scaled into their thresholds."""
    x, y = s.x - h.gamma * rescale(w, grad(w, s.x), h.low, h.high), s.y
    if (t + 1) % h.H == 0:
        y = y + h.eta * rescale(w, mean(w, x) - y, h.low_outer, h.high_outer)
        x = spread(w, y)
    return State(x=x, y=y)
