"""Groups of exchangeable workers: n_1 of one kind, n_2 of another, each with its own L, mu and compressor.

Inside a group every vector is mean plus deviation over the group's workers, which is exact where these are exchangeable; between groups
only means meet, weighted by the shares n_j/n.  The numbers of workers enter as shares alone, so that the size does not depend on them; a
group of one has no deviations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from verify_rates.solvers.method import UsageError, nearest
from verify_rates.solvers.words import Unsupported
from verify_rates.theory.worst_case.algebra import Form, Vec
from verify_rates.theory.worst_case.apart import Apart, ApartWorld
from verify_rates.theory.worst_case.inputs import _compressor, _named, whole
from verify_rates.theory.worst_case.world import Answer, Group, PepWorld, Point, Setting

KEYS = ("n", "L", "mu", "delta")


def with_groups(setting: Setting, groups: Sequence[dict[str, Any]] | None) -> Setting:
    """The same with groups of workers; UsageError with one sentence where they make no sense."""
    if groups is None:
        return setting
    if setting.n is not None:
        raise UsageError("groups say how many workers there are; leave out n.")
    if setting.delta is not None or setting.Delta2 is not None:
        raise UsageError("every group has its own delta; leave out the compressor.")
    if setting.L != 1 or setting.mu:
        raise UsageError("every group has its own L and mu; leave out those of all.")
    if not isinstance(groups, (list, tuple)) or not groups:
        raise UsageError("groups is a list of at least one dictionary such as {'n': 3, 'L': 1, 'mu': 0.1, 'delta': 0.5}.")
    chance = setting.omega is not None or setting.sigma2 or setting.sampled or setting.mixing is not None or setting.apart
    if setting.others or chance or setting.functions.linear or setting.functions.at_minimiser:
        why = "they have one class of functions each, exact means, and nothing random of their own"
        raise Unsupported(f"the worst case of groups of workers: {why}")
    if not setting.functions.minimiser or not setting.functions.takes_L:
        raise Unsupported(
            f"groups of workers with functions {setting.functions.name!r}: they are read of classes with an L and a minimiser"
        )
    made = tuple(_group(g, setting) for g in groups)
    deltas = {g.delta for g in made}
    return replace(
        setting,
        L=max(g.L for g in made),
        mu=min(g.mu for g in made),
        delta=deltas.pop() if len(deltas) == 1 else None,
        groups=made,
    )


def _group(given: Any, setting: Setting) -> Group:
    if not isinstance(given, dict):
        raise UsageError(f"a group is a dictionary with {', '.join(KEYS)}, not {given!r}.")
    for key in given:
        if key not in KEYS:
            raise nearest(str(key), KEYS, "entry of a group")
    if "n" not in given:
        raise UsageError("a group says how many workers it has, as n.")
    L, mu = _named("L", given.get("L", 1)), _named("mu", given.get("mu", 0))
    if L <= 0 or not 0 <= mu <= L:
        raise UsageError(f"a group needs L > 0 and 0 <= mu <= L, not L = {float(L):g}, mu = {float(mu):g}.")
    if mu and not setting.functions.takes_mu:
        raise UsageError(f"the class {setting.functions.name!r} has no mu; leave it out.")
    delta = None if given.get("delta") is None else _compressor({"delta": given["delta"]}, None)[0]
    return Group(whole(given["n"], "n of a group", 1), L, mu, delta)


def told(setting: Setting) -> dict[str, Any]:
    """The groups in plain data, where there are any."""
    groups = [{k: v if k == "n" or v is None else float(v) for k, v in g._asdict().items()} for g in setting.groups]
    return {"groups": groups} if groups else {}


@dataclass
class GroupWorld(ApartWorld):
    """A :class:`PepWorld` of groups: a per-worker value is a vector of every group, each with its mean and its deviation."""

    def __post_init__(self) -> None:
        given = self.setting
        self.groups, self.count = given.groups, len(given.groups)
        total = sum(g.n for g in self.groups)
        self.shares = [Fraction(g.n, total) for g in self.groups]
        names = tuple(f"f{j}" for j in range(1, self.count + 1))
        others = tuple((name, given.functions, g.L, g.mu) for name, g in zip(names[1:], self.groups[1:], strict=True))
        own = self.groups[0]
        self.setting = replace(given, n=1, L=own.L, mu=own.mu, name=names[0], others=others, objective=names)
        self.number = {name: j for j, name in enumerate(names)}
        PepWorld.__post_init__(self)
        self.plain = False

    def _of(self, j: int, unit: float, mean: bool = True) -> Vec:
        """A new vector of a group."""
        made = self.basis(unit) if mean else Vec()
        if self.groups[j].n > 1:
            made = Vec(made.mean, {len(self.dev_units): Fraction(1)})
            self.dev_units.append(unit)
        return made

    def _image_of(self, part: Any, most: float = float("inf")) -> Vec:
        v = self._of(self.number[part.name], min(most, part.setting.width or float(part.setting.L)))
        return Vec(v.mean, v.dev, False)

    def _optimal(self) -> None:
        """The minimiser as first point of every group's functions; their gradients there cancel, weighted by shares."""
        zeta2, rest, nothing = self.setting.zeta2_star, Vec(), Vec(shared=False)
        largest = max(range(self.count), key=lambda j: self.shares[j])
        for j in sorted(range(self.count), key=lambda j: j == largest):
            g = nothing
            if zeta2 != 0:
                v = self._of(j, float(self.groups[j].L), mean=j != largest)
                v = Vec((rest / -self.shares[j]).mean, v.dev) if j == largest else v
                rest = rest + self.shares[j] * Vec(v.mean)
                g = Vec(v.mean, v.dev, False)
            list(self.parts.values())[j].store(Point(self.minimiser, g, Form(), g, Form()))
        if zeta2:
            at_star = Apart([_whole(part.points[0].g) for part in self.parts.values()])
            self.constraints.append(("heterogeneity", self.sqnorm(at_star) - zeta2))

    def of_groups(self, v: Any) -> list[tuple[Vec, Vec]]:
        """Mean and deviation of every group."""
        return [(Vec(u.mean), Vec({}, u.dev)) for u in v.each]

    # --- words -------------------------------------------------------------------------------------------------------

    def _evaluate(self, x, part=None):
        x = Vec(x.mean, x.dev)
        part = part or self.own
        if x.key in part.known:
            return part.points[part.known[x.key]]
        if not part.points:
            g = self._fresh(part)
            part.store(Point(x, g, Form(), g, Form()))
        elif part.setting.width:
            self._shifted(part, x, self._fresh(part), self._height(part))
        else:
            h = part.points[0].h
            self._shifted(part, x, h, self.inner(h, Vec(x.mean, x.dev, False) - Vec(part.points[0].x.mean, {}, False)))
        return part.points[-1]

    def grad(self, x):
        each = x.each if isinstance(x, Apart) else [x] * self.count
        return Apart([_whole(self._evaluate(v, part).g) for v, part in zip(each, self.parts.values(), strict=True)])

    full_grad = grad

    def prox(self, v, gamma):
        return self.refuse("prox", "of groups of workers it has no reading yet")

    def mean(self, v):
        return sum((share * Vec(u.mean) for share, u in zip(self.shares, v.each, strict=True)), Vec())

    def compress(self, v):
        if not isinstance(v, Apart):
            return self.refuse("compress", "of a shared value: groups of workers have their own compressors")
        return Apart([self._sent(j, u) for j, u in enumerate(v.each)])

    def _sent(self, j: int, v: Vec) -> Vec:
        delta = self.groups[j].delta
        if delta is None:
            raise UsageError("this method compresses; give every group its delta.")
        if delta == 1 or not (v.mean or v.dev):
            return v
        m = self._of(j, self.size(v) or 1.0)
        self.constraints.append((f"compressor {len(self.answers)}", self.sqnorm(m - v) - (1 - delta) * self.sqnorm(v)))
        self.answers.append(Answer(v, m))
        return m

    def gossip(self, v):
        return self.refuse("gossip", "of groups of workers: they meet in exact means alone")

    def gap(self, x):
        each = x.each if isinstance(x, Apart) else [x] * self.count
        self.asked_for_minimiser = True
        values = [self._evaluate(v, part).f for v, part in zip(each, self.parts.values(), strict=True)]
        return sum((share * f for share, f in zip(self.shares, values, strict=True)), Form())

    def sqnorm(self, v):
        if not isinstance(v, Apart):
            return PepWorld.sqnorm(self, v)
        return sum((share * PepWorld.sqnorm(self, u) for share, u in zip(self.shares, v.each, strict=True)), Form())

    def unknown(self, unit: float, shared: bool) -> Any:
        return self.basis(unit) if shared else Apart([self._of(j, unit) for j in range(self.count)])


def _whole(v: Vec) -> Vec:
    return Vec(v.mean, v.dev)
