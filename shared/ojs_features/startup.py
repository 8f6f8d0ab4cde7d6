"""The settings and processes of all features, for command lines: this imports nothing that only a server needs."""

from __future__ import annotations

from typing import Final

from ojs_features.events.startup import STARTUP as EVENTS
from ojs_features.webhooks.startup import STARTUP as WEBHOOKS
from ojs_features.workflows.startup import STARTUP as WORKFLOWS
from ojs_runtime.service_entry import Startup

STARTUPS: Final[tuple[Startup, ...]] = (EVENTS, WORKFLOWS, WEBHOOKS)
OPTIONS: Final = tuple(option for startup in STARTUPS for option in startup.options)
PROCESSES: Final = tuple(entry for startup in STARTUPS for entry in startup.processes)
