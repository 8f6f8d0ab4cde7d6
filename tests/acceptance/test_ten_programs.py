"""The ten programs of docs/examples/ten, as somebody runs them beside a worker."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.forked import PYTHON, completed, start
from support.system import Command, System, environment, send
from support.waiting import until

pytestmark = pytest.mark.slow

PROGRAMS = Path(__file__).parents[2] / "docs" / "examples" / "ten"
PRINTED = {
    "result.py": "3\n7 without a job\n",
    "retry.py": "sent to ada@example.org at attempt 3\n1 retryable\n2 retryable\n3 completed\n",
    "delay.py": "scheduled scheduled\n3\ncancelled\n",
    "cron.py": "0 9 * * MON-FRI Europe/Berlin\nthe report of 2026-11\n",
    "unique.py": "True\ncancelled\n",
    "workflow.py": "10\n",
    "progress.py": "job.progress step 1 of 4\njob.progress step 2 of 4\njob.progress step 3 of 4\njob.completed \ncat.webm\n",
    "many.py": "1275\n",
}


@pytest.fixture
def folder(system: System, tmp_path: Path) -> Iterator[Path]:
    """A copy of the programs, with a worker beside them."""
    copied = tmp_path / "ten"
    shutil.copytree(PROGRAMS, copied)
    worker = Command(copied, "worker", "jobs", "--log-format", "json", env=environment(OJS_URL=system.url))
    try:
        until(lambda: worker.events("the worker runs"))
        yield copied
    finally:
        assert worker.stop() == 0


@pytest.mark.parametrize("program", PRINTED)
def test_a_program_prints_what_it_is_for(system: System, folder: Path, program: str) -> None:
    ran = completed([sys.executable, "-W", "error", program], environment(OJS_URL=system.url), folder=folder, seconds=120)
    assert (ran.stdout, ran.stderr, ran.returncode) == (PRINTED[program], "", 0)


def test_an_application_is_tested_without_a_server(folder: Path) -> None:
    plugins = ("-p", "ojs_nats.testing.plugin", "-p", "no:cacheprovider", "-W", "error")
    env = environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", OJS_URL="http://127.0.0.1:1")
    ran = completed([*PYTHON, "-m", "pytest", "-q", *plugins, "test_jobs.py"], env, folder=folder, seconds=120)
    assert "2 passed" in ran.stdout, ran.stdout + ran.stderr


def test_a_web_application_pushes(system: System, folder: Path, unused_tcp_port: int, tmp_path: Path) -> None:
    command = [*PYTHON, "-m", "uvicorn", "web:site", "--port", str(unused_tcp_port), "--log-level", "warning"]
    base = f"http://127.0.0.1:{unused_tcp_port}/sums"
    with (tmp_path / "web.log").open("wb") as log, Path(os.devnull).open("rb") as nothing:
        files = (nothing.fileno(), log.fileno(), log.fileno())
        site = start(command, environment(OJS_URL=system.url), files, folder)
    try:
        until(lambda: answers(base))
        pushed = send("POST", f"{base}?first=20&second=22")
        assert pushed.status == 202
        until(lambda: send("GET", f"{base}/{pushed.body['id']}").body == {"state": "completed", "sum": 42})
    finally:
        site.send_signal(signal.SIGTERM)
        site.wait(timeout=60)
    assert (tmp_path / "web.log").read_text() == ""


def answers(url: str) -> bool:
    try:
        return send("GET", url).status == 405
    except OSError:
        return False


def test_every_program_of_the_folder_is_run() -> None:
    run = {*PRINTED, "test_jobs.py", "web.py", "jobs.py"}
    assert {path.name for path in PROGRAMS.glob("*.py")} == run
