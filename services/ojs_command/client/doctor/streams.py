"""What NATS itself tells, while no gateway can be asked, too: its version, JetStream, the streams, and lost keys."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final, TypeVar

from ojs_command.client.doctor.findings import Finding, ok, problem, told, warning
from ojs_command.client.nats_address import operators_address
from ojs_engine.base.errors import OjsError
from ojs_engine.base.problems import StartupProblem
from ojs_engine.base.wording import counted
from ojs_engine.jetstream.api import ask
from ojs_engine.jetstream.connection import CannotConnect, Connection
from ojs_engine.jetstream.contents import subjects_of
from ojs_engine.jetstream.streams import MIN_PAYLOAD, check_server, describe, faulty_server
from ojs_engine.jetstream.subjects import ANY, HAD_KEYS, StoreConfig, Wildcard, config_of, is_namespace
from ojs_link.address import masked
from ojs_runtime.stream_check import streams

T = TypeVar("T")
R = TypeVar("R")

_BUCKET: Final = StoreConfig(namespace="x").records_stream.removesuffix("x")
_NO_KEYS: Final = problem(
    "keys",
    "this system has had keys, and NATS has none of them any more",
    "gateways that start now refuse every request, but for those with a key of their own",
    "let running gateways go on, and make a key: 'ojs-nats keys create --role admin --name NAME --nats URL'. "
    "nats-server's files may be damaged (docs/security.md#lost-keys)",
)


async def check_nats(urls: str, namespace: str | None = None) -> list[Finding]:
    """All of it, of the system in this namespace.

    Raises ValueError for what isn't an address of NATS, or a namespace.
    """
    servers = _read("--nats", operators_address, urls)
    config = _read("--namespace", config_of, namespace)
    nats = Connection("doctor")
    try:
        await nats.connect(servers)
        return [finding async for finding in _asked(nats, config)]
    except CannotConnect as error:
        return [
            problem(
                "nats-server",
                f"no nats-server answers at {masked(servers)}: {error}",
                "nothing works without it",
                "start it, or correct --nats; it may want credentials: OJS_NATS_CREDS names a file with them",
            )
        ]
    except OjsError as error:
        return [
            problem(
                "jetstream",
                f"JetStream does not answer: {error.message}",
                "nothing can be stored",
                "enable it (nats-server -js), and see that a majority of the cluster is up",
            )
        ]
    finally:
        await nats.close()


async def gateways_of(urls: str, namespace: str | None) -> frozenset[str] | None:
    """Return the encoded instances of the gateways of a system; None where NATS doesn't say. Raises as `check_nats`."""
    servers = _read("--nats", operators_address, urls)
    config = _read("--namespace", config_of, namespace)
    nats = Connection("doctor")
    try:
        await nats.connect(servers)
        beats = await subjects_of(nats, config.records_stream, config.record("service", Wildcard("gateway.*")))
    except (CannotConnect, OjsError):
        return None
    finally:
        await nats.close()
    return frozenset(subject.rpartition(".")[2] for subject in beats)


def _read(flag: str, reader: Callable[[T], R], value: T) -> R:
    try:
        return reader(value)
    except ValueError as error:
        raise ValueError(f"{flag}: {error}") from None


async def _asked(nats: Connection, config: StoreConfig) -> AsyncIterator[Finding]:
    yield _server(nats)
    described = await describe(nats, config)
    missing = [one for one in described if one.error is not None]
    if len(missing) == len(described) and (others := await _namespaces(nats)):
        yield problem(
            "namespace",
            f"there is nothing in the namespace {config.namespace}, but there is in: {', '.join(others)}",
            "services and clients of one namespace see nothing of another",
            "name the right one with --namespace or OJS_NAMESPACE; if the system is new, start a service, which makes streams",
        )
        return
    wrong = [told(one) for one in streams(described)]
    for finding in wrong or [ok("streams", f"{counted(len(described), 'stream')} as they must be")]:
        yield finding
    if not missing and await _lost_keys(nats, config):
        yield _NO_KEYS


async def _lost_keys(nats: Connection, config: StoreConfig) -> bool:
    """Return whether there were keys and there are none: a gateway that starts then lets nobody ask for its findings."""
    stream = config.records_stream
    consumers = (await ask(nats, f"CONSUMER.NAMES.{stream}", None, "to list the consumers")).get("consumers") or ()
    return HAD_KEYS in consumers and not await subjects_of(nats, stream, config.key(ANY))


async def _namespaces(nats: Connection) -> list[str]:
    """Return those whose streams are there, as far as this user may know."""
    try:
        answer = await ask(nats, "STREAM.NAMES", None, "to list the streams")
    except OjsError:
        return []
    streams = frozenset(answer.get("streams") or ())
    names = (name.removeprefix(_BUCKET) for name in sorted(streams) if name.startswith(_BUCKET))
    return [name for name in names if is_namespace(name) and _stream_names(name) <= streams]


def _stream_names(namespace: str) -> set[str]:
    return {str(stream["name"]) for stream in StoreConfig(namespace=namespace).streams()}


def _server(nats: Connection) -> Finding:
    try:
        check_server(nats)
    except StartupProblem as error:
        return problem("nats-server", str(error), "the services don't start with it", "upgrade nats-server")
    if (reason := faulty_server(nats.server_version)) is not None:
        return warning("nats-server", reason, "jobs may be refused, or fire late", "upgrade nats-server")
    if nats.max_payload < MIN_PAYLOAD:
        return warning(
            "nats-server",
            f"it takes messages of {nats.max_payload:,} bytes at most",
            "larger jobs are refused",
            "set max_payload to 8MB in its configuration",
        )
    return ok("nats-server", f"version {nats.server_version}")
