"""Push from a web application: `uvicorn web:site`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from jobs import add, app


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with app:
        yield


site = FastAPI(lifespan=lifespan)


@site.post("/sums", status_code=202)
async def push_a_sum(first: int, second: int) -> dict[str, str]:
    return {"id": (await add.push(first, second)).id}


@site.get("/sums/{job_id}")
async def read_a_sum(job_id: str) -> dict[str, object]:
    job = await app.client.jobs.get(job_id)
    return {"state": job.state, "sum": job.result}
