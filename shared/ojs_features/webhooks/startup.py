"""The settings and the process of webhooks."""

from __future__ import annotations

from typing import Final

from ojs_runtime import setting_readers
from ojs_runtime.service_entry import ServiceEntry, Startup
from ojs_runtime.settings import Option

_KINDS: Final = frozenset({"gateway", "webhooks", "services", "dev", "config"})
INSECURE: Final = Option(
    "webhook_insecure",
    setting_readers.boolean,
    "",
    "deliver webhooks to http URLs, too; set it for gateways and webhooks alike",
    _KINDS,
    initial=False,
)
PRIVATE: Final = Option(
    "webhook_private",
    setting_readers.boolean,
    "",
    "deliver webhooks to loopback and private networks, too, so whoever may subscribe reaches them from here; set it for "
    "gateways and webhooks alike",
    _KINDS,
    initial=False,
)
_EXAMPLES: Final = """\
examples:
  ojs-nats webhooks --nats nats://nats.internal:4222
  OJS_NATS=nats://nats.internal:4222 OJS_HEALTH_PORT=8085 ojs-nats webhooks
"""
STARTUP: Final = Startup(
    "webhooks",
    options=(INSECURE, PRIVATE),
    processes=(
        ServiceEntry(
            "webhooks",
            "ojs_features.webhooks.service:build",
            "brings events to the URLs that have subscribed to them",
            "webhooks",
            examples=_EXAMPLES,
        ),
    ),
)
