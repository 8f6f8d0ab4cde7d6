"""What NATS itself tells: its version, JetStream, the streams, their copies and consumers, room."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from ojs_command.client.doctor.findings import Finding, ok, problem, warning
from ojs_command.client.nats_address import operators_address
from ojs_core.base.errors import OjsError
from ojs_core.base.problems import StartupProblem
from ojs_core.base.wording import counted, duration
from ojs_core.domain.queues.config import MAINTENANCE
from ojs_core.domain.storage_room import RESERVE_BYTES, levels, shortage
from ojs_core.jetstream.api import ask, call
from ojs_core.jetstream.connection import CannotConnect, Connection
from ojs_core.jetstream.contents import message, subjects_of
from ojs_core.jetstream.streams import MIN_PAYLOAD, account, check_server, check_stream, faulty_server
from ojs_core.jetstream.subjects import ANY, HAD_KEYS, StoreConfig, Wildcard, config_of, is_namespace
from ojs_core.operations.findings.server import backup
from ojs_core.store.backup.last import last_backup
from ojs_core.store.queues.queues import queue_reader
from ojs_link.address import masked

T = TypeVar("T")
R = TypeVar("R")

_BUCKET: Final = StoreConfig(namespace="x").records_stream.removesuffix("x")
_BEHIND: Final = 1_000
"""Messages that a service hasn't taken yet."""
_NEARLY_ALL: Final = 0.8
_NO_KEYS: Final = problem(
    "keys",
    "this system has had keys, and NATS has none of them any more",
    "gateways that start now refuse every request, but for those with a key of their own",
    "let running gateways go on, and make a key: 'ojs-nats keys create --role admin --name NAME --nats URL'. "
    "nats-server's files may be damaged (docs/security.md#lost-keys)",
)


async def check_nats(urls: str, namespace: str | None = None) -> list[Finding]:
    """All of it, of the system in this namespace. Raises ValueError for what isn't an address of NATS, or a namespace."""
    servers = _read("--nats", operators_address, urls)
    config = _read("--namespace", config_of, namespace)
    nats = Connection("doctor")
    try:
        await nats.connect(servers)
    except CannotConnect as error:
        await nats.close()
        return [
            problem(
                "nats-server",
                f"no nats-server answers at {masked(servers)}: {error}",
                "nothing works without it",
                "start it, or correct --nats; it may want credentials: OJS_NATS_CREDS names a file with them",
            )
        ]
    try:
        return [finding async for finding in _asked(nats, config)]
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
    info = await account(nats)
    copies = 1
    infos = [(wanted, await call(nats, f"STREAM.INFO.{wanted['name']}")) for wanted in config.streams()]
    if all("error" in found for _, found in infos) and (others := await _namespaces(nats)):
        yield problem(
            "namespace",
            f"there is nothing in the namespace {config.namespace}, but there is in: {', '.join(others)}",
            "services and clients of one namespace see nothing of another",
            "name the right one with --namespace or OJS_NAMESPACE; if the system is new, start a service, which makes streams",
        )
        return
    for wanted, found in infos:
        name = wanted["name"]
        if "error" in found:
            yield problem(
                "streams",
                f"stream {name} can't be looked at: {found['error'].get('description')}",
                "the services can't work",
                "start a service, which makes the streams; if it was deleted, restore it from a backup",
            )
            continue
        copies = int(found["config"].get("num_replicas", 1))
        if copies == 1 and (found.get("cluster") or {}).get("name"):
            yield warning(
                "copies",
                f"stream {name} has one copy, on a cluster",
                "the loss of that one server loses all jobs, though others are there",
                "'ojs-nats setup --replicas 3' raises it; then start the services with --replicas 3",
            )
        for finding in (_config(wanted, found, config), *_copies(name, found), *_consumers_room(name, found)):
            yield finding
    if all("error" not in found for _, found in infos):
        consumers = await _all_consumers(nats, config)
        yield _consumers(consumers)
        had_keys = any(one["name"] == HAD_KEYS for one in consumers)
        if had_keys and not await subjects_of(nats, config.records_stream, config.key(ANY)):
            yield _NO_KEYS
        async for finding in _waits(nats, config):
            yield finding
        yield await _backup(nats, config)
    yield _room(info, copies)


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


def _config(wanted: dict[str, Any], found: dict[str, Any], config: StoreConfig) -> Finding:
    try:
        check_stream(wanted, found["config"], for_jobs=wanted["name"] not in {config.events_stream, config.audit_stream})
    except StartupProblem as error:
        return problem(
            "streams",
            str(error),
            "services that start refuse it; what runs may lose or refuse jobs",
            "correct the named settings; the services go on with them at once",
        )
    state = found["state"]
    if (lost := int(state.get("num_subjects", 0)) - int(state["messages"])) > 0:
        return problem(
            "streams",
            f"stream {wanted['name']} has lost {counted(lost, 'message')}: its file is damaged",
            "jobs, tokens or timers that were stored are gone; what is left goes on",
            "look at nats-server's log and its disk; what is gone comes back from a backup alone (docs/debugging.md)",
        )
    return ok("streams", f"{wanted['name']} is set up as it must be: {state['messages']:,} messages, {state['bytes']:,} bytes")


def _copies(name: str, found: dict[str, Any]) -> Iterator[Finding]:
    """Whether each copy of a cluster's stream is there and has everything."""
    cluster = found.get("cluster") or {}
    if cluster.get("name") and not cluster.get("leader"):
        yield problem(
            "copies", f"stream {name} has no leader", "nothing can be written", "see that a majority of the nats-servers is up"
        )
    lost = [peer for peer in cluster.get("replicas") or () if peer.get("offline") or not peer.get("current")]
    if lost:
        named = ", ".join(f"{peer['name']} ({'offline' if peer.get('offline') else 'behind'})" for peer in lost)
        yield problem(
            "copies",
            f"copies of stream {name} are not up to date: {named}",
            "if another server is lost now, jobs wait or are lost",
            "start the servers that are offline, and wait for the others to catch up",
        )
    elif copies := len(cluster.get("replicas") or ()):
        yield ok("copies", f"{name}: {copies + 1} copies, all up to date")


def _consumers_room(name: str, found: dict[str, Any]) -> Iterator[Finding]:
    allowed, there = int(found["config"].get("max_consumers", -1)), int(found["state"].get("consumer_count", 0))
    if allowed > 0 and there > allowed * _NEARLY_ALL:
        yield warning(
            "consumers",
            f"stream {name} has {there:,} of {allowed:,} consumers",
            "more queues can't be busy, or more processes can't run",
            f"use fewer queues, or raise it: 'nats stream edit {name} --max-consumers N'",
        )


async def _all_consumers(nats: Connection, config: StoreConfig) -> list[dict[str, Any]]:
    """Return those of the records that stay, as JetStream describes them."""
    stream = config.records_stream
    listed = (await ask(nats, f"CONSUMER.LIST.{stream}", None, "to list the consumers")).get("consumers") or []
    return [one for one in listed if one["config"].get("durable_name")]


def _consumers(durable: Sequence[dict[str, Any]]) -> Finding:
    """Whether a service leaves what it is told lying."""
    if behind := [one for one in durable if int(one.get("num_pending", 0)) > _BEHIND]:
        named = ", ".join(f"{one['name']} ({one['num_pending']:,})" for one in behind)
        return warning(
            "consumers",
            f"messages wait to be taken: {named}",
            "what is due comes late",
            "see that the services run; start more of those that are named",
        )
    return ok("consumers", f"{counted(len(durable), 'consumer')} of services, none is behind")


async def _waits(nats: Connection, config: StoreConfig) -> AsyncIterator[Finding]:
    """Whether the system was restored and waits for its release."""
    which = {"last_by_subj": config.queue(MAINTENANCE)}
    found = await message(nats, config.records_stream, which, "whether the system waits for its release")
    record = None if found is None or not found.data else queue_reader.read(MAINTENANCE, found.seq, found.data)
    if record is not None and record.restored is not None:
        yield warning(
            "release",
            record.restored.said,
            "no job is handed out, comes due or expires, no cron entry fires, no webhook is called until its release",
            f"once it may act: 'ojs-nats release --nats URL --namespace {config.namespace}' (docs/backup.md)",
        )


async def _backup(nats: Connection, config: StoreConfig) -> Finding:
    """Say how old the last backup is."""
    at = await last_backup(nats, config)
    if at is None:
        return ok("backup", "no backup has been made")
    age_ms = max(0, int(time.time() * 1_000) - at)
    if (old := next(backup(age_ms), None)) is not None:
        return warning(old.check, old.message, old.meaning, old.remedy)
    return ok("backup", f"the last backup is {duration(age_ms / 1_000)} old")


def _room(info: dict[str, Any], copies: int) -> Finding:
    full = shortage(levels(info, copies, None, RESERVE_BYTES))
    if full is not None:
        return problem("room", full, "new jobs are refused", "raise the account's max_file, or make room")
    return ok("room", f"{int(info.get('storage', 0)):,} bytes are stored")
