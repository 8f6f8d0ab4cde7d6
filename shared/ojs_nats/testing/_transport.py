"""The way from a client to the jobs in memory: requests are answered as a server does, in JSON."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from ojs_nats._operations import Request
from ojs_nats._refusals import refused
from ojs_nats._transport import Answer, Transport
from ojs_nats.errors import OjsError, RefusedError
from ojs_nats.jobs import Job
from ojs_nats.testing._store import Envelope, Failure, Store

T = TypeVar("T")

Trouble = Callable[[], OjsError | None]
"""The function that returns the error for the next push, if it is to fail."""
Pushed = Callable[[list[Job]], Coroutine[Any, Any, None]]
"""The function that jobs go through before their push is answered."""

_UNSUPPORTED: Final = 501


class _Many(msgspec.Struct):
    jobs: list[Envelope]


class _Acked(msgspec.Struct):
    job_id: str
    result: Any = None


class _Acks(msgspec.Struct):
    jobs: list[_Acked]


class _Nack(msgspec.Struct):
    job_id: str
    error: Failure
    requeue: bool = False
    retry_after_ms: int | None = None


class _Saved(msgspec.Struct):
    state: Any


class _Told(msgspec.Struct):
    progress: float
    message: str | None = None


class MemoryTransport(Transport):
    """To a store in this process, for any number of loops."""

    def __init__(self, url: str, store: Store, trouble: Trouble, pushed: Pushed) -> None:
        super().__init__(url)
        self._store = store
        self._trouble = trouble
        self._pushed = pushed

    async def close(self) -> None:
        """Do nothing: no connection is open."""

    async def once(self, request: Request, body: bytes | None) -> Answer:
        try:
            said = await self._said(request, body or b"{}")
        except RefusedError as error:
            told = {"error": {"code": error.code, "message": str(error), "retryable": False, "details": error.details}}
            return Answer(error.status or _UNSUPPORTED, msgspec.json.encode(told))
        return Answer(200, msgspec.json.encode(said))

    async def _said(self, request: Request, body: bytes) -> Any:
        store, job_id = self._store, request.parameters.get("job_id", "")
        match request.operation.name:
            case "createJob":
                [job] = await self._push([_read(body, Envelope)])
                return {"job": job}
            case "createJobBatch":
                return {"jobs": await self._push(_read(body, _Many).jobs)}
            case "bulkCreateJobs":
                return await self._push_bulk(_read(body, _Many).jobs)
            case "getJob":
                return {"job": replace(store.get(job_id).job, checkpoint=None)}  # it goes to those who fetch the job
            case "cancelJob":
                return {"job": store.cancel(job_id)}
            case "getJobResult":
                return self._result(job_id)
            case "ackJobs":
                acks = _read(body, _Acks).jobs
                for each in acks:
                    store.complete(each.job_id, each.result)
                return {"items": [{"index": index} for index in range(len(acks))]}
            case "nackJob":
                nack = _read(body, _Nack)
                return {"job": store.fail(nack.job_id, nack.error, requeue=nack.requeue, after_ms=nack.retry_after_ms)}
            case "putJobCheckpoint":
                return {"checkpoint": store.save(job_id, _read(body, _Saved).state)}
            case "reportJobProgress":
                store.get(job_id).progress = _read(body, _Told).progress
                return {"accepted": True}
            case name:
                raise refused(
                    "unsupported",
                    f"{name}: jobs in memory have no such operation; use the fixture ojs_server",
                    status=_UNSUPPORTED,
                )

    async def _push(self, envelopes: list[Envelope]) -> list[Job]:
        if (trouble := self._trouble()) is not None:
            raise trouble
        jobs = self._store.push(envelopes)
        await self._pushed([job for job, pushed in zip(jobs, envelopes, strict=True) if job.id == pushed.id])
        return [self._store.get(job.id).job for job in jobs]

    async def _push_bulk(self, envelopes: list[Envelope]) -> dict[str, Any]:
        items: list[dict[str, Any]] = []
        for index, each in enumerate(envelopes):
            try:
                [job] = await self._push([each])
            except RefusedError as error:
                told = {"code": error.code, "message": str(error), "details": error.details}
                items.append({"index": index, "status": "failed", "error": told})
            else:
                items.append({"index": index, "status": "created", "job": {"id": job.id, "state": job.state}})
        failed = sum(item["status"] == "failed" for item in items)
        return {"total": len(items), "succeeded": len(items) - failed, "failed": failed, "items": items}

    def _result(self, job_id: str) -> dict[str, Any]:
        job = self._store.get(job_id).job
        if not job.ended:
            raise refused(
                "not_run",
                f"job {job_id} ({job.type}) is {job.state}, and nothing runs it while somebody waits for its result: "
                "call drain() before, or use inline mode",
                status=409,
            )
        return {"job_id": job_id, "state": job.state, "result": job.result}


def _read(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise refused("invalid_request", str(error), status=400) from None
