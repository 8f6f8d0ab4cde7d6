"""The fingerprints of unique jobs as operators read them."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ojs_engine.domain.job import State
from ojs_engine.wire.members import Uuid
from ojs_engine.wire.pages import Indexed, Page, Pagination, pagination, with_progress
from ojs_features.unique.index import UniquePage


class UniqueJob(Struct, kw_only=True):
    """A fingerprint and the job that holds it."""

    key: str
    job_id: Uuid
    type: str
    queue: str
    state: State


class UniqueJobPage(Indexed, kw_only=True):
    """A page of the fingerprints, in order."""

    items: list[UniqueJob]
    pagination: Pagination


def unique_job_page(page: UniquePage, asked: Page) -> UniqueJobPage:
    """Return a page of the fingerprints."""
    items = [UniqueJob(**msgspec.structs.asdict(lock)) for lock in page.locks]
    return with_progress(UniqueJobPage(items=items, pagination=pagination(asked, page.total, page.next_cursor)), page)
