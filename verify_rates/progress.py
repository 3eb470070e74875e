"""Progress on stderr: a live bar on a terminal, plain lines elsewhere.

The pipeline calls it with events, plain dicts: ``{"event": "start", "total": n}``, then for every claim
``{"event": "claim", "id": id}`` when its checks begin and ``{"event": "done", "id": id, "verdict": text, "seconds": s, "cached": bool}``.
"""

from __future__ import annotations

from typing import Any, Self

PLAIN_EVERY = 10.0  # seconds between two plain lines


class Progress:
    """A context manager that is called with events; ``quiet`` shows nothing."""

    def __init__(self, quiet: bool = False) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False)
        self._quiet, self._bar, self._task = quiet, None, None
        self._done = self._total = 0
        self._last = 0.0

    def __enter__(self) -> Self:
        import time

        self._last = time.monotonic()
        if self._console.is_terminal and not self._quiet:
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
            self._bar = Bar(*columns, console=self._console, transient=True)
            self._task = self._bar.add_task("", total=None)
            self._bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, event: dict[str, Any]) -> None:
        kind = event.get("event")
        if kind == "start":
            self._total = event["total"]
        elif kind == "done":
            self._done += 1
        if self._bar is not None:
            note = {"claim": "id", "done": "id"}.get(str(kind))
            self._bar.update(self._task, total=self._total, completed=self._done, description=str(event[note]) if note else "")
        elif not self._quiet:
            self._plain(event, str(kind))

    def _plain(self, event: dict[str, Any], kind: str) -> None:
        import time

        now = time.monotonic()
        if kind == "done" and (now - self._last >= PLAIN_EVERY or self._done == self._total):
            self._last = now
            self._console.print(
                f"{self._done} of {self._total} claims checked, last {event['id']}: {event.get('verdict', '')}", soft_wrap=True
            )
