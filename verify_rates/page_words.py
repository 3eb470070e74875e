"""Words, numbers and formulas of the record as Markdown that people read."""

from __future__ import annotations

import inspect
import math
import re
import unicodedata
from functools import cache
from typing import Any

import sympy as sp

from verify_rates.theory import symbols
from verify_rates.theory.claims import Claim

DIGITS = 4  # significant digits of a number on a page
LARGE = 1e7  # whole numbers from here on are written with a power of ten

_LETTERS = (
    *("alpha", "beta", "gamma", "delta", "eps", "zeta", "eta", "theta", "kappa", "lam", "lambda", "mu", "nu", "xi", "pi", "rho"),
    *("sigma", "tau", "phi", "chi", "psi", "omega", "Theta", "Delta"),
)
_UNICODE = {"eps": "epsilon", "lam": "lamda", "lambda": "lamda"}
_GREEK = {
    name: unicodedata.lookup(f"greek {'capital' if name.istitle() else 'small'} letter {_UNICODE.get(name, name)}") for name in _LETTERS
}
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_CODE = re.compile(r"``(.+?)``|`(.+?)`")
_LONG = re.compile(r"\d+\.\d{4,}(?:e[+-]?\d+)?|\d+\.\d+e[+-]?\d+")


def number(value: float | None) -> str:
    """A number with few digits, as ``0.3333`` or ``1.2e-07``.

    >>> number(1 / 3), number(2.0), number(1.23456e-7), number(math.inf)
    ('0.3333', '2', '1.235e-07', '∞')
    """
    if value is None:
        return ""
    if not math.isfinite(value):
        return "?" if math.isnan(value) else ("∞" if value > 0 else "-∞")
    return f"{value:.{DIGITS}g}" if abs(value) < 10**DIGITS or abs(value) >= LARGE else f"{value:.0f}"


def prose(text: str) -> str:
    """A sentence of the record as Markdown: Greek letters, powers and products as people write them, nothing read as markup.

    >>> prose("at most 2*gamma**2*L^(2K)*||e||^2 <= x*, for theta_k in ``a_b``")
    'at most 2·γ²·L^(2K)·‖e‖² ≤ x⋆, for θ\\\\_k in `a_b`'
    """
    parts, at = [], 0
    for found in _CODE.finditer(text):
        parts += [_plain(text[at : found.start()]), f"`{found[1] or found[2]}`"]
        at = found.end()
    return "".join([*parts, _plain(text[at:])])


def sentence(text: str) -> str:
    """Prose that begins with a capital, where it begins with a word."""
    made = prose(text)
    return made[:1].upper() + made[1:] if re.match(r"[a-z]{2,}(?=[\s,:])(?! =)|a ", made) else made


def cell(text: str, capital: bool = False) -> str:
    """A sentence of the record for a table, whose columns a bar would split."""
    return re.sub(r"`[^`]*`", lambda m: m[0].replace("|", r"\|"), sentence(text) if capital else prose(text))


def _plain(text: str) -> str:
    text = _LONG.sub(lambda m: number(float(m[0])), text)
    for pattern, put in _rules():
        text = pattern.sub(put, text)
    return text


@cache
def _rules() -> list[tuple[re.Pattern[str], Any]]:
    names = "|".join(sorted(_GREEK, key=len, reverse=True))
    found: list[tuple[str, Any]] = [
        (r"\*\*", "^"),
        (r"\bsqrt\(", "√("),
        (r"\b(Max|Min)\(", lambda m: m[1].lower() + "("),
        (r"\bAbs\(([^()]*)\)", lambda m: f"|{m[1]}|"),
        (r"\b([A-Z]{2,}(?:_[A-Z0-9]+)+)\b", lambda m: m[1].lower().replace("_", " ")),  # the name of a formula
        (rf"(?<![A-Za-z])({names})(2(?!\d)|\d*)(?![A-Za-z])", lambda m: _GREEK[m[1]] + ("²" if m[2] == "2" else m[2])),
        (r"√\((\w+)\)", lambda m: f"√{m[1]}"),
        (r"\^(\d+)(?!\w|\.\d)", lambda m: m[1].translate(_SUPERSCRIPTS)),
        (r"\b([xfy])\*(?=\|\||[^\w(\[√]|$)", lambda m: f"{m[1]}⋆"),  # the optimum
        (r"(?<=[\w)\]²³'])\*(?=[\w(\[√|])", "·"),
        (r"==", "="),
        (r"\|\|", "‖"),
        (r"<=", "≤"),
        (r">=", "≥"),
        (r"!=", "≠"),
        (r"->", "→"),
        (r"[*_|~\[\]\\]", lambda m: "\\" + m[0]),
        (r"<", "&lt;"),
    ]
    return [(re.compile(pattern), put) for pattern, put in found]


# --- formulas -----------------------------------------------------------------------------------------------------------

_TEX = {
    **{"F0": "F_0", "R2": "R^2", "G0": "G_0", "E0": "E_0", "V0": "V_0", "G2": "G^2", "Delta2": r"\Delta^2", "eps": r"\varepsilon"},
    **{"sigma2": r"\sigma^2", "zeta2": r"\zeta^2", "sigma2_star": r"\sigma_\star^2", "zeta2_star": r"\zeta_\star^2"},
    **{"sigma2_sup": r"\sigma_{\sup}^2", "zeta2_sup": r"\zeta_{\sup}^2", "lam": r"\lambda", "lam_2": r"\lambda_2", "lam_m": r"\lambda_m"},
    **{"L_max": r"L_{\max}", "mu_min": r"\mu_{\min}", "T_comp": r"T_{\mathrm{comp}}", "T_tx": r"T_{\mathrm{tx}}"},
    **{"lat": r"\mathrm{lat}", "bw": r"\mathrm{bw}", "size": r"\mathrm{size}"},
}
_MEASURES = {
    "function_gap": r"f(\bar x_t)-f^\star",
    "grad_norm": r"\|\nabla f(\bar x_t)\|^2",
    "distance": r"\|\bar x_t-x^\star\|^2",
    "pair_distance": r"\|x_t-y_t\|^2",
}


def tex(expr: Any) -> str:
    """A SymPy expression as TeX that GitHub shows."""
    names = {s: "{" + _TEX[s.name] + "}" for s in expr.free_symbols if s.name in _TEX}
    return sp.latex(expr, symbol_names=names, fold_short_frac=False)


def _named(name: str) -> str:
    return _TEX.get(name, sp.latex(sp.Symbol(name)))


def measured(claim: Claim) -> str:
    """The left side of a bound as TeX."""
    name = claim.measure if isinstance(claim.measure, str) else claim.measure.__name__
    at_t = _MEASURES.get(name, rf"\mathrm{{{name.replace('_', chr(92) + ' ')}}}_t")
    expected = rf"\mathbb{{E}}\left[{at_t}\right]" if claim.setting.noise or claim.setting.compressor else at_t
    return {
        "last": expected.replace("_t", "_N"),
        "best": rf"\min_{{t\le N}}{expected}",
        "mean": rf"\frac1N\sum_{{t<N}}{expected}",
        "average_iterate": expected.replace(r"\bar x_t", r"\bar x_{\mathrm{avg}}").replace("_t", r"_{\mathrm{avg}}"),
    }[claim.take]


def formula(claim: Claim) -> str:
    """A bound with its definitions as TeX lines."""
    relation = {"<=": r"\le", ">=": r"\ge", "==": "="}[claim.relation]
    lines = [f"{measured(claim)} {relation} {tex(symbols.parse(claim.bound))}"]
    own = {name: text for name, text in claim.lets.items() if name != text}
    return "\n".join([*lines, *(rf"\\ {_named(name)} = {tex(symbols.parse(text))}" for name, text in own.items())])


def letters_used(claims: list[Claim]) -> list[tuple[str, str]]:
    """The letters and sequences of the bounds with their meanings, as TeX and text."""
    letters: set[str] = set()
    sequences: dict[str, Any] = {}
    for claim in claims:
        exprs = [symbols.parse(text) for text in (claim.bound, *claim.lets.values())]
        defined = {k for k in claim.lets if k not in ("gamma", "eta")}
        letters |= {s.name for expr in exprs for s in expr.free_symbols} - defined
        sequences |= {f.func.__name__: f for expr in exprs for f in expr.atoms(symbols._Sequence)}
    known = [(_named(k), {"N": "steps"}.get(k, letter.meaning)) for k, letter in symbols.LETTERS.items() if k in letters and k != "t"]
    return known + [(sp.latex(f.func), (inspect.getdoc(f.func) or "").rstrip(".")) for _, f in sorted(sequences.items())]
