"""Whole numbers in a step: compiled code has 64 bits of them and whole powers alone, Python has neither limit."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from verify_rates.solvers.engine.plan import Plan
from verify_rates.solvers.kinds import ENDS, SHORT, KindWorld, Token
from verify_rates.solvers.words import Unsupported

BITS = 63


class Whole(int):
    """A whole number that says where compiled code would compute another one."""


def _careful(operation: Callable[..., Any], swapped: bool) -> Callable[..., Any]:
    def method(a: int, b: Any) -> Any:
        if not isinstance(b, int):
            return NotImplemented
        made = operation(int(b), int(a)) if swapped else operation(int(a), int(b))
        if not isinstance(made, int):
            raise Unsupported("a whole number to a negative power is no whole number, but compiled code makes it one")
        if made.bit_length() > BITS:
            raise Unsupported("a whole number outgrows the 64 bits that compiled code has for it")
        return Whole(made)

    return method


for _name in ("add", "sub", "mul", "floordiv", "mod", "pow"):
    setattr(Whole, f"__{_name}__", _careful(getattr(operator, _name), False))
    setattr(Whole, f"__r{_name}__", _careful(getattr(operator, _name), True))
Whole.__neg__ = lambda a: Whole(-int(a))  # type: ignore[method-assign]


def check_integers(plan: Plan) -> None:
    """Follow the step over the run with such numbers; Unsupported where machine code would compute with others."""
    method, world = plan.method, KindWorld()
    s = method.state(**{name: Token(kind) for name, kind in method.kinds.items()})
    for t in range(plan.steps) if plan.steps <= SHORT else (*range(ENDS), *range(plan.steps - ENDS, plan.steps)):
        h = plan.hyper(t)
        h = type(h)(*(Whole(v) if isinstance(v, int) else v for v in h))
        try:
            s = method.step(s, world, h, Whole(t))
        except Unsupported as reason:
            raise Unsupported(f"{method.name} does not compile at step {t}: {reason}; write 2.0**t, or engine='numpy' runs it.") from None
