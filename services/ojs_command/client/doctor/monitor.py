"""What nats-server tells on its monitoring port alone: whether it asks who connects, and when writes reach its disk."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from ojs_command.client.doctor.findings import DoctorTimings, Finding, ok, warning
from ojs_engine.base.wording import duration
from ojs_runtime.addresses import is_loopback

_MOST_BYTES: Final = 4 << 20
_LONGEST_SYNC_NS: Final = 120 * 1_000_000_000

_direct: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Proxies are for other networks than that of nats-server."""


class _JetStream(Struct, frozen=True):
    sync_interval: int = 0
    sync_always: bool = False


class _Config(Struct, frozen=True):
    config: _JetStream | None = None


class _Cluster(Struct, frozen=True):
    name: str = ""


class Server(Struct, frozen=True):
    """A server's answer to `/varz`, as far as it is judged."""

    server_name: str
    host: str = ""
    auth_required: bool = False
    cluster: _Cluster = _Cluster()
    jetstream: _Config = _Config()


async def check_monitors(urls: str, timings: DoctorTimings = DoctorTimings()) -> list[Finding]:
    """Look at each server of a comma list. Raises ValueError for what is no address."""
    addresses = [url.strip().rstrip("/") for url in urls.split(",") if url.strip()]
    for address in addresses:
        parts = urlsplit(address)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username:
            raise ValueError("--nats-monitor: it is not an address like http://127.0.0.1:8222, or a comma list of such")
    if not addresses:
        raise ValueError("--nats-monitor: it names no address")
    found = await asyncio.gather(*(asyncio.to_thread(_one, address, timings.monitor_s) for address in addresses))
    return [finding for findings in found for finding in findings]


def _one(address: str, timeout_s: float) -> list[Finding]:
    try:
        with _direct.open(f"{address}/varz", timeout=timeout_s) as answer:
            return list(judged(msgspec.json.decode(answer.read(_MOST_BYTES), type=Server)))
    except (OSError, ValueError) as error:  # msgspec's errors are ValueErrors
        why = error.reason if isinstance(error, urllib.error.URLError) else error
        return [
            warning(
                "nats-monitor",
                f"{address} does not answer as nats-server does: {why}",
                "its users and its sync_interval are not looked at",
                'set http: "127.0.0.1:8222" in its configuration, and ask from its machine; or correct --nats-monitor',
            )
        ]


def judged(server: Server) -> Iterator[Finding]:
    """Judge one server."""
    name, stores = server.server_name, server.jetstream.config
    if server.auth_required:
        yield ok("users", f"{name} asks who connects")
    elif is_loopback(server.host):
        yield ok("users", f"{name} asks nobody who they are, and listens on this machine alone")
    else:
        yield warning(
            "users",
            f"{name} listens on {server.host} and asks nobody who they are",
            "whoever reaches it may read, change and delete everything",
            "'ojs-nats nats-conf --users' prints a user for each role (docs/nats-users.md)",
        )
    if stores is None:
        return
    every = duration(stores.sync_interval / 1e9)
    if stores.sync_always:
        yield ok("sync", f"{name} has each write on the disk before it acknowledges it")
    elif not server.cluster.name:
        yield warning(
            "sync",
            f"{name} is alone, and forces writes to the disk every {every}",
            "a power cut loses what was acknowledged since",
            "set sync_interval: always, as 'ojs-nats nats-conf' does, or run three servers as a cluster",
        )
    elif stores.sync_interval > _LONGEST_SYNC_NS:
        yield warning(
            "sync",
            f"{name} forces writes to the disk every {every}",
            "a power cut of all servers loses what was acknowledged since",
            'set sync_interval: "2m", or always',
        )
    else:
        yield ok("sync", f"{name} forces writes to the disk every {every}, and others have them, too")
