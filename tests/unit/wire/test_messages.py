from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ojs_engine.base.errors import OjsError
from ojs_engine.base.fields import shown
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.wire.jobs.enqueue import parse_enqueue
from ojs_engine.wire.queues.requests import parse_config, parse_purge, parse_queue_limit
from ojs_engine.wire.workers.requests import parse_fetch
from ojs_features.bulk.requests import parse_bulk_enqueue
from ojs_features.crons.requests import parse_registration
from ojs_features.limits.answers import parse_override
from ojs_features.pools.bodies import parse_pool
from ojs_features.webhooks.requests import parse_changes
from ojs_features.workflows.requests import parse_workflow
from support.tables import each

NOW = 1_800_000_000_000
LIMITS = DEFAULT_LIMITS
WRONG = [{"name": "email"}, [{"name": "email"}], [[None]], {"a": True}, [1.5], "x" * 5_000, -1e300, True, ["it's\t"]]
PYTHONS = ("{'", "['", "[{", "None", "True", "False", "dict", "NoneType", "got int", "got str", "Expected", "\\x")
READERS: dict[str, tuple[Callable[[bytes], object], dict[str, Any], tuple[str, ...]]] = {
    "job": (
        lambda body: parse_enqueue(body, NOW, LIMITS, []),
        {"type": "a.b", "args": []},
        ("type", "args", "meta", "id", "queue", "priority", "retry", "unique", "rate_limit", "tags", "options"),
    ),
    "fetch": (lambda body: parse_fetch(body, LIMITS), {"queues": ["q"]}, ("queues", "count", "worker_id", "wait_ms")),
    "bulk": (lambda body: parse_bulk_enqueue(body, LIMITS), {"jobs": [{}]}, ("idempotency_key", "atomicity", "jobs")),
    "purge": (lambda body: parse_purge(body, NOW, LIMITS, confirmed=True), {}, ("states", "older_than", "confirm")),
    "cron": (
        lambda body: parse_registration(body, LIMITS),
        {"name": "n", "cron": "* * * * *", "type": "a.b"},
        ("name", "cron", "timezone", "type", "args", "meta", "options", "overlap_policy", "enabled", "description"),
    ),
    "workflow": (
        lambda body: parse_workflow(body, NOW, LIMITS, []),
        {"type": "chain", "steps": [{"type": "a.b", "args": []}]},
        ("type", "name", "steps", "id"),
    ),
    "pool": (
        lambda body: parse_pool(body, "p", LIMITS),
        {"queues": ["q"]},
        ("queues", "strategy", "weights", "starvation_prevention", "isolated", "x" * 5_000),
    ),
    "queue": (
        lambda body: parse_config(body, LIMITS),
        {},
        ("concurrency", "rate_limit", "retention", "dead_letter", "allowed_job_types", "default_retry", "x" * 5_000),
    ),
    "queue limit": (lambda body: parse_queue_limit(body, LIMITS), {}, ("concurrency", "rate", "period")),
    "limit": (lambda body: parse_override(body, NOW, LIMITS), {}, ("concurrency", "rate", "limit", "expires_at")),
    "webhook": (
        lambda body: parse_changes(body, LIMITS, insecure=False),
        {},
        ("url", "events", "filter", "metadata", "active", "x" * 5_000),
    ),
}


def refused(read: Callable[[bytes], object], body: bytes) -> str | None:
    """The message of the refusal; None where it is taken."""
    try:
        read(body)
    except OjsError as error:
        return error.message
    return None


@each("name", READERS)
def test_no_message_shows_a_value_as_python_writes_it_or_at_full_length(name: str) -> None:
    read, sound, fields = READERS[name]
    bodies = [msgspec.json.encode(sound | {field: value}) for field in fields for value in WRONG]
    messages = [message for body in bodies if (message := refused(read, body)) is not None]
    assert messages
    for message in messages:
        assert len(message) < 500, message
        assert not [words for words in PYTHONS if words in message], message


@each(
    ("value", "expected"),
    [
        ("it's", '"it\'s"'),
        ("\t", '"\\t"'),
        ({"a": 1}, "an object"),
        ([1], "an array"),
        (None, "null"),
        (True, "true"),
        ("x" * 100, '"' + "x" * 76 + "..."),
        ("\udcff", '"?"'),
    ],
)
def test_a_value_in_a_message_is_short_json(value: Any, expected: str) -> None:
    assert shown(value) == expected
