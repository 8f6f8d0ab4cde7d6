"""Models of pydantic's and numbers of numpy's, from a push through a server and a worker to the result."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from ojs_nats import JobFailed, OjsError
from support.python_worker import WorkerProcess, imported, installed, pushed
from support.system import System
from support.waiting import until


@pytest.fixture(params=["HTTP", "NATS"])
def url(system: System, request: pytest.FixtureRequest) -> str:
    return system.url if request.param == "HTTP" else system.nats_url


@pytest.fixture
async def jobs(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    """The module `models`, to push its jobs."""
    monkeypatch.setenv("OJS_URL", url)
    module = imported("models", monkeypatch)
    async with module.app:
        yield module


async def test_models_and_numbers_arrive_and_come_back(system: System, url: str, jobs: Any, tmp_path: Path) -> None:
    installed("models", tmp_path)
    worker = WorkerProcess.started(tmp_path, "models", "--processes", "1", "--verbose", url=url)
    try:
        line = jobs.Line(sku="a", count=2, price=Decimal("9.50"))
        invoice = jobs.Invoice(id=UUID(int=1), day=date(2026, 11, 23), invoiceLines=[line], tags={"first": line})
        for job in (jobs.in_loop, jobs.in_thread, jobs.in_process):
            handle = await job.push(invoice, line)
            found = await handle.result("60s")
            assert found == jobs.with_line(invoice, line)
            assert [type(each) for each in found.lines] == [jobs.Line, jobs.Line]
            assert system.job(handle.id)["args"][0]["invoiceLines"] == [{"sku": "a", "count": 2, "price": "9.50"}]

        described = await (await jobs.described.push([0.5, 1.5])).result("30s")
        assert described == {"count": 2, "mean": 1.0, "over": True, "doubled": [1.0, 3.0], "last": [1.5]}
        with pytest.raises(JobFailed, match=r"the result\['mean'\] is nan, which JSON can't hold"):
            await (await jobs.described.push([1e300, -1e300])).result("30s")

        with pytest.raises(TypeError, match=r"'line' isn't what the worker could read.*: Input should be greater than"):
            await jobs.in_loop.push(invoice, {"sku": "a", "count": 0, "price": "1"})
        job_id = pushed(system, "invoice.loop", {"id": "confidential", "day": "2026-11-23"}, queue="models")
        until(lambda: system.job(job_id)["state"] == "discarded")
        error = system.job(job_id)["error"]
        assert error["code"] == "invalid_arguments"
        assert error["message"].startswith("args[0]: Input should be a valid UUID")

        with pytest.raises(OjsError, match=r"isn't what its definition says: Input should be a valid UUID.* \(and 2 more\)$"):
            await (await jobs.wrong.push()).result("30s")
        [told] = worker.events("the handler's result isn't of its hint's type, so whoever waits for it gets an error")
        assert told["reason"].startswith("Input should be a valid UUID")
        assert "confidential" not in worker.output
    finally:
        worker.end()
