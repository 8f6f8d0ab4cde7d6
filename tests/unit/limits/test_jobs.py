"""What answers about jobs say of limits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.domain.job import Job
from ojs_engine.domain.queues.config import Rate
from ojs_engine.store.store import Store
from ojs_engine.wire.jobs.enqueue import parse_enqueue
from ojs_features.limits.jobs import limit_headers, limited_by
from ojs_features.limits.rules import FreePermits, Hit, LimitOverride, LimitRecord
from support.fake_store import unavailable_store

NOW = 1_800_000_000_500
RATE = {"key": "k", "rate": {"limit": 2, "period": "PT1M"}}


def job(**limit: Any) -> Job:
    return parse_enqueue(msgspec.json.encode({"type": "a.b", "args": [], "rate_limit": limit}), NOW, DEFAULT_LIMITS)


def store(record: LimitRecord | None) -> Store:
    """One whose limits all have this record; None while NATS is away."""

    async def read(_scope: str) -> tuple[int, LimitRecord]:
        if record is None:
            raise unavailable_store()
        return 1, record

    limits = SimpleNamespace(permits=SimpleNamespace(read=read))
    return cast("Store", SimpleNamespace(of=lambda _: limits, clock=SimpleNamespace(now=lambda: NOW)))


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (LimitRecord(name="key.k"), ("2", "2", "1800000001")),
        (LimitRecord(name="key.k", grants=((NOW - 10_000, 1),)), ("2", "1", "1800000001")),
        (LimitRecord(name="key.k", grants=((NOW - 10_000, 1), (NOW, 1))), ("2", "0", "1800000051")),
        (LimitRecord(name="key.k", until=NOW + 30_000), ("2", "0", "1800000031")),
        (LimitRecord(name="key.k", override=LimitOverride(rate=Rate(9, 60_000))), ("9", "9", "1800000001")),
        (LimitRecord(name="key.k", override=LimitOverride(concurrency=1)), ("2",)),
        (None, ("2",)),
    ],
)
async def test_what_is_left_of_a_rate_is_told_as_far_as_it_can_be(
    record: LimitRecord | None, expected: tuple[str, ...]
) -> None:
    names = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
    assert await limit_headers(store(record), job(**RATE)) == tuple(zip(names, expected, strict=False))


async def test_of_a_limit_of_concurrency_nothing_is_read() -> None:
    assert await limit_headers(store(None), job(key="k", concurrency=3)) == (("X-RateLimit-Limit", "3"),)


def test_a_limit_that_keeps_jobs_back_says_how_much_of_it_is_used_and_until_when() -> None:
    full = limited_by("q", "tenant", FreePermits(0, None, Hit("concurrency", 2, 2)))
    closed = limited_by("q", None, FreePermits(0, NOW, Hit("dynamic", 0, 0)))
    assert full is not None
    assert full.message == "Limit tenant leaves no room: 2 of 2 used by its concurrency."
    assert closed is not None
    assert closed.message == "The limit of queue q is closed, as a handler has said, until 2027-01-15T08:00:00.500Z."
    assert limited_by("q", "tenant", FreePermits(1)) is None
