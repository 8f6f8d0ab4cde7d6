"""Follow a job: the cursor is taken before the push, so no event is missed."""

from __future__ import annotations

import asyncio

from jobs import app, encode


async def main() -> None:
    async with app:
        client = app.client
        before = await client.events.cursor()
        handle = await encode.push("cat")
        async for event in client.events(job_id=handle.id, types=["job.progress", "job.completed"], after=before):
            print(event.type, event.data.get("message", ""))
        print(await handle.result())


asyncio.run(main())
