"""Enqueue middleware to be loaded by its import path."""

from __future__ import annotations

from typing import Any

from ojs_nats.middleware import Next

__all__ = ["CONSTANT", "Nested", "tag"]

CONSTANT = 5


async def tag(job: dict[str, Any], following: Next) -> dict[str, Any] | None:
    """Adds a tag, for the outside to see."""
    return await following(job | {"tags": [*job["tags"], "tagged"]})


class Nested:
    tag = staticmethod(tag)
