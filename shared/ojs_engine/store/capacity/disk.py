"""The disk that nats-server writes to, where that is on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from ojs_engine.domain.storage_room import StorageLevel, storage_level


def of_disk(folder: Path, reserve: int) -> StorageLevel | None:
    """The disk that a folder is on; None while the folder isn't there."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return None
    size = disk.f_blocks * disk.f_frsize
    return storage_level("disk", f"the disk of {folder}", size - disk.f_bavail * disk.f_frsize, size, reserve)
