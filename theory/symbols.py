"""The letters of the field as SymPy symbols, and a parser of bounds and conditions that never runs text as code.

Text goes through an ``ast`` whitelist: numbers, the letters of :data:`LETTERS`, ``+ - * / **``, parentheses and the
functions of :data:`FUNCTIONS`.  Numbers come out of :func:`number` (a float) and :func:`exact` (a Fraction).
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import mpmath
import sympy as sp

from verify_rates.solvers.method import UsageError, nearest

MAX_CHARS = 2000  # the longest bound of any paper of the catalogue has under 300
MAX_DEPTH = 80  # nesting of one expression
MAX_COUNT = 20_000  # of a sequence: some milliseconds
MAX_EXPONENT = 1000  # of a power of numbers; symbolic exponents are evaluated in floating point and need no limit
MAX_BITS = 12_000  # of a number in text: below the 4300 digits that Python prints
MAX_EXACT_BITS = 100_000  # of a power in `exact`
MAX_TERMS = 20  # arguments of Max and Min, which SymPy compares pairwise
MAX_LOG2 = 2.0**40  # of a number met on the way: far beyond a float, far below what fills the memory
DIGITS = 40  # first working precision of `number`; doubled until two precisions agree
AGREE = 2.0**-60  # relative agreement of two precisions: below the half unit 2**-53 of the float that is returned
MAX_DIGITS = 1280  # where doubling stops: a value that needs more is a zero that cannot be told from 0
RTOL_ROUNDING = 2.0**-49  # conditions that allow equality forgive 16 units of rounding in the floats put in


class Letter(NamedTuple):
    """One letter of the field: the assumptions that are true of it, and its meaning with its unit."""

    assume: str
    meaning: str


LETTERS: dict[str, Letter] = {
    # counts
    "n": Letter("positive integer", "workers"),
    "m": Letter("positive integer", "samples per worker"),
    "d": Letter("positive integer", "dimension"),
    "t": Letter("nonnegative integer", "iteration"),
    "T": Letter("positive integer", "steps"),
    "R": Letter("positive integer", "communication rounds"),
    "N": Letter("nonnegative integer", "steps of a worst-case statement"),
    "H": Letter("positive integer", "local steps between two averagings"),
    "k": Letter("positive integer", "kept coordinates"),
    "tau": Letter("nonnegative integer", "staleness in steps"),
    "B": Letter("positive integer", "batch size per worker"),
    # the method
    "gamma": Letter("positive", "step size"),
    "eta": Letter("positive", "a second step size"),
    "beta": Letter("nonnegative", "momentum"),
    "alpha": Letter("real", "a parameter of a method"),
    "theta": Letter("real", "a parameter of a method"),
    "p": Letter("nonnegative", "a probability"),
    "a": Letter("real", "a free constant of a statement"),
    "b": Letter("real", "a free constant of a statement"),
    "c": Letter("real", "a free constant of a statement"),
    "q": Letter("real", "a ratio of constants, such as mu/L"),
    "s": Letter("nonnegative", "a root, such as sqrt(eps)"),
    "u": Letter("real", "a free constant of a statement"),
    # the problem
    "L": Letter("positive", "smoothness of f"),
    "L_max": Letter("positive", "largest smoothness of a worker's function"),
    "mu": Letter("real", "strong convexity of f (0: convex; negative: weakly convex)"),
    "mu_min": Letter("real", "smallest strong convexity of a worker's function"),
    "kappa": Letter("positive", "condition number L/mu"),
    "M": Letter("nonnegative", "Lipschitz constant of f"),
    "D": Letter("nonnegative", "diameter of a set"),
    "G2": Letter("nonnegative", "bound on the squared gradient norm"),
    "sigma": Letter("nonnegative", "standard deviation of the gradient noise, or a relative accuracy"),
    "sigma2": Letter("nonnegative", "variance of a worker's gradient noise"),
    "sigma2_star": Letter("nonnegative", "variance of the gradient noise at x*, mean over the workers"),
    "sigma2_sup": Letter("nonnegative", "variance of the gradient noise, supremum over x and workers"),
    "zeta2": Letter("nonnegative", "heterogeneity"),
    "zeta2_star": Letter("nonnegative", "heterogeneity at x*: mean_i ||grad f_i(x*)||^2"),
    "zeta2_sup": Letter("nonnegative", "heterogeneity: sup_x mean_i ||grad f_i(x) - grad f(x)||^2"),
    "zeta2_affine": Letter("nonnegative", "heterogeneity beside ||grad f||^2: mean_i ||grad f_i||^2 <= zeta2_affine + ||grad f||^2"),
    "lam": Letter("real", "a curvature, an eigenvalue, or the weight of a Lyapunov function"),
    "lam_2": Letter("real", "second eigenvalue of a Laplacian, from below"),
    "lam_m": Letter("real", "largest eigenvalue of a Laplacian"),
    # compressors
    "delta": Letter("positive", "contraction of a compressor"),
    "eps": Letter("nonnegative", "1 - delta, or a target accuracy"),
    "omega": Letter("nonnegative", "variance of an unbiased compressor"),
    "Delta2": Letter("nonnegative", "squared error of an absolute compressor"),
    "bytes_share": Letter("positive", "share of the bytes that is sent"),
    # initial conditions and rates
    "R2": Letter("nonnegative", "initial ||x0 - x*||^2"),
    "F0": Letter("nonnegative", "initial f(x0) - f*"),
    "G0": Letter("nonnegative", "initial ||grad f(x0)||^2"),
    "E0": Letter("nonnegative", "initial mean_i ||e_i||^2"),
    "V0": Letter("nonnegative", "initial value of a Lyapunov function"),
    "rho": Letter("nonnegative", "a rate, or the contraction of a mixing matrix"),
    # time
    "T_comp": Letter("nonnegative", "compute time of one step, s"),
    "T_tx": Letter("nonnegative", "transmission time of one message, s"),
    "lat": Letter("nonnegative", "latency, s"),
    "bw": Letter("positive", "bandwidth, bytes per s"),
    "size": Letter("nonnegative", "bytes of one message"),
}

SYMBOLS: dict[str, sp.Symbol] = {name: sp.Symbol(name, **dict.fromkeys(letter.assume.split(), True)) for name, letter in LETTERS.items()}


def letters(names: str) -> tuple[sp.Symbol, ...]:
    """The symbols of these names, separated by blanks.

    >>> L, gamma = letters("L gamma")
    >>> (L * gamma).is_positive
    True
    """
    return tuple(_symbol(name) for name in names.split())


def _symbol(name: str) -> sp.Symbol:
    if name not in SYMBOLS:
        raise nearest(name, list(SYMBOLS) + list(FUNCTIONS), "name")
    return SYMBOLS[name]


# --- the sequences of known_rates.csv ---------------------------------------------------------------------------------


class _Sequence(sp.Function):
    """A function of numbers that is kept as it is and evaluated to any precision."""

    is_real = True
    is_commutative = True

    @staticmethod
    def compute(*values: Any) -> Any:
        raise NotImplementedError

    def _eval_evalf(self, prec: int) -> Any:
        with mpmath.workprec(prec + 10):
            return sp.Float(self.compute(*(a._to_mpmath(prec + 10) for a in self.args)), precision=prec)


def _count(value: Any, name: str) -> int:
    if value != int(value) or not 0 <= value <= MAX_COUNT:
        raise UsageError(f"{name} takes a whole number from 0 to {MAX_COUNT}, not {mpmath.nstr(value, 6)}.")
    return int(value)


class theta_ogm(_Sequence):
    """OGM: theta_0 = 1, then (1+sqrt(4*theta^2+1))/2, and (1+sqrt(8*theta^2+1))/2 in the last of N steps."""

    nargs = 1

    @staticmethod
    def compute(N):
        theta = mpmath.mpf(1)
        steps = _count(N, "theta_ogm")
        for i in range(steps):
            theta = (1 + mpmath.sqrt((8 if i == steps - 1 else 4) * theta**2 + 1)) / 2
        return theta


class lam_fista(_Sequence):
    """FISTA: 1, then k times (1+sqrt(4*lam^2+1))/2."""

    nargs = 1

    @staticmethod
    def compute(k):
        lam = mpmath.mpf(1)
        for _ in range(_count(k, "lam_fista")):
            lam = (1 + mpmath.sqrt(4 * lam**2 + 1)) / 2
        return lam


class u_qg(_Sequence):
    """Quadratic growth: 1, then N times u/2+sqrt(u^2/4+2)."""

    nargs = 1

    @staticmethod
    def compute(N):
        u = mpmath.mpf(1)
        for _ in range(_count(N, "u_qg")):
            u = u / 2 + mpmath.sqrt(u**2 / 4 + 2)
        return u


class A_item(_Sequence):
    """ITEM: 0, then N times ((1+q)*A+2*(1+sqrt((1+A)*(1+q*A))))/(1-q)^2."""

    nargs = 2

    @staticmethod
    def compute(N, q):
        if not 0 <= q < 1:
            raise UsageError(f"A_item takes q in [0, 1), not {mpmath.nstr(q, 6)}.")
        A = mpmath.mpf(0)
        for _ in range(_count(N, "A_item")):
            A = ((1 + q) * A + 2 * (1 + mpmath.sqrt((1 + A) * (1 + q * A)))) / (1 - q) ** 2
        return A


class twos(_Sequence):
    """How often 2 divides k: the exponent of silver steps (the ruler sequence)."""

    nargs = 1

    @staticmethod
    def compute(k):
        count = _count(k, "twos")
        if count == 0:
            raise UsageError("twos takes a whole number from 1, not 0: 2 divides 0 for ever.")
        return mpmath.mpf((count & -count).bit_length() - 1)


class largest_real_root(_Sequence):
    """The largest real root of a*x^3+b*x^2+c*x+d."""

    nargs = 4

    @staticmethod
    def compute(a, b, c, d):
        coefficients = [a, b, c, d]
        while coefficients and coefficients[0] == 0:
            coefficients = coefficients[1:]
        if len(coefficients) < 2:
            raise UsageError("largest_real_root takes a polynomial of degree 1 to 3 with a leading coefficient other than 0.")
        roots = mpmath.polyroots(coefficients, maxsteps=200, extraprec=4 * mpmath.mp.prec)
        near = mpmath.ldexp(1, -mpmath.mp.prec // 3)  # a triple root is known to a third of the digits
        real = [r.real for r in map(mpmath.mpc, roots) if abs(r.imag) <= near * (1 + abs(r))]
        if not real:
            raise UsageError("largest_real_root was given a polynomial without a real root.")
        return max(real)


FUNCTIONS: dict[str, Any] = {
    "Max": sp.Max,
    "Min": sp.Min,
    "sqrt": sp.sqrt,
    "log": sp.log,
    "exp": sp.exp,
    "sin": sp.sin,
    "cos": sp.cos,
    "ceiling": sp.ceiling,
    "floor": sp.floor,
    "Abs": sp.Abs,
    "Rational": sp.Rational,
    **{f.__name__: f for f in (theta_ogm, lam_fista, u_qg, A_item, twos, largest_real_root)},
}
_ARGUMENTS = {"Rational": 2, "A_item": 2, "largest_real_root": 4, "Max": None, "Min": None}  # None: one or more; else 1
_RELATIONS: dict[type, Callable[..., Any]] = {ast.LtE: sp.Le, ast.Lt: sp.Lt, ast.Eq: sp.Eq, ast.GtE: sp.Ge, ast.Gt: sp.Gt}


# --- text to SymPy ----------------------------------------------------------------------------------------------------


def parse(text: str) -> sp.Expr:
    """A bound written as text, as a SymPy expression in the standard letters.

    Parameters
    ----------
    text : at most 2000 ASCII characters; decimals are read exactly (``0.1`` is 1/10).

    Raises
    ------
    UsageError : anything but numbers, letters, ``+ - * / **``, parentheses and known functions; numbers too large.

    >>> parse("L/(4*N*L*gamma + 2)")
    L/(4*L*N*gamma + 2)
    >>> parse("gama*L")
    Traceback (most recent call last):
    ...
    verify_rates.solvers.method.UsageError: unknown name 'gama'; did you mean 'gamma' or 'sigma' or 'sigma2'?
    """
    return _convert(_tree(text), text, 0)


def parse_condition(text: str) -> Any:
    """A condition written as text, comparisons joined by ``and``, as a SymPy relation.

    >>> parse_condition("0 < gamma <= 1/L")
    gamma <= 1/L
    """
    node = _tree(text)
    parts = node.values if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) else [node]
    return sp.And(*(_comparison(part, text) for part in parts))


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _tree(text: str) -> ast.expr:
    if not isinstance(text, str):
        raise UsageError(f"an expression must be text, not {type(text).__name__}.")
    text = text.strip()
    if not text:
        raise UsageError("an expression is empty; write for example L/(2*N).")
    if len(text) > MAX_CHARS:
        raise UsageError(f"an expression has {len(text)} characters; at most {MAX_CHARS} are allowed.")
    if not (text.isascii() and text.isprintable()) or "#" in text:
        raise UsageError(f"{_short(text)} has characters that are not allowed; use plain ASCII on one line.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the tokenizer warns about text that is refused below
            return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UsageError(f"{_short(text)} is not an expression; write it as in L/(2*N) with ** for powers.") from None


def _refused(what: str, text: str) -> UsageError:
    return UsageError(f"{what} is not allowed in {_short(text)}; use numbers, letters, + - * / **, parentheses and functions.")


def _comparison(node: ast.expr, text: str) -> Any:
    if not isinstance(node, ast.Compare):
        raise UsageError(f"{_short(text)} is not a condition; compare with <=, <, ==, >= or > and join with 'and'.")
    sides = [_convert(side, text, 1) for side in (node.left, *node.comparators)]
    for op in node.ops:
        if type(op) not in _RELATIONS:
            raise UsageError(f"a condition in {_short(text)} compares in an unknown way; use <=, <, ==, >= or >.")
    return sp.And(*(_RELATIONS[type(op)](left, right) for op, left, right in zip(node.ops, sides, sides[1:], strict=False)))


def _convert(node: ast.expr, text: str, depth: int) -> sp.Expr:
    if depth > MAX_DEPTH:
        raise UsageError(f"{_short(text)} is nested more than {MAX_DEPTH} deep.")
    rule = _RULES.get(type(node))
    if rule is None:
        raise _refused(_NAMES.get(type(node), "this construct"), text)
    return _sane(rule(node, text, depth + 1), text)


def _sane(made: sp.Expr, text: str) -> sp.Expr:
    if made.has(sp.zoo, sp.nan, sp.oo, -sp.oo):
        raise UsageError(f"{_short(text)} divides by zero or is infinite.")
    if made.has(sp.I):
        raise UsageError(f"{_short(text)} takes the root or logarithm of a negative number.")
    if any(_bits(r) > MAX_BITS for r in made.atoms(sp.Rational)):
        raise UsageError(f"{_short(text)} has a number that is too large.")
    if not made.free_symbols and not made.is_Rational and not math.isfinite(_size(made)):
        raise UsageError(f"{_short(text)} has a number that is too large.")
    return made


def _bits(r: sp.Rational) -> int:
    return max(int(r.p).bit_length(), int(r.q).bit_length())


def _size(made: sp.Expr) -> float:
    with mpmath.workdps(DIGITS):
        return float(abs(_value(made, {})))


def _constant(node: ast.Constant, text: str, depth: int) -> sp.Expr:
    if not isinstance(node.value, (int, float)) or isinstance(node.value, bool):
        raise _refused("text, a truth value or an imaginary number", text)
    written = (ast.get_source_segment(text.strip(), node) or "").replace("_", "")
    if isinstance(node.value, int):
        return sp.Integer(node.value)
    if not math.isfinite(node.value) or (node.value == 0 and written.lower().split("e")[0].strip("0.")):
        raise UsageError(f"the number {written[:30]} in {_short(text)} is too large or too small.")
    return sp.Rational(written)


def _name(node: ast.Name, text: str, depth: int) -> sp.Expr:
    if node.id == "pi":
        return sp.pi
    if node.id in FUNCTIONS:
        raise UsageError(f"{node.id} in {_short(text)} is a function; write {node.id}(...).")
    return _symbol(node.id)


def _unary(node: ast.UnaryOp, text: str, depth: int) -> sp.Expr:
    if not isinstance(node.op, (ast.USub, ast.UAdd)):
        raise _refused("'not' or '~'", text)
    inner = _convert(node.operand, text, depth)
    return -inner if isinstance(node.op, ast.USub) else inner


def _power(base: sp.Expr, exponent: sp.Expr, text: str) -> sp.Expr:
    """The power, unless SymPy would work out a huge number (also through ``exp(c*log(2))`` or ``(L*9**999)**999``)."""
    if exponent.is_Number or exponent.has(sp.log):
        largest = max((abs(r) for r in exponent.atoms(sp.Rational)), default=0)
        bits = max(map(_bits, base.atoms(sp.Rational)), default=1)
        if largest > MAX_EXPONENT or bits * largest > MAX_BITS:
            raise UsageError(f"an exponent in {_short(text)} is too large; at most {MAX_EXPONENT} is allowed.")
    return base**exponent


def _binary(node: ast.BinOp, text: str, depth: int) -> sp.Expr:
    left, right = _convert(node.left, text, depth), _convert(node.right, text, depth)
    if isinstance(node.op, ast.Pow):
        return _power(left, right, text)
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left - right
    if isinstance(node.op, ast.Mult):
        return left * right
    if isinstance(node.op, ast.Div):
        return left / right
    raise _refused("an operator other than + - * / **", text)


def _call(node: ast.Call, text: str, depth: int) -> sp.Expr:
    if not isinstance(node.func, ast.Name):
        raise _refused("a call of something that is not a known function", text)
    name = node.func.id
    if name not in FUNCTIONS:
        raise nearest(name, FUNCTIONS, "function")
    if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
        raise _refused("a keyword or starred argument", text)
    wanted = _ARGUMENTS.get(name, 1)
    if not node.args or (wanted is not None and len(node.args) != wanted):
        raise UsageError(f"{name} in {_short(text)} takes {wanted or 'one or more'} argument(s), not {len(node.args)}.")
    args = [_convert(a, text, depth) for a in node.args]
    if name == "Rational" and not (args[0].is_Integer and args[1].is_Integer and args[1] != 0):
        raise UsageError(f"Rational in {_short(text)} takes two whole numbers, the second not 0.")
    if len(args) > MAX_TERMS:
        raise UsageError(f"{name} in {_short(text)} has {len(args)} arguments; at most {MAX_TERMS} are allowed.")
    return _power(sp.E, args[0], text) if name == "exp" else FUNCTIONS[name](*args)


_RULES: dict[type, Callable[[Any, str, int], sp.Expr]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.Call: _call,
}
_NAMES = {
    ast.Attribute: "an attribute",
    ast.Subscript: "an index",
    ast.Lambda: "a lambda",
    ast.JoinedStr: "an f-string",
    ast.Compare: "a comparison",
    ast.BoolOp: "'and' or 'or'",
    ast.IfExp: "a conditional",
    ast.NamedExpr: "an assignment",
    ast.ListComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.List: "a list",
    ast.Tuple: "a comma",
    ast.Dict: "a dictionary",
    ast.Set: "a set",
}


# --- SymPy to numbers -------------------------------------------------------------------------------------------------


def number(expr: Any, values: Mapping[Any, Any] | None = None) -> float:
    """The value of an expression as a float, correctly rounded up to the last unit.

    Parameters
    ----------
    expr : SymPy expression, or text for :func:`parse`.
    values : letter (name or symbol) to int, float, Fraction or SymPy number; further letters are ignored.

    Raises
    ------
    UsageError : letters are left, a value is not a finite number, or the result is infinite, complex or not a number.

    >>> number("2*sin(pi/(2*(2*tau + 1)))/L", {"tau": 1, "L": 1})
    1.0
    """
    made = parse(expr) if isinstance(expr, str) else sp.sympify(expr, strict=True)
    known = _known(made, values or {})
    digits, coarse = DIGITS, _at(made, known, DIGITS)
    while True:
        digits *= 2
        fine = _at(made, known, digits)
        if abs(fine - coarse) <= AGREE * abs(fine):
            break
        if digits > MAX_DIGITS:
            fine = mpmath.mpf(0)  # every precision gave another value of the size of its own rounding
            break
        coarse = fine
    try:
        result = float(fine)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise UsageError(f"{_short(str(made))} is infinite or larger than a float.")
    return result


def exact(expr: Any, values: Mapping[Any, Any] | None = None) -> Fraction:
    """The value of a rational expression as a Fraction; floats are taken at their exact binary value.

    >>> exact("L/(4*N*L*gamma + 2)", {"L": 3, "N": 4, "gamma": Fraction(1, 3)})
    Fraction(1, 6)
    """
    made = parse(expr) if isinstance(expr, str) else sp.sympify(expr, strict=True)
    return _fraction(made, _known(made, values or {}))


def holds(condition: Any, values: Mapping[Any, Any] | None = None) -> bool:
    """Whether a condition is true at these values; where equality is allowed, 16 units of rounding are forgiven.

    >>> holds("gamma <= 1/L and mu >= 0", {"gamma": 0.25, "L": 4, "mu": 0})
    True
    """
    made = parse_condition(condition) if isinstance(condition, str) else condition
    for key, value in (values or {}).items():
        if isinstance(value, (int, float, Fraction)) and math.isfinite(value):
            _as_fraction(str(key), value)  # a condition that is true of every letter has none left
    if made in (True, False):
        return bool(made)
    if isinstance(made, sp.And):
        return all(holds(part, values) for part in made.args)
    if not isinstance(made, (sp.Eq, sp.StrictLessThan, sp.StrictGreaterThan, sp.LessThan, sp.GreaterThan)):
        raise UsageError(f"{_short(str(made))} is not a condition; compare with <=, <, ==, >= or > and join with 'and'.")
    left, right = number(made.lhs, values), number(made.rhs, values)
    slack = RTOL_ROUNDING * max(abs(left), abs(right))
    if isinstance(made, sp.Eq):
        return abs(left - right) <= slack
    if isinstance(made, (sp.GreaterThan, sp.StrictGreaterThan)):
        left, right = right, left
    return left < right if isinstance(made, (sp.StrictLessThan, sp.StrictGreaterThan)) else left <= right + slack


def _known(made: sp.Expr, values: Mapping[Any, Any]) -> dict[str, Fraction]:
    given = {str(key): value for key, value in values.items()}
    names = sorted(s.name for s in made.free_symbols)
    missing = [name for name in names if name not in given]
    if missing:
        raise UsageError(f"{_short(str(made))} still needs a value of {', '.join(missing)}.")
    return {name: _as_fraction(name, given[name]) for name in names}


def _violates(value: Fraction, assume: str) -> bool:
    negative = (value < 0 and "negative" in assume) or (value <= 0 and "positive" in assume)
    return negative or (value.denominator != 1 and "integer" in assume)


def _as_fraction(name: str, value: Any) -> Fraction:
    if isinstance(value, sp.Rational):
        made = Fraction(int(value.p), int(value.q))
    elif isinstance(value, (int, Fraction)):
        made = Fraction(value)
    else:
        try:
            made = Fraction(float(value))
        except (TypeError, ValueError, OverflowError):
            raise UsageError(f"{name} must be a finite number, not {_short(str(value))}.") from None
    assume = LETTERS[name].assume if name in LETTERS else ""
    if _violates(made, assume):
        raise UsageError(f"{name} must be a {assume} number, not {_short(str(value))}.")
    return made


def _at(made: sp.Expr, known: Mapping[str, Fraction], digits: int) -> Any:
    with mpmath.workdps(digits):
        value = mpmath.mpmathify(_value(made, {k: mpmath.mpf(v.numerator) / v.denominator for k, v in known.items()}))
        if isinstance(value, mpmath.mpc) and abs(value.imag) > mpmath.eps * 16 * abs(value):
            raise UsageError(f"{_short(str(made))} is a complex number there.")
        value = value.real
        if mpmath.isnan(value):
            raise UsageError(f"{_short(str(made))} is not a number there.")
        return value


_MPMATH: dict[Any, Callable[..., Any]] = {
    sp.Add: lambda *a: mpmath.fsum(a),
    sp.Mul: lambda *a: mpmath.fprod(a),
    sp.Pow: lambda b, e: _mp_power(b, e),
    sp.exp: lambda x: _mp_power(mpmath.e, x),
    sp.log: lambda x: mpmath.log(x) if x != 0 else _zero(),
    sp.sin: mpmath.sin,
    sp.cos: mpmath.cos,
    sp.ceiling: mpmath.ceil,
    sp.floor: mpmath.floor,
    sp.Abs: abs,
    sp.Max: max,
    sp.Min: min,
}


def _zero() -> Any:
    raise UsageError("the expression divides by zero or takes the logarithm of zero there.")


def _mp_power(base: Any, exponent: Any) -> Any:
    if base == 0:
        return mpmath.mpf(0) if mpmath.re(exponent) > 0 else mpmath.mpf(1) if exponent == 0 else _zero()
    if abs(mpmath.re(exponent * mpmath.log(base))) > MAX_LOG2:
        raise UsageError("the expression has a power that is too large or too small there.")
    return mpmath.power(base, exponent)


def _value(made: sp.Expr, known: Mapping[str, Any]) -> Any:
    if made.is_Symbol:
        return known[made.name]
    if made.is_Rational:
        return mpmath.mpf(int(made.p)) / int(made.q)
    if made.is_Atom:
        return made._to_mpmath(mpmath.mp.prec)
    args = [_value(a, known) for a in made.args]
    if isinstance(made, _Sequence):
        return made.compute(*args)
    rule = _MPMATH.get(made.func)
    if rule is None:
        raise UsageError(f"{made.func.__name__} cannot be evaluated; known are the functions {', '.join(FUNCTIONS)}.")
    if made.func in (sp.Max, sp.Min, sp.floor, sp.ceiling) and any(isinstance(a, mpmath.mpc) for a in args):
        raise UsageError(f"{_short(str(made))} compares complex numbers there.")
    return rule(*args)


def _fraction(made: sp.Expr, known: Mapping[str, Fraction]) -> Fraction:
    if made.is_Symbol:
        return known[made.name]
    if made.is_Rational:
        return Fraction(int(made.p), int(made.q))
    rule = _EXACT.get(made.func)
    if rule is None:
        raise UsageError(f"{_short(str(made))} has no rational value that is computed exactly.")
    return rule(*(_fraction(a, known) for a in made.args))


def _exact_power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        root = Fraction(*(math.isqrt(part) for part in (max(base.numerator, 0), base.denominator)))
        if exponent.denominator != 2 or root**2 != base:
            raise UsageError("the value is irrational, or a root that is not computed exactly.")
        return _exact_power(root, exponent * 2)
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if base == 0 and exponent < 0:
        return _zero()
    if abs(exponent) * bits > MAX_EXACT_BITS and base not in (-1, 0, 1):
        raise UsageError(f"an exact power would have more than {MAX_EXACT_BITS} bits; use number() instead.")
    return base ** int(exponent)


_EXACT: dict[Any, Callable[..., Fraction]] = {
    sp.Add: lambda *a: sum(a, Fraction(0)),
    sp.Mul: lambda *a: math.prod(a, start=Fraction(1)),
    sp.Pow: _exact_power,
    sp.Max: max,
    sp.Min: min,
    sp.Abs: abs,
    sp.floor: lambda x: Fraction(math.floor(x)),
    sp.ceiling: lambda x: Fraction(math.ceil(x)),
}
