"""Marks: facts about a system that outlive its records.

A mark is a durable consumer that never delivers anything. nats-server keeps consumers outside of the files of messages
and makes one at most once. A process needs no further right for it: all make consumers of records (docs/adr/028).
"""

from __future__ import annotations

from typing import Any, Final

from ojs_engine.base.errors import unavailable
from ojs_engine.jetstream.api import call
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.streams import error_code
from ojs_engine.jetstream.subjects import StoreConfig

_NO_CONSUMER: Final = frozenset({10014, 10149})
"""Errors that say that a consumer isn't there; the second is that of an update."""


class Mark:
    """A mark in the stream of records, which stays as long as the stream."""

    def __init__(self, nats: Connection, config: StoreConfig, name: str) -> None:
        self._nats = nats
        self._stream = config.records_stream
        self._config = {
            "name": name,
            "durable_name": name,
            "filter_subjects": [config.record("probe", name)],  # no record has that name
            "deliver_policy": "new",
            "ack_policy": "explicit",
        }

    async def set(self) -> None:
        """Make the mark, if it isn't there. Raises OjsError backend_unavailable."""
        await self._ask("", "")

    async def is_set(self) -> bool:
        """Return whether the mark is there. Raises OjsError backend_unavailable."""
        return await self._ask("update", "whether there is ")

    async def _ask(self, action: str, what: str) -> bool:
        request: dict[str, Any] = {"stream_name": self._stream, "config": self._config, "action": action}
        answer = await call(self._nats, f"CONSUMER.CREATE.{self._stream}.{self._config['name']}", request)
        if action and error_code(answer) in _NO_CONSUMER:
            return False
        if "error" in answer:
            reason = answer["error"].get("description")
            raise unavailable(f"NATS refused {what}the mark {self._config['name']}: {reason}")
        return True
