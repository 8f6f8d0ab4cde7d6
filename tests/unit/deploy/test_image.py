"""The Containerfile, the compose files and the page about them, as far as no container engine is needed."""

from __future__ import annotations

import re
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import parse_qs

import pytest
import yaml  # type: ignore[import-untyped]  # stubs would be one more package

from ojs_command.main import main
from ojs_command.services import BACKGROUND
from ojs_features.startup import OPTIONS as OF_FEATURES
from ojs_runtime.settings import OPTIONS, load
from support.nats import program

ROOT: Final = Path(__file__).parents[3]
IMAGE: Final = ROOT / "deploy" / "image"
CONTAINERFILE: Final = (IMAGE / "Containerfile").read_text(encoding="utf-8").replace("\\\n", "")
PAGE: Final = (ROOT / "docs" / "containers.md").read_text(encoding="utf-8")
PROJECTS: Final[dict[str, dict[str, Any]]] = {
    folder: tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8")) for folder in (".", "shared")
}
VERSION: Final = PROJECTS["."]["project"]["version"]
FILES: Final = ("compose.yaml", "compose.cluster.yaml")
DOCKER: Final = """\
#!/usr/bin/env bash
# In place of an engine: what would run in a container of the image runs here, with its folder.
while [ "$1" != ojs-nats:VERSION ]; do shift; done
shift
exec PYTHON -m ojs_command "${@/\\/private/$PWD/private}"
"""


def compose(file: str) -> dict[str, Any]:
    return cast("dict[str, Any]", yaml.safe_load((IMAGE / file).read_text(encoding="utf-8")))


def containers(file: str) -> dict[str, dict[str, Any]]:
    return cast("dict[str, dict[str, Any]]", compose(file)["services"])


def ours() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The containers of the image: file, name, what is said of them."""
    for file in FILES:
        for name, container in containers(file).items():
            if container["image"].startswith("ojs-nats:"):
                yield file, name, container


OURS: Final = list(ours())


def blocks(heading: str) -> list[str]:
    """What a section of the page has its reader type."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"```sh\n(.*?)```", section, re.DOTALL)


def shown_to_the_build() -> list[str]:
    lines = (ROOT / ".containerignore").read_text(encoding="utf-8").splitlines()
    return [line[1:] for line in lines if line.startswith("!")]


def environment_of_the_image() -> dict[str, str]:
    [line] = re.findall(r"^ENV (.*)$", CONTAINERFILE, re.MULTILINE)
    return dict(word.split("=", 1) for word in line.split())


def set_by(environment: dict[str, str]) -> dict[str, str]:
    """Without PATH and its like, which is nobody's setting."""
    return {name: value for name, value in environment.items() if name != "PATH"}


def test_what_the_build_copies_is_there_and_not_kept_from_it() -> None:
    shown = shown_to_the_build()
    sources = [line.split()[0] for line in re.findall(r"^COPY (?!--from)(.*)$", CONTAINERFILE, re.MULTILINE)]
    assert sources
    assert [path for path in [*shown, *sources] if not (ROOT / path).exists()] == []
    assert [source for source in sources if source != "." and source.rstrip("/") not in shown] == []
    assert (ROOT / ".dockerignore").readlink() == Path(".containerignore"), "docker reads it by another name"


def test_the_build_is_shown_all_that_the_wheels_are_made_of() -> None:
    parts: list[str] = []
    for folder, project in PROJECTS.items():
        wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
        named = [*wheel["only-include"], *wheel["sbom-files"], *project["project"]["license-files"]]
        parts += [str(Path(folder) / name) for name in named]
    readme = PROJECTS["."]["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["fragments"]
    needed = [
        *parts,
        *(fragment["path"] for fragment in readme),
        *re.findall(r"--requirement (\S+)", CONTAINERFILE),
        "pyproject.toml",
        ".gitignore",  # without it, what npm brings would be packed, too
    ]
    shown = shown_to_the_build()
    assert [path for path in needed if not any(path == known or fnmatch(path, f"{known}/*") for known in shown)] == []


def test_the_build_takes_packages_by_their_hash_alone() -> None:
    installs = re.findall(r"-m pip (?:--python \S+ )?(?:install|wheel) [^&\n]*", CONTAINERFILE)
    assert installs
    assert [one for one in installs if not re.search(r"--require-hashes|--no-index|--no-deps --no-build-isolation", one)] == []


def test_the_container_runs_as_the_user_of_the_chart() -> None:
    [chart] = re.findall(r"runAsUser: (\d+)", (ROOT / "deploy/chart/ojs-nats/values.yaml").read_text(encoding="utf-8"))
    assert re.findall(r"^USER (.*)$", CONTAINERFILE, re.MULTILINE) == [f"{chart}:{chart}"]


def test_any_user_of_group_0_can_run_the_image() -> None:
    """Clusters that choose the user of a container give it that group."""
    [folder] = re.findall(r"install --directory (.*) /var/lib/ojs-nats", CONTAINERFILE)
    assert folder == "--mode 770 --owner 65532 --group 0"
    assert re.findall(r"^WORKDIR (.*)$", CONTAINERFILE, re.MULTILINE)[-1] == "/"


def test_all_name_the_version_of_the_project() -> None:
    assert re.findall(r"^ARG VERSION=(.*)$", CONTAINERFILE, re.MULTILINE) == [VERSION]
    texts = [CONTAINERFILE, PAGE, *((IMAGE / file).read_text(encoding="utf-8") for file in FILES)]
    assert [set(re.findall(r"ojs-nats:(\d[\w.]*)", text)) for text in texts] == [{VERSION}] * len(texts)


@pytest.mark.parametrize(("file", "name", "container"), OURS, ids=[f"{file}-{name}" for file, name, _ in OURS])
def test_a_container_has_settings_that_its_command_takes(file: str, name: str, container: dict[str, Any]) -> None:
    environment = set_by(environment_of_the_image()) | container["environment"]
    known = {option.env for option in (*OPTIONS, *OF_FEATURES)}
    assert set(environment) <= known, f"{name} in {file}"
    settings = load({}, environment, OF_FEATURES).settings
    assert settings.replicas == sum(other.startswith("nats") for other in containers(file))
    with pytest.raises(SystemExit) as ended:
        main([*container["command"], "--help"])
    assert ended.value.code == 0


@pytest.mark.parametrize(
    ("name", "roles"),
    [
        ("setup", ["operator"]),
        ("gateway", ["gateway", "gateway-api"]),
        ("services", [entry.name for entry in BACKGROUND]),
    ],
)
def test_a_container_on_the_cluster_has_the_seeds_of_its_users(name: str, roles: list[str]) -> None:
    container = containers(FILES[1])[name]
    settings = load({}, container["environment"], OF_FEATURES).settings
    used = {settings.nats_of(role) for role in roles if role != "gateway-api"}
    if name == "gateway":
        used.add(settings.nats_for_answers)
    seeds = {secret for secret in container["secrets"] if secret.endswith(".nk")}
    assert seeds == {f"{role}.nk" for role in roles}
    assert {parse_qs(address.partition("?")[2])["creds"][0] for address in used} == {f"/run/secrets/{seed}" for seed in seeds}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.slow
def test_a_compose_file_fits_the_schema_of_compose(file: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(IMAGE / file)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("file", FILES)
def test_a_compose_file_names_only_what_it_has(file: str) -> None:
    whole = compose(file)
    for name, container in containers(file).items():
        assert set(container.get("secrets", [])) <= set(whole["secrets"]), name
        assert {config["source"] for config in container.get("configs", [])} <= set(whole["configs"]), name
        assert set(container["networks"]) <= set(whole["networks"]), name
        assert set(container.get("depends_on", [])) <= set(whole["services"]), name
        volumes = [volume.split(":")[0] for volume in container.get("volumes", [])]
        assert [volume for volume in volumes if not volume.startswith("/") and volume not in whole["volumes"]] == [], name


@pytest.mark.parametrize("file", FILES)
def test_the_api_alone_is_published_and_to_this_machine(file: str) -> None:
    published = {name: container["ports"] for name, container in containers(file).items() if "ports" in container}
    assert published == {"gateway": ["127.0.0.1:8080:8080"]}
    assert compose(file)["networks"]["nats"] == {"internal": True}
    assert {name for name, container in containers(file).items() if "network_mode" in container} == set()


@pytest.mark.parametrize("file", FILES)
def test_each_container_has_a_read_only_root_and_no_capabilities(file: str) -> None:
    for name, container in containers(file).items():
        rights = {member: container.get(member) for member in ("read_only", "cap_drop", "security_opt", "privileged", "user")}
        assert rights == {
            "read_only": True,
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges:true"],
            "privileged": None,
            "user": None,
        }, name
        assert container["restart"] in {"unless-stopped", "on-failure"}, name


@pytest.fixture
def followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the page's commands have been typed that make the keys and configurations."""
    (tmp_path / "bin").mkdir()
    docker = tmp_path / "bin" / "docker"
    docker.write_text(DOCKER.replace("VERSION", VERSION).replace("PYTHON", sys.executable), encoding="utf-8")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{docker.parent}:/usr/bin:/bin")
    typed = [
        blocks("Ten minutes on one machine")[1],
        re.sub(r"^docker compose .*$", "", blocks("Three nats-servers with users")[0], flags=re.MULTILINE),
    ]
    subprocess.run(["bash", "-euc", "\n".join(typed)], cwd=tmp_path, check=True)
    return tmp_path


def test_the_page_makes_all_that_the_compose_files_take(followed: Path) -> None:
    for file in FILES:
        whole = compose(file)
        for named in [*whole["secrets"].values(), *whole["configs"].values()]:
            made = followed / named["file"]
            assert stat.S_IMODE(made.stat().st_mode) == 0o444, "the user of the image reads it"
    assert stat.S_IMODE((followed / "private").stat().st_mode) == 0o700, "and nobody else on this machine"
    configurations = sorted((followed / "private").glob("*.conf"))
    assert [made.name for made in configurations] == ["nats-1.conf", "nats-2.conf", "nats-3.conf", "nats.conf"]
    for made in configurations:
        checked = subprocess.run([program(), "-t", "-c", str(made)], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr
        assert 'store_dir: "/data"' in made.read_text(encoding="utf-8"), "where the volume is"
    [room] = {
        container["environment"]["OJS_STORAGE_LIMIT"]
        for name, container in containers(FILES[1]).items()
        if name in {"gateway", "services"}
    }
    assert f"OJS_STORAGE_LIMIT={room}\n" in (followed / "private" / "nats-1.conf").read_text(encoding="utf-8")
    seeds = followed.glob("private/nats-users/*.nk")
    assert not any(
        seed.read_text(encoding="ascii").strip() in text for seed in seeds for text in map(Path.read_text, configurations)
    )
