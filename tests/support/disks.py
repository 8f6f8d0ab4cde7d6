"""Small disks, and filling them."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class CannotMount(Exception):
    """A disk can't be mounted here: that takes root."""


@contextmanager
def small_disk(folder: Path, mib: int) -> Iterator[None]:
    """A folder that is made, and is a disk of its own with so many MiB. Raises CannotMount."""
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", str(folder)]
    mounted = subprocess.run(command, capture_output=True, check=False)
    if mounted.returncode:
        raise CannotMount(mounted.stderr.decode().strip())
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(file: Path) -> None:
    """Write until nothing fits any more; others may make room again meanwhile."""
    with file.open("ab", buffering=0) as filler:
        for size in (1 << 20, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while True:
                    filler.write(bytes(size))
