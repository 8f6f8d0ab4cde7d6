"""docs/reference/python.md has the package's docstrings as they are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import ojs_nats
from ojs_nats import errors, options, testing, worker

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "python.md"


def test_the_page_is_current() -> None:
    command = [sys.executable, str(ROOT / "script" / "python_reference.py"), "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_the_page_has_every_name_that_users_import() -> None:
    titles = set(re.findall(r"^#{3,4} (\w+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    classes = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type)}
    raised = {name for name, kind in classes.items() if issubclass(kind, ojs_nats.OjsError)}
    said = {name for name in ("Options", "Rate", "Retry", "Unique") if hasattr(options, name)}
    assert {*ojs_nats.__all__, *worker.__all__, *testing.__all__, *raised, *said} - titles == set()


def test_the_page_has_every_operation_of_a_client() -> None:
    text = PAGE.read_text(encoding="utf-8")
    client = ojs_nats.Client("http://127.0.0.1:1")
    lacking = [
        f"{type(group).__name__}.{name}"
        for group in vars(client).values()
        if type(group).__module__.startswith("ojs_nats.operations.")
        for name, method in vars(type(group)).items()
        if isinstance(method, FunctionType) and method.__module__ == type(group).__module__ and not name.startswith("_")
        if f"#### {type(group).__name__}.{name}\n" not in text
    ]
    assert lacking == []
