"""DeMo: reductions, the released rule by hand, and checks that notice a broken formula or method."""

import numpy as np
import pytest

from verify_rates.problems import get_problem
from verify_rates.solvers.chunks import dct_basis
from verify_rates.solvers.engine.run import simulate
from verify_rates.theory.calculators import demo

AGREE = 1e-12  # some hundred steps of a contracting recursion in double precision
PROBLEM = get_problem("quadratic", n=3, d=6, sigma2=0.1, zeta2_star=0.5)


def run(method, hyper, compressor="dct_topk(k=1, chunk=3)", problem=PROBLEM, steps=100):
    return simulate(method, problem, {"gamma": 0.05, **hyper}, steps=steps, compressor=compressor, engine="numpy").final


def test_nothing_compressed_is_sgd_or_local_momentum():
    a, b = run("demo", {"beta": 0.6}, "identity")["x"], run("gd", {"gamma": 0.05 * 0.4}, None)["x"]
    assert np.abs(a - b).max() < AGREE
    kept = run("demo", {"beta": 0.6, "alpha": 0.0}, "identity")["x"]
    momentum = run("heavy_ball", {"beta": 0.6, "gamma": 0.05 * 0.4}, None)["x"]
    assert np.abs(kept - momentum).max() < AGREE < np.abs(kept - a).max()


def test_no_momentum_is_compressed_gradient_descent():
    a, b = run("demo", {"beta": 0.0, "alpha": 0.0})["x"], run("cgd", {})["x"]
    assert np.abs(a - b).max() < AGREE


def test_the_matrix_of_one_row_is_a_normalised_step():
    exact = get_problem("quadratic", n=2, d=4)
    x = np.zeros(4)
    for _ in range(20):
        g = 0.5 * exact.grads(x).mean(axis=0)
        x = x - 0.05 * g / np.sqrt(g @ g + 1e-6)
    ours = run("demo_muon", {"beta": 0.5, "rows": 1}, "identity", exact, 20)["x"][0]
    assert np.abs(ours - x).max() < 1e-8  # M'M of rank one: its zero eigenvalues come with rounding over eps


def released(problem, gamma, beta, k, chunk, steps):
    """The released first version, entry by entry."""
    n, d = problem.n, problem.d
    x, m, B = np.zeros(d), np.zeros((n, d)), np.kron(np.eye(d // chunk), dct_basis(chunk))
    for _ in range(steps):
        m = beta * m + gamma * problem.grads(x)
        sums, counts = np.zeros(d), np.zeros(d)
        for i in range(n):
            coded = B @ m[i]
            for c in range(0, d, chunk):
                for j in sorted(range(c, c + chunk), key=lambda j: -abs(coded[j]))[:k]:
                    sums[j] += coded[j]
                    counts[j] += 1
                    m[i] = m[i] - coded[j] * B[j]
        x = x - gamma * np.sign(B.T @ (sums / np.maximum(counts, 1)))
    return x


def test_the_released_rule_is_an_average_over_the_senders():
    exact = get_problem("quadratic", n=3, d=6, zeta2_star=1.0)
    ours = run("demo_v1", {"beta": 0.9, "chunk": 3}, "block_topk(k=1, chunk=3)", exact, 30)["x"][0]
    assert np.abs(ours - released(exact, 0.05, 0.9, 1, 3, 30)).max() < AGREE
    assert np.abs(ours - run("demo_sign", {"beta": 0.9}, problem=exact, steps=30)["x"][0]).max() > AGREE


def test_bytes_are_those_of_the_message():
    """Counted with indices of 64 bits instead of the compressor's own."""
    from verify_rates.solvers.compressors import get_compressor

    made, d, chunk = get_compressor("dct_topk(k=2, chunk=64)"), 640, 64
    message = made.bits(d) / (32 + 6)  # numbers a message carries
    assert demo.bytes_sent(d, 2, 8) == message * 12 and chunk == 8**2


@pytest.mark.parametrize(
    ("name", "value", "call"),
    [
        ("SHARE", "2*k/s", lambda: demo.contraction(4, 1, True)),
        ("RESIDUAL", "(1-delta)*(1-beta)*G2/2/(1-(1-delta)*beta)", lambda: demo.residual_limit("1/2", "0")),
        ("TIGHT", "(1-delta)*(1-beta)**2*G2/(1-(1-delta)*beta)**2", lambda: demo.residual_limit("1/2", "1/2", "TIGHT")),
        ("LEAK", 0.999, lambda: demo.leak("quadratic", "topk(k=2)", 0.5, 0)),
        ("BYTES", 8, lambda: demo.table(318.45e6, 8, 7.49)),
        ("BYTES", 8, lambda: demo.first_crossing(32, 42)),
        ("DENSE_BYTES", 4, lambda: demo.crossover(32, 64, 43)),
        ("LIMIT_RTOL", 1e-3, lambda: demo.ef_limit("topk(k=2)", 1e-4)),
    ],
)
def test_broken_formulas_are_refuted(monkeypatch, name, value, call):
    def violated(f):
        return f.lower > f.bound if f.relation == "<=" else f.lower != pytest.approx(f.bound, rel=1e-12)

    assert not violated(call())
    monkeypatch.setattr(demo, name, value)
    assert violated(call())


def test_the_limits_need_what_they_say(monkeypatch):
    from verify_rates.theory.evidence import trace

    def half(name, problem, hyper, steps, **options):
        return trace(name, problem, {**hyper, "alpha": 0.5}, steps, **options)

    assert demo.limits("sgd").lower < 1e-13
    monkeypatch.setattr(demo, "trace", half)
    assert demo.limits("sgd").lower > 1e-3
