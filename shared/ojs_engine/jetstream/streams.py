"""Streams at start-up: made when missing, refused in words when they can't do what the design rests on."""

from __future__ import annotations

import contextlib
import re
from typing import Any, Final, NamedTuple

import structlog
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_engine.base.problems import StartupProblem, Unreachable
from ojs_engine.jetstream.api import Denied, ask, call, put_if
from ojs_engine.jetstream.connection import CannotConnect, Connection
from ojs_engine.jetstream.subjects import ADVISED_SERVER, MIN_SERVER, StoreConfig
from ojs_link.address import masked

log = structlog.get_logger(__name__)

_STREAM_NOT_FOUND: Final = 10059
_NAME_IN_USE: Final = 10058
_NO_PEERS: Final = 10005
_NO_LEADER: Final = 503
MIN_PAYLOAD: Final = 8 * 1024 * 1024
_FREE_TO_DIFFER: Final = frozenset({"num_replicas", "max_consumers"})
"""The store goes by what a stream has."""
_FREE_WITHOUT_JOBS: Final = frozenset({"max_age", "max_msgs", "storage"})
_LIMITS: Final = ("max_age", "max_msgs", "max_bytes", "max_msg_size")
"""Any of them would make the server drop, or refuse, jobs that a client was told are stored."""
_BARRED: Final = ("sealed", "no_ack", "deny_delete", "deny_purge", "mirror", "sources", "subject_transform")
RESTORING: Final = "ojs-restore"
"""The member of a stream's metadata that says that a restore hasn't come to its end."""


def no_way_to_nats(url: str, error: CannotConnect, purpose: str = "") -> StartupProblem:
    """Why a process can't start. Its kind Unreachable is worth another try, and wrong credentials are not."""
    where = masked(url)
    if error.refused:
        return StartupProblem(
            f"NATS at {where} doesn't let this process in{purpose} ({error}); "
            "correct the credentials (--nats-creds), or the users of nats-server's configuration (ojs-nats nats-conf --users)."
        )
    return Unreachable(
        f"NATS can't be reached at {where}{purpose} ({error}); start nats-server, or give its address with --nats."
    )


def faulty_server(version: str) -> str | None:
    """Return why a nats-server of this version should be upgraded, as a sentence; None if it need not."""
    if _numbers(version) >= ADVISED_SERVER:
        return None
    advised = ".".join(map(str, ADVISED_SERVER))
    return f"nats-server {version} has faults in atomic batches and message schedules, which {advised} mends"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def check_server(nats: Connection) -> None:
    """Refuse a nats-server that is too old; warn of one with known faults, or that can't take the largest jobs."""
    if _numbers(nats.server_version) < MIN_SERVER:
        wanted = ".".join(map(str, MIN_SERVER[:2]))
        raise StartupProblem(
            f"nats-server {nats.server_version or '(unknown version)'} is too old: ojs-nats needs {wanted} or newer "
            "for message schedules and atomic batches; upgrade nats-server."
        )
    if (reason := faulty_server(nats.server_version)) is not None:
        log.warning("nats-server should be upgraded", reason=reason)
    if nats.max_payload < MIN_PAYLOAD:
        log.warning(
            "larger jobs will be refused: set max_payload to 8MB in nats-server's configuration",
            max_payload=nats.max_payload,
        )


async def provision(nats: Connection, config: StoreConfig) -> StoreConfig:
    """Make or check every stream. Any number of processes may do so at once.

    Returns the configuration with the replicas that the streams have, since reading and committing depend on them, and how
    many queues can be busy.
    """
    config = await _within_account(nats, config)
    replicas, busy = 1, config.busy_queues
    for wanted in config.streams():
        name = wanted["name"]
        try:
            info = await call(nats, f"STREAM.INFO.{name}")
            if error_code(info) == _STREAM_NOT_FOUND:
                info = await create(nats, wanted)
                if error_code(info) == _NAME_IN_USE:  # another process was faster
                    info = await call(nats, f"STREAM.INFO.{name}")
        except Denied as error:
            raise StartupProblem(
                f"the NATS user of this process may not look at stream {name}, or may not make it ({error.message}); give it "
                "the rights of its role (ojs-nats nats-conf --users), and make the streams as the operator: ojs-nats setup."
            ) from None
        except OjsError as error:
            kind = Unreachable if nats.has_jetstream else StartupProblem
            raise kind(
                f"JetStream does not answer for stream {name} ({error.message}); enable JetStream in nats-server "
                "(nats-server -js, or jetstream {} in its configuration) and check that a majority of the cluster is up."
            ) from None
        if "error" in info:
            kind = Unreachable if _is_forming(info["error"]) else StartupProblem
            raise kind(
                f"nats-server refused stream {name}: {info['error'].get('description')}; "
                f"check its JetStream limits and that it has {config.replicas} server(s) for the replicas asked for."
            )
        if is_restoring(info["config"]):
            raise Unreachable(
                f"stream {name} is being restored, or a restore of it was interrupted: wait until that is over, "
                "or run 'ojs-nats restore' again."
            )
        check_stream(wanted, info["config"], for_jobs=name not in {config.events_stream, config.audit_stream})
        if name == config.audit_stream and config.audit_days:
            await _keep_for(nats, wanted["max_age"], info["config"])
        consumers = await _limit_consumers(nats, wanted, info["config"])
        busy = consumers if name == config.ready_stream else busy
        replicas = max(replicas, int(info["config"].get("num_replicas", 1)))
    with contextlib.suppress(OjsError):  # on a full disk, say: without it a ring brings the whole record, and all goes on
        await put_if(nats, config.ring, b"ring", 0, "what timers ring with")
    return replace(config, replicas=replicas, busy_queues=busy)


async def raise_copies(nats: Connection, wanted: dict[str, Any]) -> bool:
    """Have a stream that keeps fewer copies than is wanted keep as many, in place; returns whether it kept fewer.

    NATS makes the copies after it has answered (`behind`). A stream that keeps more is left as it is. Raises StartupProblem; of
    its kind Unreachable while the stream has no leader.
    """
    name, number = wanted["name"], wanted["num_replicas"]
    found = (await _led(nats, f"STREAM.INFO.{name}", None, f"to look at stream {name}"))["config"]
    if int(found.get("num_replicas", 1)) >= number:
        return False
    await _led(nats, f"STREAM.UPDATE.{name}", found | {"num_replicas": number}, f"{number} copies of stream {name}")
    return True


async def _led(nats: Connection, subject: str, payload: dict[str, Any] | None, what: str) -> dict[str, Any]:
    """Return what NATS answers. Raises Unreachable if a leader is missing, and StartupProblem if it refuses `what`."""
    try:
        answer = await call(nats, subject, payload)
    except OjsError as error:
        raise Unreachable(f"JetStream does not answer yet: {error.message}.") from None
    if refusal := answer.get("error"):
        if refusal.get("code") == _NO_LEADER:
            raise Unreachable(f"JetStream does not answer yet: {refusal.get('description')}.")
        raise StartupProblem(
            f"NATS refused {what}: {refusal.get('description')}; start so many nats-servers as one cluster, with room for a "
            "copy on each, name them all with --nats, and run 'ojs-nats setup' again: streams that were raised stay raised."
        )
    return answer


async def behind(nats: Connection, config: StoreConfig) -> dict[str, int]:
    """How many messages the copies of streams lack, by stream: those alone that lack any or have no leader.

    A copy that hasn't begun lacks all. Raises OjsError backend_unavailable.
    """
    found: dict[str, int] = {}
    for wanted in config.streams():
        info = await ask(nats, f"STREAM.INFO.{wanted['name']}", None, "to say how far its copies are")
        cluster = info.get("cluster") or {}
        copies = cluster.get("replicas") or ()
        late = [copy for copy in copies if copy.get("offline") or not copy.get("current")]
        missing = int(info["config"].get("num_replicas", 1)) - 1 - len(copies)
        if late or missing > 0 or (cluster and not cluster.get("leader")):
            everything = int(info["state"]["messages"])
            found[wanted["name"]] = sum(int(copy.get("lag", everything)) for copy in late) + everything * max(missing, 0)
    return found


class Described(NamedTuple):
    """A stream of a system, as it is made and as JetStream describes it."""

    wanted: dict[str, Any]
    info: dict[str, Any]
    for_jobs: bool
    """Whether jobs are lost with its messages, unlike those of events and the audit."""

    @property
    def name(self) -> str:
        return str(self.wanted["name"])

    @property
    def error(self) -> str | None:
        """Return why it can't be looked at; None where it can."""
        return str(self.info["error"].get("description")) if "error" in self.info else None


async def describe(nats: Connection, config: StoreConfig) -> list[Described]:
    """Ask for all streams of a system. Raises OjsError backend_unavailable."""
    without_jobs = {config.events_stream, config.audit_stream}
    return [
        Described(wanted, await call(nats, f"STREAM.INFO.{wanted['name']}"), wanted["name"] not in without_jobs)
        for wanted in config.streams()
    ]


async def _limit_consumers(nats: Connection, wanted: dict[str, Any], found: dict[str, Any]) -> int:
    """How many consumers a stream may have. One without a limit of its own has nats-server's, which may be any, and gets it;
    one that somebody set stays.
    """
    name, number, has = wanted["name"], wanted.get("max_consumers", 0), int(found.get("max_consumers", 0))
    if not number or has > 0:
        return has
    try:
        await ask(nats, f"STREAM.UPDATE.{name}", found | {"max_consumers": number}, "to limit the consumers of a stream")
    except OjsError as error:
        raise StartupProblem(
            f"stream {name} can't be limited to {number} consumers ({error.message}); "
            f"allow it, or do it yourself with 'nats stream edit {name} --max-consumers {number}'."
        ) from None
    return int(number)


async def _keep_for(nats: Connection, max_age: int, found: dict[str, Any]) -> None:
    """Have a stream keep its messages for a time that somebody asked for (in ns). Raises StartupProblem."""
    if found.get("max_age") == max_age:
        return
    name = found["name"]
    try:
        await ask(nats, f"STREAM.UPDATE.{name}", found | {"max_age": max_age}, "to set how long a stream keeps messages")
    except OjsError as error:
        raise StartupProblem(
            f"stream {name} can't be set to another time ({error.message}); allow it, or leave audit_days out."
        ) from None


async def _within_account(nats: Connection, config: StoreConfig) -> StoreConfig:
    """What the NATS account allows: no stream of it may have more consumers than that."""
    try:
        answer = await account(nats)
    except OjsError:  # the streams are asked for next, and say what is wrong
        return config
    allowed = int(answer.get("limits", {}).get("max_consumers", -1))
    if allowed < 0 or allowed >= max(config.busy_queues, config.service_consumers):
        return config
    log.warning(
        "this NATS account allows few consumers, so fewer queues can be busy and fewer processes run at a time: raise its "
        "JetStream limit max_consumers",
        allowed=allowed,
        wanted=max(config.busy_queues, config.service_consumers),
    )
    number = max(allowed, 1)
    return replace(config, busy_queues=min(number, config.busy_queues), service_consumers=min(number, config.service_consumers))


async def account(nats: Connection) -> dict[str, Any]:
    """What JetStream says of the account: limits, and what is used of them. Raises OjsError backend_unavailable."""
    return await ask(nats, "INFO", None, "to say how much is stored")


async def create(nats: Connection, wanted: dict[str, Any]) -> dict[str, Any]:
    """Make a stream; the answer, which may be a refusal. Raises OjsError backend_unavailable."""
    return await call(nats, f"STREAM.CREATE.{wanted['name']}", wanted)


def _is_forming(error: dict[str, Any]) -> bool:
    """Whether a refusal is of a cluster that has no leader yet, or not enough servers so far."""
    return error.get("code") == _NO_LEADER or error.get("err_code") == _NO_PEERS


def error_code(answer: dict[str, Any]) -> int:
    """0 if nothing was refused."""
    return int(answer.get("error", {}).get("err_code", 0))


def is_restoring(found: dict[str, Any]) -> bool:
    """Return whether a stream of this configuration isn't whole yet, since it is being restored."""
    return RESTORING in (found.get("metadata") or {})


def check_stream(wanted: dict[str, Any], found: dict[str, Any], *, for_jobs: bool) -> None:
    """Hold a stream's configuration to the one that it is made with. Raises StartupProblem."""
    name = wanted["name"]
    free = _FREE_TO_DIFFER if for_jobs else _FREE_TO_DIFFER | _FREE_WITHOUT_JOBS
    wrong = {
        key: found.get(key) for key, value in wanted.items() if key not in free and _normal(found.get(key)) != _normal(value)
    }
    wrong |= {key: found[key] for key in _BARRED if found.get(key) and not wanted.get(key)}
    if for_jobs:
        wrong |= {key: found[key] for key in _LIMITS if found.get(key, 0) > 0}
    if found.get("persist_mode") == "async":
        wrong["persist_mode"] = "async"
    if wrong:
        listed = "; ".join(f"{key} is {value!r} and must be {wanted.get(key, 'unset')!r}" for key, value in wrong.items())
        raise StartupProblem(
            f"stream {name} is not set up as ojs-nats needs it: {listed}. Correct it with 'nats stream edit {name}', "
            "or delete the stream if it holds nothing of value, and start again."
        )


def _normal(value: Any) -> Any:
    """Server answers leave out false and zero, and sort nothing."""
    if isinstance(value, list):
        return sorted(value)
    return value or None
