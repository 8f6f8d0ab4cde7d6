"""What workers and operators send: fetch, ack, nack, heartbeat, register, deregister, and the small job commands.

Every body is read in the dialects of the official clients; null members are absent ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar, get_args

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ojs_api import words
from ojs_api.jobs import CancelJob, ReadResults
from ojs_api.work import (
    AckJob,
    AckJobs,
    DeregisterWorker,
    FetchJobs,
    NackJob,
    RegisterWorker,
    SentError,
    SentHandler,
    StopReason,
)
from ojs_api.work import Heartbeat as HeartbeatBody
from ojs_engine.base.errors import OjsError, batch_too_large, indexed, invalid
from ojs_engine.base.fields import (
    absent,
    below,
    duration_ms,
    integer,
    items_of,
    members_of,
    queue_name,
    queue_names,
    short_text,
    shown,
    text_list,
    value_of,
)
from ojs_engine.base.ids import is_job_id, job_id_of
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.base.times import format_ms, parse_timestamp
from ojs_engine.domain.handlers import ANY_VERSION, Handled, Handler
from ojs_engine.domain.job import NOTHING
from ojs_engine.domain.transitions import Action, Failure, JobHolder
from ojs_engine.domain.worker import CompleteList, Worker
from ojs_engine.wire.jobs.enqueue import job_type_of
from ojs_engine.wire.members import AnswerWarning, encode
from ojs_engine.wire.requests import plain_request_of, request_of
from ojs_engine.wire.workers.marks import mark_of
from ojs_engine.wire.workers.tolerance import read_report, side

_T = TypeVar("_T")

_ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
SHUTDOWN: Final[StopReason] = "shutdown"
_STATES: Final[frozenset[str]] = frozenset(get_args(words.WorkerState)) - {"stale"}
_WHOSE: Final = frozenset({"job_id", "worker_id", "attempt"})
"""What says which job and who holds it: guessed or left out, a report could end what another is working on."""
_NO_MESSAGE: Final = "the worker gave no message"
_SURELY_MS: Final = 100_000_000_000
"""A time of this size counts milliseconds: as seconds it were in the year 5138."""
_LAST_MS: Final = 253_402_300_799_999
"""The end of the year 9999."""


class Fetch(Struct, frozen=True):
    """A request for work; `lease_ms` None leaves the visibility timeout to the job, `wait_ms` 0 answers at once.

    `pool` is the worker's; `handled` is what it says in the request that it can run, `declared` that it has said so before.
    `acks` are carried out before: each, or why it is refused. A fetch with any doesn't wait.
    """

    queues: tuple[str, ...]
    count: int
    worker: str | None
    lease_ms: int | None
    wait_ms: int
    pool: str | None = None
    handled: Handled | None = None
    acks: Sequence[Ack | OjsError] = ()
    declared: bool = False


class Ack(Struct, frozen=True):
    """`result` is JSON as sent (`null` is a result), `NOTHING` if the request had no such member."""

    job_id: str
    result: Raw
    holder: JobHolder


class Nack(Struct, frozen=True):
    """`closed_until` (Unix ms): nothing under the job's rate limit key is to start before (ojs-rate-limiting §9.1)."""

    job_id: str
    failure: Failure
    holder: JobHolder
    closed_until: int | None = None
    warnings: Sequence[AnswerWarning] = ()


class Heartbeat(Struct, frozen=True):
    worker: Worker
    job_ids: tuple[str, ...]
    lease_ms: int | None
    warnings: Sequence[AnswerWarning] = ()


class Deregistration(Struct, frozen=True):
    """A worker stops. `pid` and `started_at` are those of its process, as far as it says them."""

    worker: str
    reason: StopReason = SHUTDOWN
    pid: int | None = None
    started_at: str | None = None


# Fetch


def parse_fetch(body: bytes, limits: PayloadLimits) -> Fetch:
    """POST /workers/fetch. Raises invalid_payload, invalid_request, queue_name_too_long, batch_size_exceeded."""
    sent = plain_request_of(body, FetchJobs)
    if not sent.queues:
        raise invalid("queues", "queues is required: a list of at least one queue name")
    wait_ms = limits.default_wait_ms if sent.wait_ms is None else integer(sent.wait_ms, "wait_ms", 0, limits.max_wait_ms)
    acks = _acks(sent.acks, "acks", sent.worker_id, limits)
    if sent.handlers_declared and not sent.worker_id:
        raise invalid("handlers_declared", "handlers_declared needs worker_id: the worker that has declared its handlers")
    return Fetch(
        queue_names(sent.queues, "queues", limits),
        1 if sent.count is None else integer(sent.count, "count", 0, limits.max_fetch_count) or 1,
        _worker_id(sent.worker_id, limits),
        _lease(sent.visibility_timeout_ms, limits),
        0 if acks else wait_ms,
        queue_name(sent.pool, "pool", limits) if sent.pool else None,
        _handled(sent.handlers or None, limits),
        acks,
        bool(sent.handlers_declared),
    )


# Ack and nack


_ERROR_MEMBERS: Final = frozenset(SentError.__struct_fields__)


class _ErrorMembers(Struct):
    error: dict[str, Raw] = {}


_error_members: Final = msgspec.json.Decoder(_ErrorMembers).decode


def parse_ack(body: bytes, limits: PayloadLimits, job_id: str | None = None) -> Ack:
    """POST /workers/ack, or with the job's id from the path. Raises invalid_payload, invalid_request, not_found."""
    sent = plain_request_of(body, AckJob)
    if sent.result:
        value_of(sent.result, "result", limits)
    return Ack(_job_id(sent.job_id, job_id), sent.result, _holder(sent.worker_id, sent.attempt, limits))


def parse_acks(body: bytes, limits: PayloadLimits) -> Sequence[Ack | OjsError]:
    """POST /workers/acks: each job, or why its ack is refused. Raises invalid_payload, invalid_request, batch_size_exceeded."""
    sent = plain_request_of(body, AckJobs)
    acks = _acks(sent.jobs, "jobs", sent.worker_id, limits)
    if not acks:
        raise invalid("jobs", "jobs is required: a list of at least one job that is done")
    return acks


def _acks(sent: Raw, path: str, worker: str | None, limits: PayloadLimits) -> Sequence[Ack | OjsError]:
    """Many acks at `path` of a request by `worker`: each, or why it is refused."""
    if absent(sent):
        return ()
    most = limits.max_fetch_count
    jobs = items_of(sent, path, most)
    if len(jobs) > most:
        raise batch_too_large(len(jobs), most)
    return tuple(_item(raw, index, worker, limits) for index, raw in enumerate(jobs))


def _item(raw: Raw, index: int, worker: str | None, limits: PayloadLimits) -> Ack | OjsError:
    try:
        ask = parse_ack(bytes(raw), limits)
        if ask.holder.worker is None and worker is not None:
            return replace(ask, holder=replace(ask.holder, worker=_worker_id(worker, limits)))
    except OjsError as error:
        return indexed(error, index)
    return ask


def parse_nack(body: bytes, limits: PayloadLimits, job_id: str | None = None) -> Nack:
    """POST /workers/nack, or with the job's id from the path. Side members that make no sense are left out with a warning.

    Raises invalid_payload, invalid_request, not_found.
    """
    told: list[AnswerWarning] = []
    sent = read_report(body, NackJob, _WHOSE, told)
    requeue = bool(sent.requeue)
    error = sent.error
    if isinstance(error, str):
        error = SentError(message=error)
    elif error is None:
        if not (requeue or told):
            raise invalid("error", "error is required: an object with at least a message")
        error = SentError(message="requeued by its worker" if requeue else _NO_MESSAGE)
    message = error.message
    if message is None:
        message = _NO_MESSAGE
        told.append(AnswerWarning("error.message", "error.message should be a text that says what went wrong"))
    failure = Failure(
        message=message,
        code=_cut(error.code, limits),
        type=_cut(error.type, limits),
        retryable=error.retryable is not False,
        action=side(lambda: _action(error.action), None, told),
        details=side(lambda: _details(body, error.details, limits), NOTHING, told),
        backtrace=side(lambda: _kept(error.backtrace, "error.backtrace", limits), NOTHING, told),
        requeue=requeue,
        delay_ms=side(lambda: _retry_after(sent.retry_after_ms, limits), None, told),
    )
    holder = _holder(sent.worker_id, sent.attempt, limits)
    closed_until = side(lambda: _closed_until(error.rate_limit_until), None, told)
    return Nack(_job_id(sent.job_id, job_id), failure, holder, closed_until, tuple(told))


def _retry_after(sent: Any, limits: PayloadLimits) -> int | None:
    return None if sent is None else duration_ms(sent, "retry_after_ms", 1, limits)


def _action(sent: str | None) -> Action | None:
    for action in _ACTIONS:
        if sent == action:
            return action
    if sent is None:
        return None
    raise invalid("error.action", f"error.action must be one of {', '.join(_ACTIONS)}, not {shown(sent)}")


def _closed_until(text: str | None) -> int | None:
    path = "error.rate_limit_until"
    try:
        return None if text is None else parse_timestamp(text)
    except ValueError as error:
        raise invalid(path, f"{path} must be an RFC 3339 timestamp with a zone: {error}") from None


def _details(body: bytes, details: Raw, limits: PayloadLimits) -> Raw:
    """Return the details of an error with its members that OJS doesn't define, such as `context` and `ext_vendor`."""
    kept = _kept(details, "error.details", limits)
    try:
        members = _error_members(body).error
    except msgspec.ValidationError:  # the error is a text, or was mended
        return kept
    others = {name: raw for name, raw in members.items() if name not in _ERROR_MEMBERS and not absent(raw)}
    if not others or (kept and not _is_object(kept)):
        return kept
    for name, raw in others.items():
        _kept(raw, below("error", name), limits)
    return Raw(encode(others | (members_of(kept, "error.details") if kept else {})))


def _is_object(raw: Raw) -> bool:
    """Return whether an undecoded value is an object."""
    return bytes(raw).lstrip().startswith(b"{")


def _cut(text: str | None, limits: PayloadLimits) -> str | None:
    # A failure report is never refused for its length: the job would hang until its lease ends.
    return text[: limits.max_text_chars] if text else None


def _kept(raw: Raw, path: str, limits: PayloadLimits) -> Raw:
    if absent(raw):
        return NOTHING
    value_of(raw, path, limits)
    return raw


# Workers


def parse_heartbeat(body: bytes, limits: PayloadLimits) -> Heartbeat:
    """POST /workers/heartbeat: `active_jobs` is a list of ids, or a number with the ids in `active_job_ids`.

    What can't be a job id is left out; so, with a warning, are side members that make no sense. Raises invalid_payload,
    invalid_request.
    """
    told: list[AnswerWarning] = []
    sent = read_report(body, HeartbeatBody, _WHOSE, told)
    named = [*(sent.active_job_ids or ()), *(sent.active_jobs if isinstance(sent.active_jobs, list) else ())]
    ids = tuple(dict.fromkeys(job_id.lower() for job_id in named))
    if len(ids) > limits.max_active_jobs:
        raise invalid("active_jobs", f"active_jobs has {len(ids)} entries; the limit is {limits.max_active_jobs}")
    active = sent.active_jobs if isinstance(sent.active_jobs, int) else len(ids)
    lease_ms = side(lambda: _lease(sent.visibility_timeout_ms, limits), None, told)
    worker = _worker(sent, active, limits, told)
    if sent.complete is not None:
        worker = replace(worker, complete=side(lambda: _complete(sent, ids), None, told))
    return Heartbeat(worker, ids, lease_ms, tuple(told))


def parse_register(body: bytes, limits: PayloadLimits) -> Worker:
    """POST /workers/register. Raises invalid_payload, invalid_request."""
    return _worker(plain_request_of(body, RegisterWorker), 0, limits)


def _complete(sent: HeartbeatBody, ids: Sequence[str]) -> CompleteList | None:
    """The ids as a list that names all. Raises invalid_request where the heartbeat's own number of jobs is another."""
    if sent.complete is None:
        return None
    jobs = frozenset(job_id for job_id in ids if is_job_id(job_id))
    if sent.active_jobs != len(jobs):
        raise invalid("complete", f"complete needs active_jobs as a number, and {len(jobs)} jobs are named")
    since, until = mark_of(sent.complete.since, "complete.since"), mark_of(sent.complete.until, "complete.until")
    return CompleteList(since, until, jobs)


def parse_deregister(body: bytes, limits: PayloadLimits) -> Deregistration:
    """POST /workers/deregister. Raises invalid_payload, invalid_request."""
    sent = plain_request_of(body, DeregisterWorker)
    worker_id = _named(sent.worker_id, limits)
    return Deregistration(worker_id, sent.reason or SHUTDOWN, sent.pid, _started_at(sent.started_at, limits))


def _named(sent: str | None, limits: PayloadLimits) -> str:
    worker_id = _worker_id(sent, limits)
    if worker_id is None:
        raise invalid("worker_id", "worker_id is required: a text that is unique to the worker")
    return worker_id


def _worker(sent: RegisterWorker, active: int, limits: PayloadLimits, told: list[AnswerWarning] | None = None) -> Worker:
    """`told` takes what is wrong with side members, which are left out then; without it they are refused."""

    def read(reader: Callable[[], _T], otherwise: _T) -> _T:
        return reader() if told is None else side(reader, otherwise, told)

    worker_id = _named(sent.worker_id, limits)
    handled = read(lambda: _handled(sent.handlers, limits), None)
    return Worker(
        id=worker_id,
        state=sent.state if sent.state is not None and sent.state in _STATES else "running",
        hostname=read(lambda: _text(sent.hostname, "hostname", limits), None),
        pid=sent.pid,
        queues=read(lambda: text_list(sent.queues or [], "queues", limits.max_queues, limits), ()),
        concurrency=sent.concurrency,
        labels=read(lambda: _labels(sent.labels, limits), NOTHING),
        started_at=read(lambda: _started_at(sent.started_at, limits), None),
        active_jobs=active,
        handlers=None if handled is None else handled.declared,
    )


def _handled(sent: Sequence[SentHandler] | None, limits: PayloadLimits) -> Handled | None:
    """What a worker can run (ojs-job-versioning §8.1); an empty list takes back what it said before."""
    if sent is None:
        return None
    if len(sent) > limits.max_handlers:
        raise invalid("handlers", f"handlers has {len(sent)} entries; the limit is {limits.max_handlers}")
    return Handled(
        Handler(
            job_type_of(handler.type, limits, f"handlers[{index}].type"),
            ANY_VERSION if handler.versions is None else handler.versions,
        )
        for index, handler in enumerate(sent)
    )


def _text(sent: str | None, path: str, limits: PayloadLimits) -> str | None:
    return None if sent is None else short_text(sent, path, limits)


def _labels(sent: Raw, limits: PayloadLimits) -> Raw:
    labels = _kept(sent, "labels", limits)
    if len(labels) > limits.max_label_bytes:
        raise invalid("labels", f"labels is {len(labels)} bytes; the limit is {limits.max_label_bytes} bytes")
    return labels


def _started_at(sent: str | float | None, limits: PayloadLimits) -> str | None:
    """A text as it is; a number as Unix time, in seconds or milliseconds."""
    if isinstance(sent, str | None):
        return _text(sent, "started_at", limits)
    ms = sent if sent >= _SURELY_MS else sent * 1_000
    if not 0 <= ms <= _LAST_MS:
        raise invalid("started_at", "started_at must be a timestamp, or Unix time")
    return format_ms(int(ms))


# Jobs


def parse_cancel(body: bytes, limits: PayloadLimits) -> str | None:
    """Cancellation: the reason, if the body gives one. Raises invalid_payload, invalid_request."""
    reason = request_of(body, CancelJob).reason
    return _text(reason, "reason", limits)


def parse_result_ids(body: bytes, limits: PayloadLimits) -> tuple[str, ...]:
    """POST /jobs/results: the ids as sent, doubles left out. Raises invalid_payload, invalid_request."""
    ids = request_of(body, ReadResults).ids
    if len(ids) > limits.max_result_ids:
        raise invalid("ids", f"ids has {len(ids)} entries; the limit is {limits.max_result_ids}")
    return tuple(dict.fromkeys(ids))


# Members that several bodies share


def _job_id(sent: str | None, path: str | None) -> str:
    if sent is None:
        if path is None:
            raise invalid("job_id", "job_id is required")
        return job_id_of(path)
    if path is not None and sent.lower() != path.lower():
        raise invalid("job_id", "job_id must be the id in the path, or be left out")
    return job_id_of(sent)


def _worker_id(sent: str | None, limits: PayloadLimits) -> str | None:
    return _text(sent, "worker_id", limits)


def _holder(worker: str | None, attempt: int | None, limits: PayloadLimits) -> JobHolder:
    return JobHolder(_worker_id(worker, limits), attempt)


def _lease(sent: float | str | None, limits: PayloadLimits) -> int | None:
    return None if sent is None else duration_ms(sent, "visibility_timeout_ms", 1, limits)
