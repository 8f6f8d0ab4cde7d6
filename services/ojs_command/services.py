"""The services of the system: the one table that the command line, `dev` and the documentation share."""

from __future__ import annotations

from typing import Final

from ojs_features.startup import PROCESSES
from ojs_runtime.service_entry import ServiceEntry

SERVICES: Final = (
    ServiceEntry("gateway", "ojs_gateway:build", "the HTTP API", "gateway"),
    ServiceEntry("scheduler", "ojs_scheduler:build", "moves due delays and retries back into their queues"),
    ServiceEntry("reaper", "ojs_reaper:build", "acts on leases, timeouts and deadlines that have passed"),
    # Jobs come first: on a full machine the projector falls behind and sees fewer, later revisions.
    ServiceEntry("projector", "ojs_projector:build", "publishes events, keeps lists and statistics", "projector", nice=10),
    *PROCESSES,
)
BACKGROUND: Final = tuple(entry for entry in SERVICES if entry.kind != "gateway")
"""Those that `ojs-nats services` runs, beside a gateway."""
SHARED: Final = ServiceEntry("services", "", "all services but the gateway in one process, or some of them", "services")
"""The process of `ojs-nats services`."""
SMALL: Final = tuple(entry for entry in BACKGROUND if entry.kind != "projector")
"""Those that `dev` runs in one process: they wait most of the time."""
