"""Findings about each nats-server, from its monitoring port: users, writes to the disk, room, cluster and clock."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from ojs_command.client.doctor.findings import Finding, ok, problem, warning
from ojs_core.base.wording import counted, duration
from ojs_core.domain.storage_room import RESERVE_BYTES
from ojs_core.runtime.addresses import is_loopback
from ojs_core.store.capacity.disk import of_disk

_PATIENCE_S: Final = 3.0
_MOST_BYTES: Final = 4 << 20
_CLOCK_S: Final = 2.0
_LEAST_STORE: Final = 1 << 30
_GB: Final = 1 << 30
_LONGEST_SYNC_NS: Final = 120 * 1_000_000_000

_direct: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Proxies are for other networks than that of nats-server."""


class _JetStream(Struct, frozen=True):
    max_storage: int = 0
    store_dir: str = ""
    sync_interval: int = 0
    sync_always: bool = False


class _Meta(Struct, frozen=True):
    cluster_size: int = 1


class _Config(Struct, frozen=True):
    config: _JetStream | None = None
    meta: _Meta = _Meta()


class _Cluster(Struct, frozen=True):
    name: str = ""


class Server(Struct, frozen=True):
    """A server's answer to `/varz`, as far as it is judged."""

    server_name: str
    version: str
    now: datetime
    host: str = ""
    auth_required: bool = False
    cluster: _Cluster = _Cluster()
    jetstream: _Config = _Config()


async def check_monitors(urls: str) -> list[Finding]:
    """Look at each server of a comma list. Raises ValueError for what is no address."""
    addresses = [url.strip().rstrip("/") for url in urls.split(",") if url.strip()]
    for address in addresses:
        parts = urlsplit(address)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username:
            raise ValueError("--nats-monitor: it is not an address like http://127.0.0.1:8222, or a comma list of such")
    if not addresses:
        raise ValueError("--nats-monitor: it names no address")
    found = await asyncio.gather(*(asyncio.to_thread(_one, address) for address in addresses))
    servers = [server for server, _ in found if server is not None]
    return [*(finding for _, findings in found for finding in findings), *together(servers)]


def _one(address: str) -> tuple[Server | None, list[Finding]]:
    began = datetime.now(UTC)
    try:
        with _direct.open(f"{address}/varz", timeout=_PATIENCE_S) as answer:
            server = msgspec.json.decode(answer.read(_MOST_BYTES), type=Server)
    except (OSError, ValueError) as error:  # msgspec's errors are ValueErrors
        why = error.reason if isinstance(error, urllib.error.URLError) else error
        return None, [
            warning(
                "nats-monitor",
                f"{address} does not answer as nats-server does: {why}",
                "its users, sync_interval, room and clock are not looked at",
                'set http: "127.0.0.1:8222" in its configuration, and ask from its machine; or correct --nats-monitor',
            )
        ]
    between = began + (datetime.now(UTC) - began) / 2
    here = is_loopback(urlsplit(address).hostname or "")
    return server, list(judged(server, between, (datetime.now(UTC) - began).total_seconds(), here=here))


def judged(server: Server, now: datetime, took_s: float, *, here: bool) -> Iterator[Finding]:
    """Judge one server. `now` is this machine's time halfway through the question, which took so long. `here`: its disk is
    this machine's.
    """
    name = server.server_name
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
    yield _clock(name, (server.now - now).total_seconds(), took_s)
    stores = server.jetstream.config
    if stores is None:
        yield problem("jetstream", f"{name} runs without JetStream", "it can store nothing", "'ojs-nats nats-conf' prints a "
                      "configuration with it")  # fmt: skip
        return
    yield _sync(server, stores)
    yield from _room(name, stores, here=here)


def _clock(name: str, off_s: float, took_s: float) -> Finding:
    if abs(off_s) - took_s / 2 < _CLOCK_S:
        return ok("clock", f"{name}'s differs from this machine's by {abs(off_s):.1f} s")
    way = "ahead of" if off_s > 0 else "behind"
    return warning(
        "clock",
        f"{name}'s clock is {duration(abs(off_s))} {way} this machine's",
        "what is delayed comes due by the clock of the server that leads, so that much early or late",
        "let all machines set their clocks by NTP (timedatectl set-ntp true)",
    )


def _sync(server: Server, stores: _JetStream) -> Finding:
    name = server.server_name
    if stores.sync_always:
        return ok("sync", f"{name} has each write on the disk before it acknowledges it")
    every = duration(stores.sync_interval / 1e9)
    if not server.cluster.name:
        return warning(
            "sync",
            f"{name} is alone, and forces writes to the disk every {every}",
            "a power cut loses what was acknowledged since",
            "set sync_interval: always, as 'ojs-nats nats-conf' does, or run three servers as a cluster",
        )
    if stores.sync_interval > _LONGEST_SYNC_NS:
        return warning(
            "sync",
            f"{name} forces writes to the disk every {every}",
            "a power cut of all servers loses what was acknowledged since",
            'set sync_interval: "2m", or always',
        )
    return ok("sync", f"{name} forces writes to the disk every {every}, and others have them, too")


def _room(name: str, stores: _JetStream, *, here: bool) -> Iterator[Finding]:
    if stores.max_storage < _LEAST_STORE:
        yield warning(
            "max_file_store",
            f"max_file_store of {name} is {stores.max_storage:,} bytes",
            "that is soon full, and new jobs are refused then",
            "raise it: 'ojs-nats nats-conf --jobs N' says how much so many stored jobs take",
        )
    disk = of_disk(Path(stores.store_dir), RESERVE_BYTES) if here else None
    if disk is None:
        return
    free = disk.limit - disk.used
    if free < RESERVE_BYTES:
        yield problem(
            "disk",
            f"the disk of {name} ({stores.store_dir}) has {free:,} bytes left",
            "nats-server takes no writes once it was full, until it is restarted",
            "make room there; then restart nats-server if it refuses writes (deploy/README.md)",
        )
    elif stores.max_storage > disk.limit:
        yield warning(
            "max_file_store",
            f"max_file_store of {name} ({stores.max_storage / _GB:,.0f} GB) is more than its disk has "
            f"({disk.limit / _GB:,.0f} GB)",
            "the disk is full first, and nats-server doesn't recover from that by itself",
            "set max_file_store below the size of the disk",
        )
    else:
        yield ok("disk", f"the disk of {name} has {free / _GB:,.0f} GB left")


def together(servers: Sequence[Server]) -> Iterator[Finding]:
    """Judge a cluster."""
    sizes = [server.jetstream.meta.cluster_size for server in servers if server.cluster.name]
    if sizes:
        size = max(sizes)
        if size % 2 == 0:
            yield warning(
                "cluster",
                f"the cluster has {counted(size, 'server')}, an even number",
                "it survives no more failures than with one less",
                "run three or five",
            )
        else:
            yield ok("cluster", f"{counted(size, 'server')}")
    versions = {server.version for server in servers}
    if len(versions) > 1:
        yield warning(
            "nats-server",
            f"the nats-servers have different versions: {', '.join(sorted(versions))}",
            "a feature that one lacks can't be relied on",
            "finish the upgrade: one server after the other",
        )
