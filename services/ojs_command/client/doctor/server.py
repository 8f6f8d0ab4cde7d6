"""What the server tells of itself: NATS behind it, room, services, their lag, versions, durability, clocks, records."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

from ojs_command.client.doctor.findings import Finding, ok, problem, warning
from ojs_command.client.output import counted, duration
from ojs_core.runtime.addresses import is_loopback
from ojs_nats import Client
from ojs_nats.answers.system import Health, StorageLevel

_SLOW_MS: Final = 100
_NEARLY_FULL: Final = 0.8
_LAG_WARNING_MS: Final = 2_000
_LAG_PROBLEM_MS: Final = 30_000
_CLOCK_S: Final = 2.0
_SHOWN: Final = 5
_WITHOUT: Final = {
    "gateway": "clients are not answered",
    "scheduler": "delayed jobs, retries and cron entries do not come due",
    "reaper": "jobs of workers that have died are not given to others, and time-outs do not end",
    "coordinator": "workflows do not go on",
    "projector": "lists, statistics and events are refused or old",
    "webhooks": "webhooks get no events",
}
"""What doesn't happen without a process of a role."""


async def check_health(client: Client) -> list[Finding]:
    """Whether NATS stores what is written, whether there is room, and whether somebody does each service's work."""
    health = await client.system.health()
    return [_backend(health), *_storage(health), *_services(health)]


def _backend(health: Health) -> Finding:
    backend = health.backend
    if backend.status == "damaged":
        return problem(
            "nats",
            f"NATS has lost data: {backend.error}",
            "jobs, tokens or timers that were stored are gone; what is left goes on",
            "look at nats-server's log and its disk; what is gone comes back from a backup alone (docs/debugging.md)",
        )
    if backend.status != "healthy":
        return problem(
            "nats",
            f"NATS does not store what is written: {backend.error or backend.status}",
            "pushes, fetches and acknowledgements are refused until it does",
            "see that nats-server runs and a majority of a cluster is up; 'ojs-nats doctor --nats URL' asks it itself",
        )
    if (backend.latency_ms or 0) > _SLOW_MS:
        return warning(
            "nats",
            f"a write takes NATS {backend.latency_ms} ms",
            "every push and acknowledgement waits for it",
            "give nats-server a faster disk, or look what else uses it",
        )
    return ok("nats", f"stores what is written, in {backend.latency_ms} ms")


def _storage(health: Health) -> Iterator[Finding]:
    storage = health.storage
    room = "make room there, raise the limit, or keep finished jobs for less time (docs/retention.md)"
    if storage.status != "healthy":
        refused = "new jobs are refused; those that are there can be finished"
        yield problem("storage", storage.error or storage.status, refused, room)
        return
    if nearly := [level for level in storage.levels if _used(level) > _NEARLY_FULL]:
        found = ", ".join(f"{level.of} is {_used(level):.0%} full" for level in nearly)
        yield warning("storage", found, "once it is full, new jobs are refused", room)
    else:
        yield ok("storage", ", ".join(f"{level.of} is {_used(level):.0%} full" for level in storage.levels) or "there is room")


def _used(level: StorageLevel) -> float:
    return level.used_bytes / max(level.limit_bytes - level.reserve_bytes, 1)


def _services(health: Health) -> Iterator[Finding]:
    services = health.services
    for role in services.missing:
        yield problem(
            "services",
            f"no {role} has been heard of lately",
            _WITHOUT.get(role, "its work waits"),
            f"start one: 'ojs-nats {role} --nats URL'; if its process is there, see its log",
        )
    if not services.missing:
        yield ok("services", ", ".join(f"{number} {role}" for role, number in services.processes.items()))


async def check_projector(client: Client) -> list[Finding]:
    """Whether lists and statistics are of now."""
    status = await client.system.status()
    behind = "lists, statistics and events are refused or old"
    if status.projector is None:
        remedy = "start one: 'ojs-nats projector --nats URL'; if its process is there, see its log, and restart it"
        return [problem("projector", status.error or "no projector answers", behind, remedy)]
    if gone := status.projector.repaired.get("record"):
        return [
            problem(
                "projector",
                f"{counted(gone, 'record')} that were stored were gone from NATS",
                "these jobs, workflows or cron entries are lost: no list shows them any more",
                "look at nats-server's log and its disk; what is gone comes back from a backup alone (docs/debugging.md). "
                "A restart of the projector ends this message",
            )
        ]
    lag = status.projector.lag_ms
    if lag < _LAG_WARNING_MS:
        return [ok("projector", f"{lag} ms behind")]
    kind = problem if lag >= _LAG_PROBLEM_MS else warning
    remedy = "wait if it was just started; else see its log, and give it a faster disk or processor"
    return [kind("projector", f"the projector is {duration(lag / 1_000)} behind", behind, remedy)]


async def check_door(client: Client) -> list[Finding]:
    """Whether the server asks for keys, where others than this machine may reach it."""
    said = (await client.system.manifest()).authentication
    if said is not None and said.required:
        return [ok("door", "it asks for keys")]
    if is_loopback(urlsplit(client.url).hostname or ""):
        return [ok("door", "it asks for no keys: everybody who reaches it may do everything")]
    return [
        warning(
            "door",
            "it asks for no keys, and isn't of this machine",
            "everybody who reaches it may do everything, unless a proxy before it asks who they are",
            "make the first key with 'ojs-nats keys create --role admin --name NAME' (docs/security.md)",
        )
    ]


async def check_versions(client: Client) -> list[Finding]:
    """Whether this command and the server fit each other."""
    manifest = await client.system.manifest()
    status = await client.system.status()
    own, there = importlib.metadata.version("ojs-nats"), manifest.implementation
    if there.name != "ojs-nats":
        return [
            warning(
                "versions",
                f"the server is {there.name} {there.version}",
                "commands beyond the Open Job Spec may not work with it",
                "use its own tools for what is refused",
            )
        ]
    if there.version != own:
        return [
            warning(
                "versions",
                f"the server is {there.version}, this command {own}",
                "the newer one may know what the other doesn't",
                "upgrade the older one",
            )
        ]
    return [ok("versions", f"ojs-nats {own} here and there, nats-server {status.nats_server_version}")]


async def check_durability(client: Client) -> list[Finding]:
    """Whether jobs outlive the loss of a disk, and whether anybody may wipe them."""
    config = await client.system.config()
    copies = config.backend.replicas
    found = []
    if copies == 1:
        found.append(
            warning(
                "durability",
                "NATS keeps one copy of each job",
                "a lost disk loses all jobs, and while that server is down nothing works",
                "for more than trying it, run three nats-servers as a cluster, and the services with --replicas 3",
            )
        )
    else:
        found.append(ok("durability", f"NATS keeps {copies} copies of each job"))
    if config.test_mode:
        found.append(
            warning(
                "test mode",
                "the gateway runs in test mode",
                "whoever reaches it can wipe everything with one request",
                "start the services without --test-mode, unless this is for tests",
            )
        )
    return found


async def check_clock(client: Client) -> list[Finding]:
    """How far this machine's clock is from the server's, which all times of jobs are by."""
    before = datetime.now(UTC)
    there = (await client.pools.scheduling_stats()).computed_at
    after = datetime.now(UTC)
    off = (there - (before + (after - before) / 2)).total_seconds()
    if abs(off) - (after - before).total_seconds() / 2 < _CLOCK_S:
        return [ok("clock", f"this machine's differs from the server's by {abs(off):.1f} s")]
    way = "behind" if off > 0 else "ahead of"
    return [
        warning(
            "clock",
            f"this machine's clock is {duration(abs(off))} {way} the server's",
            "times that are given here, such as --at, come that much early or late",
            "let both set their clocks by NTP (timedatectl set-ntp true)",
        )
    ]


async def check_limits(client: Client) -> list[Finding]:
    """Whether the server is near what it was made for."""
    limits = (await client.system.manifest()).limits
    queues = (await client.system.stats()).queues
    busy = int(limits.get("max_busy_queues", 0))
    if busy and queues > busy * _NEARLY_FULL:
        return [
            warning(
                "limits",
                f"there are {queues:,} queues, of which {busy:,} can be busy at a time, each with one priority",
                "fetches from more of them are refused while they are busy",
                "use fewer queues, or raise the limit (docs/adr/029)",
            )
        ]
    return [ok("limits", f"{counted(queues, 'queue')}" + (f" of {busy:,} that can be busy" if busy else ""))]


async def check_records(client: Client) -> list[Finding]:
    """Whether everything that is stored can be read."""
    found = [record async for record in client.system.unreadable(limit=_SHOWN + 1)]
    if not found:
        return [ok("records", "all can be read")]
    more = " and more" if len(found) > _SHOWN else ""
    named = "; ".join(f"{record.kind} {record.key}: {record.problem}" for record in found[:_SHOWN])
    return [
        problem(
            "records",
            f"records can't be read: {named}{more}",
            "they are passed over: such a job doesn't run",
            "after a rollback let the newer version read them; else look at each ('nats kv get ojs KIND.KEY'), and remove it: "
            "'curl -X DELETE $OJS/admin/unreadable/KIND/KEY' (docs/admin.md)",
        )
    ]
