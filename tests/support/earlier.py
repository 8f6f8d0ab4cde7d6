"""Earlier versions of the server, out of the history of this checkout."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from support.forked import with_sources

_ROOT: Final = Path(__file__).parents[2]
_SOURCES: Final = ("shared", "services")


class NoSuchVersion(Exception):
    """The checkout doesn't have a commit; the message says so."""


def earlier(commit: str, folder: Path) -> Sequence[str]:
    """Unpack the server of a commit into `folder`, and return how its command is started, with the packages of today.

    Raises NoSuchVersion.
    """
    archive = subprocess.run(["git", "-C", str(_ROOT), "archive", commit, *_SOURCES], capture_output=True, check=False)
    if archive.returncode != 0:
        raise NoSuchVersion(
            f"it needs commit {commit[:7]}, which this checkout doesn't have: {archive.stderr.decode().strip()}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return with_sources(os.pathsep.join(str(folder / source) for source in _SOURCES))
