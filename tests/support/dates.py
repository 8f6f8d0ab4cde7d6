"""The date of a machine, set while a process runs there: for processes that `stepped/sitecustomize.py` is loaded by."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_SHIM: Final = Path(__file__).parent / "stepped"


def stepping(dates: Path) -> dict[str, str]:
    """The environment of processes that are told their machine's date by files in a folder."""
    return {"PYTHONPATH": str(_SHIM), "STEPPED_DATES": str(dates)}


def set_date(dates: Path, pid: int, seconds: int) -> None:
    """Let the date of a process's machine be so many seconds ahead."""
    file = dates / str(pid)
    file.with_suffix(".new").write_text(str(seconds), encoding="utf-8")
    file.with_suffix(".new").rename(file)
