"""Handlers that end in strange ways, in a coroutine, a thread and a process: the server hears how, and the worker goes on."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import pytest

from support.examples import amount
from support.python_ends import RETURNED
from support.python_worker import WorkerProcess, completed, exits, installed, pushed
from support.system import System
from support.waiting import until

WAYS: Final = ("http", "nats")
KINDS: Final = ("coroutine", "thread", "process")
ALL: Final = amount() == "all"
each_kind = pytest.mark.parametrize(
    ("side", "kind"),
    [
        pytest.param(way, kind, marks=() if way == "http" or kind == "coroutine" else pytest.mark.slow)
        for way in WAYS
        for kind in KINDS
        if ALL or way == "http" or kind == "coroutine"
    ],
    indirect=["side"],
)
"""The ends of coroutines go both ways to the server, those of threads and processes by HTTP; all go both ways where all
examples are asked for.
"""


def of_processes(name: str, *cases: str, daily: int, rare: Sequence[str] = ()) -> pytest.MarkDecorator:
    """For what becomes of the process, which starts anew each time: nothing of it goes another way to the server.

    The first cases are shown every day, by HTTP. The others take turns, unless all examples are asked for, which the rare ones
    wait for: they end a process as others do.
    """
    return pytest.mark.parametrize(
        ("side", name),
        [
            pytest.param(way, case, id=f"{way}-{case[:20]}", marks=() if way == "http" and place < daily else pytest.mark.slow)
            for place, case in enumerate([*cases, *(rare if ALL else ())])
            for way in WAYS
            if ALL or way == WAYS[0 if place < daily else place % len(WAYS)]
        ],
        indirect=["side"],
    )


MOST_BYTES: Final = 100_000
"""What the server keeps of an error, at most."""

RAISED: Final = {
    "a BaseException is raised": ("raises a BaseException", "Panic", "index out of bounds"),
    "an error has a number as its text": ("raises a number as text", "Numbered", "its text can't be made"),
    "an error's text raises a BaseException": ("raises an error without a text", "Unprintable", "its text can't be made"),
    "an error hides its class": ("raises an error without a class", "Classless", ""),
    "an error's class hides its name": ("raises an error without a name", "Nameless", ""),
    "an error has half a surrogate pair": ("raises half a surrogate pair", "FileNotFoundError", r"invoice-\udce9.pdf"),
    "an error has five megabytes": ("raises five megabytes", "ValueError", "row row"),
    "an error is its own cause": ("raises a cause that is itself", "ValueError", "round and round"),
    "several errors are raised as one": ("raises a group", "ExceptionGroup", "several"),
    "a generator's end is raised": ("raises GeneratorExit", "GeneratorExit", ""),
    "next() finds nothing": ("raises StopIteration", "RuntimeError", "StopIteration"),
    "the handler calls exit()": ("raises exit", "RuntimeError", "exit(3)"),
    "the handler says that it is cancelled": ("raises cancelled", "CancelledError", ""),
    "the handler puts its job off for a century": ("raises a pause of a century", "ValueError", "ten years"),
    "the handler calls itself without end": ("recursion", "RecursionError", "recursion"),
}
UNWRITABLE: Final = {
    "a result is an object": ("an object", {"TypeError"}),
    "a result is an object without a repr": ("an object without a repr", {"TypeError"}),
    "a result has half a surrogate pair": ("half a surrogate pair", {"ValueError"}),
    "a result has a tuple as key": ("a tuple as key", {"TypeError"}),
    "a result has None as key": ("None as key", {"TypeError"}),
    "a result has a boolean as key": ("a boolean as key", {"TypeError"}),
    "a result isn't a number": ("not a number", {"ValueError"}),
    "a result is infinite": ("infinity", {"ValueError"}),
    "a result is nested without end": ("nested without end", {"ValueError", "RecursionError"}),
}


class Side(NamedTuple):
    """A worker of one place that serves a queue of its own."""

    system: System
    worker: WorkerProcess
    queue: str

    def ended(self, job_type: str, *args: object) -> dict[str, Any]:
        """Push it and a usual job behind it, and return what became of it once the usual one has run."""
        return self.all_ended(job_type, [args])[0]

    def all_ended(self, job_type: str, arguments: Sequence[Sequence[object]]) -> list[dict[str, Any]]:
        """The same of several, each with a usual job behind it."""
        options = {"queue": self.queue, "retry": {"max_attempts": 1}}
        jobs = [
            {"type": each, "args": given, "options": options}
            for args in arguments
            for each, given in ((job_type, args), ("hostile.well", ()))
        ]
        ids = [job["id"] for job in self.system.call("POST", "/jobs/batch", {"jobs": jobs}, 201)["jobs"]]
        for usual in reversed(ids[1::2]):  # the last one runs when all others have

            def it_has_run(usual: str = usual) -> bool:
                return not self.worker.has_ended() and self.system.job(usual)["state"] == "completed"

            until(it_has_run, 60)
            assert self.system.job(usual)["result"] == 1

        def nothing_is_active() -> bool:
            page = self.system.call("GET", f"/jobs?queue={self.queue}&state=active&limit=1")
            return bool(page["pagination"]["total"] == 0)

        until(nothing_is_active)
        return [self.system.job(bad) for bad in ids[::2]]


@pytest.fixture(scope="module")
def sides(_shared_system: System, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Side]]:
    system = _shared_system
    system.reset()
    begun: dict[str, Side] = {}

    def side(way: str) -> Side:
        if way not in begun:
            folder, queue = tmp_path_factory.mktemp(way), f"hostile.{way}"
            installed("hostile", folder)
            given = ("--concurrency", "1", "--processes", "1", "--queues", queue)
            url = system.nats_url if way == "nats" else system.url
            begun[way] = Side(system, WorkerProcess.started(folder, "hostile", *given, url=url), queue)
        return begun[way]

    yield side
    for each in begun.values():
        with exits(each.worker):
            each.worker.signal(signal.SIGTERM)


@pytest.fixture(params=WAYS)
def side(sides: Callable[[str], Side], request: pytest.FixtureRequest) -> Side:
    return sides(request.param)


def failed_once(job: dict[str, Any], types: set[str]) -> str:
    """See that its only attempt failed with an error of this type, and return its text."""
    assert (job["state"], job["attempt"]) == ("discarded", 1)
    [error] = job["errors"]
    assert error["type"] in types
    assert len(msgspec.json.encode(job["errors"])) < MOST_BYTES
    return str(error["message"])


@each_kind
def test_an_attempt_fails_with_its_error_where(side: Side, kind: str) -> None:
    """Several ways at once: what the one leaves behind, the next one meets."""
    jobs = side.all_ended(f"hostile.{kind}", [[name] for name, _, _ in RAISED.values()])
    for (way, (_, error, said)), job in zip(RAISED.items(), jobs, strict=True):
        assert said in failed_once(job, {error}), way


@each_kind
def test_an_attempt_fails_where_json_can_t_say_what_it_returned(side: Side, kind: str) -> None:
    jobs = side.all_ended(f"hostile.{kind}", [[name] for name, _ in UNWRITABLE.values()])
    for (_, errors), job in zip(UNWRITABLE.values(), jobs, strict=True):
        failed_once(job, errors)


@each_kind
def test_a_line_that_can_t_be_logged_harms_no_attempt(side: Side, kind: str) -> None:
    job = side.ended(f"hostile.log_{kind}")
    assert (job["state"], job.get("result")) == ("completed", "logged"), job


@of_processes("written", "ff" * 64, "0000000000000002" + b"{}".hex(), "0000000000100000", daily=2, rare=["00" * 64, "00"])
def test_a_process_that_writes_into_what_isn_t_its_own_fails_its_attempt_alone(side: Side, written: str) -> None:
    failed_once(side.ended("hostile.scribble", written), {"ProcessDied"})


@each_kind
def test_a_result_arrives_as_json_says_it(side: Side, kind: str) -> None:
    jobs = side.all_ended(f"hostile.{kind}", [[name] for name in RETURNED])
    assert [job.get("result") for job in jobs] == [read for _, read in RETURNED.values()]


@each_kind
def test_numbers_as_keys_are_numbers_to_the_handler(side: Side, kind: str) -> None:
    assert side.ended(f"hostile.keyed_{kind}", {"1": "a"})["result"] == ["1 is int"]


@each_kind
def test_what_json_can_t_say_fails_an_attempt_that_reports_it(side: Side, kind: str) -> None:
    for job in side.all_ended(f"hostile.nan_{kind}", [["progress"], ["checkpoint"]]):
        assert "nan" in failed_once(job, {"ValueError"})


def test_a_job_that_panics_is_tried_as_often_as_its_policy_says(side: Side) -> None:
    twice = {"max_attempts": 2, "initial_interval_ms": 10, "jitter": False}
    job_id = pushed(side.system, "hostile.coroutine", "raises a BaseException", queue=side.queue, retry=twice)
    usual = completed(side.system, pushed(side.system, "hostile.well", queue=side.queue))
    assert usual["result"] == 1

    def it_has_failed_for_good() -> bool:
        return bool(side.system.job(job_id)["state"] == "discarded")

    until(it_has_failed_for_good, 60)
    assert [error["type"] for error in side.system.job(job_id)["errors"]] == ["Panic"] * 2


TASKS: Final = {
    "exits and is awaited": "failed",
    "exits in a group": "failed",
    "exits in a thread of the loop's": "failed",
    "exits unheard": "went on",
    "exits in a callback": "went on",
    "stops the loop": "went on",
}
"""What a handler's task does, and what becomes of the handler."""


def test_no_task_of_a_handler_ends_the_worker(side: Side) -> None:
    jobs = side.all_ended("hostile.task", [[how] for how in TASKS])
    for (how, end), job in zip(TASKS.items(), jobs, strict=True):
        if end == "failed":
            assert failed_once(job, {"RuntimeError"}) == "the handler called exit(3)", how
        else:
            assert (job["state"], job.get("result")) == ("completed", end), how


def test_what_is_for_plain_functions_fails_a_coroutine_and_holds_up_nobody(side: Side) -> None:
    for job in side.all_ended("hostile.sync", [["progress"], ["checkpoint"]]):
        assert "a coroutine awaits progress and save" in failed_once(job, {"RuntimeError"})


def test_a_thread_with_a_loop_of_its_own_reports_from_there(side: Side) -> None:
    assert side.ended("hostile.own_loop")["result"] == "saved"
    refused = [event["job_type"] for event in side.worker.events("progress could not be reported")]
    assert "hostile.own_loop" not in refused


def test_an_async_handler_that_a_decorator_made_plain_runs(side: Side) -> None:
    assert side.ended("hostile.wrapped", "a value")["result"] == RETURNED["a value"][1]
    failed_once(side.ended("hostile.wrapped", "raises a BaseException"), {"Panic"})


@of_processes("how", "forks", daily=1, rare=["starts a program"])
def test_a_process_that_is_killed_fails_its_attempt_though_another_has_its_files(side: Side, how: str) -> None:
    assert "SIGKILL" in failed_once(side.ended("hostile.orphan", how), {"ProcessDied"})


@pytest.mark.parametrize("side", ["http", *([pytest.param("nats", marks=pytest.mark.slow)] if ALL else [])], indirect=True)
def test_processes_start_whatever_a_handler_puts_where_modules_are_looked_for(side: Side) -> None:
    side.ended("hostile.path")
    failed_once(side.ended("hostile.orphan", "is killed alone"), {"ProcessDied"})
    assert side.ended("hostile.process", "a value")["result"] == RETURNED["a value"][1]
