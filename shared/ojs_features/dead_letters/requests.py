"""Requests about dead letters: which ones, and what a new life changes (ojs-dead-letter §6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Raw, Struct

from ojs_engine.base.errors import invalid, too_large
from ojs_engine.base.fields import absent, queue_name, struct_of, value_of
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.domain.job import NOTHING, Job
from ojs_engine.domain.transitions import RetryOverride
from ojs_engine.wire.jobs.retry import RETRY_MEMBERS, merge_retry, parse_retry, snake
from ojs_engine.wire.jobs.slips import in_policy


class DeadFilter(Struct, frozen=True, forbid_unknown_fields=True):
    queue: str | None = None
    type: str | None = None
    error_type: str | None = None
    since: str | None = None
    until: str | None = None
    older_than: str | int | float | None = None
    state: str | None = None
    """Dead letters are discarded; any other state selects none of them."""


class DeadBulk(Struct, frozen=True, forbid_unknown_fields=True):
    """What no filter has is refused: a misspelt member would change more than was meant."""

    filter: DeadFilter | None = None
    older_than: str | int | float | None = None
    confirm: bool | None = None


NOTHING_ASKED: Final = DeadBulk()


class DeadQuery(DeadFilter, frozen=True):
    confirm: bool | None = None


class OverrideMembers(Struct, forbid_unknown_fields=True):
    queue: str | None = None
    meta: Raw = NOTHING
    retry: dict[str, Any] | None = None
    args: Raw = NOTHING


class OverrideBody(Struct, forbid_unknown_fields=True):
    override: OverrideMembers | None = None


def parse_override(body: bytes, limits: PayloadLimits) -> Callable[[Job], RetryOverride]:
    """POST /dead-letter/{id}/retry: what the new life changes (ojs-dead-letter §6.3), once it is known of which job. What a
    retry policy leaves out stays as it is: with one attempt more the job is still a dead letter if that fails.

    Raises, here or then, invalid_payload, invalid_request, invalid_retry_policy, metadata_too_large, envelope_too_large.
    """
    sent = struct_of(body, OverrideBody).override or OverrideMembers()
    meta, args = NOTHING, NOTHING
    if not absent(sent.meta):
        meta = sent.meta
        if type(value_of(meta, "override.meta", limits)) is not dict:
            raise invalid("override.meta", "override.meta must be an object", canonical="INVALID_METADATA")
        if len(meta) > limits.max_meta_bytes:
            raise too_large("metadata_too_large", "override.meta", len(meta), limits.max_meta_bytes)
    if not absent(sent.args):
        args = sent.args
        if type(value_of(args, "override.args", limits)) is not list:
            raise invalid("override.args", "override.args must be a JSON array", canonical="INVALID_ARGS")
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
