"""What a data folder takes on the disk."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

_READ: Final = 1 << 20


def read_once(folder: Path | None) -> None:
    """Read all files of a folder, so that what is measured next doesn't wait for the disk."""
    for path in folder.rglob("*") if folder is not None else ():
        if path.is_file():
            with contextlib.suppress(OSError), path.open("rb") as file:
                while file.read(_READ):
                    pass
