from typing import NamedTuple

from verify_rates.solvers.method import method
from verify_rates.solvers.words import (
    PerWorker,
    Shared,
    clip,
    compress,
    coordinate_mean,
    divide,
    flip,
    gathered,
    grad,
    log,
    mean,
    sign,
    spread,
    times,
)


class Model(NamedTuple):
    x: Shared  # (d,) model


class Counted(NamedTuple):
    x: Shared  # (d,) model
    k: PerWorker  # (n, d) how often a sent sign was not the decoded one, at the server


class Attacked(NamedTuple):
    gamma: float  # step size
    attackers: int = 0  # the first so many workers attack
    p: float = 1.0  # each of their signs is turned with this probability: 1 sign inversion, less a stochastic flip


class Defended(NamedTuple):
    gamma: float
    attackers: int = 0
    p: float = 1.0
    warm: int = 100  # T_in: before it one error rate a worker, from then on one a coordinate
    forget: float = 1.0  # forgetting factor of the counters
    most: float = 10.0  # weights are clipped at this
    eps: float = 1e-5  # added to both probabilities


@method(state=Model, hyper=Attacked, paper="signsgd_fd")
def signsgd_mv(s, w, h, t):
    """SignSGD by majority vote; use the compressor sign."""
    u = flip(w, compress(w, grad(w, s.x)), h.attackers, h.p)
    return Model(x=s.x - h.gamma * sign(w, mean(w, u)))


@method(state=Counted, hyper=Defended, paper="signsgd_fd")
def signsgd_fd(s, w, h, t):
    """SignSGD with federated defence: votes are weighted by the log-likelihood ratio of counted errors; use the compressor sign."""
    u = gathered(w, flip(w, compress(w, grad(w, s.x)), h.attackers, h.p))
    count = max(t, 1.0) if h.forget == 1.0 else (1 - h.forget ** max(t, 1)) / (1 - h.forget)
    rate = s.k / count
    if t < h.warm:
        rate = coordinate_mean(w, rate)
    weights = clip(w, log(w, divide(w, 1 - rate + h.eps, rate + h.eps)), h.most)
    vote = mean(w, u) if t == 0 else mean(w, times(w, weights, u))
    decoded = sign(w, vote)
    wrong = (1 - sign(w, times(w, u, spread(w, decoded)))) / 2  # a tie counts as half an error
    return Counted(x=s.x - h.gamma * decoded, k=h.forget * s.k + wrong)
