"""The places where maintenance is plugged into the server."""

from __future__ import annotations

from typing import Final

from ojs_engine.plug import Feature
from ojs_features.maintenance.routes import PART

MAINTENANCE: Final = Feature(name="maintenance", parts=(PART,))
