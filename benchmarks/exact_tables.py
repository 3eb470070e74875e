"""Exact worst cases and best step sizes of methods for which none were known, as docs/exact_tables.csv.

Run ``python benchmarks/exact_tables.py`` (some minutes on one core), with ``--only METHOD`` to compute its rows anew, with ``--figures`` to
draw docs/figures/exact-tables.{pdf,png} from the table, or with ``--check`` to compute some rows again and compare them and the figure's
data with what is kept.  L = 1 throughout; n is any number of workers of at least 2; every value is an upper end, proved at the step beside
it.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
TABLE, FIGURE = DOCS / "exact_tables.csv", DOCS / "figures" / "exact-tables"
FIELDS = ("method", "by", "setting", "tau", "delta", "H", "zeta2_star", "lam", "gamma", "lower", "upper", "steps_per_efold")
MU = 0.1
TAUS, DELTAS = (0, 1, 2, 3, 4), (1.0, 0.75, 0.5, 0.25, 0.1)
LOCAL, HETEROGENEITY = (1, 2, 4, 8), (0.0, 0.01, 1.0)
CO2_LOCAL = (1, 2, 4, 8)
MIXING = (0.0, 0.5, 0.9, 0.99)
RTOL = 1e-4  # of a row computed again: a search along a kink


def _row(method: str, found: Any, setting: str, **parameters: Any) -> dict[str, Any]:
    best = found.best
    known = {"gamma": f"{found.hyper['gamma']:.6g}", "upper": f"{best.upper:.8g}"}
    known["lower"] = f"{best.lower:.8g}" if math.isfinite(best.lower) else ""
    if found.by == "contraction":
        known["steps_per_efold"] = f"{-2 / math.log(best.upper):.5g}"  # of a distance: V is a square
    return dict.fromkeys(FIELDS, "") | {"method": method, "by": found.by, "setting": setting} | parameters | known


def by_rounds() -> Any:
    """CO2 with alpha = 1, beta = 0 and one round a step: after every round all models are equal, so that one of them is state enough."""
    from typing import NamedTuple

    from verify_rates.solvers.method import Method
    from verify_rates.solvers.words import Shared, SharedQueue, delay, grad, mean, spread

    State = NamedTuple("State", [("x", Shared), ("q", SharedQueue)])  # noqa: UP014  (postponed annotations of local classes are not found)
    Hyper = NamedTuple("Hyper", [("gamma", float), ("H", int), ("tau", int)])  # noqa: UP014

    def step(s: Any, w: Any, h: Any, t: int) -> Any:
        x = spread(w, s.x)
        for _ in range(h.H):
            x = x - h.gamma * grad(w, x)
        q, arrived = delay(w, s.q, s.x - mean(w, x))
        return State(x=s.x - arrived, q=q)

    return Method("co2_by_rounds", step, State, Hyper, ("x",))


def rows(wanted: str = "") -> Iterator[dict[str, Any]]:
    """All rows, or those of one method."""
    from verify_rates.theory.tune import tune

    contracting, convex = f"mu={MU}", "mu=0; ||x0-x*||<=1; f(xN)-f*"
    if wanted in ("", "dd_ef_sgd"):
        for tau in TAUS:
            for delta in DELTAS:
                low = 0.3 * (1 - math.sqrt(1 - delta)) / (1 + math.sqrt(1 - delta)) / (tau + 1)
                given = {"compressor": {"delta": delta}, "mu": MU, "over": {"gamma": (low, 2.0 / (tau + 1))}}
                yield _row("dd_ef_sgd", tune("dd_ef_sgd", {"tau": tau}, **given), contracting, tau=tau, delta=delta)
    if wanted in ("", "acco"):
        for method in ("gd", "acco"):
            yield _row(method, tune(method, mu=MU, over={"gamma": (0.1, 2.0)}), contracting)
            given = {"by": "worst_case", "steps": 5, "over": {"gamma": (0.3, 1.95)}}
            yield _row(method, tune(method, **given), f"{convex}; N=5")
    if wanted in ("", "local_sgd"):
        for zeta2 in HETEROGENEITY:
            for H in LOCAL:
                given = {"by": "worst_case", "steps": 2 * H, "zeta2_star": zeta2, "over": {"gamma": (0.1 / H, 1.95)}}
                yield _row("local_sgd", tune("local_sgd", {"H": H}, **given), f"{convex}; 2 rounds", H=H, zeta2_star=zeta2)
    if wanted in ("", "co2"):
        for H in CO2_LOCAL:
            for tau in (0, 1):
                given = {"mu": MU, "over": {"gamma": (0.02, 2.0)}}
                yield _row("co2", tune(by_rounds(), {"H": H, "tau": tau}, **given), f"{contracting}; alpha=1; beta=0", tau=tau, H=H)
    if wanted in ("", "gossip_sgd"):
        for lam in MIXING:
            given = {"by": "worst_case", "steps": 4, "zeta2_star": 1.0, "mixing": lam, "over": {"gamma": (0.05, 1.95)}}
            yield _row("gossip_sgd", tune("gossip_sgd", **given), f"{convex}; N=4; upper bound", lam=lam, zeta2_star=1.0)


def kept() -> list[dict[str, str]]:
    """The table as it stands."""
    with TABLE.open(newline="") as file:
        return list(csv.DictReader(file))


def write(table: list[dict[str, Any]]) -> None:
    """The table anew."""
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


Curves = dict[str, dict[str, list[list[float]]]]


def curves(table: list[dict[str, str]]) -> Curves:
    """What is drawn: panel -> curve -> points, from the table."""

    def chosen(method: str, curve: str, x: str, y: str, label: str) -> dict[str, list[list[float]]]:
        made: dict[str, list[list[float]]] = {}
        for row in table:
            if row["method"] == method and row[x] and row[y]:
                made.setdefault(label.format(float(row[curve])) if curve else label, []).append([float(row[x]), float(row[y])])
        return made

    return {
        "staleness tau | steps a factor e (dd_ef_sgd, mu = 0.1)": chosen("dd_ef_sgd", "delta", "tau", "steps_per_efold", "delta = {:g}"),
        "local steps H | f - f* after two rounds (local_sgd)": chosen("local_sgd", "zeta2_star", "H", "upper", "zeta2_star = {:g}"),
        "local steps H | rounds a factor e (co2, mu = 0.1)": chosen("co2", "tau", "H", "steps_per_efold", "{:g} rounds stale"),
        "largest |eigenvalue| | f - f* after 4 steps, upper bound": chosen("gossip_sgd", "", "lam", "upper", "gossip_sgd"),
    }


def figure(drawn: Curves) -> Any:
    """One panel a question; pure."""
    import matplotlib.pyplot as plt

    with plt.rc_context({"font.size": 8, "svg.hashsalt": "exact-tables"}):
        made, axes = plt.subplots(2, 2, figsize=(7, 5), layout="constrained")
        for axis, (title, lines) in zip(axes.flat, drawn.items(), strict=True):
            for label, points in lines.items():
                axis.plot(*zip(*points, strict=True), marker="o", markersize=3, label=label)
            across, up = title.split(" | ")
            axis.set(xlabel=across, ylabel=up)
            axis.set_yscale("log" if "dd_ef_sgd" in title else "linear")
            axis.legend(fontsize=6)
        return made


def draw(table: list[dict[str, str]]) -> None:
    """The figure as PDF and PNG, its data as JSON."""
    drawn = curves(table)
    made = figure(drawn)
    made.savefig(FIGURE.with_suffix(".pdf"), metadata={"CreationDate": None, "Producer": None})
    made.savefig(FIGURE.with_suffix(".png"), dpi=160, metadata={"Software": None})
    FIGURE.with_suffix(".json").write_text(json.dumps(drawn, indent=1) + "\n")


def check(method: str) -> bool:
    """Compute the rows of a method again; compare them, and the figure's data, with what is kept."""
    before = [row for row in kept() if row["method"] in (method, "gd")]
    again = [row for row in rows(method) if row["method"] in (method, "gd")]
    before = before if method == "acco" else [row for row in before if row["method"] == method]
    same = [abs(float(a["upper"]) / float(b["upper"]) - 1) <= RTOL for a, b in zip(again, before, strict=True)]
    drawn = json.loads(FIGURE.with_suffix(".json").read_text()) == curves(kept())
    print(f"{sum(same)} of {len(same)} rows as before; the figure is {'that' if drawn else 'not that'} of the table")
    return bool(same) and all(same) and drawn


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", metavar="METHOD", nargs="?", const="acco", help="Compute the rows of a method again and compare.")
    parser.add_argument("--only", metavar="METHOD", help="Compute the rows of this method alone; the others stay.")
    parser.add_argument("--figures", action="store_true", help="Draw the figure from the table as it stands.")
    options = parser.parse_args()
    if options.check:
        return 0 if check(options.check) else 1
    if not options.figures:
        stay = [row for row in kept() if row["method"] != options.only] if options.only else []
        made: list[dict[str, Any]] = []
        for row in rows(options.only or ""):
            if not options.only or row["method"] == options.only:
                made.append(row)
                print(" ".join(f"{k}={v}" for k, v in row.items() if v != ""), file=sys.stderr)
        if not made:
            parser.error(f"no rows belong to {options.only!r}")
        write([*stay, *made])
    draw(kept())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
