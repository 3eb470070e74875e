"""Poplar: shares of a batch over unequal workers.

Source: derived, as in the paper's file.  A batch is not empty, so some worker works.
"""

from __future__ import annotations

from typing import Any

import sympy as sp

from verify_rates.proofs_check.proof import Proof, proof

speed, start, batch, speeds, starts = sp.symbols("speed start batch speeds starts", positive=True)


@proof(
    "poplar.1", "Poplar: some value of the workers' curves gives the least count*(longest micro-step + Cm) over plans of like micro-steps"
)
def sweep(p: Proof) -> None:
    """The sweep at a plan's own longest micro-step gives every worker at least the plan's share, and so takes no longer."""
    p.assume("t_i(b) grows with b, and b_i(tau) is the largest b with t_i(b) <= tau: so b_i <= b_i(tau) for a plan within tau")
    p.assume("a plan repeats its micro-step count times, count a whole number with count*(sum of b_i) >= gbs; the sweep takes the least")
    planned, swept, here, there, gbs = sp.symbols("planned swept here there gbs", nonnegative=True)
    count, fewest, longest, level, Cm = sp.symbols("count fewest longest level Cm", nonnegative=True)
    p.implied("shares add up", (swept + there) - (planned + here), by=[(1, swept - planned), (1, there - here)])
    enough = [(1, count * planned - gbs), (count, swept - planned)]
    p.implied("the sweep needs no more micro-steps", count * swept - gbs, by=enough)
    taken = p.constant("time of the plan", count * (longest + Cm)) - fewest * (level + Cm)
    p.implied("nor more time", taken, by=[(level + Cm, count - fewest), (count, longest - level)])


def _balanced(p: Proof, starts: Any, start: Any) -> None:
    """Finishing times are equal at the level, shares add up to the batch, and no other shares finish earlier."""
    level = p.constant("level", (batch + starts) / speeds)
    share = speed * (level - start)
    p.zero("a worker finishes at the level", start + share / speed - level)
    p.zero("shares add up to the batch", level * speeds - starts - batch)
    # T: when other shares are finished; rest: the shares of all workers but one, instead of which they do others
    used, others, rest, T = sp.symbols("used others rest T", nonnegative=True)
    spare = share - used - speed * (level - T)
    p.implied("a worker does no more than its share less what T is early by", spare, by=[(speed, T - start - used / speed)])
    left = rest + share - others - used - speed * (level - T)
    p.implied("so do all together", left, by=[(1, spare), (1, rest - others)])
    p.implied("no T is below the level", T - level, by=[(1 / speed, level * speeds - starts - batch - speed * (level - T))])


@proof("poplar.2", "Poplar: with linear times shares in proportion to speed are optimal, and equal shares take sum(v)/(n*min(v)) longer")
def proportional(p: Proof) -> None:
    """Finishing earlier than the level leaves a part of the batch undone."""
    p.assume("worker i takes b/v_i for a share b; no memory cap, shares are real numbers")
    _balanced(p, sp.Integer(0), sp.Integer(0))
    n, slowest = sp.symbols("n slowest", positive=True)
    gain = p.constant("gain", speeds / (n * slowest))
    p.zero("equal shares", batch / n / slowest - gain * batch / speeds)


@proof("poplar.3.repaired", "Poplar: with affine times shares that finish together are optimal, of the workers that start before the level")
def affine(p: Proof) -> None:
    """As with linear times; a worker whose start-up is at least the level can do nothing before it."""
    p.assume("worker i takes a_i + b/v_i for a share b > 0 and nothing for none; sums are over those with a_i < level")
    _balanced(p, starts, start)
    level, T = sp.symbols("level T", nonnegative=True)
    late = [(speed, start - level), (speed, level - T)]
    p.implied("one that starts at the level or later has done nothing by then", speed * (start - T), by=late)
