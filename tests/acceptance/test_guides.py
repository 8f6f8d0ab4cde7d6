"""The guides for people who write Python, as they are written: the tutorial, and what those who come from elsewhere read."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest
import yaml  # type: ignore[import-untyped]  # read for two files; stubs would be one more package

from ojs_nats.jobs import JobRequest
from ojs_nats.sync import SyncClient
from support.forked import OJS_NATS, PYTHON, completed
from support.processes import end, free_port
from support.system import Command, System, environment, send
from support.units import Machine, Unit
from support.waiting import until
from support.walks import ROOT, File, at_work, files, output, walked

pytestmark = pytest.mark.slow

TUTORIAL: Final = "docs/tutorial.md"
STEPS: Final = ["A job", "When it fails", "Every night", "In steps"]
UNIT: Final = "/etc/systemd/system/reports-worker.service"
HANDING_BACK_S: Final = 5
"""The longest that a worker takes besides its grace period: a fetch that is under way, and what it hands back."""


def jobs_after(heading: str) -> str:
    """`app/jobs.py` as it is when a reader has come to the end of a step of the tutorial."""
    read = STEPS[: STEPS.index(heading) + 1]
    return "\n\n".join(text for step in read for path, text in files(TUTORIAL, step) if path == "app/jobs.py")


@pytest.mark.parametrize("heading", STEPS)
def test_each_step_of_the_tutorial_prints_what_it_says(system: System, tmp_path: Path, heading: str) -> None:
    [program] = [text for path, text in files(TUTORIAL, heading) if path != "app/jobs.py"]
    assert walked(system, tmp_path, jobs_after(heading), program) == output(TUTORIAL, heading)


def test_the_tutorial_s_tests_pass(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "jobs.py").write_text(jobs_after(STEPS[-1]), encoding="utf-8")
    for path, text in files(TUTORIAL, "A test"):
        (tmp_path / path).write_text(text, encoding="utf-8")
    plugins = ("-p", "ojs_nats.testing.plugin", "-p", "pytest_asyncio.plugin", "-p", "no:cacheprovider")
    env = environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    ran = completed([*PYTHON, "-m", "pytest", "-q", *plugins], env, folder=tmp_path, seconds=200)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "4 passed" in ran.stdout


# The unit


def unit_file() -> str:
    [(path, text)] = files(TUTORIAL, "As a systemd unit")
    assert path == UNIT
    return text


def option(command: list[str], name: str) -> str:
    return command[command.index(name) + 1]


def seconds(grace: str) -> int:
    assert grace.endswith("s")
    return int(grace[:-1])


class Site:
    """A machine with the application, the unit and a virtual environment where the tutorial puts them."""

    def __init__(self, root: Path, url: str) -> None:
        self.machine = Machine(root)
        self.health_port = free_port()
        unit = unit_file()
        written = option(shlex.split(Unit(unit).one("Service.ExecStart") or ""), "--health-port")
        app = root / "opt/reports/app"
        for folder in (app, root / "etc/systemd/system"):
            folder.mkdir(parents=True)
        (root / "opt/reports/.venv").symlink_to(sys.prefix)
        (app / "jobs.py").write_text(jobs_after(STEPS[-1]), encoding="utf-8")
        (root / "etc/reports-worker.environment").write_text(f"OJS_URL={url}\n", encoding="utf-8")
        (root / UNIT.lstrip("/")).write_text(unit.replace(written, str(self.health_port)), encoding="utf-8")

    def start(self) -> subprocess.Popen[bytes]:
        """The worker, once it takes jobs."""
        self.machine.processes.clear()
        self.machine.enable_now("reports-worker")
        [worker] = self.machine.processes.values()

        def takes_jobs() -> bool:
            assert worker.poll() is None, self.machine.output("reports-worker.service")
            return answers(self.health_port, "/readyz")

        until(takes_jobs)
        return worker


def answers(port: int, path: str) -> bool:
    """Whether a worker's health port answers 200 there."""
    try:
        return send("GET", f"http://127.0.0.1:{port}{path}").status == 200
    except OSError:  # it doesn't listen yet
        return False


@pytest.fixture
def site(system: System, tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path, system.url)
    try:
        yield site
    finally:
        site.machine.stop()


def test_a_worker_that_the_unit_restarts_loses_no_job_and_no_attempt(site: Site, system: System) -> None:
    old = site.start()
    with SyncClient(system.url) as client:
        handles = client.push_all([JobRequest("report.build", ("ada", "2026-11-01"), {"queue": "reports"}) for _ in range(60)])
        pushed = [handle.id for handle in handles]
        until(lambda: client.jobs.get(pushed[0]).state == "active")
        assert end(old) == 0
        left = [job_id for job_id in pushed if not client.jobs.get(job_id).ended]
        assert left, "the old one has done everything before it stopped: nothing is shown"
        new = site.start()
        ended = [client.jobs.wait(job_id, "1m") for job_id in pushed]
        # What came while the old one was told to stop was handed back: that attempt doesn't count.
        counted = {(job.state, job.attempt - job.uncounted_attempts, job.result) for job in ended}
        assert counted == {("completed", 1, 245)}
        assert end(new) == 0


def test_the_unit_stops_the_worker_alone_and_waits_for_longer_than_its_jobs_may_take() -> None:
    unit = Unit(unit_file())
    assert (unit.one("Service.KillSignal"), unit.one("Service.KillMode")) == ("SIGTERM", "mixed")
    command = shlex.split(unit.one("Service.ExecStart") or "")
    grace = seconds(option(command, "--grace-period"))
    assert int(unit.one("Service.TimeoutStopSec") or 0) > grace + HANDING_BACK_S


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd isn't installed here")
def test_systemd_takes_the_unit(site: Site) -> None:
    root = site.machine.root
    file = root / UNIT.lstrip("/")
    file.write_text(site.machine.here(file.read_text(encoding="utf-8")), encoding="utf-8")
    check = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(file)],
        capture_output=True,
        text=True,
        check=False,
        env=environment(SYSTEMD_UNIT_PATH=f"{file.parent}:"),
    )
    ours = [line for line in check.stderr.splitlines() if "reports-worker" in line]
    assert (check.returncode, ours) == (0, []), check.stderr


# The container


def test_the_deployment_s_probes_answer_and_it_waits_for_longer_than_jobs_may_take(system: System, tmp_path: Path) -> None:
    shown = dict(files(TUTORIAL, "As a container"))
    pod = yaml.safe_load(shown["worker.yaml"])["spec"]["template"]["spec"]
    [container] = pod["containers"]
    [port] = container["ports"]
    arguments: list[str] = container["args"]
    assert option(arguments, "--health-port") == str(port["containerPort"])
    assert pod["terminationGracePeriodSeconds"] > seconds(option(arguments, "--grace-period")) + HANDING_BACK_S
    entrypoint = shown["Dockerfile"].split("ENTRYPOINT ")[1].strip()
    command, *first = yaml.safe_load(entrypoint)
    assert command == "ojs-nats"

    free = free_port()
    here = [str(free) if argument == str(port["containerPort"]) else argument for argument in arguments]
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "jobs.py").write_text(jobs_after(STEPS[-1]), encoding="utf-8")
    worker = Command(tmp_path, *first, *here, env=environment(OJS_URL=system.url), program=OJS_NATS)
    try:
        for probe in ("readinessProbe", "livenessProbe"):
            asked = container[probe]["httpGet"]
            assert asked["port"] == port["name"]
            until(partial(answers, free, asked["path"]))
    finally:
        assert worker.stop() == 0


# Coming from elsewhere

COMING: Final = ROOT / "docs" / "coming-from"
MOVED: Final = "A module, moved"
RUNS: Final = {"py": PYTHON, "mjs": ("node",), "rb": ("ruby",)}
"""What runs a push, by the ending of its file."""
CHECKS: Final = {"py": (sys.executable, "-m", "py_compile"), "mjs": ("node", "--check"), "rb": ("ruby", "-c")}
"""What compiles a module of theirs, without running it."""


def moved(page: str) -> tuple[File, str, File, str]:
    """Their module, ours, what pushes, and what that prints."""
    where = f"docs/coming-from/{page}.md"
    theirs, ours, push = files(where, MOVED)
    assert ours.path == "app/jobs.py"
    return theirs, ours.text, push, output(where, MOVED)


def needed(file: File, commands: dict[str, tuple[str, ...]]) -> list[str]:
    """The command for a file. Skips the test where the machine hasn't got its language."""
    command = [*commands[file.path.rpartition(".")[2]], file.path]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} isn't installed here")
    return command


@pytest.mark.parametrize("page", ["celery", "rq", "sidekiq", "bullmq"])
def test_a_moved_module_does_what_the_page_says(system: System, tmp_path: Path, page: str) -> None:
    _, ours, push, printed = moved(page)
    command = needed(push, RUNS)
    (tmp_path / push.path).write_text(push.text, encoding="utf-8")
    with at_work(system, tmp_path, ours) as run:
        assert run(*command) == printed


@pytest.mark.parametrize("page", ["celery", "rq", "sidekiq", "bullmq"])
def test_the_module_of_theirs_is_one_of_their_language(tmp_path: Path, page: str) -> None:
    theirs = moved(page)[0]
    command = needed(theirs, CHECKS)
    (tmp_path / theirs.path).write_text(theirs.text, encoding="utf-8")
    subprocess.run(command, cwd=tmp_path, check=True)


def test_what_is_pushed_from_ruby_is_run_in_python_as_the_page_says(system: System, tmp_path: Path) -> None:
    """The same request as the Ruby program sends, since few machines that run this have a Ruby."""
    _, ours, push, printed = moved("sidekiq")
    [sent] = re.findall(r'push\("([\w.]+)", (.+?), queue: "(\w+)"', push.text)
    with at_work(system, tmp_path, ours):
        job_id = system.push(sent[0], *json.loads(f"[{sent[1]}]"), queue=sent[2])["id"]
        answer = system.call("GET", f"/jobs/{job_id}/result?wait=true&timeout=30")
    assert f"{answer['result']}\n" == printed


def test_every_page_for_those_who_come_from_elsewhere_is_in_the_index() -> None:
    index = (COMING / "README.md").read_text(encoding="utf-8")
    pages = {page.name for page in COMING.glob("*.md")} - {"README.md"}
    assert pages
    assert [page for page in sorted(pages) if f"]({page})" not in index] == []
