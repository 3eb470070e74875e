"""From claims to verdicts: every claim is checked in all the ways that apply to it."""

from __future__ import annotations

import fnmatch
import math
import os
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from verify_rates.report import Report
from verify_rates.solvers.method import UsageError, nearest
from verify_rates.solvers.own import blamed
from verify_rates.solvers.words import Unsupported
from verify_rates.theory.claims import Claim, claims
from verify_rates.verdicts import Check, Result, Verdict, judge

Progress = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Suite:
    """How much work a check does: seeds a run, instances a search, and whether long points are left out."""

    trials: int
    searches: int


SUITES = {"quick": Suite(trials=40, searches=24), "full": Suite(trials=400, searches=400)}


def check(
    globs: Iterable[str | Claim] = (),
    *,
    suite: str = "quick",
    files: Iterable[str | Path] = (),
    data: str | Path | None = None,
    seed: int = 0,
    jobs: int | None = None,
    fresh: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Check claims and return a report with one verdict a claim.

    Parameters
    ----------
    globs : patterns of claim ids, such as ``"deco.*"``, and claims themselves, as in a notebook (checked in this process, nothing of
        them is stored); none selects all.
    suite : "quick" or "full" (more seeds and longer searches).
    files : Python files with further methods and claims; they are run.
    data : LIBSVM file (plain or .gz) that takes the place of the embedded real data.
    seed : of all runs and searches.
    jobs : processes; by default one a processor.
    fresh : compute again what an earlier check of the same code, claim and data has stored.
    progress : called with ``{"event": "started"|"finished", "id": ..., "done": ..., "total": ..., "result": ...}``.

    Raises
    ------
    UsageError : unknown suite, pattern without a match among several, unreadable file.

    >>> report = check(["matcha.1"], jobs=1)
    >>> [result.verdict.value for result in report.results]
    ['holds']
    """
    if suite not in SUITES:
        raise nearest(str(suite), SUITES, "suite")
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise UsageError(f"seed must be a whole number of at least 0, not {seed!r}.")
    if jobs is not None and (not isinstance(jobs, int) or jobs < 1):
        raise UsageError(f"jobs must be a whole number of at least 1, not {jobs!r}.")
    names = [str(f) for f in files]
    wanted = [globs] if isinstance(globs, (str, Claim)) else list(globs)
    own = {c.id: c for c in wanted if isinstance(c, Claim)}
    patterns = [g for g in wanted if not isinstance(g, Claim)]
    chosen = select(patterns, names) if patterns or not own else {}
    if twice := next((i for i in own if i in chosen), None):
        raise UsageError(f"two claims are called {twice!r}; choose another id.")
    if data is not None:
        _probe(data)
    settings = {"suite": suite, "seed": seed, "data": None if data is None else str(data), "files": names, "globs": [*patterns, *own]}
    tasks = [(c.id, settings) for c in sorted(chosen.values(), key=_work, reverse=True)]  # the longest first: none is left for the end
    results, failures, interrupted = _run(
        tasks, min(jobs or os.cpu_count() or 1, max(1, len(tasks))), fresh, progress or (lambda event: None)
    )
    results |= {} if interrupted else {i: _examined(c, settings) for i, c in own.items()}
    return Report([results[i] for i in (*chosen, *own) if i in results], settings, interrupted=interrupted, errors=failures)


def _work(claim: Claim) -> int:
    """How long a claim takes, roughly: runs are what takes time."""
    return len(claim.runs) + 2 * len(claim.families)


def select(globs: Iterable[str], files: Iterable[str] = ()) -> dict[str, Claim]:
    """The claims whose id matches a pattern, in order; every pattern has to match something."""
    from verify_rates.userfile import load_all

    known = claims(*load_all(files))
    patterns = list(globs)
    for pattern in patterns:
        if not fnmatch.filter(known, pattern):
            raise nearest(pattern, known, "claim")
    return {i: c for i, c in known.items() if not patterns or any(fnmatch.fnmatchcase(i, p) for p in patterns)}


def _probe(data: str | Path) -> None:
    """Read the user's data once, so that a bad file is one sentence before any work."""
    from verify_rates.runs import problem_of

    problem_of({"name": "logistic", "data": str(data), "n": 1, "lam": 1e-2})


def _run(
    tasks: list[tuple[str, dict[str, Any]]], jobs: int, fresh: bool, progress: Progress
) -> tuple[dict[str, Result], list[dict[str, str]], bool]:
    """Results by id, internal errors, and whether the user interrupted; one claim's error does not lose the others."""
    done: dict[str, Result] = {}
    failures: list[dict[str, str]] = []
    try:
        for outcome in _outcomes(tasks, jobs, fresh, progress):
            if isinstance(outcome, Result):
                done[outcome.claim.id] = outcome
                finished = len(done) + len(failures)
                progress({"event": "finished", "id": outcome.claim.id, "done": finished, "total": len(tasks), "result": outcome})
            else:
                failures.append(outcome)
    except KeyboardInterrupt:
        return done, failures, True
    return done, failures, False


def _outcomes(tasks: list[tuple[str, dict[str, Any]]], jobs: int, fresh: bool, progress: Progress) -> Iterator[Result | dict[str, str]]:
    if jobs == 1:
        for claim_id, settings in tasks:
            progress({"event": "started", "id": claim_id, "total": len(tasks)})
            yield _guarded(claim_id, settings, fresh)
        return
    from joblib import Parallel, delayed, parallel_config

    warnings.filterwarnings("ignore", "A worker stopped", UserWarning)  # compiled code makes workers grow; they are replaced
    with parallel_config(backend="loky", inner_max_num_threads=1):
        yield from Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)(
            delayed(_guarded)(claim_id, settings, fresh) for claim_id, settings in tasks
        )


def _guarded(claim_id: str, settings: dict[str, Any], fresh: bool) -> Result | dict[str, str]:
    """The verdict, or the record of an internal error; what the user can mend is raised."""
    try:
        return check_one(claim_id, settings, fresh)
    except (UsageError, Unsupported):
        raise
    except Exception as error:  # a bug: the other claims go on, and the exit code says so
        message = f"{type(error).__name__}: {error}"
        return {"claim": claim_id, "message": message, "traceback": traceback.format_exc()}


def check_one(claim_id: str, settings: dict[str, Any], fresh: bool = False) -> Result:
    """The verdict on one claim, from the store where the same check was done before."""
    from verify_rates.store import Store, key
    from verify_rates.userfile import load_all

    claim = claims(*load_all(settings["files"]))[claim_id]
    data = settings["data"] if any("data" in point.get("problem", ()) for point in claim.runs) else None
    entry = key(claim, suite=settings["suite"], seed=settings["seed"], data=data, files=tuple(settings["files"]))
    if not fresh and (kept := Store().get(entry, claim)) is not None:
        return kept
    result = _examined(claim, settings)
    Store().put(entry, result)
    return result


def _examined(claim: Claim, settings: dict[str, Any]) -> Result:
    began = time.perf_counter()
    with blamed():
        checks = [] if claim.not_checkable else evidence(claim, SUITES[settings["suite"]], settings["seed"], settings["data"])
    return Result(claim, judge(claim, checks), checks, _message(claim, checks), time.perf_counter() - began)


def evidence(claim: Claim, suite: Suite, seed: int = 0, data: str | Path | None = None) -> list[Check]:
    """All checks of a claim: worst cases on its grid, runs, searches, or its own check."""
    if claim.check:
        return [check_formula(claim, point) for point in claim.grid]
    from verify_rates.exact import check_worst_case
    from verify_rates.points import check_points
    from verify_rates.runs import check_moments, check_run, with_data
    from verify_rates.search import check_family

    check_points(claim)
    found = [check_worst_case(claim, point) for point in claim.grid]
    found += [check_run(claim, with_data(point, data), seed=seed, trials=suite.trials) for point in claim.runs]
    found += [c for c in (check_moments(claim, point, seed=seed) for point in claim.runs) if c is not None]
    found += [check_family(claim, family, seed=seed, trials=suite.trials, budget=suite.searches) for family in claim.families]
    return found


def check_formula(claim: Claim, point: Any) -> Check:
    from verify_rates.witness import formula

    began = time.perf_counter()
    found = formula(claim.check, point)
    return Check(
        claim.kind,
        dict(point),
        float(found.bound),
        float(found.lower),
        float(found.upper),
        found.relation,
        proves=found.proves,
        seconds=time.perf_counter() - began,
        message=found.message,
        witness={
            "kind": "formula",
            "check": claim.check,
            "parameters": dict(point),
            "value": float(found.lower if found.relation != ">=" else found.upper),
            "bound": float(found.bound),
            "relation": found.relation,
        },
    )


def _message(claim: Claim, checks: list[Check]) -> str:
    """One sentence: what decided the verdict."""
    verdict = judge(claim, checks)
    if verdict is Verdict.NOT_CHECKABLE:
        return claim.not_checkable
    counted = [c for c in checks if c.status != "not applicable"]
    if not counted:
        return "no check applies: " + "; ".join(sorted({c.message for c in checks})[:3])
    bad = next((c for c in counted if c.status != "ok"), None)
    if verdict is Verdict.INCONCLUSIVE and bad is not None:
        return f"{bad.kind}: {bad.status}"
    kinds = ", ".join(f"{sum(c.kind == k for c in counted)} {k}" for k in dict.fromkeys(c.kind for c in counted))
    worst = max(counted, key=lambda c: abs(c.lower / c.bound) if c.bound and math.isfinite(c.lower) else -1.0)
    return f"{verdict.sentence} ({kinds}; closest: {worst.message or worst.kind})"


def mutated(result: Result, factor: float) -> Result:
    """The same evidence judged with the bound multiplied by ``factor``; nothing is computed again."""
    verdict = judge(result.claim, result.checks, factor)
    checks = [c if c.bound is None else _scaled(c, c.bound * factor, factor) for c in result.checks]
    return replace(result, verdict=verdict, checks=checks, message=f"bound times {factor:g}: {verdict.sentence}")


def _scaled(check: Check, bound: float, factor: float) -> Check:
    witness = check.witness and {**check.witness, "bound": bound, "factor": factor}
    return replace(check, bound=bound, evidence_against=None, witness=witness)
