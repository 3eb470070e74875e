"""Compressors of single papers: top-k in pieces and in the cosine basis (DeMo), by a sampled threshold (DGC), one-bit signs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from verify_rates.solvers.chunks import dct_basis, in_chunks, largest_divisor, sampled_selection
from verify_rates.solvers.compressors import FLOAT_BITS, BaseCompressor, TopK, _whole, index_bits
from verify_rates.solvers.method import UsageError


@dataclass(frozen=True)
class BlockTopK(BaseCompressor):
    """The k largest entries of every piece; a piece is as long as the largest divisor s of d that is at most ``chunk``.

    ``delta = k/s`` (tight: equal entries), since it holds in every piece.  Bits ``(d/s) k (32 + ceil(log2 s))``.
    """

    name: ClassVar[str] = "block_topk"
    random: ClassVar[bool] = False
    k: int
    chunk: int = 64

    def __post_init__(self) -> None:
        _whole(self.name, "k", self.k, 1)
        _whole(self.name, "chunk", self.chunk, 1)

    def size(self, d: int) -> int:
        """Entries of a piece."""
        return largest_divisor(d, self.chunk)

    def check(self, d: int) -> None:
        super().check(d)
        if self.k > self.size(d):
            raise UsageError(f"k of {self.name} must be at most {self.size(d)}, the length of a piece of d = {d}, not {self.k}.")

    def rows(self, v: Any, gens: Sequence[np.random.Generator], xp: Any) -> Any:
        pieces = xp.reshape(v, (-1, self.size(v.shape[1])))
        return xp.reshape(TopK(self.k).rows(pieces, gens, xp), v.shape)

    def classes(self, d: int) -> dict[str, float]:
        return {"delta": self.k / self.size(d)}

    def bits(self, d: int) -> float:
        """``(d/s) k (32 + ceil(log2 s))``."""
        return float(d // self.size(d) * self.k * (FLOAT_BITS + index_bits(self.size(d))))


@dataclass(frozen=True)
class DctTopK(BlockTopK):
    """``block_topk`` in the orthonormal cosine basis of every piece, decoded; the class is that of ``block_topk``."""

    name: ClassVar[str] = "dct_topk"

    def rows(self, v: Any, gens: Sequence[np.random.Generator], xp: Any) -> Any:
        basis = dct_basis(self.size(v.shape[1]))
        return in_chunks(super().rows(in_chunks(v, basis.T, xp), gens, xp), basis, xp)


@dataclass(frozen=True)
class SampledTopK(BaseCompressor):
    """Top-k by a threshold from a strided sample, adapted at most ten times (DGC's released rule).

    No class: of a little more than k entries above the threshold the last ones are left out, whatever their size.
    Bits: those of what is sent, ``kept (32 + ceil(log2 d))``.
    """

    name: ClassVar[str] = "sampled_topk"
    random: ClassVar[bool] = False
    k: int
    share: float = 0.01

    def __post_init__(self) -> None:
        _whole(self.name, "k", self.k, 1)
        if not 0 < self.share <= 1:
            raise UsageError(f"share of {self.name} must be in (0, 1], not {self.share!r}.")

    def check(self, d: int) -> None:
        super().check(d)
        if self.k > d:
            raise UsageError(f"k of {self.name} must be at most the dimension d = {d}, not {self.k}.")

    def rows(self, v: Any, gens: Sequence[np.random.Generator], xp: Any) -> Any:
        host = np.array(v if xp is np else np.from_dlpack(v, device="cpu"))
        kept = np.stack([sampled_selection(row, self.k, self.share) for row in host])
        return xp.asarray(np.where(kept, host, 0.0))

    def classes(self, d: int) -> dict[str, float]:
        return {}

    def bits(self, d: int) -> None:
        return None

    def message_bits(self, m: np.ndarray) -> float:
        """``kept (32 + ceil(log2 d))``."""
        return float(np.count_nonzero(m) * (FLOAT_BITS + index_bits(m.shape[-1])))


@dataclass(frozen=True)
class NormSign(BaseCompressor):
    """``(||v||_2 / sqrt(d)) sign(v)`` with sign(0) = +1, as 0/1 Adam's released code has it.

    No class: the error is ``2 (1 - ||v||_1/(sqrt(d) ||v||_2)) ||v||^2``, more than ``||v||^2`` for a spike in d >= 5.  Bits ``32 + d``.
    """

    name: ClassVar[str] = "norm_sign"
    random: ClassVar[bool] = False

    def rows(self, v: Any, gens: Sequence[np.random.Generator], xp: Any) -> Any:
        scale = xp.sqrt(xp.sum(v * v, axis=1, keepdims=True)) / math.sqrt(v.shape[1])
        return xp.where(v >= 0, scale, -scale)

    def classes(self, d: int) -> dict[str, float]:
        return {}

    def bits(self, d: int) -> float:
        """``32 + d``: one scale, one bit an entry."""
        return float(FLOAT_BITS + d)


@dataclass(frozen=True)
class Sign(BaseCompressor):
    """``sign(v)`` with sign(0) = +1: one bit an entry and no scale, so no class."""

    name: ClassVar[str] = "sign"
    random: ClassVar[bool] = False

    def rows(self, v: Any, gens: Sequence[np.random.Generator], xp: Any) -> Any:
        return xp.where(v >= 0, xp.ones_like(v), -xp.ones_like(v))

    def classes(self, d: int) -> dict[str, float]:
        return {}

    def bits(self, d: int) -> float:
        """``d``."""
        return float(d)
