"""Litestar: `uvicorn litestar_site:site`. The lifespan closes the connections; a handler is given the client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from jobs import app, send_welcome
from litestar import Litestar, get, post
from litestar.di import NamedDependency, Provide
from litestar.params import FromPath, FromQuery

from ojs_nats import Client


@asynccontextmanager
async def lifespan(_: Litestar) -> AsyncIterator[None]:
    async with app:
        yield


async def jobs_client() -> Client:
    return app.client  # of the loop that the request is served in


@post("/members", status_code=202)
async def join(email: FromQuery[str]) -> dict[str, str]:
    return {"job": (await send_welcome.push(email)).id}


@get("/jobs/{job_id:str}")
async def job(job_id: FromPath[str], client: NamedDependency[Client]) -> dict[str, str]:
    found = await client.jobs.get(job_id)
    return {"type": found.type, "state": found.state}


site = Litestar([join, job], lifespan=[lifespan], dependencies={"client": Provide(jobs_client)})
