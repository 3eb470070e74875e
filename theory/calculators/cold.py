"""COLD-like innovation compression: NIDS, the one-bit quantiser with a shrinking scale, exact rates on quadratics, an LMI rate, bits."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from verify_rates.theory.evidence import Found, relative, trace

STEPS = 80
ROUNDS = 300
SIZE = dict(n=8, d=20)  # the ring and the dimension of the paper's file
HALF = Fraction(1, 2)  # largest error of the one-bit quantiser on [-1, 1]
NO_OVERLOAD = "(c - 1/2)*s"  # cold.3, the largest move of y in a step at scale s that shrinks by the factor c
TOP_K = "k*(32 + ceiling(log(d)/log(2)))"  # cold.5
TOTAL = "log(1/eps)/log(1/rho)"
MARGIN = 1e-9  # of an LMI after normalising: far above the rounding of 5 x 5 matrices with entries of order 1
BISECTED = 1e-4  # width at which the bisection of the LMI rate stops; its upper end is the rate
SMALLEST = 1e-16  # of V against its start: below, x - x* is rounding
FOLLOWED = 40  # steps of a random start
EIGEN_RTOL = 1e-7  # a double eigenvalue moves by the root of the rounding, about 2e-8
MACHINE = 1e-24  # of squared distances: 1e-12 in distances, against x* which is known to about 1e-14
LONG = 300.0  # steps of a reference run times eta
SPECTRUM_DIGITS = 12  # to which eigenvalues of W are told apart


def nids_recurrence(problem: str, topology: str, gamma: float) -> Found:
    """cold.2: without compression and at eta = 1/2 the models follow NIDS' recurrence; ``nids`` is run beside it."""
    from verify_rates.solvers.topologies import get_topology

    made, states, gradients = trace("cold", problem, {"gamma": gamma, "eta": 0.5}, STEPS, compressor="identity", topology=topology)
    _, plain, _ = trace("nids", problem, {"gamma": gamma}, STEPS, topology=topology)
    W, x, g = get_topology(topology, made.n).W, [s.x for s in states], [seen[0] for seen in gradients]
    half = (np.eye(made.n) + W) / 2
    off = [x[t + 2] - half @ (2 * x[t + 1] - x[t] - gamma * (g[t + 1] - g[t])) for t in range(STEPS - 1)]
    off += [a - b.x for a, b in zip(x, plain, strict=True)]
    return Found.identity(relative(off, x))


# --- cold.3: the one-bit quantiser with a shrinking scale --------------------------------------------------------------


def one_bit(u: Any) -> Any:
    """+1/2 where u >= 0, else -1/2."""
    return HALF if u >= 0 else -HALF


def no_overload(xi: tuple[int, int]) -> Found:
    """cold.3 on one entry, in fractions: whatever u = (y-v)/s in [-1, 1], a move of y by at most (xi-1/2)s keeps it there.

    The next u is ``(u - C(u) + move)/xi``, piecewise linear in (u, move), so that the vertices of its pieces decide; the left limit at
    0 is a vertex too.  ``beyond`` is a move that is larger by a millionth, which leaves [-1, 1].
    """
    from verify_rates.theory.symbols import exact

    factor = Fraction(*xi)
    most = exact(NO_OVERLOAD, {"c": factor, "s": 1})
    pieces = [(Fraction(1), HALF), (Fraction(0), HALF), (Fraction(0), -HALF), (Fraction(-1), -HALF)]
    reached = max(abs((u - sent + sign * most) / factor) for u, sent in pieces for sign in (1, -1))
    beyond = max(abs((u - sent + sign * (most + Fraction(1, 10**6))) / factor) for u, sent in pieces for sign in (1, -1))
    wrong = (reached != 1) + (beyond <= 1) + any(one_bit(u) not in (HALF, -HALF) for u, _ in pieces)
    return Found.count(wrong, 3, proves=True)


def dynamic_run(eta: float, xi: float, scale: float, steps: int, seed: int) -> tuple[Any, list[Any], list[float], list[float]]:
    """``(problem, states, max|u| of every step, max|y_{k+1} - y_k|/s_k)`` of Dyna-COLD with one bit on a ring."""
    from verify_rates.problems import get_problem
    from verify_rates.solvers.engine.arrays import ArrayWorld, state_of, world_of
    from verify_rates.solvers.engine.run import make_plan

    class OneBit(ArrayWorld):
        def compress(self, v):
            inputs.append(v)
            return np.where(v >= 0, 0.5, -0.5)

    problem = get_problem("quadratic", **SIZE, L=1.0, mu=0.1, common=False, zeta2_star=1.0, seed=seed)
    hyper = {"gamma": 1.0, "eta": eta, "s": [scale * xi**t for t in range(steps)]}
    plan = make_plan("cold", problem, hyper, steps, compressor="identity", topology="ring")
    world = world_of(plan, (seed, 0))
    inputs: list[np.ndarray] = []
    world.__class__ = OneBit
    states, ys = [state_of(plan, plan.start())], []
    for t in range(steps):
        world.t = t
        states.append(plan.method.step(states[-1], world, plan.hyper(t), t))
        ys.append(states[-2].v + plan.hyper(t).s * inputs[-1])
    moves = [float(np.max(np.abs(b - a))) / (scale * xi**t) for t, (a, b) in enumerate(itertools.pairwise(ys))]
    return problem, states, [float(np.max(np.abs(u))) for u in inputs], moves


def dynamic_rate(eta: float, xi: float, scale: float, seed: int, overload: bool) -> Found:
    """cold.3, runs: the distance to x* falls to the order of the scale, and u stays in [-1, 1] where it should."""
    steps = math.ceil(math.log(1e-7) / math.log(xi))
    problem, states, inputs, moves = dynamic_run(eta, xi, scale, steps, seed)
    away = float(np.max(np.abs(states[-1].x - problem.constants.x_star))) / (scale * xi**steps)
    wrong = (away > 10) + (not overload and max(inputs) > 1)
    meets = [u <= 1 and move <= xi - 0.5 for u, move in zip(inputs, moves, strict=False)]
    wrong += sum(met and later > 1 for met, later in zip(meets, inputs[1:], strict=False))
    message = f"max|u| = {max(inputs):.3g}, last distance over scale {away:.3g}, condition met in {sum(meets)} of {len(meets)} steps"
    return Found(float(wrong), float(wrong), 0.0, message=message)


# --- cold.4: rates ------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=32)
def _quadratic(n: int, d: int, common: bool, seed: int) -> Any:
    from verify_rates.problems import get_problem

    return get_problem("quadratic", n=n, d=d, L=1.0, mu=0.2, common=common, zeta2_star=1.0, seed=seed)


class Affine:
    """One step of ``cold`` on quadratics as ``z -> A z + b`` on z = (x, v, e) with mean e = 0, ``compress`` any linear map."""

    def __init__(self, problem: Any, topology: str, gamma: float, eta: float) -> None:
        from verify_rates.solvers.engine.arrays import ArrayWorld, world_of
        from verify_rates.solvers.engine.run import make_plan

        class Linear(ArrayWorld):
            def compress(self, v):
                return v * affine.mask

        affine, self.problem = self, problem
        self.mask: Any = 1.0
        self.plan = make_plan("cold", problem, {"gamma": gamma, "eta": eta}, 1, compressor="identity", topology=topology)
        self.world = world_of(self.plan, (0, 0))
        self.world.__class__ = Linear
        n, d = problem.n, problem.d
        centred = np.kron(np.linalg.svd(np.eye(n) - 1.0 / n)[0][:, : n - 1], np.eye(d))
        self.basis = np.block([[np.eye(2 * n * d), np.zeros((2 * n * d, n * d - d))], [np.zeros((n * d, 2 * n * d)), centred]])

    def step(self, z: np.ndarray) -> np.ndarray:
        """The step function itself."""
        state = self.plan.method.state(*(self.basis @ z).reshape(3, self.problem.n, self.problem.d))
        made = self.plan.method.step(state, self.world, self.plan.hyper(0), 0)
        return self.basis.T @ np.concatenate([np.ravel(v) for v in made])

    def matrices(self) -> tuple[np.ndarray, np.ndarray]:
        size = self.basis.shape[1]
        b = self.step(np.zeros(size))
        return np.stack([self.step(row) - b for row in np.eye(size)], axis=1), b


def spectral_rate(common: bool, gamma: float, eta: float, topology: str, seed: int) -> Found:
    """cold.4 without compression: the spectral radius of the matrix of (x, v, e) is the rate.

    The step function, followed from a random start, has to be ``z -> A z + b``; with a common Hessian the largest radius over the modes
    of the symbolic reading has to be that of A.
    """
    from verify_rates.solvers.topologies import get_topology
    from verify_rates.theory.quadratic import quadratic

    problem = _quadratic(4, 3, common, seed)
    affine = Affine(problem, topology, gamma, eta)
    A, b = affine.matrices()
    fixed, start = np.linalg.solve(np.eye(len(A)) - A, b), np.random.default_rng(seed).normal(size=len(A))
    z, off = fixed + start, []
    for t in range(1, FOLLOWED + 1):
        z = affine.step(z)
        off.append(z - fixed - np.linalg.matrix_power(A, t) @ start)
    residual, rate = relative(off, [fixed, start]), float(np.max(np.abs(np.linalg.eigvals(A))))
    if common:
        reading = quadratic("cold", {"gamma": gamma, "eta": eta})
        spectrum, W = problem.modes(np.zeros(problem.d))[0], get_topology(topology, problem.n)
        dev = [reading.spectral_radius(float(lam), "dev", lam_W=float(w)) for lam in spectrum for w in W.spectrum[:-1]]
        modes = max([*dev, *(abs(1 - gamma * float(lam)) for lam in spectrum)])  # on the mean e is 0
        residual = max(residual, abs(modes - rate))
    return Found(residual, residual, EIGEN_RTOL, message=f"rate {rate:.8f}, residual {residual:.1e}")


def second_moments(k: int, gamma: float, eta: float, seed: int) -> Found:
    """cold.4 with rand-k: the second-moment operator against the step function over all draws of four steps."""
    problem = _quadratic(2, 2, False, seed)
    affine = Affine(problem, "complete", gamma, eta)
    masks = [np.array(m, float).reshape(2, 2) for m in itertools.product((0, 1), repeat=4) if sum(m[:2]) == sum(m[2:]) == k]
    affine.mask = 1.0
    A, b = affine.matrices()
    fixed = np.linalg.solve(np.eye(len(A)) - A, b)  # of every mask: there y = v, and nothing is sent
    start = np.random.default_rng(seed).normal(size=len(A))
    operator = np.zeros((len(A) ** 2, len(A) ** 2))
    for affine.mask in masks:
        made = affine.matrices()[0]
        operator = operator + np.kron(made, made) / len(masks)
    total, depth = 0.0, 4
    for chosen in itertools.product(masks, repeat=depth):
        z = fixed + start
        for affine.mask in chosen:
            z = affine.step(z)
        total += float(np.sum((z - fixed) ** 2)) / len(masks) ** depth
    said = float(np.trace((np.linalg.matrix_power(operator, depth) @ np.kron(start, start)).reshape(len(A), -1)))
    rate = float(np.max(np.abs(np.linalg.eigvals(operator))))
    return Found.identity(abs(said - total) / total, f"squared distances shrink by {rate:.6f} a step")


def lmi_rate(spectrum: tuple[float, ...], mu: float, L: float, q: float, gamma: float, eta: float) -> tuple[float, dict[float, np.ndarray]]:
    """cold.4 with a contractive compressor: ``(rho, P by eigenvalue of W)`` such that ``V = sum_w z_w' P_w z_w`` shrinks by rho a step.

    On an eigenvector of W with eigenvalue w the step is linear in z = (x, v, e), in the gradient g and in the error r of the message, all
    less their values at the fixed point.  Two inequalities hold summed over the eigenvectors: ``q|y-v|^2 >= |r|^2`` and
    ``(g - mu x)(L x - g) >= 0``.  For a given rho the smallest margin of the matrix inequalities is maximised and then computed anew
    from the solution, so that an inaccurate solve cannot pass.
    """
    import cvxpy as cp

    rho, margin, taus = cp.Parameter(nonneg=True), cp.Variable(), cp.Variable(2, nonneg=True)
    blocks: dict[float, Any] = {}
    size: Any = 0.0
    constraints: list[Any] = [margin <= 1]
    for w in spectrum:
        to, keep, first, second = _mode(w, mu, L, q, gamma, eta)
        P = cp.Variable((len(keep), len(keep)), symmetric=True)
        blocks[w] = (P, to, keep, first, second)
        size = size + cp.trace(P)
        inequality = to.T @ P @ to - rho * (keep.T @ P @ keep) + taus[0] * first + taus[1] * second
        constraints += [inequality << -margin * np.eye(len(first)), P >> margin * np.eye(len(keep))]
    problem = cp.Problem(cp.Maximize(margin), [*constraints, size == len(spectrum)])

    def margin_at(value: float) -> float:
        rho.value = value
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an inaccurate solve shows in the margin below
                problem.solve(solver=cp.CLARABEL)
        except cp.SolverError:
            return -math.inf
        weights: Any = taus.value
        if weights is None or min(weights) < 0:
            return -math.inf
        found = []
        for P, to, keep, first, second in blocks.values():
            left = to.T @ P.value @ to - value * keep.T @ P.value @ keep + weights[0] * first + weights[1] * second
            found += [-np.linalg.eigvalsh(left)[-1], np.linalg.eigvalsh(P.value)[0]]
        return float(min(found))

    low, high = (1 - gamma * mu) ** 2, 1.0
    if margin_at(high) <= MARGIN:
        return math.inf, {}
    best = {w: blocks[w][0].value for w in spectrum}
    while high - low > BISECTED:
        middle = (low + high) / 2
        if margin_at(middle) > MARGIN:
            high, best = middle, {w: blocks[w][0].value for w in spectrum}
        else:
            low = middle
    return high, best


def _mode(w: float, mu: float, L: float, q: float, gamma: float, eta: float) -> tuple[np.ndarray, ...]:
    """On one eigenvector: ``(next state, state, multiplier of the message, of the gradient)`` in (x, v, e, g, r); no e at w = 1."""
    x, v, e, g, r = np.eye(5)
    y = x - gamma * g - e
    p = eta * (1 - w) * (y + r)
    to, keep = np.stack([y - p, y + r, e + p]), np.stack([x, v, e])
    first = q * np.outer(y - v, y - v) - np.outer(r, r)
    second = np.outer(g - mu * x, L * x - g)
    second = (second + second.T) / 2
    if w < 1:
        return to, keep, first, second
    cut = [0, 1, 3, 4]
    return to[:2, cut], keep[:2, cut], first[np.ix_(cut, cut)], second[np.ix_(cut, cut)]


def lyapunov_rate(k: int, d: int, n: int, topology: str, gamma: float, eta: float, seed: int) -> Found:
    """cold.4: the largest ratio of the LMI's Lyapunov function between two steps of a run with top-k, against the LMI's rate."""
    from verify_rates.solvers.engine.arrays import state_of, world_of
    from verify_rates.solvers.engine.run import make_plan
    from verify_rates.solvers.topologies import get_topology

    problem, W = _quadratic(n, d, False, seed), get_topology(topology, n)
    rho, P = _lmi(tuple(sorted({round(float(w), SPECTRUM_DIGITS) for w in W.spectrum})), 0.2, 1.0, 1 - k / d, gamma, eta)
    if not P:
        return Found(math.nan, math.nan, 1.0, message="the matrix inequality has no solution")
    values, U = np.linalg.eigh(W.W)
    nearest = [min(P, key=lambda w: abs(w - value)) for value in values]
    star = np.broadcast_to(problem.constants.x_star, (n, d))
    rest = np.stack([star, star, -gamma * problem.grads(star)])
    plan = make_plan("cold", problem, {"gamma": gamma, "eta": eta}, ROUNDS, compressor=f"topk(k={k})", topology=topology)
    world, state, along = world_of(plan, (seed, 0)), state_of(plan, plan.start()), []
    for t in range(ROUNDS + 1):
        modes = np.einsum("ji,fjd->ifd", U, np.stack(state) - rest)
        along.append(sum(float(np.sum(z[: len(P[w])] * (P[w] @ z[: len(P[w])]))) for z, w in zip(modes, nearest, strict=True)))
        state = plan.method.step(state, world, plan.hyper(t), t)
    ratios = [b / a for a, b in itertools.pairwise(along) if b > SMALLEST * along[0]]
    measured = max(ratios)
    mean = (along[len(ratios)] / along[0]) ** (1 / len(ratios))
    return Found(measured, measured, rho, message=f"LMI {rho:.6f}, largest ratio {measured:.6f}, mean {mean:.6f}")


@lru_cache(maxsize=32)
def _lmi(*given: Any) -> tuple[float, dict[float, np.ndarray]]:
    return lmi_rate(*given)


# --- cold.5 -------------------------------------------------------------------------------------------------------------


def bits(d: int, k: int, topology: str) -> Found:
    """cold.5: bits that an agent sends a step, from the step function and the compressor, against deg times the formula."""
    from verify_rates.solvers.topologies import get_topology
    from verify_rates.theory.symbols import number
    from verify_rates.theory.traffic import traffic

    measured = traffic("cold", d=d, n=8, compressor=f"topk(k={k})", topology=topology).up_per_step
    assert measured is not None
    said = float(get_topology(topology, 8).degrees.mean()) * number(TOP_K, {"k": k, "d": d})
    return Found(measured, measured, said, "==", proves=True, message=f"{measured:.10g} bits")


def total_bits(rate: tuple[int, int], eps: tuple[int, int], whole: bool) -> Found:
    """cold.5: messages until rate^N <= eps, counted in fractions, against the formula (``whole``: rounded up)."""
    from verify_rates.theory.symbols import number

    factor, target, count, reached = Fraction(*rate), Fraction(*eps), 0, Fraction(1)
    while reached > target:
        count, reached = count + 1, reached * factor
    said = number(f"ceiling({TOTAL})" if whole else TOTAL, {"eps": target, "rho": factor})
    return Found(count, count, said, "==", proves=True, message=f"{count} messages, the formula says {said:.6g}")


# --- reference numbers --------------------------------------------------------------------------------------------------


def reference(k: int, eta: float, seed: int) -> Found:
    """Top-k on the ring with gamma = 1/L: the squared distance to x* falls linearly to rounding, in windows that each shrink it."""
    from verify_rates.solvers.engine.run import simulate

    problem, steps = _quadratic(*SIZE.values(), False, seed), math.ceil(LONG / eta)
    options: dict[str, Any] = {"compressor": f"topk(k={k})", "topology": "ring", "every": steps // 10, "engine": "numpy"}
    run = simulate("cold", problem, {"gamma": 1.0, "eta": eta}, steps=steps, measures=("distance", "consensus_error"), **options)
    total = run.values["distance"][0] + run.values["consensus_error"][0]
    spread = total / total[0]
    rate = (float(spread[4]) / float(spread[1])) ** (1 / (run.steps[4] - run.steps[1]))
    reached = float(spread[-1])
    return Found(reached, reached, MACHINE, message=f"distance^2 falls to {reached:.1e} of its start, by {rate:.4f} a step")
