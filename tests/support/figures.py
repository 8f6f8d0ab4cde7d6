"""Figures that tests print for documents: `pytest -s` shows them, and `script/drills` gathers them."""

from __future__ import annotations

import os
from pathlib import Path


def tell(text: str) -> None:
    """Print a line, and add it to the file that `OJS_FIGURES` names, if it names one."""
    print(text, flush=True)  # noqa: T201  # what pytest shows with -s
    if name := os.environ.get("OJS_FIGURES"):
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")
