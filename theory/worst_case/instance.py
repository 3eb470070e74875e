"""The worst case as data: what every worker sees, and a replay of the step function on it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from verify_rates.solvers.measures import get_measure
from verify_rates.solvers.method import Method, UsageError, get_method, nearest
from verify_rates.solvers.words import Kind
from verify_rates.theory.worst_case.interpolant import Interpolant, interpolant
from verify_rates.theory.worst_case.replay import ReplayWorld, functions_of
from verify_rates.theory.worst_case.world import branches, taken

# Eigenvalues of a Gram matrix below this share of its largest are the rounding of zero: some ten roundings.
NEGLIGIBLE = 3e-15
_RECORDED = ("statement", "start", "optimum", "points", "answers", "f_star", "value")
_OPTIONAL = ("draws", "random", "others", "found")
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
    others : the points of the functions that all workers share, by name.
    found : from where to where every implicit step and every search led.
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
    others: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    found: list[list[Any]] = field(default_factory=list)
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

    def function(self, worker: int = 0, n: int | None = None, of: str = "") -> Interpolant:
        """The function of one worker, or the one named ``of``, to be evaluated anywhere: the largest of its class through its points.

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
        told, _ = functions_of(self.statement)
        of = of or next(iter(told))
        if of not in told:
            raise nearest(of, told, "function")
        points = ReplayWorld(self, count).parts[of]
        x, g = (np.array([p[part][worker] for p in points]) for part in ("x", "g"))
        return interpolant(*told[of], x, g, np.array([p["f"] for p in points]))

    def plot(self, worker: int = 0, n: int | None = None) -> Any:
        """A picture of that function with the recorded points, as a matplotlib figure: a curve if they lie on a line, else level sets in
        the plane through x* (or the mean) that shows most of them."""
        from verify_rates.theory.worst_case.picture import picture

        return picture(self, worker, n)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {name: getattr(self, name) for name in _RECORDED + tuple(name for name in _OPTIONAL if getattr(self, name))}

    def to_json(self, **options: Any) -> str:
        """The same as JSON; :meth:`from_dict` reads it back."""
        return json.dumps(self.to_dict(), allow_nan=False, **options)

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Instance:
        """An instance written by :meth:`to_dict`."""
        try:
            return Instance(**{k: data[k] for k in _RECORDED}, **{k: data[k] for k in _OPTIONAL if k in data})
        except (KeyError, TypeError):
            raise UsageError("this is not a worst-case instance written by verify-rates.") from None


def record(solved: tuple[Any, ...], statement: dict[str, Any], value: float, **callables: Any) -> Instance:
    """Vectors from the Gram matrices (eigenvectors, zeros dropped) and everything the method met along them.

    ``solved`` holds the world, the problem in arrays, its builder, the primal point and the first state.
    """
    world, conic, builder, z, start = solved
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

    def points(part: Any) -> list[dict[str, Any]]:
        return [{"x": parts(p.x), "g": parts(p.g), "f": number(p.f)} for p in part.points]

    f_star = world.f_star
    return Instance(
        statement=statement,
        start={k: parts(v) for k, v in zip(start._fields, start, strict=True)},
        optimum=parts(world.minimiser) if world.centred else None,
        points=points(world.own),
        answers=[{"v": parts(a.v), "m": parts(a.m)} | ({"shared": True} if chance.any() and a.v.shared else {}) for a in world.answers],
        f_star=number(f_star),
        value=value,
        draws=[parts(v) for v in world.draws],
        random=random.shape[1],
        others={name: points(part) for name, part in world.parts.items() if part is not world.own},
        found=[[parts(v) for v in pair] for pair in world.found],
        **callables,
    )
