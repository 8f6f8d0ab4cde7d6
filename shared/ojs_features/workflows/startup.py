"""The process of workflows."""

from __future__ import annotations

from typing import Final

from ojs_runtime.service_entry import ServiceEntry, Startup

STARTUP: Final = Startup(
    "workflows",
    processes=(ServiceEntry("coordinator", "ojs_features.workflows.service:build", "advances workflows"),),
)
