"""The time of the last backup: a backup notes it in the bucket, for the findings and the metric of gateways."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from ojs_engine.jetstream.api import error_of, heard, refused
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.contents import message
from ojs_engine.jetstream.subjects import StoreConfig

_WHAT: Final = "the time of the last backup"


class LastBackup(Struct, frozen=True):
    """The record. `at` is when reading ended (server time, Unix ms)."""

    at: int


_decode: Final = msgspec.json.Decoder(LastBackup).decode


async def note_backup(nats: Connection, config: StoreConfig, at: int) -> None:
    """Store when a backup was made. Raises Denied where the NATS user may not, OjsError where NATS doesn't store it."""
    answer = heard(await nats.request(config.last_backup, msgspec.json.encode(LastBackup(at))))
    if (error := error_of(answer.data)) is not None:
        raise refused(_WHAT, error)


async def last_backup(nats: Connection, config: StoreConfig) -> int | None:
    """Return when the last backup was made (Unix ms), None if none was. Raises OjsError backend_unavailable.

    A record that can't be read counts from when it was stored.
    """
    found = await message(nats, config.records_stream, {"last_by_subj": config.last_backup}, _WHAT)
    if found is None or not found.data:
        return None
    try:
        return _decode(found.data).at
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return found.at
