"""Text becomes mathematics or one sentence; it never becomes code."""

import builtins
import math
import os
import random
import subprocess
import time
from fractions import Fraction

import pytest
import sympy as sp

from verify_rates.solvers.method import UsageError
from verify_rates.theory import symbols
from verify_rates.theory.symbols import LETTERS, SYMBOLS, exact, holds, letters, number, parse, parse_condition

PLAIN = r"""
os.system('ls')
__import__('os')
__import__('os').system('id')
L.__class__
().__class__.__bases__[0]
L.func
exec
eval('1')
getattr(L, 'x')
lambda: 1
(lambda: 1)()
f'{L}'
f'{__import__(1)}'
'a'
b'a'
True
None
...
1j
[1]
(1, 2)
{1}
{1: 2}
[x for x in (1,)]
L if 1 else 2
L := 3
(L := 3)
L and mu
not L
~L
L < mu
L @ mu
L // 2
L % 2
L << 2
L | mu
L[0]
(1)(2)
sqrt(L)(2)
L(2)
Max(*L)
Max(**L)
sqrt(x=1)
await L
yield L
L; mu
L#c
import os
print(1)
del L
x = 1
((
1 +
007
1__0
L mu
9**9**9
9**9**9**9
2**(10**6)
(9**999)**999
((L*9**999)**999)**999
exp(10**9)
exp(-10**9)
exp(10**9*log(2))
exp(10**9*log(2) + log(L))
2**(10**9*log(3)/log(2))
exp(exp(exp(100)))
ceiling(exp(10**9))
Max(exp(10**9), exp(10**9 + 1))
1e400
1e-400
exp(700)*exp(700)
theta_ogm(10**9)
Max(lam_fista(10**7), 1)
1/0
0**-1
log(0)
sqrt(-1)
log(-1)
1/(sqrt(2) - 2**(1/2))
sqrt()
sqrt(1, 2)
Rational(1, 0)
Rational(1.5, 2)
Min()
theta_ogm(1.5)
theta_ogm(-1)
A_item(2, 2)
largest_real_root(0, 0, 0, 1)
x
Max
Max(L,L,L,L,L,L,L,L,L,L,L,L,L,L,L,L,L,L,L,L,L)
""".strip().split("\n")
ODD = [
    "L\nmu",
    "L\x00",
    "",
    "   ",
    "\u2112",
    "\uff2c",
    "\U0001d40b",
    "L\u200b",
    "\u03b3",
    "L\u00b2",
    "1" * 3000,
    "9" * 1999 + "**9",
    "-" * 1500 + "1",
    "(" * 900 + "1" + ")" * 900,
    "1" + "+1" * 900,
    "Max(" + ",".join(["L"] * 21) + ")",
]
ATTACKS = [*PLAIN, *ODD]


@pytest.mark.parametrize("text", ATTACKS, ids=range(len(ATTACKS)))
def test_refused_with_one_sentence(text, monkeypatch):
    def caught(*_, **__):
        raise AssertionError("text was run")

    for module, name in ((os, "system"), (subprocess, "Popen"), (builtins, "eval")):
        monkeypatch.setattr(module, name, caught)
    begun = time.perf_counter()
    with pytest.raises(UsageError) as error:
        parse(text)
    sentence = str(error.value)
    assert "\n" not in sentence and sentence.endswith((".", "?")) and len(sentence) < 400
    assert time.perf_counter() - begun < 2  # the slowest takes 0.05 s; the attacks would take hours


def test_not_text():
    for bad in (None, 3, b"L", sp.Symbol("L")):
        with pytest.raises(UsageError):
            parse(bad)


def test_fuzz_random_text_never_escapes():
    pieces = [
        *LETTERS,
        *symbols.FUNCTIONS,
        *"+-*/()<>=,. _[]{}'\"\\:;!@#%&|~`$^?",
        "**",
        "9" * 40,
        "1e30",
        "__class__",
        "lambda",
        "os",
        "and",
        "\u03bb",
        "0x",
        "f'",
    ]
    rng = random.Random(7)
    accepted = 0
    for _ in range(3000):
        text = "".join(rng.choice(pieces) for _ in range(rng.randint(1, 9)))
        try:
            made = parse(text)
        except UsageError:
            continue
        accepted += 1
        assert isinstance(made, sp.Expr) and {s.name for s in made.free_symbols} <= set(LETTERS)
    assert accepted > 100


def _expression(rng, depth):
    """A random expression as text, with its value by Python's own arithmetic on fractions."""
    if depth == 0:
        name = rng.choice(["L", "mu", "gamma", "N"])
        return rng.choice([(name, VALUES[name]), ("0.3", Fraction(3, 10)), ("7", Fraction(7))])
    kind = rng.choice("+-*/^mu")
    left, x = _expression(rng, depth - 1)
    right, y = _expression(rng, depth - 1)
    if kind == "^":
        e = rng.randint(0, 3)
        return f"({left})**{e}", x**e
    if kind == "m":
        return f"Max({left}, {right})", max(x, y)
    if kind == "u":
        return f"-({left})", -x
    if kind == "/":
        return (f"({left})/({right})", x / y) if y else (left, x)
    return f"({left}) {kind} ({right})", {"+": x + y, "-": x - y, "*": x * y}[kind]


VALUES = {"L": Fraction(7, 3), "mu": Fraction(1, 7), "gamma": Fraction(2, 5), "N": Fraction(3)}


def test_random_expressions_equal_fractions_exactly():
    rng = random.Random(1)
    for _ in range(150):
        text, value = _expression(rng, 3)
        try:
            made = parse(text)
        except UsageError as error:
            assert "divides by zero" in str(error)  # a zero that cancels in Python may be seen by SymPy
            continue
        assert exact(made, VALUES) == value, text
        assert number(made, VALUES) == float(value), text


def test_known_sequences():
    assert number("theta_ogm(1)") == 2.0
    assert number("lam_fista(1)") == pytest.approx((1 + math.sqrt(5)) / 2, rel=1e-15)
    assert number("u_qg(1)") == 2.0
    assert number("A_item(1, q)", {"q": 0}) == 4.0
    assert number("largest_real_root(1, -6, 11, -6)") == 3.0
    assert number("largest_real_root(0, 1, 0, -4)") == 2.0
    assert float(parse("theta_ogm(N)").subs(SYMBOLS["N"], 2).evalf(30)) == number("theta_ogm(N)", {"N": 2})


def test_cancellation_is_resolved():
    assert number("(1 + 10**-60) - 1") == 1e-60
    assert number("sqrt(L + 10**-80) - sqrt(L)", {"L": 1}) == 5e-81
    assert number("(sqrt(2) + sqrt(3))**2 - 5 - 2*sqrt(6)") == 0.0
    assert number("(1 - gamma)**(2*N)", {"gamma": 0.5, "N": 10**9}) == 0.0


@pytest.mark.parametrize(
    ("text", "values", "says"),
    [
        ("L/N", {"L": 1}, "needs a value of N"),
        ("L/N", {"L": 1, "N": 0}, "divides by zero"),
        ("sqrt(mu)", {"mu": -1}, "complex"),
        ("L", {"L": math.nan}, "finite"),
        ("L", {"L": math.inf}, "finite"),
        ("L", {"L": -1}, "positive"),
        ("L", {"L": "one"}, "finite number"),
        ("N", {"N": 2.5}, "integer"),
        ("exp(L)", {"L": 800}, "larger than a float"),
        ("exp(exp(exp(N)))", {"N": 10}, "too large"),
        ("Max(sqrt(mu), 1)", {"mu": -1}, "complex"),
    ],
)
def test_no_number(text, values, says):
    with pytest.raises(UsageError, match=says):
        number(text, values)


def test_exact_refuses_what_is_irrational():
    assert exact("sqrt(eps)", {"eps": Fraction(4, 9)}) == Fraction(2, 3)
    for text, values in (("sqrt(eps)", {"eps": 0.5}), ("sin(L)", {"L": 1}), ("2**(N*10**9)", {"N": 7}), ("L/N", {"L": 1, "N": 0})):
        with pytest.raises(UsageError):
            exact(text, values)


def test_conditions():
    gamma, L = letters("gamma L")
    assert parse_condition("gamma <= 1/L") == sp.Le(gamma, 1 / L)
    assert parse_condition("0 < gamma <= 1/L") == sp.Le(gamma, 1 / L)
    values = {"gamma": 2 / 1.1, "L": 1, "mu": 0.1}
    assert holds("gamma == 2/(L + mu)", values) and holds("gamma <= 2/(L + mu)", values)
    assert not holds("gamma == 2/(L + mu)", {**values, "gamma": 2 / 1.1 * (1 + 1e-13)})
    assert not holds("gamma < 2 and mu > L", values)
    assert not holds("gamma > 2", {"gamma": 2.0})
    assert holds("gamma > 0", {"gamma": 1, "sigma2_sup": math.inf})
    with pytest.raises(UsageError, match="positive"):
        holds("gamma > 0", {"gamma": -1.0})


@pytest.mark.parametrize(
    "text", ["gamma", "gamma != 1", "gamma in L", "gamma is L", "gamma < 1 or L > 1", "not gamma < 1", "a < b < os.x", "gamma <"]
)
def test_conditions_refused(text):
    with pytest.raises(UsageError):
        parse_condition(text)


def test_letters_say_what_they_mean():
    assert all(letter.meaning and SYMBOLS[name].name == name for name, letter in LETTERS.items())
    assert letters("mu")[0].is_negative is None and letters("N")[0].is_integer
    with pytest.raises(UsageError, match="gamma"):
        letters("gama")
