"""The services of the system: the one table that the command line, `dev` and the documentation share."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final, cast

import msgspec

from ojs_core.runtime.settings import SettingKind

if TYPE_CHECKING:
    from ojs_core.runtime.service import Build  # which takes what only a server needs


class ServiceEntry(msgspec.Struct, frozen=True):
    """One service: a process of its own, any number of each, anywhere."""

    name: str
    target: str  # "package:function", imported only by the process that runs it
    help: str
    kind: SettingKind = "service"
    nice: int = 0
    """How much a process of its own steps back for others on a full machine."""

    def load(self) -> Build:
        package, function = self.target.split(":")
        return cast("Build", getattr(importlib.import_module(package), function))


SERVICES: Final = (
    ServiceEntry("gateway", "ojs_gateway:build", "the HTTP API", "gateway"),
    ServiceEntry("scheduler", "ojs_scheduler:build", "moves due delays and retries back into their queues"),
    ServiceEntry("reaper", "ojs_reaper:build", "acts on leases, timeouts and deadlines that have passed"),
    ServiceEntry("coordinator", "ojs_coordinator:build", "advances workflows"),
    # Jobs come first: on a full machine the projector falls behind and sees fewer, later revisions.
    ServiceEntry("projector", "ojs_projector:build", "publishes events, keeps lists and statistics", "projector", nice=10),
    ServiceEntry(
        "webhooks", "ojs_features.webhooks.service:build", "brings events to the URLs that have subscribed to them", "webhooks"
    ),
)
BACKGROUND: Final = tuple(entry for entry in SERVICES if entry.kind != "gateway")
"""Those that `ojs-nats services` runs, beside a gateway."""
SHARED: Final = ServiceEntry("services", "", "all services but the gateway in one process, or some of them", "services")
"""The process of `ojs-nats services`."""
SMALL: Final = tuple(entry for entry in BACKGROUND if entry.kind != "projector")
"""Those that `dev` runs in one process: they wait most of the time."""
