from __future__ import annotations

from pathlib import Path

import pytest

from ojs_engine.base.problems import StartupProblem
from ojs_index.sqlite.file import IndexFile


def test_each_takes_a_file_of_its_own_and_the_next_takes_what_is_free(tmp_path: Path) -> None:
    first, second = IndexFile(tmp_path / "new"), IndexFile(tmp_path / "new")
    assert first.take().name == "index-0.sqlite"
    assert second.take().name == "index-1.sqlite"
    first.release()
    assert IndexFile(tmp_path / "new").take().name == "index-0.sqlite"


def test_a_full_folder_is_told(tmp_path: Path) -> None:
    place = IndexFile(tmp_path, 1)
    place.take()
    with pytest.raises(StartupProblem, match="--projector-data"):
        IndexFile(tmp_path, 1).take()


def test_a_folder_that_can_not_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartupProblem, match="file"):
        IndexFile(tmp_path / "file").take()
