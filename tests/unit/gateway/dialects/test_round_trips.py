"""What a client is shown of something that it can define may be sent back as it came, whole, and means the same."""

from __future__ import annotations

from typing import Any, Final, get_args

import msgspec
import pytest
from msgspec import Struct

from ojs_api.crons import OneCron
from ojs_api.pools import OnePool
from ojs_api.schemas import OneSchema
from ojs_api.webhooks import OneWebhook
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.domain.queues.config import Patch, QueueConfig, Rate, patched
from ojs_engine.domain.queues.record import QueueRecord
from ojs_engine.domain.rate_limits.policy import LimitPolicy
from ojs_engine.domain.transitions import Moment
from ojs_engine.wire.dialects.readers import Reader
from ojs_engine.wire.members import bare, encode
from ojs_engine.wire.queues.requests import parse_config
from ojs_features.crons.answers import cron_answer
from ojs_features.crons.changes import register
from ojs_features.crons.dialects import SHAPES as OF_CRONS
from ojs_features.crons.requests import parse_registration
from ojs_features.limits.answers import limit_answer, parse_override
from ojs_features.limits.dialects import SHAPES
from ojs_features.limits.rules import LimitOverride, LimitRecord
from ojs_features.pools.bodies import parse_pool, pool_answer
from ojs_features.pools.rules import Pool, Prevention
from ojs_features.schemas.bodies import parse_schema, schema_answer
from ojs_features.schemas.record import SchemaRecord
from ojs_features.webhooks.answers import webhook_answer
from ojs_features.webhooks.records import Subscription, TargetHealth
from ojs_features.webhooks.requests import parse_changes
from ojs_gateway.answers.queues import configured_queue
from ojs_gateway.dialects.layer import answer_body
from support.tables import each

NOW: Final = 1_800_000_000_000
MOMENT: Final = Moment(NOW, "op")
READERS: Final[tuple[Reader, ...]] = get_args(Reader)
RATE: Final = Rate(5, 60_000)


def shown(answer: Struct, reader: Reader) -> Any:
    shape = {**SHAPES, **OF_CRONS}.get(type(bare(answer)), {}).get(reader)
    return msgspec.json.decode(answer_body(answer, reader) if shape is None else encode(shape(answer)))


def encoded(value: Any) -> bytes:
    return msgspec.json.encode(value)


@pytest.mark.parametrize("policy", [{"concurrency": 2}, {"rate": RATE}, {"concurrency": 0}])
def test_a_limit_that_the_admin_ui_shows_is_taken_back_as_that_limit(policy: dict[str, Any]) -> None:
    view = shown(limit_answer("k", LimitRecord(name="key.k", policy=LimitPolicy(**policy)), 0, NOW), "ui")
    form = {name: view[name] for name in ("limit", "period") if name in view}
    assert parse_override(encoded(form), NOW, DEFAULT_LIMITS) == LimitOverride(**policy)


@each("reader", READERS)
@each(
    "override",
    [
        LimitOverride(concurrency=1),
        LimitOverride(rate=RATE, expires_at=NOW + 1_000),
        LimitOverride(throttle=RATE),
        LimitOverride(concurrency=3, rate=RATE, throttle=Rate(1, 1_000)),
    ],
)
def test_an_override(override: LimitOverride, reader: Reader) -> None:
    answer = limit_answer("k", LimitRecord(name="key.k", override=override), 0, NOW)
    assert parse_override(encoded(shown(answer, reader)["override"]), NOW, DEFAULT_LIMITS) == override


@pytest.mark.parametrize("reader", READERS)
def test_a_pool(reader: Reader) -> None:
    pool = Pool(
        name="p",
        strategy="weighted",
        weights={"a": 3, "b": 1},
        prevention=Prevention(interval_ms=5_000, ratio=0.25),
        isolated=True,
        created_at=NOW,
    )
    view = shown(OnePool(pool_answer(pool)), reader)["pool"]
    back = parse_pool(encoded(view), "p", DEFAULT_LIMITS)
    assert msgspec.structs.replace(back, created_at=NOW) == pool


@pytest.mark.parametrize("reader", READERS)
def test_the_settings_of_a_queue(reader: Reader) -> None:
    sent: Patch = parse_config(
        encoded(
            {
                "max_size": 10,
                "overflow_policy": "drop_oldest",
                "warning_threshold": 0.5,
                "concurrency": 3,
                "rate_limit": {"limit": 5, "period": "PT1M"},
                "visibility_timeout": 1.5,
                "default_timeout": 60,
                "default_retry": {"max_attempts": 7, "initial_interval": "PT2S", "on_exhaustion": "dead_letter"},
                "retention": {"completed": "P1D", "discarded": "PT1H", "cancelled": 60, "dead_letter": "90d"},
                "dead_letter": {"retention": {"max_age": "90d", "max_count": 5}},
                "allowed_job_types": ["mail.*"],
                "strict_pause": True,
                "schema_validation": "warn",
                "starvation_prevention": {"enabled": True, "rotation_interval": "PT5S"},
            }
        ),
        DEFAULT_LIMITS,
    )
    config = patched(QueueConfig(), sent)
    view = shown(configured_queue("q", QueueRecord(name="q", config=config), QueueConfig()), reader)
    for name in ("config", "own_config", *(["configuration"] if reader == "ui" else [])):
        assert patched(QueueConfig(), parse_config(encoded(view[name]), DEFAULT_LIMITS)) == config, name


@pytest.mark.parametrize("reader", READERS)
def test_a_cron_entry(reader: Reader) -> None:
    body = {
        "name": "n",
        "cron": "*/5 9-17 * * MON-FRI",
        "timezone": "Europe/Berlin",
        "type": "a.b",
        "args": [1, {"b": None}],
        "meta": {"m": 1},
        "options": {"queue": "q", "priority": 3, "retry": {"max_attempts": 2}},
        "overlap_policy": "skip",
        "description": "words",
    }
    wanted = parse_registration(encoded(body), DEFAULT_LIMITS)
    record = register(None, wanted, MOMENT).record
    view = shown(OneCron(cron_answer(record)), reader)["cron"]
    again = register(None, parse_registration(encoded(view), DEFAULT_LIMITS), MOMENT).record
    assert shown(OneCron(cron_answer(again)), reader)["cron"] == view


@pytest.mark.parametrize("reader", READERS)
def test_a_subscription(reader: Reader) -> None:
    found = Subscription(
        id="sub_1", url="https://a.example/", events=("job.*",), queues=("q",), job_types=("a.b",), secret="s" * 8
    )
    health = TargetHealth()
    view = shown(OneWebhook(webhook_answer(found, health, NOW)), reader)["subscription"]
    wanted = parse_changes(encoded(view), DEFAULT_LIMITS, insecure=False)
    changed = wanted.apply(found, MOMENT)
    again = shown(OneWebhook(webhook_answer(changed, health, NOW)), reader)["subscription"]
    assert again | {"updated_at": ""} == view | {"updated_at": ""}


@pytest.mark.parametrize("reader", READERS)
def test_a_schema(reader: Reader) -> None:
    body = {"type": "a.b", "version": 2, "schema": {"type": "array"}, "validation": {"mode": "warn"}}
    record: SchemaRecord = parse_schema(encoded(body), DEFAULT_LIMITS)
    view = shown(OneSchema(schema_answer(record)), reader)["schema"]
    back = parse_schema(encoded(view), DEFAULT_LIMITS)
    assert (back.uri, back.order, back.document, back.mode) == (record.uri, record.order, record.document, record.mode)
