"""Events (docs/events.md)."""

from __future__ import annotations

from typing import Final

from ojs_api import events as contract
from ojs_engine.api.contract import part_of
from ojs_features.events.dialects import SHAPES
from ojs_features.events.handlers import EventHandlers

PART: Final = part_of(
    contract.EVENTS,
    (
        EventHandlers,
        {
            contract.POLL: EventHandlers.poll,
            contract.STREAM: EventHandlers.stream,
            contract.OF_JOB: EventHandlers.of_job,
            contract.OF_QUEUE: EventHandlers.of_queue,
            contract.SOCKET: EventHandlers.socket,
        },
    ),
    shapes=SHAPES,
)
