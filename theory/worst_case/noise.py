"""One step in expectation: unbiased compressors and gradient noise of independent workers, and steps that take some workers at random.

A random vector z has mean zero given what was there before and is drawn independently by every worker, so that in expectation its
products with all settled vectors vanish, and ``E||mean_i z_i||^2 = mean_i E||z_i||^2 / n``.  Random vectors are basis vectors of the
mean's Gram matrix of which no product with settled ones is ever spoken; only the squares carry the weights 1/n and 1 - 1/n.  A
function of the class may have curvature L along directions of their own, so that ``E f(x + z) = f(x) + L/2 E||z||^2`` is reached.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from verify_rates.theory.worst_case.algebra import Form, Vec, sqnorm
from verify_rates.theory.worst_case.algebra import inner as inner_product
from verify_rates.theory.worst_case.apart import ApartWorld
from verify_rates.theory.worst_case.world import Answer, PepWorld, Setting

ONE_STEP = "at a random point it has no finite description; ask for one step (steps=1) of squared distances, energies and gaps"


@dataclass
class RandomWorld(PepWorld):
    """A :class:`PepWorld` whose vectors may have random parts."""

    drawing: bool = False  # a step is under way, not a measure
    twins: dict[int, int] = field(default_factory=dict)  # deviations of random vectors, and the basis vectors that tell their sizes
    _gaps: list[tuple[Form, Form]] = field(default_factory=list)  # least and largest expected values at random points
    _read: dict[Any, int] = field(default_factory=dict)  # random points whose values were read, and their numbers
    _signs: set[bool] = field(default_factory=set)  # whether values at random points count, or count against

    # --- random parts ------------------------------------------------------------------------------------------------

    def split(self, v: Vec) -> tuple[Vec, Vec]:
        """What is settled of a vector, and what is random; of a shared one a deviation says which workers took part."""
        settled = Vec({k: c for k, c in v.mean.items() if k not in self.weights}, {}, v.shared)
        if not v.shared:
            settled.dev = {k: c for k, c in v.dev.items() if k not in self.twins}
        return settled, v - settled

    def _is_random(self, v: Vec) -> bool:
        _, random = self.split(v)
        return bool(random.mean or random.dev)

    def _fresh_random(self, unit: float, shared: bool) -> Vec:
        made, n = self.basis(unit, shared), self.setting.n or 1
        (k,) = made.mean
        self.weights[k] = Fraction(1) if shared else Fraction(1, n)
        self.twins |= dict.fromkeys(made.dev, k)
        return made

    def _draw(self, unit: float, shared: bool, limits: list[Form]) -> Vec:
        """A random vector, independent of all before, whose mean square is within the limits."""
        before, made = list(self.weights), self._fresh_random(unit, shared)
        (k,) = made.mean
        size = Vec({k: Fraction(1)})
        self.constraints += [(f"noise {k} ({i})", sqnorm(size) - limit) for i, limit in enumerate(limits)]
        self.equalities += [(f"independent {j} {k}", inner_product(Vec({j: Fraction(1)}), size)) for j in before]
        return made

    def sqnorm(self, v):
        settled, random = self.split(v)
        n, total = self.setting.n or 1, sqnorm(settled)
        for weight in sorted({self.weights[k] for k in random.mean}):
            total = total + weight * sqnorm(Vec({k: c for k, c in random.mean.items() if self.weights[k] == weight}))
        share = self._share if v.shared else Fraction(1)
        sizes = Vec({self.twins[k]: c for k, c in random.dev.items() if k in self.twins})
        sampled = Vec(dev={k: c for k, c in random.dev.items() if k not in self.twins})
        if sizes.mean:
            total = total + share * (1 - Fraction(1, n)) * sqnorm(sizes)
        return total + share * sqnorm(sampled) if sampled.dev and share else total

    @property
    def _share(self) -> Fraction:
        """Variance of the mean over the workers that take part, over that of one worker."""
        n, b = self.setting.n, self.setting.sampled
        return Fraction(1) if n is None or b in (None, 1) else Fraction(n - b, b * (n - 1))

    def random_coordinates(self, v: Vec, builder: Any) -> tuple[np.ndarray, np.ndarray]:
        """Of the mean and of the deviation over the Gram matrix's basis, with the weights that give them their mean squares."""
        _, random = self.split(v)
        mean = {k: Fraction(math.sqrt(self.weights[k])) * c for k, c in random.mean.items()}
        dev = {self.twins[k]: Fraction(math.sqrt(1 - self.weights[self.twins[k]])) * c for k, c in random.dev.items() if k in self.twins}
        return tuple(builder.coordinates([Vec(part)])[0][0] for part in (mean, dev))

    # --- words of a step ---------------------------------------------------------------------------------------------

    def _evaluate(self, x, part=None):
        if self._is_random(x):
            self.refuse("grad", ONE_STEP)
        return super()._evaluate(x, part)

    def grad(self, x):
        g = super().grad(x)
        if not (self.drawing and self.setting.sigma2):
            return g
        self.draws.append(z := self._draw(float(self.setting.L), False, [Form(self.setting.sigma2)]))
        self.copies |= dict.fromkeys(z.mean, (math.sqrt(self.setting.sigma2) / 2, None))
        return g + z

    def grad_pair(self, x, y):
        return self.refuse("grad_pair", "how noise at two points goes together is not said by its variance")

    def mean(self, v):
        if self.drawing and self.setting.sampled:
            return Vec(v.mean, v.dev)
        return super().mean(v)

    def consensus(self, x):
        return x if x.shared else super().mean(x)

    def spread(self, v):
        if v.dev:
            self.refuse("spread", "of a mean over workers drawn at random, which the other workers need not have seen")
        return super().spread(v)

    def gossip(self, v):
        low, high = self.setting.mixing or (0, 0)
        if low != high and self._is_random(v):
            self.refuse("gossip", "of random vectors, unless the mixing matrix has one eigenvalue")
        return super().gossip(v)

    def prox(self, v, gamma):
        return self.refuse("prox", ONE_STEP) if self._is_random(v) else super().prox(v, gamma)

    def _implicit(self, v, a, weights, error=Fraction(0)):
        return self.refuse("implicit", ONE_STEP) if self._is_random(v) else super()._implicit(v, a, weights, error)

    def line_search(self, x, directions):
        return self.refuse("line_search", "its step depends on what is drawn")

    def compress(self, v):
        omega, delta, Delta2 = self.setting.omega, self.setting.delta, self.setting.Delta2
        if omega is None:
            return super().compress(v)
        if 0 in (omega, Delta2) or delta == 1 or (not (v.mean or v.dev) and Delta2 is None):
            return v
        factor = omega if delta is None else min(omega, 1 - delta)
        limits = [factor * self.sqnorm(v)] + ([Form(Delta2)] if Delta2 is not None else [])
        z = self._draw((self.size(v) or 1.0) * math.sqrt(factor), v.shared, limits)
        self.copies |= dict.fromkeys(z.mean, (math.sqrt(factor) / 2, v))
        self.answers.append(Answer(v, v + z))
        return v + z

    def _answer(self, v):
        """What a contractive compressor makes of a vector that is partly random is so too, and may go with its random part."""
        made, (_, random) = super()._answer(v), self.split(v)
        if not (random.mean or random.dev):
            return made
        if v.shared and self.setting.n != 1:
            self.refuse("compress", "of a mean of random vectors; a contractive compressor is read of every worker's own")
        with_it = self._fresh_random(self.size(v), v.shared)
        self.copies |= dict.fromkeys(with_it.mean, (1.0, random))
        return made + with_it

    # --- words of a measure ------------------------------------------------------------------------------------------

    def gap(self, x):
        settled, random = self.split(x)
        if not (random.mean or random.dev):
            return super().gap(x)
        parts = [self.parts[name].setting for name in self.setting.objective]
        if x.key in self._read:
            return Form(f={self._read[x.key]: Fraction(1)})
        for part in parts:
            if not part.functions.bends:
                self.refuse("gap", f"at a random point nothing bounds the values of the class {part.functions.name!r}")
        if any(k not in self.twins for k in random.dev):
            self.relaxed = "values at the mean over some workers enter through the descent inequality"
        variance, value = self.sqnorm(x) - self.sqnorm(settled), super().gap(settled)
        flattest = sum(
            (p.mu if p.functions.takes_mu and p.functions.convex else (0 if p.functions.convex else -p.L) for p in parts), Fraction(0)
        )
        self._gaps.append((value + flattest / 2 * variance, value + sum(p.L for p in parts) / 2 * variance))
        return Form(f={self._read.setdefault(x.key, -len(self._gaps)): Fraction(1)})

    def settled(self, form: Form) -> Form:
        """A measure that is maximised, with the value at every random point at its worst: along random directions curvature is largest
        where the value counts, least where it counts against."""
        kept, total = {k: c for k, c in form.f.items() if k >= 0}, Form(form.const, {}, form.squares)
        for k, c in form.f.items():
            if k < 0:
                total = total + c * self._gaps[-1 - k][c > 0]
                self.flat = self.flat or c < 0
                self._signs.add(c > 0)
        if len(self._signs) > 1:
            self.relaxed = "curvature along random directions cannot be largest for one value and least for another"
        elif self.flat and not all(self.parts[name].setting.functions.convex for name in self.setting.objective):
            self.relaxed = "values at random points that count against may fall below the infimum"
        return total + Form(f=kept)


def world_of(setting: Setting, **given: Any) -> PepWorld:
    """The world that a setting needs."""
    if setting.groups:
        from verify_rates.theory.worst_case.grouped import GroupWorld

        return GroupWorld(setting, **given)
    if setting.apart:
        return ApartWorld(setting, **given)
    return (RandomWorld if setting.omega is not None or setting.sigma2 or setting.sampled else PepWorld)(setting, **given)
