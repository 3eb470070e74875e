"""Rates, energies and times of an FDMA uplink with local computing, and the latency-only optimum by water-filling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import sympy as sp

from verify_rates.solvers.method import UsageError
from verify_rates.theory.evidence import Found

# a is N0, b is h, u is w1, c is w2
LIMIT = "a*log(2)/b"  # semantic_comm.2
FREQUENCY = "(c/(2*kappa*u))**(1/3)"  # semantic_comm.4
KKT_RTOL = 1e-6  # the conic solver stops at a relative gap of about 1e-8; the objective is a root of it

B, p, h, N0, v, C, f, kappa, w1, w2 = sp.symbols("B p h N0 v C f kappa w1 w2", positive=True)
_LETTERS = {"a": N0, "b": h, "u": w1, "c": w2, "kappa": kappa}


def _formula(text: str) -> sp.Expr:
    from verify_rates.theory.symbols import parse

    made = parse(text)
    return made.subs({s: _LETTERS[s.name] for s in made.free_symbols})


class Device(NamedTuple):
    """One device: bits to send, power (W), channel gain, and the seconds it computes before."""

    bits: float
    power: float
    gain: float
    computes: float


def rate(device: Device, band: float, noise: float = 1.0) -> float:
    """Bits per second in a band: ``B*log2(1 + p*h/(N0*B))``.

    >>> rate(Device(bits=1, power=3, gain=1, computes=0), 1.0)
    2.0
    """
    if band <= 0 or noise <= 0 or device.power <= 0 or device.gain <= 0:
        raise UsageError("band, noise, power and gain must be positive.")
    return band * math.log2(1 + device.power * device.gain / (noise * band))


def concave_rate() -> Found:
    """semantic_comm.1: the Hessian of r in (p, B) has a negative entry r_pp and determinant 0, so r is jointly concave."""
    r = B * sp.log(1 + p * h / (N0 * B)) / sp.log(2)
    hessian = sp.hessian(r, (p, B)).applyfunc(sp.simplify)
    wrong = [hessian[0, 0].is_negative is not True, hessian[1, 1].is_negative is not True, sp.simplify(hessian.det()) != 0]
    return Found.count(sum(wrong), 3, proves=True)


def energy_per_bit() -> Found:
    """semantic_comm.2: p/r grows in p, from ``N0*ln(2)/h`` on; with v = p*h/(N0*B) its slope has the sign of log(1+v) - v/(1+v)."""
    r = B * sp.log(1 + p * h / (N0 * B)) / sp.log(2)
    slope = sp.diff(p / r, p).subs(p, v * N0 * B / h)
    g = sp.log(1 + v) - v / (1 + v)
    factor = sp.simplify(slope / g)
    wrong = [sp.simplify(sp.limit(p / r, p, 0, "+") - _formula(LIMIT)) != 0]
    wrong += [sp.diff(g, v).simplify().is_positive is not True, g.subs(v, 0) != 0]  # so g > 0 for v > 0
    wrong += [sp.simplify(factor * sp.log(1 + v) ** 2).is_positive is not True]
    return Found.count(sum(map(bool, wrong)), len(wrong), proves=True)


def uplink_time() -> Found:
    """semantic_comm.3: 1/r falls in B and is convex: r is positive, growing and concave, and (1/r)'' = (2r'^2 - r r'')/r^3."""
    c, u = sp.symbols("c u", positive=True)
    r = B * sp.log(1 + c / B)
    first = sp.diff(r, B).subs(B, c / u)  # u = c/B
    g = sp.log(1 + u) - u / (1 + u)
    general = sp.Function("r", positive=True)(B)
    identity = sp.diff(1 / general, B, 2) - (2 * sp.diff(general, B) ** 2 - general * sp.diff(general, B, 2)) / general**3
    wrong = [sp.simplify(first - g) != 0, sp.diff(g, u).simplify().is_positive is not True, g.subs(u, 0) != 0]
    wrong += [sp.simplify(sp.diff(r, B, 2)).is_negative is not True, sp.simplify(identity) != 0]
    return Found.count(sum(map(bool, wrong)), len(wrong), proves=True)


def cpu_optimum() -> Found:
    """semantic_comm.4: the only stationary point of a convex function of f."""
    cost = kappa * C * f**2 * w1 + w2 * C / f
    stationary = [s for s in sp.solve(sp.diff(cost, f), f) if s.is_positive]
    wrong = [len(stationary) != 1 or sp.simplify(stationary[0] - _formula(FREQUENCY)) != 0]
    wrong.append(sp.diff(cost, f, 2).is_positive is not True)
    return Found.count(sum(map(bool, wrong)), 2, proves=True)


def needed_band(device: Device, seconds: float) -> float:
    """The band in which the device's bits take so long, by bisection; inf where no band is enough."""
    if seconds <= 0 or device.bits / seconds >= device.power * device.gain / math.log(2):  # the rate's limit for a wide band
        return math.inf
    low, high = 0.0, 1.0
    while rate(device, high) * seconds < device.bits:
        low, high = high, 2 * high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if rate(device, middle) * seconds < device.bits else (low, middle)
    return high


def water_filling(devices: Sequence[Device], band: float) -> tuple[float, list[float]]:
    """Latency only, powers fixed: the least time in which all can finish, and the bands with which all finish at that time."""
    low = max(d.computes for d in devices)
    high = low + 1.0
    while sum(needed_band(d, high - d.computes) for d in devices) > band:
        high = low + 2 * (high - low)
    for _ in range(100):
        middle = (low + high) / 2
        enough = sum(needed_band(d, middle - d.computes) for d in devices) <= band
        low, high = (low, middle) if enough else (middle, high)
    return high, [needed_band(d, high - d.computes) for d in devices]


def equal_finish(n: int, seed: int) -> Found:
    """What to verify 3 and 4: water-filling (all finish together) against the optimum of a conic solver over the bands."""
    import cvxpy as cp

    rng = np.random.default_rng([seed, n, 4])
    devices = [Device(*map(float, rng.uniform((1, 1, 0.5, 0), (5, 4, 2, 3)))) for _ in range(n)]
    ours, bands = water_filling(devices, 2.0)
    finish = [d.computes + d.bits / rate(d, b) for d, b in zip(devices, bands, strict=True)]
    widths, end = cp.Variable(n, pos=True), cp.Variable(pos=True)
    limits = [cp.sum(widths) <= 2.0]
    for k, d in enumerate(devices):
        c = d.power * d.gain
        limits.append(d.bits * math.log(2) * cp.inv_pos(end - d.computes) <= -cp.rel_entr(widths[k], widths[k] + c))
    program = cp.Problem(cp.Minimize(end), limits)
    program.solve(solver=cp.CLARABEL)
    if program.status != cp.OPTIMAL:
        raise ArithmeticError(f"the conic solver ended with {program.status}")
    off = max(abs(ours - program.value) / ours, max(finish) / min(finish) - 1, sum(bands) / 2.0 - 1)
    return Found(off, off, KKT_RTOL, message=f"water-filling {ours:.9g} s, conic solver {program.value:.9g} s")
