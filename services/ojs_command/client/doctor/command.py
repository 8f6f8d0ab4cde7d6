"""`ojs-nats doctor`."""

from __future__ import annotations

import argparse
import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

import msgspec

from ojs_command.client.doctor import server
from ojs_command.client.doctor.findings import Finding, problem, report, warning
from ojs_command.client.doctor.tls import check_tls
from ojs_command.client.parser import CommandParser
from ojs_command.client.problems import CommandFailed, UsageProblem
from ojs_command.client.running import distrusted
from ojs_command.client.session import Session
from ojs_core.runtime.settings import NAMESPACE_ENV
from ojs_nats import Client, Refused, Unavailable

_CHECKS: Final[dict[str, Callable[[Client], Awaitable[list[Finding]]]]] = {
    "server": server.check_server,
    "door": server.check_door,
    "versions": server.check_versions,
    "clock": server.check_clock,
}
_PATIENCE: Final = "3s"
"""A doctor doesn't wait for what doesn't come."""
_EXAMPLES: Final = """\
  ojs-nats doctor
  ojs-nats doctor --context prod --json | jq '.findings[] | select(.status != "ok")'
  ojs-nats doctor --nats nats://127.0.0.1:4222                   looks at NATS itself, too
  ojs-nats doctor --nats nats://127.0.0.1:4222 --namespace shop   at the streams of that system
  ojs-nats doctor --nats-monitor http://127.0.0.1:8222            at what nats-server says of itself

Exits with 1 if there is a problem; warnings are to be known.
"""


def define(parser: CommandParser) -> None:
    parser.add_argument("--nats", metavar="URL", help="NATS server, or a comma list: look at it, too (needs ojs-nats[server])")
    parser.add_argument(
        "--namespace",
        metavar="NAME",
        help=f"which system there, as its services are started with [{NAMESPACE_ENV}; default ojs]",
    )
    parser.add_argument(
        "--nats-monitor",
        metavar="URL,…",
        help="monitoring ports of the nats-servers, like http://127.0.0.1:8222: look at users, sync_interval, room, clocks",
    )
    parser.does(_doctor, examples=_EXAMPLES)
    parser.set_defaults(finds_out=True)


async def _doctor(session: Session, given: argparse.Namespace) -> None:
    async with Client(session.target.url, patience=_PATIENCE, headers=session.target.headers, tls=session.target.tls) as client:
        findings, unreachable = await _server(client, session)
    if unreachable is None:
        findings += await check_tls(session.target, datetime.now(UTC))
    if given.nats:
        findings += await _nats(given.nats, given.namespace or os.environ.get(NAMESPACE_ENV))
    elif given.namespace:
        raise UsageProblem("--namespace says where to look in NATS: name that by --nats, too.")
    if given.nats_monitor:
        findings += await _monitors(given.nats_monitor)
    well = report(session.out, session.target.shown, findings)
    if unreachable is not None:
        raise unreachable
    if not well:
        raise CommandFailed


async def _server(client: Client, session: Session) -> tuple[list[Finding], Unavailable | None]:
    """All checks of the API; whoever isn't there is asked once."""
    try:
        await client.system.health()
    except Refused:
        pass  # each check says what it was refused
    except Unavailable as error:
        return [_nobody(session, error)], error
    return [finding for found in await asyncio.gather(*(_one(client, name) for name in _CHECKS)) for finding in found], None


def _nobody(session: Session, error: Unavailable) -> Finding:
    if isinstance(error.__cause__, ssl.CertificateError):
        return problem(
            "server",
            distrusted(error.__cause__, session.target),
            "nobody who doesn't trust it pushes or fetches there",
            "name its CA; if it has expired, put a new certificate in its place: the server reads it again",
        )
    return problem(
        "server",
        f"no OJS server answers at {session.target.shown}: {error}",
        "nothing can be pushed or fetched there",
        "start one with 'ojs-nats dev', or correct the address (--server, OJS_URL, 'ojs-nats context show')",
    )


async def _one(client: Client, name: str) -> list[Finding]:
    try:
        return await _CHECKS[name](client)
    except (Refused, Unavailable, msgspec.MsgspecError) as error:
        return [
            warning(name, f"could not be checked: {error}", "it may be well or not", "mend the other problems, and ask again")
        ]


async def _monitors(urls: str) -> list[Finding]:
    from ojs_command.client.doctor.monitor import check_monitors  # noqa: PLC0415  # of the disk, as a server does

    try:
        return await check_monitors(urls)
    except ValueError as error:
        raise UsageProblem(f"{error}.") from None


async def _nats(urls: str, namespace: str | None) -> list[Finding]:
    try:
        from ojs_command.client.doctor.streams import check_nats  # noqa: PLC0415  # needs the server's packages
    except ModuleNotFoundError as error:
        missing = f"--nats needs the server's packages ({error.name} is missing): pip install 'ojs-nats[server]'."
        raise UsageProblem(missing) from None
    try:
        return await check_nats(urls, namespace)
    except ValueError as error:
        raise UsageProblem(f"{error}.") from None
