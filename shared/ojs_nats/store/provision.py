"""Streams at start-up: made when missing, refused in words when they can't do what the design rests on."""

from __future__ import annotations

import re
from typing import Any, Final

import structlog
from msgspec.structs import replace

from ojs_nats.errors import OjsError
from ojs_nats.problems import StartupProblem, Unreachable
from ojs_nats.store.api import call
from ojs_nats.store.link import Link
from ojs_nats.store.names import MIN_SERVER, StoreConfig

__all__ = ["check_server", "provision"]

log = structlog.get_logger(__name__)

_STREAM_NOT_FOUND: Final = 10059
_NAME_IN_USE: Final = 10058
MIN_PAYLOAD: Final = 8 * 1024 * 1024
_FREE_TO_DIFFER: Final = frozenset({"num_replicas"})
"""The store goes by what a stream has."""
_FREE_FOR_EVENTS: Final = frozenset({"max_age", "max_msgs", "storage"})
_LIMITS: Final = ("max_age", "max_msgs", "max_bytes", "max_msg_size")
"""Any of them would make the server drop, or refuse, jobs that a client was told are stored."""
_BARRED: Final = ("sealed", "no_ack", "deny_delete", "deny_purge", "mirror", "sources", "subject_transform")


def check_server(link: Link) -> None:
    """Refuse a nats-server that is too old; warn of one that can't take the largest jobs."""
    found = tuple(int(part) for part in re.findall(r"\d+", link.server_version)[:3])
    if found < MIN_SERVER:
        wanted = ".".join(map(str, MIN_SERVER[:2]))
        raise StartupProblem(
            f"nats-server {link.server_version or '(unknown version)'} is too old: ojs-nats needs {wanted} or newer "
            "for message schedules and atomic batches; upgrade nats-server."
        )
    if link.max_payload < MIN_PAYLOAD:
        log.warning(
            "larger jobs will be refused: set max_payload to 8MB in nats-server's configuration",
            max_payload=link.max_payload,
        )


async def provision(link: Link, config: StoreConfig) -> StoreConfig:
    """Make or check every stream. Any number of processes may do so at once.

    Returns the configuration with the replicas that the streams have, since reading and committing depend on them.
    """
    replicas = 1
    for wanted in config.streams():
        name = wanted["name"]
        try:
            info = await call(link, f"STREAM.INFO.{name}")
            if _error_code(info) == _STREAM_NOT_FOUND:
                info = await call(link, f"STREAM.CREATE.{name}", wanted)
                if _error_code(info) == _NAME_IN_USE:  # another process was faster
                    info = await call(link, f"STREAM.INFO.{name}")
        except OjsError as error:
            kind = Unreachable if link.has_jetstream else StartupProblem
            raise kind(
                f"JetStream does not answer for stream {name} ({error.message}); enable JetStream in nats-server "
                "(nats-server -js, or jetstream {} in its configuration) and check that a majority of the cluster is up."
            ) from None
        if "error" in info:
            # 503: no leader of the cluster yet, or not enough servers so far
            kind = Unreachable if info["error"].get("code") == 503 else StartupProblem
            raise kind(
                f"nats-server refused stream {name}: {info['error'].get('description')}; "
                f"check its JetStream limits and that it has {config.replicas} server(s) for the replicas asked for."
            )
        _check(name, wanted, info["config"], for_jobs=name != config.events_stream)
        replicas = max(replicas, int(info["config"].get("num_replicas", 1)))
    return replace(config, replicas=replicas)


def _error_code(answer: dict[str, Any]) -> int:
    return int(answer.get("error", {}).get("err_code", 0))


def _check(name: str, wanted: dict[str, Any], found: dict[str, Any], *, for_jobs: bool) -> None:
    free = _FREE_TO_DIFFER if for_jobs else _FREE_TO_DIFFER | _FREE_FOR_EVENTS
    wrong = {
        key: found.get(key) for key, value in wanted.items() if key not in free and _normal(found.get(key)) != _normal(value)
    }
    wrong |= {key: found[key] for key in _BARRED if found.get(key)}
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
