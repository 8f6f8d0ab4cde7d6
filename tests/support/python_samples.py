"""Jobs that run, without a worker and a server."""

from __future__ import annotations

from typing import Any

from ojs_nats._operations import Request
from ojs_nats.jobs import Job, JobRequest
from ojs_nats.worker import JobContext


class Heard:
    """In the place of a server: keeps what it is told."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def send(self, request: Request) -> object:
        self.requests.append(request)
        return None

    def send_sync(self, request: Request) -> object:
        self.requests.append(request)
        return None


def context(*args: Any, **members: Any) -> JobContext:
    return JobContext(Job("j1", "a.job", "active", attempt=1, args=list(args), **members), Heard(), "w1")


def run_of(new: JobRequest[Any] | None) -> JobContext:
    """The run of a job as it was pushed."""
    assert new is not None
    return context(*new.args, meta=new.options.get("meta", {}))
