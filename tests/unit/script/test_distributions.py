"""The two distributions of this repository (pyproject.toml, shared/pyproject.toml): what they say agrees."""

from __future__ import annotations

import tomllib
from typing import Any

from support.walks import ROOT


def _project(folder: str) -> dict[str, Any]:
    read: dict[str, Any] = tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return read


CLIENT, SERVER = _project("shared"), _project(".")


def test_both_have_one_version_and_need_each_other_in_it() -> None:
    version = CLIENT["version"]
    assert SERVER["version"] == version
    assert f"{CLIENT['name']}=={version}" in SERVER["dependencies"]
    assert CLIENT["optional-dependencies"]["cli"] == [f"{SERVER['name']}=={version}"]


def test_both_are_for_the_same_pythons_under_the_same_licence() -> None:
    for member in ("requires-python", "license", "license-files"):
        assert CLIENT[member] == SERVER[member], member
    pythons = [[line for line in project["classifiers"] if "Python ::" in line] for project in (CLIENT, SERVER)]
    assert pythons[0] == pythons[1]
    assert (ROOT / "shared" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
