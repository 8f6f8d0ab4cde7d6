"""Who did what."""

from __future__ import annotations

from typing import Final, get_args

from ojs_api import words
from ojs_core.api.common import PERIOD
from ojs_core.api.route import Parameter, Part, Route
from ojs_core.api.schema import TEXT, one_of, whole
from ojs_core.wire.pages import DEFAULT_PAGE, MAX_PAGE
from ojs_core.wire.system.audit import AuditPage
from ojs_gateway.handlers.audit import AuditHandlers

AUDIT: Final = Part(
    "Audit",
    "Who did what",
    (
        Route(
            AuditHandlers,
            AuditHandlers.list,
            ("GET /admin/audit listAuditEntries",),
            "admin",
            "Read the audit",
            {200: AuditPage},
            "The newest entries first. With `after` those that came later, the oldest first. A page may be short, or empty, "
            "although `has_more` says that there are more: a question looks through 10,000 entries.",
            query=(
                Parameter("event_type", TEXT, "A type such as `auth.login_failure`, or `auth.*`."),
                Parameter("principal", TEXT, "The name or the id of who did it."),
                Parameter("operation", TEXT, "An operation's id, such as `pauseQueue`."),
                Parameter("target", TEXT, "What it was done to: a queue, a job's id, a key's id …"),
                Parameter("outcome", one_of(*get_args(words.AuditOutcome))),
                *PERIOD,
                Parameter("limit", whole(1, MAX_PAGE) | {"default": DEFAULT_PAGE}, "More counts as the most."),
                Parameter("per_page", whole(1, MAX_PAGE), "Another name of `limit`.", same_as="limit"),
                Parameter("offset", one_of("0"), "There is no other: go on with `cursor`."),
                Parameter("cursor", TEXT, "`next_cursor` of the page before."),
                Parameter("after", TEXT, "`after` of an earlier page, or the id of an entry."),
            ),
        ),
    ),
)
