"""Compiled gradients: ``grad(data, i, x, gen, exact, out)``, the gradient of worker i at x.

Gather the samples first, then three short passes: dot products, slopes of the losses, sums of rows.  Draws are in the order of the
vectorised code: the batch of a worker, or its additive noise coordinate by coordinate.
``params`` = (additive noise, batch, high, low, p, then what the family needs); see HEADER in base.py.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from verify_rates.solvers.engine.signatures import GRAD

LOGISTIC, SQUARES = 0.0, 1.0  # params[5]
RIDGE, BOUNDED = 0.0, 1.0  # params[6]; params[7] is lam


@njit(cache=True, nogil=True)
def _add_noise(params, gen, exact, out):
    if exact or params[0] == 0.0:
        return
    for j in range(out.size):
        if params[0] == 1.0:
            out[j] += params[2] * gen.standard_normal()
        else:
            out[j] += params[2] if gen.random() < params[4] else params[3]


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
    else:
        for k in range(size):
            z[k] = (z[k] - data.y[rows[k]]) / size


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


@njit(GRAD, cache=True, nogil=True)
def glm_dense(data, i, x, gen, exact, out):
    """Generalised linear model on dense rows."""
    rows = _pick(data, i, gen, exact)
    z = np.zeros(rows.size)
    for k in range(rows.size):
        row = data.rows[rows[k]]
        for j in range(x.size):
            z[k] += row[j] * x[j]
    _slopes(data, rows, z)
    _regularise(data.params, x, out)
    for k in range(rows.size):
        row = data.rows[rows[k]]
        for j in range(x.size):
            out[j] += z[k] * row[j]


@njit(GRAD, cache=True, nogil=True)
def glm_binary8(data, i, x, gen, exact, out):
    """The same on binary rows of at most 256 columns, stored as column numbers of one byte."""
    rows = _pick(data, i, gen, exact)
    z = np.zeros(rows.size)
    for k in range(rows.size):
        total = 0.0
        for e in range(data.indptr[rows[k]], data.indptr[rows[k] + 1]):
            total += x[data.cols8[e]]
        z[k] = total
    _slopes(data, rows, z)
    _regularise(data.params, x, out)
    for k in range(rows.size):
        for e in range(data.indptr[rows[k]], data.indptr[rows[k] + 1]):
            out[data.cols8[e]] += z[k]


@njit(GRAD, cache=True, nogil=True)
def glm_binary(data, i, x, gen, exact, out):
    """The same on binary rows with more columns."""
    rows = _pick(data, i, gen, exact)
    z = np.zeros(rows.size)
    for k in range(rows.size):
        total = 0.0
        for e in range(data.indptr[rows[k]], data.indptr[rows[k] + 1]):
            total += x[data.cols[e]]
        z[k] = total
    _slopes(data, rows, z)
    _regularise(data.params, x, out)
    for k in range(rows.size):
        for e in range(data.indptr[rows[k]], data.indptr[rows[k] + 1]):
            out[data.cols[e]] += z[k]


@njit(GRAD, cache=True, nogil=True)
def glm_sparse(data, i, x, gen, exact, out):
    """The same on sparse rows with values."""
    rows = _pick(data, i, gen, exact)
    z = np.zeros(rows.size)
    for k in range(rows.size):
        total = 0.0
        for e in range(data.indptr[rows[k]], data.indptr[rows[k] + 1]):
            total += data.vals[e] * x[data.cols[e]]
        z[k] = total
    _slopes(data, rows, z)
    _regularise(data.params, x, out)
    for k in range(rows.size):
        for e in range(data.indptr[rows[k]], data.indptr[rows[k] + 1]):
            out[data.cols[e]] += z[k] * data.vals[e]


@njit(GRAD, cache=True, nogil=True)
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


@njit(GRAD, cache=True, nogil=True)
def huber(data, i, x, gen, exact, out):
    """``curve clip(x - s_i, -c, c) + mu (x - s_i)``, s_i in vectors, (curve, c, mu) in params."""
    curve, c, mu = data.params[5], data.params[6], data.params[7]
    for j in range(x.size):
        r = x[j] - data.vectors[i, j]
        out[j] = curve * min(max(r, -c), c) + mu * r
    _add_noise(data.params, gen, exact, out)


@njit(GRAD, cache=True, nogil=True)
def one_minus_cos(data, i, x, gen, exact, out):
    """``slope sin(omega (x - s_i))``, s_i in vectors, (slope, omega) in params."""
    slope, omega = data.params[5], data.params[6]
    for j in range(x.size):
        out[j] = slope * math.sin(omega * (x[j] - data.vectors[i, j]))
    _add_noise(data.params, gen, exact, out)
