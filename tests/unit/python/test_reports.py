"""How a worker tells the server of jobs that went well: together, and none at the cost of another."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from ojs_api.work import ACK_MANY, NACK
from ojs_nats import Snooze
from ojs_nats._operations import Request
from ojs_nats._transport import Answer, Transport
from ojs_nats.jobs import Job
from ojs_nats.worker import _outcome
from ojs_nats.worker._reports import Reports
from ojs_nats.worker._timings import WorkerTimings
from support.python_server import html

Answering = Callable[[Any], tuple[int, Any]]
QUICK = WorkerTimings(report_pause_s=0.001, report_longest_pause_s=0.002, retry_after_at_most_s=0.003)
PARTLY = {"code": "backend_unavailable", "message": "not now", "retryable": True}


def whole(code: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": code, "retryable": False}}


def items(*errors: Any) -> dict[str, Any]:
    return {"items": [{"index": index} | ({"error": error} if error else {}) for index, error in enumerate(errors)]}


class Server(Transport):
    """Answers acks as `answering` says, requests that come before as `replies` do; keeps what it was asked."""

    def __init__(self, answering: Answering, replies: Sequence[Answer] = ()) -> None:
        super().__init__("http://nowhere")
        self._answering = answering
        self._replies = deque(replies)
        self.acks: list[list[str]] = []
        self.nacks: list[Any] = []

    async def once(self, request: Request, body: bytes | None) -> Answer:
        asked = msgspec.json.decode(body or b"{}")
        if request.operation is NACK:
            self.nacks.append(asked)
            if self._replies:
                return self._replies.popleft()
            return Answer(200, msgspec.json.encode({"job": {"id": asked["job_id"]}}))
        assert request.operation is ACK_MANY
        self.acks.append([job["job_id"] for job in asked["jobs"]])
        await asyncio.sleep(0)
        if self._replies:
            return self._replies.popleft()
        status, answer = self._answering(asked["jobs"])
        return Answer(status, msgspec.json.encode(answer))

    async def close(self) -> None:
        pass


def fine(jobs: Any) -> tuple[int, Any]:
    return 200, items(*(None for _ in jobs))


async def report(server: Server, *results: Any) -> None:
    reports = Reports(server, "w", None, QUICK)
    jobs = (Job(str(index), "a.b", "active", attempt=1) for index in range(len(results)))
    sent = (reports.send(job, _outcome.returned(result)) for job, result in zip(jobs, results, strict=True))
    async with asyncio.timeout(60):
        await asyncio.gather(*sent)


async def test_what_ends_together_is_told_together() -> None:
    server = Server(fine)
    await report(server, *range(1_500))
    assert [len(acks) for acks in server.acks] == [1_000, 500]


async def test_large_results_go_in_requests_of_their_own() -> None:
    server = Server(fine)
    await report(server, "x" * 900_000, "y" * 900_000, 1)
    assert server.acks == [["0"], ["1", "2"]]


async def test_what_could_not_be_written_is_told_again() -> None:
    answers = iter([(207, items(None, PARTLY, None)), (200, items(None))])
    server = Server(lambda _: next(answers))
    await report(server, 1, 2, 3)
    assert server.acks == [["0", "1", "2"], ["1"]]
    assert not server.nacks


async def test_a_result_that_is_refused_fails_its_job_and_no_other() -> None:
    too_large = {"code": "result_too_large", "message": "the result has 2 MB; the limit is 1 MB"}
    server = Server(lambda _: (207, items(None, too_large, {"code": "conflict", "message": "it is somebody else's"})))
    await report(server, 1, 2, 3)
    assert [(nack["job_id"], nack["error"]["type"]) for nack in server.nacks] == [("1", "ResultRefused")]
    assert "the limit is 1 MB" in server.nacks[0]["error"]["message"]


async def test_a_request_that_is_refused_as_a_whole_is_told_one_by_one() -> None:
    def answer(jobs: Any) -> tuple[int, Any]:
        if any(job.get("result") == "bad" for job in jobs):
            return 413, whole("envelope_too_large")
        return fine(jobs)

    server = Server(answer)
    await report(server, 1, "bad", 3)
    assert server.acks == [["0", "1", "2"], ["0"], ["1"], ["2"]]
    assert [nack["job_id"] for nack in server.nacks] == ["1"]


@pytest.mark.parametrize(
    "reply",
    [
        html(429),
        html(429, "120"),
        html(500),
        html(401),
        html(403),
        html(404),
        html(413),
        html(200),
        lambda: Answer(200, b'{"login": "please"}'),
        lambda: Answer(404, b'{"error": {"code": "not_found"}}'),
    ],
    ids=["429", "429 with Retry-After", "500", "401", "403", "404", "413", "page", "other JSON", "other error"],
)
async def test_successes_that_meet_a_proxy_together_stay_successes(reply: Callable[[], Answer]) -> None:
    kept: Counter[str] = Counter()

    def keep(jobs: Any) -> tuple[int, Any]:
        kept.update(job["job_id"] for job in jobs)
        return fine(jobs)

    server = Server(keep, [reply() for _ in range(3)])
    await report(server, 1, 2, 3)
    assert kept == Counter("012")
    assert not server.nacks


@pytest.mark.parametrize(
    ("error", "members"),
    [
        (ValueError("row " * 1_250_000), {}),
        (Snooze("1h"), {"requeue": True, "retry_after_ms": 15_000}),
    ],
    ids=["a failure", "a job that is put off"],
)
async def test_a_failure_that_is_refused_is_told_with_the_least(error: Exception, members: dict[str, Any]) -> None:
    refusal = Answer(413, msgspec.json.encode(whole("envelope_too_large")))
    server = Server(fine, [refusal])
    await Reports(server, "w", None, QUICK).send(Job("0", "a.b", "active", attempt=1), _outcome.raised(error))
    first, second = server.nacks
    assert len(msgspec.json.encode(first)) < 1_000_000
    named = {name: first["error"][name] for name in ("code", "type") if name in first["error"]}
    said = {"message": "the server refused the whole report: envelope_too_large"}
    assert second == {"job_id": "0", "worker_id": "w", "attempt": 1, "error": {**named, **said}, **members}
