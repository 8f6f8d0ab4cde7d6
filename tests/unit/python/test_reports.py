"""How a worker tells the server of jobs that went well: together, and none at the cost of another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from ojs_nats._jobs import Job
from ojs_nats._operations import ACK, NACK, Request
from ojs_nats._transport import Answer, Transport
from ojs_nats._worker import outcome
from ojs_nats._worker.reports import Reports

Answering = Callable[[Any], tuple[int, Any]]
PARTLY = {"code": "backend_unavailable", "message": "not now", "retryable": True}


def whole(code: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": code, "retryable": False}}


def items(*errors: Any) -> dict[str, Any]:
    return {"items": [{"index": index} | ({"error": error} if error else {}) for index, error in enumerate(errors)]}


class Server(Transport):
    """Answers acks as `answering` says; keeps what it was asked."""

    def __init__(self, answering: Answering) -> None:
        super().__init__("http://nowhere")
        self._answering = answering
        self.acks: list[list[str]] = []
        self.nacks: list[Any] = []

    async def once(self, request: Request, body: bytes | None) -> Answer:
        asked = msgspec.json.decode(body or b"{}")
        if request.operation is NACK:
            self.nacks.append(asked)
            return Answer(200, msgspec.json.encode({"job": {"id": asked["job_id"]}}))
        assert request.operation is ACK
        self.acks.append([job["job_id"] for job in asked["jobs"]])
        await asyncio.sleep(0)
        status, answer = self._answering(asked["jobs"])
        return Answer(status, msgspec.json.encode(answer))

    async def close(self) -> None:
        pass


def fine(jobs: Any) -> tuple[int, Any]:
    return 200, items(*(None for _ in jobs))


async def report(server: Server, *results: Any) -> None:
    reports = Reports(server, "w", None)
    jobs = (Job(str(index), "a.b", "active", attempt=1) for index in range(len(results)))
    sent = (reports.send(job, outcome.returned(result)) for job, result in zip(jobs, results, strict=True))
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
