"""Set-up where something is missing (script/setup, script/dashboard_files): a sentence says what, and what helps."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
NPM_BEHIND_A_PROXY = """#!/bin/sh
echo tried >> "$TRIES"
echo "npm error code SELF_SIGNED_CERT_IN_CHAIN" >&2
exit 1
"""
UNKNOWN = "nothing-of-the-kind==1.0 --hash=sha256:" + "0" * 64 + "\n"
LIBRARIES = Path("services/ojs_dashboard")


class Checkout:
    """A folder with what set-up reads, and with a Python of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in (
            "script/setup",
            "script/dashboard_files",
            "pyproject.toml",
            "shared/pyproject.toml",
            LIBRARIES / "package-lock.json",
        ):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
        (folder / "requirements").mkdir()
        for name in ("pip", "server", "dev"):
            (folder / f"requirements/{name}.txt").write_text(UNKNOWN, encoding="utf-8")
        self.programs = folder / "programs"
        self.programs.mkdir()
        self.tries = folder / "tries"

    def has_python(self) -> None:
        python = self.folder / ".venv/bin/python"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
        python.chmod(0o755)

    def is_set_up(self) -> None:
        """All but the dashboard."""
        self.has_python()
        (self.folder / ".venv/installed-dev.txt").write_text(UNKNOWN, encoding="utf-8")
        shutil.copy(self.folder / "shared/pyproject.toml", self.folder / ".venv/installed-shared.toml")
        shutil.copy(self.folder / "pyproject.toml", self.folder / ".venv/installed-server.toml")
        (self.folder / ".venv/installed-in").write_text(f"{self.folder}\n", encoding="utf-8")

    def has_npm(self, text: str) -> None:
        npm = self.programs / "npm"
        npm.write_text(text, encoding="utf-8")
        npm.chmod(0o755)

    def set_up(self, *words: str, script: str = "setup", **variables: str) -> tuple[int, str]:
        usual = {"PATH": f"{self.programs}:{os.environ['PATH']}", "TRIES": str(self.tries), "HOME": str(self.folder)}
        ended = subprocess.run(
            [self.folder / "script" / script, *words], env=usual | variables, capture_output=True, text=True, check=False
        )
        return ended.returncode, ended.stdout + ended.stderr


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "checkout")


@pytest.mark.parametrize("changed", ["pyproject.toml", "shared/pyproject.toml"])
@pytest.mark.parametrize("line", ['name = "ojs-', 'version = "', "dependencies = ["])
def test_what_is_set_up_is_made_again_when_a_distribution_has_changed(checkout: Checkout, changed: str, line: str) -> None:
    checkout.is_set_up()
    project = checkout.folder / changed
    before = project.read_text(encoding="utf-8")
    assert f"\n{line}" in before
    project.write_text(before.replace(f"\n{line}", f"\n# changed\n{line}", 1), encoding="utf-8")
    code, said = checkout.set_up("dev", PIP_NO_INDEX="1")
    assert code == 1
    assert "sets up .venv for dev" in said


@pytest.mark.parametrize("wanted", ["server", "dev"])
def test_without_the_dashboard_s_libraries_the_rest_is_set_up_and_npm_s_reason_is_said(checkout: Checkout, wanted: str) -> None:
    checkout.is_set_up()
    checkout.has_npm(NPM_BEHIND_A_PROXY)
    code, said = checkout.set_up(wanted)
    assert code == 0, said
    assert "npm error code SELF_SIGNED_CERT_IN_CHAIN" in said
    assert "NODE_EXTRA_CA_CERTS=FILE" in said
    assert f"script/dashboard_files {wanted} tries it again" in said


def test_npm_is_not_asked_again_until_somebody_wants_it(checkout: Checkout) -> None:
    checkout.is_set_up()
    checkout.has_npm(NPM_BEHIND_A_PROXY)
    for _ in range(3):
        assert checkout.set_up("dev")[0] == 0
    assert checkout.tries.read_text() == "tried\n"
    assert checkout.set_up(script="dashboard_files")[0] == 1
    assert checkout.tries.read_text() == "tried\ntried\n"


def test_ci_needs_the_dashboard_s_libraries(checkout: Checkout) -> None:
    checkout.is_set_up()
    checkout.has_npm(NPM_BEHIND_A_PROXY)
    assert [checkout.set_up("dev", CI="true")[0] for _ in range(2)] == [1, 1]


def test_without_a_package_index_a_sentence_says_what_helps(checkout: Checkout) -> None:
    checkout.has_python()
    (checkout.folder / "wheels").mkdir()
    code, said = checkout.set_up("server", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(checkout.folder / "wheels"))
    *_, step, reason, sentence = said.splitlines()
    assert code == 1
    assert step == "script/setup: pip itself (seconds)"
    assert reason.startswith("ERROR: No matching distribution found for nothing-of-the-kind==1.0")
    assert "pip finds no package index that has the packages" in sentence
    assert "docs/offline.md" in sentence
    assert (ROOT / "docs/offline.md").exists()


def test_a_python_that_is_not_there_or_is_none_is_named(checkout: Checkout) -> None:
    code, said = checkout.set_up("server", PYTHON="/nowhere/python3")
    assert code == 1
    assert said == (
        "ojs-nats needs Python 3.11 or newer, but there is no /nowhere/python3: install one, or name it with "
        "PYTHON=/path/to/python\n"
    )
    assert "but /bin/false is no Python" in checkout.set_up("server", PYTHON="/bin/false")[1]


def test_a_folder_that_can_not_be_written_to_is_named(checkout: Checkout) -> None:
    (checkout.folder / ".venv").write_text("in its way", encoding="utf-8")
    code, said = checkout.set_up("server", PYTHON=sys.executable)
    folder = checkout.folder
    said_so = f"script/setup can't write to {folder}/.venv: run it as the user that owns {folder}, or in a copy of your own"
    assert (code, said) == (1, f"{said_so}\n")
