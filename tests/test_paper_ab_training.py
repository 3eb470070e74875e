"""AB-Training: the protocol's reductions, and checks that notice a broken formula."""

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from verify_rates.solvers.method import UsageError
from verify_rates.theory.calculators import ab_training as calculator

AGREE = 1e-12  # some dozen contracting steps in double precision
RNG = np.random.default_rng(0)
TARGETS = RNG.normal(size=(4, 5, 3))
GRADS = [lambda W, T=T: W - T for T in TARGETS]
START = RNG.normal(size=(5, 3))


def test_full_steps_alone_are_gradient_descent_whatever_the_synchronisation():
    W = START
    for _ in range(7 + 2 * 5):
        W = W - 0.1 * (W - TARGETS.mean(axis=0))
    for mode in calculator.MODES:
        ours, ranks = calculator.train(mode, GRADS, START, 0.1, 7, 5, 5, 2, 0.0)
        assert np.abs(ours - W).max() < AGREE and ranks == [3, 3]


def test_the_modes_differ_as_the_claims_say():
    """One period without full steps: full is half of only_learned to first order, with_stale lies between."""
    (full, _), (stale, _), (learned, _) = (calculator.train(m, GRADS, START, 1e-4, 0, 1, 0, 1, 0.0) for m in calculator.MODES)
    assert np.abs(2 * (full - START) - (learned - START)).max() < 1e-6 < np.abs(full - START).max()
    assert 0 < np.abs(stale - full).max() < 1e-6


def test_the_rank_is_cut_from_the_second_period_on():
    W, ranks = calculator.train("full", GRADS, START, 0.01, 0, 4, 1, 3, 0.6)
    assert ranks[0] == 3 > ranks[1] and np.isfinite(W).all()


def test_an_unknown_mode_is_refused():
    with pytest.raises(UsageError, match="did you mean 'with_stale'"):
        calculator.synchronised("with_stal", [1], [1], 1)


@pytest.mark.parametrize(
    ("name", "value", "call"),
    [
        ("STALE_SHARE", sp.Rational(1, 2), lambda: calculator.identity("with_stale", 4)),
        ("LEARNED", sp.Rational(1, 2), lambda: calculator.identity("only_learned", 4)),
        ("TRAFFIC", "p + (1-p)*rho", lambda: calculator.traffic(64, 64, 1, 10, 2)),
        ("REPORTED", Fraction(1, 2), lambda: calculator.implied_rank("0.2", "0.12")),
        ("synchronised", lambda mode, As, Bs, half: As[0] * Bs[-1], lambda: calculator.identity("full", 2)),
        ("cut", lambda s, cutoff: 1, lambda: calculator.truncation(0, 0.05)),
        ("_split", lambda W: (W, np.eye(W.shape[1])), lambda: calculator.preconditioned(0, 3, 3)),
    ],
)
def test_broken_formulas_are_refuted(monkeypatch, name, value, call):
    assert call().lower <= call().bound
    monkeypatch.setattr(calculator, name, value)
    assert call().lower > call().bound
