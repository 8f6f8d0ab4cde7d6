"""The places where the history of jobs is plugged into the server."""

from __future__ import annotations

from typing import Final

from ojs_engine.plug import Feature
from ojs_features.history.routes import PART

HISTORY: Final = Feature(name="history", parts=(PART,))
