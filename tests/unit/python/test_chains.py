"""Middleware: its order, and what it may do with a job."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ojs_nats import App, JobContext
from ojs_nats._chain_runs import handled, pushed
from ojs_nats.chains import EnqueueChain, EnqueueNext, ExecutionChain, ExecutionNext
from ojs_nats.jobs import JobRequest
from support.python_samples import context


def tagging(tag: str) -> Any:
    async def middleware(new: JobRequest[Any], next: EnqueueNext) -> JobRequest[Any] | None:
        left = await next(new.with_options(tags=[*new.options.get("tags", []), tag]))
        return None if left is None else left.with_options(queue=f"{left.options.get('queue', '')}{tag}")

    return middleware


async def test_the_order_is_that_of_the_chain() -> None:
    chain = EnqueueChain()
    for name in ("b", "d"):
        chain.add(tagging(name), name)
    chain.prepend(tagging("a"), "a")
    chain.insert_after("b", tagging("c"), "c")
    chain.insert_before("a", tagging("x"), "x")
    chain.add(tagging("y"), "y")
    chain.remove("y")
    assert chain.names == ("x", "a", "b", "c", "d")
    left = await pushed(chain, JobRequest("a.job"))
    assert left is not None
    assert left.options == {"tags": ["x", "a", "b", "c", "d"], "queue": "dcbax"}


@pytest.mark.parametrize("change", ["insert_before", "insert_after"])
def test_a_name_that_isn_t_there_is_said(change: str) -> None:
    chain = EnqueueChain()
    with pytest.raises(LookupError, match=r"'logs'.*empty"):
        getattr(chain, change)("logs", tagging("a"))

    @chain.add
    async def other(new: JobRequest[Any], next: EnqueueNext) -> JobRequest[Any] | None:
        return await next(new)

    assert other.__name__ == "other"
    with pytest.raises(LookupError, match=r"'logs'.*other"):
        chain.remove("logs")


async def test_a_job_may_be_dropped_and_refused_and_keeps_its_id() -> None:
    chain = EnqueueChain()

    @chain.add
    async def deciding(new: JobRequest[Any], next: EnqueueNext) -> JobRequest[Any] | None:
        match new.args:
            case ("drop",):
                return None
            case ("refuse",):
                raise PermissionError("not today")
            case ("rename",):
                return msgspec.structs.replace(new, id="another")
            case _:
                pass
        return await next(new)

    assert await pushed(chain, JobRequest("a.job", ("drop",))) is None
    with pytest.raises(PermissionError):
        await pushed(chain, JobRequest("a.job", ("refuse",)))
    with pytest.raises(ValueError, match="can't change a job's id"):
        await pushed(chain, JobRequest("a.job", ("rename",)))


async def test_an_execution_is_wrapped() -> None:
    chain = ExecutionChain()
    said: list[str] = []

    @chain.add
    async def outer(ctx: JobContext, next: ExecutionNext) -> Any:
        said.append(f"outer {ctx.attempt}")
        return [await next()]

    @chain.add
    async def inner(ctx: JobContext, next: ExecutionNext) -> Any:
        ctx.job = msgspec.structs.replace(ctx.job, args=["changed"])
        return [await next()]

    running = context("given")

    async def handler() -> Any:
        return running.job.args[0]

    assert await handled(chain, running, handler) == [["changed"]]
    assert said == ["outer 1"]


async def test_a_handler_runs_once_or_not_at_all() -> None:
    chain = ExecutionChain()

    @chain.add
    async def short(ctx: JobContext, next: ExecutionNext) -> Any:
        if ctx.job.args:
            return "cached"
        return [await next(), await next()]

    async def handler() -> Any:
        return "run"

    assert await handled(chain, context(1), handler) == "cached"
    with pytest.raises(RuntimeError, match=r"'short' has called next\(\) twice"):
        await handled(chain, context(), handler)


def test_an_app_without_middleware_has_empty_chains() -> None:
    app = App("http://localhost")
    assert not app.enqueue
    assert not app.execution
