"""A service that `nats micro` finds: NATS's service protocol (nats-architecture-and-design, ADR-32), over our connection.

nats-py's own serves the requests of an endpoint one after the other, so that one that waits would hold up the others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from ojs_engine.jetstream.connection import Connection, Reply
from ojs_engine.jetstream.inboxes import Inboxes

_TYPES: Final = "io.nats.micro.v1."
_NS: Final = 1_000_000_000
ERROR: Final = "Nats-Service-Error"
ERROR_CODE: Final = "Nats-Service-Error-Code"


class Endpoint:
    """What a service answers on one subject, and how often it did."""

    def __init__(self, name: str, subject: str, group: str, metadata: Mapping[str, str]) -> None:
        self.subject = subject
        self.group = group
        self.info = {"name": name, "subject": subject, "queue_group": group, "metadata": dict(metadata)}
        self._requests = 0
        self._errors = 0
        self._last_error = ""
        self._busy_ns = 0

    def answered(self, seconds: float, error: str | None) -> None:
        """Count a request; `error` says why it failed, if it did."""
        self._requests += 1
        self._busy_ns += int(seconds * _NS)
        if error is not None:
            self._errors += 1
            self._last_error = error

    @property
    def stats(self) -> dict[str, Any]:
        named = {name: self.info[name] for name in ("name", "subject", "queue_group")}
        return named | {
            "num_requests": self._requests,
            "num_errors": self._errors,
            "last_error": self._last_error,
            "processing_time": self._busy_ns,
            "average_processing_time": self._busy_ns // self._requests if self._requests else 0,
        }


class MicroService:
    """One instance of a service, `instance` its id. Requests are handed over in the connection's read loop.

    Those that can't be answered at one of the `inboxes` are not handed over.
    """

    def __init__(self, nats: Connection, inboxes: Inboxes, name: str, instance: str, version: str, about: str) -> None:
        self._nats = nats
        self._inboxes = inboxes
        self._identity = {"name": name, "id": instance, "version": version, "metadata": {}}
        self._about = about
        self._started = datetime.fromtimestamp(time.time(), UTC).isoformat().replace("+00:00", "Z")
        self._endpoints: list[Endpoint] = []

    async def serve(self, endpoints: Mapping[Endpoint, Callable[[Reply], None]]) -> None:
        """Listen to what the endpoints are for, and to questions about them."""
        self._endpoints += endpoints
        name, instance = self._identity["name"], self._identity["id"]
        questions = (("PING", self._ping), ("INFO", self._info), ("STATS", self._stats))
        await asyncio.gather(
            *(self._nats.listen(one.subject, self._guarded(handler), group=one.group) for one, handler in endpoints.items()),
            *(
                self._nats.listen(subject, self._guarded(self._telling(answer)))
                for verb, answer in questions
                for subject in (f"$SRV.{verb}", f"$SRV.{verb}.{name}", f"$SRV.{verb}.{name}.{instance}")
            ),
        )

    def _guarded(self, handler: Callable[[Reply], None]) -> Callable[[Reply], None]:
        def hear(request: Reply) -> None:
            if self._inboxes.admit(request):
                handler(request)

        return hear

    def _telling(self, answer: Callable[[], dict[str, Any]]) -> Callable[[Reply], None]:
        def tell(asked: Reply) -> None:
            self._nats.publish(asked.reply.decode(), msgspec.json.encode(self._identity | answer()))

        return tell

    def _ping(self) -> dict[str, Any]:
        return {"type": f"{_TYPES}ping_response"}

    def _info(self) -> dict[str, Any]:
        endpoints = [endpoint.info for endpoint in self._endpoints]
        return {"type": f"{_TYPES}info_response", "description": self._about, "endpoints": endpoints}

    def _stats(self) -> dict[str, Any]:
        endpoints = [endpoint.stats for endpoint in self._endpoints]
        return {"type": f"{_TYPES}stats_response", "started": self._started, "endpoints": endpoints}
