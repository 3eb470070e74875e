"""An independent checker of rational certificates: standard library only, no solver, nothing of the package.

A certificate states that after N steps of a first-order method with fixed coefficients, ``measure <= rate*initial`` for every L-smooth,
mu-strongly convex function (mu = 0: convex) in every dimension.  It gives nonnegative multipliers of the interpolation inequalities

    f_i - f_j - <g_j, x_i - x_j> - (|g_i-g_j|^2/L + mu*|x_i-x_j|^2 - 2*mu/L*<g_i-g_j, x_i-x_j>) / (2*(1-mu/L)) >= 0

between points 0..N and the minimiser "*".  They are rebuilt here from the statement, and the certificate is accepted if
``rate*initial - measure - sum multiplier*inequality`` has no function value left and a positive semidefinite Gram form, by exact LDL^T.

Use: ``python -m verify_rates.proofs_check.checker FILE [key=value ...]``; one sentence, exit code 0 (accepted) or 1 (refused); the pairs
(L, mu, name, gamma, steps, measure, initial, rate) say what it has to state.
"""

import hashlib
import json
import re
import sys
from fractions import Fraction

FORMAT = "verify-rates certificate 1"
FIELDS = ["format", "class", "algorithm", "steps", "measure", "initial", "rate", "multipliers", "sha256"]
MEASURES = {"distance": "||x_{0} - x*||^2", "function_gap": "f(x_{0}) - f*", "grad_norm": "||grad f(x_{0})||^2"}
MAX_STEPS, MAX_CHARS = 100, 5_000_000


class Refused(ValueError):
    """The certificate proves nothing; the message is the reason."""


def fraction(text, what):
    """A fraction in lowest terms as text, "p/q" or "p"; nothing else."""
    if not isinstance(text, str) or not re.fullmatch(r"-?[0-9]{1,4000}(/[1-9][0-9]{0,3999})?", text):
        raise Refused(f"{what} must be a fraction such as '1/42', not {str(text)[:40]!r}")
    value = Fraction(text)
    if str(value) != text:
        raise Refused(f"{what} must be in lowest terms")
    return value


def seal(certificate):
    """sha256 of the certificate without its seal, as canonical JSON."""
    body = json.dumps({k: v for k, v in certificate.items() if k != "sha256"}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(body.encode()).hexdigest()


def _keys(value, wanted, what):
    if not isinstance(value, dict) or set(value) != set(wanted):
        raise Refused(f"{what} must have exactly the fields {', '.join(sorted(wanted))}")
    return value


def _unique(pairs):
    if len(dict(pairs)) != len(pairs):
        raise Refused("a field is given twice")
    return dict(pairs)


def read(text):
    """JSON text as a dict, strictly."""
    if len(text) > MAX_CHARS:
        raise Refused("the certificate is too long")
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise error if isinstance(error, Refused) else Refused("the certificate is not JSON") from None


def points(algorithm, N):
    """Coordinates of x_k - x* and g_k in (x_0 - x*, g_0, ..., g_N), for k = "*", 0..N."""
    rows = algorithm["coefficients"]
    if not isinstance(rows, list) or len(rows) != N or any(not isinstance(r, list) or len(r) != k + 1 for k, r in enumerate(rows)):
        raise Refused("coefficients must have one row a step, row k with the weights of g_0..g_{k-1} in x_k - x_0")
    weights = [[fraction(c, "a coefficient") for c in row] for row in rows]
    if algorithm["name"] == "gd":
        step = -fraction(algorithm["gamma"], "gamma")
        if step >= 0 or any(c != step for row in weights for c in row):
            raise Refused("the coefficients are not those of gd with this gamma")
    elif algorithm["name"] != "fixed" or algorithm["gamma"] != "0":
        raise Refused("the algorithm must be 'gd', or 'fixed' with gamma '0'")
    x, g = {"*": [Fraction(0)] * (N + 2)}, {"*": [Fraction(0)] * (N + 2)}
    for k, row in enumerate([[], *weights]):
        x[k] = [Fraction(1), *row, *[Fraction(0)] * (N + 1 - len(row))]
        g[k] = [Fraction(int(c == k + 1)) for c in range(N + 2)]
    return x, g


class Sum:
    """A function-value part and a Gram part, summed up."""

    def __init__(self, N):
        self.values = [Fraction(0)] * (N + 1)
        self.gram = [[Fraction(0)] * (N + 2) for _ in range(N + 2)]

    def value(self, weight, k):
        if k != "*":  # f* is 0
            self.values[k] += weight

    def product(self, weight, a, b):
        for i, j in ((i, j) for i in range(len(a)) if a[i] for j in range(len(b)) if b[j]):
            self.gram[i][j] += weight * a[i] * b[j] / 2
            self.gram[j][i] += weight * a[i] * b[j] / 2

    def measure(self, weight, name, k, x, g):
        if name == "function_gap":
            return self.value(weight, k)
        v = x[k] if name == "distance" else g[k]
        return self.product(weight, v, v)


def semidefinite(matrix):
    """Exact LDL^T of a symmetric matrix: are all pivots nonnegative, and rows of pivot 0 empty?"""
    a = [row[:] for row in matrix]
    for k in range(len(a)):
        if a[k][k] < 0 or (a[k][k] == 0 and any(a[k][k:])):
            return False
        for i in range(k + 1, len(a)):
            factor = a[i][k] / a[k][k] if a[i][k] else 0
            for j in range(k, len(a) if factor else k):
                a[i][j] -= factor * a[k][j]
    return True


def check(certificate, expected=None):
    """The proved sentence; Refused if the certificate does not prove it, or states something else than expected."""
    _keys(certificate, FIELDS, "a certificate")
    if certificate["format"] != FORMAT:
        raise Refused(f"the format must be {FORMAT!r}")
    if certificate["sha256"] != seal(certificate):
        raise Refused("the sha256 does not match the content")
    bounds = _keys(certificate["class"], ("L", "mu"), "class")
    L, mu = fraction(bounds["L"], "L"), fraction(bounds["mu"], "mu")
    if not 0 <= mu < L:
        raise Refused("the class needs 0 <= mu < L")
    N, measure, initial = certificate["steps"], certificate["measure"], certificate["initial"]
    if type(N) is not int or not 1 <= N <= MAX_STEPS:
        raise Refused(f"steps must be a whole number from 1 to {MAX_STEPS}")
    if not all(isinstance(name, str) and name in MEASURES for name in (measure, initial)):
        raise Refused("measure and initial must be distance, function_gap or grad_norm")
    algorithm = _keys(certificate["algorithm"], ("name", "gamma", "coefficients"), "algorithm")
    x, g = points(algorithm, N)
    rate = fraction(certificate["rate"], "the rate")
    stated = {**bounds, **algorithm, "steps": str(N), "measure": measure, "initial": initial, "rate": certificate["rate"]}
    for key, value in (expected or {}).items():
        if key not in stated or stated[key] != str(value):
            raise Refused(f"the certificate states {key} = {stated.get(key, 'nothing')!s}, not {value}")
    total = Sum(N)
    total.measure(rate, initial, 0, x, g)
    total.measure(-1, measure, N, x, g)
    _subtract(total, certificate["multipliers"], x, g, L, mu)
    if any(total.values):
        raise Refused("function values are left over: the multipliers do not fit the statement")
    if not semidefinite(total.gram):
        raise Refused("the Gram form is not positive semidefinite: the multipliers do not prove this rate")
    method = f"gd with gamma = {algorithm['gamma']}" if algorithm["name"] == "gd" else "the method with these coefficients"
    statement = f"{method} has {MEASURES[measure].format(N)} <= {rate} * ({MEASURES[initial].format(0)})"
    return f"{statement} for every {L}-smooth {f'{mu}-strongly convex' if mu else 'convex'} f"


def _subtract(total, multipliers, x, g, L, mu):
    """Take every multiplier times its interpolation inequality from the sum."""
    if not isinstance(multipliers, list) or not all(isinstance(m, list) and len(m) == 3 for m in multipliers):
        raise Refused("multipliers must be a list of [i, j, value]")
    seen = set()
    for i, j, text in multipliers:
        if any(type(p) not in (int, str) or p not in x for p in (i, j)) or i == j or (i, j) in seen:
            raise Refused("a multiplier needs two different points among '*', 0, ..., N, each pair once")
        seen.add((i, j))
        w = fraction(text, "a multiplier")
        if w < 0:
            raise Refused("a multiplier is negative")
        interpolation(total, -w, i, j, x, g, L, mu)


def interpolation(total, w, i, j, x, g, L, mu):
    """Add w times the inequality of f_i above f_j."""
    dx, dg = ([a - b for a, b in zip(v[i], v[j])] for v in (x, g))  # noqa: B905, plain Python of any version
    total.value(w, i)
    total.value(-w, j)
    half = -w / (2 * (1 - mu / L))
    for weight, a, b in ((-w, g[j], dx), (half / L, dg, dg), (half * mu, dx, dx), (-2 * half * mu / L, dg, dx)):
        total.product(weight, a, b)


def main(arguments):
    try:
        if not arguments or not all("=" in pair for pair in arguments[1:]):
            raise Refused("give a file, then what it has to state as key=value")
        with open(arguments[0], encoding="utf-8") as file:
            certificate = read(file.read(MAX_CHARS + 1))
        print(f"accepted: {check(certificate, dict(pair.split('=', 1) for pair in arguments[1:]))}.")
        return 0
    except (Refused, OSError, UnicodeDecodeError, RecursionError) as error:
        print(f"refused: {str(error) or type(error).__name__}.")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
