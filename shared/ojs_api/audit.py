"""The audit: who did what (docs/audit.md)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from ojs_api.members import Moment, SentMoment, one_of
from ojs_api.operations import Operation, Parameter, Subject
from ojs_api.pages import DEFAULT_PAGE, MAX_PAGE, Pagination
from ojs_api.words import AuditOutcome, Binding, Mechanism


class AuditDetail(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is particular to an entry. It never has anything of a request's body or query."""

    operation: str
    target: dict[str, str]
    binding: Annotated[str, one_of(Binding)]
    permission: str = ""
    principal_id: str = ""
    mechanism: Annotated[str, one_of(Mechanism)] = ""
    key_prefix: str = ""
    reason: str = ""
    status: int = 0
    user_agent: str = ""
    count: Annotated[int, Meta(description="How many acts it stands for, if they are several.")] = 1
    first_at: Annotated[str, Meta(description="When the first of them was.")] = ""
    operations: Annotated[list[str], Meta(description="Of the acts, if they differ.")] = []
    addresses: Annotated[list[str], Meta(description="That they came from, if they differ.")] = []


class AuditEntry(Struct, frozen=True, kw_only=True):
    """An entry. `id` is its place."""

    id: str
    timestamp: Moment
    event_type: str
    principal: str
    source_ip: str
    correlation_id: str
    outcome: Annotated[str, one_of(AuditOutcome)]
    detail: AuditDetail


class AuditPage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of the audit."""

    entries: list[AuditEntry]
    after: Annotated[str, Meta(description="Goes into `after` for what comes later.")] | None = None
    pagination: Pagination


_LIMIT: Final = Meta(ge=1, le=MAX_PAGE)

# fmt: off
LIST: Final = Operation(
    "listAuditEntries", "GET /admin/audit", "admin", "Read the audit", {200: AuditPage},
    "The newest entries first. With `after` those that came later, the oldest first. A page may be short, or empty, "
    "although `has_more` says that there are more: a question looks through 10,000 entries.",
    query=(
        Parameter("event_type", str, "A type such as `auth.login_failure`, or `auth.*`."),
        Parameter("principal", str, "The name or the id of who did it."),
        Parameter("operation", str, "An operation's id, such as `pauseQueue`."),
        Parameter("target", str, "What it was done to: a queue, a job's id, a key's id …"),
        Parameter("outcome", AuditOutcome),
        Parameter("since", SentMoment, "Not before this moment."),
        Parameter("until", SentMoment, "Not after this moment."),
        Parameter(
            "limit", Annotated[int, Meta(ge=1, le=MAX_PAGE, extra_json_schema={"default": DEFAULT_PAGE})],
            "More counts as the most.",
        ),
        Parameter("per_page", Annotated[int, _LIMIT], "Another name of `limit`.", same_as="limit"),
        Parameter("offset", Literal["0"], "There is no other: go on with `cursor`."),
        Parameter("cursor", str, "`next_cursor` of the page before."),
        Parameter("after", str, "`after` of an earlier page, or the id of an entry."),
    ),
)
AUDIT: Final = Subject("Audit", "Who did what", (LIST,))
