"""What the results of theory share: plain data, JSON and HTML, made of one sentence and a table of facts."""

from __future__ import annotations

import html
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any


class Told(ABC):
    """A result that says itself as a sentence (``str``) and as plain data (``to_dict``)."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain data; infinities are None."""

    def facts(self) -> Iterable[tuple[str, str]]:
        """Names and texts of the rows under the sentence."""
        return [(k, str(v)) for k, v in getattr(self, "statement", {}).items()]

    def to_json(self, **options: Any) -> str:
        """The same as JSON."""
        return json.dumps(self.to_dict(), allow_nan=False, **options)

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in self.facts())
        return f"<p>{html.escape(str(self))}</p><table>{rows}</table>"
