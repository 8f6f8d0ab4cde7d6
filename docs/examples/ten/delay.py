"""Run a job after a time, or at a moment."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from jobs import add, app


async def main() -> None:
    async with app:
        soon = await add.later("1s").push(1, 2)
        then = await add.options(scheduled_at=datetime.now(UTC) + timedelta(days=1), priority=5).push(3, 4)
        print((await soon.job()).state, (await then.job()).state)
        print(await soon.result(timeout="30s"))
        print((await then.cancel()).state)


asyncio.run(main())
