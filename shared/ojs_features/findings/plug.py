"""The places where findings are plugged into the server."""

from __future__ import annotations

from typing import Final

from ojs_features.findings.routes import PART
from ojs_features.plug import Feature

FINDINGS: Final = Feature(name="findings", parts=(PART,))
