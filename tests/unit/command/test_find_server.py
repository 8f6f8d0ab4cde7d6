from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ojs_command.embedded import find_server
from ojs_engine.base.problems import StartupProblem


def program(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture(autouse=True)
def _nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))


def test_the_one_of_the_wheel_comes_first_then_the_path(tmp_path: Path) -> None:
    on_path = program(tmp_path / "path" / "nats-server")
    assert find_server("auto") == on_path
    beside = program(tmp_path / "bin" / "nats-server")
    assert find_server("auto") == beside
    assert find_server("nats-server") == on_path
    assert find_server(beside) == beside


def test_without_any_the_remedies_are_told() -> None:
    with pytest.raises(StartupProblem, match=r"'ojs-nats-server\[embedded\]', name one with --nats-server, or use"):
        find_server("auto")


def test_a_named_one_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(StartupProblem, match="is no program that can be run; correct --nats-server"):
        find_server(str(tmp_path / "none"))
