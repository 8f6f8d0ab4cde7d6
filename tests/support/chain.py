"""Enqueue middleware to be loaded by its import path."""

from __future__ import annotations

from typing import Any

from ojs_core.runtime.middleware import NextMiddleware

CONSTANT = 5


async def tag(job: dict[str, Any], following: NextMiddleware) -> dict[str, Any] | None:
    """Adds a tag, for the outside to see."""
    return await following(job | {"tags": [*job["tags"], "tagged"]})


class Nested:
    tag = staticmethod(tag)
