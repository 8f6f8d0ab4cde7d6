"""docs/backup.md, as it is written: back up, lose everything, restore, and go on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.nats import NatsServer
from support.system import TOGETHER, System, environment
from support.walks import blocks

PAGE = "docs/backup.md"
V1 = "/ojs/v1"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def run(command: str, folder: Path, nats: str, http: str = "") -> str:
    """Run a command of the page, in a folder, with this system's addresses."""
    for written, here in (
        ("/var/backups/ojs", str(folder)),
        ("nats://127.0.0.1:4222", nats),
        ("http://127.0.0.1:8080", http),
    ):
        command = command.replace(written, here)
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    env = environment(PATH=path, OJS_URL=http)
    done = subprocess.run(["sh", "-ec", command], cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_brings_a_system_back(tmp_path: Path) -> None:
    [back_up, _, _] = blocks(PAGE, "Back up")
    restore, rehearse, release, _ = blocks(PAGE, "Restore")
    with System.started(tmp_path / "first", TOGETHER) as system:
        ids = [system.push("a.b", number)["id"] for number in range(3)]
        assert "backed up" in run(back_up, tmp_path, system.nats_url)
    with NatsServer(tmp_path / "nats") as server:
        restored = run(restore, tmp_path, server.url)
        assert "restored 3 jobs (3 wait to be fetched" in restored
        assert "it has no keys: everybody who reaches a gateway may do everything" in restored
        with System.started(tmp_path / "second", TOGETHER, "--nats", server.url) as system:
            assert [job["id"] for job in system.fetch("default", count=10, worker_id="w")] == ids
        rehearsed = run(rehearse, tmp_path, server.url, "http://127.0.0.1:1")
        assert "'ojs-nats release --namespace rehearsal'" in rehearsed
        assert "1 queue with 3 jobs that wait" in rehearsed
        assert "nothing was changed: this is a dry run" in rehearsed
        assert "1 queue with 3 jobs that wait" in run(f"{release.strip()} --yes", tmp_path, server.url)


def test_the_page_moves_jobs(tmp_path: Path) -> None:
    [commands] = blocks(PAGE, "Export and import")
    with System.started(tmp_path / "own", TOGETHER) as system:
        options = {"queue": "email", "retry": {"max_attempts": 1}}
        made = system.push("a.b", 1, **options)["id"]
        system.fetch("email", worker_id="w")
        error = {"code": "no", "message": "no"}
        assert system.request("POST", f"{V1}/workers/nack", {"job_id": made, "error": error}).status == 200
        export, dry_run, again = commands.strip().splitlines()
        run(export, tmp_path, "", system.url)
        assert "1 were there already" in run(dry_run, tmp_path, "", system.url)
        system.reset()
        assert "1 pushed" in run(again, tmp_path, "", system.url)
        assert system.job(made)["state"] == "available"
