"""The upload service: `POST /uploads` with a picture, `GET /uploads/{id}` for how far it is, `GET /uploads/{id}/{size}.png`."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncIterator

import uuid6
from aiohttp import web
from jobs import FOLDER, app, clean_up, thumbnails

from ojs_nats.errors import NotFoundError

MOST_BYTES = 20 * 1024 * 1024


async def upload(request: web.Request) -> web.Response:
    # The workflow has the upload's id, so that nothing has to be kept of it here.
    name = str(uuid6.uuid7())
    picture = await request.read()
    await asyncio.to_thread(_store, name, picture)
    await app.client.workflows.start(thumbnails(name), id=name)
    return web.json_response({"id": name}, status=202, headers={"Location": f"/uploads/{name}"})


async def state(request: web.Request) -> web.Response:
    name = request.match_info["id"]
    try:
        workflow = await app.client.workflows.get(name)
        jobs = [job async for job in app.client.workflows.jobs(name)]
    except NotFoundError:
        raise web.HTTPNotFound from None
    ready = workflow.steps[-1].result if workflow.state == "completed" else []
    told = [{"type": job.type, "args": job.args[1:], "state": job.state} for job in jobs]
    return web.json_response({"state": workflow.state, "thumbnails": ready, "jobs": told})


async def thumbnail(request: web.Request) -> web.FileResponse:
    path = FOLDER / str(uuid.UUID(request.match_info["id"])) / f"{int(request.match_info['size'])}.png"
    if not path.exists():
        raise web.HTTPNotFound
    return web.FileResponse(path)


def _store(name: str, picture: bytes) -> None:
    (FOLDER / name).mkdir(parents=True)
    (FOLDER / name / "original").write_bytes(picture)


async def connected(_: web.Application) -> AsyncIterator[None]:
    async with app:
        await app.client.crons.register("thumbnails-clean-up", "0 3 * * *", clean_up.job(), overlap="skip")
        yield


def main() -> None:
    service = web.Application(client_max_size=MOST_BYTES)
    service.cleanup_ctx.append(connected)
    service.add_routes(
        [
            web.post("/uploads", upload),
            web.get("/uploads/{id}", state),
            web.get(r"/uploads/{id:[0-9a-f-]{36}}/{size:\d+}.png", thumbnail),
        ]
    )
    web.run_app(service, host="127.0.0.1", port=int(os.environ.get("PORT", "8000")))


if __name__ == "__main__":
    main()
