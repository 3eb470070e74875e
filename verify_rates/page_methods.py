"""A method on a page: its fields and hyper-parameters with their meanings, its source, its readings, its time and its traffic."""

from __future__ import annotations

import inspect
import re
import sys
from typing import Any

import sympy as sp

from verify_rates.listing import _answer, _by_words, _run, _sample, _source
from verify_rates.page_words import number, prose, tex
from verify_rates.solvers.kinds import check_kinds
from verify_rates.solvers.method import Method
from verify_rates.theory import symbols

SAMPLE = {"tau": 2, "H": 4}  # at which the time and the traffic of a method with staleness or local steps are shown
COINS, COIN = {"chance", "each"}, 0.25  # words that toss, and the probability at which they are shown
EXAMPLE = {"d": 1000, "n": 10}


def method_section(m: Method) -> str:
    """One method as Markdown."""
    doc = re.sub(r"\s+", " ", m.doc)
    return "\n\n".join([f"### `{m.name}`", prose(doc), _tables(m), f"```python\n{_code(m)}\n```", _readings(m)])


# --- fields, hyper-parameters and source ----------------------------------------------------------------------------------


def _tables(m: Method) -> str:
    lines = ["| state | kind | meaning |", "| --- | --- | --- |"]
    said = comments(m.state, m)
    for name, kind in m.kinds.items():
        start = "; starts at x0" if name in m.start else ""
        lines.append(f"| `{name}` | {kind.value} | {prose(said.get(name, ''))}{start} |")
    lines += ["", "| hyper-parameter | default | meaning |", "| --- | --- | --- |"]
    said, defaults = comments(m.hyper, m), m.hyper._field_defaults
    for name in m.hyper._fields:
        default = f"{defaults[name]:g}" if name in defaults else "required"
        lines.append(f"| `{name}` | {default} | {prose(said.get(name, ''))} |")
    return "\n".join(lines)


def comments(named: Any, m: Method) -> dict[str, str]:
    """What the source says behind each field of a NamedTuple; where it is silent, what a sibling or the standard letters say."""
    module = sys.modules[m.step.__module__]
    siblings = [v for v in vars(module).values() if inspect.isclass(v) and hasattr(v, "_fields") and v.__module__ == module.__name__]
    said = {name: letter.meaning for name, letter in symbols.LETTERS.items()}
    for cls in (*reversed(siblings), named):
        said |= dict(re.findall(r"^\s+(\w+): [^#\n]*#\s*(.+?)\s*$", _source(cls), re.MULTILINE))
    return {name: said[name] for name in named._fields if name in said}


def _code(m: Method) -> str:
    """The step function, after the functions of its own file that it calls."""
    module = sys.modules[m.step.__module__]
    helpers = [vars(module).get(name) for name in m.step.__code__.co_names]
    mine = [h for h in helpers if inspect.isfunction(h) and h.__module__ == module.__name__]
    return "\n\n\n".join(_source(f).rstrip() for f in (*mine, m.step))


# --- readings -------------------------------------------------------------------------------------------------------------


def _readings(m: Method) -> str:
    found = {
        "runs": _answer(_run, m),
        "exact worst case, best contraction": _answer(_worst_case, m),
        "closed form on quadratics": _answer(_polynomial, m),
        "time per step": _answer(_time, m),
        "traffic": _answer(_bits, m),
    }
    lines = ["| reading | applies | |", "| --- | --- | --- |"]
    for name, reading in found.items():
        says = reading.says if reading.applies else _reason(reading.says)
        lines.append(f"| {name} | {'yes' if reading.applies else 'no'} | {says} |")
    return "\n".join(lines)


def _reason(sentence: str) -> str:
    found = re.fullmatch(r"the .+ of '(\w+)': (.+)", sentence)
    return f"because of `{found[1]}`: {prose(found[2])}" if found else prose(sentence)


def _worst_case(m: Method) -> str:
    from verify_rates.theory.worst_case.world import PepWorld

    _by_words(PepWorld, m)
    return "every word of the step function has a quadratic description"


def _at(m: Method) -> tuple[dict[str, Any], str]:
    """Sample hyper-parameters, and those of them that a reader has to know."""
    sample = _sample(m.hyper)._asdict()
    chosen = {k: v for k, v in SAMPLE.items() if k in sample}
    if COINS & set(check_kinds(m, m.hypers(**sample))):
        chosen |= {k: COIN for k in sample if re.fullmatch(r"p(_\w+)?", k)}
    return {**sample, **chosen}, "".join(f", {prose(k)} = {v:g}" for k, v in chosen.items())


def _polynomial(m: Method) -> str:
    from verify_rates.theory.quadratic import quadratic

    whole = {k: 2 for k in ("tau", "H") if k in m.hyper._fields}
    found = sp.factor(sp.nsimplify(quadratic(m, whole).characteristic()))
    plain = [f"{prose(k)} = {v}" for k, v in whole.items()]
    plain += ["nothing compressed"] if "compress" in check_kinds(m, m.hypers(**_at(m)[0])) else []
    where = f" ({', '.join(plain)})" if plain else ""
    return f"characteristic polynomial in z on the mode of curvature λ{where}: ${tex(found)}$"


def _time(m: Method) -> str:
    from verify_rates.theory.timeline import timeline

    sample, told = _at(m)
    found = timeline(m, m.hypers(**sample), compute=1.0, latency=1.0, bandwidth=8.0, size=1.0)
    where = f" (at {told[2:]})" if told else ""
    return f"${tex(found.formula)}$ seconds{where}" if found.formula is not None else prose(found.formula_reason)


def _bits(m: Method) -> str:
    from verify_rates.theory.traffic import traffic

    sample, told = _at(m)
    used = check_kinds(m, m.hypers(**sample))
    compressor, topology = "topk(k=10)" if "compress" in used else None, "ring" if "gossip" in used else None
    found = traffic(m, m.hypers(**sample), compressor=compressor, topology=topology, **EXAMPLE)
    parts = [_many(found.messages_per_round, "compressed message"), _many(found.dense_per_round, "vector of d numbers")]
    sent = " and ".join(p for p in parts if p)
    assert found.up_per_round is not None and found.down_per_round is not None
    where = "".join(f", {t}" for t in (compressor and "top-10", topology and "a ring") if t) + told
    amount = f"{number(found.up_per_round)} bits up and {number(found.down_per_round)} down"
    return f"{sent} sent per worker and round; {amount} at d = {EXAMPLE['d']}, n = {EXAMPLE['n']}{where}"


def _many(count: float, what: str) -> str:
    if not count:
        return ""
    first, *rest = what.split(" ")
    plural = " ".join([first, *rest]) if count == 1 else what.replace("message", "messages").replace("vector", "vectors")
    return f"{number(count)} {plural}"
