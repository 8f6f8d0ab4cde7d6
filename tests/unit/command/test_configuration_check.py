"""`ojs-nats config --check`: what it says of settings."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ojs_command.main import main

THREE = "nats://127.0.0.1:1,nats://127.0.0.1:2,nats://127.0.0.1:3"


@pytest.fixture(autouse=True)
def _plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("OJS_")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ([], ["settings ok"]),
        (["--host", "0.0.0.0", "--insecure"], ["door warning"]),
        (["--host", "0.0.0.0", "--insecure", "--api-key-file", "/k"], ["settings ok"]),
        (["--insecure"], ["settings ok"]),
        (["--nats", "nats://nats.internal:4222"], ["users warning", "storage warning"]),
        (["--nats", "nats://u:p@nats.internal:4222"], ["storage warning"]),
        (["--nats", "nats://nats.internal:4222", "--nats-creds", "{role}.nk", "--storage-limit", "5"], ["settings ok"]),
        (["--nats-creds", "{role}.nk"], ["storage warning"]),
        (["--nats", THREE], ["copies warning"]),
        (["--nats", THREE, "--replicas", "3"], ["storage warning"]),
        (["--nats", THREE, "--replicas", "3", "--storage-limit", "5"], ["settings ok"]),
        (["--nats", THREE, "--replicas", "2", "--storage-limit", "5"], ["copies warning"]),
        (["--nats", THREE.rpartition(",")[0], "--replicas", "3", "--storage-limit", "5"], ["cluster warning"]),
        (["--replicas", "3", "--storage-limit", "5"], ["cluster warning"]),
        (["--storage-folder", "."], ["settings ok"]),
        (["--storage-folder", ".", "--storage-limit", str(1 << 50)], ["storage warning"]),
        (["--storage-folder", "nowhere"], ["disk problem"]),
        (["--test-mode"], ["test mode warning"]),
    ],
)
def test_what_is_found(settings: list[str], found: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["config", "--check", "--json", *settings])
    said = json.loads(capsys.readouterr().out)
    assert [f"{finding['check']} {finding['status']}" for finding in said["findings"]] == found
    assert all(finding["status"] == "ok" or (finding["meaning"] and finding["remedy"]) for finding in said["findings"])
    assert code == ("problem" in found[0])


def test_people_read_it_without_passwords(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--check", "--nats", "nats://u:secret@a,nats://u:secret@b", "--replicas", "3"]) == 0
    out = capsys.readouterr().out
    assert "nats names 2 servers, an even number" in out
    assert "0 problems, " in out
    assert "secret" not in out
