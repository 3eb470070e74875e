"""DPSGD as we reconstruct it: an asynchronous master with Hogwild workers, whose arrivals have no common step: a simulator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from verify_rates.theory.evidence import Found, relative
from verify_rates.theory.symbols import parse

BOUND = "4*F0/(gamma*T) + 2*L*gamma*sigma2/n + 8*L**2*gamma**2*tau*sigma2/n"  # dpsgd.2
STEP = "sqrt(2*n*F0/(L*sigma2*T))"  # dpsgd.3
TUNED = "4*sqrt(2)*sqrt(F0*L*sigma2/(n*T)) + 16*L*F0*tau/T"

STEPS = 40


class Master(NamedTuple):
    """What an asynchronous run went through: the master's models (pushes + 1, d) and the staleness of every push."""

    models: np.ndarray
    staleness: list[int]


def hogwild(problem: Any, i: int, x: np.ndarray, B: int, threads: int, gamma: float, draws: Any, order: np.random.Generator) -> np.ndarray:
    """B lock-free updates of worker i from x: a read misses each of the last ``threads - 1`` updates entry by entry, or not."""
    updates: list[np.ndarray] = []
    u = x.copy()
    for _ in range(B):
        late = updates[max(0, len(updates) - threads + 1) :]
        seen = u - sum((np.where(order.random(u.size) < 0.5, v, 0.0) for v in late), np.zeros_like(u))
        updates.append(-gamma * problem.grads(seen, draws)[i])
        u = u + updates[-1]
    return u


def asynchronous(
    problem: Any, events: Iterable[tuple[str, int]], *, B: int, threads: int, gamma: float, rho: float, x0: Any = None, seed: int = 0
) -> Master:
    """The protocol: ``("pull", i)`` copies the master's model, ``("push", i)`` adds rho times the progress of B updates from it."""
    *draws, order = [np.random.default_rng(s) for s in np.random.SeedSequence([seed, 26]).spawn(problem.n + 1)]
    models = [np.zeros(problem.d) if x0 is None else np.array(x0, float)]
    pulled: dict[int, tuple[int, np.ndarray]] = {}
    staleness = []
    for what, i in events:
        if what == "pull":
            pulled[i] = (len(models) - 1, models[-1])
            continue
        at, x = pulled.pop(i)
        u = hogwild(problem, i, x, B, threads, gamma, draws, order)
        models.append(models[-1] + rho * (u - x))
        staleness.append(len(models) - 2 - at)
    return Master(np.array(models), staleness)


def in_turn(n: int, pushes: int) -> list[tuple[str, int]]:
    """Workers that push and pull again one after the other."""
    return [("pull", i) for i in range(n)] + [e for t in range(pushes) for e in (("push", t % n), ("pull", t % n))]


def together(n: int, rounds: int) -> list[tuple[str, int]]:
    """All pull, then all push."""
    return [(what, i) for _ in range(rounds) for what in ("pull", "push") for i in range(n)]


def _problem(n: int, zeta2: float, seed: int) -> Any:
    from verify_rates.problems import get_problem

    return get_problem("quadratic", n=n, d=4, L=1.0, mu=0.2, zeta2_star=zeta2, seed=seed)


def delayed(n: int, seed: int) -> Found:
    """n workers in turn, single updates, one function: the delayed method of one worker with staleness n - 1 once all have pulled."""
    from verify_rates.solvers.engine.run import simulate

    problem, gamma = _problem(n, 0.0, seed), 0.5 / n
    made = asynchronous(problem, in_turn(n, STEPS), B=1, threads=1, gamma=gamma, rho=1.0)
    hyper = {"gamma": gamma, "tau": n - 1}
    run = simulate("dd_ef_sgd", problem, hyper, steps=STEPS + n - 1, every=1, keep_states=True, compressor="identity", engine="numpy")
    assert run.states is not None
    late = run.states["x"][0]
    if made.staleness[n - 1 :] != [n - 1] * (STEPS - n + 1):
        return Found.count(1, 1)
    return Found.identity(relative(list(made.models - late[n - 1 :]), list(made.models)))


def local(n: int, B: int, seed: int) -> Found:
    """Workers that pull and push together with rho = 1/n and one thread: local SGD with B steps."""
    from verify_rates.solvers.engine.run import simulate

    problem = _problem(n, 1.0 if n > 1 else 0.0, seed)
    made = asynchronous(problem, together(n, STEPS), B=B, threads=1, gamma=0.1, rho=1 / n)
    run = simulate("local_sgd", problem, {"gamma": 0.1, "H": B}, steps=STEPS * B, every=B, keep_states=True, engine="numpy")
    assert run.states is not None
    models = run.states["x"][0][:, 0]
    return Found.identity(relative(list(made.models[::n] - models), list(models)))


def tuned() -> Found:
    """dpsgd.3: the bound of dpsgd.2 at the stated step, in symbols."""
    bound = parse(BOUND)
    gamma = next(s for s in bound.free_symbols if s.name == "gamma")
    positive = {s: sp.Symbol(s.name, positive=True) for s in bound.free_symbols | parse(STEP).free_symbols}
    off = (bound.subs(gamma, parse(STEP)) - parse(TUNED)).subs(positive)
    return Found.count(int(sp.simplify(off) != 0), 1, proves=True)
