"""Channels with their filters, and the messages that a client gets of each event (ojs-realtime §3.2, §4; ojs-events §6)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ojs_engine.base.errors import invalid
from ojs_engine.base.fields import queue_name, shown
from ojs_engine.base.ids import job_id_of
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.domain.events.vocabulary import ENTERED
from ojs_engine.domain.job import TERMINAL
from ojs_engine.jetstream.event_reader import EventFilter, StoredEvent
from ojs_engine.wire.members import encode
from ojs_features.events.answers import LIVE_TYPES, STATE_CHANGED, Message, lifted, state_change

FILTERS: Final = ("event_types", "types", "type", "queues", "queue", "job_types", "job_type")
EVENTS: Final = "events"
"""The channel of ojs-events: its vocabulary, as it is stored, and what is named in full besides."""
ALL: Final = "all"
_CHANNELS: Final = "job:<id>, queue:<name>, all or events"
_MAX_FILTERS: Final = 100
_SHARED: Final = 128
"""How many events have their messages kept: each is made once for all who get it at that time."""
_TYPE: Final = re.compile(r"[a-z_]{1,40}(\.[a-z_]{1,40}){0,3}(\.\*)?|\*", re.ASCII)
Sees = Callable[[str, str | None], bool]
_CURSOR: Final = re.compile(r"([0-9]{1,18})(\.5)?", re.ASCII)


class Channel(Struct, frozen=True, kw_only=True):
    """A channel by its name, and what is wanted of it: `wanted` has the types as the client named them."""

    name: str
    wanted: EventFilter
    changed: int = 0
    """The event whose change of state the client has got, and not the event itself: it goes on between both."""

    @property
    def job_id(self) -> str | None:
        return self.wanted.subject_id

    @property
    def queue(self) -> str | None:
        return self.wanted.queues[0] if self.name.startswith("queue:") else None

    @property
    def source(self) -> EventFilter:
        """The events that are needed: more than are wanted where another is made of them, or where one ends the stream."""
        if self.job_id is not None:
            return EventFilter(subject_id=self.job_id, sees=self.wanted.sees)
        types = self.wanted.types
        if types and self._has(STATE_CHANGED):
            types = (*types, *ENTERED)
        return replace(self.wanted, types=types)

    @property
    def hears(self) -> bool:
        """Whether it has live events."""
        return any(self._has(event_type) for event_type in LIVE_TYPES)

    def messages(self, event: StoredEvent, cursor: int) -> list[Message]:
        """Return what the client gets of an event; `cursor` is that of the last stored one.

        The change of state comes ahead of the event that it is made of: its id leads to that event.
        """
        if self.job_id is not None and not replace(self.wanted, types=()).admits(event):
            return []  # of others, what doesn't fit isn't brought
        if event.live:
            return [Message(event.type, str(cursor), _lifted(event.body))] if self._has(event.type) else []
        itself = [Message(event.type, str(event.sequence), event.body)] if self.wanted.admits_type(event.type) else []
        change = _change(event) if event.type in ENTERED and self._has(STATE_CHANGED) else None
        if change is None or event.sequence == self.changed:
            return itself
        number = f"{event.sequence - 1}.5" if itself else str(event.sequence)
        return [Message(STATE_CHANGED, number, change), *itself]

    def _has(self, event_type: str) -> bool:
        """Whether the channel has a type that isn't stored."""
        if self.name == EVENTS:
            return event_type in self.wanted.types
        return self.wanted.admits_type(event_type)


@lru_cache(maxsize=_SHARED)
def _change(event: StoredEvent) -> bytes | None:
    change = state_change(event)
    return None if change is None else encode(change)


_lifted: Final = lru_cache(maxsize=_SHARED)(lifted)


def ends(event_type: str) -> bool | None:
    """Whether a job has finished by such an event; None if that changes nothing."""
    entered = ENTERED.get(event_type)
    return None if entered is None else entered in TERMINAL


def channel_of(name: str, query: Mapping[str, str], sees: Sees | None = None) -> Channel:
    """A channel by its name with the filters of a query. Raises invalid_request, not_found for what can't be a job's id."""
    wanted = replace(filter_of(query), sees=sees)
    kind, _, of = name.partition(":")
    if kind == "job" and of:
        job_id = job_id_of(of)
        return Channel(name=f"job:{job_id}", wanted=replace(wanted, subject_id=job_id))
    if kind == "queue" and of:
        if wanted.queues:
            raise invalid("queues", f"queues can't be asked for with the channel {shown(name)}; use one of both")
        return Channel(name=name, wanted=replace(wanted, queues=(_queue_of(of),)))
    if name == EVENTS:
        if STATE_CHANGED in wanted.types:
            raise invalid("types", f"{STATE_CHANGED} is told in the channels job:<id>, queue:<name> and all, not in events")
        return Channel(name=name, wanted=wanted)
    if name == ALL:
        return Channel(name=name, wanted=wanted)
    raise invalid("channel", f"channel must be {_CHANNELS}, not {shown(name)}")


def filter_of(query: Mapping[str, str]) -> EventFilter:
    """The filters of a query; lists are separated by commas, types may end in `.*`. Raises invalid_request."""
    for name in ("sources", "source"):
        if query.get(name):
            raise invalid(name, f"events can't be filtered by {name}, only by types, queues and job_types")
    types = _names(query, "types", "type", "event_types")
    for event_type in types:
        if not _TYPE.fullmatch(event_type):
            raise invalid("types", f"types must be event types like job.completed or job.*, not {shown(event_type)}")
    return EventFilter(
        types=types,
        queues=tuple(_queue_of(name) for name in _names(query, "queues", "queue")),
        job_types=_names(query, "job_types", "job_type"),
    )


def cursor_of(text: str, name: str) -> int:
    """The cursor that a client sends back, its id of an event. Raises invalid_request."""
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise invalid(name, f"{name} must be the cursor or id of an event, a whole number, not {shown(text)}")
    return int(found[1])


def resumed(channel: Channel, last_event_id: str) -> Channel:
    """Return the channel for a client that has got the event of this id."""
    found = _CURSOR.fullmatch(last_event_id)
    return replace(channel, changed=int(found[1]) + 1 if found is not None and found[2] else 0)


def _queue_of(name: str) -> str:
    return queue_name(name, "queue", DEFAULT_LIMITS)


def _names(query: Mapping[str, str], *keys: str) -> tuple[str, ...]:
    """All that is named under any of the keys, each of which may come several times."""
    given = [value for key, value in query.items() if key in keys]
    names = tuple(name.strip() for value in given for name in value.split(",") if name.strip())
    if len(names) > _MAX_FILTERS:
        raise invalid(keys[0], f"{keys[0]} has {len(names)} entries; the limit is {_MAX_FILTERS}")
    return names
