"""What a doctor makes of nats-server's own words."""

from __future__ import annotations

from typing import Any

import msgspec

from ojs_command.client.doctor.monitor import Server, judged
from support.tables import each

SYNC = {"sync_interval": 120_000_000_000}


def server(stores: dict[str, Any] | None = None, **changes: Any) -> Server:
    config = {"sync_always": True} | (stores or {})
    said = {"server_name": "n", "host": "127.0.0.1", "jetstream": {"config": config}}
    return msgspec.convert(said | changes, Server)


@each(
    ("said", "wrong"),
    [
        (server(), []),
        (server(host="10.0.0.1"), ["users"]),
        (server(host="10.0.0.1", auth_required=True), []),
        (server(SYNC | {"sync_always": False}), ["sync"]),
        (server(SYNC | {"sync_always": False}, cluster={"name": "c"}), []),
        (server({"sync_always": False, "sync_interval": 600_000_000_000}, cluster={"name": "c"}), ["sync"]),
        (server(jetstream={}), []),
    ],
)
def test_one_server(said: Server, wrong: list[str]) -> None:
    found = list(judged(said))
    assert [finding.check for finding in found if finding.status != "ok"] == wrong
    assert all(finding.status == "ok" or (finding.meaning and finding.remedy) for finding in found)
