"""Handlers that end in strange ways, in a coroutine, a thread and a process: the server hears how, and the worker goes on."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import pytest

from support.python_worker import WorkerProcess, exits, installed, pushed, record
from support.system import System
from support.waiting import until

KINDS: Final = ("coroutine", "thread", "process")
MOST_BYTES: Final = 100_000
"""What the server keeps of an error, at most."""

RAISED: Final = {
    "a BaseException is raised": ("raises a BaseException", "Panic", "index out of bounds"),
    "an error has a number as its text": ("raises a number as text", "Numbered", "its text can't be made"),
    "an error's text raises a BaseException": ("raises an error without a text", "Unprintable", "its text can't be made"),
    "an error has half a surrogate pair": ("raises half a surrogate pair", "FileNotFoundError", r"invoice-\udce9.pdf"),
    "an error has five megabytes": ("raises five megabytes", "ValueError", "row row"),
    "an error is its own cause": ("raises a cause that is itself", "ValueError", "round and round"),
    "several errors are raised as one": ("raises a group", "ExceptionGroup", "several"),
    "a generator's end is raised": ("raises GeneratorExit", "GeneratorExit", ""),
    "next() finds nothing": ("raises StopIteration", "RuntimeError", "StopIteration"),
    "the handler calls exit()": ("raises exit", "RuntimeError", "exit(3)"),
    "the handler says that it is cancelled": ("raises cancelled", "CancelledError", ""),
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
        both = [
            (pushed(self.system, job_type, *args, queue=self.queue), pushed(self.system, "hostile.well", queue=self.queue))
            for args in arguments
        ]
        for _, usual in both:

            def it_has_run(usual: str = usual) -> bool:
                return not self.worker.has_ended() and record(self.system, usual)["state"] == "completed"

            until(it_has_run, 60)
            assert record(self.system, usual)["result"] == 1

        def nothing_is_active() -> bool:
            page = self.system.call("GET", f"/jobs?queue={self.queue}&state=active&limit=1")
            return bool(page["pagination"]["total"] == 0)

        until(nothing_is_active)
        return [record(self.system, bad) for bad, _ in both]


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


@pytest.fixture(params=["http", "nats"])
def side(sides: Callable[[str], Side], request: pytest.FixtureRequest) -> Side:
    return sides(request.param)


def failed_once(job: dict[str, Any], types: set[str]) -> str:
    """See that its only attempt failed with an error of this type, and return its text."""
    assert (job["state"], job["attempt"]) == ("discarded", 1)
    [error] = job["errors"]
    assert error["type"] in types
    assert len(msgspec.json.encode(job["errors"])) < MOST_BYTES
    return str(error["message"])


@pytest.mark.parametrize("kind", KINDS)
def test_an_attempt_fails_with_its_error_where(side: Side, kind: str) -> None:
    """Several ways at once: what the one leaves behind, the next one meets."""
    jobs = side.all_ended(f"hostile.{kind}", [[name] for name, _, _ in RAISED.values()])
    for (way, (_, error, said)), job in zip(RAISED.items(), jobs, strict=True):
        assert said in failed_once(job, {error}), way


@pytest.mark.parametrize("kind", KINDS)
def test_an_attempt_fails_where_json_can_t_say_what_it_returned(side: Side, kind: str) -> None:
    jobs = side.all_ended(f"hostile.{kind}", [[name] for name, _ in UNWRITABLE.values()])
    for (_, errors), job in zip(UNWRITABLE.values(), jobs, strict=True):
        failed_once(job, errors)


@pytest.mark.parametrize("kind", KINDS)
def test_a_line_that_can_t_be_logged_harms_no_attempt(side: Side, kind: str) -> None:
    job = side.ended(f"hostile.log_{kind}")
    assert (job["state"], job.get("result")) == ("completed", "logged"), job


@pytest.mark.parametrize("written", ["ff" * 64, "00" * 64, "0000000000100000", "00", "0000000000000002" + b"{}".hex()])
def test_a_process_that_writes_into_what_isn_t_its_own_fails_its_attempt_alone(side: Side, written: str) -> None:
    failed_once(side.ended("hostile.scribble", written), {"ProcessDied"})
