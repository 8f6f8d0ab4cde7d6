"""The date of a machine, set while a process runs there: for processes that `stepped/sitecustomize.py` is loaded by."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from support.forked import with_sources

_SHIM: Final = Path(__file__).parent / "stepped"
STEPPED: Final[Sequence[str]] = with_sources(str(_SHIM))
"""The command for processes that are told their machine's date, and forked."""


def told(dates: Path) -> dict[str, str]:
    """Return the environment in which `STEPPED` finds the dates, in files of a folder."""
    return {"STEPPED_DATES": str(dates)}


def stepping(dates: Path) -> dict[str, str]:
    """Return the environment of processes that are started, with all below them, and told their machine's date."""
    return {"PYTHONPATH": str(_SHIM), **told(dates)}


def set_date(dates: Path, pid: int, seconds: int) -> None:
    """Let the date of a process's machine be so many seconds ahead."""
    file = dates / str(pid)
    file.with_suffix(".new").write_text(str(seconds), encoding="utf-8")
    file.with_suffix(".new").rename(file)
