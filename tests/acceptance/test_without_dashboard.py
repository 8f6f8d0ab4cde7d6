"""A server that was installed without the dashboard's libraries says so."""

from __future__ import annotations

import os
import shutil
import sys
import urllib.request
from pathlib import Path

import pytest

import ojs_dashboard
from support.system import TOGETHER, System, environment


@pytest.mark.slow
def test_a_server_without_its_dashboard_names_no_address_of_it(tmp_path: Path) -> None:
    """The package comes from a folder that is as `pip install` leaves it without the libraries."""
    source = Path(ojs_dashboard.__file__).parent
    left_out = shutil.ignore_patterns("libraries", "node_modules")
    shutil.copytree(source, tmp_path / "installed" / "ojs_dashboard", ignore=left_out)
    env = environment(PYTHONPATH=os.pathsep.join((str(tmp_path / "installed"), os.environ.get("PYTHONPATH", ""))))
    program = ("env", sys.executable, "-m", "ojs_command", "dev")  # which no fork stands for
    with System.started(tmp_path / "own", TOGETHER, env=env, program=program) as system:
        system.wait_ready()
        assert [line.get("dashboard") for line in system.events("ready")] == [None] * len(system.events("ready"))
        [told] = system.events("the dashboard is missing")
        assert "script/dashboard_files" in told["reason"]
        page = urllib.request.Request(f"{system.url}/", headers={"Accept": "text/html"})
        with urllib.request.urlopen(page, timeout=60) as answer:
            assert "script/dashboard_files" in answer.read().decode()
