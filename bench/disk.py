"""What a data folder takes on the disk."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_BLOCK: Final = 512
"""Bytes of what `st_blocks` counts."""
_READ: Final = 1 << 20


def sizes(folder: Path | None) -> dict[str, int]:
    """Bytes on the disk of each part of a folder (a file or folder in it); nothing where the folder isn't known."""
    if folder is None:
        return {}
    return {part.name: sum(_taken(path) for path in (part, *part.rglob("*"))) for part in folder.iterdir()}


def _taken(path: Path) -> int:
    try:
        return path.lstat().st_blocks * _BLOCK
    except FileNotFoundError:  # moved or merged meanwhile
        return 0


def read_once(folder: Path | None) -> None:
    """Read all files of a folder, so that what is measured next doesn't wait for the disk."""
    for path in folder.rglob("*") if folder is not None else ():
        if path.is_file():
            with contextlib.suppress(OSError), path.open("rb") as file:
                while file.read(_READ):
                    pass


def grown(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """By how many bytes each part that has grown has."""
    return {part: more for part, size in after.items() if (more := size - before.get(part, 0)) > 0}
