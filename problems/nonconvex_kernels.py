"""Compiled gradients and values of the nonconvex families; conventions as in :mod:`verify_rates.problems.kernels`."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from verify_rates.problems.kernels import _add_noise, _dense_dots, _own, _pick


@njit(cache=True, nogil=True)
def _pl_depth(data, k, x):
    """``p_k'(x - c)``; rows holds c, then the directions."""
    total = 0.0
    for j in range(x.size):
        total += data.rows[k + 1, j] * (x[j] - data.rows[0, j])
    return total


@njit(cache=True, nogil=True)
def pl(data, i, x, gen, exact, out):
    """``sum_k lam_k (2 r_k + a sin 2 r_k) p_k + u_i``, lam in y, u in vectors, a in params."""
    for j in range(x.size):
        out[j] = data.vectors[i, j]
    for k in range(data.y.size):
        r = _pl_depth(data, k, x)
        slope = data.y[k] * (2.0 * r + data.params[5] * math.sin(2.0 * r))
        for j in range(x.size):
            out[j] += slope * data.rows[k + 1, j]
    _add_noise(data.params, gen, exact, out)


@njit(cache=True, nogil=True)
def pl_value(data, i, x):
    """``sum_k lam_k (r_k^2 + a sin^2 r_k) + u_i'(x - c)``."""
    total = 0.0
    for k in range(data.y.size):
        r = _pl_depth(data, k, x)
        total += data.y[k] * (r * r + data.params[5] * math.sin(r) ** 2)
    for j in range(x.size):
        total += data.vectors[i, j] * (x[j] - data.rows[0, j])
    return total


@njit(cache=True, nogil=True)
def phase(data, i, x, gen, exact, out):
    """``mean ((a'x)^2 - y) a'x a`` over the worker's samples or a batch of them."""
    rows = _pick(data, i, gen, exact)
    z = _dense_dots(data.rows, rows, x)
    out[:] = 0.0
    for k in range(rows.size):
        slope = (z[k] * z[k] - data.y[rows[k]]) * z[k] / rows.size
        for j in range(x.size):
            out[j] += slope * data.rows[rows[k], j]
    _add_noise(data.params, gen, exact, out)


@njit(cache=True, nogil=True)
def phase_value(data, i, x):
    """``mean ((a'x)^2 - y)^2 / 4``."""
    rows = _own(data, i)
    z = _dense_dots(data.rows, rows, x)
    total = 0.0
    for k in range(rows.size):
        total += (z[k] * z[k] - data.y[rows[k]]) ** 2
    return total / rows.size / 4.0


@njit(cache=True, nogil=True)
def _left_over(data, i, x):
    """``U V' - M - E_i`` with x = (U, V) or V = U; params holds (rows, columns, rank, symmetric)."""
    p, q, r = int(data.params[5]), int(data.params[6]), int(data.params[7])
    second = 0 if data.params[8] == 1.0 else p * r
    left = np.empty((p, q))
    for a in range(p):
        for b in range(q):
            total = 0.0
            for k in range(r):
                total += x[a * r + k] * x[second + b * r + k]
            left[a, b] = total - data.rows[a, b] - data.tensors[i, a, b]
    return left


@njit(cache=True, nogil=True)
def factorisation(data, i, x, gen, exact, out):
    """``left V``, then ``left' U`` where V is not U."""
    r, second = int(data.params[7]), 0 if data.params[8] == 1.0 else int(data.params[5] * data.params[7])
    left = _left_over(data, i, x)
    out[:] = 0.0
    for a in range(left.shape[0]):
        for b in range(left.shape[1]):
            for k in range(r):
                out[a * r + k] += left[a, b] * x[second + b * r + k]
                if second > 0:
                    out[second + b * r + k] += left[a, b] * x[a * r + k]
    _add_noise(data.params, gen, exact, out)


@njit(cache=True, nogil=True)
def factorisation_value(data, i, x):
    """A quarter or a half of the squares of what is left over."""
    left = _left_over(data, i, x)
    return (left * left).sum() * (0.25 if data.params[8] == 1.0 else 0.5)
