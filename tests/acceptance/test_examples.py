"""The examples of docs/examples, as somebody runs them."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from support.forked import PYTHON, start
from support.processes import Process
from support.python_worker import WorkerProcess
from support.system import System, environment, send
from support.waiting import until

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
ORDER = {"item": "a book", "email": "ada@example.org"}
Run = Callable[..., Process]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Starts a program in a copy of the examples; it ends with the test."""
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    running: list[Process] = []

    def started(example: str, *command: str, **variables: str) -> Process:
        folder = tmp_path / "examples" / example
        with (tmp_path / f"{len(running)}.log").open("wb") as log, Path(os.devnull).open("rb") as nothing:
            files = (nothing.fileno(), log.fileno(), log.fileno())
            running.append(start([*PYTHON, *command], environment(**variables), files, folder))
        return running[-1]

    yield started
    for process in reversed(running):
        process.send_signal(signal.SIGTERM)
    for process in running:
        process.wait(timeout=60)


def answered(url: str) -> Any:
    """What is read there, as JSON if it is; None while nobody answers, or as long as there is nothing."""
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as refusal:
        return refusal.code
    except OSError:
        return None


def picture(width: int, height: int) -> bytes:
    written = io.BytesIO()
    Image.new("RGB", (width, height), "teal").save(written, "JPEG")
    return written.getvalue()


def posted(url: str, body: bytes) -> Any:
    run = ["curl", "-sS", "--fail-with-body", "--data-binary", "@-", url]
    return json.loads(subprocess.run(run, input=body, check=True, capture_output=True).stdout)


def test_thumbnails_with_one_command(system: System, run: Run, unused_tcp_port: int, tmp_path: Path) -> None:
    uploads = tmp_path / "uploads"
    run("thumbnails", "run.py", OJS_URL=system.url, UPLOADS=str(uploads), PORT=str(unused_tcp_port))
    base = f"http://127.0.0.1:{unused_tcp_port}/uploads"
    until(lambda: answered(f"{base}/x") is not None)
    name = posted(base, picture(1_600, 800))["id"]

    def ready() -> Any:
        told = answered(f"{base}/{name}")
        return told if told["state"] == "completed" else None

    told = until(ready)
    assert told["thumbnails"] == ["1024.png", "256.png", "64.png"]
    assert {job["state"] for job in told["jobs"]} == {"completed"}
    with Image.open(uploads / name / "256.png") as small:
        assert small.size == (256, 128)

    broken = posted(base, b"no picture")["id"]

    def failed() -> bool:
        return bool(answered(f"{base}/{broken}")["state"] == "failed")

    until(failed)
    [entry] = system.call("GET", "/cron")["crons"]
    assert (entry["name"], entry["job_template"]["type"]) == ("thumbnails-clean-up", "thumbnails.clean_up")
    old = time.time() - 48 * 3_600
    os.utime(uploads / name, (old, old))
    system.call("POST", "/cron/thumbnails-clean-up/trigger", status=201)
    until(lambda: not (uploads / name).exists())
    assert (uploads / broken).exists(), "it isn't old"


@pytest.fixture
def worker(system: System, tmp_path: Path) -> Iterator[WorkerProcess]:
    folder = tmp_path / "worker"
    folder.mkdir()
    shutil.copy(EXAMPLES / "outbox" / "jobs.py", folder)
    worker = WorkerProcess.started(folder, "jobs", url=system.url)
    yield worker
    worker.end()


def fastapi(run: Run, port: int, **variables: str) -> None:
    """The shop, which pushes what lies in its outbox by itself."""
    run("outbox", "-m", "uvicorn", "fastapi_shop:shop", "--port", str(port), **variables)


def django(run: Run, port: int, **variables: str) -> None:
    """The shop, and the process that pushes what lies in its outbox. The tables are there."""
    run("outbox", "django_shop.py", "relay", **variables)
    run("outbox", "django_shop.py", "runserver", "--noreload", str(port), **variables)


def in_outbox(database: Path, table: str) -> Sequence[Any]:
    connection = sqlite3.connect(database)
    try:
        return connection.execute(f"SELECT id FROM {table}").fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize(("shop", "table"), [(fastapi, "outbox"), (django, "shop_outboxjob")])
@pytest.mark.usefixtures("worker")
def test_orders_are_taken_while_no_job_server_can_be_reached_and_a_receipt_belongs_to_its_transaction(
    system: System, run: Run, unused_tcp_port_factory: Callable[[], int], tmp_path: Path, shop: Callable[..., None], table: str
) -> None:
    database, nobody = tmp_path / "shop.sqlite", f"http://127.0.0.1:{unused_tcp_port_factory()}"
    port = unused_tcp_port_factory()
    url = f"http://127.0.0.1:{port}/orders"
    if shop is django:
        assert run("outbox", "django_shop.py", "migrate", DATABASE=str(database)).wait(timeout=60) == 0
    shop(run, port, OJS_URL=nobody, DATABASE=str(database))
    until(lambda: answered(url) is not None)
    early = send("POST", url, ORDER)
    assert early.status == 201
    assert in_outbox(database, table) == [(early.body["job"],)]

    # The next process, which has the server's address, finds what the first one left; both push it.
    if shop is fastapi:
        port = unused_tcp_port_factory()
        fastapi(run, port, OJS_URL=system.url, DATABASE=str(database))
    else:
        run("outbox", "django_shop.py", "relay", OJS_URL=system.url, DATABASE=str(database))
    until(lambda: not in_outbox(database, table))
    until(lambda: system.job(early.body["job"])["state"] == "completed")

    url = f"http://127.0.0.1:{port}/orders"
    until(lambda: answered(url) is not None)
    refused = send("POST", url, {**ORDER, "item": "sold out"})
    assert refused.status == 409
    told = send("POST", url, ORDER)
    assert told.status == 201

    def sent() -> Any:
        found = system.request("GET", f"/ojs/v1/jobs/{told.body['job']}")
        return found.status == 200 and found.body["job"].get("result")

    assert until(sent) == f"receipt of order {told.body['order']} to ada@example.org"
    until(lambda: not in_outbox(database, table))
    jobs = system.call("GET", "/jobs?queue=shop")["jobs"]
    assert {job["id"] for job in jobs} == {early.body["job"], told.body["job"]}, "the order that was rolled back has none"
