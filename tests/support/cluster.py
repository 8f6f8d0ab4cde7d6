"""Three nats-servers on loopback that form one JetStream cluster."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any, Final, Self

from ojs_engine.base.errors import OjsError
from ojs_engine.jetstream.api import call
from ojs_engine.store.store import Store
from support.nats import NatsServer
from support.network import Network
from support.processes import free_port
from support.waiting import eventually, until

_NOWHERE: Final = "127.0.0.1:1"
"""An address where nothing listens."""


async def step_down(store: Store, stream: str) -> None:
    """Have a stream's leader hand over; one that is just being chosen is asked again."""

    async def asked() -> bool:
        try:
            answer = await call(store.nats, f"STREAM.LEADER.STEPDOWN.{stream}")
        except OjsError:
            return False
        return bool(answer.get("success"))

    await eventually(asked)


class NatsCluster:
    """The nodes are named n1, n2 and n3; each keeps its ports and files over kills. As a context manager it starts and stops.

    Everything here blocks; a test whose event loop must go on meanwhile calls it through `asyncio.to_thread`.
    With a network, the nodes reach each other by its links alone.
    `jetstream` is added to the configuration of their storage.
    """

    def __init__(self, folder: Path, network: Network | None = None, *, jetstream: str = "") -> None:
        ports = {f"n{number}": free_port() for number in (1, 2, 3)}
        pairs = permutations(ports, 2)
        self.links = {(one, other): network.link(ports[other]) for one, other in pairs} if network else {}
        """By who connects, and to whom."""
        self.nodes = []
        for name, port in ports.items():
            others = [other for other in ports if other != name]
            routes = [self.links[name, other].port if network else ports[other] for other in others]
            self.nodes.append(_node(folder / name, port, routes, jetstream))

    @property
    def url(self) -> str:
        """The addresses of all nodes, separated by commas."""
        return ",".join(node.url for node in self.nodes)

    def node(self, name: str) -> NatsServer:
        return self.nodes[int(name.removeprefix("n")) - 1]

    def start(self) -> Self:
        """Start all nodes; returns once they have a leader."""
        for node in self.nodes:
            node.start()
        self.until_led()
        return self

    def until_led(self) -> None:
        """Wait until every node follows, or is, the leader of a complete cluster."""

        def led() -> bool:
            groups = [monitored(node, "jsz").get("meta_cluster", {}) for node in self.nodes]
            return all(group.get("leader") and group.get("cluster_size") == 3 for group in groups)

        until(led, every=0.1)

    def leader(self, stream: str) -> str | None:
        """The node that leads a stream, None while no node says so."""
        for node in self.nodes:
            for name, group in _groups(node):
                if name == stream and group.get("leader") == node.name:
                    return node.name
        return None

    def until_whole(self) -> None:
        """Wait until every node runs, and each leader of a stream says that all copies of it are up to date."""
        self.until_led()

        def whole() -> bool:
            led = [
                all(copy.get("current") and not copy.get("offline") for copy in copies)
                for node in self.nodes
                for _, group in _groups(node)
                if group.get("leader") == node.name and len(copies := group.get("replicas", ())) == 2
            ]
            return len(led) == len({name for node in self.nodes for name, _ in _groups(node)}) and all(led)

        until(whole, every=0.2)

    def stop(self) -> None:
        for node in self.nodes:
            node.kill()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()


def _node(folder: Path, port: int, routes: Sequence[int], jetstream: str) -> NatsServer:
    """One node, which connects to others by the routes that it is given and by none that it hears of."""
    urls = ", ".join(f'"nats://127.0.0.1:{route}"' for route in routes)
    more = (
        'http: "127.0.0.1:-1"\n'
        f'cluster {{ name: test, listen: "127.0.0.1:{port}", advertise: "{_NOWHERE}", '
        f"routes: [{urls}], no_advertise: true }}"
    )
    return NatsServer(folder, name=folder.name, more=more, jetstream=jetstream)


def _groups(node: NatsServer) -> list[tuple[str, dict[str, Any]]]:
    """What a node knows of the streams that it has a copy of: name and Raft group."""
    accounts = monitored(node, "jsz?streams=true").get("account_details") or ()
    return [
        (stream["name"], stream.get("cluster") or {}) for account in accounts for stream in account.get("stream_detail") or ()
    ]


def monitored(node: NatsServer, page: str) -> dict[str, Any]:
    """A page of a server's monitoring; empty where it answers none."""
    try:
        ports = json.loads((node.folder / f"nats-server_{node.pid}.ports").read_text(encoding="utf-8"))
        with urllib.request.urlopen(f"{ports['monitoring'][0]}/{page}", timeout=2) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except OSError:
        return {}
