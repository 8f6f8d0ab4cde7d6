"""What a data folder takes on the disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

_BLOCK: Final = 512
"""Bytes of what `st_blocks` counts."""


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


def grown(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """By how many bytes each part that has grown has."""
    return {part: more for part, size in after.items() if (more := size - before.get(part, 0)) > 0}
