"""Consumers: made, pulled from, and deleted."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from ojs_engine.base.errors import unavailable
from ojs_engine.base.portions import in_portions
from ojs_engine.jetstream.api import ApiError, ask, call, error_of, heard, raw_answer
from ojs_engine.jetstream.connection import Collected, Connection, Failed, Reply, status

SECOND_NS: Final = 1_000_000_000
NOTHING: Final = frozenset({404, 408})
"""The status of a pull for which there was nothing. Any other says that the consumer is gone, or its leader."""
_NOT_FOUND: Final = 10014
_AT_ONCE: Final = 32
_PULL_BYTES: Final = 8 * 1024 * 1024
_ROOM: Final = 64 * 1024
"""For the subject and the headers of a message as large as nats-server takes."""
_NUMBERS: Final = 5
"""$JS.ACK.<stream>.<consumer>.<deliveries>.<stream sequence>.<consumer sequence>.<timestamp ns>.<pending>"""


class Delivery(NamedTuple):
    """A message that a consumer has delivered.

    `sequence` is its place in the stream, `number` its place among this consumer's deliveries, `deliveries` how often it was
    delivered, `at` when it was stored (server time, Unix ms), `pending` how many more there are for the consumer.
    """

    message: Reply
    deliveries: int
    sequence: int
    number: int
    at: int
    pending: int

    @classmethod
    def of(cls, message: Reply) -> Delivery:
        _, deliveries, sequence, number, at, pending = message.reply.rsplit(b".", _NUMBERS)
        return cls(message, int(deliveries), int(sequence), int(number), int(at) // 1_000_000, int(pending))


def place_of(message: Reply) -> tuple[int, int]:
    """A delivery's `sequence` and `at` alone, which are cheaper to have."""
    _, _, sequence, _, at, _ = message.reply.rsplit(b".", _NUMBERS)
    return int(sequence), int(at) // 1_000_000


def pull(
    nats: Connection, stream: str, name: str, which: dict[str, Any], timeout_s: float
) -> Coroutine[Any, Any, Collected | Failed]:
    """Ask for up to `batch` messages; `which` is a request of CONSUMER.MSG.NEXT."""
    return nats.collect(f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{name}", msgspec.json.encode(which), which["batch"], timeout_s)


def most_bytes(nats: Connection) -> int:
    """The `max_bytes` of a pull that may meet large messages: as large as nats-server takes, one has to fit."""
    return max(_PULL_BYTES, nats.max_payload) + _ROOM


def pulled(outcome: Collected | Failed) -> list[Reply] | None:
    """What a pull has brought; None if its consumer is gone, or its leader is. Raises OjsError backend_unavailable."""
    messages, closing = heard(outcome)
    if messages:
        return messages
    if closing is None:
        raise unavailable("NATS did not answer a pull")
    return [] if status(closing) in NOTHING else None


async def make_in_memory(nats: Connection, stream: str, config: dict[str, Any], action: str = "") -> ApiError | None:
    """Make the durable consumer of one `filter_subject`, whose messages are acknowledged and whose state nats-server keeps in
    memory (docs/adr/029); returns its error if it refuses. `action` is the API's.

    One whose state is in a file, as earlier versions made them, is made anew: that state may come back newer than its stream
    from a copy of the data folder, and then the consumer never delivers what the stream holds.
    Raises OjsError backend_unavailable.
    """
    name, subject = config["durable_name"], config["filter_subject"]
    create = f"CONSUMER.CREATE.{stream}.{name}.{subject}"
    wanted = config | {"ack_policy": "explicit", "max_deliver": -1, "mem_storage": True}
    request = {"stream_name": stream, "config": wanted, "action": action}
    error = error_of(await raw_answer(nats, create, request))
    if error is not None:
        found = await call(nats, f"CONSUMER.INFO.{stream}.{name}")
        if "error" not in found and not found["config"].get("mem_storage"):
            await remove(nats, stream, [name])
            error = error_of(await raw_answer(nats, create, request))
    return error


async def let_go(nats: Connection, stream: str, name: str) -> bool:
    """Let a consumer deliver that was made paused; False if it is gone. Raises OjsError backend_unavailable."""
    return error_of(await raw_answer(nats, f"CONSUMER.PAUSE.{stream}.{name}", {})) is None


async def is_paused(nats: Connection, stream: str, name: str) -> bool:
    """Whether a consumer is there and paused. Raises OjsError backend_unavailable."""
    return bool((await call(nats, f"CONSUMER.INFO.{stream}.{name}")).get("paused"))


async def remove(nats: Connection, stream: str, names: Sequence[str]) -> None:
    """Delete consumers, if they are there. Raises OjsError backend_unavailable."""

    async def gone(name: str) -> None:
        error = error_of(await raw_answer(nats, f"CONSUMER.DELETE.{stream}.{name}"))
        if error is not None and error.err_code != _NOT_FOUND:
            raise unavailable(f"NATS refused to stop a consumer of the queue: {error.description}")

    await in_portions(names, gone, _AT_ONCE)


async def remove_all(nats: Connection, stream: str) -> None:
    """Delete every consumer of a stream. Raises OjsError backend_unavailable."""
    while names := (await ask(nats, f"CONSUMER.NAMES.{stream}", None, "to list the queues' consumers")).get("consumers"):
        await remove(nats, stream, names)
