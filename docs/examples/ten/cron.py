"""Run a job each weekday at 9 in Berlin, see when that is, and don't wait for it."""

from __future__ import annotations

import asyncio

from jobs import app, build_report


async def main() -> None:
    async with app:
        crons = app.client.crons
        entry = await crons.register("reports", "0 9 * * MON-FRI", build_report.job("2026-11"), timezone="Europe/Berlin")
        print(entry.expression, entry.timezone)
        run = await crons.trigger("reports")
        print((await app.client.jobs.wait(run.job_id, "30s")).result)
        await crons.delete("reports")


asyncio.run(main())
