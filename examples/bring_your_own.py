"""Everything of your own in one file: method, measure, compressor, problem, topology and claims."""

from typing import NamedTuple

import numpy as np

import verify_rates as vr

n, d = 4, 12
A = np.random.default_rng(7).normal(size=(n, d, d)) / d**0.5
H = np.array([a.T @ a + 0.1 * np.eye(d) for a in A])  # worker i: f_i(x) = x'H[i]x/2 - y[i]'x
y = np.array([h @ np.ones(d) for h in H])  # all agree on the minimiser (1, ..., 1)
of_each, of_mean = np.linalg.eigvalsh(H), np.linalg.eigvalsh(H.mean(axis=0))


def bowl(x):
    """Least squares with one matrix a worker, all of them minimal at the vector of ones."""
    total = 0.0
    for i in range(n):
        total += 0.5 * x @ (H[i] @ x) - y[i] @ x
    return total / n


def grad_bowl(i, x):
    return H[i] @ x - y[i]


constants = {"L": of_mean[-1], "mu": of_mean[0], "L_max": of_each.max(), "mu_min": of_each.min(), "zeta2_star": 1e-24}
f_star = bowl(np.ones(d)) + 1e-13 * np.array([-1, 1])  # an interval, wide enough for rounding
vr.make_problem("bowl", n, d, bowl, grad=grad_bowl, constants={**constants, "f_star": f_star, "x_star": np.ones(d)})


@vr.compressor(delta=lambda d, k: k / d, bits=lambda d, k: 32.0 * k + 4)
def window(v, gen, k: int):
    """The k neighbouring entries that hold the most, from a multiple of k on (d is a multiple of k)."""
    best = 0
    for j in range(0, v.size, k):
        if np.sum(v[j : j + k] ** 2) > np.sum(v[best : best + k] ** 2):
            best = j
    out = np.zeros_like(v)
    out[best : best + k] = v[best : best + k]
    return out


@vr.topology
def kite(n):
    """A triangle with a tail."""
    return [(0, 1), (1, 2), (2, 0)] + [(i, i + 1) for i in range(2, n - 1)]


class State(NamedTuple):
    x: vr.PerWorker  # (n, d)  every worker's model
    e: vr.PerWorker  # (n, d)  what was not sent


class Hyper(NamedTuple):
    gamma: float  # step size


@vr.method(state=State, hyper=Hyper)
def ef_gossip(s, w, h, t):
    """Error feedback at every worker, then one mixing with the neighbours."""
    p = s.e + h.gamma * vr.grad(w, s.x)
    sent = vr.compress(w, p)
    return State(x=vr.gossip(w, s.x - sent), e=p - sent)


def virtual(s, w, h):
    """Squared distance of the average model, less the error not yet sent, from the minimiser."""
    return vr.sqnorm(w, vr.mean(w, s.x - s.e) - vr.optimum(w))


RUNS = vr.product(problem={"name": "bowl"}, topology="kite", compressor=("window(k=3)", "window(k=12)"), N=(10, 50))
SETTING = vr.Setting(compressor="contractive", shared_minimiser=True, per_worker=True)
ABOUT = {"method": "ef_gossip", "measure": virtual, "lets": {"gamma": "delta/(4*L)"}, "setting": SETTING, "runs": RUNS}
ABOUT["source"] = "measured with this toolkit"
CLAIMS = [
    vr.Claim("own.1", "The virtual average contracts.", bound="(1 - gamma*mu)**(2*N)*R2", **ABOUT),
    vr.Claim("own.2", "It contracts as in the steepest direction.", bound="(1 - gamma*L)**(2*N)*R2", expect="fails", **ABOUT),
]
