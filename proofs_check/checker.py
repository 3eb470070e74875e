"""An independent checker of rational certificates: standard library only, no solver, nothing of the package.

A certificate states, for a first-order method written out in coordinates, that ``measure <= rate`` whenever the initial forms are
within their limits, for every function of a class, in every dimension, for one worker or for any number of them.  Vectors are combinations
of unknown ones, as a mean and a deviation over the workers; scalars are combinations of unknown function values and of squared norms
averaged over the workers.  It gives nonnegative multipliers of inequalities that hold in the class, each rebuilt here from the statement:

    pair i j       f_i >= f_j + <g_j, dx> + (|dg|^2/L + mu*|dx|^2 - 2*mu/L*<dg, dx>) / (2*(1-mu/L)),  dx = x_i - x_j, dg = g_i - g_j
                   (Taylor, Hendrickx and Glineur 2017, Theorem 4; mu = -L for nonconvex functions)
    contraction k  |m - v|^2 <= (1-delta)*|v|^2        error k  |m - v|^2 <= Delta2        for message k, m = C(v)
    heterogeneity  |g*|^2 <= zeta2_star                infimum k  f* <= f_k - |g_k|^2/(2*L)
    initial k      its form <= its limit               least i k  value i <= its form k

and it is accepted if ``rate - measure + sum multiplier*(smaller side - larger side)`` has a nonnegative constant, no function value left
and positive semidefinite Gram forms, by exact LDL^T.  That the coordinates are those of a named method is for
``verify_rates.proofs_check.certificates.confirm`` to say, which traces the method again.

Use: ``python -m verify_rates.proofs_check.checker FILE [key=value ...]``; one sentence, exit code 0 (accepted) or 1 (refused); the pairs
(method, steps, measure, initial, L, mu, functions, workers, rate) say what it has to state.
"""

import hashlib
import json
import re
import sys
from fractions import Fraction

FORMAT = "verify-rates certificate 2"
FIELDS = ["format", "about", "class", "workers", "compressor", "zeta2_star", "unknowns", "points", "minimiser", "infimum"]
FIELDS += ["messages", "least", "initial", "measure", "rate", "multipliers", "sha256"]
ABOUT = ["method", "hyper", "steps", "measure", "initial", "initial_value", "take", "start"]
MAX_UNKNOWNS, MAX_CHARS = 400, 20_000_000


class Refused(ValueError):
    """The certificate proves nothing; the message is the reason."""


def fraction(text, what="a number"):
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


def _need(true, reason):
    if not true:
        raise Refused(reason)


def _keys(value, wanted, what):
    _need(isinstance(value, dict) and set(value) == set(wanted), f"{what} must have exactly the fields {', '.join(sorted(wanted))}")
    return value


def _list(value, what, length=None):
    _need(isinstance(value, list) and length in (None, len(value)), f"{what} must be a list{f' of {length}' if length else ''}")
    return value


def _index(value, size, what):
    _need(type(value) is int and 0 <= value < size, f"{what} must be a number below {size}")
    return value


def _unique(pairs):
    _need(len(dict(pairs)) == len(pairs), "a field is given twice")
    return dict(pairs)


def read(text):
    """JSON text as a dict, strictly."""
    _need(len(text) <= MAX_CHARS, "the certificate is too long")
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise error if isinstance(error, Refused) else Refused("the certificate is not JSON") from None


def combination(given, size, what):
    """Coefficients by number from [[number, fraction], ...]."""
    found = {}
    for pair in _list(given, what):
        k = _index(_list(pair, what, 2)[0], size, what)
        _need(k not in found, f"{what} names an unknown twice")
        found[k] = fraction(pair[1], what)
    return found


def vector(given, sizes, what):
    """(mean, deviation) over the unknown vectors."""
    return [combination(part, size, what) for part, size in zip(_list(given, what, 2), sizes)]  # noqa: B905, any Python


def difference(a, b):
    return [{k: u.get(k, 0) - v.get(k, 0) for k in {*u, *v}} for u, v in zip(a, b)]  # noqa: B905


class Statement:
    """What a certificate states, parsed; its inequalities by name."""

    def __init__(self, made):
        bounds = _keys(made["class"], ("functions", "L", "mu"), "class")
        self.L, mu = fraction(bounds["L"], "L"), fraction(bounds["mu"], "mu")
        nonconvex = bounds["functions"] == "smooth"
        _need(nonconvex or bounds["functions"] == "smooth_strongly_convex", "functions must be smooth_strongly_convex or smooth")
        _need(0 <= mu < self.L and not (nonconvex and mu), "the class needs 0 <= mu < L, and mu = 0 for nonconvex functions")
        self.mu = -self.L if nonconvex else mu
        sizes = [_index(n, MAX_UNKNOWNS + 1, "unknowns") for n in _list(made["unknowns"], "unknowns", 3)]
        self.sizes, self.values = sizes[:2], sizes[2]
        _need(made["workers"] == "any" or (made["workers"] == "one" and not sizes[1]), "workers must be one (no deviations) or any")
        self.points = [self._point(p) for p in _list(made["points"], "points")]
        self.messages = [[self._vector(p[k], "a message") for k in "vm"] for p in _list(made["messages"], "messages")]
        self.least = [[_index(i, self.values, "least"), [self._form(f) for f in _list(forms, "least")]] for i, forms in made["least"]]
        self.initial = [[self._form(f), fraction(limit, "a limit")] for f, limit in _list(made["initial"], "initial")]
        self.measure = self._form(made["measure"])
        self.compressor = {k: fraction(v, k) for k, v in made["compressor"].items()}
        _need(set(made["compressor"]) <= {"delta", "Delta2"}, "a compressor has delta or Delta2")
        self.zeta2 = None if made["zeta2_star"] is None else fraction(made["zeta2_star"], "zeta2_star")
        self.star = None if made["minimiser"] is None else _index(made["minimiser"], len(self.points), "minimiser")
        self.infimum = None if made["infimum"] is None else _index(made["infimum"], self.values, "infimum")
        _need(self.star is None or not any(self.points[self.star][1][0].values()), "the mean gradient at the minimiser must be zero")
        _need(self.zeta2 != 0 or self.star is None or not any(self.points[self.star][1][1].values()), "zeta2_star = 0: no gradients there")
        _need(self.infimum is None or made["workers"] == "one", "an infimum is read for one worker")

    def _vector(self, given, what):
        return vector(given, self.sizes, what)

    def _point(self, given):
        _keys(given, ("x", "g", "f"), "a point")
        return self._vector(given["x"], "x"), self._vector(given["g"], "g"), self._form(given["f"])

    def _form(self, given):
        _keys(given, ("const", "values", "squares"), "a form")
        squares = [(fraction(c), self._vector(v, "a square")) for c, v in _list(given["squares"], "squares")]
        return fraction(given["const"]), combination(given["values"], self.values, "values"), squares

    def inequality(self, total, w, kind, *k):
        """Add w times (smaller side - larger side)."""
        lists = {"pair": [self.points] * 2, "contraction": [self.messages], "error": [self.messages], "initial": [self.initial]}
        lists |= {"heterogeneity": [], "infimum": [self.points], "least": [self.least, None]}
        _need(
            isinstance(kind, str) and kind in lists and len(k) == len(lists[kind]), f"there is no inequality {kind!r} of {len(k)} numbers"
        )
        for item, several in zip(k, lists[kind]):  # noqa: B905
            _index(item, MAX_UNKNOWNS**2 if several is None else len(several), f"a number of {kind}")
        if kind == "pair":
            _need(k[0] != k[1], "a pair needs two points")
            return self._pair(total, w, self.points[k[0]], self.points[k[1]])
        if kind == "initial":
            total.form(w, self.initial[k[0]][0])
            return total.constant(-w * self.initial[k[0]][1])
        if kind == "least":
            i, forms = self.least[k[0]]
            total.form(-w, forms[_index(k[1], len(forms), "a number of least")])
            return total.value(w, i)
        if kind == "infimum":
            _need(self.infimum is not None, "the certificate has no infimum")
            (_, g, f), _ = self.points[k[0]], total.value(w, self.infimum)
            total.form(-w, f)
            return total.product(w / (2 * self.L), g, g)
        if kind == "heterogeneity":
            _need(self.zeta2 is not None and self.star is not None, "the certificate bounds no heterogeneity")
            g = self.points[self.star][1]
            total.product(w, g, g)
            return total.constant(-w * self.zeta2)
        v, m = self.messages[k[0]]
        constant = {"contraction": "delta", "error": "Delta2"}[kind]
        _need(constant in self.compressor, f"the compressor has no {constant}")
        lost = difference(m, v)
        total.product(w, lost, lost)
        if kind == "error":
            return total.constant(-w * self.compressor["Delta2"])
        return total.product(-w * (1 - self.compressor["delta"]), v, v)

    def _pair(self, total, w, upper, lower):
        (xi, gi, fi), (xj, gj, fj) = upper, lower
        dx, dg, half = difference(xi, xj), difference(gi, gj), w / (2 * (1 - self.mu / self.L))
        total.form(w, fj)
        total.form(-w, fi)
        for weight, a, b in ((w, gj, dx), (half / self.L, dg, dg), (half * self.mu, dx, dx), (-2 * half * self.mu / self.L, dg, dx)):
            total.product(weight, a, b)


class Sum:
    """A constant, a function-value part and two Gram parts, summed up."""

    def __init__(self, sizes, values):
        self.const, self.values = Fraction(0), [Fraction(0)] * values
        self.grams = [[[Fraction(0)] * n for _ in range(n)] for n in sizes]

    def constant(self, c):
        self.const += c

    def value(self, w, k):
        self.values[k] += w

    def product(self, w, a, b):
        for gram, u, v in zip(self.grams, a, b):  # noqa: B905
            for i, j in ((i, j) for i in u if u[i] for j in v if v[j]):
                gram[i][j] += w * u[i] * v[j] / 2
                gram[j][i] += w * u[i] * v[j] / 2

    def form(self, w, form):
        const, values, squares = form
        self.const += w * const
        for k, c in values.items():
            self.values[k] += w * c
        for c, v in squares:
            self.product(w * c, v, v)


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
    _need(certificate["format"] == FORMAT, f"the format must be {FORMAT!r}")
    _need(certificate["sha256"] == seal(certificate), "the sha256 does not match the content")
    about, workers, rate = _keys(certificate["about"], ABOUT, "about"), certificate["workers"], fraction(certificate["rate"], "the rate")
    try:
        statement = Statement(certificate)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise error if isinstance(error, Refused) else Refused(f"the statement is malformed ({type(error).__name__})") from None
    stated = {**certificate["class"], **about, "workers": workers, "rate": str(rate)}
    for key, value in (expected or {}).items():
        _need(str(stated.get(key, "nothing")) == str(value), f"the certificate states {key} = {stated.get(key, 'nothing')!s}, not {value}")
    total, seen = Sum(statement.sizes, statement.values), set()
    total.constant(rate)
    total.form(-1, statement.measure)
    for row in _list(certificate["multipliers"], "multipliers"):
        _need(isinstance(row, list) and len(row) > 1, "a multiplier is [kind, numbers, value]")
        name, w = tuple(map(repr, row[:-1])), fraction(row[-1], "a multiplier")
        _need(w >= 0 and name not in seen, "a multiplier is negative or given twice")
        seen.add(name)
        statement.inequality(total, w, *row[:-1])
    _need(not any(total.values), "function values are left over: the multipliers do not fit the statement")
    _need(total.const >= 0, "the constants add up to more than the rate")
    _need(all(map(semidefinite, total.grams)), "a Gram form is not positive semidefinite: the multipliers do not prove this rate")
    what = "convex" if not statement.mu else "nonconvex" if statement.mu < 0 else f"{statement.mu}-strongly convex"
    start = f"{about['initial']} <= {about['initial_value']} at the start"
    return (
        f"{about['measure']} <= {rate} after {about['steps']} steps of the method written in it, called {about['method']}, if {start}, "
        f"for {'any number of workers, each with its own' if workers == 'any' else 'every'} {statement.L}-smooth {what} f"
    )


def main(arguments, check=check):
    try:
        _need(arguments and all("=" in pair for pair in arguments[1:]), "give a file, then what it has to state as key=value")
        with open(arguments[0], encoding="utf-8") as file:
            certificate = read(file.read(MAX_CHARS + 1))
        print(f"accepted: {check(certificate, dict(pair.split('=', 1) for pair in arguments[1:]))}.")
        return 0
    except (Refused, OSError, UnicodeDecodeError, RecursionError) as error:
        print(f"refused: {str(error) or type(error).__name__}.")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
