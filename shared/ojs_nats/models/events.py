"""Events of jobs, queues, workers and workflows."""

from __future__ import annotations

from ojs_api.events import Event, EventPage

__all__ = ["Event", "EventPage"]
