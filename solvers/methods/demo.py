from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import PerWorker, Shared, compress, dct, grad, idct, mean, mean_sent, orthogonalise, sign


class State(NamedTuple):
    x: Shared  # (d,) weights
    m: PerWorker  # (n, d) momenta, each worker's own


class Hyper(NamedTuple):
    gamma: float  # step size
    beta: float  # momentum
    alpha: float = 1.0  # share of the message that is taken out of the momentum
    wd: float = 0.0  # weight decay


class Orthogonal(NamedTuple):
    gamma: float
    beta: float
    alpha: float = 1.0
    wd: float = 0.0
    rows: int = 8  # the weights are a matrix with the largest divisor of d up to this as rows
    eps: float = 1e-6  # added to M'M


class Released(NamedTuple):
    gamma: float
    beta: float
    chunk: int = 64  # length of a piece, as the compressor's
    wd: float = 0.0


def exchanged(s, w, h):
    """``(average message, momenta)``: the compressor decodes, so it acts on the weights' own coordinates."""
    m = h.beta * s.m + (1 - h.beta) * grad(w, s.x)
    c = compress(w, m)
    return mean(w, c), m - h.alpha * c


@method(state=State, hyper=Hyper, paper="demo")
def demo(s, w, h, t):
    """DeMo (second version) with SGD: the fast components of local momenta are exchanged, the slow ones stay; use dct_topk."""
    q, m = exchanged(s, w, h)
    return State(x=s.x - h.gamma * (q + h.wd * s.x), m=m)


@method(state=State, hyper=Hyper, paper="demo")
def demo_sign(s, w, h, t):
    """DeMo (second version) with Signum: the sign of the average message."""
    q, m = exchanged(s, w, h)
    return State(x=s.x - h.gamma * (sign(w, q) + h.wd * s.x), m=m)


@method(state=State, hyper=Orthogonal, paper="demo")
def demo_muon(s, w, h, t):
    """DeMo (second version) with Muon: the average message as a matrix M is replaced by M (M'M + eps I)^(-1/2)."""
    q, m = exchanged(s, w, h)
    return State(x=s.x - h.gamma * (orthogonalise(w, q, h.rows, h.eps) + h.wd * s.x), m=m)


@method(state=State, hyper=Released, paper="demo")
def demo_v1(s, w, h, t):
    """DeMo as released (first version): cosine coefficients are averaged over the workers that sent them, then the sign; use block_topk."""
    x = (1 - h.gamma * h.wd) * s.x
    c = dct(w, h.beta * s.m + h.gamma * grad(w, s.x), h.chunk)
    q = compress(w, c)
    return State(x=x - h.gamma * sign(w, idct(w, mean_sent(w, q), h.chunk)), m=idct(w, c - q, h.chunk))
