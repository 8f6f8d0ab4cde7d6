"""What the package shows: its public modules and names are those of a file, and their objects are found by them."""

from __future__ import annotations

import importlib
import pickle
import re
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

import pytest

from ojs_nats import App, Client, RateLimit, Retry, Unique
from ojs_nats.client import JobHandle
from ojs_nats.errors import DuplicateError, JobFailed, OjsError, WorkflowFailed
from ojs_nats.jobs import Job, JobError, JobRequest
from ojs_nats.options import Rate
from ojs_nats.sync import SyncJobHandle
from ojs_nats.worker import Discard, RetryLater, Snooze
from ojs_nats.worker._outcome import FailedInProcess, NotHere, Unfit
from support.tables import each

ROOT: Final = Path(__file__).parents[3]
WRITTEN: Final = Path(__file__).with_name("surface.txt").read_text(encoding="utf-8")
MODULES: Final = re.findall(r"^ojs_nats\S*", WRITTEN, re.MULTILINE)

ANY: Final = {
    "ojs_nats.definitions def __call__(self, *args: Any, **kwargs: Any)": "the four kinds know",
    "ojs_nats.middleware def decoded(self, value: Any)": "JSON",
    "ojs_nats.testing.plugin @pytest.fixture def ojs_app(pytestconfig: pytest.Config)": "an App",
    "ojs_nats.worker @property def checkpoint(self)": "JSON that the application saved",
    "ojs_nats.worker @property def parent_results(self)": "JSON that other handlers returned, in any language",
}
"""What returns something of any type, each with why."""


def public() -> Iterator[tuple[str, str, Any]]:
    """Yield each public module's classes and functions by name: those that it has in `__all__`."""
    for name in MODULES:
        module = importlib.import_module(name)
        for key, value in ((key, getattr(module, key)) for key in getattr(module, "__all__", ())):
            if isinstance(getattr(value, "__module__", None), str):
                yield name, key, value


def test_the_public_names_are_those_of_the_file() -> None:
    """Run script/python_surface.py to write them anew, and say in the CHANGELOG what users see of it."""
    command = [sys.executable, str(ROOT / "script" / "python_surface.py"), "--check"]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_everything_public_says_a_public_module() -> None:
    found = list(public())
    assert [f"{module}.{name}: {value.__module__}" for module, name, value in found if "._" in value.__module__] == []
    assert len(found) > 200


def test_what_is_not_public_begins_with_an_underscore() -> None:
    """In public modules: type variables and loggers aside, what they define they show."""
    hidden = []
    for name in MODULES:
        module = importlib.import_module(name)
        defined = {key for key, value in vars(module).items() if getattr(value, "__module__", None) == name}
        defined -= {key for key, value in vars(module).items() if isinstance(value, TypeVar | ParamSpec)}
        hidden += [f"{name}.{key}" for key in defined - set(getattr(module, "__all__", ())) if not key.startswith("_")]
    assert hidden == []


def test_a_class_is_found_by_what_it_says() -> None:
    """So that it can be pickled, and a traceback names something to import."""
    kinds = [(f"{module}.{name}", value) for module, name, value in public() if isinstance(value, type)]
    lost = [
        name for name, kind in kinds if getattr(importlib.import_module(kind.__module__), kind.__qualname__, None) is not kind
    ]
    assert lost == []


def subclasses(kind: type[OjsError]) -> Iterator[type[OjsError]]:
    for below in kind.__subclasses__():
        yield below
        yield from subclasses(below)


def test_each_error_is_pickled_with_what_it_says() -> None:
    for module in MODULES:
        importlib.import_module(module)
    every: list[type[OjsError]] = [OjsError, *subclasses(OjsError)]
    kinds = [kind for kind in every if kind.__module__ in MODULES]
    assert len(kinds) > 20
    for kind in kinds:
        error = kind("why")
        error.code, error.status, error.details, error.retry_after_s = "a_code", 409, {"field": ["a"]}, 2.5
        copied = pickle.loads(pickle.dumps(error))
        assert (type(copied), str(copied), vars(copied)) == (kind, "why", vars(error))


@each(
    "error",
    [
        JobFailed("why", JobError("m", code="c")),
        WorkflowFailed("why", []),
        Discard("why"),
        RetryLater("5m", "why"),
        Snooze(1.5, "why"),
        NotHere("why", 1_000),
        Unfit("why", newer=True),
        FailedInProcess({"error": {"type": "ValueError", "message": "why"}}),
    ],
)
def test_an_error_of_other_arguments_is_pickled_as_it_is(error: Exception) -> None:
    copied = pickle.loads(pickle.dumps(error))
    assert (type(copied), str(copied), copied.args, vars(copied)) == (type(error), str(error), error.args, vars(error))


@each(
    "value",
    [
        Retry(5, initial_interval="1s"),
        Unique(keys=("type",), period="1h"),
        RateLimit("a", rate=Rate(10, "1m")),
        JobRequest("a.b", (1, "two"), {"queue": "a"}),
        Job(id="1", type="a.b", state="completed", error=JobError("why")),
    ],
)
def test_a_value_is_pickled_and_shown_with_its_name(value: object) -> None:
    assert pickle.loads(pickle.dumps(value)) == value
    assert repr(value).startswith(f"{type(value).__name__}(")


def test_a_traceback_names_the_error_as_it_is_imported() -> None:
    with pytest.raises(DuplicateError) as caught:
        raise DuplicateError("it is there")
    assert traceback.format_exception_only(caught.value) == ["ojs_nats.errors.DuplicateError: it is there\n"]


def test_handles_and_definitions_show_what_they_are_of() -> None:
    app = App("http://127.0.0.1:9")
    handle: JobHandle[int] = JobHandle(Client("http://127.0.0.1:9"), "an-id")
    synchronous: Any = SyncJobHandle
    assert [repr(handle), repr(synchronous(handle))] == ["JobHandle(an-id)", "SyncJobHandle(an-id)"]
    assert repr(app.job("a.b")(named)) == f"<job a.b: {__name__}.named>"


def named() -> None: ...


def test_what_users_get_is_of_a_type_where_it_is_known() -> None:
    parts: dict[str, str] = dict(re.findall(r"^(ojs_nats\S*)\n((?: {4}.*\n)*)", WRITTEN, re.MULTILINE))
    returned = [f"{name} {line.strip()}" for name in MODULES for line in parts[name].splitlines() if line.endswith(" -> Any")]
    assert [line.removesuffix(" -> Any") for line in returned] == list(ANY)
