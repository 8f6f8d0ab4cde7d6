"""The audit as operators ask for it and read it (docs/audit.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, get_args

from msgspec import Struct
from msgspec.structs import asdict

from ojs_api.audit import AuditEntry, AuditPage
from ojs_engine.base.errors import invalid
from ojs_engine.base.fields import choice, timestamp
from ojs_engine.base.numbers import whole_number
from ojs_engine.wire.pages import Page as AskedPage
from ojs_engine.wire.pages import check_cursor, pagination, parse_page
from ojs_features.audit.entry import Outcome
from ojs_features.audit.reading import Page, Wanted

_OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
_DIGITS: Final = 18


class AuditAsk(Struct, frozen=True):
    """What is asked for: the newest ahead of `before` (None: of the end), or what comes behind `after`."""

    wanted: Wanted
    page: AskedPage
    before: int | None
    after: int | None


def parse_audit(query: Mapping[str, str]) -> AuditAsk:
    """The query of GET /admin/audit. Raises invalid_request."""
    page = parse_page(query)
    if page.offset or page.number is not None:
        name = "offset" if page.number is None else "page"
        raise invalid(name, f"the audit has no {name}: go on with cursor, or narrow it with since and until")
    check_cursor(page, _is_place, "a page of the audit")
    after = query.get("after") or None
    if after is not None and not _is_place(after):
        raise invalid("after", "after must be what a page of the audit has as `after`, or the id of an entry")
    if after is not None and page.cursor is not None:
        raise invalid("after", "cursor goes on to older entries, after to later ones; use one of both")
    wanted = Wanted(
        event_type=query.get("event_type") or None,
        principal=query.get("principal") or None,
        operation=query.get("operation") or None,
        target=query.get("target") or None,
        outcome=choice(sent, "outcome", _OUTCOMES) if (sent := query.get("outcome")) else None,
        since=timestamp(query.get("since"), "since"),
        until=timestamp(query.get("until"), "until"),
    )
    before = None if page.cursor is None else int(page.cursor)
    return AuditAsk(wanted, page, before, None if after is None else int(after))


def audit_page(found: Page, asked: AuditAsk) -> AuditPage:
    """The answer to a question."""
    entries = [AuditEntry(id=str(read.sequence), **asdict(read.entry)) for read in found.entries]
    forward = asked.after is not None
    cursor = str(found.place) if found.has_more and not forward else None
    after = str(found.place if forward else found.last) if forward or asked.before is None else None
    return AuditPage(entries=entries, after=after, pagination=pagination(asked.page, None, cursor, more=found.has_more))


def _is_place(text: str) -> bool:
    return whole_number(text, _DIGITS) is not None
