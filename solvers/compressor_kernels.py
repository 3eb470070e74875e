"""The compressors compiled: ``compress(v, params, gen, out) -> bits`` (signature COMPRESS), one kernel each.

Every kernel draws from ``gen`` by ``gen.random()`` alone, in the order in which the array version draws on the host.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from verify_rates.solvers.engine.signatures import COMPRESS

FLOAT_BITS = 32.0  # payload of one number


@njit(cache=True, nogil=True)
def index_bits(d):
    """ceil(log2 d), in whole numbers."""
    bits = 0
    while (1 << bits) < d:
        bits += 1
    return bits


@njit(cache=True, nogil=True)
def kth_largest(a, k):
    """The k-th largest entry of ``a``, which is reordered; quickselect by three-way partition (ends on NaN too)."""
    low, high, want = 0, a.size - 1, k - 1
    while low < high:
        x, y, z = a[low], a[(low + high) // 2], a[high]
        pivot = max(min(x, y), min(max(x, y), z))
        left, i, right = low, low, high
        while i <= right:
            if a[i] > pivot:
                a[left], a[i] = a[i], a[left]
                left += 1
                i += 1
            elif a[i] < pivot:
                a[right], a[i] = a[i], a[right]
                right -= 1
            else:
                i += 1
        if want < left:
            high = left - 1
        elif want > right:
            low = right + 1
        else:
            return a[want]
    return a[want]


@njit(COMPRESS, cache=True, nogil=True)
def identity(v, params, gen, out):
    out[:] = v
    return FLOAT_BITS * v.size


@njit(COMPRESS, cache=True, nogil=True)
def topk(v, params, gen, out):
    d, k = v.size, int(params[0])
    if k > d:
        raise ValueError("top-k with k > d")
    level = kth_largest(np.abs(v), k)
    room = k  # places for entries equal to the k-th largest, lowest index first
    for i in range(d):
        if abs(v[i]) > level:
            room -= 1
    for i in range(d):
        a = abs(v[i])
        tied = a == level and room > 0
        room -= tied
        out[i] = v[i] if tied or a > level or a != a else 0.0  # NaN stays NaN: divergence must show
    return k * (FLOAT_BITS + index_bits(d))


@njit(COMPRESS, cache=True, nogil=True)
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


@njit(COMPRESS, cache=True, nogil=True)
def scaled_sign(v, params, gen, out):
    d = v.size
    total = 0.0
    for i in range(d):
        total += abs(v[i])
    scale = total / d
    for i in range(d):
        out[i] = scale if v[i] >= 0.0 else -scale
    return FLOAT_BITS + d


@njit(COMPRESS, cache=True, nogil=True)
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


@njit(COMPRESS, cache=True, nogil=True)
def hard_threshold(v, params, gen, out):
    kept = 0
    for i in range(v.size):
        keep = not abs(v[i]) < params[0]  # NaN stays NaN: divergence must show
        out[i] = v[i] if keep else 0.0
        kept += keep
    return kept * (FLOAT_BITS + index_bits(v.size))
