"""Failures of a run, written down as they come: `--failures FILE` of pytest, which script/test_again.py reads.

The file has a JSON object a line: the `test`, and what its failure `said`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--failures", type=Path, metavar="FILE", help="write each failure there, as a line of JSON")


def pytest_configure(config: pytest.Config) -> None:
    file = config.getoption("--failures")
    if file is not None and not hasattr(config, "workerinput"):  # the one process that gets all reports
        file.write_bytes(b"")
        config.pluginmanager.register(_Writing(file))


class _Writing:
    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._write(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._write(report)

    def _write(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if not report.failed:
            return
        sections = "".join(f"\n{title}\n{text}" for title, text in report.sections)
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"test": report.nodeid, "said": report.longreprtext + sections}) + "\n")
