"""What a doctor makes of nats-server's own words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ojs_command.client.doctor.monitor import Server, judged, together
from support.tables import each

NOW = datetime(2026, 11, 26, tzinfo=UTC)
SYNC = {"sync_interval": 120_000_000_000}


def server(stores: dict[str, Any] | None = None, **changes: Any) -> Server:
    config = {"max_storage": 20 << 30, "sync_always": True} | (stores or {})
    said = {"server_name": "n", "version": "2.15.1", "now": NOW, "host": "127.0.0.1", "jetstream": {"config": config}}
    return msgspec.convert(said | changes, Server)


@each(
    ("said", "wrong"),
    [
        (server(), []),
        (server(host="10.0.0.1"), ["users"]),
        (server(host="10.0.0.1", auth_required=True), []),
        (server(now=NOW + timedelta(seconds=5)), ["clock"]),
        (server(now=NOW - timedelta(seconds=5)), ["clock"]),
        (server(SYNC | {"sync_always": False}), ["sync"]),
        (server(SYNC | {"sync_always": False}, cluster={"name": "c"}), []),
        (server({"sync_always": False, "sync_interval": 600_000_000_000}, cluster={"name": "c"}), ["sync"]),
        (server({"max_storage": 1_000_000}), ["max_file_store"]),
        (server(jetstream={}), ["jetstream"]),
    ],
)
def test_one_server(said: Server, wrong: list[str]) -> None:
    found = list(judged(said, NOW, 0.1, here=False))
    assert [finding.check for finding in found if finding.status != "ok"] == wrong
    assert all(finding.status == "ok" or (finding.meaning and finding.remedy) for finding in found)


def test_a_file_store_that_is_larger_than_its_disk(tmp_path: Path) -> None:
    large = server({"max_storage": 1 << 60, "store_dir": str(tmp_path)})
    assert [finding.check for finding in judged(large, NOW, 0.1, here=True) if finding.status != "ok"] == ["max_file_store"]
    assert not [finding for finding in judged(large, NOW, 0.1, here=False) if finding.status != "ok"]


def clustered(size: int, version: str = "2.15.1") -> Server:
    return server(cluster={"name": "c"}, version=version, jetstream={"meta": {"cluster_size": size}})


@pytest.mark.parametrize(
    ("servers", "wrong"),
    [
        ([server()], []),
        ([clustered(3)], []),
        ([clustered(2)], ["cluster"]),
        ([clustered(4), clustered(4)], ["cluster"]),
        ([clustered(3), clustered(3, "2.14.0")], ["nats-server"]),
    ],
)
def test_several_servers(servers: list[Server], wrong: list[str]) -> None:
    assert [finding.check for finding in together(servers) if finding.status != "ok"] == wrong
