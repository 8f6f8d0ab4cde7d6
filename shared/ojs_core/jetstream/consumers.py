"""Durable consumers whose state nats-server keeps in memory (docs/adr/029)."""

from __future__ import annotations

from typing import Any

from ojs_core.jetstream.api import call
from ojs_core.jetstream.connection import Connection


async def make_in_memory(nats: Connection, stream: str, config: dict[str, Any], action: str = "") -> dict[str, Any] | None:
    """Make the durable consumer of one `filter_subject`; returns nats-server's error if it refuses. `action` is the API's.

    One whose state is in a file, as earlier versions made them, is made anew: that state may come back newer than its stream
    from a copy of the data folder, and then the consumer never delivers what the stream holds.
    Raises OjsError backend_unavailable.
    """
    name, subject = config["durable_name"], config["filter_subject"]
    create = f"CONSUMER.CREATE.{stream}.{name}.{subject}"
    request = {"stream_name": stream, "config": config | {"mem_storage": True}, "action": action}
    error: dict[str, Any] | None = (await call(nats, create, request)).get("error")
    if error is not None:
        found = await call(nats, f"CONSUMER.INFO.{stream}.{name}")
        if "error" not in found and not found["config"].get("mem_storage"):
            await call(nats, f"CONSUMER.DELETE.{stream}.{name}")
            error = (await call(nats, create, request)).get("error")
    return error
