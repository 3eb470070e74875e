"""What every problem shares: noise, shapes, checks, data slots, and the way a problem is recorded and made again.

A family is a final dataclass that derives from :class:`Family` and fills in ``value``, ``_full``, ``_data``, ``_kernels`` and
``_constants``; the logic here is never overridden.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from types import NoneType
from typing import Any, ClassVar

import numpy as np

from verify_rates.problems.rounding import down, up
from verify_rates.solvers.method import UsageError
from verify_rates.solvers.oracle import Constants, Data
from verify_rates.solvers.words import Unsupported

FAMILIES: dict[str, Any] = {}  # classes, and the problems made by a user's file
ADDITIVE = ("none", "gaussian", "two_point")  # noise that does not depend on x
HEAVY = ("student", "pareto")  # neither does this one; its variance may be infinite
CODES = {"gaussian": 1.0, "two_point": 2.0, "student": 3.0, "pareto": 4.0}  # of the kernels
HEADER = 5  # entries of Data.params that every kernel reads: additive noise, batch, high, low, probability of high

_EMPTY = Data(
    rows=np.empty((0, 0)),
    indptr=np.empty(0, np.int64),
    cols=np.empty(0, np.int32),
    cols8=np.empty(0, np.uint8),
    vals=np.empty(0),
    y=np.empty(0),
    offsets=np.empty(0, np.int64),
    tensors=np.empty((0, 0, 0)),
    vectors=np.empty((0, 0)),
    params=np.empty(0),
)


def number(name: str, value: Any, least: float = -math.inf, strict: bool = False, whole: bool = False) -> Any:
    """``value`` as a finite float (or int); UsageError that names the option otherwise."""
    try:
        x = float(value)
    except (TypeError, ValueError):
        raise UsageError(f"{name} must be a number, not {value!r}.") from None
    if not math.isfinite(x):
        raise UsageError(f"{name} must be finite, not {value!r}.")
    if x < least or (strict and x == least):
        raise UsageError(f"{name} must be {'more than' if strict else 'at least'} {least:g}, not {value!r}.")
    if whole and x != int(x):
        raise UsageError(f"{name} must be a whole number, not {value!r}.")
    return int(x) if whole else x


def truth(name: str, value: Any) -> None:
    """UsageError unless ``value`` is True or False."""
    if not isinstance(value, bool):
        raise UsageError(f"{name} must be true or false, not {value!r}.")


def choice(name: str, value: Any, allowed: tuple[str, ...]) -> Any:
    """``value`` if it is one of the allowed words; UsageError otherwise."""
    if value not in allowed:
        raise UsageError(f"{name} must be one of {', '.join(allowed)}, not {value!r}.")
    return value


@dataclass(kw_only=True, eq=False)
class Problem(abc.ABC):
    """``f = mean_i f_i`` over n workers, with its noise and its constants.

    Noise is part of the problem: ``noise="none"``; ``noise="batch"``, ``batch`` samples of the worker with replacement (data problems);
    ``noise="gaussian"``, independent normal coordinates with ``E||noise||^2 = sigma2``; ``noise="two_point"``, coordinates that are
    high with probability ``p`` and low otherwise, of mean zero, with the same total variance.  ``noise`` may be left out: ``batch=B``
    and ``sigma2=s`` say it.  Heavy tails: ``noise="student"``, coordinates ``scale`` times Student's t with ``tail`` degrees of freedom;
    ``noise="pareto"``, of either sign with ``P(|xi| > r) = (scale/r)^tail`` beyond ``scale``; moments below ``tail`` > 1 are finite.

    Parameters
    ----------
    n : number of workers.
    noise, sigma2, p, tail, scale : see above; sigma2 in squared gradient units, summed over the coordinates.
    """

    name: ClassVar[str] = ""
    noises: ClassVar[tuple[str, ...]] = (*ADDITIVE, *HEAVY)
    d: int = field(init=False, default=0)  # an option in some families, given by the data in others
    n: int = 1
    noise: str | None = None
    sigma2: float = 0.0
    p: float = 0.5
    tail: float = 0.0
    scale: float = 0.0

    def __post_init__(self) -> None:
        self.n = number("n", self.n, 1, whole=True)
        self._check_noise()
        self._check()

    def _check_noise(self) -> None:
        batch = getattr(self, "batch", None)
        if batch is not None:
            self.batch = number("batch", batch, 1, whole=True)
        self.sigma2 = number("sigma2", self.sigma2, 0)
        self.p = number("p", self.p, 0, strict=True)
        if self.p >= 1:
            raise UsageError(f"p must be less than 1, not {self.p!r}.")
        if self.noise is None:
            self.noise = "batch" if batch is not None else "gaussian" if self.sigma2 > 0 else "none"
        choice("noise", self.noise, self.noises)
        if (self.noise == "batch") != (batch is not None):
            raise UsageError("noise='batch' and batch=B go together; choose one kind of noise.")
        if (self.noise in ("gaussian", "two_point")) != (self.sigma2 > 0):
            raise UsageError("noise='gaussian' or 'two_point' goes with sigma2 > 0, and no other noise does; choose one kind of noise.")
        heavy = self.noise in HEAVY
        self.tail, self.scale = number("tail", self.tail, 1 if heavy else 0, strict=heavy), number("scale", self.scale, 0, strict=heavy)
        if not heavy and (self.tail or self.scale):
            raise UsageError("tail and scale go with noise='student' or 'pareto', and with no other noise.")

    # --- what a family fills in ---------------------------------------------------------------------------------------

    @abc.abstractmethod
    def _check(self) -> None:
        """Validate the options and build what is needed."""

    @abc.abstractmethod
    def _constants(self) -> Constants:
        """The constants; of the noise only what comes from batches."""

    @abc.abstractmethod
    def value(self, x: np.ndarray) -> float:
        """``f(x)`` at a shared point, (d,)."""

    @abc.abstractmethod
    def _full(self, x: Any, xp: Any) -> Any:
        """Exact gradients, (n, d), at x of shape (d,) or (n, d)."""

    def _sampled(self, x: Any, gens: list[np.random.Generator], xp: Any) -> Any:
        """Stochastic gradients, (n, d); written by the families whose noise depends on x (batches), the only ones that allow it."""
        raise NotImplementedError

    def _start(self) -> np.ndarray:
        """Written by the families that are at rest at 0."""
        return np.zeros(self.d)

    @abc.abstractmethod
    def compiled(self) -> tuple[Any, Data]:
        """``(kernel, data)`` for the compiled engine."""

    # --- shared -------------------------------------------------------------------------------------------------------

    @cached_property
    def constants(self) -> Constants:
        """The constants of :class:`verify_rates.solvers.oracle.Constants`, exact or rounded to the safe side."""
        found = self._constants()
        if self.noise not in (*ADDITIVE, *HEAVY):
            return found
        variance = self._heavy_variance() if self.noise in HEAVY else self.sigma2
        return found._replace(sigma2_star=variance, sigma2_sup=variance)

    def _heavy_variance(self) -> float:
        """Both kinds: ``d scale^2 tail/(tail-2)``, infinite for tails up to 2."""
        return math.inf if self.tail <= 2 else up(self.d * self.scale**2 * self.tail / (self.tail - 2), 8)  # eight roundings

    @cached_property
    def start(self) -> np.ndarray:
        """(d,) where runs begin unless they are told otherwise: 0, or a point beside it where 0 is a saddle."""
        return self._start()

    @property
    def stochastic(self) -> bool:
        """Do gradients carry noise?"""
        return self.noise != "none"

    def grads(self, x: Any, gens: list[np.random.Generator] | None = None, xp: Any = np) -> Any:
        """Gradients of all workers.

        Parameters
        ----------
        x : (d,) or (n, d), an array of ``xp``.
        gens : one generator a worker; without them the gradients are exact.
        xp : the array library.

        Returns
        -------
        (n, d) array of ``xp``.  Draws are made on the host, worker by worker, in the order of the kernel.
        """
        if x.shape not in ((self.d,), (self.n, self.d)):
            raise UsageError(f"a point of {self.name} has shape ({self.d},) or ({self.n}, {self.d}), not {tuple(x.shape)}.")
        if gens is None or not self.stochastic:
            return self._full(x, xp)
        if len(gens) != self.n:
            raise UsageError(f"{self.name} needs one generator a worker: {self.n}, not {len(gens)}.")
        if self.noise not in (*ADDITIVE, *HEAVY):
            return self._sampled(x, gens, xp)
        return self._full(x, xp) + xp.asarray(np.stack([self._draw(gen) for gen in gens]))

    def _draw(self, gen: np.random.Generator) -> np.ndarray:
        high, low = self._levels
        if self.noise == "gaussian":
            return high * gen.standard_normal(self.d)
        if self.noise == "student":
            return high * gen.standard_t(low, self.d)
        if self.noise == "pareto":
            u = gen.random(self.d)
            return np.where(u < 0.5, -high, high) * np.where(u < 0.5, 1 - 2 * u, 2 - 2 * u) ** (-1 / low)
        return np.where(gen.random(self.d) < self.p, high, low)

    @cached_property
    def _levels(self) -> tuple[float, float]:
        """(deviation, 0) of a coordinate, or its two values, rounded so that the total variance is at most sigma2; or (scale, tail)."""
        if self.noise in HEAVY:
            return self.scale, self.tail
        std = math.sqrt(self.sigma2 / self.d)
        while Fraction(std) ** 2 * self.d > Fraction(self.sigma2):
            std = down(std)
        if self.noise != "two_point":
            return std, 0.0
        ratio = math.sqrt((1 - self.p) / self.p)
        if ratio == 1.0:
            return std, -std
        std = down(std, 4)  # the roundings of the two quotients below
        return std * ratio, -std / ratio

    @abc.abstractmethod
    def describe(self) -> dict[str, Any]:
        """A dict for JSON; ``get_problem(**problem.describe())`` makes the same problem again."""


class Family(Problem):
    """A problem of this package: found by its name, with kernels for gradients and values."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.name:
            FAMILIES[cls.name] = cls

    def describe(self) -> dict[str, Any]:
        """The name and all options; Unsupported where one is not of a kind that JSON carries (large arrays given as data)."""
        options = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.init}
        for name, value in options.items():
            if not isinstance(value, (str, int, float, dict, list, NoneType)):
                raise Unsupported(f"record of '{self.name}': its {name} is too large to be written down; give the path of a file")
        return {"name": self.name, **options}

    @abc.abstractmethod
    def _data(self) -> dict[str, np.ndarray]:
        """The slots of :class:`Data` that the kernels read; ``params`` without the header."""

    @abc.abstractmethod
    def _kernels(self) -> tuple[Any, Any]:
        """The compiled kernels of gradients and of values."""

    def compiled(self) -> tuple[Any, Data]:
        """``(kernel, data)``: ``kernel(data, i, x, gen, exact, out)`` writes worker i's gradient."""
        from verify_rates.solvers.engine.signatures import GRAD, ready

        return ready(self._kernels()[0], GRAD), self.slots

    def compiled_value(self) -> Any:
        """The kernel ``(data, i, x) -> f_i(x)``."""
        from verify_rates.solvers.engine.signatures import VALUE, ready

        return ready(self._kernels()[1], VALUE)

    @cached_property
    def slots(self) -> Data:
        """What the kernels read."""
        found = self._data()
        code = CODES.get(str(self.noise), 0.0)
        header = [code, float(getattr(self, "batch", None) or 0), *self._levels, self.p]
        params = np.concatenate([header, found.pop("params", np.empty(0))])
        return filled(params=params, **found)


def filled(**arrays: Any) -> Data:
    """Data with the slots given, in the type and memory order of the kernels, the others empty."""
    return Data(*(np.require(arrays.get(k, e), e.dtype, ["C", "W"]) for k, e in _EMPTY._asdict().items()))


def host(x: Any) -> np.ndarray:
    """A point as a NumPy array of floats."""
    return np.asarray(x, dtype=np.float64)
