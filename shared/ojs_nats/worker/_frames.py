"""Messages between a worker and a process of its pool: JSON with a mark and its length before it."""

from __future__ import annotations

import struct
from datetime import datetime
from typing import Any, Final

import msgspec

from ojs_nats.jobs import Job

HEAD_BYTES: Final = 12

_HEAD: Final = struct.Struct(">4sQ")
_MARK: Final = b"\xf0ojs"
"""Before each frame: a handler that writes into descriptors that aren't its own would else make a length of what it
writes, and the rest of that frame would be waited for.
"""
_MOST_BYTES: Final = 2**30


class Run(msgspec.Struct, tag=True):
    """To the process: run the handler that is called `name` in `module`."""

    module: str
    name: str
    job: Job
    worker_id: str
    began: datetime
    log_level: int


class Stop(msgspec.Struct, tag=True):
    """To the process: its handler's time is nearly over."""


class Answered(msgspec.Struct, tag=True):
    """To the process, about `Told`; `message` is why it was refused, None if it wasn't. `code` is None if nobody
    answered.
    """

    message: str | None = None
    code: str | None = None
    status: int = 0


class Told(msgspec.Struct, tag=True):
    """To the worker, for the server: progress, or a checkpoint; the members beside the holder's."""

    operation: str
    body: dict[str, Any]


class Logged(msgspec.Struct, tag=True):
    """To the worker: a line for its log, of a job if one runs."""

    level: str
    event: str
    members: dict[str, Any]
    job_id: str | None


class Returned(msgspec.Struct, tag=True):
    """To the worker: the handler's result."""

    result: Any


class Raised(msgspec.Struct, tag=True):
    """To the worker: the handler's error, as the server is to be told of it."""

    members: dict[str, Any]


ToProcess = Run | Stop | Answered
ToWorker = Told | Logged | Returned | Raised


def length(head: bytes) -> int:
    """Return how many bytes follow the first ones of a frame. Raises ValueError if they aren't a frame's."""
    mark, size = _HEAD.unpack(head)
    if mark != _MARK or size > _MOST_BYTES:
        raise ValueError(f"{head!r} begins no frame")
    return int(size)


def frame(said: ToProcess | ToWorker) -> bytes:
    """Return its bytes. Raises ValueError and TypeError for what JSON can't hold, but that lines of the log may have
    any object.
    """
    body = msgspec.json.encode(said, enc_hook=repr if isinstance(said, Logged) else None)
    return _HEAD.pack(_MARK, len(body)) + body
