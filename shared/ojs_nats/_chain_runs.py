"""Runs of middleware: a push through its chain, and a handler in its chain."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any

from ojs_nats.chains import EnqueueChain, EnqueueMiddleware, ExecutionChain, ExecutionMiddleware, ExecutionNext
from ojs_nats.jobs import JobRequest
from ojs_nats.worker._context import JobContext


async def pushed(chain: EnqueueChain, new: JobRequest[Any]) -> JobRequest[Any] | None:
    """Return a job as it leaves the chain. None if a middleware dropped it.

    Raises:
        ValueError: A middleware has changed the job's id.
    """
    left = await _pushed([*chain], new)
    if left is not None and left.id != new.id:
        raise ValueError(f"middleware can't change a job's id ({new.id} became {left.id}): change its other members")
    return left


async def _pushed(chain: Sequence[EnqueueMiddleware], new: JobRequest[object]) -> JobRequest[object] | None:
    if not chain:
        return new
    return await chain[0](new, lambda changed: _pushed(chain[1:], changed))


async def handled(chain: ExecutionChain, context: JobContext, handler: ExecutionNext) -> object:
    """Run a handler in the chain, and return the job's result.

    Raises:
        RuntimeError: A middleware has called `next` twice.
    """
    return await _handled([*zip(chain.names, chain, strict=True)], context, handler)


def _handled(
    chain: Sequence[tuple[str, ExecutionMiddleware]], context: JobContext, handler: ExecutionNext
) -> Awaitable[object]:
    if not chain:
        return handler()
    (name, middleware), *inner = chain
    called = False

    def following() -> Awaitable[object]:
        nonlocal called
        if called:
            raise RuntimeError(f"the middleware {name!r} has called next() twice: a handler runs once in an attempt")
        called = True
        return _handled(inner, context, handler)

    return middleware(context, following)
