"""The words of a step on recorded arrays: a replay executes the step function and checks every assumption on the way."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from verify_rates.solvers.method import UsageError
from verify_rates.solvers.words import Kind, World
from verify_rates.theory.worst_case.classes import get_class

if TYPE_CHECKING:
    from verify_rates.theory.worst_case.instance import Instance

# The recorded vectors are products of an eigenvector matrix of order K and coordinates: a replayed point, a gradient inequality
# or a compressor's inequality may be off by some K roundings of 1.1e-16 relative to the largest number in play, squares included.
REPLAY_RTOL = 1e-10
# A search ends where the gradient is orthogonal to its directions, up to what the solver leaves of equalities between small vectors.
SEARCH_RTOL = 1e-8


def functions_of(statement: dict[str, Any]) -> tuple[dict[str, tuple[str, float, float]], list[str]]:
    """Class, L and mu of every function by name, the workers' own first, and the names of those of which x* minimises the sum."""
    functions = statement["functions"]
    if isinstance(functions, str):
        return {"f": (functions, statement["L"], statement["mu"])}, ["f"]
    told = {name: (given["class"], *_constants(given)) for name, given in functions.items() if name != "objective"}
    return told, list(functions["objective"])


def _constants(given: dict[str, Any]) -> tuple[float, float]:
    mu = given.get("mu", 0.0)
    return given.get("L", max(1.0, 2 * mu)), mu  # a class without L: any unit of gradients will do


def simplex(n: int) -> np.ndarray:
    """n unit vectors in dimension n-1 that sum to zero (n = 2: plus and minus 1)."""
    if n == 1:
        return np.zeros((1, 0))
    values, vectors = np.linalg.eigh(np.eye(n) - 1 / n)
    return vectors[:, values > 0.5] * np.sqrt(n / (n - 1))


# Workers whose functions are checked one by one; a regular simplex treats all alike, so more would repeat the same inequalities.
CHECKED = 3


def _is_linear(functions: Any, x: np.ndarray, g: np.ndarray, f: np.ndarray, low: float, off: float) -> bool:
    """Whether images of differences are those of one linear map of the class, in units where L = 1, and values those of its quadratic."""
    X, Y = x - x[0], g - g[0]
    both = X @ Y.T
    if functions.linear == "symmetric":
        room, twisted = (Y - low * X) @ (X - Y).T, both - both.T
    else:
        room, twisted = X @ X.T - Y @ Y.T, both + both.T if functions.linear == "skew" else 0.0 * both
    values = X @ g[0] + np.sum(X * Y, axis=1) / 2 if functions.values else f - f[0]
    least = np.linalg.eigvalsh((room + room.T) / 2)[0]
    return bool(least >= -off and np.abs(twisted).max() <= off and np.abs(f - f[0] - values).max() <= off)


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
        self.told, self.objective = functions_of(self.statement)
        own = next(iter(self.told))
        recorded = {own: instance.points} | instance.others
        if set(recorded) != set(self.told):
            raise UsageError("the recorded instance has points of other functions than its statement names.")
        self.parts = {
            name: [{"x": self.array(p["x"]), "g": self.array(p["g"]), "f": p["f"]} for p in points] for name, points in recorded.items()
        }
        self.own, self.points = own, self.parts[own]
        self.found = [tuple(self.array(v) for v in pair) for pair in instance.found]
        self.answers = [{k: self.array(a[k]) for k in ("v", "m")} | {"shared": a.get("shared", False)} for a in instance.answers]
        self.draws = [self.array(z) for z in instance.draws]
        self.scale = max([1e-300, *(float(np.abs(p["x"]).max(initial=0)) for points in self.parts.values() for p in points)])

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

    def _find(self, x: Any, of: str = "") -> dict[str, Any]:
        x, points = self._all(x), self.parts[of or self.own]
        distances = [float(np.abs(p["x"] - x).max(initial=0)) for p in points]
        k = int(np.argmin(distances)) if points else 0
        if not points or distances[k] > REPLAY_RTOL * max(self.scale, float(np.abs(x).max(initial=0))):
            raise UsageError("the method evaluates a gradient where the instance recorded none; it belongs to another method or setting.")
        return points[k]

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
        if rest.any() and not all(get_class(self.told[name][0]).bends for name in self.objective):
            raise UsageError("the recorded instance has values at random points, which nothing bounds in its class.")
        known = sum(self.gap_of(x - rest, name) for name in self.objective)
        return known + sum(self.told[name][1] for name in self.objective) / 2 * self.sqnorm(rest)

    def gap_of(self, x, of):
        floor = self.instance.f_star if self.instance.optimum is None else self._find(self.optimum(), of)["f"]
        return self._find(x, of)["f"] - floor

    def grad_of(self, x, of):
        return self._find(x, of)["g"].mean(axis=0)

    def prox(self, v, gamma):
        rows = self._all(v)
        off = [float(np.abs(p["x"] + float(gamma) * p["g"] - rows).max(initial=0)) for p in self.points]
        x = self.points[int(np.argmin(off))]["x"]
        if min(off) > REPLAY_RTOL * max(self.scale, float(np.abs(rows).max(initial=0))):
            raise UsageError("the method takes a proximal step that the instance did not record; it belongs to another method or setting.")
        return x[0] if v.ndim == 1 else x

    def prox_of(self, v, gamma, of, error):
        return self.implicit(v, 1, {of or self.own: gamma}, error)

    def implicit(self, v, a, weights, error=0.0):
        rows = self._all(v)
        for start, x in self.found:
            if self._near(start, rows) and self._solves(x, rows, float(a), weights, float(error)):
                return x[0]
        raise UsageError("the method takes an implicit step that the instance did not record; it belongs to another method or setting.")

    def _near(self, a: np.ndarray, b: np.ndarray) -> bool:
        return float(np.abs(a - b).max(initial=0)) <= REPLAY_RTOL * max(self.scale, float(np.abs(b).max(initial=0)))

    def _solves(self, x: np.ndarray, v: np.ndarray, a: float, weights: dict[str, Any], error: float) -> bool:
        """Whether ``a x + sum_k weights[k] g_k(x) = v`` up to the error allowed."""
        try:
            terms = [a * x, *(float(c) * self._find(x, name)["g"] for name, c in weights.items())]
        except UsageError:
            return False
        size = max(float(np.linalg.norm(t)) for t in (*terms, v))
        return float(np.linalg.norm(sum(terms) - v)) <= error * float(np.linalg.norm(x - v)) + REPLAY_RTOL * size

    def line_search(self, x, directions):
        flat = np.array([v for d in directions for v in (d if isinstance(d, tuple) else (d,))])
        for start, end in self.found:
            move, g = end[0] - x, self._find(end)["g"][0]
            inside = flat.T @ np.linalg.lstsq(flat.T, move, rcond=None)[0]
            sizes = np.linalg.norm(g) * np.linalg.norm(flat, axis=1)
            if self._near(start[0], x) and self._near(inside, move) and bool(np.all(np.abs(flat @ g) <= SEARCH_RTOL * sizes)):
                return end[0]
        raise UsageError("the method makes a search that the instance did not record; it belongs to another method or setting.")

    def inner(self, a, b):
        return float(np.mean(np.sum(self._all(a) * self._all(b), axis=1)))

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
        for name, (_, L, mu) in self.told.items():
            for worker in range(min(self.n, CHECKED) if name == self.own else 1):
                if mu < L and len(self.parts[name]) > 1:
                    self._verify_function(name, worker)
        if self.instance.optimum is not None and self.objective:
            self._verify_minimiser(sum(self._find(self.optimum(), name)["g"] for name in self.objective))
        for answer in self.answers:
            self._verify_answer(**answer)
        for z in self.draws:
            self._verify_draw(z, self.statement["sigma2"], False)

    def _verify_function(self, name: str, worker: int) -> None:
        cls, L, mu = self.told[name]
        functions, points = get_class(cls), self.parts[name]
        unit = 1.0 if functions.bounded else L
        kappa = mu / unit
        f = np.array([p["f"] for p in points]) / unit
        x = np.array([(p["x"] - points[0]["x"])[worker] for p in points])
        g = np.array([p["g"][worker] for p in points]) / unit
        size = max(np.abs(f).max(), np.sum(x**2, axis=1).max(), np.sum(g**2, axis=1).max(), 1e-300)
        if functions.linear and not _is_linear(functions, x, g, f, -1.0 if not functions.convex else kappa, REPLAY_RTOL * size * len(x)):
            raise UsageError("the recorded instance is not a linear map of its class.")
        for i in range(len(f)):
            rules = [functions.pairs] + ([functions.at_minimiser] if functions.at_minimiser and i == 0 else [])
            for values, products in (inequality for rule in rules for inequality in rule(x, g, i, kappa)):
                excess = values * (f - f[i]) + sum(np.sum(u * v, axis=1) for u, v in products)
                if excess.max() > REPLAY_RTOL * size / (1 - kappa):
                    raise UsageError("the recorded instance violates an interpolation inequality of its class.")
        if functions.lipschitz and np.sum(g**2, axis=1).max() > 1 + REPLAY_RTOL:
            raise UsageError("the recorded instance violates the bound on the gradients of its class.")
        if functions.bounded and max(float(np.linalg.norm(x - y, axis=1).max()) for y in x) > L * (1 + REPLAY_RTOL):
            raise UsageError("the recorded instance violates the diameter of its set.")
        if functions.indicator and np.abs(f).max() > REPLAY_RTOL * size:
            raise UsageError("the recorded instance has an indicator function that is not zero on its set.")

    def _verify_minimiser(self, g: np.ndarray) -> None:
        zeta2 = self.statement["zeta2_star"]
        size = max(self.sqnorm(p["g"]) for points in self.parts.values() for p in points)
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
        from verify_rates.theory.worst_case.solve import initial_equalities, initial_values

        for value, limit in initial_values(initial, self.statement["initial_value"], states, self, hyper):
            if value > limit * (1 + REPLAY_RTOL):
                raise UsageError("the recorded instance violates its initial condition.")
        size = max(self.sqnorm(p[k]) for p in self.points for k in ("x", "g"))
        for value in initial_equalities(initial, states, self, hyper):
            if abs(value) > REPLAY_RTOL * size:
                raise UsageError("the recorded instance violates an initial equality.")
