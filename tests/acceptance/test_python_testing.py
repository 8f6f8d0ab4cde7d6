"""`ojs_nats.testing` in a user's project, and the examples of its guide."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from support.examples import amount
from support.forked import PYTHON, completed
from support.system import environment
from support.walks import blocks

SHOP = Path(__file__).parents[1] / "fixtures" / "python" / "shop"
TESTS = Path(__file__).parents[1]
PLUGINS = ("ojs_nats.testing.plugin", "pytest_asyncio.plugin", "xdist.plugin", "no:cacheprovider")


def outcomes(folder: Path, *arguments: str, path: Path) -> dict[str, str]:
    """What pytest says of each test in a process of its own: nothing of those that pass.

    It loads the plugins alone that the tests use: all that are installed here would take half of its CPU.
    """
    report = folder / "report.xml"
    plugins = [word for name in PLUGINS for word in ("-p", name)]
    command = [*PYTHON, "-m", "pytest", *plugins, f"--junitxml={report}", *arguments]
    places = os.pathsep.join([str(path), os.environ.get("PYTHONPATH", "")])
    env = environment(PYTHONPATH=places, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    ended = completed(command, env, folder=folder, seconds=200)
    assert ended.returncode in {0, 1}, ended.stdout + ended.stderr
    cases = ET.parse(report).iter("testcase")
    return {case.attrib["name"]: "\n".join(each.attrib.get("message", "") for each in case) for case in cases}


def of_the_shop(folder: Path, files: Sequence[str], *arguments: str) -> dict[str, str]:
    return outcomes(folder, "-c", str(SHOP / "pytest.ini"), *(str(SHOP / file) for file in files), *arguments, path=TESTS)


WITHOUT_A_SERVER, WITH_ONE = "shop_tests.py", "server_tests.py"
ALL = amount() == "all"


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["0", *(["2"] if ALL else [])])
def test_a_user_s_tests_pass(tmp_path: Path, processes: str) -> None:
    said = of_the_shop(tmp_path, [WITHOUT_A_SERVER, *([WITH_ONE] if ALL else [])], "--numprocesses", processes)
    assert len(said) >= 20
    assert {name: message for name, message in said.items() if message} == {}


@pytest.mark.slow
def test_those_with_a_server_pass_side_by_side(tmp_path: Path) -> None:
    """Each process of pytest has a server of its own."""
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor() as both:
        for said in both.map(lambda folder: of_the_shop(folder, [WITH_ONE]), folders):
            assert said == dict.fromkeys(said, "")
            assert len(said) == 3


def test_assertions_that_fail_say_what_there_is(tmp_path: Path) -> None:
    said = of_the_shop(tmp_path, ["wrong_tests.py"])
    expected = {
        "test_another_argument": (
            r"no email\.send\(to='bob@example\.org'\) was enqueued\. Enqueued were:\n"
            r"  email\.send\(to='ada@example\.org'\) on email, available  <- to is 'ada@example\.org'\n"
            r"  order\.remind\(order=7\) on default, available  <- another type"
        ),
        "test_nothing_at_all": r"no email\.send, queue 'email' was enqueued\. Enqueued were:\n  \(none\)",
        "test_too_many": r"2 of email\.send were enqueued, not 1\..*scheduled, for 20",
        "test_one_that_should_not_be": r"1 of email\.send\('ada@example\.org'\) were enqueued, not none\.",
        "test_why_it_did_not_complete": r"no email\.send was completed\..*discarded: ValueError: nobody is no address",
        "test_no_such_parameter": r"has no parameter 'recipient'; its parameters are: to, template",
        "test_a_state": r"is discarded, not completed: ValueError: nobody is no address",
        "test_an_endless_drain": r"drain isn't done after 100ms, with \d+ attempts: does a job push itself",
    }
    assert said.keys() == expected.keys()
    for name, pattern in expected.items():
        assert re.search(pattern, said[name], re.DOTALL), said[name]


@pytest.mark.slow
def test_the_guide_s_examples(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "jobs.py").write_text(blocks("docs/python.md", "A first worker")[0], encoding="utf-8")
    tests = blocks("docs/testing-python.md", "Test what is pushed")[0]
    (tmp_path / "test_sign_up.py").write_text(tests, encoding="utf-8")
    shutil.copy(SHOP / "pytest.ini", tmp_path)
    said = outcomes(tmp_path, "-o", "ojs_app=app.jobs:app", "-o", "python_files=test_*.py", path=tmp_path)
    assert said == dict.fromkeys(re.findall(r"def (test_\w+)", tests), "")


def test_without_an_app_the_remedy_is_told(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(ojs_fake): ...\n", encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    [said] = outcomes(tmp_path, path=tmp_path).values()
    assert 'ojs_app = "app.jobs:app"' in said
