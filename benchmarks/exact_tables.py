"""Exact worst cases and best step sizes of methods for which none were known, as docs/exact_tables.csv.

Run ``python benchmarks/exact_tables.py`` (some minutes on one core), or with ``--check`` to compute some rows again and compare.  L = 1
throughout; n is any number of workers of at least 2; every value is an upper end, proved at the step beside it.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parents[1] / "docs" / "exact_tables.csv"
FIELDS = ("method", "by", "setting", "tau", "delta", "H", "zeta2_star", "lam", "gamma", "lower", "upper", "steps_per_efold")
MU = 0.1
TAUS, DELTAS = (0, 1, 2, 3, 4), (1.0, 0.75, 0.5, 0.25, 0.1)
LOCAL, HETEROGENEITY = (1, 2, 4, 8), (0.0, 0.01, 1.0)
MIXING = (0.0, 0.5, 0.9, 0.99)
RTOL = 1e-4  # of a row computed again: a search along a kink


def _row(method: str, found: Any, setting: str, **parameters: Any) -> dict[str, Any]:
    best = found.best
    known = {"gamma": f"{found.hyper['gamma']:.6g}", "upper": f"{best.upper:.8g}"}
    known["lower"] = f"{best.lower:.8g}" if math.isfinite(best.lower) else ""
    if found.by == "contraction":
        known["steps_per_efold"] = f"{-2 / math.log(best.upper):.5g}"  # of a distance: V is a square
    return dict.fromkeys(FIELDS, "") | {"method": method, "by": found.by, "setting": setting} | parameters | known


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
    if wanted in ("", "gossip_sgd"):
        for lam in MIXING:
            given = {"by": "worst_case", "steps": 4, "zeta2_star": 1.0, "mixing": lam, "over": {"gamma": (0.05, 1.95)}}
            yield _row("gossip_sgd", tune("gossip_sgd", **given), f"{convex}; N=4; upper bound", lam=lam, zeta2_star=1.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", metavar="METHOD", nargs="?", const="acco", help="Compute the rows of a method again and compare.")
    options = parser.parse_args()
    if options.check:
        with TABLE.open(newline="") as file:
            kept = [row for row in csv.DictReader(file) if row["method"] in (options.check, "gd")]
        again = [row for row in rows(options.check) if row["method"] in (options.check, "gd")]
        same = [abs(float(a["upper"]) / float(b["upper"]) - 1) <= RTOL for a, b in zip(again, kept, strict=True)] if again else []
        print(f"{sum(same)} of {len(same)} rows as before")
        return 0 if same and all(same) else 1
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        for row in rows():
            writer.writerow(row)
            file.flush()
            print(" ".join(f"{k}={v}" for k, v in row.items() if v != ""), file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
