"""Resource allocation: agents share a fixed sum and exchange quantised slopes over links; both dynamics, delays, switching graphs.

The agent form is also a method, ``resource_agent``; the link form quantises differences of slopes, one number a link, which no word
does, so that it is a simulator here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np

from verify_rates.solvers.method import UsageError
from verify_rates.theory.evidence import IDENTITY_RTOL, Found

DESCENT = "eta*(1 - eta*L*c*lam_m/2)"  # resource_allocation.3, with c for the upper sector K
LIMIT = "2/(L*c*lam_m)"
RATE = "1 - 2*mu*eta*b*lam_2*(1 - eta*L*c*lam_m/2)"  # resource_allocation.4, with b for the lower sector
SIBLING = "b/c*lam_2/(u*c**2*lam_m**2)"  # resource_allocation.2: b/c is the ratio of the sector, f'' < 2u
SIBLING_REPAIRED = "b*lam_2/(u*c**2*lam_m**2)"
SECTOR = ("exp(-s/2)", "exp(s/2)")  # resource_allocation.5, with s for the step d of the logarithm
LEVEL_BITS = "ceiling(log(k)/log(2)) + 1"  # resource_allocation.6
STEPS = 60
DELAYED = 20  # updates with messages under way
LONG = 400  # windows of a switching graph
REACHED = 1e-6  # of the first suboptimality
RESOLVED = 1e-9  # of the first suboptimality: below, rounding of 1e-15 in objectives is more than a millionth
SHARE_RTOL = 1e-5  # of such suboptimalities


# --- nonlinearities: g(z), with the sector lower*z^2 <= z*g(z) <= upper*z^2 ------------------------------------------------


def linear(z: Any) -> Any:
    return z


def log_quantiser(z: float, d: float) -> float:
    """``sgn(z)*exp(d*round(ln|z|/d))``, 0 at 0."""
    return 0.0 if z == 0 else math.copysign(math.exp(d * round(math.log(abs(z)) / d)), z)


def uniform_quantiser(z: Any, width: Any) -> Any:
    """The nearest multiple of the width: no lower sector, a dead zone at 0."""
    return width * round(z / width)


def saturation(z: Any, top: Any) -> Any:
    return max(-top, min(top, z))


def shifted(z: Any) -> Any:
    """Not odd: rounds down."""
    return math.floor(z)


NONLINEARITIES: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "linear": (linear, 1.0, 1.0),
    "half": (lambda z: z / 2, 0.5, 0.5),
    "log(d=0.2)": (lambda z: log_quantiser(z, 0.2), math.exp(-0.1), math.exp(0.1)),
    "log(d=1)": (lambda z: log_quantiser(z, 1.0), math.exp(-0.5), math.exp(0.5)),
    "uniform": (lambda z: uniform_quantiser(z, Fraction(1, 2)), 0.0, 2.0),
    "saturation": (lambda z: saturation(z, Fraction(3, 2)), 0.0, 1.0),
}


# --- the two dynamics ---------------------------------------------------------------------------------------------------


def link_step(x: list[Any], psi: list[Any], W: Any, eta: Any, g: Callable[[Any], Any]) -> list[Any]:
    """``x_i - eta*sum_j W_ij g(psi_i - psi_j)``."""
    n = range(len(x))
    return [x[i] - eta * sum(W[i][j] * g(psi[i] - psi[j]) for j in n if W[i][j]) for i in n]


def agent_step(x: list[Any], psi: list[Any], W: Any, eta: Any, g: Callable[[Any], Any]) -> list[Any]:
    """``x_i - eta*sum_j W_ij (g(psi_i) - g(psi_j))``."""
    sent, n = [g(v) for v in psi], range(len(x))
    return [x[i] - eta * sum(W[i][j] * (sent[i] - sent[j]) for j in n if W[i][j]) for i in n]


FORMS = {"link": link_step, "agent": agent_step}


@dataclass(frozen=True, eq=False)
class Allocation:
    """``min sum f_i(x_i)``, ``sum x_i = total``, f_i'' between mu and L: ``f_i' = L_i (x - c_i)`` plus a bounded bend where ``bent``."""

    slopes: np.ndarray  # (n,) L_i
    centres: np.ndarray  # (n,)
    mu: float
    L: float
    bent: bool

    def psi(self, x: np.ndarray) -> np.ndarray:
        """f_i'(x_i): the bend has a slope in [-(L-mu)/4, (L-mu)/4], the rest one in the middle half of [mu, L]."""
        z = x - self.centres
        return self.slopes * z + ((self.L - self.mu) / 4 * np.sin(z) if self.bent else 0.0)

    def value(self, x: np.ndarray) -> float:
        z = x - self.centres
        return float(np.sum(self.slopes * z**2 / 2 + ((self.L - self.mu) / 4 * (1 - np.cos(z)) if self.bent else 0.0)))

    def optimum(self, total: float) -> float:
        """The least value at a sum: the multiplier is bisected, each share by Newton steps from the quadratic's."""

        def shares(lam: float) -> np.ndarray:
            z = lam / self.slopes
            for _ in range(20):
                bend, curve = ((self.L - self.mu) / 4 * f(z) if self.bent else 0.0 * z for f in (np.sin, np.cos))
                z = z - (self.slopes * z + bend - lam) / (self.slopes + curve)
            return self.centres + z

        low, high = -1e3, 1e3
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if shares(middle).sum() < total else (low, middle)
        return self.value(shares((low + high) / 2))


def allocation(n: int, mu: float, L: float, bent: bool, seed: int) -> Allocation:
    """Random agents; the least and the largest curvature are reached."""
    if not 0 < mu <= L:
        raise UsageError(f"an allocation needs 0 < mu <= L, not mu = {mu!r}, L = {L!r}.")
    rng, room = np.random.default_rng([seed, n]), (L - mu) / 4 if bent else 0.0
    return Allocation(np.concatenate([[mu + room, L - room], rng.uniform(mu + room, L - room, n - 2)]), rng.normal(size=n) * 3, mu, L, bent)


def weights(graph: str, n: int, seed: int = 0) -> np.ndarray:
    """A symmetric weight matrix of a named graph, (n, n), with random positive weights and no diagonal."""
    from verify_rates.solvers.topologies import get_topology

    A = nx.to_numpy_array(get_topology(graph, n).graph, nodelist=range(n), weight=None)
    drawn = np.triu(A * np.random.default_rng([seed, n, 1]).uniform(0.5, 1.5, (n, n)))
    return drawn + drawn.T


def spectrum(W: np.ndarray) -> tuple[float, float]:
    """``(lambda_2, lambda_n)`` of the Laplacian."""
    values = np.linalg.eigvalsh(np.diag(W.sum(axis=1)) - W)
    return float(values[1]), float(values[-1])


# --- the claims ---------------------------------------------------------------------------------------------------------


def sum_kept(form: str, g: str, n: int, seed: int) -> Found:
    """resource_allocation.1 in fractions: steps in which the sum of the shares has changed, with random symmetric weights and slopes."""
    rng = np.random.default_rng([seed, n])

    def drawn(*shape: int) -> Any:
        return np.vectorize(lambda v: Fraction(int(v), 16), otypes=[object])(rng.integers(-40, 40, shape))

    function = {**{k: v[0] for k, v in NONLINEARITIES.items()}, "cube": lambda z: z**3, "floor": shifted}[g]
    x, wrong = list(drawn(n)), 0
    for _ in range(STEPS):
        W = abs(np.triu(drawn(n, n), 1))
        moved = FORMS[form](x, list(drawn(n)), W + W.T, Fraction(1, 8), function)
        wrong += sum(moved) != sum(x)
        x = moved
    return Found.count(wrong, STEPS)


def sibling(repaired: bool, g: str, n: int, share: tuple[int, int]) -> Found:
    """resource_allocation.2 on equal quadratics f = u x^2 (u = 1, f'' = 2) and a linear g on a complete graph, in fractions.

    The factor by which the deviation of the slopes changes in a step at ``share`` of the largest eta: at most 1 where it converges.
    """
    from verify_rates.theory.symbols import exact

    function, lower, upper = NONLINEARITIES[g]
    values = {"b": Fraction(lower), "c": Fraction(upper), "u": 1, "lam_2": n, "lam_m": n}
    eta = Fraction(*share) * exact(SIBLING_REPAIRED if repaired else SIBLING, values)
    W = [[int(i != j) for j in range(n)] for i in range(n)]
    x = [Fraction(1), Fraction(-1)] + [Fraction(0)] * (n - 2)
    moved = link_step(x, [2 * v for v in x], W, eta, function)
    factor = abs(moved[0])
    return Found(float(factor), float(factor), 1.0, proves=True, message=f"eta = {eta}, deviations change by {factor} a step")


def _follow(made: Allocation, W: np.ndarray, eta: float, g: Callable[[Any], Any], steps: int) -> Iterable[tuple[np.ndarray, np.ndarray]]:
    x = np.zeros(len(made.centres))
    for _ in range(steps):
        psi = made.psi(x)
        yield x, psi
        x = np.array([float(v) for v in link_step(list(x), list(psi), W, eta, g)])


def _setup(graph: str, g: str, n: int, mu: float, bent: bool, c: float, seed: int) -> tuple[Allocation, np.ndarray, dict[str, float]]:
    from verify_rates.theory.symbols import number

    made, W = allocation(n, mu, 1.0, bent, seed), weights(graph, n, seed)
    lam_2, lam_m = spectrum(W)
    _, lower, upper = NONLINEARITIES[g]
    values = {"mu": mu, "L": 1.0, "b": lower, "c": upper, "lam_2": lam_2, "lam_m": lam_m}
    return made, W, values | {"eta": c * number(LIMIT, values)}


def descent(graph: str, g: str, n: int, mu: float, bent: bool, c: float, seed: int) -> Found:
    """resource_allocation.3: the largest excess of ``F(k+1) - F(k)`` over its bound, relative to the first value, at c of the limit."""
    from verify_rates.theory.symbols import number

    made, W, values = _setup(graph, g, n, mu, bent, c, seed)
    function, share = NONLINEARITIES[g][0], number(DESCENT, values)
    along = list(_follow(made, W, values["eta"], function, STEPS))
    scale, worst = made.value(along[0][0]) - made.optimum(0.0), -math.inf
    for (x, psi), (after, _) in itertools.pairwise(along):
        energy = sum(W[i, j] * float(function(psi[i] - psi[j])) * (psi[i] - psi[j]) for i in range(n) for j in range(i))
        worst = max(worst, made.value(after) - made.value(x) + share * energy)
    return Found.identity(worst / scale, f"largest excess {worst / scale:.2e} of the first suboptimality")


def switching(g: str, n: int, window: int, c: float, seed: int) -> Found:
    """resource_allocation.3 where the graph changes: only every ``window`` steps the union of the links used is connected.

    The links of a ring take turns, one step of every window has none; counted are steps that raise the value, steps without a link that
    change it, and a last suboptimality of more than a millionth of the first.
    """
    made, W, values = _setup("ring", g, n, 0.3, True, c, seed)
    function, links = NONLINEARITIES[g][0], [(i, (i + 1) % n) for i in range(n)]
    x, best, wrong = np.zeros(n), made.optimum(0.0), 0
    first = made.value(x) - best
    for t in range(LONG * window):
        on = np.zeros((n, n))
        for i, j in links[t % window :: window - 1] if t % window < window - 1 else []:
            on[i, j] = on[j, i] = W[i, j]
        moved = np.array([float(v) for v in link_step(list(x), list(made.psi(x)), on, values["eta"], function)])
        wrong += made.value(moved) > made.value(x) + IDENTITY_RTOL * first
        wrong += not on.any() and not np.array_equal(moved, x)
        x = moved
    left = (made.value(x) - best) / first
    wrong += left > REACHED
    return Found(float(wrong), float(wrong), 0.0, message=f"suboptimality falls to {left:.1e} of its start")


def stamped(alike: bool, g: str, n: int, taubar: int, seed: int) -> Found:
    """resource_allocation.1 with time-stamped messages, in fractions: updates after which the sum of the shares has changed.

    Agent i applies ``-eta W_ij g(psi_i(k) - psi_j(k))`` when j's message of time k arrives; ``alike`` gives both directions of a link the
    same delay.  Once all messages have arrived the sum has to be back in any case.
    """
    rng, function = np.random.default_rng([seed, n]), NONLINEARITIES[g][0]
    x = [Fraction(int(v), 16) for v in rng.integers(-40, 40, n)]
    total, wrong = sum(x), 0
    under_way: dict[int, list[tuple[int, Fraction]]] = {}
    for t in range(DELAYED + taubar + 1):
        if t < DELAYED:
            psi = [(i + 1) * v for i, v in enumerate(x)]
            delays = rng.integers(0, taubar + 1, (n, n))
            for i, j in itertools.permutations(range(n), 2):
                late = delays[min(i, j), max(i, j)] if alike else delays[i, j]
                under_way.setdefault(t + int(late), []).append((i, Fraction(1, 8 * n) * function(psi[i] - psi[j])))
        for i, change in under_way.pop(t, []):
            x[i] -= change
        wrong += sum(x) != total
    message = f"the sum is off after {wrong} of {t + 1} updates"
    wrong += DELAYED * (sum(x) != total)
    return Found(float(wrong), float(wrong), 0.0, message=message)


def step_limit(graph: str, n: int, seed: int) -> Found:
    """resource_allocation.3 is sharp: where a step of size 1 has eigenvalues 1 - lam, sizes up to 2/max(lam) converge (g(z) = z)."""
    from verify_rates.theory.symbols import number

    W = weights(graph, n, seed)
    made = Allocation(np.ones(n), np.zeros(n), 1.0, 1.0, False)
    step = np.stack([link_step(list(row), list(made.psi(row)), W, 1.0, linear) for row in np.eye(n)], axis=1)
    limit = 2 / float(np.max(1 - np.linalg.eigvalsh(step)))
    said = number(LIMIT, {"L": 1.0, "c": 1.0, "lam_m": spectrum(W)[1]})
    return Found(limit, limit, said, "==", proves=True, message=f"converges up to eta = {limit:.10g}")


def linear_rate(graph: str, g: str, n: int, mu: float, bent: bool, c: float, seed: int) -> Found:
    """resource_allocation.4: the largest ratio of two suboptimalities in a row against the factor."""
    from verify_rates.theory.symbols import number

    made, W, values = _setup(graph, g, n, mu, bent, c, seed)
    best, factor = made.optimum(0.0), number(RATE, values)
    left = [made.value(x) - best for x, _ in _follow(made, W, values["eta"], NONLINEARITIES[g][0], STEPS)]
    ratios = [b / a for a, b in itertools.pairwise(left) if a > RESOLVED * left[0]]
    return Found(max(ratios), max(ratios), factor * (1 + SHARE_RTOL), message=f"{len(ratios)} steps, factor {factor:.6g}")


def log_sector(d: tuple[int, int]) -> Found:
    """resource_allocation.5: with z = exp(d*r) the ratio q(z)/z is exp(d*(round(r) - r)), whose exponents are enumerated in fractions.

    ``round(r) - r`` has period 1 and is linear between half-integers, where both roundings are tried.
    """
    from verify_rates.theory.symbols import number

    width = Fraction(*d)
    offsets = [Fraction(k, 64) for k in range(-32, 33)]
    reached = [(-width * r) for r in offsets]  # r in [-1/2, 1/2] is rounded to 0, or at the ends to either side
    low, high = (number(text, {"s": width}) for text in SECTOR)
    ends = (math.exp(min(reached)), math.exp(max(reached)))
    wrong = sum(not math.isclose(a, b, rel_tol=IDENTITY_RTOL) for a, b in zip(ends, (low, high), strict=True))
    for r in offsets:
        for shift in (-3, 0, 5):
            z = math.exp(float(width * (r + shift)))
            wrong += not low * (1 - IDENTITY_RTOL) <= log_quantiser(-z, float(width)) / -z <= high * (1 + IDENTITY_RTOL)
    return Found.count(wrong, 2 + 3 * len(offsets), proves=True)


def code_bits(levels: int, zero: bool) -> Found:
    """resource_allocation.6: the bits that tell all messages apart, against the formula.

    ``levels`` are magnitudes; with ``zero`` one of them is 0, else the message 0 comes on top.
    """
    from verify_rates.theory.symbols import number

    magnitudes = range(levels) if zero else range(1, levels + 1)
    messages = {sign * m for sign in (1, -1) for m in magnitudes} | {0}
    bits = (len(messages) - 1).bit_length()
    return Found(bits, bits, number(LEVEL_BITS, {"k": levels}), proves=True, message=f"{len(messages)} messages need {bits} bits")


def slow_clock(form: str, g: str, n: int, taubar: int, seed: int) -> Found:
    """resource_allocation.6, delays unknown: agents that update every taubar+1 ticks, whatever the delays up to taubar, step as without.

    Every message carries slopes of its own update; an agent that has not heard all of them by the next update would be counted.
    """
    made, W = allocation(n, 0.5, 1.0, True, seed), weights("ring", n, seed)
    eta, function, rng = 0.5 / spectrum(W)[1], NONLINEARITIES[g][0], np.random.default_rng([seed, 9])
    x, plain, wrong, known = np.zeros(n), np.zeros(n), 0, np.zeros((n, n))
    for tick in range(STEPS * (taubar + 1)):
        if tick % (taubar + 1) == 0:
            due = tick + rng.integers(0, taubar + 1, (n, n))
            psi = made.psi(x)
        known = np.where(due == tick, psi[None, :], known)  # what i has heard of j
        if tick % (taubar + 1) == taubar:
            x = np.array([float(FORMS[form](list(x), list(np.where(W[i] > 0, known[i], psi)), W, eta, function)[i]) for i in range(n)])
            plain = np.array([float(v) for v in FORMS[form](list(plain), list(made.psi(plain)), W, eta, function)])
            wrong += not np.array_equal(x, plain)
    return Found.count(wrong, STEPS)
