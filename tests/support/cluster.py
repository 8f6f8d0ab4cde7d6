"""Three nats-servers on loopback that form one JetStream cluster."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any, Self

from support.nats import NatsServer
from support.processes import free_port
from support.waiting import until

__all__ = ["NatsCluster"]


class NatsCluster:
    """The nodes are named n1, n2 and n3; each keeps its ports and files over kills. As a context manager it starts and stops.

    Everything here blocks; a test whose event loop must go on meanwhile calls it through `asyncio.to_thread`.
    """

    def __init__(self, folder: Path) -> None:
        ports = [free_port() for _ in range(3)]
        routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in ports)
        self.nodes = [
            NatsServer(
                folder / f"n{number}",
                name=f"n{number}",
                more=f'http: "127.0.0.1:-1"\n'
                f'cluster {{ name: test, listen: "127.0.0.1:{port}", routes: [{routes}], no_advertise: true }}',
            )
            for number, port in enumerate(ports, 1)
        ]

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
            groups = [_monitor(node, "jsz").get("meta_cluster", {}) for node in self.nodes]
            return all(group.get("leader") and group.get("cluster_size") == 3 for group in groups)

        until(led, 30.0, every=0.1)

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


def _monitor(node: NatsServer, page: str) -> dict[str, Any]:
    ports = json.loads((node.folder / f"nats-server_{node.pid}.ports").read_text(encoding="utf-8"))
    try:
        with urllib.request.urlopen(f"{ports['monitoring'][0]}/{page}", timeout=2) as answer:
            found: dict[str, Any] = json.load(answer)
            return found
    except OSError:
        return {}
