"""Lifecycle events (requirements §17): what they say, and how they are read back."""

from __future__ import annotations

from ojs_nats.events.crons import events_of_cron
from ojs_nats.events.crossings import events_of_crossing
from ojs_nats.events.envelope import Event
from ojs_nats.events.reader import EventFilter, EventPage, EventReader, StoredEvent
from ojs_nats.events.vocabulary import events_of
from ojs_nats.events.workflows import events_of_workflow

__all__ = [
    "Event",
    "EventFilter",
    "EventPage",
    "EventReader",
    "StoredEvent",
    "events_of",
    "events_of_cron",
    "events_of_crossing",
    "events_of_workflow",
]
