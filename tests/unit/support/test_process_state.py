"""State of the whole process that a test leaves behind (tests/support/process_state.py)."""

from __future__ import annotations

import asyncio
import importlib
import io
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from support import process_state

ROOT = Path(__file__).resolve().parents[3]
LOG = structlog.get_logger()


class Policy:
    pass


def configures_structlog() -> None:
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(io.StringIO()))


def changes_the_list_of_processors() -> None:
    structlog.get_config()["processors"].pop()


def caches_a_logger() -> None:
    before = structlog.get_config()
    theirs = structlog.PrintLoggerFactory(io.StringIO())
    structlog.configure([structlog.processors.JSONRenderer()], logger_factory=theirs, cache_logger_on_first_use=True)
    LOG.warning("a line")
    structlog.configure(**before)


def adds_a_handler() -> None:
    logging.getLogger().addHandler(logging.StreamHandler())


def sets_a_level() -> None:
    logging.getLogger("ojs_nats.of_a_test").setLevel(logging.DEBUG)


def disables_logging() -> None:
    logging.disable(logging.ERROR)


def captures_warnings() -> None:
    logging.captureWarnings(capture=True)


def sets_a_variable() -> None:
    os.environ["OJS_OF_A_TEST"] = "1"


def removes_a_variable() -> None:
    del os.environ["PATH"]


def sets_a_policy() -> None:
    vars(asyncio.events)["_event_loop_policy"] = Policy()  # as `set_event_loop_policy` does, which is deprecated


def handles_a_signal() -> None:
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)


def blocks_a_signal() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})


def changes_its_folder() -> None:
    os.chdir("/")


def adds_to_the_path() -> None:
    sys.path.insert(0, "/nowhere")


def imports_a_module() -> None:
    folder = Path(os.environ["OF_A_TEST"])
    (folder / "made_by_a_test.py").touch()
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    importlib.import_module("made_by_a_test")
    sys.path.pop(0)


LEAVING = {
    configures_structlog: "structlog's configuration: logger_factory",
    changes_the_list_of_processors: "structlog's configuration: processors in the list",
    caches_a_logger: "loggers that structlog has cached: ",
    adds_a_handler: "logging: root",
    sets_a_level: "logging: ojs_nats.of_a_test",
    disables_logging: "logging: logging.disable",
    captures_warnings: "logging: captureWarnings",
    sets_a_variable: "os.environ: OJS_OF_A_TEST",
    removes_a_variable: "os.environ: PATH",
    sets_a_policy: "the policy of event loops: policy",
    handles_a_signal: "handlers of signals: SIGUSR2",
    blocks_a_signal: "handlers of signals: those that are blocked",
    changes_its_folder: "the working folder: folder",
    adds_to_the_path: "sys.path: ",
    imports_a_module: "sys.modules: made_by_a_test",
}


@pytest.fixture
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_A_TEST", str(tmp_path))


@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize("leaves", LEAVING, ids=lambda leaves: leaves.__name__)
def test_what_is_left_is_named_and_put_back(leaves: Callable[[], None]) -> None:
    before = process_state.Taken()
    leaves()
    assert any(line.startswith(LEAVING[leaves]) for line in before.restore())
    assert before.restore() == []


def test_nothing_is_named_that_a_test_has_put_back() -> None:
    before = process_state.Taken()
    with capture_logs():
        LOG.warning("a line")
    os.environ["OJS_OF_A_TEST"] = "1"
    del os.environ["OJS_OF_A_TEST"]
    assert before.restore() == []


def test_a_logger_that_was_cached_is_heard_again() -> None:
    before = process_state.Taken()
    caches_a_logger()
    with capture_logs() as deaf:
        LOG.warning("lost")
    before.restore()
    with capture_logs() as lines:
        LOG.warning("heard")
    assert (deaf, [line["event"] for line in lines]) == ([], ["heard"])


LEAVES = """
import os, pytest

@pytest.fixture(scope={scope!r})
def left():
    os.environ["OJS_OF_A_TEST"] = "1"

def test_leaves(left):
    pass
"""
CLEAN = """
import os

def test_next():
    assert "OJS_OF_A_TEST" not in os.environ
"""


def test_a_test_that_leaves_some_fails_and_so_does_a_file_and_those_behind_them_pass(tmp_path: Path) -> None:
    files = {"1": LEAVES.format(scope="function"), "2": CLEAN, "3": LEAVES.format(scope="module"), "4": CLEAN}
    for name, text in files.items():
        (tmp_path / f"test_{name}.py").write_text(text, encoding="utf-8")
    ours = ["-p", "conftest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path)]
    options = ["-n0", "-q", "--order", "fixed", "-p", "no:cacheprovider", "-rN", *ours]
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    said = "This test leaves state of the whole process changed:\n  os.environ: OJS_OF_A_TEST (use monkeypatch)"
    assert (ended.returncode, ended.stdout.count(said)) == (1, 2), ended.stdout
    assert "4 passed, 2 errors" in ended.stdout
