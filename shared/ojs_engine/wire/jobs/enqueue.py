"""POST /jobs: an envelope in any dialect -> the draft of a job.

Attributes may stand flat at the top level or in `options`, which wins. Null members are absent ones. Members that only the
server sets are ignored, members that nobody knows are kept for the answer. Every refusal names the field, its limit and
what was sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, Final

from msgspec import Raw

from ojs_engine.base.errors import invalid, too_large
from ojs_engine.base.extensions import Extensions, check_extra
from ojs_engine.base.fields import (
    absent,
    duration_ms,
    integer,
    kind_of,
    members_of,
    object_of,
    priority_of,
    queue_name,
    short_text,
    shown,
    text_list,
    value_of,
)
from ojs_engine.base.ids import is_job_id, new_job_id
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.base.times import parse_moment
from ojs_engine.domain.job import Job, Retry, State
from ojs_engine.domain.members import MEMBERS, OF_SERVER, Kind
from ojs_engine.domain.rate_limits.policy import POLICY_MEMBERS, RATE_MEMBERS, read_policy
from ojs_engine.domain.unique import keyed, parse_policy
from ojs_engine.domain.versions import parse_version
from ojs_engine.wire.jobs.retry import RETRY_MEMBERS, max_attempts, merge_retry, parse_retry, retry_extensions, snake
from ojs_engine.wire.jobs.slips import in_policy, refuse_pointless, without_effect
from ojs_engine.wire.members import AnswerWarning

SPECVERSION: Final = "1.0"

_TYPE: Final = re.compile(r"[a-z][a-zA-Z0-9_-]*(?:\.[a-z][a-zA-Z0-9_-]*)*", re.ASCII)
_SPOKEN: Final = re.compile(r"1(?:\.[0-9]+){0,2}(?:-[a-zA-Z0-9.]+)?", re.ASCII)
_URI: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.\-]*:[^\s\x00-\x1f\x7f<>\"{}|\\^`]+")
"""A scheme and something after it, without what RFC 3986 §2 has no place for; letters beyond ASCII are let be (IRIs)."""
_MAX_VERSION: Final = 64
_AT: Final = "@"
_DEFAULT_RETRY: Final = Retry()
_RETRY: Final = "retry"


def parse_enqueue(
    body: bytes,
    now: int,
    limits: PayloadLimits,
    told: list[AnswerWarning] | None = None,
    *,
    default_id: str | None = None,
) -> Job:
    """Return the draft of one job from a request body; `now` in Unix milliseconds anchors relative timestamps.

    `default_id` is the id of a job that brings none.

    The draft's state is `pending` or `available`, its times are absolute, `created_at` is unset. `told` takes warnings of
    members that have no effect. Raises OjsError: invalid_payload, invalid_request, invalid_retry_policy, envelope_too_large,
    metadata_too_large, job_type_too_long, queue_name_too_long.
    """
    if len(body) > limits.max_envelope_bytes:
        raise too_large("envelope_too_large", "the job", len(body), limits.max_envelope_bytes)
    envelope = object_of(body)
    if "type" not in envelope and "job" in envelope:
        envelope = members_of(envelope["job"], "job")
    return read_envelope(envelope, now, limits, otherwise=default_id, told=told)


def read_envelope(
    envelope: dict[str, Raw],
    now: int,
    limits: PayloadLimits,
    *,
    otherwise: str | None = None,
    told: list[AnswerWarning] | None = None,
    beside: Collection[str] = (),
) -> Job:
    """As `parse_enqueue`, for the undecoded members of one job; `otherwise` is the id of one that brings none, `beside` are
    members that may stand next to the job's, for what may be a misspelt one.
    """
    job_type, version = _job_type(envelope.pop("type", None), limits)
    args = _args(envelope.pop("args", None), limits)
    options = envelope.pop("options", None)

    draft = _Draft(now, limits, [] if told is None else told)
    for name, raw in envelope.items():
        draft.take(name, raw, name)
    if draft.extra and told is not None:
        told += without_effect(draft.extra, {*_ATTRIBUTES, "options", *beside}, "", only_close=True)
    if options is not None and not absent(options):
        for name, raw in members_of(options, "options").items():
            draft.take_option(name, raw, f"options.{name}")
    if version is not None:
        draft.fields.setdefault("version", version)
    return draft.finish(job_type, args, otherwise)


def _job_type(raw: Raw | None, limits: PayloadLimits) -> tuple[str, str | None]:
    """A job type, and the version behind an @ (ojs-job-versioning §5.3)."""
    value = None if raw is None else value_of(raw, "type", limits)
    if type(value) is not str or _AT not in value:
        return job_type_of(value, limits), None
    job_type, _, version = value.partition(_AT)
    parse_version(version, "type", "type's version, behind its @,")
    return job_type_of(job_type, limits), version


def job_type_of(value: Any, limits: PayloadLimits, path: str = "type") -> str:
    """A job type. Raises invalid_request, job_type_too_long."""
    if value is None:
        raise invalid(path, f"{path} is required: a dotted name such as email.send", canonical="INVALID_JOB_TYPE")
    if type(value) is str:
        if len(value) <= limits.max_type_bytes and _TYPE.fullmatch(value):
            return value
        if (length := len(value.encode())) > limits.max_type_bytes:
            raise too_large("job_type_too_long", path, length, limits.max_type_bytes)
    raise invalid(
        path,
        f"{path} must match ^[a-z][a-zA-Z0-9_-]*(\\.[a-z][a-zA-Z0-9_-]*)*$ (dotted names such as email.send), "
        f"not {shown(value)}",
        canonical="INVALID_JOB_TYPE",
    )


def _args(raw: Raw | None, limits: PayloadLimits) -> Raw:
    if raw is None:
        raise invalid("args", "args is required: a JSON array, [] if the job takes none", canonical="INVALID_ARGS")
    value = value_of(raw, "args", limits)
    if type(value) is not list:
        raise invalid("args", f"args must be a JSON array, not {kind_of(value)}", canonical="INVALID_ARGS")
    return raw


class _Draft:
    """What has been read of one job so far."""

    __slots__ = (
        "extra",
        "fields",
        "limits",
        "max_attempts",
        "now",
        "pending",
        "retry",
        "retry_extensions",
        "told",
        "verbatim",
    )

    def __init__(self, now: int, limits: PayloadLimits, told: list[AnswerWarning]) -> None:
        self.told = told
        self.now = now
        self.limits = limits
        self.fields: dict[str, Any] = {}
        self.extra: dict[str, Raw] = {}
        self.verbatim: dict[str, str] = {}
        self.retry: dict[str, Any] | None = None
        self.retry_extensions: Extensions = {}
        self.max_attempts: int | None = None
        self.pending = False

    def take(self, name: str, raw: Raw, path: str) -> None:
        value = value_of(raw, path, self.limits)
        if value is None:
            return
        if (reader := _READERS.get(name)) is not None:
            reader(self, value, path)
            if name == _RETRY:
                self.retry_extensions = retry_extensions(value, raw, path)
        elif name in _KEPT:
            self._keep(name, value, raw, path)
        elif name not in OF_SERVER:
            self.extra[name] = raw

    def _keep(self, name: str, value: Any, raw: Raw, path: str) -> None:
        if type(value) is not dict:
            message = f"{path} must be an object, not {kind_of(value)}"
            raise invalid(path, message, canonical=_CANONICAL.get(name))
        most = self.limits.max_meta_bytes if name == "meta" else self.limits.max_metadata_bytes
        if len(raw) > most:
            raise too_large("metadata_too_large", path, len(raw), most)
        if name == "unique":
            parse_policy(value, path, self.limits)
        elif name == "rate_limit":
            self._check_limit(value, path)
        self.fields[name] = raw

    def _check_limit(self, value: dict[str, Any], path: str) -> None:
        policy = read_policy(value, path)
        slips = in_policy(value, POLICY_MEMBERS, path, self.limits)
        for name in ("rate", "throttle"):
            if type(rate := value.get(name)) is dict:
                slips += in_policy(rate, RATE_MEMBERS, f"{path}.{name}", self.limits)
        if not policy.limits:
            refuse_pointless(slips, path, "has no limit without it: send concurrency, rate, max_per_second or throttle")
            slips = [AnswerWarning(path, f"{path} has no limit, and no effect: send concurrency, rate or throttle")]
        self.told += slips

    def take_option(self, name: str, raw: Raw, path: str) -> None:
        if name in TOP_LEVEL_ONLY:
            raise invalid(path, f"{path} is not an option; send {name} at the top level of the job")
        self.take(name, raw, path)
        if name not in _ATTRIBUTES and name not in OF_SERVER:
            self.told += without_effect([name], _ATTRIBUTES, "options")

    def finish(self, job_type: str, args: Raw, otherwise: str | None) -> Job:
        fields = self.fields
        if self.extra or self.retry_extensions:
            check_extra(self.extra | {f"retry.{name}": raw for name, raw in self.retry_extensions.items()}, self.limits)
            fields["extra"] = self.extra
            fields["retry_extensions"] = self.retry_extensions
        if "delay_until" in fields:  # the HTTP binding's name wins over the envelope's
            fields["scheduled_at"] = fields.pop("delay_until")
            if "delay_until" in self.verbatim:
                self.verbatim["scheduled_at"] = self.verbatim.pop("delay_until")
            else:
                self.verbatim.pop("scheduled_at", None)
        if self.verbatim:
            fields["verbatim"] = self.verbatim
        if self.retry is not None or self.max_attempts is not None:
            fields["retry"] = self._retry()
        total = fields.get("total_timeout_ms")
        if total is not None and total < (fields.get("timeout_ms") or 0):
            raise invalid("total_timeout", f"total_timeout ({total} ms) must not be shorter than timeout")
        if "id" not in fields:
            fields["id"] = otherwise or new_job_id(self.now)
        return keyed(Job(type=job_type, args=args, state=State.PENDING if self.pending else State.AVAILABLE, **fields))

    def _retry(self) -> Retry:
        members = self.retry if self.retry is not None else {}
        if self.max_attempts is not None:
            members.setdefault("max_attempts", self.max_attempts)
        return merge_retry(_DEFAULT_RETRY, members, "retry")


# One reader for each attribute: (draft, decoded value, path). Values are never null here.

_Reader = Callable[[_Draft, Any, str], None]


def _specversion(_draft: _Draft, value: Any, path: str) -> None:
    # Every 1.x reads the same envelope: ojs-core §5.1 has clients send 1.0.0-rc.1, the JSON format 1.0. A number is one, too.
    if type(value) in (int, float):
        value = str(value)
    if type(value) is not str or len(value) > _MAX_VERSION or not _SPOKEN.fullmatch(value):
        raise invalid(path, f'{path} must be a version 1, such as "{SPECVERSION}", not {shown(value)}')


def _id(draft: _Draft, value: Any, path: str) -> None:
    if type(value) is not str or not is_job_id(value):
        raise invalid(path, f"{path} must be a UUIDv7 in lower case, or left out to get one, not {shown(value)}")
    draft.fields["id"] = value


def _schema(draft: _Draft, value: Any, path: str) -> None:
    if type(value) is not str or len(value) > draft.limits.max_uri_chars or not _URI.fullmatch(value):
        raise invalid(
            path,
            f"{path} must be a URI with a scheme, such as urn:ojs:schema:email.send:v1, of at most "
            f"{draft.limits.max_uri_chars} characters, not {shown(value)}",
        )
    draft.fields["schema"] = value


def _version(draft: _Draft, value: Any, path: str) -> None:
    if type(value) is not int and type(value) is not str:
        raise invalid(path, f"{path} must be a text such as 2.0, or a whole number, not {kind_of(value)}")
    parse_version(str(value), path)
    draft.fields["version"] = value


def _queue(draft: _Draft, value: Any, path: str) -> None:
    draft.fields["queue"] = queue_name(value, path, draft.limits)


def _priority(draft: _Draft, value: Any, path: str) -> None:
    draft.fields["priority"] = priority_of(value, path)


def _text(field: str) -> _Reader:
    def read(draft: _Draft, value: Any, path: str) -> None:
        draft.fields[field] = short_text(value, path, draft.limits)

    return read


def _texts(field: str) -> _Reader:
    def read(draft: _Draft, value: Any, path: str) -> None:
        draft.fields[field] = text_list(value, path, draft.limits.max_tags, draft.limits)

    return read


_KINDS: Final[dict[Kind, Callable[[str], _Reader]]] = {"text": _text, "texts": _texts}


def _timeout_ms(draft: _Draft, value: Any, path: str) -> None:
    draft.fields["timeout_ms"] = duration_ms(value, path, 1, draft.limits)
    draft.fields["timeout_in_seconds"] = False


def _timeout_s(draft: _Draft, value: Any, path: str) -> None:
    ms = duration_ms(value, path, 1_000, draft.limits, zero=True)
    draft.fields["timeout_ms"] = ms or None  # 0 asks for the default (ojs-core §5.2)
    draft.fields["timeout_in_seconds"] = ms > 0


def _duration(attribute: str, unit_ms: int, *, zero: bool = False) -> _Reader:
    def read(draft: _Draft, value: Any, path: str) -> None:
        draft.fields[attribute] = duration_ms(value, path, unit_ms, draft.limits, zero=zero)

    return read


def _moment(attribute: str) -> _Reader:
    def read(draft: _Draft, value: Any, path: str) -> None:
        try:
            if type(value) is not str:
                raise ValueError("not a text")
            at, absolute = parse_moment(value, draft.now)
        except (ValueError, OverflowError) as problem:
            raise invalid(
                path,
                f"{path} must be an RFC 3339 timestamp with a zone (2026-01-31T12:00:00Z) or a duration from now (+PT5S), "
                f"not {shown(value)}: {problem}",
            ) from None
        draft.fields[attribute] = at
        if absolute:
            draft.verbatim[attribute] = value
        else:
            draft.verbatim.pop(attribute, None)

    return read


def _read_retry(draft: _Draft, value: Any, path: str) -> None:
    draft.retry = parse_retry(value, path, draft.limits)
    draft.told += in_policy(map(snake, value), RETRY_MEMBERS, path, draft.limits)


def _max_attempts(draft: _Draft, value: Any, path: str) -> None:
    draft.max_attempts = max_attempts(value, path, draft.limits)


def _pending(draft: _Draft, value: Any, path: str) -> None:
    if type(value) is not bool:
        raise invalid(path, f"{path} must be true or false, not {shown(value)}")
    draft.pending = value


def _result_ttl(draft: _Draft, value: Any, path: str) -> None:
    draft.fields["result_ttl_s"] = integer(value, path, -1, draft.limits.max_duration_ms // 1_000)


def _result_size_limit(draft: _Draft, value: Any, path: str) -> None:
    draft.fields["result_size_limit"] = integer(value, path, 1, draft.limits.max_result_bytes)


_READERS: Final[dict[str, _Reader]] = {
    "specversion": _specversion,
    "id": _id,
    "schema": _schema,
    "version": _version,
    "queue": _queue,
    "priority": _priority,
    **{member.name: _KINDS[member.kind](member.field or member.name) for member in MEMBERS if member.kind is not None},
    "pending": _pending,
    "delay_until": _moment("delay_until"),
    "scheduled_at": _moment("scheduled_at"),
    "expires_at": _moment("expires_at"),
    _RETRY: _read_retry,
    "max_attempts": _max_attempts,
    "timeout": _timeout_s,
    "timeout_ms": _timeout_ms,
    "visibility_timeout": _duration("visibility_timeout_ms", 1_000),
    "visibility_timeout_ms": _duration("visibility_timeout_ms", 1),
    "total_timeout": _duration("total_timeout_ms", 1_000),
    "total_timeout_ms": _duration("total_timeout_ms", 1),
    "enqueue_ttl": _duration("enqueue_ttl_ms", 1_000),
    "enqueue_ttl_ms": _duration("enqueue_ttl_ms", 1),
    "heartbeat_timeout": _duration("heartbeat_timeout_ms", 1_000),
    "heartbeat_timeout_ms": _duration("heartbeat_timeout_ms", 1),
    "grace_period": _duration("grace_period_ms", 1_000, zero=True),
    "grace_period_ms": _duration("grace_period_ms", 1, zero=True),
    "result_ttl": _result_ttl,
    "result_size_limit": _result_size_limit,
}
_KEPT: Final = frozenset({"meta", "metadata", "unique", "rate_limit"})
_CANONICAL: Final = {"meta": "INVALID_METADATA", "metadata": "INVALID_METADATA", "unique": "UNIQUE_KEY_INVALID"}
"""Objects that are stored and answered as sent."""
_ATTRIBUTES: Final = frozenset({*_READERS, *_KEPT})
TOP_LEVEL_ONLY: Final = frozenset({"options", "job"}) | {
    member.name for member in MEMBERS if member.by == "client" and not member.option
}
