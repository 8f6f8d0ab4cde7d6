"""The places where events for clients are plugged into the server."""

from __future__ import annotations

from typing import Final

from ojs_engine.wire.system.extensions import Extension
from ojs_features.events.routes import PART
from ojs_features.plug import Feature

EVENTS: Final = Feature(
    name="events",
    parts=(PART,),
    extensions=(Extension("realtime", "0.1.0", "experimental"),),
    capabilities=("events",),
)
