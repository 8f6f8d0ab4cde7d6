"""`ojs-nats doctor`."""

from __future__ import annotations

import argparse
import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from ojs_command.client.doctor import server
from ojs_command.client.doctor.findings import DoctorTimings, Finding, problem, report, warning
from ojs_command.client.doctor.monitor import check_monitors
from ojs_command.client.doctor.tls import check_tls
from ojs_command.client.parser import CommandParser
from ojs_command.client.problems import CommandFailed, UsageProblem
from ojs_command.client.running import distrusted
from ojs_command.client.session import Session
from ojs_engine.jetstream.subjects import DEFAULT_NAMESPACE, encode_token
from ojs_nats import Client
from ojs_nats.errors import RefusedError, UnavailableError
from ojs_runtime.settings import NAMESPACE_ENV

_CHECKS: Final[dict[str, Callable[[Client], Awaitable[list[Finding]]]]] = {
    "server": server.check_server,
    "door": server.check_door,
    "versions": server.check_versions,
    "clock": server.check_clock,
}
_EXAMPLES: Final = """\
  ojs-nats doctor
  ojs-nats doctor --context prod --json | jq '.findings[] | select(.status != "ok")'
  ojs-nats doctor --nats nats://127.0.0.1:4222                   looks at NATS itself, too
  ojs-nats doctor --nats nats://127.0.0.1:4222 --namespace shop   at the streams of that system
  ojs-nats doctor --nats-monitor http://127.0.0.1:8222            at what nats-server says of itself

Exits with 1 if there is a problem; warnings are to be known.
"""


def define(parser: CommandParser) -> None:
    parser.add_argument("--nats", metavar="URL", help="NATS server, or a comma list: look at it, too")
    parser.add_argument(
        "--namespace",
        metavar="NAME",
        help=f"which system there, as its services are started with [{NAMESPACE_ENV}; default ojs]",
    )
    parser.add_argument(
        "--nats-monitor",
        metavar="URL,…",
        help="monitoring ports of the nats-servers, like http://127.0.0.1:8222: look at users and sync_interval",
    )
    parser.does(_doctor, examples=_EXAMPLES)
    parser.set_defaults(finds_out=True)


async def _doctor(session: Session, given: argparse.Namespace) -> None:
    if given.namespace and not given.nats:
        raise UsageProblem("--namespace says where to look in NATS: name that by --nats, too.")
    namespace = given.namespace or os.environ.get(NAMESPACE_ENV) or DEFAULT_NAMESPACE
    system = f"namespace {namespace} in NATS"
    async with Client(
        session.target.url, retry_for=DoctorTimings().retry_s, headers=session.target.headers, tls=session.target.tls
    ) as client:
        if given.nats and (other := await _other(client, session, given, namespace)) is not None:
            findings, unreachable = [other], None
        else:
            findings, unreachable = await _server(client, session)
            if unreachable is None:
                findings += await check_tls(session.target, datetime.now(UTC))
    found = _of(session.target.shown, findings)
    if given.nats:
        found += _of(system, await _nats(given.nats, namespace))
    if given.nats_monitor:
        with _readable():
            found += _of("nats-server's monitoring", await check_monitors(given.nats_monitor))
    well = report(session.out, session.target.shown, found)
    if unreachable is not None:
        raise unreachable
    if not well:
        raise CommandFailed


def _of(asked: str, findings: Iterable[Finding]) -> list[Finding]:
    """Note what the findings are of."""
    return [replace(finding, of=asked) for finding in findings]


async def _other(client: Client, session: Session, given: argparse.Namespace, namespace: str) -> Finding | None:
    """Return what to say if the server isn't a gateway of the system in NATS, whose health it can't know."""
    shown = session.target.shown
    try:
        its_own = (await client.system.config()).backend.namespace
        gateways = {encode_token(one.instance) for one in await client.system.services() if one.role == "gateway"}
    except UnavailableError as error:
        return _not_asked(namespace, f"none answers at {shown}: {error}") if given.namespace else None
    except (RefusedError, msgspec.MsgspecError) as error:
        return _not_asked(namespace, f"{shown} doesn't say which system it is of: {error}")
    if its_own != namespace:
        return _not_asked(namespace, f"{shown} is of namespace {its_own}")
    there = await _gateways(given.nats, namespace)
    if there is not None and not gateways & there:
        return _not_asked(namespace, f"{shown} is of another NATS")
    return None


def _not_asked(namespace: str, why: str) -> Finding:
    return warning(
        "server",
        f"no gateway of namespace {namespace} was asked: {why}",
        "its services, projector, queues, workers and webhooks aren't checked",
        "name a gateway of this system by --server, once one runs",
    )


async def _server(client: Client, session: Session) -> tuple[list[Finding], UnavailableError | None]:
    """All checks of the API; whoever isn't there is asked once."""
    try:
        await client.system.health()
    except RefusedError:
        pass  # each check says what it was refused
    except UnavailableError as error:
        return [_nobody(session, error)], error
    return [finding for found in await asyncio.gather(*(_one(client, name) for name in _CHECKS)) for finding in found], None


def _nobody(session: Session, error: UnavailableError) -> Finding:
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
    except (RefusedError, UnavailableError, msgspec.MsgspecError) as error:
        return [
            warning(name, f"could not be checked: {error}", "it may be well or not", "mend the other problems, and ask again")
        ]


async def _nats(urls: str, namespace: str) -> list[Finding]:
    with _readable():
        from ojs_command.client.doctor.streams import check_nats  # noqa: PLC0415  # takes what speaks NATS

        return await check_nats(urls, namespace)


async def _gateways(urls: str, namespace: str) -> frozenset[str] | None:
    with _readable():
        from ojs_command.client.doctor.streams import gateways_of  # noqa: PLC0415  # as above

        return await gateways_of(urls, namespace)


@contextmanager
def _readable() -> Iterator[None]:
    """Raise UsageProblem for what is no address or namespace."""
    try:
        yield
    except ValueError as error:
        raise UsageProblem(f"{error}.") from None
