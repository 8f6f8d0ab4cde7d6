"""Records with and without members of extensions: what an earlier version stored is read, and written as it was."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw, Struct

from ojs_engine.domain.job import Job
from ojs_engine.domain.queues.config import QueueConfig, layered, patched
from ojs_engine.domain.queues.record import Maintenance, QueueRecord
from ojs_features.checkpoints.rules import CheckpointRecord
from ojs_features.crons.record import Cron
from ojs_features.limits.rules import LimitOverride
from ojs_features.pools.rules import Pool
from ojs_features.schemas.record import SchemaRecord
from ojs_features.webhooks.records import Subscription
from ojs_features.workflows.graph import Composite, Shape

JOB = b'{"id":"a","type":"b","args":[],"state":"available"}'
STORED: list[tuple[type[Struct], bytes]] = [
    (Job, JOB),
    (QueueRecord, b'{"name":"q","config":{"max_size":3}}'),
    (Maintenance, b'{"reason":"a"}'),
    (Subscription, b'{"id":"s","url":"u","events":["*"],"secret":"t"}'),
    (SchemaRecord, b'{"uri":"urn:a","type":"a","version":"1","document":{}}'),
    (Pool, b'{"name":"p"}'),
    (LimitOverride, b'{"concurrency":1}'),
    (Cron, b'{"name":"c","expression":"@daily","draft":%s,"created_at":1,"updated_at":1,"anchor":1,"op":"o"}' % JOB),
    (CheckpointRecord, b'{"state":1,"job_id":"a","sequence":1,"at":1,"op":"o"}'),
    (Composite, b'{"node":0,"kind":"chain","first":1,"size":1}'),
    (Shape, b'{"composites":[],"types":[],"chunks":[],"defined_at":1}'),
]


@pytest.mark.parametrize(("kind", "record"), STORED)
def test_a_record_without_any_is_read_and_written_as_it_was(kind: type[Struct], record: bytes) -> None:
    assert msgspec.json.encode(msgspec.json.decode(record, type=kind)) == record


def test_layers_of_settings_lie_over_each_other_member_by_member() -> None:
    lower = QueueConfig(extensions={"ext_a": Raw(b"1"), "ext_b": Raw(b"2"), "rate_limit.x_c": Raw(b"3")})
    upper = patched(QueueConfig(), {"rate_limit": None, "concurrency": 4})
    assert layered(lower, upper).extensions == lower.extensions
    upper = QueueConfig(concurrency=4, extensions={"ext_b": Raw(b"5")})
    assert layered(lower, upper).extensions == lower.extensions | upper.extensions
