"""The compressors compiled: ``compress(v, params, gen, out) -> bits`` (signature COMPRESS), one kernel each.

Every kernel draws from ``gen`` by ``gen.random()`` alone, in the order in which the array version draws on the host.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from verify_rates.solvers.chunks import largest_divisor, sampled_selection
from verify_rates.solvers.engine import signatures  # noqa: F401  it points Numba's cache at its folder, before any njit

FLOAT_BITS = 32.0  # payload of one number
divisor, selection = njit(largest_divisor), njit(sampled_selection)


@njit(cache=True, nogil=True)
def index_bits(d):
    """ceil(log2 d), in whole numbers."""
    bits = 0
    while (1 << bits) < d:
        bits += 1
    return bits


@njit(cache=True, nogil=True)
def kth_largest(a, k):
    """The k-th largest of non-negative numbers, by bisection on their bits, which are ordered as the numbers are (NaN above all).

    Counting has no branches to mispredict: four times as fast as quickselect at d = 123.
    """
    bits = a.view(np.int64)
    low, high, count = np.int64(0), np.max(bits), 0
    while low < high and count != k:
        level = low + ((high - low + 1) >> 1)
        count = 0
        for b in bits:
            count += b >= level
        if count >= k:
            low = level
        else:
            high = level - 1
    best = np.argmax(bits)
    for i in range(bits.size):
        if low <= bits[i] < bits[best]:
            best = i
    return a[best]


@njit(cache=True, nogil=True)
def identity(v, params, gen, out):
    out[:] = v
    return FLOAT_BITS * v.size


@njit(cache=True, nogil=True)
def topk(v, params, gen, out):
    d, k = v.size, int(params[0])
    if k > d:
        raise ValueError("top-k with k > d")
    level = kth_largest(np.abs(v), k)
    surplus = -k  # entries equal to the k-th largest that find no place: the last ones
    for i in range(d):
        small = abs(v[i]) < level
        surplus += not small
        out[i] = 0.0 if small else v[i]  # NaN stays NaN: divergence must show
    for i in range(d - 1, -1, -1):
        if surplus <= 0:
            break
        if abs(v[i]) == level:
            out[i] = 0.0
            surplus -= 1
    return k * (FLOAT_BITS + index_bits(d))


@njit(cache=True, nogil=True)
def randk(v, params, gen, out):
    d, k = v.size, int(params[0])
    if k > d:
        raise ValueError("rand-k with k > d")
    scale = d / k if params[1] != 0.0 else 1.0
    taken = np.zeros(d, np.bool_)
    for j in range(d - k, d):  # Floyd: every k-subset equally likely
        i = int(gen.random() * (j + 1))
        if taken[i]:
            i = j
        taken[i] = True
    for i in range(d):
        out[i] = v[i] * scale if taken[i] else 0.0
    return k * (FLOAT_BITS + index_bits(d))


@njit(cache=True, nogil=True)
def scaled_sign(v, params, gen, out):
    d = v.size
    total = 0.0
    for i in range(d):
        total += abs(v[i])
    scale = total / d
    for i in range(d):
        out[i] = scale if v[i] >= 0.0 else -scale
    return FLOAT_BITS + d


@njit(cache=True, nogil=True)
def qsgd(v, params, gen, out):
    d, levels = v.size, params[0]
    largest = 0.0
    for i in range(d):
        largest = max(largest, abs(v[i]))
    unit = largest if largest > 0.0 else 1.0
    total = 0.0
    for i in range(d):
        total += (v[i] / unit) * (v[i] / unit)
    norm = unit * np.sqrt(total)
    safe = norm if norm > 0.0 else 1.0
    for i in range(d):
        r = min(levels, levels * (abs(v[i]) / safe))
        level = np.floor(r)
        if gen.random() < r - level:
            level += 1.0
        q = norm * (level / levels)
        out[i] = q if v[i] >= 0.0 else -q
    return FLOAT_BITS + d * (1.0 + index_bits(int(levels) + 1))


@njit(cache=True, nogil=True)
def hard_threshold(v, params, gen, out):
    kept = 0
    for i in range(v.size):
        keep = not abs(v[i]) < params[0]  # NaN stays NaN: divergence must show
        out[i] = v[i] if keep else 0.0
        kept += keep
    return kept * (FLOAT_BITS + index_bits(v.size))


@njit(cache=True, nogil=True)
def block_topk_into(v, k, s, out):
    for c in range(0, v.size, s):
        level = kth_largest(np.abs(v[c : c + s]), k)
        surplus = -k
        for i in range(c, c + s):
            small = abs(v[i]) < level
            surplus += not small
            out[i] = 0.0 if small else v[i]
        for i in range(c + s - 1, c - 1, -1):
            if surplus <= 0:
                break
            if abs(v[i]) == level:
                out[i] = 0.0
                surplus -= 1
    return v.size // s * k * (FLOAT_BITS + index_bits(s))


@njit(cache=True, nogil=True)
def block_topk(v, params, gen, out):
    return block_topk_into(v, int(params[0]), divisor(v.size, int(params[1])), out)


@njit(cache=True, nogil=True)
def dct_topk(v, params, gen, out):
    s = divisor(v.size, int(params[1]))
    basis, coded, kept = np.empty((s, s)), np.zeros(v.size), np.empty(v.size)
    for k in range(s):
        for j in range(s):
            basis[k, j] = np.sqrt((1 if k == 0 else 2) / s) * np.cos(np.pi * (j + 0.5) * k / s)
    for i in range(v.size):
        for k in range(s):
            coded[i - i % s + k] += basis[k, i % s] * v[i]
    bits = block_topk_into(coded, int(params[0]), s, kept)
    out[:] = 0.0
    for i in range(v.size):
        if kept[i] != 0.0:
            for j in range(s):
                out[i - i % s + j] += basis[i % s, j] * kept[i]
    return bits


@njit(cache=True, nogil=True)
def sampled_topk(v, params, gen, out):
    kept, sent = selection(v, int(params[0]), params[1]), 0
    for i in range(v.size):
        out[i] = v[i] if kept[i] else 0.0
        sent += out[i] != 0.0
    return sent * (FLOAT_BITS + index_bits(v.size))


@njit(cache=True, nogil=True)
def norm_sign(v, params, gen, out):
    total = 0.0
    for x in v:
        total += x * x
    scale = np.sqrt(total) / np.sqrt(v.size)
    for i in range(v.size):
        out[i] = scale if v[i] >= 0.0 else -scale
    return FLOAT_BITS + v.size


@njit(cache=True, nogil=True)
def sign(v, params, gen, out):
    for i in range(v.size):
        out[i] = 1.0 if v[i] >= 0.0 else -1.0
    return 1.0 * v.size
