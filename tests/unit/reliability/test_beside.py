"""Runs side by side: what they return, and how all of them end."""

from __future__ import annotations

import os
import signal
import sys
import time
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import pytest

from reliability.beside import Part, PartFailed, beside
from reliability.run import Result
from support.processes import runs
from support.waiting import until

LONG_S: Final = 120.0


def result(name: str) -> Result:
    return Result(
        scenario=name,
        seed=1,
        seconds=1.0,
        faults=0,
        jobs=0,
        workflows=0,
        acknowledged=0,
        unanswered=0,
        lost=0,
        doubled=0,
        otherwise=0,
        wrong=[],
        gap_s=0.0,
        recovery_s=0.0,
        late_s=0.0,
        finds=0,
    )


def meets(folder: Path, own: str, other: str) -> list[Result]:
    """End when the other one runs, too."""
    (folder / own).touch()
    until((folder / other).exists)
    return [result(own), result(f"{own} again")]


def test_all_run_at_once_and_their_results_come_in_order(tmp_path: Path) -> None:
    parts: list[Part] = [partial(meets, tmp_path, "a", "b"), partial(meets, tmp_path, "b", "a")]
    assert [one.scenario for one in beside(parts)] == ["a", "a again", "b", "b again"]


def fails() -> list[Result]:
    sys.exit("on purpose")


def test_one_that_fails_lets_the_other_end(tmp_path: Path) -> None:
    def goes_on() -> list[Result]:
        (tmp_path / "ended").touch()
        return []

    with pytest.raises(PartFailed):
        beside([fails, goes_on])
    assert (tmp_path / "ended").exists()


def lasts(folder: Path, name: str) -> list[Result]:
    """Take a while to end, as one does that stops processes."""
    try:
        (folder / name).write_text(str(os.getpid()), encoding="utf-8")
        time.sleep(LONG_S)
    finally:
        time.sleep(0.1)
        (folder / f"{name} ended").touch()
    return []


def both(folder: Path) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        beside([partial(lasts, folder, "a"), partial(lasts, folder, "b")])
    except KeyboardInterrupt:
        sys.exit(130)


def test_ctrl_c_ends_all_and_waits_for_them(tmp_path: Path) -> None:
    above = get_context("fork").Process(target=both, args=(tmp_path,))
    above.start()
    until(lambda: all((tmp_path / name).exists() and (tmp_path / name).read_text(encoding="utf-8") for name in "ab"))
    os.kill(above.ident or 0, signal.SIGINT)
    above.join(LONG_S)
    assert above.exitcode == 130
    for name in "ab":
        assert (tmp_path / f"{name} ended").exists()
        assert not runs(int((tmp_path / name).read_text(encoding="utf-8")))
