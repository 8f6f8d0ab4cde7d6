"""The table of a job's members: who sets each, which answers show it, whether it is what a job carries, what stays of it.

One row for each name that a job has in requests and answers, and one for each field of the record that no answer shows.
What the server ignores in a push, hides from who may not see payloads and finds jobs by follows from these rows. A member
that has no row is hidden, and a test refuses it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, Literal

from msgspec import Struct

By = Literal["client", "server"]
Shown = Literal["always", "change", "fetch", "detail", "never"]
Kind = Literal["text", "texts"]


class Member(Struct, frozen=True):
    """One member of a job in requests and answers."""

    name: str
    by: By
    """Who sets it. What a client sends for a member of the server's is ignored (ojs-core §5.3)."""
    shown: Shown = "always"
    """In every answer with a job that has it; only in answers to a change, to a fetch, or about one job in detail; or never."""
    option: bool = False
    """A client may send it in `options`, too."""
    carried: bool = False
    """Part of what the job carries, which is hidden from who may see jobs and not their payloads."""
    field: str | None = None
    """The field of the record that it is made from, where that has another name."""
    kept: bool = False
    """It stays in the tombstone of a job that was deleted."""
    printed: bool = False
    """The official command line prints it among the options of a job."""
    feature: str = ""
    """The feature that does what it says. A server without that feature refuses a push with it."""
    kind: Kind | None = None
    """How it is read and described if that takes nothing of its own: `ojs_engine.wire.jobs.enqueue` and
    `ojs_engine.api.envelope` have a check and a schema for each kind.
    """
    about: str = ""
    """What the description of the API says of one with a kind."""


class Inner(Struct, frozen=True):
    """One field of the record that no answer shows."""

    name: str
    kept: bool = False


class FoundBy(Struct, frozen=True):
    """One text that lists and bulk operations find jobs by."""

    name: str
    about: str = ""
    field: str = ""
    """The field of the record that has the text, or several, if the index has a label for each."""
    letter: str = ""
    """The kind of these labels. The index is built anew when there is another one; `m` is that of members of `meta`."""


MEMBERS: Final = (
    Member("specversion", "client"),
    Member("id", "client", kept=True),
    Member("type", "client", kept=True),
    Member("args", "client", carried=True),
    # What may stand in `options` as well
    Member("queue", "client", option=True, kept=True, printed=True),
    Member("priority", "client", option=True, printed=True),
    Member("max_attempts", "client", option=True, field="retry", printed=True),
    Member("timeout_ms", "client", option=True, printed=True),
    Member("visibility_timeout_ms", "client", option=True, printed=True),
    Member("scheduled_at", "client", option=True, printed=True),
    Member("expires_at", "client", option=True, printed=True),
    Member("retry", "client", option=True, printed=True),
    Member("unique", "client", option=True, printed=True, feature="unique"),
    Member("rate_limit", "client", option=True, printed=True, feature="limits"),
    Member("tags", "client", option=True, printed=True, kind="texts"),
    Member("schema", "client", option=True, feature="schemas"),
    Member("version", "client", option=True),
    Member("meta", "client", option=True, carried=True),
    Member("metadata", "client", option=True, carried=True),
    Member("result_ttl", "client", option=True, field="result_ttl_s"),
    Member("result_size_limit", "client", option=True),
    Member("timeout", "client", option=True, field="timeout_ms"),
    Member("total_timeout", "client", option=True, field="total_timeout_ms"),
    Member("enqueue_ttl", "client", option=True, field="enqueue_ttl_ms"),
    Member("heartbeat_timeout", "client", option=True, field="heartbeat_timeout_ms"),
    Member("grace_period", "client", option=True, field="grace_period_ms"),
    # Other names and forms that are read, and answered as the members above
    Member("pending", "client", "never", option=True, field="state"),
    Member("delay_until", "client", "never", option=True, field="scheduled_at"),
    Member("visibility_timeout", "client", "never", option=True, field="visibility_timeout_ms"),
    Member("total_timeout_ms", "client", "never", option=True),
    Member("enqueue_ttl_ms", "client", "never", option=True),
    Member("heartbeat_timeout_ms", "client", "never", option=True),
    Member("grace_period_ms", "client", "never", option=True),
    # Where it stands
    Member("state", "server", kept=True),
    Member("attempt", "server", kept=True),
    Member("uncounted_attempts", "server", field="uncharged"),
    Member("retry_delay_ms", "server"),
    Member("worker_id", "server", field="worker"),
    Member("result", "server", carried=True),
    Member("result_size_bytes", "server", field="result_blob"),
    Member("error", "server"),
    Member("errors", "server"),
    Member("workflow_id", "server", field="workflow", kept=True),
    Member("workflow_step", "server", field="workflow", kept=True),
    Member("workflow_step_id", "server", field="workflow", kept=True),
    Member("dead_letter", "server", "detail"),
    # When
    Member("created_at", "server", kept=True),
    Member("enqueued_at", "server"),
    Member("activated_at", "server"),
    Member("started_at", "server"),
    Member("completed_at", "server"),
    Member("cancelled_at", "server"),
    Member("discarded_at", "server", kept=True),
    Member("re_enqueued_at", "server"),
    Member("next_attempt_at", "server"),
    Member("next_retry_at", "server", "never", field="next_attempt_at"),
    Member("result_stored_at", "server"),
    Member("result_expires_at", "server", field="result_stored_at"),
    # Of one answer
    Member("previous_state", "server", "change", field="transitions"),
    Member("rate_limit_until", "server", "change", field="rate_limit"),
    Member("checkpoint", "server", "fetch", carried=True),
    Member("parent_results", "server", "fetch", field="workflow", carried=True),
    Member("parent_results_by_index", "server", "fetch", field="workflow", carried=True),
    Member("timeline", "server", "detail", field="transitions", kept=True),
    Member("timers", "server", "detail", field="timer"),
    Member("visible_until", "server", "detail"),
    Member("leaves_at", "server", "detail", field="retention"),
)

INNER: Final = (
    Inner("unique_key", kept=True),
    Inner("lock", kept=True),
    Inner("generation", kept=True),
    Inner("deleted"),
    Inner("verbatim"),
    Inner("timeout_in_seconds"),
    Inner("extra"),
    Inner("retry_extensions"),
    Inner("lease_ms"),
    Inner("beat_at"),
    Inner("permits"),
    Inner("token"),
    Inner("amended"),
)

FOUND_BY: Final = (
    FoundBy("tag", field="tags", letter="t"),
    FoundBy("error_type", "Of its last failure."),
    FoundBy("worker", "Who holds it, or held it last."),
)


class Found(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a list or a bulk operation finds jobs by: a text for each row of `FOUND_BY`. None is not asked about."""

    tag: str | None = None
    error_type: str | None = None
    worker: str | None = None

    @property
    def texts(self) -> dict[str, Any]:
        return {by.name: getattr(self, by.name) for by in FOUND_BY}


LABELLED: Final = tuple(one for one in FOUND_BY if one.letter)
OF_SERVER: Final = frozenset(member.name for member in MEMBERS if member.by == "server")
CARRIED: Final = frozenset(member.name for member in MEMBERS if member.carried)
OPTIONS: Final = frozenset(member.name for member in MEMBERS if member.option)
PLAIN: Final = tuple((member.name, member.field or member.name) for member in MEMBERS if member.kind is not None)
"""Members with a kind, and the fields that they are made from. Answers show them as they are stored."""
SEVERAL: Final = frozenset(member.name for member in MEMBERS if member.kind == "texts")
PRINTED: Final = tuple(member.name for member in MEMBERS if member.printed)
KEPT: Final = frozenset(member.field or member.name for member in MEMBERS if member.kept) | {
    inner.name for inner in INNER if inner.kept
}
"""Fields of the record."""


def not_honoured(features: Collection[str]) -> tuple[str, ...]:
    """Return the fields of a job that nobody does what they say, where only these features are there."""
    return tuple(member.field or member.name for member in MEMBERS if member.feature and member.feature not in features)


def shown_in(*answers: Shown) -> frozenset[str]:
    """Return the names of the members that these answers show."""
    return frozenset(member.name for member in MEMBERS if member.shown in answers)
