"""Checks of what programs write: the options of a job, its arguments, and jobs and workflows where they are wanted."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Any, Final

from ojs_nats._names import shown

_OF_A_RETRY: Final = "write retry=Retry({example}), as in from ojs_nats import Retry"
_NOTHING_TO_SAY: Final = "leave it out"

_OTHER_WORDS: Final[Mapping[str, str]] = {
    # Retries. Others count the runs after the first; Retry counts all runs.
    "max_retries": "write retry=Retry(n), where n counts the first run as well",
    "retries": "write retry=Retry(n), where n counts the first run as well",
    "max_attempts": _OF_A_RETRY.format(example="5"),
    "attempts": _OF_A_RETRY.format(example="5"),
    "default_retry_delay": _OF_A_RETRY.format(example='initial_interval="30s"'),
    "retry_delay": _OF_A_RETRY.format(example='initial_interval="30s"'),
    "initial": _OF_A_RETRY.format(example='initial_interval="30s"'),
    "initial_interval": _OF_A_RETRY.format(example='initial_interval="30s"'),
    "min_backoff": _OF_A_RETRY.format(example='initial_interval="30s"'),
    "backoff": _OF_A_RETRY.format(example='5, initial_interval="30s", backoff_coefficient=2.0'),
    "retry_backoff": _OF_A_RETRY.format(example='5, initial_interval="30s", backoff_coefficient=2.0'),
    "coefficient": _OF_A_RETRY.format(example="backoff_coefficient=2.0"),
    "backoff_coefficient": _OF_A_RETRY.format(example="backoff_coefficient=2.0"),
    "retry_backoff_max": _OF_A_RETRY.format(example='max_interval="10m"'),
    "max_backoff": _OF_A_RETRY.format(example='max_interval="10m"'),
    "max_interval": _OF_A_RETRY.format(example='max_interval="10m"'),
    "retry_jitter": _OF_A_RETRY.format(example="jitter=True"),
    "jitter": _OF_A_RETRY.format(example="jitter=True"),
    "retry_kwargs": _OF_A_RETRY.format(example="5"),
    "retry_policy": _OF_A_RETRY.format(example="5"),
    "retry_queue": "a job is tried again in its own queue: leave it out",
    "autoretry_for": 'every error is tried again: name those that are not, retry=Retry(non_retryable_errors=["ValueError"])',
    "retry_on": 'every error is tried again: name those that are not, retry=Retry(non_retryable_errors=["ValueError"])',
    "retry_when": 'every error is tried again: name those that are not, retry=Retry(non_retryable_errors=["ValueError"])',
    "non_retryable_errors": _OF_A_RETRY.format(example='non_retryable_errors=["ValueError"]'),
    "throws": _OF_A_RETRY.format(example='non_retryable_errors=["ValueError"]'),
    "discard_on": _OF_A_RETRY.format(example='non_retryable_errors=["ValueError"]'),
    "dead": _OF_A_RETRY.format(example='on_exhaustion="dead_letter"'),
    "dead_letter": _OF_A_RETRY.format(example='on_exhaustion="dead_letter"'),
    # Times
    "countdown": 'write delay="60s", or delay=60',
    "delay_until": "write scheduled_at=datetime.now(UTC) + timedelta(minutes=1), or delay=60",
    "schedule_in": 'write delay="60s", or delay=60',
    "perform_in": 'write delay="60s", or delay=60',
    "eta": "write scheduled_at=datetime.now(UTC) + timedelta(minutes=1)",
    "at": "write scheduled_at=datetime.now(UTC) + timedelta(minutes=1)",
    "perform_at": "write scheduled_at=datetime.now(UTC) + timedelta(minutes=1)",
    "run_at": "write scheduled_at=datetime.now(UTC) + timedelta(minutes=1)",
    "expires": "write expires_at=datetime.now(UTC) + timedelta(hours=1)",
    "expires_in": "write expires_at=datetime.now(UTC) + timedelta(hours=1)",
    "ttl": 'write enqueue_ttl="1h"',
    "max_age": 'write enqueue_ttl="1h"',
    "time_limit": 'write timeout="60s", or timeout=60',
    "job_timeout": 'write timeout="60s", or timeout=60',
    "timeout_ms": 'write timeout="60s", or timeout=60',
    "timelimit": 'write timeout="60s", or timeout=60',
    "soft_time_limit": 'write soft_timeout="50s" where the handler is defined',
    "visibility_timeout": 'write heartbeat_timeout="60s"',
    "repeat": 'write client.crons.register("name", "@every 5m", job)',
    "cron": 'write client.crons.register("name", "0 9 * * *", job)',
    # Results
    "ignore_result": 'a handler that returns nothing stores nothing: leave it out, or write result_ttl="1m"',
    "store_results": 'results are stored: leave it out, or write result_ttl="1m"',
    "keep_result": 'write result_ttl="1h"',
    "result_expires": 'write result_ttl="1h"',
    "failure_ttl": "the queue's retention says it: see docs/retention.md",
    "removeOnComplete": "the queue's retention says it: see docs/retention.md",
    "removeOnFail": "the queue's retention says it: see docs/retention.md",
    "remove_on_complete": "the queue's retention says it: see docs/retention.md",
    # Identity
    "unique_for": 'write unique=Unique(period="10m")',
    "lock": "write unique=Unique()",
    "deduplication": "write unique=Unique()",
    "task_id": 'write JobRequest("email.send", (1,), id="…") with a UUIDv7',
    "job_id": 'write JobRequest("email.send", (1,), id="…") with a UUIDv7',
    "jobId": 'write JobRequest("email.send", (1,), id="…") with a UUIDv7',
    "id": 'write JobRequest("email.send", (1,), id="…") with a UUIDv7',
    "name": 'the first argument of app.job is the name: @app.job("email.send")',
    "type": 'the first argument of app.job is the name: @app.job("email.send")',
    "actor_name": 'the first argument of app.job is the name: @app.job("email.send")',
    # Where it goes, and what goes along
    "queue_name": 'write queue="email"',
    "routing_key": 'write queue="email"',
    "exchange": 'write queue="email"',
    "lifo": "write priority=10: a higher priority goes first",
    "at_front": "write priority=10: a higher priority goes first",
    "headers": 'write meta={"name": "value"}',
    "metadata": 'write meta={"name": "value"}',
    "description": 'write meta={"description": "…"}',
    "serializer": f"jobs are JSON: {_NOTHING_TO_SAY}",
    "compression": f"jobs are JSON: {_NOTHING_TO_SAY}",
    "args": "arguments are given with the push: send_email.push(1, 2)",
    "kwargs": "arguments are given with the push: send_email.push(1, 2)",
    # How it runs
    "bind": "hint the first parameter: def send(ctx: JobContext, to: str)",
    "acks_late": f"a job is acknowledged when its handler has returned: {_NOTHING_TO_SAY}",
    "reject_on_worker_lost": f"a job of a worker that died runs again: {_NOTHING_TO_SAY}",
    "track_started": f"a job that runs is active: {_NOTHING_TO_SAY}",
    "concurrency": 'write rate_limit=RateLimit("a-key", concurrency=5), or ojs-nats worker --concurrency 5',
    "limiter": 'write rate_limit=RateLimit("a-key", rate=Rate(10, "1s"))',
    "throttle": 'write rate_limit=RateLimit("a-key", throttle=Rate(10, "1s"))',
    # Workflows
    "depends_on": "write a workflow: chain(first.job(), second.job()), or a Dag",
    "parent": "write a workflow: chain(first.job(), second.job()), or a Dag",
    "link": "write a workflow: chain(first.job(), second.job())",
    "link_error": "write a workflow: batch(first.job(), on_failure=second.job())",
    "on_success": "write a workflow: batch(first.job(), on_success=second.job())",
    "on_failure": "write a workflow: batch(first.job(), on_failure=second.job())",
}
"""Words of Celery, RQ, Sidekiq, BullMQ, Dramatiq, Oban and of `Retry`, each with the way to say it here."""


def check_names(options: Collection[str], known: Collection[str], where: str) -> None:
    """Raise TypeError for an option that no job has, with the way to say what is probably meant."""
    for name in options:
        if name not in known:
            given = f"={shown(options[name])}" if isinstance(options, Mapping) else ""
            raise TypeError(f"{where}: {name}{given} is no option of a job; {_remedy(name, known)}")


def check_args(args: Any) -> None:
    """Raise TypeError for arguments that aren't a tuple or a list, as a text, whose letters they would be."""
    if not isinstance(args, tuple | list):
        remedy = _as_a_tuple(args)
        if isinstance(args, Mapping):
            remedy = "a job has no named arguments: list them in the order of the parameters"
        raise TypeError(f"args are a tuple or a list of arguments, not {shown(args)}; {remedy}")


def _as_a_tuple(args: Any) -> str:
    short = isinstance(args, str | bytes | int | float) and len(repr(args)) < 60
    return f"write ({args!r},)" if short else "write (value,)"


def misplaced(value: Any, wanted: str) -> TypeError:
    """Return the error of a value in the place of a job or of a workflow."""
    if callable(getattr(value, "push", None)) and callable(getattr(value, "job", None)):
        return TypeError(f"{wanted}, not the definition {value.type}: write its .job(…) with the arguments of a call")
    if isinstance(value, list | tuple):
        kind = type(value).__name__
        return TypeError(f"{wanted}, not a {kind}: write chain(*steps), group(*steps) or each job by itself")
    return TypeError(f"{wanted}, not {shown(value)}")


def _remedy(name: str, known: Collection[str]) -> str:
    if name in _OTHER_WORDS:
        return _OTHER_WORDS[name]
    if close := difflib.get_close_matches(name, sorted(known), 1):
        return f"did you mean {close[0]}?"
    if other := difflib.get_close_matches(name, sorted(_OTHER_WORDS), 1, 0.8):
        return _OTHER_WORDS[other[0]]
    return f"there are {', '.join(sorted(known))}"
