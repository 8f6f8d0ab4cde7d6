"""Requests about dead letters: which ones, and what a new life changes (ojs-dead-letter §6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Raw
from msgspec.structs import asdict, replace

from ojs_api.dead_letters import ChangeDeadLetters, Override, RetryDeadLetter, WhichDeadLetters
from ojs_engine.base.errors import invalid, too_large
from ojs_engine.base.fields import absent, before_ms, queue_name, shown, struct_of, timestamp, value_of
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.domain.job import NOTHING, Job, State
from ojs_engine.domain.transitions import RetryOverride
from ojs_engine.wire.jobs.retry import RETRY_MEMBERS, merge_retry, parse_retry, snake
from ojs_engine.wire.jobs.slips import in_policy
from ojs_engine.wire.members import encode
from ojs_engine.wire.queries import Queries
from ojs_engine.wire.requests import request_of
from ojs_index.asking.messages import DeadLettersAsk

_NOTHING_ASKED: Final = ChangeDeadLetters()


class _InQuery(WhichDeadLetters, frozen=True, kw_only=True):
    """The same in a query string."""

    confirm: bool | None = None


def parse_narrowed(queries: Queries, now: int, limits: PayloadLimits) -> DeadLettersAsk:
    """GET /dead-letter. Empty parameters narrow nothing. Raises invalid_request."""
    named = {name: value for name, value in queries.items() if value and name in WhichDeadLetters.__struct_fields__}
    if (state := named.get("state", State.DISCARDED)) != State.DISCARDED:
        raise invalid("state", f"state must be discarded, as every dead letter is, not {shown(state)}")
    return _ask(struct_of(encode(named), WhichDeadLetters), "", now, limits)


def parse_change(body: bytes, queries: Queries, now: int, limits: PayloadLimits, *, confirmed: bool = False) -> DeadLettersAsk:
    """POST /dead-letter/retry and the like `{filter, older_than, confirm: true}`, or the same in the query.

    Raises invalid_payload, invalid_request.
    """
    asked = request_of(body, ChangeDeadLetters) if body else _NOTHING_ASKED
    wanted, path = asked.filter or WhichDeadLetters(), "filter."
    confirm, older_than = asked.confirm, asked.older_than
    in_query = {name: value for name, value in queries.items() if name in _InQuery.__struct_fields__}
    if in_query:
        if asked != _NOTHING_ASKED:
            name = next(iter(in_query))
            raise invalid(name, f"{name} is in the query, and more in the body: put all in one of them")
        query = struct_of(encode(in_query), _InQuery, strict=False)
        wanted, path, confirm = query, "", query.confirm
    if not (confirmed if confirm is None else confirm):
        raise invalid("confirm", "this changes every dead letter that matches the filter; send confirm: true to do it")
    for name, value in asdict(wanted).items():
        if value == "":  # somebody's form with a field that was not filled in
            raise invalid(f"{path}{name}", f"{path}{name} is empty; leave it out to match any")
    if wanted.queue is not None:
        queue_name(wanted.queue, f"{path}queue", limits)
    if older_than is not None:
        wanted, path = replace(wanted, older_than=older_than), ""
    return _ask(wanted, path, now, limits)


def _ask(wanted: WhichDeadLetters, path: str, now: int, limits: PayloadLimits) -> DeadLettersAsk:
    """Return the question to the index; `path` leads to the members in the request."""
    until = timestamp(wanted.until, f"{path}until")
    if wanted.older_than is not None:
        before = before_ms(wanted.older_than, f"{path}older_than", now, limits) - 1
        until = before if until is None else min(until, before)
    return DeadLettersAsk(
        queue=wanted.queue,
        type=wanted.type,
        error_type=wanted.error_type,
        since=timestamp(wanted.since, f"{path}since"),
        until=until,
    )


def parse_override(body: bytes, limits: PayloadLimits) -> Callable[[Job], RetryOverride]:
    """POST /dead-letter/{id}/retry: what the new life changes (ojs-dead-letter §6.3), once it is known of which job.

    What a retry policy leaves out stays as it is: with one attempt more the job is still a dead letter if that fails.

    Raises, here or then, invalid_payload, invalid_request, invalid_retry_policy, metadata_too_large, envelope_too_large.
    """
    sent = request_of(body, RetryDeadLetter).override or Override()
    meta = _sent(sent.meta, "override.meta", dict, "an object", "INVALID_METADATA", limits)
    if len(meta) > limits.max_meta_bytes:
        raise too_large("metadata_too_large", "override.meta", len(meta), limits.max_meta_bytes)
    args = _sent(sent.args, "override.args", list, "a JSON array", "INVALID_ARGS", limits)
    if len(args) > limits.max_envelope_bytes:
        raise too_large("envelope_too_large", "override.args", len(args), limits.max_envelope_bytes)
    queue = None if sent.queue is None else queue_name(sent.queue, "override.queue", limits)
    path = "override.retry"
    members = {} if sent.retry is None else parse_retry(sent.retry, path, limits)
    if sent.retry is not None:
        in_policy(map(snake, sent.retry), RETRY_MEMBERS, path, limits)

    def override(job: Job) -> RetryOverride:
        return RetryOverride(
            queue=queue, meta=meta, retry=merge_retry(job.retry, members, path) if members else None, args=args
        )

    return override


def _sent(raw: Raw, path: str, kind: type, words: str, code: str, limits: PayloadLimits) -> Raw:
    """Return JSON of a kind as it was sent; nothing if it was left out. Raises invalid_request."""
    if absent(raw):
        return NOTHING
    if type(value_of(raw, path, limits)) is not kind:
        raise invalid(path, f"{path} must be {words}", canonical=code)
    return raw
