"""Fingerprints of unique jobs and unreadable records as clients read them."""

from __future__ import annotations

from typing import Any

import msgspec

from ojs_core.base.times import format_ms
from ojs_core.read.messages import Answer, UniquePage, UnreadablePage
from ojs_core.wire.pages import Page, pagination


def with_progress(view: dict[str, Any], answer: Answer) -> dict[str, Any]:
    """`view`, marked as partial while the index behind it is being rebuilt."""
    if answer.partial:
        view |= {"partial": True, "index_progress": round(answer.progress, 3)}
    return view


def unique_jobs_view(page: UniquePage, asked: Page) -> dict[str, Any]:
    """GET /unique-jobs."""
    items = [msgspec.structs.asdict(lock) for lock in page.locks]
    view = {"items": items, "unique_jobs": items, "pagination": pagination(asked, page.total, page.next_cursor)}
    return with_progress(view, page)


def unreadable_view(page: UnreadablePage, asked: Page) -> dict[str, Any]:
    """GET /admin/unreadable."""
    items = [msgspec.structs.asdict(row) | {"stored_at": format_ms(row.stored_at)} for row in page.records]
    view = {"items": items, "records": items, "pagination": pagination(asked, page.total, page.next_cursor)}
    return with_progress(view, page)
