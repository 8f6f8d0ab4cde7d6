"""Stored events as clients poll them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from ojs_core.domain.events.envelope import Event
from ojs_core.wire.pages import Pagination


class EventPage(Struct, kw_only=True, omit_defaults=True):
    """Events, oldest first. `pagination` is there for those who count pages."""

    events: Sequence[Annotated[Raw, Event]]
    cursor: Annotated[str, Meta(description="Goes into `after` for what follows.")]
    has_more: bool
    pagination: Pagination | UnsetType = UNSET
