"""Make the notebooks of this folder (.ipynb, executed) from their sources (.py); with --check run them and write nothing.

python notebooks/build.py [--check]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import jupytext
import nbclient

HERE = Path(__file__).resolve().parent
TIMEOUT = 600  # seconds a cell


def sources() -> list[Path]:
    """Every Python file of this folder but this one."""
    return [f for f in sorted(HERE.glob("*.py")) if f != Path(__file__).resolve()]


def build(source: Path, check: bool) -> str:
    """Execute one notebook and, unless it is only checked, write it beside its source; "" or what is wrong."""
    notebook = jupytext.read(source)
    try:
        nbclient.NotebookClient(notebook, timeout=TIMEOUT, kernel_name="python3", resources={"metadata": {"path": str(HERE)}}).execute()
    except nbclient.exceptions.CellExecutionError as error:
        return f"{source.name} fails: {str(error).strip().splitlines()[-1]}"
    if not check:
        jupytext.write(notebook, source.with_suffix(".ipynb"))
    return ""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a notebook fails")
    options = parser.parse_args(arguments)
    wrong = [told for told in (build(f, options.check) for f in sources()) if told]
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
