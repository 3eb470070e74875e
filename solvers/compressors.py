"""Compressors with their classes and exact constants; each is found by its name, ``topk(k=12)``, without evaluating text.

A message counts its payload in float32 (32 bits a number) and its indices (``ceil(log2 d)`` bits each); values themselves stay
in the working precision, so that rounding is never mistaken for compression.
"""

from __future__ import annotations

import inspect
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, make_dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from verify_rates.solvers.method import UsageError, home, nearest
from verify_rates.solvers.own import called, reads, vectors

FLOAT_BITS = 32
_REGISTRY: dict[str, type[BaseCompressor]] = {}


def index_bits(d: int) -> int:
    """Bits of one index into d entries, ``ceil(log2 d)``.

    >>> [index_bits(d) for d in (1, 2, 3, 123, 128)]
    [0, 1, 2, 7, 7]
    """
    return (d - 1).bit_length()


@dataclass(frozen=True)
class BaseCompressor(ABC):
    """A compressor by the protocol of :mod:`verify_rates.solvers.oracle`; its dataclass fields are its parameters.

    A subclass gives ``name``, the arrays' version ``rows``, its class in ``classes``, and the bits of a message.
    """

    name: ClassVar[str] = ""
    kernel: ClassVar[str] = ""  # its name in compressor_kernels, if not ``name``
    random: ClassVar[bool] = True  # whether it may draw; False where the message is a function of the vector alone

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not cls.name:
            return
        known = _REGISTRY.get(cls.name)
        if known is not None and _home(known) != _home(cls):
            raise UsageError(f"a compressor named {cls.name!r} exists already; choose another name.")
        _REGISTRY[cls.name] = cls

    @abstractmethod
    def rows(self, v: Any, gens: Sequence[np.random.Generator], xp: Any) -> Any:
        """The compressed rows of v, (n, d)."""

    @abstractmethod
    def classes(self, d: int) -> dict[str, float]:
        """``delta``, ``omega``, ``Delta2``: those that hold in dimension d."""

    @abstractmethod
    def bits(self, d: int) -> float | None:
        """Exact bits of one message, index bits included; None where they depend on the data."""

    def check(self, d: int) -> None:
        """UsageError where the parameters do not fit dimension d."""
        if d < 1:
            raise UsageError(f"a compressor needs a dimension d of at least 1, not {d}.")

    def constants(self, d: int) -> dict[str, float]:
        """Constants of the class in dimension d; see :class:`verify_rates.solvers.oracle.Compressor`."""
        self.check(d)
        return self.classes(d)

    def __call__(self, v: Any, gens: Sequence[np.random.Generator] = (), xp: Any = np) -> Any:
        """Compressed rows of v, (n, d), as arrays of ``xp``; row i draws from ``gens[i]`` on the host."""
        if v.ndim != 2:
            raise UsageError(f"a compressor takes rows (n, d), not an array of {v.ndim} dimensions.")
        self.check(v.shape[1])
        return self.rows(v, gens, xp)

    def message_bits(self, m: np.ndarray) -> float:
        """Exact bits of the one message m, (d,)."""
        bits = self.bits(m.shape[-1])
        assert bits is not None, f"{self.name} must override message_bits"
        return float(bits)

    def compiled(self) -> tuple[Any, np.ndarray]:
        """``(kernel, params)``, the kernel of signature COMPRESS."""
        from verify_rates.solvers import compressor_kernels
        from verify_rates.solvers.engine.signatures import COMPRESS, ready

        params = np.array([float(getattr(self, f.name)) for f in fields(self)])
        return ready(getattr(compressor_kernels, self.kernel or self.name), COMPRESS), params

    def describe(self) -> str:
        """Text from which :func:`get_compressor` makes the same compressor again.

        >>> get_compressor("topk:12").describe()
        'topk(k=12)'
        """
        values = [(f.name, getattr(self, f.name)) for f in fields(self) if getattr(self, f.name) != f.default]
        given = ", ".join(f"{name}={_text(value)}" for name, value in values)
        return f"{self.name}({given})" if given else self.name

    def __str__(self) -> str:
        return self.describe()


def _home(cls: type) -> str:
    if cls.__module__ == "__main__":
        return "__main__"
    return getattr(cls, "_source", None) or inspect.getsourcefile(cls) or ""


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _whole(owner: str, name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise UsageError(f"{name} of {owner} must be a whole number of at least {least}, not {value!r}.")


class _Kept:
    """What top-k and rand-k share: k of d entries are sent as pairs (index, number)."""

    k: int
    name: ClassVar[str]

    def __post_init__(self) -> None:
        _whole(self.name, "k", self.k, 1)

    def check(self, d: int) -> None:
        super().check(d)  # type: ignore[misc]
        if self.k > d:
            raise UsageError(f"k of {self.name} must be at most the dimension d = {d}, not {self.k}.")

    def bits(self, d: int) -> float:
        """``k (32 + ceil(log2 d))``."""
        self.check(d)
        return float(self.k * (FLOAT_BITS + index_bits(d)))


@dataclass(frozen=True)
class Identity(BaseCompressor):
    """Nothing is lost: ``delta = 1``, ``omega = 0``, ``Delta2 = 0``; bits ``32 d``."""

    name: ClassVar[str] = "identity"
    random: ClassVar[bool] = False

    def rows(self, v: Any, gens: Sequence[np.random.Generator], xp: Any) -> Any:
        return v

    def classes(self, d: int) -> dict[str, float]:
        return {"delta": 1.0, "omega": 0.0, "Delta2": 0.0}

    def bits(self, d: int) -> float:
        """``32 d``."""
        return float(FLOAT_BITS * d)


@dataclass(frozen=True)
class TopK(_Kept, BaseCompressor):
    """The k entries of largest magnitude, ties to the lowest index.

    ``||C(v) - v||^2 <= (1 - k/d) ||v||^2``, so ``delta = k/d`` (tight: equal entries); Stich, Cordonnier and Jaggi 2018
    (arXiv:1809.07599, Lemma A.1).  Bits ``k (32 + ceil(log2 d))``.
    """

    name: ClassVar[str] = "topk"
    random: ClassVar[bool] = False
    k: int

    def rows(self, v: Any, gens: Sequence[np.random.Generator], xp: Any) -> Any:
        size = xp.abs(v)
        d = v.shape[1]
        ordered = np.partition(size, d - self.k, axis=1) if xp is np else xp.sort(size, axis=1)
        level = ordered[:, d - self.k : d - self.k + 1]
        above, tied = size > level, size == level
        index = xp.arange(d)
        room = self.k - xp.sum(xp.where(above, xp.ones_like(index), xp.zeros_like(index)), axis=1, keepdims=True)
        # the room-th lowest index among the tied ones is the last one that is kept
        places = xp.sort(xp.where(tied, index, d), axis=1)
        last = xp.max(xp.where(index < room, places, -1), axis=1, keepdims=True)
        keep = above | (tied & (index <= last)) | (size != size)  # NaN stays NaN: divergence must show
        return xp.where(keep, v, xp.zeros_like(v))

    def classes(self, d: int) -> dict[str, float]:
        return {"delta": self.k / d}


@dataclass(frozen=True)
class RandK(_Kept, BaseCompressor):
    """k entries chosen evenly at random (each worker by itself), as they are or scaled by d/k.

    Unscaled: ``E||C(v) - v||^2 = (1 - k/d) ||v||^2``, so ``delta = k/d`` with equality; Stich, Cordonnier and Jaggi 2018
    (arXiv:1809.07599, Lemma A.1).  Scaled: unbiased with ``omega = d/k - 1``, with equality; Beznosikov, Horvath, Richtarik and
    Safaryan 2020 (arXiv:2002.12410).  Bits ``k (32 + ceil(log2 d))``: indices are sent, since no seed is shared.
    Draws: k uniforms, Floyd's subset algorithm.
    """

    name: ClassVar[str] = "randk"
    k: int
    scaled: bool = False

    def rows(self, v: Any, gens: Sequence[np.random.Generator], xp: Any) -> Any:
        n, d = v.shape
        draws = np.stack([gens[i].random(self.k) for i in range(n)])
        chosen, row = np.zeros((n, d), dtype=bool), np.arange(n)
        for c, j in enumerate(range(d - self.k, d)):  # Floyd: every k-subset equally likely
            i = (draws[:, c] * (j + 1)).astype(np.int64)
            chosen[row, np.where(chosen[row, i], j, i)] = True
        scale = d / self.k if self.scaled else 1.0
        return xp.where(xp.asarray(chosen), v * scale, xp.zeros_like(v))

    def classes(self, d: int) -> dict[str, float]:
        return {"omega": d / self.k - 1.0} if self.scaled else {"delta": self.k / d}


@dataclass(frozen=True)
class ScaledSign(BaseCompressor):
    """``(||v||_1 / d) sign(v)``, with sign(0) = +1, so that one bit an entry is enough.

    ``||C(v) - v||^2 = ||v||^2 - ||v||_1^2 / d``, so ``delta = ||v||_1^2 / (d ||v||^2) >= 1/d`` (tight: one spike);
    Karimireddy, Rebjock, Stich and Jaggi 2019 (arXiv:1901.09847, Lemma 8).  Bits ``32 + d``.
    """

    name: ClassVar[str] = "scaled_sign"
    random: ClassVar[bool] = False

    def rows(self, v: Any, gens: Sequence[np.random.Generator], xp: Any) -> Any:
        scale = xp.sum(xp.abs(v), axis=1, keepdims=True) / v.shape[1]
        return xp.where(v >= 0, scale, -scale)

    def classes(self, d: int) -> dict[str, float]:
        return {"delta": 1.0 / d}

    def bits(self, d: int) -> float:
        """``32 + d``: one scale, one bit an entry."""
        return float(FLOAT_BITS + d)


@dataclass(frozen=True)
class QSGD(BaseCompressor):
    """Random dithering to s levels: ``||v||_2 sign(v_i) l_i / s``, ``s |v_i| / ||v||_2`` rounded to a neighbour without bias.

    Unbiased with ``omega = min(d / s^2, sqrt(d) / s)`` (an upper bound); Alistarh, Grubic, Li, Tomioka and Vojnovic 2017
    (arXiv:1610.02132, Lemma 3.1).  Bits ``32 + d (1 + ceil(log2(s + 1)))``: the norm, and per entry its sign and a level of fixed
    width (the paper's Elias code is shorter on sparse messages and depends on the data).  Draws: d uniforms, one an entry.
    """

    name: ClassVar[str] = "qsgd"
    levels: int

    def __post_init__(self) -> None:
        _whole(self.name, "levels", self.levels, 1)

    def rows(self, v: Any, gens: Sequence[np.random.Generator], xp: Any) -> Any:
        n, d = v.shape
        draws = xp.asarray(np.stack([gens[i].random(d) for i in range(n)]), dtype=v.dtype)
        size = xp.abs(v)
        largest = xp.max(size, axis=1, keepdims=True)
        unit = xp.where(largest > 0, largest, xp.ones_like(largest))  # squares of tiny or huge entries leave the range
        norm = unit * xp.sqrt(xp.sum((v / unit) * (v / unit), axis=1, keepdims=True))
        scaled = self.levels * (size / xp.where(norm > 0, norm, xp.ones_like(norm)))
        scaled = xp.where(scaled > self.levels, self.levels * xp.ones_like(scaled), scaled)
        level = xp.floor(scaled)
        level = xp.where(draws < scaled - level, level + 1.0, level)
        q = norm * (level / self.levels)
        return xp.where(v >= 0, q, -q)

    def classes(self, d: int) -> dict[str, float]:
        return {"omega": min(d / self.levels**2, math.sqrt(d) / self.levels)}

    def bits(self, d: int) -> float:
        """``32 + d (1 + ceil(log2(levels + 1)))``."""
        return float(FLOAT_BITS + d * (1 + index_bits(self.levels + 1)))


@dataclass(frozen=True)
class HardThreshold(BaseCompressor):
    """The entries with ``|v_i| >= lam``.

    ``||C(v) - v||^2 <= d lam^2``, so ``Delta2 = d lam^2`` (an unattained supremum: all entries just below lam); Sahu, Dutta,
    Abdelmoniem, Banerjee, Canini and Kalnis 2021 (arXiv:2108.00951).  Bits ``kept (32 + ceil(log2 d))``: they depend on the data.
    """

    name: ClassVar[str] = "hard_threshold"
    random: ClassVar[bool] = False
    lam: float

    def __post_init__(self) -> None:
        if isinstance(self.lam, bool) or not isinstance(self.lam, (int, float)) or not 0 < self.lam < math.inf:
            raise UsageError(f"lam of hard_threshold must be a positive finite number, not {self.lam!r}.")

    def rows(self, v: Any, gens: Sequence[np.random.Generator], xp: Any) -> Any:
        return xp.where(xp.abs(v) < self.lam, xp.zeros_like(v), v)

    def classes(self, d: int) -> dict[str, float]:
        return {"Delta2": d * self.lam**2}

    def bits(self, d: int) -> None:
        return None

    def message_bits(self, m: np.ndarray) -> float:
        """``kept (32 + ceil(log2 d))``."""
        return float(np.count_nonzero(m) * (FLOAT_BITS + index_bits(m.shape[-1])))


# --- a compressor of one's own ---------------------------------------------------------------------------------------


class _Custom(BaseCompressor):
    """A compressor made from a user's function of one row; see :func:`compressor`."""

    one: ClassVar[Callable[..., Any]]
    declared: ClassVar[dict[str, Callable[..., float] | float]]
    fixed_bits: ClassVar[Callable[..., float] | None]
    data_bits: ClassVar[Callable[..., float] | None]

    @property
    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, f.name) for f in fields(self))

    def rows(self, v: Any, gens: Sequence[np.random.Generator], xp: Any) -> Any:
        host = v if xp is np else np.from_dlpack(v, device="cpu")
        what = f"compressor {self.name}"
        out = [called(what, type(self).one, row.copy(), gen, *self._values) for row, gen in zip(host, gens, strict=False)]
        return xp.asarray(np.stack([vectors(what, m, row.shape, row) for m, row in zip(out, host, strict=True)]))

    def classes(self, d: int) -> dict[str, float]:
        found = {key: self._number(key, rule, d) for key, rule in self.declared.items()}
        for key, value in found.items():
            if not (value >= 0 and (key != "delta" or 0 < value <= 1)):
                allowed = "in (0, 1]" if key == "delta" else "at least 0"
                raise UsageError(f"{key} of {self.name} must be {allowed}, not {value!r} (d = {d}).")
        return found

    def _number(self, key: str, rule: Any, first: Any) -> float:
        given = called(f"{key} of {self.name}", rule, first, *self._values) if callable(rule) else rule
        try:
            return float(given)
        except (TypeError, ValueError):
            raise UsageError(f"{key} of {self.name} must be a number, not {given!r}.") from None

    def bits(self, d: int) -> float | None:
        rule = type(self).fixed_bits
        return None if rule is None else self._number("bits", rule, d)

    def message_bits(self, m: np.ndarray) -> float:
        rule: Any = type(self).data_bits
        return super().message_bits(m) if rule is None else self._number("message_bits", rule, m)

    def compiled(self) -> tuple[Any, np.ndarray]:
        return _own_kernel(type(self), tuple(map(_number_type, self._values))), np.array([float(value) for value in self._values])


def _number_type(value: Any) -> str:
    return "bool" if isinstance(value, (bool, np.bool_)) else "int" if isinstance(value, (int, np.integer)) else "float"


@lru_cache(maxsize=64)
def _own_kernel(cls: type[_Custom], types: tuple[str, ...]) -> Any:
    """One kernel for all values of the parameters, which it reads from ``params``."""
    from verify_rates.solvers.engine.own_kernels import compiled, fixed
    from verify_rates.solvers.engine.signatures import COMPRESS

    values = "".join(f", {kind}(params[{j}])" for j, kind in enumerate(types))
    space = {"one": compiled(cls.one), "size": compiled(cls.data_bits or cls.fixed_bits)}
    measured = "out" if cls.data_bits is not None else "v.size"
    exec(f"def kernel(v, params, gen, out):\n    out[:] = one(v.copy(), gen{values})\n    return float(size({measured}{values}))", space)
    return fixed(COMPRESS, space["kernel"], f"compressor {cls.name!r}")


def compressor(
    *,
    delta: Callable[..., float] | float | None = None,
    omega: Callable[..., float] | float | None = None,
    Delta2: Callable[..., float] | float | None = None,
    bits: Callable[..., float] | None = None,
    message_bits: Callable[..., float] | None = None,
    name: str | None = None,
) -> Callable[[Callable[..., Any]], type[BaseCompressor]]:
    """Make a compressor of one's own from a function of one row, ``f(v, gen, *parameters) -> (d,)``, with its declared class.

    A compressor that reads its generator ``gen`` is random; one that does not must give one answer a vector.
    ``E||C(v) - v||^2`` is at most ``(1 - delta) ||v||^2`` (contractive), ``omega ||v||^2`` with ``E C(v) = v`` (unbiased), or
    ``Delta2`` (absolute); :func:`check_compressor` looks for vectors that violate what is declared.

    Parameters
    ----------
    delta, omega, Delta2 : numbers, or functions of ``(d, *parameters)``; at least one.
    bits : bits of a message, a function of ``(d, *parameters)``; or, where they depend on the data,
    message_bits : a function of ``(m, *parameters)`` of the message m, (d,).
    name : by default the function's name.

    Errors: UsageError for a missing class or missing bits, or a name that is taken.

    >>> @compressor(delta=lambda d: 1 / d, bits=lambda d: 32.0 + np.ceil(np.log2(d)))
    ... def largest(v, gen):
    ...     out = np.zeros_like(v)
    ...     i = np.argmax(np.abs(v))
    ...     out[i] = v[i]
    ...     return out
    >>> largest().constants(4), largest().bits(4)
    ({'delta': 0.25}, 34.0)
    >>> get_compressor("largest")(np.array([[1.0, -3.0, 2.0, 0.0]]), [None])
    array([[ 0., -3.,  0.,  0.]])
    """
    declared = {key: rule for key, rule in (("delta", delta), ("omega", omega), ("Delta2", Delta2)) if rule is not None}
    if not declared:
        raise UsageError("a compressor must declare its class: delta (contractive), omega (unbiased) or Delta2 (absolute).")
    if (bits is None) == (message_bits is None):
        raise UsageError("a compressor must say its bits: bits=f(d, ...) or, where they depend on the data, message_bits=f(m, ...).")

    def register(f: Callable[..., Any]) -> type[BaseCompressor]:
        title = name or f.__name__
        extra = list(inspect.signature(f).parameters.values())[2:]
        space = {
            **{"name": title, "one": staticmethod(f), "declared": declared, "_source": home(f), "random": reads(f, 1)},
            **{"fixed_bits": staticmethod(bits) if bits else None, "data_bits": staticmethod(message_bits) if message_bits else None},
            **{"__doc__": inspect.getdoc(f), "__module__": f.__module__},
        }
        made: list[Any] = []
        for p in extra:
            kind = p.annotation if p.annotation in (int, float, bool) else {"int": int, "bool": bool}.get(p.annotation, float)
            made.append((p.name, kind) if p.default is p.empty else (p.name, kind, p.default))
        cls = make_dataclass(title, made, bases=(_Custom,), namespace=space, frozen=True)
        cls.__module__ = f.__module__  # make_dataclass names this module instead
        return cls

    return register


# --- by name ---------------------------------------------------------------------------------------------------------


def compressors() -> dict[str, type[BaseCompressor]]:
    """All compressors by name: those of this file and those registered by the user's files.

    >>> "topk" in compressors()
    True
    """
    return dict(sorted(_REGISTRY.items()))


def get_compressor(spec: Any) -> Any:
    """The compressor that a text such as ``topk(k=12)``, ``topk:12`` or ``identity`` names, or the object itself.

    Text is parsed, never evaluated.  Errors: UsageError for an unknown name (with the nearest match), a missing, unknown or
    unreadable parameter, or a value out of range.

    >>> get_compressor("randk(k=3, scaled=true)")
    RandK(k=3, scaled=True)
    >>> get_compressor("tpk:3")
    Traceback (most recent call last):
    verify_rates.solvers.method.UsageError: unknown compressor 'tpk'; did you mean 'topk'?
    """
    if isinstance(spec, str):
        return _parsed(spec)
    needed = ("constants", "bits", "message_bits", "compiled", "__call__")
    if isinstance(spec, type) or not all(callable(getattr(spec, member, None)) for member in needed):
        raise UsageError(f"a compressor is a text such as 'topk(k=12)' or an object with {', '.join(needed)}, not {spec!r}.")
    return spec


_SPEC = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\((.*)\)|:(.*))?\s*", re.DOTALL)


def split_spec(text: str, what: str) -> tuple[str, list[str], dict[str, str]]:
    """``name(a, k=b)`` or ``name:a,k=b`` as name, positional and named texts; UsageError where it is neither.

    >>> split_spec("randk(3, scaled=true)", "compressor")
    ('randk', ['3'], {'scaled': 'true'})
    """
    found = _SPEC.fullmatch(text)
    if found is None:
        raise UsageError(f"cannot read {what} {text!r}; write it as name, name(key=value, ...) or name:value.")
    inside = found[2] if found[2] is not None else found[3]
    parts = [part.strip() for part in inside.split(",")] if inside and inside.strip() else []
    given = [part for part in parts if "=" not in part]
    named: dict[str, str] = {}
    for part in parts:
        if "=" in part:
            key, value = (side.strip() for side in part.split("=", 1))
            if key in named:
                raise UsageError(f"{what} {text!r} gives {key} twice.")
            named[key] = value
    return found[1], given, named


def read_value(owner: str, key: str, text: str, kind: type) -> Any:
    """A parameter's text as a bool, an int or a finite float; UsageError where it is none."""
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise UsageError(f"{key} of {owner} must be true or false, not {text!r}.")
        return text.lower() == "true"
    try:
        value = kind(text)
    except ValueError:
        raise UsageError(f"{key} of {owner} must be {'a whole number' if kind is int else 'a number'}, not {text!r}.") from None
    if not math.isfinite(value):
        raise UsageError(f"{key} of {owner} must be finite, not {text!r}.")
    return value


def _parsed(text: str) -> BaseCompressor:
    name, given, named = split_spec(text, "compressor")
    if name not in _REGISTRY:
        raise nearest(name, _REGISTRY, "compressor")
    cls = _REGISTRY[name]
    kinds = {f.name: _kind(f.type) for f in fields(cls)}
    if len(given) > len(kinds):
        raise UsageError(f"{name} takes {len(kinds)} parameter(s) ({', '.join(kinds) or 'none'}), not {len(given)}.")
    texts = dict(zip(kinds, given, strict=False))
    for key, value in named.items():
        if key not in kinds:
            raise nearest(key, kinds, f"parameter of {name}")
        if key in texts:
            raise UsageError(f"compressor {text!r} gives {key} twice.")
        texts[key] = value
    values = {key: read_value(name, key, value, kinds[key]) for key, value in texts.items()}
    missing = [p.name for p in inspect.signature(cls).parameters.values() if p.default is p.empty and p.name not in values]
    if missing:
        raise UsageError(f"{name} needs {', '.join(missing)}; write for example {name}({missing[0]}=...).")
    return cls(**values)


def _kind(annotation: Any) -> type:
    return annotation if isinstance(annotation, type) else {"int": int, "bool": bool}.get(annotation, float)


from verify_rates.solvers import block_compressors as block_compressors  # noqa: E402  registers them; they are made of the above
