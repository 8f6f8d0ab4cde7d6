"""The OJS requests of the harness as ready bytes, and the little it reads of the answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec import Struct

from bench.client import Target

MEDIA_TYPE: Final = "application/openjobspec+json"
_UUID_LENGTH: Final = 36


class FetchedJob(Struct, frozen=True, gc=False):
    """What the harness needs of a fetched job. The one argument is the number the harness gave it."""

    id: str
    args: tuple[int, ...]


class _Fetched(Struct, gc=False):
    jobs: list[FetchedJob]


class _Error(Struct):
    code: str = "?"


class _Refusal(Struct):
    error: _Error


_fetched: Final = msgspec.json.Decoder(_Fetched)
_refusal: Final = msgspec.json.Decoder(_Refusal)


def fetched_jobs(body: bytes) -> list[FetchedJob]:
    """The jobs of a fetch answer. Raises msgspec.DecodeError when it isn't one."""
    return _fetched.decode(body).jobs


def error_name(status: int, body: bytes) -> str:
    """`503 backend_unavailable`, or the status alone when the body has no OJS error."""
    try:
        return f"{status} {_refusal.decode(body).error.code}"
    except msgspec.DecodeError:
        return str(status)


def timestamp(unix_ms: int) -> str:
    """RFC 3339 in UTC with milliseconds."""
    return datetime.fromtimestamp(unix_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{unix_ms % 1000:03d}Z"


class Requests:
    """Builds the requests for one server."""

    def __init__(self, target: Target) -> None:
        common = f"Host: {target.authority}\r\nAccept: {MEDIA_TYPE}\r\n"
        self._get = common
        self._post = f"{common}Content-Type: {MEDIA_TYPE}\r\n"
        # A job id has a fixed length, so an ack is two constants around it.
        ack = self.post("/ojs/v1/workers/ack", {"job_id": "0" * _UUID_LENGTH})
        self._ack_head, self._ack_tail = ack.split(b"0" * _UUID_LENGTH)

    def get(self, path: str) -> bytes:
        return f"GET {path} HTTP/1.1\r\n{self._get}\r\n".encode()

    def delete(self, path: str) -> bytes:
        return f"DELETE {path} HTTP/1.1\r\n{self._post}\r\n".encode()

    def post(self, path: str, body: object) -> bytes:
        payload = msgspec.json.encode(body)
        return f"POST {path} HTTP/1.1\r\n{self._post}Content-Length: {len(payload)}\r\n\r\n".encode() + payload

    def push(self, queue: str, number: int = 0) -> bytes:
        """Enqueue one job whose only argument is `number`."""
        return self.post("/ojs/v1/jobs", {"type": "bench.job", "args": [number], "options": {"queue": queue}})

    def fetch(self, *queues: str, count: int, worker: str, wait_ms: int | None = None) -> bytes:
        """Fetch up to `count` jobs; with `wait_ms` the server may hold the request that long for the first one."""
        body: dict[str, object] = {"queues": queues, "count": count, "worker_id": worker}
        if wait_ms is not None:
            body["wait_ms"] = wait_ms
        return self.post("/ojs/v1/workers/fetch", body)

    def ack(self, job_id: str) -> bytes:
        return self._ack_head + job_id.encode() + self._ack_tail

    def reset(self) -> bytes:
        return self.post("/ojs/v1/admin/reset", {})
