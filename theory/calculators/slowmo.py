"""SlowMo, and the recursions of outer momentum that it shares with CO2."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import sympy as sp

from verify_rates.theory.calculators.lines import function
from verify_rates.theory.evidence import Found
from verify_rates.theory.papers.slowmo import LOOKAHEAD, THEOREM
from verify_rates.theory.symbols import holds, parse, parse_condition

PLAIN = "(2*F0 + sigma2*L)/sqrt(n*N)"  # slowmo.4: plain SGD

# The round on one eigenvector, in u for z: c = alpha*kappa/penalty, kappa = 1-(1-gamma*lam)^H.
RECURSION = {"slowmo": "u**2 - (1+beta-c)*u + beta", "co2": "u**2 - (1+beta)*u + (beta+c)"}
STABLE = {"slowmo": "0 < c and c < 2*(1+beta)", "co2": "0 < c and c < 1-beta"}

MOMENTA = tuple(Fraction(k, 10) for k in (0, 3, 5, 9))
STRENGTHS = tuple(Fraction(k, 10) for k in (-1, 0, 1, 3, 5, 6, 7, 9, 10, 11, 19, 20, 21, 25, 26, 27, 30, 37, 38, 39))


def special_case(text: str, said: str, values: Mapping[str, int]) -> Found:
    """A bound with some letters fixed is another one (slowmo.3, slowmo.4)."""
    formula = {"THEOREM": THEOREM, "LOOKAHEAD": LOOKAHEAD, "PLAIN": PLAIN}
    left, right = (parse(formula[t]) for t in (text, said))
    fixed = {s: values[s.name] for s in left.free_symbols | right.free_symbols if s.name in values}
    return Found.count(int(sp.simplify(left.subs(fixed) - right.subs(fixed)) != 0), 1, proves=True)


def power() -> Found:
    """slowmo.5: with ``gamma_eff = sqrt(n/N)``, ``gamma_eff*L*b <= 1`` says ``N >= n*L^2*b^2``, b the bracket."""
    n, N, L, b = sp.symbols("n N L b", positive=True)
    squared = (sp.sqrt(n / N) * L * b) ** 2 * N
    return Found.count(int(sp.simplify(squared - n * L**2 * b**2) != 0), 1, proves=True)


def round_polynomial(method: str, hyper: Mapping[str, Any]) -> sp.Expr:
    """Characteristic polynomial of a round of the step function, in u, without its roots at 0, leading coefficient 1."""
    from verify_rates.theory.quadratic import quadratic

    u = sp.Symbol("u")
    letters = {"alpha": sp.Symbol("alpha"), "beta": sp.Symbol("beta")}
    made = sp.Poly(quadratic(method, {**letters, **hyper}).characteristic(z=u), u)
    while made.eval(0) == 0:
        made = sp.Poly(sp.cancel(made.as_expr() / u), u)
    return made.monic().as_expr()


def recursion(method: str, staleness: int, H: int) -> Found:
    """The polynomial of the step function is the stated one, and its exact stability (Jury) is the stated condition."""
    hyper = {"H": H} if method == "slowmo" else {"H": H, "tau": staleness, "penalty": sp.Symbol("penalty")}
    name = "co2" if staleness else "slowmo"
    said = parse(RECURSION[name])
    said = said.subs({s: sp.Symbol(s.name) for s in said.free_symbols})
    gamma, lam = (next(s for s in parse(name).free_symbols) for name in ("gamma", "lam"))
    kappa = 1 - (1 - gamma * lam) ** H
    c = sp.Symbol("alpha") * kappa / hyper.get("penalty", 1)
    wrong = [sp.simplify(round_polynomial(method, hyper) - said.subs(sp.Symbol("c"), c)) != 0]
    wrong += [stable(name, c, beta) != holds(parse_condition(STABLE[name]), {"c": c, "beta": beta}) for c, beta in points()]
    return Found.count(sum(wrong), len(wrong), proves=True)


def points() -> itertools.product[tuple[Fraction, Fraction]]:
    """Where conditions on (c, beta) are compared, boundaries included."""
    return itertools.product(STRENGTHS, MOMENTA)


def stable(name: str, c: Fraction, beta: Fraction) -> bool:
    """Whether both roots of the recursion lie inside the unit circle (Jury), in fractions."""
    at = function(RECURSION[name], "u c beta")
    return at(1, c, beta) > 0 and at(-1, c, beta) > 0 and abs(at(0, c, beta)) < 1
