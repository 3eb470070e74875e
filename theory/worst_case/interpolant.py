"""A function of a class through given points, with given gradients and values there, that can be evaluated anywhere.

With ``h = g - mu x`` and ``v = f - mu/2 ||x||^2``, in a class of curvatures between mu and L the function

    f(x) = mu/2 ||x||^2 + min over lambda in the simplex of  sum_i lambda_i m_i + (L-mu)/2 ||x - sum_i lambda_i u_i||^2,
    u_i = x_i - h_i/(L-mu),  m_i = v_i - ||h_i||^2/(2 (L-mu)),

is the largest one: the convex hull of the parabolas that touch at the points, which is the Moreau envelope of a polyhedral function, hence
convex and (L-mu)-smooth, before mu/2 ||x||^2 is put back (Taylor, Hendrickx, Glineur 2017, Theorem 4).  Nonconvex smooth
functions have mu = -L.  Without a bound on curvature it is the largest of the affine minorants.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from verify_rates.solvers.method import UsageError
from verify_rates.solvers.words import Unsupported

ENVELOPES = ("smooth_strongly_convex", "smooth")
MAXIMA = ("convex", "strongly_convex", "convex_lipschitz")
# Weights below these are taken as zero, in turn, when the minimum is solved exactly on the others: an interior-point solver leaves some.
IDLE = (1e-10, 1e-8, 1e-6, 1e-4, 1e-2)


@dataclass(frozen=True)
class Interpolant:
    """A function of a class through given points.

    Attributes
    ----------
    x, g, f : (k, d), (k, d), (k,) the points, the gradients and the values there.
    mu, L : curvatures; ``L = inf`` where none bounds it.
    """

    x: np.ndarray
    g: np.ndarray
    f: np.ndarray
    mu: float
    L: float

    @cached_property
    def _shifted(self) -> tuple[np.ndarray, np.ndarray]:
        h = self.g - self.mu * self.x
        return h, self.f - self.mu / 2 * np.sum(self.x**2, axis=1)

    def both(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient at x (d,); a subgradient where there are several."""
        x = np.asarray(x, float)
        if x.shape != self.x.shape[1:]:
            raise UsageError(f"this function takes a point of shape {self.x.shape[1:]}, not {x.shape}.")
        if not np.isfinite(x).all():
            raise UsageError("a function is evaluated at finite points only.")
        h, v = self._shifted
        width = self.L - self.mu
        if width == 0:
            value, slope = v[0] + h[0] @ (x - self.x[0]), h[0]
        elif width == np.inf:
            heights = v + np.sum(h * (x - self.x), axis=1)
            k = int(np.argmax(heights))
            value, slope = heights[k], h[k]
        else:
            u, m = self.x - h / width, v - np.sum(h**2, axis=1) / (2 * width)
            weights = _least(u - x, m / width)
            slope = width * (x - weights @ u)
            value = weights @ m + slope @ slope / (2 * width)
        return float(value + self.mu / 2 * (x @ x)), slope + self.mu * x

    def __call__(self, x: np.ndarray) -> float:
        """The value at x (d,)."""
        return self.both(x)[0]

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """The gradient at x (d,)."""
        return self.both(x)[1]


def interpolant(functions: str, L: float, mu: float, x: np.ndarray, g: np.ndarray, f: np.ndarray) -> Interpolant:
    """The largest function of a class through the points; Unsupported for classes without such a formula.

    >>> made = interpolant("smooth_strongly_convex", 1.0, 0.0, np.array([[0.0], [2.0]]), np.array([[0.0], [1.0]]), np.array([0.0, 1.0]))
    >>> made(np.array([2.0])), bool(made(np.array([1.0])) <= 0.5)
    (1.0, True)
    """
    if functions in ENVELOPES:
        return Interpolant(x, g, f, -L if functions == "smooth" else mu, L)
    if functions in MAXIMA:
        return Interpolant(x, g, f, mu if functions == "strongly_convex" else 0.0, np.inf)
    raise Unsupported(f"a function of the class {functions!r} everywhere: evaluated points are known, a formula between them is not")


def _least(u: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Weights in the simplex that minimise ``m'w + ||u'w||^2/2``: an interior-point solve, faces near it solved exactly, and corners; the
    candidate with the smallest duality gap."""
    w = _solver(u, m)
    candidates = [w, *np.eye(len(m)), *(_on_face(u, m, w > idle) for idle in IDLE)]

    def duality_gap(w: np.ndarray) -> float:
        slopes = m + u @ (w @ u)
        return float(w @ slopes - slopes.min())

    return min(candidates, key=duality_gap)


def _on_face(u: np.ndarray, m: np.ndarray, used: np.ndarray) -> np.ndarray:
    """The minimum with these weights alone, of any sign, brought back to the simplex."""
    a, one = u[used], np.ones((int(used.sum()), 1))
    kkt = np.block([[a @ a.T, one], [one.T, np.zeros((1, 1))]])
    w = np.zeros_like(m)
    w[used] = np.linalg.lstsq(kkt, np.append(-m[used], 1.0), rcond=None)[0][:-1].clip(0.0)
    return w / w.sum() if w.sum() > 0 else np.eye(len(m))[int(np.argmax(used))]


def _solver(u: np.ndarray, m: np.ndarray) -> np.ndarray:
    import clarabel
    import scipy.sparse as sp

    k, d = u.shape
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    P = sp.block_diag([sp.csc_matrix((k, k)), sp.eye(d)], format="csc")
    A = sp.bmat([[np.ones((1, k)), None], [u.T, -sp.eye(d)], [-sp.eye(k), sp.csc_matrix((k, d))]], format="csc")
    rhs = np.concatenate([[1.0], np.zeros(d + k)])
    size = max(float(np.abs(m).max()), 1.0)
    found = clarabel.DefaultSolver(
        P / size, np.append(m / size, np.zeros(d)), A, rhs, [clarabel.ZeroConeT(1 + d), clarabel.NonnegativeConeT(k)], settings
    )
    w = np.maximum(np.array(found.solve().x)[:k], 0.0)
    return w / w.sum()
