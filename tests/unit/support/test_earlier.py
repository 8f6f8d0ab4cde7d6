"""Earlier versions of the server come out of the checkout's history."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.earlier import NoSuchVersion, earlier

FIRST_OF_DRILLS = "ad3e059e80c1cc9530790b28c604c6ed89f5a5a2"


def test_an_earlier_version_runs_its_own_sources(tmp_path: Path) -> None:
    try:
        program = earlier(FIRST_OF_DRILLS, tmp_path)
    except NoSuchVersion as reason:
        pytest.skip(str(reason))
    there = "import ojs_nats; print(ojs_nats.__file__)"
    *python, _, _ = program
    found = subprocess.run([*python, "-c", there], capture_output=True, text=True, check=True).stdout
    assert Path(found.strip()).is_relative_to(tmp_path)


def test_a_commit_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoSuchVersion, match="needs commit 0000000, which this checkout doesn't have"):
        earlier("0" * 40, tmp_path)
