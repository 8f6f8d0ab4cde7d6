from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest

from ojs_command.folder import DataFolder, FolderTimings, RunState
from ojs_engine.base.problems import StartupProblem

STATE = RunState(pid=7, ready=True, url="http://127.0.0.1:1", nats_url="nats://a:b@h", children={"gateway": 8}, urls={})


def test_a_folder_is_made_and_let_go(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "a" / "b")
    with folder.claimed():
        folder.write(STATE)
        assert msgspec.json.decode((folder.path / "run.json").read_bytes(), type=RunState) == STATE
        assert (folder.path / "run.json").stat().st_mode & 0o077 == 0
    assert not (folder.path / "run.json").exists()
    with folder.claimed():
        pass


def test_a_folder_in_use_is_refused_with_who_uses_it(tmp_path: Path) -> None:
    first = DataFolder(tmp_path)
    with first.claimed():
        with pytest.raises(StartupProblem, match=r"another 'ojs-nats dev' \(starting\) uses"), DataFolder(tmp_path).claimed():
            pass
        first.write(STATE)
        with pytest.raises(StartupProblem, match=r"\(pid 7, http://127.0.0.1:1\)"), DataFolder(tmp_path).claimed():
            pass
        assert (tmp_path / "run.json").exists()


@pytest.mark.parametrize("torn", ["{", "[]"])
def test_a_folder_in_use_is_refused_whatever_its_file_says(tmp_path: Path, torn: str) -> None:
    with DataFolder(tmp_path).claimed():
        (tmp_path / "run.json").write_text(torn)
        with pytest.raises(StartupProblem, match=r"\(starting\) uses"), DataFolder(tmp_path).claimed():
            pass


def test_a_nats_server_left_behind_is_told(tmp_path: Path) -> None:
    with DataFolder(tmp_path).claimed() as lock:
        left_behind = subprocess.Popen(["sleep", "60"], pass_fds=(lock,))
    (tmp_path / "nats-server.pid").write_text(f"{left_behind.pid}\n")
    try:
        words = rf"the nats-server of an earlier run \(pid {left_behind.pid}\) still works in"
        with pytest.raises(StartupProblem, match=words), DataFolder(tmp_path, FolderTimings(server_s=0.1)).claimed():
            pass
    finally:
        left_behind.kill()
        left_behind.wait()
    with DataFolder(tmp_path).claimed():
        pass


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartupProblem, match="can't make the folder"), DataFolder(tmp_path / "file" / "data").claimed():
        pass


@pytest.mark.parametrize("name", ["dev.lock", "run.json"])
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(StartupProblem, match="can't write in"), DataFolder(tmp_path).claimed():
        pass
