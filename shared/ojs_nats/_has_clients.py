"""What definitions need of an app."""

from __future__ import annotations

from typing import Protocol

from ojs_nats.client import Client
from ojs_nats.sync import SyncClient


class HasClients(Protocol):
    """An object with the clients that push a definition's jobs: an `App`."""

    @property
    def client(self) -> Client:
        """The client of the running event loop."""

    @property
    def sync(self) -> SyncClient:
        """The client of code without an event loop."""
