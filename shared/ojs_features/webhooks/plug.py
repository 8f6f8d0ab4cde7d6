"""The places where webhooks are plugged into the server."""

from __future__ import annotations

from typing import Final

from ojs_core.plug import Feature
from ojs_features.webhooks.routes import PART

WEBHOOKS: Final = Feature(name="webhooks", parts=(PART,))
