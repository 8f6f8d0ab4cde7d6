"""A job as clients push it (`ojs_engine.wire.jobs.enqueue` reads it)."""

from __future__ import annotations

from typing import Any, Final, get_args

from ojs_engine.api.common import (
    CONCURRENCY,
    DURATION,
    JOB_ID,
    OBJECT,
    PRIORITY,
    QUEUE_NAME,
    RATE,
    SHORT,
    TYPE_NAME,
    VERSION,
)
from ojs_engine.api.schema import (
    ANYTHING,
    FLAG,
    TEXT,
    Named,
    Schema,
    either,
    list_of,
    number,
    one_of,
    record,
    text,
    whole,
)
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.domain.job import Backoff, Exhaustion
from ojs_engine.domain.members import MEMBERS, Kind, Member
from ojs_engine.domain.rate_limits.policy import OnLimit

_LONGEST_S: Final = DEFAULT_LIMITS.max_duration_ms // 1_000
SECONDS: Final = either(number(0, _LONGEST_S), DURATION, about="Seconds, or a duration.")
DURATION_MS: Final = either(number(0, DEFAULT_LIMITS.max_duration_ms), DURATION, about="Milliseconds, or a duration.")
_MOMENT: Final = text("An RFC 3339 timestamp with a zone, or a duration from now: +PT5S.")
PREVENTION_REQUEST: Final = Named(
    "StarvationPreventionRequest",
    record({}, {"enabled": FLAG, "rotation_interval": SECONDS, "min_dispatch_ratio": number(0, 1)}),
)
RATE_LIMIT: Final = Named(
    "RateLimitPolicy",
    record(
        {},
        {
            "key": text("Limits all jobs of the key, in whatever queue.", pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._:\-]*$", most=255),
            "concurrency": CONCURRENCY,
            "rate": either(RATE, whole(1), about="Starts within any period."),
            "period": either(number(0), TEXT),
            "max_per_second": whole(1),
            "throttle": either(RATE, whole(1), about="Starts evenly spaced."),
            "on_limit": one_of(*get_args(OnLimit)),
        },
        free=True,
    ),
)
RETRY_REQUEST: Final = Named(
    "RetryRequest",
    record(
        {},
        {
            "max_attempts": whole(0, DEFAULT_LIMITS.max_attempts),
            "initial_interval": DURATION,
            "initial_interval_ms": number(0, DEFAULT_LIMITS.max_duration_ms),
            "backoff_coefficient": number(1, 1_000_000),
            "max_interval": DURATION,
            "max_interval_ms": number(0, DEFAULT_LIMITS.max_duration_ms),
            "jitter": FLAG,
            "non_retryable_errors": list_of(SHORT, most=DEFAULT_LIMITS.max_error_patterns),
            "on_exhaustion": one_of(*get_args(Exhaustion)),
            "backoff_strategy": one_of(*get_args(Backoff)),
        },
        free=True,
        about="What is left out is the queue's or the server's default. Names in camelCase are read, too.",
    ),
)
_UNIQUE: Final = record({}, free=True, about="A uniqueness policy (docs/unique.md).")

_KINDS: Final[dict[Kind, dict[str, Any]]] = {
    "text": SHORT,
    "texts": list_of(SHORT, most=DEFAULT_LIMITS.max_tags),
}


def _of_kind(member: Member, kind: Kind) -> dict[str, Any]:
    return _KINDS[kind] | ({"description": member.about} if member.about else {})


_ATTRIBUTES: Final[dict[str, Schema]] = {
    "queue": QUEUE_NAME,
    "priority": PRIORITY | {"description": "The highest comes first."},
    **{member.name: _of_kind(member, member.kind) for member in MEMBERS if member.kind is not None},
    "schema": text("A URI.", most=DEFAULT_LIMITS.max_uri_chars),
    "version": VERSION,
    "pending": {"type": "boolean", "description": "Whether it waits to be activated."},
    "delay_until": _MOMENT,
    "scheduled_at": _MOMENT,
    "expires_at": _MOMENT,
    "retry": RETRY_REQUEST,
    "max_attempts": whole(0, DEFAULT_LIMITS.max_attempts),
    "timeout": SECONDS,
    "timeout_ms": DURATION_MS,
    "visibility_timeout": SECONDS,
    "visibility_timeout_ms": DURATION_MS,
    "total_timeout": SECONDS,
    "total_timeout_ms": DURATION_MS,
    "enqueue_ttl": SECONDS,
    "enqueue_ttl_ms": DURATION_MS,
    "heartbeat_timeout": SECONDS,
    "heartbeat_timeout_ms": DURATION_MS,
    "grace_period": SECONDS,
    "grace_period_ms": DURATION_MS,
    "result_ttl": whole(-1, _LONGEST_S, "Seconds; 0 keeps no result, -1 keeps it and its job for ever."),
    "result_size_limit": whole(1, DEFAULT_LIMITS.max_result_bytes, "Bytes."),
    "meta": OBJECT,
    "metadata": OBJECT,
    "unique": _UNIQUE,
    "rate_limit": RATE_LIMIT,
}

_TYPE: Final = text(
    "A job type, with its version behind an @ if it has one.",
    pattern=TYPE_NAME["pattern"][:-1] + r"(@\d+(\.\d+){0,2}(-[0-9A-Za-z.\-]+)?)?$",
    most=DEFAULT_LIMITS.max_type_bytes + 100,
)
_REQUIRED: Final[dict[str, Schema]] = {"type": _TYPE, "args": list_of(ANYTHING)}
_OPTIONAL: Final[dict[str, Any]] = {
    "specversion": {"const": "1.0"},
    "id": JOB_ID | {"description": "A UUIDv7; left out, the server makes one."},
    **_ATTRIBUTES,
    "options": record({}, _ATTRIBUTES, free=True, about="The same attributes; those given here win."),
}
ENVELOPE: Final = Named(
    "JobRequest",
    record(
        _REQUIRED,
        _OPTIONAL,
        free=True,
        about=f"At most {DEFAULT_LIMITS.max_envelope_bytes} bytes unless the server is set otherwise. Up to "
        f"{DEFAULT_LIMITS.max_extra_members} members that OJS does not define are kept and come back as they were sent.",
    ),
)
