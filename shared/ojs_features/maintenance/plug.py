"""The places where maintenance is plugged into the server."""

from __future__ import annotations

from typing import Final

from ojs_features.maintenance.routes import PART
from ojs_features.plug import Feature

MAINTENANCE: Final = Feature(name="maintenance", parts=(PART,))
