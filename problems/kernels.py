"""Compiled gradients: ``grad(data, i, x, gen, exact, out)``, the gradient of worker i at x.

Gather the samples first, then three short passes: dot products, slopes of the losses, sums of rows.  Draws are in the order of the
vectorised code: the batch of a worker, or its additive noise coordinate by coordinate.
``params`` = (additive noise, batch, high, low, p, then what the family needs); see HEADER in base.py.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from verify_rates.solvers.engine import signatures  # noqa: F401  it points Numba's cache at its folder, before any njit

LOGISTIC, SQUARES, SQUARED_HINGE = 0.0, 1.0, 2.0  # params[5]
RIDGE, BOUNDED = 0.0, 1.0  # params[6]; params[7] is lam


@njit(cache=True, nogil=True)
def _add_noise(params, gen, exact, out):
    if exact or params[0] == 0.0:
        return
    for j in range(out.size):
        if params[0] == 1.0:
            out[j] += params[2] * gen.standard_normal()
        elif params[0] == 2.0:
            out[j] += params[2] if gen.random() < params[4] else params[3]
        elif params[0] == 3.0:
            out[j] += params[2] * gen.standard_t(params[3])
        else:
            u = gen.random()
            out[j] += -params[2] * (1 - 2 * u) ** (-1 / params[3]) if u < 0.5 else params[2] * (2 - 2 * u) ** (-1 / params[3])


@njit(cache=True, nogil=True)
def _pick(data, i, gen, exact):
    first = data.offsets[i]
    m = data.offsets[i + 1] - first
    batch = int(data.params[1])
    if exact or batch == 0:
        return np.arange(first, first + m)
    rows = np.empty(batch, np.int64)
    for k in range(batch):
        rows[k] = first + int(gen.random() * m)
    return rows


@njit(cache=True, nogil=True)
def _slopes(data, rows, z):
    """Overwrites ``z_k = a_k' x`` by the derivative of the loss in z, over the number of rows."""
    size = rows.size
    if data.params[5] == LOGISTIC:
        for k in range(size):
            y = data.y[rows[k]]
            z[k] = -y / (1.0 + math.exp(min(y * z[k], 700.0))) / size
    elif data.params[5] == SQUARES:
        for k in range(size):
            z[k] = (z[k] - data.y[rows[k]]) / size
    else:
        for k in range(size):
            y = data.y[rows[k]]
            z[k] = -y * max(1.0 - y * z[k], 0.0) / size


@njit(cache=True, nogil=True)
def _regularise(params, x, out):
    """The gradient of the regulariser, which the sums of rows are then added to."""
    lam = params[7]
    if params[6] == RIDGE:
        for j in range(x.size):
            out[j] = lam * x[j]
    else:
        for j in range(x.size):
            out[j] = 2.0 * lam * x[j] / (1.0 + x[j] * x[j]) ** 2


@njit(cache=True, nogil=True)
def _own(data, i):
    return np.arange(data.offsets[i], data.offsets[i + 1])


@njit(cache=True, nogil=True)
def _value(data, rows, z, x):
    """Mean loss at the margins z plus the regulariser."""
    total = 0.0
    for k in range(rows.size):
        y = data.y[rows[k]]
        if data.params[5] == LOGISTIC:
            total += max(-y * z[k], 0.0) + math.log1p(math.exp(-abs(z[k])))
        elif data.params[5] == SQUARES:
            total += (z[k] - y) ** 2 / 2.0
        else:
            total += max(1.0 - y * z[k], 0.0) ** 2 / 2.0
    penalty = 0.0
    for j in range(x.size):
        square = x[j] * x[j]
        penalty += square / 2.0 if data.params[6] == RIDGE else square / (1.0 + square)
    return total / rows.size + data.params[7] * penalty


@njit(cache=True, nogil=True)
def _dense_dots(samples, rows, x):
    z = np.empty(rows.size)
    for k in range(rows.size):
        row, total = samples[rows[k]], 0.0
        for j in range(x.size):
            total += row[j] * x[j]
        z[k] = total
    return z


@njit(cache=True, nogil=True)
def _sparse_dots(indptr, cols, vals, rows, x):
    z = np.empty(rows.size)
    for k in range(rows.size):
        total = 0.0
        if vals.size == 0:
            for e in range(indptr[rows[k]], indptr[rows[k] + 1]):
                total += x[cols[e]]
        else:
            for e in range(indptr[rows[k]], indptr[rows[k] + 1]):
                total += vals[e] * x[cols[e]]
        z[k] = total
    return z


@njit(cache=True, nogil=True)
def _sparse_sums(indptr, cols, vals, rows, z, out):
    for k in range(rows.size):
        if vals.size == 0:
            for e in range(indptr[rows[k]], indptr[rows[k] + 1]):
                out[cols[e]] += z[k]
        else:
            for e in range(indptr[rows[k]], indptr[rows[k] + 1]):
                out[cols[e]] += z[k] * vals[e]


@njit(cache=True, nogil=True)
def glm_dense(data, i, x, gen, exact, out):
    """Generalised linear model on dense rows."""
    rows = _pick(data, i, gen, exact)
    z = _dense_dots(data.rows, rows, x)
    _slopes(data, rows, z)
    _regularise(data.params, x, out)
    for k in range(rows.size):
        row = data.rows[rows[k]]
        for j in range(x.size):
            out[j] += z[k] * row[j]
    _add_noise(data.params, gen, exact, out)


@njit(cache=True, nogil=True)
def glm_binary8(data, i, x, gen, exact, out):
    """The same on binary rows of at most 256 columns, stored as column numbers of one byte."""
    rows = _pick(data, i, gen, exact)
    z = _sparse_dots(data.indptr, data.cols8, data.vals, rows, x)
    _slopes(data, rows, z)
    _regularise(data.params, x, out)
    _sparse_sums(data.indptr, data.cols8, data.vals, rows, z, out)
    _add_noise(data.params, gen, exact, out)


@njit(cache=True, nogil=True)
def glm_sparse(data, i, x, gen, exact, out):
    """The same on sparse rows; without values every entry is 1."""
    rows = _pick(data, i, gen, exact)
    z = _sparse_dots(data.indptr, data.cols, data.vals, rows, x)
    _slopes(data, rows, z)
    _regularise(data.params, x, out)
    _sparse_sums(data.indptr, data.cols, data.vals, rows, z, out)
    _add_noise(data.params, gen, exact, out)


@njit(cache=True, nogil=True)
def glm_dense_value(data, i, x):
    """``f_i(x)`` of :func:`glm_dense`."""
    rows = _own(data, i)
    return _value(data, rows, _dense_dots(data.rows, rows, x), x)


@njit(cache=True, nogil=True)
def glm_binary8_value(data, i, x):
    """``f_i(x)`` of :func:`glm_binary8`."""
    rows = _own(data, i)
    return _value(data, rows, _sparse_dots(data.indptr, data.cols8, data.vals, rows, x), x)


@njit(cache=True, nogil=True)
def glm_sparse_value(data, i, x):
    """``f_i(x)`` of :func:`glm_sparse`."""
    rows = _own(data, i)
    return _value(data, rows, _sparse_dots(data.indptr, data.cols, data.vals, rows, x), x)


@njit(cache=True, nogil=True)
def quadratic(data, i, x, gen, exact, out):
    """``H_i (x - c) + u_i`` with H_i in tensors (one for all where there is one), c in rows[0], u_i in vectors."""
    H = data.tensors[i if data.tensors.shape[0] > 1 else 0]
    y = x - data.rows[0]
    for j in range(x.size):
        total = 0.0
        for k in range(x.size):
            total += H[j, k] * y[k]
        out[j] = total + data.vectors[i, j]
    _add_noise(data.params, gen, exact, out)


@njit(cache=True, nogil=True)
def quadratic_value(data, i, x):
    """``y' H_i y / 2 + u_i' y`` with ``y = x - c``."""
    H = data.tensors[i if data.tensors.shape[0] > 1 else 0]
    y = x - data.rows[0]
    total = 0.0
    for j in range(x.size):
        line = 0.0
        for k in range(x.size):
            line += H[j, k] * y[k]
        total += y[j] * (line / 2.0 + data.vectors[i, j])
    return total


@njit(cache=True, nogil=True)
def huber(data, i, x, gen, exact, out):
    """``curve clip(x - s_i, -c, c) + mu (x - s_i)``, s_i in vectors, (curve, c, mu) in params."""
    curve, c, mu = data.params[5], data.params[6], data.params[7]
    for j in range(x.size):
        r = x[j] - data.vectors[i, j]
        out[j] = curve * min(max(r, -c), c) + mu * r
    _add_noise(data.params, gen, exact, out)


@njit(cache=True, nogil=True)
def huber_value(data, i, x):
    """``curve h_c(x - s_i) + mu/2 (x - s_i)^2``, summed over the coordinates."""
    curve, c, mu = data.params[5], data.params[6], data.params[7]
    total = 0.0
    for j in range(x.size):
        r = abs(x[j] - data.vectors[i, j])
        inner = min(r, c)
        total += curve * inner * (r - inner / 2.0) + mu * r * r / 2.0
    return total


@njit(cache=True, nogil=True)
def one_minus_cos(data, i, x, gen, exact, out):
    """``slope sin(omega (x - s_i))``, s_i in vectors, (slope, omega) in params."""
    slope, omega = data.params[5], data.params[6]
    for j in range(x.size):
        out[j] = slope * math.sin(omega * (x[j] - data.vectors[i, j]))
    _add_noise(data.params, gen, exact, out)


@njit(cache=True, nogil=True)
def one_minus_cos_value(data, i, x):
    """``slope/omega (1 - cos(omega (x - s_i)))``, summed over the coordinates."""
    slope, omega = data.params[5], data.params[6]
    total = 0.0
    for j in range(x.size):
        total += math.sin(omega * (x[j] - data.vectors[i, j]) / 2.0) ** 2
    return 2.0 * slope / omega * total


@njit(cache=True, nogil=True)
def _primal_point(data, x):
    """``A'a/(lam N)``; params holds (lam, workers)."""
    w = np.zeros(data.rows.shape[1])
    for k in range(x.size):
        for j in range(w.size):
            w[j] += x[k] * data.rows[k, j]
    return w / (data.params[5] * x.size)


@njit(cache=True, nogil=True)
def ridge_dual(data, i, x, gen, exact, out):
    """``A w(a)/N``, plus ``(n/N) (a - y)`` at the worker's samples."""
    w, N = _primal_point(data, x), x.size
    for k in range(N):
        total = 0.0
        for j in range(w.size):
            total += data.rows[k, j] * w[j]
        out[k] = total / N
    for k in range(data.offsets[i], data.offsets[i + 1]):
        out[k] += data.params[6] / N * (x[k] - data.y[k])
    _add_noise(data.params, gen, exact, out)


@njit(cache=True, nogil=True)
def ridge_dual_value(data, i, x):
    """``lam/2 ||w(a)||^2 + (n/N) sum (a_k^2/2 - a_k y_k)`` over the worker's samples."""
    w, total = _primal_point(data, x), 0.0
    for k in range(data.offsets[i], data.offsets[i + 1]):
        total += x[k] * (x[k] / 2.0 - data.y[k])
    return data.params[5] * (w * w).sum() / 2.0 + data.params[6] / x.size * total
