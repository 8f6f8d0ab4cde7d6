"""What a handler is given beside its job's arguments."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import pytest

from ojs_nats import App, Depends, JobContext
from ojs_nats._arguments import Parameters
from ojs_nats._dependencies import Provided
from support.python_samples import context

said: list[str] = []


def plain() -> str:
    return threading.current_thread().name


async def started(ctx: JobContext, thread: str = Depends(plain)) -> AsyncIterator[str]:
    said.append("started")
    yield f"{ctx.job.id} {thread != threading.current_thread().name}"
    said.append("stopped")


def locked(first: str = Depends(started)) -> Iterator[str]:
    try:
        yield f"{first} locked"
    except ValueError as error:
        said.append(f"met {error}")
        raise
    finally:
        said.append("unlocked")


async def handler(
    ctx: JobContext, name: str, times: int = 1, *, lock: str = Depends(locked), start: str = Depends(started)
) -> None: ...


@pytest.fixture(autouse=True)
def _quiet() -> None:
    said.clear()


@pytest.fixture
def threads() -> Iterator[Executor]:
    with ThreadPoolExecutor() as made:
        yield made


tenant: ContextVar[str] = ContextVar("tenant", default="nobody")
language: ContextVar[str] = ContextVar("language", default="none")


def of_a_tenant() -> Iterator[None]:
    token = tenant.set("ada")
    yield
    said.append(tenant.get())
    tenant.reset(token)
    said.append(tenant.get())


def in_a_language(_tenant: None = Depends(of_a_tenant)) -> str:
    language.set(f"{tenant.get()}'s")
    return language.get()


async def test_context_variables_of_plain_ones_reach_the_handler(threads: Executor) -> None:
    async def handler(*, tenant: None = Depends(of_a_tenant), language: str = Depends(in_a_language)) -> None: ...

    provided = Provided(context(), threads)
    async with provided.cleaning:
        await provided.values(Parameters(handler).injected)
        assert (tenant.get(), language.get()) == ("ada", "ada's")
        tenant.set("bob")
    assert said == ["bob", "nobody"]


async def test_each_is_made_once_and_cleaned_up_the_last_first(threads: Executor) -> None:
    parameters = Parameters(handler)
    provided = Provided(context(), threads)
    async with provided.cleaning:
        values = await provided.values(parameters.injected)
        assert values == {"lock": "j1 True locked", "start": "j1 True"}
        assert said == ["started"]
    assert said == ["started", "unlocked", "stopped"]


async def test_they_meet_what_the_handler_raises(threads: Executor) -> None:
    provided = Provided(context(), threads)

    async def run() -> None:
        async with provided.cleaning:
            await provided.values(Parameters(handler).injected)
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await run()
    assert said == ["started", "met no", "unlocked"], "what doesn't clean up in `finally` doesn't"


async def test_one_that_is_made_while_its_job_is_stopped_is_cleaned_up(threads: Executor) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def slow() -> Iterator[str]:
        entered.set()
        go_on.wait(10)
        yield "made"
        said.append("cleaned up")

    async def waiting(*, made: str = Depends(slow)) -> None: ...

    provided = Provided(context(), threads)

    async def run() -> None:
        async with provided.cleaning:
            await provided.values(Parameters(waiting).injected)

    running = asyncio.create_task(run())
    await asyncio.to_thread(entered.wait, 10)
    running.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert said == ["cleaned up"]


@dataclass
class Settings:
    """Has no hash."""

    name: str = "settings"

    def __call__(self, ctx: JobContext) -> str:
        return f"{self.name} of {ctx.job.id}"


class Pool:
    async def __call__(self) -> str:
        return "a pool"


class Cursor:
    async def __call__(self, ctx: JobContext) -> AsyncIterator[str]:
        yield f"a cursor of {ctx.job.id}"
        said.append("closed")


class Session:
    def __init__(self, ctx: JobContext) -> None:
        self.job_id = ctx.job.id


async def greeting(word: str, ctx: JobContext) -> str:
    return f"{word}, {ctx.job.id}"


settings = Settings()


async def test_objects_and_classes_are_called_as_functions_are(threads: Executor) -> None:
    async def handler(
        *,
        one: str = Depends(settings),
        again: str = Depends(settings),
        pool: str = Depends(Pool()),
        cursor: str = Depends(Cursor()),
        session: Session = Depends(Session),
        greeted: str = Depends(functools.partial(greeting, "hello")),
    ) -> None: ...

    provided = Provided(context(), threads)
    async with provided.cleaning:
        values: dict[str, Any] = await provided.values(Parameters(handler).injected)
    job_id = context().job.id
    assert values.pop("session").job_id == job_id
    assert values == {
        "one": f"settings of {job_id}",
        "again": f"settings of {job_id}",
        "pool": "a pool",
        "cursor": f"a cursor of {job_id}",
        "greeted": f"hello, {job_id}",
    }
    assert said == ["closed"]


def test_they_are_no_arguments() -> None:
    assert Parameters(handler).listed(("Ada",), {}) == ("Ada",)
    with pytest.raises(TypeError):
        Parameters(handler).listed(("Ada",), {"lock": "mine"})


def test_what_can_t_be_is_said_where_it_is_written() -> None:
    app = App("http://localhost")

    def needy(what: str) -> str:
        return what

    with pytest.raises(TypeError, match="nobody gives its parameter 'what' a value"):
        Depends(needy)
    with pytest.raises(TypeError, match=r"'lock' is no argument of its jobs, so put it behind a \*"):

        @app.job("a.positional")
        async def positional(lock: str = Depends(locked)) -> None: ...

    with pytest.raises(TypeError, match="or a dependency"):

        @app.job("a.by_name")
        async def by_name(*, name: str) -> None: ...


def plainly() -> None: ...


async def coroutine() -> None: ...


def dependent(*, lock: str = Depends(locked)) -> None: ...


def test_what_can_t_run_in_a_process_is_said_where_it_is_written() -> None:
    app = App("http://localhost")

    def local() -> None: ...

    for handler, why in ((coroutine, "plain function"), (local, "within a function"), (dependent, "makes its own")):
        with pytest.raises(TypeError, match=why):
            app.job(f"a.{handler.__name__}", runs_in="process")(handler)
    app.job("a.plainly", runs_in="process")(plainly)


def test_a_soft_time_out_is_the_shorter_one() -> None:
    app = App("http://localhost")
    with pytest.raises(ValueError, match="soft_timeout '30s' has to be shorter than timeout '30s'"):
        app.job("a.job", timeout="30s", soft_timeout="30s")(plainly)


def test_a_worker_has_one_lifespan() -> None:
    app = App("http://localhost")

    @app.lifespan
    async def one() -> AsyncIterator[None]:
        yield

    with pytest.raises(ValueError, match="has a lifespan already"):
        app.lifespan(one)
