from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.nats import program

ROOT = Path(__file__).parents[3]
FILES = [ROOT / "nats.conf", ROOT / "deploy" / "durable.conf", *sorted((ROOT / "deploy" / "cluster").glob("node-*.conf"))]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_nats_server_takes_the_configuration(file: Path) -> None:
    check = subprocess.run([program(), "-t", "-c", str(file)], capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stderr


def test_all_of_them_are_checked() -> None:
    kept_for_includes = {"common.conf", "routes.conf"}
    assert {file.name for file in (ROOT / "deploy").rglob("*.conf")} - kept_for_includes == {file.name for file in FILES[1:]}


@pytest.mark.parametrize("file", ["nats.conf", "deploy/durable.conf", "deploy/cluster/common.conf"])
def test_what_the_services_rely_on_is_the_same_everywhere(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    assert "max_payload: 8MB" in text
    assert 'batch { max_inflight_per_stream: 500, max_inflight_total: 5000, max_msgs: 32000, timeout: "10s" }' in text
