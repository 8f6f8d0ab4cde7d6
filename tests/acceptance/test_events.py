"""Events as clients see them: polling, SSE and WebSocket, with replay and filters, and on NATS itself."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import nats
import pytest

from support.event_streams import Stream
from support.sessions import Session, get, post, push, run
from support.system import System


async def test_polling_sees_at_once_what_was_answered_and_pages_by_cursor(http: Session) -> None:
    job_id = await push(http, "ev.poll")
    assert await run(http, "ev.poll") == job_id
    page = await get(http, "/events?queues=ev.poll")
    assert [event["type"] for event in page["events"]][:3] == ["job.enqueued", "job.started", "job.completed"]
    completed = page["events"][2]
    assert completed["specversion"] == "1.0"
    assert (completed["subject"], completed["data"]["job_id"]) == (job_id, job_id)
    assert completed["data"]["duration_ms"] >= 0
    first = await get(http, "/events?queues=ev.poll&limit=1")
    assert first["has_more"] is True
    rest = await get(http, f"/events?queues=ev.poll&after={first['cursor']}")
    assert [event["id"] for event in rest["events"]] == [event["id"] for event in page["events"][1:]]
    again = await get(http, f"/events?queues=ev.poll&after={rest['cursor']}")
    assert (again["events"], again["has_more"]) == ([], False)
    pages = [await get(http, f"/events?queue=ev.poll&per_page=2&page={number}") for number in (1, 2, 9)]
    ids = [event["id"] for event in page["events"]]
    newest = ids[::-1]
    assert [[event["id"] for event in one["events"]] for one in pages] == [newest[:2], newest[2:4], []]
    assert pages[0]["pagination"] == {"limit": 2, "offset": 0, "has_more": True, "total": len(ids), "page": 1, "per_page": 2}
    assert pages[2]["pagination"]["has_more"] is False
    await push(http, "ev.poll")
    later = await get(http, f"/events?queue=ev.poll&after={pages[0]['cursor']}")
    assert [event["type"] for event in later["events"]] == ["job.enqueued"]


async def test_filters_apply_together(http: Session) -> None:
    await push(http, "ev.one")
    await push(http, "ev.two", delay_until="+PT1H")
    scheduled = await get(http, "/events?types=job.scheduled")
    assert [event["data"]["queue"] for event in scheduled["events"]] == ["ev.two"]
    assert (await get(http, "/events?types=job.scheduled&queues=ev.one"))["events"] == []
    everything = await get(http, "/events?types=job.*&queues=ev.one,ev.two&job_types=test.event")
    assert {event["data"]["queue"] for event in everything["events"]} == {"ev.one", "ev.two"}
    assert (await get(http, "/events?job_types=other.type"))["events"] == []
    both = await get(http, "/events?types=job.scheduled&types=job.enqueued&type=job.enqueued&queue=ev.two&queues=ev.one")
    assert both["events"] == (await get(http, "/events?types=job.scheduled,job.enqueued&queues=ev.one,ev.two"))["events"]
    assert both["events"]


async def test_a_bad_filter_is_refused(http: Session) -> None:
    for query in (
        "types=job.>",
        "types=a.b.c.d.e.f",
        "queues=*",
        "queues=a.>",
        "after=soon",
        "cursor=garbage",
        "limit=-1",
        "sources=ojs://*",
        "types=job.state_changed",
        "types=job.heartbeat",
    ):
        async with http.get(f"/ojs/v1/events?{query}") as answer:
            assert answer.status == 400
            assert query.split("=", maxsplit=1)[0].rstrip("s") in (await answer.json(content_type=None))["error"]["message"]


async def test_what_pages_can_not_be_counted_of_is_refused(http: Session) -> None:
    for query in ("page=1&after=5", "per_page=5&cursor=5", "page=1&types=job.*", "page=1&job_types=a"):
        async with http.get(f"/ojs/v1/events?{query}") as answer:
            assert answer.status == 400, query


async def test_pages_of_one_type_are_counted_among_others(http: Session) -> None:
    for _ in range(5):
        await push(http, "ev.count")
        await run(http, "ev.count")
    page = await get(http, "/events?type=job.completed&page=2&per_page=2")
    everything = await get(http, "/events?types=job.completed")
    assert page["pagination"]["total"] == 5
    assert [event["id"] for event in page["events"]] == [event["id"] for event in everything["events"]][::-1][2:4]
    assert (await get(http, "/events?type=cron.triggered&page=1"))["pagination"]["total"] == 0


async def test_sse_brings_a_jobs_events_in_order_and_goes_on_after_the_last_event_id(http: Session) -> None:
    job_id = await push(http, "ev.sse")
    path = f"/ojs/v1/jobs/{job_id}/events?types=job.enqueued,job.started,job.completed"
    async with http.get(path, headers={"Last-Event-ID": "0"}) as response:
        assert response.content_type == "text/event-stream"
        stream = Stream(response)
        await stream.connected()
        enqueued = await stream.frame()
        assert enqueued["event"] == "job.enqueued"
        await push(http, "ev.sse")  # another job's events stay away
        await run(http, "ev.sse")
        started = await stream.frame()
        completed = await stream.frame()
        assert (started["event"], completed["event"]) == ("job.started", "job.completed")
        assert json.loads(completed["data"])["subject"] == job_id
        assert await stream.rest() == []
    async with http.get(path, headers={"Last-Event-ID": enqueued["id"]}) as response:
        assert await Stream(response).rest() == [started, completed]


async def test_a_stream_that_breaks_before_its_first_event_goes_on_from_where_it_began(http: Session) -> None:
    await push(http, "ev.broken")
    async with http.get("/ojs/v1/queues/ev.broken/events?types=job.enqueued") as response:
        begins = (await response.content.readuntil(b"\n\n")).decode().strip().splitlines()
        began = dict(line.split(": ", 1) for line in begins if line[:1] != ":")["id"]
    job_id = await push(http, "ev.broken")
    async with http.get("/ojs/v1/queues/ev.broken/events?types=job.enqueued", headers={"Last-Event-ID": began}) as response:
        stream = Stream(response)
        await stream.connected()
        while json.loads((await stream.frame())["data"])["subject"] != job_id:
            continue  # what was pushed just before may come, too


async def test_sse_of_a_queue_begins_now_and_by_every_name(http: Session) -> None:
    await push(http, "ev.live")
    for path in ("/queues/ev.live/events", "/events/stream?channel=queue:ev.live", "/events/stream?queue=ev.live&types=job.*"):
        async with http.get(f"/ojs/v1{path}") as response:
            stream = Stream(response)
            await stream.connected()
            job_id = await push(http, "ev.live")
            while json.loads((frame := await stream.frame())["data"])["subject"] != job_id:
                continue  # what was pushed just before may come, too
            assert frame["event"] == "job.enqueued"


async def test_what_left_the_stream_is_counted_for_who_comes_late(http: Session, system: System) -> None:
    for _ in range(3):
        await push(http, "ev.gone")
    before = await get(http, "/events?queues=ev.gone")
    assert len(before["events"]) == 3
    connection = await nats.connect(system.nats_url)
    try:
        await connection.jetstream().purge_stream("OJS_EVENTS")
    finally:
        await connection.close()
    headers = {"Last-Event-ID": str(int(before["cursor"]) - 3)}
    async with http.get("/ojs/v1/queues/ev.gone/events", headers=headers) as response:
        stream = Stream(response)
        missed = await stream.frame()
        assert missed["event"] == "missed"
        assert json.loads(missed["data"])["missed"] >= 3
        gap = await stream.frame()
        told = json.loads(gap["data"])
        assert (gap["event"], told["channel"]) == ("system.gap", "queue:ev.gone")
        assert told["estimated_missed_count"] >= 3
        assert told["gap_start"] < told["gap_end"]
        job_id = await push(http, "ev.gone")
        assert json.loads((await stream.frame())["data"])["subject"] == job_id


@pytest.fixture
async def socket(http: Session) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async with http.ws_connect("/ojs/v1/ws") as connected:
        yield connected


async def test_websocket_subscribes_filters_and_unsubscribes(http: Session, socket: aiohttp.ClientWebSocketResponse) -> None:
    await socket.send_json({"action": "subscribe", "channel": "events", "filter": {"event_types": ["job.completed"]}})
    subscribed = await socket.receive_json(timeout=20)
    assert (subscribed["action"], subscribed["channel"]) == ("subscribed", "events")
    job_id = await push(http, "ev.ws")
    await run(http, "ev.ws")
    message = await socket.receive_json(timeout=20)
    assert message["subscription_id"] == subscribed["subscription_id"]
    assert (message["event"]["type"], message["event"]["subject"]) == ("job.completed", job_id)
    await socket.send_json({"action": "unsubscribe", "subscription_id": subscribed["subscription_id"]})
    assert (await socket.receive_json(timeout=20))["action"] == "unsubscribed"
    await socket.send_json({"action": "unsubscribe", "subscription_id": subscribed["subscription_id"]})
    refused = await socket.receive_json(timeout=20)
    assert refused["error"]["code"] == "invalid_request"


async def test_websocket_answers_nonsense_and_stays_open(socket: aiohttp.ClientWebSocketResponse) -> None:
    for text in ("", "{", "[]", '{"action": "fly"}', '{"action": "subscribe", "channel": "job:x"}'):
        await socket.send_str(text)
        assert "error" in await socket.receive_json(timeout=20)
    await socket.send_json({"action": "subscribe"})
    assert (await socket.receive_json(timeout=20))["action"] == "subscribed"


async def test_plain_http_on_the_websocket_path_is_told_so(http: Session) -> None:
    async with http.get("/ojs/v1/ws") as answer:
        assert answer.status == 400


async def test_events_are_nats_subjects(http: Session, system: System) -> None:
    """`nats sub 'ojs.events.job.completed.>'`, as the README says."""
    connection = await nats.connect(system.nats_url)
    try:
        subscription = await connection.subscribe("ojs.events.job.completed.>")
        await connection.flush()
        job_id = await push(http, "ev.nats")
        await run(http, "ev.nats")
        message = await subscription.next_msg(timeout=20)
        assert message.subject == f"ojs.events.job.completed.ev_nats.{job_id}"
        assert json.loads(message.data)["data"]["job_type"] == "test.event"
    finally:
        await connection.close()


async def test_heartbeats_are_told_to_who_listens_and_kept_nowhere(http: Session, system: System) -> None:
    connection = await nats.connect(system.nats_url)
    try:
        subscription = await connection.subscribe("ojs.live.job.heartbeat.>")
        await connection.flush()
        job_id = await push(http, "ev.beat")
        await post(http, "/workers/fetch", {"queues": ["ev.beat"], "worker_id": "w-beat", "wait_ms": 5000})
        await post(http, "/workers/heartbeat", {"worker_id": "w-beat", "active_jobs": [job_id]})
        message = await subscription.next_msg(timeout=20)
        event = json.loads(message.data)
        assert (event["type"], event["subject"]) == ("job.heartbeat", job_id)
        assert (event["data"]["worker_id"], event["data"]["attempt"]) == ("w-beat", 1)
        assert event["data"]["visible_until"]
        kept = await get(http, "/events?queues=ev.beat")
        assert [event["type"] for event in kept["events"]] == ["job.enqueued", "job.started"]
    finally:
        await connection.close()


async def test_workers_that_come_and_go_are_events(http: Session) -> None:
    await post(http, "/workers/register", {"worker_id": "w-event", "queues": ["ev.q"], "concurrency": 3})
    await post(http, "/workers/deregister", {"worker_id": "w-event"})
    page = await get(http, "/events?types=worker.*")
    assert [event["type"] for event in page["events"]] == ["worker.started", "worker.stopped"]
    assert page["events"][0]["data"] == {"worker_id": "w-event", "queues": ["ev.q"], "concurrency": 3}


async def test_runs_of_cron_entries_are_events(http: Session) -> None:
    entry = {"name": "ev.cron", "cron": "0 0 1 1 *", "type": "test.event", "options": {"queue": "ev.cron"}}
    await post(http, "/cron", entry)
    ran = await post(http, "/cron/ev.cron/trigger", {})
    page = await get(http, "/events?types=cron.*")
    [event] = [event for event in page["events"] if event["subject"] == "ev.cron"]
    async with http.delete("/ojs/v1/cron/ev.cron") as answer:
        assert answer.status == 200
    assert (event["type"], event["subject"]) == ("cron.triggered", "ev.cron")
    assert (event["data"]["job_id"], event["data"]["queue"]) == (ran["job_id"], "ev.cron")


async def test_a_filter_that_can_not_be_kept_is_refused(socket: aiohttp.ClientWebSocketResponse) -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"action": "subscribe", "filter": {"event_type": ["job.failed"]}}, "filter"),
        ({"action": "subscribe", "channel": "queue:a", "filter": {"queues": ["b"]}}, "queues"),
        ({"action": "subscribe", "filter": {"types": ["JOB"]}}, "types"),
    ]
    for sent, field in refused:
        await socket.send_json(sent)
        assert (await socket.receive_json(timeout=20))["error"]["details"]["field"] == field


async def test_a_filter_counts_in_every_channel(http: Session, socket: aiohttp.ClientWebSocketResponse) -> None:
    await push(http, "ev.both")
    wanted = {"event_types": ["job.completed"]}
    await socket.send_json({"action": "subscribe", "channel": "queue:ev.both", "filter": wanted})
    assert (await socket.receive_json(timeout=20))["action"] == "subscribed"
    await run(http, "ev.both")
    assert (await socket.receive_json(timeout=20))["event"] == "job.completed"


async def test_a_message_that_is_nested_deeply_is_refused(socket: aiohttp.ClientWebSocketResponse) -> None:
    await socket.send_str('{"action":"subscribe","filter":' + "[" * 20_000 + "]" * 20_000 + "}")
    assert "not a request" in (await socket.receive_json(timeout=20))["error"]["message"]
    await socket.send_json({"action": "subscribe"})
    assert (await socket.receive_json(timeout=20))["action"] == "subscribed"


@pytest.mark.parametrize("cursor", ["999999999999", "evt_0042"])
async def test_a_cursor_of_another_stream_is_told(http: Session, cursor: str) -> None:
    job_id = await push(http, "ev.beyond")
    async with http.get(f"/ojs/v1/events?after={cursor}") as answer:
        refused = (await answer.json(content_type=None))["error"]
        assert (answer.status, refused["details"]["field"]) == (400, "after")
    async with http.get(f"/ojs/v1/jobs/{job_id}/events", headers={"Last-Event-ID": cursor}) as response:
        stream = Stream(response)
        assert (await stream.frame())["event"] == "reset"
        assert (await stream.frame())["event"] == "system.gap"
        assert json.loads((await stream.frame())["data"])["subject"] == job_id
