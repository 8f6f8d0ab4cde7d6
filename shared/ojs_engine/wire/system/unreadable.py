"""Records that can't be read, as operators read of them."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ojs_engine.base.times import format_ms
from ojs_engine.read.messages import UnreadablePage
from ojs_engine.wire.members import Count, Timestamp
from ojs_engine.wire.pages import Indexed, Page, Pagination, pagination, with_progress


class UnreadableRecord(Struct, kw_only=True):
    """A record that can't be read: what its key says it is, and why it can't be. `size` in bytes."""

    kind: str
    key: str
    sequence: Count
    stored_at: Timestamp
    size: Count
    problem: str


class UnreadableRecordPage(Indexed, kw_only=True):
    """A page of such records, by kind and key."""

    items: list[UnreadableRecord]
    pagination: Pagination


class RemovedRecord(Struct):
    """The record is gone."""

    removed: bool
    kind: str
    key: str


def unreadable_page(page: UnreadablePage, asked: Page) -> UnreadableRecordPage:
    """A page of the records."""
    items = [UnreadableRecord(**msgspec.structs.asdict(row) | {"stored_at": format_ms(row.stored_at)}) for row in page.records]
    return with_progress(UnreadableRecordPage(items=items, pagination=pagination(asked, page.total, page.next_cursor)), page)
