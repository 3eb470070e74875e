"""verify-rates: a distributed optimisation method is written once; its rates are checked in every way the theory knows."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# name -> module that defines it; imported on first use, so that `verify-rates --help` stays quick
_PUBLIC = {
    "method": "verify_rates.solvers.method",
    "UsageError": "verify_rates.solvers.method",
    "Unsupported": "verify_rates.solvers.words",
    "Shared": "verify_rates.solvers.words",
    "PerWorker": "verify_rates.solvers.words",
    "SharedQueue": "verify_rates.solvers.words",
    "PerWorkerQueue": "verify_rates.solvers.words",
    **dict.fromkeys(("grad", "mean", "spread", "gossip", "compress", "delay", "chance", "sign", "clip"), "verify_rates.solvers.words"),
    **dict.fromkeys(("full_grad", "grad_pair", "mean_sent", "gathered", "each", "flip", "prox", "rescale"), "verify_rates.solvers.words"),
    **dict.fromkeys(("masked", "sqrt", "log", "times", "divide", "outside", "coordinate_mean"), "verify_rates.solvers.words"),
    **dict.fromkeys(("dct", "idct", "orthogonalise"), "verify_rates.solvers.words"),
    **dict.fromkeys(("implicit", "lmo", "line_search", "inner"), "verify_rates.solvers.words"),
    **dict.fromkeys(("optimum", "gap", "sqnorm", "consensus"), "verify_rates.solvers.words"),
    "simulate": "verify_rates.solvers.engine.run",
    "worst_case": "verify_rates.theory.worst_case.solve",
    "certify": "verify_rates.proofs_check.certificates",
    "certify_chain": "verify_rates.proofs_check.chains",
    "guess_closed_form": "verify_rates.proofs_check.guess",
    "plan": "verify_rates.theory.planner",
    **dict.fromkeys(("fit", "read_links", "read_model", "read_profile"), "verify_rates.theory.measured"),
    **dict.fromkeys(("read_trace", "write_trace", "run_along"), "verify_rates.theory.networks"),
    "contraction": "verify_rates.theory.contraction",
    "potential": "verify_rates.theory.potentials",
    "ef21_cubic": "verify_rates.theory.groups",
    "ef21_groups": "verify_rates.theory.groups",
    "tune": "verify_rates.theory.tune",
    "Claim": "verify_rates.theory.claims",
    "Setting": "verify_rates.theory.claims",
    "product": "verify_rates.theory.claims",
    "check": "verify_rates.pipeline",
    "replay": "verify_rates.witness",
    "timeline": "verify_rates.theory.timeline",
    "expected_time": "verify_rates.theory.timeline.coins",
    "stragglers": "verify_rates.theory.stragglers",
    **dict.fromkeys(("collective", "collective_table"), "verify_rates.theory.timeline.collectives"),
    "traffic": "verify_rates.theory.traffic",
    "quadratic": "verify_rates.theory.quadratic",
    "catalogue": "verify_rates.listing",
    "show": "verify_rates.listing",
    "figures": "verify_rates.figure_files",
    "write_pages": "verify_rates.pages",
    "get_problem": "verify_rates.problems",
    "make_problem": "verify_rates.problems.custom",
    "check_constants": "verify_rates.problems.checks",
    "compressor": "verify_rates.solvers.compressors",
    "check_compressor": "verify_rates.solvers.compressor_check",
    "topology": "verify_rates.solvers.topologies",
    "switching": "verify_rates.solvers.switching",
    "on_ball": "verify_rates.problems.local",
}

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'verify_rates' has no attribute {name!r}")
    value = getattr(importlib.import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_PUBLIC))
