"""Following jobs, queues and all over server-sent events and WebSocket, as ojs-realtime has it."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from support.event_streams import Stream
from support.sessions import Session, fetch, get, post, push, run
from support.system import System

UNKNOWN = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"


async def claimed(http: Session, queue: str) -> str:
    """Return the id of a job that a worker fetches."""
    [job] = await fetch(http, queue, worker_id="w-live", wait_ms=5_000)
    return str(job["id"])


def types(frames: list[dict[str, str]]) -> list[str]:
    return [frame["event"] for frame in frames]


# Server-sent events


async def test_what_is_not_there_can_not_be_followed(http: Session) -> None:
    for path in (
        f"/jobs/{UNKNOWN}/events",
        f"/events/stream?channel=job:{UNKNOWN}",
        "/jobs/none/events",
        "/queues/ev.unknown/events",
        "/events/stream?channel=queue:ev.unknown",
    ):
        async with http.get(f"/ojs/v1{path}") as answer:
            assert answer.status == 404, path
            assert (await answer.json(content_type=None))["error"]["code"] == "not_found"


async def test_a_queue_that_was_only_configured_can_be_followed(http: Session) -> None:
    async with http.put("/ojs/v1/queues/ev.set/config", json={"max_size": 10}) as answer:
        assert answer.status == 200
    async with http.get("/ojs/v1/queues/ev.set/events") as response:
        await Stream(response).connected()


@pytest.mark.parametrize("path", ["/jobs/{id}/events", "/events/stream?channel=job:{id}"])
async def test_a_finished_job_tells_how_it_ended_and_ends_the_stream(http: Session, path: str) -> None:
    job_id = await push(http, "ev.over")
    await run(http, "ev.over")
    async with http.get(f"/ojs/v1{path.format(id=job_id)}") as response:
        frames = await Stream(response).rest()
    changed, completed = frames[:2]
    assert types(frames) == ["job.state_changed", "job.completed", "result.stored"]
    told = json.loads(changed["data"])
    assert told == {
        "job_id": job_id,
        "queue": "ev.over",
        "type": "test.event",
        "from": "active",
        "to": "completed",
        "timestamp": told["timestamp"],
    }
    [stored] = (await get(http, "/events?types=job.completed&queues=ev.over"))["events"]
    assert json.loads(completed["data"]) == stored


async def test_a_job_that_finishes_ends_its_stream_when_all_is_told(http: Session) -> None:
    job_id = await push(http, "ev.ends")
    async with http.get(f"/ojs/v1/jobs/{job_id}/events") as response:
        stream = Stream(response)
        await stream.connected()
        await run(http, "ev.ends")
        frames = await stream.rest()
    found = types(frames)
    assert found[found.index("job.started") - 1 :] == [
        "job.state_changed",
        "job.started",
        "job.state_changed",
        "job.completed",
        "result.stored",
    ]
    changes = [json.loads(frame["data"]) for frame in frames if frame["event"] == "job.state_changed"]
    assert [(change["from"], change["to"]) for change in changes] == [("available", "active"), ("active", "completed")]
    numbers = [float(frame["id"]) for frame in frames]
    assert numbers == sorted(set(numbers))


async def test_a_stream_ends_with_its_job_whatever_is_filtered(http: Session) -> None:
    job_id = await push(http, "ev.quiet")
    async with http.get(f"/ojs/v1/jobs/{job_id}/events?event_types=job.started") as response:
        stream = Stream(response)
        await stream.connected()
        await run(http, "ev.quiet")
        assert types(await stream.rest()) == ["job.started"]
    async with http.get(f"/ojs/v1/jobs/{job_id}/events?event_types=job.started") as response:
        assert await Stream(response).rest() == []


async def test_a_job_that_was_retried_is_followed_through_both_of_its_lives(http: Session) -> None:
    job_id = await push(http, "ev.again", max_attempts=1)
    await claimed(http, "ev.again")
    await post(http, "/workers/nack", {"job_id": job_id, "error": {"message": "no"}})
    await post(http, f"/admin/jobs/{job_id}/retry", {})
    await run(http, "ev.again")
    headers = {"Last-Event-ID": "0"}
    async with http.get(f"/ojs/v1/jobs/{job_id}/events?types=job.discarded,job.completed", headers=headers) as response:
        assert types(await Stream(response).rest()) == ["job.discarded", "job.completed"]


async def test_a_client_that_comes_back_gets_what_is_behind_the_last_id_that_it_has(http: Session) -> None:
    job_id = await push(http, "ev.half")
    await run(http, "ev.half")
    path = f"/ojs/v1/jobs/{job_id}/events"
    async with http.get(path, headers={"Last-Event-ID": "0"}) as response:
        frames = await Stream(response).rest()
    place = types(frames).index("job.state_changed")
    for cut in (place, place + 1):
        async with http.get(path, headers={"Last-Event-ID": frames[cut]["id"]}) as response:
            assert await Stream(response).rest() == frames[cut + 1 :]


async def test_every_filter_holds_for_a_job(http: Session) -> None:
    job_id = await push(http, "ev.filter")
    await run(http, "ev.filter")
    filters: dict[str, list[str]] = {
        "event_types=job.state_changed": ["job.state_changed"] * 2,
        "types=job.completed": ["job.completed"],
        "type=job.completed&type=job.started": ["job.started", "job.completed"],
        "job_types=other": [],
        "queues=other": [],
    }
    for query, expected in filters.items():
        for path in (f"/ojs/v1/jobs/{job_id}/events?{query}", f"/ojs/v1/events/stream?channel=job:{job_id}&{query}"):
            async with http.get(path, headers={"Last-Event-ID": "0"}) as response:
                assert types(await Stream(response).rest()) == expected, path


async def test_a_filter_of_a_stream_that_can_not_be_kept_is_refused(http: Session) -> None:
    await push(http, "ev.bad")
    for path in (
        "/events/stream?types=job.state_changed",
        "/events/stream?channel=everything",
        "/events/stream?channel=queue:ev.bad&queues=other",
        "/queues/ev.bad/events?sources=ojs://x",
        "/queues/ev.bad/events?types=job.%3E",
    ):
        async with http.get(f"/ojs/v1{path}") as answer:
            assert answer.status == 400, path


async def test_head_of_a_stream_ends_at_once(http: Session) -> None:
    job_id = await push(http, "ev.head")
    for path in (f"/jobs/{job_id}/events", "/queues/ev.head/events", "/events/stream", "/admin/stats/stream"):
        async with asyncio.timeout(60), http.head(f"/ojs/v1{path}") as answer:
            assert (answer.status, answer.content_type) == (200, "text/event-stream"), path


# Live events


async def test_heartbeats_are_told_to_who_follows_a_job_and_by_name_to_others(http: Session) -> None:
    job_id = await push(http, "ev.alive")
    await claimed(http, "ev.alive")
    by_name = "/events/stream?types=job.heartbeat&queue=ev.alive"
    for path in (f"/jobs/{job_id}/events", "/queues/ev.alive/events", "/events/stream?channel=all&types=job.*", by_name):
        async with http.get(f"/ojs/v1{path}") as response:
            stream = Stream(response)
            await stream.connected()
            await post(http, "/workers/heartbeat", {"worker_id": "w-live", "active_jobs": [job_id]})
            while (frame := await stream.frame())["event"] != "job.heartbeat":
                continue
        beat = json.loads(frame["data"])
        assert (beat["type"], beat["subject"], beat["data"]["attempt"]) == ("job.heartbeat", job_id, 1)
        assert (beat["job_id"], beat["worker_id"], beat["timestamp"]) == (job_id, "w-live", beat["time"])
        assert frame["id"].isdigit()


@pytest.mark.parametrize("over", ["server-sent events", "a WebSocket"])
async def test_what_a_worker_tells_of_a_job_comes_ahead_of_its_end(http: Session, over: str) -> None:
    """Live events don't wait for stored ones, so they may come ahead of the job's start, too."""
    stored = ["job.enqueued", "job.started", "job.completed"]
    live_ones = ["job.progress", "job.heartbeat", "job.checkpointed"]
    for _ in range(5):
        job_id = await push(http, "ev.order")
        if over == "a WebSocket":
            async with http.ws_connect("/ojs/v1/ws", protocols=["ojs.v1"]) as socket:
                await ask(socket, {"action": "subscribe", "channel": f"job:{job_id}", "last_event_id": "0"})
                await live(http, job_id)
                told = []
                while "job.completed" not in told:
                    told.append((await hear(socket))["event"])
        else:
            async with http.get(f"/ojs/v1/jobs/{job_id}/events", headers={"Last-Event-ID": "0"}) as response:
                stream = Stream(response)
                await stream.connected()
                await live(http, job_id)
                told = types(await stream.rest())
        assert [event for event in told if event in stored] == stored
        assert [event for event in told[: told.index("job.completed")] if event in live_ones] == live_ones


async def live(http: Session, job_id: str) -> None:
    """Run a job that tells of itself as soon as it runs."""
    await claimed(http, "ev.order")
    await post(http, "/workers/progress", {"job_id": job_id, "percentage": 50})
    await post(http, "/workers/heartbeat", {"worker_id": "w-live", "active_jobs": [job_id]})
    await post(http, f"/jobs/{job_id}/checkpoint", {"state": {"at": 1}})
    await post(http, "/workers/ack", {"job_id": job_id, "result": {"ok": True}})


async def test_heartbeats_do_not_come_unasked_in_the_channel_of_events(http: Session) -> None:
    job_id = await push(http, "ev.unasked")
    await claimed(http, "ev.unasked")
    async with http.get("/ojs/v1/events/stream?queue=ev.unasked") as response:
        stream = Stream(response)
        await stream.connected()
        await post(http, "/workers/heartbeat", {"worker_id": "w-live", "active_jobs": [job_id]})
        await post(http, "/workers/ack", {"job_id": job_id})
        while (frame := await stream.frame())["event"] != "job.completed":
            assert frame["event"] not in {"job.heartbeat", "job.state_changed"}


async def test_a_worker_is_followed_from_its_start_to_its_end(http: Session) -> None:
    async with http.get("/ojs/v1/events/stream?channel=all&types=worker.*") as response:
        stream = Stream(response)
        await stream.connected()
        await post(http, "/workers/register", {"worker_id": "w-life", "queues": ["ev.q"], "concurrency": 3})
        started = await stream.frame()
        await post(http, "/workers/heartbeat", {"worker_id": "w-life", "queues": ["ev.q"], "active_jobs": 2})
        beat = await stream.frame()
        for _ in range(2):  # it becomes quiet once
            await post(http, "/workers/heartbeat", {"worker_id": "w-life", "state": "quiet", "active_jobs": 1})
        await post(http, "/workers/deregister", {"worker_id": "w-life", "reason": "signal"})
        frames = [started, beat, *[await stream.frame() for _ in range(4)]]
    assert sorted(types(frames)) == sorted(
        ["worker.started", "worker.quiet", "worker.stopped", "worker.heartbeat", "worker.heartbeat", "worker.heartbeat"]
    )
    told = {frame["event"]: json.loads(frame["data"])["data"] for frame in frames}
    assert json.loads(beat["data"])["data"] == {"worker_id": "w-life", "active_jobs": 2, "queues": ["ev.q"], "state": "running"}
    assert told["worker.quiet"] == {"worker_id": "w-life", "active_jobs": 1}
    assert told["worker.stopped"] == {"worker_id": "w-life", "reason": "signal"}


async def test_a_reason_that_is_none_is_refused(http: Session) -> None:
    await post(http, "/workers/register", {"worker_id": "w-why"})
    async with http.post("/ojs/v1/workers/deregister", json={"worker_id": "w-why", "reason": "boredom"}) as answer:
        assert answer.status == 400
        assert (await answer.json(content_type=None))["error"]["details"]["field"] == "reason"


async def test_the_command_line_finds_job_and_queue_beside_the_data(http: Session) -> None:
    job_id = await push(http, "ev.cli")
    headers = {"User-Agent": "Go-http-client/1.1", "Accept": "text/event-stream", "Last-Event-ID": "0"}
    async with http.get("/ojs/v1/events/stream?queue=ev.cli&types=job.enqueued", headers=headers) as response:
        event = json.loads((await Stream(response).frame())["data"])
    assert (event["event"], event["job_id"], event["queue"]) == ("job.enqueued", job_id, "ev.cli")


# WebSocket


@pytest.fixture
async def socket(http: Session) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async with http.ws_connect("/ojs/v1/ws", protocols=["ojs.v1"]) as connected:
        assert connected.protocol == "ojs.v1"
        yield connected


async def ask(socket: aiohttp.ClientWebSocketResponse, message: dict[str, Any]) -> dict[str, Any]:
    """Send a message; events that were on their way are passed over."""
    await socket.send_json(message)
    while True:
        answer = await hear(socket)
        if answer["type"] != "event":
            return answer


async def hear(socket: aiohttp.ClientWebSocketResponse) -> dict[str, Any]:
    message: dict[str, Any] = await socket.receive_json(timeout=20)
    return message


async def test_a_channel_is_followed_left_and_filtered_anew(http: Session, socket: aiohttp.ClientWebSocketResponse) -> None:
    await push(http, "ev.ws")
    channel = {"channel": "queue:ev.ws"}
    subscribed = await ask(socket, {"action": "subscribe", **channel, "event_types": ["job.state_changed"]})
    assert (subscribed["type"], subscribed["channel"]) == ("subscribed", "queue:ev.ws")
    assert subscribed["event_types"] == ["job.state_changed"]
    job_id = await claimed(http, "ev.ws")
    event = await hear(socket)
    assert (event["type"], event["channel"], event["event"]) == ("event", "queue:ev.ws", "job.state_changed")
    assert event["data"] == {
        "job_id": job_id,
        "queue": "ev.ws",
        "type": "test.event",
        "from": "available",
        "to": "active",
        "timestamp": event["timestamp"],
    }
    renewed = await ask(socket, {"type": "subscribe", **channel, "event_types": ["job.completed"]})
    assert renewed["subscription_id"] == subscribed["subscription_id"]
    await post(http, "/workers/ack", {"job_id": job_id})
    completed = await hear(socket)
    assert (completed["event"], completed["data"]["subject"]) == ("job.completed", job_id)
    assert completed["timestamp"] == completed["data"]["time"]
    left = await ask(socket, {"action": "unsubscribe", **channel})
    assert (left["type"], left["channel"]) == ("unsubscribed", "queue:ev.ws")
    refused = await ask(socket, {"action": "unsubscribe", **channel})
    assert (refused["type"], refused["code"]) == ("error", "invalid_request")


async def test_all_is_a_channel(http: Session, socket: aiohttp.ClientWebSocketResponse) -> None:
    assert (await ask(socket, {"action": "subscribe", "channel": "all"}))["type"] == "subscribed"
    job_id = await push(http, "ev.all")
    event = await hear(socket)
    assert (event["event"], event["data"]["subject"]) == ("job.enqueued", job_id)


@pytest.mark.parametrize("channel", [f"job:{UNKNOWN}", "job:none", "queue:ev.unknown"])
async def test_a_channel_of_what_is_not_there_is_an_error(socket: aiohttp.ClientWebSocketResponse, channel: str) -> None:
    refused = await ask(socket, {"action": "subscribe", "channel": channel})
    assert (refused["type"], refused["code"]) == ("error", "not_found")
    assert refused["error"]["code"] == "not_found"


@pytest.mark.parametrize(
    "more", [{"queues": ["a"]}, {"filter": {"sources": ["x"]}}, {"filter": {"event_types": ["a.b"]}, "event_types": ["c.d"]}]
)
async def test_a_filter_that_is_not_known_is_refused(socket: aiohttp.ClientWebSocketResponse, more: dict[str, Any]) -> None:
    assert (await ask(socket, {"action": "subscribe", "channel": "all", **more}))["type"] == "error"


async def test_a_finished_job_tells_how_it_ended(http: Session, socket: aiohttp.ClientWebSocketResponse) -> None:
    job_id = await push(http, "ev.done")
    await run(http, "ev.done")
    await get(http, "/events")  # all is in the stream
    await ask(socket, {"action": "subscribe", "channel": f"job:{job_id}"})
    assert [(await hear(socket))["event"] for _ in range(2)] == ["job.state_changed", "job.completed"]


async def test_a_socket_goes_on_after_an_event(http: Session, socket: aiohttp.ClientWebSocketResponse) -> None:
    await ask(socket, {"action": "subscribe", "channel": "all", "event_types": ["job.enqueued"]})
    pushed = [await push(http, "ev.resume") for _ in range(3)]
    first = await hear(socket)
    async with http.ws_connect("/ojs/v1/ws") as again:
        resumed = await ask(again, {"action": "resume", "last_event_id": first["id"]})
        assert (resumed["type"], resumed["channels"]) == ("resumed", [])
        await ask(again, {"action": "subscribe", "channel": "queue:ev.resume", "event_types": ["job.enqueued"]})
        found = [await hear(again) for _ in range(2)]
        assert [event["data"]["subject"] for event in found] == pushed[1:]
        resumed = await ask(again, {"action": "resume", "last_event_id": found[0]["id"]})
        assert resumed["channels"] == ["queue:ev.resume"]
        assert (await hear(again))["data"]["subject"] == pushed[2]


async def test_what_has_gone_is_not_gone_on_with(http: Session, socket: aiohttp.ClientWebSocketResponse) -> None:
    job_id = await push(http, "ev.removed")
    first = await get(http, "/events?queues=ev.removed")
    for channel in (f"job:{job_id}", "queue:ev.removed"):
        await ask(socket, {"action": "subscribe", "channel": channel})
    await post(http, "/queues/ev.removed/purge", {})
    async with http.get(f"/ojs/v1/jobs/{job_id}") as answer:
        assert answer.status == 404
    resumed = await ask(socket, {"action": "resume", "last_event_id": first["cursor"]})
    assert resumed["channels"] == ["queue:ev.removed"]


@pytest.mark.parametrize("number", ["999999999999", "evt_0042"])
async def test_an_event_that_is_not_known_can_not_be_gone_on_after(
    socket: aiohttp.ClientWebSocketResponse, number: str
) -> None:
    refused = await ask(socket, {"action": "resume", "last_event_id": number})
    assert (refused["type"], refused["code"]) == ("error", "unknown_event_id")


# The end of a gateway


async def test_a_gateway_that_stops_tells_every_stream_and_socket(own_system: System) -> None:
    async with aiohttp.ClientSession(own_system.url) as http:
        await push(http, "ev.stop")
        paths = ("/queues/ev.stop/events?types=job.failed", "/admin/stats/stream")
        responses = [await http.get(f"/ojs/v1{path}") for path in paths]
        for response in responses:
            await Stream(response).connected()
        async with http.ws_connect("/ojs/v1/ws") as socket:
            await ask(socket, {"action": "subscribe", "channel": "all", "event_types": ["job.failed"]})
            own_system.process.send_signal(signal.SIGTERM)
            told = await hear(socket)
            assert (told["type"], told["event"]) == ("event", "server.shutdown")
            assert (await socket.receive(timeout=20)).data == aiohttp.WSCloseCode.GOING_AWAY
        for response in responses:
            last = (await Stream(response).rest())[-1]
            assert (last["event"], json.loads(last["data"])["grace_period_ms"]) == ("server.shutdown", 0)
