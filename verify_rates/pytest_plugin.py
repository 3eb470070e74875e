"""pytest: ``pytest --verify-rates my_theory.py`` turns every claim of the file into a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


class ClaimFailed(Exception):
    """A claim's verdict is not what it expects, or nothing was settled; the message is the sentence shown."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("verify-rates")
    group.addoption("--verify-rates", action="store_true", help="check the claims of the Python files named on the command line")
    group.addoption("--verify-rates-suite", choices=["quick", "full"], default="quick", help="how much is checked")
    group.addoption("--verify-rates-seed", type=int, default=0, help="seed of every random draw")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    wanted = parent.config.getoption("--verify-rates") and file_path.suffix == ".py" and parent.session.isinitpath(file_path)
    return ClaimFile.from_parent(parent, path=file_path) if wanted else None


class ClaimFile(pytest.File):
    """A user's file; its items are its claims."""

    def collect(self) -> Iterator[pytest.Item]:
        from verify_rates.solvers.method import UsageError
        from verify_rates.theory.claims import collect
        from verify_rates.userfile import load

        try:
            found = {c.id: c for c in collect(load(self.path))}
        except UsageError as e:
            raise self.CollectError(str(e)) from None
        for claim in found.values():
            yield ClaimItem.from_parent(self, name=claim.id, claim=claim)


class ClaimItem(pytest.Item):
    """One claim: it passes when its verdict is what it expects, and is skipped when it cannot be checked."""

    def __init__(self, *, claim: Any, **more: Any) -> None:
        super().__init__(**more)
        self.claim = claim

    def runtest(self) -> None:
        from verify_rates.pipeline import check
        from verify_rates.report import tightness
        from verify_rates.verdicts import Verdict

        if self.claim.not_checkable:
            pytest.skip(self.claim.not_checkable)
        options = self.config.option
        suite, seed = options.verify_rates_suite, options.verify_rates_seed
        (result,) = check([self.claim.id], files=[self.path], suite=suite, seed=seed, jobs=1).results
        self.add_report_section(
            "call", "claim", f"{self.claim.statement}\nverdict: {result.verdict.value}\nmeasured/bound: {tightness(result)}"
        )
        if result.verdict is Verdict.INCONCLUSIVE or not result.as_expected:
            raise ClaimFailed(f"{result.verdict.value} (expected: {self.claim.expect}): {result.message}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, ClaimFailed):
            return f"claim {self.name} is {excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"claim {self.name}"
