"""Queues (docs/queues.md)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from ojs_api.members import Duration, OpenAnswer, Part


class PreventionRequest(Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """What a queue, or each queue of a pool, is to be guaranteed while it has jobs."""

    enabled: bool | None = None
    rotation_interval: Duration | None = None
    min_dispatch_ratio: Annotated[float, Meta(ge=0, le=1)] | None = None


class StarvationPrevention(OpenAnswer, frozen=True, kw_only=True, omit_defaults=True):
    """What a queue, or each queue of a pool, is guaranteed while it has jobs."""

    enabled: bool
    rotation_interval: (
        Annotated[str, Meta(description="After how long it gets a turn: a duration such as PT30S (ISO 8601).")] | None
    ) = None
    min_dispatch_ratio: Annotated[Part, Meta(description="Its part of all jobs.")] | None = None
