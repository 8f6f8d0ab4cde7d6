"""Clients choose types, queues, paths and methods, so none of them may make series without end."""

from __future__ import annotations

import pytest

from ojs_engine.telemetry import metrics
from ojs_engine.telemetry.metrics import MAX_SERIES, OTHER, _AllSeries


def test_job_types_beyond_the_limit_count_as_other_in_their_queue() -> None:
    series = _AllSeries()
    known = {series.of("bounded", f"type-{number}").labels for number in range(MAX_SERIES)}
    assert len(known) == MAX_SERIES
    beyond = {series.of("bounded", f"later-{number}").labels for number in range(50)}
    assert beyond == {("bounded", OTHER)}
    assert series.of("bounded", "type-7").labels == ("bounded", "type-7")


def test_queues_beyond_the_limit_count_as_other() -> None:
    series = _AllSeries()
    labels = {series.of(f"bounded-{queue}", f"type-{job_type}").labels for queue in range(300) for job_type in range(3)}
    assert len(labels) <= MAX_SERIES + 101
    assert len({queue for queue, _ in labels}) <= 101
    assert (OTHER, OTHER) in labels


@pytest.mark.parametrize(("method", "shown"), [("POST", "POST"), ("BREW", OTHER)])
def test_methods_that_are_not_of_http_count_as_other(method: str, shown: str) -> None:
    metrics.answered(method, "/bounded", 404, 0.2)
    labels = {"method": shown, "route": "/bounded", "status": "4xx"}
    assert metrics.REGISTRY.get_sample_value("ojs_http_request_duration_seconds_count", labels) == 1


async def test_the_exposition_is_made_from_fresh_values() -> None:
    values = iter([1.0, 2.0])
    end = metrics.refresh_with(lambda: metrics.COMMITS.labels("fresh").inc(next(values)))
    try:
        first, second = await metrics.exposition(), await metrics.exposition()
    finally:
        end()
        metrics.COMMITS.remove("fresh")
    assert b'ojs_commits_total{outcome="fresh"} 1.0' in first
    assert b'ojs_commits_total{outcome="fresh"} 3.0' in second


async def test_a_gauge_that_can_not_be_read_leaves_the_others() -> None:
    def broken() -> None:
        raise OSError("the index is gone")

    end = metrics.refresh_with(broken)
    try:
        assert b"ojs_commits_total" in await metrics.exposition()
    finally:
        end()
        end()  # a second time does no harm
