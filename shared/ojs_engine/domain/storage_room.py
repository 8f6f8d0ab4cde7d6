"""How much room there is to store what is new, and when too little (docs/adr/010): figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

RESERVE_BYTES: Final = 256 * 1024 * 1024
"""What is kept for work that goes on, unless that were more than its part of the limit."""
_PART: Final = 8
"""The reserve is at most the limit by this, so that small limits leave room for jobs."""


class RoomSettings(Struct, frozen=True, kw_only=True):
    """What the operator says of the room: sizes in bytes."""

    reserve: int = RESERVE_BYTES
    limit: int = 0
    """nats-server's max_file_store, for each server; 0: not known."""
    folder: Path | None = None
    """A folder on the disk that nats-server writes to, if it is on this machine."""


class StorageLevel(Struct, frozen=True):
    """One thing that may be full: `of` names it for metrics, `what` for people. Sizes in bytes."""

    of: str
    what: str
    used: int
    limit: int
    reserve: int

    @property
    def left(self) -> int:
        return self.limit - self.used

    @property
    def full(self) -> bool:
        """Whether only the reserve is left."""
        return self.left < self.reserve


def levels(info: dict[str, Any], replicas: int, server: int | None, reserve: int) -> list[StorageLevel]:
    """The levels that an answer of `$JS.API.INFO` shows; `server` is the limit of one nats-server, None if it isn't known.

    On a cluster NATS adds up what all copies take; each server has one, and so is full long before the sum says so.
    """
    tier = (info.get("tiers") or {}).get(f"R{replicas}")
    account = tier or info
    used = int(account.get("storage", 0))
    found = []
    limit = int(account.get("limits", {}).get("max_storage", -1))
    if limit >= 0:
        limit *= replicas if tier else 1
        found.append(storage_level("account", "the storage that NATS gives the account (max_file)", used, limit, reserve))
    if server is not None:
        copy = used // max(replicas, 1)
        found.append(storage_level("server", "nats-server's storage (max_file_store)", copy, server, reserve))
    return found


def shortage(found: Sequence[StorageLevel]) -> str | None:
    """Which level is full, in words with figures; None if there is room."""
    full = [level for level in found if level.full]
    if not full:
        return None
    worst = min(full, key=lambda level: level.left - level.reserve)
    return (
        f"{worst.what} is full: {_mib(worst.used)} of {_mib(worst.limit)} are used, and the last {_mib(worst.reserve)} "
        "are kept for jobs that are there already"
    )


def storage_level(of: str, what: str, used: int, limit: int, reserve: int) -> StorageLevel:
    return StorageLevel(of, what, used, limit, min(reserve, limit // _PART))


def _mib(size: int) -> str:
    return f"{max(size, 0) / 1024**2:,.1f} MiB"
