"""Streams at start-up: made when missing, refused in words when they can't do what the design rests on."""

from __future__ import annotations

import re
from typing import Any, Final

from ojs_nats.errors import OjsError
from ojs_nats.problems import StartupProblem
from ojs_nats.store.api import call
from ojs_nats.store.link import Link
from ojs_nats.store.names import MIN_SERVER, StoreConfig

__all__ = ["check_server", "provision"]

_STREAM_NOT_FOUND: Final = 10059
_NAME_IN_USE: Final = 10058
MIN_PAYLOAD: Final = 8 * 1024 * 1024
_FREE_TO_DIFFER: Final = frozenset({"max_age", "max_msgs", "num_replicas", "storage"})
"""Settings an operator may tune on a stream without breaking a rule of the design, as far as `_stricter` allows."""


def check_server(link: Link) -> None:
    """Refuse a nats-server that is too old."""
    found = tuple(int(part) for part in re.findall(r"\d+", link.server_version)[:3])
    if found < MIN_SERVER:
        wanted = ".".join(map(str, MIN_SERVER[:2]))
        raise StartupProblem(
            f"nats-server {link.server_version or '(unknown version)'} is too old: ojs-nats needs {wanted} or newer "
            "for message schedules and atomic batches; upgrade nats-server."
        )


async def provision(link: Link, config: StoreConfig) -> None:
    """Make or check every stream. Any number of processes may do so at once."""
    for wanted in config.streams():
        name = wanted["name"]
        try:
            info = await call(link, f"STREAM.INFO.{name}")
            if _error_code(info) == _STREAM_NOT_FOUND:
                info = await call(link, f"STREAM.CREATE.{name}", wanted)
                if _error_code(info) == _NAME_IN_USE:  # another process was faster
                    info = await call(link, f"STREAM.INFO.{name}")
        except OjsError as error:
            raise StartupProblem(
                f"JetStream does not answer for stream {name} ({error.message}); enable JetStream in nats-server "
                "(nats-server -js, or jetstream {} in its configuration) and check that a majority of the cluster is up."
            ) from None
        if "error" in info:
            raise StartupProblem(
                f"nats-server refused stream {name}: {info['error'].get('description')}; "
                f"check its JetStream limits and that it has {config.replicas} server(s) for the replicas asked for."
            )
        _check(name, wanted, info["config"])


def _error_code(answer: dict[str, Any]) -> int:
    return int(answer.get("error", {}).get("err_code", 0))


def _check(name: str, wanted: dict[str, Any], found: dict[str, Any]) -> None:
    wrong = {
        key: found.get(key)
        for key, value in wanted.items()
        if key not in _FREE_TO_DIFFER and _normal(found.get(key)) != _normal(value)
    }
    if found.get("persist_mode") == "async":
        wrong["persist_mode"] = "async"
    if found.get("max_age") and not wanted["max_age"]:
        wrong["max_age"] = found["max_age"]
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
