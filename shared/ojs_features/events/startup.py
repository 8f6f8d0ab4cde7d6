"""The setting of events for clients."""

from __future__ import annotations

from typing import Final

from ojs_runtime import setting_readers
from ojs_runtime.service_entry import Startup
from ojs_runtime.settings import Option

MAX_SUBSCRIPTIONS: Final = Option(
    "max_subscriptions",
    setting_readers.integer(1, 100_000),
    "N",
    "event streams and subscriptions on WebSockets that a gateway serves at a time; each costs it some 15 µs for every "
    "event that it wants",
    frozenset({"gateway", "dev", "config"}),
    initial=1_000,
)
STARTUP: Final = Startup("events", options=(MAX_SUBSCRIPTIONS,))
