"""The ids of what this process makes."""

from __future__ import annotations

from ojs_nats._importing import importing


def new_id() -> str:
    """Return a UUIDv7 as text."""
    with importing:  # it reads from the disk which version of itself is installed
        import uuid6  # noqa: PLC0415
    return str(uuid6.uuid7())
