"""The check of the streams in NATS: whether they are there, set up as they must be, and have all of their copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ojs_engine.base.problems import StartupProblem
from ojs_engine.jetstream.streams import Described, check_stream
from ojs_engine.operations.finding import Finding, problem

_SYSTEM: Final = "/system"


def streams(described: Sequence[Described]) -> Iterator[Finding]:
    """Judge what JetStream says of each stream of a system."""
    for one in described:
        if one.error is not None:
            yield problem(
                "streams",
                f"stream {one.name} can't be looked at: {one.error}",
                "the services can't work",
                "start a service, which makes the streams; if it was deleted, restore it from a backup",
                _SYSTEM,
            )
            continue
        try:
            check_stream(one.wanted, one.info["config"], for_jobs=one.for_jobs)
        except StartupProblem as error:
            yield problem(
                "streams",
                str(error),
                "services that start refuse it; what runs may lose or refuse jobs",
                "correct the named settings; the services go on with them at once",
                _SYSTEM,
            )
        yield from _copies(one.name, one.info.get("cluster") or {})


def _copies(name: str, cluster: dict[str, object]) -> Iterator[Finding]:
    """Judge whether each copy of a cluster's stream is there and has everything."""
    if cluster.get("name") and not cluster.get("leader"):
        yield problem(
            "copies",
            f"stream {name} has no leader",
            "nothing can be written",
            "see that a majority of the nats-servers is up",
            _SYSTEM,
        )
    replicas = cluster.get("replicas")
    lost = [
        f"{peer['name']} ({'offline' if peer.get('offline') else 'behind'})"
        for peer in (replicas if isinstance(replicas, list) else ())
        if peer.get("offline") or not peer.get("current")
    ]
    if lost:
        yield problem(
            "copies",
            f"copies of stream {name} are not up to date: {', '.join(lost)}",
            "if another server is lost now, jobs wait or are lost",
            "start the servers that are offline, and wait for the others to catch up",
            _SYSTEM,
        )
