"""The places where the history of jobs is plugged into the server."""

from __future__ import annotations

from typing import Final

from ojs_features.history.routes import PART
from ojs_features.plug import Feature

HISTORY: Final = Feature(name="history", parts=(PART,))
