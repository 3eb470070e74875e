"""The worst case as data: what every worker sees, and a replay of the step function on it."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from verify_rates.solvers.measures import get_measure
from verify_rates.solvers.method import Method, UsageError, get_method
from verify_rates.solvers.words import Kind, World
from verify_rates.theory.worst_case.classes import get_class
from verify_rates.theory.worst_case.interpolant import Interpolant, interpolant
from verify_rates.theory.worst_case.world import branches, taken

# The recorded vectors are products of an eigenvector matrix of order K and coordinates: a replayed point, a gradient inequality
# or a compressor's inequality may be off by some K roundings of 1.1e-16 relative to the largest number in play, squares included.
REPLAY_RTOL = 1e-10
# Eigenvalues of a Gram matrix below this share of its largest are the rounding of zero: some ten roundings.
NEGLIGIBLE = 3e-15
_RECORDED = ("statement", "start", "optimum", "points", "answers", "f_star", "value")
_CHANCE = ("draws", "random")
SHOWN = 8  # workers that a replay spells out unless asked for more


@dataclass(frozen=True)
class Instance:
    """A problem instance recorded at the points a method visits.

    Every vector has a mean part (p,) and a deviation part (q,); worker i of n sees ``mean + dev (x) u_i`` in dimension
    ``p + q (n-1)``, with ``u_i`` the corners of a regular simplex (for n = 2: plus and minus).

    Attributes
    ----------
    statement : as in :class:`WorstCase`.
    start : per state field, or per place in a queue, its two parts.
    optimum : ``x*``, two parts, or None.
    points : every evaluated point: ``x`` and ``g`` in two parts and the mean function value ``f``.
    answers : in and out of every compression, ``v`` and ``m`` in two parts.
    f_star : infimum of f.
    value : the measure reached, as computed from the Gram matrices.
    draws : noise of the gradients, in the order of the calls, in two parts.
    random : so many last coordinates of both parts are random: their sign is, independently for every worker, by a fair coin at every
        draw.  Measures are the same for all signs, so that a replay on the recorded ones gives the expectation.
    """

    statement: dict[str, Any]
    start: dict[str, Any]
    optimum: Any
    points: list[dict[str, Any]]
    answers: list[dict[str, Any]]
    f_star: float
    value: float
    draws: list[Any] = field(default_factory=list)
    random: int = 0
    measure: Any = field(default=None, repr=False, compare=False)
    initial: Any = field(default=None, repr=False, compare=False)

    def workers(self, n: int | None = None) -> int:
        """The number of workers it is shown with: n if given, else the stated number up to ``SHOWN``, 2 where any will do.

        The parts make an instance for every n >= 2, so that a large stated number need not be spelled out.
        """
        stated = self.statement["n"]
        if n is not None and (n != 1) != (stated != 1):
            raise UsageError(f"this instance is for {'one worker' if stated == 1 else 'two workers or more'}, not for {n}.")
        return n or (2 if stated == "any" else min(int(stated), SHOWN))

    @property
    def dimension(self) -> tuple[int, int]:
        """Dimensions p of the means and q of the deviations: n workers live in ``p + q (n - 1)``.

        >>> from verify_rates.theory.worst_case.solve import worst_case
        >>> worst_case("gd", {"gamma": 1.0}, steps=3, n=1, low_rank=True).instance.dimension
        (1, 0)
        """
        mean, dev = self.points[0]["x"]
        return len(mean), len(dev)

    def replay(self, method: str | Method | None = None, n: int | None = None) -> float:
        """Execute the step function on the recorded arrays and return the measure it reaches.

        The world answers with the recorded gradients and compressed messages after checking that the method asks at the recorded
        places, and checks the recorded data against the class, the compressor and the initial condition.

        Raises
        ------
        UsageError : the method asks elsewhere, or the record violates an assumption by more than rounding.
        """
        method = get_method(method or self.statement["method"])
        if set(self.start) != set(method.kinds):
            raise UsageError(f"this instance belongs to another method than {method.name}: the fields of the state differ.")
        if self.statement["start"] == "standard":
            self._check_start(method)
        world = ReplayWorld(self, self.workers(n))
        world.verify()
        hyper = method.hypers(**self.statement["hyper"])
        start = method.state(**{k: world.state(v, method.kinds[k]) for k, v in self.start.items()})
        measure = self.measure or get_measure(self.statement["measure"])
        total, steps, take = 0.0, self.statement["steps"], self.statement["take"]
        chosen = world.choices()
        for world.chosen in chosen:
            world.sent = world.drawn = 0
            for weight, states in branches(method, hyper, world, start, steps):
                total += float(weight) * float(taken(take, measure, states, world, hyper, min)) / len(chosen)
        world.check_initial(self.initial or self.statement["initial"], states, hyper)
        return total

    def _check_start(self, method: Method) -> None:
        """Iterates at one point, everything else zero, as a run starts; UsageError otherwise."""

        def vectors(value: Any, kind: Kind) -> list[Any]:
            return [np.concatenate([np.asarray(part, float) for part in v]) for v in (value if kind.is_queue else [value])]

        given = {k: vectors(v, method.kinds[k]) for k, v in self.start.items()}
        x0 = given[method.start[0]][0]
        wanted = {k: x0 if k in method.start else 0 * x0 for k in given}
        own = any(np.any(np.asarray(self.start[k][1])) for k in method.start)
        if own or any(v.shape != x0.shape or np.any(v != wanted[k]) for k, several in given.items() for v in several):
            raise UsageError("the recorded instance does not start as a run starts: iterates at one point, everything else zero.")

    def function(self, worker: int = 0, n: int | None = None) -> Interpolant:
        """The function of one worker, to be evaluated anywhere: the largest of its class through the recorded points.

        Errors
        ------
        UsageError for a worker that there is not; Unsupported for classes without a formula between points.

        Example
        -------
        >>> from verify_rates.theory.worst_case.solve import worst_case
        >>> f = worst_case("gd", {"gamma": 1.0}, steps=2, n=1).instance.function()
        >>> f.x.shape == f.g.shape, bool(abs(f(f.x[1]) - f.f[1]) < 1e-7)
        (True, True)
        """
        count = self.workers(n)
        if not 0 <= worker < count:
            raise UsageError(f"there are {count} workers, 0 to {count - 1}; not {worker}.")
        points = ReplayWorld(self, count).points
        x, g = (np.array([p[part][worker] for p in points]) for part in ("x", "g"))
        return interpolant(self.statement["functions"], self.statement["L"], self.statement["mu"], x, g, np.array([p["f"] for p in points]))

    def plot(self, worker: int = 0, n: int | None = None) -> Any:
        """A picture of that function with the recorded points, as a matplotlib figure: a curve if they lie on a line, else level sets in
        the plane through x* (or the mean) that shows most of them."""
        from verify_rates.theory.worst_case.picture import picture

        return picture(self, worker, n)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {name: getattr(self, name) for name in _RECORDED + (_CHANCE if self.random else ())}

    def to_json(self, **options: Any) -> str:
        """The same as JSON; :meth:`from_dict` reads it back."""
        return json.dumps(self.to_dict(), allow_nan=False, **options)

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Instance:
        """An instance written by :meth:`to_dict`."""
        try:
            return Instance(**{k: data[k] for k in _RECORDED}, **{k: data[k] for k in _CHANCE if k in data})
        except (KeyError, TypeError):
            raise UsageError("this is not a worst-case instance written by verify-rates.") from None


def simplex(n: int) -> np.ndarray:
    """n unit vectors in dimension n-1 that sum to zero (n = 2: plus and minus 1)."""
    if n == 1:
        return np.zeros((1, 0))
    values, vectors = np.linalg.eigh(np.eye(n) - 1 / n)
    return vectors[:, values > 0.5] * np.sqrt(n / (n - 1))


# Workers whose functions are checked one by one; a regular simplex treats all alike, so more would repeat the same inequalities.
CHECKED = 3


class ReplayWorld(World):
    """The words on NumPy arrays, with recorded answers."""

    reading = "a replay"

    def __init__(self, instance: Instance, n: int) -> None:
        self.instance, self.n = instance, n
        self.corners = simplex(n)
        self.statement = instance.statement
        self.script: tuple[bool, ...] = ()
        self.tosses: list[Any] = []
        self.sent = self.drawn = 0
        self.drawing = False
        self.chosen: list[int] | None = None
        self.points = [{"x": self.array(p["x"]), "g": self.array(p["g"]), "f": p["f"]} for p in instance.points]
        self.answers = [{k: self.array(a[k]) for k in ("v", "m")} | {"shared": a.get("shared", False)} for a in instance.answers]
        self.draws = [self.array(z) for z in instance.draws]
        self.scale = max([1e-300, *(float(np.abs(p["x"]).max(initial=0)) for p in self.points)])

    def array(self, parts: Any) -> np.ndarray:
        """Every worker's vector, (n, d), from mean and deviation."""
        mean, dev = (np.asarray(p, float) for p in parts)
        return np.hstack([np.tile(mean, (self.n, 1)), np.einsum("q,nu->nqu", dev, self.corners).reshape(self.n, -1)])

    def state(self, parts: Any, kind: Kind) -> Any:
        """A state field of that kind."""
        if kind.is_queue:
            return tuple(self.state(p, kind.item) for p in parts)
        return self.array(parts)[0] if kind is Kind.SHARED else self.array(parts)

    @property
    def delta(self) -> float:
        return self.statement["compressor"]["delta"]

    def _all(self, v: Any) -> np.ndarray:
        return np.tile(v, (self.n, 1)) if v.ndim == 1 else v

    def _find(self, x: Any) -> dict[str, Any]:
        x = self._all(x)
        distances = [float(np.abs(p["x"] - x).max(initial=0)) for p in self.points]
        k = int(np.argmin(distances))
        if distances[k] > REPLAY_RTOL * max(self.scale, float(np.abs(x).max(initial=0))):
            raise UsageError("the method evaluates a gradient where the instance recorded none; it belongs to another method or setting.")
        return self.points[k]

    @property
    def random(self) -> np.ndarray:
        """Which coordinates are random."""
        c = self.instance.random
        p, q = (len(part) for part in self.instance.points[0]["x"])
        within = np.arange(q * self.corners.shape[1]) >= (q - c) * self.corners.shape[1]
        return np.concatenate([np.arange(p) >= p - c, within])

    def choices(self) -> list[list[int] | None]:
        """Every set of workers that may take part; None: all do."""
        b = self.statement.get("sampled")
        return [None] if b is None else [list(c) for c in itertools.combinations(range(self.n), b)]

    def grad(self, x):
        g = self._find(x)["g"]
        if not (self.drawing and self.draws):
            return g
        self.drawn += 1
        return g + self.draws[self.drawn - 1]

    def gap(self, x):
        rest = np.where(self.random, x, 0.0)
        return self._find(x - rest)["f"] - self.instance.f_star + self.statement["L"] / 2 * float(rest @ rest)

    def prox(self, v, gamma):
        rows = self._all(v)
        off = [float(np.abs(p["x"] + float(gamma) * p["g"] - rows).max(initial=0)) for p in self.points]
        x = self.points[int(np.argmin(off))]["x"]
        if min(off) > REPLAY_RTOL * max(self.scale, float(np.abs(rows).max(initial=0))):
            raise UsageError("the method takes a proximal step that the instance did not record; it belongs to another method or setting.")
        return x[0] if v.ndim == 1 else x

    def mean(self, v):
        return v[self.chosen].mean(axis=0) if self.drawing and self.chosen is not None else v.mean(axis=0)

    def spread(self, v):
        return self._all(v)

    def compress(self, v):
        rows = self._all(v)
        if self.sent < len(self.answers):
            recorded = self.answers[self.sent]
            if np.abs(recorded["v"] - rows).max(initial=0) <= REPLAY_RTOL * self._message_scale:
                self.sent += 1
                return recorded["m"][0] if v.ndim == 1 else recorded["m"]
        compressor = self.statement["compressor"] or {}
        if compressor.get("delta") == 1 or 0 in (compressor.get("Delta2"), compressor.get("omega")) or not rows.any():
            return v
        raise UsageError("the method compresses a vector that the instance did not record; it belongs to another method or setting.")

    @property
    def _message_scale(self) -> float:
        return max(float(np.abs(a["v"]).max(initial=0)) for a in self.answers)

    def gossip(self, v):
        mixing = self.statement["mixing"]
        if mixing is None or mixing[0] != mixing[1]:
            return self.refuse("gossip", "a spectrum alone gives no matrix to replay")
        m = v.mean(axis=0)
        return m + mixing[0] * (v - m)

    def delay(self, q, v):
        return (q, v) if not q else ((*q[1:], v), q[0])

    def chance(self, p):
        if p in (0, 1):
            return p == 1
        k = len(self.tosses)
        outcome = self.script[k] if k < len(self.script) else True
        self.tosses.append((p if outcome else 1 - p, outcome))
        return outcome

    def optimum(self):
        return self.array(self.instance.optimum)[0]

    def sqnorm(self, v):
        return float(np.mean(np.sum(self._all(v) ** 2, axis=1)))

    def consensus(self, x):
        return x if x.ndim == 1 else x.mean(axis=0)

    # --- checks of the record ----------------------------------------------------------------------------------------

    def verify(self) -> None:
        """Inequalities of every worker's function, of the minimiser and of the compressor; UsageError on a violation."""
        if self.statement["mu"] < self.statement["L"] and len(self.points) > 1:
            for worker in range(min(self.n, CHECKED)):
                self._verify_functions(worker)
        if self.instance.optimum is not None:
            self._verify_minimiser(self._find(self.optimum())["g"])
        for answer in self.answers:
            self._verify_answer(**answer)
        for z in self.draws:
            self._verify_draw(z, self.statement["sigma2"], False)

    def _verify_functions(self, worker: int) -> None:
        functions, L, kappa = get_class(self.statement["functions"]), self.statement["L"], self.statement["mu"] / self.statement["L"]
        f = np.array([p["f"] for p in self.points]) / L
        x = np.array([(p["x"] - self.points[0]["x"])[worker] for p in self.points])
        g = np.array([p["g"][worker] for p in self.points]) / L
        size = max(np.abs(f).max(), np.sum(x**2, axis=1).max(), np.sum(g**2, axis=1).max(), 1e-300)
        for i in range(len(f)):
            rules = [functions.pairs] + ([functions.at_minimiser] if functions.at_minimiser and i == 0 else [])
            for values, products in (inequality for rule in rules for inequality in rule(x, g, i, kappa)):
                excess = values * (f - f[i]) + sum(np.sum(u * v, axis=1) for u, v in products)
                if excess.max() > REPLAY_RTOL * size / (1 - kappa):
                    raise UsageError("the recorded instance violates an interpolation inequality of its class.")
        if functions.lipschitz and np.sum(g**2, axis=1).max() > 1 + REPLAY_RTOL:
            raise UsageError("the recorded instance violates the bound on the gradients of its class.")

    def _verify_minimiser(self, g: np.ndarray) -> None:
        zeta2, size = self.statement["zeta2_star"], max(self.sqnorm(p["g"]) for p in self.points)
        if self.sqnorm(g.mean(axis=0)) > REPLAY_RTOL**2 * size or (zeta2 is not None and self.sqnorm(g) > zeta2 + REPLAY_RTOL * size):
            raise UsageError("the recorded instance violates the conditions on the gradients at its minimiser.")

    def _verify_draw(self, z: np.ndarray, limit: float, shared: bool) -> None:
        """Random coordinates alone, of the stated variance, independent over the workers."""
        size, n = self.sqnorm(z), 1 if shared else self.statement["n"]
        settled, together = float(np.abs(z[:, ~self.random]).max(initial=0)) ** 2, self.sqnorm(z.mean(axis=0))
        off = max(settled, size - limit, abs(together - size / n))
        if off > REPLAY_RTOL * max(size, limit):
            raise UsageError("the recorded instance violates the variance or the independence of what is random.")

    def _verify_answer(self, v: np.ndarray, m: np.ndarray, shared: bool) -> None:
        lost, size = self.sqnorm(m - v), self.sqnorm(v)
        compressor = self.statement["compressor"]
        limits = [(1 - compressor["delta"]) * size] if "delta" in compressor else []
        limits += [compressor["Delta2"]] if "Delta2" in compressor else []
        if "omega" in compressor:
            limits.append(compressor["omega"] * size)
            self._verify_draw(m - v, min(limits), shared)
        if lost > min(limits) + REPLAY_RTOL * max(size, min(limits)):
            raise UsageError("the recorded instance violates the compressor's inequality.")

    def check_initial(self, initial: Any, states: list[Any], hyper: Any) -> None:
        """The initial conditions; UsageError on a violation."""
        from verify_rates.theory.worst_case.solve import initial_values

        for value, limit in initial_values(initial, self.statement["initial_value"], states, self, hyper):
            if value > limit * (1 + REPLAY_RTOL):
                raise UsageError("the recorded instance violates its initial condition.")


def record(
    world: Any,
    conic: Any,
    builder: Any,
    z: np.ndarray,
    start: Any,
    statement: dict[str, Any],
    value: float,
    **callables: Any,
) -> Instance:
    """Vectors from the Gram matrices (eigenvectors, exact zeros dropped) and everything the method met along them."""
    from verify_rates.theory.worst_case.bounds import grams

    R = np.sqrt(conic.radius2)

    def root(G: np.ndarray) -> np.ndarray:
        values, vectors = np.linalg.eigh(G) if G.size else (np.zeros(0), np.zeros((0, 0)))
        kept = values > NEGLIGIBLE * values.max(initial=0.0)
        return R * vectors[:, kept] * np.sqrt(values[kept])

    G, D = grams(conic, z)
    chance = np.isin(builder.kept[0], list(world.weights))  # random vectors: their products with the others do not count
    settled, random = root(np.where(chance[:, None] | chance, 0.0, G)), root(np.where(chance[:, None] & chance, G, 0.0))
    factors = settled, root(D)
    scalars = z[sum(conic.sizes) :] * conic.radius2

    def parts(v: Any) -> Any:
        if isinstance(v, tuple):
            return [parts(item) for item in v]
        told = [c[0] @ F for c, F in zip(builder.coordinates([v]), factors, strict=True)]
        extra = [c @ random for c in world.random_coordinates(v, builder)] if chance.any() else [np.zeros(0)] * 2
        return [[*a.tolist(), *b.tolist()] for a, b in zip(told, extra, strict=True)]

    def number(form: Any) -> float:
        return float(builder.form(form) @ np.concatenate([z[: sum(conic.sizes)] * conic.radius2, scalars])) + float(form.const)

    f_star = world.f_star
    return Instance(
        statement=statement,
        start={k: parts(v) for k, v in zip(start._fields, start, strict=True)},
        optimum=parts(world.minimiser) if world.centred else None,
        points=[{"x": parts(p.x), "g": parts(p.g), "f": number(p.f)} for p in world.points],
        answers=[{"v": parts(a.v), "m": parts(a.m)} | ({"shared": True} if chance.any() and a.v.shared else {}) for a in world.answers],
        f_star=number(f_star),
        value=value,
        draws=[parts(v) for v in world.draws],
        random=random.shape[1],
        **callables,
    )
