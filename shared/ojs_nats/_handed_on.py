"""Results of earlier steps of a workflow for which a fetched job had no room: they are read before its handler runs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

import msgspec

from ojs_api import jobs as contract
from ojs_nats._operations import Request
from ojs_nats.errors import OjsError
from ojs_nats.jobs import Job

_REFERENCE: Final = re.compile(r"/ojs/v1/jobs/([0-9a-f-]{36})/result")
_AT_ONCE: Final = 8
MOST_BYTES: Final = 256 * 1024 * 1024


class _Result(msgspec.Struct):
    result: msgspec.Raw = msgspec.Raw(b"null")


async def with_results(job: Job, send: Callable[[Request], Awaitable[Any]], *, most_bytes: int = MOST_BYTES) -> Job:
    """Return the job with results in the place of references to them, each of which is read once, by `send`.

    Raises what `send` does: UnavailableError when nobody answers, ResultGone for a result that wasn't kept; and OjsError
    for results of more than `most_bytes` together.
    """
    wanted = set(_references(job.parent_results))
    if not wanted:
        return job
    found: dict[str, Any] = {}
    size = 0
    room = asyncio.Semaphore(_AT_ONCE)

    async def read(job_id: str) -> None:
        nonlocal size
        async with room:
            answer = msgspec.json.decode(await send(Request(contract.RESULT, {"job_id": job_id})), type=_Result)
        size += len(answer.result)
        if size > most_bytes:
            raise OjsError(
                f"the results of earlier steps are more than {most_bytes // 2**20} MiB together: "
                "let these steps store what they made, and return where it is"
            )
        found[job_id] = msgspec.json.decode(answer.result)

    try:
        async with asyncio.TaskGroup() as reading:
            for job_id in wanted:
                reading.create_task(read(job_id))
    except* OjsError as errors:
        raise errors.exceptions[0] from None
    return msgspec.structs.replace(
        job,
        parent_results=_filled(job.parent_results, found),
        parent_results_by_index=_filled(job.parent_results_by_index, found),
    )


def _references(value: Any) -> Iterator[str]:
    if (job_id := _referred(value)) is not None:
        yield job_id
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _references(each)


def _filled(value: Any, found: dict[str, Any]) -> Any:
    if (job_id := _referred(value)) is not None:
        return found[job_id]
    if isinstance(value, dict):
        return {name: _filled(each, found) for name, each in value.items()}
    return [_filled(each, found) for each in value] if isinstance(value, list) else value


def _referred(value: Any) -> str | None:
    """Return the id of the job whose result it refers to, if it does."""
    if not isinstance(value, dict) or len(value) != 1 or not isinstance(place := value.get("$ref"), str):
        return None
    known = _REFERENCE.fullmatch(place)
    return None if known is None else known[1]
