"""Progress on stderr: a live bar on a terminal, plain lines elsewhere.

The pipeline calls it with events: ``{"event": "started", "id": ..., "total": ...}`` when a claim's checks begin and
``{"event": "finished", "id": ..., "done": ..., "total": ..., "result": Result}`` when its verdict is known.
"""

from __future__ import annotations

from typing import Any, Self

PLAIN_EVERY = 10.0  # seconds between two plain lines


class Progress:
    """A context manager that is called with events; ``quiet`` shows nothing."""

    def __init__(self, quiet: bool = False) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False)
        self._quiet = quiet
        self._bar: Any = None
        self._task: Any = None
        self._done = 0
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
        self._done = event.get("done", self._done)
        if self._bar is not None:
            self._bar.update(self._task, total=event["total"], completed=self._done, description=event["id"])
        elif event["event"] == "finished" and not self._quiet:
            self._plain(event)

    def _plain(self, event: dict[str, Any]) -> None:
        import time

        now = time.monotonic()
        if now - self._last >= PLAIN_EVERY or self._done == event["total"]:
            self._last = now
            last = f"{event['id']}: {event['result'].verdict.value}"
            self._console.print(f"{self._done} of {event['total']} claims checked, last {last}", soft_wrap=True)
