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


@njit(cache=True, nogil=True)
def embedding(data, i, x, gen, exact, out):
    """``lam E + mean (E[t] - y)`` in the rows of the worker's tokens or of a batch; tokens in cols, targets in rows."""
    rows, lam, width = _pick(data, i, gen, exact), data.params[5], int(data.params[6])
    for j in range(x.size):
        out[j] = lam * x[j]
    for k in range(rows.size):
        first = data.cols[rows[k]] * width
        for j in range(width):
            out[first + j] += (x[first + j] - data.rows[rows[k], j]) / rows.size
    _add_noise(data.params, gen, exact, out)


@njit(cache=True, nogil=True)
def embedding_value(data, i, x):
    """``mean ||E[t] - y||^2/2 + lam/2 ||E||^2``."""
    rows, width, total = _own(data, i), int(data.params[6]), 0.0
    for k in range(rows.size):
        first = data.cols[rows[k]] * width
        for j in range(width):
            total += (x[first + j] - data.rows[rows[k], j]) ** 2
    return total / rows.size / 2.0 + data.params[5] * (x * x).sum() / 2.0


@njit(cache=True, nogil=True)
def _terms(data, row, x, pulls, terms):
    """``S_k (y - theta_k)`` and the shares of the components; returns the logarithm of their sum."""
    K, dim = terms.size, data.rows.shape[1]
    for k in range(K):
        terms[k] = data.y[k]
        for a in range(dim):
            total = 0.0
            for b in range(dim):
                total += data.tensors[k, a, b] * (data.rows[row, b] - x[k * dim + b])
            pulls[k, a] = total
            terms[k] -= total * (data.rows[row, a] - x[k * dim + a]) / 2.0
    top = terms.max()
    total = 0.0
    for k in range(K):
        terms[k] = math.exp(terms[k] - top)
        total += terms[k]
    for k in range(K):
        terms[k] /= total
    return top + math.log(total)


@njit(cache=True, nogil=True)
def mixture(data, i, x, gen, exact, out):
    """``-mean share_k S_k (y - theta_k)`` over the worker's samples or a batch; precisions in tensors, their weights in y."""
    rows, dim = _pick(data, i, gen, exact), data.rows.shape[1]
    pulls, terms = np.empty((data.y.size, dim)), np.empty(data.y.size)
    out[:] = 0.0
    for r in range(rows.size):
        _terms(data, rows[r], x, pulls, terms)
        for k in range(terms.size):
            for a in range(dim):
                out[k * dim + a] -= terms[k] * pulls[k, a] / rows.size
    _add_noise(data.params, gen, exact, out)


@njit(cache=True, nogil=True)
def mixture_value(data, i, x):
    """``-mean log sum_k exp(weight_k - (y - theta_k)'S_k(y - theta_k)/2)``."""
    rows, total = _own(data, i), 0.0
    pulls, terms = np.empty((data.y.size, data.rows.shape[1])), np.empty(data.y.size)
    for r in range(rows.size):
        total -= _terms(data, rows[r], x, pulls, terms)
    return total / rows.size


@njit(cache=True, nogil=True)
def _through(data, row, w, units, shares):
    """Hidden units and softmax shares of a sample; returns its loss.  params holds (lam, hidden, classes)."""
    p = data.rows.shape[1]
    for u in range(units.size):
        first = u * (p + 1)
        total = w[first + p]
        for j in range(p):
            total += w[first + j] * data.rows[row, j]
        units[u] = math.tanh(total)
    start = units.size * (p + 1)
    for c in range(shares.size):
        first = start + c * (units.size + 1)
        total = w[first + units.size]
        for u in range(units.size):
            total += w[first + u] * units[u]
        shares[c] = total
    top, own, total = shares.max(), shares[int(data.y[row])], 0.0
    for c in range(shares.size):
        shares[c] = math.exp(shares[c] - top)
        total += shares[c]
    for c in range(shares.size):
        shares[c] /= total
    return top + math.log(total) - own


@njit(cache=True, nogil=True)
def _backwards(data, row, w, units, slopes, scale, out):
    """Adds ``scale`` times the gradient of a sample's loss, whose derivatives in the logits are ``slopes``."""
    p = data.rows.shape[1]
    start = units.size * (p + 1)
    for c in range(slopes.size):
        first, slope = start + c * (units.size + 1), scale * slopes[c]
        for u in range(units.size):
            out[first + u] += slope * units[u]
        out[first + units.size] += slope
    for u in range(units.size):
        total = 0.0
        for c in range(slopes.size):
            total += slopes[c] * w[start + c * (units.size + 1) + u]
        slope, first = scale * total * (1.0 - units[u] * units[u]), u * (p + 1)
        for j in range(p):
            out[first + j] += slope * data.rows[row, j]
        out[first + p] += slope


@njit(cache=True, nogil=True)
def network(data, i, x, gen, exact, out):
    """Cross-entropy of a two-layer tanh network at weights ``w_0 + x``, w_0 in vectors."""
    rows, w = _pick(data, i, gen, exact), data.vectors[0] + x
    units, shares = np.empty(int(data.params[6])), np.empty(int(data.params[7]))
    for j in range(x.size):
        out[j] = data.params[5] * w[j]
    for k in range(rows.size):
        _through(data, rows[k], w, units, shares)
        shares[int(data.y[rows[k]])] -= 1.0
        _backwards(data, rows[k], w, units, shares, 1.0 / rows.size, out)
    _add_noise(data.params, gen, exact, out)


@njit(cache=True, nogil=True)
def network_value(data, i, x):
    """Mean loss plus ``lam/2 ||w||^2``."""
    rows, w, total = _own(data, i), data.vectors[0] + x, 0.0
    units, shares = np.empty(int(data.params[6])), np.empty(int(data.params[7]))
    for k in range(rows.size):
        total += _through(data, rows[k], w, units, shares)
    return total / rows.size + data.params[5] * (w * w).sum() / 2.0
