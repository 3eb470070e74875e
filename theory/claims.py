"""Claims: a published or derived theorem as a record that everything else reads."""

from __future__ import annotations

import importlib
import itertools
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from verify_rates.solvers.method import UsageError

KINDS = ("bound", "identity", "iff", "table", "property")
RELATIONS = ("<=", ">=", "==")
TAKES = ("last", "best", "mean", "average_iterate")
COMPRESSORS = {"contractive": "delta", "absolute": "Delta2", "unbiased": "omega"}  # classes, and the letter of each
PROVENANCES = ("paper", "paper (secondary)", "code", "recalled", "derived")
FUNCTIONS = (  # the classes of theory.worst_case.classes, which need more than SymPy to be read
    "smooth_strongly_convex",
    "quadratic",
    "smooth",
    "smooth_lojasiewicz",
    "convex",
    "strongly_convex",
    "convex_lipschitz",
    "convex_quadratic_growth",
    "secant_error_bound",
    "monotone",
    "cocoercive",
    "nonexpansive_residual",
    "weakly_convex",
    "indicator",
    "bounded_indicator",
    "lipschitz_operator",
    "lipschitz_monotone",
    "cocoercive_monotone",
    "negatively_comonotone",
    "smooth_quasi_strongly_convex",
    "symmetric_operator",
    "linear_operator",
    "skew_operator",
)

Point = Mapping[str, Any]


@dataclass(frozen=True)
class Setting:
    """What the claim assumes: the class of functions, the workers, the compressor, the noise.

    Attributes
    ----------
    functions : class of every f_i, one of ``FUNCTIONS``: "smooth_strongly_convex" (mu = 0: convex), "smooth" (nonconvex), ...; runs
        know these two.
    n : "any", or a number of workers.
    compressor : class of the compressor, "contractive" (delta), "absolute" (Delta2), "unbiased" (omega), or "" for none.
    shared_minimiser : every worker's f_i is minimal at x*; else the claim's bound has to know zeta2_star, or be free of it.
    noise : stochastic gradients are allowed (the variance is sigma2 per worker).
    per_worker : L and mu are those of every f_i, not of the average (in runs: L_max and mu_min).
    """

    functions: str = "smooth_strongly_convex"
    n: str | int = "any"
    compressor: str = ""
    shared_minimiser: bool = False
    noise: bool = False
    per_worker: bool = False


@dataclass(frozen=True)
class Claim:
    """A statement about a method, with everything needed to check it.

    Attributes
    ----------
    id : ``slug.number`` as in the paper's file, or ``rates.N``; unique.
    statement : one sentence, as shown to people.
    method : name of the method it is about ("" for a statement about formulas alone).
    kind : bound | identity | iff | table | property.
    measure : name of a measure, or ``measure(s, w, h)``; with ``take`` (last | best | mean | average_iterate) and
        ``relation`` it is compared with ``bound``.
    relation : what the largest value over the class is to the bound: "<=" (every run stays below), ">=" (some instance reaches it, so
        that a run below says nothing) or "==".
    bound : text of an expression in the standard symbols (``theory.symbols``); ``N`` is the number of steps.
    lets : definitions, in order, of further symbols or of hyper-parameters (for example the step size).
    when : conditions; a parameter point that violates one is not part of the claim.
    initial : name of the measure (or a callable) that is at most 1 at the start of the worst case; in runs its value
        becomes the symbol ``V0``.  ``free`` starts the worst case at any state (Lyapunov functions).
    grid : parameter points of the worst case (``N`` and whatever bound, lets and method need).
    partial : the worst cases of ``grid`` cover a part of the claim alone, and so do not prove it.
    runs : parameter points of the simulations; the keys problem, compressor, topology, seeds, x0 choose what is run.
    families : instance families searched for a violation.
    check : dotted path ``module:function`` of a check that is not a bound; called with each point of ``grid`` it returns
        ``theory.evidence.Found``.
    tight : the bound is the exact worst case.
    expect : "holds", or "fails" for a claim that is known to be false.
    not_checkable : the reason why nothing can be checked.
    """

    id: str
    statement: str
    method: str = ""
    kind: str = "bound"
    measure: str | Callable[..., Any] = ""
    take: str = "last"
    relation: str = "<="
    bound: str = ""
    lets: Mapping[str, str] = field(default_factory=dict)
    when: tuple[str, ...] = ()
    setting: Setting = Setting()
    initial: str | Callable[..., Any] = "distance"
    free: bool = False
    grid: tuple[Point, ...] = ()
    partial: bool = False
    runs: tuple[Point, ...] = ()
    families: tuple[str, ...] = ()
    check: str = ""
    source: str = ""
    provenance: str = "derived"
    tight: bool = False
    expect: str = "holds"
    not_checkable: str = ""

    def __post_init__(self) -> None:
        for value, allowed, what in (
            (self.kind, KINDS, "kind"),
            (self.relation, RELATIONS, "relation"),
            (self.take, TAKES, "take"),
            (self.provenance, PROVENANCES, "provenance"),
            (self.expect, ("holds", "fails"), "expect"),
            (self.setting.functions, FUNCTIONS, "functions"),
            (self.setting.compressor or "contractive", tuple(COMPRESSORS), "compressor"),
        ):
            if value not in allowed:
                raise UsageError(f"claim {self.id}: {what} must be one of {', '.join(allowed)}, not {value!r}.")
        n = self.setting.n
        if n != "any" and (not isinstance(n, int) or n < 1):
            raise UsageError(f"claim {self.id}: n must be 'any' or a number of workers, not {n!r}.")
        for name in ("grid", "runs"):
            points = getattr(self, name)
            if not isinstance(points, (tuple, list)) or not all(isinstance(p, Mapping) for p in points):
                raise UsageError(f"claim {self.id}: {name} is a tuple of parameter points, as product(L=1, N=(1, 2)) makes them.")
        for name in ("when", "families"):
            if isinstance(getattr(self, name), str):
                raise UsageError(f"claim {self.id}: {name} is a tuple of texts; write ({getattr(self, name)!r},).")
        if not (self.not_checkable or self.check or (self.bound and self.measure and self.method)):
            raise UsageError(f"claim {self.id}: give method, measure and bound, or a check, or the reason why it is not checkable.")
        if not self.source:
            raise UsageError(f"claim {self.id}: give its source (paper and theorem, or 'derived').")


@dataclass(frozen=True)
class Paper:
    """What stands over a file of claims, as ``PAPER`` of its module; the file's name is the slug.

    Attributes
    ----------
    title : of the paper.
    where : where it stands, such as "arXiv 2507.16346"; "" for a table of our own.
    rows : its rows in the list of papers; DeMo has two, a table of ours none.
    kind : what it is about, such as "convergence, cost model".
    reason : why there is nothing to verify in it; "" where there are claims.
    """

    title: str
    where: str = ""
    rows: tuple[str, ...] = ()
    kind: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        if not self.title or not self.kind:
            raise UsageError("a paper needs a title and a kind.")


def product(**values: Any) -> tuple[Point, ...]:
    """All combinations of the given values, as parameter points.

    >>> product(L=1, N=(1, 2))
    ({'L': 1, 'N': 1}, {'L': 1, 'N': 2})
    """
    listed = [v if isinstance(v, (tuple, list)) else (v,) for v in values.values()]
    return tuple(dict(zip(values, combination, strict=True)) for combination in itertools.product(*listed))


def collect(module: Any) -> Iterator[Claim]:
    """The claims of a module: every Claim among its values and in its lists (CLAIMS by convention)."""
    for value in vars(module).values():
        if isinstance(value, Claim):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from (c for c in value if isinstance(c, Claim))


def claims(*extra: Any) -> dict[str, Claim]:
    """All claims by id: those of ``theory/papers/`` and of the given modules; UsageError when an id stands twice."""
    from verify_rates.theory import papers

    found: dict[str, Claim] = {}
    shipped = [importlib.import_module(f"{papers.__name__}.{m.name}") for m in pkgutil.iter_modules(papers.__path__)]
    for module in (*shipped, *extra):
        for claim in collect(module):
            if found.get(claim.id, claim) is not claim:
                raise UsageError(f"two claims are called {claim.id!r}; choose another id.")
            found[claim.id] = claim
    return found
