"""The planner: the hyper-parameters that reach an accuracy soonest, from a claim's bound and the exact time line.

Seconds to accuracy are steps times seconds per step.  The steps are the fewest at which the bound of a claim is at most the target, with
the best step size that the claim allows; the seconds per step are the exact steady state of the time line (``deco.14.repaired``: T steps
take that many of them, and at most one way through the pipeline more).  How much a compressor keeps (delta, which the bound knows) and how
many bytes it sends (with indices, which the link knows) are kept apart.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from verify_rates.solvers.method import UsageError, get_method, nearest
from verify_rates.solvers.words import Unsupported
from verify_rates.theory import symbols, units
from verify_rates.theory.claims import Claim, claims
from verify_rates.theory.timeline import timeline

UNREACHED = 1e300  # steps and seconds of what never reaches the target
MOST_STEPS = 2.0**50  # counted exactly in double precision
GRID: dict[str, tuple[Any, ...]] = {
    "tau": tuple(range(17)),
    "H": (1, 2, 4, 8, 16, 32, 64, 128, 256),
    "delta": (1.0, *(float(f"{v:.6g}") for v in np.geomspace(0.5, 1e-3, 25))),
}
STARTS = {"distance": "R2", "function_gap": "F0", "grad_norm": "G0"}  # V0 by the claim's initial measure
# Objectives by which DeCo's rule picks staleness and contraction (papers/deco.md); none of them is a number of steps.
OBJECTIVES: dict[str, Callable[[int, float], float]] = {
    "phi_A": lambda tau, delta: (1 - delta) / (delta * (1 - delta) ** tau) if delta < 1 else (0.0 if tau < 1 else math.inf),
    "phi_B": lambda tau, delta: (1 - delta) / (delta * (1 - delta / 2) ** tau),
    "additive": lambda tau, delta: tau**2 + 2 * (1 - delta) / delta**2,
}


@dataclass(frozen=True)
class Choice:
    """One point of the plan: where, how many steps, how long."""

    name: str  # "optimum", or the rule that picks it
    hyper: dict[str, float]
    steps: float
    gamma_share: float | None  # c of the claim's step size, where it has one
    bytes_share: float
    seconds_per_step: float
    limit: str
    seconds: float
    regret: float = 0.0  # relative to the optimum

    def __str__(self) -> str:
        where = ", ".join(f"{k} = {v:g}" for k, v in self.hyper.items()) or "nothing to choose"
        if self.steps >= UNREACHED:
            return f"{self.name}: {where}; no number of steps is proved to reach the target (a step takes {self.seconds_per_step:.6g} s)"
        cost = f"{self.steps:.6g} steps of {self.seconds_per_step:.6g} s, {self.seconds:.6g} s"
        return f"{self.name}: {where}; {cost} (regret {self.regret:.2%})"


@dataclass(frozen=True)
class Plan:
    """The fastest choice over the whole grid, what rules of thumb pick, and the grid itself."""

    method: str
    claim: str
    target: float
    optimum: Choice
    rules: tuple[Choice, ...]
    letters: dict[str, float]
    network: dict[str, float]
    grid: dict[str, list[float]]
    table: list[Choice] = field(repr=False)

    def __str__(self) -> str:
        note = f"a guarantee by {self.claim} at {self.target:g}, over {len(self.table)} points; no measurement"
        return "\n".join([f"{self.method}: {note}", str(self.optimum), *map(str, self.rules)])

    def plot(self, path: Any = None) -> Any:
        """Seconds to accuracy along the first quantity that is varied, the others at their best, with the optimum marked; a Figure."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(4.5, 3), layout="constrained")
        axes, name = figure.subplots(), next(iter(self.grid), None)
        if name is None:
            raise UsageError(f"{self.method} has nothing to choose, so there is nothing to draw.")
        values = self.grid[name]
        least = [min(c.seconds for c in self.table if c.hyper[name] == v) for v in values]
        axes.plot(values, [v if v < UNREACHED else math.nan for v in least], marker=".", label="others at their best")
        axes.plot(self.optimum.hyper[name], self.optimum.seconds, "*", markersize=12, color="C3", label="optimum")
        axes.set(xlabel=name, ylabel="seconds to accuracy", yscale="log", title=f"{self.method}, {self.claim} at {self.target:g}")
        axes.legend()
        if path is not None:
            figure.savefig(path, metadata={"Title": json.dumps({"method": self.method, "claim": self.claim, **self.network})})
        return figure

    def sensitivity(self, *, compute: Any = None, latency: Any = None, bandwidth: Any = None) -> Any:
        """Which choice is best at other compute times, latencies and bandwidths: :func:`verify_rates.theory.sensitivity.sensitivity`."""
        from verify_rates.theory.sensitivity import sensitivity

        return sensitivity(self, compute=compute, latency=latency, bandwidth=bandwidth)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    def to_json(self, **options: Any) -> str:
        return json.dumps(self.to_dict(), allow_nan=False, **options)


def plan(
    method: str = "dd_ef_sgd",
    *,
    compute: Any,
    latency: Any,
    bandwidth: Any,
    d: int,
    target: float,
    claim: str | Claim | None = None,
    problem: Any = None,
    letters: Mapping[str, float] | None = None,
    compressor: str = "topk",
    over: Mapping[str, Sequence[float]] | None = None,
    dtype_bits: int = 32,
) -> Plan:
    """The staleness, period and compression with which a method provably reaches an accuracy soonest on a network.

    Guarantee: exact over the stated grid (every point of it is evaluated) and the points of every rule, so that no rule is ever better;
    a bound that is loose makes a plan that is safe, not one that is measured.

    Parameters
    ----------
    method : of the catalogue, or a user's.
    compute, latency, bandwidth : of one step and of the link; numbers in s and bit/s, or text such as "50ms", "1Gbit/s".
    d : model size in numbers of ``dtype_bits`` bits.
    target : accuracy in the claim's measure, absolute.
    claim : whose bound counts the steps; by default the first of the method that can.
    problem : name or specification whose constants (L, mu, sigma2, zeta2_sup, F0 and R2 at a start in 0) the bound takes; or
    letters : these constants by hand; both: the letters win.
    compressor : "topk" or "randk", of which ``k = delta*d`` entries are kept.
    over : values to try for tau, H and delta, in place of the default grid.

    Errors: UsageError for bad input or where no point reaches the target.

    >>> made = plan(compute="200ms", latency="1s", bandwidth="100Mbit/s", d=12_500_000, target=1e-2,
    ...             letters={"n": 10, "L": 1, "F0": 1, "sigma2": 0.1, "zeta2_sup": 0.1})
    >>> print(made.optimum)
    optimum: tau = 0, delta = 1; 3200 steps of 5.2 s, 16640 s (regret 0.00%)
    >>> all(rule.regret >= 0 for rule in made.rules)
    True
    """
    asked = _claim(method, claim)
    if isinstance(d, bool) or not isinstance(d, int) or d < 1:
        raise UsageError(f"d must be a whole number from 1 on, not {d!r}.")
    if not (isinstance(target, (int, float)) and math.isfinite(target) and target > 0):
        raise UsageError(f"the target must be a positive number, not {target!r}.")
    network = {"compute": units.seconds(compute, "compute"), "latency": units.seconds(latency, "latency")}
    network |= {"bandwidth": units.bits_per_second(bandwidth, "bandwidth"), "size": d * dtype_bits / 8}
    known = {**(_constants(problem) if problem is not None else {}), **{k: float(v) for k, v in (letters or {}).items()}}
    if isinstance(asked.initial, str) and (start := STARTS.get(asked.initial)) in known:
        known.setdefault("V0", known[start])
    grid = _grid(method, asked, over)
    fewest, share_of = steps_needed(asked, known, target), _shares(compressor, d, dtype_bits)
    line_of, valid = graphs_of(method, network), _validity(asked, known)

    def choices(named: Sequence[tuple[str, dict[str, float]]]) -> list[Choice]:
        steps, shares = fewest({k: np.array([point[k] for _, point in named]) for k in grid})
        steps = np.broadcast_to(steps, len(named))  # one number where nothing is varied
        shares = [None] * len(named) if shares is None else np.broadcast_to(shares, len(named)).tolist()
        return [choice(*pair, float(N), c) for pair, N, c in zip(named, steps, shares, strict=True)]

    def choice(name: str, hyper: dict[str, float], steps: float, c: float | None) -> Choice:
        steps = steps if steps < math.inf and valid({**hyper, "N": steps, **({} if c is None else {"c": c})}) else math.inf
        sent = share_of(hyper["delta"]) if "delta" in hyper else 1.0
        line = line_of(hyper)
        graph = replace(line.graph, costs=replace(line.graph.costs, message_bits=sent * line.graph.costs.dense_bits))
        found = graph.pace()
        pace = found.ratio / line.steps_per_round
        return Choice(name, dict(hyper), steps, c, sent, pace, graph.words(found)[0], steps * pace)

    table = choices([("grid", dict(zip(grid, values, strict=True))) for values in itertools.product(*grid.values())])
    rules = choices(list(_rules(grid, network).items()))
    best = min([*table, *rules], key=lambda c: c.seconds)
    if not math.isfinite(best.seconds):
        raise UsageError(
            f"no point of the grid reaches {target:g} by {asked.id}: the terms of its bound that no step count lowers are larger."
        )
    regrets = [_with_regret(rule, best) for rule in rules]
    optimum = replace(best, name="optimum")
    shown = {k: list(map(float, v)) for k, v in grid.items()}
    return Plan(method, asked.id, float(target), optimum, tuple(regrets), known, network, shown, [_finite(c) for c in table])


def _with_regret(rule: Choice, best: Choice) -> Choice:
    regret = rule.seconds / best.seconds - 1 if math.isfinite(rule.seconds) else UNREACHED
    return replace(_finite(rule), regret=regret)


def _finite(choice: Choice) -> Choice:
    """A choice that never reaches the target has 1e300 steps, so that it stays JSON."""
    return choice if math.isfinite(choice.seconds) else replace(choice, steps=UNREACHED, seconds=UNREACHED)


def _claim(method: str, claim: str | Claim | None) -> Claim:
    """The claim whose bound counts the steps."""
    known = claims()
    if isinstance(claim, Claim):
        found = claim
    elif claim is not None:
        if claim not in known:
            raise nearest(str(claim), known, "claim")
        found = known[claim]
    else:
        get_method(method)
        able = [c for c in known.values() if c.method == method and c.kind == "bound" and c.expect == "holds" and c.runs and _counts(c)]
        if not able:
            raise UsageError(f"no claim about {method} bounds its measure by a number of steps; name one by claim=.")
        found = able[0]
    if found.method != method or not _counts(found):
        raise UsageError(f"{found.id} is about {found.method or 'no method'} and has {'no ' if not _counts(found) else 'a '}bound in N.")
    return found


def _counts(claim: Claim) -> bool:
    names = {s.name for s in symbols.parse(claim.bound).free_symbols} if claim.bound and not claim.not_checkable else set()
    return "N" in names and claim.relation == "<="


def _constants(problem: Any) -> dict[str, float]:
    """The letters of a problem at a start in 0."""
    from verify_rates.problems import get_problem

    made = get_problem(**problem) if isinstance(problem, Mapping) else get_problem(problem) if isinstance(problem, str) else problem
    c, x0 = made.constants, np.zeros(made.d)
    found = {"n": made.n, "L": c.L, "mu": c.mu, "sigma2": c.sigma2_sup, "zeta2_sup": c.zeta2_sup, "zeta2_star": c.zeta2_star}
    found |= {"F0": made.value(x0) - c.f_star[0], "G0": float(np.sum(made.grads(x0).mean(axis=0) ** 2))}
    found |= {"R2": float(np.sum(np.asarray(c.x_star) ** 2))} if c.x_star is not None else {}
    return {k: float(v) for k, v in found.items() if v is not None and math.isfinite(v)}


def _grid(method: str, claim: Claim, over: Mapping[str, Sequence[float]] | None) -> dict[str, list[float]]:
    """What is varied: the method's tau and H, and delta where the bound knows a contraction."""
    fields = get_method(method).hyper._fields
    usable = [k for k in ("tau", "H") if k in fields] + (["delta"] if claim.setting.compressor == "contractive" else [])
    for name in over or {}:
        if name not in usable:
            raise nearest(name, usable, "quantity to vary") if usable else UsageError(f"{method} has nothing to vary, not {name}.")
    grid = {k: list((over or {}).get(k, GRID[k])) for k in usable}
    for name, values in grid.items():
        whole = name != "delta"
        low = {"tau": 0, "H": 1, "delta": 0}[name]
        good = all(math.isfinite(v) and v >= low and (v == int(v) if whole else 0 < v <= 1) for v in values)
        if not values or not good:
            raise UsageError(f"{name} must be {'whole numbers of at least ' + str(low) if whole else 'numbers in (0, 1]'}, not {values}.")
    return {k: [int(v) if k != "delta" else float(v) for v in values] for k, values in grid.items()}


def steps_needed(claim: Claim, letters: Mapping[str, float], target: float) -> Callable[[Mapping[str, Any]], tuple[Any, Any]]:
    """A function from hyper-parameters to ``(N, c)``: the fewest steps N at which the bound is at most the target, and the share c.

    The hyper-parameters are numbers, or arrays of one shape, which N and c then have too.

    ``gamma = c*gamma_max`` where the claim leaves c in (0, 1] open: the best of a grid in its logarithm that is refined four times.  N is
    exact for every c of it where the bound falls in N, which is checked at the N found: at N it is at most the target, at N - 1 above.
    Infinity where no N up to 2**50 will do.

    >>> needed = steps_needed(claims()["rates.1"], {"L": 1.0, "V0": 1.0, "c": 1.0}, 0.01)
    >>> needed({})[0]
    25.0
    """
    import sympy as sp

    expression = symbols.parse(claim.bound)
    lets = {name: symbols.parse(str(text)) for name, text in claim.lets.items()}
    for _ in range(len(lets) + 1):
        expression = expression.subs({s: lets[s.name] for s in expression.free_symbols if s.name in lets})
    names = sorted(s.name for s in expression.free_symbols)
    if any(s.name == "t" for text in lets.values() for s in text.free_symbols):
        if "t" in names or claim.when:
            raise Unsupported(f"a plan by {claim.id}: its bound or its conditions depend on a schedule in t")
        lets = {}
    bound = sp.lambdify([next(s for s in expression.free_symbols if s.name == k) for k in names], expression, "numpy")
    open_share = "c" in names and "c" not in letters

    def fewest(hyper: Mapping[str, Any]) -> tuple[Any, Any]:
        given = {**letters, **hyper}
        missing = [k for k in names if k not in given and k not in ("N", "c" if open_share else "")]
        if missing:
            raise UsageError(f"{claim.id} needs {', '.join(missing)}; give a problem or letters that have them.")
        points = np.broadcast_shapes(*(np.shape(v) for v in hyper.values()))
        fixed = {k: np.asarray(given[k], dtype=float)[..., None] for k in names if k in given}

        def needed(shares: np.ndarray) -> np.ndarray:
            def above(N: np.ndarray) -> np.ndarray:
                with np.errstate(all="ignore"):
                    value = bound(*(N if k == "N" else fixed.get(k, shares) for k in names))
                return ~(np.broadcast_to(value, shares.shape) <= target)

            high = np.ones_like(shares)
            while (over := above(high) & (high < MOST_STEPS)).any():
                high = np.where(over, 2 * high, high)
            never, low = above(high), np.where(high > 1, np.floor(high / 2), 0.0)
            while ((high - low) > 1).any():
                middle = np.floor((low + high) / 2)
                upper = above(np.maximum(middle, 1.0)) | (middle < 1)
                low, high = np.where(upper & (high - low > 1), middle, low), np.where(~upper & (high - low > 1), middle, high)
            return np.where(never, math.inf, high)

        if not open_share:
            return _plain(needed(np.ones((*points, 1)))[..., 0]), None
        low, high = np.full((*points, 1), -30.0), np.zeros((*points, 1))
        for _ in range(5):
            logs = low + (high - low) * np.linspace(0.0, 1.0, 61)
            found = needed(np.exp(logs))
            k = np.argmin(found, axis=-1)[..., None]
            low, high = (np.take_along_axis(logs, np.clip(k + step, 0, 60), axis=-1) for step in (-1, 1))
        steps, shares = (np.take_along_axis(part, k, axis=-1)[..., 0] for part in (found, np.exp(logs)))
        return _plain(steps), _plain(shares)

    return fewest


def _plain(values: np.ndarray) -> Any:
    return values if values.ndim else float(values)


def _validity(claim: Claim, letters: Mapping[str, float]) -> Callable[[Mapping[str, float]], bool]:
    """Whether the claim's conditions hold at further values; without them its bound says nothing."""
    if not claim.when:
        return lambda values: True
    parsed = {name: symbols.parse(str(text)) for name, text in claim.lets.items()}
    lets = {name: made for name, made in parsed.items() if all(s.name != "t" for s in made.free_symbols)}

    def valid(values: Mapping[str, float]) -> bool:
        known = {k: v for k, v in {**letters, **values}.items() if k in symbols.SYMBOLS}
        for name, made in lets.items():
            known[name] = symbols.number(made, known)
        return all(symbols.holds(condition, known) for condition in claim.when)

    return valid


def _shares(compressor: str, d: int, dtype_bits: int) -> Callable[[float], float]:
    """From the contraction to the share of bytes: ``k = delta*d`` entries with their indices, or the whole vector where that is shorter."""
    from verify_rates.solvers.compressors import get_compressor

    if compressor not in ("topk", "randk"):
        raise nearest(str(compressor), ("topk", "randk"), "compressor whose contraction is its share of entries")

    def share(delta: float) -> float:
        k = max(1, round(delta * d))
        return 1.0 if k >= d else min(1.0, float(get_compressor(f"{compressor}(k={k})").bits(d)) / (dtype_bits * d))

    return share


def graphs_of(method: str, network: Mapping[str, Any]) -> Callable[[Mapping[str, float]], Any]:
    """From hyper-parameters to the time line of whole vectors; what is sent changes costs alone, so one serves every compression."""
    fields = get_method(method).hyper
    rest = {k: 1 for k in fields._fields if k not in fields._field_defaults and k != "gamma"}

    @cache
    def made(hyper: tuple[tuple[str, float], ...]) -> Any:
        return timeline(method, {**rest, **dict(hyper)}, **network, bytes_share=1.0, steps=1)

    return lambda hyper: made(tuple((k, v) for k, v in hyper.items() if k != "delta"))


def _rules(grid: Mapping[str, Sequence[float]], network: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """What rules of thumb pick: synchronous and uncompressed, and DeCo's rule under each of its objectives (full hiding, best factor)."""
    plain = {k: {"tau": 0, "H": 1, "delta": 1.0}[k] for k in grid}
    found = {"synchronous, uncompressed": plain}
    if not {"tau", "delta"} <= grid.keys() or network["compute"] <= 0:
        return found
    for name, factor in OBJECTIVES.items():
        hidden = [(tau, delta) for tau in range(int(max(grid["tau"])) + 2) if (delta := _hiding(tau, network)) > 0]
        if hidden:
            tau, delta = min(hidden, key=lambda p: (factor(*p), p))
            found[f"DeCo by {name}"] = {**plain, "tau": tau, "delta": delta}
    return found


def _hiding(tau: int, network: Mapping[str, float]) -> float:
    """The largest contraction at which communication is hidden, bytes taken in proportion to it (deco.10)."""
    rate = network["bandwidth"] / (8 * network["size"])
    return min(1.0, rate * network["compute"], rate * (tau * network["compute"] - network["latency"]))
