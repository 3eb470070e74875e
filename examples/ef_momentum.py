"""Your own method and claim in one file: error feedback with heavy-ball momentum."""

from typing import NamedTuple

import verify_rates as vr


class State(NamedTuple):
    x: vr.Shared  # (d,)    model
    m: vr.PerWorker  # (n, d)  momentum
    e: vr.PerWorker  # (n, d)  what was not sent


class Hyper(NamedTuple):
    gamma: float  # step size
    beta: float = 0.5  # momentum


@vr.method(state=State, hyper=Hyper)
def ef_momentum(s, w, h, t):
    """Send C(e + gamma m) with m = beta m + g, and keep what was not sent."""
    m = h.beta * s.m + vr.grad(w, s.x)
    p = s.e + h.gamma * m
    sent = vr.compress(w, p)
    return State(x=s.x - vr.mean(w, sent), m=m, e=p - sent)


def virtual(s, w, h):
    """Squared distance of the iterate from which error and momentum are removed."""
    z = s.x - vr.mean(w, s.e) - h.gamma * h.beta / (1 - h.beta) * vr.mean(w, s.m)
    return vr.sqnorm(w, z - vr.optimum(w))


CLAIMS = [
    vr.Claim(
        "ef_momentum.1",
        "The virtual iterate of error feedback with momentum contracts as gradient descent with step gamma/(1-beta) does.",
        method="ef_momentum",
        measure=virtual,
        bound="(1 - gamma*mu/(1-beta))**(2*N)",
        lets={"gamma": "delta*(1-beta)/(4*L)"},
        setting=vr.Setting(compressor="contractive", shared_minimiser=True, per_worker=True),
        grid=vr.product(L=1, mu=0.1, delta=(0.2, 0.5, 1.0), beta=(0.5, 0.9), N=(1, 3, 6)),
        runs=vr.product(
            problem={"name": "quadratic", "n": 4, "d": 20, "L": 1.0, "mu": 0.1, "common": True}, compressor="topk(k=5)", beta=0.9, N=200
        ),
        source="measured with this toolkit",
    )
]
