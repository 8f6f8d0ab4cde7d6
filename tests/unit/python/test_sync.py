"""The client for code without an event loop, and what type checkers know of it."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ojs_nats.operations.jobs import Jobs
from ojs_nats.sync import SyncClient, SyncJobHandle, SyncWorkflowHandle

ROOT = Path(__file__).parents[3]
STUB = ast.parse((ROOT / "shared" / "ojs_nats" / "sync.pyi").read_text(encoding="utf-8"))
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}


@pytest.fixture
def client() -> Iterator[SyncClient]:
    with SyncClient("http://127.0.0.1:1", retry_for=0) as made:
        yield made


def test_the_stub_is_current() -> None:
    command = [sys.executable, str(ROOT / "script" / "sync_stub.py"), "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_what_type_checkers_know_of_is_there(client: SyncClient) -> None:
    groups = {
        node.annotation.id: getattr(client, node.target.id)
        for node in CLASSES["SyncClient"].body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(node.annotation, ast.Name)
    }
    kinds: dict[str, Any] = {name: type(group) for name, group in groups.items() if name.startswith("Sync")}
    kinds |= {"SyncClient": SyncClient, "SyncJobHandle": SyncJobHandle, "SyncWorkflowHandle": SyncWorkflowHandle}
    assert kinds.keys() == CLASSES.keys()
    for name, kind in kinds.items():
        said = {each.name: _names(each) for each in CLASSES[name].body if isinstance(each, ast.FunctionDef)}
        found = {each: [*inspect.signature(getattr(kind, each)).parameters] for each in said}
        assert found == said, name


def _names(method: ast.FunctionDef) -> list[str]:
    arguments = method.args
    named = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return named if arguments.kwarg is None else [*named, arguments.kwarg.arg]


def test_an_attribute_that_the_client_has_not_is_an_error(client: SyncClient) -> None:
    for name in ("job_s", "transport", "_private"):
        with pytest.raises(AttributeError, match=f"SyncClient has no attribute '{name}'"):
            getattr(client, name)


def test_help_of_a_method_is_that_of_the_method_that_it_waits_for(client: SyncClient) -> None:
    assert inspect.getdoc(client.jobs.get) == inspect.getdoc(Jobs.get)
    assert not inspect.iscoroutinefunction(client.jobs.get)
