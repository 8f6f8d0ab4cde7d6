from __future__ import annotations

import msgspec
import pytest

from bench.client import Target
from bench.messages import Requests, error_name, fetched_jobs, timestamp

REQUESTS = Requests(Target("127.0.0.1", 8080))
JOB = "0190f5e4-7b1a-7c3d-9e2f-0a1b2c3d4e5f"


def sent(request: bytes) -> tuple[str, object]:
    head, body = request.split(b"\r\n\r\n", 1)
    assert f"Content-Length: {len(body)}".encode() in head.split(b"\r\n")
    return head.split(b"\r\n")[0].decode(), msgspec.json.decode(body)


def test_a_push_has_its_number_and_its_delay() -> None:
    assert sent(REQUESTS.push("q", 7)) == (
        "POST /ojs/v1/jobs HTTP/1.1",
        {"type": "bench.job", "args": [7], "options": {"queue": "q"}},
    )
    _, body = sent(REQUESTS.push("q", delay_until=timestamp(1_700_000_000_001)))
    assert body == {
        "type": "bench.job",
        "args": [0],
        "options": {"queue": "q", "delay_until": "2023-11-14T22:13:20.001Z"},
    }


def test_a_fetch_waits_only_where_it_is_asked_to() -> None:
    _, body = sent(REQUESTS.fetch("q", count=10, worker="w"))
    assert body == {"queues": ["q"], "count": 10, "worker_id": "w"}
    _, body = sent(REQUESTS.fetch("q", count=1, worker="w", wait_ms=50))
    assert body == {"queues": ["q"], "count": 1, "worker_id": "w", "wait_ms": 50}


def test_an_ack_announces_the_length_it_has() -> None:
    assert sent(REQUESTS.ack(JOB)) == ("POST /ojs/v1/workers/ack HTTP/1.1", {"job_id": JOB})


def test_fetched_jobs_are_read_with_what_else_is_in_them_left_alone() -> None:
    body = msgspec.json.encode({"jobs": [{"id": JOB, "args": [-3], "state": "active", "meta": {}}]})
    (job,) = fetched_jobs(body)
    assert (job.id, job.args) == (JOB, (-3,))
    with pytest.raises(msgspec.DecodeError):
        fetched_jobs(b"{}")


def test_errors_are_named_by_status_and_code() -> None:
    assert error_name(503, b'{"error":{"code":"backend_unavailable","message":"x"}}') == "503 backend_unavailable"
    assert error_name(500, b"<html>") == "500"
