"""What there is: methods, claims, papers, compressors, problems, topologies and measures, listed and shown."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from verify_rates.solvers.kinds import check_kinds
from verify_rates.solvers.measures import MEASURES
from verify_rates.solvers.method import Method, UsageError, methods, nearest
from verify_rates.solvers.words import Unsupported, World
from verify_rates.theory.claims import Claim, Paper, claims, collect

Row = dict[str, Any]


@dataclass(frozen=True)
class Reading:
    """Whether a reading applies to a method, and what it says at sample hyper-parameters, or why it does not."""

    applies: bool
    says: str


@dataclass(frozen=True)
class Entry:
    """One thing of the catalogue with all that is known of it.

    Attributes
    ----------
    kind, name, text : what it is, and its docstring or statement.
    facts : short texts by name.
    readings : for a method, per reading whether it applies, and what it says or why it does not apply.
    claims : ids of the claims about it.
    source : its Python source, or "".
    """

    kind: str
    name: str
    text: str
    facts: dict[str, str] = field(default_factory=dict)
    readings: dict[str, Reading] = field(default_factory=dict)
    claims: tuple[str, ...] = ()
    source: str = ""

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def _doc(thing: Any) -> str:
    """Its docstring; of a user's problem, that of its value."""
    return thing.doc if hasattr(thing, "home") else inspect.getdoc(thing) or ""


def _first_line(doc: str | None) -> str:
    return (doc or "").strip().split("\n")[0]


def _sample(hyper: Any) -> Any:
    """Hyper-parameters with which a step can be read: 1 for each that has no default."""
    return hyper(**{f: 1 for f in hyper._fields if f not in hyper._field_defaults})


def _signature(hyper: Any) -> str:
    defaults = hyper._field_defaults
    return ", ".join(f"{f}={defaults[f]}" if f in defaults else f for f in hyper._fields) or "-"


def readings(method: Method) -> dict[str, Reading]:
    """What every reading makes of a method.

    >>> from verify_rates.solvers.method import get_method
    >>> readings(get_method("gd"))["quadratic"].says
    'characteristic polynomial gamma*lam + z - 1'
    """
    return {name: _answer(read, method) for name, read in _READINGS.items()}


def _answer(read: Callable[[Method], str], method: Method) -> Reading:
    try:
        return Reading(True, read(method))
    except Unsupported as e:
        return Reading(False, str(e))


def _by_words(world: type[World], method: Method) -> None:
    """Refuse with the world's own sentence where it gives a word of the method no meaning."""
    for word in _words(method):
        if getattr(world, word) is getattr(World, word):
            values = len(inspect.signature(getattr(World, word)).parameters) - 1
            getattr(object.__new__(world), word)(*[None] * values)


def _words(method: Method) -> tuple[str, ...]:
    return check_kinds(method, method.hypers(**_sample(method.hyper)._asdict()))


def _run(method: Method) -> str:
    from verify_rates.solvers.engine.arrays import ArrayWorld
    from verify_rates.solvers.engine.run import ENGINES

    _by_words(ArrayWorld, method)
    return f"engines {', '.join(ENGINES)}"


def _worst_case(method: Method) -> str:
    from verify_rates.theory.worst_case.world import PepWorld

    _by_words(PepWorld, method)
    return "every word has a quadratic description"


def _contraction(method: Method) -> str:
    from verify_rates.theory.contraction import contraction

    used, sample = _words(method), _sample(method.hyper)._asdict()
    sample |= {name: value for name, value in (("gamma", 0.1), ("beta", 0.5)) if name in sample}
    compressor, mixing = {"delta": 0.5} if "compress" in used else None, 0.5 if "gossip" in used else None
    found = contraction(method, sample, L=1.0, mu=0.1, compressor=compressor, mixing=mixing)
    where = "at gamma = 0.1, L = 1, mu = 0.1" + (", delta = 0.5" if compressor else "") + (", eigenvalues up to 0.5" if mixing else "")
    if not found.ok:
        return f"none found {where}"
    return f"{'factor' if found.upper < 1 else 'no decrease: factor'} {found.upper:.6g} a round {where}"


def _quadratic(method: Method) -> str:
    from verify_rates.theory.quadratic import quadratic

    sample = {k: v for k, v in _sample(method.hyper)._asdict().items() if k != "gamma"}
    return f"characteristic polynomial {quadratic(method, sample).characteristic()}"


def _time_line(method: Method) -> str:
    from verify_rates.theory.timeline import timeline

    found = timeline(method, _sample(method.hyper), compute=1.0, latency=1.0, bandwidth=8.0, size=1.0)
    return f"seconds per step {found.formula if found.formula is not None else found.formula_reason}"


def _traffic(method: Method) -> str:
    from verify_rates.theory.traffic import traffic

    used = _words(method)
    compressor, topology = "topk:10" if "compress" in used else None, "ring" if "gossip" in used else None
    found = traffic(method, _sample(method.hyper), d=1000, n=10, compressor=compressor, topology=topology)
    return f"{found.up_per_round:g} bits up and {found.down_per_round:g} down a round at d = 1000, n = 10" + (
        f", {compressor}" if compressor else ""
    )


_READINGS: dict[str, Callable[[Method], str]] = {
    "run": _run,
    "worst case": _worst_case,
    "contraction": _contraction,
    "quadratic": _quadratic,
    "time line": _time_line,
    "traffic": _traffic,
}


def _papers() -> dict[str, Any]:
    from verify_rates.theory import papers

    found = {m.name: importlib.import_module(f"{papers.__name__}.{m.name}") for m in pkgutil.iter_modules(papers.__path__)}
    for slug, module in found.items():
        if not isinstance(getattr(module, "PAPER", None), Paper):
            raise UsageError(f"the file of paper {slug} needs PAPER = Paper(title, where, rows=..., kind=...).")
    return found


def _method_rows(extra: Iterable[Any]) -> list[Row]:
    return [
        {"name": m.name, "hyper-parameters": _signature(m.hyper), "paper": m.paper or "-", "what": _first_line(m.doc)}
        for m in methods().values()
    ]


def _claim_rows(extra: Iterable[Any]) -> list[Row]:
    return [
        {
            "name": c.id,
            "method": c.method or "-",
            "kind": c.kind,
            "expect": c.expect,
            "provenance": c.provenance,
            "what": c.statement + (f" [not checkable: {c.not_checkable}]" if c.not_checkable else ""),
        }
        for c in claims(*extra).values()
    ]


def _paper_rows(extra: Iterable[Any]) -> list[Row]:
    """One row for each row of the list of papers, in its order; what has no row there comes last."""
    found = [(row, slug, module) for slug, module in _papers().items() for row in module.PAPER.rows or ("-",)]
    return [_paper_row(row, slug, module) for row, slug, module in sorted(found, key=lambda f: _row_order(f[0]))]


def _row_order(row: str) -> tuple[bool, list[int]]:
    return row == "-", [int(part) for part in row.split("-") if part]


def _paper_row(row: str, slug: str, module: Any) -> Row:
    about, paper = list(collect(module)), module.PAPER
    return {
        "row": row,
        "name": slug,
        "methods": ", ".join(_paper_methods(slug, about)) or "-",
        "claims": len(about),
        "checkable": sum(not c.not_checkable for c in about),
        "verdicts": _kept_verdicts(about) or "-",
        "kind": paper.kind,
        "what": "".join([paper.title, paper.where and f" ({paper.where})", paper.reason and f" [nothing to verify: {paper.reason}]"]),
    }


def _paper_methods(slug: str, about: list[Claim]) -> list[str]:
    """The methods that name the paper, and those that its claims are about."""
    return sorted({m.name for m in methods().values() if m.paper == slug} | {c.method for c in about if c.method})


def _kept_verdicts(about: list[Claim]) -> str:
    """How many of the claims have which verdict, as far as an earlier quick check of the same code is kept."""
    from verify_rates.store import Store, key

    store = Store()
    kept = [store.get(key(c, suite="quick", seed=0), c) for c in about]
    counted = Counter(result.verdict.value for result in kept if result is not None)
    return ", ".join(f"{count} {verdict}" for verdict, count in counted.items())


def _compressor_rows(extra: Iterable[Any]) -> list[Row]:
    from verify_rates.solvers.compressors import compressors

    return [
        {"name": name, "parameters": ", ".join(f.name for f in dataclasses.fields(c)) or "-", "what": _first_line(inspect.getdoc(c))}
        for name, c in compressors().items()
    ]


def _problem_rows(extra: Iterable[Any]) -> list[Row]:
    from verify_rates.problems import problems

    def options(p: Any) -> str:
        if hasattr(p, "home"):
            return f"n = {p.n}, d = {p.d}"
        return ", ".join(f.name for f in dataclasses.fields(p) if f.init) if isinstance(p, type) and dataclasses.is_dataclass(p) else "-"

    return [{"name": name, "options": options(p), "what": _first_line(_doc(p))} for name, p in problems().items()]


def _topology_rows(extra: Iterable[Any]) -> list[Row]:
    from verify_rates.solvers.switching import SWITCHING
    from verify_rates.solvers.topologies import GRAPHS

    return [{"name": name, "what": _first_line(inspect.getdoc(graph))} for name, graph in sorted({**GRAPHS, **SWITCHING}.items())]


def _measure_rows(extra: Iterable[Any]) -> list[Row]:
    return [{"name": name, "what": _first_line(m.__doc__)} for name, m in _measures(extra).items()]


def _measures(extra: Iterable[Any]) -> dict[str, Any]:
    """The package's, and those that claims of the user's modules are about."""
    used = (f for module in extra for c in collect(module) for f in (c.measure, c.initial) if callable(f))
    return {**MEASURES, **{f.__name__: f for f in used}}


_ROWS: dict[str, Callable[[Iterable[Any]], list[Row]]] = {
    "methods": _method_rows,
    "claims": _claim_rows,
    "papers": _paper_rows,
    "compressors": _compressor_rows,
    "problems": _problem_rows,
    "topologies": _topology_rows,
    "measures": _measure_rows,
}
KINDS = tuple(_ROWS)


def catalogue(kind: str, *modules: Any) -> list[Row]:
    """The things of one kind as rows; what the given modules of the user bring is among them.

    >>> [row["name"] for row in catalogue("measures")][:2]
    ['distance', 'function_gap']
    """
    if kind not in _ROWS:
        raise nearest(kind, KINDS, "kind")
    return _ROWS[kind](modules)


def _source(thing: Any) -> str:
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):
        return ""


def _about(name: str, extra: Iterable[Any]) -> tuple[str, ...]:
    return tuple(c.id for c in claims(*extra).values() if c.method == name)


def _show_method(m: Method, extra: Iterable[Any]) -> Entry:
    hyper = _sample(m.hyper)
    facts = {
        "state": ", ".join(f"{name} ({kind.value})" for name, kind in m.kinds.items()),
        "starts at x0": ", ".join(m.start),
        "hyper-parameters": _signature(m.hyper),
        "words": ", ".join(_words(m)),
        "steps per round": f"{m.rounds(hyper)} at {', '.join(f'{k}={v}' for k, v in hyper._asdict().items())}" if hyper else "1",
        "paper": m.paper or "-",
    }
    return Entry("method", m.name, m.doc, facts, readings(m), _about(m.name, extra), _source(m.step))


def _show_claim(c: Claim) -> Entry:
    measure = c.measure if isinstance(c.measure, str) else c.measure.__name__
    facts = {
        "method": c.method or "-",
        "says": f"{c.take} of {measure} {c.relation} {c.bound}" if c.bound else (f"check {c.check}" if c.check else "-"),
        "where": "; ".join(f"{k} = {v}" for k, v in c.lets.items()) or "-",
        "conditions": " and ".join(c.when) or "-",
        "setting": ", ".join(f"{f.name}={getattr(c.setting, f.name)}" for f in dataclasses.fields(c.setting)),
        "checked at": f"not checkable: {c.not_checkable}" if c.not_checkable else f"{len(c.grid)} worst-case points, {len(c.runs)} runs",
        "tight": "yes, the bound is the exact worst case" if c.tight else "not claimed",
        "expect": c.expect,
        "source": c.source,
        "provenance": c.provenance,
    }
    return Entry("claim", c.id, c.statement, facts)


def _show_paper(slug: str, module: Any) -> Entry:
    paper, about = module.PAPER, list(collect(module))
    facts = {
        "title": paper.title,
        "where": paper.where or "-",
        "rows": ", ".join(paper.rows) or "-",
        "kind": paper.kind,
        "methods": ", ".join(_paper_methods(slug, about)) or "-",
        "nothing to verify": paper.reason or "-",
    }
    return Entry("paper", slug, inspect.getdoc(module) or "", facts, claims=tuple(c.id for c in about))


def _show_class(kind: str, name: str, thing: Any) -> Entry:
    options = {}
    if inspect.isclass(thing) and dataclasses.is_dataclass(thing):
        options = {f.name: _default(f) for f in dataclasses.fields(thing) if f.init}
    return Entry(kind, name, _doc(thing), options, source=_source(getattr(thing, "one", thing)))  # one: a user's compressor


def _show_own_problem(name: str, p: Any) -> Entry:
    declared = {k: str(v) for k, v in p.constants._asdict().items() if v is not None and k != "x_star"}
    facts = {"workers n": str(p.n), "dimension d": str(p.d), "noise": str(p.noise), "made in": Path(p.home).name, **declared}
    return Entry("problem", name, _doc(p), facts, source="\n".join(map(_source, (p.value_function, p.gradient_function))))


def _default(f: Any) -> str:
    return "required" if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING else f"default {f.default!r}"


def _named(extra: tuple[Any, ...]) -> dict[str, dict[str, Callable[[], Entry]]]:
    from verify_rates.problems import problems
    from verify_rates.solvers.compressors import compressors
    from verify_rates.solvers.switching import SWITCHING
    from verify_rates.solvers.topologies import GRAPHS

    known = problems()
    own = {name: p for name, p in known.items() if hasattr(p, "home")}
    shipped = {name: p for name, p in known.items() if name not in own}

    def classes(kind: str, found: dict[str, Any]) -> dict[str, Callable[[], Entry]]:
        return {name: partial(_show_class, kind, name, thing) for name, thing in found.items()}

    return {
        "method": {name: partial(_show_method, m, extra) for name, m in methods().items()},
        "claim": {name: partial(_show_claim, c) for name, c in claims(*extra).items()},
        "paper": {name: partial(_show_paper, name, module) for name, module in _papers().items()},
        "compressor": classes("compressor", compressors()),
        "problem": classes("problem", shipped) | {name: partial(_show_own_problem, name, p) for name, p in own.items()},
        "topology": classes("topology", {**GRAPHS, **SWITCHING}),
        "measure": classes("measure", _measures(extra)),
    }


def show(name: str, *modules: Any) -> list[Entry]:
    """Everything of that name; UsageError with the nearest match when there is none.

    >>> [e.kind for e in show("ef_sgd")]
    ['method']
    """
    known = _named(modules)
    found = [entries[name]() for entries in known.values() if name in entries]
    if not found:
        raise nearest(name, {n for entries in known.values() for n in entries}, "name")
    return found
