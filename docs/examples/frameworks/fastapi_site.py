"""FastAPI: `uvicorn fastapi_site:site`. The lifespan closes connections; a view asks for the client as a dependency."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI
from jobs import app, send_welcome

from ojs_nats import Client


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with app:
        yield


async def jobs_client() -> Client:
    return app.client  # of the loop that the request is served in


site = FastAPI(lifespan=lifespan)


@site.post("/members", status_code=202)
async def join(email: str) -> dict[str, str]:
    return {"job": (await send_welcome.push(email)).id}


@site.post("/plain/members", status_code=202)
def join_in_a_thread(email: str) -> dict[str, str]:
    return {"job": send_welcome.push_sync(email).id}  # FastAPI runs plain functions in threads


@site.get("/jobs/{job_id}")
async def job(job_id: str, client: Annotated[Client, Depends(jobs_client)]) -> dict[str, object]:
    found = await client.jobs.get(job_id)
    return {"type": found.type, "state": found.state}
