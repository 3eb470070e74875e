# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # verify-rates in ten minutes
#
# A distributed optimisation method is written **once**, as a short step function. This notebook writes one, error feedback with
# momentum, and has it read in every way: run on real data, solved for its exact worst case, read on quadratics, laid on a time line,
# counted in bits. Then two claims are made about it. One holds. The other is refuted, and its witness is run again.

# %%
from typing import NamedTuple

import numpy as np

import verify_rates as vr

# %% [markdown]
# ## 1. Write a method
#
# The state says what is shared and what every worker has of its own. The step uses a small vocabulary: `grad`, `compress`, `mean`, ...
# It is pure: nothing is registered, nothing is mutated, and nothing in it is about arrays.


# %%
class State(NamedTuple):
    x: vr.Shared  # (d,) model
    m: vr.PerWorker  # (n, d) momentum
    e: vr.PerWorker  # (n, d) what was not sent


class Hyper(NamedTuple):
    gamma: float  # step size
    beta: float = 0.5  # momentum


@vr.method(state=State, hyper=Hyper)
def ef_ball(s, w, h, t):
    """Error feedback with heavy-ball momentum: send C(e + gamma m), keep what was not sent."""
    m = h.beta * s.m + vr.grad(w, s.x)
    p = s.e + h.gamma * m
    sent = vr.compress(w, p)
    return State(x=s.x - vr.mean(w, sent), m=m, e=p - sent)


# %% [markdown]
# ## 2. Run it
#
# On logistic regression with embedded real data, ten workers, each sending 3 of 30 coordinates. The default engine compiles the step
# function with Numba; `engine="numpy"` runs it as it stands. Both draw the same random numbers.

# %%
problem = vr.get_problem("logistic", data="breast_cancer", n=10, lam=1e-2, batch=16)
L, mu = problem.constants.L, problem.constants.mu
hyper = {"gamma": 0.05 / L, "beta": 0.5}
history = vr.simulate(ef_ball, problem, hyper, steps=400, compressor="topk(k=3)", seeds=5)
history

# %%
as_it_stands = vr.simulate(ef_ball, problem, hyper, steps=400, compressor="topk(k=3)", seeds=5, engine="numpy")
apart = max(float(np.max(np.abs(as_it_stands.final[name] - v)) / np.max(np.abs(v))) for name, v in history.final.items())
assert apart < 1e-12  # rounding alone
apart

# %%
axes = history.plot()
# %% [markdown]
# ## 3. Its exact worst case
#
# No data now: the **largest** value that a measure can take after three steps, over *all* problems of a class (1-smooth,
# 0.1-strongly convex), all dimensions, all numbers of workers from two on, and all compressors that keep at least half of the energy.
# The answer is an interval, its upper end verified after the solve.

# %%
small = {"gamma": 0.2, "beta": 0.5}
worst = vr.worst_case(ef_ball, small, steps=3, L=1.0, mu=0.1, compressor={"delta": 0.5}, measure="distance")
assert worst.rigorous and worst.exact
worst

# %% [markdown]
# The lower end comes with the instance that reaches it. It is run through the very same step function:

# %%
reached = worst.instance.replay(ef_ball)
assert worst.lower * (1 - 1e-6) <= reached <= worst.upper * (1 + 1e-6)
reached

# %% [markdown]
# ## 4. On quadratics, in closed form
#
# Read on symbols, the step function becomes a transfer matrix. Its characteristic polynomial tells for which step sizes the method is
# stable, exactly. (A compressor is not linear; this is the uncompressed method.)

# %%
reading = vr.quadratic(ef_ball, beta="1/2")
reading

# %%
limit = reading.stability_limit(L=1)
limit

# %% [markdown]
# A run just below and one just above that limit say the same:

# %%
bowl = vr.get_problem("quadratic", n=4, d=10, L=1.0, mu=0.1)


def ends(gamma):
    """Distance to the minimiser after 2000 steps over the one at the start."""
    given = {"steps": 2000, "compressor": "identity", "measures": ("distance",), "engine": "numpy"}
    distance = vr.simulate(ef_ball, bowl, {"gamma": gamma, "beta": 0.5}, **given).values["distance"][0]
    return float(distance[-1] / distance[0])


below, above = ends(0.99 * float(limit.value)), ends(1.01 * float(limit.value))
assert below < 1e-6 and above > 1e6
below, above

# %% [markdown]
# ## 5. Time and traffic
#
# The same function, read as events: what has to wait for what? The pace of the steady state is the slowest cycle of waiting, under any
# latency and bandwidth, and the formula comes with it. Bits are counted with their indices.

# %%
line = vr.timeline(ef_ball, small, compute="50ms", latency="100ms", bandwidth="1Gbit/s", size="400MB", bytes_share=0.01)
assert abs(line.seconds_per_step - (0.050 + 0.100 + 0.01 * 3.2)) < 1e-12
line

# %%
sent = vr.traffic(ef_ball, small, d=30, n=10, compressor="topk(k=3)")
assert sent.up_per_step == 3 * (32 + 5)  # a float and an index of 5 bits, three times
sent

# %% [markdown]
# ## 6. A claim that is proved
#
# A claim is a record: what is measured, what it is said to be bounded by, and where. Here the iterate from which error and momentum are
# removed is said to contract as gradient descent with step gamma/(1-beta) does, as long as the step is small against delta. It is
# checked against the exact worst case at every point of its grid, which is then proved in fractions, and against runs.


# %%
def virtual(s, w, h):
    """Squared distance of the iterate from which error and momentum are removed."""
    z = s.x - vr.mean(w, s.e) - h.gamma * h.beta / (1 - h.beta) * vr.mean(w, s.m)
    return vr.sqnorm(w, z - vr.optimum(w))


cautious = vr.Claim(
    "ef_ball.1",
    "The virtual iterate of error feedback with momentum contracts as gradient descent with step gamma/(1-beta) does.",
    method="ef_ball",
    measure=virtual,
    bound="(1 - gamma*mu/(1-beta))**(2*N)",
    lets={"gamma": "delta*(1-beta)/(4*L)"},
    setting=vr.Setting(compressor="contractive", shared_minimiser=True, per_worker=True),
    grid=vr.product(L=1, mu=0.1, delta=(0.2, 0.5, 1.0), beta=0.5, N=(1, 3)),
    source="this notebook",
)
held = vr.check([cautious])
assert [r.verdict.value for r in held] == ["certified"]
held

# %% [markdown]
# ## 7. A claim that is refuted
#
# Take a larger step, and claim the same: "error feedback makes compression free".

# %%
bold = vr.Claim(
    "ef_ball.2",
    "The same with a step that does not depend on delta.",
    method="ef_ball",
    measure=virtual,
    bound="(1 - gamma*mu/(1-beta))**(2*N)",
    lets={"gamma": "(1-beta)/L"},
    setting=vr.Setting(compressor="contractive", shared_minimiser=True, per_worker=True),
    grid=vr.product(L=1, mu=0.1, delta=(0.2, 0.5, 1.0), beta=0.5, N=(1, 3)),
    source="this notebook",
)
refuted = vr.check([bold])
assert [r.verdict.value for r in refuted] == ["refuted"] and refuted.exit_code == 1
refuted

# %% [markdown]
# A refutation is not an opinion: it is a concrete instance, functions, start and compressor, on which the method does worse than
# claimed. It is plain data, it is stored, and it runs again.

# %%
again = refuted["ef_ball.2"].replay()
assert again.reproduced and again.value > again.bound
print(again.sentence)

# %% [markdown]
# ## Where to go from here
#
# - `verify-rates list` and `verify-rates show ef21`: what there is, and how each method is read.
# - `verify-rates check`: the published rates, checked on your machine.
# - `verify-rates check --from yours.py`: this notebook's method and claims as a file, with verdicts, witnesses and exit codes.
# - `verify-rates figures --out figures`: figures for a paper, with their parameters inside.
