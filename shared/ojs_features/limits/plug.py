"""The places where limits are plugged into the server."""

from __future__ import annotations

from typing import Final

from ojs_core.plug import Feature
from ojs_features.limits.jobs import EXTRAS

LIMITS: Final = Feature(name="limits", jobs=(EXTRAS,))
