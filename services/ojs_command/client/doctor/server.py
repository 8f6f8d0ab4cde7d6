"""What the server found, and what only a client can know of it: its door, versions, clocks."""

from __future__ import annotations

import importlib.metadata
from datetime import UTC, datetime
from urllib.parse import urlsplit

from ojs_command.client.doctor.findings import DoctorTimings, Finding, ok, warning
from ojs_engine.base.wording import duration
from ojs_nats import Client
from ojs_runtime.addresses import is_loopback


async def check_server(client: Client) -> list[Finding]:
    """What the server has found itself, and what it has found well."""
    answer = await client.system.findings()
    wrong = {one.check for one in answer.findings}
    found = [
        Finding(one.check, "problem" if one.severity == "problem" else "warning", one.message, one.meaning, one.remedy)
        for one in answer.findings
    ]
    return found + [ok(check, "the server found nothing wrong") for check in answer.checks if check not in wrong]


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
    own, there = importlib.metadata.version("ojs-nats-server"), manifest.implementation
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


async def check_clock(client: Client, timings: DoctorTimings = DoctorTimings()) -> list[Finding]:
    """How far this machine's clock is from the server's, which all times of jobs are by."""
    before = datetime.now(UTC)
    there = (await client.queues.stats("default")).computed_at
    after = datetime.now(UTC)
    off = (there - (before + (after - before) / 2)).total_seconds()
    if abs(off) - (after - before).total_seconds() / 2 < timings.clock_s:
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
